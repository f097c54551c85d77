"""Partial labels: EM in which labels exclude components. Chapter 4.

======  ==================================================================
y       (N,) labels, -1 where unknown
A       (N, K) bool mask: True if point i may belong to class k
u       (N, K) log-joint, log π_k + log N(x_i | μ_k, Σ_k)
update  function from counts N_k (K,) to weights π (K,), such as shares
======  ==================================================================
"""

import numpy as np

from cgmm.primer.fitting import m_step
from cgmm.primer.mixtures import log_joint, responsibilities


def allowed(y, K):
    """Return (N, K) mask A: a label allows one class, -1 allows all."""
    return (y[:, None] == np.arange(K)) | (y[:, None] < 0)


def masked(u, A):
    """Return (N, K) log-joint, set to -inf if a label excludes the class."""
    return np.where(A, u, -np.inf)


def label_means(X, y, K):
    """Return (K, D) initial means: the means of the labelled points."""
    return np.array([X[y == k].mean(axis=0) for k in range(K)])


def shares(N_k):
    """Return (K,) weights N_k / N, correct if labels are a random sample."""
    return N_k / N_k.sum()


def labelled_em(X, theta, A, pool, update, n_iter):
    """Yield θ and log p(X, labels | θ) in each iteration of EM."""
    for _ in range(n_iter):
        # [schmidt2016, sect. 2.1], [green, "Semi-supervised"]
        r, log_evidence = responsibilities(masked(log_joint(X, theta), A))
        yield theta, log_evidence
        theta = m_step(X, r, pool)
        theta = theta._replace(weights=update(r.sum(axis=0)))
