"""Pairs of nodes from one clique tree, calibrated once. Chapter 14.

Given the states S that part one node from the other, two nodes are independent. So each node's
conditional p(z_a | S) is carried up the tree, from the separator of one clique to that of the next,
until it meets that of the other node of its pair, or a clique which holds that node::

    p(z_a = z_b) = Σ_C p(C) Σ_k p(z_a = k | C) p(z_b = k | C)

All nodes on the way are carried together, and all pairs that meet in a clique are one product of
two matrices. A pair that an edge ties meets where its first node goes. The order of elimination is
that of :mod:`cgmm.inference.junction_tree`; nodes go one by one. Sums are of what is positive,
there are no differences, so that both tails keep their digits.

=========  ======================================================================
v, S_v     node, called by its place in the order; the neighbours it has when it goes
C_v        v and S_v, a clique: the axes of its tables, in this order
parent     of v: the first of S_v, which goes next of them
U_a        (K, K, ...) p(z_a | z_S), a's own state first
K, n       number of states; of nodes carried together
=========  ======================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cgmm.inference.clique_tree import spread_axes
from cgmm.inference.contraction import contract
from cgmm.inference.contraction_rounds import conditional, diagonals, log_sum
from cgmm.inference.elimination import eliminate, elimination_order
from cgmm.network import Graph, connected_components
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["PairTree", "Ways", "grow", "plan", "sums_of_pairs"]

# Numbers that the nodes carried together may take: the more there are, the more tables are formed.
MAX_CARRIED = 2**25


class PairTree(NamedTuple):
    """Nodes in the order of elimination, and their edges; all but ``nodes`` are told by places."""

    nodes: IntArray
    """(m,) as the graph calls them."""
    separators: list[list[int]]
    """S_v, sorted."""
    edges: list[list[tuple[int, float]]]
    """To those of S_v that an edge ties v to, as axis of C_v and log-weight."""
    n_states: int

    @property
    def parent(self) -> IntArray:
        """(m,) the first of S_v, v itself at a root."""
        return np.array([s[0] if s else v for v, s in enumerate(self.separators)], dtype=np.intp)

    @property
    def n_cells(self) -> int:
        """Numbers in one table over each C_v."""
        return sum(self.n_states ** (len(s) + 1) for s in self.separators)

    @property
    def width(self) -> int:
        """The most that an S_v has."""
        return max(map(len, self.separators), default=0)


class _Calibrated(NamedTuple):
    """Tables over each C_v."""

    given: list[FloatArray]
    """p(z_v | z_S)."""
    belief: list[FloatArray]
    """p(z_C)."""


class _Carried(NamedTuple):
    """Nodes that are on their way, and what is known of them given a clique's separator."""

    names: IntArray
    """(n,)"""
    tables: FloatArray
    """(n, K, K, ...) U_a."""


# ------------------------------------------------------------------------------- the tree


def grow(graph: Graph, n_states: int, max_degree: int) -> PairTree:
    """Find the order, but for components in which a node would have too many neighbours.

    Parameters
    ----------
    graph : Graph
        Simplified; a node without an edge is left out.
    n_states : int
        K.
    max_degree : int
        Most neighbours that a node may have when it goes.

    Returns
    -------
    PairTree
        Without tables.

    Examples
    --------
    >>> path = Graph(3, np.array([[0, 1], [1, 2]]), np.ones(2))
    >>> grow(path, 2, 5).separators
    [[1], [2], []]
    """
    contraction = contract(graph)
    core = elimination_order(contraction.core.ends, n_states, max_degree)
    lost = np.zeros(graph.n_nodes, dtype=bool)
    if core.stuck:
        label = connected_components(graph)
        lost = np.isin(label, label[core.stuck])
    has_edge = np.bincount(graph.edges.ravel(), minlength=graph.n_nodes) > 0
    rounds = [step.summed_out for step in contraction.rounds]
    order = np.concatenate([*rounds, np.array(core.nodes, dtype=np.intp), contraction.roots])
    order = order[has_edge[order] & ~lost[order]]
    place = np.full(graph.n_nodes, -1)
    place[order] = np.arange(len(order))
    kept = place[graph.edges[:, 0]] >= 0
    ends = np.sort(place[graph.edges[kept]], axis=1)
    separators = [sorted(near) for _, near in eliminate(ends, range(len(order)))]
    edges: list[list[tuple[int, float]]] = [[] for _ in separators]
    for (v, u), w in zip(ends.tolist(), graph.weights[kept].tolist(), strict=True):
        edges[v].append((separators[v].index(u) + 1, w))
    return PairTree(order, separators, edges, n_states)


