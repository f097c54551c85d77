"""Small problems for Xing's metric, and its sums pair by pair."""

from itertools import combinations

import numpy as np
import pytest

from cgmm.metric_learning.chunklets import group_points
from cgmm.metric_learning.mmc_pairs import Pairs

BOTH = pytest.mark.parametrize("diagonal", [False, True])


def sums(A, X, must_link, cannot_link):
    """Σ over S of squared distances and Σ over D of distances, pair by pair."""
    S = sum((X[i] - X[j]) @ A @ (X[i] - X[j]) for i, j in must_link)
    D = sum(np.sqrt(max((X[i] - X[j]) @ A @ (X[i] - X[j]), 0)) for i, j in cannot_link)
    return S, D


def pairs_of(y, same):
    """All unordered pairs of labelled points of one class, or of two."""
    labelled = np.flatnonzero(np.asarray(y) != -1)
    return [(i, j) for i, j in combinations(labelled, 2) if (y[i] == y[j]) == same]


def pairs_between(listed, groups=()):
    """Pairs of which some are listed, and the rest are all between groups."""
    listed = np.reshape(listed, (-1, 2)).astype(np.intp)
    return Pairs(listed, group_points(np.array(groups, dtype=np.intp), 1))


def random_problem(seed, n_dims=3, n_points=14):
    """Points of two overlapping classes, and some relations between them."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_points) % 2
    X = rng.normal(size=(n_points, n_dims)) + 0.7 * y[:, None]
    must, cannot = (np.array(pairs_of(y, same)) for same in (True, False))
    return X, rng.permutation(must)[: 4 * n_dims], rng.permutation(cannot)[:9]
