"""Examine one submission: its cells run in a box, the checks run here.

A check is the teacher's code in the teacher's process, with the teacher's numpy. What it knows of
the student are values and functions that were sent for by name, see wire.py. So nothing that the
student's code does to its own process can make a check pass, and none of it sees a check. A cell
that does not end, or ends its process, costs its own task: another box replays the other cells.
"""

from __future__ import annotations

import ast
import contextlib
import io
import signal
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from box import Boxes
from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_solution
from replies import imports_of
from sources import grade_id, released, source
from wire import Gone, Wire

# A submission may take so many times what one cell may take.
PATIENCE = 6

TOO_LONG = "TimeoutError: not done after {:g} seconds; is there a loop that does not end?"
ENDED = (
    "RuntimeError: your code ended Python itself, by quit(), exit() or by taking too much memory; "
    "take that out, then restart and run all cells before you hand in"
)


class TimeUp(BaseException):
    """A cell or check has run for too long; no ``except`` of a check may catch it."""


class Row(NamedTuple):
    """What one check or open question of one submission earned."""

    student: str
    assignment: str
    task: str
    points: float
    max: float
    state: str
    """``graded``, ``awaits manual grading``, or why the notebook could not be graded."""
    message: str = ""
    """What the failed check said."""
    answer: str = ""
    """The text of an open question's answer."""


class Examined(NamedTuple):
    """What came out of a submission."""

    rows: list[Row]
    outputs: dict[int, dict]
    """By the cell's place in the notebook: what it ``printed``, the ``error`` that it met."""
    kept_apart: str


def examine(
    student: str,
    name: str,
    notebook: NotebookNode,
    boxes: Boxes,
    *,
    seed: str | None = None,
    timeout: float = 30,
) -> Examined:
    """Run a repaired notebook and its checks; return a row for each check and open question."""
    return _Examination(notebook, name, boxes, seed, timeout).result(student)


def rows_of(student: str, name: str, heard: dict, answers: dict, seed=None) -> list[Row]:
    """Rows from what each check said, nothing if it passed, and from the open answers."""
    blank = {grade_id(cell): cell.source for cell in released(name, seed).cells}
    rows = []
    for cell in source(name, seed).cells:
        if is_grade(cell):
            task, most = grade_id(cell), float(cell.metadata.nbgrader.points)
            said, answer = heard.get(task, ""), answers.get(task, "")
            waits = is_solution(cell) and answer.strip() != blank[task].strip()
            state = "awaits manual grading" if waits else "graded"
            points = 0.0 if said or is_solution(cell) else most
            rows.append(Row(student, name, task, points, most, state, said, answer))
    return rows


def not_graded(student: str, name: str, reason: str) -> list[Row]:
    """Rows without points, of a submission that cannot be examined."""
    checks = [cell for cell in source(name).cells if is_grade(cell)]
    return [
        Row(student, name, grade_id(cell), 0.0, float(cell.metadata.nbgrader.points),
            f"not graded: {reason}")
        for cell in checks
    ]  # fmt: skip


