"""A Gaussian mixture: sampling, density and responsibilities. Chapter 1.

======  ==================================================================
X, N    points x_i, the rows of X with D numbers each; number of points
K       number of components
π μ Σ   weights (K,), means (K, D), covariances (K, D, D): the fields of θ
z       (N,) assignments: the component from which each point comes
u       (N, K) log-joint, log π_k + log N(x_i | μ_k, Σ_k)
r       (N, K) responsibilities, r_ik = p(z_i = k | x_i)
======  ==================================================================
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp


class Theta(NamedTuple):
    """Parameters θ: weights (K,), means (K, D), covariances (K, D, D)."""

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    covariances: NDArray[np.float64]


def sample(theta, N, rng):
    """Draw (N, D) points; return them and (N,) their components."""
    pi, mu, Sigma = theta
    L = np.linalg.cholesky(Sigma)
    z = rng.choice(len(pi), size=N, p=pi)
    noise = rng.standard_normal((N, mu.shape[1]))
    X = np.array([mu[k] + L[k] @ e for k, e in zip(z, noise)])
    return X, z


def log_gaussian(X, mu, Sigma):
    """Return (N,) log-densities log N(x_i | μ, Σ) of one component."""
    h = X - mu
    squared_distance = (h * np.linalg.solve(Sigma, h.T).T).sum(axis=1)
    log_volume = np.linalg.slogdet(2 * np.pi * Sigma).logabsdet
    # [schmidt2016, sect. 3.2]
    return -0.5 * (squared_distance + log_volume)


def log_densities(X, theta):
    """Return (N, K) log-densities log N(x_i | μ_k, Σ_k)."""
    _, mu, Sigma = theta
    # [lu2007, eq. 2.2]
    return np.column_stack([log_gaussian(X, m, S) for m, S in zip(mu, Sigma)])


def log_joint(X, theta):
    """Return (N, K) u_ik = log π_k + log N(x_i | μ_k, Σ_k)."""
    # [lu2007, eq. 2.1]
    return np.log(theta.weights) + log_densities(X, theta)


def responsibilities(u):
    """Return (N, K) r_ik = p(z_i = k | x_i) and log p(X | θ) from u."""
    log_p = logsumexp(u, axis=1, keepdims=True)
    # [green, "Expectation step"], [schmidt2016, eq. ***]
    return np.exp(u - log_p), log_p.sum()
