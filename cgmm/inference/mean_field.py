"""Mean field: approximate the posterior by a distribution under which nodes are independent.

Users select it with ``inference="mean_field"`` for large networks of soft relations. Chapter 10
explains it. [lu2007, eq. 3.2] asks for the product Q(z) = Π_j Q_j(z_j) that is closest to the
posterior in the Kullback-Leibler divergence KL(Q ‖ p). Since log Z - KL(Q ‖ p) equals ::

    B(Q) = Σ_j Σ_k Q_jk unary[j, k] + Σ_e w_e Σ_k Q_ak Q_bk - Σ_j Σ_k Q_jk log Q_jk   ≤   log Z,

the closest product has the highest lower bound B(Q) of log Z. If all other nodes are fixed, the
best Q_j has a closed form. Nodes that share no edge do not influence each other and are updated
together, colour by colour. This is coordinate ascent, so no update lowers the bound.

======  =============================================================================
Q_jk    probability of state k at node j under Q, e.g. 0.7; stored as (K, n_nodes)
F_jk    field, Σ_b w_jb Q_bk over the neighbours b of j, e.g. 1.1
L_j     log Σ_k exp(unary[j, k] + F_jk), the local log-normaliser, e.g. -0.4
======  =============================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from cgmm.inference.belief_propagation import check_settings
from cgmm.inference.gibbs import by_colour
from cgmm.network import Graph, Inference, Marginals, NetworkError, check_unary
from cgmm.numerics import FloatArray, IntArray, log_normalise

__all__ = ["mean_field"]


def mean_field(graph: Graph, *, max_sweeps: int = 200, tol: float = 1e-8) -> Inference:
    """Prepare a graph for the mean field approximation, for large networks of soft relations.

    Parameters
    ----------
    graph : Graph
        Any graph without edges of log-weight -inf.
    max_sweeps : int, default=200
        Maximum number of sweeps over all nodes. The paper reports convergence after about 20.
    tol : float, default=1e-8
        Stop when a sweep raises the bound by at most this many nats per node.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to marginals Q, with the bound B(Q) ≤ log Z as ``log_z``.
        A sweep takes O((n_nodes + E) K) time. Results are never marked as exact, although they are
        exact on a graph without edges.

    Raises
    ------
    NetworkError
        If an edge has log-weight -inf.
    ValueError
        If a setting is out of range; when called, if a node has no possible state.

    Notes
    -----
    This is [lu2007, eqs. 3.2 to 3.5]. The paper's general update lacks a factor 2 that its update
    for images has. In this package w_e counts each unordered pair once, so w = 2 W^p and no factor
    is needed.

    Every call starts from the normalised unaries, so the same input has the same result. Three
    facts limit its use:

    - The bound has many local maxima. If the unaries are equal for all states, the ascent starts at
      a stationary point and remains there, however strong the relations are.
    - Mean field is overconfident, because it ignores the correlation between neighbours.
    - A difference of two bounds, as in log Z_posterior - log Z_prior, is no bound. EM uses it as an
      approximation to the log-evidence, which may decrease between iterations.

    An edge of log-weight -inf raises an error, because B(Q) is -inf unless the two nodes have no
    state in common. Q would have to assign disjoint sets of states to the two nodes at the start,
    and could never change these sets.

    Examples
    --------
    Two nodes prefer equal states, and the state of the first is nearly certain:

    >>> graph = Graph(2, np.array([[0, 1]]), np.array([2.0]))
    >>> unary = np.log([[0.9, 0.1], [0.5, 0.5]])
    >>> marginals = mean_field(graph)(unary)
    >>> marginals.nodes.round(3)
    array([[0.975, 0.025],
           [0.87 , 0.13 ]])
    >>> from cgmm.inference.enumerate import enumerate_assignments
    >>> exact = enumerate_assignments(graph)(unary)
    >>> round(marginals.log_z, 3), round(exact.log_z, 3)
    (1.353, 1.434)

    Settings are passed with ``functools.partial``:

    >>> from functools import partial
    >>> engine = partial(mean_field, max_sweeps=20, tol=0.0)
    >>> engine(graph)(unary).exact
    False
    """
    check_settings(max_sweeps, tol)
    network = _prepare_network(graph)

    def infer(unary: FloatArray) -> Marginals:
        ascent = _ascend(network, check_unary(graph, unary))
        found = next(ascent)
        for _ in range(max_sweeps - 1):
            previous, found = found.log_z, next(ascent)
            if found.log_z - previous <= tol * graph.n_nodes:
                break
        return found

    return Inference(infer, exact=False)


def mean_field_ascent(graph: Graph, unary: FloatArray) -> Iterator[Marginals]:
    """Run the ascent without end; yield Q and its bound after each sweep.

    Parameters
    ----------
    graph : Graph
        Any graph without edges of log-weight -inf.
    unary : (n_nodes, K) array
        Unary log-potentials.

    Yields
    ------
    Marginals
        Q and its bound after sweep 1, 2, ...; the bound never decreases.

    Raises
    ------
    ValueError
        See :func:`mean_field`.

    Examples
    --------
    >>> graph = Graph(2, np.array([[0, 1]]), np.array([2.0]))
    >>> from itertools import islice
    >>> ascent = mean_field_ascent(graph, np.log([[0.9, 0.1], [0.5, 0.5]]))
    >>> [round(marginals.log_z, 4) for marginals in islice(ascent, 4)]
    [1.2908, 1.3526, 1.3529, 1.3529]
    """
    yield from _ascend(_prepare_network(graph), check_unary(graph, unary))


class _AscentNetwork(NamedTuple):
    """A graph prepared for the ascent, with its nodes sorted by colour."""

    order: IntArray
    """(n_nodes,) node at each position of the colour order."""
    blocks: tuple[tuple[slice, sparse.csr_array, sparse.csr_array], ...]
    """For each colour: positions of its nodes, log-weights to earlier and to later colours."""


def _prepare_network(graph: Graph) -> _AscentNetwork:
    """Sort a graph by colour for the ascent; this is done once for many unaries."""
    _reject_hard_edges(graph)
    order, slices, matrix = by_colour(graph)
    rows = ((block, matrix[block]) for block in slices)
    return _AscentNetwork(order, tuple((s, r[:, : s.start], r[:, s.stop :]) for s, r in rows))


def _ascend(network: _AscentNetwork, unary: FloatArray) -> Iterator[Marginals]:
    """Run the ascent on a prepared graph; yield Q and its bound after each sweep."""
    start, _ = log_normalise(unary)
    q, unary = start.T[:, network.order], unary.T[:, network.order]
    while True:
        bound = _sweep_nodes(network, unary, q)
        nodes = np.empty(q.shape).T
        nodes[network.order] = q.T
        yield Marginals(nodes, bound, exact=False, residual=np.nan)


def _sweep_nodes(network: _AscentNetwork, unary: FloatArray, q: FloatArray) -> float:
    """Update every node once, in place; return the bound after the sweep.

    Just after the update of j, L_j = H(Q_j) + Σ_k Q_jk (unary[j, k] + F_jk). The sum of L_j over j
    contains every edge twice. The term from the later end uses the new Q of both ends, as the bound
    does. The term from the earlier end uses the old Q of the later end, so that term is subtracted.
    """
    bound = 0.0
    for block, earlier, later in network.blocks:
        stale = _compute_field(later, q[:, block.stop :])
        field = _compute_field(earlier, q[:, : block.start])
        field += stale
        field += unary[:, block]
        # [lu2007, eq. 3.5], with w = 2 W^p.
        updated, log_normalisers = log_normalise(field.T)
        q[:, block] = updated.T
        # [lu2007, eq. 3.3].
        bound += log_normalisers.sum() - np.vdot(q[:, block], stale)
    return float(bound)


def _compute_field(rows: sparse.csr_array, q: FloatArray) -> FloatArray:
    """Return the fields F (K, nodes of a colour): log-weights times Q of the neighbours."""
    return np.stack([rows @ q_k for q_k in q])


# ------------------------------------------------------------ checks


def _reject_hard_edges(graph: Graph) -> None:
    """Raise ``NetworkError`` if an edge has log-weight -inf."""
    forbidden = np.flatnonzero(np.isneginf(graph.weights))
    if len(forbidden):
        raise NetworkError(
            f"{{nodes}} may not be equal (edge {forbidden[0]} has log-weight -inf; "
            f"{len(forbidden)} such edges), which no product of independent distributions can "
            "express. Use inference='auto' or inference='belief_propagation', or state the "
            "relation as a preference with a finite log-weight.",
            graph.named(graph.edges[forbidden[0]]),
        )
