"""Choose the next questions, and fit a mixture to their answers.

Questions can be chosen by information. An answer is informative about the assignments only through
its own pair: given whether z_i = z_j, it is independent of the rest. So its expected information
follows from p(z_i = z_j), which :func:`cgmm.diagnose.pair_probabilities` computes exactly, and from
the error rates of answers.

They can also be chosen by distance alone, without a model. A *neighbourhood* is a set of points
known to belong together; all neighbourhoods are known to be apart. *Explore* asks about the point
farthest from all of them until there are K. *Consolidate* continues with points drawn at random
[Basu et al.], or with the farthest ones [Mallapragada et al.], and compares each with the nearest
centroids first.

Answers enter a fit as data, by the likelihood of points and answers together. The choice of pairs
may depend on the points and on earlier answers in any way: given the points, an answer depends only
on the truth, so the choice contributes a factor without θ. The remaining factor is
p(X, answers | θ), which has no normaliser. To condition on the same answers, p(X | answers, θ), is
right only if pairs were drawn without looking at the points. Chapters 8 and 15 explain this.

=======  ======================================================================
p        p(z_i = z_j | everything known)
S        the answer, "together" or "apart"
α, β     p("apart" | z_i = z_j), p("together" | z_i ≠ z_j)
h(p)     entropy of a coin, in nats
x, g     the point that is asked about, and one of K neighbourhoods
q_e      error rate of an answer; its log-weight is ±logit(1 - q_e)
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
    """Return the mutual information between the answer about a pair and all assignments.

    Parameters
    ----------
    together : (P,) array_like
        p(z_i = z_j), from :func:`cgmm.diagnose.pair_probabilities`.
    false_apart, false_together : float, default=0
        α and β, the rates of "apart" for points that belong together and of "together" for other
        points; :func:`error_rates` estimates them.

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
    z_i = z_j. If α = β, the most informative pairs are those with p nearest ½, whatever the rate:
    *uncertainty sampling* chooses the same, ``values=-abs(together - 0.5)``. If α ≠ β, another p is
    best. Information is an expectation under the model, and wrong if the model is.

    If pairs were chosen by looking at the points, their choice is not evidence about θ:
    :func:`fit_answers` takes their answers as data instead of conditioning on them.

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
    p_together = p * (1 - alpha) + (1 - p) * beta
    gained = _entropy(p_together) - p * _entropy(alpha) - (1 - p) * _entropy(beta)
    # Rounding may make an information of zero negative.
    return np.asarray(np.maximum(gained, 0.0))


