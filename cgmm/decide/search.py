"""A search over settings by answers held out, beside evidence, BIC and ICL.

Every setting is fitted once without each fold of answers, which it is then asked for, and once with
all of them, for the criteria that hold nothing out.

=======  ======================================================================
q        error rate of answers, by which they are weighted and scored
ν        number of free parameters
=======  ======================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from cgmm.decide.choosing import (
    answer_folds,
    assignment_entropy,
    held_out_scores,
    log_score,
    require_rate,
)  # fmt: skip
from cgmm.decide.honest import fit_answers, joint
from cgmm.inference import ENGINES
from cgmm.mixture import Prior, node_unaries
from cgmm.network import related_groups
from cgmm.network.side_information import contracted
from cgmm.numerics import FloatArray, IntArray
from cgmm.scenarios.answers import check_answers, preferences_from_answers


class Trial(NamedTuple):
    """One setting, judged; NaN where it failed."""

    setting: dict[str, Any]
    """Parameters of the estimator, and ``error_rate``."""
    mean: float
    """Mean log-probability of answers held out, in nats, higher is better."""
    standard_error: float
    """Of the mean, over groups of answers that hang together."""
    evidence: float
    """log p(X, answers | θ) in nats of a fit to everything, given what is certain: answers are
    data, so that error rates can be compared."""
    bic: float
    """-2 evidence + ν log N, lower is better."""
    icl: float
    """BIC + 2 H, H the entropy of all assignments: lower is better."""
    n_free: int
    """ν."""
    complaint: str
    """Why it failed, or nothing."""


class AnswerSearch(BaseEstimator):
    """Choose settings of a mixture by the answers that it was not told.

    Parameters
    ----------
    estimator : ConstrainedGaussianMixture or another mixture
        What is searched; its parameters hold where no setting says otherwise. Answers enter by the
        joint likelihood: ``weights`` "auto" stands for "ignore" here.
    settings : dict or list of dict
        As scikit-learn's ``ParameterGrid``: lists of values by the name of a parameter.
        ``"error_rate"`` is q, how often answers are wrong, in place of a γ = 1 - q.
    error_rate : float, default=0.1
        q where settings do not name it.
    n_folds : int, default=5
        Folds of groups of answers that hang together.
    n_jobs : int, default=1
        Settings tried at the same time, each by a process; -1: on all processors.
    random_state : int, Generator or None, default=0
        Which groups make a fold. Fits begin by the estimator's own ``random_state``.
    verbose : int, default=0
        As ``joblib.Parallel`` takes it.

    Attributes
    ----------
    results_ : list of Trial
        One for each setting, in their order.
    best_index_ : int
        The simplest setting, fewest free parameters, whose mean is not below the best one's by more
        than its standard error.
    best_estimator_ : estimator
        Fitted with that setting to everything.
    best_setting_ : dict
        Its setting.
    choices_ : dict
        The index that each criterion chooses: "held out", "highest mean", "evidence", "bic", "icl".
    folds_ : (P,) array
        The fold of each answer.

    Notes
    -----
    Breiman, Friedman, Olshen and Stone (1984), Classification and regression trees, sect. 3.4.3,
    have the rule of one standard error.

    Criteria disagree where the model is not true. The evidence of what was fitted rises with the
    number of components; BIC and ICL punish it, but ask how well points are described, and not
    whether components are classes. Answers held out ask for that, with an error that is told.
    All criteria take answers for random questions, or their pairs for chosen by a look at the
    points: :func:`cgmm.decide.fit_answers`.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) + np.repeat([[-3.0], [3.0]], 30, axis=0)
    >>> answers = [[i, i + 1, 1] for i in range(0, 58, 2)]
    >>> answers += [[i, 60 - i, 0] for i in range(1, 28, 2)]
    >>> model = ConstrainedGaussianMixture(weights="ignore", random_state=0)
    >>> search = AnswerSearch(model, {"n_components": [1, 2]}, error_rate=0.05).fit(X, answers)
    >>> search.best_setting_["n_components"], search.best_estimator_.n_components
    (2, 2)
    """

    def __init__(
        self,
        estimator: Any,
        settings: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        error_rate: float = 0.1,
        n_folds: int = 5,
        n_jobs: int = 1,
        random_state: int | np.random.Generator | None = 0,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.settings = settings
        self.error_rate = error_rate
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, answers: ArrayLike, **known: Any) -> AnswerSearch:
        """Try every setting, choose one, and fit it to everything.

        Parameters
        ----------
        X : (N, D) array_like
            The points.
        answers : (P, 3) array_like
            Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".
        **known
            What is known for certain: ``labels``, ``must_link``, ``cannot_link``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If answers cannot be parted into folds, or no setting can be fitted.
        KeyboardInterrupt
            If interrupted. ``results_`` has the settings that are whole.
        """
        X = np.asarray(X, dtype=float)
        require_rate(self.error_rate)
        rows = check_answers(answers, len(X))
        pairs = rows[:, :2]
        ties = {name: told for name, told in known.items() if name != "labels"}
        groups = related_groups(len(X), preferences=np.insert(pairs, 2, 1, axis=1), **ties)
        self.folds_ = answer_folds(pairs, groups, self.n_folds, random_state=self.random_state)
        grid = [{"error_rate": self.error_rate, **s} for s in ParameterGrid(self.settings)]
        parallel = Parallel(self.n_jobs, verbose=self.verbose, return_as="generator")
        self.results_ = list[Trial]()
        for trial in parallel(
            delayed(_try)(self.estimator, setting, X, rows, self.folds_, groups, known)
            for setting in grid
        ):
            self.results_.append(trial)
        return self._choose(X, rows, known)

    def _choose(self, X: FloatArray, rows: IntArray, known: Any) -> AnswerSearch:
        """By the one-standard-error rule, and by every other criterion; the refit."""
        whole = [i for i, trial in enumerate(self.results_) if not trial.complaint]
        if not whole:
            raise ValueError(f"no setting could be fitted: {self.results_[0].complaint}")
        found = [self.results_[i] for i in whole]
        chosen = {
            "held out": _simplest(found),
            "highest mean": int(np.argmax([t.mean for t in found])),
            "evidence": int(np.argmax([t.evidence for t in found])),
            "bic": int(np.argmin([t.bic for t in found])),
            "icl": int(np.argmin([t.icl for t in found])),
        }
        self.choices_ = {name: whole[i] for name, i in chosen.items()}
        self.best_index_ = self.choices_["held out"]
        self.best_setting_ = self.results_[self.best_index_].setting
        model, q = _prepare(self.estimator, self.best_setting_)
        self.best_estimator_ = fit_answers(model, X, rows, error_rate=q, **known)
        return self

    def predict(self, X: ArrayLike, **known: Any) -> IntArray:
        """Most probable component of each point, by the best setting fitted to everything.

        Parameters
        ----------
        X : (N, D) array_like
            Points.
        **known
            Relations among them, as ``predict`` of the estimator takes them.

        Returns
        -------
        (N,) int array
            The component.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X, **known)


