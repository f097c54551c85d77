"""Tests for ``DoubtWarning``: nearly singular covariances, and relations that look wrong.

``fit`` calls these functions at the end, and warns with the messages that they return. The book's
page "Before you believe a mixture" explains these warnings.

=========  ==================================================================
e, P       a hard relation between two points, and the number of relations
L_e        likelihood ratio p(x_i, x_j | e is wrong) / p(x_i, x_j | e is right)
π_k, r_ik  weights of the components, and responsibilities without relations
=========  ==================================================================
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from scipy.special import logsumexp

from cgmm.large.chunks import fetch
from cgmm.mixture.family import log_joint
from cgmm.numerics import FloatArray, IntArray, check_pairs, log_normalise

# Upper bound on the probability of doubting relations that are all true, if the model is right.
FALSE_ALARMS = 0.01
# A covariance is nearly singular if a variance is at most this share of the largest variance.
THIN_SHARE = 1e-4
# Maximum number of relations tested, which limits memory. The bound on the probability of a false
# alarm holds for any subset of the relations.
MOST_TESTED = 100_000


def check_covariances(covariances: FloatArray, reg_covar: float) -> list[str]:
    """Return a list with a message if covariances would be nearly singular without ``reg_covar``.

    This is the case if, in some direction, ``reg_covar`` is at least half of the variance and the
    variance is tiny compared with the largest one. The density then depends on ``reg_covar`` more
    than on the data. The list is empty if no covariance is nearly singular.
    """
    is_full = covariances.ndim == 3
    if is_full:
        with suppress(np.linalg.LinAlgError):
            # A Cholesky factorisation takes a tenth of the time of the eigenvalues, and succeeds if
            # no eigenvalue is below 2 reg_covar.
            np.linalg.cholesky(covariances - 2 * reg_covar * np.eye(covariances.shape[1]))
            return []
    variances = np.linalg.eigvalsh(covariances) if is_full else covariances
    limit = min(2 * reg_covar, THIN_SHARE * variances.max())
    # If reg_covar is at least half of every variance, every covariance is nearly singular.
    if variances.max() <= 2 * reg_covar:
        limit = 2 * reg_covar
    thin = np.flatnonzero(variances.min(axis=1) <= limit)
    if not len(thin):
        return []
    return [
        f"{len(thin)} of {len(covariances)} covariances are near to singular (the first is that of "
        f"component {thin[0]}): in some direction reg_covar={reg_covar:g} is most of their "
        "variance and determines density and evidence. Increase it, drop columns that others "
        "determine, or take fewer components or a covariance_type with fewer parameters."
    ]


def describe_doubted_relations(theta: Any, X: Any, must_link: Any, cannot_link: Any) -> list[str]:
    """Return a list with a message if the points contradict the relations.

    If e is right, and its pair was not chosen by the positions of the points, L_e has expectation
    1, whatever the other relations are. The mean of all P ratios then has expectation 1, too, and
    exceeds 1 / α with probability at most α (Markov's inequality). False alarms are rarer still,
    because the fit has satisfied the relations. The list is empty if there is no doubt.
    """
    n_points, prior = X.shape[0], float((theta.weights**2).sum())
    must, cannot = check_pairs("", must_link, n_points), check_pairs("", cannot_link, n_points)
    pairs = np.concatenate([must, cannot])[:MOST_TESTED]
    if not len(pairs) or prior >= 1:
        return []
    sign = np.where(np.arange(len(pairs)) < len(must), 1, -1)
    log_ratios = sign * log_ratios_of_must_links(theta, X, pairs)
    p = np.exp(min(0.0, np.log(len(pairs)) - logsumexp(log_ratios)))
    if p > FALSE_ALARMS:
        return []
    i, j = pairs[log_ratios.argmax()]
    relation = "together" if sign[log_ratios.argmax()] > 0 else "apart"
    return [
        f"the points speak against the relations (p = {p:.0g}), most against {i} and {j} "
        f"{relation}: some relations are wrong, or the classes are not components of this kind. "
        "Soften them, fit(X, preferences=cgmm.scenarios.preferences(must_link, cannot_link, "
        "certainty=0.9)), or check them in the order of cgmm.diagnose.judge(model, X, must_link, "
        "cannot_link).order."
    ]


def describe_poor_maximum(gain: float, n_init: int) -> str:
    """Return the message for a fit whose relations look wrong only at its poor maximum."""
    return (
        "the points speak against the relations at these parameters, but the fit has ended at a "
        f"poor maximum: from other starts the log-evidence is {gain:.1f} nats higher, and the "
        "relations look right there. Fit again, "
        f"set_params(init_params='auto', n_init={n_init}).fit(...)."
    )


def log_ratios_of_must_links(theta: Any, X: Any, pairs: IntArray) -> FloatArray:
    """Return (P,) log L_e of pairs, computed as if each pair were a must-link."""
    r_i, r_j = (log_normalise(log_joint(fetch(X, ends), theta))[0] for ends in pairs.T)
    together, apart = (r_i * r_j).sum(axis=1), (r_i * (1 - r_j)).sum(axis=1)
    prior = (theta.weights**2).sum()
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(apart) - np.log(together) + np.log(prior) - np.log1p(-prior))
