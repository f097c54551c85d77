"""Exact inference in any network whose induced width is small: elimination, in and out.

Nodes of degree one and two go first, many at a time (:mod:`cgmm.inference.contraction`); the rest,
the *core*, is eliminated one node after the other, in min-fill order or a cheaper one. What
eliminating v needs is a table over v and the neighbours it then has, its clique; small neighbouring
cliques are merged. The cliques form a tree. Messages run to its roots (*collect*: log Z), then back
(*distribute*: the marginals), or the best states are read off on the way back.

Three ways to work through the same tree:

- *products*: probabilities scaled to at most one, by multiplications and matrix products. Before
  every product the smallest positive entry it can have is bounded;
- *sums of logs*: the same at any scale, slower, where products might underflow;
- *largest of logs*: the most probable joint assignment.

=========  ======================================================================
R, S       nodes that a clique eliminates; its separator, the rest of its nodes
S = A ∪ F  A: nodes in children's messages; F, *fresh*: tied to R here first
P          table over (R, A): everything but the factor ψ over (R, F)
m, μ       message of a clique to its parent, over S; its parent's answer
low        log of the smallest positive entry of a table whose largest is one
=========  ======================================================================

What is summed out, m(A, F) = Σ_R P(R, A) ψ(R, F), is a matrix product: the table over the whole
clique is never formed. A clique's answer to one of several children is what it believes about their
separator, divided by what the child said; where that is zero, so is whatever the child will
multiply the answer by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cgmm.inference.contraction import (
    Contraction,
    Ties,
    Total,
    best,
    conditional,
    contract,
    log_sum,
)
from cgmm.inference.elimination import Order, elimination_order
from cgmm.network import (
    ExactInfer,
    Graph,
    Marginals,
    NetworkError,
    check_unary,
    components,
    simplify,
    with_most_probable,
)
from cgmm.numerics import FloatArray, IntArray, blocks, log_normalise

__all__ = ["junction_tree"]

MAX_BYTES = 2**31
# Cliques are merged up to tables of this size: below it a table costs less than a call.
MERGED_CELLS = 2048
# Smallest logs that products may reach. With forbidden pairs nothing may underflow, since nobody
# knows what they leave over; this counts all factors. Without them the edges alone count: where
# they stay above e**-200, an underflow (below e**-708) costs less than e**-100 of what it joins.
LOWEST_HARD, LOWEST_SOFT = -690.0, -200.0


def junction_tree(graph: Graph, *, max_bytes: int = MAX_BYTES) -> ExactInfer:
    """Engine for any graph of small induced width: trees, chains, cycles, small grids.

    Parameters
    ----------
    graph : Graph
        Any graph. Trees and chains cost time linear in their size; a grid of n × n nodes costs
        about K**(n + 1).
    max_bytes : int, default=2**31
        Refuse to allocate tables that together exceed this.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to exact marginals and log Z, with ``most_probable``. The order
        of elimination is found, and kept, when it is first called with a number of states.

    Raises
    ------
    NetworkError
        When called: if no joint assignment is possible, or if the tables would need more than
        ``max_bytes``; the component is named.

    Notes
    -----
    [shental2003, sect. 2.2]: the posterior of eq. 9 by Pearl's junction tree algorithm, and log Z
    of eq. 10 by the same pass.

    Examples
    --------
    A cycle of four nodes, neighbours different, in two colours: two assignments are left.

    >>> cycle = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.full(4, -np.inf))
    >>> infer = junction_tree(cycle)
    >>> unary = np.log([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    >>> infer(unary).nodes.round(12)
    array([[0.9, 0.1],
           [0.1, 0.9],
           [0.9, 0.1],
           [0.1, 0.9]])
    >>> infer.most_probable(unary)
    array([0, 1, 0, 1])
    """
    graph = simplify(graph)
    contraction = contract(graph)
    trees: dict[int, _Tree] = {}

    def tree(n_states: int) -> _Tree:
        if n_states not in trees:
            trees[n_states] = _build(graph, contraction.core, n_states, max_bytes)
        return trees[n_states]

    def infer(unary: FloatArray) -> Marginals:
        unary = check_unary(graph, unary)
        if unary.shape[1] == 1:
            return _only_assignment(graph, unary)
        core = tree(unary.shape[1])
        # [shental2003, eqs. 9 and 10]
        h, tables = contraction.collect(unary, log_sum)
        nodes, pairs = np.zeros(unary.shape), np.zeros(tables.shape)
        log_z = _roots(graph, contraction, h, nodes)
        inside = h[core.nodes], tables[core.slots]
        try:
            nodes[core.nodes], pairs[core.slots], log_z_core = _multiply(core, *inside)
        except _OutOfRangeError:
            nodes[core.nodes], pairs[core.slots], log_z_core = _add_logs(graph, core, *inside)
        contraction.distribute(h, tables, nodes, pairs)
        return Marginals(nodes, float(log_z + log_z_core), exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        unary = check_unary(graph, unary)
        if unary.shape[1] == 1:
            return _only_assignment(graph, unary).nodes.argmax(axis=1)
        core = tree(unary.shape[1])
        h, tables = contraction.collect(unary, best, largest=True)
        z = np.zeros(len(unary), dtype=np.intp)
        _roots(graph, contraction, h, np.empty(h.shape))
        z[contraction.roots] = h[contraction.roots].argmax(axis=1)
        z[core.nodes] = _most_probable(graph, core, h[core.nodes], tables[core.slots])
        contraction.trace_back(h, tables, z)
        return z

    return with_most_probable(infer, most_probable)


def _roots(graph: Graph, contraction: Contraction, h: FloatArray, nodes: FloatArray) -> float:
    """Sum of the log Z of the components that contraction has brought down to one node."""
    roots = contraction.roots
    impossible = h[roots].max(axis=1, initial=-np.inf) == -np.inf
    if impossible.any():
        _refuse_impossible(graph, roots[impossible][0], h.shape[1])
    nodes[roots], log_totals = log_normalise(h[roots])
    return log_totals.sum()


def _only_assignment(graph: Graph, unary: FloatArray) -> Marginals:
    """K = 1: nothing to sum, however wide the graph."""
    forbidden = np.flatnonzero(graph.weights == -np.inf)
    if len(forbidden):
        _refuse_impossible(graph, graph.edges[forbidden[0], 0], 1)
    log_z = float(unary.sum() + graph.weights.sum())
    return Marginals(np.ones(unary.shape), log_z, exact=True)


def _refuse_impossible(graph: Graph, node: int, n_states: int) -> None:
    """Name the component of a node."""
    labels = components(graph)
    raise NetworkError(
        f"no joint assignment of {{nodes}} is possible with K = {n_states}: the forbidden pairs "
        "among them admit no proper colouring that the evidence allows. Use more components, or "
        "revise the relations or the evidence.",
        np.flatnonzero(labels == labels[node]),
    )


# ------------------------------------------------------------------- the tree of cliques


class _Edge(NamedTuple):
    """An edge inside a clique; its axes count along R, A, F."""

    axes: tuple[int, int]
    weight: float
    slot: int
    """Index into the core's part of T, or -1."""
    turned: bool
    """Whether the first axis of its table is that of the second end."""


_Tie = tuple[list[int], float, int, bool]
# Places of the ends in ascending order, log-weight, slot, and whether they were turned.


class _Child(NamedTuple):
    """Where the message of a child goes, among the axes of R and A."""

    # A field hides the method of tuples, which nobody calls.
    index: int  # type: ignore[assignment]
    shape: tuple[int, ...]
    """Of its message there: one along the axes that it has not."""
    summed: tuple[int, ...]
    """Those axes."""


class _Clique(NamedTuple):
    """A clique, its place in the tree, and its constant factors."""

    own: list[int]
    """R. Nodes are called by their place in the order of elimination, and sorted."""
    separator: list[int]
    """S = (A, F), each of the two sorted."""
    n_fresh: int
    edges: list[_Edge]
    """Those whose first end is eliminated here."""
    children: list[_Child]
    n_states: int
    to_message: tuple[int, ...]
    """Permutes the axes of (A, F) so that S is sorted, as it is in messages."""
    from_message: tuple[int, ...]
    local: FloatArray
    """Product of the weighted edges within R and A, of length one along what they miss."""
    psi: FloatArray
    """(K**|R|, K**|F|) product of the edges between R and F."""
    offset: float
    """Log of what the two were divided by."""
    low: float
    """Log of the smallest positive product of their entries."""

    @property
    def n_inner(self) -> int:
        """|R| + |A|, the number of axes of P."""
        return len(self.own) + len(self.separator) - self.n_fresh

    @property
    def n_axes(self) -> int:
        """|R| + |A| + |F|."""
        return len(self.own) + len(self.separator)


class _Tree(NamedTuple):
    """The cliques for a number of states, children before parents."""

    cliques: list[_Clique]
    nodes: IntArray
    """The core, in the order of elimination: inside the tree a node is called by its place."""
    slots: IntArray
    """The core's part of T."""
    hard: bool
    """Whether a pair is forbidden by its weight."""


def _build(graph: Graph, core: Ties, n_states: int, max_bytes: int) -> _Tree:
    """Lay out the tree; refuse before any table is allocated if they would not fit."""
    max_degree = int(math.log(max(max_bytes / 8, 1)) / math.log(n_states))
    order = elimination_order(core.ends, n_states, max_degree)
    if order.stuck:
        _refuse_width(graph, order.stuck[0], max_degree + 1, n_states, None, max_bytes)
    cliques = _place_all(_merge(order, n_states), order, core, n_states)
    n_bytes = 8 * sum(_n_cells(clique, n_states) for clique in cliques)
    if n_bytes > max_bytes:
        widest = max(range(len(order.nodes)), key=lambda i: len(order.neighbours[i]))
        width = len(order.neighbours[widest])
        _refuse_width(graph, order.nodes[widest], width, n_states, n_bytes, max_bytes)
    return _Tree(
        [_with_constants(clique, n_states) for clique in cliques],
        np.array(order.nodes, dtype=np.intp),
        core.slots[core.slots >= 0],
        bool((core.weights == -np.inf).any()),
    )


def _n_cells(clique: _Clique, n_states: int) -> int:
    """Numbers that the way back needs of a clique: P, its constants, and its message."""
    psi = n_states ** (len(clique.own) + clique.n_fresh)
    return 2 * n_states**clique.n_inner + psi + n_states ** len(clique.separator)


def _refuse_width(
    graph: Graph, node: int, width: int, n_states: int, n_bytes: int | None, max_bytes: int
) -> None:
    """Name the component of a node, the width, the cost, and what to do instead."""
    labels = components(graph)
    n_edges = int((labels[graph.edges[:, 0]] == labels[node]).sum())
    at_least = "" if n_bytes else "at least "
    n_bytes = n_bytes or 8 * n_states**width
    raise NetworkError(
        f"exact inference is out of reach for the component of {{nodes}}, tied by {n_edges} edges: "
        f"in the order of elimination it has an induced width of {at_least}{width}, so that with "
        f"K = {n_states} its tables would take {at_least}{_in_words(n_bytes)}, more than "
        f"{_in_words(max_bytes)}. Use 'mean_field' or 'gibbs', which approximate, "
        "'spanning_tree', which drops relations, or give fewer relations.",
        np.flatnonzero(labels == labels[node]),
    )


def _in_words(n_bytes: int) -> str:
    """Round to binary units."""
    power = min((n_bytes.bit_length() - 1) // 10, 4)
    return f"{n_bytes / 1024**power:.3g} {['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][power]}"


def _merge(order: Order, n_states: int) -> list[tuple[list[int], list[int]]]:
    """(R, S) of the cliques: a node with its neighbours; small ones are merged into parents."""
    separators = [sorted(order.place[u] for u in near) for near in order.neighbours]
    own = [[i] for i in range(len(separators))]
    kept = []
    for i, separator in enumerate(separators):
        parent = separator[0] if separator else i
        n_axes = len(own[i]) + len(own[parent]) + len(separators[parent])
        if separator and n_states**n_axes <= MERGED_CELLS:
            own[parent] += own[i]
        else:
            kept.append((sorted(own[i]), separator))
    return kept


def _place_all(
    scopes: list[tuple[list[int], list[int]]], order: Order, core: Ties, n_states: int
) -> list[_Clique]:
    """Give every edge and every message to the clique that eliminates its first node."""
    home = {v: i for i, (own, _) in enumerate(scopes) for v in own}
    edges: list[list[_Tie]] = [[] for _ in scopes]
    children: list[list[tuple[int, list[int]]]] = [[] for _ in scopes]
    slots = np.where(core.slots < 0, -1, np.cumsum(core.slots >= 0) - 1)
    rows = zip(core.ends.tolist(), core.weights.tolist(), slots.tolist(), strict=True)
    for (a, b), weight, slot in rows:
        ends = order.place[a], order.place[b]
        edges[home[min(ends)]].append((sorted(ends), weight, slot, ends[0] > ends[1]))
    for i, (_, separator) in enumerate(scopes):
        if separator:
            children[home[separator[0]]].append((i, separator))
    return [_place(*scope, edges[i], children[i], n_states) for i, scope in enumerate(scopes)]


def _place(
    own: list[int],
    separator: list[int],
    edges: list[_Tie],
    children: list[tuple[int, list[int]]],
    n_states: int,
) -> _Clique:
    """Find F, unless the whole table is small anyway, and turn nodes into axes."""
    reached = {v for _, scope in children for v in scope}
    reached |= {v for ends, _, slot, _ in edges if slot >= 0 for v in ends}
    small = n_states ** (len(own) + len(separator)) <= MERGED_CELLS
    fresh = [] if small else [v for v in separator if v not in reached]
    scope = own + [v for v in separator if v not in fresh] + fresh
    axis = {v: i for i, v in enumerate(scope)}
    to_message = tuple(axis[v] - len(own) for v in separator)
    return _Clique(
        own=own,
        separator=scope[len(own) :],
        n_fresh=len(fresh),
        edges=[_Edge((axis[a], axis[b]), w, slot, turned) for (a, b), w, slot, turned in edges],
        children=[
            _child(i, {axis[v] for v in nodes}, len(scope) - len(fresh), n_states)
            for i, nodes in children
        ],
        n_states=n_states,
        to_message=to_message,
        from_message=tuple(np.argsort(to_message).tolist()),
        local=np.empty(0),
        psi=np.empty(0),
        offset=0.0,
        low=0.0,
    )


def _child(index: int, axes: set[int], n_inner: int, n_states: int) -> _Child:
    shape = tuple(n_states if axis in axes else 1 for axis in range(n_inner))
    return _Child(index, shape, tuple(axis for axis in range(n_inner) if axis not in axes))


def _with_constants(clique: _Clique, n_states: int) -> _Clique:
    """Exponentiate the constant factors, scaled so that their largest entries are one."""
    n_own, n_inner = len(clique.own), clique.n_inner
    inner, fresh = _constants(clique, n_states)
    tops = [max(table.max(), np.finfo(float).min) for table in (inner, fresh)]
    low = sum(_smallest(table - top) for table, top in zip((inner, fresh), tops, strict=True))
    psi = np.exp(fresh - tops[1]).reshape(fresh.shape[:n_own] + fresh.shape[n_inner:])
    psi = np.broadcast_to(psi, (n_states,) * psi.ndim).reshape(n_states**n_own, -1)
    local = np.exp(inner - tops[0]).reshape(inner.shape[:n_inner])
    return clique._replace(local=local, psi=psi, offset=sum(tops), low=low)


def _constants(clique: _Clique, n_states: int) -> tuple[FloatArray, FloatArray]:
    """Log-potentials of the weighted edges: those within R and A, and those that reach F."""
    tables = [np.zeros((1,) * clique.n_axes)] * 2
    for edge in clique.edges:
        if edge.slot < 0:
            diagonal = np.where(np.eye(n_states, dtype=bool), edge.weight, 0.0)
            reaches_fresh = edge.axes[1] >= clique.n_inner
            spread = _spread(diagonal, edge.axes, clique.n_axes)
            tables[reaches_fresh] = tables[reaches_fresh] + spread
    return tables[0], tables[1]


def _smallest(log_values: FloatArray) -> float:
    """The smallest that is possible, at most zero."""
    return float(log_values.min(where=log_values > -np.inf, initial=0.0))


def _spread(table: FloatArray, axes: tuple[int, ...], n_axes: int) -> FloatArray:
    """The table with its axes where they belong, and length one elsewhere."""
    shape = [1] * n_axes
    for axis, length in zip(axes, table.shape, strict=True):
        shape[axis] = length
    return table.reshape(shape)


def _table_of(edge: _Edge, tables: FloatArray) -> FloatArray:
    """(K, K) entry of T, its first axis that of the end eliminated first."""
    return tables[edge.slot].T if edge.turned else tables[edge.slot]


# --------------------------------------------------------------------------- products


class _OutOfRangeError(Exception):
    """Products of probabilities might underflow."""


class _Factors(NamedTuple):
    """What changes with the unaries, divided by its largest entries."""

    h: FloatArray
    tables: FloatArray
    low_h: list[float]
    low_tables: list[float]
    hard: bool
    """Whether pairs are forbidden."""

    def require_range(self, low: float) -> None:
        """Give up where a product may be too small."""
        if low < (LOWEST_HARD if self.hard else LOWEST_SOFT):
            raise _OutOfRangeError


class _Inward(NamedTuple):
    """What the way in leaves for the way back."""

    local: FloatArray
    """Factors of the clique itself over R and A."""
    product: FloatArray
    """(K**|R|, K**|A|) P."""
    low: float
    """Of all factors that meet in the clique but its parent's answer."""
    messages: list[FloatArray]
    """Of its children, where they are several."""


def _multiply(
    tree: _Tree, h: FloatArray, tables: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """In and out by products: marginals of nodes and of pairs with a table, and log Z."""
    factors, log_z = _scale(tree, h, tables)
    inward, log_scale = _collect(tree, factors)
    nodes, pairs = np.empty(h.shape), np.empty(tables.shape)
    answers: list[Any] = [(np.ones(()), 0.0)] * len(inward)
    for i in reversed(range(len(inward))):
        _distribute(tree.cliques[i], inward[i], answers, i, nodes, pairs, factors)
        inward[i] = answers[i] = None
    return nodes, pairs, log_z + log_scale


def _scale(tree: _Tree, h: FloatArray, tables: FloatArray) -> tuple[_Factors, float]:
    """Factors of at most one, and the log of what they were divided by."""
    top_h, top_t = h.max(axis=1), tables.max(axis=(1, 2), initial=-np.inf)
    if not (np.isfinite(top_h).all() and np.isfinite(top_t).all()):
        raise _OutOfRangeError
    h, tables = h - top_h[:, None], tables - top_t[:, None, None]
    hard = tree.hard or bool((tables == -np.inf).any())
    low_h = h.min(axis=1, where=h > -np.inf, initial=0.0) if hard else np.zeros(len(h))
    low_t = tables.min(axis=(1, 2), where=tables > -np.inf, initial=0.0)
    factors = _Factors(np.exp(h), np.exp(tables), low_h.tolist(), low_t.tolist(), hard)
    return factors, float(top_h.sum() + top_t.sum())


def _collect(tree: _Tree, factors: _Factors) -> tuple[list[Any], float]:
    """Messages to the roots; what is kept of each clique, and the log of Z."""
    inward: list[Any] = []
    messages: list[Any] = []
    log_z = 0.0
    for clique in tree.cliques:
        heard = [messages[child.index] for child in clique.children]
        for child in clique.children:
            messages[child.index] = None
        inward.append(_meet(clique, factors, heard))
        message = _sum_out(clique, inward[-1].product)
        top = float(message.max())
        if not top > 0:
            raise _OutOfRangeError
        message *= 1 / top
        messages.append((message, _log_smallest(message)))
        log_z += np.log(top) + clique.offset
    return inward, float(log_z)


def _meet(clique: _Clique, factors: _Factors, heard: list[tuple[FloatArray, float]]) -> _Inward:
    """Multiply everything that meets over R and A."""
    local, low = _local(clique, factors)
    messages = [
        m.reshape(child.shape) for (m, _), child in zip(heard, clique.children, strict=True)
    ]
    low += clique.low + sum(low_message for _, low_message in heard)
    factors.require_range(low)
    product = local
    if len(messages) == 1 and messages[0].size > local.size and not clique.children[0].summed:
        # An only child's message is not needed again: its memory is reused.
        product = np.multiply(local, messages[0], out=messages[0])
        messages = []
    for message in messages:
        product = product * message
    n_rows = clique.n_states ** len(clique.own)
    return _Inward(local, product.reshape(n_rows, -1), low, messages)


def _local(clique: _Clique, factors: _Factors) -> tuple[FloatArray, float]:
    """Constant factors, unaries and tables of a clique."""
    n_inner, n_own = clique.n_inner, len(clique.own)
    own = factors.h[clique.own[0]]
    for v in clique.own[1:]:
        own = own[..., None] * factors.h[v]
    local = clique.local * own.reshape(own.shape + (1,) * (n_inner - n_own))
    low = sum([factors.low_h[v] for v in clique.own])
    for edge in clique.edges:
        if edge.slot >= 0:
            local = local * _spread(_table_of(edge, factors.tables), edge.axes, n_inner)
            low += factors.low_tables[edge.slot]
    return local, low


def _sum_out(clique: _Clique, product: FloatArray) -> FloatArray:
    """m(S) = Σ_R P(R, A) ψ(R, F), its axes sorted."""
    n_states = clique.n_states
    if not clique.n_fresh:
        return product.sum(axis=0).reshape((n_states,) * len(clique.separator))
    message = np.empty((product.shape[1], clique.psi.shape[1]))
    # By blocks: too small for BLAS to start threads, which cost more here than they bring.
    for part in blocks(len(message), clique.psi.size):
        np.matmul(product[:, part].T, clique.psi, out=message[part])
    message = message.reshape((n_states,) * len(clique.separator))
    return np.asarray(message.transpose(clique.to_message), order="C")


def _log_smallest(message: FloatArray) -> float:
    """Log of the smallest positive entry."""
    smallest = float(message.min())
    if smallest == 0:
        smallest = float(message.min(where=message > 0, initial=1.0))
    return math.log(smallest)


def _distribute(
    clique: _Clique,
    inward: _Inward,
    answers: list[tuple[FloatArray, float]],
    i: int,
    nodes: FloatArray,
    pairs: FloatArray,
    factors: _Factors,
) -> None:
    """Marginals of R, and the answers to the children, from the parent's answer."""
    answer, low = answers[i]
    if factors.hard:
        factors.require_range(low + inward.low)
    outside = _outside(clique, answer)
    _store_marginals(clique, _belief(clique, inward.product, outside), nodes)
    _store_pairs(clique, inward.product, outside, pairs)
    if len(clique.children) == 1:
        child = clique.children[0]
        others = _with_axes(clique, outside) * inward.local
        answers[child.index] = _scaled(_reduce(others, child))
    elif clique.children:
        _divide_out(clique, _with_axes(clique, inward.product * outside), inward, answers)


def _belief(clique: _Clique, product: FloatArray, outside: FloatArray) -> FloatArray:
    """(K, ..., K) Σ_A P(R, A) outside(R, A)."""
    if clique.n_fresh:
        belief = np.einsum("ra,ra->r", product, outside)
    else:
        belief = np.einsum("ra,a->r", product, outside[0])
    return belief.reshape((clique.n_states,) * len(clique.own))


def _divide_out(
    clique: _Clique, joint: FloatArray, inward: _Inward, answers: list[tuple[FloatArray, float]]
) -> None:
    """Answer each child with the belief about its separator, without what it said itself."""
    for child, message in zip(clique.children, inward.messages, strict=True):
        belief = _reduce(joint, child)
        message = message.reshape(belief.shape)
        answer = np.divide(belief, message, out=np.zeros(belief.shape), where=message > 0)
        answers[child.index] = _scaled(answer)


def _reduce(table: FloatArray, child: _Child) -> FloatArray:
    """Sum out what the child does not have."""
    return table.sum(axis=child.summed) if child.summed else table


def _scaled(message: FloatArray) -> tuple[FloatArray, float]:
    """Divide by the largest entry, in place; also the log of the smallest positive one."""
    message *= 1 / message.max()
    return message, _log_smallest(message)


def _with_axes(clique: _Clique, table: FloatArray) -> FloatArray:
    """Give a table over (R, A), or over A alone in one row, an axis for each node."""
    n_own = len(clique.own)
    own = (1 if len(table) == 1 else clique.n_states,) * n_own
    return table.reshape(own + (clique.n_states,) * (clique.n_inner - n_own))


def _outside(clique: _Clique, answer: FloatArray) -> FloatArray:
    """(K**|R|, K**|A|) Σ_F ψ(R, F) μ(A, F); one row where there is no F."""
    if not clique.n_fresh:
        return answer.reshape(1, -1)
    by_parts = answer.transpose(clique.from_message).reshape(-1, clique.psi.shape[1])
    outside = np.empty((len(clique.psi), len(by_parts)))
    for part in blocks(len(by_parts), clique.psi.size):
        np.matmul(clique.psi, by_parts[part].T, out=outside[:, part])
    return outside


def _store_marginals(clique: _Clique, belief: FloatArray, nodes: FloatArray) -> None:
    """Marginals of each node of R."""
    belief = belief / belief.sum()
    for axis, v in enumerate(clique.own):
        nodes[v] = belief.sum(axis=tuple(i for i in range(belief.ndim) if i != axis))


def _store_pairs(
    clique: _Clique, product: FloatArray, outside: FloatArray, pairs: FloatArray
) -> None:
    """Joint marginals of the pairs that have a table."""
    slotted = [edge for edge in clique.edges if edge.slot >= 0]
    if not slotted:
        return
    joint = _with_axes(clique, product * outside)
    joint /= joint.sum()
    for edge in slotted:
        _store_pair(edge, joint, pairs)


def _store_pair(edge: _Edge, joint: FloatArray, pairs: FloatArray) -> None:
    """Sum out all but the two ends."""
    pair = joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in edge.axes))
    pairs[edge.slot] = pair.T if edge.turned else pair


# ------------------------------------------------------------------------------- logs


def _add_logs(
    graph: Graph, tree: _Tree, h: FloatArray, tables: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """The same as :func:`_multiply`, at any scale: the way back goes by p(S) p(R | S)."""
    messages: list[Any] = _collect_logs(graph, tree, h, tables, log_sum)
    nodes, pairs, log_z = np.empty(h.shape), np.empty(tables.shape), 0.0
    separators: list[Any] = [np.ones(())] * len(messages)
    for i in reversed(range(len(messages))):
        clique = tree.cliques[i]
        if not clique.separator:
            log_z += float(messages[i])
        joint = _joint(clique, separators[i], h, tables, messages)
        own = joint.sum(axis=tuple(range(len(clique.own), clique.n_axes)))
        _store_marginals(clique, own, nodes)
        for edge in clique.edges:
            if edge.slot >= 0:
                _store_pair(edge, joint, pairs)
        joint = joint.sum(axis=tuple(range(clique.n_inner, clique.n_axes)))
        for child in clique.children:
            separators[child.index] = joint.sum(axis=child.summed)
            messages[child.index] = None
        separators[i] = None
    return nodes, pairs, log_z


def _joint(
    clique: _Clique,
    separator: FloatArray,
    h: FloatArray,
    tables: FloatArray,
    messages: list[FloatArray],
) -> FloatArray:
    """p(R, A, F) = p(S) p(R | S)."""
    table = _log_table(clique, h, tables, messages)
    joint = conditional(table.reshape(h.shape[1] ** len(clique.own), -1), 0)
    joint *= separator.transpose(clique.from_message).reshape(1, -1)
    return joint.reshape(table.shape)


def _collect_logs(
    graph: Graph, tree: _Tree, h: FloatArray, tables: FloatArray, total: Total
) -> list[FloatArray]:
    """Messages to the roots in logs; an error if a root has no possible assignment."""
    messages: list[FloatArray] = []
    for clique in tree.cliques:
        table = _log_table(clique, h, tables, messages)
        message = total(table.reshape(h.shape[1] ** len(clique.own), -1), 0)
        message = message.reshape((h.shape[1],) * len(clique.separator))
        if not clique.separator and message == -np.inf:
            _refuse_impossible(graph, tree.nodes[clique.own[0]], h.shape[1])
        messages.append(np.asarray(message.transpose(clique.to_message), order="C"))
    return messages


def _log_table(
    clique: _Clique, h: FloatArray, tables: FloatArray, messages: list[FloatArray]
) -> FloatArray:
    """Sum of all factors over (R, A, F), the smaller ones first."""
    factors = sorted(_log_factors(clique, h, tables, messages), key=np.size)
    table = np.zeros((1,) * clique.n_axes)
    for factor in factors:
        table = table + factor
    return table


def _log_factors(
    clique: _Clique, h: FloatArray, tables: FloatArray, messages: list[FloatArray]
) -> Iterator[FloatArray]:
    """Factors of a clique with the axes of (R, A, F), of length one along what they miss."""
    yield from _constants(clique, h.shape[1])
    for axis, v in enumerate(clique.own):
        yield _spread(h[v], (axis,), clique.n_axes)
    for edge in clique.edges:
        if edge.slot >= 0:
            yield _spread(_table_of(edge, tables), edge.axes, clique.n_axes)
    for child in clique.children:
        yield messages[child.index].reshape(child.shape + (1,) * clique.n_fresh)


def _most_probable(graph: Graph, tree: _Tree, h: FloatArray, tables: FloatArray) -> IntArray:
    """States of the core: largest sums of logs on the way in, read off on the way back."""
    z = np.zeros(len(h), dtype=np.intp)
    messages = _collect_logs(graph, tree, h, tables, best)
    for clique in reversed(tree.cliques):
        _choose(clique, h, tables, messages, z)
    return z


def _choose(
    clique: _Clique,
    h: FloatArray,
    tables: FloatArray,
    messages: list[FloatArray],
    z: IntArray,
) -> None:
    """Best states of R given those of S."""
    n_own = len(clique.own)
    score = np.zeros((h.shape[1],) * n_own)
    for factor in _log_factors(clique, h, tables, messages):
        given = [min(z[v], factor.shape[n_own + i] - 1) for i, v in enumerate(clique.separator)]
        score = score + factor[(slice(None),) * n_own + tuple(given)]
    z[clique.own] = np.unravel_index(score.argmax(), score.shape)
