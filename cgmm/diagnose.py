"""Diagnose relations: judge each relation by the points and by all other relations.

A wrong relation contradicts the fit. But it has also influenced the fit, so it must not count as
evidence for itself: its *support* is the posterior log-odds that the relation is right, *minus its
own log-weight*. The log-weight is a summand of these log-odds, so leaving out a relation needs no
second network, and one network is enough to judge all relations. Chapter 14 explains and applies
the method.

=======  ==================================================================
e, w_e   a relation between two points, and its log-weight, e.g. 2.0
s_e      +1 if w_e > 0, so the relation says "together", else -1
L_e      posterior log-odds that the two points share a component
R_e      s_e L_e, the posterior log-odds that the relation is right
S_e      ``R_e - |w_e|``, the support of the relation: log-odds without its own log-weight
=======  ==================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from cgmm.given import read_rows
from cgmm.inference import ENGINES
from cgmm.inference.pair_sums import order_by_frequency, pair_sums
from cgmm.mixture import Parameters, node_unaries
from cgmm.network import Graph, Infer, SideInformation, connected_components
from cgmm.network.side_information import contracted
from cgmm.numerics import FloatArray, IntArray, check_pairs
from cgmm.scenarios import preferences as hard_as_preferences

__all__ = [
    "Judgement", "expected_flip_rate", "judge", "log_odds_together", "pair_probabilities",
]  # fmt: skip

NEARLY_CERTAIN = 1 - 1e-11
"""Finite certainty of hard relations while they are judged, instead of 1: log-odds of 25."""


class Judgement(NamedTuple):
    """Evidence for and against each relation."""

    support: FloatArray
    """(P,) S_e, log-odds in nats that a relation is right, given everything but the relation."""
    log_odds: FloatArray
    """(P,) ``R_e = S_e + |w_e|``, log-odds in nats that a relation is right, given everything."""
    order: IntArray
    """(P,) row numbers of the relations, by increasing support."""

    @property
    def wrong(self) -> FloatArray:
        """(P,) posterior probability that a relation is wrong, 1 / (1 + exp R_e)."""
        return np.asarray(expit(-self.log_odds))


def judge(
    model: Any,
    X: Any,
    *,
    labels: ArrayLike | None = None,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
    preferences: ArrayLike | None = None,
    held_out: ArrayLike | None = None,
) -> Judgement:
    """Judge how well each relation agrees with the points and with all other relations.

    Parameters
    ----------
    model : ConstrainedGaussianMixture or another mixture
        A fitted mixture; or its parameters θ, a :class:`cgmm.mixture.Parameters`.
    X : (N, D) array_like
        The points of the fit.
    labels, must_link, cannot_link, preferences
        The side information of the fit. Its relations are judged, in this order: must-links,
        cannot-links, preferences.
    held_out : (P, 3) array_like, default=None
        Preferences that were *not* given to the fit. If given, only these are judged.

    Returns
    -------
    Judgement
        A support of -3 means that, without its own log-weight, the relation is e³ ≈ 20 times more
        likely to be wrong than right. The support is infinite if labels determine the relation.

    Raises
    ------
    ValueError
        If a row does not name two points, or a preference is not finite or zero.

    Notes
    -----
    Hard relations enter the network with log-odds of 25: nearly certain, but still finite, so the
    log-odds can be subtracted again. A relation that other hard relations imply has a support of
    about 25. A hard relation that the points contradict by more than 25 does not support others.
    Relations may contradict each other: look at the one with the least support.

    θ was fitted with the relation to be judged. A single one among many hardly changes θ; if the
    fit depends on a small number of relations, judge relations that were held out from it.

    Examples
    --------
    There are two clusters, and the second relation joins a point of one to a point of the other:

    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = np.array([[-2.0], [-1.0], [0.0], [7.0], [8.0], [9.0]])
    >>> relations = [[0, 1, 2.0], [0, 5, 2.0], [3, 4, 2.0]]
    >>> model = ConstrainedGaussianMixture(2, random_state=0).fit(X, preferences=relations)
    >>> found = judge(model, X, preferences=relations)
    >>> found.order.tolist(), found.wrong.round(3)
    ([1, 2, 0], array([0., 1., 0.]))
    """
    N, theta = len(X), getattr(model, "parameters_", model)
    if held_out is None:
        hard = hard_as_preferences(must_link, cannot_link, certainty=NEARLY_CERTAIN)
        rows = np.concatenate([hard, _check_preferences("preferences", preferences, N)])
        side = contracted(N, labels=labels, preferences=rows)
    else:
        rows = _check_preferences("held_out", held_out, N)
        side = contracted(
            N, labels=labels, must_link=must_link, cannot_link=cannot_link,
            preferences=preferences, sampling=getattr(model, "sampling", "points"),
        )  # fmt: skip
    nodes, w = side.node_of[rows[:, :2].astype(np.intp)], rows[:, 2]
    # Call the model's own method, because it encodes empty cells and categories as the fit did.
    points = model._read_new(X) if hasattr(model, "_read_new") else X
    infer, unary = ENGINES["auto"](side.graph), node_unaries(points, theta, side)
    log_odds = np.sign(w) * log_odds_together(infer, unary, side.graph, nodes)
    # Only relations of the fit are in the network, so only their log-odds include log-weights.
    support = log_odds - (np.abs(w) if held_out is None else 0.0)
    return Judgement(support, support + np.abs(w), np.argsort(support, kind="stable"))


def _check_preferences(name: str, preferences: ArrayLike | None, n_points: int) -> FloatArray:
    """Return preferences as rows i, j, w; raise an error if a log-weight is zero or not finite."""
    rows = read_rows(name, preferences, 3).astype(float)
    check_pairs(name, rows[:, :2], n_points)
    wrong = np.flatnonzero(~np.isfinite(rows[:, 2]) | (rows[:, 2] == 0))
    if len(wrong):
        raise ValueError(
            f"{name}[{wrong[0]}] has the log-odds {rows[wrong[0], 2]:g}; a preference to be judged "
            "must have finite log-odds, not zero. Hard relations are judged as must_link=[[0, 1]] "
            "or cannot_link=[[2, 3]]."
        )
    return rows


def expected_flip_rate(log_odds: ArrayLike) -> float:
    """Return the expected share of wrong relations, from their posterior log-odds.

    Parameters
    ----------
    log_odds : (P,) array_like
        R_e, the field ``log_odds`` of :func:`judge`, for at least one relation.

    Returns
    -------
    float
        The mean of ``1 / (1 + exp(R_e))``. If all relations have the same certainty γ, the result
        equals 1 - γ where γ maximises the joint log-evidence of points and relations. To find this
        γ, replace 1 - γ by the result, fit again, and repeat.

    Raises
    ------
    ValueError
        If there is no relation.

    Notes
    -----
    [lu2007, sect. 6] leaves open how to estimate the error rate of relations without labelled
    points, which :func:`cgmm.scenarios.estimate_flip_rate` needs. This function needs none.

    Examples
    --------
    >>> expected_flip_rate([0.0, np.inf])
    0.25
    """
    log_odds = np.asarray(log_odds, dtype=float)
    if log_odds.size == 0:
        raise ValueError("there is no relation to estimate a rate from; judge at least one.")
    return float(expit(-log_odds).mean())


def pair_probabilities(
    X: FloatArray, parameters: Parameters, side: SideInformation, pairs: ArrayLike, infer: Infer
) -> FloatArray:
    """Compute the posterior probability that the two points of each pair share a component.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ, ``parameters_`` of a fit.
    side : SideInformation
        All side information about these points.
    pairs : (P, 2) int array_like
        Pairs of points, with or without a relation.
    infer : callable
        An engine applied to ``side.graph``. The probabilities are exact if the engine is exact.

    Returns
    -------
    (P,) array
        ``p(z_i = z_j | X, side information, θ)``; 1 if i = j or if they are must-linked.

    Raises
    ------
    ValueError
        If a row does not name two points.

    Notes
    -----
    The probability equals ``Σ_k r_ik r_jk`` only if no chain of relations connects the two points.
    For nearly certain pairs, :func:`log_odds_together` is more accurate.

    Examples
    --------
    Three points lie on the border between two components, and a preference joins the first two:

    >>> from cgmm.inference import ENGINES
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> side = SideInformation.build(3, preferences=[[0, 1, np.log(9)]])
    >>> infer = ENGINES["auto"](side.graph)
    >>> pair_probabilities(np.zeros((3, 1)), theta, side, [[0, 1], [0, 2], [2, 2]], infer)
    array([0.9, 0.5, 1. ])
    """
    nodes = side.node_of[check_pairs("pairs", pairs, len(side.node_of))]
    unary = node_unaries(X, parameters, side)
    return np.asarray(expit(log_odds_together(infer, unary, side.graph, nodes)))


def log_odds_together(infer: Infer, unary: FloatArray, graph: Graph, pairs: IntArray) -> FloatArray:
    """Compute the posterior log-odds that the two nodes of each pair have the same state.

    Parameters
    ----------
    infer : callable
        An exact engine applied to ``graph``.
    unary : (n_nodes, K) array
        Log-potentials of the nodes.
    graph : Graph
        The network.
    pairs : (P, 2) int array
        Pairs of any two nodes, with or without an edge.

    Returns
    -------
    (P,) array
        ``log p(z_a = z_b) - log p(z_a ≠ z_b)`` in nats; +inf where a = b.

    Notes
    -----
    ``p(z_a = z_b) = Σ_k p(z_a = k) p(z_b = k | z_a = k)``. p(z_a ≠ z_b) is summed directly, not
    computed as one minus the other probability, so both tails are accurate.

    A million pairs take a second if components are small. In a large component, one clique tree
    computes all pairs together if the engine is exact, the tables fit into memory, and this is
    cheaper (:mod:`cgmm.inference.pair_sums`). Otherwise the function fixes the state of one node
    per connected component at a time, with K calls of the engine for each node.

    Examples
    --------
    >>> from cgmm.inference import ENGINES
    >>> graph = Graph(3, np.array([[0, 1], [1, 2]]), np.array([2.0, 2.0]))
    >>> infer = ENGINES["auto"](graph)
    >>> log_odds_together(infer, np.zeros((3, 2)), graph, np.array([[0, 1], [0, 2]])).round(4)
    array([2.   , 1.325])
    """
    p, _, is_exact, _ = infer(unary)
    same, different, is_computed = pair_sums(graph, unary, p, pairs, exact=is_exact)
    a, b = order_by_frequency(pairs).T
    component, remaining = connected_components(graph), np.flatnonzero(~is_computed)
    while len(remaining):
        # Fix one node per connected component in each round: the first that has remaining pairs.
        first = np.full(graph.n_nodes, graph.n_nodes)
        np.minimum.at(first, component[a[remaining]], a[remaining])
        has_turn = a[remaining] == first[component[a[remaining]]]
        now, remaining = remaining[has_turn], remaining[~has_turn]
        for k in range(unary.shape[1]):
            p_b = infer(_fix_nodes(unary, a[now][p[a[now], k] > 0], k)).nodes[b[now]]
            # Add the summand p(z_a = k) p(z_b | z_a = k) of state k to both sums.
            same[now] += p[a[now], k] * p_b[:, k]
            different[now] += p[a[now], k] * np.delete(p_b, k, axis=1).sum(axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(same) - np.log(different))


def _fix_nodes(unary: FloatArray, nodes: IntArray, k: int) -> FloatArray:
    """Return a copy of the log-potentials that fixes some nodes at state k."""
    fixed = unary.copy()
    fixed[nodes] = np.where(np.arange(unary.shape[1]) == k, unary[nodes], -np.inf)
    return fixed
