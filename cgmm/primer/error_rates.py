"""Estimate the error rate of each annotator from their answers. Chapter 16.

======  ==================================================================
u       (J, K) unary log-potentials of the points, for a known θ
edges   (E, 2) pair that each answer is about; pairs may be repeated
said    (E,) answers: True for "together", False for "apart"
g       (E,) annotator of each answer, from 0 to G - 1
q       (G,) error rate of each annotator
a, b    parameters of the prior Beta(a, b) of each error rate
======  ==================================================================
"""

import numpy as np
from scipy.special import xlog1py, xlogy

from cgmm.primer.preferences import log_p_of_answers, log_weights, p_together


def p_wrong(u, edges, said, gamma):
    """Return (E,) probability that an answer is wrong, given all answers."""
    p = p_together(u, edges, log_weights(said, gamma))
    return np.where(said, 1 - p, p)


def new_rates(wrong, g, a, b):
    """Return (G,) q, the MAP estimate: share of wrong answers plus prior."""
    # Dawid and Skene (1979), eq. 2.3
    return (np.bincount(g, wrong) + a - 1) / (np.bincount(g) + a + b - 2)


def annotator_em(u, edges, said, g, q, a, b, n_iter):
    """Yield q and log p(X, answers | q) + log prior in each iteration."""
    for _ in range(n_iter):
        gamma = 1 - q[g]
        log_p = log_p_of_answers(u, edges, log_weights(said, gamma))
        yield q, log_p + (xlogy(a - 1, q) + xlog1py(b - 1, -q)).sum()
        q = new_rates(p_wrong(u, edges, said, gamma), g, a, b)
