"""A stream of Gaussian chunklets, and how far from white a map leaves it."""

import numpy as np

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
