"""The search: entropy against enumeration, trials by hand, what an interrupt leaves, resumption."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn.base import clone

from cgmm import ConstrainedGaussianMixture
from cgmm.decide import (
    AnswerSearch,
    Trial,
    answer_folds,
    assignment_entropy,
    choosing,
    held_out_scores,
    log_score,
)
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters
from cgmm.network import SideInformation, related_groups

AUTO = ENGINES["auto"]
GRID = {"n_components": [1, 2, 3], "error_rate": [0.05, 0.2]}


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_entropy_is_that_of_all_assignments(seed, K):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 1))
    theta = Parameters(rng.dirichlet(np.ones(K)), rng.normal(size=(K, 1)), np.ones((K, 1, 1)))
    rows = np.array([[0, 1, 1.5], [1, 2, -1.0], [0, 2, 0.7]])
    side = SideInformation.build(5, preferences=rows, cannot_link=[[3, 4]])
    z = np.array(list(itertools.product(range(K), repeat=5)))
    logs = theta.log_joint(X)[np.arange(5), z].sum(axis=1)
    for i, j, w in rows:
        logs += w * (z[:, int(i)] == z[:, int(j)])
    logs = logs[z[:, 3] != z[:, 4]]
    log_p = logs - logsumexp(logs)
    found = assignment_entropy(X, theta, side, AUTO(side.graph))
    assert found == pytest.approx(-(np.exp(log_p) * log_p).sum(), abs=1e-10)


def test_an_engine_without_evidence_has_no_entropy():
    side = SideInformation.build(3, preferences=[[0, 1, 1.0]])
    theta = Parameters(np.full(2, 0.5), np.zeros((2, 1)), np.ones((2, 1, 1)))
    with pytest.raises(ValueError, match="no log-evidence"):
        assignment_entropy(np.zeros((3, 1)), theta, side, ENGINES["gibbs"](side.graph))


# ------------------------------------------------------------------------------ the search


def problem(seed=0, N=90, P=50):
    rng = np.random.default_rng(seed)
    y = np.arange(N) % 2
    X = rng.normal(size=(N, 1)) + np.where(y, 2.0, -2.0)[:, None]
    pairs = np.array([rng.choice(N, 2, replace=False) for _ in range(P)])
    wrong = rng.random(P) < 0.1
    return X, np.column_stack([pairs, (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ wrong])


def made(**options):
    model = ConstrainedGaussianMixture(weights="ignore", random_state=0)
    return AnswerSearch(model, GRID, n_folds=3, **options)


def test_a_trial_is_what_one_does_by_hand():
    X, rows = problem()
    found = made().fit(X, rows)
    pairs = rows[:, :2]
    groups = related_groups(len(X), cannot_link=pairs)
    folds = answer_folds(pairs, groups, 3, random_state=0)
    np.testing.assert_array_equal(found.folds_, folds)
    assert len(found.results_) == 6
    for trial in found.results_:
        q, K = trial.setting["error_rate"], trial.setting["n_components"]
        model = ConstrainedGaussianMixture(K, weights="ignore", random_state=0)
        scores = held_out_scores(
            X, lambda told, m=model: m.fit(X, preferences=told).parameters_, rows, folds, AUTO,
            error_rate=q,
        )  # fmt: skip
        mean, error, _ = log_score(scores, pairs, groups)
        assert (trial.mean, trial.standard_error) == (mean, error)
        assert trial.n_free == 3 * K - 1
        assert trial.bic == pytest.approx(-2 * trial.evidence + trial.n_free * np.log(90))
    for name, best in (("mean", max), ("evidence", max), ("bic", min), ("icl", min)):
        values = [getattr(trial, name) for trial in found.results_]
        chosen = found.choices_["highest mean" if name == "mean" else name]
        assert values[chosen] == best(values)
    assert found.best_setting_["n_components"] == found.best_estimator_.n_components == 2


def test_what_is_certain_is_a_condition_of_the_evidence_and_icl_has_the_entropy():
    """As all assignments have it, those that break a cannot-link left out above and below."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 1)) + np.where(np.arange(10) % 2, 1.5, -1.5)[:, None]
    rows = np.array([[0, 2, 1], [1, 3, 1], [4, 5, 0], [6, 8, 1], [7, 9, 0]])
    apart = np.array([[0, 1], [2, 3], [6, 7]])
    model = ConstrainedGaussianMixture(2, random_state=0)
    found = AnswerSearch(model, {}, n_folds=2).fit(X, rows, cannot_link=apart)
    theta = found.best_estimator_.parameters_
    z = np.array(list(itertools.product(range(2), repeat=10)))
    z = z[(z[:, apart[:, 0]] != z[:, apart[:, 1]]).all(axis=1)]
    right = (z[:, rows[:, 0]] == z[:, rows[:, 1]]) == rows[:, 2]
    above = theta.log_joint(X)[np.arange(10), z].sum(axis=1)
    above += np.log(np.where(right, 0.9, 0.1)).sum(axis=1)
    expected = logsumexp(above) - logsumexp(np.log(theta.weights)[z].sum(axis=1))
    trial, log_p = found.results_[0], above - logsumexp(above)
    assert trial.evidence == pytest.approx(expected, abs=1e-8)
    assert trial.icl == pytest.approx(trial.bic - 2 * np.exp(log_p) @ log_p, abs=1e-8)


