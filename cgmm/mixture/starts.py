"""Choose where EM starts, by short runs of EM from many different groupings.

:class:`~cgmm.mixture.ConstrainedGaussianMixture` calls ``portfolio`` if ``init_params="auto"``.
It fits mixtures with three types of covariances, from many starts each: equal balls, one shared
covariance, and the type of the fit. The best groupings of each type are also starts of the next
one. The Bayesian information criterion chooses one of the three types, and the fit begins at its
best grouping. Chapters 3 and 6 explain this rule.

All short runs are made at the same time, and cost little more than one: one matrix product computes
the log-densities of all components of all runs, and another one their moments
(:mod:`cgmm.mixture.products`). Must-links are treated exactly, because features are summed over the
points of a node. Edges are treated by a few rounds of belief propagation. The short runs only
choose the start; the fit itself uses the engine of the estimator.

=======  ==========================================================================
K, S     number of components, e.g. 3, and of runs in the batch, e.g. 12
J        number of nodes: chunklets, and points without must-links
P        number of features φ of a point, e.g. 6 for two columns
r        (K, S, J) responsibilities of all runs
e        directed edge of the network; each edge of the network has two directions
=======  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.cluster import AgglomerativeClustering
from sklearn.exceptions import ConvergenceWarning

from cgmm.kmeans.seeding import far_points, nearest, random_points
from cgmm.large.chunks import fetch
from cgmm.mixture import products
from cgmm.mixture.gaussian import Parameters, whiten
from cgmm.mixture.initialise import (
    adapt_to_evidence,
    from_chunklets,
    from_kmeans,
    from_labels,
    subsample_rows,
)  # fmt: skip
from cgmm.mixture.missing import PointsWithGaps, fill_by_regression
from cgmm.network import SideInformation
from cgmm.network.relations import first_of_nodes
from cgmm.numerics import BoolArray, FloatArray, IntArray, best_first, warn_caller
from cgmm.runs import Rng

# The stages of the portfolio, by the covariances of their short runs, from simple to general.
BALLS, SHARED, FREE = range(3)
COVARIANCES = ("equal balls", "one shared covariance", "covariances of the fit")
# Number of starts from distant points and from random points, for each of the `n_init` runs.
N_FAR, N_RANDOM = 20, 18
# Number of iterations from each start, and of additional iterations for the best runs.
FIRST_LOOK, SECOND_LOOK = 12, 40
# Number of runs that get the additional iterations, and of groupings that the portfolio returns.
KEPT = 6
# A move merges two components and splits a third one. These are the number of moves per round, of
# moves that get additional iterations, and of rounds without success after which moves end.
N_MOVES, KEPT_MOVES, MOST_FAILED_ROUNDS = 12, 2, 3
# Runs whose scores differ by less than this, in nats per point, count as the same maximum.
SAME_MAXIMUM = 1e-4
# A short run ends if it could not overtake the best run even if each remaining iteration gained
# this many times as much as the last one.
GAIN_FACTOR = 2.0
# If at least this many runs end at the best maximum, no moves are made.
ENOUGH_ALIKE = 3
# Maximum number of multiplications in an iteration of the batch; it limits the number of starts.
MOST_MULTIPLICATIONS = 1.5e7
# Penalty, in nats, for each component with too few points for a covariance. It is larger than all
# differences in log-evidence.
TOO_SMALL_PENALTY = 1e6
# The short runs use a subsample with this many points per free parameter of the means, but at least
# FEWEST_POINTS points.
POINTS_OF_A_MEAN, FEWEST_POINTS = 20, 1000
# Lead in log-evidence, in nats per point. If the last stage, with the covariances of the fit, leads
# by more than this over the continued runs of a simpler stage, its grouping is the second start.
CLEAR_LEAD = 0.1
# Number of rounds of belief propagation in an iteration.
SWEEPS = 2
# Log-message for an excluded component. Its exponential is small, but not a denormal number.
LOWEST_MESSAGE = -700.0
INTERRUPTED = (
    "the choice of a start was interrupted; EM continues from the best start so far, and another "
    "interrupt ends it."
)
# With missing values, short runs use exact conditional moments if the number of patterns times the
# squared number of columns is at most this. Otherwise missing values are filled in.
MOST_MATRIX_CELLS = 4000
# Number added to the diagonals of the covariances, in units of the variance of all the data.
VARIANCE_ADDED = 1e-6


class DirectedEdges(NamedTuple):
    """The directed edges of a network, two for each edge, sorted for belief propagation."""

    nodes: IntArray
    """(T,) the nodes that have edges."""
    receiver: IntArray
    """(2E,) target of each directed edge, as an index into ``nodes``; sorted."""
    reverse: IntArray
    """(2E,) index of the opposite directed edge."""
    first: IntArray
    """(T,) index of the first directed edge to each node."""
    log_weights: FloatArray
    """(2E,) log-weight w_e of each edge; minus infinity for a cannot-link."""


class Batch(NamedTuple):
    """Input of all short runs: features of the points, summed over nodes, and side information."""

    n_components: int
    covariance_type: str
    phi: FloatArray
    """(J, P) features of the points, summed over each node."""
    sums: FloatArray
    """(P,) features, summed over all points."""
    means: FloatArray
    """(J, D) mean of the points of each node."""
    ball: FloatArray
    """(D, D), or (D,) if diagonal: covariance of a ball in the standardised coordinates."""
    total: FloatArray
    """(D, D), or (D,) if diagonal: second moments of all points about their mean."""
    prior: FloatArray
    """(D, D), or (D,) if diagonal: covariance towards which all covariances are shrunk."""
    side: SideInformation
    log_mask: FloatArray | None
    """(K, 1, J) minus infinity for the components that a label excludes, otherwise zero."""
    directed_edges: DirectedEdges | None
    gaps: PointsWithGaps | None = None
    """Standardised points with missing values; ``phi`` is then computed from filled-in values."""

    @classmethod
    def build(
        cls, X: FloatArray | PointsWithGaps, side: SideInformation, n_components: int,
        covariance_type: str,
    ) -> Batch:  # fmt: skip
        """Standardise the points and build the batch."""
        complete, gaps = fill_by_regression(X), None
        if isinstance(X, PointsWithGaps) and X.n_patterns * X.shape[1] ** 2 <= MOST_MATRIX_CELLS:
            # Columns are only rescaled, because a rotation would mix them with missing values.
            Z, ball, gaps = scale_with_gaps(X, complete, covariance_type, side.sample_weight)
        else:
            Z, ball = standardise(complete, covariance_type, side.sample_weight)
        phi = np.ascontiguousarray(side.sum_over_nodes(products.features(Z.T, ball.ndim == 1).T))
        sums = phi.sum(axis=0) if side.copies is None else side.copies @ phi
        means = compute_node_means(Z, side)
        origin = np.zeros((1, Z.shape[1]))
        total = products.shifted_moments(sums[None], origin, ball.ndim == 1)[2][0]
        # Shrink covariances towards ellipsoids so small that K of them together have the volume of
        # the ellipsoid of all the data.
        prior = n_components ** (-2 / Z.shape[1]) * np.ones_like(ball)
        prior = prior if ball.ndim == 1 else np.diag(np.diag(prior))
        if gaps is not None and ball.ndim == 2:
            prior = prior[0, 0] * gaps.gaussian.covariances[0]
        mask = side.mask(n_components)
        return cls(
            n_components, covariance_type, phi, sums, means, ball, total, prior, side,
            None if mask is None else np.where(mask, 0.0, -np.inf).T[:, None],
            list_directed_edges(side) if len(side.graph.edges) else None, gaps,
        )  # fmt: skip

    def shares_covariance(self, stage: int) -> bool:
        """Return whether all components of a run share one covariance in this stage."""
        return stage != FREE or self.covariance_type == "tied"

    @property
    def share_present(self) -> float:
        """Share of values that are not missing."""
        return 1.0 if self.gaps is None else float(1 - np.isnan(self.gaps.values).mean())

    @property
    def is_diagonal(self) -> bool:
        """True if covariances are stored as variances."""
        return self.ball.ndim == 1

    @property
    def has_enough_points(self) -> bool:
        """True if the fit has one covariance per component, and enough points to estimate it."""
        per_component = self.side.n_points / self.n_components
        least = 2 if self.is_diagonal else self.means.shape[1] + 2
        return not self.shares_covariance(FREE) and per_component >= 2 * least

    def n_free(self, stage: int) -> int:
        """Return the number of free parameters of a mixture with the covariances of a stage."""
        K, D = self.n_components, self.means.shape[1]
        own = {"diag": D, "spherical": 1}.get(self.covariance_type, D * (D + 1) // 2)
        return K * (D + 1) - 1 + {BALLS: 1, SHARED: own, FREE: K * own}[stage]

    def count_too_small(self, r: FloatArray) -> FloatArray:
        """Count, for each run, the components with too few points for their own covariance."""
        sizes = self.phi[:, 0] if self.side.copies is None else self.phi[:, 0] * self.side.copies
        n_least = 2 if self.is_diagonal else self.means.shape[1] + 1
        return (r @ sizes < n_least).sum(axis=0)


def standardise(
    X: FloatArray, covariance_type: str, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return standardised points, and the covariance of a ball in their coordinates.

    The covariance type determines the transformation: a linear map, one factor per column, or a
    single factor. Transforming X in this way beforehand therefore does not change the result.
    """
    n_dims = X.shape[1]
    Z = X - np.average(X, axis=0, weights=weights)
    variances = np.average(np.square(Z), axis=0, weights=weights)
    least = variances.max() * n_dims * np.finfo(float).eps or 1.0
    if covariance_type in ("full", "tied"):
        counted = Z if weights is None else Z * weights[:, None]
        scatter = counted.T @ Z / (len(X) if weights is None else weights.sum())
        factor = np.linalg.cholesky(
            scatter + np.diag(np.maximum(VARIANCE_ADDED * variances, least))
        )
        inverse = solve_triangular(factor, np.eye(n_dims), lower=True)
        ball = inverse @ inverse.T
        return Z @ inverse.T, ball / np.exp(np.linalg.slogdet(ball)[1] / n_dims)
    if covariance_type == "spherical":
        variances = np.full(n_dims, variances.mean())
    variances = np.maximum(variances, least)
    ball = 1 / variances
    return Z / np.sqrt(variances), ball / np.exp(np.log(ball).mean())


