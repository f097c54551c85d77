"""Expectation maximisation: one E-step, one M-step, one loop, for every kind of mixture here.

Chapters change two things only: the engine that answers the E-step's question (which component does
each group of points belong to, given everything?) and the update of the weights.

=====  ==================================================================
θ      :class:`~cgmm.gaussian.Parameters`: π_k, μ_k, Σ_k
q      any distribution over assignments; r_ik = q(z_i = k)
F      the bound, F(q, θ) = E_q[log p(X, z | θ)] + H(q) ≤ log p(X | θ)
ε      reg_covar, added to the diagonal of each covariance
=====  ==================================================================

What never falls. With ε = 0 the log-evidence of the parameters that the loop yields never falls:
the E-step makes the bound touch it, the M-step lifts the bound. With ε > 0 that is not a theorem.
Adding ε to the diagonal maximises, for given responsibilities, the *penalised* bound ::

    F(q, θ) - penalty(θ, N, ε),        penalty = ½ ε Σ_k N_k tr Σ_k⁻¹

and it is this that an M-step never lowers. From one iteration to the next the log-evidence can
therefore fall, but by no more than the penalty, at the same counts N_k, falls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from cgmm.gaussian import SMALLEST_COUNT, Parameters, Pooling, log_joint, weighted_moments
from cgmm.network import Infer
from cgmm.side_information import SideInformation

__all__ = ["Posterior", "e_step", "em", "lower_bound", "m_step", "penalty"]


class Posterior(NamedTuple):
    """What the E-step finds out about the assignments at given parameters."""

    responsibilities: np.ndarray
    """(N, K) r_ik = p(z_i = k | X, θ, side information)."""
    expected_counts: np.ndarray
    """(K,) Σ_j n_j p(z_j = k | ...), which the weights' update matches."""
    log_evidence: float
    """log p(X | θ, side information) in nats."""


def e_step(X: np.ndarray, parameters: Parameters, side: SideInformation, infer: Infer) -> Posterior:
    """The posterior over assignments, and the evidence, at given parameters.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ.
    side : SideInformation
        What is known beside the data.
    infer : callable
        An engine applied to ``side.graph``.

    Returns
    -------
    Posterior
        Responsibilities, expected counts and log-evidence of exactly these parameters.

    Raises
    ------
    ValueError
        If a covariance is not positive definite, or a point has no density under any component.

    Notes
    -----
    [schmidt2016, §3.1] and green's expectation step, as inference in the network of ``side``.

    Examples
    --------
    >>> from cgmm.inference import ENGINES
    >>> X = np.array([[-1.0], [1.0]])
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> side = SideInformation.build(2)
    >>> posterior = e_step(X, theta, side, ENGINES["independent"](side.graph))
    >>> posterior.responsibilities.round(3), round(posterior.log_evidence, 3)
    (array([[0.881, 0.119],
           [0.119, 0.881]]), -2.97)
    """
    # [green, "Expectation step"]: without relations a point's unary is its log-joint.
    nodes, log_evidence, _ = infer(log_joint(X, parameters))
    return Posterior(nodes, nodes.sum(axis=0), log_evidence)


def m_step(
    X: np.ndarray,
    parameters: Parameters,
    posterior: Posterior,
    pool: Pooling,
    update_weights: Callable[[np.ndarray], np.ndarray],
    *,
    reg_covar: float = 0.0,
) -> Parameters:
    """The parameters that maximise the bound for given responsibilities.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        The parameters that the posterior belongs to; a component that no point is assigned to any
        more (N_k = 0: the bound does not depend on it) keeps its mean and covariance from here.
    posterior : Posterior
        From :func:`e_step`.
    pool : Pooling
        An entry of ``gaussian.POOLINGS``.
    update_weights : callable
        From expected counts (K,) to weights (K,).
    reg_covar : float, default=0
        ε, added to each covariance's diagonal; see the module's note on what never falls.

    Returns
    -------
    Parameters
        The new θ.

    Notes
    -----
    [schmidt2016, §3.2] with r_c^i for the printed r_c^k, and [green, "Maximisation step"].

    Examples
    --------
    >>> from cgmm.gaussian import POOLINGS
    >>> from cgmm.weights import closed_form
    >>> X = np.array([[0.0], [2.0], [5.0], [7.0]])
    >>> r = np.repeat(np.eye(2), 2, axis=0)
    >>> start = Parameters(np.full(2, 0.5), np.zeros((2, 1)), np.ones((2, 1, 1)))
    >>> theta = m_step(X, start, Posterior(r, r.sum(axis=0), 0.0), POOLINGS["full"], closed_form)
    >>> theta.weights, theta.means.ravel(), theta.covariances.ravel()
    (array([0.5, 0.5]), array([1., 6.]), array([1., 1.]))
    """
    moments = weighted_moments(X, posterior.responsibilities, diagonal=pool.diagonal)
    regular = reg_covar * np.eye(X.shape[1])
    # A dead component keeps its parameters, as if they had been seen with the smallest count.
    dead = ~moments.alive
    counts = np.maximum(moments.counts, SMALLEST_COUNT)
    means = np.where(dead[:, None], parameters.means, moments.means)
    moments.scatter[dead] = SMALLEST_COUNT * (parameters.covariances[dead] - regular)
    # [schmidt2016, §3.2], pooled as the covariance type says
    covariances = pool.combine(counts, moments.scatter) + regular
    return Parameters(update_weights(posterior.expected_counts), means, covariances)


