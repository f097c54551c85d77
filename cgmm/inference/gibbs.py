"""Gibbs sampling: draw assignments from the posterior, and average over the draws.

Users select it with ``inference="gibbs"`` for networks that are too dense for exact inference.
Chapter 10 explains it. A sweep draws a new state for every node, given the states of its neighbours
[lu2007, eq. 3.1]. Nodes of one colour share no edge and are drawn together, for all chains at once,
so a sweep is one vectorised step per colour. Marginals are estimated by the average of the
probabilities from which states are drawn. It has the same expectation as the average of the drawn
states, and a smaller variance (Rao and Blackwell).

Cannot-links can block such a sampler. With two states, two nodes that must differ can never change
one at a time, so a chain remains at its start. Strong preferences are nearly as bad. If there are
such edges, each sweep ends with a *cluster move*: choose two states k and l, connect nodes that
cannot easily change alone, and exchange k and l in a random selection of the connected clusters.

Each chain starts at a different assignment, which makes it possible to detect chains that do not
mix. If chains explore the same distribution, the variance between them is no larger than the
variance within each; *R-hat* compares the two. Successive draws of a chain are correlated, so n
draws contain less information than n independent ones; the *effective sample size* is the number of
independent draws with the same information. Both use normal scores of *ranks*, which exist even if
the variance does not, and which limit the influence of outliers (Vehtari, Gelman, Simpson,
Carpenter and Bürkner, 2021).

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
"""Function that the sampler calls after each sweep, with the unaries and the states."""
# If the |w| of a node's edges add up to more than this, updates of single nodes change its state at
# most about once in e^5, or 150, sweeps.
STRONG = 5.0


class Chains(NamedTuple):
    """Summary of a sampler's chains after the burn-in."""

    nodes: FloatArray
    """(n_nodes, K) estimated marginals: the mean over all sweeps and chains."""
    log_weights: FloatArray
    """(n_chains, n_sweeps) Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b] after each sweep."""
    counts: FloatArray
    """(K, n_chains, n_sweeps) number of nodes that have each state after each sweep."""
    best: IntArray
    """(n_nodes,) assignment of largest log-weight among those that the chains visited."""


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
    """Prepare a graph for the estimation of marginals by chromatic Gibbs sampling.

    Parameters
    ----------
    graph : Graph
        Any graph, hard edges included.
    n_sweeps : int, default=200
        Number of sweeps of each chain over which marginals are averaged.
    burn_in : int, default=50
        Number of sweeps of each chain that are discarded at the start of every call.
    n_chains : int, default=4
        Number of independent chains.
    growth : float, default=1.0
        Factor by which the number of averaged sweeps grows with each call, from ``n_sweeps`` to
        ``max_sweeps``: fewer sweeps early in EM and more near convergence [lu2007, sect. 6]. If it
        is larger than 1, the result depends on the number of earlier calls. The t-th call after the
        graph is prepared always has the same result.
    max_sweeps : int, default=10000
        Maximum number of averaged sweeps.
    cluster_moves : bool, default=None
        If True, each sweep ends with an exchange of two states in whole clusters. None: only if the
        absolute log-weights of some node's edges add up to more than 5 nats, as for a hard edge.
        Without cluster moves, nodes that satisfy their edges remain unchanged for about e^Σ|w|
        sweeps.
    random_state : int, RandomState, Generator or None, default=0
        Source of a seed that is drawn once and used by every call. The same input therefore has the
        same result, and EM maximises a fixed, slightly biased objective instead of a noisy one.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to estimated marginals. A sweep takes O((n_nodes + E) K
        n_chains) time. Marginals are never marked as exact, and ``log_z`` is NaN, because sampling
        does not provide it. The method ``chains`` returns the :class:`Chains` of a first call.

    Raises
    ------
    ValueError
        If a setting is out of range.
    NetworkError
        When called: if a node has no possible state, or if no feasible assignment exists.
    SearchBudgetError
        When called: if the search for a feasible start finds none, and no proof that none exists.

    Notes
    -----
    This is [lu2007, eq. 3.1], with w for its 2 W^p, and the estimate of its sect. 3.2 with
    probabilities in place of indicators. The cluster move is that of Swendsen and Wang (1987) for
    w > 0 and of Wang, Swendsen and Kotecký (1989) for w < 0, with exchanges drawn according to the
    unaries. Updates of single nodes and cluster moves leave the posterior invariant.

    *Hard edges.* A chain can reach every feasible assignment from every other one if the unaries
    are finite and each component of the hard edges is bipartite (as any tree), or can be dismantled
    by repeatedly removing a node with fewer than K neighbours (as any K mutually cannot-linked
    nodes). In these cases all colourings are Kempe-equivalent (Las Vergnas and Meyniel, 1981). In
    other cases, and if masks make unaries -inf, chains may be confined to a part of the
    assignments. Chains start at different assignments, so :func:`~cgmm.inference.r_hat` of their
    log-weights usually detects this. Prefer an exact engine if one is affordable.

    Examples
    --------
    Two nodes must differ, and there are two states, so neither node can change alone:

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
    kept, lock = _schedule_sweeps(n_sweeps, growth, max_sweeps), Lock()

    def infer(unary: FloatArray) -> Marginals:
        # Threads may call `infer` at the same time, but must not advance `kept` at the same time.
        with lock:
            n_draws = next(kept)
        return Marginals(sampler.marginals(unary, n_draws), np.nan, exact=False, residual=np.nan)

    return Inference(
        infer,
        chains=lambda unary: sampler.chains(unary, n_sweeps),
        exact=False,
        is_stateful=growth > 1,
    )


def gibbs_chains(graph: Graph, unary: FloatArray, **settings: Any) -> Chains:
    """Run the sampler and return a summary of its chains after each sweep, for diagnostics.

    Parameters
    ----------
    graph : Graph
        Any graph.
    unary : (n_nodes, K) array
        Unary log-potentials.
    **settings
        Settings of :func:`gibbs`. With the same settings, it visits the same states.

    Returns
    -------
    Chains
        Marginals, and the log-weight and state counts after each sweep.

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
    """A graph prepared for sampling, with the settings and the seed of its chains."""

    def __init__(
        self,
        graph: Graph,
        burn_in: int,
        n_chains: int,
        cluster_moves: bool | None,
        random_state: Seed,
    ):
        self.graph, self.network = graph, prepare_network(graph)
        self.burn_in, self.n_chains = burn_in, n_chains
        _, edges, weights, _ = self.network.graph
        strength = np.bincount(edges.T.ravel(), np.tile(np.abs(weights), 2), minlength=1)
        is_strong = bool(strength.max() > STRONG)
        self.with_clusters = is_strong if cluster_moves is None else cluster_moves
        self.seed = int(generator(random_state).integers(2**63))

    def marginals(self, unary: FloatArray, n_draws: int, record: Watch | None = None) -> FloatArray:
        """Return (n_nodes, K) marginals, averaged over sweeps; call ``record`` after each sweep."""
        unary = np.ascontiguousarray(check_unary(self.graph, unary).T[:, self.network.order])
        rng, total = np.random.default_rng(self.seed), np.zeros((*unary.shape, self.n_chains))
        states = draw_starts(self.network, unary, self.n_chains, rng)
        for _ in range(self.burn_in):
            sweep_nodes(self.network, unary, states, self.with_clusters, rng)
        for _ in range(n_draws):
            sweep_nodes(self.network, unary, states, self.with_clusters, rng, total)
            if record is not None:
                record(unary, states)
        q = total.sum(axis=2)
        nodes = np.empty(q.shape).T
        nodes[self.network.order] = (q / q.sum(axis=0)).T
        return nodes

    def chains(self, unary: FloatArray, n_draws: int) -> Chains:
        """Run the chains for these unaries, and return a summary of them."""
        log_weights, counts = list[FloatArray](), list[FloatArray]()
        best, largest = np.zeros(self.graph.n_nodes, dtype=np.intp), [-np.inf]

        def record_sweep(unary: FloatArray, states: FloatArray) -> None:
            z = states.argmax(axis=0)
            log_weights.append(_compute_log_weights(self.network.graph, unary, z))
            counts.append(states.sum(axis=1))
            if log_weights[-1].max() > largest[-1]:
                largest.append(log_weights[-1].max())
                best[self.network.order] = z[:, log_weights[-1].argmax()]

        nodes = self.marginals(unary, n_draws, record_sweep)
        return Chains(nodes, np.stack(log_weights, axis=1), np.stack(counts, axis=2), best)


