"""Examine one submission: run its cells in a box, and its checks in this process.

A check is code of the teacher, and runs in the teacher's process with the teacher's NumPy. It gets
values and functions of the student by name, through the connection in wire.py. So the student's
code cannot make a check pass by changing its own process, and it never sees a check.

The notebook runs twice. The first pass uses the checks that students have, without their hidden
parts. Feedback shows in full what cells print and raise in this pass, and the messages of the
checks. The second pass runs in a new process and uses the complete checks. The student's code can
then read hidden data, so feedback shows no text from it, see `_error_without_student_text`. A cell
that does not end, or that ends its process, loses only its own task: a new box runs the other cells
again.
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

from markapart.box import START_SECONDS, Boxes
from markapart.forms import ValueSizes
from markapart.replies import imports_of
from markapart.sources import STUB, grade_id, read_released, source
from markapart.wire import WireError

# Each pass over the notebook may take this many times the limit for one cell.
TIMEOUTS_PER_PASS = 6
MAX_RESTARTS = 12
CHECK_MEMORY = 2**30  # Bytes that a check may use in the teacher's process.
# The time limit of a check is divided by this number if an earlier check of the same function
# reached its limit.
SLOW_DIVISOR = 10

TOO_LONG = "TimeoutError: not done after {:g} seconds; is there a loop that does not end?"
NO_TIME_LEFT = "TimeoutError: the time of the whole notebook is used up; which cells take so long?"
PYTHON_ENDED = (
    "RuntimeError: your code ended Python itself, by quit(), exit() or by taking too much memory; "
    "take that out, then restart and run all cells before you hand in"
)
IN_PLACE = "# Functions may change what they are given here."  # A check may contain this line.
HIDDEN_DATA = "(on data of a hidden check, of which nothing is shown)"
WRONG_ARGUMENTS = "a function of yours does not take the arguments that its task describes"
MAX_SHOWN_LETTERS = 40  # Longer values are cut from messages of hidden checks.


class TimeUp(BaseException):
    """Raised if a cell or check runs for too long; no Exception, so that no check catches it."""


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
    """A digest of the student's code that the check tests."""


class Tally(NamedTuple):
    """Sums of points over rows, and the states of rows that are not graded."""

    earned: float
    most: float
    states: str


def tally(rows: Iterable[Row]) -> Tally:
    """Add up the points of rows."""
    _, _, _, points, most, states, *_ = zip(*rows, strict=True)
    return Tally(sum(points), sum(most), "; ".join(sorted({*states} - {"graded"})))


class Examined(NamedTuple):
    """The result of one submission."""

    rows: list[Row]
    outputs: dict[int, dict]
    """The text ``printed`` by a cell and its ``error``, keyed by the cell's index."""
    kept_apart: str


def examine(
    student: str, name: str, notebook: NotebookNode, boxes: Boxes, seed: str | None, timeout: float
) -> Examined:
    """Run a repaired notebook and its checks; return a row per check and per open question."""
    return _Examination(notebook, name, boxes, seed, timeout).result(student)


def build_rows(
    student: str, name: str, messages: dict, answers: dict, seed=None, codes: dict | None = None
) -> list[Row]:
    """Return rows built from the messages of checks ("" if passed) and from the open answers."""
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


