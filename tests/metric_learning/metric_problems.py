"""Data in chunklets, streams of them, and relations for Xing's metric, with sums by definition."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)
DIGITS = load_digits(return_X_y=True)

# ------------------------------------------------------------------ chunklets


def scatter_by_hand(X, chunklet_of):
    """Scatter, points and chunklets by the definition."""
    scatter, n_points, n_chunklets = np.zeros((X.shape[1],) * 2), 0, 0
    for j in np.unique(chunklet_of[chunklet_of >= 0]):
        rows = X[chunklet_of == j]
        if len(rows) > 1:
            scatter += sum(np.outer(h, h) for h in rows - rows.mean(axis=0))
            n_points, n_chunklets = n_points + len(rows), n_chunklets + 1
    return scatter, n_points, n_chunklets


def correlated(n, d, seed=0):
    """Points and chunklets of every size, of full rank."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3
    return X, rng.integers(-1, max(1, n // 4), size=n)


# ------------------------------------------------------------------ streams

C2 = np.array([[2.0, 0.9], [0.9, 0.6]])


def stream(covariance, n_chunklets, size, seed=0):
    """Gaussian chunklets about far means."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(covariance)
    means = 9 * rng.normal(size=(n_chunklets, 1, len(root)))
    X = means + rng.normal(size=(n_chunklets, size, len(root))) @ root.T
    return X.reshape(-1, len(root)), np.repeat(np.arange(n_chunklets), size)


def off_by(W, C):
    """Largest deviation of a variance from one: zero for the metric of C up to a rotation."""
    return abs(np.linalg.eigvalsh(W @ C @ W.T) - 1).max()


# ------------------------------------------------------------------ relations for Xing's metric

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


def random_problem(seed, n_dims=3, n_points=14):
    """Points of two overlapping classes, and some relations between them."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_points) % 2
    X = rng.normal(size=(n_points, n_dims)) + 0.7 * y[:, None]
    must, cannot = (np.array(pairs_of(y, same)) for same in (True, False))
    return X, {
        "must_link": rng.permutation(must)[: 4 * n_dims],
        "cannot_link": rng.permutation(cannot)[:9],
    }
