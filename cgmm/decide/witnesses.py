"""Whom to believe: how often each witness errs, from the points and from the other answers.

A witness was asked whether two points belong together. What was said depends on the truth, on
nothing else: given z, answers are independent, and each is wrong with a probability that belongs to
the witness, and perhaps to what is true. So an answer is a soft relation whose log-weight follows
from these rates, and EM finds both: the E-step asks the network how probable each answer is to be
wrong, the M-step counts. This is Dawid and Skene (1979) with one difference: truths of pairs hang
together, by the points and because z_i = z_j and z_j = z_k give z_i = z_k. Chapter 9.

=======  ======================================================================
e, s_e   an answer on two points i and j; s_e = 1 "together", 0 "apart"
g        the witness who gave it
α_g      p(s = 0 | z_i = z_j), how often g parts what belongs together
β_g      p(s = 1 | z_i ≠ z_j), how often g joins what does not
w_e      log p(s_e | together) - log p(s_e | apart), log-weight of the answer
p_e      p(z_i = z_j | X, all answers, θ)
a, b     of the prior Beta(a, b) of each rate
=======  ======================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlog1py, xlogy

from cgmm.diagnose import log_odds_together
from cgmm.mixture import Parameters, node_unaries
from cgmm.network import Engine, Graph, SideInformation, simplify
from cgmm.numerics import BoolArray, FloatArray, IntArray
from cgmm.scenarios.answers import check_answers


class Witnesses(NamedTuple):
    """How often witnesses err, and what that says of their answers."""

    false_apart: FloatArray
    """(G,) α_g, the probability that "apart" is said of two points that belong together."""
    false_together: FloatArray
    """(G,) β_g, the probability that "together" is said of two that do not; α_g unless ``kinds``"""
    wrong: FloatArray
    """(P,) the posterior probability that an answer is wrong, given everything."""
    preferences: FloatArray
    """(P, 3) rows i, j, w_e: the answers as ``fit(X, preferences=...)`` takes them."""
    names: NDArray[np.generic]
    """(G,) the witnesses as they were named, sorted."""
    history: FloatArray
    """(T,) log p(X, answers | θ, rates) + log prior of the rates in nats, iteration by iteration;
    it never falls where the engine is exact."""
    converged: bool
    """Whether the last iteration moved no rate by more than ``tol``."""


class _Answers(NamedTuple):
    """Answers on nodes: what was said by whom."""

    nodes: IntArray
    said: BoolArray
    of: IntArray
    kinds: bool

    def log_likelihoods(self, rates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logs of p(s_e | together) and of p(s_e | apart), of rates (2, G)."""
        alpha, beta = rates[:, self.of]
        together = np.where(self.said, np.log1p(-alpha), np.log(alpha))
        return together, np.where(self.said, np.log(beta), np.log1p(-beta))

    def shares_wrong(self, log_odds: FloatArray, prior: tuple[float, float]) -> FloatArray:
        """(2, G) the rates that maximise the expected log-posterior: shares of wrong answers."""
        together, apart = expit(log_odds), expit(-log_odds)
        cases = np.array([np.bincount(self.of, p) for p in (together, apart)])
        wrong = np.array(
            [np.bincount(self.of, ~self.said * together), np.bincount(self.of, self.said * apart)]
        )
        if not self.kinds:
            cases, wrong = (np.tile(of.sum(axis=0), (2, 1)) for of in (cases, wrong))
        a, b = prior
        # Dawid and Skene's eq. 2.3, with the prior's counts
        return np.asarray((wrong + a - 1) / (cases + a + b - 2))


