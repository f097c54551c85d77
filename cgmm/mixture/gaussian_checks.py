"""What a Gaussian mixture asks of its data and of the start that a user gives. Chapter 3."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cgmm.mixture.gaussian import Parameters
from cgmm.mixture.pooling import POOLINGS
from cgmm.numerics import SMALLEST_RANGE, FloatArray, check_ranges

# A column must span so many of the numbers that can be represented where it lies.
FEWEST_STEPS = 1000


def check_scale(X: FloatArray, reg_covar: float) -> None:
    """Refuse data without usable squares or digits, and a reg_covar that would be all there is."""
    # A ridge gives columns of vanishing range a variance that can be represented.
    ranges = check_ranges(X, some_may_vanish=reg_covar >= SMALLEST_RANGE)
    _require_digits(X.min(axis=0), X.max(axis=0), np.sqrt(reg_covar))
    largest = ranges.max() ** 2
    if 0 < largest < reg_covar:
        raise ValueError(
            f"reg_covar={reg_covar:g} exceeds the squared range {largest:.3g} of every column: "
            "each component would be the same ball of variance reg_covar. Scale the data, or "
            "lower reg_covar."
        )


def _require_digits(lows: FloatArray, highs: FloatArray, least_deviation: float) -> None:
    """Refuse columns so far from zero that a mean is rounded by a visible part of a deviation."""
    farthest = np.maximum(-lows, highs)
    steps = np.spacing(farthest)
    blurred = (lows < highs) & (np.maximum(highs - lows, least_deviation) < FEWEST_STEPS * steps)
    if blurred.any():
        d = int(blurred.argmax())
        raise ValueError(
            f"column {d} spans {highs[d] - lows[d]:.3g} near {highs[d]:.3g}, where numbers are "
            f"{steps[d]:.2g} apart: too few digits are left for its means and deviations. Subtract "
            "a constant from the column."
        )


def check_responsibilities(responsibilities: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Responsibilities (N, K) whose rows are distributions, or an error that names a row."""
    r = np.asarray(responsibilities, dtype=np.float64)
    if r.shape != shape:
        raise ValueError(
            f"init_params has shape {r.shape}; as responsibilities it must have (N, K) = {shape}."
        )
    wrong = np.flatnonzero(~((r >= 0).all(axis=1) & (abs(r.sum(axis=1) - 1) < 1e-8)))
    if len(wrong):
        raise ValueError(
            f"row {wrong[0]} of init_params is {r[wrong[0]]}; responsibilities must be "
            "non-negative and sum to one in each row."
        )
    return r


def check_sample_weight(sample_weight: ArrayLike | None, n_points: int) -> FloatArray | None:
    """Weights (N,) of points, of which some count, or an error that names one."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_points,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; it must be ({n_points},), a weight a point."
        )
    wrong = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(wrong):
        raise ValueError(
            f"sample_weight[{wrong[0]}] is {weights[wrong[0]]}; weights must be finite and none "
            "negative. Leave a point out by a weight of zero."
        )
    if not weights.any():
        raise ValueError("every entry of sample_weight is zero; give some points a weight.")
    return weights


class Given(NamedTuple):
    """What the user gives of the start, in the order of Parameters."""

    weights: FloatArray | None
    means: FloatArray | None
    covariances: FloatArray | None


def check_given(
    weights_init: ArrayLike | None,
    means_init: ArrayLike | None,
    covariances_init: ArrayLike | None,
    covariance_type: str,
    shape: tuple[int, int],
) -> Given:
    """What the user gives of θ, if it is of (K, D) = ``shape`` and possible for the type."""
    weights = _check_array("weights_init", weights_init, shape[:1])
    if weights is not None and not (weights.min() >= 0 and abs(weights.sum() - 1) < 1e-8):
        raise ValueError(
            f"weights_init is {weights}, summing to {weights.sum():g}; weights must be "
            "non-negative and sum to one."
        )
    means = _check_array("means_init", means_init, shape)
    return Given(weights, means, _check_covariances(covariances_init, covariance_type, shape))


def _check_array(name: str, value: ArrayLike | None, *shapes: tuple[int, ...]) -> FloatArray | None:
    """The array, if it has one of the shapes and is finite; None stays None."""
    if value is None:
        return None
    array = np.array(value, dtype=np.float64)
    if array.shape not in shapes:
        wanted = " or ".join(map(str, dict.fromkeys(shapes)))
        raise ValueError(f"{name} has shape {array.shape}; it must have {wanted}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity; give finite numbers.")
    return array


def _check_covariances(
    covariances_init: ArrayLike | None, covariance_type: str, shape: tuple[int, int]
) -> FloatArray | None:
    """The covariances as θ holds them, checked to be possible for the covariance type."""
    pool, full = POOLINGS[covariance_type], (*shape, shape[1])
    given = _check_array("covariances_init", covariances_init, full, pool.shape(*shape))
    if given is None:
        return None
    if given.shape != full or covariance_type == "full":
        _require_positive(given if given.ndim == 3 or not pool.shared else given[None])
        return pool.expand(given, *shape)
    _require_positive(given)
    pooled = pool.reduce(pool.combine(np.ones(shape[0]), given))
    made = Parameters(np.ones(shape[0]), np.zeros(shape), pool.expand(pooled, *shape))
    if not np.allclose(made.full_covariances, given, rtol=1e-10, atol=0):
        raise ValueError(
            f"covariances_init is not of the type {covariance_type!r}: pooling would change it. "
            "Give it in the shape of the type, or choose another covariance_type."
        )
    return made.covariances


def _require_positive(given: FloatArray) -> None:
    """Refuse matrices (K, D, D) that are no covariances, and variances that are not positive."""
    for k, covariance in enumerate(given):
        if given.ndim == 3 and not np.allclose(covariance, covariance.T, rtol=1e-10, atol=0):
            raise ValueError(
                f"covariances_init[{k}] is not symmetric; average it with its transpose."
            )
        variances = np.linalg.eigvalsh(covariance) if given.ndim == 3 else covariance
        if np.min(variances) <= 0:
            raise ValueError(
                f"covariances_init[{k}] is not positive definite; add a multiple of the identity."
            )
