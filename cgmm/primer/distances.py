"""The metric of Xing et al., by projected ascent. Chapter 12.

======  ==================================================================
A       (D, D) metric, positive semi-definite: ‖h‖²_A = hᵀ A h
near    (P, D) differences of must-linked pairs
far     (P', D) differences of cannot-linked pairs
======  ==================================================================
"""

import numpy as np


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