def _compute_log_weights(graph: Graph, unary: FloatArray, z: IntArray) -> FloatArray:
    """Return (n_chains,) log-weights of the assignments z (n_nodes, n_chains)."""
    a, b = graph.edges.T
    together = np.where(z[a] == z[b], graph.weights[:, None], 0.0)
    own = unary[z, np.arange(len(z))[:, None]]
    return cast("FloatArray", own.sum(axis=0) + together.sum(axis=0))


def _schedule_sweeps(n_sweeps: int, growth: float, max_sweeps: int) -> Iterator[int]:
    """Yield the numbers of averaged sweeps of the first call, the second, and so on."""
    limit, number = max(n_sweeps, max_sweeps), float(n_sweeps)
    while True:
        yield round(number)
        number = min(number * growth, limit)


# ------------------------------------------------------------ sweeps


# In matrix products, -inf times zero would be NaN, so this number replaces log-weights of -inf. It
# is far below any finite log-weight.
FORBIDDEN = -1e30
# Maximum number of different starts that are repaired, however many chains there are.
MAX_STARTS = 32
# Maximum number of steps of the search for feasible starts.
MAX_SEARCH = 200_000

NO_START = (
    "State the cannot-links as preferences, which may be broken: fit(X, preferences="
    "np.column_stack([cannot_link, np.full(len(cannot_link), -5.0)])); or use more states."
)


