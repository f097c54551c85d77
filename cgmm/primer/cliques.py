"""One teacher: nodes of which no two are in one class. Chapter 7.

======  ==================================================================
u       (J, K) unary log-potentials of mutually cannot-linked nodes
S       a set of classes that are taken
f       from S to the log of the sum over all seatings of the nodes so far
======  ==================================================================
"""

from collections import defaultdict

from scipy.special import logsumexp


def clique_log_z(u):
    """Log Z of a clique of cannot-links, by which classes are taken."""
    f = {frozenset(): 0.0}
    for u_j in u:
        ways = defaultdict(list)
        for S, log_sum in f.items():
            for k in set(range(len(u_j))) - S:
                ways[S | {k}].append(log_sum + u_j[k])
        f = {S: logsumexp(logs) for S, logs in ways.items()}
    # [shental2003, eq. 10]
    return logsumexp(list(f.values()))
