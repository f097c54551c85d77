"""A search over settings by answers held out, beside evidence, BIC and ICL.

Every setting is fitted once without each fold of answers, which it is then asked for, and once with
all of them, for the criteria that hold nothing out.

=======  ======================================================================
q        error rate of answers, by which they are weighted and scored
ν        number of free parameters
=======  ======================================================================
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
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
    held_out_scores,
    log_score,
    one_standard_error,
    require_rate,
)
from cgmm.decide.entropy import assignment_entropy
from cgmm.decide.honest import joint
from cgmm.decide.workers import deaf_to_interrupts, with_bar
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
    seconds: float
    """What all its fits took."""
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
    results : path, default=None
        A file to which each setting is appended when it is whole; what it has is not tried again.
    random_state : int, default=0
        Which groups make a fold. Fits begin by the estimator's own ``random_state``.
    verbose : int, default=0
        1: a bar on standard error.

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

    results_: list[Trial]
    best_index_: int
    best_estimator_: Any
    best_setting_: dict[str, Any]
    choices_: dict[str, int]
    folds_: IntArray

    def __init__(
        self,
        estimator: Any,
        settings: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        error_rate: float = 0.1,
        n_folds: int = 5,
        n_jobs: int = 1,
        results: str | os.PathLike[str] | None = None,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.settings = settings
        self.error_rate = error_rate
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.results = results
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
            If answers cannot be parted into folds, the file of results is of another problem, or no
            setting can be fitted.
        KeyboardInterrupt
            If interrupted. ``results_`` and the file have the settings that are whole; ``fit`` with
            the same file takes up the others.
        """
        X = np.asarray(X, dtype=float)
        require_rate(self.error_rate)
        rows = check_answers(answers, len(X))
        pairs = rows[:, :2]
        certain = [known.get(name) for name in ("must_link", "cannot_link")]
        ties = [np.reshape(x, (-1, 2)) for x in certain if x is not None]
        groups = related_groups(len(X), cannot_link=np.concatenate([pairs, *ties]).astype(int))
        self.folds_ = answer_folds(pairs, groups, self.n_folds, random_state=self.random_state)
        grid = [
            {"error_rate": self.error_rate, **setting} for setting in ParameterGrid(self.settings)
        ]
        book = _Book(self.results, _fingerprint(self.estimator, X, rows, self.folds_, known))
        open_ = [setting for setting in grid if _key(setting) not in book.trials]
        try:
            with deaf_to_interrupts():
                parallel = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")
                done = parallel(
                    delayed(_try)(self.estimator, setting, X, rows, self.folds_, groups, known)
                    for setting in open_
                )
            out = sys.stderr if self.verbose else None
            for trial in with_bar(done, len(open_), "settings", out):
                book.add(trial)
        finally:
            self.results_ = [
                book.trials[_key(setting)] for setting in grid if _key(setting) in book.trials
            ]
        return self._choose(X, rows, known)

    def _choose(self, X: FloatArray, rows: IntArray, known: Any) -> AnswerSearch:
        """By the one-standard-error rule, and by every other criterion; the refit."""
        whole = [i for i, trial in enumerate(self.results_) if not trial.complaint]
        if not whole:
            raise ValueError(f"no setting could be fitted: {self.results_[0].complaint}")
        found = [self.results_[i] for i in whole]
        mean, error = [t.mean for t in found], [t.standard_error for t in found]
        chosen = {
            "held out": one_standard_error(mean, error, [t.n_free for t in found]),
            "highest mean": int(np.argmax(mean)),
            "evidence": int(np.argmax([t.evidence for t in found])),
            "bic": int(np.argmin([t.bic for t in found])),
            "icl": int(np.argmin([t.icl for t in found])),
        }
        self.choices_ = {name: whole[i] for name, i in chosen.items()}
        self.best_index_ = self.choices_["held out"]
        self.best_setting_ = self.results_[self.best_index_].setting
        model, q = _prepare(self.estimator, self.best_setting_)
        self.best_estimator_ = model.fit(
            X, preferences=preferences_from_answers(rows, 1 - q), **known
        )
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

    def table(self) -> str:
        """The results as text: a line a setting, the chosen ones marked by who chooses them.

        Returns
        -------
        str
            Setting, mean and standard error, evidence, BIC, ICL, ν.
        """
        lines = [f"{'log score':>17} {'evidence':>10} {'BIC':>9} {'ICL':>9} {'ν':>5}  setting"]
        for i, t in enumerate(self.results_):
            by = ", ".join(name for name, chosen in self.choices_.items() if chosen == i)
            said = ", ".join(f"{name}={value}" for name, value in t.setting.items())
            numbers = f"{t.mean:8.4f} ± {t.standard_error:.4f} {t.evidence:10.1f}"
            numbers += f" {t.bic:9.1f} {t.icl:9.1f} {t.n_free:5d}"
            lines.append(f"{t.complaint or numbers}  {said}" + (f"  <- {by}" if by else ""))
        return "\n".join(lines)