class ColourBlocks(NamedTuple):
    """A network whose nodes are sorted by colour, so the nodes of a colour are consecutive."""

    order: IntArray
    """(n_nodes,) node at each position; colours ascend."""
    slices: tuple[slice, ...]
    """Positions of the nodes of each colour."""
    matrix: sparse.csr_array
    """(n_nodes, n_nodes) sparse symmetric matrix of log-weights w between positions."""


def by_colour(graph: Graph) -> ColourBlocks:
    """Sort the nodes of a network by colour, so that each colour is one slice.

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
    """A graph prepared for the sampler, with its nodes sorted by colour."""

    order: IntArray
    """(n_nodes,) node at each position of the colour order."""
    slices: tuple[slice, ...]
    """Positions of the nodes of each colour."""
    rows: tuple[sparse.csr_array, ...]
    """Log-weights between the nodes of each colour and all nodes; ``FORBIDDEN`` replaces -inf."""
    graph: Graph
    """The same network with its nodes renumbered by position."""


def prepare_network(graph: Graph) -> SamplerNetwork:
    """Sort a graph by colour for sampling; this is done once for many unaries."""
    order, slices, matrix = by_colour(graph)
    upper = sparse.triu(matrix, format="csr").tocoo()
    matrix.data[np.isneginf(matrix.data)] = FORBIDDEN
    rows = tuple(matrix[block] for block in slices)
    edges = np.stack(upper.coords, axis=1)
    by_place = Graph(graph.n_nodes, edges, upper.data, graph.named(order))
    return SamplerNetwork(order, slices, rows, by_place)


# ------------------------------------------------------------ sweeps


def sweep_nodes(
    network: SamplerNetwork,
    unary: FloatArray,
    states: FloatArray,
    with_clusters: bool,
    rng: np.random.Generator,
    total: FloatArray | None = None,
) -> None:
    """Draw a new state for every node, in place, and add the probabilities to ``total``."""
    for block, rows in zip(network.slices, network.rows, strict=True):
        p, states[:, block] = draw_states(log_conditionals(rows, unary[:, block], states), rng)
        if total is not None:
            total[:, block] += p
    if with_clusters:
        exchange_clusters(network, unary, states, rng)


def log_conditionals(rows: sparse.csr_array, unary: FloatArray, states: FloatArray) -> FloatArray:
    """Return log p(z_j = k | neighbours) up to a constant, (K, nodes of a colour, n_chains)."""
    # [lu2007, eq. 3.1], with w = 2 W^p.
    logs = np.stack([rows @ is_k for is_k in states])
    logs += unary[:, :, None]
    return logs


def draw_states(logs: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
    """Normalise logs along the first axis, in place; return probabilities and a one-hot draw."""
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
    """In each chain, swap two random states within random clusters of nodes, in place."""
    n_states, _, n_chains = states.shape
    if n_states == 1:
        return
    chains = np.arange(n_chains)
    k = rng.integers(n_states, size=n_chains)
    other = (k + rng.integers(1, n_states, size=n_chains)) % n_states
    in_k, in_l = states[k, :, chains] > 0, states[other, :, chains] > 0
    cluster = draw_clusters(network, in_k, in_l, rng)
    # For nodes in neither of the two states, -inf minus -inf may occur; `np.where` discards it.
    with np.errstate(invalid="ignore"):
        gain = np.where(in_k, unary[other] - unary[k], np.where(in_l, unary[k] - unary[other], 0.0))
    gains = np.bincount(cluster, weights=gain.ravel())
    flips = (rng.random(len(gains)) < expit(gains))[cluster].reshape(in_k.shape)
    states[k, :, chains] = np.where(flips, in_l, in_k)
    states[other, :, chains] = np.where(flips, in_k, in_l)


def draw_clusters(
    network: SamplerNetwork, in_k: BoolArray, in_l: BoolArray, rng: np.random.Generator
) -> IntArray:
    """Draw the clusters of nodes in the two states; return (n_chains * n_nodes,) cluster indices.

    An edge is satisfied if its ends have equal states for w > 0, and unequal ones for w < 0. Each
    satisfied edge connects its ends with probability 1 - exp(-|w|). With these probabilities, each
    cluster can be exchanged independently of the others.
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


