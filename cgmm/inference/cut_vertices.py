"""Exact inference piece by piece: conditioning on the nodes in which pieces hang together. Ch. 7.

What hangs below a cut vertex c speaks to the rest of the network through the state of c alone. So
each piece is asked K times, once with z_c = k for every state k, and says ::

    m(k) = log Z(piece | z_c = k)            upwards: added to the unary of c
    p(z_j) = Σ_k p(z_c = k) p(z_j | z_c = k)        downwards

Nothing is divided, so that this is exact at any scale. With the largest sum in place of Z, and the
best assignment in place of the marginals, the same messages lead to the most probable joint
assignment. Cliques of cannot-links, as piles of a teacher are, are summed by subsets of labels
(:mod:`cgmm.inference.clique`), all those of one size and level in one call; what else hangs
together goes to the engine given. The tree of the pieces is that of
:mod:`cgmm.inference.block_tree`.

=======  ======================================================================
c        node above: the one that a piece shares with what is nearer to the root
B, n     pieces that are asked at once; nodes of each, c among them
K        number of states
m, h     messages (B, K) to the nodes above; unaries with messages added
=======  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import NamedTuple

import numpy as np

from cgmm.inference.block_tree import Piece, pieces
from cgmm.inference.clique import best_matchings, sum_of_matchings
from cgmm.inference.clique_tree import refuse_impossible
from cgmm.inference.contraction_rounds import best, conditional, log_sum
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import (
    Graph,
    Inference,
    Marginals,
    NetworkError,
    TooCostlyError,
    check_unary,
    log_weight,
    simplify,
)
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["cut_vertices"]

Answers = tuple[FloatArray, FloatArray]
"""m (B, K), and beliefs (B, K, n - 1, K) about the other nodes, given each state of the first."""
Ask = Callable[[FloatArray, bool], Answers]
"""From unaries (B, n, K), and whether the largest is asked for, to the answers."""


class _Group(NamedTuple):
    """Pieces of one level that are asked at once."""

    nodes: IntArray
    """(B, n) the nodes above first."""
    ask: Ask


class _Tree(NamedTuple):
    """What is asked, from the roots down."""

    roots: list[tuple[IntArray, Inference, Graph]]
    """Pieces with nothing above them."""
    groups: list[_Group]
    tops: IntArray
    """Nodes with nothing above them: roots, and nodes without edges."""


def cut_vertices(
    graph: Graph, *, engine: Callable[[Graph], Inference] = junction_tree
) -> Inference:
    """Engine for graphs that fall into pieces at single nodes, cliques of cannot-links among them.

    Parameters
    ----------
    graph : Graph
        Any graph.
    engine : callable, default=junction_tree
        An exact engine for the pieces that are no large cliques of cannot-links.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to exact marginals and log Z, with ``most_probable``; K calls of
        an engine a piece, where a clique takes O(2^K K) a call.

    Raises
    ------
    NetworkError
        When called: if no joint assignment is possible; the component is named.
    TooCostlyError
        When called: if a piece is out of the engine's reach.

    Examples
    --------
    Two piles of eight groups of points share one of them; there are eight labels. Its label leaves
    7! matchings to either pile, where a table over one pile would have 8**8 entries:

    >>> from itertools import combinations
    >>> edges = [*combinations(range(8), 2), *combinations(range(7, 15), 2)]
    >>> infer = cut_vertices(Graph(15, np.array(edges), np.full(len(edges), -np.inf)))
    >>> round(float(np.exp(infer(np.zeros((15, 8))).log_z))) == 8 * 5040**2
    True
    """
    graph = simplify(graph)
    tree = cache(lambda n_states: _tree(graph, n_states, engine))

    def infer(unary: FloatArray) -> Marginals:
        unary = check_unary(graph, unary)
        beliefs, log_z = _up_and_down(graph, tree(unary.shape[1]), unary, largest=False)
        return Marginals(beliefs, log_z, exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        unary = check_unary(graph, unary)
        return _up_and_down(graph, tree(unary.shape[1]), unary, largest=True)[0].argmax(axis=1)

    return Inference(infer, most_probable)


# -------------------------------------------------------------------------- the plan


def _tree(graph: Graph, n_states: int, engine: Callable[[Graph], Inference]) -> _Tree:
    """Engines for the pieces; those of one kind, size and level together."""
    found = pieces(graph, n_states)
    roots = [(p.nodes, engine(p.graph), p.graph) for p in found if p.level == 0]
    hanging = sorted((p for p in found if p.level > 0), key=_kind)
    groups = [group for _, same in groupby(hanging, _kind) for group in _groups([*same], engine)]
    is_top = np.ones(graph.n_nodes, dtype=bool)
    for nodes, *_ in roots:
        is_top[nodes] = False
    for group in groups:
        is_top[group.nodes[:, 1:]] = False
    return _Tree(roots, groups, np.flatnonzero(is_top))


def _kind(piece: Piece) -> tuple[int, bool, int]:
    return piece.level, piece.is_clique, len(piece.nodes)


def _groups(same: list[Piece], engine: Callable[[Graph], Inference]) -> list[_Group]:
    """One for all of a kind, where they can be asked at once."""
    if same[0].is_clique:
        return [_Group(np.array([p.nodes for p in same]), _ask_cliques)]
    if len(same[0].nodes) == 2:
        weights = np.concatenate([p.graph.weights for p in same])
        return [_Group(np.array([p.nodes for p in same]), _ask_pairs(weights))]
    return [_Group(p.nodes[None], _ask_engine(p.graph, engine(p.graph))) for p in same]


# ------------------------------------------------------------------------ the messages


def _up_and_down(
    graph: Graph, tree: _Tree, unary: FloatArray, largest: bool
) -> tuple[FloatArray, float]:
    """Marginals, or indicators of the best states, and log Z or the largest log-weight."""
    h, answers = unary.copy(), []
    for group in reversed(tree.groups):
        messages, given = group.ask(h[group.nodes], largest)
        np.add.at(h, group.nodes[:, 0], messages)
        answers.append(given)
    beliefs, total = _at_the_roots(graph, tree, h, largest)
    for group in tree.groups:
        of_above = beliefs[group.nodes[:, 0]]
        beliefs[group.nodes[:, 1:]] = np.einsum("bk,bknl->bnl", of_above, answers.pop())
    return beliefs, total


def _at_the_roots(
    graph: Graph, tree: _Tree, h: FloatArray, largest: bool
) -> tuple[FloatArray, float]:
    """What is believed where nothing is above."""
    beliefs, tops = np.zeros(h.shape), h[tree.tops]
    impossible = h.max(axis=1) == -np.inf
    if impossible.any():
        refuse_impossible(graph, int(impossible.argmax()), h.shape[1])
    totals = (best if largest else log_sum)(tops, 1)
    beliefs[tree.tops] = _one_hot(tops.argmax(axis=1), tops) if largest else conditional(tops, 1)
    total = float(totals.sum())
    for nodes, infer, part in tree.roots:
        try:
            value, beliefs[nodes] = _ask_once(part, infer, h[nodes], largest)
        except NetworkError as error:
            raise error.renamed(nodes) from None
        total += value
    return beliefs, total


def _ask_once(
    graph: Graph, infer: Inference, unary: FloatArray, largest: bool
) -> tuple[float, FloatArray]:
    """log Z and marginals; or the largest log-weight, and where it is."""
    if largest:
        z = infer.most_probable(unary)
        return log_weight(graph, unary, z), _one_hot(z, unary)
    marginals = infer(unary)
    return marginals.log_z, marginals.nodes


def _one_hot(z: IntArray, like: FloatArray) -> FloatArray:
    """Indicators of states."""
    indicators = np.zeros(like.shape)
    indicators[np.arange(len(z)), z] = 1.0
    return indicators


# ------------------------------------------------------------------------- the pieces


def _ask_cliques(u: FloatArray, largest: bool) -> Answers:
    """The node above has taken one label: matchings of the others to the rest."""
    n_cliques, n, n_states = u.shape
    others = np.repeat(u[:, None, 1:], n_states, axis=1)
    k = np.arange(n_states)
    others[:, k, :, k] = -np.inf
    others = others.reshape(-1, n - 1, n_states)
    if largest:
        z, possible = best_matchings(others)
        given = _one_hot(z.ravel(), others.reshape(-1, n_states)).reshape(others.shape)
        sums = np.take_along_axis(others, z[:, :, None], axis=2).sum(axis=(1, 2))
        sums = np.where(possible, sums, -np.inf)
    else:
        given, sums = sum_of_matchings(others)
    return sums.reshape(n_cliques, n_states), given.reshape(n_cliques, n_states, n - 1, n_states)


def _ask_pairs(weights: FloatArray) -> Ask:
    """One edge each, in closed form."""

    def ask(u: FloatArray, largest: bool) -> Answers:
        n_states = u.shape[2]
        equal: BoolArray = np.eye(n_states, dtype=bool)
        table = u[:, None, 1] + np.where(equal, weights[:, None, None], 0.0)
        if not largest:
            return log_sum(table, 2), conditional(table, 2)[:, :, None]
        given = _one_hot(table.argmax(axis=2).ravel(), table.reshape(-1, n_states))
        return best(table, 2), given.reshape(table.shape)[:, :, None]

    return ask


def _ask_engine(graph: Graph, infer: Inference) -> Ask:
    """Any engine, once for each state that the node above may have."""

    def ask(u: FloatArray, largest: bool) -> Answers:
        _, n, n_states = u.shape
        messages, given = np.full((1, n_states), -np.inf), np.zeros((1, n_states, n - 1, n_states))
        for k in np.flatnonzero(u[0, 0] > -np.inf).tolist():
            clamped = u[0].copy()
            clamped[0] = np.where(np.arange(n_states) == k, 0.0, -np.inf)
            try:
                messages[0, k], beliefs = _ask_once(graph, infer, clamped, largest)
            except TooCostlyError:
                raise
            except NetworkError:
                # Impossible: -inf says so to the node above, which may have another state.
                continue
            given[0, k] = beliefs[1:]
        return messages, given

    return ask
