"""Gibbs sampling: visit assignments as often as they are probable, and average. Chapter 10.

A sweep draws the state of every node anew, given its neighbours [lu2007, eq. 3.1]; how, is in
:mod:`~cgmm.inference.gibbs_sweeps`. What is averaged is not the states that were drawn but the
probabilities from which they were drawn: the same expectation, and a smaller variance (Rao and
Blackwell).

Forbidden pairs are a trap for such a sampler. Two nodes that must differ, and two states: neither
node can ever move alone, and a chain reports whatever it started from. Strong preferences are
nearly as bad. Where there are such edges each sweep therefore ends with a *cluster move*. Whether
that was enough the chains tell themselves: they start at different assignments, and as long as they
disagree more among each other than each does with itself, they have not forgotten where
(:mod:`~cgmm.inference.convergence`).

======  ==========================================================================
S       one-hot states (K, n_nodes, n_chains), nodes in the order of colours
p       probability of each state given the neighbours, of the same shape
w       log-weight of an edge
======  ==========================================================================
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
# Sum of the |w| of a node above which it is not left to move alone: e^5 is about 150 sweeps.
STRONG = 5.0


class Chains(NamedTuple):
    """The states of a sampler's chains after their burn-in, summarised."""

    nodes: FloatArray
    """(n_nodes, K) estimated marginals: the mean over all sweeps and chains."""
    log_weights: FloatArray
    """(n_chains, n_sweeps) Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b] after each sweep."""
    counts: FloatArray
    """(K, n_chains, n_sweeps) how many nodes are in each state after each sweep."""
    best: IntArray
    """(n_nodes,) of all assignments that were visited the one of largest log-weight."""


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
    """Return an engine for networks too dense for exact inference: chromatic Gibbs sampling.

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
        Whether each sweep ends with an exchange of two states in whole clusters. None: if the
        edges of some node together weigh more than 5 nats, as a hard one does. Without it nodes
        that agree stay as they are for e^Σ|w| sweeps.
    random_state : int, RandomState, Generator or None, default=0
        Source of one seed, with which every call begins: the same input has the same answer, and
        EM climbs a fixed, if slightly wrong, surface instead of a trembling one.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to estimated marginals, in O((n_nodes + E) K n_chains) a sweep.
        ``log_z`` is NaN: sampling does not give it. Never marked exact. Its ``chains``
        are the :class:`Chains` of its first call.

    Raises
    ------
    ValueError
        If a setting is out of range.
    NetworkError
        When called: if a node has no possible state, or no assignment exists from which to start.
    SearchBudgetError
        When called: if the search for an assignment from which to start gave up; whether there is
        one is then not known.

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
    assignments. They start at different ones, so that :func:`~cgmm.inference.r_hat` of their
    log-weights tells as a rule. Prefer an exact engine where one fits.

    Examples
    --------
    Two nodes that must differ, two states: alone, neither could move.

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
    kept, one_by_one = _schedule(n_sweeps, growth, max_sweeps), Lock()

    def infer(unary: FloatArray) -> Marginals:
        with one_by_one:  # threads may share the sampler, but not a generator at work
            n_kept = next(kept)
        return Marginals(sampler.marginals(unary, n_kept), np.nan, exact=False, residual=np.nan)

    return Inference(
        infer,
        chains=lambda unary: sampler.chains(unary, n_sweeps),
        exact=False,
        is_stateful=growth > 1,
    )


def gibbs_chains(graph: Graph, unary: FloatArray, **settings: Any) -> Chains:
    """Return the chains themselves, sweep by sweep, to see whether they mix.

    Parameters
    ----------
    graph : Graph
        Any graph.
    unary : (n_nodes, K) array
        Unary log-potentials.
    **settings
        As in :func:`gibbs`, which with the same settings goes through the same states.

    Returns
    -------
    Chains
        Marginals, and what the chains went through after the burn-in.

    Raises
    ------
    ValueError, SearchBudgetError
        As :func:`gibbs`.

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
    """A graph, prepared; how its chains begin; and the seed with which every call does."""

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
        held = np.bincount(edges.T.ravel(), np.tile(np.abs(weights), 2), minlength=1)
        is_strong = bool(held.max() > STRONG)
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
        """Return the chains of such a call."""
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
    """Sweeps to keep in call 0, 1, 2, ..."""
    limit, wanted = max(n_sweeps, max_sweeps), float(n_sweeps)
    while True:
        yield round(wanted)
        wanted = min(wanted * growth, limit)