def draw_starts(
    network: SamplerNetwork, unary: FloatArray, n_chains: int, rng: np.random.Generator
) -> FloatArray:
    """Draw a feasible assignment for each chain; return one-hot states (K, n_nodes, n_chains).

    States are drawn in a sweep that ignores neighbours of later colours. If the earlier neighbours
    exclude all states of a node, a search finds an assignment of its component of hard edges.
    """
    states = np.zeros((len(unary), unary.shape[1], n_chains))
    is_blocked = np.zeros(states.shape[1:], dtype=bool)
    for block, rows in zip(network.slices, network.rows, strict=True):
        logs = log_conditionals(rows, unary[:, block], states)
        is_blocked[block] = logs.max(axis=0) < FORBIDDEN / 2
        _, states[:, block] = draw_states(logs, rng)
    if is_blocked.any():
        _repair_starts(network, unary, states, is_blocked)
    return states


def _repair_starts(
    network: SamplerNetwork, unary: FloatArray, states: FloatArray, is_blocked: BoolArray
) -> None:
    """Replace infeasible assignments of components of hard edges by feasible ones, in place."""
    hard = keep_cannot_links(network.graph)
    label = connected_components(hard)
    nodes = np.flatnonzero(np.isin(label, label[is_blocked.any(axis=1)]))
    search = {"rng": np.random.RandomState(0), "max_search": MAX_SEARCH, "remedy": NO_START}
    descent = Descent(induced_subgraph(hard, nodes), unary.T[nodes], search)
    chains = np.flatnonzero(is_blocked.any(axis=0))
    initial = states[:, nodes[:, None], chains].argmax(axis=0)
    # Repair each distinct start once. If there are too many, repair only the first ones, and let
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


