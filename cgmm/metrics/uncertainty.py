"""Uncertainty: calibration of probabilities, and errors of differences between methods.

Of all predictions made with probability 0.8, eight in ten should be right. Chapter 14 examines this
for responsibilities (``max_k r_ik``: is the point in the most probable class?) and pair
probabilities (``p(z_i = z_j)``: do the two points share a class?), on points whose classes the fit
did not know.

Some draws (of points, labels, relations and starts) are easier than others. If two methods run on
the same draws, the effect of the draw cancels in the difference of their scores, so the error of
this difference is often much smaller than that of either mean. Therefore overlapping error bars of
the means say little about the difference. Chapter 4 and all later comparisons use these functions.

=========  ===================================================================
n          number of cases; p_i probability given to case i, t_i = 1 if it came true
b, n_b     a bin of cases with similar p, and the number of cases in it
p̄_b, t̄_b   mean of p_i, of t_i in the bin
R          number of draws
d_r        difference of the two scores in draw r
s          standard deviation of the differences, s² = Σ_r (d_r - mean)² / (R - 1)
=========  ===================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cgmm.numerics import BoolArray, FloatArray, IntArray

# ------------------------------------------------------------ calibration


class Reliability(NamedTuple):
    """Mean probabilities and observed frequencies in bins, without empty bins."""

    predicted: FloatArray
    """(B,) p̄_b, mean probability in the bin."""
    observed: FloatArray
    """(B,) t̄_b, the share of cases that came true."""
    counts: IntArray
    """(B,) n_b, the number of cases in the bin."""

    @property
    def standard_error(self) -> FloatArray:
        """(B,) √(p̄ (1 - p̄) / n_b): error of t̄_b in a calibrated bin of independent cases."""
        p = self.predicted
        return np.asarray(np.sqrt(p * (1 - p) / self.counts))

    @property
    def error(self) -> float:
        """Expected calibration error, ``Σ_b n_b / n |t̄_b - p̄_b|``."""
        gaps = np.abs(self.observed - self.predicted)
        return float(self.counts @ gaps / self.counts.sum())


def reliability(probabilities: ArrayLike, held: ArrayLike, *, n_bins: int = 10) -> Reliability:
    """Compare probabilities with observed frequencies, in bins of equal width.

    Parameters
    ----------
    probabilities : (n,) array_like
        p_i, from 0 to 1.
    held : (n,) bool array_like
        t_i, whether case i came true.
    n_bins : int, default=10
        Number of bins into which [0, 1] is cut; 1 is in the last one.

    Returns
    -------
    Reliability
        Means and counts of the bins that have cases; ``error`` is the expected calibration error.

    Raises
    ------
    ValueError
        If there are no cases, if a p_i is no probability, if a t_i is neither true nor false, or if
        their numbers differ.

    Notes
    -----
    Even calibrated probabilities have an error of about ``Σ_b √(n_b) / n``, because each bin has a
    finite number of cases. Compare with ``standard_error``, and use fewer bins for fewer cases.
    Naeini, Cooper and Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian
    binning.

    Examples
    --------
    Predictions with probability 0.9 are right in one case of two:

    >>> found = reliability([0.9, 0.9, 0.2], [True, False, False])
    >>> found.predicted, found.observed, found.counts
    (array([0.2, 0.9]), array([0. , 0.5]), array([1, 2]))
    >>> round(found.error, 4)
    0.3333
    """
    p, t = _check_cases(probabilities, held)
    if n_bins < 1:
        raise ValueError(f"n_bins is {n_bins}; there must be at least one bin: n_bins=10.")
    bins, of_case = np.unique(
        np.minimum((p * n_bins).astype(np.intp), n_bins - 1), return_inverse=True
    )
    counts = np.bincount(of_case, minlength=len(bins))
    return Reliability(np.bincount(of_case, p) / counts, np.bincount(of_case, t) / counts, counts)


def _check_cases(probabilities: ArrayLike, held: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Return probabilities and outcomes as arrays, or raise an error that names an invalid one."""
    p, t = np.asarray(probabilities, dtype=float), np.asarray(held)
    if p.ndim != 1 or p.shape != t.shape or len(p) == 0:
        raise ValueError(
            f"probabilities have the shape {p.shape} and held {t.shape}; both must be (n,) "
            "with n ≥ 1. For responsibilities: reliability(r.max(axis=1), r.argmax(axis=1) == y)."
        )
    wrong = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if len(wrong):
        raise ValueError(f"probabilities[{wrong[0]}] is {p[wrong[0]]:g}, not a probability.")
    if not np.isin(t, (0, 1)).all():
        raise ValueError("held must be true or false in each case: held=(predicted == y).")
    return p, t.astype(bool)


# ------------------------------------------------------------ paired differences


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
        """(...) True if the mean exceeds zero by more than two standard errors; False for 0 ± 0."""
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
        If the shapes differ, a score is not finite, or there are fewer than twelve draws, from
        which a standard error cannot be estimated reliably.

    Examples
    --------
    >>> ours = [0.91, 0.88, 0.95, 0.90, 0.93, 0.89, 0.92, 0.94, 0.90, 0.91, 0.87, 0.96]
    >>> theirs = [0.90, 0.86, 0.92, 0.90, 0.91, 0.88, 0.92, 0.91, 0.89, 0.90, 0.86, 0.93]
    >>> lead = paired_difference(ours, theirs)
    >>> print(lead, "over", lead.n_draws, "draws; ahead:", lead.ahead)
    +0.015 ± 0.003 over 12 draws; ahead: True
    """
    rows, others = np.asarray(scores, dtype=float), np.asarray(baseline, dtype=float)
    _check_paired_scores(rows, others)
    d = rows - others
    error = np.std(d, axis=0, ddof=1) / np.sqrt(len(d))
    return PairedDifference(np.mean(d, axis=0), error, len(d))


def _check_paired_scores(scores: NDArray[np.float64], baseline: NDArray[np.float64]) -> None:
    """Raise an error if scores are not paired, not finite or not numerous enough."""
    if scores.shape != baseline.shape or scores.ndim == 0:
        raise ValueError(
            f"scores have the shape {scores.shape} and the baseline {baseline.shape}: a paired "
            "difference needs a score of either method in each draw, paired_difference(a[:, 0], "
            "a[:, 1])."
        )
    if len(scores) < FEWEST_DRAWS:
        raise ValueError(
            f"{len(scores)} draws: an error from fewer than {FEWEST_DRAWS} draws is unreliable; "
            f"run both methods on the seeds of range({FEWEST_DRAWS})."
        )
    bad = np.argwhere(~(np.isfinite(scores) & np.isfinite(baseline)))
    if len(bad):
        raise ValueError(
            f"draw {bad[0][0]} has no finite score of one method: leave the draw out of both, "
            "keep = np.isfinite(scores - baseline); paired_difference(scores[keep], "
            "baseline[keep]), and say how many failed; or count a failure as a score."
        )
