"""Test the interview: its questions, its fits to the answers, and its advice when to stop."""

import time
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import cgmm.decide.interview as interview_module
from cgmm import ConstrainedGaussianMixture, MixedMixture, SideInformation, datasets
from cgmm.decide import Answer, Interview, Question, answer_information, fit_answers
from cgmm.decide.implied import ImpliedPairs
from cgmm.diagnose import pair_probabilities
from cgmm.inference import ENGINES
from cgmm.metrics import matched_accuracy
from cgmm.scenarios import preferences_from_answers

SEEDS = st.integers(0, 10_000)
IRIS = datasets.iris()


def draw_classes(seed: int, K: int = 3, n: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Draw points of K separated classes, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
    return rng.normal(size=(n, 2)) + 6 * np.column_stack([y, y % 2]), y


def reply_about(question: Question, y) -> str:
    """Return the true reply to a question."""
    return "same" if y[question.i] == y[question.j] else "different"


def answer_questions(interview: Interview, y, n: int) -> list[Question]:
    """Answer n questions, or all that there are, according to the true classes."""
    asked = []
    while len(asked) < n and (question := interview.next_question()) is not None:
        asked.append(question)
        interview.answer(reply_about(question, y))
    return asked


def make_answers(rows) -> list[Answer]:
    """Turn rows (i, j, "same" or "different") into answers."""
    return [Answer(i, j, reply, None, "", "check", 0.5) for i, j, reply in rows]


def find_determined_pairs(
    n: int, K: int, rows: list[tuple[int, int, bool]]
) -> set[tuple[int, int]]:
    """Return the pairs whose relation is the same in every assignment that fits the answers."""
    assignments = np.stack(np.meshgrid(*[np.arange(K)] * n), axis=-1).reshape(-1, n)
    for i, j, same in rows:
        assignments = assignments[(assignments[:, i] == assignments[:, j]) == same]
    same = {(i, j): assignments[:, i] == assignments[:, j] for i, j in combinations(range(n), 2)}
    return {pair for pair, is_same in same.items() if is_same.all() or not is_same.any()}


# ---------------------------------------------------------------------------- questions


@settings(max_examples=5)
@given(SEEDS, st.integers(2, 3))
def test_an_interview_asks_until_all_pairs_are_determined_and_never_twice(seed, K):
    X, y = draw_classes(seed, K, n=7)
    interview, asked = Interview(X, K, random_state=seed), set()
    while (question := interview.next_question()) is not None:
        # Relations that follow from earlier answers are not asked about.
        assert ImpliedPairs(7, K, interview.answers).is_open(question.i, question.j)
        assert frozenset(question[:2]) not in asked
        asked.add(frozenset(question[:2]))
        interview.answer(reply_about(question, y))
    assert find_determined_pairs(7, K, interview.answer_rows) == set(combinations(range(7), 2))
    assert matched_accuracy(y, interview.labels_) == 1
    assert interview.contradictions() == []
    assert interview.progress().may_stop
    with pytest.raises(ValueError, match="no question is left"):
        interview.answer("same")


@settings(max_examples=20)
@given(SEEDS, st.integers(2, 3), st.integers(1, 8))
def test_implied_pairs_include_the_answers_and_only_determined_pairs(seed, K, n_answers):
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=6)
    pairs = [tuple(rng.choice(6, 2, replace=False).tolist()) for _ in range(n_answers)]
    rows = [(i, j, bool(y[i] == y[j])) for i, j in pairs]
    answers = make_answers((i, j, "same" if same else "different") for i, j, same in rows)
    implied = ImpliedPairs(6, K, answers)
    closed = {pair for pair in combinations(range(6), 2) if not implied.is_open(*pair)}
    assert {tuple(sorted(pair)) for pair in pairs} <= closed <= find_determined_pairs(6, K, rows)


def test_a_group_that_differs_from_all_classes_but_one_belongs_to_it():
    """Points 0, 1 and 2 differ from each other; 3 differs from 0 and 1, and 4 from 0 and 2."""
    pairs = [(0, 1), (0, 2), (1, 2), (3, 0), (3, 1), (4, 0), (4, 2)]
    implied = ImpliedPairs(6, 3, make_answers((i, j, "different") for i, j in pairs))
    assert implied.group[3] == implied.group[2]
    assert implied.group[4] == implied.group[1]
    assert [j for j in range(5) if implied.is_open(5, j)] == list(range(5))


