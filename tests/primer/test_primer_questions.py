"""Chapter 15 by hand: against tables of truths and answers, all batches, and the package."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primer_problems import FEW, SEEDS

from cgmm import decide, primer


@FEW
@given(p=st.floats(1e-9, 1) | st.just(0.0), alpha=st.floats(0, 0.9), beta=st.floats(0, 0.9))
def test_information_is_that_of_the_package_and_all_of_a_coin_where_answers_are_right(
    p, alpha, beta
):
    theirs = decide.answer_information(p, false_apart=alpha, false_together=beta)
    assert primer.answer_information(p, alpha, beta) == pytest.approx(theirs, abs=1e-12)
    assert primer.coin_entropy(p) == pytest.approx(decide.answer_information(p), abs=1e-12)


@FEW
@given(seed=SEEDS, n=st.integers(1, 4))
def test_a_batch_is_the_one_that_the_package_takes(seed, n):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(6), 2)))
    values, group = rng.random(len(pairs)) + 0.01, rng.integers(4, size=6)
    chosen = primer.choose_pairs(values, pairs, group, n)
    np.testing.assert_array_equal(chosen, decide.choose_pairs(pairs, values, n, group))


@FEW
@given(seed=SEEDS)
def test_the_farthest_point_is_the_one_of_which_the_package_asks_first(seed):
    X = np.random.default_rng(seed).normal(size=(8, 2))
    asked = []
    decide.farthest_first(X, lambda *pair: asked.append(pair), 1, 3, random_state=seed)
    far, first = asked[0]
    assert primer.farthest(X, np.array([first])) == far
    nearest = np.minimum(*(np.linalg.norm(X - X[i], axis=1) for i in (first, far)))
    assert primer.farthest(X, np.array([first, far])) == nearest.argmax()