def rows_not_graded(student: str, name: str, reason: str) -> list[Row]:
    """Return rows with 0 points for a submission that cannot be examined."""
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
        self.given = {grade_id(cell): cell.source for cell in ours if _is_given_code(cell)}
        self.extras = {cell.source for cell in handed_out if not grade_id(cell)}
        self.known = reference_sizes(name, seed)
        self.outputs: dict[int, dict] = {}
        self.messages: dict[str, str] = {}
        self.broken: set[int] = set()
        self.slow: set[str] = set()
        self.restarts = 0

    def result(self, student: str) -> Examined:
        """Run the notebook with the visible checks, then again with the complete checks."""
        for text in self.checks.values():  # Import now, so that the student's time does not pay.
            exec(imports_of(text), {})
        self.box = self.boxes.new()
        try:
            self._start_pass(hidden=False)
            for place in self._code_places():
                self._run_visible(place)
            self._continue_in_new_process()
            self._start_pass(hidden=True)
            for place in self._code_places():
                self._run_check(place)
        finally:
            self.box.end()
        answers = {grade_id(cell): cell.source for cell in self.cells if cell.cell_type != "code"}
        codes = {grade_id(cell): hashlib.sha256(cell.source.encode()).hexdigest()[:16]
                 for cell in self.cells if cell.cell_type == "code"}  # fmt: skip
        rows = build_rows(student, self.name, self.messages, answers, self.seed, codes)
        return Examined(rows, self.outputs, self.box.kind)

    def _start_pass(self, *, hidden: bool) -> None:
        """Set the time limit of a pass, and build the namespace in which its checks run."""
        self.hidden, self.teacher = hidden, {"__name__": "__main__"}
        for text in self.given.values():
            find_error(text, self.teacher)
        self.until = time.monotonic() + TIMEOUTS_PER_PASS * self.timeout

    def _code_places(self) -> list[int]:
        return [place for place, cell in enumerate(self.cells) if cell.cell_type == "code"]

    def _continue_in_new_process(self) -> None:
        """Switch to a new process of the box, without the variables of earlier cells."""
        try:
            with limit_time(START_SECONDS, "the box does not go on"):
                self.box.wire.tell(do="next")
                self.box.wire.ask(do="ready")
        except (WireError, TimeUp):
            self.box.end()
            self.box = self.boxes.new()

    def _restart_box(self, place: int) -> None:
        """Start a new box and run the cells before an index again, except those that ended one."""
        while True:
            self.box.end()
            began = time.monotonic()
            self.box = self.boxes.new()
            self.until += time.monotonic() - began  # Starting a box takes no time of the student.
            self.restarts += 1
            for before in self._code_places():
                try:
                    if before < place and before not in self.broken:
                        with self._limit_time():
                            self._send_cell(before)
                except (WireError, TimeUp) as error:
                    if str(error) == NO_TIME_LEFT:
                        return
                    self.broken.add(before)
                    break
            else:
                return

    def _send_cell(self, place: int) -> dict:
        """Run a cell of the student in the box; if the cell is a check, run only its imports."""
        cell, task = self.cells[place], grade_id(self.cells[place])
        if task in self.checks:
            return self.box.wire.ask(do="imports", source=self.shown[task])
        if task is None and cell.source in self.extras:
            return {}  # The picture at the end gives no points.
        return self.box.wire.ask(do="run", source=self.given.get(task, cell.source))

    def _limit_time(self, part: float = 1) -> contextlib.AbstractContextManager:
        left = self.until - time.monotonic()
        if left <= 0 or self.restarts > MAX_RESTARTS:
            raise TimeUp(NO_TIME_LEFT)
        return limit_time(min(self.timeout * part, left), TOO_LONG.format(self.timeout))

    def _run_visible(self, place: int) -> None:
        """Run a cell and store its output and error; if it is a check, run its visible part."""
        if grade_id(self.cells[place]) in self.checks:
            return self._run_check(place)
        try:
            with self._limit_time():
                reply = self._send_cell(place)
            message = _error_in_reply(reply) if "error" in reply else ""
            self.outputs[place] = {
                "printed": str(reply.get("printed", ""))[:20_100],
                "error": message,
            }
        except (WireError, TimeUp) as error:
            self.outputs[place] = {"printed": "", "error": _reason_of_end(error)}
            self._restart_after(place, error)

    def _run_check(self, place: int) -> None:
        """Run a check unless it has failed already, or run a cell that is no check."""
        task = grade_id(self.cells[place])
        if self.messages.get(task) or (task not in self.checks and place in self.broken):
            return
        used = set(names_used(self.checks.get(task, ""), self.name))
        try:
            with self._limit_time(1 / SLOW_DIVISOR if used & self.slow else 1):
                self._send_cell(place)
                if task in self.checks:
                    with limit_memory():
                        self.messages[task] = self._find_error_of_check(task, sorted(used))
        except (WireError, TimeUp, MemoryError) as error:
            self.messages[task] = f"{_reason_of_end(error)} ({task})"
            self.slow |= used
            self._restart_after(place, error)

    def _restart_after(self, place: int, error: BaseException) -> None:
        """Start a new box after a cell that ended the old box, if time is left."""
        self.broken.add(place)
        if str(error) != NO_TIME_LEFT:
            self._restart_box(place)

    def _find_error_of_check(self, task: str, names: list[str]) -> str:
        wire = self.box.wire
        answer = wire.ask(do="get", names=names)
        try:
            found, wrong = dict(answer["found"]), dict(answer["wrong"])
        except (KeyError, TypeError, ValueError):
            raise WireError("an answer is none") from None
        for name in names:
            self.teacher.pop(name, None)
            if name in found:
                self.teacher[name] = wire.decode(found[name])
            elif name in wrong:
                return f"TypeError: {name} should be a value, but {str(wrong[name])[:300]}"
            elif cause := self._error_of_defining_cell(name):
                return f"{cause} (so {name} is not defined)"
        wire.in_place = IN_PLACE in self.checks[task]
        text = self.checks[task] if self.hidden else self.shown[task]
        forms = ValueSizes(self.known[task])
        return run_check(text, self.teacher, self.name, forms, hidden=self.hidden)

    def _error_of_defining_cell(self, name: str) -> str:
        """Return the error of the cell that should define a name, as found in the first pass."""
        cells = [place for place in self._code_places()
                 if grade_id(self.cells[place]) == self.solved_in[name]]  # fmt: skip
        failed = [*cells, *(place for place in sorted(self.broken) if not cells)]
        return next((error for place in failed
                     if (error := self.outputs.get(place, {}).get("error"))), "")  # fmt: skip


@functools.cache
def reference_sizes(name: str, seed: str | None) -> dict[str, dict]:
    """Return for each check the sizes of the values that the right solution returns."""
    found, space = {}, {"__name__": "__main__"}
    for cell in source(name, seed).cells:
        task = grade_id(cell)
        if cell.cell_type == "code" and is_grade(cell):
            found[task] = {}
            run_check(cell.source, space, name, ValueSizes(found[task], learns=True))
        elif cell.cell_type == "code" and task:
            find_error(cell.source, space)
    return found


