"""The pairs of two_models. What the papers say of their clumps follows from stored results."""

import numpy as np
import pytest

from cgmm.datasets import load

SEEDS = range(2)


@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_of_two_models_are_twenty_correct_disjoint_and_against_the_rows(seed):
    data = load("two_models", random_state=seed)
    assert data.must_link.shape == data.cannot_link.shape == (10, 2)
    assert data.must_link.dtype == data.cannot_link.dtype == np.int64
    pairs = np.vstack([data.must_link, data.cannot_link])
    assert len(np.unique(pairs)) == 40
    same_class = data.y[pairs[:, 0]] == data.y[pairs[:, 1]]
    assert same_class.tolist() == [True] * 10 + [False] * 10
    upper = data.X[:, 1] > 0
    same_row = upper[pairs[:, 0]] == upper[pairs[:, 1]]
    assert np.mean(same_row != same_class) > 0.9
