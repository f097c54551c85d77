"""The cheapest exact engine for each component, or a refusal where it costs too much. Chapter 7.

==========================  ===============================================
component                   engine
==========================  ===============================================
one node                    independent
two nodes                   pairs
mutually cannot-linked      clique
any other                   junction_tree
==========================  ===============================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np

from cgmm.inference.clique import clique
from cgmm.inference.clique_tree import MAX_BYTES
from cgmm.inference.independent import independent
from cgmm.inference.junction_tree import junction_tree
from cgmm.inference.pairs import pairs
from cgmm.network import (
    ExactInfer,
    Graph,
    Marginals,
    NetworkError,
    check_unary,
    connected_components,
    edgeless,
    simplify,
    with_most_probable,
)
from cgmm.numerics import FloatArray, IntArray

__all__ = ["auto"]

INDEPENDENT, PAIRS, CLIQUE, JUNCTION_TREE = range(4)


class _Part(NamedTuple):
    """All components that one engine takes care of."""

    nodes: IntArray
    """Their nodes, under the names of the whole graph."""
    infer: ExactInfer


def auto(graph: Graph, *, max_bytes: int = MAX_BYTES) -> ExactInfer:
    """Engine that takes for every component the cheapest exact engine.

    Parameters
    ----------
    graph : Graph
        Any graph.
    max_bytes : int, default=2**31
        What :func:`~cgmm.inference.junction_tree.junction_tree` may allocate.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to exact marginals and log Z, with ``most_probable``.

    Raises
    ------
    NetworkError
        When called: if a component has no possible assignment; it is named.
    TooCostlyError
        When called: if exact inference in a component is out of reach; it is named.

    Examples
    --------
    A pair, a node by itself, and a path of three:

    >>> edges = np.array([[0, 1], [3, 4], [4, 5]])
    >>> infer = auto(Graph(6, edges, np.array([-np.inf, 1.0, -np.inf])))
    >>> unary = np.log(np.full((6, 2), 0.5))
    >>> unary[0] = np.log([0.9, 0.1])
    >>> infer(unary).nodes[:3]
    array([[0.9, 0.1],
           [0.1, 0.9],
           [0.5, 0.5]])
    >>> infer.most_probable(unary)
    array([0, 1, 0, 0, 0, 1])
    """
    graph = simplify(graph)
    parts = list(_parts(graph, _kinds(graph), max_bytes))
    if len(parts) == 1:
        return parts[0].infer

    def infer(unary: FloatArray) -> Marginals:
        unary = check_unary(graph, unary)
        # Column-major, as log densities are.
        nodes, log_z = np.empty(unary.shape[::-1]).T, 0.0
        for part in parts:
            marginals = _ask(part, part.infer, unary)
            nodes[part.nodes] = marginals.nodes
            log_z += marginals.log_z
        return Marginals(nodes, log_z, exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        unary = check_unary(graph, unary)
        z = np.empty(len(unary), dtype=np.intp)
        for part in parts:
            z[part.nodes] = _ask(part, part.infer.most_probable, unary)
        return z

    return with_most_probable(infer, most_probable)


Answer = TypeVar("Answer")


def _ask(part: _Part, question: Callable[[FloatArray], Answer], unary: FloatArray) -> Answer:
    """Put a question to the engine of a part; its errors name nodes of the whole graph."""
    try:
        return question(np.take(unary.T, part.nodes, axis=1).T)
    except NetworkError as error:
        raise error.renamed(part.nodes) from None


def _kinds(graph: Graph) -> IntArray:
    """(n_nodes,) which engine takes care of each node's component."""
    labels = connected_components(graph)
    sizes = np.bincount(labels)
    of_edge = labels[graph.edges[:, 0]]
    n_hard = np.bincount(of_edge[graph.weights == -np.inf], minlength=len(sizes))
    is_clique = 2 * n_hard == sizes * (sizes - 1)
    kinds = np.where(is_clique, CLIQUE, JUNCTION_TREE)
    kinds[sizes == 2] = PAIRS
    kinds[sizes == 1] = INDEPENDENT
    return kinds[labels]


def _parts(graph: Graph, kinds: IntArray, max_bytes: int) -> Iterator[_Part]:
    """The part of each engine, if it has any."""
    for kind in np.unique(kinds):
        nodes = np.flatnonzero(kinds == kind)
        part = _subgraph(graph, nodes)
        if kind == JUNCTION_TREE:
            yield _Part(nodes, junction_tree(part, max_bytes=max_bytes))
        else:
            yield _Part(nodes, [independent, pairs, clique][kind](part))


def _subgraph(graph: Graph, nodes: IntArray) -> Graph:
    """Whole components, their nodes renamed 0, 1, ... in the order given."""
    if not len(graph.edges):
        return edgeless(len(nodes))
    new_name = np.full(graph.n_nodes, -1)
    new_name[nodes] = np.arange(len(nodes))
    inside = new_name[graph.edges[:, 0]] >= 0
    return Graph(len(nodes), new_name[graph.edges[inside]], graph.weights[inside])
