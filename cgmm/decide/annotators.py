"""Learn how often each annotator errs, from the points and from the other answers. Chapter 16.

Annotators were asked whether two points belong together. Given the assignments z, their answers are
independent, and each is wrong with a probability that depends on the annotator, and perhaps on what
is true. So an answer is a soft relation whose log-weight follows from these rates, and EM finds
both: the E-step computes how probable each answer is to be wrong, the M-step counts. This is Dawid
and Skene (1979) with one difference: the truths of pairs are connected, by the points and because
z_i = z_j and z_j = z_k imply z_i = z_k.

=======  ======================================================================
e, s_e   an answer on two points i and j; s_e = 1 "together", 0 "apart"
g        the annotator who gave it
α_g      p(s = 0 | z_i = z_j), how often g parts what belongs together
β_g      p(s = 1 | z_i ≠ z_j), how often g joins what does not
w_e      log p(s_e | together) - log p(s_e | apart), log-weight of the answer
p_e      p(z_i = z_j | X, all answers, θ)
a, b     of the prior Beta(a, b) of each rate
=======  ======================================================================
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlog1py, xlogy
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from cgmm.decide.asking import joint
from cgmm.diagnose import log_odds_together
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters, node_unaries
from cgmm.network import Engine, Graph, SideInformation, simplify
from cgmm.network.side_information import contracted
from cgmm.numerics import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    WarnedOnce,
    check_integer,
    generator,
    warn_caller,
)
from cgmm.scenarios.answers import check_answers, preferences_from_answers


class AnnotatorRates(NamedTuple):
    """Error rates of annotators, and what they imply for each answer."""

    false_apart: FloatArray
    """(G,) α_g, the probability that "apart" is said of two points that belong together."""
    false_together: FloatArray
    """(G,) β_g, the probability that "together" is said of two that do not; α_g unless ``kinds``"""
    wrong: FloatArray
    """(P,) the posterior probability that an answer is wrong, given everything."""
    preferences: FloatArray
    """(P, 3) rows i, j, w_e: the answers as ``fit(X, preferences=...)`` takes them."""
    names: NDArray[np.generic]
    """(G,) names of the annotators, sorted."""
    history: FloatArray
    """(T,) log p(X, answers | θ, rates) + log prior of the rates in nats, iteration by iteration;
    it never falls where the engine is exact."""
    converged: bool
    """Whether the last iteration moved no rate by more than ``tol``."""


def error_rates(
    X: FloatArray,
    parameters: Parameters,
    side: SideInformation,
    answers: ArrayLike,
    engine: Engine,
    *,
    annotator: ArrayLike | None = None,
    kinds: bool = False,
    prior: tuple[float, float] = (2.0, 5.0),
    start: AnnotatorRates | None = None,
    tol: float = 1e-5,
    max_iter: int = 1000,
) -> AnnotatorRates:
    """Estimate each annotator's error rates by EM over the true relations of the pairs.

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
    annotator : (P,) array_like, default=None
        Who gave each answer: any names. None: one rate for all.
    kinds : bool, default=False
        Whether an annotator has two rates, one for what belongs together and one for what does not.
    prior : (float, float), default=(2, 5)
        a and b, above 1, of the Beta prior of each rate: as if a - 1 wrong answers and b - 1 right
        ones were known of each.
    start : AnnotatorRates, default=None
        Where to begin: what was found before, of the same annotators. None: the prior's mode.
    tol : float, default=1e-5
        EM ends when no rate moves by more.
    max_iter : int, default=1000
        Iterations, each an E-step in the network of all answers: K calls of the engine for each
        node of the largest component that has to be held, few where answers hardly overlap.

    Returns
    -------
    AnnotatorRates
        Rates, the probability of each answer to be wrong, and its log-weight.

    Raises
    ------
    ValueError
        If an answer does not name two points or is neither 0 nor 1, there is none, the annotators
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
    this. Annotators who make the same errors are believed: the model assumes that errors are
    independent.

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
    >>> found = error_rates(X, theta, side, [*a, *b], ENGINES["auto"], annotator=said_by)
    >>> found.false_apart.round(3), found.wrong.round(3)[4:]
    (array([0.111, 0.333]), array([0., 0., 1., 1.]))
    """
    rows, names, of = _read(answers, annotator, len(X), prior, start)
    (a, b), said, G = prior, rows[:, 2] == 1, len(names)
    # Of each answer, if its points belong together and if not: is it wrong, and by which rate?
    wrong_if, which = np.array([~said, said]), np.array([of, of + kinds * G])
    rates = np.full((1 + kinds) * G, (a - 1) / (a + b - 2))
    if start is not None:
        rates = np.concatenate(start[: 1 + kinds])
    nodes, unary = side.node_of[rows[:, :2]], node_unaries(X, parameters, side)
    look = partial(_look, unary, side.graph, nodes, wrong_if, engine)
    history, converged = list[float](), False
    while not converged and len(history) < max_iter:
        evidence, p, _ = look(rates[which])
        log_prior = xlogy(a - 1, rates) + xlog1py(b - 1, -rates)
        history.append(evidence + float(log_prior.sum()))
        wrong, cases = (np.bincount(which.ravel(), part.ravel()) for part in (wrong_if * p, p))
        # Dawid and Skene's eq. 2.3, with the prior's counts
        before, rates = rates, (wrong + a - 1) / (cases + a + b - 2)
        converged = bool(np.abs(rates - before).max() <= tol)
    _, p, weights = look(rates[which])
    wrong, preferences = (wrong_if * p).sum(axis=0), np.column_stack([rows[:, :2], weights])
    return AnnotatorRates(
        rates[:G], rates[-G:], wrong, preferences, names, np.array(history), converged
    )  # fmt: skip


def _look(
    unary: FloatArray, graph: Graph, nodes: IntArray, wrong_if: BoolArray, engine: Engine,
    q: FloatArray,
) -> tuple[float, FloatArray, FloatArray]:  # fmt: skip
    """Return log p(X, answers | θ, rates), (2, P) p_e and 1 - p_e of each answer, and w_e."""
    together, apart = np.where(wrong_if, np.log(q), np.log1p(-q))
    # Of points that must-links tie together there is nothing to be found out.
    open_, weights = nodes[:, 0] != nodes[:, 1], together - apart
    edges = np.concatenate([graph.edges, nodes[open_]])
    tied = simplify(Graph(graph.n_nodes, edges, np.concatenate([graph.weights, weights[open_]])))
    infer = engine(tied)
    evidence = infer(unary).log_z + float(np.where(open_, apart, together).sum())
    log_odds = log_odds_together(infer, unary, tied, nodes)
    return evidence, expit(np.array([log_odds, -log_odds])), weights


def _read(
    answers: ArrayLike, annotator: ArrayLike | None, n_points: int, prior: tuple[float, float],
    start: AnnotatorRates | None = None,
) -> tuple[IntArray, NDArray[np.generic], IntArray]:  # fmt: skip
    """Return rows i, j, said; the annotators' names; and the number of the one who answered."""
    rows = check_answers(answers, n_points)
    given = np.zeros(len(rows), dtype=int) if annotator is None else np.asarray(annotator)
    if len(rows) == 0:
        raise ValueError("there is no answer to learn from; give one: answers=[[0, 1, 1]].")
    if given.shape != (len(rows),):
        raise ValueError(
            f"annotator has shape {given.shape} for {len(rows)} answers; name one for each answer."
        )
    if min(prior) <= 1:
        raise ValueError(
            f"the prior is Beta{tuple(prior)}; both numbers must be above 1, else a rate may "
            "become 0, a hard relation that nothing corrects: prior=(1.1, 1.5) says little."
        )
    names, of = np.unique(given, return_inverse=True)
    if start is not None and not np.array_equal(start.names, names):
        raise ValueError(
            f"start has rates of {start.names.tolist()}, but {names.tolist()} have answered; leave "
            "it out, start=None, where the annotators are others."
        )
    return rows, names, of


