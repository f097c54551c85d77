"""Loopy belief propagation: iterate on any graph the equations that are exact on a tree.

The engine ``auto`` applies it to components that are too costly for exact inference. Chapter 10
explains it.

On a tree, each node sends each neighbour a summary of the messages from all other neighbours, and
two passes make every marginal exact. The same equations can be iterated on a graph with cycles,
where a message can return to its sender. A fixed point is a stationary point of the Bethe free
energy, in which each edge corrects the entropy of its two ends as if there were no cycles
[wainwright2008, sect. 4]. No bound on the error is known. On long cycles and sparse graphs the
error is small; with short cycles and strong relations the result may be far off, or there may be no
convergence.

Each sweep updates the messages in both directions of every edge at once. Belief propagation and
tree-reweighted belief propagation differ in one number per edge: ρ_e is one in plain belief
propagation, and the fraction of spanning trees that contain the edge in the tree-reweighted one.
The potential of an edge depends only on whether its ends are equal::

    belief    b_j(k)    ∝  exp(unary[j, k]) Π_i m_ij(k)^ρ_ij          over the neighbours i of j
    cavity    q_ji(k)   ∝  b_j(k) / m_ij(k)                           belief of j without i
    message   m_ji(k)   =  Σ_l q_ji(l) exp(w/ρ [k = l])               message from j to i

Z_j and Z_e are the sums by which b_j and the joint belief of an edge are normalised. In a fixed
point, log Z is approximated by Σ_j log Z_j - Σ_e ρ_e log Z_e.

=======  ==============================================================================
D        number of directed edges, two for each of the E edges, sorted by target, e.g. 8
m        (K, D) log-messages, e.g. -0.4; for w > 0 without the factor exp(w/ρ)
h, q     (K, D) cavities, as logarithms, e.g. -1.2, and as probabilities, e.g. 0.3
γ        damping: fraction of the old log-message in the new one, e.g. 0.3
=======  ==============================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm.inference.reduction import exclude_states
from cgmm.network import (
    Graph,
    Inference,
    Marginals,
    check_unary,
    connected_components,
    edge_message,
    induced_subgraph,
    simplify,
)  # fmt: skip
from cgmm.numerics import (
    BoolArray,
    FloatArray,
    IntArray,
    check_integer,
    log_normalise,
    warn_caller,
)  # fmt: skip

__all__ = ["belief_propagation"]

# A sum of probabilities that is smaller than this is inaccurate, so it is computed again in
# logarithms.
SMALLEST_SUM = 1e-280
# This is the lower limit of log-messages. Without it, log-messages about impossible states would
# decrease for ever if only one assignment is possible.
LOWEST_MESSAGE = -1e12
# By default, damping increases from the first number in sweep 0 to the second in sweep LAST_RISE,
# because messages that do not converge with weak damping may converge with strong damping.
DAMPINGS, LAST_RISE = (0.3, 0.9), 499


def belief_propagation(
    graph: Graph, *, max_sweeps: int = 500, tol: float = 1e-7, damping: float | None = None
) -> Inference:
    """Prepare a graph for loopy belief propagation, if it is too dense for exact inference.

    Parameters
    ----------
    graph : Graph
        Any graph, hard edges included.
    max_sweeps : int, default=500
        Maximum number of sweeps over all edges. A forest gets at least as many as it has nodes.
    tol : float, default=1e-7
        Stop when a sweep changes no cavity probability (the belief of a node without one of its
        neighbours) by more than this.
    damping : float, default=None
        Fraction of the old log-messages in the new ones, from 0 to below 1. None: increasing from
        0.3 in the first sweep to 0.9 in the 500th; 0 in a forest.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to approximate marginals and the Bethe approximation of
        log Z, which is no bound. A sweep takes O((n_nodes + E) K) time. The field ``residual`` is
        that of the last sweep. In a forest the results are exact up to ``tol``, but they are marked
        as exact only if there are no edges.

    Raises
    ------
    NetworkError
        When called: if a node has no possible state, or if its cannot-links to nodes with a single
        possible state exclude all its states. Other contradictions are not detected.
    ValueError
        If a setting is out of range.

    Warns
    -----
    ConvergenceWarning
        When called: if the residual is above ``tol`` after ``max_sweeps`` sweeps. The marginals are
        then those of the last sweep, and may be meaningless.

    Notes
    -----
    Every call starts from uniform messages, so the same input has the same result. Three facts
    limit its use:

    - At a fixed point the marginals are the derivatives of ``log_z`` with respect to the unaries,
      as for an exact engine, so EM's weight updates use consistent counts.
    - If the unaries are equal for all states, the messages stay uniform, which is correct because
      the network is symmetric. If the network has many separate solutions (three states, 1.5 or
      more cannot-links per node, components that overlap almost completely), a slight preference of
      the unaries selects one of them with too much certainty. The messages may then converge to
      marginals that are worse than those of a spanning tree.
    - If the messages do not converge, more damping rarely helps; compare with
      ``inference="gibbs", weights="ignore"``.

    Examples
    --------
    Four nodes in a ring must differ from their neighbours; one of them is nearly certain:

    >>> ring = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.full(4, -np.inf))
    >>> unary = np.log([[0.8, 0.1, 0.1], [1 / 3] * 3, [1 / 3] * 3, [1 / 3] * 3])
    >>> marginals = belief_propagation(ring)(unary)
    >>> marginals.nodes.round(3)
    array([[0.84 , 0.08 , 0.08 ],
           [0.069, 0.466, 0.466],
           [0.583, 0.209, 0.209],
           [0.069, 0.466, 0.466]])
    >>> marginals.residual < 1e-7
    True
    >>> from cgmm.inference.enumerate import enumerate_assignments
    >>> exact = enumerate_assignments(ring)(unary)
    >>> exact.nodes[2].round(3), round(marginals.log_z, 3), round(exact.log_z, 3)
    (array([0.567, 0.217, 0.217]), -1.56, -1.504)
    """
    check_settings(max_sweeps, tol, damping)
    graph = simplify(graph)
    connected = np.unique(graph.edges)
    part = induced_subgraph(graph, connected)
    edges = direct_edges(part, np.ones(len(part.edges)))

    def infer(unary: FloatArray) -> Marginals:
        unary = exclude_impossible(graph, unary)
        h = unary[connected].T
        state = iterate_messages(edges, h, max_sweeps=max_sweeps, tol=tol, damping=damping)
        warn_unless_converged("belief_propagation", part, state, tol)
        log_z = compute_free_energy(edges, h, state)
        return assemble_marginals(unary, connected, edges, state, log_z)

    return Inference(infer, exact=len(connected) == 0)


def exclude_impossible(graph: Graph, unary: FloatArray) -> FloatArray:
    """Return (n_nodes, K) unaries, set to -inf for states that a fixed neighbour excludes."""
    unary = check_unary(graph, unary)
    allowed = ~np.isneginf(unary)
    # Every E-step calls this function, and usually there is nothing to exclude.
    if (graph.weights == -np.inf).any() and (unary.shape[1] == 1 or not allowed.all()):
        allowed = exclude_states(graph, allowed)
    return np.where(allowed, unary, -np.inf)


def assemble_marginals(
    unary: FloatArray, connected: IntArray, edges: Directed, state: MessageState, log_z: float
) -> Marginals:
    """Return the marginals and log Z of the network, including nodes without edges."""
    log_nodes = unary.copy()
    log_nodes[connected] = log_beliefs(edges, unary[connected].T, state.messages).T
    nodes, log_totals = log_normalise(log_nodes)
    log_totals[connected] = 0.0
    exact = len(connected) == 0
    return Marginals(nodes, log_z + float(log_totals.sum()), exact, state.residual)


# ---------------------------------------------------------------------------- messages


class Directed(NamedTuple):
    """Directed edges of a graph in which every node has an edge: both directions of each edge."""

    edge: IntArray
    """(D,) index of the undirected edge in the graph."""
    source: IntArray
    """(D,) node that sends the message."""
    target: IntArray
    """(D,) node that receives the message, in ascending order."""
    starts: IntArray
    """(n_nodes,) index of the first directed edge to each node."""
    reverse: IntArray
    """(D,) index of the same edge in the opposite direction."""
    appearance: FloatArray
    """(D,) appearance probability ρ of the edge."""
    weights: FloatArray
    """(D,) w / ρ of the edge."""
    equal: FloatArray
    """(D,) factor exp(w / ρ) of equal states if w ≤ 0, one otherwise."""
    unequal: FloatArray
    """(D,) factor exp(-w / ρ) of unequal states if w > 0, one otherwise."""
    are_forest: bool
    """True if the graph has no cycle."""


class MessageState(NamedTuple):
    """The state of belief propagation after its last sweep: cavities and messages."""

    cavities: FloatArray
    """(K, D) log-cavities h, normalised."""
    messages: FloatArray
    """(K, D) log-messages m, computed from these cavities."""
    residual: float
    """Largest change of a cavity probability in the last sweep, corrected for damping."""
    n_sweeps: int
    """Number of sweeps so far."""


def direct_edges(graph: Graph, appearance: FloatArray) -> Directed:
    """Return the directed edges of a graph, sorted by the receiving node.

    Parameters
    ----------
    graph : Graph
        A simplified graph in which every node has an edge.
    appearance : (E,) array
        ρ_e in (0, 1].

    Returns
    -------
    Directed
        Each edge in both directions.

    Examples
    --------
    >>> edges = direct_edges(Graph(3, np.array([[0, 1], [1, 2]]), np.ones(2)), np.ones(2))
    >>> edges.source, edges.reverse
    (array([1, 0, 2, 1]), array([1, 0, 3, 2]))
    """
    n_edges = len(graph.edges)
    source, target = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    order = np.argsort(target, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(2 * n_edges)
    weights = (np.tile(graph.weights, 2) / np.tile(appearance, 2))[order]
    return Directed(
        order % max(n_edges, 1),
        source[order],
        target[order],
        np.searchsorted(target[order], np.arange(graph.n_nodes)),
        place[np.where(order < n_edges, order + n_edges, order - n_edges)],
        np.tile(appearance, 2)[order],
        weights,
        np.exp(np.minimum(weights, 0)),
        np.exp(-np.maximum(weights, 0)),
        n_edges + len(np.unique(connected_components(graph))) == graph.n_nodes,
    )


# ---------------------------------------------------------------------------- the iteration


def iterate_messages(
    edges: Directed, unary: FloatArray, *, max_sweeps: int, tol: float, damping: float | None
) -> MessageState:
    """Update all messages until no cavity changes by more than ``tol``, or ``max_sweeps`` times.

    Parameters
    ----------
    edges : Directed
        The directed edges.
    unary : (K, n_nodes) array
        Unary log-potentials, -inf for all states that a fixed neighbour excludes; each node has a
        possible state.
    max_sweeps : int
        Maximum number of sweeps.
    tol : float
        Largest change of a cavity probability at which to stop.
    damping : float or None
        Damping γ; None: increasing from sweep to sweep.

    Returns
    -------
    MessageState
        The last cavities and the messages computed from them.
    """
    impossible = np.isneginf(unary)
    excluded = impossible[:, edges.target] if impossible.any() else None
    messages = np.zeros((len(unary), len(edges.source)))
    h, q = compute_cavities(edges, unary, messages)
    residuals: list[float] = []
    for share in _schedule_damping(edges, max_sweeps, damping).tolist():
        updated = compute_messages(edges, h, q, excluded)
        updated *= 1 - share
        updated += share * messages
        messages = updated
        before = q
        h, q = compute_cavities(edges, unary, messages)
        residuals.append(float(np.abs(q - before).max(initial=0.0)) / (1 - share))
        if residuals[-1] <= tol:
            break
    return MessageState(h, compute_messages(edges, h, q, excluded), residuals[-1], len(residuals))


def _schedule_damping(edges: Directed, max_sweeps: int, damping: float | None) -> FloatArray:
    """Return the damping γ of each sweep (n_sweeps,).

    A forest needs no damping, because no message returns to its sender: every message is final
    after as many sweeps as the longest path has edges.
    """
    if edges.are_forest:
        return np.full(max(max_sweeps, len(edges.starts)), damping or 0.0)
    share = DAMPINGS if damping is None else (damping, damping)
    return np.interp(np.arange(max_sweeps), [0, LAST_RISE], share)


def log_beliefs(edges: Directed, unary: FloatArray, messages: FloatArray) -> FloatArray:
    """Return (K, n_nodes) log-beliefs: unaries plus all messages to a node, not normalised."""
    beliefs = np.add.reduceat(messages * edges.appearance, edges.starts, axis=1)
    beliefs += unary
    return beliefs


def compute_cavities(
    edges: Directed, unary: FloatArray, messages: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (K, D) cavities as logarithms h and as probabilities q.

    A cavity is the belief of the sender without the message of the receiver.
    """
    h = np.take(log_beliefs(edges, unary, messages), edges.source, axis=1)
    h -= np.take(messages, edges.reverse, axis=1)
    h -= h.max(axis=0)
    q = np.exp(h)
    total = q.sum(axis=0)
    q /= total
    h -= np.log(total)
    return h, q