def test_questions_explore_until_each_class_has_a_point_then_alternate_two_kinds():
    interview = Interview(IRIS.X, 3, random_state=0)
    kinds = [question.kind for question in answer_questions(interview, IRIS.y, 12)]
    n = kinds.index("doubt")
    assert 1 <= n <= 9
    assert kinds == (["explore"] * n + ["doubt", "doubt", "check"] * 4)[:12]
    # Exploring ends when each class has at least one answered point.
    rows = interview.answer_rows[:n]
    assert set(IRIS.y[rows[:, :2].ravel()]) == {0, 1, 2}


def test_a_doubt_question_has_nearly_the_highest_expected_information():
    """The question is chosen among a sample of pairs, so it need not be the very best."""
    interview = Interview(IRIS.X, 3, random_state=0)
    while (question := interview.next_question()).kind != "doubt":
        interview.answer(reply_about(question, IRIS.y))
    soft = preferences_from_answers(interview.answer_rows, 0.95)
    known = SideInformation.build(150, preferences=soft)
    pairs = np.array(list(combinations(range(150), 2)))
    parameters = interview._model.parameters_
    p = pair_probabilities(IRIS.X, parameters, known, pairs, ENGINES["auto"](known.graph))
    information = answer_information(p, false_apart=0.05, false_together=0.05)
    assert question.information > np.quantile(information, 0.99)
    is_question = (pairs == sorted(question[:2])).all(axis=1)
    assert question.p_same == pytest.approx(p[is_question][0])
    assert question.information == pytest.approx(information[is_question][0])


def test_a_question_is_repeated_until_answered_and_not_after_unsure():
    interview = Interview(draw_classes(0)[0], 3, random_state=0)
    assert interview.next_question() is interview.next_question()
    asked = set()
    for _ in range(30):
        asked.add(tuple(sorted(interview.next_question()[:2])))
        interview.answer("unsure")
    assert len(asked) == 30
    progress = interview.progress()
    assert (progress.n_answers, progress.n_unsure, progress.n_checks) == (0, 30, 0)
    assert len(interview.answer_rows) == 0


def test_questions_do_not_depend_on_the_speed_of_the_background_thread(monkeypatch):
    """Each class has two clusters here, and only the fits in the thread find the classes."""
    data, fits = datasets.vertical_classes(random_state=2), Interview._fit_from_scratch
    X, y = data.X[::6], data.y[::6]

    def fit_late(self, *arguments):
        time.sleep(0.1)
        return fits(self, *arguments)

    interview, asked = Interview(X, 2, random_state=0), []
    for _ in range(16):
        asked += answer_questions(interview, y, 1)
        interview._pending.result()
    monkeypatch.setattr(Interview, "_fit_from_scratch", fit_late)
    assert answer_questions(Interview(X, 2, random_state=0), y, 16) == asked


# ---------------------------------------------------------------------------- stored answers


def test_an_interview_resumes_from_its_file(tmp_path):
    path = tmp_path / "answers.jsonl"
    first = Interview(IRIS.X, 3, path=path, annotator="ann", random_state=0)
    answer_questions(first, IRIS.y, 8)
    first.undo()
    again = Interview(IRIS.X, 3, path=path, annotator="bob", random_state=0)
    assert again.answers == first.answers
    assert len(again.answers) == 7
    answer_questions(again, IRIS.y, 1)
    assert [a.annotator for a in again.answers] == ["ann"] * 7 + ["bob"]
    assert again.annotators == ["ann"] * 7 + ["bob"]
    times = [a.time for a in again.answers]
    assert times == sorted(times)
    rows = [[a.i, a.j, IRIS.y[a.i] == IRIS.y[a.j]] for a in again.answers]
    np.testing.assert_array_equal(again.answer_rows, rows)


