"""Calibration of probabilities: reliability diagram and calibration error.

Of all predictions made with probability 0.8, eight in ten should be right. Chapter 14 examines this
for responsibilities (``max_k r_ik``: is the point in that class?) and pair probabilities
(``p(z_i = z_j)``: do the two share a class?), on points whose classes the fit did not know.

=========  ===================================================================
n          number of cases; p_i probability given to case i, t_i = 1 if it came true
b, n_b     a bin of cases with similar p, and the number of cases in it
p̄_b, t̄_b   mean of p_i, of t_i in the bin
=========  ===================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cgmm.numerics import BoolArray, FloatArray, IntArray


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
        If there is no case, a p_i is no probability, a t_i neither true nor false, or their
        numbers differ.

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
        raise ValueError(f"n_bins is {n_bins}; there must be a bin at least: n_bins=10.")
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
            f"probabilities have the shape {p.shape} and held {t.shape}; they must be (n,) both, "
            "n at least 1. Of responsibilities: reliability(r.max(axis=1), r.argmax(axis=1) == y)."
        )
    wrong = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if len(wrong):
        raise ValueError(f"probabilities[{wrong[0]}] is {p[wrong[0]]:g}, which is none.")
    if not np.isin(t, (0, 1)).all():
        raise ValueError("held must be true or false in each case: held=(predicted == y).")
    return p, t.astype(bool)
