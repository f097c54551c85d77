"""Estimate the error rate of each annotator from the points and from all answers.

Annotators were asked whether two points belong together. Given the assignments z, their answers are
independent. Each is wrong with a probability that depends on the annotator, and optionally on
whether the points belong together. So an answer is a soft relation whose log-weight follows from
these error rates. EM estimates them: the E-step computes the probability that each answer is wrong,
the M-step counts. This is the method of Dawid and Skene (1979) with one difference: the true
relations of pairs depend on each other, through the points and because z_i = z_j and z_j = z_k
imply z_i = z_k. Chapter 16 explains the method.

=======  ======================================================================
e, s_e   an answer about two points i and j; s_e is 1 for "together", 0 for "apart"
g        the annotator who gave an answer
α_g      p(s = 0 | z_i = z_j), rate of "apart" for points that belong together
β_g      p(s = 1 | z_i ≠ z_j), rate of "together" for points that do not
w_e      log p(s_e | together) - log p(s_e | apart), log-weight of the answer
p_e      p(z_i = z_j | X, all answers, θ) for the points i and j of answer e
q        error rate that applies to each answer
a, b     parameters of the prior Beta(a, b) of each rate
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
    """Error rates of annotators, with the error probability and log-weight of each answer."""

    false_apart: FloatArray
    """(G,) α_g, probability of the answer "apart" for two points that belong together."""
    false_together: FloatArray
    """(G,) β_g, probability of "together" for points that do not; equals α_g if kinds=False."""
    wrong: FloatArray
    """(P,) posterior probability that an answer is wrong."""
    preferences: FloatArray
    """(P, 3) rows i, j, w_e: the answers in the format of ``fit(X, preferences=...)``."""
    names: NDArray[np.generic]
    """(G,) sorted names of the annotators."""
    history: FloatArray
    """(T,) log p(X, answers | θ, rates) + log prior of the rates in nats, for each iteration; it
    never decreases if the engine is exact."""
    converged: bool
    """True if no rate changed by more than ``tol`` in the last iteration."""


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
        θ, which stays fixed. To estimate θ together with the rates, fit again with the resulting
        ``preferences``, and repeat, as :class:`AnnotatorMixture` does.
    side : SideInformation
        The certain side information, without the answers.
    answers : (P, 3) array_like
        Rows ``i, j, said``: ``said`` is 1 for "together" and 0 for "apart". There may be several
        answers about a pair.
    engine : callable
        An engine of :data:`cgmm.inference.ENGINES`. The results are exact if the engine is exact.
    annotator : (P,) array_like, default=None
        Name of the annotator of each answer, of any type. None: all answers share one error rate.
    kinds : bool, default=False
        True: estimate two rates per annotator, one for pairs that belong together and one for other
        pairs. False: estimate one rate per annotator.
    prior : (float, float), default=(2, 5)
        a and b, both above 1, of the Beta prior of each rate. They have the effect of a - 1 wrong
        and b - 1 right answers in addition to the data.
    start : AnnotatorRates, default=None
        Initial rates: an earlier result for the same annotators. None: the mode of the prior.
    tol : float, default=1e-5
        EM ends when no rate changes by more than this.
    max_iter : int, default=1000
        Largest number of iterations. Each is an E-step in the network of all answers. It takes K
        calls of the engine for each node that has to be fixed in the largest connected component;
        there are not many such nodes if answers hardly overlap.

    Returns
    -------
    AnnotatorRates
        The rates, and for each answer the probability that it is wrong, and its log-weight.

    Raises
    ------
    ValueError
        If an answer does not name two points or is neither 0 nor 1, if there are no answers, if
        there is not one annotator per answer, or if the prior permits a rate of 0.
    NetworkError
        If the engine raises it.

    Notes
    -----
    EM converges to a local maximum near the mode of the prior. In one case no number of answers
    identifies the rates: if there are two components with equal weights, and the points are
    uninformative. If the pairs of the answers then form no cycle, the likelihood does not depend on
    a rate that is the same for both kinds of pairs; if all cycles are even, q and 1 - q are equally
    likely. The estimate then depends on the prior alone. Points that distinguish the components,
    labels, or odd cycles of answers make the rates identifiable. Annotators who make the same
    errors appear reliable, because the model assumes independent errors.

    As rates go to zero, the answers become hard relations.

    Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM
    algorithm. Their labels of two classes correspond to answers about pairs of a point and one
    labelled point.

    Examples
    --------
    There are two clusters. Annotator "a" is right four times; "b" always answers "together":

    >>> from cgmm.inference import ENGINES
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-3.0], [3.0]]), np.ones((2, 1, 1)))
    >>> X = np.repeat([[-3.0], [3.0]], 4, axis=0)
    >>> a = [[0, 1, 1], [4, 5, 1], [0, 4, 0], [1, 5, 0]]
    >>> b = [[2, 3, 1], [6, 7, 1], [2, 6, 1], [3, 7, 1]]
    >>> annotator = np.repeat(["a", "b"], 4)
    >>> side = SideInformation.build(8)
    >>> found = error_rates(X, theta, side, [*a, *b], ENGINES["auto"], annotator=annotator)
    >>> found.false_apart.round(3), found.wrong.round(3)[4:]
    (array([0.111, 0.333]), array([0., 0., 1., 1.]))
    """
    rows, names, annotator_of = _check_annotations(answers, annotator, len(X), prior, start)
    (a, b), says_together, G = prior, rows[:, 2] == 1, len(names)
    # In row 0 of both arrays the two points belong together, in row 1 they do not. ``is_wrong``
    # says if the answer is wrong in this case, ``rate_of`` is the index of its error rate.
    is_wrong = np.array([~says_together, says_together])
    rate_of = np.array([annotator_of, annotator_of + kinds * G])
    rates = np.full((1 + kinds) * G, (a - 1) / (a + b - 2))
    if start is not None:
        rates = np.concatenate(start[: 1 + kinds])
    nodes, unary = side.node_of[rows[:, :2]], node_unaries(X, parameters, side)
    infer_truths = partial(_infer_truths, unary, side.graph, nodes, is_wrong, engine)
    history, converged = list[float](), False
    while not converged and len(history) < max_iter:
        evidence, p, _ = infer_truths(rates[rate_of])
        log_prior = xlogy(a - 1, rates) + xlog1py(b - 1, -rates)
        history.append(evidence + float(log_prior.sum()))
        n_wrong, n = (np.bincount(rate_of.ravel(), part.ravel()) for part in (is_wrong * p, p))
        # This is eq. 2.3 of Dawid and Skene, with the counts of the prior added.
        before, rates = rates, (n_wrong + a - 1) / (n + a + b - 2)
        converged = bool(np.abs(rates - before).max() <= tol)
    _, p, log_weights = infer_truths(rates[rate_of])
    wrong, preferences = (is_wrong * p).sum(axis=0), np.column_stack([rows[:, :2], log_weights])
    return AnnotatorRates(
        rates[:G], rates[-G:], wrong, preferences, names, np.array(history), converged
    )  # fmt: skip


