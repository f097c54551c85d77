"""Exact inference in a Markov network over assignments. Chapter 7.

======  ==================================================================
J, K    number of nodes, and number of states of each node (at least two)
u       (J, K) unary log-potentials
edges   (E, 2) pairs of nodes a, b
w       (E,) log-weight of z_a = z_b; -inf for a cannot-link
factor  pair of node numbers and an array of logs with one axis per node
order   the nodes in the order of their elimination
near    dict from each remaining node to the set of its neighbours
clique  of node j: the factor from which j is eliminated; its first axis
        is j, the other axes, S, are neighbours that are eliminated later
S       in clique_log_z: the set of classes used by the nodes so far
f       dict from S to the log of the sum over all assignments so far
part    (J,) group of each node: nodes that cannot-links connect
parity  (J,) 0 if z_j is the state of its group, 1 if the opposite state
======  ==================================================================
"""

from collections import defaultdict
from itertools import combinations

import numpy as np
from scipy.special import logsumexp

# ------------------------------------ elimination


def factors(u, edges, w):
    """List the factors of nodes and edges; Z = Σ_z exp(their sum at z)."""
    same = np.eye(u.shape[1], dtype=bool)
    # [lu2007, eqs. 2.7 and 2.10]
    pairs = [((a, b), np.where(same, x, 0.0)) for (a, b), x in zip(edges, w)]
    return [((j,), u[j]) for j in range(len(u))] + pairs


def multiply(some, order):
    """Multiply factors; return their nodes in order, and summed logs."""
    named = {v for names, _ in some for v in names}
    nodes, logs = [v for v in order if v in named], 0.0
    for names, table in some:
        # The axis of v has length one if the factor does not depend on v.
        shape = [len(table) if v in names else 1 for v in nodes]
        logs = logs + table.reshape(shape)
    return nodes, logs


def eliminate(u, edges, w, order, total):
    """Eliminate the nodes in order; return log Z and all cliques."""
    left, cliques = factors(u, edges, w), {}
    for j in order:
        touching = [f for f in left if j in f[0]]
        left = [f for f in left if j not in f[0]]
        nodes, clique = cliques[j] = multiply(touching, order)
        left.append((nodes[1:], total(clique, axis=0)))
    return sum(constant for _, constant in left), cliques


def log_z(u, edges, w):
    """Return the log-normaliser, log Z = log Σ_z weight(z)."""
    order = min_fill(len(u), edges)
    # [shental2003, eqs. 9 and 10], [lu2007, eq. 2.12]
    return eliminate(u, edges, w, order, np.logaddexp.reduce)[0]


def derivative(f, x):
    """Return ∂f/∂x by central differences; axes of x precede those of f."""
    h = 1e-5
    steps = h * np.eye(x.size).reshape(x.size, *x.shape)
    slopes = [(f(x + d) - f(x - d)) / (2 * h) for d in steps]
    return np.reshape(slopes, x.shape + np.shape(slopes[0]))


def marginals_by_slope(u, edges, w):
    """Return (J, K) p(z_j = k) as the derivative ∂ log Z / ∂ u_jk."""
    return derivative(lambda v: log_z(v, edges, w), u)


def marginals(u, edges, w):
    """Return (J, K) marginals by a backward pass: p(j, S) = p(j | S) p(S)."""
    order, q, joint = min_fill(len(u), edges), np.empty(u.shape), {}
    _, cliques = eliminate(u, edges, w, order, np.logaddexp.reduce)
    for j in reversed(order):
        nodes, clique = cliques[j]
        p = given_later(clique)
        if S := nodes[1:]:
            # The clique of the first node of S contains all nodes of S.
            p = p * marginal(S, *joint[S[0]])
        # [shental2003, eq. 9]
        joint[j], q[j] = (nodes, p), marginal([j], nodes, p)
    return q


def given_later(clique):
    """Return the table p(j | S) with axes j, S; 0 if S is impossible."""
    message = np.logaddexp.reduce(clique, axis=0)
    return np.exp(clique - np.where(message > -np.inf, message, 0.0))


def marginal(kept, nodes, p):
    """Return the marginal distribution of the nodes in kept."""
    return p.sum(axis=tuple(i for i, v in enumerate(nodes) if v not in kept))


def most_probable(u, edges, w):
    """Return (J,) the best assignment: max replaces sum, then trace back."""
    order, z = min_fill(len(u), edges), np.zeros(len(u), dtype=int)
    _, cliques = eliminate(u, edges, w, order, np.maximum.reduce)
    for j in reversed(order):
        nodes, clique = cliques[j]
        z[j] = clique[(slice(None), *z[nodes[1:]])].argmax()
    return z


def spanning_tree(J, edges, w):
    """Return indices of the strongest edges that do not close a cycle."""
    part, kept = np.arange(J), []
    # [shental2003, sect. 2.2]
    for e in np.argsort(-np.abs(w), kind="stable"):
        a, b = part[edges[e]]
        if a != b:
            kept.append(e)
            part[part == b] = a
    return sorted(kept)


# ------------------------------------ orders


def neighbours(J, edges):
    """Return a dict from each node to the set of its neighbours."""
    near = {j: set() for j in range(J)}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    return near


def fill_ins(near, v):
    """Return the pairs of neighbours that eliminating v would connect."""
    return [(a, b) for a, b in combinations(near[v], 2) if b not in near[a]]


def take_out(near, v):
    """Eliminate v: return its neighbours, and connect them to each other."""
    met = near.pop(v)
    for a in met:
        near[a] = (near[a] | met) - {a, v}
    return met


def min_fill(J, edges):
    """Return an order: fewest fill-ins first, then fewest neighbours."""
    near, order = neighbours(J, edges), []
    while near:
        v = min(near, key=lambda v: (len(fill_ins(near, v)), len(near[v])))
        take_out(near, v)
        order.append(v)
    return order


def induced_width(J, edges, order):
    """Return the maximum number of neighbours of a node at elimination."""
    near = neighbours(J, edges)
    return max(len(take_out(near, v)) for v in order)


# ------------------------------------ one teacher


def clique_log_z(u):
    """Return log Z of a clique of cannot-links, by sets of used classes."""
    f = {frozenset(): 0.0}
    for u_j in u:
        ways = defaultdict(list)
        for S, log_sum in f.items():
            for k in set(range(len(u_j))) - S:
                ways[S | {k}].append(log_sum + u_j[k])
        f = {S: logsumexp(logs) for S, logs in ways.items()}
    # [shental2003, eq. 10]
    return logsumexp(list(f.values()))


# ------------------------------------ mirror images


def mirror_images(J, cannot_links):
    """Return (J,) group and (J,) parity (same or opposite state) of nodes."""
    part, parity = np.arange(J), np.zeros(J, dtype=int)
    for a, b in cannot_links:
        if part[a] != part[b]:
            joined = part == part[b]
            if parity[a] == parity[b]:
                parity[joined] = 1 - parity[joined]
            part[joined] = part[a]
    return np.unique(part, return_inverse=True)[1], parity


def contract(u, edges, w, part, parity):
    """Return unaries, edges and weights of groups, and a term of log Z."""
    mirrored = np.where(parity[:, None] == 1, u[:, ::-1], u)
    v = np.zeros((part.max() + 1, 2))
    np.add.at(v, part, mirrored)
    same = parity[edges[:, 0]] == parity[edges[:, 1]]
    inside = part[edges[:, 0]] == part[edges[:, 1]]
    constant = w[same == inside].sum()
    signed = np.where(same, w, -w)
    return v, part[edges[~inside]], signed[~inside], constant