def scale_with_gaps(
    X: PointsWithGaps, complete: FloatArray, covariance_type: str, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray, PointsWithGaps]:
    """Rescale the columns; return filled-in points, a ball, and points with missing values."""
    kind = "spherical" if covariance_type == "spherical" else "diag"
    Z, ball = standardise(complete, kind, weights)
    scaled = PointsWithGaps(np.where(np.isnan(X.values), np.nan, Z), X.pattern_of)
    return Z, np.diag(ball) if covariance_type in ("full", "tied") else ball, scaled


def compute_node_means(X: FloatArray, side: SideInformation) -> FloatArray:
    """Return the (J, D) means of the points of each node."""
    if side.nodes_are_points:
        return X
    sizes = np.bincount(side.node_of)
    return np.column_stack([np.bincount(side.node_of, column) for column in X.T]) / sizes[:, None]


def list_directed_edges(side: SideInformation) -> DirectedEdges:
    """List each edge in both directions, sorted by target node."""
    edges, weights = side.graph.edges, np.tile(side.graph.weights, 2)
    ends = np.concatenate([edges, edges[:, ::-1]])
    order = np.lexsort(ends.T[::-1])
    place = np.empty(len(ends), dtype=int)
    place[order] = np.arange(len(ends))
    reverse = np.roll(place, len(edges))[order]
    nodes, first, receiver = np.unique(ends[order, 0], return_index=True, return_inverse=True)
    return DirectedEdges(nodes, receiver, reverse, first, np.minimum(weights[order], 600))