def test_undo_withdraws_only_answers_of_the_same_person_and_asks_again(tmp_path):
    path = tmp_path / "answers.jsonl"
    ann = Interview(IRIS.X, 3, path=path, annotator="ann", random_state=0)
    assert ann.undo() is None
    first, second = answer_questions(ann, IRIS.y, 2)
    bob = Interview(IRIS.X, 3, path=path, annotator="bob", random_state=0)
    assert bob.undo() is None
    answer_questions(bob, IRIS.y, 1)
    assert ann.undo()[:2] == second[:2] == ann.next_question()[:2]
    assert [a.annotator for a in ann.answers] == ["ann", "bob"]
    assert ann.undo()[:2] == first[:2]
    assert ann.undo() is None


def test_a_contradiction_is_shown_with_its_chain_and_can_be_revised(tmp_path):
    X, _ = draw_classes(0)
    path = tmp_path / "answers.jsonl"
    interview = Interview(X, 3, path=path, random_state=0)
    for i, j, reply in [(5, 8, "same"), (8, 2, "same"), (1, 3, "same"), (5, 2, "different")]:
        interview._file.add_answer(Answer(i, j, reply, "ann", "", "check", 0.5))
    interview = Interview(X, 3, path=path, random_state=0)
    (contradiction,) = interview.contradictions()
    assert contradiction.numbers == [3, 0, 1]
    assert "5 - 8 - 2" in contradiction.message
    assert "5 - 8 - 2" in interview.progress().advice
    interview.revise(1, "different")
    assert interview.contradictions() == []
    assert interview.answers[1].answer == "different"
    assert Interview(X, 3, path=path).answers == interview.answers


def test_more_groups_that_differ_than_classes_are_a_contradiction():
    answers = make_answers((i, j, "different") for i, j in combinations(range(3), 2))
    (contradiction,) = ImpliedPairs(5, 2, answers).contradictions
    assert "0, 1, 2" in contradiction.message
    assert "2 groups" in contradiction.message
    assert sorted(contradiction.numbers) == [0, 1, 2]
    assert ImpliedPairs(5, 3, answers).contradictions == []


# ---------------------------------------------------------------------------- fits


def test_the_fit_satisfies_most_answers_and_is_a_maximum_of_em():
    interview = Interview(IRIS.X, 3, random_state=0)
    answer_questions(interview, IRIS.y, 15)
    i, j, says_same = interview.answer_rows.T
    assert ((interview.labels_[i] == interview.labels_[j]) == says_same).mean() > 0.9
    np.testing.assert_allclose(interview.probabilities_.sum(axis=1), 1)
    # EM that starts at the fitted parameters does not move away.
    names = "weights", "means", "covariances"
    start = {f"{name}_init": getattr(interview.model_, f"{name}_") for name in names}
    model = clone(interview.model_).set_params(warm_start=False, **start)
    again = fit_answers(model, IRIS.X, interview.answer_rows, error_rate=0.05)
    assert matched_accuracy(again.labels_, interview.labels_) > 0.98


def test_answers_select_a_fit_that_has_a_lower_likelihood_of_the_points(monkeypatch):
    """Each class has two clusters; the points alone are more likely under other classes."""
    data = datasets.vertical_classes(random_state=2)
    X, y = data.X[::4], data.y[::4]
    interview = Interview(X, 2, random_state=0)
    answer_questions(interview, y, 25)
    assert matched_accuracy(y, interview.labels_) > 0.95
    monkeypatch.setattr(interview_module, "MAX_SURPRISE", 1e9)  # No answer rejects a fit.
    by_likelihood = Interview(X, 2, random_state=0)
    answer_questions(by_likelihood, y, 25)
    assert matched_accuracy(y, by_likelihood.labels_) < 0.7


def test_one_wrong_answer_among_ten_does_not_change_the_clusters():
    """A fit that also explains the wrong answer has a far lower likelihood of the points."""
    wine = datasets.wine()
    X = PCA(5, random_state=0).fit_transform(StandardScaler().fit_transform(wine.X))[::2]
    interview, y = Interview(X, 3, random_state=0), wine.y[::2]
    answer_questions(interview, y, 3)
    question = interview.next_question()
    interview.answer("same" if y[question.i] != y[question.j] else "different")
    answer_questions(interview, y, 6)
    assert matched_accuracy(y, interview.labels_) > 0.95


def test_a_true_model_is_refuted_by_answers_in_about_5_percent_of_cases():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, size=40)
    answers = rng.random((2000, 40)) < p
    refuted = [interview_module._is_refuted(np.where(row, p, 1 - p)) for row in answers]
    assert 0.03 < np.mean(refuted) < 0.07
    assert interview_module._is_refuted(np.full(4, 0.05))
    assert not interview_module._is_refuted(np.empty(0))