def error_rates(
    X: FloatArray,
    parameters: Parameters,
    side: SideInformation,
    answers: ArrayLike,
    engine: Engine,
    *,
    witness: ArrayLike | None = None,
    kinds: bool = False,
    prior: tuple[float, float] = (2.0, 5.0),
    start: Witnesses | None = None,
    tol: float = 1e-5,
    max_iter: int = 1000,
) -> Witnesses:
    """How often each witness errs, by EM over what is true of the pairs that they were asked.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ, which is kept. Fit again with the ``preferences`` that are found, and repeat, to let
        answers and points teach each other.
    side : SideInformation
        What is known for certain, without the answers.
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart". Of one pair there may be many.
    engine : callable
        An engine, as of :data:`cgmm.inference.ENGINES`; exact, for what is promised here.
    witness : (P,) array_like, default=None
        Who gave each answer: any names. None: one rate for all.
    kinds : bool, default=False
        Whether a witness has two rates, one for what belongs together and one for what does not.
    prior : (float, float), default=(2, 5)
        a and b, above 1, of the Beta prior of each rate: as if a - 1 wrong answers and b - 1 right
        ones were known of each.
    start : Witnesses, default=None
        Where to begin: what was found before, of the same witnesses. None: the prior's mode.
    tol : float, default=1e-5
        EM ends when no rate moves by more.
    max_iter : int, default=1000
        Iterations, each an E-step in the network of all answers: K calls of the engine for each
        node of the largest component that has to be held, few where answers hardly overlap.

    Returns
    -------
    Witnesses
        Rates, the probability of each answer to be wrong, and its log-weight.

    Raises
    ------
    ValueError
        If an answer does not name two points or is neither 0 nor 1, there is none, the witnesses
        are not as many, or the prior leaves a rate of 0.
    NetworkError
        As the engine does.

    Notes
    -----
    EM climbs from the prior's mode to a maximum near it, and there may be others. What cannot be
    told, whatever the number of answers: with two components, equal weights and points that say
    nothing, answers whose pairs form no cycle have a likelihood that does not depend on a rate that
    is the same for both kinds; and where all cycles are even, rates q and 1 - q are as likely. The
    prior then decides. Points that tell the components apart, labels, or odd cycles of answers end
    this. Witnesses who agree in the same errors are believed: that their errors are independent is
    assumed.

    As rates go to zero the answers become hard relations.

    Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM
    algorithm. Answers on pairs of a point and one labelled point are their labels of two classes.

    Examples
    --------
    Two clusters; "a" is right four times, "b" calls everything "together":

    >>> from cgmm.inference import ENGINES
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-3.0], [3.0]]), np.ones((2, 1, 1)))
    >>> X = np.repeat([[-3.0], [3.0]], 4, axis=0)
    >>> a = [[0, 1, 1], [4, 5, 1], [0, 4, 0], [1, 5, 0]]
    >>> b = [[2, 3, 1], [6, 7, 1], [2, 6, 1], [3, 7, 1]]
    >>> said_by = np.repeat(["a", "b"], 4)
    >>> side = SideInformation.build(8)
    >>> found = error_rates(X, theta, side, [*a, *b], ENGINES["auto"], witness=said_by)
    >>> found.false_apart.round(3), found.wrong.round(3)[4:]
    (array([0.111, 0.333]), array([0., 0., 1., 1.]))
    """
    rows = read_rows(answers, side, prior)
    names, of = name_witnesses(witness, len(rows))
    told = _Answers(side.node_of[rows[:, :2]], rows[:, 2] == 1, of, kinds)
    unary = node_unaries(X, parameters, side)
    a, b = prior
    rates = np.full((2, len(names)), (a - 1) / (a + b - 2))
    if start is not None:
        _require_same(start, names)
        rates = np.array(start[:2])
    history, converged = list[float](), False
    while not converged and len(history) < max_iter:
        evidence, log_odds = _look(unary, side.graph, told, rates, engine)
        history.append(evidence + _log_prior(rates if kinds else rates[:1], prior))
        moved = told.shares_wrong(log_odds, prior)
        converged = bool(np.abs(moved - rates).max() <= tol)
        rates = moved
    _, log_odds = _look(unary, side.graph, told, rates, engine)
    together, apart = told.log_likelihoods(rates)
    wrong = expit(np.where(told.said, -log_odds, log_odds))
    preferences = np.column_stack([rows[:, :2], together - apart])
    return Witnesses(rates[0], rates[1], wrong, preferences, names, np.array(history), converged)


def _look(
    unary: FloatArray, graph: Graph, answers: _Answers, rates: FloatArray, engine: Engine
) -> tuple[float, FloatArray]:
    """The E-step: log p(X, answers | θ, rates), and the log-odds of each pair to be together."""
    together, apart = answers.log_likelihoods(rates)
    # Of points that must-links tie together there is nothing to be found out.
    open_, weights = answers.nodes[:, 0] != answers.nodes[:, 1], together - apart
    edges = np.concatenate([graph.edges, answers.nodes[open_]])
    tied = simplify(Graph(graph.n_nodes, edges, np.concatenate([graph.weights, weights[open_]])))
    infer = engine(tied)
    evidence = infer(unary).log_z + float(np.where(open_, apart, together).sum())
    return evidence, log_odds_together(infer, unary, tied, answers.nodes)


def _log_prior(rates: FloatArray, prior: tuple[float, float]) -> float:
    """Log-density of the Beta prior, up to a constant."""
    a, b = prior
    return float((xlogy(a - 1, rates) + xlog1py(b - 1, -rates)).sum())


def read_rows(answers: ArrayLike, side: SideInformation, prior: tuple[float, float]) -> IntArray:
    """The answers as rows i, j, said, or an error that names what is none."""
    rows = check_answers(answers, len(side.node_of))
    if len(rows) == 0:
        raise ValueError("there is no answer to learn from; give one: answers=[[0, 1, 1]].")
    if min(prior) <= 1:
        raise ValueError(
            f"the prior is Beta{tuple(prior)}; both numbers must be above 1, else a rate may "
            "become 0, a hard relation that nothing corrects: prior=(1.1, 1.5) says little."
        )
    return rows


def name_witnesses(
    witness: ArrayLike | None, n_answers: int
) -> tuple[NDArray[np.generic], IntArray]:
    """The witnesses by name, and the number of the one who gave each answer."""
    given = np.zeros(n_answers, dtype=int) if witness is None else np.asarray(witness)
    if given.shape != (n_answers,):
        raise ValueError(
            f"witness has shape {given.shape} for {n_answers} answers; name one for each answer."
        )
    names, of = np.unique(given, return_inverse=True)
    return names, of


def _require_same(start: Witnesses, names: NDArray[np.generic]) -> None:
    """Refuse rates found before that are of other witnesses."""
    if not np.array_equal(start.names, names):
        raise ValueError(
            f"start has rates of {start.names.tolist()}, but {names.tolist()} have answered; leave "
            "it out, start=None, where the witnesses are others."
        )
