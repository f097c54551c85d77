"""Doubts about a fit that raised no error: thin covariances, relations against the points.

=========  ==================================================================
e, P       a hard relation between two points; how many there are
L_e        p(x_i, x_j | e is wrong) / p(x_i, x_j | e is right)
π_k, r_ik  weights of the components, and responsibilities of the points by themselves
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

# Largest probability of doubting true relations if the model is right.
FALSE_ALARMS = 0.01
# A variance of at most this share of the largest one makes a covariance nearly singular.
THIN_SHARE = 1e-4
# Maximum number of relations tested, which limits memory. The bound on the probability of a false
# alarm holds for any subset of the relations.
MOST_TESTED = 100_000


def thin_covariances(covariances: FloatArray, reg_covar: float) -> list[str]:
    """Return a message if components would be nearly singular without ``reg_covar``.

    In some direction half of their variance or more is ``reg_covar``, and it is next to nothing
    beside the largest variance: the density is what whoever chose ``reg_covar`` has chosen.
    """
    is_full = covariances.ndim == 3
    if is_full:
        with suppress(np.linalg.LinAlgError):
            # This costs a tenth of the eigenvalues, and succeeds if none is below 2 reg_covar.
            np.linalg.cholesky(covariances - 2 * reg_covar * np.eye(covariances.shape[1]))
            return []
    variances = np.linalg.eigvalsh(covariances) if is_full else covariances
    limit = min(2 * reg_covar, THIN_SHARE * variances.max())
    if variances.max() <= 2 * reg_covar:  # every component consists of reg_covar alone
        limit = 2 * reg_covar
    thin = np.flatnonzero(variances.min(axis=1) <= limit)
    if not len(thin):
        return []
    return [
        f"{len(thin)} of {len(covariances)} covariances are near to singular (the first is that of "
        f"component {thin[0]}): in some direction reg_covar={reg_covar:g} is most of their "
        "variance, and decides over density and evidence. Increase it, drop columns that others "
        "determine, or take fewer components or a covariance_type with fewer parameters."
    ]


def doubted_relations(theta: Any, X: Any, must_link: Any, cannot_link: Any) -> list[str]:
    """Return a sentence if the points speak against the relations.

    If e is right, and was not asked for because of where the points lie, L_e has the expectation 1,
    whatever other relations say; so has the mean of all P, which exceeds 1 / α with the probability
    α at most (Markov's inequality). The fit, which has obeyed, makes alarms rarer.
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
        f"{relation}: some are wrong, or components of this kind are not what the relations are "
        "about. Soften them, fit(X, preferences=cgmm.scenarios.preferences(must_link, cannot_link, "
        "certainty=0.9)), or check them in the order of cgmm.diagnose.judge(model, X, must_link, "
        "cannot_link).order."
    ]


def poor_maximum(gain: float, n_init: int) -> str:
    """Return the sentence for a fit whose relations look wrong only where it has ended."""
    return (
        "the points speak against the relations at these parameters, but the fit has ended at a "
        f"poor maximum: from other starts the log-evidence is {gain:.1f} nats higher, and the "
        "relations look right there. Fit again, "
        f"set_params(init_params='auto', n_init={n_init}).fit(...)."
    )


def log_ratios_of_must_links(theta: Any, X: Any, pairs: IntArray) -> FloatArray:
    """Return (P,) log L_e of pairs, each taken as a must-link."""
    r_i, r_j = (log_normalise(log_joint(fetch(X, ends), theta))[0] for ends in pairs.T)
    together, apart = (r_i * r_j).sum(axis=1), (r_i * (1 - r_j)).sum(axis=1)
    prior = (theta.weights**2).sum()
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(apart) - np.log(together) + np.log(prior) - np.log1p(-prior))
