"""Choosing: nothing leaks, scores are those of all assignments, errors cover, simple wins ties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgmm.decide import answer_folds, held_out_scores, log_score
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters
from cgmm.network import related_groups

SEEDS = st.integers(0, 10_000)
AUTO = ENGINES["auto"]


def asked(seed, N=20, P=12):
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(N, 2, replace=False) for _ in range(P)])
    return pairs, related_groups(N, cannot_link=pairs)


@given(SEEDS, st.integers(2, 5))
def test_no_relation_leads_from_one_fold_into_another(seed, n_folds):
    pairs, groups = asked(seed)
    n_groups = len(np.unique(groups[pairs]))
    if n_groups < n_folds:
        says = f"from 2 to {n_groups}" if n_groups > 1 else "all answers hang together"
        with pytest.raises(ValueError, match=says):
            answer_folds(pairs, groups, n_folds)
        return
    folds = answer_folds(pairs, groups, n_folds, random_state=seed)
    for a, b in itertools.combinations(range(len(pairs)), 2):
        assert folds[a] == folds[b] or not set(groups[pairs[a]]) & set(groups[pairs[b]])
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.min() > 0
    assert sizes.max() - sizes.min() <= np.unique(groups[pairs[:, 0]], return_counts=True)[1].max()
    assert (folds == answer_folds(pairs, groups, n_folds, random_state=seed)).all()


def test_what_is_held_out_does_not_change_its_own_score_but_by_theta():
    """Of a triangle two answers imply the third; held out one by one they would leak."""
    X = np.zeros((5, 1))
    theta = Parameters(np.full(2, 0.5), np.zeros((2, 1)), np.ones((2, 1, 1)))
    answers = [[0, 1, 1], [1, 2, 1], [0, 2, 1], [3, 4, 1]]
    groups = related_groups(5, cannot_link=[row[:2] for row in answers])
    folds = answer_folds([row[:2] for row in answers], groups, 2, random_state=0)
    honest, leaking = (
        held_out_scores(X, lambda rows: theta, answers, of, AUTO, error_rate=0.1)
        for of in (folds, np.arange(4))
    )
    np.testing.assert_allclose(honest, -np.log(2), atol=1e-12)
    assert (leaking[:3] > -0.5).all()


@settings(max_examples=25)
@given(SEEDS, st.integers(2, 3), st.floats(0.01, 0.9))
def test_scores_are_those_of_all_assignments(seed, K, q):
    rng = np.random.default_rng(seed)
    N, P = 6, 5
    X, known = rng.normal(size=(N, 1)), {"cannot_link": [[0, 5]]}
    theta = Parameters(rng.dirichlet(np.ones(K)), rng.normal(size=(K, 1)), np.ones((K, 1, 1)))
    answers = np.column_stack(
        [[rng.choice(N, 2, replace=False) for _ in range(P)], rng.random(P) < 0.5]
    )
    folds, told = np.arange(P) % 2, []

    def fit(rows):
        told.append(rows)
        return theta

    found = held_out_scores(X, fit, answers, folds, AUTO, error_rate=q, **known)
    z = np.array([z for z in itertools.product(range(K), repeat=N) if z[0] != z[5]])
    joint = np.exp(theta.log_joint(X)[np.arange(N), z].sum(axis=1))
    i, j, said = answers.T.astype(int)
    # p(s_e | z) of each assignment and answer.
    said_true = (z[:, i] == z[:, j]) == (said == 1)
    p = np.where(said_true, 1 - q, q)
    for e in range(P):
        others = folds != folds[e]
        weight = joint * p[:, others].prod(axis=1)
        expected = np.log((weight * p[:, e]).sum() / weight.sum())
        assert found[e] == pytest.approx(expected, abs=1e-10)
    for f, rows in enumerate(told):
        np.testing.assert_array_equal(rows[:, :2], answers[folds != f, :2])


@given(SEEDS)
def test_the_error_is_that_of_sums_over_groups(seed):
    pairs, groups = asked(seed)
    scores = np.random.default_rng(seed).normal(size=len(pairs))
    names = sorted(set(groups[pairs[:, 0]]))
    if len(names) < 2:
        return
    found = log_score(scores, pairs, groups)
    mean = sum(scores) / len(scores)
    sums = [
        sum(s - mean for s, pair in zip(scores, pairs, strict=True) if groups[pair[0]] == g)
        for g in names
    ]
    variance = len(names) / (len(names) - 1) * sum(u**2 for u in sums) / len(scores) ** 2
    assert found.mean == pytest.approx(mean, abs=1e-12)
    assert found.standard_error == pytest.approx(variance**0.5, abs=1e-12)
    assert found.n_groups == len(names)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: answer_folds([[0, 1]], [0, 1], 2), r"joins the groups \[0, 1\]"),
        (lambda: answer_folds([[0, 1], [2, 3]], [0, 0, 1, 1], 1), "from 2 to 2"),
        (lambda: log_score([0.0], [[0, 1]], [0, 0]), "in 1 groups"),
        (lambda: log_score([0.0], [[0, 1], [2, 3]], [0, 0, 1, 1]), r"\(1,\) for 2 pairs"),
        (
            lambda: held_out_scores(np.zeros((2, 1)), print, [[0, 1, 2]], [0], AUTO,
                                    error_rate=0.1),
            "says 2",
        ),
        (
            lambda: held_out_scores(np.zeros((2, 1)), print, [[0, 1, 1]], [0], AUTO, error_rate=0),
            "error_rate=0.05",
        ),
        (
            lambda: held_out_scores(np.zeros((2, 1)), print, [[0, 1, 1]], [0, 1], AUTO,
                                    error_rate=0.1),
            "folds",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_chosen_from_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()
