"""Some labels: classes that a point cannot have weigh nothing. Chapter 4.

======  ==================================================================
y       (N,) labels, -1 where unknown
A       (N, K) bool, whether point i may still be of class k
u       (N, K) log-joint
update  from counts N_k (K,) to weights π (K,): shares, or a rule of yours
======  ==================================================================
"""

import numpy as np

from cgmm.primer.fitting import m_step
from cgmm.primer.mixtures import log_joint, responsibilities


def allowed(y, K):
    """(N, K) A: a label leaves one class, -1 leaves all."""
    return (y[:, None] == np.arange(K)) | (y[:, None] < 0)


def masked(u, A):
    """(N, K) the log-joint, -inf where a label forbids the class."""
    return np.where(A, u, -np.inf)


def label_means(X, y, K):
    """(K, D) the mean of each class's labelled points, for a start."""
    return np.array([X[y == k].mean(axis=0) for k in range(K)])


def shares(N_k):
    """(K,) π_k = N_k / N, the weights if labels were not chosen by class."""
    return N_k / N_k.sum()


def labelled_em(X, theta, A, pool, update, n_iter):
    """Yield θ and log p(X, labels | θ), the start first."""
    for _ in range(n_iter):
        # [schmidt2016, sect. 2.1], [green, "Semi-supervised"]
        r, log_evidence = responsibilities(masked(log_joint(X, theta), A))
        yield theta, log_evidence
        theta = m_step(X, r, pool)
        theta = theta._replace(weights=update(r.sum(axis=0)))
