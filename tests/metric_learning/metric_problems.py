"""Data, random problems and sums of distances that several tests of metric learning share."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)
DIGITS = load_digits(return_X_y=True)

# ------------------------------------------------------------------ chunklets for RCA

COVARIANCE = np.array([[2.0, 0.9], [0.9, 0.6]])


def draw_stream(covariance, n_chunklets, size, seed=0):
    """Draw Gaussian chunklets of equal size around distant means; return X and chunklet numbers."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(covariance)
    means = 9 * rng.normal(size=(n_chunklets, 1, len(root)))
    X = means + rng.normal(size=(n_chunklets, size, len(root))) @ root.T
    return X.reshape(-1, len(root)), np.repeat(np.arange(n_chunklets), size)


def largest_deviation(W, C):
    """Return the largest deviation from one among the variances of C after the map W."""
    return abs(np.linalg.eigvalsh(W @ C @ W.T) - 1).max()


# ------------------------------------------------------------------ pairs for MMC, Xing's metric

# Run a test for full and for diagonal metrics.
BOTH_FORMS = pytest.mark.parametrize("diagonal", [False, True])


def sum_distances(A, X, must_link, cannot_link):
    """Return (Σ squared distances of must-links, Σ distances of cannot-links), pair by pair."""
    S = sum((X[i] - X[j]) @ A @ (X[i] - X[j]) for i, j in must_link)
    D = sum(np.sqrt(max((X[i] - X[j]) @ A @ (X[i] - X[j]), 0)) for i, j in cannot_link)
    return S, D


def list_pairs(y, same):
    """Return all pairs of labelled points of the same class, or of different classes."""
    labelled = np.flatnonzero(np.asarray(y) != -1)
    return [(i, j) for i, j in combinations(labelled, 2) if (y[i] == y[j]) == same]


def draw_problem(seed, n_dims=3, n_points=14):
    """Draw points of two overlapping classes, and must-links and cannot-links among them."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_points) % 2
    X = rng.normal(size=(n_points, n_dims)) + 0.7 * y[:, None]
    must, cannot = (np.array(list_pairs(y, same)) for same in (True, False))
    return X, {
        "must_link": rng.permutation(must)[: 4 * n_dims],
        "cannot_link": rng.permutation(cannot)[:9],
    }
