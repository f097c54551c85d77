"""A prior against collapsing covariances; how many components. Chapter 3.

======  ==================================================================
N_k, S  counts (K,) and scatter (K, D, D) of the responsibilities
Ψ, ν    inverse-Wishart prior: p(Σ) ∝ det(Σ)^(-(ν+D+1)/2) exp(-½ tr ΨΣ⁻¹)
P, N    number of free parameters; of points
======  ==================================================================
"""

import numpy as np


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
