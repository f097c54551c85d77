"""Initialisation, stopping, empty components, prior and BIC. Chapter 3.

======  ==================================================================
X, μ    points (N, D) and centres (K, D)
steps   iterator of pairs (θ, log p), such as the result of `em`
N_k, S  counts (K,) and scatter (K, D, D) of the responsibilities
Ψ, ν    inverse-Wishart prior: p(Σ) ∝ det(Σ)^(-(ν+D+1)/2) exp(-½ tr ΨΣ⁻¹)
P, N    number of free parameters; of points
======  ==================================================================
"""

import numpy as np


def far_points(X, K, rng):
    """Draw (K, D) centres by k-means++: far points are more probable."""
    mu = X[[rng.integers(len(X))]]
    while len(mu) < K:
        gaps = ((X[:, None] - mu) ** 2).sum(axis=2).min(axis=1)
        mu = np.vstack([mu, X[rng.choice(len(X), p=gaps / gaps.sum())]])
    return mu


def nearest(X, mu):
    """Return (N, K) r that assigns each point to the nearest centre."""
    closest = ((X[:, None] - mu) ** 2).sum(axis=2).argmin(axis=1)
    return np.eye(len(mu))[closest]


def until(steps, tol):
    """Yield the steps up to the first that gains less than tol."""
    before = -np.inf
    for theta, log_evidence in steps:
        yield theta, log_evidence
        if log_evidence - before < tol:
            return
        before = log_evidence


def occupied(r):
    """Return r without the columns of components that have no points."""
    return r[:, r.sum(axis=0) > 0]


def map_covariances(N_k, S, Psi, nu):
    """Return (K, D, D) MAP covariances under the inverse-Wishart prior."""
    D = S.shape[1]
    return (S + Psi) / (N_k + nu + D + 1)[:, None, None]


def n_parameters(K, D):
    """Return P, the number of free parameters with full covariances."""
    return (K - 1) + K * D + K * D * (D + 1) // 2


def bic(log_evidence, P, N):
    """Return BIC = -2 log p(X | θ) + P log N; smaller is better."""
    return -2 * log_evidence + P * np.log(N)


def aic(log_evidence, P):
    """Return AIC = -2 log p(X | θ) + 2 P; smaller is better."""
    return -2 * log_evidence + 2 * P
