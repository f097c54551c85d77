"""The normaliser of the prior, and the weights that need it. Chapter 8.

======  ==================================================================
π, η    (K,) weights, and their logs, which a constant may be added to
n       (J,) multiplicities; edges (E, 2) and w (E,) of the network
C       (K,) counts that the posterior expects, Σ_j n_j p(z_j = k | X)
======  ==================================================================
"""

import numpy as np
from scipy.special import logsumexp, softmax

from cgmm.primer.chunklets import node_unaries
from cgmm.primer.fitting import m_step
from cgmm.primer.mixtures import log_densities
from cgmm.primer.networks import derivative, log_z, marginals


def prior_log_z(eta, n, edges, w):
    """Log Z_prior: the network without the data."""
    # [shental2003, eqs. 6 and 10], [lu2007, eq. 2.12]
    return log_z(n[:, None] * eta, edges, w)


def prior_counts(eta, n, edges, w):
    """(K,) Σ_j n_j p(z_j = k) without the data: ∂ log Z_prior / ∂ η."""
    return n @ marginals(n[:, None] * eta, edges, w)


def pseudo_log_z(eta, n, edges, w):
    """Log Z_prior as if every edge stood alone."""
    one = logsumexp(n[:, None] * eta, axis=1, keepdims=True)
    p = np.exp(n[:, None] * eta - one)
    same = (p[edges[:, 0]] * p[edges[:, 1]]).sum(axis=1)
    # [shental2003, eq. 12]
    return one.sum() + np.log1p(np.expm1(w) * same).sum()


def pseudo_counts(eta, n, edges, w):
    """(K,) ∂ pseudo_log_z / ∂ η: nodes alone, put right by each edge."""
    a, b = edges.T
    p = softmax(n[:, None] * eta, axis=1)
    pulls = 1 + np.expm1(w)[:, None] * np.stack([p[b], p[a]])
    share = pulls / (p[a] * pulls[0]).sum(axis=1, keepdims=True) - 1
    return n @ p + n[a] @ (p[a] * share[0]) + n[b] @ (p[b] * share[1])


def newton(C, counts):
    """(K,) π with counts(log π) = C, by Newton's method, in logs of both."""
    eta = np.zeros(len(C))
    for _ in range(100):
        # [shental2003, eq. 11]
        missing = np.log(C / counts(eta))
        if abs(missing).max() < 1e-11:
            break
        slope = derivative(lambda eta: np.log(counts(eta)), eta).T
        # A constant in η changes no count: no step goes that way.
        step = np.linalg.pinv(slope, 1e-6) @ missing
        eta = eta + step / max(1, abs(step).max())
    return np.exp(eta - logsumexp(eta))


def constrained_em(X, theta, chunklet, n, edges, w, pool, n_iter):
    """Yield θ and log p(X | θ, relations), the start first."""
    for _ in range(n_iter):
        log_pi = np.log(theta.weights)
        log_p = log_densities(X, theta)
        u = node_unaries(log_p, theta.weights, chunklet, n)
        r = marginals(u, edges, w)
        log_prior = prior_log_z(log_pi, n, edges, w)
        yield theta, log_z(u, edges, w) - log_prior
        pi = newton(n @ r, lambda eta: prior_counts(eta, n, edges, w))
        theta = m_step(X, r[chunklet], pool)._replace(weights=pi)
