"""Gibbs sampling: draw assignments with their posterior probability, and average.

Users select it with ``inference="gibbs"`` for networks that are too dense for exact inference.
Chapter 10 explains it. A sweep draws a new state for every node, given its neighbours
[lu2007, eq. 3.1]; see :mod:`~cgmm.inference.gibbs_sweeps`. The estimate is the average not of the
drawn states but of their probabilities, which has the same expectation and a smaller variance (Rao
and Blackwell).

Cannot-links can block such a sampler. With two states, two nodes that must differ can never change
one at a time, so a chain stays at its start. Strong preferences are nearly as bad. If there are
such edges, each sweep ends with a *cluster move*. To check whether this suffices, the chains start
at different assignments: while the variance between chains exceeds that within them, they have not
converged (:mod:`~cgmm.inference.convergence`).

======  ==============================================================================
S       one-hot states (K, n_nodes, n_chains), nodes sorted by colour, e.g. 0 or 1
p       probability of each state given the neighbours, of the same shape, e.g. 0.7
w       log-weight of an edge, e.g. -1.5
======  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, NamedTuple, cast

import numpy as np

from cgmm.inference.gibbs_sweeps import prepare, start, sweep
from cgmm.network import Graph, Inference, Marginals, check_unary
from cgmm.numerics import FloatArray, IntArray, Seed, check_integer, generator

__all__ = ["Chains", "gibbs", "gibbs_chains"]

Watch = Callable[[FloatArray, FloatArray], None]
"""Function that is called with the unaries and the states after each sweep."""
# If the |w| of a node's edges sum to more than this, moves of single nodes change it at most about
# once in e^5, or 150, sweeps.
STRONG = 5.0


class Chains(NamedTuple):
    """Summary of a sampler's chains after the burn-in."""

    nodes: FloatArray
    """(n_nodes, K) estimated marginals: the mean over all sweeps and chains."""
    log_weights: FloatArray
    """(n_chains, n_sweeps) Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b] after each sweep."""
    counts: FloatArray
    """(K, n_chains, n_sweeps) number of nodes in each state after each sweep."""
    best: IntArray
    """(n_nodes,) visited assignment of largest log-weight."""