def em(
    X: np.ndarray,
    parameters: Parameters,
    side: SideInformation,
    infer: Infer,
    pool: Pooling,
    update_weights: Callable[[np.ndarray], np.ndarray],
    *,
    reg_covar: float = 0.0,
) -> Iterator[tuple[Parameters, Posterior]]:
    """Run EM for as long as the caller wants: parameters and the posterior that belongs to them.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        The start.
    side, infer, pool, update_weights, reg_covar
        As in :func:`e_step` and :func:`m_step`.

    Yields
    ------
    (Parameters, Posterior)
        The start first; the log-evidence in the second is that of the first.

    Notes
    -----
    The bound's ascent of [green, "The EM algorithm"] and [schmidt2016, §1].

    Examples
    --------
    >>> from itertools import islice
    >>> from cgmm.gaussian import POOLINGS
    >>> from cgmm.inference import ENGINES
    >>> from cgmm.weights import closed_form
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> start = Parameters(np.array([0.5, 0.5]), np.array([[-0.5], [0.5]]), np.ones((2, 1, 1)))
    >>> side = SideInformation.build(4)
    >>> infer = ENGINES["independent"](side.graph)
    >>> steps = em(X, start, side, infer, POOLINGS["tied"], closed_form)
    >>> [round(posterior.log_evidence, 3) for _, posterior in islice(steps, 4)]
    [-8.068, -7.331, -7.098, -6.492]
    """
    while True:
        posterior = e_step(X, parameters, side, infer)
        yield parameters, posterior
        parameters = m_step(X, parameters, posterior, pool, update_weights, reg_covar=reg_covar)


# ---------------------------------------------------------------------------- theory


def lower_bound(X: np.ndarray, parameters: Parameters, q: np.ndarray) -> float:
    """The bound F(q, θ) on the log-evidence of a plain mixture, for any independent q.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ.
    q : (N, K) array
        One distribution over components a row; need not be the posterior.

    Returns
    -------
    float
        ``Σ_ik q_ik (log p(x_i, k | θ) - log q_ik)`` in nats, at most the log-evidence; the
        difference is the sum of the divergences KL(q_i ‖ p(z_i | x_i, θ)).

    Raises
    ------
    ValueError
        If a row of ``q`` is not a distribution.

    Notes
    -----
    L(q, θ) of [green, "The EM algorithm"].

    Examples
    --------
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> round(lower_bound(np.array([[1.0]]), theta, np.array([[0.5, 0.5]])), 4)
    -1.9189
    """
    q = np.asarray(q, dtype=float)
    wrong = np.flatnonzero((q < 0).any(axis=1) | ~np.isclose(q.sum(axis=1), 1, rtol=0, atol=1e-9))
    if len(wrong):
        raise ValueError(
            f"row {wrong[0]} of q is {q[wrong[0]]}, not a distribution: its entries must be "
            "non-negative and sum to one. Divide each row by its sum."
        )
    used = q > 0
    # [green, "The EM algorithm"]: L(q, θ), with 0 log 0 = 0
    return float(np.sum(q[used] * (log_joint(X, parameters)[used] - np.log(q[used]))))


def penalty(parameters: Parameters, counts: np.ndarray, reg_covar: float) -> float:
    """½ ε Σ_k N_k tr Σ_k⁻¹: what reg_covar subtracts from the bound that the M-step maximises.

    Parameters
    ----------
    parameters : Parameters
        θ; only its covariances count.
    counts : (K,) array
        N_k, expected counts of the responsibilities at hand.
    reg_covar : float
        ε.

    Returns
    -------
    float
        In nats. From one iteration to the next the log-evidence falls by at most the fall of this,
        at the counts of the earlier iteration.

    Examples
    --------
    >>> theta = Parameters(np.ones(1), np.zeros((1, 2)), np.diag([0.5, 2.0])[None])
    >>> penalty(theta, np.array([10.0]), 1e-2)
    0.125
    """
    traces = np.einsum("kdd->k", np.linalg.inv(parameters.covariances))
    return float(0.5 * reg_covar * np.dot(counts, traces))
