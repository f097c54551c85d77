"""Test that the primer's functions of chapters 13, 15 and 16 agree with the package."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import strategies as st
from primer_problems import SEEDS, SLOPE_ERROR, draw_theta, given_examples

from cgmm import decide, primer
from cgmm.decide import error_rates
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters
from cgmm.network import SideInformation
from reruns.reading import realisations_needed, spread, wrong_order

PROBABILITIES = st.floats(1e-9, 1) | st.just(0.0)
ERROR_RATES = st.floats(0, 0.9)


@given_examples(seed=SEEDS, R=st.integers(2, 30), n=st.integers(1, 50), alpha=st.floats(0.01, 0.4))
def test_standard_errors_and_wrong_orders_are_those_of_the_package(seed, R, n, alpha):
    differences = np.random.default_rng(seed).normal(0.3, size=R)
    assert primer.mean_and_error(differences) == pytest.approx(spread(differences)[:2], rel=1e-12)
    expected = wrong_order(differences, n)
    assert primer.wrong_order(differences, n) == pytest.approx(expected, rel=1e-12)
    needed = primer.realisations_needed(differences, alpha)
    assert needed == realisations_needed(differences, alpha)
    # One realisation less would not suffice; the margins allow for rounding.
    assert primer.wrong_order(differences, needed + 1e-3) < alpha
    assert primer.wrong_order(differences, max(needed - 1 - 1e-3, 0)) > alpha


@given_examples(p=PROBABILITIES, alpha=ERROR_RATES, beta=ERROR_RATES)
def test_information_of_an_answer_is_that_of_the_package(p, alpha, beta):
    """An answer without errors has the entropy of a coin with probability p."""
    theirs = decide.answer_information(p, false_apart=alpha, false_together=beta)
    assert primer.answer_information(p, alpha, beta) == pytest.approx(theirs, abs=1e-12)
    assert primer.coin_entropy(p) == pytest.approx(decide.answer_information(p), abs=1e-12)


@given_examples(seed=SEEDS, n=st.integers(1, 4))
def test_chosen_batch_of_pairs_is_that_of_the_package(seed, n):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(6), 2)))
    values, group = rng.random(len(pairs)) + 0.01, rng.integers(4, size=6)
    chosen = primer.choose_pairs(values, pairs, group, n)
    np.testing.assert_array_equal(chosen, decide.choose_pairs(pairs, values, n, group))


@given_examples(seed=SEEDS)
def test_farthest_point_is_in_the_first_question_of_the_package(seed):
    X = np.random.default_rng(seed).normal(size=(8, 2))
    questions = []
    decide.farthest_first(X, lambda *pair: questions.append(pair), 1, 3, random_state=seed)
    far, first = questions[0]
    assert primer.farthest(X, np.array([first])) == far
    nearest = np.minimum(*(np.linalg.norm(X - X[i], axis=1) for i in (first, far)))
    assert primer.farthest(X, np.array([first, far])) == nearest.argmax()


@given_examples(seed=SEEDS, a=st.floats(1.1, 4), b=st.floats(1.1, 9))
def test_em_with_annotators_takes_the_steps_of_the_package(seed, a, b):
    rng = np.random.default_rng(seed)
    theta, X = draw_theta(rng, 2, 1), 2 * rng.normal(size=(5, 1))
    # Two annotators answer in turn, and some pairs occur twice.
    edges = np.array(list(combinations(range(5), 2)))[rng.integers(10, size=7)]
    says_same, g = rng.random(7) < 0.5, np.arange(7) % 2
    u, mode = primer.log_joint(X, theta), (a - 1) / (a + b - 2)
    steps = list(primer.annotator_em(u, edges, says_same, g, np.full(2, mode), a, b, 12))
    objectives = [objective for _, objective in steps]
    # The primer's posterior is computed by central differences, so their error is allowed.
    assert min(np.diff(objectives)) > -1e-7
    side, answers = SideInformation.build(len(X)), np.column_stack([edges, says_same])
    arguments = X, Parameters(*theta), side, answers, ENGINES["auto"]
    theirs = error_rates(*arguments, annotator=g, prior=(a, b), tol=0, max_iter=11)
    # The package ends earlier if an iteration changes nothing.
    n = len(theirs.history)
    np.testing.assert_allclose(theirs.false_apart, steps[n][0], atol=1e-6)
    np.testing.assert_allclose(theirs.history, objectives[:n], atol=1e-6)
    wrong = primer.p_wrong(u, edges, says_same, 1 - theirs.false_apart[g])
    np.testing.assert_allclose(theirs.wrong, wrong, atol=SLOPE_ERROR)
