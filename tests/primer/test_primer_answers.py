"""The primer's functions of chapters 13, 15 and 16 agree with the package."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import strategies as st
from primer_problems import SEEDS, SLOPE, examples, mixture

from cgmm import decide, primer
from cgmm.decide import error_rates
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters
from cgmm.network import SideInformation
from reruns.reading import realisations_needed, spread, wrong_order


@examples(seed=SEEDS, R=st.integers(2, 30), n=st.integers(1, 50), alpha=st.floats(0.01, 0.4))
def test_errors_and_orders_are_those_of_the_package(seed, R, n, alpha):
    d = np.random.default_rng(seed).normal(0.3, size=R)
    assert primer.mean_and_error(d) == pytest.approx(spread(d)[:2], rel=1e-12)
    assert primer.wrong_order(d, n) == pytest.approx(wrong_order(d, n), rel=1e-12)
    enough = primer.realisations_needed(d, alpha)
    assert enough == realisations_needed(d, alpha)
    # Rounding moves the border by less than a thousandth of a realisation.
    assert primer.wrong_order(d, enough + 1e-3) < alpha
    assert primer.wrong_order(d, max(enough - 1 - 1e-3, 0)) > alpha


@examples(p=st.floats(1e-9, 1) | st.just(0.0), alpha=st.floats(0, 0.9), beta=st.floats(0, 0.9))
def test_information_is_that_of_the_package_and_all_of_a_coin_where_answers_are_right(
    p, alpha, beta
):
    theirs = decide.answer_information(p, false_apart=alpha, false_together=beta)
    assert primer.answer_information(p, alpha, beta) == pytest.approx(theirs, abs=1e-12)
    assert primer.coin_entropy(p) == pytest.approx(decide.answer_information(p), abs=1e-12)


@examples(seed=SEEDS, n=st.integers(1, 4))
def test_a_batch_is_the_one_that_the_package_takes(seed, n):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(6), 2)))
    values, group = rng.random(len(pairs)) + 0.01, rng.integers(4, size=6)
    chosen = primer.choose_pairs(values, pairs, group, n)
    np.testing.assert_array_equal(chosen, decide.choose_pairs(pairs, values, n, group))


@examples(seed=SEEDS)
def test_the_farthest_point_is_the_one_of_which_the_package_asks_first(seed):
    X = np.random.default_rng(seed).normal(size=(8, 2))
    asked = []
    decide.farthest_first(X, lambda *pair: asked.append(pair), 1, 3, random_state=seed)
    far, first = asked[0]
    assert primer.farthest(X, np.array([first])) == far
    nearest = np.minimum(*(np.linalg.norm(X - X[i], axis=1) for i in (first, far)))
    assert primer.farthest(X, np.array([first, far])) == nearest.argmax()


@examples(seed=SEEDS, a=st.floats(1.1, 4), b=st.floats(1.1, 9))
def test_em_with_annotators_climbs_as_the_package_does(seed, a, b):
    rng = np.random.default_rng(seed)
    theta, X = mixture(rng, 2, 1), 2 * rng.normal(size=(5, 1))
    # Two annotators answer; some pairs occur twice.
    edges = np.array(list(combinations(range(5), 2)))[rng.integers(10, size=7)]
    says_same, g = rng.random(7) < 0.5, np.arange(7) % 2
    u, mode = primer.log_joint(X, theta), (a - 1) / (a + b - 2)
    course = list(primer.annotator_em(u, edges, says_same, g, np.full(2, mode), a, b, 12))
    heights = [height for _, height in course]
    # A posterior by central differences: a maximum is reached up to their error.
    assert min(np.diff(heights)) > -1e-7
    side, rows = SideInformation.build(len(X)), np.column_stack([edges, says_same])
    known = X, Parameters(*theta), side, rows, ENGINES["auto"]
    found = error_rates(*known, annotator=g, prior=(a, b), tol=0, max_iter=11)
    n = len(found.history)  # it may have converged to the last bit
    np.testing.assert_allclose(found.false_apart, course[n][0], atol=1e-6)
    np.testing.assert_allclose(found.history, heights[:n], atol=1e-6)
    wrong = primer.p_wrong(u, edges, says_same, 1 - found.false_apart[g])
    np.testing.assert_allclose(found.wrong, wrong, atol=SLOPE)
