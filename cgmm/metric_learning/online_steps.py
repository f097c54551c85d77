"""Steps of online relevant component analysis: one chunklet at a time. Chapter 12.

A plain step as the paper has it, the flow that it discretises, which cannot diverge, and when the
flow must stand in for the step. Sizes of steps follow a schedule. At the end stands what is refused
because W would grow beyond all numbers.

=======  ======================================================================================
W        the map so far, K by D
h, y     deviation of a point from the mean of its chunklet, and its image y = W h
n        points in a chunklet
η, T     size of a step; points in chunklets seen so far
=======  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cgmm.metric_learning.whiten import TOL
from cgmm.numerics import FloatArray

# Distance in the metric so far beyond which no step is accurate.
FARTHEST = 1e12

# Logarithm of the growth in one step beyond which W would overflow, or its squares.
FASTEST = 300.0

SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": lambda eta, n_points: eta,
    # [barhillel2005, sect. 7]: η_0 / T, T in points, for a step of Algorithm 4 sums over points
    "decreasing": lambda eta, n_points: eta / n_points,
}
"""Sizes of steps by name: from η_0 and the number of points seen so far to η."""


def online_step(W: FloatArray, deviations: FloatArray, eta: float) -> FloatArray:
    """One chunklet's correction of the online map.

    Parameters
    ----------
    W : (K, D) array
        The map so far.
    deviations : (n, D) array
        h_i: the points of a chunklet less their mean; for Algorithm 3 the one row x_1 - x_2.
    eta : float
        η.

    Returns
    -------
    (K, D) array
        W + η Σ_i (W - y_i y_iᵗ W) with y_i = W h_i.

    Notes
    -----
    [barhillel2005, Algs. 3 and 4]. Algorithm 4 prints Σ (W - y yᵗ) W, which does not become
    Algorithm 3 for one row, and whose only invertible fixed point is the inverse of the covariance
    instead of the root of that, and is unstable: W fades away, wholly or in part.

    Half the difference of a pair is the deviation from its mean, and Algorithm 4 has two of them:
    on pairs it converges to twice the W of Algorithm 3.

    Examples
    --------
    >>> online_step(np.eye(2), np.array([[2.0, 0.0]]), 0.1)
    array([[0.7, 0. ],
           [0. , 1.1]])
    """
    Y = deviations @ W.T
    # [barhillel2005, Alg. 4] with the bracket of Alg. 3
    return W + eta * (len(Y) * W - Y.T @ (Y @ W))


def flow_step(W: FloatArray, deviations: FloatArray, eta: float) -> FloatArray:
    """The correction of one chunklet made of infinitely many short ones: it cannot diverge.

    Parameters
    ----------
    W, deviations, eta
        As in :func:`~cgmm.metric_learning.online_step`.

    Returns
    -------
    (K, D) array
        W(η), where dW/dt = Σ_i (W - y_i y_iᵗ W) with y_i = W h_i, from W(0) = W.

    Notes
    -----
    Along an eigenvector of Σ y yᵗ, of eigenvalue λ, the differential equation is that of logistic
    growth, and W is multiplied by exp(nη) / sqrt(1 + (exp(2nη) - 1) λ / n), which is
    1 + η (n - λ) for small η. However far a chunklet is, afterwards it is seen at a squared
    distance of no more than n / (1 - exp(-2nη)), about 1 / (2η).

    Examples
    --------
    >>> flow_step(np.eye(1), np.array([[9.0]]), 0.1).round(3)
    array([[0.254]])
    >>> online_step(np.eye(1), np.array([[9.0]]), 0.1).round(3)
    array([[-7.]])
    """
    n = len(deviations)
    _, lengths, directions = np.linalg.svd(deviations @ W.T, full_matrices=False)
    growth, decay = np.exp(n * eta), -np.expm1(-2 * n * eta)
    factors = 1 / np.sqrt(1 - decay + decay * lengths**2 / n)
    seen = directions @ W
    return growth * (W - directions.T @ seen) + (directions.T * factors) @ seen


def overshoots(W: FloatArray, deviations: FloatArray, eta: float) -> bool:
    """Return whether the plain step would shrink some direction by more than half.

    Parameters
    ----------
    W, deviations, eta
        As in :func:`~cgmm.metric_learning.online_step`.

    Returns
    -------
    bool
        η (λ - n) > ½ for the largest eigenvalue λ of Σ y yᵗ.

    Raises
    ------
    ValueError
        If a deviation is so far that rounding would hide what the step does.

    Examples
    --------
    >>> [overshoots(np.eye(1), np.array([[3.0]]), eta) for eta in (0.01, 0.1)]
    [False, True]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        Y = deviations @ W.T
        power = np.sum(Y * Y)
    if not power < FARTHEST**2:
        raise ValueError(
            f"a deviation of {abs(deviations).max():.3g} from a chunklet's mean is more than "
            f"{FARTHEST:g} in the metric learnt so far, beyond what rounding lets a step correct. "
            "Remove the outlier; if the units have changed, start anew."
        )
    # The sum of the eigenvalues bounds the largest, and settles nearly every case.
    if eta * (power - len(Y)) <= 0.5:
        return False
    gram = Y @ Y.T if len(Y) < Y.shape[1] else Y.T @ Y
    return bool(eta * (np.linalg.eigvalsh(gram)[-1] - len(Y)) > 0.5)


def whiteness_error(W: FloatArray, within: FloatArray, rank: int) -> float:
    """Return how far variances within chunklets are from one, in directions with any variance."""
    variances = np.linalg.eigvalsh(W @ within @ W.T)[::-1][:rank]
    return float(abs(variances - 1).max())


# ---------------------------------------------------------------------------- growth


def require_bounded(W: FloatArray, scale: FloatArray) -> None:
    """W may be as large as a whitening at the limit of ``TOL``, over deviations at first sight."""
    with np.errstate(over="ignore"):
        heights = np.linalg.norm(W * scale, axis=0)
    if not heights.max() < TOL**-0.5:
        raise ValueError(
            f"W has grown to {heights.max():.3g} times the reciprocal deviation of column "
            f"{heights.argmax()}: some combination of columns does not vary within chunklets, or "
            "does so much less than at first. Drop columns that depend on others, reduce the data "
            "by RCA or PCA, or start anew."
        )


def require_finite_growth(eta: float, n_points: int) -> None:
    """Where a chunklet does not vary, W grows by exp(eta n), or 1 + eta n, and nothing holds it."""
    if not eta * n_points <= FASTEST:
        raise ValueError(
            f"a step of {eta:.3g} times the {n_points} points of a chunklet lets W grow by exp("
            f"{eta * n_points:.3g}), beyond all numbers, where the chunklet does not vary. Lower "
            "eta."
        )


def require_finite_metric(W: FloatArray) -> None:
    """Refuse a map whose squares, the entries of the metric, overflow."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.square(W).sum())
    if not finite:
        raise ValueError(
            f"W has grown to {abs(W).max():.3g}: its squares, and with them the metric, overflow. "
            "Lower eta, or multiply the data by a constant."
        )
