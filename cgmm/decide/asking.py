"""Choose pairs of points to ask about, and fit a mixture to the answers.

Pairs can be chosen by expected information. Given whether z_i = z_j, the answer about i and j is
independent of all other assignments. So its expected information depends only on p(z_i = z_j),
which :func:`cgmm.diagnose.pair_probabilities` computes exactly, and on the error rates of answers.

Pairs can also be chosen by distance alone, without a model. A *neighbourhood* is a set of points
known to belong to one class; no two neighbourhoods belong to the same class. The phase *explore*
asks about the point farthest from all neighbourhoods until there are K of them. The phase
*consolidate* then draws points at random [Basu et al.], or takes the farthest points
[Mallapragada et al.], and compares each with the neighbourhoods, nearest centroid first.

Answers enter a fit as data, by the joint likelihood of points and answers. The choice of pairs may
depend on the points and on earlier answers in any way: given the points, an answer depends only on
the true assignments, so the choice of pairs contributes a factor that does not depend on θ. The
remaining factor is p(X, answers | θ), which needs no normaliser. Conditioning on the answers, by
p(X | answers, θ), is correct only if the pairs were chosen without looking at the points.
Chapters 8 and 15 explain this.

=======  ======================================================================
p        p(z_i = z_j | points, relations), e.g. 0.9
S        the answer, "together" or "apart"
α, β     error rates p("apart" | z_i = z_j) and p("together" | z_i ≠ z_j)
h(p)     entropy of a Bernoulli variable with probability p, in nats
x, g     index of a point to ask about, and number of a neighbourhood, e.g. 0
q_e      error rate of answer e; its log-weight is ±logit(1 - q_e)
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
    """Return the mutual information between the answer about each pair and all assignments.

    Parameters
    ----------
    together : (P,) array_like
        p(z_i = z_j), from :func:`cgmm.diagnose.pair_probabilities`.
    false_apart, false_together : float, default=0
        α and β, the error rates of answers: how often the answer is "apart" for points that belong
        together, and "together" for points that do not; :func:`error_rates` estimates them.

    Returns
    -------
    (P,) array
        I(S; z) in nats, from 0 to log 2.

    Raises
    ------
    ValueError
        If an argument has a value below 0 or above 1.

    Notes
    -----
    ``I(S; z) = h(p(S)) - p h(α) - (1 - p) h(β)``, since S is independent of z given whether
    z_i = z_j. If α = β, the most informative pairs are those with p nearest ½, whatever the error
    rate: *uncertainty sampling*, ``values=-abs(together - 0.5)``, chooses the same pairs. If α ≠ β,
    another p is best. The information is an expectation under the model, so it is wrong if the
    model is wrong.

    If pairs were chosen by looking at the points, the choice itself is not evidence about θ.
    :func:`fit_answers` therefore takes the answers as data instead of conditioning on them.

    Examples
    --------
    >>> answer_information([0.5, 0.9, 1.0]).round(4)
    array([0.6931, 0.3251, 0.    ])
    >>> answer_information([0.5, 0.9, 1.0], false_apart=0.2, false_together=0.2).round(4)
    array([0.1927, 0.0727, 0.    ])
    """
    p = check_probability("together", together)
    alpha = check_probability("false_apart", false_apart)
    beta = check_probability("false_together", false_together)
    p_together = p * (1 - alpha) + (1 - p) * beta
    noise_entropy = p * _compute_entropy(alpha) + (1 - p) * _compute_entropy(beta)
    information = _compute_entropy(p_together) - noise_entropy
    # Rounding errors may make the result negative where the information is zero.
    return np.asarray(np.maximum(information, 0.0))


def choose_pairs(pairs: ArrayLike, values: ArrayLike, n_pairs: int, groups: ArrayLike) -> IntArray:
    """Choose the most valuable pairs for a batch in which each group occurs at most once.

    Parameters
    ----------
    pairs : (P, 2) int array_like
        Candidates: pairs of points.
    values : (P,) array_like
        Value of each pair: :func:`answer_information`, or ``rng.random(P)`` for random pairs. Pairs
        of value 0 or less are not chosen.
    n_pairs : int
        Number of pairs in the batch.
    groups : (N,) int array_like
        The group of each point, from :func:`cgmm.network.related_groups`: points that relations
        connect are in the same group.

    Returns
    -------
    (n,) int array
        Row numbers in ``pairs``, by decreasing value; n is less than ``n_pairs`` if no other pair
        has a positive value and unused groups.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is NaN, or ``n_pairs`` is not positive.

    Notes
    -----
    Given θ, points of different connected components of the network are independent. Therefore the
    answers of such a batch are independent too, and their joint information is the sum of the
    information of each answer, without redundancy. The greedy algorithm, which always takes the
    best of the remaining pairs, reaches at least half of the largest possible sum. Smaller batches
    with a new fit after each give more information per answer.

    Korte and Hausmann (1978), An analysis of the greedy heuristic for independence systems.

    Examples
    --------
    The second best pair shares a point with the best:

    >>> choose_pairs([[0, 1], [1, 2], [2, 3]], [0.6, 0.5, 0.2], 2, groups=[0, 1, 2, 3])
    array([0, 2])
    """
    group = check_labels("groups", groups, least=0)
    ends = group[check_pairs("pairs", pairs, len(group))]
    remaining = np.array(values, dtype=float)
    if remaining.shape != (len(ends),) or np.isnan(remaining).any():
        raise ValueError(
            f"values have the shape {remaining.shape}, {int(np.isnan(remaining).sum())} of them "
            f"NaN; there must be a number for each of {len(ends)} pairs."
        )
    check_integer("n_pairs", n_pairs, 1)
    remaining[remaining <= 0] = -np.inf
    chosen = list[int]()
    while len(chosen) < n_pairs and remaining.max(initial=-np.inf) > -np.inf:
        chosen.append(int(remaining.argmax()))
        remaining[np.isin(ends, ends[chosen[-1]]).any(axis=1)] = -np.inf
    return np.array(chosen, dtype=np.intp)


def _compute_entropy(p: FloatArray) -> FloatArray:
    """Return the entropy h(p) of a Bernoulli variable, in nats."""
    return np.asarray(entr(p) + entr(1 - p))


def check_probability(name: str, value: ArrayLike) -> FloatArray:
    """Return a value as an array, or raise an error if a number is below 0 or above 1."""
    p = np.asarray(value, dtype=float)
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        raise ValueError(
            f"{name} has {p[wrong].flat[0]:g}, which is no probability; give numbers from 0 to 1."
        )
    return p


# ---------------------------------------------------------------------------- by distance alone


class Asked(NamedTuple):
    """Answers of ``farthest_first``, and the neighbourhoods of points that follow from them."""

    answers: IntArray
    """(P, 3) rows i, j, said: 1 for "together", 0 for "apart"; in the order of asking."""
    neighbourhoods: IntArray
    """(N,) neighbourhood of each point, numbered from 0 in the order of asking; -1 if unknown."""


def farthest_first(
    X: ArrayLike,
    ask: Callable[[int, int], bool],
    n_answers: int,
    n_neighbourhoods: int,
    *,
    then: str = "random",
    random_state: Seed = None,
) -> Asked:
    """Find a point of each class by asking about the points farthest from all known points.

    Parameters
    ----------
    X : (N, D) array_like
        The points. Their Euclidean distances should be meaningful.
    ask : callable
        Function of two row numbers that returns True if the points belong together.
    n_answers : int
        Largest number of questions.
    n_neighbourhoods : int
        K, the number of classes. Once K neighbourhoods are known, a point that does not belong to
        K - 1 of them belongs to the remaining one, without a question.
    then : {"random", "min_max"}, default="random"
        Points to ask about once K neighbourhoods are known: random points, or the farthest points
        as before.
    random_state : int, RandomState, Generator or None, default=None
        Seed for the first point and for random points.

    Returns
    -------
    Asked
        At most ``n_answers`` answers, fewer if all points are known; and the neighbourhoods. If
        all answers are right, ``neighbourhoods`` can be used as labels: ``fit(X, labels=...)``.

    Raises
    ------
    ValueError
        If ``X`` is no finite table, a number is not positive, or ``then`` is unknown.

    Notes
    -----
    If distances between classes are larger than distances within classes, K (K - 1) / 2 questions
    find K neighbourhoods. The rule min-max takes the point whose largest similarity to known points
    is smallest; if similarity decreases with distance, this is the farthest point.

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
    neighbourhood, answers = np.full(len(points), -1), list[tuple[int, int, bool]]()
    # This is the distance of each point from the nearest known point.
    distance = np.full(len(points), np.inf)
    x, g = int(rng.integers(len(points))), 0
    while g >= 0:
        neighbourhood[x] = g
        distance = np.minimum(distance, np.linalg.norm(points - points[x], axis=1))
        unknown = np.flatnonzero(neighbourhood == -1)
        if len(answers) == n_answers or len(unknown) == 0:
            break
        if neighbourhood.max() + 1 < n_neighbourhoods or then == "min_max":
            x = int(unknown[distance[unknown].argmax()])
        else:
            x = int(rng.choice(unknown))
        g, new_answers = _find_neighbourhood(
            points, neighbourhood, x, ask, n_neighbourhoods, n_answers - len(answers)
        )
        answers += new_answers
    return Asked(np.array(answers, dtype=np.intp).reshape(-1, 3), neighbourhood)


