"""Gibbs sampling: visit assignments as often as they are probable, and average. Chapter 10.

A sweep draws the state of every node anew, given its neighbours [lu2007, eq. 3.1]. Nodes of one
colour share no edge and are drawn together, and so are several chains: a sweep is one vectorised
step a colour. What is averaged is not the states that were drawn but the probabilities from which
they were drawn: the same expectation, and a smaller variance (Rao and Blackwell).

Forbidden pairs are a trap for such a sampler. Two nodes that must differ, and two states: neither
node can ever move alone, and a chain reports whatever it started from. Strong preferences are
nearly as bad. Where there are such edges each sweep therefore ends with a *cluster move*: pick two
states k and l, tie the nodes whose states hold one another in place, and exchange k and l in each
cluster of tied nodes as a whole.

======  ==========================================================================
S       one-hot states (K, n_nodes, n_chains), nodes in the order of colours
p       probability of each state given the neighbours, of the same shape
w       log-weight of an edge
======  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from cgmm.inference.colour_search import list_colouring
from cgmm.inference.colouring import by_colour
from cgmm.network import Graph, Infer, Marginals, NetworkError, TooCostlyError, check_unary
from cgmm.numerics import BoolArray, FloatArray, IntArray, check_integer

__all__ = ["gibbs"]

# Stands for -inf in matrix products, where -inf times zero would be NaN. Far below any log-weight.
FORBIDDEN = -1e30
# |w| above which nodes are not left to move alone: e^5 is about 150 sweeps.
STRONG = 5.0


def gibbs(
    graph: Graph,
    *,
    n_sweeps: int = 200,
    burn_in: int = 50,
    n_chains: int = 4,
    growth: float = 1.0,
    max_sweeps: int = 10_000,
    cluster_moves: bool | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Infer:
    """Engine for networks that are too dense for exact inference: chromatic Gibbs sampling.

    Parameters
    ----------
    graph : Graph
        Any graph, hard edges included.
    n_sweeps : int, default=200
        Sweeps of each chain over all nodes that are averaged.
    burn_in : int, default=50
        Sweeps before those, in every call, that are thrown away.
    n_chains : int, default=4
        Independent chains, sampled side by side.
    growth : float, default=1.0
        Each call makes that many times the sweeps of the call before, from ``n_sweeps`` up to
        ``max_sweeps``: few sweeps early in EM and more near convergence [lu2007, sect. 6]. Unless
        it is 1 the answer depends on the number of calls; the t-th call of a new ``infer`` is
        still the same every time.
    max_sweeps : int, default=10000
        Where the growth ends.
    cluster_moves : bool, default=None
        Whether each sweep ends with an exchange of two states in whole clusters. None: if an edge
        is hard, or stronger than 5 nats. Without it such a pair stays as it is for e^|w| sweeps.
    random_state : int, Generator or None, default=0
        Source of one seed, with which every call begins: the same input has the same answer, and
        EM climbs a fixed, if slightly wrong, surface instead of a trembling one.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to estimated marginals, in O((n_nodes + E) K n_chains) a sweep.
        ``log_z`` is NaN: sampling does not give it. Never marked exact.

    Raises
    ------
    ValueError
        If a setting is out of range.
    NetworkError
        When called: if a node has no possible state, or no assignment exists from which to start.
    TooCostlyError
        When called: if the search for an assignment from which to start gave up.

    Notes
    -----
    [lu2007, eq. 3.1], with w for its 2 W^p, and the estimate of its sect. 3.2 with probabilities
    for indicators. The cluster move is that of Swendsen and Wang (1987) for w > 0 and of Wang,
    Swendsen and Kotecký (1989) for w < 0, with the unaries deciding each exchange. Both leave the
    posterior invariant.

    *Which hard edges a chain can get around.* From every feasible assignment to every other one, if
    the unaries are finite and each component of the hard edges is bipartite (any tree), or can be
    taken apart by removing, again and again, a node with fewer than K neighbours (any K mutually
    cannot-linked nodes): then all colourings are Kempe-equivalent (Las Vergnas and Meyniel, 1981).
    Beyond that, and where masks make unaries -inf, chains may be confined to a part of the
    assignments, unnoticed. Prefer an exact engine where one fits.

    Examples
    --------
    Two nodes that must differ, two states: alone, neither could move.

    >>> graph = Graph(2, np.array([[0, 1]]), np.array([-np.inf]))
    >>> unary = np.log([[0.75, 0.25], [0.5, 0.5]])
    >>> gibbs(graph, n_sweeps=1000, n_chains=20)(unary).nodes.round(2)
    array([[0.75, 0.25],
           [0.25, 0.75]])

    Other settings make another engine:

    >>> from functools import partial
    >>> engine = partial(gibbs, n_sweeps=500, n_chains=1, random_state=1)
    >>> engine(graph)(unary).exact
    False
    """
    _check_settings(n_sweeps, burn_in, n_chains, growth, max_sweeps)
    network = _prepare(graph)
    is_strong = bool((np.abs(network.weights) > STRONG).any())
    clustered = is_strong if cluster_moves is None else cluster_moves
    seed = int(np.random.default_rng(random_state).integers(2**63))
    kept, one_by_one = _schedule(n_sweeps, growth, max_sweeps), Lock()

    def infer(unary: FloatArray) -> Marginals:
        rng = np.random.default_rng(seed)
        unary = np.ascontiguousarray(check_unary(graph, unary).T[:, network.order])
        states = _start(network, unary, n_chains, rng)
        for _ in range(burn_in):
            _sweep(network, unary, states, clustered, rng)
        with one_by_one:  # threads may share the sampler, but not a generator at work
            total, n_kept = np.zeros(states.shape), next(kept)
        for _ in range(n_kept):
            _sweep(network, unary, states, clustered, rng, total)
        return _marginals(network, total)

    return infer


def _schedule(n_sweeps: int, growth: float, max_sweeps: int) -> Iterator[int]:
    """Sweeps to keep in call 0, 1, 2, ..."""
    limit, wanted = max(n_sweeps, max_sweeps), float(n_sweeps)
    while True:
        yield round(wanted)
        wanted = min(wanted * growth, limit)


class _SamplerNetwork(NamedTuple):
    """A graph sorted by colour, as the sampler visits it; nodes are named by their places."""

    order: IntArray
    """(n_nodes,) the node that stands at each place."""
    blocks: tuple[tuple[slice, sparse.csr_array], ...]
    """Of each colour its places, and their rows of log-weights."""
    edges: IntArray
    """(2, E) both ends of each edge."""
    weights: FloatArray
    """(E,) log-weights."""
    hard: sparse.csr_array
    """(n_nodes, n_nodes) the forbidden pairs."""


def _prepare(graph: Graph) -> _SamplerNetwork:
    """The work on the structure."""
    order, slices, matrix = by_colour(graph)
    upper = sparse.triu(matrix).tocoo()
    hard = matrix.copy()
    hard.data = np.isneginf(hard.data).astype(float)
    hard.eliminate_zeros()
    matrix.data[np.isneginf(matrix.data)] = FORBIDDEN
    blocks = tuple((block, matrix[block]) for block in slices)
    return _SamplerNetwork(order, blocks, np.stack(upper.coords), upper.data, hard)


# ---------------------------------------------------------------------------- sweeps


def _sweep(
    network: _SamplerNetwork,
    unary: FloatArray,
    states: FloatArray,
    clustered: bool,
    rng: np.random.Generator,
    total: FloatArray | None = None,
) -> None:
    """Draw every node once, in place; add the probabilities from which it was drawn to total."""
    for block, rows in network.blocks:
        logs = _log_conditionals(rows, unary[:, block], states)
        p, states[:, block] = _draw(logs, rng)
        if total is not None:
            total[:, block] += p
    if clustered:
        _exchange(network, unary, states, rng)


def _log_conditionals(rows: sparse.csr_array, unary: FloatArray, states: FloatArray) -> FloatArray:
    """(K, nodes of a colour, n_chains): log p(z_j = k | neighbours), up to a constant."""
    # [lu2007, eq. 3.1], with w = 2 W^p
    logs = np.stack([rows @ is_k for is_k in states])
    logs += unary[:, :, None]
    return logs


def _draw(logs: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
    """Probabilities along the first axis, in place of the logs, and a one-hot draw from them."""
    logs -= logs.max(axis=0)
    p = np.exp(logs, out=logs)
    cumulative = p.copy()
    for k in range(1, len(p)):
        cumulative[k] += cumulative[k - 1]
    p /= cumulative[-1]
    reached = rng.random(p.shape[1:]) * cumulative[-1] < cumulative
    reached[1:] ^= reached[:-1].copy()
    return p, reached


def _marginals(network: _SamplerNetwork, total: FloatArray) -> Marginals:
    """Mean over sweeps and chains, back in the order of the nodes."""
    q = total.sum(axis=2)
    nodes = np.empty(q.shape).T
    nodes[network.order] = (q / q.sum(axis=0)).T
    return Marginals(nodes, np.nan, exact=False, residual=np.nan)


# ---------------------------------------------------------------------------- cluster moves


def _exchange(
    network: _SamplerNetwork, unary: FloatArray, states: FloatArray, rng: np.random.Generator
) -> None:
    """Exchange two states, drawn for each chain, in clusters of nodes that are tied by them."""
    n_states, _, n_chains = states.shape
    if n_states == 1:
        return
    chains = np.arange(n_chains)
    k = rng.integers(n_states, size=n_chains)
    other = (k + rng.integers(1, n_states, size=n_chains)) % n_states
    in_k, in_l = states[k, :, chains] > 0, states[other, :, chains] > 0
    cluster = _clusters(network, in_k, in_l, rng)
    with np.errstate(invalid="ignore"):  # -inf minus -inf, of nodes in neither state
        gain = np.where(in_k, unary[other] - unary[k], np.where(in_l, unary[k] - unary[other], 0.0))
    gains = np.bincount(cluster, weights=gain.ravel())
    flips = (rng.random(len(gains)) < expit(gains))[cluster].reshape(in_k.shape)
    states[k, :, chains] = np.where(flips, in_l, in_k)
    states[other, :, chains] = np.where(flips, in_k, in_l)


def _clusters(
    network: _SamplerNetwork, in_k: BoolArray, in_l: BoolArray, rng: np.random.Generator
) -> IntArray:
    """(n_chains * n_nodes,) the cluster of each node in each chain.

    Given the states, an edge ties its nodes with probability 1 - exp(-|w|) if it is content, that
    is equal for w > 0 and unequal for w < 0; then whole clusters can be exchanged independently.
    """
    a, b = network.edges
    n_chains, n_nodes = in_k.shape
    inside = in_k | in_l
    content = (in_k[:, a] == in_k[:, b]) == (network.weights > 0)
    content &= inside[:, a] & inside[:, b]
    chain, edge = np.nonzero(content)
    tied = rng.random(len(edge)) >= np.exp(-np.abs(network.weights[edge]))
    chain, edge = chain[tied], edge[tied]
    ends = chain * n_nodes + a[edge], chain * n_nodes + b[edge]
    shape = 2 * (n_chains * n_nodes,)
    ties = sparse.coo_array((np.ones(len(edge), dtype=bool), ends), shape=shape)
    return connected_components(ties, directed=False)[1]


# ---------------------------------------------------------------------------- the start


def _start(
    network: _SamplerNetwork, unary: FloatArray, n_chains: int, rng: np.random.Generator
) -> FloatArray:
    """A possible assignment for each chain: a sweep in which only earlier colours are neighbours.

    A node may find all its states taken by then. The component of hard edges in which that happens
    is searched for an assignment.
    """
    states = np.zeros((len(unary), unary.shape[1], n_chains))
    stuck = np.zeros(states.shape[1:], dtype=bool)
    for block, rows in network.blocks:
        logs = _log_conditionals(rows, unary[:, block], states)
        stuck[block] = logs.max(axis=0) < FORBIDDEN / 2
        _, states[:, block] = _draw(logs, rng)
    if stuck.any():
        _repair(network, np.isfinite(unary.T), states, stuck)
    return states


def _repair(
    network: _SamplerNetwork, allowed: BoolArray, states: FloatArray, stuck: BoolArray
) -> None:
    """Replace, in place, the assignment of each hard component in which a chain is stuck."""
    _, component = connected_components(network.hard, directed=False)
    for c in np.unique(component[stuck.any(axis=1)]):
        nodes = np.flatnonzero(component == c)
        found = list_colouring(network.hard[nodes][:, nodes], allowed[nodes])
        if found.colours is None:
            kind = NetworkError if found.complete else TooCostlyError
            raise kind(_no_start(found.complete), np.sort(network.order[nodes]))
        one_hot = (found.colours == np.arange(len(states))[:, None]).astype(float)
        chains = np.flatnonzero(stuck[nodes].any(axis=0))
        states[:, nodes[:, None], chains] = one_hot[:, :, None]


def _no_start(certain: bool) -> str:
    """The complaint about a component for which no assignment is known."""
    if certain:
        return (
            "no joint assignment is possible: {nodes} are tied by forbidden pairs that cannot all "
            "be honoured; revise the relations or the evidence, or allow more components."
        )
    return (
        "found no assignment of {nodes}, tied by forbidden pairs, from which to start a chain; "
        "there may be one, but the search gave up. Use an exact engine ('auto', 'junction_tree'), "
        "fewer cannot-links or more components."
    )


# ---------------------------------------------------------------------------- checks


def _check_settings(
    n_sweeps: int, burn_in: int, n_chains: int, growth: float, max_sweeps: int
) -> None:
    check_integer("n_sweeps", n_sweeps, 1)
    check_integer("burn_in", burn_in, 0)
    check_integer("n_chains", n_chains, 1)
    check_integer("max_sweeps", max_sweeps, 1)
    if not growth >= 1:
        raise ValueError(f"growth is {growth}; it must be at least one (one: no growth).")
