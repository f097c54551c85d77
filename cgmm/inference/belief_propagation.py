"""Loopy belief propagation: what is exact on a tree, done on any graph. Chapter 10.

On a tree, each node tells each neighbour what it has heard from all others, and two passes make
every marginal exact. The same equations can be written down for a graph with cycles, where news may
come back to whom it came from; iterated to a fixed point they are a stationary point of the Bethe
free energy, in which each edge corrects the entropy of its two ends as if there were no cycles
[wainwright2008, sect. 4]. Nothing is proved about how near that is. On long cycles and sparse
graphs it is near; where cycles are short and relations strong, it may be far off or find no fixed
point.

Messages go along both directions of every edge at once, sweep after sweep. Belief propagation and
its tree-reweighted kin differ in one number an edge: ρ_e is one, or the share of spanning trees in
which the edge appears. An edge says only whether its ends are equal::

    belief    b_j(k)    ∝  exp(unary[j, k]) Π_i m_ij(k)^ρ_ij          over the neighbours i of j
    cavity    q_ji(k)   ∝  b_j(k) / m_ij(k)                           what j thinks without i
    message   m_ji(k)   =  Σ_l q_ji(l) exp(w/ρ [k = l])               what j tells i

In a fixed point, with Z_j and Z_e the sums that make b_j and the joint belief of an edge sum to
one, log Z is approximated by Σ_j log Z_j - Σ_e ρ_e log Z_e.

=======  ==========================================================================
D        directed edges, two for each of the E edges, sorted by the node that listens
m        log-messages (K, D); for w > 0 without the factor exp(w/ρ)
h, q     cavities (K, D), in logs and as probabilities
γ        damping: the share of the old message in the new one, in logs
=======  ==========================================================================
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

# A sum of probabilities below this may have lost what matters of it, and is formed again in logs.
SMALLEST = 1e-280
# Where relations leave one colouring, logs of all others fall without end, faster and faster.
FLOOR = -1e12
# Damping of the first sweep and from this one on, unless the user says more: what does not settle
# with little may do so with much.
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
        Sweeps over all edges, at most; in a forest as many as it has nodes, if these are more.
    tol : float, default=1e-7
        Stop when a sweep changes no probability that a node has without one of its neighbours by
        more than this.
    damping : float, default=None
        The share of the old log-messages in the new ones, from 0 to below 1. None: from 0.3 in the
        first sweep to 0.9 in the 500th; in a forest 0.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to approximate marginals and the Bethe approximation of log Z,
        which is no bound, in O((n_nodes + E) K) a sweep. ``residual`` of the answer is that of the
        last sweep. In a forest both are exact, as far as ``tol`` goes; without edges they are also
        marked so.

    Raises
    ------
    NetworkError
        When called: if a node has no possible state, or cannot-links take its last one from it.
        That no assignment exists for deeper reasons is not noticed.
    ValueError
        If a setting is out of range.

    Warns
    -----
    ConvergenceWarning
        When called: if the residual is above ``tol`` after ``max_sweeps``. The marginals are then
        those of the last sweep, and may mean nothing.

    Notes
    -----
    Every call starts from messages
    that say nothing: the same input has the same answer. Three things to know before trusting it:

    - At a fixed point the marginals are the derivatives of ``log_z`` in the unaries, as they are
      for an exact engine, so that EM's updates of the weights match counts that belong together.
    - From unaries that are the same for all states the messages stay so, which is right: the
      network is symmetric. Where it has many separate solutions (three states, 1.5 cannot-links a
      node or more, components that overlap almost wholly) a slight preference of the unaries
      decides for one of them, too surely: the messages may well converge, to what is further off
      than a spanning tree.
    - Where they do not converge, more damping seldom helps; ``inference="gibbs",
      weights="ignore"`` is the independent opinion to ask.

    Examples
    --------
    Four nodes in a ring may not be equal to their neighbours; one of them is nearly sure:

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
    tied = np.unique(graph.edges)
    part = induced_subgraph(graph, tied)
    edges = both_directions(part, np.ones(len(part.edges)))

    def infer(unary: FloatArray) -> Marginals:
        unary = possible_states(graph, unary)
        h = unary[tied].T
        settled = settle(edges, h, max_sweeps=max_sweeps, tol=tol, damping=damping)
        warn_unless_settled("belief_propagation", part, settled, tol)
        return assemble_marginals(unary, tied, edges, settled, free_energy(edges, h, settled))

    return Inference(infer, exact=len(tied) == 0)


def possible_states(graph: Graph, unary: FloatArray) -> FloatArray:
    """Return (n_nodes, K) unaries, -inf also where a node with one state forbids it."""
    unary = check_unary(graph, unary)
    allowed = ~np.isneginf(unary)
    # This is asked in every E-step, and as a rule there is nothing to exclude.
    if (graph.weights == -np.inf).any() and (unary.shape[1] == 1 or not allowed.all()):
        allowed = exclude_states(graph, allowed)
    return np.where(allowed, unary, -np.inf)


def assemble_marginals(
    unary: FloatArray, tied: IntArray, edges: Directed, settled: Settled, log_z: float
) -> Marginals:
    """Return the marginals, including nodes without edges and their part of log Z."""
    log_nodes = unary.copy()
    log_nodes[tied] = log_beliefs(edges, unary[tied].T, settled.messages).T
    nodes, log_totals = log_normalise(log_nodes)
    log_totals[tied] = 0.0
    exact = len(tied) == 0
    return Marginals(nodes, log_z + float(log_totals.sum()), exact, settled.residual)


# ---------------------------------------------------------------------------- messages


class Directed(NamedTuple):
    """Both directions of every edge of a graph in which every node has an edge."""

    edge: IntArray
    """(D,) the row of the edge."""
    source: IntArray
    """(D,) who speaks."""
    target: IntArray
    """(D,) who listens, ascending."""
    starts: IntArray
    """(n_nodes,) the place of the first message that each node hears."""
    reverse: IntArray
    """(D,) the place of the opposite direction."""
    appearance: FloatArray
    """(D,) ρ."""
    weights: FloatArray
    """(D,) w / ρ."""
    equal: FloatArray
    """(D,) exp(w / ρ), at most one."""
    unequal: FloatArray
    """(D,) exp(-w / ρ), at most one: what is left of one after division by exp(w / ρ)."""
    are_forest: bool
    """Whether they close no cycle."""


class Settled(NamedTuple):
    """The state of the messages after the last sweep."""

    cavities: FloatArray
    """(K, D) h, normalised."""
    messages: FloatArray
    """(K, D) m, as they follow from these cavities."""
    residual: float
    """Largest change of a cavity probability in the last sweep, had it not been damped."""
    n_sweeps: int
    """How many sweeps there were."""


def both_directions(graph: Graph, appearance: FloatArray) -> Directed:
    """Sort the directions of all edges by the node that listens.

    Parameters
    ----------
    graph : Graph
        Simplified; every node has an edge.
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


