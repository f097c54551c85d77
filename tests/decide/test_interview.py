"""Test the interview: its questions, its fits to the answers, and its advice to stop."""

import time
from itertools import combinations, count

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
from cgmm import (
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    MixedMixture,
    SideInformation,
    datasets,
)
from cgmm.decide import Answer, Interview, Question, answer_information, fit_answers
from cgmm.decide.implied import ImpliedPairs
from cgmm.diagnose import pair_probabilities
from cgmm.inference import ENGINES
from cgmm.metrics import matched_accuracy
from cgmm.scenarios import preferences_from_answers

SEEDS = st.integers(0, 10_000)
IRIS = datasets.iris()


def blobs(seed: int, K: int = 3, n: int = 24) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
    return rng.normal(size=(n, 2)) + 6 * np.column_stack([y, y % 2]), y


def ask(
    interview: Interview, y, n: int, *, wrong=lambda: False, unsure=lambda: False
) -> list[Question]:
    """Answer n questions according to the true classes, or all that there are."""
    asked = []
    while len(asked) < n and (question := interview.next_question()) is not None:
        asked.append(question)
        same = (y[question.i] == y[question.j]) ^ wrong()
        interview.answer("unsure" if unsure() else "same" if same else "different")
    return asked


def determined(n: int, K: int, rows: list[tuple[int, int, bool]]) -> set[tuple[int, int]]:
    """Return pairs whose relation is the same in every assignment that fits the answers."""
    assignments = np.stack(np.meshgrid(*[np.arange(K)] * n), axis=-1).reshape(-1, n)
    for i, j, same in rows:
        assignments = assignments[(assignments[:, i] == assignments[:, j]) == same]
    alike = {(i, j): assignments[:, i] == assignments[:, j] for i, j in combinations(range(n), 2)}
    return {pair for pair, always in alike.items() if always.all() or not always.any()}


# ---------------------------------------------------------------------------- questions


@settings(max_examples=5)
@given(SEEDS, st.integers(2, 3))
def test_it_asks_until_every_pair_is_determined_and_nothing_twice(seed, K):
    X, y = blobs(seed, K, n=7)
    interview, rows = Interview(X, K, random_state=seed), []
    while (question := interview.next_question()) is not None:
        # Answers of a chain, and the last class by elimination, are known without asking.
        known = ImpliedPairs(7, K, interview.answers)
        assert known.is_open(question.i, question.j)
        assert tuple(sorted(question[:2])) not in {tuple(sorted(row[:2])) for row in rows}
        rows.append((question.i, question.j, bool(y[question.i] == y[question.j])))
        interview.answer("same" if rows[-1][2] else "different")
    assert determined(7, K, rows) == set(combinations(range(7), 2))
    assert matched_accuracy(y, interview.labels_) == 1
    assert interview.contradictions() == []
    assert interview.progress().may_stop
    with pytest.raises(ValueError, match="no question is left"):
        interview.answer("same")


@settings(max_examples=20)
@given(SEEDS, st.integers(2, 3), st.integers(1, 8))
def test_implied_answers_hold_in_every_allowed_assignment(seed, K, n_answers):
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=6)
    pairs = [tuple(rng.choice(6, 2, replace=False).tolist()) for _ in range(n_answers)]
    rows = [(i, j, bool(y[i] == y[j])) for i, j in pairs]
    answers = [
        Answer(i, j, "same" if s else "different", None, "", "check", 0.5) for i, j, s in rows
    ]
    known, sure = ImpliedPairs(6, K, answers), determined(6, K, rows)
    closed = {pair for pair in combinations(range(6), 2) if not known.is_open(*pair)}
    assert {tuple(sorted(pair)) for pair in pairs} <= closed <= sure


def test_the_last_class_follows_from_the_others():
    pairs = [(0, 1), (0, 2), (1, 2), (3, 0), (3, 1), (4, 0), (4, 2)]
    answers = [Answer(i, j, "different", None, "", "check", 0.5) for i, j in pairs]
    known = ImpliedPairs(6, 3, answers)
    assert known.group[3] == known.group[2]
    assert known.group[4] == known.group[1]
    assert [j for j in range(5) if known.is_open(5, j)] == list(range(5))


