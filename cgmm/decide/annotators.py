"""Learn how often each annotator errs, from the points and from the other answers.

Annotators were asked whether two points belong together. Given the assignments z, their answers are
independent, and each is wrong with a probability that depends on the annotator, and perhaps on the
truth. So an answer is a soft relation whose log-weight follows from these rates, and EM finds both:
the E-step computes the probability that each answer is wrong, the M-step counts. This is the method
of Dawid and Skene (1979) with one difference: the truths about pairs depend on each other, through
the points and because z_i = z_j and z_j = z_k imply z_i = z_k. Chapter 16 explains the method.

=======  ======================================================================
e, s_e   an answer about two points i and j; s_e = 1 "together", 0 "apart"
g        the annotator who gave it
α_g      p(s = 0 | z_i = z_j), rate of "apart" for points that belong together
β_g      p(s = 1 | z_i ≠ z_j), rate of "together" for points that do not
w_e      log p(s_e | together) - log p(s_e | apart), log-weight of the answer
p_e      p(z_i = z_j | X, all answers, θ)
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
    """(G,) α_g, probability of the answer "apart" about two points that belong together."""
    false_together: FloatArray
    """(G,) β_g, probability of "together" about two points that do not; α_g unless ``kinds``."""
    wrong: FloatArray
    """(P,) the posterior probability that an answer is wrong, given everything."""
    preferences: FloatArray
    """(P, 3) rows i, j, w_e: the answers as ``fit(X, preferences=...)`` takes them."""
    names: NDArray[np.generic]
    """(G,) names of the annotators, sorted."""
    history: FloatArray
    """(T,) log p(X, answers | θ, rates) + log prior of the rates in nats, iteration by iteration;
    it never falls if the engine is exact."""
    converged: bool
    """True if the last iteration changed no rate by more than ``tol``."""


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
        θ, which stays fixed. To estimate it together with the rates, fit again with the resulting
        ``preferences``, and repeat; :class:`AnnotatorMixture` does so.
    side : SideInformation
        The certain side information, without the answers.
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart". A pair may have several.
    engine : callable
        An engine of :data:`cgmm.inference.ENGINES`; the statements here hold if it is exact.
    annotator : (P,) array_like, default=None
        Name of the annotator of each answer, of any type. None: one rate for all.
    kinds : bool, default=False
        True: an annotator has two rates, one for pairs that belong together, one for other pairs.
    prior : (float, float), default=(2, 5)
        a and b, above 1, of the Beta prior of each rate. They act like a - 1 wrong and b - 1 right
        answers in addition to the data.
    start : AnnotatorRates, default=None
        Initial rates: an earlier result for the same annotators. None: the mode of the prior.
    tol : float, default=1e-5
        EM ends when no rate changes by more.
    max_iter : int, default=1000
        Largest number of iterations. Each is an E-step in the network of all answers, with K calls
        of the engine for each node that has to be held fixed in the largest component; there are
        not many such nodes if answers hardly overlap.

    Returns
    -------
    AnnotatorRates
        Rates, the probability that each answer is wrong, and its log-weight.

    Raises
    ------
    ValueError
        If an answer does not name two points or is neither 0 nor 1, if there are no answers, if
        there is not one annotator per answer, or if the prior permits a rate of 0.
    NetworkError
        If the engine raises it.

    Notes
    -----
    EM climbs from the prior's mode to a maximum near it, and there may be others. In one case no
    number of answers identifies the rates: two components with equal weights, and uninformative
    points. If the pairs of the answers form no cycle, the likelihood does not depend on a rate that
    is the same for both kinds; if all cycles are even, q and 1 - q are equally likely. The prior
    then decides. Points that distinguish the components, labels, or odd cycles of answers resolve
    this. Annotators who make the same errors appear reliable, because the model assumes that errors
    are independent.

    As rates go to zero, the answers become hard relations.

    Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM
    algorithm. Their labels of two classes correspond to answers about pairs of a point and one
    labelled point.

    Examples
    --------
    There are two clusters; "a" is right four times, and "b" always says "together":

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
    rows, names, of = _read(answers, annotator, len(X), prior, start)
    (a, b), says_together, G = prior, rows[:, 2] == 1, len(names)
    # Row 0 of both arrays assumes that the two points belong together, row 1 that they do not.
    # They hold whether the answer is then wrong, and the index of its error rate.
    wrong_if, which = np.array([~says_together, says_together]), np.array([of, of + kinds * G])
    rates = np.full((1 + kinds) * G, (a - 1) / (a + b - 2))
    if start is not None:
        rates = np.concatenate(start[: 1 + kinds])
    nodes, unary = side.node_of[rows[:, :2]], node_unaries(X, parameters, side)
    infer_truths = partial(_infer_truths, unary, side.graph, nodes, wrong_if, engine)
    history, converged = list[float](), False
    while not converged and len(history) < max_iter:
        evidence, p, _ = infer_truths(rates[which])
        log_prior = xlogy(a - 1, rates) + xlog1py(b - 1, -rates)
        history.append(evidence + float(log_prior.sum()))
        wrong, cases = (np.bincount(which.ravel(), part.ravel()) for part in (wrong_if * p, p))
        # This is eq. 2.3 of Dawid and Skene, with the counts of the prior.
        before, rates = rates, (wrong + a - 1) / (cases + a + b - 2)
        converged = bool(np.abs(rates - before).max() <= tol)
    _, p, log_weights = infer_truths(rates[which])
    wrong, preferences = (wrong_if * p).sum(axis=0), np.column_stack([rows[:, :2], log_weights])
    return AnnotatorRates(
        rates[:G], rates[-G:], wrong, preferences, names, np.array(history), converged
    )  # fmt: skip


def _infer_truths(
    unary: FloatArray, graph: Graph, nodes: IntArray, wrong_if: BoolArray, engine: Engine,
    q: FloatArray,
) -> tuple[float, FloatArray, FloatArray]:  # fmt: skip
    """Return log p(X, answers | θ, rates), (2, P) p_e and 1 - p_e of each answer, and w_e."""
    together, apart = np.where(wrong_if, np.log(q), np.log1p(-q))
    # Answers about must-linked points need no edge: their truth is known.
    open_, log_weights = nodes[:, 0] != nodes[:, 1], together - apart
    edges = np.concatenate([graph.edges, nodes[open_]])
    extended = np.concatenate([graph.weights, log_weights[open_]])
    network = simplify(Graph(graph.n_nodes, edges, extended))
    infer = engine(network)
    evidence = infer(unary).log_z + float(np.where(open_, apart, together).sum())
    log_odds = log_odds_together(infer, unary, network, nodes)
    return evidence, expit(np.array([log_odds, -log_odds])), log_weights


def _read(
    answers: ArrayLike, annotator: ArrayLike | None, n_points: int, prior: tuple[float, float],
    start: AnnotatorRates | None = None,
) -> tuple[IntArray, NDArray[np.generic], IntArray]:  # fmt: skip
    """Return the answers (columns i, j, said), the annotators' names, and each row's annotator."""
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
        The mixture fitted in every round. Answers enter by the joint likelihood: ``weights`` "auto"
        means "ignore" here. With ``warm_start=True`` each round continues from the last one. This
        is faster but cannot leave a wrong first maximum: if answers decide between maxima, start
        each round afresh.
    kinds : bool, default=False
        True: an annotator has two rates, one for pairs that belong together, one for other pairs.
    prior : (float, float), default=(2, 5)
        a and b of the Beta prior of each rate, as in :func:`error_rates`. The first fit takes its
        mode for every annotator.
    tol : float, default=1e-3
        The rounds end when no rate changes by more.
    max_rounds : int, default=50
        Largest number of fits per restart.
    n_init : int, default=1
        Number of restarts. The first takes the prior's mode for every annotator; each other one
        trusts one annotator, drawn at random, and ignores the rest. The result with the highest
        likelihood is kept. A single EM run may converge to other clusters of the points and
        attribute the mismatch to the annotators.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the annotators whom later restarts trust.

    Attributes
    ----------
    rates_ : (G, 2) array
        Error rates of each annotator for pairs that belong together, and for pairs that do not.
    annotators_ : (G,) array
        Their names, sorted.
    wrong_ : (P,) array
        The posterior probability that an answer is wrong, given everything.
    preferences_ : (P, 3) array
        The answers with the log-weights that follow from the rates.
    estimator_ : estimator
        The mixture of the round that was kept.
    labels_ : (N,) int array
        The component of each point in that mixture.
    history_ : (R,) array
        log p(X, answers | θ, rates) + log prior of the rates after each round, in nats. It never
        falls if fits continue from the last one without regularisation. The best round is kept.
    converged_ : bool
        True if the last round changed no rate by more than ``tol``.

    Notes
    -----
    A mixture that is wrong about the classes learns from annotators who share its error, and
    assigns high error rates to those who do not. Examine the rates before relying on them.

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
            Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".
        annotator : (P,) array_like, default=None
            Name of the annotator of each answer, of any type. None: one rate for all.
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
        rows, names, of = _read(answers, annotator, len(X), self.prior)
        check_integer("max_rounds", self.max_rounds, 1)
        check_integer("n_init", self.n_init, 1)
        certainties = self._initial_certainties(of, len(names))
        runs = (self._run_rounds(X, side, rows, names[of], first, known) for first in certainties)
        self.estimator_, found, held, self.history_, self.converged_ = max(
            runs, key=lambda run: run[3].max()
        )
        self.rates_ = np.column_stack([found.false_apart, found.false_together])
        self.annotators_, self.wrong_ = found.names, found.wrong
        self.preferences_ = found.preferences
        self.labels_ = self.estimator_.labels_
        for text, kind in held:
            warn_caller(text, kind)
        if not self.converged_:
            warn_caller(
                f"rates still moved by more than {self.tol:g} after {self.max_rounds} rounds; "
                "let it go on, max_rounds=200, or infer_truths at history_.",
                ConvergenceWarning,
            )
        return self

    def _initial_certainties(self, of: IntArray, n_annotators: int) -> list[FloatArray]:
        """Return initial certainties: first equal ones, then some that trust one annotator each."""
        a, b = self.prior
        mode = (b - 1) / (a + b - 2)
        order = generator(self.random_state).permutation(n_annotators)
        # With a certainty of 0.5, answers of the other annotators have log-weight zero.
        believed = [np.where(of == g, mode, 0.5) for g in order[: self.n_init - 1]]
        return [np.full(len(of), mode), *believed]

    def _run_rounds(
        self, X: FloatArray, side: SideInformation, rows: IntArray, annotator: ArrayLike,
        certainty: FloatArray, known: dict[str, Any],
    ) -> tuple[Any, AnnotatorRates, list[tuple[str, type[Warning]]], FloatArray, bool]:  # fmt: skip
        """Return mixture, rates and warnings of the best round, then history and convergence."""
        model, found, history = joint(clone(self.estimator)), None, list[float]()
        preferences, moved = preferences_from_answers(rows, certainty), np.inf
        while moved > self.tol and len(history) < self.max_rounds:
            with WarnedOnce() as warned:
                model.fit(X, preferences=preferences, **known)
                before, found = found, error_rates(
                    X, model.parameters_, side, rows, ENGINES["auto"], annotator=annotator,
                    kinds=self.kinds, prior=self.prior, start=found,
                )  # fmt: skip
                held = warned.held.copy()
                warned.held.clear()
            preferences = found.preferences
            history.append(float(found.history[-1]))
            if before is not None:
                moved = np.abs(np.subtract(before[:2], found[:2])).max()
            # A fit without warm start may end lower than the one before, so keep the best round.
            if history[-1] >= max(history):
                best = copy(model), found, held
        return *best, np.array(history), bool(moved <= self.tol)

    def predict(self, X: ArrayLike, **known: Any) -> IntArray:
        """Return the most probable component of each point.

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
