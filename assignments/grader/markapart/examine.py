"""Examine one submission: its cells run in a box, the checks run here.

A check is the teacher's code in the teacher's process, with the teacher's numpy. It gets the
student's values and functions by name, over the line of wire.py. So nothing that the student's code
does to its own process can make a check pass, and that code never sees a check.

The notebook runs twice. The first pass uses the checks as students have them, without the hidden
parts: what cells print and raise, and the messages of these checks, are shown in full. The second
pass runs in a new process and uses the whole checks. The student's code then knows hidden data, so
feedback shows no text that this code could have chosen, see `_unrevealing`. A cell that does not
end, or that ends its process, costs its own task: another box replays the other cells.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import io
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import psutil
from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_solution

from markapart.box import START, Boxes
from markapart.forms import Forms
from markapart.replies import imports_of
from markapart.sources import STUB, grade_id, read_released, source
from markapart.wire import Gone

# All cells together may take PATIENCE times as long as one cell, and so may all checks.
PATIENCE = 6
RESTARTS = 12
MEMORY = 2**30  # bytes that a check may take in the teacher's process
# A check gets this fraction of the time if its function did not end in an earlier check.
IMPATIENCE = 10

TOO_LONG = "TimeoutError: not done after {:g} seconds; is there a loop that does not end?"
ALL_USED = "TimeoutError: the time of the whole notebook is used up; which cells take so long?"
ENDED = (
    "RuntimeError: your code ended Python itself, by quit(), exit() or by taking too much memory; "
    "take that out, then restart and run all cells before you hand in"
)
IN_PLACE = "# Functions may change what they are given here."  # a line in a check
UNSEEN = "(on data of a hidden check, of which nothing is shown)"
ARGUMENTS = "a function of yours does not take the arguments that its task describes"
LONGEST = 40  # letters of a student's value in the message of a hidden check


class TimeUp(BaseException):
    """A cell or check has run for too long. It is no Exception, so that no check catches it."""


class Row(NamedTuple):
    """The points of one check or open question of one submission."""

    student: str
    assignment: str
    task: str
    points: float
    max: float
    state: str
    """``graded``, ``awaits manual grading``, or why the notebook could not be graded."""
    message: str = ""
    """The message of the failed check."""
    answer: str = ""
    """The text of an open question's answer."""
    code: str = ""
    """A digest of the student's code that a check is about."""


class Tally(NamedTuple):
    """The sum of rows, and the states of those that are not graded."""

    earned: float
    most: float
    states: str


def tally(rows: Iterable[Row]) -> Tally:
    """Add up rows."""
    _, _, _, points, most, states, *_ = zip(*rows, strict=True)
    return Tally(sum(points), sum(most), "; ".join(sorted({*states} - {"graded"})))


class Examined(NamedTuple):
    """The result of one submission."""

    rows: list[Row]
    outputs: dict[int, dict]
    """By the cell's place in the notebook: what it ``printed``, the ``error`` that it met."""
    kept_apart: str


def examine(
    student: str, name: str, notebook: NotebookNode, boxes: Boxes, seed: str | None, timeout: float
) -> Examined:
    """Run a repaired notebook and its checks; return a row for each check and open question."""
    return _Examination(notebook, name, boxes, seed, timeout).result(student)


def rows_of(
    student: str, name: str, messages: dict, answers: dict, seed=None, codes: dict | None = None
) -> list[Row]:
    """Build rows from the message of each check (empty if it passed) and from the open answers."""
    handed_out = read_released(name, seed).cells
    solution, blank = None, {grade_id(cell): cell.source for cell in handed_out}
    rows = []
    for cell in source(name, seed).cells:
        if is_solution(cell) and not is_grade(cell):
            solution = grade_id(cell)
        if is_grade(cell):
            task, most = grade_id(cell), float(cell.metadata.nbgrader.points)
            message, answer = messages.get(task, ""), answers.get(task, "")
            waits = is_solution(cell) and answer.strip() != blank[task].strip()
            state = "awaits manual grading" if waits else "graded"
            points = 0.0 if message or is_solution(cell) else most
            code = "" if is_solution(cell) else (codes or {}).get(solution, "")
            rows.append(Row(student, name, task, points, most, state, message, answer, code))
    return rows


