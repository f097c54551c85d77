"""The Markov network over assignments, exactly, for any graph. Chapter 7.

======  ==================================================================
J, K    number of nodes, and of states of each (at least two)
u       (J, K) unary log-potentials
edges   (E, 2) pairs of nodes a, b
w       (E,) log-weight of z_a = z_b; -inf for a cannot-link
table   logs of a factor, with an axis for each node of the network: K
        long if the factor depends on the node, else 1, so that factors
        are multiplied by adding tables
clique  the table from which a node was summed out
======  ==================================================================
"""

import numpy as np
from scipy.special import logsumexp


def log_tables(u, edges, w):
    """One table for each node and edge; Z = Σ_z exp(their sum at z)."""
    J, K = u.shape

    def on_axes(nodes, values):
        return values.reshape(np.where(np.isin(np.arange(J), nodes), K, 1))

    same = np.eye(K, dtype=bool)
    # [lu2007, eqs. 2.7 and 2.10]
    pairs = [on_axes(e, np.where(same, x, 0.0)) for e, x in zip(edges, w)]
    return [on_axes(j, u[j]) for j in range(J)] + pairs


def eliminate(u, edges, w, total):
    """Take out one node after the other by `total`: a number, the cliques."""
    tables, cliques = log_tables(u, edges, w), []
    for j in range(len(u)):
        clique = sum(t for t in tables if t.shape[j] > 1)
        tables = [t for t in tables if t.shape[j] == 1]
        tables.append(total(clique, axis=j, keepdims=True))
        cliques.append(clique)
    return sum(tables).item(), cliques


def log_z(u, edges, w):
    """Log of the normaliser, log Z = log Σ_z weight(z)."""
    # [shental2003, eqs. 9 and 10], [lu2007, eq. 2.12]
    return eliminate(u, edges, w, logsumexp)[0]


def derivative(f, x):
    """∂f/∂x by central differences: axes of x first, then those of f."""
    h = 1e-5
    steps = h * np.eye(x.size).reshape(x.size, *x.shape)
    slopes = [(f(x + d) - f(x - d)) / (2 * h) for d in steps]
    return np.reshape(slopes, x.shape + np.shape(slopes[0]))


def marginals_by_slope(u, edges, w):
    """(J, K) p(z_j = k) = ∂ log Z / ∂ u_jk: the E-step is a derivative."""
    return derivative(lambda v: log_z(v, edges, w), u)


def marginals(u, edges, w):
    """(J, K) p(z_j = k) by a sweep back: p(z_j, later) from p(later)."""
    _, cliques = eliminate(u, edges, w, logsumexp)
    joint, q = {}, np.empty(u.shape)
    for j in reversed(range(len(u))):
        p = given_later(cliques[j], j)
        inside = np.array(p.shape) > 1
        later = np.flatnonzero(inside[j + 1 :]) + j + 1
        if len(later):
            gone = tuple(np.flatnonzero(~inside))
            p = p * joint[later[0]].sum(axis=gone, keepdims=True)
        others = tuple(np.delete(np.arange(len(u)), j))
        # [shental2003, eq. 9]
        joint[j], q[j] = p, p.sum(axis=others)
    return q


def given_later(clique, j):
    """The table of p(z_j | later neighbours); 0 where these are forbidden."""
    message = logsumexp(clique, axis=j, keepdims=True)
    return np.exp(clique - np.where(message > -np.inf, message, 0.0))


def most_probable(u, edges, w):
    """(J,) the best joint assignment: max in place of sum, then look back."""
    _, cliques = eliminate(u, edges, w, np.max)
    z = np.zeros(len(u), dtype=int)
    for j in reversed(range(len(u))):
        here = list(np.minimum(z, np.array(cliques[j].shape) - 1))
        here[j] = slice(None)
        z[j] = cliques[j][tuple(here)].argmax()
    return z


def spanning_tree(J, edges, w):
    """Numbers of the edges kept: strongest first, none closing a cycle."""
    part, kept = np.arange(J), []
    # [shental2003, sect. 2.2]
    for e in np.argsort(-np.abs(w), kind="stable"):
        a, b = part[edges[e]]
        if a != b:
            kept.append(e)
            part[part == b] = a
    return sorted(kept)