# With fewer draws per chain, half a chain would have a single draw and no variance.
FEWEST_DRAWS = 4


def r_hat(draws: ArrayLike) -> float:
    """Compute the rank-normalised split R-hat: one if chains agree, larger if they have not mixed.

    Parameters
    ----------
    draws : (n_chains, n_draws) array
        A number for each step of each chain, such as the log-weight of its assignment.

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
    This is the statistic of Gelman and Rubin (1992) for ranks. Each chain is split in two halves,
    so that a trend within a chain is detected too. The statistic is computed for the ranks of the
    draws, and for the ranks of their distances from the median, which detects chains with equal
    medians and different spreads. The larger value is returned (Vehtari et al., 2021, sect. 4).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(4, 1000))
    >>> round(r_hat(draws), 2)
    1.0
    >>> round(r_hat(draws + np.arange(4)[:, None]), 1)
    1.6
    """
    halves = _split_in_halves(draws)
    folded = np.abs(halves - np.median(halves))
    return max(
        _compute_r_hat(_compute_normal_scores(halves)),
        _compute_r_hat(_compute_normal_scores(folded)),
    )


def _compute_r_hat(halves: FloatArray) -> float:
    """Return the ratio of the standard deviation of all draws to that within half-chains."""
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean()
    between = halves.mean(axis=1).var(ddof=1)
    if within <= 0:
        return 1.0 if between <= 0 else np.inf
    # R-hat squared is the total variance (n - 1)/n W + B/n, divided by W.
    return float(np.sqrt((n - 1) / n + between / within))


def effective_sample_size(draws: ArrayLike) -> float:
    """Compute the number of independent draws that would estimate the centre equally well.

    Parameters
    ----------
    draws : (n_chains, n_draws) array
        See :func:`r_hat`.

    Returns
    -------
    float
        The effective sample size, at most m n log10(m n) as Vehtari et al. recommend; NaN if all
        draws are equal. It may exceed m n if draws alternate about the mean.

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
    halves = _compute_normal_scores(_split_in_halves(draws))
    m, n = halves.shape
    covariances = _compute_autocovariances(halves).mean(axis=0)
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


def _split_in_halves(draws: ArrayLike) -> FloatArray:
    """Split chains into halves (2 n_chains, n_draws // 2), without the middle draw if n is odd."""
    array = np.asarray(draws, dtype=float)
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"draws have shape {array.shape}; they must be (n_chains, n_draws), with at least "
            f"{FEWEST_DRAWS} draws per chain."
        )
    if not np.isfinite(array).all():
        chain, t = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"draw {t} of chain {chain} is {array[chain, t]}; draws must be finite.")
    half = array.shape[1] // 2
    return np.concatenate([array[:, :half], array[:, -half:]])


def _compute_normal_scores(halves: FloatArray) -> FloatArray:
    """Return Blom's normal scores (m, n) of the ranks of all draws; equal draws share a rank."""
    ranks = rankdata(halves).reshape(halves.shape)
    return np.asarray(ndtri((ranks - 3 / 8) / (ranks.size + 1 / 4)))


def _compute_autocovariances(chains: FloatArray) -> FloatArray:
    """Return the (m, n) biased autocovariances of half-chains at lags 0 .. n - 1."""
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    # Pad with zeros, because the Fourier transform treats a chain as periodic.
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    covariances: FloatArray = np.fft.irfft(spectrum, 2 * n, axis=1)[:, :n] / n
    return covariances