# ---------------------------------------------------------------------------- progress


def wilson_interval(right: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a proportion."""
    z = 1.959964
    middle, half = right + z**2 / 2, z * np.sqrt(right * (n - right) / n + z**2 / 4)
    return (middle - half) / (n + z**2), (middle + half) / (n + z**2)


def test_progress_counts_the_correct_predictions_of_random_checks():
    interview = Interview(IRIS.X, 3, random_state=0)
    asked = answer_questions(interview, IRIS.y, 36)
    checks = [q for q in asked if q.kind == "check"]
    n_right = sum((q.p_same > 0.5) == (IRIS.y[q.i] == IRIS.y[q.j]) for q in checks)
    progress = interview.progress()
    assert (progress.n_checks, progress.n_predicted) == (len(checks), n_right)
    assert progress.interval == pytest.approx(wilson_interval(n_right, len(checks)), abs=1e-6)
    assert progress.baseline < n_right / len(checks)
    assert progress.may_stop
    assert f"{n_right} of the last {len(checks)}" in progress.advice


@pytest.mark.parametrize(
    ("n_same", "p_same", "n_right", "advice"),
    [
        (0, [0.1] * 12, 12, "one and the same reply"),
        (6, [0.9] * 10 + [0.1] * 2, 8, "Go on: 8 of the last 12"),
        (6, [0.9] * 6 + [0.1] * 6, 12, "You can stop: 12 of the last 12"),
        (2, [0.9] * 2 + [0.1] * 2, 4, "4 of 10 random pairs"),
    ],
)
def test_advice_depends_on_the_proportion_of_correct_predictions(n_same, p_same, n_right, advice):
    interview = Interview(draw_classes(0, n=60)[0], 3, random_state=0)
    for n, p in enumerate(p_same):
        reply = "same" if n < n_same else "different"
        interview._file.add_answer(Answer(n, 59 - n, reply, None, "", "check", p))
    interview._refit()
    progress = interview.progress()
    assert progress.n_predicted == n_right
    assert advice in progress.advice
    assert progress.may_stop == ("You can stop" in advice)


# ---------------------------------------------------------------------------- tables, refusals


def test_an_interview_about_a_table_with_categories_and_gaps_resumes(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    frame = pd.DataFrame({"size": 4.0 * y + rng.normal(size=60), "kind": np.array(list("abc"))[y]})
    frame = frame.mask((rng.random((60, 2)) < 0.2) & [[True, False]])
    frame.loc[::7, "kind"] = None
    frame.loc[::7, "size"] = 4.0 * y[::7]
    path = tmp_path / "answers.jsonl"
    for model in (None, MixedMixture(3, random_state=0)):
        interview = Interview(frame, 3, model=model, path=path, random_state=0)
        answer_questions(interview, y, 6)
    assert len(interview.answers) == 12
    assert matched_accuracy(y, interview.labels_) > 0.9
    with pytest.raises(ValueError, match="another table"):
        Interview(frame.assign(kind="a"), 3, path=path)


def start_interview(*args, answer=None, revise=None, **options):
    """Start an interview, and give the ``answer`` or revise answer number ``revise``, if any."""
    interview = Interview(*args, **options)
    if answer:
        interview.answer(answer)
    if revise is not None:
        interview.revise(revise, "same")


X20 = np.arange(40.0).reshape(20, 2)
test_an_interview_refuses_invalid_arguments_and_replies = refused(
    start_interview,
    (X20, 0, "n_components"),
    (X20, 21, "n_components"),
    ([[1.0], [np.nan]], 1, "row 1 of X is empty"),
    ([[1.0], [np.inf]], 1, "infinity"),
    (X20, 2, {"error_rate": 0.5}, "below 0.5"),
    (X20, 2, {"error_rate": 0.0}, "above 0"),
    (X20, 2, {"error_rate": 1.5}, "no probability"),
    (X20, 2, {"model": ConstrainedGaussianMixture(3)}, "the same number"),
    (X20, 2, {"answer": "yes"}, "'same', 'different', 'unsure'"),
    (X20, 2, {"revise": 0}, "number"),
)
