"""Enumerate the assignments of a small number of points, as an oracle for all inference."""

import itertools

import numpy as np

from cgmm.mixture import log_joint


def every_assignment(X, theta, rows=()):
    """Return (n, N) possible z, and log p(X, z | θ) less |w| for each broken preference."""
    z = np.array(list(itertools.product(range(len(theta.weights)), repeat=len(X))))
    logs = log_joint(X, theta)[np.arange(len(X)), z].sum(axis=1)
    for i, j, w in rows:
        holds = (z[:, int(i)] == z[:, int(j)]) == (w > 0)
        logs = logs - np.where(holds, 0.0, abs(w))
    return z[np.isfinite(logs)], logs[np.isfinite(logs)]
