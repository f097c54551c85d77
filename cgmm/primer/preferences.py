"""Relations that may be wrong: certainty and support. Chapters 9 and 14.

======  ==================================================================
γ       certainty: probability that a relation is right
w       (E,) log-weights: logit γ for "together", -logit γ for "apart"
u       (J, K) unary log-potentials; edges (E, 2) pairs of nodes
======  ==================================================================
"""

import numpy as np
from scipy.special import expit, logit

from cgmm.primer.networks import derivative, log_z


def log_weights(are_together, gamma):
    """Return (E,) w, logit γ with the sign of each relation."""
    # [lu2007, eqs. 2.15 and 5.1]
    return np.where(are_together, 1, -1) * logit(gamma)


def certainty(w):
    """Return (E,) certainty γ of the relations with log-weights w."""
    return expit(np.abs(w))


def log_p_of_answers(u, edges, w):
    """Return log p(X, answers | θ): relations are data, not a condition."""
    return log_z(u, edges, w) - np.logaddexp(0, w).sum()


def p_together(u, edges, w):
    """Return (E,) p(z_a = z_b) = ∂ log Z / ∂ w_e for finite w."""
    return derivative(lambda v: log_z(u, edges, v), w)


def support(u, edges, w):
    """Return (E,) log-odds that a relation is right, without its own w."""
    return np.sign(w) * (logit(p_together(u, edges, w)) - w)
