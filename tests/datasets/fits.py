"""Fits to compare a toy problem with: scikit-learn's, so that no code of this package vouches for
itself.
"""

import numpy as np
from sklearn.mixture import GaussianMixture

from cgmm.metrics import matched_accuracy


def fit_from(X, labels):
    """EM of two Gaussians, started from the moments of a partition."""
    parts = [X[labels == k] for k in np.unique(labels)]
    return GaussianMixture(
        len(parts),
        tol=1e-8,
        max_iter=2000,
        weights_init=[len(part) / len(X) for part in parts],
        means_init=[part.mean(axis=0) for part in parts],
        precisions_init=[np.linalg.inv(np.cov(part.T)) for part in parts],
    ).fit(X)


def best_fit(X, n_starts=15, random_state=0):
    """The most likely of many fits of two Gaussians: from random points and from K-means."""
    fits = [
        GaussianMixture(
            2, tol=1e-6, max_iter=500, n_init=n, init_params=init, random_state=random_state
        ).fit(X)
        for init, n in [("random_from_data", n_starts), ("k-means++", n_starts), ("kmeans", 1)]
    ]
    return max(fits, key=lambda fit: fit.score(X))


def accuracy(fit, data):
    return matched_accuracy(data.y, fit.predict(data.X))