def gibbs(
    graph: Graph,
    *,
    n_sweeps: int = 200,
    burn_in: int = 50,
    n_chains: int = 4,
    growth: float = 1.0,
    max_sweeps: int = 10_000,
    cluster_moves: bool | None = None,
    random_state: Seed = 0,
) -> Inference:
    """Return an engine that estimates marginals by chromatic Gibbs sampling.

    Parameters
    ----------
    graph : Graph
        Any graph, hard edges included.
    n_sweeps : int, default=200
        Number of averaged sweeps of each chain over all nodes.
    burn_in : int, default=50
        Number of earlier sweeps that are discarded, in every call.
    n_chains : int, default=4
        Number of independent chains.
    growth : float, default=1.0
        Factor by which the number of sweeps grows with each call, from ``n_sweeps`` to
        ``max_sweeps``: fewer sweeps early in EM and more near convergence [lu2007, sect. 6]. Unless
        it is 1, the result depends on the number of earlier calls; the t-th call of a new ``infer``
        always has the same result.
    max_sweeps : int, default=10000
        Maximum number of averaged sweeps.
    cluster_moves : bool, default=None
        End each sweep with an exchange of two states in whole clusters. None: only if the
        log-weights of some node's edges add up to more than 5 nats, as for a hard edge. Without
        cluster moves, nodes that satisfy their edges stay unchanged for about e^Σ|w| sweeps.
    random_state : int, RandomState, Generator or None, default=0
        Source of one seed, which every call uses. The same input then has the same result, and EM
        maximises a fixed, slightly biased objective instead of a noisy one.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to estimated marginals, in O((n_nodes + E) K n_chains)
        per sweep. They are never marked as exact, and ``log_z`` is NaN, because sampling does not
        provide it. Its ``chains`` returns the :class:`Chains` of its first call.

    Raises
    ------
    ValueError
        If a setting is out of range.
    NetworkError
        When called: if a node has no possible state, or if no feasible assignment exists.
    SearchBudgetError
        When called: if the search for a feasible start ends without a result and without a proof.

    Notes
    -----
    This is [lu2007, eq. 3.1], with w for its 2 W^p, and the estimate of its sect. 3.2 with
    probabilities in place of indicators. The cluster move is that of Swendsen and Wang (1987) for
    w > 0 and of Wang, Swendsen and Kotecký (1989) for w < 0, and each exchange is drawn according
    to the unaries. Both leave the posterior invariant.

    *Hard edges.* A chain can reach every feasible assignment from every other one if the unaries
    are finite and each component of the hard edges is bipartite (any tree), or can be dismantled by
    repeatedly removing a node with fewer than K neighbours (any K mutually cannot-linked nodes). In
    these cases all colourings are Kempe-equivalent (Las Vergnas and Meyniel, 1981). In other cases,
    and if masks make unaries -inf, chains may be confined to a part of the assignments. As they
    start at different ones, :func:`~cgmm.inference.r_hat` of their log-weights usually detects
    this. Prefer an exact engine if one is affordable.

    Examples
    --------
    Two nodes must differ, and there are two states, so neither node could change alone.

    >>> graph = Graph(2, np.array([[0, 1]]), np.array([-np.inf]))
    >>> unary = np.log([[0.75, 0.25], [0.5, 0.5]])
    >>> gibbs(graph, n_sweeps=1000, n_chains=20)(unary).nodes.round(2)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    check_integer("n_sweeps", n_sweeps, 1)
    check_integer("burn_in", burn_in, 0)
    check_integer("n_chains", n_chains, 1)
    check_integer("max_sweeps", max_sweeps, 1)
    if not growth >= 1:
        raise ValueError(f"growth is {growth}; it must be at least one (one: no growth).")
    sampler = _Sampler(graph, burn_in, n_chains, cluster_moves, random_state)
    kept, lock = _schedule(n_sweeps, growth, max_sweeps), Lock()

    def infer(unary: FloatArray) -> Marginals:
        with lock:  # Threads may share the sampler, but not its generator of sweep numbers.
            n_kept = next(kept)
        return Marginals(sampler.marginals(unary, n_kept), np.nan, exact=False, residual=np.nan)

    return Inference(
        infer,
        chains=lambda unary: sampler.chains(unary, n_sweeps),
        exact=False,
        is_stateful=growth > 1,
    )


def gibbs_chains(graph: Graph, unary: FloatArray, **settings: Any) -> Chains:
    """Return a summary of the chains sweep by sweep, for convergence diagnostics.

    Parameters
    ----------
    graph : Graph
        Any graph.
    unary : (n_nodes, K) array
        Unary log-potentials.
    **settings
        Settings of :func:`gibbs`, which visits the same states with the same settings.

    Returns
    -------
    Chains
        Marginals, and the course of the chains after the burn-in.

    Raises
    ------
    ValueError, SearchBudgetError
        See :func:`gibbs`.

    Examples
    --------
    >>> from cgmm.inference import effective_sample_size, r_hat
    >>> graph = Graph(3, np.array([[0, 1], [1, 2]]), np.array([1.0, -np.inf]))
    >>> chains = gibbs_chains(graph, np.zeros((3, 2)), n_sweeps=500)
    >>> bool(r_hat(chains.log_weights) < 1.05)
    True
    >>> bool(effective_sample_size(chains.log_weights) > 500)
    True
    """
    sampler = gibbs(graph, **settings)
    return cast("Chains", cast("Any", sampler.chains)(unary))


class _Sampler:
    """A prepared graph with the settings and the seed of its chains."""

    def __init__(
        self,
        graph: Graph,
        burn_in: int,
        n_chains: int,
        cluster_moves: bool | None,
        random_state: Seed,
    ):
        self.graph, self.network = graph, prepare(graph)
        self.burn_in, self.n_chains = burn_in, n_chains
        _, edges, weights, _ = self.network.graph
        strength = np.bincount(edges.T.ravel(), np.tile(np.abs(weights), 2), minlength=1)
        is_strong = bool(strength.max() > STRONG)
        self.clustered = is_strong if cluster_moves is None else cluster_moves
        self.seed = int(generator(random_state).integers(2**63))

    def marginals(self, unary: FloatArray, n_kept: int, watch: Watch | None = None) -> FloatArray:
        """Return (n_nodes, K) means over sweeps and chains; call ``watch`` after each sweep."""
        unary = np.ascontiguousarray(check_unary(self.graph, unary).T[:, self.network.order])
        rng, total = np.random.default_rng(self.seed), np.zeros((*unary.shape, self.n_chains))
        states = start(self.network, unary, self.n_chains, rng)
        for _ in range(self.burn_in):
            sweep(self.network, unary, states, self.clustered, rng)
        for _ in range(n_kept):
            sweep(self.network, unary, states, self.clustered, rng, total)
            if watch is not None:
                watch(unary, states)
        q = total.sum(axis=2)
        nodes = np.empty(q.shape).T
        nodes[self.network.order] = (q / q.sum(axis=0)).T
        return nodes

    def chains(self, unary: FloatArray, n_kept: int) -> Chains:
        """Return a summary of the chains of a call with these unaries."""
        log_weights, counts = list[FloatArray](), list[FloatArray]()
        best, largest = np.zeros(self.graph.n_nodes, dtype=np.intp), [-np.inf]

        def watch(unary: FloatArray, states: FloatArray) -> None:
            z = states.argmax(axis=0)
            log_weights.append(_log_weights(self.network.graph, unary, z))
            counts.append(states.sum(axis=1))
            if log_weights[-1].max() > largest[-1]:
                largest.append(log_weights[-1].max())
                best[self.network.order] = z[:, log_weights[-1].argmax()]

        nodes = self.marginals(unary, n_kept, watch)
        return Chains(nodes, np.stack(log_weights, axis=1), np.stack(counts, axis=2), best)


def _log_weights(graph: Graph, unary: FloatArray, z: IntArray) -> FloatArray:
    """Return (n_chains,) log-weights of the states z (n_nodes, n_chains)."""
    a, b = graph.edges.T
    together = np.where(z[a] == z[b], graph.weights[:, None], 0.0)
    own = unary[z, np.arange(len(z))[:, None]]
    return cast("FloatArray", own.sum(axis=0) + together.sum(axis=0))


def _schedule(n_sweeps: int, growth: float, max_sweeps: int) -> Iterator[int]:
    """Yield the number of averaged sweeps of call 0, 1, 2, ..."""
    limit, number = max(n_sweeps, max_sweeps), float(n_sweeps)
    while True:
        yield round(number)
        number = min(number * growth, limit)
