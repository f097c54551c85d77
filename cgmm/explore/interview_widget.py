"""The interview as a page element: two rows side by side, three replies, and a map of the groups.

:class:`InterviewWidget` turns an interview into plain data (``state``) and carries out what the
person does (``receive``). The script ``interview.js`` draws the one and sends the other. It speaks
anywidget's protocol, so the same script runs in a notebook, with a kernel, and in the page of
``python -m cgmm ask`` (``ask_server.py``). Chapter 15.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from cgmm.decide import Interview, Progress
from cgmm.explore.interview_cards import Cards
from cgmm.numerics import IntArray
from cgmm.plot.style import COLOURS

SCRIPT, STYLE = (
    files("cgmm.explore").joinpath(name).read_text(encoding="utf8")
    for name in ("interview.js", "interview.css")
)
N_MAPPED = 800
"""Number of rows that the map shows; of more rows a random sample."""


class InterviewWidget:
    """Ask a person the questions of an interview, in a notebook.

    Parameters
    ----------
    interview : cgmm.decide.Interview
        The interview; it holds the answers and the groups.
    rows : DataFrame, (N, D) array, or sequence of str or mappings, default=None
        What the person sees of each row. None: the table of the interview.
    images : sequence of paths or arrays, default=None
        A picture of each row.
    card : callable, default=None
        From a row to the text that the person sees in the place of the columns.
    trust_html : bool, default=False
        Whether ``card`` returns HTML that may be inserted as it is.
    title : str, default="Do these two belong together?"
        The question.

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
        self._mapped = _sample(len(X))
        self._places = _plane(interview.coordinates)
        self._labels: IntArray = np.zeros(len(X), dtype=np.intp)
        self._said = ""
        self._widget: Any = None

    def __repr__(self) -> str:
        n = len(self.interview.answers)
        return f"InterviewWidget({self._cards.n_rows} rows, {n} answer{'s' * (n != 1)})"

    def state(self) -> dict[str, Any]:
        """Return what the page shows now, as plain data.

        Returns
        -------
        dict
            The question, the progress, the answers that contradict each other, and the map.
        """
        question, progress = self.interview.next_question(), self.interview.progress()
        shown = None if question is None else self._cards.compare(question.i, question.j)
        return {
            "title": self.title, "question": shown, "said": self._said,
            "can_undo": bool(self.interview.answers), "progress": _in_words(progress),
            "advice": progress.advice, "may_stop": progress.may_stop,
            "contradictions": self._contradictions(), "map": self._map(shown),
        }  # fmt: skip

    def receive(self, message: dict[str, Any]) -> None:
        """Carry out what the person did.

        Parameters
        ----------
        message : dict
            ``{"answer": reply, "rows": [i, j]}``, ``{"undo": True}`` or
            ``{"revise": number, "answer": reply}``. An answer to another question than the present
            one is ignored: a key that was pressed twice must not answer what nobody has read.
        """
        if "undo" in message:
            undone = self.interview.undo()
            self._said = "There is no answer of yours to undo." if undone is None else "Undone."
        elif "revise" in message:
            self.interview.revise(int(message["revise"]), message["answer"])
            self._said = "Changed."
        else:
            question = self.interview.next_question()
            if question is not None and [question.i, question.j] == message["rows"]:
                self.interview.answer(message["answer"])
                self._said = f"Answered: {message['answer']}."

    def widget(self) -> Any:
        """Return the element for a notebook.

        Returns
        -------
        anywidget.AnyWidget
            The same one at every call.

        Raises
        ------
        ImportError
            If anywidget is missing.
        """
        if self._widget is None:
            self._widget = _any_widget(self)
        return self._widget

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return the widget for Jupyter, and its text for everything else."""
        bundle = self.widget()._repr_mimebundle_()
        shown = bundle[0] if isinstance(bundle, tuple) else bundle
        return {**(shown or {}), "text/plain": repr(self)}

    def _contradictions(self) -> list[dict[str, Any]]:
        shown, answers = [], self.interview.answers
        for found in self.interview.contradictions()[:3]:
            rows = [(n, answers[n][:2], answers[n].answer) for n in found.numbers]
            named = [dict(zip(("number", "rows", "answer"), row, strict=True)) for row in rows]
            shown.append({"message": found.message, "answers": named})
        return shown

    def _map(self, shown: dict[str, Any] | None) -> dict[str, Any]:
        """Places and groups of the rows on the map; the rows asked about come last."""
        self._labels = _recoloured(self.interview.present_labels, self._labels)
        asked = [] if shown is None else shown["rows"]
        rows = [*np.setdiff1d(self._mapped, asked).tolist(), *asked]
        return {
            "places": self._places[rows].tolist(), "groups": self._labels[rows].tolist(),
            "n_asked": len(asked), "colours": COLOURS,
            "sizes": np.bincount(self._labels, minlength=self.interview.n_components).tolist(),
        }  # fmt: skip


def _any_widget(asking: InterviewWidget) -> Any:
    """An anywidget whose trait ``state`` follows the interview."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(
            "an interview in a notebook needs anywidget: install it with pip install "
            "'constrained-mixtures[widgets]'"
        ) from error

    class AskingWidget(anywidget.AnyWidget):
        _esm = SCRIPT
        _css = STYLE
        state = traitlets.Dict().tag(sync=True)

    def receive(_: object, message: dict[str, Any], buffers: object) -> None:
        asking.receive(message)
        widget.state = asking.state()

    widget = AskingWidget(state=asking.state())
    widget.on_msg(receive)
    return widget


def _in_words(progress: Progress) -> str:
    text = f"{progress.n_answers} answered, {progress.n_unsure} unsure."
    if progress.n_checks == 0:
        return text
    low, high = (f"{100 * end:.0f}" for end in progress.interval)
    return (
        f"{text} Of the last {progress.n_checks} random pairs {progress.n_predicted} were "
        f"predicted correctly (95 % interval: {low} to {high} %)."
    )


def _sample(n_rows: int) -> IntArray:
    if n_rows <= N_MAPPED:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, N_MAPPED, replace=False))


def _plane(X: Any) -> Any:
    """(N, 2) places from 0 to 1: two columns as they are, more by their principal components."""
    Z = X - X.mean(axis=0)
    if Z.shape[1] > 2:
        Z = Z @ np.linalg.eigh(Z.T @ Z)[1][:, :-3:-1]
    Z = np.column_stack([Z, np.zeros(len(Z))])[:, :2]
    low, width = Z.min(axis=0), np.ptp(Z, axis=0)
    return ((Z - low) / np.where(width > 0, width, 1)).round(4)


def _recoloured(labels: IntArray, before: IntArray) -> IntArray:
    """Renumber groups so that as many rows as possible keep their number, and so their colour."""
    K = int(max(labels.max(), before.max())) + 1
    table = np.bincount(K * labels + before, minlength=K * K).reshape(K, K)
    return np.asarray(linear_sum_assignment(-table)[1][labels])
