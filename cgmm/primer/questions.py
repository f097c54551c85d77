"""The next question: information of an answer, and batches. Chapter 15.

======  ==================================================================
p       (P,) p(z_i = z_j) of each pair that could be asked about
α, β    how often "apart" is said of a pair that is together, and "together"
        of one that is not
h       entropy of a coin, in nats
======  ==================================================================
"""

import numpy as np
from scipy.special import entr


def coin_entropy(p):
    """h(p) in nats: how uncertain it is, yes or no."""
    return entr(p) + entr(1 - p)


def answer_information(p, alpha, beta):
    """(P,) what an answer is expected to tell of all assignments."""
    says_together = p * (1 - alpha) + (1 - p) * beta
    errs = p * coin_entropy(alpha) + (1 - p) * coin_entropy(beta)
    return coin_entropy(says_together) - errs


def choose_pairs(values, pairs, group, n):
    """Numbers of the n best pairs, no two of which touch one group."""
    taken, chosen = set(), []
    for e in np.argsort(-values, kind="stable"):
        ends = set(group[pairs[e]])
        if len(chosen) < n and not ends & taken:
            chosen.append(e)
            taken |= ends
    return np.array(chosen)


def farthest(X, known):
    """The point farthest from all that are known: the next to ask about."""
    gaps = np.linalg.norm(X[:, None] - X[known], axis=2)
    return gaps.min(axis=1).argmax()