def _infer_truths(
    unary: FloatArray, graph: Graph, nodes: IntArray, is_wrong: BoolArray, engine: Engine,
    q: FloatArray,
) -> tuple[float, FloatArray, FloatArray]:  # fmt: skip
    """Return log p(X, answers | θ, rates), the (2, P) array of p_e and 1 - p_e, and (P,) w_e."""
    together, apart = np.where(is_wrong, np.log(q), np.log1p(-q))
    # Answers about must-linked points need no edge, because their true relation is known.
    needs_edge, log_weights = nodes[:, 0] != nodes[:, 1], together - apart
    edges = np.concatenate([graph.edges, nodes[needs_edge]])
    edge_weights = np.concatenate([graph.weights, log_weights[needs_edge]])
    network = simplify(Graph(graph.n_nodes, edges, edge_weights))
    infer = engine(network)
    evidence = infer(unary).log_z + float(np.where(needs_edge, apart, together).sum())
    log_odds = log_odds_together(infer, unary, network, nodes)
    return evidence, expit(np.array([log_odds, -log_odds])), log_weights


def _check_annotations(
    answers: ArrayLike, annotator: ArrayLike | None, n_points: int, prior: tuple[float, float],
    start: AnnotatorRates | None = None,
) -> tuple[IntArray, NDArray[np.generic], IntArray]:  # fmt: skip
    """Return the checked answers, the annotators' names, and the annotator index of each answer."""
    rows = check_answers(answers, n_points)
    annotators = np.zeros(len(rows), dtype=int) if annotator is None else np.asarray(annotator)
    if len(rows) == 0:
        raise ValueError("there is no answer to learn from; give one: answers=[[0, 1, 1]].")
    if annotators.shape != (len(rows),):
        raise ValueError(
            f"annotator has shape {annotators.shape} for {len(rows)} answers; name one for each "
            "answer."
        )
    if min(prior) <= 1:
        raise ValueError(
            f"the prior is Beta{tuple(prior)}; both numbers must be above 1, else a rate may "
            "become 0, a hard relation that nothing corrects. A weak prior is prior=(1.1, 1.5)."
        )
    names, annotator_of = np.unique(annotators, return_inverse=True)
    if start is not None and not np.array_equal(start.names, names):
        raise ValueError(
            f"start has rates of {start.names.tolist()}, but {names.tolist()} have answered; give "
            "start=None if the annotators are not the same."
        )
    return rows, names, annotator_of


