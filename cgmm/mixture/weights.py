"""The update of the mixing weights π, and the normaliser of the prior that makes it hard.

The prior over assignments is a Markov network like the posterior's, without the data: unaries n_j
log π_k and the same edges. Its normaliser Z_prior depends on π, so that expected counts divided by
their sum maximise the bound only where Z_prior is one. In general the update maximises ::

    Σ_k C_k log π_k - log Z_prior(π),        C_k = Σ_j n_j p(z_j = k | X)

which is concave in η = log π, with gradient C - E_prior[counts]: the update *matches expected
counts*.

=====  ==================================================================
π, η   weights and their logarithms
n_j    multiplicity of node j; M = Σ_j n_j
C_k    expected counts of the posterior, summing to M
w_e    log-weight of an edge
=====  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from cgmm.mixture.prior import PairwisePrior, Prior
from cgmm.numerics import FloatArray, warn_caller

# Counts that differ by more than this share of all are not matched.
UNMATCHED = 1e-4

NO_MAXIMUM = (
    "the update of the weights found no maximum: the prior's counts cannot be made to match the "
    "posterior's. That happens to 'pseudo-likelihood' where relations share many points, and to "
    "'exact' with an engine that is not exact; use an exact engine with 'exact', or 'ignore'."
)

Update = Callable[[FloatArray], FloatArray]
"""From expected counts (K,) to the weights (K,) that maximise the bound."""


# ---------------------------------------------------------------------------- the updates


def closed_form(expected_counts: FloatArray) -> FloatArray:
    """π_k = C_k / Σ_l C_l, the maximiser where Z_prior is one.

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


def exact(prior: Prior) -> Update:
    """Match the expected counts of posterior and prior: the maximiser for any K.

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

    Examples
    --------
    Two points that must differ: whatever the counts, Z_prior = 2 π_0 π_1 wants the weights even.

    >>> from cgmm import ENGINES, SideInformation
    >>> side = SideInformation.build(3, cannot_link=[[0, 1]])
    >>> update = exact(Prior(side, ENGINES["pairs"]))
    >>> update(np.array([1.2, 1.8])).round(6)
    array([0.2, 0.8])
    """
    if prior.is_one:
        return closed_form
    return lambda expected_counts: _maximise(prior.log_z_and_counts, expected_counts)


def pseudo_likelihood(prior: Prior) -> Update:
    """The update as if every edge stood alone: edges share no node.

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
    pairwise = PairwisePrior(prior.side)
    return lambda expected_counts: _maximise(pairwise.log_z_and_counts, expected_counts)


def ignore(prior: Prior | None = None) -> Update:
    """The closed form, whatever the network: [shental2003, footnote 3].

    Parameters
    ----------
    prior : ignored
        Present for the common signature.

    Returns
    -------
    callable
        The update.
    """
    return closed_form


def grid(prior: Prior, *, resolution: float = 0.01) -> Update:
    """The best point of a grid on the simplex: [lu2007, eq. 2.14].

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
    table: dict[int, tuple[FloatArray, FloatArray]] = {}

    def update(expected_counts: FloatArray) -> FloatArray:
        n_components = len(expected_counts)
        if n_components not in table:
            points = np.log(_simplex_grid(n_components, round(1 / resolution)))
            table[n_components] = points, np.array([prior.log_z_and_counts(p)[0] for p in points])
        log_weights, log_z = table[n_components]
        # [lu2007, eq. 2.14]
        return np.exp(log_weights[np.argmax(log_weights @ expected_counts - log_z)])

    return update


UPDATES: dict[str, Callable[[Prior], Update]] = {
    "exact": exact,
    "pseudo-likelihood": pseudo_likelihood,
    "ignore": ignore,
    "grid": grid,
}
"""Every update by the name under which estimators accept it."""


# ---------------------------------------------------------------------------- how


def _maximise(
    log_z_and_counts: Callable[[FloatArray], tuple[float, FloatArray]], expected_counts: FloatArray
) -> FloatArray:
    """The maximiser of C · η - log Z(η) by quasi-Newton steps from the closed form.

    Adding a constant to η changes nothing, because C and the prior's counts both sum to M; so η is
    free, and the softmax at the end puts π on the simplex. A component without counts leaves.
    """
    weights = closed_form(expected_counts)
    alive, total = weights > 0, expected_counts.sum()
    start = np.log(weights[alive])

    def loss(eta: FloatArray) -> tuple[float, FloatArray]:
        log_weights = np.full(len(weights), -np.inf)
        log_weights[alive] = eta - logsumexp(eta)
        log_z, counts = log_z_and_counts(log_weights)
        # [shental2003, eq. 11], in η = log π
        gradient = counts[alive] - expected_counts[alive]
        # [shental2003, eq. 7] and [lu2007, eq. 2.13], their terms in π, with the opposite sign
        return (log_z - expected_counts[alive] @ log_weights[alive]) / total, gradient / total

    # Below that gradient the loss would change by less than its rounding.
    options: Any = {"gtol": 1e-8, "hess_inv0": _inverse_curvature(weights[alive])}
    with np.errstate(divide="ignore", invalid="ignore"):  # a search that runs away: told below
        found = minimize(loss, start, jac=True, method="BFGS", options=options)
    if not np.abs(found.jac).max() < UNMATCHED:
        warn_caller(NO_MAXIMUM, RuntimeWarning)
    # The maximum may lie at π_k = 0 although C_k > 0, where relations leave no lower count. Zero
    # would forbid what they demand; the smallest number does not.
    weights[alive] = np.maximum(np.exp(found.x - logsumexp(found.x)), np.finfo(float).tiny)
    return weights


def _inverse_curvature(weights: FloatArray) -> FloatArray:
    """A first guess, as if all nodes were single points: the pseudo-inverse of diag(π) - π πᵀ.

    Tiny weights count as larger ones, lest rounding spoil that it is positive definite.
    """
    n = len(weights)
    centring = np.eye(n) - 1 / n
    inverse = (centring / np.maximum(weights, 1e-6)) @ centring + 1 / n
    return (inverse + inverse.T) / 2


def _simplex_grid(n_components: int, n_steps: int) -> FloatArray:
    """(G, K) interior points of the simplex with coordinates that are multiples of 1 / n_steps."""
    size = comb(n_steps - 1, n_components - 1)
    if size == 0:
        raise ValueError(
            f"no point of a grid of steps 1/{n_steps} gives each of {n_components} components a "
            "weight above zero; use weights='exact', which needs no grid, or a finer resolution."
        )
    if size > 200_000:
        raise ValueError(
            f"the grid for K={n_components} has {size:,} points; use weights='exact', which "
            "needs no grid, or a coarser resolution."
        )
    bars = list(combinations(range(1, n_steps), n_components - 1))
    edges = np.array(bars, dtype=float).reshape(len(bars), n_components - 1)
    ends = np.column_stack([np.zeros(len(bars)), edges, np.full(len(bars), n_steps)])
    return np.diff(ends, axis=1) / n_steps
