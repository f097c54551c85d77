"""Find an assignment that satisfies all hard relations, or prove that there is none.

Fits, K-means, the Gibbs sampler and the search for the best assignment first call
``feasible_assignment``. Chapters 7, 10 and 11 explain it. Satisfying all cannot-links means
colouring their graph with K colours, where evidence restricts each node to a list of colours; this
problem is NP-complete. There are three possible outcomes:

- an assignment that breaks no relation;
- a proof that there is none: :class:`~cgmm.network.NetworkError` names the nodes that cause it;
- neither is found within the budget: ``SearchBudgetError``.

A greedy colouring nearly always succeeds. In a component where it fails, nodes with fewer
neighbours than allowed colours are repeatedly removed, because they can always be coloured last.
The remaining nodes are the *core*. If the core contains a clique of K + 1 nodes, it cannot be
coloured. A tabu search often finds a colouring quickly but proves nothing; an integer linear
program, solved by HiGHS, finds a colouring or proves that there is none. The same program with the
unaries in its objective finds a most probable assignment and proves that it is one
(:mod:`~cgmm.inference.best_assignment`). Its variables are zeros and ones: x_jk = [z_j = k] is one
if node j has state k, and y_ek = x_ak x_bk is one if both ends of edge e have state k ::

    maximise  Σ_jk u_jk x_jk + Σ_ek w_e y_ek     with  Σ_k x_jk = 1
    w = -∞:  x_ak + x_bk ≤ 1        w > 0:  y_ek ≤ x_ak, x_bk        w < 0:  y_ek ≥ x_ak + x_bk - 1

If the variables may be fractions, this is a linear program whose optimum bounds that of the integer
program; branch and bound closes the gap, or proves that no assignment is feasible. The budget
limits quantities that are equal on every machine: branches, and nodes with fractional variables.

``colour_nodes`` computes a colouring for another purpose, with as many colours as it needs: nodes
of one colour share no edge, so a sweep of Gibbs sampling or of mean field can update all of them at
once.

=========  ==========================================================================
K          number of states: colours, components or clusters, e.g. 3
matrix     (n, n) symmetric, with ones for cannot-links
allowed    (n, K) True if node j may have state k
initial    (n,) start of the search: states that may break some cannot-links, e.g. [0, 2, 0]
u, w       unary log-potentials (n, K), e.g. -1.2; log-weights of edges, e.g. -inf
x, y       0-1 variables of the program: first all x, then all y, row by row
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
from cgmm.network.graph import edge_matrix, keep_cannot_links
from cgmm.numerics import AGREE, BoolArray, FloatArray, IntArray

# Nodes of equal degree are coloured in random order, because index order may need many colours in
# regular graphs.
TIE_SEED = 0
# Default number of steps of all tabu searches; a step assigns a state to a node. The first search
# has FIRST_STEPS steps plus one per node.
MAX_SEARCH, FIRST_STEPS = 1_000_000, 2_000
# The integer program may use one branch for every STEPS_PER_BRANCH steps of ``max_search``. A limit
# of branches, unlike one of time, is the same on every machine.
# Errors name all nodes of a core of more than MAX_BLAMED nodes, because finding a smaller set of
# nodes that cannot be coloured would take too long.
STEPS_PER_BRANCH, MAX_BLAMED = 1000, 60
# Limits of the integer program: matrix entries, nodes with fractional variables, branches. Within
# them it took at most 1.4 s (random solvable problems, grids and preferences of 30 to 600 nodes).
MAX_ENTRIES, MAX_SPLIT, MAX_BRANCHES = 40_000, 50, 10

Rng = np.random.RandomState


class SearchBudgetError(RuntimeError):
    """Error if a search finds neither an assignment nor a proof that there is none.

    The relations may or may not be satisfiable; a larger ``max_search`` may decide this.
    """


def feasible_assignment(
    graph: Graph, n_states: int, *, allowed: BoolArray | None = None,
    max_search: int = MAX_SEARCH, rng: Rng | None = None,
    hint: Callable[[], IntArray] | None = None, noun: str = "state", remedy: str | None = None,
) -> IntArray:  # fmt: skip
    """Return an assignment that breaks no cannot-link, or raise an error if there is none.

    Parameters
    ----------
    graph : Graph
        Any graph; edges of finite log-weight are ignored.
    n_states : int
        K.
    allowed : (n_nodes, K) bool array, default=None
        True for the states that evidence allows for each node; None: all are allowed.
    max_search : int, default=1000000
        Maximum number of steps of the tabu searches that run if greedy colouring fails; a step
        assigns a state to a node. It also limits the branches of a proof.
    rng : RandomState, default=None
        Source of randomness of the searches; None means a fixed seed.
    hint : callable, default=None
        Function that returns (n_nodes,) states from which the search starts; they may break some
        cannot-links. It is called only if a search is necessary.
    noun : str, default="state"
        Noun for a state in error messages, e.g. "cluster".
    remedy : str, default=None
        Advice for the error message if the search runs out of steps.

    Returns
    -------
    (n_nodes,) int array
        The state of each node.

    Raises
    ------
    NetworkError
        If it is proved that every assignment breaks a cannot-link; the error names the nodes that
        cause this.
    SearchBudgetError
        If ``max_search`` steps find no assignment, and a thousandth of this number of branches
        finds no proof.

    Examples
    --------
    A triangle needs three states:

    >>> triangle = Graph(3, np.array([[0, 1], [1, 2], [0, 2]]), np.full(3, -np.inf))
    >>> sorted(feasible_assignment(triangle, 3).tolist())
    [0, 1, 2]
    >>> feasible_assignment(triangle, 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    cgmm.network.graph.NetworkError: nodes 0, 1 and 2 are mutually cannot-linked, ...
    """
    hard = keep_cannot_links(graph)
    allowed = np.ones((graph.n_nodes, n_states), dtype=bool) if allowed is None else allowed
    z, label = colour_nodes(hard), connected_components(hard)
    fails = (z >= n_states) | ~allowed[np.arange(len(z)), np.minimum(z, n_states - 1)]
    initial = hint() if hint is not None and fails.any() else None
    remedy = remedy or f"Raise max_search, use more {noun}s, or soft relations (PCKMeans)."
    rng = rng or Rng(0)
    search = partial(_colour_core, max_search=max_search, rng=rng, noun=noun, remedy=remedy)
    for c in np.unique(label[fails]):
        nodes = np.flatnonzero(label == c)
        start = None if initial is None else initial[nodes]
        z[nodes] = _colour_component(induced_subgraph(hard, nodes), allowed[nodes], start, search)
    return z


def _colour_component(
    graph: Graph, allowed: BoolArray, initial: IntArray | None, search: Callable[..., IntArray]
) -> IntArray:
    """Colour a component: first its core, then the removed nodes in reverse order of removal."""
    round_of = peel_nodes(graph.edges, allowed.sum(axis=1))
    core, z = np.flatnonzero(round_of < 0), np.full(len(allowed), -1)
    if len(core):
        initial = None if initial is None else initial[core]
        z[core] = search(induced_subgraph(graph, core), allowed[core], initial)
    matrix, states = edge_matrix(graph), np.arange(allowed.shape[1])
    for j in np.argsort(-round_of, kind="stable")[: len(z) - len(core)].tolist():
        z[j] = (allowed[j] & ~np.isin(states, z[_list_neighbours(matrix, j)])).argmax()
    return z


def _colour_core(
    graph: Graph, allowed: BoolArray, initial: IntArray | None, max_search: int, rng: Rng,
    noun: str, remedy: str,
) -> IntArray:  # fmt: skip
    """Colour a core, or raise an error if no colouring exists or none is found."""
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
    start = rng.randint(n_states, size=(n_nodes,)) if initial is None else initial
    while left > 0:
        z, used = tabu_walk(matrix, start, allowed, min(n_steps, left), rng)
        if z is not None:
            return z
        if left == max_search:
            proof = decide_colouring(graph, allowed, max_search // STEPS_PER_BRANCH)
            if proof.states is not None:
                return proof.states
            if proof.proved:
                _raise_uncolourable(graph, allowed, noun)
        start, n_steps, left = rng.randint(n_states, size=(n_nodes,)), 2 * n_steps, left - used
    raise SearchBudgetError(
        f"no assignment to {n_states} {noun}s that breaks no cannot-link was found in "
        f"{max_search} steps and a proof of {max_search // STEPS_PER_BRANCH} branches: whether "
        f"there is one is not known. It is about {n_nodes} nodes, among them "
        f"{graph.named(np.arange(n_nodes))[:8].tolist()}. {remedy}"
    )


def _raise_uncolourable(graph: Graph, allowed: BoolArray, noun: str) -> None:
    """Raise ``NetworkError`` for a minimal set of nodes that cannot be coloured."""
    blamed = np.arange(len(allowed))
    for j in range(len(allowed) if len(allowed) <= MAX_BLAMED else 0):
        rest = blamed[blamed != j]
        part = induced_subgraph(graph, rest)
        rest = rest[peel_nodes(part.edges, allowed[rest].sum(axis=1)) < 0]
        if j in blamed and len(rest):
            proof = decide_colouring(induced_subgraph(graph, rest), allowed[rest])
            blamed = rest if proof.proved and proof.states is None else blamed
    raise NetworkError(
        f"{{nodes}} are connected by cannot-links that no assignment to {allowed.shape[1]} {noun}s "
        f"can all satisfy: that is proved. Remove a cannot-link between them, or use more {noun}s.",
        graph.named(blamed),
    )


# ------------------------------------------------------------------------ cliques, core and search


def forbidden_clique(graph: Graph, size: int, *, max_steps: int = 100_000) -> IntArray | None:
    """Search for ``size`` mutually cannot-linked nodes; return them, or None.

    Parameters
    ----------
    graph : Graph
        Any graph; edges of finite log-weight are ignored.
    size : int
        Number of nodes, at least two.
    max_steps : int, default=100000
        Maximum number of partial cliques to extend; the problem is NP-complete.

    Returns
    -------
    (size,) int array or None
        The nodes of such a clique, ascending; None if there is none, or if ``max_steps`` do not
        suffice to find one.

    Notes
    -----
    A member of such a clique has at least ``size - 1`` cannot-linked neighbours. All nodes with
    fewer are removed repeatedly before the search; usually no node remains.

    Examples
    --------
    >>> triangle = Graph(5, np.array([[0, 1], [1, 4], [0, 4], [2, 4]]), np.full(4, -np.inf))
    >>> forbidden_clique(triangle, 3)
    array([0, 1, 4])
    >>> forbidden_clique(triangle, 4) is None
    True
    """
    edges = keep_cannot_links(graph).edges
    stays = peel_nodes(edges, np.full(graph.n_nodes, size - 1)) < 0
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


def peel_nodes(edges: IntArray, limits: IntArray) -> IntArray:
    """Remove, round by round, all nodes with fewer remaining neighbours than their limit.

    Parameters
    ----------
    edges : (E, 2) int array
        Pairs of nodes.
    limits : (n_nodes,) int array
        Number of remaining neighbours that a node must have to remain.

    Returns
    -------
    (n_nodes,) int array
        The round in which each node is removed; -1 for the nodes of the core, which remain.

    Examples
    --------
    A triangle with a tail of two nodes:

    >>> peel_nodes(np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4]]), np.full(5, 2))
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
    """Repair an assignment by tabu search; return it (None on failure) and the number of steps.

    In each step, the search of Hertz and de Werra (1987) makes the move that leaves the fewest
    conflicts, among all moves of nodes in conflict. For some steps, a node may not return to a
    state that it has left.
    """
    all_nodes, n_colours = np.arange(len(start)), allowed.shape[1]
    z = np.where(allowed[all_nodes, start], start, allowed.argmax(axis=1))
    # counts[j, k] is the number of neighbours of j that have colour k.
    counts = (matrix @ np.eye(n_colours)[z]).astype(np.intp)
    forbidden_until = np.zeros(counts.shape, dtype=np.intp)
    fewest = np.inf
    for step in range(n_steps):
        own = counts[all_nodes, z]
        wrong = np.flatnonzero(own)
        if len(wrong) == 0:
            return z, step
        n_conflicts = own.sum() // 2
        fewest = min(fewest, n_conflicts)
        # Compute the change of the number of conflicts for each move, and add a random number below
        # one, which breaks ties.
        change = counts[wrong] - own[wrong, None] + 0.5 * rng.uniform(size=(len(wrong), n_colours))
        # A forbidden move is made only if it leads to fewer conflicts than ever before.
        forbidden = forbidden_until[wrong] > step
        change[forbidden & (np.floor(change) + n_conflicts >= fewest)] += len(all_nodes) ** 2
        change[np.arange(len(wrong)), z[wrong]] = np.inf
        change[~allowed[wrong]] = np.inf
        row, k = np.unravel_index(change.argmin(), change.shape)
        j = wrong[row]
        neighbours = _list_neighbours(matrix, j)
        counts[neighbours, z[j]] -= 1
        counts[neighbours, k] += 1
        forbidden_until[j, z[j]] = step + 0.6 * n_conflicts + rng.randint(10)
        z[j] = k
    return None, n_steps