# ---------------------------------------------------------------------------- short runs


class Runs(NamedTuple):
    """Results of S short runs of the same stage."""

    r: FloatArray
    """(K, S, J) final responsibilities."""
    evidence: FloatArray
    """(S,) log-evidence."""
    scores: FloatArray
    """(S,) log-evidence - ½ P log N (Schwarz, 1978), where P is the number of free parameters of
    the stage, minus the correction for small samples from ``compute_overfitting_correction``."""

    def best(self, n: int) -> FloatArray:
        """Return the responsibilities of the n runs with the highest scores, the best one first."""
        return self.r[:, best_first(self.scores.tolist())[:n]]

    def concatenate(self, others: Runs) -> Runs:
        """Concatenate these runs and other runs of the same stage."""
        return Runs(
            np.concatenate([self.r, others.r], axis=1),
            np.append(self.evidence, others.evidence),
            np.append(self.scores, others.scores),
        )


def short_runs(batch: Batch, r: FloatArray, stage: int, n_iter: int) -> Runs:
    """Run EM from S groupings at the same time, for a limited number of iterations.

    Parameters
    ----------
    batch : Batch
        The points and their side information.
    r : (K, S, J) array
        Initial responsibilities of the runs.
    stage : int
        BALLS, SHARED or FREE.
    n_iter : int
        Maximum number of iterations for a table without missing values. With missing values EM
        converges more slowly, so more iterations are allowed. A run ends earlier if an iteration
        gains less than ``SAME_MAXIMUM`` nats per point, or too little to overtake the best run.

    Returns
    -------
    Runs
        The final responsibilities and scores.
    """
    n_points, log_messages = batch.side.n_points, None
    r, evidence = r.copy(), np.full(r.shape[1], -np.inf)
    counts, moving = np.zeros(r.shape[:2]), np.arange(r.shape[1])
    components = None
    for n_left in range(round(n_iter / batch.share_present**2), 0, -1):
        components = perform_m_step(batch, r[:, moving], stage, components)
        found, r[:, moving], log_messages = perform_e_step(batch, components, log_messages)
        gains = found - evidence[moving]
        evidence[moving], counts[:, moving] = found, components.counts
        # A run ends when it has converged, or gains too little to overtake the best run.
        within_reach = found + GAIN_FACTOR * n_left * gains >= evidence.max()
        goes_on = (abs(gains) >= SAME_MAXIMUM * n_points) & within_reach
        moving = moving[goes_on]
        if not len(moving):
            break
        log_messages = None if log_messages is None else log_messages[:, goes_on]
        components = components.select_runs(goes_on)
    cost = 0.5 * batch.n_free(stage) * np.log(n_points) + compute_overfitting_correction(
        batch, counts, stage
    )
    return Runs(r, evidence, evidence - cost)