def test_two_processes_find_the_same():
    X, rows = problem()
    few = {"n_components": [1, 2]}
    one, two = (made(n_jobs=n).set_params(settings=few).fit(X, rows) for n in (1, 2))
    assert one.results_ == two.results_


@given(st.integers(0, 10_000), st.integers(1, 8))
def test_the_choice_is_the_simplest_within_an_error_of_the_best(seed, n):
    rng = np.random.default_rng(seed)
    trials = [
        Trial({}, *rng.random(2), 0.0, 0.0, 0.0, n_free, "") for n_free in rng.integers(1, 4, n)
    ]
    best = max(trials, key=lambda t: t.mean)
    will_do = [t for t in trials if t.mean >= best.mean - best.standard_error]
    chosen = trials[choosing._simplest(trials)]
    assert chosen in will_do
    assert chosen.n_free == min(t.n_free for t in will_do)
    assert chosen.mean == max(t.mean for t in will_do if t.n_free == chosen.n_free)


def test_an_interrupt_leaves_what_is_whole(monkeypatch):
    X, rows = problem()

    def struck(estimator, setting, *others):
        if setting["n_components"] == 3:
            raise KeyboardInterrupt
        return Trial(setting, *np.zeros(6), "")

    monkeypatch.setattr(choosing, "_try", struck)
    found = made()
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, rows)
    assert [t.setting["n_components"] for t in found.results_] == [1, 2]


def test_a_setting_that_cannot_be_fitted_says_why_and_the_others_are_chosen_from():
    X, rows = problem()
    found = clone(made()).set_params(settings={"n_components": [2, 5000]}).fit(X, rows)
    assert found.results_[1].complaint
    assert found.best_index_ == 0
    with pytest.raises(ValueError, match="no setting could be fitted"):
        made().set_params(settings={"n_components": [5000]}).fit(X, rows)


def test_what_is_known_for_certain_is_told_to_every_fit_and_ties_groups():
    X, rows = problem(P=30)
    labels = np.where(np.arange(90) < 6, np.arange(90) % 2, -1)
    links = [[10, 12], [11, 13]]
    found = made().set_params(settings={"n_components": [2]})
    found.fit(X, rows, labels=labels, must_link=links)
    groups = related_groups(90, cannot_link=rows[:, :2], must_link=links)
    np.testing.assert_array_equal(
        found.folds_, answer_folds(rows[:, :2], groups, 3, random_state=0)
    )
    np.testing.assert_array_equal(found.best_estimator_.labels_[:6], labels[:6])
    with pytest.raises(ValueError, match=r"answers\[0\] says 7"):
        made().fit(X, [[0, 1, 7]])
