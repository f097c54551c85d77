"""The lower bound that EM climbs, and the penalty that reg_covar takes from it. Chapter 2.

=====  ==================================================================
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

import numpy as np

from cgmm.mixture.gaussian import Parameters, log_joint, whiten
from cgmm.numerics import FloatArray


def lower_bound(X: FloatArray, parameters: Parameters, q: FloatArray) -> float:
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


def penalty(parameters: Parameters, counts: FloatArray, reg_covar: float) -> float:
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
    >>> round(penalty(theta, np.array([10.0]), 1e-2), 6)
    0.125
    """
    whiteners, _ = whiten(parameters.covariances)
    # tr Σ_k⁻¹ = tr W_kᵀ W_k
    traces = np.square(whiteners).reshape(len(counts), -1).sum(axis=1)
    return float(0.5 * reg_covar * np.dot(counts, traces))