class Components(NamedTuple):
    """The parameters of all runs, as natural parameters by which features are multiplied."""

    natural: FloatArray
    """(K S, P) natural parameters; (K S, D + 1), without the quadratic part, if that is shared."""
    log_shared: FloatArray | float
    """(S,) contribution of the shared quadratic part to the log-evidence, or 0."""
    log_weights: FloatArray
    """(K, S) log π_k."""
    counts: FloatArray
    """(K, S) expected number of points of each component."""
    theta: Parameters | None = None
    """With missing values: the K S components as if they belonged to one mixture."""

    def select_runs(self, chosen: BoolArray) -> Components:
        """Select the parameters of some runs, as far as the next M-step needs them."""
        if self.theta is None:
            return self
        kept = np.tile(chosen, len(self.counts))
        return self._replace(theta=Parameters(*(of[kept] for of in self.theta)))


def perform_m_step(
    batch: Batch, r: FloatArray, stage: int, previous: Components | None = None
) -> Components:
    """Perform the M-step of all runs, given responsibilities (K, S, J).

    Moments of missing values are computed from the ``previous`` components.
    """
    if batch.gaps is not None:
        return perform_m_step_with_gaps(batch, batch.gaps, r, stage, previous)
    shape = r.shape[:2]
    r, copies = r.reshape(-1, r.shape[2]), batch.side.copies
    r = r if copies is None else r * copies
    find, write = (
        (shared_moments, shared_parameters)
        if batch.shares_covariance(stage)
        else (unshared_moments, unshared_parameters)
    )
    counts, means, scatter = find(batch, r, shape)
    covariances = restrict_covariances(batch, scatter, stage)
    whiteners, log_dets = whiten(covariances.reshape(-1, *covariances.shape[2:]))
    constants = -0.5 * (log_dets + means.shape[1] * np.log(2 * np.pi))
    natural, log_shared = write(batch, means, whiteners, constants)
    return Components(natural, log_shared, get_log_weights(batch, r, shape), counts.reshape(shape))