class _Examination:
    def __init__(self, notebook, name, boxes, seed, timeout):
        self.cells, self.name, self.boxes = notebook.cells, name, boxes
        self.seed, self.timeout = seed, timeout
        ours = [cell for cell in source(name, seed).cells if cell.cell_type == "code"]
        self.checks = {grade_id(cell): cell.source for cell in ours if is_grade(cell)}
        self.shown = {grade_id(cell): cell.source for cell in released(name, seed).cells}
        self.given = {grade_id(cell): cell.source for cell in ours if _is_given(cell)}
        self.extras = {cell.source for cell in released(name, seed).cells if not grade_id(cell)}
        self.wanted = set().union(*(_bound(cell.source) for cell in ours if is_solution(cell)))
        self.outputs: dict[int, dict] = {}
        self.heard: dict[str, str] = {}
        self.broken: set[int] = set()

    def result(self, student: str) -> Examined:
        """Go through the notebook from top to bottom."""
        for text in self.checks.values():  # the first import takes seconds, which are not theirs
            exec(imports_of(text), {})
        self.until = time.monotonic() + PATIENCE * self.timeout
        self.teacher: dict = {"__name__": "__main__"}
        for text in self.given.values():
            error_of(text, self.teacher)
        self._open(0)
        answers = {}
        try:
            for place, cell in enumerate(self.cells):
                task = grade_id(cell)
                if cell.cell_type != "code":
                    answers[task] = cell.source
                elif task in self.checks:
                    self._check(place, task)
                else:
                    self._run(place, cell)
        finally:
            self.box.end()
        rows = rows_of(student, self.name, self.heard, answers, self.seed)
        return Examined(rows, self.outputs, self.box.kept_apart)

    def _open(self, place: int) -> None:
        """Start a box, and run in it what stands before a place and did not break one."""
        self.box = self.boxes.new()
        self.wire = Wire(self.box.line, trusts=False)
        for before, cell in enumerate(self.cells[:place]):
            if cell.cell_type == "code" and before not in self.broken:
                with contextlib.suppress(Gone, TimeUp), _at_most(self._seconds()):
                    self._ask(cell)

    def _ask(self, cell: NotebookNode) -> dict:
        task = grade_id(cell)
        if task in self.checks:
            return self.wire.ask(do="imports", source=self.shown[task])
        if task is None and cell.source in self.extras:
            return {}  # the closing picture is for the reader
        return self.wire.ask(do="run", source=self.given.get(task, cell.source))

    def _seconds(self) -> float:
        return max(0.01, min(self.timeout, self.until - time.monotonic()))

    def _run(self, place: int, cell: NotebookNode) -> None:
        """Run a cell of the student."""
        try:
            with _at_most(self._seconds()):
                told = self._ask(cell)
                if not self.box.lives():
                    raise Gone("the box has been broken")
            said = _text(told) if "error" in told else ""
            self.outputs[place] = {"printed": str(told.get("printed", ""))[:20_100], "error": said}
            return
        except (Gone, TimeUp) as error:
            self.outputs[place] = {"printed": "", "error": self._reason(error)}
        self._start_anew(place)

    def _check(self, place: int, task: str) -> None:
        """Run a check."""
        try:
            with _at_most(self._seconds()):
                self._ask(self.cells[place])
                self.heard[task] = self._error_of(task)
        except (Gone, TimeUp) as error:
            self.heard[task] = f"{self._reason(error)} ({task})"
            self._start_anew(place)

    def _error_of(self, task: str) -> str:
        used = {node.id for node in ast.walk(ast.parse(self.checks[task]))
                if isinstance(node, ast.Name)}  # fmt: skip
        names = sorted(used & self.wanted)
        answer = self.wire.ask(do="get", names=names)
        found, wrong = answer["found"], answer["wrong"]
        for name in names:
            self.teacher.pop(name, None)
            if name in found:
                self.teacher[name] = self.wire.decode(found[name])
            elif name in wrong:
                return f"TypeError: {name} should be a value, but {str(wrong[name])[:300]}"
            elif self.broken:
                reason = self.outputs.get(max(self.broken), {}).get("error", "")
                return f"NameError: {name} is not defined; a cell before failed: {reason}"
        return error_of(self.checks[task], self.teacher)

    def _reason(self, error: BaseException) -> str:
        if isinstance(error, TimeUp):
            return TOO_LONG.format(min(self.timeout, PATIENCE * self.timeout))
        return ENDED

    def _start_anew(self, place: int) -> None:
        self.box.end()
        self.broken.add(place)
        self._open(place)


def error_of(text: str, namespace: dict) -> str:
    """Run a check; return what its error says, in one line, or nothing if there is none."""
    try:
        silent = contextlib.redirect_stdout(io.StringIO())
        with silent, warnings.catch_warnings(action="ignore"):
            exec(compile(text, "<check>", "exec"), namespace)
    except Gone:
        raise
    except Exception as error:
        line = getattr(error, "line", None)
        return _in_one_line(type(error).__name__, str(error)) + _place(line)
    return ""


def _text(told: dict) -> str:
    if told["error"][0] == "SystemExit":
        return "SystemExit: quit() and exit() end the notebook: take them out"
    return _in_one_line(str(told["error"][0]), str(told["says"])) + _place(told.get("line"))


def _in_one_line(kind: str, says: str) -> str:
    return " ".join(f"{kind}: {says}".split())[:2000]


def _place(line) -> str:
    return f" [line {line} of your cell]" if isinstance(line, int) else ""


def _is_given(cell: NotebookNode) -> bool:
    """Whether a code cell is handed out as it is: neither a solution nor a check."""
    return bool(grade_id(cell)) and not is_grade(cell) and not is_solution(cell)


def _bound(text: str) -> set[str]:
    """Names that a cell defines at its top level."""
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        else:
            names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
            found |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return found


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise TimeUp in this block after so many seconds; for the main thread."""

    def ring(*_):
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
