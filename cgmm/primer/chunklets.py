"""Chunklets: groups of points that must-links connect. Chapters 5 and 6.

========  ================================================================
chunklet  (N,) index j of each point's chunklet, a node of the network
n         (J,) multiplicity n_j: exponent of the weight π_k in node j
u         (J, K) unaries, n_j log π_k + Σ_{i in j} log N(x_i | μ_k, Σ_k)
r         (J, K) responsibilities of nodes; r[chunklet] is that of points
========  ================================================================
"""

import numpy as np

from cgmm.primer.fitting import m_step
from cgmm.primer.mixtures import log_densities, responsibilities


def closure(N, must_links):
    """Return (N,) chunklet of each point, in order of first points."""
    chunklet = np.arange(N)
    for pair in must_links:
        met = chunklet[pair]
        chunklet[np.isin(chunklet, met)] = met.min()
    return np.unique(chunklet, return_inverse=True)[1]


def cannot_edges(chunklet, cannot_links):
    """Return (E, 2) distinct pairs of chunklets with a cannot-link."""
    ends = np.sort(chunklet[cannot_links], axis=1)
    return np.unique(ends, axis=0)


def if_points_are_sampled(chunklet):
    """Return (J,) n_j if points are drawn independently (assumption 2)."""
    # [shental2003, eq. 6]
    return np.bincount(chunklet)


def if_chunklets_are_sampled(chunklet):
    """Return (J,) n_j if chunklets are drawn independently (assumption 1)."""
    # [shental2003, eq. 4]
    return np.ones(chunklet.max() + 1)


def node_unaries(log_p, pi, chunklet, n):
    """Return (J, K) u: sums of log-densities, plus n_j log π_k."""
    together = np.zeros((len(n), len(pi)))
    np.add.at(together, chunklet, log_p)
    # [lu2007, eqs. 4.2 and 4.3]
    return together + n[:, None] * np.log(pi)


def chunklet_em(X, theta, chunklet, pool, n_iter):
    """Yield θ and log p(X | θ, must-links) if chunklets are sampled."""
    n = if_chunklets_are_sampled(chunklet)
    for _ in range(n_iter):
        log_p = log_densities(X, theta)
        u = node_unaries(log_p, theta.weights, chunklet, n)
        r, log_evidence = responsibilities(u)
        yield theta, log_evidence
        theta = m_step(X, r[chunklet], pool)
        theta = theta._replace(weights=r.mean(axis=0))
