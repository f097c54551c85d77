"""Compare two methods by paired differences over draws, with their standard error.

Some draws (of points, labels, relations and starts) are easier than others. If two methods run on
the same draws, this cancels in the difference of their scores, so its error is often much smaller
than that of either mean. Therefore overlapping error bars of the means say little about the
difference. Chapter 4 and all later comparisons use these functions.

Letters:

====  ==========================================================================
R     number of draws
d_r   difference of the two scores in draw r
s     standard deviation of the differences, s² = Σ_r (d_r - mean)² / (R - 1)
====  ==========================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

FEWEST_DRAWS = 12


class PairedDifference(NamedTuple):
    """The difference between the scores of two methods on the same draws."""

    mean: NDArray[np.float64]
    """(...) mean over the draws of the differences."""
    standard_error: NDArray[np.float64]
    """(...) standard error of the mean, s / √R."""
    n_draws: int
    """Number of draws, R."""

    @property
    def ahead(self) -> NDArray[np.bool_]:
        """(...) True if the mean is above zero by more than two standard errors; 0 ± 0 is not."""
        return self.mean > 2 * self.standard_error

    @property
    def behind(self) -> NDArray[np.bool_]:
        """(...) True if the mean is below zero by more than two standard errors."""
        return self.mean < -2 * self.standard_error

    def __str__(self) -> str:
        means, errors = np.ravel(self.mean), np.ravel(self.standard_error)
        pairs = zip(means, errors, strict=True)
        return ", ".join(f"{mean:+.3f} ± {error:.3f}" for mean, error in pairs)


def paired_difference(scores: ArrayLike, baseline: ArrayLike) -> PairedDifference:
    """Return the mean difference of two methods on the same draws, and its standard error.

    The error covers the variation from draw to draw, but not from data set to data set. It assumes
    that draws are independent: if draws share points or labels, it is too small.

    Parameters
    ----------
    scores, baseline : (R,) or (R, ...) array_like
        Scores of both methods in each draw; row r of both comes from the same points, labels,
        relations and starts. Entries along further axes are compared separately.

    Returns
    -------
    PairedDifference
        ``mean`` and ``standard_error``, each of the shape of a row, and ``n_draws``.

    Raises
    ------
    ValueError
        If the shapes differ, a score is not finite, or there are fewer than twelve draws: a
        standard error estimated from fewer is itself unreliable.

    Examples
    --------
    >>> ours = [0.91, 0.88, 0.95, 0.90, 0.93, 0.89, 0.92, 0.94, 0.90, 0.91, 0.87, 0.96]
    >>> theirs = [0.90, 0.86, 0.92, 0.90, 0.91, 0.88, 0.92, 0.91, 0.89, 0.90, 0.86, 0.93]
    >>> lead = paired_difference(ours, theirs)
    >>> print(lead, "over", lead.n_draws, "draws; ahead:", lead.ahead)
    +0.015 ± 0.003 over 12 draws; ahead: True
    """
    rows, others = np.asarray(scores, dtype=float), np.asarray(baseline, dtype=float)
    _check(rows, others)
    d = rows - others
    error = np.std(d, axis=0, ddof=1) / np.sqrt(len(d))
    return PairedDifference(np.mean(d, axis=0), error, len(d))


def _check(scores: NDArray[np.float64], baseline: NDArray[np.float64]) -> None:
    """Raise an error if scores are not paired, not finite or not numerous enough."""
    if scores.shape != baseline.shape or scores.ndim == 0:
        raise ValueError(
            f"scores have the shape {scores.shape} and the baseline {baseline.shape}: a paired "
            "difference needs a score of either method in each draw, paired_difference(a[:, 0], "
            "a[:, 1])."
        )
    if len(scores) < FEWEST_DRAWS:
        raise ValueError(
            f"{len(scores)} draws: an error estimated from fewer than {FEWEST_DRAWS} tells little; "
            f"run both methods on the seeds of range({FEWEST_DRAWS})."
        )
    bad = np.argwhere(~(np.isfinite(scores) & np.isfinite(baseline)))
    if len(bad):
        raise ValueError(
            f"draw {bad[0][0]} has no finite score of one method: leave the draw out of both, "
            "keep = np.isfinite(scores - baseline); paired_difference(scores[keep], "
            "baseline[keep]), and say how many failed; or count a failure as a score."
        )