def _find_neighbourhood(
    X: FloatArray, neighbourhood: IntArray, x: int, ask: Callable[[int, int], bool], K: int,
    max_answers: int,
) -> tuple[int, list[tuple[int, int, bool]]]:  # fmt: skip
    """Ask for a point's neighbourhood; return it, or -1 after ``max_answers``, and the answers."""
    n_known, answers = int(neighbourhood.max()) + 1, list[tuple[int, int, bool]]()
    centroids = np.array([X[neighbourhood == g].mean(axis=0) for g in range(n_known)])
    for g in np.linalg.norm(centroids - X[x], axis=1).argsort(kind="stable"):
        if len(answers) == K - 1:
            # The point does not belong to K - 1 of K classes, so it belongs to this one.
            return int(g), answers
        if len(answers) == max_answers:
            return -1, answers
        members = np.flatnonzero(neighbourhood == g)
        nearest = int(members[np.linalg.norm(X[members] - X[x], axis=1).argmin()])
        answers.append((x, nearest, bool(ask(x, nearest))))
        if answers[-1][2]:
            return int(g), answers
    return n_known, answers


# ---------------------------------------------------------------------------- answers as data


def joint(model: Mixture) -> Mixture:
    """Return a copy of a mixture that maximises the joint likelihood of points and relations.

    Parameters
    ----------
    model : ConstrainedGaussianMixture or another mixture
        The mixture, which is not changed. Its parameter ``weights`` must be "auto" or "ignore".

    Returns
    -------
    model
        A copy that is not fitted, with ``weights="ignore"``. It takes relations as data instead of
        conditioning on them.

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
            f"{type(model).__name__} is no mixture, so answers have no likelihood under it; use "
            "cgmm.ConstrainedGaussianMixture(2), or a mixture of another family."
        )
    if model.weights not in ("auto", "ignore"):
        raise ValueError(
            f"weights={model.weights!r} conditions on the answers, as if their pairs had been "
            "chosen without looking at the points; answers to questions need the joint "
            "likelihood: set_params(weights='ignore')."
        )
    return type(model)(**model.get_params(deep=False) | {"weights": "ignore"})


def fit_answers(
    model: Mixture, X: ArrayLike, answers: ArrayLike, *, error_rate: ArrayLike, **known: Any
) -> Mixture:
    """Fit a mixture to points and to answers about pairs, however the pairs were chosen.

    Parameters
    ----------
    model : ConstrainedGaussianMixture or another mixture
        The mixture, with ``weights`` "auto" or "ignore", as for :func:`joint`.
    X : (N, D) array_like
        The points.
    answers : (P, 3) array_like
        Rows ``i, j, said``: ``said`` is 1 for "together" and 0 for "apart". May be empty.
    error_rate : float or (P,) array_like
        q_e, the error rate of answers; an answer with the error rate ½ has no effect.
    **known
        ``labels``, ``must_link``, ``cannot_link``, as in ``fit`` of the mixture. These relations
        are taken as data, too.

    Returns
    -------
    model
        A fitted copy.

    Raises
    ------
    ValueError
        If an error rate is no probability, or as in :func:`joint` and ``fit``.

    Notes
    -----
    The answer "together" is more frequent for neighbouring points than for random pairs. A fit that
    conditions on the answers treats the pairs as drawn at random, so it explains the excess by
    weights π that are too equal. A fit that takes the answers as data does not have this bias.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = np.array([[-3.0], [-2.0], [2.0], [2.5], [3.0], [3.5]])
    >>> model = ConstrainedGaussianMixture(2, random_state=0)
    >>> fitted = fit_answers(model, X, [[0, 1, 1], [1, 2, 0]], error_rate=0.05)
    >>> np.sort(fitted.weights_).round(2)
    array([0.33, 0.67])
    """
    certainty = 1 - check_probability("error_rate", error_rate)
    preferences = preferences_from_answers(answers, certainty)
    return joint(model).fit(X, preferences=preferences, **known)
