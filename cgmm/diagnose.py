"""Are the relations right? Each one judged by the points and by all that is said beside it.

A relation that is wrong contradicts the fit. But it has also pulled at the fit, so it must not
testify for itself: what counts is the posterior log-odds that its two points belong together, *less
its own weight*. A weight enters these log-odds as a summand, so that taking a relation out costs no
second network: all relations are judged in one.
Chapter 14.

=======  ==================================================================
e, w_e   a relation between two points, and its log-weight: preference rows
s_e      +1 if it says "together" (w_e > 0), else -1
L_e      posterior log-odds that the two share a component, given everything
R_e      s_e L_e, the log-odds that the relation is right, given everything
S_e      ``R_e - |w_e|``, the same without its own word: its *support*
=======  ==================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from cgmm.inference.pair_sums import pair_sums
from cgmm.mixture import Parameters, node_unaries
from cgmm.network import Graph, Infer, SideInformation, connected_components
from cgmm.numerics import FloatArray, IntArray, check_pairs

__all__ = [
    "Judgement", "expected_flip_rate", "judge", "log_odds_together", "pair_probabilities",
]  # fmt: skip


class Judgement(NamedTuple):
    """What is to be thought of each relation."""

    support: FloatArray
    """(P,) S_e, log-odds in nats that it is right, given the points and all but itself."""
    log_odds: FloatArray
    """(P,) R_e, the same given everything: ``S_e + |w_e|`` for a relation of the network."""
    order: IntArray
    """(P,) the rows of the relations, those with the least support first."""

    @property
    def wrong(self) -> FloatArray:
        """(P,) the posterior probability that it is wrong, given everything: 1 / (1 + exp R_e)."""
        return np.asarray(expit(-self.log_odds))


def judge(
    X: FloatArray,
    parameters: Parameters,
    side: SideInformation,
    preferences: ArrayLike,
    infer: Infer,
    *,
    held_out: bool = False,
) -> Judgement:
    """How well each relation agrees with the points and with everything else that is known.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ, as a rule of a fit with ``side``.
    side : SideInformation
        Everything that is known.
    preferences : (P, 3) array_like
        Rows ``i, j, w`` to be judged, w finite and not zero. They are among those that ``side`` was
        built from, unless ``held_out``.
    infer : callable
        An exact engine applied to ``side.graph``.
    held_out : bool, default=False
        The relations are not part of ``side``: their weights then only say what they claim.

    Returns
    -------
    Judgement
        A support of -3 says that, but for this relation itself, it is e³ ≈ 20 times likelier wrong
        than right. It is infinite where certain relations or labels decide.

    Raises
    ------
    ValueError
        If a row does not name two points, or its weight is not finite or zero.

    Notes
    -----
    θ was fitted with the relation to be judged. One among many hardly moves it; where few relations
    carry the fit, judge those held out from it.

    Examples
    --------
    Two well separated points, and somebody who says that they are the same:

    >>> from cgmm.inference import ENGINES
    >>> X = np.array([[-2.0], [2.0]])
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> said = [[0, 1, 1.0]]
    >>> side = SideInformation.build(2, preferences=said)
    >>> judgement = judge(X, theta, side, said, ENGINES["auto"](side.graph))
    >>> judgement.support.round(3), judgement.log_odds.round(3)
    (array([-3.307]), array([-2.307]))
    >>> judgement.wrong.round(3)
    array([0.909])
    """
    rows = np.asarray(preferences, dtype=float).reshape(-1, 3)
    pairs, w = check_pairs("preferences", rows[:, :2], len(side.node_of)), rows[:, 2]
    _require_soft(w)
    unary = node_unaries(X, parameters, side)
    together = log_odds_together(infer, unary, side.graph, side.node_of[pairs])
    log_odds = np.sign(w) * together
    own = 0.0 if held_out else np.abs(w)
    support = log_odds - own
    return Judgement(support, support + np.abs(w), np.argsort(support, kind="stable"))


def expected_flip_rate(log_odds: ArrayLike) -> float:
    """The share of relations that are wrong, as the posterior expects it.

    Parameters
    ----------
    log_odds : (P,) array_like
        R_e of :func:`judge`, at least one.

    Returns
    -------
    float
        The mean of ``1 / (1 + exp(R_e))``. Where all relations have the certainty γ, it is 1 - γ at
        the γ that maximises the log-evidence of points and relations together: put it in place of
        1 - γ, fit again, and repeat.

    Raises
    ------
    ValueError
        If there is no relation.

    Notes
    -----
    The answer to what [lu2007, sect. 6] leaves open, where there is no labelled example for
    :func:`cgmm.scenarios.estimate_flip_rate`.

    Examples
    --------
    >>> expected_flip_rate([0.0, np.inf])
    0.25
    """
    log_odds = np.asarray(log_odds, dtype=float)
    if log_odds.size == 0:
        raise ValueError("there is no relation from which to expect a rate; judge at least one.")
    return float(expit(-log_odds).mean())


def pair_probabilities(
    X: FloatArray, parameters: Parameters, side: SideInformation, pairs: ArrayLike, infer: Infer
) -> FloatArray:
    """Posterior probability that two points share a component, for any pairs of points.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ, ``parameters_`` of a fit.
    side : SideInformation
        Everything that is known of these points.
    pairs : (P, 2) int array_like
        Pairs of points, in a relation or not.
    infer : callable
        An engine applied to ``side.graph``. The answers are exact where it is.

    Returns
    -------
    (P,) array
        ``p(z_i = z_j | X, everything known, θ)``; 1 where i and j are one point or must-linked.

    Raises
    ------
    ValueError
        If a row does not name two points.

    Notes
    -----
    ``Σ_k r_ik r_jk`` only where no chain of relations joins the two; see
    :func:`log_odds_together`, which keeps the digits of what is nearly certain, too.

    Examples
    --------
    Three points on the border of two components; the first two are said to be the same:

    >>> from cgmm.inference import ENGINES
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> side = SideInformation.build(3, preferences=[[0, 1, np.log(9)]])
    >>> infer = ENGINES["auto"](side.graph)
    >>> pair_probabilities(np.zeros((3, 1)), theta, side, [[0, 1], [0, 2], [2, 2]], infer)
    array([0.9, 0.5, 1. ])
    """
    nodes = side.node_of[check_pairs("pairs", pairs, len(side.node_of))]
    return np.asarray(
        expit(log_odds_together(infer, node_unaries(X, parameters, side), side.graph, nodes))
    )


def log_odds_together(infer: Infer, unary: FloatArray, graph: Graph, pairs: IntArray) -> FloatArray:
    """Posterior log-odds that two nodes have the same state, for many pairs of nodes.

    Parameters
    ----------
    infer : callable
        An exact engine applied to ``graph``.
    unary : (n_nodes, K) array
        Log-potentials of the nodes.
    graph : Graph
        The network; it says which nodes can be held fixed at the same time.
    pairs : (P, 2) int array
        Any two nodes each, tied by an edge or not.

    Returns
    -------
    (P,) array
        ``log p(z_a = z_b) - log p(z_a ≠ z_b)`` in nats; +inf where a and b are one node.

    Notes
    -----
    ``p(z_a = z_b) = Σ_k p(z_a = k) p(z_b = k | z_a = k)``. Sums over what differs are taken as
    such, not as one minus the rest, so that both tails keep their digits.

    A million pairs take a second where components are small. The many pairs of a large component
    are found together by one clique tree, where the engine is exact, the tables fit into memory and
    that is cheaper (:mod:`cgmm.inference.pair_sums`); else it takes K calls of the engine for each
    node that has to be held.

    Examples
    --------
    >>> from cgmm.inference import ENGINES
    >>> graph = Graph(3, np.array([[0, 1], [1, 2]]), np.array([2.0, 2.0]))
    >>> infer = ENGINES["auto"](graph)
    >>> log_odds_together(infer, np.zeros((3, 2)), graph, np.array([[0, 1], [0, 2]])).round(4)
    array([2.   , 1.325])
    """
    p, _, exact, _ = infer(unary)
    same, apart, found = pair_sums(graph, unary, p, pairs, exact=exact)
    a, b = _often_first(pairs).T
    for now in _rounds(connected_components(graph), a, np.flatnonzero(~found)):
        for k in range(unary.shape[1]):
            given_k = infer(_held(unary, a[now][p[a[now], k] > 0], k)).nodes[b[now]]
            # p(z_a = k), times what is then believed of b
            same[now] += p[a[now], k] * given_k[:, k]
            apart[now] += p[a[now], k] * np.delete(given_k, k, axis=1).sum(axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(same) - np.log(apart))


def _often_first(pairs: IntArray) -> IntArray:
    """Each pair, the end first that more of them name: fewer nodes are held, one after another."""
    often = np.bincount(pairs.ravel())[pairs] if pairs.size else pairs
    return np.where((often[:, 1] > often[:, 0])[:, None], pairs[:, ::-1], pairs)


def _held(unary: FloatArray, nodes: IntArray, k: int) -> FloatArray:
    """The unaries where some nodes are held at state k."""
    held = unary.copy()
    held[nodes] = -np.inf
    held[nodes, k] = unary[nodes, k]
    return held


def _rounds(of_node: IntArray, a: IntArray, places: IntArray) -> list[IntArray]:
    """Places in ``a``, parted so that in each part a component has one node held at most."""
    nodes, which = np.unique(a[places], return_inverse=True)
    by_component = np.argsort(of_node[nodes], kind="stable")
    _, first, component = np.unique(
        of_node[nodes[by_component]], return_index=True, return_inverse=True
    )
    # A node's turn is its distance from the first of its component.
    turn_of = np.empty(len(nodes), dtype=np.intp)
    turn_of[by_component] = np.arange(len(nodes)) - first[component]
    turn = turn_of[which]
    by_turn = np.argsort(turn, kind="stable")
    ends = np.flatnonzero(np.diff(turn[by_turn])) + 1
    return np.split(places[by_turn], ends) if len(places) else []


def _require_soft(w: FloatArray) -> None:
    """Refuse what cannot be judged: a certain relation, and one that says nothing."""
    wrong = np.flatnonzero(~np.isfinite(w) | (w == 0))
    if len(wrong):
        raise ValueError(
            f"preferences[{wrong[0]}] has the log-odds {w[wrong[0]]:g}; a relation to be judged "
            "must have finite log-odds, not zero. Give a certain relation a finite weight, such as "
            "scenarios.weight_from_certainty(0.95), and fit again."
        )
