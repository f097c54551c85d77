"""Test the choice of questions: by expected information, and by distance."""

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
def test_information_equals_the_mutual_information_of_relation_and_answer(p_same, alpha, beta):
    """Compute the mutual information as H(relation) + H(answer) - H(both), pair by pair."""
    result = answer_information(p_same, false_apart=alpha, false_together=beta)
    p_answer = np.array([[1 - alpha, alpha], [beta, 1 - beta]])
    for p, information in zip(p_same, result, strict=True):
        joint = np.array([[p], [1 - p]]) * p_answer
        marginals = entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1))
        expected = marginals - entropy(joint.ravel())
        assert information == pytest.approx(expected, abs=1e-12)


def test_choose_pairs_asks_nothing_about_pairs_without_information():
    assert len(choose_pairs([[0, 1], [2, 3]], [0.0, 0.0], 5, [0, 1, 2, 3])) == 0


# ---------------------------------------------------------------------------- farthest first


@settings(max_examples=40)
@given(SEEDS, st.integers(1, 4), st.integers(1, 60), st.sampled_from(["random", "min_max"]))
def test_farthest_first_finds_classes_and_asks_no_needless_question(seed, K, n_answers, then):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(K, size=20 - K)])
    X, asked = rng.normal(size=(20, 2)), []

    def ask(i, j):
        asked.append((i, j))
        return y[i] == y[j]

    result = farthest_first(X, ask, n_answers, K, then=then, random_state=seed)
    assert result.answers[:, :2].tolist() == [list(pair) for pair in asked]
    assert len(set(map(frozenset, asked))) == len(asked) <= n_answers
    i, j, says_same = result.answers.T
    assert (says_same == (y[i] == y[j])).all()
    assigned = np.flatnonzero(result.neighbourhoods >= 0)
    a, b = np.array(list(itertools.product(assigned, repeat=2))).T
    assert ((result.neighbourhoods[a] == result.neighbourhoods[b]) == (y[a] == y[b])).all()
    # A point that differs from all classes but one belongs to that one without a question.
    assert np.bincount(result.answers[:, 0]).max(initial=0) <= K - 1
    # Questions end when the budget is used up or all points are assigned.
    assert len(asked) == n_answers or len(assigned) == 20


@given(SEEDS, st.integers(2, 5))
def test_farthest_first_finds_separated_classes_with_one_question_for_each_pair(seed, K):
    rng = np.random.default_rng(seed)
    # Points of the same class are less than 2 apart, points of different classes at least 8.
    y = rng.permutation(np.repeat(np.arange(K), 10))
    X = rng.uniform(0, 1, size=(len(y), 2)) + 10 * y[:, None] * [1, 0]
    result = farthest_first(X, lambda i, j: y[i] == y[j], K * (K - 1) // 2, K, random_state=seed)
    assert set(result.neighbourhoods) >= set(range(K))
    assert not result.answers[:, 2].any()


@given(SEEDS)
def test_min_max_asks_about_the_point_farthest_from_all_known_points(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    result = farthest_first(X, lambda i, j: y[i] == y[j], 40, 2, then="min_max", random_state=seed)
    known = [result.answers[0, 1]]
    for x, member, _ in result.answers:
        to_known = np.linalg.norm(X[:, None] - X[known], axis=2).min(axis=1)
        assert to_known[x] == pytest.approx(to_known.max())
        # The question compares it with a point whose class is known already.
        assert member in known
        known.append(x)


test_choices_of_questions_refuse_invalid_arguments = refused(
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
