"""Starts and ends of EM, empty components, a prior, how many. Chapter 3.

======  ==================================================================
X, μ    points (N, D) and centres (K, D); steps: what an `em` yields
N_k, S  counts (K,) and scatter (K, D, D) of the responsibilities
Ψ, ν    inverse-Wishart prior: p(Σ) ∝ det(Σ)^(-(ν+D+1)/2) exp(-½ tr ΨΣ⁻¹)
P, N    number of free parameters; of points
======  ==================================================================
"""

import numpy as np


def far_points(X, K, rng):
    """(K, D) centres, points drawn by squared distance from the others."""
    mu = X[[rng.integers(len(X))]]
    while len(mu) < K:
        gaps = ((X[:, None] - mu) ** 2).sum(axis=2).min(axis=1)
        mu = np.vstack([mu, X[rng.choice(len(X), p=gaps / gaps.sum())]])
    return mu


def nearest(X, mu):
    """(N, K) r: each point belongs to the nearest of the centres."""
    closest = ((X[:, None] - mu) ** 2).sum(axis=2).argmin(axis=1)
    return np.eye(len(mu))[closest]


def until(steps, tol):
    """The (θ, log p) of the steps, down to one that gains less than tol."""
    before = -np.inf
    for theta, log_evidence in steps:
        yield theta, log_evidence
        if log_evidence - before < tol:
            return
        before = log_evidence


def occupied(r):
    """(N, at most K) r without the components that no point claims."""
    return r[:, r.sum(axis=0) > 0]


def map_covariances(N_k, S, Psi, nu):
    """(K, D, D) the most probable covariances under the prior."""
    D = S.shape[1]
    return (S + Psi) / (N_k + nu + D + 1)[:, None, None]


def n_parameters(K, D):
    """P: free numbers in weights, means and full covariances."""
    return (K - 1) + K * D + K * D * (D + 1) // 2


def bic(log_evidence, P, N):
    """-2 log p(X | θ) + P log N: the smaller, the better."""
    return -2 * log_evidence + P * np.log(N)


def aic(log_evidence, P):
    """-2 log p(X | θ) + 2 P: the smaller, the better."""
    return -2 * log_evidence + 2 * P