def test_questions_explore_first_then_alternate_doubt_and_checks():
    interview = Interview(IRIS.X, 3, random_state=0)
    kinds = [question.kind for question in ask(interview, IRIS.y, 12)]
    n = kinds.index("doubt")
    assert 1 <= n <= 9
    assert kinds == (["explore"] * n + ["doubt", "doubt", "check"] * 4)[:12]
    # Exploring ends when there is a row of each class.
    rows = interview.answer_rows[:n]
    assert set(IRIS.y[rows[:, :2].ravel()]) == {0, 1, 2}


def test_the_most_uncertain_pair_is_asked_first():
    """Hardly any open pair has a higher expected information than the question."""
    interview = Interview(IRIS.X, 3, random_state=0)
    while (question := interview.next_question()).kind != "doubt":
        interview.answer("same" if IRIS.y[question.i] == IRIS.y[question.j] else "different")
    soft = preferences_from_answers(interview.answer_rows, 0.95)
    known = SideInformation.build(150, preferences=soft)
    pairs = np.array(list(combinations(range(150), 2)))
    parameters = interview._model.parameters_
    p = pair_probabilities(IRIS.X, parameters, known, pairs, ENGINES["auto"](known.graph))
    information = answer_information(p, false_apart=0.05, false_together=0.05)
    assert question.information > np.quantile(information, 0.99)
    mine = (pairs == sorted(question[:2])).all(axis=1)
    assert question.p_same == pytest.approx(p[mine][0])
    assert question.information == pytest.approx(information[mine][0])


def test_a_question_repeats_until_answered_and_unsure_ends_it():
    X, y = blobs(0)
    interview = Interview(X, 3, random_state=0)
    assert interview.next_question() is interview.next_question()
    asked = ask(interview, y, 30, unsure=lambda: True)
    assert len({tuple(sorted(q[:2])) for q in asked}) == len(asked) == 30
    found = interview.progress()
    assert (found.n_answers, found.n_unsure, found.n_checks) == (0, 30, 0)
    assert len(interview.answer_rows) == 0


def test_questions_depend_on_the_seed_not_on_the_background_thread(monkeypatch):
    """With two classes of two clumps each, only the second thread finds the intended cut."""
    data, fits = datasets.vertical_classes(random_state=2), Interview._fit_from_scratch
    X, y = data.X[::6], data.y[::6]

    def late(self, *given):
        time.sleep(0.1)
        return fits(self, *given)

    patient, asked = Interview(X, 2, random_state=0), []
    for _ in range(16):
        asked += ask(patient, y, 1)
        patient._pending.result()
    monkeypatch.setattr(Interview, "_fit_from_scratch", late)
    assert ask(Interview(X, 2, random_state=0), y, 16) == asked


# ---------------------------------------------------------------------------- answers


def test_an_interview_resumes_with_all_its_state(tmp_path):
    path = tmp_path / "answers.jsonl"
    first = Interview(IRIS.X, 3, path=path, annotator="ann", random_state=0)
    ask(first, IRIS.y, 8)
    first.undo()
    again = Interview(IRIS.X, 3, path=path, annotator="bob", random_state=0)
    assert again.answers == first.answers
    assert len(again.answers) == 7
    ask(again, IRIS.y, 1)
    assert [a.annotator for a in again.answers] == ["ann"] * 7 + ["bob"]
    assert again.annotators == ["ann"] * 7 + ["bob"]
    times = [a.time for a in again.answers]
    assert times == sorted(times)
    rows = [[a.i, a.j, IRIS.y[a.i] == IRIS.y[a.j]] for a in again.answers]
    np.testing.assert_array_equal(again.answer_rows, rows)


def test_undo_asks_again_what_the_same_person_answered_last(tmp_path):
    path = tmp_path / "answers.jsonl"
    ann = Interview(IRIS.X, 3, path=path, annotator="ann", random_state=0)
    assert ann.undo() is None
    first, second = ask(ann, IRIS.y, 2)
    bob = Interview(IRIS.X, 3, path=path, annotator="bob", random_state=0)
    assert bob.undo() is None
    ask(bob, IRIS.y, 1)
    assert ann.undo()[:2] == second[:2] == ann.next_question()[:2]
    assert [a.annotator for a in ann.answers] == ["ann", "bob"]
    assert ann.undo()[:2] == first[:2]
    assert ann.undo() is None


