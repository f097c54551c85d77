"""Ask a person about pairs of rows, one at a time, and group a table by the answers.

:class:`Interview` keeps a table, the answers so far and a fitted mixture. It chooses a pair of
rows, takes the reply "same", "different" or "unsure", refits the mixture, and chooses the next
pair. It has no user interface: :class:`cgmm.explore.InterviewWidget` and ``python -m cgmm ask``
provide two. Chapter 15 derives the order of the questions and measures its effect.

There are four kinds of questions:

1. *explore*: compare the row farthest from all rows asked about with the nearest known class, until
   a row of each class is known;
2. *doubt*, two questions in three: compare a row whose class is uncertain with a row whose class is
   certain; of all such pairs, ask about the one whose answer has the highest expected information;
3. *check*, every third question: compare two random rows. The model predicts the answer before it
   is given, and ``Interview.progress`` reports how often it is right;
4. *place*, instead of *doubt* while the model predicts checks badly: compare a random row with the
   nearest known class, because a wrong model is uncertain about the wrong rows.

=========  ====================================================================
open pair  two rows about which the answer is neither given nor implied by other answers
check      a random pair whose answer the model predicts before it is given
unary      (N, K) joint log-densities log p(x_i, z_i = k)
r          (N, K) responsibilities given the table alone
p          probability of an answer, or of the answer "same"
q          error rate of answers, e.g. 0.05
=========  ====================================================================
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.special import entr, expit, logit, logsumexp, softmax
from scipy.stats import binomtest

from cgmm.decide.answer_file import REPLIES, Answer, AnswerFile
from cgmm.decide.asking import answer_information, check_probability, fit_answers, joint
from cgmm.decide.implied import Contradiction, ImpliedPairs
from cgmm.decide.rows import RowsByDistance, compute_coordinates, find_doubtful_pairs
from cgmm.diagnose import log_odds_together
from cgmm.given import explain_missing
from cgmm.inference import ENGINES
from cgmm.mixture import ConstrainedGaussianMixture, MixedMixture
from cgmm.mixture.columns import encode_table
from cgmm.network import SideInformation
from cgmm.numerics import FloatArray, IntArray, Seed, WarnedOnce, check_integer, generator
from cgmm.scenarios.answers import preferences_from_answers

CHECK_EVERY = 3
"""Interval between checks: every third question is a random pair, once exploring has ended."""
WINDOW = 30
"""Number of most recent checks to evaluate; older ones were predicted by older models."""
MAX_SURPRISE = 1.645
"""Critical value of the one-sided test at 5 % by which answers can refute a fit."""
FEWEST_CHECKS = 10
"""Smallest number of checks after which the interview may advise to stop."""


class Question(NamedTuple):
    """Pair of rows about which a person is asked whether they belong to the same group."""

    i: int
    """Row number of the first point."""
    j: int
    """Row number of the second point."""
    information: float
    """Mutual information between the answer and all assignments, in nats."""
    p_same: float
    """Probability of the answer "same" according to the model."""
    kind: str
    """Kind of the question: "explore", "doubt", "check" or "place"."""


class Progress(NamedTuple):
    """Counts of answers and of correct predictions, with advice on when to stop."""

    n_answers: int
    """Number of answers "same" and "different"."""
    n_unsure: int
    """Number of answers "unsure"."""
    n_checks: int
    """Number of random pairs whose answers the model had to predict; at most the latest 30."""
    n_predicted: int
    """Number of these checks that the model predicted correctly."""
    interval: tuple[float, float]
    """95 % confidence interval (Wilson's) for the share of correctly predicted answers."""
    baseline: float
    """Share of the more frequent answer among the checks, which a constant guess would reach."""
    n_contradictions: int
    """Number of contradictions among the answers."""
    may_stop: bool
    """True if further answers are unlikely to change the groups much."""
    advice: str
    """Advice to continue, to correct answers or to stop, in one sentence."""


class Interview:
    """Ask a person about pairs of rows, and group a table by the answers.

    Parameters
    ----------
    X : (N, D) array_like or DataFrame
        The table. Columns of numbers should be standardised; columns of strings, booleans or a
        categorical dtype are categories. Cells may be empty.
    n_components : int
        K, the number of groups.
    model : ConstrainedGaussianMixture or another mixture, default=None
        The mixture to fit, with ``n_components`` components. None: a ConstrainedGaussianMixture, or
        a MixedMixture if there are categories; ``reg_covar`` is then a hundredth of the smallest
        variance of a column.
    path : path-like, default=None
        A JSON Lines file that keeps the answers. If it exists, the interview resumes from it. Each
        answer is on the disk when :meth:`answer` returns.
    annotator : str, default=None
        Name of the person who answers. Several persons may write their answers to one file, even at
        the same time.
    error_rate : float, default=0.05
        Share of answers that are wrong, above 0 and below ½.
    random_state : int, RandomState, Generator or None, default=None
        Seed for the first row, the checks, and the initialisation of the default model.

    Attributes
    ----------
    table : (N, D) array or DataFrame
        The table. Categories are encoded as integers in the last columns, and empty cells are NaN.
        If a model was given, a table with categories is unchanged.
    coordinates : (N, n) array
        Numeric coordinates for drawing the rows: the table itself if all cells are numbers.

    Raises
    ------
    ValueError
        If ``X`` is no finite table, a number is out of range, or the file at ``path`` has other
        content or belongs to another table.

    Notes
    -----
    Three kinds of pairs are not asked about, because other answers imply the reply: rows connected
    by answers "same", rows of two groups between which one answer is "different", and rows of a
    group that is different from K - 1 classes. A pair that was answered "unsure" is not asked about
    again. All answers enter the fit by the joint likelihood, with ``error_rate``, including the
    answers to checks, once they have been predicted.

    After each answer, EM continues from the current parameters. Meanwhile a second thread fits from
    scratch, from the default initialisation and from the groups that exploring has found. The next
    answer takes over the best of these fits: among the fits that the answers do not refute, the one
    with the highest log-evidence; if the answers refute all fits, the one under which the answers
    have the highest probability. Answers refute a fit if their surprise exceeds what answers drawn
    from the fit itself would have in 95 % of cases. The evidence alone would keep a partition that
    is more probable than the one that people mean; the answers alone would let a single error
    change the whole partition. The results do not depend on the speed of the second thread.

    Basu, Banerjee and Mooney (2004), Active semi-supervision for pairwise constrained clustering.
    Dawid (1984), Statistical theory: the prequential approach.

    Examples
    --------
    >>> from cgmm import datasets
    >>> X, y = datasets.iris().X, datasets.iris().y
    >>> interview = Interview(X, 3, random_state=0)
    >>> for _ in range(12):
    ...     question = interview.next_question()
    ...     interview.answer("same" if y[question.i] == y[question.j] else "different")
    >>> interview.progress().n_answers, np.bincount(interview.labels_).size
    (12, 3)
    """

    def __init__(
        self,
        X: ArrayLike,
        n_components: int,
        *,
        model: Any = None,
        path: str | os.PathLike[str] | None = None,
        annotator: str | None = None,
        error_rate: float = 0.05,
        random_state: Seed = None,
    ) -> None:
        with explain_missing(X):
            encoded, n_numbers = encode_table(X)
        are_numbers = n_numbers == encoded.shape[1]
        self.table: Any = encoded if model is None or are_numbers else X
        self._Z = compute_coordinates(encoded, n_numbers)
        self._is_complete = are_numbers and not np.isnan(encoded).any()
        self.coordinates: FloatArray = encoded if self._is_complete else self._Z
        check_integer("n_components", n_components, 1, len(encoded))
        if not 0 < float(check_probability("error_rate", error_rate)) < 0.5:
            raise ValueError(
                f"error_rate is {error_rate:g}; it must be below 0.5, else answers carry no "
                "information, and above 0, since people make errors: error_rate=0.01."
            )
        self.n_components, self.annotator, self.error_rate = n_components, annotator, error_rate
        self._seed = int(generator(random_state).integers(2**31))
        default = self._build_default_model(encoded, n_numbers) if model is None else model
        self._template = joint(default)
        if self._template.n_components != n_components:
            raise ValueError(
                f"n_components is {n_components}, but model has {self._template.n_components}; "
                "give both the same number."
            )
        self._file = AnswerFile(path, encoded)
        self._background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="interview")
        self._pending: Future[list[Any]] | None = None
        self._question: Question | None = None
        self._process_answers()
        fits = self._fit_from_scratch(self._list_models_to_fit(), self.answer_rows)
        self._model = max(fits, key=self._score_fit)

    def __repr__(self) -> str:
        (n, D), K, P = self.table.shape, self.n_components, len(self.answers)
        return f"Interview({n} rows, {D} columns, {K} groups, {P} answers)"

    # ------------------------------------------------------------------------ questions and answers

    def next_question(self) -> Question | None:
        """Return the current question, which stays the same until it is answered.

        Returns
        -------
        Question or None
            None if the answer about every pair is given or implied.
        """
        if self._question is None:
            self._question = self._choose_question()
        return self._question

    def answer(self, reply: str) -> None:
        """Record the reply to the current question, and refit the model.

        Parameters
        ----------
        reply : {"same", "different", "unsure"}
            The person's reply to :meth:`next_question`.

        Raises
        ------
        ValueError
            If the reply is none of these, or no question is left.
        """
        _check_reply(reply)
        question = self.next_question()
        if question is None:
            raise ValueError("no question is left: the answer about every pair is known.")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        rows, p_same, kind = question[:2], question.p_same, question.kind
        self._file.add_answer(Answer(*rows, reply, self.annotator, now, kind, p_same))
        self._refit()

    def undo(self) -> Question | None:
        """Withdraw this annotator's last answer, and ask the question again.

        Returns
        -------
        Question or None
            The question whose answer was withdrawn; None if there is no answer to withdraw.
        """
        numbers = [n for n, a in self._file.answers.items() if a.annotator == self.annotator]
        if not numbers:
            return None
        last = self._file.answers[numbers[-1]]
        self._file.withdraw_answer(numbers[-1])
        self._refit()
        self._question = self._choose_most_informative([last[:2]], last.kind)
        return self._question

    def revise(self, number: int, reply: str) -> None:
        """Change an earlier answer, for example to resolve a contradiction.

        Parameters
        ----------
        number : int
            Position of the answer in :attr:`answers`.
        reply : {"same", "different", "unsure"}
            The new reply.

        Raises
        ------
        ValueError
            If there is no such answer or reply.
        """
        _check_reply(reply)
        check_integer("number", number, 0, len(self._file.answers) - 1)
        self._file.revise_answer(list(self._file.answers)[number], reply)
        self._refit()

    # ------------------------------------------------------------------------ results

    @property
    def answers(self) -> list[Answer]:
        """Answers in the order of asking, without withdrawn ones, for ``pandas.DataFrame``."""
        return list(self._file.answers.values())

    @property
    def answer_rows(self) -> IntArray:
        """(P, 3) rows ``i, j, said`` for functions of :mod:`cgmm.decide`, without "unsure"."""
        rows = [(a.i, a.j, a.answer == "same") for a in self.answers if a.answer != "unsure"]
        return np.array(rows, dtype=np.intp).reshape(-1, 3)

    @property
    def annotators(self) -> list[str]:
        """Name of the annotator of each row of ``answer_rows``, "" if the name is unknown."""
        return [a.annotator or "" for a in self.answers if a.answer != "unsure"]

    @property
    def model_(self) -> Any:
        """Mixture fitted to the table and to all answers."""
        self._adopt_background_fits()
        return self._model

    @property
    def labels_(self) -> IntArray:
        """(N,) group of each row."""
        return self.model_.labels_

    @property
    def present_labels(self) -> IntArray:
        """(N,) group of each row by the fit that chose the current question.

        Reading this property never waits, while ``labels_`` waits for the second thread to finish.
        """
        return self._model.labels_

    @property
    def probabilities_(self) -> FloatArray:
        """(N, K) probability of each group for each row, given all answers."""
        return self.model_.responsibilities_

    def contradictions(self) -> list[Contradiction]:
        """Return the contradictions among the answers.

        Returns
        -------
        list of Contradiction
            Each has ``numbers``, the positions of its answers in :attr:`answers`, and a ``message``
            that describes it.
        """
        return self._implied.contradictions

    def progress(self) -> Progress:
        """Count answers and correct predictions, and advise whether to stop.

        Returns
        -------
        Progress
            Counts, the confidence interval for the share of correct predictions, and advice.
        """
        n_unsure = [a.answer for a in self.answers].count("unsure")
        progress = Progress(
            len(self.answers) - n_unsure, n_unsure, *self._evaluate_checks(WINDOW),
            len(self.contradictions()), False, "",
        )  # fmt: skip
        may_stop, advice = self._advise_on_stopping(progress)
        return progress._replace(may_stop=may_stop, advice=advice)

    def _evaluate_checks(self, n_latest: int) -> tuple[int, int, tuple[float, float], float]:
        """Return the fields n_checks, n_predicted, interval and baseline of ``Progress``."""
        checks = [a for a in self.answers if a.kind == "check" and a.answer != "unsure"][-n_latest:]
        if not checks:
            return 0, 0, (0.0, 1.0), 0.0
        same = np.array([a.answer == "same" for a in checks])
        n_predicted = int((same == [a.p_same > 0.5 for a in checks]).sum())
        low, high = binomtest(n_predicted, len(same)).proportion_ci(method="wilson")
        return len(same), n_predicted, (low, high), float(max(same.mean(), 1 - same.mean()))

    def _predicts_badly(self) -> bool:
        """Return True if the model predicts checks less reliably than people answer them."""
        return self._evaluate_checks(FEWEST_CHECKS)[2][1] < 1 - self.error_rate

    def _advise_on_stopping(self, progress: Progress) -> tuple[bool, str]:
        """Return the fields may_stop and advice of ``Progress``."""
        n, n_predicted, (low, high) = progress.n_checks, progress.n_predicted, progress.interval
        if progress.n_contradictions:
            return False, f"{self.contradictions()[0].message} Look at these answers again."
        if self.next_question() is None:
            return True, "Stop: the answers say or imply which pairs are alike."
        if n < FEWEST_CHECKS:
            return False, f"Go on: {n} of {FEWEST_CHECKS} random pairs for a first judgement."
        share = f"{n_predicted} of the last {n} random pairs were predicted correctly"
        if high < 1 - self.error_rate or low < 0.7:
            return False, f"Go on: {share}."
        if n_predicted / n <= progress.baseline:
            return False, f"Go on: {share}, but one and the same reply to all does as well."
        return True, f"You can stop: {share}, about as many as answers are right."

    # ------------------------------------------------------------------------ fits

    def _build_default_model(self, encoded: FloatArray, n_numbers: int) -> Any:
        """Return the mixture to fit if the user gives none."""
        variances = np.nanvar(encoded[:, :n_numbers], axis=0)
        smallest = variances[variances > 0].min(initial=np.inf)
        is_categorical = np.arange(encoded.shape[1]) >= n_numbers
        make: Any = ConstrainedGaussianMixture
        if is_categorical.any():
            make = partial(MixedMixture, categorical_features=is_categorical)
        return make(
            self.n_components, random_state=self._seed, tol=1e-3,
            reg_covar=0.01 * smallest if np.isfinite(smallest) else 1e-6,
        )  # fmt: skip

    def _refit(self) -> None:
        """Update the model after a change of the answers, and start fits in the background."""
        self._question = None
        self._adopt_background_fits()
        self._process_answers()
        rows, models = self.answer_rows, self._list_models_to_fit()
        with WarnedOnce() as warned:
            model = copy(self._model).set_params(warm_start=True)
            self._model = model.fit(self.table, preferences=self._preferences)
            warned.held.clear()
        self._pending = self._background.submit(self._fit_from_scratch, models, rows)

    def _process_answers(self) -> None:
        """Derive the implied pairs and the network of relations from the answers."""
        self._implied = ImpliedPairs(len(self.table), self.n_components, self.answers)
        self._rows = RowsByDistance(self._Z, self._implied, self.answers, self._seed)
        self._preferences = preferences_from_answers(self.answer_rows, 1 - self.error_rate)
        side = SideInformation.build(len(self.table), preferences=self._preferences)
        self._graph, self._infer = side.graph, ENGINES["auto"](side.graph)

    def _list_models_to_fit(self) -> list[Any]:
        """Return the model and, if all classes are known, a copy initialised from these classes."""
        members = [self._implied.group == g for g in self._rows.classes]
        if len(members) < self.n_components or not hasattr(self._template, "init_params"):
            return [self._template]
        if hasattr(self._template, "means_init") and self._is_complete:
            means = np.array([self.table[m].mean(axis=0) for m in members])
            return [self._template, copy(self._template).set_params(means_init=means)]
        nearest = cdist(self._Z, [self._Z[m].mean(axis=0) for m in members]).argmin(axis=1)
        one_hot = np.eye(len(members))[nearest]
        return [self._template, copy(self._template).set_params(init_params=one_hot)]

    def _fit_from_scratch(self, models: list[Any], rows: IntArray) -> list[Any]:
        """Fit each model to the table and the answers, from its own initialisation."""
        with WarnedOnce() as warned:
            fits = [fit_answers(m, self.table, rows, error_rate=self.error_rate) for m in models]
            warned.held.clear()
        return fits

    def _adopt_background_fits(self) -> None:
        """Wait for the second thread, and replace the model if one of its fits is better."""
        if self._pending is not None:
            fits, self._pending = self._pending.result(), None
            self._model = max([self._model, *fits], key=self._score_fit)

    def _score_fit(self, model: Any) -> tuple[bool, float]:
        """Return a score for comparing fits: any fit that answers refute is worse than all others.

        The second number is the log-evidence; if the answers refute the fit, it is their
        log-probability given the table, because the table alone may prefer a partition that no
        person means (chapter 7).
        """
        unary = self._compute_log_joint(model)
        evidence = self._infer(unary).log_z
        if not _is_refuted(self._compute_answer_probabilities(unary)):
            return True, evidence
        return False, evidence - float(logsumexp(unary, axis=1).sum())

    def _compute_answer_probabilities(self, unary: FloatArray) -> FloatArray:
        """Return the probability of each answer given the table, including errors of the person."""
        r, rows, q = softmax(unary, axis=1), self.answer_rows, self.error_rate
        p_same = q + (1 - 2 * q) * (r[rows[:, 0]] * r[rows[:, 1]]).sum(axis=1)
        return np.where(rows[:, 2] == 1, p_same, 1 - p_same)

    def _compute_log_joint(self, model: Any) -> FloatArray:
        """Return (N, K) log p(x_i, z_i = k), by methods that all mixtures have."""
        r = np.maximum(model.predict_proba(self.table), np.finfo(float).tiny)
        return np.asarray(np.log(r) + model.score_samples(self.table)[:, None])

    # ------------------------------------------------------------------------ choice of questions

    def _choose_question(self) -> Question | None:
        """Choose the kind of the next question, and the pair to ask about."""
        kinds = [a.kind for a in self.answers]
        n_explored = kinds.count("explore")
        # Exploring may never find a class that overlaps another, so limit the number of questions.
        if n_explored < self.n_components**2 and (pair := self._rows.choose_exploring_pair()):
            return self._choose_most_informative([pair], "explore")
        if (len(kinds) - n_explored) % CHECK_EVERY != CHECK_EVERY - 1:
            if self._predicts_badly() and (pair := self._rows.choose_random_pair()):
                return self._choose_most_informative([pair], "place")
            if pairs := find_doubtful_pairs(self._model.responsibilities_, self._implied):
                return self._choose_most_informative(pairs, "doubt")
        pair = self._implied.draw_open_pair(np.random.default_rng([self._seed, len(kinds)]))
        return None if pair is None else self._choose_most_informative([pair], "check")

    def _choose_most_informative(self, pairs: list[tuple[int, int]], kind: str) -> Question:
        """Return the question about the pair whose answer has the highest expected information."""
        unary, q = self._compute_log_joint(self._model), self.error_rate
        p = expit(log_odds_together(self._infer, unary, self._graph, np.array(pairs)))
        information = answer_information(p, false_apart=q, false_together=q)
        best = int(information.argmax())
        return Question(*pairs[best], float(information[best]), float(p[best]), kind)


def _is_refuted(p: FloatArray) -> bool:
    """Return True if answers with these probabilities are too surprising for the model.

    The surprise -Σ log p is compared with its mean and standard deviation under the model.
    """
    excess = (-np.log(p) - entr(p) - entr(1 - p)).sum()
    return bool(excess > MAX_SURPRISE * np.sqrt((p * (1 - p) * logit(p) ** 2).sum()))


def _check_reply(reply: str) -> None:
    """Raise an error if the reply is unknown."""
    if reply not in REPLIES:
        raise ValueError(f"reply is {reply!r}; it must be one of {', '.join(map(repr, REPLIES))}.")
