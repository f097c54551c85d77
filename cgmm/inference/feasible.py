"""Can the hard relations be honoured with K states, and by which assignment? Chapters 7 and 11.

Everybody who must know asks here. To honour all cannot-links is to colour their graph with K
colours, where evidence leaves each node a list of its own: NP-complete. There are three answers:

- an assignment (:func:`~cgmm.inference.feasible_assignment`);
- *impossible*: proved, and the nodes to blame are named (:class:`~cgmm.network.NetworkError`);
- *not known*: not found in its budget (:class:`SearchBudgetError`).

A greedy colouring honours nearly all that is met in practice. In a component where it fails, nodes
that always find a state once their neighbours have one are peeled off. What is left is the *core*.
A clique of K + 1 nodes in it refutes at once. A walk, from conflict to conflict, is quick to find a
colouring and proves nothing; :mod:`~cgmm.inference.integer_program` does either.

=========  ==========================================================================
K          number of states: colours, components, clusters
matrix     (n, n) symmetric, ones where there is a cannot-link
allowed    (n, K) whether node j may have state k
near       (n,) states near which an assignment may lie, though they break some links
=========  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np
from scipy import sparse

from cgmm.inference.colouring import colour_nodes, edge_matrix, hard_part
from cgmm.inference.integer_program import solve
from cgmm.network import (
    Graph,
    NetworkError,
    SideInformation,
    connected_components,
    induced_subgraph,
)  # fmt: skip
from cgmm.numerics import BoolArray, IntArray

# Steps of walks in search of an assignment that breaks no relation, unless the user says more; a
# step gives a node a state. Those of the first walk, beyond one a node.
MAX_SEARCH, FIRST_STEPS = 1_000_000, 2_000
# A proof has one branch for so many steps: a budget that is the same on every machine. Cores of
# more nodes are blamed whole.
STEPS_A_BRANCH, MAX_BLAMED = 1000, 60

Hint = Callable[[], IntArray]
Rng = np.random.RandomState


class SearchBudgetError(RuntimeError):
    """No assignment that breaks no cannot-link was found in the budget of the search.

    Whether there is one is not known: this is no verdict on the relations. See ``max_search``.
    """


def feasible_assignment(
    graph: Graph,
    n_states: int,
    *,
    allowed: BoolArray | None = None,
    max_search: int = MAX_SEARCH,
    rng: Rng | None = None,
    hint: Hint | None = None,
    noun: str = "state",
    remedy: str | None = None,
) -> IntArray:
    """An assignment that breaks no cannot-link, or an error that says why there is none.

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
    hard, every = hard_part(graph), np.arange(graph.n_nodes)
    if allowed is None:
        allowed = np.ones((graph.n_nodes, n_states), dtype=bool)
    z, of_node = colour_nodes(hard), connected_components(hard)
    fails = (z >= n_states) | ~allowed[every, np.minimum(z, n_states - 1)]
    near = hint() if hint is not None and fails.any() else None
    remedy = remedy or f"Raise max_search, use more {noun}s, or soft relations (PCKMeans)."
    rng = rng or Rng(0)
    search = partial(_colour_core, max_search=max_search, rng=rng, noun=noun, remedy=remedy)
    for c in np.unique(of_node[fails]):
        nodes = np.flatnonzero(of_node == c)
        part, near_here = induced_subgraph(hard, nodes), None if near is None else near[nodes]
        z[nodes] = _colour(part, allowed[nodes], near_here, search)
    return z


def _colour(
    graph: Graph, allowed: BoolArray, near: IntArray | None, search: Callable[..., IntArray]
) -> IntArray:
    """The states of a component: those of its core, then of what was peeled off, last first."""
    went = peel(graph.edges, allowed.sum(axis=1))
    core, z = np.flatnonzero(went < 0), np.full(len(allowed), -1)
    if len(core):
        near = None if near is None else near[core]
        z[core] = search(induced_subgraph(graph, core), allowed[core], near)
    matrix, states = edge_matrix(graph), np.arange(allowed.shape[1])
    for j in np.argsort(-went, kind="stable")[: len(z) - len(core)].tolist():
        z[j] = (allowed[j] & ~np.isin(states, z[_neighbours(matrix, j)])).argmax()
    return z


def _colour_core(
    graph: Graph, allowed: BoolArray, near: IntArray | None, max_search: int, rng: Rng, noun: str,
    remedy: str,
) -> IntArray:  # fmt: skip
    """The states of a core, or an error that says whether there are none or none was found."""
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
            possible = np.where(allowed, 0.0, -np.inf)
            proof = solve(graph, possible, max_branches=max_search // STEPS_A_BRANCH)
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


def _neighbours(matrix: sparse.csr_array, j: int) -> IntArray:
    return matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]]


def _refuse(graph: Graph, allowed: BoolArray, noun: str) -> None:
    """Blame few nodes that cannot be honoured: all but those that are not needed for that."""
    blamed = np.arange(len(allowed))
    for j in range(len(allowed) if len(allowed) <= MAX_BLAMED else 0):
        rest = blamed[blamed != j]
        part = induced_subgraph(graph, rest)
        rest = rest[peel(part.edges, allowed[rest].sum(axis=1)) < 0]
        if j in blamed and len(rest):
            proof = solve(induced_subgraph(graph, rest), np.where(allowed[rest], 0.0, -np.inf))
            blamed = rest if proof.proved and proof.states is None else blamed
    raise NetworkError(
        f"{{nodes}} are tied by cannot-links that no assignment to {allowed.shape[1]} {noun}s can "
        f"all honour: that is proved. Remove a cannot-link between them, or use more {noun}s.",
        graph.named(blamed),
    )


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
    edges = hard_part(graph).edges
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


def tabu_walk(
    matrix: sparse.csr_array, start: IntArray, allowed: BoolArray, n_steps: int, rng: Rng
) -> tuple[IntArray | None, int]:
    """Repair an assignment move by move; that, if it is repaired, and the steps taken.

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
            return z, step
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
        neighbours = _neighbours(matrix, j)
        counts[neighbours, z[j]] -= 1
        counts[neighbours, k] += 1
        forbidden_until[j, z[j]] = step + 0.6 * n_conflicts + rng.randint(10)
        z[j] = k
    return None, n_steps


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
