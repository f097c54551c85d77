"""What to ask next: pairs by what their answer tells, and batches that do not ask twice.

An answer tells of the assignments only what it tells of its own pair: given whether z_i = z_j it is
independent of the rest. So what it is expected to tell follows from p(z_i = z_j), which
:func:`cgmm.diagnose.pair_probabilities` gives exactly, and from how often answers are wrong.

Or ask by distance alone, without a model. A *neighbourhood* is a set of points known to belong
together; all neighbourhoods are known to be apart. *Explore* asks of the point farthest from all of
them until there are K; *consolidate* goes on with points drawn at random [Basu et al.], or again
with the farthest [Mallapragada et al.], each asked beside the nearest centroids first.

And what to do with the answers: they enter a fit as data, by the likelihood of points and answers
together. Which pairs were asked may depend on the points in any way, and on the answers before:
given the points, what is said depends on the truth alone, so that how pairs were chosen is a factor
without θ. What is left is p(X, answers | θ), which has no normaliser. To take the same answers for
a condition, p(X | answers, θ), is right only for pairs that were drawn without a look at the
points. Chapters 8 and 15.

=======  ======================================================================
p        p(z_i = z_j | everything known)
S        the answer, "together" or "apart"
α, β     p("apart" | z_i = z_j), p("together" | z_i ≠ z_j)
h(p)     entropy of a coin, in nats
x, g     the point that is asked of, and a neighbourhood, of K looked for
q_e      how often an answer is wrong; its log-weight is ±logit(1 - q_e)
=======  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr
from sklearn.utils import check_array

from cgmm.given import explain_missing
from cgmm.numerics import (
    FloatArray,
    IntArray,
    Seed,
    check_integer,
    check_labels,
    check_pairs,
    generator,
)
from cgmm.scenarios.answers import preferences_from_answers

Mixture = TypeVar("Mixture", bound=Any)


def answer_information(
    together: ArrayLike, *, false_apart: float = 0.0, false_together: float = 0.0
) -> FloatArray:
    """What the answer on a pair is expected to tell of all assignments: mutual information.

    Parameters
    ----------
    together : (P,) array_like
        p(z_i = z_j), as of :func:`cgmm.diagnose.pair_probabilities`.
    false_apart, false_together : float, default=0
        α and β, how often whoever is asked parts what belongs together and joins what does not;
        :func:`error_rates` estimates them.

    Returns
    -------
    (P,) array
        I(S; z) in nats, from 0 to log 2.

    Raises
    ------
    ValueError
        If a number is no probability.

    Notes
    -----
    ``I(S; z) = h(p(S)) - p h(α) - (1 - p) h(β)``, since S is independent of z given whether
    z_i = z_j. Where α = β the most informative pairs are those with p nearest ½, whatever the rate:
    *uncertainty sampling* asks the same, ``values=-abs(together - 0.5)``. Where they differ the
    best p is another. Information is what the model expects: where the model is wrong, so is it.

    Pairs that were chosen by looking at the points say nothing of how pairs were drawn:
    :func:`fit_answers` takes their answers as data, and not as a condition.

    Examples
    --------
    >>> answer_information([0.5, 0.9, 1.0]).round(4)
    array([0.6931, 0.3251, 0.    ])
    >>> answer_information([0.5, 0.9, 1.0], false_apart=0.2, false_together=0.2).round(4)
    array([0.1927, 0.0727, 0.    ])
    """
    p = probability("together", together)
    alpha = probability("false_apart", false_apart)
    beta = probability("false_together", false_together)
    says = p * (1 - alpha) + (1 - p) * beta
    gained = _entropy(says) - p * _entropy(alpha) - (1 - p) * _entropy(beta)
    # What tells nothing may come out a rounding error below zero.
    return np.asarray(np.maximum(gained, 0.0))


def choose_pairs(pairs: ArrayLike, values: ArrayLike, n_pairs: int, groups: ArrayLike) -> IntArray:
    """A batch of pairs to ask: the most valuable, no two of which speak of the same group.

    Parameters
    ----------
    pairs : (P, 2) int array_like
        Candidates, pairs of points.
    values : (P,) array_like
        What each is worth: :func:`answer_information`, or ``rng.random(P)`` for random pairs. What
        is not worth more than 0 is not asked.
    n_pairs : int
        How many to ask at once.
    groups : (N,) int array_like
        The group of each point: those that relations tie have one, which
        :func:`cgmm.network.related_groups` finds.

    Returns
    -------
    (n,) int array
        Rows of ``pairs``, the best first; n is below ``n_pairs`` where no more can be had.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is NaN, or ``n_pairs`` is not positive.

    Notes
    -----
    Given θ, points of different components of the network are independent. So are the answers of
    such a batch, and the information of all of them is the sum of theirs: nothing is asked twice.
    The best pair first, then the best of those left, comes to half of the best such sum at
    least; a smaller batch that is asked and learnt from more often gets more.

    Korte and Hausmann (1978), An analysis of the greedy heuristic for independence systems.

    Examples
    --------
    The second best pair shares a point with the best:

    >>> choose_pairs([[0, 1], [1, 2], [2, 3]], [0.6, 0.5, 0.2], 2, groups=[0, 1, 2, 3])
    array([0, 2])
    """
    group = check_labels("groups", groups, least=0)
    ends = group[check_pairs("pairs", pairs, len(group))]
    left = np.array(values, dtype=float)
    if left.shape != (len(ends),) or np.isnan(left).any():
        raise ValueError(
            f"values have the shape {left.shape}, {int(np.isnan(left).sum())} of them NaN; there "
            f"must be a number for each of {len(ends)} pairs."
        )
    check_integer("n_pairs", n_pairs, 1)
    left[left <= 0] = -np.inf
    chosen = list[int]()
    while len(chosen) < n_pairs and left.max(initial=-np.inf) > -np.inf:
        chosen.append(int(left.argmax()))
        left[np.isin(ends, ends[chosen[-1]]).any(axis=1)] = -np.inf
    return np.array(chosen, dtype=np.intp)


def _entropy(p: FloatArray) -> FloatArray:
    """h(p)."""
    return np.asarray(entr(p) + entr(1 - p))


def probability(name: str, value: ArrayLike) -> FloatArray:
    """Numbers from 0 to 1, or an error that names what is none."""
    p = np.asarray(value, dtype=float)
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        raise ValueError(
            f"{name} has {p[wrong].flat[0]:g}, which is no probability; give numbers from 0 to 1."
        )
    return p


# ---------------------------------------------------------------------------- by distance alone


class Asked(NamedTuple):
    """What was asked and what follows from it."""

    answers: IntArray
    """(P, 3) rows i, j, said: 1 if "together", 0 if "apart"; in the order of asking."""
    neighbourhoods: IntArray
    """(N,) the neighbourhood of each point, from 0 as they were found, -1 where not known."""


def farthest_first(
    X: ArrayLike,
    ask: Callable[[int, int], bool],
    n_answers: int,
    n_neighbourhoods: int,
    *,
    then: str = "random",
    random_state: Seed = None,
) -> Asked:
    """Ask of the points farthest from what is known, until there is a point of each class.

    Parameters
    ----------
    X : (N, D) array_like
        The points, in a space whose Euclidean distances mean something.
    ask : callable
        From two row numbers to whether the points belong together.
    n_answers : int
        How many questions may be asked.
    n_neighbourhoods : int
        K, the number of classes. When there are as many, a point apart from all but one is known
        to be of that one, and is not asked about.
    then : {"random", "min_max"}, default="random"
        Of which points to ask after that: at random, or still the farthest.
    random_state : int, RandomState, Generator or None, default=None
        The first point, and those at random.

    Returns
    -------
    Asked
        Answers, at most ``n_answers``, fewer where all points are known; and neighbourhoods.
        ``neighbourhoods`` are labels for ``fit(X, labels=...)`` where answers are certain.

    Raises
    ------
    ValueError
        If ``X`` is no finite table, a number is not positive, or ``then`` is unknown.

    Notes
    -----
    Where classes are farther from each other than they are wide, K neighbourhoods are found by
    K (K - 1) / 2 questions. The rule min-max takes the point whose largest similarity to the known
    ones is least; for a similarity that falls with distance it is the farthest one.

    Basu, Banerjee and Mooney (2004), Active semi-supervision for pairwise constrained clustering,
    algorithms 2 and 3. Mallapragada, Jin and Jain (2008), Active query selection for
    semi-supervised clustering.

    Examples
    --------
    >>> y = [0, 0, 1, 1]
    >>> X = [[0.0], [1.0], [5.0], [6.0]]
    >>> asked = farthest_first(X, lambda i, j: y[i] == y[j], 2, 2, random_state=0)
    >>> asked.answers.tolist(), asked.neighbourhoods.tolist()
    ([[0, 3, 0], [2, 3, 1]], [1, -1, 0, 0])
    """
    with explain_missing(X):
        points = check_array(X, dtype=np.float64, input_name="X")
    check_integer("n_answers", n_answers, 1)
    check_integer("n_neighbourhoods", n_neighbourhoods, 1)
    if then not in ("random", "min_max"):
        raise ValueError(f"then is {then!r}; it must be one of 'random', 'min_max'.")
    rng = generator(random_state)
    of, answers = np.full(len(points), -1), list[tuple[int, int, bool]]()
    # To the nearest point that is known
    distance = np.full(len(points), np.inf)
    x, g = int(rng.integers(len(points))), 0
    while g >= 0:
        of[x] = g
        distance = np.minimum(distance, np.linalg.norm(points - points[x], axis=1))
        unknown = np.flatnonzero(of == -1)
        if len(answers) == n_answers or len(unknown) == 0:
            break
        if of.max() + 1 < n_neighbourhoods or then == "min_max":
            x = int(unknown[distance[unknown].argmax()])
        else:
            x = int(rng.choice(unknown))
        g, told = _settle(points, of, x, ask, n_neighbourhoods, n_answers - len(answers))
        answers += told
    return Asked(np.array(answers, dtype=np.intp).reshape(-1, 3), of)


def _settle(
    X: FloatArray, of: IntArray, x: int, ask: Callable[[int, int], bool], K: int, n_left: int
) -> tuple[int, list[tuple[int, int, bool]]]:
    """The neighbourhood of a point, -1 if questions ran out, and what was asked, nearest first."""
    n_found, told = int(of.max()) + 1, list[tuple[int, int, bool]]()
    centroids = np.array([X[of == g].mean(axis=0) for g in range(n_found)])
    for g in np.linalg.norm(centroids - X[x], axis=1).argsort(kind="stable"):
        if len(told) == K - 1:
            # It is of one of K classes, and not of the others.
            return int(g), told
        if len(told) == n_left:
            return -1, told
        members = np.flatnonzero(of == g)
        nearest = int(members[np.linalg.norm(X[members] - X[x], axis=1).argmin()])
        told.append((x, nearest, bool(ask(x, nearest))))
        if told[-1][2]:
            return int(g), told
    return n_found, told


# ---------------------------------------------------------------------------- answers as data


def joint(model: Mixture) -> Mixture:
    """The same mixture, told to take relations for answers: data, and no condition.

    Parameters
    ----------
    model : ConstrainedGaussianMixture or another mixture
        It is left as it is. Its ``weights`` are "auto" or "ignore".

    Returns
    -------
    model
        A copy, not fitted, with ``weights="ignore"``.

    Raises
    ------
    ValueError
        If ``weights`` asks for a condition, or there are none: the estimator is no mixture.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> joint(ConstrainedGaussianMixture(2)).weights
    'ignore'
    """
    if not hasattr(model, "weights"):
        raise ValueError(
            f"{type(model).__name__} is no mixture, so that answers have no likelihood: ask "
            "cgmm.ConstrainedGaussianMixture(2), or a mixture of another family."
        )
    if model.weights not in ("auto", "ignore"):
        raise ValueError(
            f"weights={model.weights!r} takes answers for a condition, as if their pairs had been "
            "drawn without a look at the points; answers to questions enter by the joint "
            "likelihood: set_params(weights='ignore')."
        )
    return type(model)(**model.get_params(deep=False) | {"weights": "ignore"})


def fit_answers(
    model: Mixture, X: ArrayLike, answers: ArrayLike, *, error_rate: ArrayLike, **known: Any
) -> Mixture:
    """Fit a mixture to points and to answers, however their pairs were chosen.

    Parameters
    ----------
    model : ConstrainedGaussianMixture or another mixture
        As :func:`joint` takes it.
    X : (N, D) array_like
        The points.
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart"; none is no answer.
    error_rate : float or (P,) array_like
        q_e, how often such an answer is wrong: ½ says nothing.
    **known
        ``labels``, ``must_link``, ``cannot_link``, as ``fit`` takes them. These relations, too, are
        data then, and no condition.

    Returns
    -------
    model
        A copy, fitted.

    Raises
    ------
    ValueError
        If a rate is no probability, or as :func:`joint` and ``fit``.

    Notes
    -----
    Whoever asks of neighbours hears "together" more often than chance has it. As a condition that
    says that pairs were drawn until they were alike, and holds against a large component what it
    is: weights come out too even. As data it says nothing of the kind.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = np.array([[-3.0], [-2.0], [2.0], [2.5], [3.0], [3.5]])
    >>> model = ConstrainedGaussianMixture(2, random_state=0)
    >>> fitted = fit_answers(model, X, [[0, 1, 1], [1, 2, 0]], error_rate=0.05)
    >>> np.sort(fitted.weights_).round(2)
    array([0.33, 0.67])
    """
    soft = preferences_from_answers(answers, 1 - probability("error_rate", error_rate))
    return joint(model).fit(X, preferences=soft, **known)