def compute_messages(
    edges: Directed, h: FloatArray, q: FloatArray, excluded: BoolArray | None
) -> FloatArray:
    """Return (K, D) log-messages; they are zero for states that the receiver cannot have.

    For each state, the sum of q over all other states is that of the states before it plus that of
    the states after it. Computing it as 1 - q would lose digits by cancellation.
    """
    sums, above = np.zeros_like(q), np.zeros(q.shape[1])
    for k in range(1, len(q)):
        np.add(sums[k - 1], q[k - 1], out=sums[k])
    for k in range(len(q) - 1, 0, -1):
        above += q[k]
        sums[k - 1] += above
    sums *= edges.unequal
    sums += edges.equal * q
    if excluded is not None:
        sums[excluded] = 1
    tiny = np.flatnonzero(sums.min(axis=0) < SMALLEST_SUM)
    sums[:, tiny] = 1
    messages = np.log(sums, out=sums)
    if len(tiny):
        weights = edges.weights[tiny]
        again = edge_message(h[:, tiny].T, weights).T - np.maximum(weights, 0)
        kept = again if excluded is None else np.where(excluded[:, tiny], 0.0, again)
        messages[:, tiny] = np.maximum(kept, LOWEST_MESSAGE)
    return messages


# ---------------------------------------------------------------------------- log Z


