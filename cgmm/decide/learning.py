"""Points and witnesses at once: what classes are like, and how often each witness errs.

Both are EM on one likelihood, that of the points and of the answers, p(X, answers | θ, rates). With
the rates as they are, answers are preferences, and a fit finds θ; with θ as it is,
:func:`~cgmm.decide.error_rates` finds the rates. Each climbs, in turns.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from cgmm.decide.honest import joint
from cgmm.decide.witnesses import Witnesses, error_rates, name_witnesses, read_rows
from cgmm.inference import ENGINES
from cgmm.network import SideInformation
from cgmm.network.side_information import contracted
from cgmm.numerics import FloatArray, IntArray, warn_caller
from cgmm.scenarios import preferences_from_answers


class WitnessMixture(BaseEstimator):
    """A mixture fitted to answers of unknown reliability, which it learns beside the classes.

    Parameters
    ----------
    estimator : ConstrainedGaussianMixture or another mixture
        Fitted in every round. Answers enter by the joint likelihood: ``weights`` "auto" stands for
        "ignore" here. With ``warm_start=True`` each round goes on from the last, which is quicker,
        and stays where a wrong first maximum lies: where answers decide between maxima, begin each
        round afresh.
    kinds : bool, default=False
        Whether a witness has two rates, one for what belongs together and one for what does not.
    prior : (float, float), default=(2, 5)
        a and b of the Beta prior of each rate, as in :func:`error_rates`. The first fit takes its
        mode for every witness.
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
        log p(X, answers | θ, rates) + log prior of the rates after each round, in nats. It never
        falls where fits go on from the last and are not regularised; the best round is kept.
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

        Raises
        ------
        ValueError
            As :func:`error_rates`, and as ``fit`` of the mixture.
        """
        X = np.asarray(X, dtype=float)
        side = contracted(len(X), sampling=joint(self.estimator).sampling, **known)
        rows = read_rows(answers, side, self.prior)
        names, of = name_witnesses(witness, len(rows))
        if self.max_rounds < 1 or self.n_init < 1:
            raise ValueError(
                f"max_rounds is {self.max_rounds} and n_init {self.n_init}; there must be one at "
                "least: max_rounds=50, n_init=1."
            )
        certainties = self._beginnings(of, len(names))
        ends = (self._climb(X, side, rows, names[of], first, known) for first in certainties)
        self.estimator_, found, self.history_, self.converged_ = max(
            ends, key=lambda end: end[2].max()
        )
        self.rates_ = np.column_stack([found.false_apart, found.false_together])
        self.witnesses_, self.wrong_ = found.names, found.wrong
        self.preferences_ = found.preferences
        self.labels_ = self.estimator_.labels_
        if not self.converged_:
            warn_caller(
                f"rates still moved by more than {self.tol:g} after {self.max_rounds} rounds; "
                "let it go on, max_rounds=200, or look at history_.",
                ConvergenceWarning,
            )
        return self

    def _beginnings(self, of: IntArray, n_witnesses: int) -> list[FloatArray]:
        """How certain answers are at first: all alike, or those of one witness and nobody else."""
        a, b = self.prior
        mode = (b - 1) / (a + b - 2)
        order = np.random.default_rng(self.random_state).permutation(n_witnesses)
        # Of whom nothing is believed the answers are as likely wrong as right.
        believed = [np.where(of == g, mode, 0.5) for g in order[: self.n_init - 1]]
        return [np.full(len(of), mode), *believed]

    def _climb(
        self, X: FloatArray, side: SideInformation, rows: IntArray, witness: ArrayLike,
        certainty: FloatArray, known: dict[str, Any],
    ) -> tuple[Any, Witnesses, FloatArray, bool]:  # fmt: skip
        """The best round from one beginning: mixture and rates; all heights; whether it ended."""
        model, found, history = joint(clone(self.estimator)), None, list[float]()
        preferences, moved = preferences_from_answers(rows, certainty), np.inf
        while moved > self.tol and len(history) < self.max_rounds:
            model.fit(X, preferences=preferences, **known)
            before, found = found, error_rates(
                X, model.parameters_, side, rows, ENGINES["auto"], witness=witness,
                kinds=self.kinds, prior=self.prior, start=found,
            )  # fmt: skip
            preferences = found.preferences
            history.append(float(found.history[-1]))
            if before is not None:
                moved = np.abs(np.subtract(before[:2], found[:2])).max()
            # A fit that begins afresh may end lower than the last: the best round is kept.
            if history[-1] >= max(history):
                best = copy(model), found
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
