"""Data in chunklets, streams of them, and relations, with sums by their definitions."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)
DIGITS = load_digits(return_X_y=True)

# ------------------------------------------------------------------ chunklets


# ------------------------------------------------------------------ streams

C2 = np.array([[2.0, 0.9], [0.9, 0.6]])


def stream(covariance, n_chunklets, size, seed=0):
    """Draw Gaussian chunklets about distant means."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(covariance)
    means = 9 * rng.normal(size=(n_chunklets, 1, len(root)))
    X = means + rng.normal(size=(n_chunklets, size, len(root))) @ root.T
    return X.reshape(-1, len(root)), np.repeat(np.arange(n_chunklets), size)


def off_by(W, C):
    """Return the largest deviation of a variance from one; zero for the metric of C."""
    return abs(np.linalg.eigvalsh(W @ C @ W.T) - 1).max()


# ------------------------------------------------------------------ relations for Xing's metric

BOTH = pytest.mark.parametrize("diagonal", [False, True])


def sums(A, X, must_link, cannot_link):
    """Return Σ over S of squared distances and Σ over D of distances, pair by pair."""
    S = sum((X[i] - X[j]) @ A @ (X[i] - X[j]) for i, j in must_link)
    D = sum(np.sqrt(max((X[i] - X[j]) @ A @ (X[i] - X[j]), 0)) for i, j in cannot_link)
    return S, D


def pairs_of(y, same):
    """Return all unordered pairs of labelled points of one class, or of two."""
    labelled = np.flatnonzero(np.asarray(y) != -1)
    return [(i, j) for i, j in combinations(labelled, 2) if (y[i] == y[j]) == same]


def random_problem(seed, n_dims=3, n_points=14):
    """Draw points of two overlapping classes, and relations between some of them."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_points) % 2
    X = rng.normal(size=(n_points, n_dims)) + 0.7 * y[:, None]
    must, cannot = (np.array(pairs_of(y, same)) for same in (True, False))
    return X, {
        "must_link": rng.permutation(must)[: 4 * n_dims],
        "cannot_link": rng.permutation(cannot)[:9],
    }
