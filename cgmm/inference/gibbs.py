"""Gibbs sampling: draw assignments with their posterior probability, and average.

Users select it with ``inference="gibbs"`` for networks that are too dense for exact inference.
Chapter 10 explains it. A sweep draws a new state for every node, given its neighbours
[lu2007, eq. 3.1]. Nodes of one colour share no edge and are drawn together, for all chains at once,
so a sweep is one vectorised step per colour. The estimate is the average not of the drawn states
but of their probabilities, which has the same expectation and a smaller variance (Rao and
Blackwell).

Cannot-links can block such a sampler. With two states, two nodes that must differ can never change
one at a time, so a chain stays at its start. Strong preferences are nearly as bad. If there are
such edges, each sweep ends with a *cluster move*: pick two states k and l, connect nodes that
cannot easily change alone, and exchange k and l in a random selection of the clusters.

To check whether this suffices, the chains start at different assignments. If chains explore the
same distribution, the variance between them is no larger than the variance within each; *R-hat*
compares the two. Successive draws of a chain are correlated, so n draws contain less information
than n independent ones; the *effective sample size* is the number of independent draws with the
same information. Both use normal scores of *ranks*, which exist even if the variance does not, and
which limit the influence of outliers (Vehtari, Gelman, Simpson, Carpenter and Bürkner, 2021).

=======  =============================================================================
S        one-hot states (K, n_nodes, n_chains), nodes sorted by colour, e.g. 0 or 1
p        probability of each state given the neighbours, of the same shape, e.g. 0.7
w        log-weight of an edge, e.g. -1.5
m, n     number of half-chains and of draws in each, e.g. 8 and 100
z        normal quantiles of the ranks of all m n draws, e.g. -0.7
W, B/n   variance within chains; variance of the chains' means, e.g. 1.0 and 0.01
ρ_t      autocorrelation of draws that are t steps apart, e.g. ρ_1 = 0.6
=======  =============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from cgmm.inference.best_assignment import Descent
from cgmm.inference.feasible import colour_nodes
from cgmm.network import (
    Graph,
    Inference,
    Marginals,
    adjacency,
    check_unary,
    connected_components,
    induced_subgraph,
)
from cgmm.network.graph import keep_cannot_links
from cgmm.numerics import BoolArray, FloatArray, IntArray, Seed, check_integer, generator

__all__ = ["Chains", "gibbs", "gibbs_chains"]


# ------------------------------------------------------------ the engine


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


# ------------------------------------------------------------ sweeps


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


# ------------------------------------------------------------ sweeps


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


# ------------------------------------------------------------ cluster moves


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


# ------------------------------------------------------------ starts


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
        _repair_starts(network, unary, states, stuck)
    return states


def _repair_starts(
    network: SamplerNetwork, unary: FloatArray, states: FloatArray, stuck: BoolArray
) -> None:
    """Replace, in place, infeasible assignments of components of hard edges by feasible ones."""
    hard = keep_cannot_links(network.graph)
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


# ------------------------------------------------------------ convergence


# Fewer draws per chain leave half-chains without a variance.
FEWEST_DRAWS = 4


def r_hat(draws: ArrayLike) -> float:
    """Return the rank-normalised split R-hat: one if chains agree, larger if they have not mixed.

    Parameters
    ----------
    draws : (n_chains, n_draws) array
        A number computed after each step of each chain, such as the log-weight of its assignment.

    Returns
    -------
    float
        One if chains agree or all draws are equal; above 1.1 if chains have not mixed; infinite if
        every half-chain is constant but not all have the same value.

    Raises
    ------
    ValueError
        If there are fewer than four draws per chain, or if a draw is not finite.

    Notes
    -----
    This is the statistic of Gelman and Rubin (1992) for ranks, with each chain split in two halves,
    which also detects a trend within a chain. It is computed once for the ranks of the draws, and
    once for the ranks of distances to the median, which detects chains with equal medians and
    different spreads. The larger value is returned (Vehtari et al., 2021, sect. 4).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(4, 1000))
    >>> round(r_hat(draws), 2)
    1.0
    >>> round(r_hat(draws + np.arange(4)[:, None]), 1)
    1.6
    """
    halves = _halves(draws)
    folded = np.abs(halves - np.median(halves))
    return max(_split_r_hat(_normal_ranks(halves)), _split_r_hat(_normal_ranks(folded)))


def _split_r_hat(halves: FloatArray) -> float:
    """Return the ratio of the standard deviation of all draws to that within chains."""
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean()
    between = halves.mean(axis=1).var(ddof=1)
    if within <= 0:
        return 1.0 if between <= 0 else np.inf
    # R-hat squared is the total variance (n - 1)/n W + B/n, divided by W.
    return float(np.sqrt((n - 1) / n + between / within))


def effective_sample_size(draws: ArrayLike) -> float:
    """Return the number of independent draws that would estimate the centre equally well.

    Parameters
    ----------
    draws : (n_chains, n_draws) array
        See :func:`r_hat`.

    Returns
    -------
    float
        The effective sample size, at most m n log10(m n) as Vehtari et al. recommend. It may exceed
        m n if draws alternate about the mean. NaN if all draws are equal.

    Raises
    ------
    ValueError
        See :func:`r_hat`.

    Notes
    -----
    The value is m n / (1 + 2 Σ_t ρ_t). The sum ends at the first pair of successive ρ whose sum is
    not positive, and sums of pairs are forced to decrease (the initial monotone sequence of Geyer,
    1992). ρ_t is the mean over half-chains, computed by fast Fourier transform, with the variance
    between chains counted as correlation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bool(3600 < effective_sample_size(rng.normal(size=(4, 1000))) < 4400)
    True
    """
    halves = _normal_ranks(_halves(draws))
    m, n = halves.shape
    covariances = _autocovariances(halves).mean(axis=0)
    within = covariances[0] * n / (n - 1)
    spread = within * (n - 1) / n + halves.mean(axis=1).var(ddof=1)
    if spread <= 0:
        return np.nan
    rho = 1 - (within - covariances * n / (n - 1)) / spread
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    stop = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: stop[0] if len(stop) else None])
    time = max(2 * float(pairs.sum()) - 1, 1 / np.log10(m * n))
    return m * n / time


def _halves(draws: ArrayLike) -> FloatArray:
    """Return (2 n_chains, n_draws // 2) halves of the chains; a middle draw is left out."""
    array = np.asarray(draws, dtype=float)
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"draws have shape {array.shape}; they must be (n_chains, n_draws), with at least "
            f"{FEWEST_DRAWS} draws a chain."
        )
    if not np.isfinite(array).all():
        chain, t = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"draw {t} of chain {chain} is {array[chain, t]}; draws must be finite.")
    half = array.shape[1] // 2
    return np.concatenate([array[:, :half], array[:, -half:]])


def _normal_ranks(halves: FloatArray) -> FloatArray:
    """Return (m, n) normal scores (Blom's) of the ranks; equal draws get their mean rank."""
    ranks = rankdata(halves).reshape(halves.shape)
    return np.asarray(ndtri((ranks - 3 / 8) / (ranks.size + 1 / 4)))


def _autocovariances(chains: FloatArray) -> FloatArray:
    """Return (m, n) biased autocovariances of each chain at lags 0 .. n - 1."""
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    # Padding with zeros is needed because the transform treats a chain as periodic.
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    covariances: FloatArray = np.fft.irfft(spectrum, 2 * n, axis=1)[:, :n] / n
    return covariances
