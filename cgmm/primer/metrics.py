"""Metrics learnt from pairs (Xing et al.) and from chunklets. Chapter 12.

========  ================================================================
A         (D, D) metric, positive semi-definite: ‖h‖²_A = hᵀ A h
near      (P, D) differences of must-linked pairs
far       (P', D) differences of cannot-linked pairs
chunklet  (N,) chunklet of each point, -1 for none
h         (N_in, D) points in chunklets, less the mean of their chunklet
C, S      (D, D) covariance within chunklets Ĉ; total covariance S_t
W, B      (D, D) map y = W x, and its metric B = Wᵀ W
========  ================================================================
"""

import numpy as np

# ------------------------------------ the metric of Xing et al.


def squares(A, h):
    """(P,) ‖h‖²_A of each difference."""
    return np.einsum("pd,de,pe->p", h, A, h)


def spread(A, near, far):
    """Σ_far ‖h‖_A, of the A scaled to Σ_near ‖h‖²_A = 1."""
    # [barhillel2005, eq. 8], objective and condition exchanged
    return np.sqrt(squares(A, far)).sum() / np.sqrt(squares(A, near).sum())


def uphill(A, near, far):
    """(D, D) the gradient of log spread in A."""
    lengths = np.sqrt(squares(A, far))
    apart = 0.5 * (far.T / lengths) @ far / lengths.sum()
    return apart - 0.5 * near.T @ near / squares(A, near).sum()


def project(A, near):
    """(D, D) the nearest semi-definite matrix, scaled to the condition."""
    values, vectors = np.linalg.eigh(A)
    A = vectors * np.maximum(values, 0) @ vectors.T
    return A / squares(A, near).sum()


def ascent_step(A, near, far, eta):
    """(D, D) one step uphill, and back to where the conditions hold."""
    return project(A + eta * uphill(A, near, far), near)


# ------------------------------------ relevant components


def deviations(X, chunklet):
    """(N_in, D) h, of the chunklets that have two points or more."""
    groups = [X[chunklet == j] for j in range(chunklet.max() + 1)]
    return np.concatenate([G - G.mean(axis=0) for G in groups if len(G) > 1])


def within_covariance(X, chunklet):
    """(D, D) Ĉ, the mean of h hᵀ."""
    h = deviations(X, chunklet)
    # [barhillel2005, eq. 1]
    return h.T @ h / len(h)


def whitening(C):
    """(D, D) W = Ĉ^(-½), the map of RCA: W Ĉ Wᵀ = I."""
    values, vectors = np.linalg.eigh(C)
    # [barhillel2005, Alg. 1, step 3]
    return vectors / np.sqrt(values) @ vectors.T


def information(B, C):
    """½ log det B, of the B scaled to tr(B Ĉ) = 1; best at Ĉ⁻¹."""
    # [barhillel2005, eqs. 3 and 4]
    return 0.5 * np.linalg.slogdet(B / np.trace(B @ C)).logabsdet


def within_distance(B, C):
    """tr(B Ĉ), of the B scaled to det B = 1; best at Ĉ⁻¹."""
    # [barhillel2005, eq. 6]
    return np.trace(B @ C) / np.linalg.det(B) ** (1 / len(B))


def likelihood_criterion(B, C, N_in):
    """-2 log-likelihood of the chunklets but for a constant; best at Ĉ⁻¹."""
    # [barhillel2005, eq. 11]
    return N_in * (np.trace(B @ C) - np.linalg.slogdet(B).logabsdet)


def cfld(C, S, d):
    """(d, D) the map that keeps most of S_t per Ĉ, whitened."""
    W = whitening(C)
    _, vectors = np.linalg.eigh(W @ S @ W)
    # [barhillel2005, eq. 14]
    return vectors.T[::-1][:d] @ W


def online_step(W, h, eta):
    """(D, D) W after one chunklet: + η Σ_i (W - y_i y_iᵀ W), y = W h."""
    # [barhillel2005, Algs. 3 and 4], with the bracket of 3
    return W + eta * sum(W - np.outer(W @ x, W @ x) @ W for x in h)