def run_check(text: str, space: dict, name: str, forms: ValueSizes, *, hidden: bool = False) -> str:
    """Run a check and compare the sizes of its values; return what is wrong, or ""."""
    own = {one: space[one] for one in names_used(text, name) if one in space}
    space.update({one: forms.watch(one, value) for one, value in own.items()})
    message = find_error(text, space, hidden=hidden) or forms.wrong
    space.update(own)
    return message


def names_used(check: str, name: str) -> list[str]:
    """Return the names in a check that solution cells should define."""
    names = {node.id for node in ast.walk(ast.parse(check)) if isinstance(node, ast.Name)}
    return sorted(names & solution_names(name))


@functools.cache
def solution_names(name: str) -> set[str]:
    """Return the names that the solution cells of an assignment define."""
    cells = [cell for cell in source(name).cells if cell.cell_type == "code" and is_solution(cell)]
    return set().union(*(defined_names(cell.source) for cell in cells))


def find_error(text: str, namespace: dict, *, hidden: bool = False) -> str:
    """Run a check; return its error as one line, or "" if there is none.

    With ``hidden``, the line contains no text that the student's code could have chosen.
    """
    try:
        tree = ast.parse(text, "<check>")
        if hidden:
            namespace["__shorten__"] = _shorten_text
            tree = ast.fix_missing_locations(_ShortMessages().visit(tree))
        silent = contextlib.redirect_stdout(io.StringIO())
        with silent, warnings.catch_warnings(action="ignore"):
            exec(compile(tree, "<check>", "exec"), namespace)
    except WireError:
        raise
    except Exception as error:
        if hidden:
            return _error_without_student_text(error)
        return _in_one_line(type(error).__name__, str(error)) + _line_suffix(
            getattr(error, "line", None)
        )
    return ""


class _ShortMessages(ast.NodeTransformer):
    """Replace each long value in the message of an assert by "[…]"."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        for part in ast.walk(node.msg) if node.msg else ():
            if isinstance(part, ast.JoinedStr):
                part.values = [_shorten_node(one) for one in part.values]
        return node


def _shorten_node(part: ast.expr) -> ast.expr:
    if not isinstance(part, ast.FormattedValue):
        return part
    call = ast.Call(ast.Name("__shorten__", ast.Load()), [ast.JoinedStr([part])], [])
    return ast.FormattedValue(call, -1)


def _shorten_text(shown: str) -> str:
    return shown if len(shown) <= MAX_SHOWN_LETTERS else "[…]"


def _error_without_student_text(error: Exception) -> str:
    """Describe an error in a hidden check without text that the student's code could have chosen.

    If a line of the check itself raised a NameError or TypeError, Python's message is shown,
    because it names types and no data. If the student's code raised the error, only the nearest
    built-in type and the line are shown.
    """
    ours = traceback.extract_tb(error.__traceback__)[-1].filename == "<check>"
    if str(error) == STUB or (ours and type(error) in (AssertionError, NameError, TypeError)):
        return _in_one_line(type(error).__name__, str(error))
    known = ("builtins", "numpy.linalg")
    kind = next(one for one in type(error).__mro__ if one.__module__ in known)
    line = getattr(error, "line", None)
    if issubclass(kind, TypeError) and line is None and not ours:
        return _in_one_line("TypeError", WRONG_ARGUMENTS)
    return _in_one_line(kind.__name__, HIDDEN_DATA) + (
        _line_suffix(line) if 0 < (line or 0) < 1000 else ""
    )


def _error_in_reply(reply: dict) -> str:
    if reply["error"][0] == "SystemExit":
        return "SystemExit: quit() and exit() end the notebook: take them out"
    return _in_one_line(str(reply["error"][0]), str(reply["says"])) + _line_suffix(
        reply.get("line")
    )


def _in_one_line(kind: str, says: str) -> str:
    return " ".join(f"{kind}: {says}".split())[:2000]


def _line_suffix(line) -> str:
    return f" [line {line} of your cell]" if isinstance(line, int) else ""


def _is_given_code(cell: NotebookNode) -> bool:
    """Return whether a code cell is given to students as it is: no solution and no check."""
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


def _reason_of_end(error: BaseException) -> str:
    return str(error) if isinstance(error, TimeUp) else PYTHON_ENDED


@contextlib.contextmanager
def limit_memory() -> Iterator[None]:
    """Raise MemoryError if this block uses more than CHECK_MEMORY additional bytes.

    The block reads what a student's function returns, and a check may build arrays of that size.
    """
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    if sys.platform == "linux":
        resource.setrlimit(
            resource.RLIMIT_AS, (psutil.Process().memory_info().vms + CHECK_MEMORY, hard)
        )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


@contextlib.contextmanager
def limit_time(seconds: float, says: str) -> Iterator[None]:
    """Raise TimeUp with a message if this block takes longer; only for the main thread."""

    def raise_time_up(*_):
        raise TimeUp(says)

    before = signal.signal(signal.SIGALRM, raise_time_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
