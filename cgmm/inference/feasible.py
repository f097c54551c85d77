"""Can the hard relations be honoured, and by which assignment? Chapter 7."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from cgmm.network import Graph, SideInformation, simplify
from cgmm.numerics import BoolArray, IntArray

__all__ = ["Search"]


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
    edges = _core(simplify(graph), size - 1)
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


def _core(graph: Graph, degree: int) -> IntArray:
    """(E, 2) forbidden edges whose ends keep at least that many, when all others are removed."""
    edges = graph.edges[graph.weights == -np.inf]
    while len(edges):
        few = np.bincount(edges.ravel(), minlength=graph.n_nodes) < degree
        stays = ~few[edges].any(axis=1)
        if stays.all():
            break
        edges = edges[stays]
    return edges


def require_colourable(side: SideInformation, n_components: int) -> None:
    """Refuse more mutually cannot-linked chunklets than there are components.

    Parameters
    ----------
    side : SideInformation
        What is known.
    n_components : int
        K.

    Raises
    ------
    ValueError
        If K + 1 chunklets are found of which every two are cannot-linked; they are named. Other
        reasons why K components cannot honour the cannot-links are found by exact engines.

    Examples
    --------
    >>> side = SideInformation.build(4, cannot_link=[[0, 1], [1, 3], [3, 0]])
    >>> require_colourable(side, 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: points 0, 1 and 3 are mutually cannot-linked ...
    """
    clique = forbidden_clique(side.graph, n_components + 1)
    if clique is None:
        return
    points = [str(point) for point in side.first_points[clique]]
    named = f"{', '.join(points[:-1])} and {points[-1]}"
    raise ValueError(
        f"points {named} are mutually cannot-linked (they, or points that must-links tie to them), "
        f"so that they need {len(points)} components, and there are {n_components}. Use "
        f"n_components={len(points)} or more, or remove one of the cannot-links."
    )


# ---------------------------------------------------------------------------- from lists


class Search(NamedTuple):
    """What a search for a colouring found."""

    colours: IntArray | None
    """(n_nodes,) the colouring; None if there is none, or none was found."""
    complete: bool
    """Whether the answer is certain: False if the search ran out of steps."""


def list_colouring(
    matrix: sparse.csr_array, allowed: BoolArray, *, max_steps: int = 20_000
) -> Search:
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
    Search
        The problem is NP-complete: with many steps the answer may still be "not found".

    Notes
    -----
    Backtracking; next comes the node with the fewest colours left, as in Brélaz's DSATUR (1979).

    Examples
    --------
    A path whose ends have one colour each, and the middle the choice:

    >>> matrix = adjacency(Graph(3, np.array([[0, 1], [1, 2]]), np.ones(2)))
    >>> list_colouring(matrix, np.array([[1, 0, 0], [1, 1, 1], [0, 1, 0]], dtype=bool)).colours
    array([0, 2, 1])
    >>> list_colouring(matrix, np.array([[1, 0], [1, 1], [0, 1]], dtype=bool))
    Search(colours=None, complete=True)
    """
    colours = np.full(len(allowed), -1)
    blockers = np.zeros(allowed.shape, dtype=np.intp)  # neighbours that have that colour
    trail = [_next_branch(colours, allowed & (blockers == 0))]
    n_steps = 0
    while trail:
        node, choices = trail[-1]
        neighbours = matrix.indices[matrix.indptr[node] : matrix.indptr[node + 1]]
        if colours[node] >= 0:
            blockers[neighbours, colours[node]] -= 1
        colours[node] = next(choices, -1)
        if colours[node] < 0:
            trail.pop()
            continue
        n_steps += 1
        blockers[neighbours, colours[node]] += 1
        if len(trail) == len(allowed):
            return Search(colours, complete=True)
        if n_steps >= max_steps:
            return Search(None, complete=False)
        trail.append(_next_branch(colours, allowed & (blockers == 0)))
    return Search(None, complete=True)


def _next_branch(colours: IntArray, free: BoolArray) -> tuple[int, Iterator[int]]:
    """The uncoloured node with the fewest free colours, and those colours."""
    n_free = np.where(colours < 0, free.sum(axis=1), np.iinfo(np.intp).max)
    node = int(n_free.argmin())
    return node, iter(np.flatnonzero(free[node]).tolist())
