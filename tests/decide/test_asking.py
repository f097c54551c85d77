"""What to ask: information against all assignments, batches against all batches, and skeletons."""

import itertools
from operator import call

import numpy as np
import pytest
from every_assignment import every_assignment
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.special import softmax

from cgmm.decide import answer_information, choose_pairs, farthest_first
from cgmm.diagnose import pair_probabilities
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters
from cgmm.network import SideInformation, related_groups

SEEDS = st.integers(0, 10_000)
RATES = st.floats(0, 1)
AUTO = ENGINES["auto"]


def mutual_information(p_z, p_answers):
    """Σ p(z) p(s | z) log p(s | z) / p(s), of p_answers (n_assignments, n_outcomes)."""
    joint = p_z[:, None] * p_answers
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = joint * (np.log(p_answers) - np.log(joint.sum(axis=0)))
    return np.nansum(terms)


def posterior(seed, N=5, K=2):
    """Points with relations: p of every assignment, the assignments, and how to ask of pairs."""
    rng = np.random.default_rng(seed)
    theta = Parameters(rng.dirichlet(3 * np.ones(K)), rng.normal(size=(K, 1)), np.ones((K, 1, 1)))
    X, rows = rng.normal(size=(N, 1)), [[0, 1, 1.5], [2, 3, -1.0]]
    side = SideInformation.build(N, preferences=rows)
    z, logs = every_assignment(X, theta, rows)
    pairs = list(itertools.combinations(range(N), 2))
    together = pair_probabilities(X, theta, side, pairs, AUTO(side.graph))
    groups = related_groups(N, preferences=rows)
    return softmax(logs), z, np.array(pairs), together, groups


def p_said(z, pair, alpha, beta):
    """(n_assignments, 2) p("apart"), p("together")."""
    p = np.where(z[:, pair[0]] == z[:, pair[1]], 1 - alpha, beta)
    return np.column_stack([1 - p, p])


@settings(max_examples=30)
@given(SEEDS, st.integers(2, 3), RATES, RATES)
def test_information_is_that_about_all_assignments(seed, K, alpha, beta):
    p, z, pairs, together, _ = posterior(seed, K=K)
    found = answer_information(together, false_apart=alpha, false_together=beta)
    expected = [mutual_information(p, p_said(z, pair, alpha, beta)) for pair in pairs]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_what_is_known_is_not_asked():
    assert len(choose_pairs([[0, 1], [2, 3]], [0.0, 0.0], 5, [0, 1, 2, 3])) == 0


# ---------------------------------------------------------------------------- by distance


@settings(max_examples=40)
@given(SEEDS, st.integers(1, 4), st.integers(1, 60), st.sampled_from(["random", "min_max"]))
def test_neighbourhoods_are_classes_and_answers_are_true(seed, K, n_answers, then):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(K, size=20 - K)])
    X, asked = rng.normal(size=(20, 2)), []

    def ask(i, j):
        asked.append((i, j))
        return y[i] == y[j]

    found = farthest_first(X, ask, n_answers, K, then=then, random_state=seed)
    assert found.answers[:, :2].tolist() == [list(pair) for pair in asked]
    assert len(set(map(frozenset, asked))) == len(asked) <= n_answers
    i, j, said = found.answers.T
    assert (said == (y[i] == y[j])).all()
    settled = np.flatnonzero(found.neighbourhoods >= 0)
    a, b = np.array(list(itertools.product(settled, repeat=2))).T
    assert ((found.neighbourhoods[a] == found.neighbourhoods[b]) == (y[a] == y[b])).all()
    # What is apart from all classes but one is not asked about.
    assert np.bincount(found.answers[:, 0]).max(initial=0) <= K - 1
    # It ends for one of two reasons.
    assert len(asked) == n_answers or len(settled) == 20


@given(SEEDS, st.integers(2, 5))
def test_classes_far_apart_are_found_by_a_question_for_each_pair_of_them(seed, K):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(K), 10))
    # Within a class less than 2 apart, between two at least 8.
    X = rng.uniform(0, 1, size=(len(y), 2)) + 10 * y[:, None] * [1, 0]
    found = farthest_first(X, lambda i, j: y[i] == y[j], K * (K - 1) // 2, K, random_state=seed)
    assert set(found.neighbourhoods) >= set(range(K))
    assert not found.answers[:, 2].any()


@given(SEEDS)
def test_min_max_asks_of_the_point_least_like_the_known_ones(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    found = farthest_first(X, lambda i, j: y[i] == y[j], 40, 2, then="min_max", random_state=seed)
    known = [found.answers[0, 1]]
    for x, member, _ in found.answers:
        to_known = np.linalg.norm(X[:, None] - X[known], axis=2).min(axis=1)
        assert to_known[x] == pytest.approx(to_known.max())
        # Beside the nearest point of its neighbourhood, which is known.
        assert member in known
        known.append(x)


test_what_cannot_be_asked_is_refused = refused(
    call,
    (lambda: answer_information([1.5]), "together has 1.5"),
    (lambda: answer_information([0.5], false_apart=-0.1), "false_apart has -0.1"),
    (lambda: choose_pairs([[0, 1]], [np.nan], 1, [0, 1]), "1 of them NaN"),
    (lambda: choose_pairs([[0, 1]], [0.5, 0.5], 1, [0, 1]), r"\(2,\)"),
    (lambda: choose_pairs([[0, 1]], [0.5], 0, [0, 1]), "n_pairs is 0"),
    (lambda: choose_pairs([[0, 5]], [0.5], 1, [0, 1]), r"pairs\[0\]"),
    (lambda: farthest_first([0.0], bool, 1, 1), "1D array"),
    (lambda: farthest_first([[np.nan]], bool, 1, 1), "first in row 0, column 0"),
    (lambda: farthest_first([[0.0]], bool, 0, 1), "at least 1"),
    (lambda: farthest_first([[0.0]], bool, 1, 1, then="near"), "'min_max'"),
)