# ---------------------------------------------------------------------------- with the mixture


class AnnotatorMixture(BaseEstimator):
    """Mixture that is fitted together with the error rates of its annotators.

    Parameters
    ----------
    estimator : ConstrainedGaussianMixture or another mixture
        The mixture that every round fits. Answers enter by the joint likelihood: ``weights`` "auto"
        means "ignore" here. With ``warm_start=True`` each round continues from the parameters of
        the last one. This is faster, but EM then cannot leave a wrong local maximum; if the answers
        should decide between several maxima, use ``warm_start=False``.
    kinds : bool, default=False
        True: estimate two rates per annotator, one for pairs that belong together and one for other
        pairs. False: estimate one rate per annotator.
    prior : (float, float), default=(2, 5)
        a and b of the Beta prior of each rate, as in :func:`error_rates`. The first fit uses the
        mode of the prior as the rate of every annotator.
    tol : float, default=1e-3
        The rounds end when no rate changes by more than this.
    max_rounds : int, default=50
        Largest number of fits per restart.
    n_init : int, default=1
        Number of restarts. The first one begins with the mode of the prior for every annotator;
        each other one trusts one annotator, drawn at random, and ignores the other annotators. The
        result with the highest likelihood is kept. A single restart may converge to clusters that
        the annotators do not mean, and attribute the mismatch to errors of the annotators.
    random_state : int, RandomState, Generator or None, default=0
        Seed for the annotators whom the restarts trust.

    Attributes
    ----------
    rates_ : (G, 2) array
        Error rates of each annotator for pairs that belong together, and for pairs that do not.
    annotators_ : (G,) array
        Sorted names of the annotators.
    wrong_ : (P,) array
        Posterior probability that an answer is wrong.
    preferences_ : (P, 3) array
        The answers as preferences, with the log-weights that follow from the rates.
    estimator_ : estimator
        The fitted mixture of the best round.
    labels_ : (N,) int array
        The component of each point according to ``estimator_``.
    history_ : (R,) array
        log p(X, answers | θ, rates) + log prior of the rates after each round, in nats. It never
        decreases if ``warm_start=True`` and there is no regularisation. The best round is kept.
    converged_ : bool
        True if no rate changed by more than ``tol`` in the last round.

    Notes
    -----
    If the mixture is wrong about the classes, it trusts annotators who share its error, and assigns
    high error rates to those who do not. Examine the rates before relying on them.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(40, 1)) + np.repeat([[-4.0], [4.0]], 20, axis=0)
    >>> true = [[i, i + 1, 1] for i in range(0, 18, 2)] + [[i, 39 - i, 0] for i in range(1, 18, 2)]
    >>> answers = [*true, [20, 21, 0], [22, 23, 0], [24, 25, 0]]
    >>> annotator = ["ann"] * 18 + ["bob"] * 3
    >>> mixture = ConstrainedGaussianMixture(2, random_state=0)
    >>> model = AnnotatorMixture(mixture).fit(X, answers, annotator=annotator)
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
        """Fit the mixture and the rates alternately.

        Parameters
        ----------
        X : (N, D) array_like
            The points.
        answers : (P, 3) array_like
            Rows ``i, j, said``: ``said`` is 1 for "together" and 0 for "apart".
        annotator : (P,) array_like, default=None
            Name of the annotator of each answer, of any type. None: all answers share one rate.
        **known
            Certain side information: ``labels``, ``must_link``, ``cannot_link``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in :func:`error_rates`, and as in ``fit`` of the mixture.
        """
        X = np.asarray(X, dtype=float)
        side = contracted(len(X), sampling=joint(self.estimator).sampling, **known)
        rows, names, annotator_of = _check_annotations(answers, annotator, len(X), self.prior)
        check_integer("max_rounds", self.max_rounds, 1)
        check_integer("n_init", self.n_init, 1)
        restarts = (
            self._run_rounds(X, side, rows, names[annotator_of], certainty, known)
            for certainty in self._list_initial_certainties(annotator_of, len(names))
        )
        self.estimator_, rates, held_warnings, self.history_, self.converged_ = max(
            restarts, key=lambda restart: restart[3].max()
        )
        self.rates_ = np.column_stack([rates.false_apart, rates.false_together])
        self.annotators_, self.wrong_ = rates.names, rates.wrong
        self.preferences_ = rates.preferences
        self.labels_ = self.estimator_.labels_
        for text, kind in held_warnings:
            warn_caller(text, kind)
        if not self.converged_:
            warn_caller(
                f"rates still changed by more than {self.tol:g} after {self.max_rounds} rounds; "
                "allow more rounds, max_rounds=200, or look at history_.",
                ConvergenceWarning,
            )
        return self

    def _list_initial_certainties(
        self, annotator_of: IntArray, n_annotators: int
    ) -> list[FloatArray]:
        """Return the (P,) initial certainties of the answers for each restart."""
        a, b = self.prior
        mode = (b - 1) / (a + b - 2)
        order = generator(self.random_state).permutation(n_annotators)
        # A certainty of 0.5 gives log-weight zero to answers of annotators who are not trusted.
        trusting_one = [np.where(annotator_of == g, mode, 0.5) for g in order[: self.n_init - 1]]
        return [np.full(len(annotator_of), mode), *trusting_one]

    def _run_rounds(
        self, X: FloatArray, side: SideInformation, rows: IntArray, annotator: ArrayLike,
        certainty: FloatArray, known: dict[str, Any],
    ) -> tuple[Any, AnnotatorRates, list[tuple[str, type[Warning]]], FloatArray, bool]:  # fmt: skip
        """Return mixture, rates and warnings of the best round, and history and convergence."""
        model, rates, history = joint(clone(self.estimator)), None, list[float]()
        preferences, change = preferences_from_answers(rows, certainty), np.inf
        while change > self.tol and len(history) < self.max_rounds:
            with WarnedOnce() as warned:
                model.fit(X, preferences=preferences, **known)
                before, rates = rates, error_rates(
                    X, model.parameters_, side, rows, ENGINES["auto"], annotator=annotator,
                    kinds=self.kinds, prior=self.prior, start=rates,
                )  # fmt: skip
                held_warnings = warned.held.copy()
                warned.held.clear()
            preferences = rates.preferences
            history.append(float(rates.history[-1]))
            if before is not None:
                change = np.abs(np.subtract(before[:2], rates[:2])).max()
            # Without warm start, a round may end lower than the one before, so keep the best one.
            if history[-1] >= max(history):
                best = copy(model), rates, held_warnings
        return *best, np.array(history), bool(change <= self.tol)

    def predict(self, X: ArrayLike, **known: Any) -> IntArray:
        """Return the most probable component of each point.

        Parameters
        ----------
        X : (N, D) array_like
            Points.
        **known
            Relations between these points, as in ``predict`` of the mixture.

        Returns
        -------
        (N,) int array
            Index of the component.
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X, **known)