def _calibrate(tree: PairTree, h: FloatArray) -> _Calibrated:
    """Logs on the way in, conditionals and beliefs on the way out; h (m, K) by places."""
    heard: list[list[tuple[list[int], FloatArray]]] = [[] for _ in tree.separators]
    given, belief = [], list[FloatArray](h)
    for v, separator in enumerate(tree.separators):
        table = _factors(tree, v, h[v], heard[v])
        heard[v] = []
        if separator:
            heard[separator[0]].append((separator, log_sum(table, 0)))
        given.append(conditional(table, 0))
    for v in reversed(range(len(given))):
        separator = tree.separators[v]
        outside = np.ones(())
        if separator:
            outside = _sum_to(belief[separator[0]], _clique(tree, separator[0]), separator)
        belief[v] = given[v] * outside
    return _Calibrated(given, belief)


def _factors(
    tree: PairTree, v: int, h: FloatArray, heard: list[tuple[list[int], FloatArray]]
) -> FloatArray:
    """Log of everything that meets in C_v on the way in."""
    clique = _clique(tree, v)
    table = np.zeros((tree.n_states,) * len(clique)) + spread_axes(h, (0,), len(clique))
    for axis, w in tree.edges[v]:
        table += spread_axes(diagonals(np.array([w]), tree.n_states)[0], (0, axis), len(clique))
    for nodes, message in heard:
        table += spread_axes(message, _axes(nodes, clique), len(clique))
    return table


def _clique(tree: PairTree, v: int) -> list[int]:
    """C_v, sorted, since v goes before its neighbours."""
    return [v, *tree.separators[v]]


def _axes(nodes: list[int], clique: list[int]) -> tuple[int, ...]:
    """Where some of a clique's nodes have their axes."""
    return tuple(clique.index(u) for u in nodes)


def _sum_to(table: FloatArray, clique: list[int], nodes: list[int]) -> FloatArray:
    """Sum out all but some nodes."""
    kept = set(nodes)
    return np.asarray(table.sum(axis=tuple(i for i, u in enumerate(clique) if u not in kept)))


# ------------------------------------------------------------------------------ the pairs


class Ways(NamedTuple):
    """Which nodes are carried together, and how far; all by places."""

    pairs: IntArray
    """(P, 2) who goes first first."""
    meets: IntArray
    """(P,) the clique in which each pair meets."""
    carried: BoolArray
    """(P,) whether the second node is carried there; else the clique has it."""
    blocks: list[IntArray]
    """Rows of pairs whose nodes are carried at one time."""
    n_cells: float
    """Numbers that are summed on all ways, for one state of each node."""