def settle(
    edges: Directed, unary: FloatArray, *, max_sweeps: int, tol: float, damping: float | None
) -> Settled:
    """Send all messages, again and again, until no cavity changes any more.

    Parameters
    ----------
    edges : Directed
        The edges.
    unary : (K, n_nodes) array
        Unary log-potentials; each node has a state, and none that a neighbour's only state forbids.
    max_sweeps : int
        Sweeps at most.
    tol : float
        The residual at which to stop.
    damping : float or None
        γ; None: little at first and more and more.

    Returns
    -------
    Settled
        The last cavities and what they say.
    """
    impossible = np.isneginf(unary)
    idle = impossible[:, edges.target] if impossible.any() else None
    messages = np.zeros((len(unary), len(edges.source)))
    h, q = cavities(edges, unary, messages)
    residuals: list[float] = []
    for share in _plan(edges, max_sweeps, damping).tolist():
        said = tell(edges, h, q, idle)
        said *= 1 - share
        said += share * messages
        messages = said
        before = q
        h, q = cavities(edges, unary, messages)
        residuals.append(float(np.abs(q - before).max(initial=0.0)) / (1 - share))
        if residuals[-1] <= tol:
            break
    return Settled(h, tell(edges, h, q, idle), residuals[-1], len(residuals))


