"""Sums of sufficient statistics over blocks, and their running average over batches.

Stepwise EM (Cappé and Moulines, 2009) replaces the statistics of all points by a running average,
in which the influence of old batches slowly decreases. ``partial_fit`` uses these functions. The
book's page on large data explains them.

=====  ====================================================================
s_t    statistics per point after step t, e.g. counts and moments
γ_t    step size t^-α, the weight of the batch in step t, e.g. 0.66 for t = 2
=====  ====================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple


def add_statistics(one: Any, other: Any) -> Any:
    """Add two sets of statistics, which are arrays or nested tuples of arrays."""
    if isinstance(one, tuple):
        return tuple(map(add_statistics, one, other))
    return None if one is None else one + other


def scale_statistics(sums: Any, factor: float) -> Any:
    """Multiply statistics, an array or nested tuples of arrays, by a factor."""
    if isinstance(sums, tuple):
        return tuple(scale_statistics(part, factor) for part in sums)
    return factor * sums


class Average(NamedTuple):
    """Running average of the statistics of all batches so far."""

    about: Any
    """θ of the first step; all moments are about its means."""
    mean: Any
    """Average statistics per point, s_t."""
    n_steps: int
    """Number of steps, t."""
    n_points: float
    """Total number of points in all batches."""


def add_batch(
    average: Average | None, reference: Any, sums: Any, n_points: float, exponent: float
) -> Average:
    """Update the average by the next batch, whose ``sums`` are moments about ``reference``."""
    mean = scale_statistics(sums, 1 / n_points)
    if average is None:
        return Average(reference, mean, 1, n_points)
    n_steps = average.n_steps + 1
    # Cappé and Moulines (2009), eq. 12: s_t = (1 - γ_t) s_{t-1} + γ_t s(batch)
    gamma = n_steps**-exponent
    mean = add_statistics(scale_statistics(average.mean, 1 - gamma), scale_statistics(mean, gamma))
    return Average(average.about, mean, n_steps, average.n_points + n_points)