def _simplest(trials: list[Trial]) -> int:
    """The one with fewest parameters that is within a standard error of the best one's mean."""
    best = max(trials, key=lambda t: t.mean)
    will_do = [i for i, t in enumerate(trials) if t.mean >= best.mean - best.standard_error]
    return min(will_do, key=lambda i: (trials[i].n_free, -trials[i].mean))


# ---------------------------------------------------------------------------- one setting


def _try(
    estimator: Any, setting: dict[str, Any], X: FloatArray, rows: IntArray, folds: IntArray,
    groups: IntArray, known: Any,
) -> Trial:  # fmt: skip
    """Held-out scores of a setting, and its criteria on everything."""
    model, q = _prepare(estimator, setting)
    # A search has many fits: what did not converge is told by the refit.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            scores = held_out_scores(
                X, lambda told: clone(model).fit(X, preferences=told, **known).parameters_, rows,
                folds, ENGINES["auto"], error_rate=q, sampling=model.sampling, **known,
            )  # fmt: skip
            mean, error, _ = log_score(scores, rows[:, :2], groups)
            return Trial(setting, mean, error, *_criteria(clone(model), X, rows, q, known), "")
        except ValueError as refusal:
            failed = np.nan
            return Trial(setting, failed, failed, failed, failed, failed, 0, str(refusal))


def _criteria(
    model: Any, X: FloatArray, rows: IntArray, q: float, known: Any
) -> tuple[float, float, float, int]:
    """Evidence, BIC, ICL and ν of a fit to everything."""
    model = fit_answers(model, X, rows, error_rate=q, **known)
    theta, n_free = model.parameters_, round(model.aic() / 2 + model.log_evidence_)
    side, certain = (
        contracted(len(X), preferences=relations, sampling=model.sampling, **known)
        for relations in (preferences_from_answers(rows, 1 - q), None)
    )
    infer = ENGINES["auto"](side.graph)
    log_z = infer(node_unaries(X, theta, side)).log_z
    log_z_prior = Prior(certain, ENGINES["auto"]).log_z(theta.weights)
    # A preference leaves out the factor that an answer has whatever is true.
    whatever = float(np.sum(np.where(rows[:, 2] == 1, np.log(q), np.log1p(-q))))
    evidence = log_z - log_z_prior + whatever
    bic = -2 * evidence + n_free * np.log(len(X))
    return evidence, bic, bic + 2 * assignment_entropy(X, theta, side, infer), n_free


def _prepare(estimator: Any, setting: dict[str, Any]) -> tuple[Any, float]:
    """The estimator with a setting, and the error rate."""
    parameters = dict(setting)
    q = float(parameters.pop("error_rate"))
    return joint(clone(estimator).set_params(**parameters)), q
