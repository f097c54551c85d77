"""Choose the next question by the expected information. Chapter 15.

======  ==================================================================
p       (P,) p(z_i = z_j) of each pair that could be asked about
α       probability of the answer "apart" for a pair that is together
β       probability of the answer "together" for a pair that is apart
h       entropy of a coin, in nats
======  ==================================================================
"""

import numpy as np
from scipy.special import entr


def coin_entropy(p):
    """Return h(p), the entropy in nats of an event with probability p."""
    return entr(p) + entr(1 - p)


def answer_information(p, alpha, beta):
    """Return (P,) expected information of an answer on the assignments."""
    says_together = p * (1 - alpha) + (1 - p) * beta
    errs = p * coin_entropy(alpha) + (1 - p) * coin_entropy(beta)
    return coin_entropy(says_together) - errs


def choose_pairs(values, pairs, group, n):
    """Return indices of the n best pairs whose groups are all distinct."""
    taken, chosen = set(), []
    for e in np.argsort(-values, kind="stable"):
        ends = set(group[pairs[e]])
        if len(chosen) < n and not ends & taken:
            chosen.append(e)
            taken |= ends
    return np.array(chosen)


def farthest(X, known):
    """Return the point farthest from all known points, to ask about it."""
    gaps = np.linalg.norm(X[:, None] - X[known], axis=2)
    return gaps.min(axis=1).argmax()
