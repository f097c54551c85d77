"""Approximate inference: mean field and belief propagation. Chapter 10.

======  ==================================================================
q       (J, K) approximate marginals of the nodes
u       (J, K) unary log-potentials; edges (E, 2), weights w (E,)
m       dict from (b, j) to the log-message (K,) from node b to node j
======  ==================================================================
"""

import numpy as np
from scipy.special import logsumexp, xlogy

from cgmm.primer.chunklets import node_unaries
from cgmm.primer.fitting import m_step
from cgmm.primer.mixtures import log_densities
from cgmm.primer.networks import log_z
from cgmm.primer.normaliser import newton, pseudo_counts
from cgmm.primer.sampling import around


def mean_field(u, edges, w, n_sweeps):
    """Return (J, K) mean-field q: each node uses its neighbours' means."""
    q = np.exp(u - logsumexp(u, axis=1, keepdims=True))
    for _ in range(n_sweeps):
        for j in range(len(u)):
            f = u[j] + sum(x * q[b] for b, x in around(j, edges, w))
            # [lu2007, eq. 3.5]
            q[j] = np.exp(f - logsumexp(f))
    return q


def mean_field_bound(q, u, edges, w):
    """Return B(q) = E_q[log weight(z)] + H(q) ≤ log Z, for finite u, w."""
    together = (q[edges[:, 0]] * q[edges[:, 1]]).sum(axis=1)
    # [lu2007, eqs. 3.3 and 3.4]
    return (q * u).sum() + w @ together - xlogy(q, q).sum()


def messages(u, edges, w, damping, n_sweeps):
    """Return the messages m after n_sweeps rounds, starting from zeros."""
    weight = {(a, b): x for (a, b), x in zip(edges, w)}
    weight |= {(b, a): x for (a, b), x in weight.items()}
    m = {pair: np.zeros(u.shape[1]) for pair in weight}
    for _ in range(n_sweeps):
        for b, j in m:
            q = np.exp(log_belief(b, m, u, j))
            # This is 1 + (e^w - 1) q, but without cancellation for q near 1.
            said = q @ (1 - np.eye(len(q))) + np.exp(weight[b, j]) * q
            old = np.exp(m[b, j])
            m[b, j] = np.log((1 - damping) * said + damping * old)
    return m


def log_belief(j, m, u, deaf_to):
    """Return (K,) log-belief of j without the message of one neighbour."""
    heard = [t for (b, to), t in m.items() if to == j and b != deaf_to]
    f = u[j] + sum(heard)
    return f - logsumexp(f)


def beliefs(m, u):
    """Return (J, K) beliefs q that use the messages of all neighbours."""
    return np.exp([log_belief(j, m, u, None) for j in range(len(u))])


def bethe_log_z(m, u, edges, w):
    """Return Bethe's log Z: a sum over nodes minus a sum over edges."""
    total = 0.0
    for j in range(len(u)):
        heard = [t for (_, to), t in m.items() if to == j]
        total += logsumexp(u[j] + sum(heard))
    for (a, b), x in zip(edges, w):
        apart = log_belief(a, m, u, b) + log_belief(b, m, u, a)
        total -= np.log1p(np.expm1(x) * np.exp(apart).sum())
    return total


def tree_bound(u, edges, w, trees):
    """Return an upper bound of log Z: the mean log Z of reweighted trees."""
    used = np.concatenate(trees)
    share = np.bincount(used, minlength=len(w)) / len(trees)
    return np.mean([log_z(u, edges[t], (w / share)[t]) for t in trees])


def approximate_em(X, theta, chunklet, n, edges, w, pool, e_step, n_iter):
    """Yield θ and (J, K) r of EM with an approximate E-step e_step."""
    for _ in range(n_iter):
        log_p = log_densities(X, theta)
        r = e_step(node_unaries(log_p, theta.weights, chunklet, n), edges, w)
        yield theta, r
        pi = newton(n @ r, lambda eta: pseudo_counts(eta, n, edges, w))
        theta = m_step(X, r[chunklet], pool)._replace(weights=pi)