def not_graded(student: str, name: str, reason: str) -> list[Row]:
    """Return rows without points, for a submission that cannot be examined."""
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
        handed_out = read_released(name, seed).cells
        self.shown = {grade_id(cell): cell.source for cell in handed_out}
        self.solved_in = {one: grade_id(cell) for cell in ours if is_solution(cell)
                          for one in defined_names(cell.source)}  # fmt: skip
        self.given = {grade_id(cell): cell.source for cell in ours if _is_given(cell)}
        self.extras = {cell.source for cell in handed_out if not grade_id(cell)}
        self.known = reference_sizes(name, seed)
        self.outputs: dict[int, dict] = {}
        self.messages: dict[str, str] = {}
        self.broken: set[int] = set()
        self.slow: set[str] = set()
        self.restarts = 0

    def result(self, student: str) -> Examined:
        """Run the notebook twice, with the visible checks and with the whole ones."""
        for text in self.checks.values():  # imports take seconds that are not the student's
            exec(imports_of(text), {})
        self.box = self.boxes.new()
        try:
            self._start_pass(hidden=False)
            for place in self._code():
                self._run(place)
            self._another()
            self._start_pass(hidden=True)
            for place in self._code():
                self._check(place)
        finally:
            self.box.end()
        answers = {grade_id(cell): cell.source for cell in self.cells if cell.cell_type != "code"}
        codes = {grade_id(cell): hashlib.sha256(cell.source.encode()).hexdigest()[:16]
                 for cell in self.cells if cell.cell_type == "code"}  # fmt: skip
        rows = rows_of(student, self.name, self.messages, answers, self.seed, codes)
        return Examined(rows, self.outputs, self.box.kind)

    def _start_pass(self, *, hidden: bool) -> None:
        """Set the time of a pass, and build the namespace in which its checks run."""
        self.hidden, self.teacher = hidden, {"__name__": "__main__"}
        for text in self.given.values():
            error_of(text, self.teacher)
        self.until = time.monotonic() + PATIENCE * self.timeout

    def _code(self) -> list[int]:
        return [place for place, cell in enumerate(self.cells) if cell.cell_type == "code"]

    def _another(self) -> None:
        """Continue in a process that knows nothing of the cells that have run."""
        try:
            with at_most(START, "the box does not go on"):
                self.box.wire.tell(do="next")
                self.box.wire.ask(do="ready")
        except (Gone, TimeUp):
            self.box.end()
            self.box = self.boxes.new()

    def _anew(self, place: int) -> None:
        """Start a new box and replay the cells before a place, except those that ended a box."""
        while True:
            self.box.end()
            began = time.monotonic()
            self.box = self.boxes.new()
            self.until += time.monotonic() - began  # the student does not pay for the start
            self.restarts += 1
            for before in self._code():
                try:
                    if before < place and before not in self.broken:
                        with self._time():
                            self._ask(before)
                except (Gone, TimeUp) as error:
                    if str(error) == ALL_USED:
                        return
                    self.broken.add(before)
                    break
            else:
                return

    def _ask(self, place: int) -> dict:
        """Run a cell of the student in the box; of a check run its imports only."""
        cell, task = self.cells[place], grade_id(self.cells[place])
        if task in self.checks:
            return self.box.wire.ask(do="imports", source=self.shown[task])
        if task is None and cell.source in self.extras:
            return {}  # the closing picture gives no points
        return self.box.wire.ask(do="run", source=self.given.get(task, cell.source))

    def _time(self, part: float = 1) -> contextlib.AbstractContextManager:
        left = self.until - time.monotonic()
        if left <= 0 or self.restarts > RESTARTS:
            raise TimeUp(ALL_USED)
        return at_most(min(self.timeout * part, left), TOO_LONG.format(self.timeout))

    def _run(self, place: int) -> None:
        """Run a cell and keep what it prints and raises, or run the visible part of a check."""
        if grade_id(self.cells[place]) in self.checks:
            return self._check(place)
        try:
            with self._time():
                reply = self._ask(place)
            message = _text(reply) if "error" in reply else ""
            self.outputs[place] = {
                "printed": str(reply.get("printed", ""))[:20_100],
                "error": message,
            }
        except (Gone, TimeUp) as error:
            self.outputs[place] = {"printed": "", "error": _reason(error)}
            self._start_anew(place, error)

    def _check(self, place: int) -> None:
        """Run a check that has not failed yet, or a cell that stands between checks."""
        task = grade_id(self.cells[place])
        if self.messages.get(task) or (task not in self.checks and place in self.broken):
            return
        used = set(names_used(self.checks.get(task, ""), self.name))
        try:
            with self._time(1 / IMPATIENCE if used & self.slow else 1):
                self._ask(place)
                if task in self.checks:
                    with little_memory():
                        self.messages[task] = self._error_of(task, sorted(used))
        except (Gone, TimeUp, MemoryError) as error:
            self.messages[task] = f"{_reason(error)} ({task})"
            self.slow |= used
            self._start_anew(place, error)

    def _start_anew(self, place: int, error: BaseException) -> None:
        """Start a new box after a cell that ended the old one, if time is left."""
        self.broken.add(place)
        if str(error) != ALL_USED:
            self._anew(place)

    def _error_of(self, task: str, names: list[str]) -> str:
        wire = self.box.wire
        answer = wire.ask(do="get", names=names)
        try:
            found, wrong = dict(answer["found"]), dict(answer["wrong"])
        except (KeyError, TypeError, ValueError):
            raise Gone("an answer is none") from None
        for name in names:
            self.teacher.pop(name, None)
            if name in found:
                self.teacher[name] = wire.decode(found[name])
            elif name in wrong:
                return f"TypeError: {name} should be a value, but {str(wrong[name])[:300]}"
            elif cause := self._cause(name):
                return f"{cause} (so {name} is not defined)"
        wire.in_place = IN_PLACE in self.checks[task]
        text = self.checks[task] if self.hidden else self.shown[task]
        forms = Forms(self.known[task])
        return run_check(text, self.teacher, self.name, forms, hidden=self.hidden)

    def _cause(self, name: str) -> str:
        """Return the error, in the first pass, of the cell that should define a name."""
        cells = [place for place in self._code()
                 if grade_id(self.cells[place]) == self.solved_in[name]]  # fmt: skip
        failed = [*cells, *(place for place in sorted(self.broken) if not cells)]
        return next((error for place in failed
                     if (error := self.outputs.get(place, {}).get("error"))), "")  # fmt: skip


