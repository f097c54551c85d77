"""Errors of means over realisations. Chapter 13.

======  ==================================================================
v       (R,) value of a method in each realisation
d       (R,) difference of two methods that met the same realisations
n       realisations that somebody could afford
======  ==================================================================
"""

import numpy as np
from scipy.special import ndtr, ndtri


def mean_and_error(v):
    """The mean of v, and its standard error s / √R."""
    return v.mean(), v.std(ddof=1) / np.sqrt(len(v))


def wrong_order(d, n):
    """Probability that a mean of n differences has the wrong sign."""
    return ndtr(-np.sqrt(n) * abs(d.mean()) / d.std(ddof=1))


def realisations_needed(d, alpha):
    """The fewest n whose mean has the wrong sign with probability alpha."""
    return np.ceil((ndtri(alpha) * d.std(ddof=1) / d.mean()) ** 2)
