"""The interview: which question a person is asked next, and the groups that the answers give.

An interview holds a table, the answers so far and a fitted mixture. It chooses the next pair of
rows, takes the reply "same", "different" or "unsure", refits and chooses again. It has no
interface: :class:`cgmm.explore.InterviewWidget` and ``python -m cgmm ask`` are two. Chapter 15
derives the order of the questions and measures it.

1. *explore*: the row farthest from all rows asked about, beside the nearest known group, until
   there is a row of each class;
2. *doubt*, two questions in three: a row whose class is uncertain beside a certain row of a class,
   the pair whose answer has the highest expected information;
3. *check*, every third question: a random pair. The model predicts the answer before it is given;
   how often it is right is what ``Interview.progress`` reports;
4. *place*, instead of doubt while the model predicts checks badly: a random row beside the nearest
   known group, because a wrong model is in doubt about the wrong rows.

=========  ====================================================================
open       of a pair: neither answered nor implied by answers
check      a random pair whose answer is predicted before it is given
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
from cgmm.decide.asking import answer_information, fit_answers, joint, probability
from cgmm.decide.implied import Contradiction, ImpliedPairs
from cgmm.decide.rows import RowsByDistance, coordinates, doubtful_pairs
from cgmm.diagnose import log_odds_together
from cgmm.given import explain_missing
from cgmm.inference import ENGINES
from cgmm.mixture import ConstrainedGaussianMixture, MixedMixture
from cgmm.mixture.columns import encode_table
from cgmm.network import SideInformation
from cgmm.numerics import (
    FloatArray,
    IntArray,
    Seed,
    WarnedOnce,
    check_integer,
    generator,
)
from cgmm.scenarios.answers import preferences_from_answers

CHECK_EVERY = 3
"""One question in this many is a random pair, once exploring has ended."""
WINDOW = 30
"""Number of latest checks that count: earlier ones were predicted by an earlier model."""
MAX_SURPRISE = 1.645
"""Standard deviations of surprise above which answers refute a fit: a one-sided test at 5 %."""
FEWEST_CHECKS = 10
"""Number of checks before which there is no advice to stop."""


class Question(NamedTuple):
    """A pair of rows to ask a person about."""

    i: int
    """Row number of the first point."""
    j: int
    """Row number of the second point."""
    information: float
    """Expected information of the answer about all assignments, in nats."""
    p_same: float
    """Probability of "same" according to the model."""
    kind: str
    """Reason for the question: "explore", "doubt", "check" or "place"."""


class Progress(NamedTuple):
    """State of an interview, with advice on what to do next."""

    n_answers: int
    """Number of answers "same" and "different"."""
    n_unsure: int
    """Number of answers "unsure"."""
    n_checks: int
    """Number of random pairs among the latest 30 whose answers the model had to predict."""
    n_predicted: int
    """Number of these that it predicted correctly."""
    interval: tuple[float, float]
    """95 % confidence interval (Wilson's) for the share of answers that it predicts correctly."""
    baseline: float
    """Share of the commoner answer among the checks: what a constant guess would reach."""
    n_contradictions: int
    """Number of contradictions among the answers."""
    may_stop: bool
    """True if further answers are unlikely to change much."""
    advice: str
    """What to do next, in one sentence."""


class Interview:
    """Choose the next question for a person, and group a table by the answers.

    Parameters
    ----------
    X : (N, D) array_like or DataFrame
        The table: numbers, and columns of texts, booleans or a categorical dtype as categories.
        Cells may be empty. Standardise numbers first.
    n_components : int
        K, the number of groups.
    model : ConstrainedGaussianMixture or another mixture, default=None
        The mixture to fit, of ``n_components`` components. None: a ConstrainedGaussianMixture, or a
        MixedMixture if there are categories, with ``reg_covar`` of a hundredth of the smallest
        variance of a column.
    path : path-like, default=None
        A JSON Lines file that keeps the answers. If it exists, the interview resumes there. Each
        answer is on the disk when :meth:`answer` returns.
    annotator : str, default=None
        Name of the person who answers. Several may answer into one file, also at the same time.
    error_rate : float, default=0.05
        How often an answer is wrong, above 0 and below ½.
    random_state : int, RandomState, Generator or None, default=None
        The first row, the checks, and the starts of the default model.

    Attributes
    ----------
    table : (N, D) array or DataFrame
        The table that is asked about. Categories are codes, in the last columns, and empty cells
        are NaN. If a model was given, a table with categories is unchanged.
    coordinates : (N, n) array
        Numbers by which rows can be drawn: a complete table of numbers itself.

    Raises
    ------
    ValueError
        If ``X`` is no finite table, a number is out of range, or ``path`` is a file of other
        content or of another table.

    Notes
    -----
    Pairs that answers imply are not asked: rows connected by "same", two groups of which one pair
    is "different", and a group that is different from K - 1 classes. A pair that was answered
    "unsure" is not asked again. All answers enter the fit by the joint likelihood, with
    ``error_rate``; so do those to checks, after they were predicted.

    Each answer starts EM from the parameters before it. A second thread then fits afresh, from the
    default start and from the groups that exploring found; the next answer takes over the best of
    these fits. Among the fits that the answers do not refute, that is the one of the highest
    log-evidence; if the answers refute all, it is the one that gives them the highest probability.
    Answers refute a fit if they surprise it more than answers drawn from it would in 95 % of cases.
    The evidence alone would keep a cut that is more probable than the one that people mean; the
    answers alone would let a single error overturn the table. The results do not depend on the
    speed of the second thread.

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
        self._Z = coordinates(encoded, n_numbers)
        self._is_complete = are_numbers and not np.isnan(encoded).any()
        self.coordinates: FloatArray = encoded if self._is_complete else self._Z
        check_integer("n_components", n_components, 1, len(encoded))
        if not 0 < float(probability("error_rate", error_rate)) < 0.5:
            raise ValueError(
                f"error_rate is {error_rate:g}; answers say something only if it is below 0.5, "
                "and it must be above 0, for people do err: error_rate=0.01 for careful ones."
            )
        self.n_components, self.annotator, self.error_rate = n_components, annotator, error_rate
        self._seed = int(generator(random_state).integers(2**31))
        self._template = joint(self._default_model(encoded, n_numbers) if model is None else model)
        if self._template.n_components != n_components:
            raise ValueError(
                f"n_components is {n_components}, but model has {self._template.n_components}; "
                "give both the same number."
            )
        self._file = AnswerFile(path, encoded)
        self._background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="interview")
        self._pending: Future[list[Any]] | None = None
        self._question: Question | None = None
        self._understand()
        fits = self._fresh_fits(self._models_to_fit(), self.answer_rows)
        self._model = max(fits, key=self._score)

    def __repr__(self) -> str:
        (n, D), K, P = self.table.shape, self.n_components, len(self.answers)
        return f"Interview({n} rows, {D} columns, {K} groups, {P} answers)"

    # ------------------------------------------------------------------------ for the person

    def next_question(self) -> Question | None:
        """Return the pair to ask about now; the same one until it is answered.

        Returns
        -------
        Question or None
            None if answers say or imply everything about all pairs.
        """
        if self._question is None:
            self._question = self._choose()
        return self._question

    def answer(self, reply: str) -> None:
        """Record the reply to :meth:`next_question` and refit.

        Parameters
        ----------
        reply : {"same", "different", "unsure"}
            What the person says.

        Raises
        ------
        ValueError
            If the reply is another one, or no question is left.
        """
        _check_reply(reply)
        question = self.next_question()
        if question is None:
            raise ValueError("no question is left: the answers say or imply which pairs are alike.")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        about, p_same, kind = question[:2], question.p_same, question.kind
        self._file.give(Answer(*about, reply, self.annotator, now, kind, p_same))
        self._learn()

    def undo(self) -> Question | None:
        """Withdraw this annotator's last answer and ask its question again.

        Returns
        -------
        Question or None
            The question that is open again; None if there is no answer to withdraw.
        """
        own = [k for k, a in self._file.answers.items() if a.annotator == self.annotator]
        if not own:
            return None
        last = self._file.answers[own[-1]]
        self._file.withdraw(own[-1])
        self._learn()
        self._question = self._best_question([last[:2]], last.kind)
        return self._question

    def revise(self, number: int, reply: str) -> None:
        """Change an answer, for example one of a contradiction.

        Parameters
        ----------
        number : int
            Position in :attr:`answers`.
        reply : {"same", "different", "unsure"}
            The answer that shall hold.

        Raises
        ------
        ValueError
            If there is no such answer or reply.
        """
        _check_reply(reply)
        check_integer("number", number, 0, len(self._file.answers) - 1)
        self._file.revise(list(self._file.answers)[number], reply)
        self._learn()

    # ------------------------------------------------------------------------ what is known

    @property
    def answers(self) -> list[Answer]:
        """Answers in the order of asking, without withdrawn ones; ``pandas.DataFrame`` takes it."""
        return list(self._file.answers.values())

    @property
    def answer_rows(self) -> IntArray:
        """(P, 3) rows ``i, j, said`` as :mod:`cgmm.decide` takes them, without "unsure"."""
        rows = [(a.i, a.j, a.answer == "same") for a in self.answers if a.answer != "unsure"]
        return np.array(rows, dtype=np.intp).reshape(-1, 3)

    @property
    def annotators(self) -> list[str]:
        """Name of the annotator of each of the ``answer_rows``, "" if none was given."""
        return [a.annotator or "" for a in self.answers if a.answer != "unsure"]

    @property
    def model_(self) -> Any:
        """The mixture, fitted to the table and all answers."""
        self._adopt_pending()
        return self._model

    @property
    def labels_(self) -> IntArray:
        """(N,) the group of each row."""
        return self.model_.labels_

    @property
    def present_labels(self) -> IntArray:
        """(N,) groups by the fit that chose the present question.

        ``labels_`` waits for the second thread, whose fits are taken over at the next answer.
        """
        return self._model.labels_

    @property
    def probabilities_(self) -> FloatArray:
        """(N, K) probability of each group for each row, given all answers."""
        return self.model_.responsibilities_

    def contradictions(self) -> list[Contradiction]:
        """Return the contradictions among the answers, each with the answers it consists of.

        Returns
        -------
        list of Contradiction
            Each has ``numbers``, positions in :attr:`answers`, and a ``message`` with the chain.
        """
        return self._implied.contradictions

    def progress(self) -> Progress:
        """Count the answers, judge the model by its predictions, and advise when to stop.

        Returns
        -------
        Progress
            Counts, the share of checks that were predicted, its interval, and an advice.
        """
        n_unsure = [a.answer for a in self.answers].count("unsure")
        found = Progress(
            len(self.answers) - n_unsure, n_unsure, *self._judge_checks(WINDOW),
            len(self.contradictions()), False, "",
        )  # fmt: skip
        may_stop, advice = self._advise(found)
        return found._replace(may_stop=may_stop, advice=advice)

    def _judge_checks(self, n_latest: int) -> tuple[int, int, tuple[float, float], float]:
        """Return number, correct predictions, interval and baseline of the latest random pairs."""
        checks = [a for a in self.answers if a.kind == "check" and a.answer != "unsure"][-n_latest:]
        if not checks:
            return 0, 0, (0.0, 1.0), 0.0
        same = np.array([a.answer == "same" for a in checks])
        n_right = int((same == [a.p_same > 0.5 for a in checks]).sum())
        low, high = binomtest(n_right, len(same)).proportion_ci(method="wilson")
        return len(same), n_right, (low, high), float(max(same.mean(), 1 - same.mean()))

    def _predicts_badly(self) -> bool:
        """True if the model predicts random pairs less often than answers are right."""
        return self._judge_checks(FEWEST_CHECKS)[2][1] < 1 - self.error_rate

    def _advise(self, found: Progress) -> tuple[bool, str]:
        n, right, (low, high) = found.n_checks, found.n_predicted, found.interval
        if found.n_contradictions:
            return False, f"{self.contradictions()[0].message} Look at these answers again."
        if self.next_question() is None:
            return True, "Stop: the answers say or imply which pairs are alike."
        if n < FEWEST_CHECKS:
            return False, f"Go on: {n} of {FEWEST_CHECKS} random pairs for a first judgement."
        share = f"{right} of the last {n} random pairs were predicted correctly"
        if high < 1 - self.error_rate or low < 0.7:
            return False, f"Go on: {share}."
        if right / n <= found.baseline:
            return False, f"Go on: {share}, but one and the same reply to all does as well."
        return True, f"You can stop: {share}, about as many as answers are right."

    # ------------------------------------------------------------------------ fits

    def _default_model(self, encoded: FloatArray, n_numbers: int) -> Any:
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

    def _learn(self) -> None:
        """Bring questions and model up to date with the answers."""
        self._question = None
        self._adopt_pending()
        self._understand()
        rows, models = self.answer_rows, self._models_to_fit()
        with WarnedOnce() as warned:
            warm = copy(self._model).set_params(warm_start=True)
            self._model = warm.fit(self.table, preferences=self._preferences(rows))
            warned.held.clear()
        self._pending = self._background.submit(self._fresh_fits, models, rows)

    def _understand(self) -> None:
        """Derive what the answers imply, and the engine for their network."""
        self._implied = ImpliedPairs(len(self.table), self.n_components, self.answers)
        self._rows = RowsByDistance(self._Z, self._implied, self.answers, self._seed)
        soft = self._preferences(self.answer_rows)
        self._graph = SideInformation.build(len(self.table), preferences=soft).graph
        self._infer = ENGINES["auto"](self._graph)

    def _models_to_fit(self) -> list[Any]:
        """The model, and a copy that starts from the classes that exploring found, if all are."""
        members = [self._implied.group == g for g in self._rows.found]
        if len(members) < self.n_components or not hasattr(self._template, "init_params"):
            return [self._template]
        start: dict[str, Any] = {}
        if hasattr(self._template, "means_init") and self._is_complete:
            start["means_init"] = np.array([self.table[m].mean(axis=0) for m in members])
        else:
            nearest = cdist(self._Z, [self._Z[m].mean(axis=0) for m in members]).argmin(axis=1)
            start["init_params"] = np.eye(len(members))[nearest]
        return [self._template, copy(self._template).set_params(**start)]

    def _fresh_fits(self, models: list[Any], rows: IntArray) -> list[Any]:
        """Fits of the models, each from its own start."""
        with WarnedOnce() as warned:
            fits = [fit_answers(m, self.table, rows, error_rate=self.error_rate) for m in models]
            warned.held.clear()
        return fits

    def _adopt_pending(self) -> None:
        """Take over a fit of the second thread if it is better than the warm one."""
        if self._pending is not None:
            fits, self._pending = self._pending.result(), None
            self._model = max([self._model, *fits], key=self._score)

    def _score(self, model: Any) -> tuple[bool, float]:
        """Score for comparing fits: whether the answers spare it, and then how probable it is.

        The likelihood of the table alone may prefer a cut that no person means (chapter 7).
        """
        unary = self._log_joint(model)
        evidence = self._infer(unary).log_z
        if not _is_refuted(self._p_of_answers(unary)):
            return True, evidence
        return False, evidence - float(logsumexp(unary, axis=1).sum())

    def _p_of_answers(self, unary: FloatArray) -> FloatArray:
        """Probability of each answer given the table alone, errors of the person included."""
        r, rows, q = softmax(unary, axis=1), self.answer_rows, self.error_rate
        same = q + (1 - 2 * q) * (r[rows[:, 0]] * r[rows[:, 1]]).sum(axis=1)
        return np.where(rows[:, 2] == 1, same, 1 - same)

    def _log_joint(self, model: Any) -> FloatArray:
        """(N, K) log p(x_i, z_i = k), by methods that the mixtures of all families have."""
        r = np.maximum(model.predict_proba(self.table), np.finfo(float).tiny)
        return np.asarray(np.log(r) + model.score_samples(self.table)[:, None])

    def _preferences(self, rows: IntArray) -> FloatArray:
        return preferences_from_answers(rows, 1 - self.error_rate)

    # ------------------------------------------------------------------------ questions

    def _choose(self) -> Question | None:
        kinds = [a.kind for a in self.answers]
        n_explored = kinds.count("explore")
        # Classes that overlap may never be found by distance.
        if n_explored < self.n_components**2 and (pair := self._rows.explore()) is not None:
            return self._best_question([pair], "explore")
        if (len(kinds) - n_explored) % CHECK_EVERY != CHECK_EVERY - 1:
            if self._predicts_badly() and (pair := self._rows.place_one()) is not None:
                return self._best_question([pair], "place")
            if pairs := doubtful_pairs(self._model.responsibilities_, self._implied):
                return self._best_question(pairs, "doubt")
        rng = np.random.default_rng([self._seed, len(kinds)])
        pair = self._implied.random_open_pair(rng)
        return None if pair is None else self._best_question([pair], "check")

    def _best_question(self, pairs: list[tuple[int, int]], kind: str) -> Question:
        """The pair whose answer is expected to be the most informative."""
        unary, q = self._log_joint(self._model), self.error_rate
        p = expit(log_odds_together(self._infer, unary, self._graph, np.array(pairs)))
        information = answer_information(p, false_apart=q, false_together=q)
        best = int(information.argmax())
        return Question(*pairs[best], float(information[best]), float(p[best]), kind)


def _is_refuted(p: FloatArray) -> bool:
    """True if answers of these probabilities surprise a model more than its own would."""
    excess = (-np.log(p) - entr(p) - entr(1 - p)).sum()
    return bool(excess > MAX_SURPRISE * np.sqrt((p * (1 - p) * logit(p) ** 2).sum()))


def _check_reply(reply: str) -> None:
    if reply not in REPLIES:
        raise ValueError(f"reply is {reply!r}; it must be one of {', '.join(map(repr, REPLIES))}.")
