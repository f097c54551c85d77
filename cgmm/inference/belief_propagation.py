"""Loopy belief propagation: what is exact on a tree, done on any graph. Chapter 10.

On a tree, each node tells each neighbour what it has heard from all others, and two passes make
every marginal exact. The same equations can be written down for a graph with cycles, where news may
come back to whom it came from; iterated to a fixed point they are a stationary point of the Bethe
free energy, in which each edge corrects the entropy of its two ends as if there were no cycles
[wainwright2008, sect. 4]. Nothing is proved about how near that is. On long cycles and sparse
graphs it is near; where cycles are short and relations strong, it may be far off or find no fixed
point.

=======  ===============================================================
core     what is left of the graph without its trees
h        unaries, with what the trees say
=======  ===============================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from cgmm.inference.arc_consistency import exclude_states, forbidden_pairs
from cgmm.inference.message_passing import (
    Directed,
    Settled,
    both_directions,
    free_energy,
    log_beliefs,
    settle,
)
from cgmm.inference.peeling import Peeling, peel_leaves
from cgmm.network import Graph, Inference, Marginals, check_unary, simplify
from cgmm.numerics import FloatArray, check_integer, log_normalise, warn_caller

__all__ = ["belief_propagation"]


def belief_propagation(
    graph: Graph, *, max_sweeps: int = 500, tol: float = 1e-7, damping: float | None = None
) -> Inference:
    """Engine for networks too dense for exact inference, hard relations included.

    Parameters
    ----------
    graph : Graph
        Any graph.
    max_sweeps : int, default=500
        Sweeps over all edges, at most.
    tol : float, default=1e-7
        Stop when a sweep changes no probability that a node has without one of its neighbours by
        more than this.
    damping : float, default=None
        The share of the old log-messages in the new ones, from 0 to below 1. None: 0.3, and more
        whenever the residual stops falling.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to approximate marginals and the Bethe approximation of log Z,
        which is no bound, in O((n_nodes + E) K) a sweep. ``residual`` of the answer is that of the
        last sweep. On a forest there is nothing to iterate: both are exact and marked so.

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
    The equations stand in :mod:`cgmm.inference.message_passing`. Every call starts from messages
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
    network = take_apart(graph)
    edges = both_directions(network.peeling.core, np.ones(len(network.peeling.core.edges)))

    def infer(unary: FloatArray) -> Marginals:
        h, log_roots = listen_to_trees(network, unary)
        h_core = h[network.peeling.nodes].T
        settled = settle(edges, h_core, max_sweeps=max_sweeps, tol=tol, damping=damping)
        warn_unless_settled("belief_propagation", network, settled, tol)
        log_z = float(log_roots.sum()) + free_energy(edges, h_core, settled)
        return answer(network, edges, h, settled, log_z)

    return Inference(infer)


class LoopyNetwork(NamedTuple):
    """A graph ready for messages."""

    graph: Graph
    forbidden: sparse.csr_array
    """Its cannot-links."""
    peeling: Peeling
    """Its trees, and the core."""


def take_apart(graph: Graph) -> LoopyNetwork:
    """The work on the structure."""
    graph = simplify(graph)
    return LoopyNetwork(graph, forbidden_pairs(graph), peel_leaves(graph))


def listen_to_trees(network: LoopyNetwork, unary: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n_nodes, K) unaries with what the trees say, and log Z of each component that is a tree.

    States that cannot-links to nodes of one state forbid become impossible beforehand.
    """
    unary = check_unary(network.graph, unary)
    allowed = ~np.isneginf(unary)
    if network.forbidden.nnz and (unary.shape[1] == 1 or not allowed.all()):
        allowed = exclude_states(network.forbidden, allowed)
    h = np.where(allowed, unary, -np.inf)
    return h, network.peeling.send_inward(h)


def answer(
    network: LoopyNetwork, edges: Directed, h: FloatArray, settled: Settled, log_z: float
) -> Marginals:
    """The marginals of the core, and what the trees make of them."""
    core, _ = log_normalise(log_beliefs(edges, h[network.peeling.nodes].T, settled.messages).T)
    nodes = network.peeling.send_outward(h, core)
    is_forest = not len(network.peeling.nodes)
    return Marginals(nodes, log_z, exact=is_forest, residual=settled.residual)


# ---------------------------------------------------------------------------- checks


def warn_unless_settled(
    engine: str, network: LoopyNetwork, settled: Settled, tol: float, damping: float = 0.9
) -> None:
    """Say how far the messages are from a fixed point, and what can be done."""
    if settled.residual <= tol:
        return
    core = network.peeling.core
    warn_caller(
        f"the engine {engine!r} did not converge in {core.n_nodes} nodes that {len(core.edges)} "
        f"relations tie into cycles: after {settled.n_sweeps} sweeps a sweep still changes a "
        f"probability by {settled.residual:.1g}, where {tol:.1g} was asked for. The answer is "
        "that of the last sweep. Compare it with inference='gibbs', weights='ignore', or damp it "
        f"and give it time: inference=partial({engine}, damping={damping}, max_sweeps=5000).",
        ConvergenceWarning,
    )


def check_settings(max_sweeps: int, tol: float, damping: float | None) -> None:
    """Refuse what no iteration can be done with."""
    check_integer("max_sweeps", max_sweeps, 1)
    if not tol >= 0:
        raise ValueError(f"tol is {tol}; it must be zero or positive, a change of probability.")
    if damping is not None and not 0 <= damping < 1:
        raise ValueError(f"damping is {damping}; it must be from 0 to below 1, or None.")
