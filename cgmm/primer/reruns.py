"""Standard errors of means over realisations. Chapter 13.

======  ==================================================================
v       (R,) score of a method in each of R realisations
d       (R,) differences of two methods on the same realisations
n       number of realisations in a planned experiment
======  ==================================================================
"""

import numpy as np
from scipy.special import ndtr, ndtri


def mean_and_error(v):
    """Return the mean of v and its standard error s / √R."""
    return v.mean(), v.std(ddof=1) / np.sqrt(len(v))


def wrong_order(d, n):
    """Return the probability that a mean of n values has the wrong sign."""
    return ndtr(-np.sqrt(n) * abs(d.mean()) / d.std(ddof=1))


def realisations_needed(d, alpha):
    """Return the least n for which that probability is at most alpha."""
    return np.ceil((ndtri(alpha) * d.std(ddof=1) / d.mean()) ** 2)
