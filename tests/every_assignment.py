"""Every assignment of a few points, and how probable it is: an oracle for all that is asked."""

import itertools

import numpy as np

from cgmm.mixture import log_joint


def every_assignment(X, theta, rows=()):
    """(n, N) those that are possible; log p(X, z | θ), less |w| of each i, j, w that z breaks."""
    z = np.array(list(itertools.product(range(len(theta.weights)), repeat=len(X))))
    logs = log_joint(X, theta)[np.arange(len(X)), z].sum(axis=1)
    for i, j, w in rows:
        holds = (z[:, int(i)] == z[:, int(j)]) == (w > 0)
        logs = logs - np.where(holds, 0.0, abs(w))
    return z[np.isfinite(logs)], logs[np.isfinite(logs)]
