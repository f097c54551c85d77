"""In which order to eliminate, and what it costs. Chapter 7.

======  ==================================================================
J       number of nodes; edges (E, 2)
near    from each node that is left to the set of its neighbours
order   the nodes in the sequence in which they go
======  ==================================================================
"""

from itertools import combinations


def neighbours(J, edges):
    """From each node to the set of its neighbours."""
    near = {j: set() for j in range(J)}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    return near


def fill_ins(near, v):
    """Pairs of neighbours of v that its elimination would make adjacent."""
    return [(a, b) for a, b in combinations(near[v], 2) if b not in near[a]]


def take_out(near, v):
    """The neighbours that v has when it goes; they are tied by that."""
    met = near.pop(v)
    for a in met:
        near[a] = (near[a] | met) - {a, v}
    return met


def min_fill(J, edges):
    """An order: next, the fewest fill-ins; of these, fewest neighbours."""
    near, order = neighbours(J, edges), []
    while near:
        v = min(near, key=lambda v: (len(fill_ins(near, v)), len(near[v])))
        take_out(near, v)
        order.append(v)
    return order


def induced_width(J, edges, order):
    """The most neighbours that a node has when it goes."""
    near = neighbours(J, edges)
    return max(len(take_out(near, v)) for v in order)
