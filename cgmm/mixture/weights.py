"""Updates of the mixing weights π in the M-step, which depend on the normaliser of the prior.

The prior over assignments is the Markov network of the posterior without the data, with unaries
n_j log π_k and the same edges. Its normaliser Z_prior depends on π. The closed form, expected
counts divided by their sum, therefore maximises the bound only if Z_prior is 1 for all π. In
general the update maximises ::

    Σ_k C_k log π_k - log Z_prior(π),        C_k = Σ_j n_j p(z_j = k | X)

which is concave in η = log π. Its gradient is C - E_prior[counts], so at the maximum the expected
counts of posterior and prior are equal: the update *matches expected counts*.

With an approximate engine, log Z_prior is not a concave function of η. The unaries of the prior
network are the same at every node, so only the relations distinguish assignments, and many
assignments are about equally good. Mean field converges to one of them, which may depend on the
last digits of π, and its bound jumps when the assignment changes. At equal weights mean field does
not move at all, and its bound is lowest: with 1,000 points and 2,000 preferences of ±5 it is 2,700
nats lower than at weights that differ by one millionth. The maximum of the objective is therefore
where Z_prior is approximated worst, whatever the counts are. For this reason "auto" uses the
"cautious" update with such an engine. Chapter 8 explains all updates.

=====  ==================================================================
π, η   weights and their logarithms
n_j    multiplicity of node j; M = Σ_j n_j
C_k    expected counts of the posterior, whose sum is M
w_e    log-weight of an edge
=====  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import combinations
from math import comb
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from cgmm.mixture.prior import PairwisePrior, Prior, SelectedPairs
from cgmm.network import TooCostlyError
from cgmm.numerics import FloatArray, warn_caller

Update = Callable[[FloatArray], FloatArray]
"""Function from expected counts (K,) to the new weights (K,)."""

# The search ends once expected counts of posterior and prior differ by at most this share of M.
SMALLEST_GRADIENT = 1e-8
# If they still differ by more than this share of M at the end, the update has failed.
LARGEST_MISMATCH = 1e-4
# Maximum number of calls of an approximate engine in one update, because its objective may have no
# maximum.
MOST_APPROXIMATE_CALLS = 20
# Maximum number of calls of an exact engine in one update. The problem is concave, has one variable
# per component, and usually takes five to ten calls.
MOST_EXACT_CALLS = 200

NO_MAXIMUM = (
    "the update of the weights found no maximum: the prior's counts cannot be made to match the "
    "posterior's. That happens to 'pseudo-likelihood' where relations share many points, and to "
    "'exact' with an engine that is not exact. 'auto' and 'cautious' need no maximum: use "
    "ConstrainedGaussianMixture({n_components}, weights='auto')."
)


# ---------------------------------------------------------------------------- the updates


def choose_update(prior: Prior) -> Update:
    """Return the update that matches counts if the engine is exact, else the cautious one.

    Parameters
    ----------
    prior : Prior
        The network without the data.

    Returns
    -------
    callable
        The update :func:`match_counts` or :func:`cautious`, chosen at the first call.

    Notes
    -----
    An estimator with ``weights="auto"`` chooses once per fit. It then computes the log-evidence of
    ``history_`` with the normaliser that the update assumes.

    Examples
    --------
    >>> from cgmm import ENGINES, SideInformation
    >>> side = SideInformation.build(3, preferences=[[0, 1, -9.0]])
    >>> counts = np.array([1.2, 1.8])
    >>> choose_update(Prior(side, ENGINES["pairs"]))(counts).round(3)
    array([0.2, 0.8])
    >>> choose_update(Prior(side, ENGINES["mean_field"]))(counts).round(3)
    array([0.4, 0.6])
    """
    chosen = cache(lambda n_components: UPDATES[resolve_auto(prior, n_components)](prior))
    return lambda expected_counts: chosen(len(expected_counts))(expected_counts)


def resolve_auto(prior: Prior, n_components: int) -> str:
    """Return the name of the update that "auto" chooses for this network and engine.

    Parameters
    ----------
    prior : Prior
        The network without the data.
    n_components : int
        K.

    Returns
    -------
    str
        "exact" or "cautious".

    Examples
    --------
    >>> from cgmm import ENGINES, SideInformation
    >>> side = SideInformation.build(3, preferences=[[0, 1, -9.0]])
    >>> [resolve_auto(Prior(side, ENGINES[engine]), 2) for engine in ("pairs", "gibbs")]
    ['exact', 'cautious']
    """
    try:
        return "exact" if prior.is_exact(n_components) else "cautious"
    except TooCostlyError:
        # Labels may make inference in the posterior network cheap, but not in the prior network.
        return "cautious"


def closed_form(expected_counts: FloatArray) -> FloatArray:
    """Return π_k = C_k / Σ_l C_l, the best weights if Z_prior is 1 for all weights.

    Parameters
    ----------
    expected_counts : (K,) array
        C_k ≥ 0, not all zero.

    Returns
    -------
    (K,) array
        Weights that sum to one; the weight of a component with count zero is exactly zero.

    Raises
    ------
    ValueError
        If a count is negative or not finite, or if all are zero.

    Notes
    -----
    [schmidt2016, sect. 3.1]; green derives it with a Lagrange multiplier.

    Examples
    --------
    >>> closed_form(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    total = expected_counts.sum()
    if not (np.isfinite(total) and expected_counts.min() >= 0 and total > 0):
        raise ValueError(
            f"the expected counts are {expected_counts}; they must be finite, none negative, and "
            "not all zero. Check the responsibilities that they are sums of."
        )
    # [schmidt2016, sect. 3.1]
    return expected_counts / total


def match_counts(prior: Prior) -> Update:
    """Return the update that maximises the bound by matching expected counts.

    Parameters
    ----------
    prior : Prior
        The network without the data.

    Returns
    -------
    callable
        The update; it is the closed form if Z_prior is 1 for all weights.

    Notes
    -----
    The update solves [shental2003, eq. 11] set to zero, which is also [lu2007, eq. 2.13]; lu2007
    solves it on a grid.

    An approximate engine is called at most 20 times per update, and the result is the weights among
    these calls for which the counts differ least, because there may be no maximum (see the
    module's docstring). With 1,000 points, 2,000 preferences of ±5 and mean field, this update
    takes about twenty times as long as :func:`ignore` and is worse: over twelve draws the mean
    adjusted Rand index is .87 against .91 for equal classes, and .93 against .95 for unequal
    classes, whose weights have an error of .11 against .006.

    Examples
    --------
    For two cannot-linked points, Z_prior = 2 π_0 π_1 makes the update differ from the closed form:

    >>> from cgmm import ENGINES, SideInformation
    >>> side = SideInformation.build(3, cannot_link=[[0, 1]])
    >>> update = match_counts(Prior(side, ENGINES["pairs"]))
    >>> update(np.array([1.2, 1.8])).round(6)
    array([0.2, 0.8])
    """
    if prior.is_one:
        return closed_form
    is_exact = cache(prior.is_exact)

    def update(expected_counts: FloatArray) -> FloatArray:
        most = MOST_EXACT_CALLS if is_exact(len(expected_counts)) else MOST_APPROXIMATE_CALLS
        return maximise(prior.log_z_and_counts, expected_counts, most)

    return update


def pseudo_likelihood(prior: Prior) -> Update:
    """Return the update that treats edges as if they shared no nodes.

    Parameters
    ----------
    prior : Prior
        The network without the data; its engine is not used.

    Returns
    -------
    callable
        The update.

    Notes
    -----
    This is [shental2003, eq. 12], extended to multiplicities n_j and any log-weight w: an edge
    between nodes a and b multiplies the factors of isolated nodes by 1 + (e^w - 1) Σ_k p_a(k)
    p_b(k), where p_j(k) ∝ π_k^n_j. If edges share many points, the approximate Z_prior may fall
    without limit towards a corner of the simplex. Then there is no maximum, and the update gives a
    RuntimeWarning.
    """
    log_z_and_counts = PairwisePrior(prior.side).log_z_and_counts
    return lambda expected_counts: maximise(log_z_and_counts, expected_counts)


def ignore(prior: Prior | None = None) -> Update:
    """Return the closed form for any network, without Z_prior [shental2003, footnote 3].

    Parameters
    ----------
    prior : ignored
        Present for API consistency.

    Returns
    -------
    callable
        The update.

    Notes
    -----
    If the relations are all answers to questions about pairs, nothing is ignored: the closed form
    is the exact M-step for the likelihood of points *and* answers. This holds even if the pairs
    were chosen by looking at the points (chapter 8).
    """
    return closed_form


def cautious(prior: Prior) -> Update:
    """Return the closed form, moved towards equal weights if pairs were selected for being alike.

    Parameters
    ----------
    prior : Prior
        The network without the data; its engine is not used.

    Returns
    -------
    callable
        The update. It maximises the concave function Σ_k C_k log π_k - a Σ_k π_k² over the weights
        between the closed form and equal weights. Here a ≥ 0 is the slope of the normaliser
        ``SelectedPairs`` in s = Σ_k π_k² at the closed form.

    Notes
    -----
    The closed form is exact if relations are answers to questions about pairs that were chosen
    without looking at their classes. Such answers are data: the likelihood of points and answers,
    p(X, answers | θ), has no normaliser, and its update is the closed form ([shental2003,
    footnote 3]; chapter 8 has the table). If all relations are must-links or positive preferences,
    as among neighbouring pixels, the closed form fails: the E-steps favour the largest component,
    the closed form increases its weight, and the other components lose their points. In this case
    the update is an ascent step of the pseudo-likelihood. If all relations are cannot-links, the
    closed form tends to equal weights, which does no such harm.

    Examples
    --------
    The first network has 100 points and positive preferences between neighbours. The second has
    preferences of both signs, as random pairs of equal classes would have:

    >>> from cgmm import ENGINES, SideInformation
    >>> ties = np.column_stack([np.arange(99), np.arange(1, 100), np.full(99, 2.0)])
    >>> answers = ties * np.where(np.arange(99) % 2, 1, -1)[:, None] ** [0, 0, 1]
    >>> for relations in (ties, answers):
    ...     side = SideInformation.build(100, preferences=relations)
    ...     cautious(Prior(side, ENGINES["mean_field"]))(np.array([80.0, 20.0])).round(2)
    array([0.64, 0.36])
    array([0.8, 0.2])
    """
    pairs = SelectedPairs(prior.side)

    def update(expected_counts: FloatArray) -> FloatArray:
        weights = closed_form(expected_counts)
        used, pull = weights > 0, pairs.slope((weights**2).sum())
        if pull <= 0:
            return weights
        step = np.where(used, 1 / used.sum(), 0.0) - weights

        def loss(share: float) -> float:
            moved = weights + share * step
            return float(pull * (moved**2).sum() - expected_counts[used] @ np.log(moved[used]))

        found = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
        return weights + found.x * step

    return update


def grid(prior: Prior, *, resolution: float = 0.01) -> Update:
    """Return the update that chooses the best weights on a grid [lu2007, eq. 2.14].

    Parameters
    ----------
    prior : Prior
        The network without the data.
    resolution : float, default=0.01
        Spacing of the grid in each weight.

    Returns
    -------
    callable
        The update. It computes the normaliser once per point of the grid.

    Raises
    ------
    ValueError
        When the update is called, if the grid has more than 200,000 points (K > 4 at the default
        resolution), or no point, because K exceeds the number of steps.
    """

    @cache
    def tabulate_log_z(n_components: int) -> tuple[FloatArray, FloatArray]:
        points = np.log(_build_simplex_grid(n_components, round(1 / resolution)))
        return points, np.array([prior.log_z_and_counts(p)[0] for p in points])

    def update(expected_counts: FloatArray) -> FloatArray:
        log_weights, log_z = tabulate_log_z(len(expected_counts))
        # [lu2007, eq. 2.14]
        return np.exp(log_weights[np.argmax(log_weights @ expected_counts - log_z)])

    return update


UPDATES: dict[str, Callable[[Prior], Update]] = {
    "auto": choose_update,
    "exact": match_counts,
    "pseudo-likelihood": pseudo_likelihood,
    "ignore": ignore,
    "cautious": cautious,
    "grid": grid,
}
"""Update functions by their names for the parameter ``weights`` of estimators."""


# ---------------------------------------------------------------------------- helpers


def lift_small_weights(weights: FloatArray, n_points: float) -> FloatArray:
    """Raise weights to at least that of one point: relations may need an empty component."""
    weights = np.maximum(weights, 1 / n_points)
    return weights / weights.sum()


def _build_simplex_grid(n_components: int, n_steps: int) -> FloatArray:
    """Return the (G, K) interior points of the simplex that are multiples of 1 / n_steps."""
    size = comb(n_steps - 1, n_components - 1)
    if not 0 < size <= 200_000:
        raise ValueError(
            f"the grid for K={n_components} in steps of 1/{n_steps} has {size:,} points, where "
            "each component has a weight above zero; there must be some, and at most 200,000. "
            f"ConstrainedGaussianMixture({n_components}, weights='auto') needs no grid."
        )
    bars = list(combinations(range(1, n_steps), n_components - 1))
    edges = np.array(bars, dtype=float).reshape(len(bars), n_components - 1)
    ends = np.column_stack([np.zeros(len(bars)), edges, np.full(len(bars), n_steps)])
    return np.diff(ends, axis=1) / n_steps


def maximise(
    log_z_and_counts: Callable[[FloatArray], tuple[float, FloatArray]],
    expected_counts: FloatArray, max_calls: int = MOST_EXACT_CALLS,
) -> FloatArray:  # fmt: skip
    """Maximise C · η - log Z(η) by quasi-Newton steps from the closed form; return the weights.

    Adding a constant to η does not change the objective, because both C and the counts of the prior
    sum to M. Therefore η is unconstrained, and the softmax at the end normalises π. A component
    with count zero gets weight zero.
    """
    weights = closed_form(expected_counts)
    used, total = weights > 0, expected_counts.sum()
    start = np.log(weights[used])
    n_calls, unmatched, nearest = 0, np.inf, start

    def loss(eta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal n_calls, unmatched, nearest
        n_calls += 1
        if n_calls > max_calls:
            raise StopIteration
        log_weights = np.full(len(weights), -np.inf)
        log_weights[used] = eta - np.logaddexp.reduce(eta)
        log_z, counts = log_z_and_counts(log_weights)
        # [shental2003, eq. 11], in η = log π
        gradient = (counts[used] - expected_counts[used]) / total
        if np.abs(gradient).max() < unmatched:
            unmatched, nearest = np.abs(gradient).max(), eta.copy()
        # [shental2003, eq. 7] and [lu2007, eq. 2.13]: the terms that depend on π, times -1
        return float((log_z - expected_counts[used] @ log_weights[used]) / total), gradient

    options: Any = {"gtol": SMALLEST_GRADIENT, "hess_inv0": _invert_curvature(weights[used])}
    # If the search diverges, the warning below replaces floating-point warnings.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"), suppress(StopIteration):
        minimize(cast("Any", loss), start, jac=True, method="BFGS", options=options)
    if not unmatched < LARGEST_MISMATCH:
        warn_caller(NO_MAXIMUM.format(n_components=len(weights)), RuntimeWarning)
    # The maximum may be at π_k = 0 although C_k > 0, because relations force points into component
    # k. A weight of exactly zero would contradict them, so the smallest positive number is used.
    matched = np.exp(nearest - np.logaddexp.reduce(nearest))
    weights[used] = np.maximum(matched, np.finfo(float).tiny)
    return weights


def _invert_curvature(weights: FloatArray) -> FloatArray:
    """Return the pseudo-inverse of diag(π) - π πᵀ, the curvature if all nodes are single points.

    Tiny weights are increased, because rounding could make the matrix indefinite.
    """
    n = len(weights)
    centring = np.eye(n) - 1 / n
    inverse = (centring / np.maximum(weights, 1e-6)) @ centring + 1 / n
    return (inverse + inverse.T) / 2
