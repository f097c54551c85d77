"""The normaliser of the prior, and the update of the weights. Chapter 8.

======  ==================================================================
π, η    (K,) weights, and their logs up to a common constant
n       (J,) multiplicities; edges (E, 2) and w (E,) of the network
C       (K,) expected counts of the posterior, Σ_j n_j p(z_j = k | X)
======  ==================================================================
"""

import numpy as np
from scipy.special import logsumexp, softmax

from cgmm.primer.chunklets import node_unaries
from cgmm.primer.fitting import m_step
from cgmm.primer.mixtures import log_densities
from cgmm.primer.networks import derivative, log_z, marginals


def prior_log_z(eta, n, edges, w):
    """Return log Z_prior, the log-normaliser without the data."""
    # [shental2003, eqs. 6 and 10], [lu2007, eq. 2.12]
    return log_z(n[:, None] * eta, edges, w)


def prior_counts(eta, n, edges, w):
    """Return (K,) prior counts Σ_j n_j p(z_j = k) = ∂ log Z_prior / ∂ η."""
    return n @ marginals(n[:, None] * eta, edges, w)


def pseudo_log_z(eta, n, edges, w):
    """Return log Z_prior as if no two edges shared a node."""
    one = logsumexp(n[:, None] * eta, axis=1, keepdims=True)
    p = np.exp(n[:, None] * eta - one)
    same = (p[edges[:, 0]] * p[edges[:, 1]]).sum(axis=1)
    # [shental2003, eq. 12]
    return one.sum() + np.log1p(np.expm1(w) * same).sum()


def pseudo_counts(eta, n, edges, w):
    """Return (K,) ∂ pseudo_log_z / ∂ η: sums over nodes and over edges."""
    a, b = edges.T
    p = softmax(n[:, None] * eta, axis=1)
    pulls = 1 + np.expm1(w)[:, None] * np.stack([p[b], p[a]])
    share = pulls / (p[a] * pulls[0]).sum(axis=1, keepdims=True) - 1
    return n @ p + n[a] @ (p[a] * share[0]) + n[b] @ (p[b] * share[1])


def newton(C, counts):
    """Solve counts(log π) = C for (K,) π by Newton's method on the logs."""
    eta = np.zeros(len(C))
    for _ in range(100):
        # [shental2003, eq. 11]
        missing = np.log(C / counts(eta))
        if abs(missing).max() < 1e-11:
            break
        slope = derivative(lambda eta: np.log(counts(eta)), eta).T
        # Adding a constant to η changes no count; pinv ignores it.
        step = np.linalg.pinv(slope, 1e-6) @ missing
        eta = eta + step / max(1, abs(step).max())
    return np.exp(eta - logsumexp(eta))


def constrained_em(X, theta, chunklet, n, edges, w, pool, n_iter):
    """Yield θ and log p(X | θ, relations) in each iteration of EM."""
    for _ in range(n_iter):
        log_pi = np.log(theta.weights)
        log_p = log_densities(X, theta)
        u = node_unaries(log_p, theta.weights, chunklet, n)
        r = marginals(u, edges, w)
        log_prior = prior_log_z(log_pi, n, edges, w)
        yield theta, log_z(u, edges, w) - log_prior
        pi = newton(n @ r, lambda eta: prior_counts(eta, n, edges, w))
        theta = m_step(X, r[chunklet], pool)._replace(weights=pi)
