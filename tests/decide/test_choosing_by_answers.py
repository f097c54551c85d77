"""Test `AnswerSearch`: held-out scores, entropy of assignments, and the choice of a model."""

import itertools
from functools import partial
from operator import call

import numpy as np
import pandas as pd
import pytest
from every_assignment import every_assignment
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.special import logsumexp
from scipy.stats import entropy
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from cgmm import ConstrainedGaussianMixture
from cgmm.decide import AnswerSearch, choosing, held_out_scores, log_score
from cgmm.decide.choosing import Trial, assign_folds, assignment_entropy
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters
from cgmm.network import SideInformation, related_groups

SEEDS = st.integers(0, 10_000)
AUTO = ENGINES["auto"]
GRID = {"n_components": [1, 2, 3], "error_rate": [0.05, 0.2]}


def draw_pairs(seed, N=20, P=12):
    """Draw pairs of points; return them, and the group of connected points of each point."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(N, 2, replace=False) for _ in range(P)])
    return pairs, related_groups(N, cannot_link=pairs)


@given(SEEDS, st.integers(2, 5))
def test_pairs_with_points_of_the_same_group_are_in_the_same_fold(seed, n_folds):
    pairs, groups = draw_pairs(seed)
    n_groups = len(np.unique(groups[pairs]))
    if n_groups < n_folds:
        message = f"from 2 to {n_groups}" if n_groups > 1 else "all answers are connected"
        with pytest.raises(ValueError, match=message):
            assign_folds(pairs, groups, n_folds)
        return
    folds = assign_folds(pairs, groups, n_folds, random_state=seed)
    for a, b in itertools.combinations(range(len(pairs)), 2):
        assert folds[a] == folds[b] or not set(groups[pairs[a]]) & set(groups[pairs[b]])
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.min() > 0
    assert sizes.max() - sizes.min() <= np.unique(groups[pairs[:, 0]], return_counts=True)[1].max()
    assert (folds == assign_folds(pairs, groups, n_folds, random_state=seed)).all()


@settings(max_examples=25)
@given(SEEDS, st.integers(2, 3), st.floats(0.01, 0.9))
def test_held_out_scores_equal_sums_over_all_assignments(seed, K, q):
    rng = np.random.default_rng(seed)
    N, P = 6, 5
    X, certain = rng.normal(size=(N, 1)), {"cannot_link": [[0, 5]]}
    theta = Parameters(rng.dirichlet(np.ones(K)), rng.normal(size=(K, 1)), np.ones((K, 1, 1)))
    answers = np.column_stack(
        [[rng.choice(N, 2, replace=False) for _ in range(P)], rng.random(P) < 0.5]
    )
    folds, training = np.arange(P) % 2, []

    def fit(rows):
        training.append(rows)
        return theta

    scores = held_out_scores(X, fit, answers, folds, AUTO, error_rate=q, **certain)
    z, logs = every_assignment(X, theta, [[0, 5, -np.inf]])
    i, j, says_same = answers.T.astype(int)
    # p[s, e] is the probability of answer e given assignment s.
    p = np.where((z[:, i] == z[:, j]) == (says_same == 1), 1 - q, q)
    for e in range(P):
        others = folds != folds[e]
        weight = np.exp(logs) * p[:, others].prod(axis=1)
        expected = np.log((weight * p[:, e]).sum() / weight.sum())
        assert scores[e] == pytest.approx(expected, abs=1e-10)
    for f, rows in enumerate(training):
        np.testing.assert_array_equal(rows[:, :2], answers[folds != f, :2])


@given(SEEDS)
def test_standard_error_is_that_of_sums_over_groups(seed):
    """Answers about the same group are dependent, so only groups count as independent draws."""
    pairs, groups = draw_pairs(seed)
    scores = np.random.default_rng(seed).normal(size=len(pairs))
    group_of = groups[pairs[:, 0]]
    names = np.unique(group_of)
    if len(names) < 2:
        return
    deviations = scores - scores.mean()
    squares = sum(deviations[group_of == g].sum() ** 2 for g in names)
    variance = len(names) / (len(names) - 1) * squares / len(scores) ** 2
    expected = scores.mean(), variance**0.5, len(names)
    assert log_score(scores, pairs, groups) == pytest.approx(expected, abs=1e-12)


SCORES = partial(held_out_scores, np.zeros((2, 1)), print, engine=AUTO)
test_folds_and_scores_refuse_invalid_arguments = refused(
    call,
    (lambda: assign_folds([[0, 1]], [0, 1], 2), r"joins the groups \[0, 1\]"),
    (lambda: assign_folds([[0, 1], [2, 3]], [0, 0, 1, 1], 1), "from 2 to 2"),
    (lambda: log_score([0.0], [[0, 1]], [0, 0]), "in 1 groups"),
    (lambda: log_score([0.0], [[0, 1], [2, 3]], [0, 0, 1, 1]), r"\(1,\) for 2 pairs"),
    (lambda: SCORES([[0, 1, 2]], [0], error_rate=0.1), "says 2"),
    (lambda: SCORES([[0, 1, 1]], [0], error_rate=0), "error_rate=0.05"),
    (lambda: SCORES([[0, 1, 1]], [0, 1], error_rate=0.1), "folds"),
)


# ---------------------------------------------------------------------------- entropy


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_assignment_entropy_equals_the_sum_over_all_assignments(seed, K):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 1))
    theta = Parameters(rng.dirichlet(np.ones(K)), rng.normal(size=(K, 1)), np.ones((K, 1, 1)))
    rows = np.array([[0, 1, 1.5], [1, 2, -1.0], [0, 2, 0.7]])
    side = SideInformation.build(5, preferences=rows, cannot_link=[[3, 4]])
    _, logs = every_assignment(X, theta, [*rows, [3, 4, -np.inf]])
    result = assignment_entropy(X, theta, side, AUTO(side.graph))
    assert result == pytest.approx(entropy(np.exp(logs)), abs=1e-10)


def test_assignment_entropy_refuses_engines_without_log_evidence():
    side = SideInformation.build(3, preferences=[[0, 1, 1.0]])
    theta = Parameters(np.full(2, 0.5), np.zeros((2, 1)), np.ones((2, 1, 1)))
    with pytest.raises(ValueError, match="no log-evidence"):
        assignment_entropy(np.zeros((3, 1)), theta, side, ENGINES["gibbs"](side.graph))


# ------------------------------------------------------------------------------ the search


def draw_problem(seed=0, N=90, P=50):
    """Draw points of two classes, and answers about pairs of them, of which 10 % are wrong."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % 2
    X = rng.normal(size=(N, 1)) + np.where(y, 2.0, -2.0)[:, None]
    pairs = np.array([rng.choice(N, 2, replace=False) for _ in range(P)])
    wrong = rng.random(P) < 0.1
    return X, np.column_stack([pairs, (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ wrong])


def make_search(param_grid=GRID, **options):
    """Return a search over a grid with three folds."""
    model = ConstrainedGaussianMixture(weights="ignore", random_state=0)
    return AnswerSearch(model, param_grid, n_folds=3, **options)


def test_results_of_a_search_equal_those_of_its_steps_in_sequence():
    X, rows = draw_problem()
    fitted = make_search().fit(X, rows)
    pairs = rows[:, :2]
    groups = related_groups(len(X), cannot_link=pairs)
    folds = assign_folds(pairs, groups, 3, random_state=0)
    np.testing.assert_array_equal(fitted.folds_, folds)
    results = fitted.cv_results_
    assert len(results["params"]) == 6
    for i, params in enumerate(results["params"]):
        q, K = params["error_rate"], params["n_components"]
        trial = Trial(**{name: results[name][i] for name in Trial._fields})
        assert (results["param_error_rate"][i], results["param_n_components"][i]) == (q, K)
        model = ConstrainedGaussianMixture(K, weights="ignore", random_state=0)
        scores = held_out_scores(
            X, lambda soft, m=model: m.fit(X, preferences=soft).parameters_, rows, folds, AUTO,
            error_rate=q,
        )  # fmt: skip
        mean, error, _ = log_score(scores, pairs, groups)
        assert (trial.mean_test_score, trial.standard_error) == (mean, error)
        assert trial.n_free == 3 * K - 1
        assert trial.bic == pytest.approx(-2 * trial.evidence + trial.n_free * np.log(90))
    means = results["mean_test_score"]
    for name, best in (("highest mean", max), ("evidence", max), ("bic", min), ("icl", min)):
        values = means if name == "highest mean" else results[name]
        assert values[fitted.choices_[name]] == best(values)
    assert results["rank_test_score"][fitted.choices_["highest mean"]] == 1
    assert sorted(results["rank_test_score"]) == [1, 2, 3, 4, 5, 6]
    assert fitted.best_params_ == results["params"][fitted.best_index_]
    assert fitted.best_score_ == means[fitted.best_index_]
    assert fitted.best_params_["n_components"] == fitted.best_estimator_.n_components == 2
    np.testing.assert_array_equal(fitted.labels_, fitted.best_estimator_.labels_)


def test_results_are_a_pandas_table_even_if_settings_have_different_parameters():
    X, rows = draw_problem(P=30)
    grid = [{"n_components": [1]}, {"n_components": [2], "tol": [0.1]}]
    table = pd.DataFrame(make_search(grid).fit(X, rows).cv_results_)
    assert table["param_tol"].isna().tolist() == [True, False]
    assert table["param_n_components"].tolist() == [1, 2]
    assert table["bic"].dtype == float


def test_certain_relations_condition_the_log_evidence_and_icl_subtracts_the_entropy():
    """Compare with sums over the assignments that break no cannot-link."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 1)) + np.where(np.arange(10) % 2, 1.5, -1.5)[:, None]
    rows = np.array([[0, 2, 1], [1, 3, 1], [4, 5, 0], [6, 8, 1], [7, 9, 0]])
    cannot = np.array([[0, 1], [2, 3], [6, 7]])
    model = ConstrainedGaussianMixture(2, random_state=0)
    fitted = AnswerSearch(model, {}, n_folds=2).fit(X, rows, cannot_link=cannot)
    theta = fitted.best_estimator_.parameters_
    z, logs = every_assignment(X, theta, [[i, j, -np.inf] for i, j in cannot])
    is_right = (z[:, rows[:, 0]] == z[:, rows[:, 1]]) == rows[:, 2]
    logs += np.log(np.where(is_right, 0.9, 0.1)).sum(axis=1)
    expected = logsumexp(logs) - logsumexp(np.log(theta.weights)[z].sum(axis=1))
    (evidence,), (bic,), (icl,) = (fitted.cv_results_[name] for name in ("evidence", "bic", "icl"))
    assert evidence == pytest.approx(expected, abs=1e-8)
    assert icl == pytest.approx(bic + 2 * entropy(np.exp(logs)), abs=1e-8)


def test_a_search_with_two_processes_gives_the_same_results():
    X, rows = draw_problem()
    one, two = (make_search({"n_components": [1, 2]}, n_jobs=n).fit(X, rows) for n in (1, 2))
    for name, column in one.cv_results_.items():
        np.testing.assert_array_equal(column, two.cv_results_[name])


def test_fits_of_a_search_use_one_thread_each(monkeypatch):
    """For such small data several threads are slower: on a busy machine four times."""
    X, rows = draw_problem()
    n_threads = []

    def record_threads(*arguments, **options):
        n_threads.extend(library["num_threads"] for library in threadpool_info())
        return held_out_scores(*arguments, **options)

    monkeypatch.setattr(choosing, "held_out_scores", record_threads)
    with threadpool_limits(2):
        make_search({"n_components": [2]}).fit(X, rows)
    assert n_threads
    assert set(n_threads) == {1}


@given(st.integers(0, 10_000), st.integers(1, 8))
def test_the_simplest_setting_within_one_standard_error_of_the_best_is_chosen(seed, n):
    rng = np.random.default_rng(seed)
    trials = [
        Trial({}, *rng.random(2), 0.0, 0.0, 0.0, n_free, "") for n_free in rng.integers(1, 4, n)
    ]
    best = max(trials, key=lambda t: t.mean_test_score)
    limit = best.mean_test_score - best.standard_error
    candidates = [t for t in trials if t.mean_test_score >= limit]
    expected = min(candidates, key=lambda t: (t.n_free, -t.mean_test_score))
    assert trials[choosing._choose_simplest(trials)] == expected


def test_an_interrupted_search_keeps_its_finished_trials(monkeypatch):
    X, rows = draw_problem()

    def score_or_interrupt(*others):
        params = others[-1]
        if params["n_components"] == 3:
            raise KeyboardInterrupt
        return Trial(params, *np.zeros(6), "")

    monkeypatch.setattr(choosing, "_score_setting", score_or_interrupt)
    fitted = make_search()
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, rows)
    assert fitted.cv_results_["param_n_components"].tolist() == [1, 2]


def test_a_setting_that_cannot_be_fitted_is_reported_and_not_chosen():
    X, rows = draw_problem()
    fitted = clone(make_search({"n_components": [2, 5000]})).fit(X, rows)
    assert "5000" in fitted.cv_results_["error"][1]
    assert fitted.cv_results_["rank_test_score"].tolist() == [1, 2]
    assert fitted.best_index_ == 0
    with pytest.raises(ValueError, match="no setting could be fitted"):
        make_search({"n_components": [5000]}).fit(X, rows)


def test_certain_relations_are_used_in_every_fit_and_join_groups():
    X, rows = draw_problem(P=30)
    labels = np.where(np.arange(90) < 6, np.arange(90) % 2, -1)
    links = [[10, 12], [11, 13]]
    fitted = make_search({"n_components": [2]}).fit(X, rows, labels=labels, must_link=links)
    groups = related_groups(90, cannot_link=rows[:, :2], must_link=links)
    folds = assign_folds(rows[:, :2], groups, 3, random_state=0)
    np.testing.assert_array_equal(fitted.folds_, folds)
    np.testing.assert_array_equal(fitted.best_estimator_.labels_[:6], labels[:6])
    with pytest.raises(ValueError, match=r"answers\[0\] says 7"):
        make_search().fit(X, [[0, 1, 7]])
