"""Do probabilities mean what they say? Reliability, calibration error, temperature. Chapter 14.

Of all answers given with probability 0.8, eight in ten should be right. Whether it is so can be
asked of responsibilities (``max_k r_ik``: is the point in that class?) and of pair probabilities
(``p(z_i = z_j)``: do the two share a class?), on points whose classes were not told to the fit.

=========  ===================================================================
n          number of cases; p_i probability given to case i, t_i = 1 if it held
b, n_b     a bin of cases with similar p, and how many
p̄_b, t̄_b   mean of p_i, of t_i in the bin
T          temperature: logits l_i become l_i / T
=========  ===================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import softmax

from cgmm.numerics import BoolArray, FloatArray, IntArray, check_labels


class Reliability(NamedTuple):
    """Probabilities beside what came true, bin by bin; bins without a case are left out."""

    predicted: FloatArray
    """(B,) p̄_b, mean probability in the bin."""
    observed: FloatArray
    """(B,) t̄_b, the share that held."""
    counts: IntArray
    """(B,) n_b."""

    @property
    def standard_error(self) -> FloatArray:
        """(B,) of t̄_b, were the bin calibrated and its cases independent: √(p̄ (1 - p̄) / n_b)."""
        p = self.predicted
        return np.asarray(np.sqrt(p * (1 - p) / self.counts))

    @property
    def error(self) -> float:
        """The expected calibration error, ``Σ_b n_b / n |t̄_b - p̄_b|``."""
        gaps = np.abs(self.observed - self.predicted)
        return float(self.counts @ gaps / self.counts.sum())


def reliability(probabilities: ArrayLike, held: ArrayLike, *, n_bins: int = 10) -> Reliability:
    """Probabilities beside what came true, in bins of equal width.

    Parameters
    ----------
    probabilities : (n,) array_like
        p_i, from 0 to 1.
    held : (n,) bool array_like
        t_i, whether case i came true.
    n_bins : int, default=10
        How many bins [0, 1] is cut into; 1 is in the last one.

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
    The error of probabilities that are calibrated is not zero but about ``Σ_b √(n_b) / n``: bins
    have few cases. Compare with ``standard_error``, and take fewer bins where cases are few.
    Naeini, Cooper and Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian
    binning.

    Examples
    --------
    Said with 0.9, but right in one case of two:

    >>> found = reliability([0.9, 0.9, 0.2], [True, False, False])
    >>> found.predicted, found.observed, found.counts
    (array([0.2, 0.9]), array([0. , 0.5]), array([1, 2]))
    >>> round(found.error, 4)
    0.3333
    """
    p, t = _checked(probabilities, held)
    if n_bins < 1:
        raise ValueError(f"n_bins is {n_bins}; there must be a bin at least: n_bins=10.")
    bins, of_case = np.unique(
        np.minimum((p * n_bins).astype(np.intp), n_bins - 1), return_inverse=True
    )
    counts = np.bincount(of_case, minlength=len(bins))
    return Reliability(np.bincount(of_case, p) / counts, np.bincount(of_case, t) / counts, counts)


def fit_temperature(logits: ArrayLike, y: ArrayLike) -> float:
    """The temperature that makes probabilities as good as scaling can: least logarithmic loss.

    Parameters
    ----------
    logits : (n, K) array_like
        Log-probabilities of the classes up to a constant for each case, finite: logs of
        responsibilities, or for pairs the columns 0 and ``log_odds_together``.
    y : (n,) int array_like
        The true class of each case, 0 to K - 1; for pairs 1 if they belong together.

    Returns
    -------
    float
        T > 0; ``softmax(logits / T)`` are the new probabilities. Above 1 the old ones were too
        sure. ``inf`` if what is said is no better than chance: all classes alike.

    Raises
    ------
    ValueError
        If shapes or classes do not fit, a logit is not finite, or the class with the largest logit
        is the true one in every case, so that no temperature is low enough.

    Notes
    -----
    The loss is convex in 1 / T, and least where the true class has on average the logit that the
    probabilities expect. One number cannot change which class is the likeliest.
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks, sect. 4.2.

    Examples
    --------
    Log-odds of 4 where three in four are right, whose log-odds are log 3:

    >>> T = fit_temperature([[0.0, 4.0]] * 4, [1, 1, 1, 0])
    >>> round(4 / T, 6) == round(float(np.log(3)), 6)
    True
    """
    x, classes = _checked_logits(logits, y)
    x = x - x.max(axis=1, keepdims=True)
    true = x[np.arange(len(x)), classes]
    if not true.any():
        raise ValueError(
            "the likeliest class is the true one in all cases, so that the lower the temperature "
            "the better: there is none that is best. Give more cases, some of them in doubt."
        )

    def gain(inverse: float) -> float:
        """How far the true classes' mean logit lies above the one expected: falls with 1 / T."""
        return float((true - (softmax(inverse * x, axis=1) * x).sum(axis=1)).mean())

    if gain(0.0) <= 0:
        return float(np.inf)
    high = 1.0
    while gain(high) > 0:
        high *= 2
    return float(1 / brentq(gain, 0.0, high, xtol=1e-14, rtol=1e-12))


def _checked(probabilities: ArrayLike, held: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """As many probabilities as cases, or an error that names the first that is none."""
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


def _checked_logits(logits: ArrayLike, y: ArrayLike) -> tuple[FloatArray, IntArray]:
    """Finite logits, and a class of theirs for each case."""
    x, classes = np.asarray(logits, dtype=float), check_labels("y", y, least=0)
    if x.ndim != 2 or len(x) != len(classes) or len(x) == 0 or classes.max() >= x.shape[1]:
        raise ValueError(
            f"logits have the shape {x.shape} and y {classes.shape}; logits must be (n, K), y (n,) "
            "classes below K. For pairs: fit_temperature(np.column_stack([0 * l, l]), together)."
        )
    wrong = np.argwhere(~np.isfinite(x))
    if len(wrong):
        raise ValueError(
            f"logits{wrong[0].tolist()} is {x[tuple(wrong[0])]:g}; what is certain has no "
            "temperature. Leave such cases out: keep = np.isfinite(logits).all(axis=1)."
        )
    return x, classes
