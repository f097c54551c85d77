"""Choose by answers held out: folds, log scores with their error; and what is left in doubt.

How many components, which covariances, how sure the answers: what is chosen is what gives answers
that it was not told the largest probability. Answers on points that relations tie say something of
each other (of three, two may imply the third), so they are held out together, and count together in
the error of the mean.

=======  ======================================================================
P        number of answers; e one, on points i and j
q        how often an answer is wrong; its log-weight is ±logit(1 - q)
ℓ_e      log p(what was said | X, the answers of the other folds)
g        group: points that relations tie; G groups have answers
z        assignments of all nodes; u_jk unary log-potentials, w_e log-weights
r_jk     p(z_j = k), p_e = p(z_a = z_b) of edge e, given everything
=======  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit

from cgmm.diagnose import log_odds_together
from cgmm.mixture import Parameters, node_unaries
from cgmm.network import Engine, Infer, SideInformation
from cgmm.network.side_information import contracted
from cgmm.numerics import FloatArray, IntArray, check_labels, check_pairs
from cgmm.scenarios.answers import check_answers, preferences_from_answers


class LogScore(NamedTuple):
    """A mean over held-out answers."""

    mean: float
    """(Σ_e ℓ_e) / P in nats, higher is better; a coin has -log 2."""
    standard_error: float
    """Of the mean, by groups: answers of one group may go together, groups are independent."""
    n_groups: int
    """G."""


def answer_folds(
    pairs: ArrayLike,
    groups: ArrayLike,
    n_folds: int,
    *,
    random_state: int | np.random.Generator | None = None,
) -> IntArray:
    """The fold of each answer, such that no relation leads from one fold into another.

    Parameters
    ----------
    pairs : (P, 2) int array_like
        The points that were asked about.
    groups : (N,) int array_like
        The group of each point, of *all* relations, these answers among them:
        :func:`cgmm.network.related_groups`.
    n_folds : int
        How many folds, at least two, at most as many as groups with answers.
    random_state : int, Generator or None, default=None
        Which groups of one size go together.

    Returns
    -------
    (P,) int array
        From 0 to ``n_folds - 1``. Groups with many answers first, each into the fold with the
        fewest, so that folds differ by the answers of one group at most.

    Raises
    ------
    ValueError
        If both points of a pair are not in one group, or there are fewer groups than folds.

    Examples
    --------
    The first three answers hang together, and so stay together:

    >>> from cgmm.network import related_groups
    >>> pairs = [[0, 1], [1, 2], [0, 2], [3, 4], [5, 6]]
    >>> answer_folds(pairs, related_groups(7, cannot_link=pairs), 2, random_state=0)
    array([0, 0, 0, 1, 1])
    """
    group = check_labels("groups", groups, least=0)
    of_pair = _group_of(check_pairs("pairs", pairs, len(group)), group)
    names, which, counts = np.unique(of_pair, return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise ValueError(
            "all answers hang together, by chains of relations: none can be held out without those "
            "that imply it. Choose by the evidence of fits to all of them, model.bic(), or ask "
            "about pairs of other points."
        )
    if not 2 <= n_folds <= len(names):
        raise ValueError(
            f"n_folds is {n_folds}; it must be from 2 to {len(names)}, the number of groups that "
            f"have answers, since what hangs together is held out together: n_folds={len(names)}."
        )
    rng = np.random.default_rng(random_state)
    shuffled = rng.permutation(len(names))
    fold_of, sizes = np.empty(len(names), dtype=np.intp), np.zeros(n_folds)
    for g in shuffled[np.argsort(-counts[shuffled], kind="stable")]:
        fold_of[g] = sizes.argmin()
        sizes[fold_of[g]] += counts[g]
    return np.asarray(fold_of[which])


def held_out_scores(
    X: FloatArray,
    fit: Callable[[FloatArray], Parameters],
    answers: ArrayLike,
    folds: ArrayLike,
    engine: Engine,
    *,
    error_rate: float,
    **known: Any,
) -> FloatArray:
    """The log-probability of each answer, by a fit that was not told it.

    Parameters
    ----------
    X : (N, D) array
        The points: all of them are known to each fit.
    fit : callable
        From preferences (P', 3) to θ: ``lambda rows: model.fit(X, preferences=rows).parameters_``,
        together with what is known besides.
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".
    folds : (P,) int array_like
        The fold of each answer, :func:`answer_folds`.
    engine : callable
        An exact engine, as of :data:`cgmm.inference.ENGINES`.
    error_rate : float
        q, above 0 and below 1: answers are weighted by it, and scored with it.
    **known
        What is known besides, as :meth:`cgmm.network.SideInformation.build` takes it.

    Returns
    -------
    (P,) array
        ℓ_e in nats: ``log((1 - q) p(what was said is true) + q p(it is not))``.

    Raises
    ------
    ValueError
        If answers or folds do not fit, or q is out of range.

    Examples
    --------
    Four points in two clusters, θ known; the second answer is unlikely:

    >>> from cgmm.inference import ENGINES
    >>> X = np.array([[-2.0], [-2.0], [2.0], [2.0]])
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-2.0], [2.0]]), np.ones((2, 1, 1)))
    >>> answers, folds = [[0, 1, 1], [2, 3, 0]], [0, 1]
    >>> held_out_scores(
    ...     X, lambda rows: theta, answers, folds, ENGINES["auto"], error_rate=0.1
    ... ).round(2)
    array([-0.11, -2.3 ])
    """
    require_rate(error_rate)
    rows = check_answers(answers, len(X))
    fold = check_labels("folds", folds, len(rows), least=0)
    pairs, said = rows[:, :2], rows[:, 2] == 1
    preferences = preferences_from_answers(rows, 1 - error_rate)
    scores = np.empty(len(rows))
    for out in (fold == f for f in np.unique(fold)):
        theta = fit(preferences[~out])
        side = contracted(len(X), preferences=preferences[~out], **known)
        unary, infer = node_unaries(X, theta, side), engine(side.graph)
        log_odds = log_odds_together(infer, unary, side.graph, side.node_of[pairs[out]])
        true = np.where(said[out], log_odds, -log_odds)
        scores[out] = np.logaddexp(
            np.log1p(-error_rate) + log_expit(true), np.log(error_rate) + log_expit(-true)
        )
    return scores


def log_score(scores: ArrayLike, pairs: ArrayLike, groups: ArrayLike) -> LogScore:
    """Mean of held-out log scores, and its standard error over groups.

    Parameters
    ----------
    scores : (P,) array_like
        ℓ_e of :func:`held_out_scores`, or the differences of two settings, which are compared by
        the error of the mean difference.
    pairs : (P, 2) int array_like
        The points that were asked about.
    groups : (N,) int array_like
        As in :func:`answer_folds`.

    Returns
    -------
    LogScore
        Mean, its standard error ``√(G / (G - 1) Σ_g (Σ_{e ∈ g} (ℓ_e - mean))²) / P``, and G.

    Raises
    ------
    ValueError
        If shapes do not fit, or there are fewer than two groups.

    Examples
    --------
    >>> found = log_score([-0.1, -0.5, -0.3], [[0, 1], [2, 3], [4, 5]], [0, 0, 1, 1, 2, 2])
    >>> round(found.mean, 4), round(found.standard_error, 4), found.n_groups
    (-0.3, 0.1155, 3)
    """
    values, group = np.asarray(scores, dtype=float), check_labels("groups", groups, least=0)
    of_pair = _group_of(check_pairs("pairs", pairs, len(group)), group)
    _, which = np.unique(of_pair, return_inverse=True)
    n_groups = int(which.max(initial=-1)) + 1
    if values.shape != which.shape or n_groups < 2:
        raise ValueError(
            f"scores have the shape {values.shape} for {len(which)} pairs in {n_groups} groups; "
            "there must be a score for each pair, and two groups at least to tell an error."
        )
    mean = values.mean()
    sums = np.bincount(which, values - mean)
    error = np.sqrt(n_groups / (n_groups - 1) * (sums**2).sum()) / len(values)
    return LogScore(float(mean), float(error), n_groups)


def assignment_entropy(
    X: FloatArray, parameters: Parameters, side: SideInformation, infer: Infer
) -> float:
    """Entropy of the posterior of all assignments together.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ, ``parameters_`` of a fit.
    side : SideInformation
        Everything that is known.
    infer : callable
        An exact engine applied to ``side.graph``.

    Returns
    -------
    float
        H(z | X, everything known, θ) in nats. ``bic() + 2 H`` is the criterion ICL, which holds
        classes that overlap against a fit.

    Raises
    ------
    ValueError
        If the engine reports no log-evidence.

    Notes
    -----
    ``H = log Z - Σ_jk r_jk u_jk - Σ_e w_e p_e``: one call of the engine, and the pairs that edges
    tie. Without relations it is the sum of the points' entropies; relations lower it.

    Biernacki, Celeux and Govaert (2000), Assessing a mixture model for clustering with the
    integrated completed likelihood.

    Examples
    --------
    Three points between two components, two of them certainly together: four assignments are left.

    >>> from cgmm.inference import ENGINES
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> side = SideInformation.build(3, must_link=[[0, 1]])
    >>> H = assignment_entropy(np.zeros((3, 1)), theta, side, ENGINES["auto"](side.graph))
    >>> round(float(np.exp(H)), 6)
    4.0
    """
    unary = node_unaries(X, parameters, side)
    believed, (edges, w) = infer(unary), side.graph[1:3]
    if np.isnan(believed.log_z):
        raise ValueError(
            "the engine reports no log-evidence, without which there is no entropy; ask an exact "
            "one: ENGINES['auto'](side.graph)."
        )
    r = believed.nodes
    tied = expit(log_odds_together(infer, unary, side.graph, edges))
    # What is impossible has no part in the mean.
    of_nodes = (r * np.where(r > 0, unary, 0.0)).sum()
    of_edges = (tied * np.where(tied > 0, w, 0.0)).sum()
    return float(max(believed.log_z - of_nodes - of_edges, 0.0))


def _group_of(pairs: IntArray, group: IntArray) -> IntArray:
    """The group of each pair, or an error that names one between two."""
    of_pair = group[pairs]
    across = np.flatnonzero(of_pair[:, 0] != of_pair[:, 1])
    if len(across):
        raise ValueError(
            f"pairs[{across[0]}] joins the groups {of_pair[across[0]].tolist()}; groups must be "
            "those of all relations: related_groups(N, must_link=..., cannot_link=pairs)."
        )
    return of_pair[:, 0]


def require_rate(error_rate: float) -> None:
    """Refuse a rate by which one answer that a fit holds impossible would decide over all."""
    if not 0 < error_rate < 1:
        raise ValueError(
            f"error_rate is {error_rate:g}; it must lie between 0 and 1, since one answer that a "
            "fit holds impossible would decide over all: error_rate=0.05."
        )
