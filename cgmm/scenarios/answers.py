"""Answers that may be wrong: flipped relations, certainties and log-odds. Chapters 5 and 9.

====  ===========================================================================
P     number of relations
q     probability that a relation is wrong; q̂ its estimate
γ     certainty of a relation, 1 - q
w     log-odds of a relation, logit γ
====  ===========================================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from cgmm.numerics import FloatArray, check_labels, check_pairs
from cgmm.scenarios.relations import GeneratorLike, Relations


def flip(relations: Relations, q: float, *, random_state: GeneratorLike = None) -> Relations:
    """Flipping noise: each relation turns into its opposite with probability q.

    Parameters
    ----------
    relations : Relations
        True relations.
    q : float
        Probability of a flip, from 0 to 0.5.
    random_state : int, Generator or None, default=None
        Which relations.

    Returns
    -------
    Relations
        As many in all; those that were flipped stand behind those that were not.

    Raises
    ------
    ValueError
        If q is out of range.

    Notes
    -----
    [lu2007, sect. 5.1.4], with q = 0.15 and 0.3; the weight to go with it is that of eq. 5.1,
    ``weight_from_certainty(1 - q)``.

    Examples
    --------
    >>> true = Relations(np.array([[0, 1], [2, 3]]), np.array([[4, 5]]))
    >>> flip(true, 0.0).must_link.tolist()
    [[0, 1], [2, 3]]
    >>> noisy = flip(true, 0.5, random_state=0)
    >>> noisy.must_link.tolist(), noisy.cannot_link.tolist()
    ([[0, 1], [4, 5]], [[2, 3]])
    """
    if not 0 <= q <= 0.5:
        raise ValueError(f"q is {q}; a probability of flips must be from 0 to 0.5.")
    must, cannot = relations
    must, cannot = check_pairs("must_link", must), check_pairs("cannot_link", cannot)
    rng = np.random.default_rng(random_state)
    # Which must-links and which cannot-links turn into their opposite.
    m, c = rng.random(len(must)) < q, rng.random(len(cannot)) < q
    return Relations(np.concatenate([must[~m], cannot[c]]), np.concatenate([cannot[~c], must[m]]))


def preferences(
    must_link: ArrayLike = (), cannot_link: ArrayLike = (), *, certainty: float | ArrayLike
) -> FloatArray:
    """Soft relations: pairs with log-odds that they belong together, from how certain one is.

    Parameters
    ----------
    must_link, cannot_link : (P, 2), (P', 2) int array_like
        Pairs said to be of one class, and of two; either may be empty.
    certainty : float or (P + P',) array_like
        γ, the probability that a relation is right: one for all, or one each, must-links first.

    Returns
    -------
    (P + P', 3) array
        Columns i, j, w, with w = logit γ for must-links and -logit γ for cannot-links; ±inf at
        γ = 1.

    Raises
    ------
    ValueError
        If a certainty is not a probability, or their number does not fit.

    Notes
    -----
    [lu2007, eq. 2.15]; our w counts each pair once, so it is the paper's 2 W^p.

    Examples
    --------
    >>> preferences([[0, 1]], [[2, 3]], certainty=0.8).round(3)
    array([[ 0.   ,  1.   ,  1.386],
           [ 2.   ,  3.   , -1.386]])
    """
    must, cannot = check_pairs("must_link", must_link), check_pairs("cannot_link", cannot_link)
    n_relations = len(must) + len(cannot)
    weights = weight_from_certainty(certainty)
    if np.ndim(weights) and np.shape(weights) != (n_relations,):
        raise ValueError(
            f"certainty has shape {np.shape(weights)} for {n_relations} relations; give one number "
            "for all, or one for each, must-links first."
        )
    # [lu2007, eq. 2.15]
    # [lu2007, eqs. 5.1 and B.3], with q = 1 - γ and w = 2 W^p
    w = np.repeat([1.0, -1.0], [len(must), len(cannot)]) * weights
    return np.column_stack([np.concatenate([must, cannot]), w])


def weight_from_certainty(certainty: float | ArrayLike) -> float | FloatArray:
    """Log-odds w = logit γ of a relation that is right with probability γ.

    Parameters
    ----------
    certainty : float or array_like
        γ in [0, 1]. Below 0.5 the weight is negative: the opposite relation is the likelier one.

    Returns
    -------
    float or array
        w; infinite, hence hard, at γ = 1. An edge adds w to the log-weight of its two ends' being
        equal.

    Raises
    ------
    ValueError
        If γ is not a probability.

    Notes
    -----
    [lu2007, eqs. 2.15 and 5.2] with w = 2 W^p.

    Examples
    --------
    >>> weight_from_certainty(0.5), round(weight_from_certainty(0.85), 4), weight_from_certainty(1)
    (0.0, 1.7346, inf)
    """
    gamma = np.asarray(certainty, dtype=float)
    wrong = ~((gamma >= 0) & (gamma <= 1))
    if wrong.any():
        raise ValueError(f"a certainty of {gamma[wrong].flat[0]:g} is not a probability.")
    # [lu2007, eq. 2.15]
    w = logit(gamma)
    return w if gamma.ndim else float(w)


def certainty_from_weight(weight: float | ArrayLike) -> float | FloatArray:
    """The certainty γ = 1 / (1 + e^-w) that log-odds stand for; undoes weight_from_certainty.

    Parameters
    ----------
    weight : float or array_like
        w.

    Returns
    -------
    float or array
        γ.

    Examples
    --------
    >>> round(certainty_from_weight(weight_from_certainty(0.7)), 12)
    0.7
    """
    gamma = expit(np.asarray(weight, dtype=float))
    return gamma if gamma.ndim else float(gamma)


def estimate_flip_rate(
    y: ArrayLike, must_link: ArrayLike = (), cannot_link: ArrayLike = ()
) -> float:
    """Maximum-likelihood estimate of q: the share of relations that a labelled example breaks.

    Parameters
    ----------
    y : (N,) int array_like
        True classes of an example, such as a segmented image.
    must_link, cannot_link : (P, 2), (P', 2) int array_like
        Relations as somebody, or a rule such as :func:`grid_neighbours`, states them.

    Returns
    -------
    float
        q̂ in [0, 1]. Zero if no relation is broken: then ``1 - q`` makes hard relations, which a
        small example hardly justifies.

    Raises
    ------
    ValueError
        If there is no relation, or one refers to no point.

    Notes
    -----
    [lu2007, sect. 2.4.2], whose adjacent pairs are all must-links.

    Examples
    --------
    >>> from cgmm.scenarios import grid_neighbours
    >>> y = np.array([[0, 0, 1], [0, 0, 1]]).ravel()
    >>> round(estimate_flip_rate(y, grid_neighbours((2, 3))), 3)
    0.286
    """
    y = check_labels("y", y, least=None)
    must = check_pairs("must_link", must_link, len(y))
    cannot = check_pairs("cannot_link", cannot_link, len(y))
    pairs = np.concatenate([must, cannot])
    if len(pairs) == 0:
        raise ValueError("there is no relation from which to estimate q; give at least one pair.")
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    said_together = np.arange(len(pairs)) < len(must)
    # [lu2007, sect. 2.4.2]
    return float(np.mean(together != said_together))
