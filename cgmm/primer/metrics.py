"""Learn a metric from pairs (Xing et al.) or chunklets (RCA). Chapter 12.

========  ================================================================
A         (D, D) metric, positive semi-definite: ‖h‖²_A = hᵀ A h
near      (P, D) differences of must-linked pairs
far       (P', D) differences of cannot-linked pairs
chunklet  (N,) chunklet of each point, -1 for none
h         (N_in, D) points in chunklets, minus the mean of their chunklet
C, S      (D, D) covariance within chunklets Ĉ; total covariance S_t
W, B      (D, D) linear map y = W x, and its metric B = Wᵀ W
========  ================================================================
"""

import numpy as np

# ------------------------------------ the metric of Xing et al.


def squares(A, h):
    """Return (P,) squared length ‖h‖²_A of each difference."""
    return np.einsum("pd,de,pe->p", h, A, h)


def spread(A, near, far):
    """Return Σ_far ‖h‖_A after scaling A to Σ_near ‖h‖²_A = 1."""
    # [barhillel2005, eq. 8], with objective and constraint exchanged
    return np.sqrt(squares(A, far)).sum() / np.sqrt(squares(A, near).sum())


def uphill(A, near, far):
    """Return (D, D) gradient of log spread with respect to A."""
    lengths = np.sqrt(squares(A, far))
    apart = 0.5 * (far.T / lengths) @ far / lengths.sum()
    return apart - 0.5 * near.T @ near / squares(A, near).sum()


def project(A, near):
    """Return (D, D) nearest semi-definite A, scaled to Σ_near ‖h‖²_A = 1."""
    values, vectors = np.linalg.eigh(A)
    A = vectors * np.maximum(values, 0) @ vectors.T
    return A / squares(A, near).sum()


def ascent_step(A, near, far, eta):
    """Return (D, D) A after a gradient step and a projection."""
    return project(A + eta * uphill(A, near, far), near)


# ------------------------------------ relevant components


def deviations(X, chunklet):
    """Return (N_in, D) h for all chunklets with at least two points."""
    groups = [X[chunklet == j] for j in range(chunklet.max() + 1)]
    return np.concatenate([G - G.mean(axis=0) for G in groups if len(G) > 1])


def within_covariance(X, chunklet):
    """Return (D, D) covariance within chunklets Ĉ, the mean of h hᵀ."""
    h = deviations(X, chunklet)
    # [barhillel2005, eq. 1]
    return h.T @ h / len(h)


def whitening(C):
    """Return (D, D) W = Ĉ^(-½), the linear map of RCA: W Ĉ Wᵀ = I."""
    values, vectors = np.linalg.eigh(C)
    # [barhillel2005, Alg. 1, step 3]
    return vectors / np.sqrt(values) @ vectors.T


def information(B, C):
    """Return ½ log det B after scaling B to tr(B Ĉ) = 1; best is Ĉ⁻¹."""
    # [barhillel2005, eqs. 3 and 4]
    return 0.5 * np.linalg.slogdet(B / np.trace(B @ C)).logabsdet


def within_distance(B, C):
    """Return tr(B Ĉ) after scaling B to det B = 1; best is Ĉ⁻¹."""
    # [barhillel2005, eq. 6]
    return np.trace(B @ C) / np.linalg.det(B) ** (1 / len(B))


def likelihood_criterion(B, C, N_in):
    """Return -2 log-likelihood of chunklets + constant; best is Ĉ⁻¹."""
    # [barhillel2005, eq. 11]
    return N_in * (np.trace(B @ C) - np.linalg.slogdet(B).logabsdet)


def cfld(C, S, d):
    """Return (d, D) whitened map with the largest ratio of S_t to Ĉ."""
    W = whitening(C)
    _, vectors = np.linalg.eigh(W @ S @ W)
    # [barhillel2005, eq. 14]
    return vectors.T[::-1][:d] @ W


def online_step(W, h, eta):
    """Return (D, D) W + η Σ_i (W - y_i y_iᵀ W) of a chunklet, y = W h."""
    # [barhillel2005, Algs. 3 and 4], with the bracket as in Alg. 3
    return W + eta * sum(W - np.outer(W @ x, W @ x) @ W for x in h)
