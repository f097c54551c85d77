"""EM for a mixture without side information: bound, M-step, loop. Chapter 2.

======  ==================================================================
q       (N, K) any distribution over each z_i; F(q, θ) ≤ log p(X | θ)
r       (N, K) responsibilities, the q for which F(q, θ) = log p(X | θ)
N_k     (K,) expected counts, Σ_i r_ik
S_k     (K, D, D) scatter, Σ_i r_ik (x_i - μ_k)(x_i - μ_k)ᵀ
pool    function from counts and scatter to covariances: full, tied, ...
======  ==================================================================
"""

import numpy as np
from scipy.special import xlogy

from cgmm.primer.mixtures import Theta, log_joint, responsibilities


def lower_bound(X, theta, q):
    """Return the bound F(q, θ) = E_q[log p(X, z | θ)] + H(q), in nats."""
    # [green, "The EM algorithm"]
    return (q * log_joint(X, theta)).sum() - xlogy(q, q).sum()


def moments(X, r):
    """Return counts, means and scatter matrices, weighted by r."""
    N_k = r.sum(axis=0)
    mu = r.T @ X / N_k[:, None]
    h = X - mu[:, None]
    return N_k, mu, np.einsum("nk,knd,kne->kde", r, h, h)


def full(N_k, S):
    """Return (K, D, D) unrestricted covariances, one per component."""
    return S / N_k[:, None, None]


def tied(N_k, S):
    """Return (K, D, D) equal covariances that all components share."""
    return np.repeat([S.sum(axis=0) / N_k.sum()], len(N_k), axis=0)


def diag(N_k, S):
    """Return (K, D, D) diagonal covariances, one per component."""
    return full(N_k, S) * np.eye(S.shape[1])


def spherical(N_k, S):
    """Return (K, D, D) covariances with one variance per component."""
    mean_variance = np.trace(diag(N_k, S), axis1=1, axis2=2) / S.shape[1]
    return mean_variance[:, None, None] * np.eye(S.shape[1])


def m_step(X, r, pool):
    """Return the θ that maximises the bound at q = r."""
    N_k, mu, S = moments(X, r)
    # [schmidt2016, sects. 3.1 and 3.2], [green, "Maximisation step"]
    return Theta(N_k / len(X), mu, pool(N_k, S))


def em(X, theta, pool, n_iter):
    """Yield θ and log p(X | θ) in each iteration, beginning at the start."""
    for _ in range(n_iter):
        r, log_evidence = responsibilities(log_joint(X, theta))
        yield theta, log_evidence
        theta = m_step(X, r, pool)


def statistics(X, theta):
    """Return log p(X | θ) and Σ_i r_ik t_i for t_i = 1, x_i and x_i x_iᵀ."""
    r, log_p = responsibilities(log_joint(X, theta))
    return log_p, r.sum(axis=0), r.T @ X, np.einsum("nk,nd,ne->kde", r, X, X)


def fold(blocks, theta, pool):
    """Return new θ and log p(X | old θ), summing statistics over blocks."""
    parts = [statistics(X, theta) for X in blocks]
    log_p, N_k, sums, squares = [np.sum(s, axis=0) for s in zip(*parts)]
    mu = sums / N_k[:, None]
    S = squares - N_k[:, None, None] * mu[:, :, None] * mu[:, None]
    return Theta(N_k / N_k.sum(), mu, pool(N_k, S)), log_p
