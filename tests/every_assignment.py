"""Enumerate all assignments of a small number of points, to check inference engines."""

import itertools

import numpy as np

from cgmm.mixture import log_joint


def every_assignment(X, theta, preferences=()):
    """Return all assignments z (n, N) of positive probability, and their log-weights (n,).

    The log-weight is log p(X, z | θ) minus |w| for each preference (i, j, w) that z breaks.
    """
    z = np.array(list(itertools.product(range(len(theta.weights)), repeat=len(X))))
    logs = log_joint(X, theta)[np.arange(len(X)), z].sum(axis=1)
    for i, j, w in preferences:
        holds = (z[:, int(i)] == z[:, int(j)]) == (w > 0)
        logs = logs - np.where(holds, 0.0, abs(w))
    return z[np.isfinite(logs)], logs[np.isfinite(logs)]
