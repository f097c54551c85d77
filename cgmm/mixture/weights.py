"""The update of the mixing weights π, and the normaliser of the prior that makes it hard.

The prior over assignments is a Markov network like the posterior's, without the data: unaries n_j
log π_k and the same edges. Its normaliser Z_prior depends on π, so that expected counts divided by
their sum maximise the bound only where Z_prior is one. In general the update maximises ::

    Σ_k C_k log π_k - log Z_prior(π),        C_k = Σ_j n_j p(z_j = k | X)

which is concave in η = log π, with gradient C - E_prior[counts]: the update *matches expected
counts*.

With an engine that approximates, log Z_prior is no such function of η. The prior's network has the
same unaries at every node, so that nothing but the relations tells its assignments apart: many are
about equally good, and mean field ends in one of them, which one depending on the last digits of π.
Within one the counts are the gradient; from one to the next the bound jumps. At equal weights it
does not move at all, and there its bound is lowest: on 1,000 points with 2,000 preferences of ±5
2,700 nats below that at weights one millionth aside. The "maximum" is where Z_prior is approximated
worst, whatever the counts. "auto" does not ask such an engine; it is "cautious" then.

=====  ==================================================================
π, η   weights and their logarithms
n_j    multiplicity of node j; M = Σ_j n_j
C_k    expected counts of the posterior, summing to M
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
"""From expected counts (K,) to the weights (K,) that maximise the bound."""

# The search ends if posterior's and prior's counts differ by less, as a share of all points.
SMALLEST_GRADIENT = 1e-8
# Above this difference, as a share of all points, the update has failed to match the counts.
LARGEST_MISMATCH = 1e-4
# Maximum number of calls of an approximate engine in one update: its log Z may have no maximum.
MOST_APPROXIMATE_CALLS = 20
# Maximum number of calls of an exact engine in one update. The problem is concave, with a variable
# for each component, and takes five to ten.
MOST_EXACT_CALLS = 200

NO_MAXIMUM = (
    "the update of the weights found no maximum: the prior's counts cannot be made to match the "
    "posterior's. That happens to 'pseudo-likelihood' where relations share many points, and to "
    "'exact' with an engine that is not exact. 'auto' and 'cautious' do not need one: say "
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
        The update :func:`match_counts` or :func:`cautious`; which, is found out at the first call.

    Notes
    -----
    An estimator with ``weights="auto"`` chooses once a fit, and then takes the normaliser that the
    update assumes for the log-evidence as well.

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
    chosen = cache(lambda n_components: UPDATES[resolve(prior, n_components)](prior))
    return lambda expected_counts: chosen(len(expected_counts))(expected_counts)


def resolve(prior: Prior, n_components: int) -> str:
    """Return the name of the update that "auto" stands for with this engine.

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
    >>> [resolve(Prior(side, ENGINES[engine]), 2) for engine in ("pairs", "gibbs")]
    ['exact', 'cautious']
    """
    try:
        return "exact" if prior.is_exact(n_components) else "cautious"
    except TooCostlyError:
        # The evidence may make the posterior's network cheap; the prior's stays expensive.
        return "cautious"


def closed_form(expected_counts: FloatArray) -> FloatArray:
    """Return π_k = C_k / Σ_l C_l, the maximiser if Z_prior is one.

    Parameters
    ----------
    expected_counts : (K,) array
        C_k ≥ 0, not all zero.

    Returns
    -------
    (K,) array
        Weights that sum to one; a component without counts gets exactly zero.

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
    """Return the update that matches expected counts of posterior and prior: the maximiser.

    Parameters
    ----------
    prior : Prior
        The network without the data.

    Returns
    -------
    callable
        The update; the closed form where Z_prior is one.

    Notes
    -----
    [shental2003, eq. 11] set to zero; [lu2007, eq. 2.13], which lu2007 solves on a grid.

    With an engine that approximates it is asked at most 20 times an update, and the weights are
    those of these at which counts differ least: there need be no maximum, as the module says. On
    1,000 points with 2,000 preferences of ±5 and mean field it takes some twenty times as long as
    :func:`ignore` and is worse: a mean adjusted Rand index of .87 against .91 over twelve draws of
    equal classes, .93 against .95 of unequal ones, whose weights are off by .11 against .006.

    Examples
    --------
    Two points that must differ: whatever the counts, Z_prior = 2 π_0 π_1 wants the weights even.

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
    """Return the update that treats edges as if they shared no node.

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
    [shental2003, eq. 12], with n_j for chunklets and any w: an edge between nodes a and b
    multiplies the factors of isolated nodes by 1 + (e^w - 1) Σ_k p_a(k) p_b(k), p_j(k) ∝ π_k^n_j.
    Where edges share many points that can fall without end towards a corner of the simplex: there
    is no maximum then, and a RuntimeWarning says so.
    """
    log_z_and_counts = PairwisePrior(prior.side).log_z_and_counts
    return lambda expected_counts: maximise(log_z_and_counts, expected_counts)


def ignore(prior: Prior | None = None) -> Update:
    """Return the closed form for any network: [shental2003, footnote 3].

    Parameters
    ----------
    prior : ignored
        Present for the common signature.

    Returns
    -------
    callable
        The update.

    Notes
    -----
    Where all answers are on record it ignores nothing: it is the exact M-step of the likelihood of
    points *and* answers, and the right one if pairs were chosen by a look at the points: chapter 8.
    """
    return closed_form


def cautious(prior: Prior) -> Update:
    """Return the closed form, moved to equal weights if pairs were selected for being alike.

    Parameters
    ----------
    prior : Prior
        The network without the data; its engine is not used.

    Returns
    -------
    callable
        The update: of the weights between the closed form and equal ones those that maximise
        Σ_k C_k log π_k - a s, s = Σ_k π_k², where a ≥ 0 is the slope at the closed form of what
        ``SelectedPairs`` holds against large s. A concave problem.

    Notes
    -----
    The closed form is no makeshift where relations are answers to questions about pairs that were
    chosen without a look at their classes. Such answers are data: the likelihood is that of points
    and answers together, p(X, answers | θ), it has no normaliser, and its update is the closed form
    ([shental2003, footnote 3]; chapter 8 has the table). Where relations only ever say "together",
    as among neighbouring pixels, it is none: E-steps then favour the largest component, the closed
    form follows them, and others starve. There this is a step of ascent of the pseudo-likelihood.
    Where they only say "apart" the closed form is drawn to equal weights, which does no such harm.

    Examples
    --------
    A hundred points and ties between neighbours; then as many answers that belong to equal classes:

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
        alive, pull = weights > 0, pairs.slope((weights**2).sum())
        if pull <= 0:
            return weights
        step = np.where(alive, 1 / alive.sum(), 0.0) - weights

        def loss(share: float) -> float:
            moved = weights + share * step
            return float(pull * (moved**2).sum() - expected_counts[alive] @ np.log(moved[alive]))

        found = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
        return weights + found.x * step

    return update