def test_contradictions_show_their_chain_and_can_be_revised(tmp_path):
    X, _ = blobs(0)
    path = tmp_path / "answers.jsonl"
    interview = Interview(X, 3, path=path, random_state=0)
    for i, j, reply in [(5, 8, "same"), (8, 2, "same"), (1, 3, "same"), (5, 2, "different")]:
        interview._file.add_answer(Answer(i, j, reply, "ann", "", "check", 0.5))
    interview = Interview(X, 3, path=path, random_state=0)
    (found,) = interview.contradictions()
    assert found.numbers == [3, 0, 1]
    assert "5 - 8 - 2" in found.message
    assert "5 - 8 - 2" in interview.progress().advice
    interview.revise(1, "different")
    assert interview.contradictions() == []
    assert interview.answers[1].answer == "different"
    assert Interview(X, 3, path=path).answers == interview.answers


def test_more_different_groups_than_classes_are_a_contradiction():
    answers = [
        Answer(i, j, "different", None, "", "check", 0.5) for i, j in combinations(range(3), 2)
    ]
    (found,) = ImpliedPairs(5, 2, answers).contradictions
    assert "0, 1, 2" in found.message
    assert "2 groups" in found.message
    assert sorted(found.numbers) == [0, 1, 2]
    assert ImpliedPairs(5, 3, answers).contradictions == []


# ---------------------------------------------------------------------------- fits


def test_every_answer_enters_the_fit():
    interview = Interview(IRIS.X, 3, random_state=0)
    ask(interview, IRIS.y, 15)
    i, j, says_same = interview.answer_rows.T
    assert ((interview.labels_[i] == interview.labels_[j]) == says_same).mean() > 0.9
    np.testing.assert_allclose(interview.probabilities_.sum(axis=1), 1)
    # EM from there finds no better fit.
    start = {
        f"{name}_init": getattr(interview.model_, f"{name}_")
        for name in ("weights", "means", "covariances")
    }
    model = clone(interview.model_).set_params(warm_start=False, **start)
    again = fit_answers(model, IRIS.X, interview.answer_rows, error_rate=0.05)
    assert matched_accuracy(again.labels_, interview.labels_) > 0.98


def test_answers_overrule_the_likelihood_of_the_table(monkeypatch):
    """With two clumps in each class the likelihood prefers the other cut."""
    data = datasets.vertical_classes(random_state=2)
    X, y = data.X[::4], data.y[::4]
    interview = Interview(X, 2, random_state=0)
    ask(interview, y, 25)
    assert matched_accuracy(y, interview.labels_) > 0.95
    monkeypatch.setattr(interview_module, "MAX_SURPRISE", 1e9)
    by_likelihood = Interview(X, 2, random_state=0)
    ask(by_likelihood, y, 25)
    assert matched_accuracy(y, by_likelihood.labels_) < 0.7


def test_a_single_wrong_answer_does_not_overturn_the_table():
    """A fit that explains the wrong one of ten answers is less probable by many nats."""
    wine, numbers = datasets.wine(), count()
    X = PCA(5, random_state=0).fit_transform(StandardScaler().fit_transform(wine.X))[::2]
    interview = Interview(X, 3, random_state=0)
    ask(interview, wine.y[::2], 10, wrong=lambda: next(numbers) == 3)
    assert matched_accuracy(wine.y[::2], interview.labels_) > 0.95


def test_answers_that_a_model_draws_refute_it_in_one_of_twenty_cases():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, size=40)
    answers = rng.random((2000, 40)) < p
    refuted = [interview_module._is_refuted(np.where(row, p, 1 - p)) for row in answers]
    assert 0.03 < np.mean(refuted) < 0.07
    assert interview_module._is_refuted(np.full(4, 0.05))
    assert not interview_module._is_refuted(np.empty(0))