def choose_pairs(pairs: ArrayLike, values: ArrayLike, n_pairs: int, groups: ArrayLike) -> IntArray:
    """Choose a batch of the most valuable pairs, no two of which involve the same group.

    Parameters
    ----------
    pairs : (P, 2) int array_like
        Candidates, pairs of points.
    values : (P,) array_like
        Value of each pair: :func:`answer_information`, or ``rng.random(P)`` for random pairs. Pairs
        of value 0 or less are not chosen.
    n_pairs : int
        Size of the batch.
    groups : (N,) int array_like
        The group of each point: points connected by relations share one, as computed by
        :func:`cgmm.network.related_groups`.

    Returns
    -------
    (n,) int array
        Rows of ``pairs``, the best first; n is below ``n_pairs`` if there are no more such pairs.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is NaN, or ``n_pairs`` is not positive.

    Notes
    -----
    Given θ, points of different components of the network are independent. So are the answers of
    such a batch, and their information is the sum of the single ones, without redundancy. The
    greedy choice, always the best of the remaining pairs, reaches at least half of the largest
    possible sum. Smaller batches with a fit after each give more information per answer.

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
    """Return h(p)."""
    return np.asarray(entr(p) + entr(1 - p))


def probability(name: str, value: ArrayLike) -> FloatArray:
    """Return numbers from 0 to 1, or raise an error that names another one."""
    p = np.asarray(value, dtype=float)
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        raise ValueError(
            f"{name} has {p[wrong].flat[0]:g}, which is no probability; give numbers from 0 to 1."
        )
    return p


# ---------------------------------------------------------------------------- by distance alone


class Asked(NamedTuple):
    """Answers, and the neighbourhoods that follow from them."""

    answers: IntArray
    """(P, 3) rows i, j, said: 1 if "together", 0 if "apart"; in the order of asking."""
    neighbourhoods: IntArray
    """(N,) neighbourhood of each point, numbered from 0 as they were found; -1 if unknown."""


def farthest_first(
    X: ArrayLike,
    ask: Callable[[int, int], bool],
    n_answers: int,
    n_neighbourhoods: int,
    *,
    then: str = "random",
    random_state: Seed = None,
) -> Asked:
    """Ask about the points farthest from known ones, until there is a point of each class.

    Parameters
    ----------
    X : (N, D) array_like
        The points, in a space whose Euclidean distances mean something.
    ask : callable
        Takes two row numbers, and returns True if the points belong together.
    n_answers : int
        Largest number of questions.
    n_neighbourhoods : int
        K, the number of classes. Once K neighbourhoods are found, a point apart from all but one is
        known to belong to that one, without a question.
    then : {"random", "min_max"}, default="random"
        Points to ask about after that: random ones, or still the farthest.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the first point and of random points.

    Returns
    -------
    Asked
        At most ``n_answers`` answers, fewer if all points are known; and neighbourhoods. If
        answers are certain, ``neighbourhoods`` are labels for ``fit(X, labels=...)``.

    Raises
    ------
    ValueError
        If ``X`` is no finite table, a number is not positive, or ``then`` is unknown.

    Notes
    -----
    If classes are farther from each other than they are wide, K (K - 1) / 2 questions find K
    neighbourhoods. The rule min-max takes the point whose largest similarity to known points is
    smallest; if similarity decreases with distance, this is the farthest point.

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
    # Distances are to the nearest known point.
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
        g, asked = _find_neighbourhood(
            points, of, x, ask, n_neighbourhoods, n_answers - len(answers)
        )
        answers += asked
    return Asked(np.array(answers, dtype=np.intp).reshape(-1, 3), of)


def _find_neighbourhood(
    X: FloatArray, of: IntArray, x: int, ask: Callable[[int, int], bool], K: int, n_left: int
) -> tuple[int, list[tuple[int, int, bool]]]:
    """Return a point's neighbourhood, or -1 if no questions are left, and the answers."""
    n_found, asked = int(of.max()) + 1, list[tuple[int, int, bool]]()
    centroids = np.array([X[of == g].mean(axis=0) for g in range(n_found)])
    for g in np.linalg.norm(centroids - X[x], axis=1).argsort(kind="stable"):
        if len(asked) == K - 1:
            # The point is apart from K - 1 of K classes, so it belongs to this one.
            return int(g), asked
        if len(asked) == n_left:
            return -1, asked
        members = np.flatnonzero(of == g)
        nearest = int(members[np.linalg.norm(X[members] - X[x], axis=1).argmin()])
        asked.append((x, nearest, bool(ask(x, nearest))))
        if asked[-1][2]:
            return int(g), asked
    return n_found, asked


# ---------------------------------------------------------------------------- answers as data


def joint(model: Mixture) -> Mixture:
    """Copy a mixture so that it takes relations as data instead of conditioning on them.

    Parameters
    ----------
    model : ConstrainedGaussianMixture or another mixture
        The mixture, which is not changed. Its ``weights`` are "auto" or "ignore".

    Returns
    -------
    model
        A copy, not fitted, with ``weights="ignore"``.

    Raises
    ------
    ValueError
        If ``weights`` has another value, or if the estimator is not a mixture.

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
    """Fit a mixture to points and to answers about pairs that were chosen in any way.

    Parameters
    ----------
    model : ConstrainedGaussianMixture or another mixture
        The mixture, as for :func:`joint`.
    X : (N, D) array_like
        The points.
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart"; there may be none.
    error_rate : float or (P,) array_like
        q_e, the error rate of answers; with ½ an answer has no effect.
    **known
        ``labels``, ``must_link``, ``cannot_link``, as ``fit`` takes them. These relations, too, are
        taken as data.

    Returns
    -------
    model
        A copy, fitted.

    Raises
    ------
    ValueError
        If a rate is no probability, or as in :func:`joint` and ``fit``.

    Notes
    -----
    Questions about neighbouring points get the answer "together" more often than those about random
    pairs. A fit that conditions on the answers treats the pairs as drawn at random; it explains the
    excess by more equal weights π, which are biased. A fit to the answers as data is not.

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