@functools.cache
def reference_sizes(name: str, seed: str | None) -> dict[str, dict]:
    """Return, for each check, the sizes of what the right solution returns to its calls."""
    found, space = {}, {"__name__": "__main__"}
    for cell in source(name, seed).cells:
        task = grade_id(cell)
        if cell.cell_type == "code" and is_grade(cell):
            found[task] = {}
            run_check(cell.source, space, name, Forms(found[task], learns=True))
        elif cell.cell_type == "code" and task:
            error_of(cell.source, space)
    return found


def run_check(text: str, space: dict, name: str, forms: Forms, *, hidden: bool = False) -> str:
    """Run a check and compare the sizes of its values; return what is wrong, or nothing."""
    own = {one: space[one] for one in names_used(text, name) if one in space}
    space.update({one: forms.see(one, value) for one, value in own.items()})
    message = error_of(text, space, hidden=hidden) or forms.wrong
    space.update(own)
    return message


def names_used(check: str, name: str) -> list[str]:
    """Return the names in a check that solutions define."""
    names = {node.id for node in ast.walk(ast.parse(check)) if isinstance(node, ast.Name)}
    return sorted(names & solution_names(name))


@functools.cache
def solution_names(name: str) -> set[str]:
    """Return the names that the solution cells of an assignment define."""
    cells = [cell for cell in source(name).cells if cell.cell_type == "code" and is_solution(cell)]
    return set().union(*(defined_names(cell.source) for cell in cells))


