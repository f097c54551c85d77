"""Loopy belief propagation: the equations that are exact on a tree, iterated on any graph.

The engine ``auto`` applies it to components that are too costly for exact inference. Chapter 10
explains it.

On a tree, each node sends each neighbour a summary of the messages from all other neighbours, and
two passes make every marginal exact. The same equations can be iterated on a graph with cycles,
where a message can return to its sender. A fixed point is a stationary point of the Bethe free
energy, in which each edge corrects the entropy of its two ends as if there were no cycles
[wainwright2008, sect. 4]. No bound on the error is known. On long cycles and sparse graphs the
error is small; with short cycles and strong relations the result may be far off, or there may be no
convergence.

Each sweep updates the messages along both directions of every edge at once. Belief propagation and
tree-reweighted belief propagation differ in one number per edge: ρ_e is one, or the fraction of
spanning trees that contain the edge. The potential of an edge depends only on whether its ends are
equal::

    belief    b_j(k)    ∝  exp(unary[j, k]) Π_i m_ij(k)^ρ_ij          over the neighbours i of j
    cavity    q_ji(k)   ∝  b_j(k) / m_ij(k)                           belief of j without i
    message   m_ji(k)   =  Σ_l q_ji(l) exp(w/ρ [k = l])               message from j to i

In a fixed point, with Z_j and Z_e the sums that make b_j and the joint belief of an edge sum to
one, log Z is approximated by Σ_j log Z_j - Σ_e ρ_e log Z_e.

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

# A sum of probabilities below this is inaccurate and is computed again in logarithms.
SMALLEST_SUM = 1e-280
# If relations allow a single colouring, log-messages of all other states diverge; this stops them.
LOWEST_MESSAGE = -1e12
# Default damping of the first sweep and of sweep RISE: messages that do not converge with weak
# damping may converge with strong damping.
DAMPINGS, RISE = (0.3, 0.9), 499


def belief_propagation(
    graph: Graph, *, max_sweeps: int = 500, tol: float = 1e-7, damping: float | None = None
) -> Inference:
    """Return an engine for networks too dense for exact inference, hard relations included.

    Parameters
    ----------
    graph : Graph
        Any graph.
    max_sweeps : int, default=500
        Maximum number of sweeps over all edges; in a forest, at least its number of nodes.
    tol : float, default=1e-7
        Stop when a sweep changes no cavity probability (the belief of a node without one of its
        neighbours) by more than this.
    damping : float, default=None
        Fraction of the old log-messages in the new ones, from 0 to below 1. None: from 0.3 in the
        first sweep to 0.9 in the 500th; in a forest 0.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to approximate marginals and the Bethe approximation of
        log Z, which is no bound, in O((n_nodes + E) K) per sweep. Their ``residual`` is that of the
        last sweep. In a forest both are exact up to ``tol``; they are marked as exact only if there
        are no edges.

    Raises
    ------
    NetworkError
        When called: if a node has no possible state, or if cannot-links to nodes with a single
        state exclude all its states. Other reasons why no assignment exists are not detected.
    ValueError
        If a setting is out of range.

    Warns
    -----
    ConvergenceWarning
        When called: if the residual is above ``tol`` after ``max_sweeps``. The marginals are then
        those of the last sweep, and may be meaningless.

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
    edges = both_directions(part, np.ones(len(part.edges)))

    def infer(unary: FloatArray) -> Marginals:
        unary = exclude_impossible(graph, unary)
        h = unary[connected].T
        state = iterate_messages(edges, h, max_sweeps=max_sweeps, tol=tol, damping=damping)
        warn_unless_converged("belief_propagation", part, state, tol)
        return assemble_marginals(unary, connected, edges, state, free_energy(edges, h, state))

    return Inference(infer, exact=len(connected) == 0)


def exclude_impossible(graph: Graph, unary: FloatArray) -> FloatArray:
    """Return (n_nodes, K) unaries, with -inf for states that a neighbour's only state excludes."""
    unary = check_unary(graph, unary)
    allowed = ~np.isneginf(unary)
    # Every E-step calls this, and usually there is nothing to exclude.
    if (graph.weights == -np.inf).any() and (unary.shape[1] == 1 or not allowed.all()):
        allowed = exclude_states(graph, allowed)
    return np.where(allowed, unary, -np.inf)


def assemble_marginals(
    unary: FloatArray, connected: IntArray, edges: Directed, state: MessageState, log_z: float
) -> Marginals:
    """Return the marginals, including nodes without edges and their part of log Z."""
    log_nodes = unary.copy()
    log_nodes[connected] = log_beliefs(edges, unary[connected].T, state.messages).T
    nodes, log_totals = log_normalise(log_nodes)
    log_totals[connected] = 0.0
    exact = len(connected) == 0
    return Marginals(nodes, log_z + float(log_totals.sum()), exact, state.residual)


# ---------------------------------------------------------------------------- messages


class Directed(NamedTuple):
    """Both directions of every edge of a graph in which every node has an edge."""

    edge: IntArray
    """(D,) row of the edge in the graph."""
    source: IntArray
    """(D,) node that sends the message."""
    target: IntArray
    """(D,) node that receives the message, ascending."""
    starts: IntArray
    """(n_nodes,) index of the first message that each node receives."""
    reverse: IntArray
    """(D,) index of the opposite direction."""
    appearance: FloatArray
    """(D,) ρ."""
    weights: FloatArray
    """(D,) w / ρ."""
    equal: FloatArray
    """(D,) exp(w / ρ), at most one."""
    unequal: FloatArray
    """(D,) exp(-w / ρ), at most one: the factor of unequal states after division by exp(w / ρ)."""
    are_forest: bool
    """True if the edges close no cycle."""


