"""Steps of online relevant component analysis, one chunklet at a time.

``OnlineRCA`` takes the plain step of the paper, or, if that would overshoot, the flow that the step
discretises and that cannot diverge. A schedule gives the sizes of steps. The checks at the end
raise an error before W overflows. Chapter 12 explains the steps.

=======  ======================================================================================
W        the map so far, K by D
h, y     deviation of a point from the mean of its chunklet, and its image y = W h
n        points in a chunklet
η, T     size of a step; number of points in chunklets so far
=======  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cgmm.metric_learning.whiten import TOL
from cgmm.numerics import FloatArray

# No step is accurate beyond this distance, measured in the metric learnt so far.
FARTHEST = 1e12

# If the logarithm of the growth in one step exceeds this, W or its squares overflow.
FASTEST = 300.0

SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": lambda eta, n_points: eta,
    # [barhillel2005, sect. 7]: η_0 / T, where T counts points because a step sums over points
    "decreasing": lambda eta, n_points: eta / n_points,
}
"""Functions by name that compute the step size η from η_0 and the number of points so far."""


def online_step(W: FloatArray, deviations: FloatArray, eta: float) -> FloatArray:
    """Correct the online map by one chunklet.

    Parameters
    ----------
    W : (K, D) array
        The map so far.
    deviations : (n, D) array
        h_i: the points of a chunklet minus their mean; for Algorithm 3 the one row x_1 - x_2.
    eta : float
        η.

    Returns
    -------
    (K, D) array
        W + η Σ_i (W - y_i y_iᵗ W) with y_i = W h_i.

    Notes
    -----
    [barhillel2005, Algs. 3 and 4]. The paper prints Σ (W - y yᵗ) W in Algorithm 4. This does not
    reduce to Algorithm 3 for one row. Its only invertible fixed point is the inverse of the
    covariance instead of the root of the inverse, and it is unstable: W vanishes, wholly or in
    part.

    The deviation of a point from the mean of its pair is half the difference, and Algorithm 4 sums
    over two such deviations: on pairs it converges to twice the W of Algorithm 3.

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
    """Correct the online map by infinitely many short steps, which cannot diverge.

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
    1 + η (n - λ) for small η. However far the points of a chunklet were, the sum of their squared
    distances along any direction is at most n / (1 - exp(-2nη)), about 1 / (2η), afterwards.

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
    varying = directions @ W
    return growth * (W - directions.T @ varying) + (directions.T * factors) @ varying


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
        If a deviation is so large that rounding would hide the effect of the step.

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
    # The sum of the eigenvalues bounds the largest one, and decides nearly every case cheaply.
    if eta * (power - len(Y)) <= 0.5:
        return False
    gram = Y @ Y.T if len(Y) < Y.shape[1] else Y.T @ Y
    return bool(eta * (np.linalg.eigvalsh(gram)[-1] - len(Y)) > 0.5)


def whiteness_error(W: FloatArray, within: FloatArray, rank: int) -> float:
    """Return the largest deviation from one of the variances within chunklets."""
    variances = np.linalg.eigvalsh(W @ within @ W.T)[::-1][:rank]
    return float(abs(variances - 1).max())


# ---------------------------------------------------------------------------- growth


def require_bounded(W: FloatArray, scale: FloatArray) -> None:
    """Raise an error if W is larger than a whitening at the limit of ``TOL`` could be."""
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
    """Raise an error if W would overflow where the chunklet does not vary: it grows by exp(η n)."""
    if not eta * n_points <= FASTEST:
        raise ValueError(
            f"a step of {eta:.3g} times the {n_points} points of a chunklet lets W grow by exp("
            f"{eta * n_points:.3g}), beyond all numbers, where the chunklet does not vary. Lower "
            "eta."
        )


def require_finite_metric(W: FloatArray) -> None:
    """Raise an error if the squares of W, the entries of the metric, overflow."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.square(W).sum())
    if not finite:
        raise ValueError(
            f"W has grown to {abs(W).max():.3g}: its squares, and with them the metric, overflow. "
            "Lower eta, or multiply the data by a constant."
        )
