"""Exact inference in cliques of mutually cannot-linked nodes, as a sum over matchings.

The engine ``auto`` applies ``clique`` to such components. Chapter 7 explains this file.

In distributed learning, each teacher provides a clique: n groups of points from n different
components. A joint assignment is then a matching of the n nodes to n different labels. If the nodes
are processed one by one, the earlier nodes matter only through the *set* of labels that they have
used ::

    f_j(S) = Σ_{k ∈ S} e^{u_jk} f_{j-1}(S \\ k)           matchings of nodes 1 .. j to the set S
    g_{j-1}(S) = Σ_{k ∉ S} e^{u_jk} g_j(S ∪ k)            completions by nodes j .. n
    p(z_j = k) ∝ e^{u_jk} Σ_{S ∌ k} f_{j-1}(S) g_j(S ∪ k)

where S has as many labels as nodes have been processed. This takes O(2^K K) operations, whereas a
table over the clique would have K^n entries.

Finding the *best* matching is an assignment problem, and its dual variables prevent overflow of the
sums. With prices c_k ≥ 0 of labels and profits r_j of nodes, u_jk - r_j - c_k ≤ 0, with equality
for the pairs of the best matching. In these units no term exceeds one, the term of the best
matching is one, and terms that underflow are less than the fraction e^-700 of the sum. All terms
are positive, so no digits are lost by cancellation.

=========  ==============================================================
n, B       nodes of a clique and number of cliques of this size, e.g. 3 and 20
u_jk       unary log-potential, e.g. -1.2
S          set of labels that nodes have used, e.g. {0, 2}
f, g       forward and backward sums over matchings, e.g. 0.4
r_j, c_k   dual variables: profit of a node, price of a label, e.g. -0.3 and 0.5
=========  ==============================================================
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
from scipy.optimize import linear_sum_assignment

from cgmm.network import (
    Graph,
    Inference,
    Marginals,
    NetworkError,
    TooCostlyError,
    check_unary,
    connected_components,
    simplify,
)  # fmt: skip
from cgmm.numerics import BoolArray, FloatArray, IntArray, blocks, log_normalise

__all__ = ["clique"]

# Maximum number of sets of labels for a clique, and of transitions between them (128 MiB).
MAX_SETS = 2**21
MAX_TRANSITIONS = 2**24


def clique(graph: Graph) -> Inference:
    """Prepare a graph whose components are cliques of cannot-links for exact inference.

    Parameters
    ----------
    graph : Graph
        A graph in which every two nodes of a component are connected with log-weight ``-inf``.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to exact marginals and log Z. A clique takes O(2^K K)
        time, less if it has fewer than K nodes. Its ``most_probable`` solves an assignment problem
        in O(n² K).

    Raises
    ------
    NetworkError
        If a component is not a clique of cannot-links. When called: if a clique has more nodes
        than there are labels, or if the evidence excludes all its assignments.
    TooCostlyError
        When called: if the number of sets of labels is too large.

    Notes
    -----
    This is [shental2003, eq. 9] for the graph of distributed learning in [shental2003, sect. 3].

    Examples
    --------
    Three nodes must have three different labels, and the first node cannot have label 0:

    >>> graph = Graph(3, np.array([[0, 1], [0, 2], [1, 2]]), np.full(3, -np.inf))
    >>> infer = clique(graph)
    >>> unary = np.array([[-np.inf, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> marginals = infer(unary)
    >>> marginals.nodes.round(12)
    array([[0.  , 0.5 , 0.5 ],
           [0.5 , 0.25, 0.25],
           [0.5 , 0.25, 0.25]])
    >>> round(float(np.exp(marginals.log_z)), 12)
    4.0
    """
    graph = simplify(graph)
    groups = _group_by_size(graph)

    def infer(unary: FloatArray) -> Marginals:
        unary = check_unary(graph, unary)
        nodes, log_z = np.empty(unary.shape), 0.0
        for members in groups:
            _require_affordable(unary.shape[1], graph.named(members))
            nodes[members], log_sums = sum_over_matchings(unary[members])
            _require_possible(log_sums > -np.inf, unary.shape[1], graph.named(members))
            log_z += log_sums.sum()
        return Marginals(nodes, float(log_z), exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        unary = check_unary(graph, unary)
        z = np.empty(len(unary), dtype=np.intp)
        for members in groups:
            _require_enough_labels(unary.shape[1], graph.named(members))
            z[members], possible = find_best_matchings(unary[members])
            _require_possible(possible, unary.shape[1], graph.named(members))
        return z

    return Inference(infer, most_probable, exact=True)


def _group_by_size(graph: Graph) -> list[IntArray]:
    """Return a list with a (B, n) array for each size n: the nodes of all components of size n."""
    labels = connected_components(graph)
    sizes = np.bincount(labels)
    _require_cliques(graph, labels, sizes)
    by_component = np.argsort(labels, kind="stable")
    size_of = sizes[labels[by_component]]
    return [by_component[size_of == n].reshape(-1, n) for n in np.unique(sizes)]


def _require_cliques(graph: Graph, labels: IntArray, sizes: IntArray) -> None:
    """Raise ``NetworkError`` for a soft edge, or for a component that lacks an edge."""
    soft = np.flatnonzero(graph.weights != -np.inf)
    remedy = "Choose an engine for any graph: inference='auto'."
    if len(soft):
        raise NetworkError(
            "the engine 'clique' accepts cannot-links only, but {nodes} are joined by an edge of "
            f"log-weight {graph.weights[soft[0]]:g} ({len(soft)} such edges). {remedy}",
            graph.named(graph.edges[soft[0]]),
        )
    n_edges = np.bincount(labels[graph.edges[:, 0]], minlength=len(sizes))
    incomplete = np.flatnonzero(2 * n_edges != sizes * (sizes - 1))
    if len(incomplete):
        raise NetworkError(
            "the engine 'clique' needs components in which every two nodes are cannot-linked, but "
            f"in the component of {{nodes}} some are not. {remedy}",
            graph.named(np.flatnonzero(labels == incomplete[0])),
        )


# ------------------------------------------------------------------------- the best matching


def find_best_matchings(u: FloatArray) -> tuple[IntArray, BoolArray]:
    """Return the best matching of each clique (B, n), and (B,) booleans: True if there is one."""
    z, possible = np.zeros(u.shape[:2], dtype=np.intp), np.ones(len(u), dtype=bool)
    for i, v in enumerate(u):
        # SciPy raises ValueError if no matching is possible.
        try:
            z[i] = linear_sum_assignment(v, maximize=True)[1]
        except ValueError:
            possible[i] = False
    return z, possible


def _require_possible(possible: BoolArray, n_states: int, members: IntArray) -> None:
    """Raise ``NetworkError`` for the first clique whose evidence allows no matching."""
    if not possible.all():
        raise NetworkError(
            f"no joint assignment of {{nodes}} is possible with K = {n_states}: they are "
            "mutually cannot-linked, and the evidence leaves some of them fewer labels than they "
            "are. Revise the relations or the evidence.",
            members[possible.argmin()],
        )


def _require_enough_labels(n_states: int, members: IntArray) -> None:
    """Raise ``NetworkError`` for cliques with more nodes than labels."""
    if members.shape[1] > n_states:
        raise NetworkError(
            f"{{nodes}} are more than K = {n_states} nodes that are mutually cannot-linked: no "
            "two may share a component, but there are too few components. Use more components "
            "or fewer cannot-links.",
            members[0],
        )


def _compute_prices(u: FloatArray, best: IntArray) -> FloatArray:
    """Return the smallest prices of labels (B, K) at which no node gains by changing its label.

    If the best matching gives node j the label σ(j), prices must satisfy c_k ≥ c_{σ(j)} + u_jk -
    u_{j σ(j)}. The smallest solution is that of a longest-path problem; it is found by raising
    prices until none changes.
    """
    gains = u - np.take_along_axis(u, best[:, :, None], axis=2)
    c = np.zeros((len(u), u.shape[2]))
    for _ in range(best.shape[1]):
        paid = np.take_along_axis(c, best, axis=1)
        raised = np.maximum(c, (paid[:, :, None] + gains).max(axis=1))
        if np.array_equal(raised, c):
            break
        c = raised
    return c


# -------------------------------------------------------------------------- the sum over matchings


def sum_over_matchings(u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return marginals (B, n, K) and log Z (B,), which are 0 and -inf if there is no matching."""
    n_cliques, n, n_states = u.shape
    if n == 1:
        nodes, log_sums = log_normalise(u[:, 0])
        return nodes[:, None], log_sums
    nodes, log_sums = np.zeros(u.shape), np.full(n_cliques, -np.inf)
    best, possible = find_best_matchings(u)
    rows = np.flatnonzero(possible)
    for part in blocks(len(rows), count_label_sets(n, n_states)[0], at_least=16):
        chosen = rows[part]
        nodes[chosen], log_sums[chosen] = _sum_forward_backward(u[chosen], best[chosen])
    return nodes, log_sums


def count_label_sets(n: int, n_states: int) -> tuple[int, int]:
    """Return the numbers of label sets for a clique of n nodes, and of transitions between them.

    The first j nodes have used a set of j labels, and each transition adds a label to a set. Two
    nodes with three states have 1 + 3 + 3 sets and 3 + 6 transitions:

    >>> count_label_sets(2, 3)
    (7, 9)
    """
    n_sets = sum(comb(n_states, j) for j in range(n + 1))
    return n_sets, sum(n_states * comb(n_states - 1, j) for j in range(n))


def count_transitions(n: int, n_states: int) -> float:
    """Return the number of transitions: 0 if no assignment exists, infinity above the limits."""
    if n > n_states:
        return 0
    n_sets, n_transitions = count_label_sets(n, n_states)
    return n_transitions if n_sets <= MAX_SETS and n_transitions <= MAX_TRANSITIONS else np.inf


def _require_affordable(n_states: int, members: IntArray) -> None:
    """Raise ``TooCostlyError`` if the number of sets or of transitions exceeds its limit."""
    n = members.shape[1]
    _require_enough_labels(n_states, members)
    if count_transitions(n, n_states) == np.inf:
        n_sets, n_transitions = count_label_sets(n, n_states)
        raise TooCostlyError(
            f"{{nodes}} are mutually cannot-linked; with K = {n_states} exact inference would "
            f"visit {n_sets:,} sets of labels by {n_transitions:,} transitions, more than "
            f"{MAX_SETS:,} and {MAX_TRANSITIONS:,}. Use inference='auto', which approximates "
            "where exact inference costs too much.",
            members[0],
        )


def _sum_forward_backward(u: FloatArray, best: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return marginals (B, n, K) and log Z (B,) of cliques that have a matching."""
    _, n, n_states = u.shape
    c = _compute_prices(u, best)
    r = (u - c[:, None]).max(axis=2)
    # Make the cliques the last axis, so that the values of all B cliques for one set of
    # labels are contiguous in memory.
    e_u = np.exp(u - r[:, :, None] - c[:, None]).transpose(1, 2, 0).copy()
    sets, transitions = _list_label_sets(n, n_states)
    f, g = np.zeros((2, len(sets), len(u)))
    f[0] = 1.0
    for j in range(n):
        for k, (without, with_k) in enumerate(transitions[j]):
            f[with_k] += e_u[j, k] * f[without]
    # The weight of a matching is divided by exp(c_k) for each label k that it does not use.
    full = sets.sum(axis=1) == n
    g[full] = np.exp(-((1.0 - sets[full]) @ c.T))
    z = (f[full] * g[full]).sum(axis=0)
    p = np.empty(e_u.shape)
    for j in reversed(range(n)):
        for k, (without, with_k) in enumerate(transitions[j]):
            terms = e_u[j, k] * g[with_k]
            g[without] += terms
            p[j, k] = np.einsum("sb,sb->b", f[without], terms)
    p /= p.sum(axis=1, keepdims=True)
    return p.transpose(2, 0, 1), np.log(z) + r.sum(axis=1) + c.sum(axis=1)


Transitions = list[list[tuple[IntArray, IntArray]]]
"""For each set size and label: indices of the sets without it, and of their unions with it."""


@lru_cache(maxsize=64)
def _list_label_sets(n: int, n_states: int) -> tuple[BoolArray, Transitions]:
    """Return (n_sets, K) booleans for all sets of at most n labels, and the transitions.

    Sets are sorted by size, beginning with the empty set.
    """
    # A set is encoded as an integer with one bit per label, a Python integer above 62 labels.
    labels = np.arange(n_states, dtype=np.int64 if n_states < 63 else object)
    codes, transitions, first = [0 * labels[:1]], Transitions(), 0
    for _ in range(n):
        smaller = codes[-1]
        grown = smaller[:, None] | (1 << labels)
        new = grown != smaller[:, None]
        codes.append(np.unique(grown[new]))
        first, start = first + len(smaller), first
        steps: list[tuple[IntArray, IntArray]] = []
        for k in range(n_states):
            without = np.flatnonzero(new[:, k])
            steps.append((start + without, first + np.searchsorted(codes[-1], grown[without, k])))
        transitions.append(steps)
    return (np.concatenate(codes)[:, None] >> labels & 1).astype(bool), transitions
