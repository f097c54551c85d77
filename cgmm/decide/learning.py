"""Points and witnesses at once: what classes are like, and how often each witness errs.

Both are EM on one likelihood, that of the points and of the answers, p(X, answers | θ, rates). With
the rates as they are, answers are preferences, and a fit finds θ; with θ as it is,
:func:`~cgmm.decide.error_rates` finds the rates. Each climbs, in turns.

=====  ====================================================================
θ      parameters of the mixture
q_0    the rate of errors that is most probable a priori
=====  ====================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from cgmm.decide.honest import joint
from cgmm.decide.witnesses import Witnesses, error_rates, name_witnesses, read_rows
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters
from cgmm.network import Engine, SideInformation
from cgmm.network.side_information import contracted
from cgmm.numerics import FloatArray, IntArray
from cgmm.scenarios import preferences_from_answers


class Learnt(NamedTuple):
    """θ and the rates, each found with the other."""

    parameters: Parameters
    """θ of the last fit."""
    witnesses: Witnesses
    """The rates at this θ; ``preferences`` has the answers with the weights that they deserve."""
    history: FloatArray
    """(R,) log p(X, answers | θ, rates) + log prior of the rates after each round, in nats."""
    converged: bool
    """Whether the last round moved no rate by more than ``tol``."""


class WitnessMixture(BaseEstimator):
    """A mixture fitted to answers of unknown reliability, which it learns beside the classes.

    Parameters
    ----------
    estimator : ConstrainedGaussianMixture or another mixture
        Fitted in every round. Answers enter by the joint likelihood: ``weights`` "auto" stands for
        "ignore" here. With ``warm_start=True`` each round goes on from the last, which is quicker,
        and stays where a wrong first maximum lies.
    kinds : bool, default=False
        Whether a witness has two rates, one for what belongs together and one for what does not.
    prior : (float, float), default=(2, 5)
        a and b of the Beta prior of each rate, as in :func:`error_rates`.
    tol, max_rounds, n_init, random_state
        As in :func:`learn_from_witnesses`.

    Attributes
    ----------
    rates_ : (G, 2) array
        How often each witness errs: of pairs that belong together, of pairs that do not.
    witnesses_ : (G,) array
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
        log p(X, answers | θ, rates) + log prior of the rates after each round, in nats.
    converged_ : bool
        Whether the last round moved no rate by more than ``tol``.

    Notes
    -----
    A mixture that is wrong about the classes learns from witnesses who share its error, and takes
    those who do not for liars. Look at the rates before believing them.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(40, 1)) + np.repeat([[-4.0], [4.0]], 20, axis=0)
    >>> true = [[i, i + 1, 1] for i in range(0, 18, 2)] + [[i, 39 - i, 0] for i in range(1, 18, 2)]
    >>> answers = [*true, [20, 21, 0], [22, 23, 0], [24, 25, 0]]
    >>> said_by = ["ann"] * 18 + ["bob"] * 3
    >>> mixture = ConstrainedGaussianMixture(2, random_state=0)
    >>> model = WitnessMixture(mixture).fit(X, answers, witness=said_by)
    >>> model.witnesses_.tolist(), model.rates_[:, 0].round(2)
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
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        self.estimator = estimator
        self.kinds = kinds
        self.prior = prior
        self.tol = tol
        self.max_rounds = max_rounds
        self.n_init = n_init
        self.random_state = random_state

    def fit(
        self, X: ArrayLike, answers: ArrayLike, *, witness: ArrayLike | None = None, **known: Any
    ) -> WitnessMixture:
        """Fit mixture and rates in turns.

        Parameters
        ----------
        X : (N, D) array_like
            The points.
        answers : (P, 3) array_like
            Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".
        witness : (P,) array_like, default=None
            Who gave each answer: any names. None: one rate for all.
        **known
            What is known for certain: ``labels``, ``must_link``, ``cannot_link``.

        Returns
        -------
        self
        """
        X, model = np.asarray(X, dtype=float), joint(clone(self.estimator))
        fitted = list[tuple[Parameters, Any]]()

        def fit(preferences: FloatArray) -> Parameters:
            model.fit(X, preferences=preferences, **known)
            fitted.append((model.parameters_, copy(model)))
            return fitted[-1][0]

        options = self.get_params(deep=False)
        del options["estimator"]
        side = contracted(len(X), sampling=model.sampling, **known)
        learnt = learn_from_witnesses(
            X, fit, side, answers, ENGINES["auto"], witness=witness, **options
        )
        found = learnt.witnesses
        self.rates_ = np.column_stack([found.false_apart, found.false_together])
        self.witnesses_, self.wrong_ = found.names, found.wrong
        self.preferences_ = found.preferences
        self.history_, self.converged_ = learnt.history, learnt.converged
        self.estimator_ = next(of for theta, of in fitted if theta is learnt.parameters)
        self.labels_ = self.estimator_.labels_
        if not self.converged_:
            warnings.warn(
                f"rates still moved by more than {self.tol:g} after {self.max_rounds} rounds; "
                "let it go on, max_rounds=200, or look at history_.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

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


def learn_from_witnesses(
    X: FloatArray,
    fit: Callable[[FloatArray], Parameters],
    side: SideInformation,
    answers: ArrayLike,
    engine: Engine,
    *,
    prior: tuple[float, float] = (2.0, 5.0),
    tol: float = 1e-3,
    max_rounds: int = 50,
    n_init: int = 1,
    random_state: int | np.random.Generator | None = 0,
    **options: Any,
) -> Learnt:
    """The rounds of :class:`WitnessMixture`, with a fit, an engine and options of one's own.

    Parameters
    ----------
    X : (N, D) array
        The points.
    fit : callable
        From preferences (P, 3) to θ: ``lambda rows: model.fit(X, preferences=rows).parameters_``,
        together with all that is in ``side``. The mixture has ``weights="ignore"``, since answers
        are data and no condition on the prior; with ``warm_start=True`` each round goes on from the
        last, which is quicker, and stays where a wrong first maximum lies: where answers decide
        between maxima, begin each round afresh.
    side : SideInformation
        What is known for certain, without the answers.
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".
    engine : callable
        An exact engine, as of :data:`cgmm.inference.ENGINES`.
    prior : (float, float), default=(2, 5)
        As in :func:`error_rates`. The first fit takes its mode for every witness.
    tol : float, default=1e-3
        The rounds end when no rate moves by more.
    max_rounds : int, default=50
        How many fits from one beginning.
    n_init : int, default=1
        Beginnings. The first takes the prior's mode for every witness, the others believe one of
        them, drawn by lot, and nobody else; kept is the end with the highest likelihood. EM may end
        where the points are described in another way and the witnesses blamed for it.
    random_state : int, Generator or None, default=0
        Whom the later beginnings believe.
    **options
        ``witness``, ``kinds`` and others of :func:`error_rates`.

    Returns
    -------
    Learnt
        θ, rates, and their common likelihood round by round, which never falls where fits go on
        from the last and are not regularised.

    Raises
    ------
    ValueError
        As :func:`error_rates`, and as ``fit``.
    """
    rows = read_rows(answers, side, prior)
    if max_rounds < 1 or n_init < 1:
        raise ValueError(
            f"max_rounds is {max_rounds} and n_init {n_init}; there must be one at least: "
            "max_rounds=50, n_init=1."
        )

    def climb(preferences: FloatArray) -> Learnt:
        found, history, converged = None, list[float](), False
        while not converged and len(history) < max_rounds:
            theta, before = fit(preferences), found
            found = error_rates(X, theta, side, rows, engine, prior=prior, start=before, **options)
            preferences = found.preferences
            history.append(float(found.history[-1]))
            if before is not None:
                converged = np.abs(np.subtract(before[:2], found[:2])).max() <= tol
            # A fit that begins afresh may end lower than the last: the best round is kept.
            if history[-1] >= max(history):
                best = theta, found
        return Learnt(*best, np.array(history), bool(converged))

    ends = [climb(first) for first in _beginnings(rows, prior, n_init, random_state, **options)]
    return max(ends, key=lambda learnt: learnt.history.max())


def _beginnings(
    rows: IntArray,
    prior: tuple[float, float],
    n_init: int,
    random_state: int | np.random.Generator | None,
    witness: ArrayLike | None = None,
    **_: Any,
) -> list[FloatArray]:
    """The answers as preferences: all witnesses alike, or one of them and nobody else."""
    a, b = prior
    certainty = (b - 1) / (a + b - 2)
    names, of = name_witnesses(witness, len(rows))
    order = np.random.default_rng(random_state).permutation(len(names))
    # Of whom nothing is believed the answers are as likely wrong as right.
    believed = [np.where(of == g, certainty, 0.5) for g in order]
    beginnings = [np.full(len(rows), certainty), *believed][:n_init]
    return [preferences_from_answers(rows, of_each) for of_each in beginnings]
