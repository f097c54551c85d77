"""Test the choice of questions: information from entropies, and growing neighbourhoods."""

import itertools
from operator import call

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.stats import entropy

from cgmm.decide import answer_information, choose_pairs, farthest_first

SEEDS = st.integers(0, 10_000)
RATES = st.floats(0, 1)


@given(st.lists(RATES, min_size=1, max_size=9), RATES, RATES)
def test_information_equals_the_mutual_information_of_assignment_and_answer(together, alpha, beta):
    """Compare with entropies over all assignments: an answer depends on its own pair alone."""
    found = answer_information(together, false_apart=alpha, false_together=beta)
    says_same = np.array([[1 - alpha, alpha], [beta, 1 - beta]])
    for p, information in zip(together, found, strict=True):
        joint = np.array([[p], [1 - p]]) * says_same
        parts = entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1))
        expected = parts - entropy(joint.ravel())
        assert information == pytest.approx(expected, abs=1e-12)


def test_known_pairs_are_not_asked():
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
    i, j, says_same = found.answers.T
    assert (says_same == (y[i] == y[j])).all()
    settled = np.flatnonzero(found.neighbourhoods >= 0)
    a, b = np.array(list(itertools.product(settled, repeat=2))).T
    assert ((found.neighbourhoods[a] == found.neighbourhoods[b]) == (y[a] == y[b])).all()
    # A group that is apart from all classes but one needs no question.
    assert np.bincount(found.answers[:, 0]).max(initial=0) <= K - 1
    # The interview ends for one of two reasons.
    assert len(asked) == n_answers or len(settled) == 20


@given(SEEDS, st.integers(2, 5))
def test_classes_far_apart_are_found_by_a_question_for_each_pair_of_them(seed, K):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(K), 10))
    # Points of one class are less than 2 apart, points of two classes at least 8.
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
        # It is compared with the nearest point of its neighbourhood, which is known.
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
