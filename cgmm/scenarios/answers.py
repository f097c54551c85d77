"""Answers that may be wrong, and conversions between answers, pairs and preferences.

Pairs are certain relations, preferences are relations with log-odds, and answers are the replies of
a person. Functions like ``answers_from_pairs`` convert each of these formats into the others.
Chapters 5 and 9 use them.

====  ===========================================================================
P     number of relations
q     probability that a relation is wrong; q̂ its estimate
γ     certainty of a relation, 1 - q
w     log-odds of a relation, logit γ
====  ===========================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from cgmm.given import MASKED_RELATIONS, is_text, refuse_mask
from cgmm.numerics import FloatArray, IntArray, Seed, check_labels, check_pairs, generator
from cgmm.scenarios.relations import Relations


def flip(relations: Relations, q: float, *, random_state: Seed = None) -> Relations:
    """Turn each relation into its opposite with probability q.

    Parameters
    ----------
    relations : Relations
        True relations.
    q : float
        Probability of a flip, from 0 to 0.5.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the choice of relations.

    Returns
    -------
    Relations
        The same number of relations in total; flipped ones come after the others.

    Raises
    ------
    ValueError
        If q is out of range.

    Notes
    -----
    [lu2007, sect. 5.1.4], with q = 0.15 and 0.3; the matching log-weight is that of eq. 5.1,
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
    rng = generator(random_state)
    # The masks m and c select the relations that turn into their opposite.
    m, c = rng.random(len(must)) < q, rng.random(len(cannot)) < q
    return Relations(np.concatenate([must[~m], cannot[c]]), np.concatenate([cannot[~c], must[m]]))


def preferences(
    must_link: ArrayLike | None = (),
    cannot_link: ArrayLike | None = (),
    *,
    certainty: float | ArrayLike,
) -> FloatArray:
    """Convert pairs of a given certainty to log-odds that their points belong together.

    Parameters
    ----------
    must_link, cannot_link : (P, 2), (P', 2) int array_like
        As in :func:`answers_from_pairs`.
    certainty : float or (P + P',) array_like
        As in :func:`preferences_from_answers`, must-links first.

    Returns
    -------
    (P + P', 3) array
        Rows i, j, w of :func:`preferences_from_answers`.

    Examples
    --------
    >>> preferences([[0, 1]], [[2, 3]], certainty=0.8).round(3)
    array([[ 0.   ,  1.   ,  1.386],
           [ 2.   ,  3.   , -1.386]])
    """
    return preferences_from_answers(answers_from_pairs(must_link, cannot_link), certainty)


def answers_from_pairs(
    must_link: ArrayLike | None = (), cannot_link: ArrayLike | None = ()
) -> IntArray:
    """Convert pairs to answers; the inverse of :func:`pairs_from_answers`.

    Parameters
    ----------
    must_link, cannot_link : (P, 2), (P', 2) int array_like
        Pairs of points of one class, and of two classes; either may be empty.

    Returns
    -------
    (P + P', 3) int array
        Rows ``i, j, said``: 1 for must-links, which come first, 0 for cannot-links.

    Examples
    --------
    >>> answers = answers_from_pairs([[0, 1], [4, 2]], [[2, 3]])
    >>> answers.tolist()
    [[0, 1, 1], [4, 2, 1], [2, 3, 0]]
    >>> pairs_from_answers(answers).cannot_link.tolist()
    [[2, 3]]
    """
    must, cannot = check_pairs("must_link", must_link), check_pairs("cannot_link", cannot_link)
    replies = np.repeat([1, 0], [len(must), len(cannot)])
    return np.column_stack([np.concatenate([must, cannot]), replies])


def pairs_from_answers(answers: ArrayLike) -> Relations:
    """Convert answers to pairs, as if they were certain; the inverse of :func:`answers_from_pairs`.

    Parameters
    ----------
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".

    Returns
    -------
    Relations
        ``fit(X, **pairs_from_answers(answers)._asdict())`` takes them.

    Examples
    --------
    >>> pairs_from_answers([[0, 1, 1], [2, 3, 0], [4, 2, 1]]).must_link.tolist()
    [[0, 1], [4, 2]]
    """
    rows = check_answers(answers)
    together = rows[:, 2] == 1
    return Relations(rows[together, :2], rows[~together, :2])


def preferences_from_answers(answers: ArrayLike, certainty: float | ArrayLike) -> FloatArray:
    """Convert answers to preferences; the inverse of :func:`answers_from_preferences`.

    Parameters
    ----------
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".
    certainty : float or (P,) array_like
        γ, the probability that an answer is right: one number for all, or one for each.

    Returns
    -------
    (P, 3) array
        Rows ``i, j, w`` with w = logit γ where "together" was said and -logit γ elsewhere. For
        γ = 1 these are ±inf, hard relations. ``fit(X, preferences=...)`` takes them.

    Raises
    ------
    ValueError
        If an answer is invalid, a certainty is not a probability, or their numbers differ.

    Notes
    -----
    [lu2007, eq. 2.15]; our w counts each pair once, so it is the paper's 2 W^p.

    Examples
    --------
    >>> rows = preferences_from_answers([[0, 1, 1], [2, 3, 0]], 0.9)
    >>> rows.round(3)
    array([[ 0.   ,  1.   ,  2.197],
           [ 2.   ,  3.   , -2.197]])
    >>> answers, certainty = answers_from_preferences(rows)
    >>> answers.tolist(), certainty.round(3).tolist()
    ([[0, 1, 1], [2, 3, 0]], [0.9, 0.9])
    """
    rows, log_odds = check_answers(answers), weight_from_certainty(certainty)
    if np.ndim(log_odds) and np.shape(log_odds) != (len(rows),):
        raise ValueError(
            f"certainty has shape {np.shape(log_odds)} for {len(rows)} answers; give one number "
            "for all, or one for each, those of must-links first."
        )
    # [lu2007, eq. 2.15]
    # [lu2007, eqs. 5.1 and B.3], with q = 1 - γ and w = 2 W^p
    w = np.where(rows[:, 2] == 1, 1, -1) * log_odds
    return np.column_stack([rows[:, :2], w])


