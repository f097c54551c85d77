"""Steps of online RCA, their flow and their schedules. Chapter 12."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cgmm.metric_learning.chunklets import Groups, centre_groups
from cgmm.metric_learning.whiten import Spectrum
from cgmm.numerics import FloatArray

# ---------------------------------------------------------------------------- the online algorithm


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
    """The correction of :func:`online_step` made of infinitely many short ones: it cannot diverge.

    Parameters
    ----------
    W, deviations, eta
        As in :func:`online_step`.

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
    """Whether :func:`online_step` would shrink some direction by more than half.

    Parameters
    ----------
    W, deviations, eta
        As in :func:`online_step`.

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


def _constant(eta: float, n_points: int) -> float:
    return eta


def _decreasing(eta: float, n_points: int) -> float:
    # [barhillel2005, sect. 7]: η_0 / T, T in points, for a step of Algorithm 4 sums over points
    return eta / n_points


SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": _constant,
    "decreasing": _decreasing,
}
"""Steps of :class:`OnlineRCA` by name: from η_0 and the points seen so far to η."""

# Size of W at the start, in units of the reciprocal deviation of each column.
START = 0.1

# Distance in the metric so far beyond which no step is accurate.
FARTHEST = 1e12

# Logarithm of the growth in one step beyond which W would overflow, or its squares.
FASTEST = 300.0


def deviations_of(X: FloatArray, groups: Groups) -> list[FloatArray]:
    """Points less the mean of their chunklet, chunklets in the order of their first points."""
    rows, _ = centre_groups(X[groups.order], groups.starts, groups.sizes)
    chunklets = np.split(rows, groups.starts[1:])
    return [chunklets[j] for j in np.argsort(groups.order[groups.starts])]


def whiteness_error(W: FloatArray, within: FloatArray, spectrum: Spectrum) -> float:
    """How far variances within chunklets are from one, where there are any."""
    variances = np.linalg.eigvalsh(W @ within @ W.T)[::-1][: len(spectrum.values)]
    return float(abs(variances - 1).max())
