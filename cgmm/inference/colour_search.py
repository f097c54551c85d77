"""Searches in the graph of the cannot-links: for what rules a colouring out, and for a colouring.

To honour all cannot-links with K states is to colour a graph with K colours, where each node may
have a list of its own. Nobody knows how to do that quickly in all cases (it is NP-complete), so
every search here has a number of steps. A clique of K + 1 nodes rules a colouring out. Backtracking
finds one or proves that there is none; a walk, from conflict to conflict, is better at finding one
and proves nothing. Chapter 7 meets the problem, chapter 11 the searches.

=========  ==========================================================================
matrix     (n, n) sparse and symmetric; an entry of one is an edge
allowed    (n, K) whether node j may have colour k
near       (n,) colours near which a colouring may lie, though neighbours share some
=========  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import numpy as np
from scipy import sparse

from cgmm.network import Graph, simplify
from cgmm.numerics import BoolArray, IntArray

# Steps beyond one a node of the first search; each turn has twice as many as the one before.
FIRST_STEPS = 500
# Steps of a search for a clique whose colours may be named freely, which shortens a proof.
CLIQUE_STEPS = 1_000

Rng = np.random.RandomState


def forbidden_clique(graph: Graph, size: int, *, max_steps: int = 100_000) -> IntArray | None:
    """Nodes of which every two are forbidden to be equal: with fewer states than nodes, no way out.

    Parameters
    ----------
    graph : Graph
        Any graph; only its edges of weight -inf count.
    size : int
        How many nodes, at least two.
    max_steps : int, default=100000
        Extensions of partial cliques that are tried, since the problem is NP-complete.

    Returns
    -------
    (size,) int array or None
        Such nodes, ascending; None if there are none, or none was found in as many steps.

    Notes
    -----
    A member has at least ``size - 1`` forbidden neighbours, who have as many in turn: all others
    are stripped first, which as a rule leaves nothing to search.

    Examples
    --------
    >>> triangle = Graph(5, np.array([[0, 1], [1, 4], [0, 4], [2, 4]]), np.full(4, -np.inf))
    >>> forbidden_clique(triangle, 3)
    array([0, 1, 4])
    >>> forbidden_clique(triangle, 4) is None
    True
    """
    graph = simplify(graph)
    edges = graph.edges[graph.weights == -np.inf]
    stays = peel(edges, np.full(graph.n_nodes, size - 1)) < 0
    edges = edges[stays[edges].all(axis=1)]
    later: dict[int, set[int]] = {int(node): set() for node in np.unique(edges)}
    for a, b in edges.tolist():
        later[a].add(b)
    steps = iter(range(max_steps))
    stack: list[tuple[tuple[int, ...], set[int]]]
    stack = [((node,), neighbours) for node, neighbours in sorted(later.items(), reverse=True)]
    while stack and next(steps, None) is not None:
        clique, common = stack.pop()
        if len(clique) == size:
            return np.array(clique)
        if len(clique) + len(common) >= size:
            stack += [((*clique, n), common & later[n]) for n in sorted(common, reverse=True)]
    return None


def peel(edges: IntArray, limits: IntArray) -> IntArray:
    """Take away nodes that have too few neighbours left, round by round.

    Parameters
    ----------
    edges : (E, 2) int array
        Pairs of nodes.
    limits : (n_nodes,) int array
        A node stays as long as it has that many neighbours who stay.

    Returns
    -------
    (n_nodes,) int array
        The round in which each node goes; -1 for those of the core, who stay.

    Examples
    --------
    A triangle with a tail of two nodes:

    >>> peel(np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4]]), np.full(5, 2))
    array([-1, -1, -1,  1,  0])
    """
    went = np.full(len(limits), -1)
    for number in count():
        going = (went < 0) & (np.bincount(edges.ravel(), minlength=len(went)) < limits)
        if not going.any():
            break
        went[going] = number
        edges = edges[~going[edges].any(axis=1)]
    return went


class Colouring(NamedTuple):
    """What a search for a colouring found."""

    colours: IntArray | None
    """(n_nodes,) the colouring; None if there is none, or none was found."""
    complete: bool
    """Whether the answer is certain: False if the search ran out of steps."""


class ColourSearch:
    """Backtracking and walks by turns, for as long as there are steps left.

    Parameters
    ----------
    max_steps : int
        Steps of all searches together; a step colours a node.
    rng : RandomState
        Orders of the nodes, starts and moves of the walks.
    """

    def __init__(self, max_steps: int, rng: Rng):
        self.steps_left, self.rng = max_steps, rng

    def colour(
        self, matrix: sparse.csr_array, allowed: BoolArray, near: IntArray | None
    ) -> Colouring:
        """Colour a graph, or prove that it cannot be done, or run out of steps.

        Backtracking begins with nodes of large degree, then takes random orders; every other walk
        starts at ``near``.
        """
        n_nodes, n_colours = allowed.shape
        named = with_named_clique(matrix, allowed)
        order = np.argsort(-np.diff(matrix.indptr), kind="stable")
        n_steps, start = n_nodes + FIRST_STEPS, near
        while self.steps_left > 0:
            n_steps = min(n_steps, self.steps_left)
            found = colour_in_order(matrix, named, order, n_steps)
            self.steps_left -= n_nodes if found.complete else n_steps
            if found.complete:
                return found
            if start is None:
                start = np.asarray(self.rng.randint(n_colours, size=n_nodes))
            n_walk = min(n_steps, max(self.steps_left, 0))
            found, used = tabu_walk(matrix, start, allowed, n_walk, self.rng)
            self.steps_left -= used
            if found.complete:
                return found
            start = near if start is not near else None
            order, n_steps = self.rng.permutation(n_nodes), 2 * n_steps
        return Colouring(None, complete=False)


def colour_in_order(
    matrix: sparse.csr_array, allowed: BoolArray, order: IntArray, max_steps: int
) -> Colouring:
    """Backtracking in which the earlier of two nodes comes first where both have as few colours."""
    found = list_colouring(matrix[order][:, order], allowed[order], max_steps=max_steps)
    if found.colours is None:
        return found
    colours = np.empty(len(order), dtype=np.intp)
    colours[order] = found.colours
    return Colouring(colours, complete=True)


def list_colouring(
    matrix: sparse.csr_array, allowed: BoolArray, *, max_steps: int = 20_000
) -> Colouring:
    """Give each node one of its allowed colours, so that no two neighbours have the same.

    Parameters
    ----------
    matrix : (n_nodes, n_nodes) sparse array
        Symmetric; its stored entries are the edges.
    allowed : (n_nodes, K) bool array
        The colours that each node may have.
    max_steps : int, default=20000
        Nodes that are coloured, counting repetitions, before the search gives up.

    Returns
    -------
    Colouring
        The problem is NP-complete: with many steps the answer may still be "not found".

    Notes
    -----
    Backtracking; next comes the node with the fewest colours left, as in Brélaz's DSATUR (1979).

    Examples
    --------
    A path whose ends have one colour each, and the middle the choice:

    >>> from cgmm.inference import adjacency
    >>> from cgmm.network import Graph
    >>> matrix = adjacency(Graph(3, np.array([[0, 1], [1, 2]]), np.ones(2)))
    >>> list_colouring(matrix, np.array([[1, 0, 0], [1, 1, 1], [0, 1, 0]], dtype=bool)).colours
    array([0, 2, 1])
    >>> list_colouring(matrix, np.array([[1, 0], [1, 1], [0, 1]], dtype=bool))
    Colouring(colours=None, complete=True)
    """
    colours = np.full(len(allowed), -1)
    blockers = np.zeros(allowed.shape, dtype=np.intp)  # neighbours that have that colour
    trail = [_next_branch(colours, allowed & (blockers == 0))]
    n_steps = 0
    while trail:
        node, choices = trail[-1]
        neighbours = neighbours_of(matrix, node)
        if colours[node] >= 0:
            blockers[neighbours, colours[node]] -= 1
        colours[node] = next(choices, -1)
        if colours[node] < 0:
            trail.pop()
            continue
        n_steps += 1
        blockers[neighbours, colours[node]] += 1
        if len(trail) == len(allowed):
            return Colouring(colours, complete=True)
        if n_steps >= max_steps:
            return Colouring(None, complete=False)
        trail.append(_next_branch(colours, allowed & (blockers == 0)))
    return Colouring(None, complete=True)


def _next_branch(colours: IntArray, free: BoolArray) -> tuple[int, Iterator[int]]:
    """The uncoloured node with the fewest free colours, and those colours."""
    n_free = np.where(colours < 0, free.sum(axis=1), np.iinfo(np.intp).max)
    node = int(n_free.argmin())
    return node, iter(np.flatnonzero(free[node]).tolist())


def tabu_walk(
    matrix: sparse.csr_array, start: IntArray, allowed: BoolArray, n_steps: int, rng: Rng
) -> tuple[Colouring, int]:
    """Repair a colouring move by move; the colouring, if one is found, and the steps taken.

    Hertz and de Werra (1987): the move, of a node in conflict, that leaves the fewest conflicts,
    where what a node has just left is forbidden to it for a while.
    """
    everyone, n_colours = np.arange(len(start)), allowed.shape[1]
    z = np.where(allowed[everyone, start], start, allowed.argmax(axis=1))
    # [j, k]: neighbours of j that have colour k
    counts = (matrix @ np.eye(n_colours)[z]).astype(np.intp)
    forbidden_until = np.zeros(counts.shape, dtype=np.intp)
    fewest = np.inf
    for step in range(n_steps):
        own = counts[everyone, z]
        wrong = np.flatnonzero(own)
        if len(wrong) == 0:
            return Colouring(z, complete=True), step
        n_conflicts = own.sum() // 2
        fewest = min(fewest, n_conflicts)
        # How the number of conflicts changes, with a lot that decides among equal moves.
        change = counts[wrong] - own[wrong, None] + 0.5 * rng.uniform(size=(len(wrong), n_colours))
        # A forbidden move is taken only if it leads to fewer conflicts than ever before.
        forbidden = forbidden_until[wrong] > step
        change[forbidden & (np.floor(change) + n_conflicts >= fewest)] += len(everyone) ** 2
        change[np.arange(len(wrong)), z[wrong]] = np.inf
        change[~allowed[wrong]] = np.inf
        row, k = np.unravel_index(change.argmin(), change.shape)
        j = wrong[row]
        neighbours = neighbours_of(matrix, j)
        counts[neighbours, z[j]] -= 1
        counts[neighbours, k] += 1
        forbidden_until[j, z[j]] = step + 0.6 * n_conflicts + rng.randint(10)
        z[j] = k
    return Colouring(None, complete=False), n_steps


def with_named_clique(matrix: sparse.csr_array, allowed: BoolArray) -> BoolArray:
    """Lists in which mutual neighbours have a colour each, as all names of colours are alike."""
    n_colours = allowed.shape[1]
    if not allowed.all():
        return allowed
    graph = graph_of(matrix)
    cliques = (forbidden_clique(graph, n, max_steps=CLIQUE_STEPS) for n in range(n_colours, 1, -1))
    clique = next((clique for clique in cliques if clique is not None), [0])
    allowed = allowed.copy()
    allowed[clique] = np.eye(n_colours, dtype=bool)[: len(clique)]
    return allowed


def neighbours_of(matrix: sparse.csr_array, j: int) -> IntArray:
    """The nodes that share an edge with node j."""
    return matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]]


def graph_of(matrix: sparse.csr_array) -> Graph:
    """The cannot-links of a symmetric matrix, each once."""
    edges = np.column_stack(sparse.triu(matrix).tocoo().coords)
    return Graph(matrix.shape[0], edges, np.full(len(edges), -np.inf))