def compute_free_energy(edges: Directed, unary: FloatArray, state: MessageState) -> float:
    """Approximate log Z by Σ_j log Z_j - Σ_e ρ_e log Z_e, which is stationary at a fixed point.

    Parameters
    ----------
    edges : Directed
        The directed edges.
    unary : (K, n_nodes) array
        Unary log-potentials.
    state : MessageState
        Cavities and the messages computed from them.

    Returns
    -------
    float
        An approximation to log Z, in nats.
    """
    _, log_nodes = log_normalise(log_beliefs(edges, unary, state.messages).T)
    once = np.flatnonzero(edges.source < edges.target)
    incoming = state.messages[:, edges.reverse[once]]
    _, log_edges = log_normalise((state.cavities[:, once] + incoming).T)
    appearance, weights = edges.appearance[once], edges.weights[once]
    # Messages of edges with w > 0 are scaled by exp(-w / ρ). Undoing this adds w to log Z_j at both
    # ends and w / ρ to log Z_e, so the result increases by 2 w - ρ (w / ρ) = w.
    factors = appearance @ np.maximum(weights, 0)
    return float(log_nodes.sum() - appearance @ log_edges + factors)


# ---------------------------------------------------------------------------- checks


def warn_unless_converged(
    engine: str, part: Graph, state: MessageState, tol: float, damping: float = 0.9
) -> None:
    """Warn that messages did not converge if the residual exceeds ``tol``, and give a remedy."""
    if state.residual <= tol:
        return
    warn_caller(
        f"the engine {engine!r} did not converge in {part.n_nodes} nodes with {len(part.edges)} "
        f"relations: after {state.n_sweeps} sweeps a sweep still changes a probability by "
        f"{state.residual:.1g}, more than tol = {tol:.1g}. The result is that of the last sweep. "
        "Compare it with inference='gibbs', weights='ignore', or use more damping and more "
        f"sweeps: inference=partial({engine}, damping={damping}, max_sweeps=5000).",
        ConvergenceWarning,
    )


def check_settings(max_sweeps: int, tol: float, damping: float | None = None) -> None:
    """Raise ``ValueError`` for settings that are out of range."""
    check_integer("max_sweeps", max_sweeps, 1)
    if not tol >= 0:
        raise ValueError(f"tol is {tol}; it must be zero or positive.")
    if damping is not None and not 0 <= damping < 1:
        raise ValueError(f"damping is {damping}; it must be from 0 to below 1, or None.")
