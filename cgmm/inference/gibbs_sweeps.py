"""Perform the sweeps of Gibbs sampling: single nodes colour by colour, then whole clusters.

:mod:`cgmm.inference.gibbs` calls it; chapter 10 explains it. A sweep draws a new state for every
node, given its neighbours [lu2007, eq. 3.1]. Nodes of one colour share no edge and are drawn
together, for all chains at once, so a sweep is one vectorised step per colour. Optionally it ends
with a *cluster move*: pick two states k and l, connect nodes that cannot easily change alone, and
exchange k and l in a random selection of the clusters.

======  ==============================================================================
S       one-hot states (K, n_nodes, n_chains), nodes sorted by colour, e.g. 0 or 1
p       probability of each state given the neighbours, of the same shape, e.g. 0.7
w       log-weight of an edge, e.g. -1.5
======  ==============================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from cgmm.inference.best_assignment import Descent
from cgmm.inference.feasible import colour_nodes
from cgmm.network import Graph, adjacency, connected_components, induced_subgraph
from cgmm.network.graph import hard_part
from cgmm.numerics import BoolArray, FloatArray, IntArray

# Replaces -inf in matrix products, where -inf times zero would be NaN; far below any log-weight.
FORBIDDEN = -1e30
# Maximum number of different starts that are searched for, whatever the number of chains.
MAX_STARTS = 32
# Maximum number of steps of the search for feasible starts.
MAX_SEARCH = 200_000

NO_START = (
    "State the cannot-links as preferences, which may be broken at a price: fit(X, preferences="
    "np.column_stack([cannot_link, np.full(len(cannot_link), -5.0)])); or use more states."
)


class ColourBlocks(NamedTuple):
    """A network whose nodes are sorted by colour."""

    order: IntArray
    """(n_nodes,) ``order[r]`` is the node at position r; colours ascend."""
    slices: tuple[slice, ...]
    """Slices of positions, one per colour."""
    matrix: sparse.csr_array
    """(n_nodes, n_nodes) symmetric log-weights w between positions; zeros are not stored."""


def by_colour(graph: Graph) -> ColourBlocks:
    """Return the network with its nodes sorted by colour, so that each colour is one slice.

    Parameters
    ----------
    graph : Graph
        The network.

    Returns
    -------
    ColourBlocks
        The order, the slices and the adjacency matrix in that order.

    Examples
    --------
    >>> blocks = by_colour(Graph(3, np.array([[0, 1], [1, 2]]), np.array([1.0, 2.0])))
    >>> blocks.order, blocks.slices
    (array([0, 2, 1]), (slice(0, 2, None), slice(2, 3, None)))
    >>> blocks.matrix.toarray()
    array([[0., 0., 1.],
           [0., 0., 2.],
           [1., 2., 0.]])
    """
    matrix, colours = adjacency(graph), colour_nodes(graph)
    order = np.argsort(colours, kind="stable")
    bounds = np.cumsum([0, *np.bincount(colours)]).tolist()
    slices = tuple(map(slice, bounds[:-1], bounds[1:]))
    return ColourBlocks(order, slices, matrix[order][:, order])


class SamplerNetwork(NamedTuple):
    """A graph prepared for the sampler; nodes are numbered by positions in the colour order."""

    order: IntArray
    """(n_nodes,) node at each position."""
    slices: tuple[slice, ...]
    """Positions of each colour."""
    rows: tuple[sparse.csr_array, ...]
    """Rows of log-weights of each colour, with ``FORBIDDEN`` in place of -inf."""
    graph: Graph
    """The network between positions."""


def prepare(graph: Graph) -> SamplerNetwork:
    """Return the graph sorted by colour; this is done once for many unaries."""
    order, slices, matrix = by_colour(graph)
    upper = sparse.triu(matrix, format="csr").tocoo()
    matrix.data[np.isneginf(matrix.data)] = FORBIDDEN
    rows = tuple(matrix[block] for block in slices)
    edges = np.stack(upper.coords, axis=1)
    by_place = Graph(graph.n_nodes, edges, upper.data, graph.named(order))
    return SamplerNetwork(order, slices, rows, by_place)


# ---------------------------------------------------------------------------- sweeps


def sweep(
    network: SamplerNetwork,
    unary: FloatArray,
    states: FloatArray,
    clustered: bool,
    rng: np.random.Generator,
    total: FloatArray | None = None,
) -> None:
    """Draw a new state of every node, in place, and add its probabilities to ``total``."""
    for block, rows in zip(network.slices, network.rows, strict=True):
        p, states[:, block] = draw(log_conditionals(rows, unary[:, block], states), rng)
        if total is not None:
            total[:, block] += p
    if clustered:
        exchange_clusters(network, unary, states, rng)


def log_conditionals(rows: sparse.csr_array, unary: FloatArray, states: FloatArray) -> FloatArray:
    """Return (K, nodes of a colour, n_chains) log p(z_j = k | neighbours), up to a constant."""
    # [lu2007, eq. 3.1], with w = 2 W^p.
    logs = np.stack([rows @ is_k for is_k in states])
    logs += unary[:, :, None]
    return logs


def draw(logs: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
    """Return the probabilities along the first axis (overwriting the logs) and a one-hot draw."""
    logs -= logs.max(axis=0)
    p = np.exp(logs, out=logs)
    cumulative = p.cumsum(axis=0)
    p /= cumulative[-1]
    reached = rng.random(p.shape[1:]) * cumulative[-1] < cumulative
    reached[1:] ^= reached[:-1].copy()
    return p, reached


# ---------------------------------------------------------------------------- cluster moves


def exchange_clusters(
    network: SamplerNetwork, unary: FloatArray, states: FloatArray, rng: np.random.Generator
) -> None:
    """Exchange two states, drawn for each chain, in a random selection of clusters, in place."""
    n_states, _, n_chains = states.shape
    if n_states == 1:
        return
    chains = np.arange(n_chains)
    k = rng.integers(n_states, size=n_chains)
    other = (k + rng.integers(1, n_states, size=n_chains)) % n_states
    in_k, in_l = states[k, :, chains] > 0, states[other, :, chains] > 0
    cluster = clusters(network, in_k, in_l, rng)
    with np.errstate(invalid="ignore"):  # Nodes in neither state may give -inf minus -inf.
        gain = np.where(in_k, unary[other] - unary[k], np.where(in_l, unary[k] - unary[other], 0.0))
    gains = np.bincount(cluster, weights=gain.ravel())
    flips = (rng.random(len(gains)) < expit(gains))[cluster].reshape(in_k.shape)
    states[k, :, chains] = np.where(flips, in_l, in_k)
    states[other, :, chains] = np.where(flips, in_k, in_l)


def clusters(
    network: SamplerNetwork, in_k: BoolArray, in_l: BoolArray, rng: np.random.Generator
) -> IntArray:
    """Return (n_chains * n_nodes,) the cluster of each node in each chain.

    An edge is satisfied if its states are equal for w > 0, and unequal for w < 0. Each satisfied
    edge connects its nodes with probability 1 - exp(-|w|); then clusters can be exchanged
    independently of each other.
    """
    edges, weights = network.graph.edges, network.graph.weights
    a, b = edges.T
    inside = in_k | in_l
    is_satisfied = (in_k[:, a] == in_k[:, b]) == (weights > 0)
    is_satisfied &= inside[:, a] & inside[:, b]
    chain, edge = np.nonzero(is_satisfied)
    connects = rng.random(len(edge)) >= np.exp(-np.abs(weights[edge]))
    bonds = (chain[:, None] * in_k.shape[1] + edges[edge])[connects]
    return connected_components(Graph(in_k.size, bonds, np.ones(len(bonds))))


# ---------------------------------------------------------------------------- starts


def start(
    network: SamplerNetwork, unary: FloatArray, n_chains: int, rng: np.random.Generator
) -> FloatArray:
    """Return one-hot states of a feasible assignment for each chain.

    They are drawn in a sweep in which only neighbours of earlier colours count. If these exclude
    all states of a node, its component of hard edges gets a feasible assignment from a search.
    """
    states = np.zeros((len(unary), unary.shape[1], n_chains))
    stuck = np.zeros(states.shape[1:], dtype=bool)
    for block, rows in zip(network.slices, network.rows, strict=True):
        logs = log_conditionals(rows, unary[:, block], states)
        stuck[block] = logs.max(axis=0) < FORBIDDEN / 2
        _, states[:, block] = draw(logs, rng)
    if stuck.any():
        _repair(network, unary, states, stuck)
    return states


def _repair(
    network: SamplerNetwork, unary: FloatArray, states: FloatArray, stuck: BoolArray
) -> None:
    """Replace, in place, infeasible assignments of components of hard edges by feasible ones."""
    hard = hard_part(network.graph)
    label = connected_components(hard)
    nodes = np.flatnonzero(np.isin(label, label[stuck.any(axis=1)]))
    search = {"rng": np.random.RandomState(0), "max_search": MAX_SEARCH, "remedy": NO_START}
    descent = Descent(induced_subgraph(hard, nodes), unary.T[nodes], search)
    chains = np.flatnonzero(stuck.any(axis=0))
    initial = states[:, nodes[:, None], chains].argmax(axis=0)
    # Repair each distinct start once. If there are too many, repair only some of them, and let
    # several chains share each.
    different, of_chain = np.unique(initial, axis=1, return_inverse=True)
    known, found = None, []
    for z in different.T[:MAX_STARTS]:
        known = descent.make_feasible(z, known)
        found.append(known)
    repaired = np.stack(found, axis=1)[:, of_chain.ravel() % len(found)]
    one_hot = repaired == np.arange(len(states))[:, None, None]
    states[:, nodes[:, None], chains] = one_hot
