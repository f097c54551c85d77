"""The best joint assignment, with its proof: an integer linear program, by HiGHS. Chapters 7, 11.

A state is chosen by zeros and ones, x_jk = [z_j = k], and an edge acts where y_ek = x_ak x_bk ::

    maximise  Σ_jk u_jk x_jk + Σ_ek w_e y_ek     with  Σ_k x_jk = 1
    w = -∞:  x_ak + x_bk ≤ 1        w > 0:  y_ek ≤ x_ak, x_bk        w < 0:  y_ek ≥ x_ak + x_bk - 1

Where all variables may be fractions this is a linear program, whose optimum bounds that of the
whole; branch and bound closes the gap, or proves that nothing is feasible. No bound on the time is
known, so that there is a budget. It counts what is the same on every machine: where the linear
program splits few nodes among states, a few branches are tried, else none.

=========  =========================================================
u, w       unary log-potentials (n_nodes, K); log-weights of edges
x, y       variables, in this order, each row by row
=========  =========================================================
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from cgmm.network import Graph
from cgmm.numerics import AGREE, FloatArray, IntArray

# Of what is tried: entries of a program, nodes that the relaxation splits, branches. Up to there
# proofs took at most 1.4 s (random planted problems, grids and preferences of 30 to 600 nodes).
MAX_ENTRIES, MAX_SPLIT, MAX_BRANCHES = 40_000, 50, 10


class Solved(NamedTuple):
    """What a program found."""

    states: IntArray | None
    """(n_nodes,) a best assignment; None if there is none, or it is not known."""
    proved: bool
    """Whether that is certain: False if the budget ran out."""


UNKNOWN = Solved(None, proved=False)


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
    # What a node gains in every state decides nothing, but would cost digits.
    gains = np.where(possible, unary - unary.max(axis=1, keepdims=True), 0.0)
    soft = graph.weights[graph.weights > -np.inf]
    scale = max(np.abs(gains).max(initial=0.0), np.abs(soft).max(initial=0.0)) or 1.0
    objective = np.concatenate([gains.ravel(), np.repeat(soft, n_states)]) / -scale
    upper = np.concatenate([possible.ravel(), np.ones(n_states * len(soft))])
    whole = (np.arange(len(objective)) < unary.size).astype(np.intp)
    options: Any = {"mip_rel_gap": 0.0, "node_limit": max_branches}
    program = partial(
        milp, objective, bounds=Bounds(0, upper), options=options,
        constraints=_constraints(graph, n_states, len(objective)),
    )  # fmt: skip
    shares = lambda found: found.x[: unary.size].reshape(n_nodes, n_states)  # noqa: E731
    if gains.any():
        relaxed = program(integrality=np.zeros_like(whole))
        # Nodes that have no state for certain.
        if relaxed.status == 0 and np.sum(shares(relaxed).max(axis=1) < 1 - AGREE) > MAX_SPLIT:
            return UNKNOWN
    found = program(integrality=whole)
    if found.status == 2:
        return Solved(None, proved=True)
    if found.status != 0:
        return UNKNOWN
    return Solved(shares(found).argmax(axis=1), proved=True)


def _constraints(graph: Graph, n_states: int, n_variables: int) -> list[LinearConstraint]:
    """One state a node, and what each kind of edge demands."""
    hard = graph.weights == -np.inf
    apart, together = (graph.weights < 0) & ~hard, graph.weights > 0
    variable = sparse.eye_array(n_variables, format="csr")
    # HiGHS within SciPy 1.14 takes no indices of 64 bits.
    of_node = np.arange(graph.n_nodes * n_states, dtype=np.int32).reshape(-1, n_states)
    (a, b), y = of_node[graph.edges.T], np.zeros((len(hard), n_states), dtype=np.intp)
    y[~hard] = np.arange(of_node.size, n_variables).reshape(-1, n_states)
    pick = lambda places, edges: variable[places[edges].ravel()]  # noqa: E731
    starts = np.arange(0, of_node.size + 1, n_states, dtype=np.int32)
    shape = graph.n_nodes, n_variables
    one = sparse.csr_array((np.ones(of_node.size), of_node.ravel(), starts), shape=shape)
    rows = [
        (one, 1.0, 1.0),
        (pick(a, hard) + pick(b, hard), -np.inf, 1.0),
        (pick(y, together) - pick(a, together), -np.inf, 0.0),
        (pick(y, together) - pick(b, together), -np.inf, 0.0),
        (pick(a, apart) + pick(b, apart) - pick(y, apart), -np.inf, 1.0),
    ]
    return [LinearConstraint(left, low, high) for left, low, high in rows if left.shape[0]]
