"""Show an interview as a widget: two rows side by side, three replies, and a map of the groups.

:class:`InterviewWidget` returns the state of an interview as plain data (``state``) and processes
messages about actions of the person (``receive``). The script ``interview.js`` draws the state and
sends the messages. It uses anywidget's protocol, so the same script runs in a notebook with a
kernel and on the page of ``python -m cgmm ask`` (``ask_server.py``). Chapter 15 explains
interviews.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from cgmm.decide import Interview, Progress
from cgmm.explore.controls import explain_missing_package
from cgmm.explore.interview_cards import Cards
from cgmm.numerics import IntArray
from cgmm.plot.style import COLOURS

SCRIPT, STYLE = (
    files("cgmm.explore").joinpath(name).read_text(encoding="utf8")
    for name in ("interview.js", "interview.css")
)
N_MAPPED = 800
"""Largest number of rows on the map; larger tables are represented by a random sample."""


class InterviewWidget:
    """Ask a person the questions of an interview, in a notebook.

    Parameters
    ----------
    interview : cgmm.decide.Interview
        The interview, which keeps the answers and the groups.
    rows : DataFrame, (N, D) array, or sequence of str or mappings, default=None
        The rows to show. None: the rows of the interview's table.
    images : sequence of paths or arrays, default=None
        One image per row.
    card : callable, default=None
        Function that converts a row to the text that is shown instead of the columns.
    trust_html : bool, default=False
        True: insert the result of ``card`` as HTML. False: show it as text.
    title : str, default="Do these two belong together?"
        The question that is shown to the person.

    Raises
    ------
    ValueError
        If there are more or fewer rows than in the table of the interview.

    Examples
    --------
    >>> from cgmm import datasets
    >>> from cgmm.decide import Interview
    >>> X = datasets.iris().X
    >>> widget = InterviewWidget(Interview(X, 3, random_state=0))
    >>> question = widget.state()["question"]
    >>> widget.receive({"answer": "same", "rows": question["rows"]})
    >>> widget
    InterviewWidget(150 rows, 1 answer)
    """

    def __init__(
        self,
        interview: Interview,
        rows: Any = None,
        *,
        images: Sequence[Any] | None = None,
        card: Callable[[Any], str] | None = None,
        trust_html: bool = False,
        title: str = "Do these two belong together?",
    ) -> None:
        self.interview, self.title = interview, title
        X = interview.table
        self._cards = Cards(
            X if rows is None else rows, images=images, card=card, trust_html=trust_html
        )
        if self._cards.n_rows != len(X):
            raise ValueError(
                f"there are {self._cards.n_rows} rows to show, but the interview is about "
                f"{len(X)}; give the rows of the same table, in the same order."
            )
        self._mapped_rows = _sample_rows(len(X))
        self._positions = _project_to_plane(interview.coordinates)
        self._labels: IntArray = np.zeros(len(X), dtype=np.intp)
        self._notice = ""
        self._widget: Any = None

    def __repr__(self) -> str:
        n = len(self.interview.answers)
        return f"InterviewWidget({self._cards.n_rows} rows, {n} answer{'s' * (n != 1)})"

    def state(self) -> dict[str, Any]:
        """Return the current content of the page, as plain data.

        Returns
        -------
        dict
            The question, the progress, the answers that contradict each other, and the map.
        """
        question, progress = self.interview.next_question(), self.interview.progress()
        rows = [] if question is None else [question.i, question.j]
        return {
            "title": self.title, "question": self._cards.compare(*rows) if rows else None,
            "said": self._notice, "can_undo": bool(self.interview.answers),
            "progress": _describe_progress(progress), "advice": progress.advice,
            "may_stop": progress.may_stop, "contradictions": self._describe_contradictions(),
            "map": self._build_map(rows),
        }  # fmt: skip

    def receive(self, message: dict[str, Any]) -> None:
        """Process a message from the page about an action of the person.

        Parameters
        ----------
        message : dict
            ``{"answer": reply, "rows": [i, j]}``, ``{"undo": True}`` or
            ``{"revise": number, "answer": reply}``. An answer is ignored unless it is about the
            current question, because a key that is pressed twice must not answer the next question.
        """
        if "undo" in message:
            undone = self.interview.undo()
            self._notice = "There is no answer of yours to undo." if undone is None else "Undone."
        elif "revise" in message:
            self.interview.revise(int(message["revise"]), message["answer"])
            self._notice = "Changed."
        else:
            question = self.interview.next_question()
            if question is not None and [question.i, question.j] == message["rows"]:
                self.interview.answer(message["answer"])
                self._notice = f"Answered: {message['answer']}."

    def widget(self) -> Any:
        """Return the widget for a notebook.

        Returns
        -------
        anywidget.AnyWidget
            The same object at every call.

        Raises
        ------
        ImportError
            If anywidget is missing.
        """
        if self._widget is None:
            self._widget = _build_anywidget(self)
        return self._widget

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return the widget for Jupyter, and its text for other programs."""
        bundle = self.widget()._repr_mimebundle_()
        widget_bundle = bundle[0] if isinstance(bundle, tuple) else bundle
        return {**(widget_bundle or {}), "text/plain": repr(self)}

    def _describe_contradictions(self) -> list[dict[str, Any]]:
        """Return the message and the answers of the first three contradictions, as plain data."""
        answers = self.interview.answers
        return [
            {"message": contradiction.message, "answers": [
                {"number": n, "rows": answers[n][:2], "answer": answers[n].answer}
                for n in contradiction.numbers
            ]}
            for contradiction in self.interview.contradictions()[:3]
        ]  # fmt: skip

    def _build_map(self, rows_asked: list[int]) -> dict[str, Any]:
        """Return positions and groups of rows on the map; the rows of the question come last."""
        self._labels = _keep_colours(self.interview.present_labels, self._labels)
        rows = [*np.setdiff1d(self._mapped_rows, rows_asked).tolist(), *rows_asked]
        return {
            "places": self._positions[rows].tolist(), "groups": self._labels[rows].tolist(),
            "n_asked": len(rows_asked), "colours": COLOURS,
            "sizes": np.bincount(self._labels, minlength=self.interview.n_components).tolist(),
        }  # fmt: skip