def answers_from_preferences(preferences: ArrayLike) -> tuple[IntArray, FloatArray]:
    """Convert preferences to answers and their certainties.

    This is the inverse of :func:`preferences_from_answers`.

    Parameters
    ----------
    preferences : (P, 3) array_like
        Rows ``i, j, w``.

    Returns
    -------
    answers : (P, 3) int array
        Rows ``i, j, said``: 1 where w > 0, else 0.
    certainty : (P,) array
        γ of each answer, ½ or more.

    Examples
    --------
    >>> answers_from_preferences([[2, 3, -np.inf]])
    (array([[2, 3, 0]]), array([1.]))
    """
    rows = np.asarray(preferences, dtype=float).reshape(-1, 3)
    pairs, w = check_pairs("preferences", rows[:, :2]), rows[:, 2]
    return np.column_stack([pairs, w > 0]), np.asarray(certainty_from_weight(np.abs(w)))


def check_answers(answers: ArrayLike, n_points: int | None = None) -> IntArray:
    """Return answers as integers i, j, said, or raise an error that names an invalid one.

    Parameters
    ----------
    answers : (P, 3) array_like
        Rows i, j, said. An empty argument means that there are no answers.
    n_points : int, default=None
        Number of points, N; None: indices have no upper limit.

    Returns
    -------
    (P, 3) int array
        The same rows as integers.

    Examples
    --------
    >>> check_answers([[0.0, 2.0, True]]).tolist()
    [[0, 2, 1]]
    """
    refuse_mask("answers", answers, MASKED_RELATIONS.format("answers"))
    try:
        rows = np.asarray(answers, dtype=float)
    except (ValueError, TypeError):
        raise ValueError(_describe_invalid_answer(answers)) from None
    rows = rows.reshape(-1, 3) if rows.size == 0 else rows
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ValueError(
            f"answers has shape {rows.shape}; it must be (P, 3), rows i, j, said: "
            "answers=[[0, 1, 1]] says that points 0 and 1 belong together."
        )
    pairs, replies = check_pairs("answers", rows[:, :2], n_points), rows[:, 2]
    wrong = np.flatnonzero(~np.isin(replies, (0, 1)))
    if len(wrong):
        raise ValueError(
            f'answers[{wrong[0]}] says {replies[wrong[0]]:g}; it must be 1, "together", or 0, '
            '"apart". Log-odds, or 1 and -1, are converted by '
            "cgmm.scenarios.answers_from_preferences(rows)[0]."
        )
    return np.column_stack([pairs, replies == 1])


def _describe_invalid_answer(answers: ArrayLike) -> str:
    """Return an error message about the first answer that does not consist of three numbers."""
    table: Any = getattr(answers, "to_numpy", lambda: answers)()
    for row, answer in enumerate(table):
        if np.shape(answer) != (3,):
            return f"answers[{row}] is {answer!r}; it must be three numbers: i, j, said."
        *pair, reply = np.asarray(answer, dtype=object).tolist()
        if any(is_text(point) for point in pair):
            return (
                f"answers[{row}] is about {pair[0]!r} and {pair[1]!r}; it must name points by row "
                "numbers: cgmm.network.positions(answers, names).pairs, where names holds the name "
                "of each row, as X.index does."
            )
        if is_text(reply):
            return (
                f'answers[{row}] says {reply!r}; it must be 1, "together", or 0, "apart": '
                f"answers=[(i, j, said == {reply!r}) for i, j, said in np.asarray(answers, "
                f"object)], if {reply!r} means together."
            )
    return "answers must be (P, 3) numbers, rows of i, j, said."


def weight_from_certainty(certainty: float | ArrayLike) -> float | FloatArray:
    """Return the log-odds w = logit γ of a relation that is right with probability γ.

    Parameters
    ----------
    certainty : float or array_like
        γ in [0, 1]. Below 0.5 the weight is negative: the opposite relation is the likelier one.

    Returns
    -------
    float or array
        w; infinite for γ = 1, a hard relation. An edge adds w to the log-potential if its two nodes
        have the same state.

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
    """Return the certainty γ = 1 / (1 + e^-w); the inverse of weight_from_certainty.

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
    """Estimate q by maximum likelihood, as the share of relations that true classes break.

    Parameters
    ----------
    y : (N,) int array_like
        True classes of an example, such as a segmented image.
    must_link, cannot_link : (P, 2), (P', 2) int array_like
        Relations given by a person, or by a rule such as :func:`grid_neighbours`.

    Returns
    -------
    float
        q̂ in [0, 1]. It is zero if no relation is broken. The certainty ``1 - q`` then makes
        relations hard, which a small example hardly justifies.

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
    says_together = np.arange(len(pairs)) < len(must)
    # [lu2007, sect. 2.4.2]
    return float(np.mean(together != says_together))
