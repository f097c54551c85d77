"""Statistics that add up: over blocks of points, and over batches that come one after the other.

EM in steps of a batch (Cappé and Moulines, 2009) replaces the statistics of all points by an
average that forgets old batches slowly. ``partial_fit`` takes these steps. Behind large data.

=====  ====================================================================
s_t    statistics per point after step t, e.g. counts and moments
γ_t    how far step t goes towards its own batch, t^-α, e.g. 0.66 for t = 2
=====  ====================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple


def add_statistics(one: Any, other: Any) -> Any:
    """Return the sum of two sets of statistics: arrays, or tuples of them to any depth."""
    if isinstance(one, tuple):
        return tuple(map(add_statistics, one, other))
    return None if one is None else one + other


def scale_statistics(sums: Any, factor: float) -> Any:
    """Return statistics, to any depth, times a factor."""
    if isinstance(sums, tuple):
        return tuple(scale_statistics(part, factor) for part in sums)
    return factor * sums


class Average(NamedTuple):
    """The batches so far."""

    about: Any
    """θ whose means the moments are about: that of the first step."""
    mean: Any
    """s_t."""
    n_steps: int
    """t."""
    n_points: float
    """How many points the batches had."""


def step(
    before: Average | None, about: Any, sums: Any, n_points: float, exponent: float
) -> Average:
    """Return the average after one more batch, whose statistics are ``sums``."""
    mean = scale_statistics(sums, 1 / n_points)
    if before is None:
        return Average(about, mean, 1, n_points)
    n_steps = before.n_steps + 1
    # Cappé and Moulines (2009), eq. 12: s_t = (1 - γ_t) s_{t-1} + γ_t s(batch)
    gamma = n_steps**-exponent
    mean = add_statistics(scale_statistics(before.mean, 1 - gamma), scale_statistics(mean, gamma))
    return Average(before.about, mean, n_steps, before.n_points + n_points)