def plan(tree: PairTree, pairs: IntArray) -> Ways:
    """Where pairs of different nodes of one component meet, and what it takes to get there.

    Parameters
    ----------
    tree : PairTree
        Of the graph.
    pairs : (P, 2) int array
        Places in the order. They are taken by blocks of nodes, so that what is carried together
        takes no more than 256 MiB or a table.

    Returns
    -------
    Ways
        For :func:`sums_of_pairs`.

    Examples
    --------
    On a path of three nodes each end is carried to the middle:

    >>> path = Graph(3, np.array([[0, 1], [1, 2]]), np.array([2.0, 2.0]))
    >>> plan(grow(path, 2, 5), np.array([[0, 2]])).meets
    array([1])
    """
    pairs = np.sort(pairs, axis=1)
    meets, carried = _meet(tree, pairs)
    height = max(1, MAX_CARRIED // tree.n_states ** (tree.width + 2))
    blocks = list(_by_nodes(pairs, height))
    cells = np.array([float(tree.n_states) ** (len(s) + 1) for s in tree.separators])
    onwards = cells.copy()
    for v in reversed(range(len(cells))):
        onwards[v] += onwards[tree.separators[v][0]] if tree.separators[v] else 0.0
    ways, n_cells = Ways(pairs, meets, carried, blocks, 0.0), 0.0
    for rows in blocks:
        until = _until(tree, ways, rows)
        on = np.flatnonzero(until >= 0)
        n_cells += (onwards[on] - onwards[until[on]] + cells[until[on]]).sum()
    return ways._replace(n_cells=float(n_cells))


def sums_of_pairs(tree: PairTree, unary: FloatArray, ways: Ways) -> tuple[FloatArray, FloatArray]:
    """p(z_a = z_b) and p(z_a ≠ z_b), of pairs of different nodes of one component.

    Parameters
    ----------
    tree : PairTree
        Of the graph.
    unary : (n_nodes, K) array
        Log-potentials of the graph's nodes.
    ways : Ways
        Of the pairs, :func:`plan`.

    Returns
    -------
    (P,) array, (P,) array
        Each a sum of positive terms.

    Examples
    --------
    >>> path = Graph(3, np.array([[0, 1], [1, 2]]), np.array([2.0, 2.0]))
    >>> tree = grow(path, 2, 5)
    >>> ways = plan(tree, np.array([[0, 1], [0, 2]]))
    >>> same, apart = sums_of_pairs(tree, np.zeros((3, 2)), ways)
    >>> np.log(same / apart).round(4)
    array([2.   , 1.325])
    """
    same, apart = np.zeros((2, len(ways.pairs)))
    tables = _calibrate(tree, unary[tree.nodes])
    for rows in ways.blocks:
        _carry(tree, tables, ways, rows, same, apart)
    return same, apart


def _meet(tree: PairTree, pairs: IntArray) -> tuple[IntArray, BoolArray]:
    """(P,) the clique in which each pair meets, and whether its second node is carried there."""
    parent, m = tree.parent, len(tree.nodes)
    held = np.array([v * m + u for v, s in enumerate(tree.separators) for u in s], dtype=np.intp)
    at = pairs.copy()
    open_ = np.arange(len(pairs))
    while len(open_):
        a, b = at[open_].T
        # A second node that has not moved may be held by the clique of the first.
        there = (a == b) | (np.isin(a * m + b, held, kind="sort") & (b == pairs[open_, 1]))
        open_, a, b = (x[~there] for x in (open_, a, b))
        # Who goes first moves on.
        at[open_, 0], at[open_, 1] = np.where(a < b, parent[a], a), np.where(a < b, b, parent[b])
    return at[:, 0], at[:, 0] == at[:, 1]


def _by_nodes(pairs: IntArray, height: int) -> Iterator[IntArray]:
    """Rows of pairs, parted so that in a part there are at most so many first and second ends."""
    ranks = [np.unique(ends, return_inverse=True)[1] // height for ends in pairs.T]
    part = ranks[0] * (ranks[1].max(initial=0) + 1) + ranks[1]
    by_part = np.argsort(part, kind="stable")
    yield from np.split(by_part, np.flatnonzero(np.diff(part[by_part])) + 1)


def _until(tree: PairTree, ways: Ways, rows: IntArray) -> IntArray:
    """(m,) the last clique to which each node is carried for some pairs, -1 if it is not."""
    until, carried = np.full(len(tree.nodes), -1), rows[ways.carried[rows]]
    np.maximum.at(until, ways.pairs[rows, 0], ways.meets[rows])
    np.maximum.at(until, ways.pairs[carried, 1], ways.meets[carried])
    return until


def _carry(
    tree: PairTree,
    tables: _Calibrated,
    ways: Ways,
    rows: IntArray,
    same: FloatArray,
    apart: FloatArray,
) -> None:
    """Carry the nodes of some pairs up the tree, and fill in the pairs where they meet."""
    pairs, meets, until = ways.pairs, ways.meets, _until(tree, ways, rows)
    rows = rows[np.argsort(meets[rows], kind="stable")]
    starts = np.searchsorted(meets[rows], np.arange(len(tree.nodes) + 1))
    waiting: list[list[_Carried]] = [[] for _ in tree.nodes]
    for v, clique in enumerate(_clique(tree, v) for v in range(len(tree.nodes))):
        coming, waiting[v] = waiting[v], []
        here = rows[starts[v] : starts[v + 1]]
        if until[v] < 0 and not coming and not len(here):
            continue
        if until[v] >= 0:
            coming.append(_itself(tree, v, 0, len(clique)))
        if len(here):
            others = [_itself(tree, u, i, len(clique)) for i, u in enumerate(clique) if i]
            _join(tables.belief[v], [*coming, *others], pairs[here], here, same, apart)
        for group in coming:
            _move_on(tree, tables.given[v], v, group, until, waiting)


def _itself(tree: PairTree, u: int, axis: int, n_axes: int) -> _Carried:
    """A node of the clique: its state, given its state."""
    table = spread_axes(np.eye(tree.n_states), (0, axis + 1), n_axes + 1)
    return _Carried(np.array([u]), table[None])


def _join(
    belief: FloatArray,
    groups: list[_Carried],
    pairs: IntArray,
    here: IntArray,
    same: FloatArray,
    apart: FloatArray,
) -> None:
    """Σ_C p(C) Σ_k p(z_a = k | C) p(z_b = k | C), and the same over different states."""
    a, of_a = np.unique(pairs[:, 0], return_inverse=True)
    b, of_b = np.unique(pairs[:, 1], return_inverse=True)
    groups = [group for group in groups if np.isin(group.names, pairs).any()]
    n_states = groups[0].tables.shape[1]
    # Only nodes that one of the tables depends on are needed.
    silent = [all(g.tables.shape[i + 2] == 1 for g in groups) for i in range(belief.ndim)]
    belief = belief.sum(axis=tuple(np.flatnonzero(silent)), keepdims=True)
    second = _gather(groups, b, belief.shape)
    # Sums over different states are taken as such.
    others = np.ones((n_states, n_states)) - np.eye(n_states)
    differing = np.einsum("kl,nlc->nkc", others, second).reshape(len(b), -1)
    first = (_gather(groups, a, belief.shape) * belief.ravel()).reshape(len(a), -1)
    same[here] = (first @ second.reshape(len(b), -1).T)[of_a, of_b]
    apart[here] = (first @ differing.T)[of_a, of_b]


def _gather(groups: list[_Carried], names: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """(n, K, cells) the tables of some nodes over the whole clique."""
    found = np.empty((len(names), groups[0].tables.shape[1], *shape))
    for group in groups:
        _, to, at = np.intersect1d(names, group.names, return_indices=True)
        found[to] = group.tables[at]
    return found.reshape(*found.shape[:2], -1)


def _move_on(
    tree: PairTree,
    given: FloatArray,
    v: int,
    group: _Carried,
    until: IntArray,
    waiting: list[list[_Carried]],
) -> None:
    """Sum out v, for those nodes that have to go further: p(z_a | S) = Σ p(z_a | C) p(z_v | S)."""
    further = until[group.names] > v
    if not further.any():
        return
    tables = group.tables[further]
    out = np.zeros((*tables.shape[:2], *given.shape[1:]))
    for k in range(len(given)):
        out += tables[:, :, min(k, tables.shape[2] - 1)] * given[k]
    parent = tree.separators[v][0]
    clique = _clique(tree, parent)
    axes = _axes(tree.separators[v], clique)
    shape = [tree.n_states if i in axes else 1 for i in range(len(clique))]
    waiting[parent].append(_Carried(group.names[further], out.reshape(*out.shape[:2], *shape)))