def error_of(text: str, namespace: dict, *, hidden: bool = False) -> str:
    """Run a check; return its error in one line, or nothing if there is none.

    With ``hidden``, the line shows no text that the student's code could have chosen.
    """
    try:
        tree = ast.parse(text, "<check>")
        if hidden:
            namespace["__shorten__"] = _shorten
            tree = ast.fix_missing_locations(_ShortMessages().visit(tree))
        silent = contextlib.redirect_stdout(io.StringIO())
        with silent, warnings.catch_warnings(action="ignore"):
            exec(compile(tree, "<check>", "exec"), namespace)
    except Gone:
        raise
    except Exception as error:
        if hidden:
            return _unrevealing(error)
        return _in_one_line(type(error).__name__, str(error)) + _place(getattr(error, "line", None))
    return ""


class _ShortMessages(ast.NodeTransformer):
    """Cut every value in the message of an assert to LONGEST letters."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        for part in ast.walk(node.msg) if node.msg else ():
            if isinstance(part, ast.JoinedStr):
                part.values = [_cut(one) for one in part.values]
        return node


def _cut(part: ast.expr) -> ast.expr:
    if not isinstance(part, ast.FormattedValue):
        return part
    call = ast.Call(ast.Name("__shorten__", ast.Load()), [ast.JoinedStr([part])], [])
    return ast.FormattedValue(call, -1)


def _shorten(shown: str) -> str:
    return shown if len(shown) <= LONGEST else "[…]"


def _unrevealing(error: Exception) -> str:
    """Describe an error that a hidden check met, without text of the student's choice.

    Python's own words are shown where the check's line itself failed with a NameError or a
    TypeError, which name types and no data. Of an error in the student's code the nearest built-in
    type and the line are shown.
    """
    ours = traceback.extract_tb(error.__traceback__)[-1].filename == "<check>"
    if str(error) == STUB or (ours and type(error) in (AssertionError, NameError, TypeError)):
        return _in_one_line(type(error).__name__, str(error))
    known = ("builtins", "numpy.linalg")
    kind = next(one for one in type(error).__mro__ if one.__module__ in known)
    line = getattr(error, "line", None)
    if issubclass(kind, TypeError) and line is None and not ours:
        return _in_one_line("TypeError", ARGUMENTS)
    return _in_one_line(kind.__name__, UNSEEN) + (_place(line) if 0 < (line or 0) < 1000 else "")


def _text(reply: dict) -> str:
    if reply["error"][0] == "SystemExit":
        return "SystemExit: quit() and exit() end the notebook: take them out"
    return _in_one_line(str(reply["error"][0]), str(reply["says"])) + _place(reply.get("line"))


def _in_one_line(kind: str, says: str) -> str:
    return " ".join(f"{kind}: {says}".split())[:2000]


def _place(line) -> str:
    return f" [line {line} of your cell]" if isinstance(line, int) else ""


def _is_given(cell: NotebookNode) -> bool:
    """Return whether a code cell is handed out unchanged: neither a solution nor a check."""
    return bool(grade_id(cell)) and not is_grade(cell) and not is_solution(cell)


def defined_names(text: str) -> set[str]:
    """Return the names that a cell defines at its top level."""
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        else:
            names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
            found |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return found


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, TimeUp) else ENDED


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Let this process take at most MEMORY more in this block; more is a MemoryError.

    What a student's function returns is read here, and a check may build arrays of its size.
    """
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


@contextlib.contextmanager
def at_most(seconds: float, says: str) -> Iterator[None]:
    """Raise TimeUp if this block takes longer; works in the main thread only."""

    def ring(*_):
        raise TimeUp(says)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