# ---------------------------------------------------------------------------- with the mixture


class AnnotatorMixture(BaseEstimator):
    """Mixture that learns its annotators' error rates together with the classes.

    Parameters
    ----------
    estimator : ConstrainedGaussianMixture or another mixture
        Fitted in every round. Answers enter by the joint likelihood: ``weights`` "auto" stands for
        "ignore" here. With ``warm_start=True`` each round goes on from the last, which is quicker,
        and stays where a wrong first maximum lies: where answers decide between maxima, begin each
        round afresh.
    kinds : bool, default=False
        Whether an annotator has two rates, one for what belongs together and one for what does not.
    prior : (float, float), default=(2, 5)
        a and b of the Beta prior of each rate, as in :func:`error_rates`. The first fit takes its
        mode for every annotator.
    tol : float, default=1e-3
        The rounds end when no rate moves by more.
    max_rounds : int, default=50
        How many fits from one beginning.
    n_init : int, default=1
        Beginnings. The first takes the prior's mode for every annotator, the others believe one of
        them, drawn by lot, and nobody else; kept is the end with the highest likelihood. EM may end
        where the points are described in another way and the annotators blamed for it.
    random_state : int, RandomState, Generator or None, default=0
        Whom the later beginnings believe.

    Attributes
    ----------
    rates_ : (G, 2) array
        How often each annotator errs: of pairs that belong together, of pairs that do not.
    annotators_ : (G,) array
        Their names, sorted.
    wrong_ : (P,) array
        The posterior probability that an answer is wrong, given everything.
    preferences_ : (P, 3) array
        The answers with the weights that they deserve.
    estimator_ : estimator
        The mixture of the round that was kept.
    labels_ : (N,) int array
        Its components of the points.
    history_ : (R,) array
        log p(X, answers | θ, rates) + log prior of the rates after each round, in nats. It never
        falls where fits go on from the last and are not regularised; the best round is kept.
    converged_ : bool
        Whether the last round moved no rate by more than ``tol``.

    Notes
    -----
    A mixture that is wrong about the classes learns from annotators who share its error, and takes
    those who do not for liars. Look at the rates before believing them.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(40, 1)) + np.repeat([[-4.0], [4.0]], 20, axis=0)
    >>> true = [[i, i + 1, 1] for i in range(0, 18, 2)] + [[i, 39 - i, 0] for i in range(1, 18, 2)]
    >>> answers = [*true, [20, 21, 0], [22, 23, 0], [24, 25, 0]]
    >>> said_by = ["ann"] * 18 + ["bob"] * 3
    >>> mixture = ConstrainedGaussianMixture(2, random_state=0)
    >>> model = AnnotatorMixture(mixture).fit(X, answers, annotator=said_by)
    >>> model.annotators_.tolist(), model.rates_[:, 0].round(2)
    (['ann', 'bob'], array([0.04, 0.5 ]))
    >>> model.wrong_[-3:].round(2)
    array([1., 1., 1.])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        kinds: bool = False,
        prior: tuple[float, float] = (2.0, 5.0),
        tol: float = 1e-3,
        max_rounds: int = 50,
        n_init: int = 1,
        random_state: Seed = 0,
    ) -> None:
        self.estimator = estimator
        self.kinds = kinds
        self.prior = prior
        self.tol = tol
        self.max_rounds = max_rounds
        self.n_init = n_init
        self.random_state = random_state

    def fit(
        self, X: ArrayLike, answers: ArrayLike, *, annotator: ArrayLike | None = None, **known: Any
    ) -> AnnotatorMixture:
        """Fit the mixture and the rates in turns.

        Parameters
        ----------
        X : (N, D) array_like
            The points.
        answers : (P, 3) array_like
            Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".
        annotator : (P,) array_like, default=None
            Who gave each answer: any names. None: one rate for all.
        **known
            What is known for certain: ``labels``, ``must_link``, ``cannot_link``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As :func:`error_rates`, and as ``fit`` of the mixture.
        """
        X = np.asarray(X, dtype=float)
        side = contracted(len(X), sampling=joint(self.estimator).sampling, **known)
        rows, names, of = _read(answers, annotator, len(X), self.prior)
        check_integer("max_rounds", self.max_rounds, 1)
        check_integer("n_init", self.n_init, 1)
        certainties = self._beginnings(of, len(names))
        ends = (self._climb(X, side, rows, names[of], first, known) for first in certainties)
        self.estimator_, found, said, self.history_, self.converged_ = max(
            ends, key=lambda end: end[3].max()
        )
        self.rates_ = np.column_stack([found.false_apart, found.false_together])
        self.annotators_, self.wrong_ = found.names, found.wrong
        self.preferences_ = found.preferences
        self.labels_ = self.estimator_.labels_
        for text, kind in said:
            warn_caller(text, kind)
        if not self.converged_:
            warn_caller(
                f"rates still moved by more than {self.tol:g} after {self.max_rounds} rounds; "
                "let it go on, max_rounds=200, or look at history_.",
                ConvergenceWarning,
            )
        return self

    def _beginnings(self, of: IntArray, n_annotators: int) -> list[FloatArray]:
        """Return first certainties: all alike, and later those of one annotator and nobody else."""
        a, b = self.prior
        mode = (b - 1) / (a + b - 2)
        order = generator(self.random_state).permutation(n_annotators)
        # A certainty of 0.5 makes the answers of the others weightless.
        believed = [np.where(of == g, mode, 0.5) for g in order[: self.n_init - 1]]
        return [np.full(len(of), mode), *believed]

    def _climb(
        self, X: FloatArray, side: SideInformation, rows: IntArray, annotator: ArrayLike,
        certainty: FloatArray, known: dict[str, Any],
    ) -> tuple[Any, AnnotatorRates, list[tuple[str, type[Warning]]], FloatArray, bool]:  # fmt: skip
        """Return the best round of one beginning: mixture, rates, warnings; history; converged."""
        model, found, history = joint(clone(self.estimator)), None, list[float]()
        preferences, moved = preferences_from_answers(rows, certainty), np.inf
        while moved > self.tol and len(history) < self.max_rounds:
            with WarnedOnce() as warned:
                model.fit(X, preferences=preferences, **known)
                before, found = found, error_rates(
                    X, model.parameters_, side, rows, ENGINES["auto"], annotator=annotator,
                    kinds=self.kinds, prior=self.prior, start=found,
                )  # fmt: skip
                said = warned.held.copy()
                warned.held.clear()
            preferences = found.preferences
            history.append(float(found.history[-1]))
            if before is not None:
                moved = np.abs(np.subtract(before[:2], found[:2])).max()
            # A fit that begins anew may end lower than the one before, so the best round is kept.
            if history[-1] >= max(history):
                best = copy(model), found, said
        return *best, np.array(history), bool(moved <= self.tol)

    def predict(self, X: ArrayLike, **known: Any) -> IntArray:
        """Most probable component of each point.

        Parameters
        ----------
        X : (N, D) array_like
            Points.
        **known
            Relations among them, as ``predict`` of the mixture takes them.

        Returns
        -------
        (N,) int array
            The component.
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X, **known)