# ---------------------------------------------------------------------------- one setting


def _try(
    estimator: Any, setting: dict[str, Any], X: FloatArray, rows: IntArray, folds: IntArray,
    groups: IntArray, known: Any,
) -> Trial:  # fmt: skip
    """Held-out scores of a setting, and its criteria on everything."""
    began = time.perf_counter()
    (model, q), complaint = _prepare(estimator, setting), ""
    # A search has many fits: what did not converge is told by the refit.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            scores = held_out_scores(
                X, lambda told: clone(model).fit(X, preferences=told, **known).parameters_, rows,
                folds, ENGINES["auto"], error_rate=q, sampling=model.sampling, **known,
            )  # fmt: skip
            mean, error, _ = log_score(scores, rows[:, :2], groups)
            evidence, bic, icl, n_free = _criteria(clone(model), X, rows, q, known)
        except ValueError as refusal:
            mean = error = evidence = bic = icl = np.nan
            n_free, complaint = 0, str(refusal)
    took = time.perf_counter() - began
    return Trial(setting, mean, error, evidence, bic, icl, n_free, took, complaint)


def _criteria(
    model: Any, X: FloatArray, rows: IntArray, q: float, known: Any
) -> tuple[float, float, float, int]:
    """Evidence, BIC, ICL and ν of a fit to everything."""
    preferences = preferences_from_answers(rows, 1 - q)
    model.fit(X, preferences=preferences, **known)
    theta, n_free = model.parameters_, round(model.aic() / 2 + model.log_evidence_)
    side, certain = (
        contracted(len(X), preferences=relations, sampling=model.sampling, **known)
        for relations in (preferences, None)
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


# ---------------------------------------------------------------------------- what is kept


class _Book:
    """Trials by setting, and the file that keeps them: a line of JSON each."""

    def __init__(self, path: str | os.PathLike[str] | None, problem: str):
        self.path, self.problem = None if path is None else Path(path), problem
        self.trials: dict[str, Trial] = {}
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def _read(self, path: Path) -> None:
        for line in path.read_text(encoding="utf-8").split("\n"):
            try:
                problem, *values = json.loads(line)
            except json.JSONDecodeError:
                # A line that was cut off in writing, or the empty one after the last
                continue
            if problem != self.problem:
                raise ValueError(
                    f"{path} has results of other points, answers, folds or another estimator; "
                    f"name another file: results='{path.with_suffix('')}-2.jsonl'."
                )
            trial = Trial(*values)
            self.trials[_key(trial.setting)] = trial

    def add(self, trial: Trial) -> None:
        """Keep one, in memory and on disk."""
        self.trials[_key(trial.setting)] = trial
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8") as file:
                # The file may end in a line that was cut off: this one ends it.
                file.write("\n" + json.dumps([self.problem, *trial]) + "\n")


def _key(setting: dict[str, Any]) -> str:
    """A setting as text."""
    return json.dumps(setting, sort_keys=True, default=repr)


def _fingerprint(estimator: Any, X: FloatArray, rows: IntArray, folds: IntArray, known: Any) -> str:
    """What tells one search from another."""
    told = {name: np.asarray(value).tolist() for name, value in known.items()}
    text = repr(sorted(estimator.get_params().items(), key=str)) + json.dumps(told, sort_keys=True)
    parts = [X.tobytes(), rows.tobytes(), folds.tobytes(), text.encode()]
    return sha256(b"|".join(parts)).hexdigest()[:16]