def _build_anywidget(interview_widget: InterviewWidget) -> Any:
    """Return an anywidget whose trait ``state`` follows the interview."""
    with explain_missing_package("anywidget", "an interview in a notebook", "widgets"):
        import anywidget
        import traitlets

    class AskingWidget(anywidget.AnyWidget):
        _esm = SCRIPT
        _css = STYLE
        state = traitlets.Dict().tag(sync=True)

    def receive(_: object, message: dict[str, Any], buffers: object) -> None:
        interview_widget.receive(message)
        widget.state = interview_widget.state()

    widget = AskingWidget(state=interview_widget.state())
    widget.on_msg(receive)
    return widget


def _describe_progress(progress: Progress) -> str:
    """Return the counts of answers and of correct predictions, in a sentence or two."""
    text = f"{progress.n_answers} answered, {progress.n_unsure} unsure."
    if progress.n_checks == 0:
        return text
    low, high = (f"{100 * end:.0f}" for end in progress.interval)
    return (
        f"{text} Of the last {progress.n_checks} random pairs {progress.n_predicted} were "
        f"predicted correctly (95 % interval: {low} to {high} %)."
    )


def _sample_rows(n_rows: int) -> IntArray:
    """Return all row numbers, or a random sample of them if there are too many for the map."""
    if n_rows <= N_MAPPED:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, N_MAPPED, replace=False))


def _project_to_plane(X: Any) -> Any:
    """Return (N, 2) positions from 0 to 1, by principal components if X has over two columns."""
    Z = X - X.mean(axis=0)
    if Z.shape[1] > 2:
        Z = Z @ np.linalg.eigh(Z.T @ Z)[1][:, :-3:-1]
    Z = np.column_stack([Z, np.zeros(len(Z))])[:, :2]
    low, width = Z.min(axis=0), np.ptp(Z, axis=0)
    return ((Z - low) / np.where(width > 0, width, 1)).round(4)


def _keep_colours(labels: IntArray, old_labels: IntArray) -> IntArray:
    """Renumber groups so that as many rows as possible keep their label, and thus their colour."""
    K = int(max(labels.max(), old_labels.max())) + 1
    n_common = np.bincount(K * labels + old_labels, minlength=K * K).reshape(K, K)
    return np.asarray(linear_sum_assignment(-n_common)[1][labels])
