"""Annotators: the error rate of each, learnt from their answers. Chapter 16.

======  ==================================================================
u       (J, K) unary log-potentials of the points, for a θ that is known
edges   (E, 2) pairs that were asked about; a pair may be there many times
said    (E,) what was said: True for "together"
g       (E,) who said it, from 0 to G - 1
q       (G,) how often each annotator errs
a, b    of the prior Beta(a, b) of each rate
======  ==================================================================
"""

import numpy as np
from scipy.special import xlog1py, xlogy

from cgmm.primer.preferences import log_p_of_answers, log_weights, p_together


def p_wrong(u, edges, said, gamma):
    """(E,) probability that an answer is wrong, given all of them."""
    p = p_together(u, edges, log_weights(said, gamma))
    return np.where(said, 1 - p, p)


def new_rates(wrong, g, a, b):
    """(G,) q: expected share of wrong answers, the prior's counted too."""
    # Dawid and Skene (1979), eq. 2.3
    return (np.bincount(g, wrong) + a - 1) / (np.bincount(g) + a + b - 2)


def annotator_em(u, edges, said, g, q, a, b, n_iter):
    """Yield q and log p(X, answers | q) + log prior, the start first."""
    for _ in range(n_iter):
        gamma = 1 - q[g]
        log_p = log_p_of_answers(u, edges, log_weights(said, gamma))
        yield q, log_p + (xlogy(a - 1, q) + xlog1py(b - 1, -q)).sum()
        q = new_rates(p_wrong(u, edges, said, gamma), g, a, b)
