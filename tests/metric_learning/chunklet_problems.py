"""Data in chunklets, and their scatter by its definition."""

import warnings

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine

IRIS = load_iris(return_X_y=True)


WINE = load_wine(return_X_y=True)


DIGITS = load_digits(return_X_y=True)


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


def quiet_fit(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(*args, **kwargs)