def _plan(edges: Directed, max_sweeps: int, damping: float | None) -> FloatArray:
    """Return (n_sweeps,) the damping γ of each sweep.

    In a forest nothing that was said comes back, so that nothing is to be damped: after as many
    sweeps as the longest path has edges every message is final.
    """
    if edges.are_forest:
        return np.full(max(max_sweeps, len(edges.starts)), damping or 0.0)
    share = DAMPINGS if damping is None else (damping, damping)
    return np.interp(np.arange(max_sweeps), [0, RISE], share)


def log_beliefs(edges: Directed, unary: FloatArray, messages: FloatArray) -> FloatArray:
    """Return (K, n_nodes) unaries plus all messages to a node, not normalised."""
    heard = np.add.reduceat(messages * edges.appearance, edges.starts, axis=1)
    heard += unary
    return heard


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


def tell(edges: Directed, h: FloatArray, q: FloatArray, idle: BoolArray | None) -> FloatArray:
    """Return (K, D) messages, set to zero where the receiver's state is impossible.

    The sum over the others, 1 - q, is formed from below and above: it must not cancel.
    """
    said, above = np.zeros_like(q), np.zeros(q.shape[1])
    for k in range(1, len(q)):
        np.add(said[k - 1], q[k - 1], out=said[k])
    for k in range(len(q) - 1, 0, -1):
        above += q[k]
        said[k - 1] += above
    said *= edges.unequal
    said += edges.equal * q
    if idle is not None:
        said[idle] = 1
    lost = np.flatnonzero(said.min(axis=0) < SMALLEST)
    said[:, lost] = 1
    np.log(said, out=said)
    if len(lost):
        weights = edges.weights[lost]
        again = edge_message(h[:, lost].T, weights).T - np.maximum(weights, 0)
        kept = again if idle is None else np.where(idle[:, lost], 0.0, again)
        said[:, lost] = np.maximum(kept, FLOOR)
    return said


# ---------------------------------------------------------------------------- the answer


def free_energy(edges: Directed, unary: FloatArray, settled: Settled) -> float:
    """Return Σ_j log Z_j - Σ_e ρ_e log Z_e, of which a fixed point is a stationary point.

    Parameters
    ----------
    edges : Directed
        The edges.
    unary : (K, n_nodes) array
        Unary log-potentials.
    settled : Settled
        Cavities and their messages.

    Returns
    -------
    float
        An approximation to log Z, in nats.
    """
    _, log_nodes = log_normalise(log_beliefs(edges, unary, settled.messages).T)
    once = np.flatnonzero(edges.source < edges.target)
    heard = settled.messages[:, edges.reverse[once]]
    _, log_edges = log_normalise((settled.cavities[:, once] + heard).T)
    appearance, weights = edges.appearance[once], edges.weights[once]
    # The factor exp(w / ρ) that messages lack: Z_j has it ρ times from both sides, Z_e once.
    factors = appearance @ np.maximum(weights, 0)
    return float(log_nodes.sum() - appearance @ log_edges + factors)


# ---------------------------------------------------------------------------- checks


def warn_unless_settled(
    engine: str, part: Graph, settled: Settled, tol: float, damping: float = 0.9
) -> None:
    """Warn how far the messages are from a fixed point, and what can be done."""
    if settled.residual <= tol:
        return
    warn_caller(
        f"the engine {engine!r} did not converge in {part.n_nodes} nodes that {len(part.edges)} "
        f"relations tie: after {settled.n_sweeps} sweeps a sweep still changes a "
        f"probability by {settled.residual:.1g}, where {tol:.1g} was asked for. The answer is "
        "that of the last sweep. Compare it with inference='gibbs', weights='ignore', or damp it "
        f"and give it time: inference=partial({engine}, damping={damping}, max_sweeps=5000).",
        ConvergenceWarning,
    )


def check_settings(max_sweeps: int, tol: float, damping: float | None = None) -> None:
    """Raise an error for settings that are out of range."""
    check_integer("max_sweeps", max_sweeps, 1)
    if not tol >= 0:
        raise ValueError(f"tol is {tol}; it must be zero or positive.")
    if damping is not None and not 0 <= damping < 1:
        raise ValueError(f"damping is {damping}; it must be from 0 to below 1, or None.")
