"""Colourings: can all hard relations be honoured with K states, and by which assignment?

To honour all cannot-links is to colour their graph with K colours, where evidence leaves each node
a list of its own colours; this is NP-complete. ``feasible_assignment`` is called by fits,
K-means, the Gibbs sampler and the search for the best assignment before they do any work. It has
three possible outcomes:

- an assignment that breaks no relation;
- *impossible*: proved, and :class:`~cgmm.network.NetworkError` names the nodes to blame;
- *not known*: nothing was found within the budget, ``SearchBudgetError``.

A greedy colouring nearly always succeeds. In a component where it fails, nodes that always find a
state once their neighbours have one are peeled off. What is left is the *core*. A clique of K + 1
nodes in it is a refutation. A tabu walk is quick to find a colouring and proves nothing; an integer
linear program, solved by HiGHS, does either. The same program, with the unaries in its objective,
proves a most probable assignment (:mod:`~cgmm.inference.best_assignment`): a state is chosen by
zeros and ones, x_jk = [z_j = k], and an edge acts where y_ek = x_ak x_bk ::

    maximise  Σ_jk u_jk x_jk + Σ_ek w_e y_ek     with  Σ_k x_jk = 1
    w = -∞:  x_ak + x_bk ≤ 1        w > 0:  y_ek ≤ x_ak, x_bk        w < 0:  y_ek ≥ x_ak + x_bk - 1

If the variables may be fractions, this is a linear program whose optimum bounds that of the integer
program; branch and bound closes the gap, or proves that nothing is feasible. The budget counts what
is the same on every machine: branches, and the nodes that the linear program splits among states.

The other colouring here asks for no number of colours: nodes of one colour share no edge, so that a
sweep of Gibbs sampling or of mean field may update all of them at once. Chapters 7, 10 and 11.

=========  ==========================================================================
K          number of states: colours, components, clusters
matrix     (n, n) symmetric, ones where there is a cannot-link
allowed    (n, K) whether node j may have state k
near       (n,) states near which an assignment may lie, though they break some links
u, w       unary log-potentials (n, K); log-weights of edges
x, y       variables of the program, in this order, row by row
=========  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csgraph

from cgmm.network import (
    Graph,
    NetworkError,
    SideInformation,
    adjacency,
    connected_components,
    induced_subgraph,
)  # fmt: skip
from cgmm.network.graph import edge_matrix, hard_part
from cgmm.numerics import AGREE, BoolArray, FloatArray, IntArray

# Breaks ties between nodes of equal degree: regular graphs are not coloured in index order.
TIE_SEED = 0
# Steps of all walks, unless the user says otherwise; a step gives a node a state. The first walk
# has the second number of steps, and one more for each node.
MAX_SEARCH, FIRST_STEPS = 1_000_000, 2_000
# A proof has one branch for this many steps, a budget that is the same on every machine. Larger
# cores are blamed as a whole.
STEPS_A_BRANCH, MAX_BLAMED = 1000, 60
# Limits of a proof: entries of the program, nodes that the relaxation splits, branches. Within them
# proofs took at most 1.4 s (random planted problems, grids and preferences of 30 to 600 nodes).
MAX_ENTRIES, MAX_SPLIT, MAX_BRANCHES = 40_000, 50, 10

Rng = np.random.RandomState


class SearchBudgetError(RuntimeError):
    """No assignment that breaks no cannot-link was found in the budget of the search.

    Whether there is one is not known: this is no verdict on the relations. See ``max_search``.
    """


def feasible_assignment(
    graph: Graph, n_states: int, *, allowed: BoolArray | None = None,
    max_search: int = MAX_SEARCH, rng: Rng | None = None,
    hint: Callable[[], IntArray] | None = None, noun: str = "state", remedy: str | None = None,
) -> IntArray:  # fmt: skip
    """Find an assignment that breaks no cannot-link, or raise an error that says why there is none.

    Parameters
    ----------
    graph : Graph
        Any graph; only its edges of weight ``-inf`` count.
    n_states : int
        K.
    allowed : (n_nodes, K) bool array, default=None
        The states that evidence leaves to each node; None: all.
    max_search : int, default=1000000
        Steps of walks, where greedy colouring fails, each of which gives a node a state; and
        branches of a proof.
    rng : RandomState, default=None
        Starts and moves of the walks; None is a fixed seed.
    hint : callable, default=None
        Gives (n_nodes,) states near which an assignment may lie, though they break some
        cannot-links; called only if there must be a search.
    noun : str, default="state"
        What a state is called in errors.
    remedy : str, default=None
        What to do if the search runs out of steps, a sentence.

    Returns
    -------
    (n_nodes,) int array
        The state of each node.

    Raises
    ------
    NetworkError
        If no assignment breaks none: that is proved, and nodes to blame are named.
    SearchBudgetError
        If neither ``max_search`` steps nor a proof with a thousandth as many branches settled it.

    Examples
    --------
    A triangle needs three states:

    >>> triangle = Graph(3, np.array([[0, 1], [1, 2], [0, 2]]), np.full(3, -np.inf))
    >>> sorted(feasible_assignment(triangle, 3).tolist())
    [0, 1, 2]
    >>> feasible_assignment(triangle, 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    cgmm.network.errors.NetworkError: nodes 0, 1 and 2 are mutually cannot-linked, ...
    """
    hard = hard_part(graph)
    allowed = np.ones((graph.n_nodes, n_states), dtype=bool) if allowed is None else allowed
    z, label = colour_nodes(hard), connected_components(hard)
    fails = (z >= n_states) | ~allowed[np.arange(len(z)), np.minimum(z, n_states - 1)]
    near = hint() if hint is not None and fails.any() else None
    remedy = remedy or f"Raise max_search, use more {noun}s, or soft relations (PCKMeans)."
    search = partial(_colour_core, max_search=max_search, rng=rng or Rng(0), noun=noun)
    for c in np.unique(label[fails]):
        nodes = np.flatnonzero(label == c)
        part, near_here = induced_subgraph(hard, nodes), None if near is None else near[nodes]
        z[nodes] = _colour(part, allowed[nodes], near_here, partial(search, remedy=remedy))
    return z


def _colour(
    graph: Graph, allowed: BoolArray, near: IntArray | None, search: Callable[..., IntArray]
) -> IntArray:
    """Colour a component: first its core, then the nodes that were peeled off, in reverse order."""
    round_of = peel(graph.edges, allowed.sum(axis=1))
    core, z = np.flatnonzero(round_of < 0), np.full(len(allowed), -1)
    if len(core):
        near = None if near is None else near[core]
        z[core] = search(induced_subgraph(graph, core), allowed[core], near)
    matrix, states = edge_matrix(graph), np.arange(allowed.shape[1])
    for j in np.argsort(-round_of, kind="stable")[: len(z) - len(core)].tolist():
        z[j] = (allowed[j] & ~np.isin(states, z[_neighbours(matrix, j)])).argmax()
    return z


def _colour_core(
    graph: Graph, allowed: BoolArray, near: IntArray | None, max_search: int, rng: Rng, noun: str,
    remedy: str,
) -> IntArray:  # fmt: skip
    """Colour a core, or raise an error: no colouring exists, or none was found."""
    n_nodes, n_states = allowed.shape
    clique = forbidden_clique(graph, n_states + 1)
    if clique is not None:
        raise NetworkError(
            f"{{nodes}} are mutually cannot-linked, so they need a {noun} each, but there are only "
            f"{n_states} {noun}s: no assignment is possible. Remove a cannot-link between them, or "
            f"ask for {len(clique)} {noun}s or more.",
            np.sort(graph.named(clique)),
        )
    matrix, left, n_steps = edge_matrix(graph), max_search, n_nodes + FIRST_STEPS
    start = rng.randint(n_states, size=(n_nodes,)) if near is None else near
    while left > 0:
        z, used = tabu_walk(matrix, start, allowed, min(n_steps, left), rng)
        if z is not None:
            return z
        if left == max_search:
            proof = prove(graph, allowed, max_search // STEPS_A_BRANCH)
            if proof.states is not None:
                return proof.states
            if proof.proved:
                _refuse(graph, allowed, noun)
        start, n_steps, left = rng.randint(n_states, size=(n_nodes,)), 2 * n_steps, left - used
    raise SearchBudgetError(
        f"no assignment to {n_states} {noun}s that breaks no cannot-link was found in "
        f"{max_search} steps and a proof of {max_search // STEPS_A_BRANCH} branches: whether there "
        f"is one is not known. It is about {n_nodes} nodes, among them "
        f"{graph.named(np.arange(n_nodes))[:8].tolist()}. {remedy}"
    )


def _refuse(graph: Graph, allowed: BoolArray, noun: str) -> None:
    """Raise an error that names a minimal set of nodes that cannot be coloured."""
    blamed = np.arange(len(allowed))
    for j in range(len(allowed) if len(allowed) <= MAX_BLAMED else 0):
        rest = blamed[blamed != j]
        part = induced_subgraph(graph, rest)
        rest = rest[peel(part.edges, allowed[rest].sum(axis=1)) < 0]
        if j in blamed and len(rest):
            proof = prove(induced_subgraph(graph, rest), allowed[rest])
            blamed = rest if proof.proved and proof.states is None else blamed
    raise NetworkError(
        f"{{nodes}} are tied by cannot-links that no assignment to {allowed.shape[1]} {noun}s can "
        f"all honour: that is proved. Remove a cannot-link between them, or use more {noun}s.",
        graph.named(blamed),
    )


# ------------------------------------------------------------------------ refutations and searches


def forbidden_clique(graph: Graph, size: int, *, max_steps: int = 100_000) -> IntArray | None:
    """Find nodes that are all cannot-linked to each other: fewer states than nodes do not suffice.

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
        Such nodes, ascending; None if there are none, or none were found in ``max_steps``.

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
    edges = hard_part(graph).edges
    stays = peel(edges, np.full(graph.n_nodes, size - 1)) < 0
    edges = edges[stays[edges].all(axis=1)]
    later: dict[int, set[int]] = {int(node): set() for node in np.unique(edges)}
    for a, b in edges.tolist():
        later[a].add(b)
    stack: list[tuple[tuple[int, ...], set[int]]]
    stack = [((node,), neighbours) for node, neighbours in sorted(later.items(), reverse=True)]
    for _ in range(max_steps):
        if not stack:
            break
        clique, common = stack.pop()
        if len(clique) == size:
            return np.array(clique)
        if len(clique) + len(common) >= size:
            stack += [((*clique, n), common & later[n]) for n in sorted(common, reverse=True)]
    return None


def peel(edges: IntArray, limits: IntArray) -> IntArray:
    """Remove nodes that have too few neighbours left, round by round.

    Parameters
    ----------
    edges : (E, 2) int array
        Pairs of nodes.
    limits : (n_nodes,) int array
        A node stays as long as this many of its neighbours stay.

    Returns
    -------
    (n_nodes,) int array
        The round in which each node is removed; -1 for the nodes of the core, which stay.

    Examples
    --------
    A triangle with a tail of two nodes:

    >>> peel(np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4]]), np.full(5, 2))
    array([-1, -1, -1,  1,  0])
    """
    round_of = np.full(len(limits), -1)
    for number in count():
        removed = (round_of < 0) & (np.bincount(edges.ravel(), minlength=len(round_of)) < limits)
        if not removed.any():
            break
        round_of[removed] = number
        edges = edges[~removed[edges].any(axis=1)]
    return round_of


def tabu_walk(
    matrix: sparse.csr_array, start: IntArray, allowed: BoolArray, n_steps: int, rng: Rng
) -> tuple[IntArray | None, int]:
    """Repair an assignment move by move; return it, or None if it is not repaired, and the steps.

    Hertz and de Werra (1987): of all moves of nodes in conflict take the one that leaves the fewest
    conflicts, where a node may not return for a while to a state that it has just left.
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
            return z, step
        n_conflicts = own.sum() // 2
        fewest = min(fewest, n_conflicts)
        # The change of the number of conflicts; a random number below one breaks ties.
        change = counts[wrong] - own[wrong, None] + 0.5 * rng.uniform(size=(len(wrong), n_colours))
        # A forbidden move is allowed only if it leads to fewer conflicts than ever before.
        forbidden = forbidden_until[wrong] > step
        change[forbidden & (np.floor(change) + n_conflicts >= fewest)] += len(everyone) ** 2
        change[np.arange(len(wrong)), z[wrong]] = np.inf
        change[~allowed[wrong]] = np.inf
        row, k = np.unravel_index(change.argmin(), change.shape)
        j = wrong[row]
        neighbours = _neighbours(matrix, j)
        counts[neighbours, z[j]] -= 1
        counts[neighbours, k] += 1
        forbidden_until[j, z[j]] = step + 0.6 * n_conflicts + rng.randint(10)
        z[j] = k
    return None, n_steps


def _neighbours(matrix: sparse.csr_array, j: int) -> IntArray:
    """Return the neighbours of a node."""
    return matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]]


def require_colourable(side: SideInformation, n_components: int) -> None:
    """Raise an error if more chunklets than components are all cannot-linked to each other.

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


# ------------------------------------------------------------------------------------------ proofs


class Solved(NamedTuple):
    """The outcome of an integer program."""

    states: IntArray | None
    """(n_nodes,) a best assignment; None if there is none or if it is not known."""
    proved: bool
    """Whether the outcome is certain: False if the budget ran out."""


UNKNOWN = Solved(None, proved=False)


def prove(graph: Graph, allowed: BoolArray, max_branches: int = MAX_BRANCHES) -> Solved:
    """Find a colouring with the allowed states, or prove that there is none, within the budget."""
    return solve(graph, np.where(allowed, 0.0, -np.inf), max_branches=max_branches)


def solve(graph: Graph, unary: FloatArray, *, max_branches: int = MAX_BRANCHES) -> Solved:
    """Find the most probable joint assignment and prove it, or prove that there is none.

    Parameters
    ----------
    graph : Graph
        Simplified.
    unary : (n_nodes, K) array
        Log-potentials, -inf where a state is impossible.
    max_branches : int, default=10
        Budget in branches, which is the same on every machine.

    Returns
    -------
    Solved
        The assignment, if it was proved to be the best.

    Examples
    --------
    >>> triangle = Graph(3, np.array([[0, 1], [0, 2], [1, 2]]), np.full(3, -np.inf))
    >>> solve(triangle, np.array([[2.0, 0, 1], [2, 0, 0], [1, 0, 0]]))
    Solved(states=array([2, 0, 1]), proved=True)
    >>> solve(triangle, np.zeros((3, 2)))
    Solved(states=None, proved=True)
    """
    n_nodes, n_states = unary.shape
    if unary.size + 3 * n_states * len(graph.edges) > MAX_ENTRIES:
        return UNKNOWN
    possible = np.isfinite(unary)
    # A constant added to all states of a node changes nothing but would cost digits.
    gains = np.where(possible, unary - unary.max(axis=1, keepdims=True), 0.0)
    soft = graph.weights[graph.weights > -np.inf]
    scale = max(np.abs(gains).max(initial=0.0), np.abs(soft).max(initial=0.0)) or 1.0
    objective = np.concatenate([gains.ravel(), np.repeat(soft, n_states)]) / -scale
    upper = np.concatenate([possible.ravel(), np.ones(n_states * len(soft))])
    whole = (np.arange(len(objective)) < unary.size).astype(np.intp)
    options: Any = {"mip_rel_gap": 0.0, "node_limit": max_branches}
    limits = _constraints(graph, n_states, len(objective))
    program = partial(milp, objective, bounds=Bounds(0, upper), options=options, constraints=limits)
    shares = lambda found: found.x[: unary.size].reshape(n_nodes, n_states)  # noqa: E731
    if gains.any():
        relaxed = program(integrality=np.zeros_like(whole))
        # Give up where the relaxation splits many nodes among states.
        if relaxed.status == 0 and np.sum(shares(relaxed).max(axis=1) < 1 - AGREE) > MAX_SPLIT:
            return UNKNOWN
    found = program(integrality=whole)
    # HiGHS: 0 is optimal, 2 is infeasible.
    if found.status not in (0, 2):
        return UNKNOWN
    return Solved(None if found.status == 2 else shares(found).argmax(axis=1), proved=True)


def _constraints(graph: Graph, n_states: int, n_variables: int) -> list[LinearConstraint]:
    """Return the constraints: one state for each node, and those of each kind of edge."""
    hard = graph.weights == -np.inf
    apart, together = (graph.weights < 0) & ~hard, graph.weights > 0
    variable = sparse.eye_array(n_variables, format="csr")
    # HiGHS within SciPy 1.14 takes no indices of 64 bits.
    of_node = np.arange(graph.n_nodes * n_states, dtype=np.int32).reshape(-1, n_states)
    (a, b), y = of_node[graph.edges.T], np.zeros((len(hard), n_states), dtype=np.intp)
    y[~hard] = np.arange(of_node.size, n_variables).reshape(-1, n_states)
    pick = lambda places, edges: variable[places[edges].ravel()]  # noqa: E731
    starts = np.arange(0, of_node.size + 1, n_states, dtype=np.int32)
    one = (np.ones(of_node.size), of_node.ravel(), starts)
    rows = [
        (sparse.csr_array(one, shape=(graph.n_nodes, n_variables)), 1.0, 1.0),
        (pick(a, hard) + pick(b, hard), -np.inf, 1.0),
        (pick(y, together) - pick(a, together), -np.inf, 0.0),
        (pick(y, together) - pick(b, together), -np.inf, 0.0),
        (pick(a, apart) + pick(b, apart) - pick(y, apart), -np.inf, 1.0),
    ]
    return [LinearConstraint(left, low, high) for left, low, high in rows if left.shape[0]]


# --------------------------------------------------------------------------- any number of colours


def colour_nodes(graph: Graph) -> IntArray:
    """Give each node a colour that no neighbour has.

    A bipartite component gets two colours. All others are coloured greedily, nodes of large degree
    first.

    Parameters
    ----------
    graph : Graph
        The network; edges of weight zero do not count.

    Returns
    -------
    (n_nodes,) int array
        Colours 0, 1, ..., the same at every call.

    Notes
    -----
    O(n_nodes + E) in all.

    Examples
    --------
    A triangle with a tail needs three colours; a path, two:

    >>> colour_nodes(Graph(4, np.array([[0, 1], [1, 2], [2, 0], [2, 3]]), np.ones(4)))
    array([2, 1, 0, 1])
    >>> colour_nodes(Graph(4, np.array([[0, 1], [1, 2], [2, 3]]), np.ones(3)))
    array([0, 1, 0, 1])
    """
    matrix = adjacency(graph)
    _, second, is_odd = two_colours(matrix)
    colours, odd = second.astype(np.intp), np.flatnonzero(is_odd)
    if len(odd):
        colours[odd] = _greedy(matrix[odd][:, odd])
    return colours


def two_colours(matrix: sparse.csr_array) -> tuple[IntArray, BoolArray, BoolArray]:
    """Return each node's component, its colour (0 or 1), and whether the component is odd.

    The double cover has two copies of every node, and joins each copy of a with the *other* copy of
    b. A bipartite component falls apart there, one part for each way to colour it;
    others are odd.
    """
    cover = sparse.block_array([[None, matrix], [matrix, None]], format="csr")
    cover.data = np.ones(len(cover.data))
    _, component = csgraph.connected_components(cover, directed=False)
    first, second = component.reshape(2, -1)
    _, label = np.unique(np.minimum(first, second), return_inverse=True)
    return label, first > second, first == second


def _greedy(matrix: sparse.csr_array) -> IntArray:
    """Colour nodes of large degree first, each with the smallest colour that no neighbour has."""
    degrees = np.diff(matrix.indptr)
    ties = np.random.default_rng(TIE_SEED).permutation(len(degrees))
    near = [part.tolist() for part in np.split(matrix.indices, matrix.indptr[1:-1])]
    colours = [-1] * len(degrees)
    for v in np.lexsort((ties, -degrees)).tolist():
        taken = {colours[u] for u in near[v]}
        colours[v] = next(c for c in range(len(taken) + 1) if c not in taken)
    return np.array(colours)