def _list_neighbours(matrix: sparse.csr_array, j: int) -> IntArray:
    """Return the neighbours of node j."""
    return matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]]


def require_colourable(side: SideInformation, n_components: int) -> None:
    """Raise ``ValueError`` if more chunklets than components are mutually cannot-linked.

    Parameters
    ----------
    side : SideInformation
        The side information.
    n_components : int
        K.

    Raises
    ------
    ValueError
        If K + 1 mutually cannot-linked chunklets are found; the error names them. Exact engines
        detect other reasons why K components cannot satisfy the cannot-links.

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
        f"points {named} are mutually cannot-linked (directly or by must-links), so that they "
        f"need {len(points)} components, and there are {n_components}. Use "
        f"n_components={len(points)} or more, or remove one of the cannot-links."
    )


# ------------------------------------------------------------------------------- integer program


class Outcome(NamedTuple):
    """Outcome of an integer program: an assignment, a proof that there is none, or neither."""

    states: IntArray | None
    """(n_nodes,) best assignment; None if there is none or if none was found."""
    proved: bool
    """True if the assignment is proved to be the best or to be impossible."""


UNKNOWN = Outcome(None, proved=False)


def decide_colouring(graph: Graph, allowed: BoolArray, max_branches: int = MAX_BRANCHES) -> Outcome:
    """Return a colouring with allowed states or a proof that there is none, within the budget."""
    return solve_program(graph, np.where(allowed, 0.0, -np.inf), max_branches=max_branches)


def solve_program(graph: Graph, unary: FloatArray, *, max_branches: int = MAX_BRANCHES) -> Outcome:
    """Return a provably most probable assignment or a proof that there is none, within the budget.

    Parameters
    ----------
    graph : Graph
        A simplified graph.
    unary : (n_nodes, K) array
        Log-potentials, -inf for impossible states.
    max_branches : int, default=10
        Maximum number of branches, a limit that is the same on every machine.

    Returns
    -------
    Outcome
        The assignment if it is proved to be the best, or the proof that there is none; ``UNKNOWN``
        if the budget does not suffice.

    Examples
    --------
    >>> triangle = Graph(3, np.array([[0, 1], [0, 2], [1, 2]]), np.full(3, -np.inf))
    >>> solve_program(triangle, np.array([[2.0, 0, 1], [2, 0, 0], [1, 0, 0]]))
    Outcome(states=array([2, 0, 1]), proved=True)
    >>> solve_program(triangle, np.zeros((3, 2)))
    Outcome(states=None, proved=True)
    """
    n_nodes, n_states = unary.shape
    if unary.size + 3 * n_states * len(graph.edges) > MAX_ENTRIES:
        return UNKNOWN
    possible = np.isfinite(unary)
    # Subtract the largest unary of each node, because a large constant would cost digits.
    gains = np.where(possible, unary - unary.max(axis=1, keepdims=True), 0.0)
    soft = graph.weights[graph.weights > -np.inf]
    scale = max(np.abs(gains).max(initial=0.0), np.abs(soft).max(initial=0.0)) or 1.0
    objective = np.concatenate([gains.ravel(), np.repeat(soft, n_states)]) / -scale
    upper = np.concatenate([possible.ravel(), np.ones(n_states * len(soft))])
    whole = (np.arange(len(objective)) < unary.size).astype(np.intp)
    options: Any = {"mip_rel_gap": 0.0, "node_limit": max_branches}
    limits = _build_constraints(graph, n_states, len(objective))
    program = partial(milp, objective, bounds=Bounds(0, upper), options=options, constraints=limits)
    shares = lambda found: found.x[: unary.size].reshape(n_nodes, n_states)  # noqa: E731
    if gains.any():
        relaxed = program(integrality=np.zeros_like(whole))
        # Give up if many nodes have fractional variables, because branching would be slow.
        if relaxed.status == 0 and np.sum(shares(relaxed).max(axis=1) < 1 - AGREE) > MAX_SPLIT:
            return UNKNOWN
    found = program(integrality=whole)
    # HiGHS reports the status 0 for an optimum and 2 for an infeasible program.
    if found.status not in (0, 2):
        return UNKNOWN
    return Outcome(None if found.status == 2 else shares(found).argmax(axis=1), proved=True)


def _build_constraints(graph: Graph, n_states: int, n_variables: int) -> list[LinearConstraint]:
    """Return the constraints of the program: a single state per node, and those of all edges."""
    hard = graph.weights == -np.inf
    apart, together = (graph.weights < 0) & ~hard, graph.weights > 0
    variable = sparse.eye_array(n_variables, format="csr")
    # HiGHS in SciPy 1.14 does not accept 64-bit indices.
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


# ------------------------------------------------------------- colouring with any number of colours


def colour_nodes(graph: Graph) -> IntArray:
    """Colour all nodes such that neighbours have different colours.

    A bipartite component gets two colours. Other components are coloured greedily, beginning with
    nodes of large degree.

    Parameters
    ----------
    graph : Graph
        The network; edges of log-weight zero are ignored.

    Returns
    -------
    (n_nodes,) int array
        Colours 0, 1, ... of the nodes, the same in every call.

    Notes
    -----
    The time is O(n_nodes + E).

    Examples
    --------
    A triangle with a tail needs three colours; a path, two:

    >>> colour_nodes(Graph(4, np.array([[0, 1], [1, 2], [2, 0], [2, 3]]), np.ones(4)))
    array([2, 1, 0, 1])
    >>> colour_nodes(Graph(4, np.array([[0, 1], [1, 2], [2, 3]]), np.ones(3)))
    array([0, 1, 0, 1])
    """
    matrix = adjacency(graph)
    _, second, is_odd = find_two_colours(matrix)
    colours, odd = second.astype(np.intp), np.flatnonzero(is_odd)
    if len(odd):
        colours[odd] = _colour_greedily(matrix[odd][:, odd])
    return colours


def find_two_colours(matrix: sparse.csr_array) -> tuple[IntArray, BoolArray, BoolArray]:
    """Return for each node its component, its colour (0 or 1), and True if the component is odd.

    The double cover has two copies of every node; an edge a - b connects each copy of a with the
    *other* copy of b. A bipartite component has two components in the cover, one for each way to
    colour it. Any other component has one component in the cover, and is called odd.
    """
    cover = sparse.block_array([[None, matrix], [matrix, None]], format="csr")
    cover.data = np.ones(len(cover.data))
    _, component = csgraph.connected_components(cover, directed=False)
    first, second = component.reshape(2, -1)
    _, label = np.unique(np.minimum(first, second), return_inverse=True)
    return label, first > second, first == second


def _colour_greedily(matrix: sparse.csr_array) -> IntArray:
    """Give each node, by decreasing degree, the smallest colour that no neighbour has yet."""
    degrees = np.diff(matrix.indptr)
    ties = np.random.default_rng(TIE_SEED).permutation(len(degrees))
    neighbours = [part.tolist() for part in np.split(matrix.indices, matrix.indptr[1:-1])]
    colours = [-1] * len(degrees)
    for v in np.lexsort((ties, -degrees)).tolist():
        taken = {colours[u] for u in neighbours[v]}
        colours[v] = next(c for c in range(len(taken) + 1) if c not in taken)
    return np.array(colours)