class MessageState(NamedTuple):
    """State of the messages after the last sweep."""

    cavities: FloatArray
    """(K, D) h, normalised."""
    messages: FloatArray
    """(K, D) m, computed from these cavities."""
    residual: float
    """Largest change of a cavity probability in the last sweep, corrected for damping."""
    n_sweeps: int
    """Number of sweeps."""


def both_directions(graph: Graph, appearance: FloatArray) -> Directed:
    """Return both directions of all edges, sorted by the receiving node.

    Parameters
    ----------
    graph : Graph
        A simplified graph in which every node has an edge.
    appearance : (E,) array
        ρ_e in (0, 1].

    Returns
    -------
    Directed
        The edges, twice.

    Examples
    --------
    >>> edges = both_directions(Graph(3, np.array([[0, 1], [1, 2]]), np.ones(2)), np.ones(2))
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
        The edges.
    unary : (K, n_nodes) array
        Unary log-potentials, with -inf for all states that a neighbour's only state excludes; each
        node has a possible state.
    max_sweeps : int
        Maximum number of sweeps.
    tol : float
        The residual at which to stop.
    damping : float or None
        γ; None: increasing from sweep to sweep.

    Returns
    -------
    MessageState
        The last cavities and the messages computed from them.
    """
    impossible = np.isneginf(unary)
    excluded = impossible[:, edges.target] if impossible.any() else None
    messages = np.zeros((len(unary), len(edges.source)))
    h, q = cavities(edges, unary, messages)
    residuals: list[float] = []
    for share in _schedule_damping(edges, max_sweeps, damping).tolist():
        updated = compute_messages(edges, h, q, excluded)
        updated *= 1 - share
        updated += share * messages
        messages = updated
        before = q
        h, q = cavities(edges, unary, messages)
        residuals.append(float(np.abs(q - before).max(initial=0.0)) / (1 - share))
        if residuals[-1] <= tol:
            break
    return MessageState(h, compute_messages(edges, h, q, excluded), residuals[-1], len(residuals))


def _schedule_damping(edges: Directed, max_sweeps: int, damping: float | None) -> FloatArray:
    """Return (n_sweeps,) the damping γ of each sweep.

    A forest needs no damping, because no message returns to its sender: every message is final
    after as many sweeps as the longest path has edges.
    """
    if edges.are_forest:
        return np.full(max(max_sweeps, len(edges.starts)), damping or 0.0)
    share = DAMPINGS if damping is None else (damping, damping)
    return np.interp(np.arange(max_sweeps), [0, RISE], share)


def log_beliefs(edges: Directed, unary: FloatArray, messages: FloatArray) -> FloatArray:
    """Return (K, n_nodes) unaries plus all messages to a node, not normalised."""
    beliefs = np.add.reduceat(messages * edges.appearance, edges.starts, axis=1)
    beliefs += unary
    return beliefs


def cavities(
    edges: Directed, unary: FloatArray, messages: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (K, D) cavities h and q = exp(h): beliefs without the message of the receiver."""
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
    """Return (K, D) log-messages, set to zero for states that the receiver cannot have.

    The sum over the other states, 1 - q, is added up from both sides to avoid cancellation.
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


def free_energy(edges: Directed, unary: FloatArray, state: MessageState) -> float:
    """Return Σ_j log Z_j - Σ_e ρ_e log Z_e, which is stationary at a fixed point.

    Parameters
    ----------
    edges : Directed
        The edges.
    unary : (K, n_nodes) array
        Unary log-potentials.
    state : MessageState
        Cavities and their messages.

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
    # Messages are scaled by exp(-w / ρ) where w > 0. Undoing this adds w to log Z_j at each end and
    # w / ρ to log Z_e, so the result, nodes less ρ times edges, gains w.
    factors = appearance @ np.maximum(weights, 0)
    return float(log_nodes.sum() - appearance @ log_edges + factors)


# ---------------------------------------------------------------------------- checks


def warn_unless_converged(
    engine: str, part: Graph, state: MessageState, tol: float, damping: float = 0.9
) -> None:
    """Warn if the residual exceeds ``tol``, with its size and a remedy."""
    if state.residual <= tol:
        return
    warn_caller(
        f"the engine {engine!r} did not converge in {part.n_nodes} nodes that {len(part.edges)} "
        f"relations tie: after {state.n_sweeps} sweeps a sweep still changes a "
        f"probability by {state.residual:.1g}, where {tol:.1g} was asked for. The answer is "
        "that of the last sweep. Compare it with inference='gibbs', weights='ignore', or damp it "
        f"and give it time: inference=partial({engine}, damping={damping}, max_sweeps=5000).",
        ConvergenceWarning,
    )


def check_settings(max_sweeps: int, tol: float, damping: float | None = None) -> None:
    """Raise ``ValueError`` for settings that are out of range."""
    check_integer("max_sweeps", max_sweeps, 1)
    if not tol >= 0:
        raise ValueError(f"tol is {tol}; it must be zero or positive.")
    if damping is not None and not 0 <= damping < 1:
        raise ValueError(f"damping is {damping}; it must be from 0 to below 1, or None.")