def grid(prior: Prior, *, resolution: float = 0.01) -> Update:
    """Return the update that takes the best point of a grid: [lu2007, eq. 2.14].

    Parameters
    ----------
    prior : Prior
        The network without the data.
    resolution : float, default=0.01
        Distance of the grid's points in each weight.

    Returns
    -------
    callable
        The update. The normaliser is computed once a point of the grid.

    Raises
    ------
    ValueError
        When called: if the grid has more than 200,000 points (K > 4 at the default resolution), or
        none, since K exceeds the number of steps.
    """

    @cache
    def table(n_components: int) -> tuple[FloatArray, FloatArray]:
        points = np.log(_simplex_grid(n_components, round(1 / resolution)))
        return points, np.array([prior.log_z_and_counts(p)[0] for p in points])

    def update(expected_counts: FloatArray) -> FloatArray:
        log_weights, log_z = table(len(expected_counts))
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
"""Every update by the name under which estimators accept it."""


# ---------------------------------------------------------------------------- how


def kept_alive(weights: FloatArray, n_points: float) -> FloatArray:
    """Return weights of at least one point: relations may need a component that starts empty."""
    weights = np.maximum(weights, 1 / n_points)
    return weights / weights.sum()


def _simplex_grid(n_components: int, n_steps: int) -> FloatArray:
    """Return (G, K) interior points of the simplex: multiples of 1 / n_steps."""
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
    expected_counts: FloatArray, n_most: int = MOST_EXACT_CALLS,
) -> FloatArray:  # fmt: skip
    """Return the maximiser of C · η - log Z(η) by quasi-Newton steps from the closed form.

    Adding a constant to η changes nothing, because C and the prior's counts both sum to M; so η is
    free, and the softmax at the end puts π on the simplex. A component without counts leaves.
    """
    weights = closed_form(expected_counts)
    alive, total = weights > 0, expected_counts.sum()
    start = np.log(weights[alive])
    n_calls, unmatched, nearest = 0, np.inf, start

    def loss(eta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal n_calls, unmatched, nearest
        n_calls += 1
        if n_calls > n_most:
            raise StopIteration
        log_weights = np.full(len(weights), -np.inf)
        log_weights[alive] = eta - np.logaddexp.reduce(eta)
        log_z, counts = log_z_and_counts(log_weights)
        # [shental2003, eq. 11], in η = log π
        gradient = (counts[alive] - expected_counts[alive]) / total
        if np.abs(gradient).max() < unmatched:
            unmatched, nearest = np.abs(gradient).max(), eta.copy()
        # [shental2003, eq. 7] and [lu2007, eq. 2.13], their terms in π, with the opposite sign
        return float((log_z - expected_counts[alive] @ log_weights[alive]) / total), gradient

    options: Any = {"gtol": SMALLEST_GRADIENT, "hess_inv0": _inverse_curvature(weights[alive])}
    # The search diverges; the warning is below.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"), suppress(StopIteration):
        minimize(cast("Any", loss), start, jac=True, method="BFGS", options=options)
    if not unmatched < LARGEST_MISMATCH:
        warn_caller(NO_MAXIMUM.format(n_components=len(weights)), RuntimeWarning)
    # The maximum may lie at π_k = 0 although C_k > 0, because relations force points into
    # component k. A weight of zero would contradict them, so the smallest number is used.
    matched = np.exp(nearest - np.logaddexp.reduce(nearest))
    weights[alive] = np.maximum(matched, np.finfo(float).tiny)
    return weights


def _inverse_curvature(weights: FloatArray) -> FloatArray:
    """Return the pseudo-inverse of diag(π) - π πᵀ, exact if all nodes are single points.

    Tiny weights count as larger ones, lest rounding spoil that it is positive definite.
    """
    n = len(weights)
    centring = np.eye(n) - 1 / n
    inverse = (centring / np.maximum(weights, 1e-6)) @ centring + 1 / n
    return (inverse + inverse.T) / 2
