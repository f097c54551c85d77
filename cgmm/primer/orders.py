"""In which order to eliminate, and what it costs. Chapter 7.

======  ==================================================================
J       number of nodes; edges (E, 2)
near    from each node that is left to the set of its neighbours
order   the nodes, each with the neighbours that it has when it goes; the
        most of them is the order's induced width t: arrays of K^(t+1)
======  ==================================================================
"""

from itertools import combinations


def fill_ins(near, v):
    """Pairs of neighbours of v that its elimination would make adjacent."""
    return [(a, b) for a, b in combinations(near[v], 2) if b not in near[a]]


def min_fill(J, edges):
    """An order: next, the fewest fill-ins; of these, fewest neighbours."""
    near = {j: set() for j in range(J)}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    order = []
    while near:
        v = min(near, key=lambda v: (len(fill_ins(near, v)), len(near[v])))
        for a, b in fill_ins(near, v):
            near[a].add(b)
            near[b].add(a)
        order.append((v, near.pop(v)))
        for a in order[-1][1]:
            near[a].remove(v)
    return order