def get_log_weights(batch: Batch, r: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Return (K, S) log π_k from (K S, J) responsibilities, weighted by multiplicities."""
    expected = np.maximum(r @ batch.side.multiplicity, 1e-300).reshape(shape)
    return np.asarray(np.log(expected / expected.sum(axis=0)))


def perform_m_step_with_gaps(
    batch: Batch, gaps: PointsWithGaps, r: FloatArray, stage: int, previous: Components | None
) -> Components:
    """Perform the M-step of all runs with the expected moments of missing values."""
    (K, S), side = r.shape[:2], batch.side
    flat = r.reshape(K * S, -1)
    theta = None if previous is None else previous.theta
    theta = theta or gaps.repeat_gaussian(K * S, batch.is_diagonal)
    of_points = side.counted(side.spread(flat.T))
    counts, first, second = gaps.statistics(of_points, theta, batch.is_diagonal, shared=False)
    shifts = first / np.maximum(counts, 1e-9)[:, None]
    scatter = second - outer_products(shifts, batch.is_diagonal) * append_axes(counts, second)
    scatter, sizes = scatter.reshape(K, S, *second.shape[1:]), counts.reshape(K, S)
    if batch.shares_covariance(stage):
        scatter, sizes = scatter.sum(axis=0, keepdims=True), sizes.sum(axis=0, keepdims=True)
    scatter = (scatter + batch.prior) / (sizes + 1).reshape(*sizes.shape, *[1] * batch.ball.ndim)
    covariances = restrict_covariances(batch, scatter, stage)
    covariances = np.broadcast_to(covariances, (K, *covariances.shape[1:]))
    theta = Parameters(theta.weights, theta.means + shifts, covariances.reshape(second.shape))
    flat = flat if side.copies is None else flat * side.copies
    log_weights = get_log_weights(batch, flat, (K, S))
    return Components(np.empty(0), 0.0, log_weights, counts.reshape(K, S), theta)


def unshared_parameters(
    batch: Batch, means: FloatArray, whiteners: FloatArray, constants: FloatArray
) -> tuple[FloatArray, float]:
    """Return (K S, P) natural parameters of components that do not share a covariance."""
    return products.natural_parameters(means, whiteners, constants), 0.0


def shared_parameters(
    batch: Batch, means: FloatArray, whiteners: FloatArray, constants: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (K S, D + 1) natural parameters of components that share a covariance per run.

    The quadratic part of the log-density is the same for all components of a run. It affects only
    the log-evidence, so its sum over all points is returned separately, (S,).
    """
    n_runs, n_dims = len(whiteners), means.shape[1]
    nothing = np.zeros((n_runs, n_dims))
    quadratic = products.natural_parameters(nothing, whiteners, constants)[:, n_dims + 1 :]
    run_means = means.reshape(-1, n_runs, n_dims)
    if batch.is_diagonal:
        linear = run_means * np.square(whiteners)
    else:
        precisions = whiteners.transpose(0, 2, 1) @ whiteners
        linear = (run_means[:, :, None] @ precisions)[:, :, 0]
    first = constants - 0.5 * (linear * run_means).sum(axis=2)
    natural = np.concatenate([first[:, :, None], linear], axis=2).reshape(-1, n_dims + 1)
    return natural, quadratic @ batch.sums[n_dims + 1 :]


def unshared_moments(
    batch: Batch, r: FloatArray, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return counts (K S,), means (K S, D) and covariances (K, S, ...) of each component.

    Covariances are shrunk towards ``batch.prior`` with the weight of one point, so that components
    with few points do not collapse.
    """
    origin = np.zeros((len(r), batch.means.shape[1]))
    counts, sums, squares = products.shifted_moments(r @ batch.phi, origin, batch.is_diagonal)
    means = sums / np.maximum(counts, 1e-9)[:, None]
    scatter = squares - outer_products(means, batch.is_diagonal) * append_axes(counts, squares)
    scatter = (scatter + batch.prior) / append_axes(counts + 1, squares)
    return counts, means, scatter.reshape(*shape, *scatter.shape[1:])


def shared_moments(
    batch: Batch, r: FloatArray, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return counts (K S,), means (K S, D) and the shared covariance (1, S, ...) of each run.

    The scatter within components is the total scatter minus the scatter between the means.
    """
    n_dims = batch.means.shape[1]
    sums = r @ batch.phi[:, : n_dims + 1]
    counts = sums[:, 0]
    means = sums[:, 1:] / np.maximum(counts, 1e-9)[:, None]
    run_means = means.reshape(*shape, n_dims)
    weighted = run_means * counts.reshape(*shape, 1)
    if batch.is_diagonal:
        between = (weighted * run_means).sum(axis=0)
    else:
        between = weighted.transpose(1, 2, 0) @ run_means.transpose(1, 0, 2)
    within = batch.total - between
    n_points = counts.reshape(shape).sum(axis=0)
    return counts, means, ((within + batch.prior) / append_axes(n_points + 1, within))[None]


def outer_products(means: FloatArray, diagonal: bool) -> FloatArray:
    """Return the outer product of each mean with itself, (M, D, D), or its diagonal, (M, D)."""
    return np.square(means) if diagonal else means[:, :, None] * means[:, None]


def append_axes(values: FloatArray, like: FloatArray) -> FloatArray:
    """Append axes of length one to (M,) values, so that they broadcast with another array."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def restrict_covariances(batch: Batch, scatter: FloatArray, stage: int) -> FloatArray:
    """Project (K, S, ...) or (1, S, ...) covariances onto those of the stage and the type."""
    n_dims = batch.means.shape[1]
    if stage == BALLS and batch.is_diagonal:
        scatter = (scatter / batch.ball).mean(axis=2, keepdims=True) * batch.ball
    elif stage == BALLS:
        ratio = np.einsum("ksde,de->ks", scatter, np.linalg.inv(batch.ball)) / n_dims
        scatter = ratio[:, :, None, None] * batch.ball
    elif batch.covariance_type == "spherical":
        scatter = scatter.mean(axis=2, keepdims=True)
    scatter = scatter + VARIANCE_ADDED * (1 if batch.is_diagonal else np.eye(n_dims))
    return np.broadcast_to(scatter, (*scatter.shape[:2], *batch.total.shape))


def perform_e_step(
    batch: Batch, components: Components, log_messages: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Perform the E-step: return (S,) log-evidences, (K, S, J) responsibilities and messages."""
    natural, log_shared, log_weights = components[:3]
    if components.theta is not None and batch.gaps is not None:
        u = batch.side.sum_over_nodes(batch.gaps.log_density(components.theta)).T
    else:
        u = natural @ batch.phi[:, : natural.shape[1]].T
    u = u.reshape(*log_weights.shape, -1)
    u += log_weights[:, :, None] * batch.side.multiplicity
    if batch.log_mask is not None:
        u += batch.log_mask
    of_edges: FloatArray | float = 0.0
    if batch.directed_edges is not None:
        of_edges, log_messages = pass_messages(batch.directed_edges, u, log_messages)
    top = u.max(axis=0)
    r = np.exp(np.subtract(u, top, out=u), out=u)
    totals = r.sum(axis=0)
    r /= totals
    node_log_z = np.log(totals) + top
    copies = batch.side.copies
    node_log_z = node_log_z.sum(axis=1) if copies is None else node_log_z @ copies
    return node_log_z + of_edges + log_shared, r, log_messages


def pass_messages(
    edges: DirectedEdges, u: FloatArray, log_messages: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Add the messages of neighbours to u (K, S, J) in place; return (S,) log Z of edges, messages.

    This is belief propagation with messages damped by half, which is exact for forests of small
    depth. log Z is the Bethe approximation: the beliefs of both nodes of an edge contain its
    contribution, so this contribution is subtracted once.
    """
    own = u[:, :, edges.nodes]
    if log_messages is None:
        log_messages = np.zeros((*u.shape[:2], len(edges.log_weights)))
    for sweep in range(SWEEPS + 1):
        beliefs = own + np.add.reduceat(log_messages, edges.first, axis=2)
        # The cavity is the belief of a node without the message from the receiver.
        cavity = beliefs[:, :, edges.receiver] - log_messages
        cavity -= cavity.max(axis=0)
        if sweep < SWEEPS:
            new = compute_messages(np.exp(cavity), edges.log_weights)[:, :, edges.reverse]
            log_messages = new if sweep == 0 else (log_messages + new) / 2
    u[:, :, edges.nodes] = beliefs
    total = np.exp(cavity).sum(axis=0)
    of_edges = np.log(np.exp(cavity + log_messages).sum(axis=0) / total)
    return -0.5 * of_edges.sum(axis=1), log_messages


def compute_messages(p: FloatArray, log_weights: FloatArray) -> FloatArray:
    """Return the log-messages log Σ_l p_l exp(w_e [k = l]) of beliefs p (K, S, 2E).

    Messages are normalised by Σ_l p_l. If one component has nearly all of the probability, the
    others are summed directly, because subtracting it from the total would lose digits.
    """
    total = p.sum(axis=0)
    is_certain = p > 0.5 * total
    others = np.where(is_certain, np.where(is_certain, 0.0, p).sum(axis=0), total - p)
    others += np.exp(log_weights) * p
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(others / total), LOWEST_MESSAGE)


def compute_overfitting_correction(batch: Batch, counts: FloatArray, stage: int) -> FloatArray:
    """Return the small-sample correction of each run's score: its expected overfitting, in nats.

    If q regressors and a covariance in d dimensions, p parameters in total, are fitted to n points,
    the log-likelihood exceeds its value for new points by p n / (n - q - d - 1) (Bedrick and Tsai,
    1994). The information criterion already subtracts p of this. A mean counts as a regressor.
    """
    K, D = batch.n_components, batch.means.shape[1]
    is_ball = stage == BALLS or batch.covariance_type == "spherical"
    n, q, d, times = counts, 1, D, 1
    if batch.shares_covariance(stage):
        n, q = counts.sum(axis=0, keepdims=True), K
    if is_ball:
        n, q, d = n * D, q * D, 1
    elif batch.is_diagonal:
        d, times = 1, D
    n_parameters = times * (d * q + d * (d + 1) / 2)
    return (n_parameters * (q + d + 1) / np.maximum(n - q - d - 1, 0.5)).sum(axis=0)


# ---------------------------------------------------------------------------- the portfolio


def portfolio(
    X: Any, side: SideInformation, n_components: int, covariance_type: str, rng: Rng,
    n_init: int = 1, verbose: int = 0,
) -> list[FloatArray]:  # fmt: skip
    """Return the groupings from which EM should start, the most promising first.

    Parameters
    ----------
    X : (N, D) array
        The points.
    side : SideInformation
        Labels and relations.
    n_components : int
        K.
    covariance_type : {"full", "tied", "diag", "spherical"}
        The covariance type of the fit.
    rng : RandomState
        Source of randomness.
    n_init : int, default=1
        Factor by which the number of starts is multiplied; additional starts are first of new
        kinds.
    verbose : int, default=0
        If positive, print a line for each start.

    Returns
    -------
    list of (N, K) arrays
        Responsibilities of all distinct groupings. If a stage with simpler covariances than those
        of the fit is chosen, the second entry is the best grouping after further iterations with
        the covariances of the fit, or a grouping of the last stage whose evidence is far higher.

    Raises
    ------
    KeyboardInterrupt
        If interrupted before the first stage has ended.

    Warns
    -----
    ConvergenceWarning
        If interrupted later; the best groupings so far are returned.

    Notes
    -----
    The stages use equal balls, a shared covariance, and the covariances of the fit. Each stage
    starts from its own seeds and from the best two groupings of the previous stage. Its best runs
    get additional iterations, and :func:`split_and_merge` improves the best stage. The stage with
    the highest score is chosen (Schwarz, 1978). A shared covariance finds elongated classes that
    separate covariances miss, but its score is low if classes differ in shape. Groupings of a
    simpler stage are sorted by their score plus the log-evidence that they reach in further
    iterations with the covariances of the fit.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [1.2, 4.0], [0.9, 0.0], [9.2, 2.0], [8.9, 4.0], [8.9, 0.0]])
    >>> side = SideInformation.build(6)
    >>> r = portfolio(X, side, 2, "tied", np.random.RandomState(0))[0]
    >>> z = r.argmax(axis=1)
    >>> bool((z[:3] == z[0]).all() and (z[3:] != z[0]).all())
    True
    """
    if n_components == 1:
        return [np.ones((len(X), 1))]
    batch = Batch.build(X, side, n_components, covariance_type)
    stages = Stages(batch, fill_by_regression(X), rng, n_init, verbose)
    try:
        stages.run_all()
    except KeyboardInterrupt:
        if not stages.ends:
            raise
        warn_caller(INTERRUPTED, ConvergenceWarning)
    (stage, runs), margin = stages.best(), SAME_MAXIMUM * side.n_points
    order = select_distinct(runs.scores, margin)[: KEPT * n_init]
    r, scores = runs.r[:, order], runs.scores[order]
    found = [r[:, s] for s in range(len(order))]
    if stage != FREE and batch.has_enough_points:
        released = short_runs(batch, r, FREE, SECOND_LOOK)
        scores = scores + released.evidence - TOO_SMALL_PENALTY * batch.count_too_small(released.r)
        order = select_distinct(scores, margin)
        found = [r[:, s] for s in order]
        lead = stages.find_clearly_better(released)
        found.insert(1, released.r[:, order[0]] if lead is None else lead)
    return [side.spread(of.T) for of in found]


def sample_for_portfolio(
    X: Any, side: SideInformation, n_components: int, rng: Rng
) -> tuple[Any, SideInformation]:
    """Subsample the points, if there are many, for the short runs; return side information, too."""
    n_most = max(FEWEST_POINTS, POINTS_OF_A_MEAN * n_components * (X.shape[1] + 1))
    if X.shape[0] <= n_most:
        return X, side
    rows = subsample_rows(side, rng, n_most)
    return fetch(X, rows), side.restrict(rows)


class Stages:
    """The stages of a portfolio, and the results of those that have been run."""

    def __init__(self, batch: Batch, X: FloatArray, rng: Rng, n_init: int, verbose: int):
        self.batch, self.X, self.rng, self.n_init, self.verbose = batch, X, rng, n_init, verbose
        self.ends: list[tuple[int, Runs]] = []

    @cached_property
    def kmeans(self) -> FloatArray:
        """(N, K) responsibilities of K-means, a start of two stages."""
        return from_kmeans(self.X, self.batch.n_components, self.rng, self.batch.side)

    def best(self) -> tuple[int, Runs]:
        """Return the stage with the highest score, and its runs."""
        return self.ends[best_first([runs.scores.max() for _, runs in self.ends])[0]]

    def find_clearly_better(self, released: Runs) -> FloatArray | None:
        """Return the best grouping of the last stage if it leads by ``CLEAR_LEAD``, else None.

        A stage with simpler covariances has fewer parameters, so the information criterion may
        choose it although the fit then ends at a much lower maximum. With fewer points than
        parameters, a lead is mostly overfitting.
        """
        runs, n_points = dict(self.ends).get(FREE), self.batch.side.n_points
        if runs is None or n_points < self.batch.n_free(FREE):
            return None
        evidence = runs.evidence - TOO_SMALL_PENALTY * self.batch.count_too_small(runs.r)
        best = best_first(evidence.tolist())[0]
        lead = evidence[best] - released.evidence.max()
        return runs.r[:, best] if lead > CLEAR_LEAD * n_points else None

    def run_all(self) -> None:
        """Run all stages, then improve the best one by moves."""
        for stage in (BALLS, SHARED, FREE):
            if stage != FREE or self.batch.has_enough_points:
                self.ends.append((stage, self.run_stage(stage)))
        stage, runs = self.best()
        margin = SAME_MAXIMUM * self.batch.side.n_points
        n_alike = (runs.scores > runs.scores.max() - margin).sum()
        is_easy = n_alike >= min(ENOUGH_ALIKE, len(runs.scores)) or self.batch.n_components < 3
        n_failed = MOST_FAILED_ROUNDS if is_easy else 0
        while n_failed < MOST_FAILED_ROUNDS:
            n_moves = min(N_MOVES, max(2, self.n_affordable_runs(stage)))
            moves = split_and_merge(self.batch, runs.best(1)[:, 0], n_moves, self.rng)
            found = self.try_starts(moves, stage, KEPT_MOVES)
            n_failed = 0 if found.scores.max() > runs.scores.max() + margin else n_failed + 1
            runs = runs.concatenate(found)
            self.ends.append((stage, runs))

    def run_stage(self, stage: int) -> Runs:
        """Run EM with the covariances of a stage, from its starts and the previous stage's best."""
        names, starts = zip(*self.yield_starts(stage), strict=True)
        r = np.stack(starts, axis=1)
        if self.ends:
            r = np.concatenate([r, self.ends[-1][1].best(2)], axis=1)
            names += ("the previous stage",) * 2
        n_kept = min(KEPT, max(2, self.n_affordable_runs(stage))) * self.n_init
        return self.try_starts(r, stage, n_kept, names)

    def n_affordable_runs(self, stage: int) -> int:
        """Return the number of runs of a stage that ``MOST_MULTIPLICATIONS`` allows."""
        n_features = (
            self.X.shape[1] + 1 if self.batch.shares_covariance(stage) else len(self.batch.sums)
        )
        return int(
            MOST_MULTIPLICATIONS / (n_features * len(self.batch.phi) * self.batch.n_components)
        )

    def yield_starts(self, stage: int) -> Iterator[tuple[str, FloatArray]]:
        """Yield the name and the (K, J) responsibilities of each start of a stage."""
        batch, X, rng, K = self.batch, self.X, self.rng, self.batch.n_components
        side, heads = batch.side, first_of_nodes(batch.side.node_of)
        n_far, n_random = (max(1, min(n, self.n_affordable_runs(stage))) for n in (N_FAR, N_RANDOM))

        def make_start(name: str, r: FloatArray) -> tuple[str, FloatArray]:
            return name, adapt_to_evidence(r, side)[heads].T

        if stage != SHARED:
            yield make_start("K-means", self.kmeans)
            n_far //= 3
        for name, kind in starts_from_side_information(side, K).items():
            yield make_start(name, kind(X, K, rng, side))
        for number in range(self.n_init):
            if number == 1:
                yield make_start("Ward's tree", side.spread(from_hierarchy(batch.means, K)))
            for _ in range(n_random if stage == FREE else 0):
                yield make_start("random points", side.spread(random_points(batch.means, K, rng)))
            means = batch.means if stage == SHARED else compute_node_means(X, side)
            for _ in range(n_far):
                yield make_start("distant points", side.spread(far_points(means, K, rng)))

    def try_starts(self, r: FloatArray, stage: int, n_kept: int, names: Sequence[str] = ()) -> Runs:
        """Run EM briefly from all starts, then longer from the best ones."""
        began = perf_counter()
        runs = short_runs(self.batch, r, stage, FIRST_LOOK)
        took = (perf_counter() - began) / len(runs.scores)
        for name, score in zip(names if self.verbose else (), runs.scores, strict=False):
            print(f"start from {name}, {COVARIANCES[stage]}: score {score:.2f}, {took:.4f} s")
        return short_runs(self.batch, runs.best(n_kept), stage, SECOND_LOOK)


def starts_from_side_information(
    side: SideInformation, n_components: int
) -> dict[str, Callable[..., FloatArray]]:
    """Return the initialisations that use labels or must-links, if there are any, by name."""
    kinds: dict[str, Callable[..., FloatArray]] = {}
    if (side.known_classes(n_components) >= 0).any():
        kinds["labels"] = from_labels
    if not side.nodes_are_points:
        kinds["chunklets"] = from_chunklets
    return kinds


def from_hierarchy(means: FloatArray, n_components: int) -> FloatArray:
    """Return the responsibilities of K clusters by Ward's method, which is deterministic."""
    labels = AgglomerativeClustering(n_components).fit_predict(means)
    return np.eye(n_components)[labels]


def split_and_merge(batch: Batch, r: FloatArray, n_moves: int, rng: Rng) -> FloatArray:
    """Return (K, S, J) groupings in which two components are merged and a third one is split.

    One of the three pairs with the largest overlap is merged (Ueda and others, 2000). Any other
    component is split, by assigning its nodes to the nearer of two nodes drawn from it.
    """
    K = len(r)
    sizes = np.sqrt(np.maximum(r.sum(axis=1), 1e-9))
    overlap = np.triu(r @ r.T / np.outer(sizes, sizes), 1)
    pairs = np.argsort(-overlap[np.triu_indices(K, 1)], kind="stable")[:3]
    first, second = (ends[pairs] for ends in np.triu_indices(K, 1))
    moves = [(a, b, c) for a, b in zip(first, second, strict=True) for c in range(K)]
    moves = [move for move in moves if move[2] not in move[:2]]
    order = rng.permutation(len(moves))
    chosen = [moves[m] for m in np.resize(order, n_moves)]
    return np.stack([merge_and_split(batch, r, *move, rng) for move in chosen], axis=1)


def merge_and_split(batch: Batch, r: FloatArray, a: int, b: int, c: int, rng: Rng) -> FloatArray:
    """Merge component b into a, and split c into c and b; return (K, J) responsibilities."""
    r = r.copy()
    r[a] += r[b]
    total = np.cumsum(r[c])
    ends = np.searchsorted(total, rng.uniform(size=2) * total[-1])
    nearer = nearest(batch.means, batch.means[np.minimum(ends, r.shape[1] - 1)])
    r[[c, b]] = r[c] * nearer.T
    return r


def select_distinct(scores: FloatArray, margin: float) -> list[int]:
    """Return indices by decreasing score, skipping scores within ``margin`` of the previous."""
    order = best_first(scores.tolist())
    falls = -np.diff(scores[order], prepend=np.inf)
    return [s for s, fall in zip(order, falls, strict=True) if fall > margin]