def test_another_family_can_be_asked_about():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = (rng.random((60, 6)) < np.where(y, 0.85, 0.15)[:, None]).astype(int)
    model = ConstrainedCategoricalMixture(2, random_state=0)
    interview = Interview(X, 2, model=model, random_state=0)
    ask(interview, y, 12)
    assert matched_accuracy(y, interview.labels_) > 0.9


def test_a_thousand_points_are_refitted_within_a_second():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=1000)
    X = rng.normal(size=(1000, 5)) + 2 * rng.normal(size=(4, 5))[y]
    interview, took = Interview(X, 4, random_state=0), []
    for _ in range(8):
        question = interview.next_question()
        interview._pending and interview._pending.result()
        began = time.process_time()
        interview.answer("same" if y[question.i] == y[question.j] else "different")
        interview.next_question()
        took.append(time.process_time() - began)
    assert np.median(took) < 1


# ---------------------------------------------------------------------------- progress


def wilson(right: int, n: int) -> tuple[float, float]:
    z = 1.959964
    middle, half = right + z**2 / 2, z * np.sqrt(right * (n - right) / n + z**2 / 4)
    return (middle - half) / (n + z**2), (middle + half) / (n + z**2)


def test_progress_counts_predictions_of_random_pairs():
    interview = Interview(IRIS.X, 3, random_state=0)
    asked = ask(interview, IRIS.y, 36)
    checks = [q for q in asked if q.kind == "check"]
    right = sum((q.p_same > 0.5) == (IRIS.y[q.i] == IRIS.y[q.j]) for q in checks)
    found = interview.progress()
    assert (found.n_checks, found.n_predicted) == (len(checks), right)
    assert found.interval == pytest.approx(wilson(right, len(checks)), abs=1e-6)
    assert found.baseline < right / len(checks)
    assert found.may_stop
    assert f"{right} of the last {len(checks)}" in found.advice


@pytest.mark.parametrize(
    ("n_same", "p_same", "n_right", "advice"),
    [
        (0, [0.1] * 12, 12, "one and the same reply"),
        (6, [0.9] * 10 + [0.1] * 2, 8, "Go on: 8 of the last 12"),
        (6, [0.9] * 6 + [0.1] * 6, 12, "You can stop: 12 of the last 12"),
        (2, [0.9] * 2 + [0.1] * 2, 4, "4 of 10 random pairs"),
    ],
)
def test_advice_depends_on_the_share_of_right_predictions(n_same, p_same, n_right, advice):
    interview = Interview(blobs(0, n=60)[0], 3, random_state=0)
    for n, p in enumerate(p_same):
        reply = "same" if n < n_same else "different"
        interview._file.add_answer(Answer(n, 59 - n, reply, None, "", "check", p))
    interview._refit()
    found = interview.progress()
    assert found.n_predicted == n_right
    assert advice in found.advice
    assert found.may_stop == ("You can stop" in advice)


# ---------------------------------------------------------------------------- refusals


def use(*given, answer=None, revise=None, **named):
    interview = Interview(*given, **named)
    if answer:
        interview.answer(answer)
    if revise is not None:
        interview.revise(revise, "same")


def test_a_table_with_categories_and_gaps_resumes(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    frame = pd.DataFrame({"size": 4.0 * y + rng.normal(size=60), "kind": np.array(list("abc"))[y]})
    frame = frame.mask((rng.random((60, 2)) < 0.2) & [[True, False]])
    frame.loc[::7, "kind"] = None
    frame.loc[::7, "size"] = 4.0 * y[::7]
    path = tmp_path / "answers.jsonl"
    for model in (None, MixedMixture(3, random_state=0)):
        interview = Interview(frame, 3, model=model, path=path, random_state=0)
        for _ in range(6):
            question = interview.next_question()
            interview.answer("same" if y[question.i] == y[question.j] else "different")
    assert len(interview.answers) == 12
    assert matched_accuracy(y, interview.labels_) > 0.9
    with pytest.raises(ValueError, match="another table"):
        Interview(frame.assign(kind="a"), 3, path=path)


X20 = np.arange(40.0).reshape(20, 2)
test_refusals = refused(
    use,
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
