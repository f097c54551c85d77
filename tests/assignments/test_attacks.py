"""One submission cannot touch another, the key, or the person who grades."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
from decimal import Decimal
from fractions import Fraction

import box
import examine
import forms
import grading
import nbformat
import notes
import numpy as np
import psutil
import pytest
import replies
import sources
import wire
from handed_in import changed, checks_of, right, solutions
from nbgrader.utils import is_grade

NAME = "12_rca"
FIRST, LAST = solutions(NAME)[0], solutions(NAME)[-1]
SECONDS = 4
SLEEPER = "987654.25"  # how long processes sleep that are left behind, which nobody else does

IGNORES_INTERRUPTS = """
import signal
for number in range(1, 30):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_IGN)
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""
LEAVES_PROCESSES = f"""
import os, subprocess
for _ in range(5):
    subprocess.Popen(["sleep", "{SLEEPER}"], start_new_session=True)
if not os.fork():
    os.setsid()
    if not os.fork():
        os.execlp("sleep", "sleep", "{SLEEPER}")
    os._exit(0)
"""
CALLS_HOME = "import socket\nsocket.create_connection(('127.0.0.1', {}), 2).send(b'x')"
# Never a group, nor the parent of a parent: as another user of root's that might be all processes.
KILLS_ITS_PARENT = """
import os
parent = os.getppid()
if parent > 1:
    os.kill(parent, 9)
raise RuntimeError("there is no parent to be seen")
"""
READS_MEMORY = """
import gc
print([text for text in map(str, gc.get_objects()) if "HIDDEN " + "TESTS" in text][:1])
print(In, _ih, get_ipython().history_manager.input_hist_raw)
"""
TAKES_IT_BY_PARTS = """
import os, time
for _ in range(4):
    if not os.fork():
        x = bytearray(10**9)
        time.sleep(1000)
time.sleep(1000)
"""
PATCHES = """
import builtins
import numpy as np
np.allclose = np.isclose = lambda *a, **k: True
builtins.abs = lambda x: 0
builtins.AssertionError = ValueError
"""


def attacks(folder, port):
    """Code by the attacker's name, in place of a solution or before it."""
    source = sources.HERE / "source" / NAME / f"{NAME}.ipynb"
    writes = f"""
import pathlib
for path in [*pathlib.Path({str(folder)!r}).rglob("*"), pathlib.Path({str(source)!r})]:
    try:
        path.write_text("20 of 20")
    except OSError:
        pass
"""
    reads = f"""
for path in ("../../../source/{NAME}/{NAME}.ipynb", {str(source)!r}):
    try:
        print(open(path).read())
    except OSError:
        print("not there")
"""
    return {
        "writes-marks": writes,
        "reads-the-key": reads,
        "calls-home": CALLS_HOME.format(port),
        "kills-its-parent": KILLS_ITS_PARENT,
        "ignores-interrupts": IGNORES_INTERRUPTS,
        "leaves-processes": LEAVES_PROCESSES,
        "reads-memory": READS_MEMORY,
        "prints-100-MB": "for _ in range(100):\n    print('x' * 2**20)",
        "writes-script": "print('<script>alert(1)</script>')\nraise ValueError('<img onerror=x>')",
        "takes-memory": "x = bytearray(2**40)",
        "takes-it-by-parts": TAKES_IT_BY_PARTS,
        "forks": "import os, time\nwhile True:\n    if not os.fork():\n        time.sleep(1000)",
        "patches": PATCHES,
        "forges-messages": "import os\nos.write(3, b'\\x00' * 7 + b'\\x02[]' + b'\\xff' * 99)",
        "ends-python": "import os\nos._exit(0)",
        "fills-the-disk": "open('big', 'wb').write(b'x' * 2**28)",
    }


@pytest.fixture(scope="module")
def graded(boxes, tmp_path_factory):
    """A class of attackers and two who are honest: results, pages, the folder, and who called."""
    folder = tmp_path_factory.mktemp("class")
    server, heard = socket.create_server(("127.0.0.1", 0)), []
    threading.Thread(target=_listen, args=(server, heard), daemon=True).start()
    codes = attacks(folder, server.getsockname()[1])
    if boxes.kind == "user":
        del codes["calls-home"]
    notebooks = {"ada": right(NAME), "zoe": right(NAME)}
    for who, code in codes.items():
        notebooks[who] = changed(NAME, FIRST, code)
    out = folder / "out"
    found = grading.grade(written(notebooks, folder), out, timeout=SECONDS, jobs=2)
    grading.write_reports(out)
    server.close()
    return {result["student"]: result for result in found}, out, heard


def written(notebooks, folder):
    """Files of submissions, as a teacher has them."""
    paths = {}
    for who, notebook in notebooks.items():
        paths[who, NAME] = folder / "in" / who / f"{NAME}.ipynb"
        paths[who, NAME].parent.mkdir(parents=True)
        nbformat.write(notebook, paths[who, NAME])
    return paths


def _listen(server, heard):
    with contextlib.suppress(OSError):
        while True:
            heard.append(server.accept())


def _lost(result):
    return {row["task"] for row in result["rows"] if row["state"] == "graded"
            and row["points"] < row["max"]}  # fmt: skip


def _page(graded, who):
    path = graded[1] / "feedback" / who / NAME / f"{NAME}.html"
    return path.read_text(encoding="utf8")


def test_each_attacker_loses_the_task_that_the_attack_replaced_and_nobody_anything_else(graded):
    found, _, _ = graded
    lost = {who: _lost(result) for who, result in found.items()}
    expected = {who: set(checks_of(NAME, FIRST)) for who in lost}
    assert lost == expected | {"ada": set(), "zoe": set()}


def test_nothing_is_left_running(graded):
    left = [process for process in psutil.process_iter(["cmdline"])
            if SLEEPER in (process.info["cmdline"] or [])]  # fmt: skip
    for process in left:
        process.kill()
    assert left == []


def test_pages_show_no_key_and_hold_no_html_of_a_student(graded):
    found, _, _ = graded
    hidden = [line.strip() for cell in sources.source(NAME).cells
              for part in cell.source.split("### BEGIN HIDDEN TESTS")[1:]
              for line in part.split("### END")[0].splitlines() if "_" in line]  # fmt: skip
    shown = " ".join(cell.source for cell in sources.released(NAME).cells)
    hidden = [line for line in hidden if line not in shown and "assert" in line]
    assert len(hidden) > 5
    for who in found:
        page = _page(graded, who)
        assert [line for line in hidden if line in page] == []
        assert len(page) < 300_000
        assert "<script" not in page
        assert page.count("<img") == page.count('src="data:')
        assert "default-src 'none'" in page


def test_what_came_out_is_small(graded):
    found, _, _ = graded
    assert max(len(json.dumps(result)) for result in found.values()) < 200_000
    assert "[...] too long" in _page(graded, "prints-100-MB")


def test_who_does_not_end_and_who_ends_python_are_told_so(graded):
    found, _, _ = graded
    told = {who: " ".join(cell.get("error", "") for cell in result["cells"])
            for who, result in found.items()}  # fmt: skip
    assert "not done after 4 seconds" in told["ignores-interrupts"]
    assert "ended Python" in told["ends-python"]


def test_the_key_is_out_of_reach_and_nobody_is_called(graded):
    found, _, heard = graded
    assert heard == []
    if "reads-the-key" in found:
        (cell,) = [c for c in found["reads-the-key"]["cells"] if c["task"] == FIRST]
        assert cell["printed"].split("\n") == ["not there", "not there", ""]


def test_oddities_are_reported(graded):
    found, _, _ = graded
    told = {who: " ".join(result["notes"]) for who, result in found.items()}
    assert told["ada"] == ""
    assert "changes numpy" in told["patches"]
    assert "looks through memory" in told["reads-memory"]


def test_the_primer_is_there_to_build_on_and_the_rest_is_noted_however_it_is_imported():
    for line in ("from cgmm import primer", "from cgmm.primer import costs", "import cgmm.primer"):
        assert notes.odd(line) == []
    for line in ("import cgmm", "from cgmm import RCA", "from cgmm import primer, mixture",
                 "from cgmm.kmeans import cop_rule", "import numpy, cgmm as c"):  # fmt: skip
        assert notes.odd(line) == ["imports cgmm"]
    assert notes.odd("import importlib\nimportlib.import_module('cg' + 'mm')") == [
        "imports by name"
    ]
    assert notes.odd("%matplotlib inline\n!pip install x\ny = 1") == []
    assert notes.odd("x = " + "+".join(["1"] * 10_000)) in ([], ["does not parse"])


class TestBox:
    """What holds a submission, and what it is not blamed for."""

    def test_without_a_box_nothing_is_graded_and_it_is_said_what_to_install(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.setitem(box.COMMANDS, "bwrap", lambda place, hide: (["false"], {}))
        paths = written({"ada": right(NAME)}, tmp_path)
        with pytest.raises(ValueError, match=r"(?s)does not start.*apt install.*brew.*wsl"):
            grading.grade(paths, tmp_path / "out", kinds=["bwrap"])
        assert grading.results(tmp_path / "out") == []

    def test_a_box_in_which_keys_can_be_read_is_refused(self, boxes, monkeypatch):
        def open_house(place, hide):
            command, options = box.bubblewrap(place, [])
            at = command.index("--chdir")
            return [
                *command[:at],
                "--ro-bind",
                str(box.HERE),
                str(box.HERE),
                *command[at:],
            ], options

        if boxes.kind != "bwrap":
            pytest.skip("bubblewrap is not what makes boxes here")
        monkeypatch.setitem(box.COMMANDS, "bwrap", open_house)
        assert "can be read" in box.Boxes("bwrap").attempt()

    def test_a_box_that_dies_at_start_is_nobodys_fault_and_is_tried_again(
        self, boxes, tmp_path, monkeypatch
    ):
        paths = written({"ada": right(NAME)}, tmp_path)
        monkeypatch.setattr(box, "best", lambda hide, kinds: boxes)
        with monkeypatch.context() as broken:
            broken.setitem(box.COMMANDS, boxes.kind, lambda place, hide: (["false"], {}))
            (result,) = grading.grade(paths, tmp_path / "out")
        assert all("does not start" in row["state"] for row in result["rows"])
        assert len(grading.write_reports(tmp_path / "out")) == len(result["rows"])
        (result,) = grading.grade(paths, tmp_path / "out")
        assert _lost(result) == set()
        assert result["digest"]

    def test_notebooks_have_what_they_have_elsewhere(self, boxes):
        one = boxes.new()
        try:
            for code in ("!pip install cgmm\nimport math", "%pip install cgmm", "!echo hello",
                         "from sklearn.cluster import KMeans\n"
                         "from joblib import Parallel, delayed\n"
                         "KMeans(2, n_init=1).fit([[0], [1], [2]])\n"
                         "assert Parallel(2)(delayed(abs)(-n) for n in range(3)) == [0, 1, 2]",
                         "import mmap, multiprocessing\nmultiprocessing.Lock()"):  # fmt: skip
                assert "error" not in one.wire.ask(do="run", source=code), code
            assert "math" in one.wire.ask(do="get", names=["math"])["wrong"]
        finally:
            one.end()

    def test_processes_that_take_too_much_together_end_their_box(self, boxes):
        if boxes.kind in ("podman", "docker"):
            pytest.skip("engines limit containers themselves")
        one = boxes.new()
        try:
            with pytest.raises(wire.Gone), examine.at_most(box.START, "the box goes on"):
                one.wire.ask(do="run", source=TAKES_IT_BY_PARTS)
        finally:
            one.end()

    def test_the_budget_ends_at_the_budget(self, boxes, tmp_path):
        notebook = right(NAME)
        loops = [nbformat.v4.new_code_cell("while True:\n    pass") for _ in range(40)]
        notebook.cells[3:3] = loops
        paths = written({"ada": notebook}, tmp_path)
        began = time.monotonic()
        (result,) = grading.grade(paths, tmp_path / "out", timeout=1)
        starts = 8 * box.START  # no more boxes than cells that there is time for
        assert time.monotonic() - began < starts
        told = [cell["error"] for cell in result["cells"] if cell.get("error")]
        assert sum("not done after" in error for error in told) <= 6
        assert sum("the whole notebook" in error for error in told) >= 30


def test_hidden_data_never_reach_feedback(boxes, tmp_path):
    name = "03_practice"
    spy = "HEARD = []\ndef judge_runs(ends):\n    HEARD.append(list(ends))\n"
    told = spy + "    raise ValueError(str(HEARD))"
    kept = spy + "    return 0, str(HEARD)"
    notebooks = {"ada": changed(name, "task-2", told), "ben": changed(name, "task-2", kept)}
    for notebook in notebooks.values():
        notebook.cells.append(nbformat.v4.new_code_cell("print(HEARD)\nraise ValueError(HEARD)"))
    paths = {(who, name): path for (who, _), path in written(notebooks, tmp_path).items()}
    for result in grading.grade(paths, tmp_path / "out"):
        checks = {row["task"]: row["message"] for row in result["rows"]}
        assert "ValueError: []" in result["cells"][-1]["error"]
        assert "-310" not in " ".join([checks["check-2-broken"], result["cells"][-1]["printed"]])


class TestNoWork:
    """Functions that are right where the notebook shows the call, and elsewhere do no work."""

    EMPTY = {
        "no rows": lambda shape: (0, *shape[1:]),
        "no columns": lambda shape: (*shape[:-1], 0),
        "none": lambda shape: (0, *shape),
        "flat": lambda shape: (0,),
    }

    @pytest.mark.parametrize("name", sources.names())
    def test_empty_arrays_win_no_hidden_check(self, name):
        for shape in self.EMPTY.values():
            assert (
                won(name, lambda like, args, shape=shape: np.empty(shape(np.shape(like)))) == set()
            )

    # A number can be guessed. The functions of chapter 16 give their caller all that they worked
    # out before they return, so that lies about what they return come too late.
    GIVEN = {
        "06_chunklet_em": {"check-1-sherds"},
        "10_gibbs_and_mean_field": {"check-1-edge"},
        "16_many_witnesses": {"check-3-words", "check-3-network"},
    }
    CONSTANTS = {
        **{said: lambda like, args, said=said: np.full_like(like, said)[()]
           for said in (0, 0.5, 1, -1)},
        "nan": lambda like, args: np.full(np.shape(like), np.nan)[()],
        "counts": lambda like, args: np.arange(np.size(like)).reshape(np.shape(like))[()],
        "none": lambda like, args: None,
    }  # fmt: skip

    @pytest.mark.parametrize("name", sources.names())
    def test_constants_win_no_hidden_check(self, name):
        found = {said: won(name, lie) for said, lie in self.CONSTANTS.items()}
        assert set().union(*found.values()) <= self.GIVEN.get(name, set()), found

    @pytest.mark.parametrize("name", sources.names())
    def test_to_change_arguments_wins_nothing(self, name):
        for said, written in ((0.5, -300), (0, 1), (1, 0)):

            def changed(like, args, said=said, written=written):
                for one in args:
                    if isinstance(one, np.ndarray):
                        one[...] = written
                return np.full_like(like, said)[()]

            assert won(name, changed) <= self.GIVEN.get(name, set())


class TestForms:
    """Numbers and containers that are as right as arrays of floats."""

    @staticmethod
    def exact(kind):
        numbers = np.vectorize(kind, otypes=[object])
        return lambda x: numbers(x)[()] if x.dtype.kind == "f" and np.isfinite(x).all() else x[()]

    @staticmethod
    def in_tuples(rows):
        return tuple(map(TestForms.in_tuples, rows)) if isinstance(rows, list) else rows

    @staticmethod
    def in_a_set(x):
        indices = x.dtype.kind == "i" and x.ndim == 1 and len({*x.tolist()}) == len(x)
        return {*x.tolist()} if indices else x[()]

    FORMS = {
        "lists": lambda x: x.tolist(),
        "tuples": lambda x: TestForms.in_tuples(x.tolist()),
        "fractions": exact(Fraction),
        "decimals": exact(Decimal),
        "sets": in_a_set,
    }

    def like(self, value, form):
        if isinstance(value, tuple):
            return tuple(self.like(part, form) for part in value)
        numbers = isinstance(value, float | np.ndarray | np.generic) and np.size(value)
        return self.FORMS[form](np.asarray(value)) if numbers else value

    def takes(self, name, form):
        """Whether an answer in this form wins every hidden check."""
        return won(name, lambda like, args: self.like(like, form), ()) == {
            sources.grade_id(cell) for cell in sources.source(name).cells
            if "BEGIN HIDDEN" in cell.source
        }  # fmt: skip

    @pytest.mark.parametrize("form", [form for form in FORMS if form != "sets"])
    @pytest.mark.parametrize("name", sources.names())
    def test_every_form_wins_every_hidden_check(self, name, form):
        assert self.takes(name, form)

    @pytest.mark.slow  # fits and pictures of all closing cells
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("name", sources.names())
    def test_closing_cells_take_what_checks_take(self, name, form, monkeypatch):
        monkeypatch.setenv("MPLBACKEND", "agg")
        if form == "sets" and not self.takes(name, form):
            return  # the order of an answer matters there
        space = {"__name__": "__main__"}
        for cell in sources.source(name).cells:
            if cell.cell_type != "code" or is_grade(cell):
                continue
            if not sources.grade_id(cell):
                for one in examine.wanted(name):
                    right = space[one]
                    if callable(right):
                        space[one] = lambda *args, right=right, **kwargs: self.like(
                            right(*args, **kwargs), form
                        )
            with contextlib.redirect_stdout(io.StringIO()):
                exec(cell.source, space)


def won(name, lie, refused=ValueError):
    """Hidden checks that lies pass, which are told wherever the notebook does not show the call."""
    shown = {sources.grade_id(cell): cell.source for cell in sources.released(name).cells}
    space, calls, passed = {"__name__": "__main__"}, set(), set()
    teacher, student = _pair(None)
    for cell in sources.source(name).cells:
        task = sources.grade_id(cell)
        if cell.cell_type != "code" or not task:
            continue
        if not is_grade(cell):
            assert examine.error_of(cell.source, space) == ""
            continue
        right = {one: space[one] for one in examine.used_in(cell.source, name)}
        space |= {one: _noted(one, value, calls) for one, value in right.items()}
        assert examine.error_of(shown[task], space) == ""
        for one, value in right.items():
            space[one] = teacher.decode(
                student.wire.encode(_lying(one, value, calls, lie, refused))
            )
        known = forms.Forms(examine.known_forms(name, None)[task])
        if "BEGIN HIDDEN" in cell.source and not examine.checked(cell.source, space, name, known):
            passed.add(task)
        space |= right
    student.close()
    return passed


def _noted(one, value, calls):
    def noted(*args, **kwargs):
        calls.add((one, forms._digest([args, kwargs])))
        return value(*args, **kwargs)

    return noted if callable(value) else value


def _lying(one, value, calls, lie, refused):
    def lied(value, args):
        if isinstance(value, tuple):
            return tuple(lied(part, args) for part in value)
        return lie(value, args)

    def lying(*args, **kwargs):
        if (one, forms._digest([args, kwargs])) in calls:
            return value(*args, **kwargs)
        try:
            copies = [np.array(x) if isinstance(x, np.ndarray) else x for x in args]
            return lied(value(*copies, **kwargs), args)
        except refused:  # as the right one does where no answer is right
            return lied(0.0, args)

    return lying if callable(value) else lied(value, ())


class TestWire:
    """What a student's process may send is data."""

    def test_no_code_is_accepted_from_a_student(self):
        teacher = wire.Wire(0, 1, trusts=False)
        for sent in (["range", 0, 10**8, 1], ["pickle", "gASVAAAA", 0],
                     ["array", "O", [1], ""], ["array", "|V8", [1], ""],
                     ["theirs", 0], ["nothing"], ["generator", "open", {}]):  # fmt: skip
            with pytest.raises(wire.Gone):
                teacher.decode(sent)

    def test_a_value_is_the_same_after_the_journey(self):
        teacher, student = wire.Wire(0, 1, trusts=False), wire.Wire(0, 1, trusts=True)
        values = [None, True, 3, 10**30, 1.5, float("nan"), "ä", b"x", 1 + 2j, (1, [2, {3}]),
                  {"a": (1,)}, range(3), np.float32(1.5), np.arange(6).reshape(2, 3).T,
                  np.longdouble(1) / 3, np.array([True]), np.array(2.0)]  # fmt: skip
        for value in values:
            for here, there in ((teacher, student), (student, teacher)):
                got = there.decode(json.loads(json.dumps(here.encode(value))))
                assert type(got) is type(value)
                assert repr(got) == repr(value)

    def test_exact_numbers_become_floats(self):
        teacher, student = wire.Wire(0, 1, trusts=False), wire.Wire(0, 1, trusts=True)
        for value in (Fraction(1, 4), Decimal("0.25")):
            for sent in (value, [value], np.array([value])):
                assert np.allclose(teacher.decode(student.encode(sent)), 0.25)

    def test_what_is_lazy_is_not_written_out_by_the_grader(self):
        student = wire.Wire(0, 1, trusts=True)
        for value in (range(10**8), np.broadcast_to(0.0, (10**5, 10**5))):
            with pytest.raises(ValueError, match="more than"):
                student.encode(value)

    def test_a_late_answer_is_none_to_the_next_request(self):
        teacher, student = _pair(lambda request: {"heard": request["word"]})
        teacher.tell(do="hear", word="first")
        assert teacher.ask(do="hear", word="second")["heard"] == "second"
        student.close()

    def test_arguments_are_copies_but_for_generators_and_on_request(self):
        def change(x, rng):
            x[:] = -300
            return rng.random()

        teacher, student = _pair(lambda request: {"value": other.encode(change)}, change)
        other = student.wire
        remote = teacher.decode(teacher.ask(do="hear")["value"])
        x, rng, same = np.ones(3), np.random.default_rng(1), np.random.default_rng(1)
        for _ in range(2):
            assert remote(x, rng) == same.random()
        assert np.array_equal(x, np.ones(3))
        teacher.in_place = True
        remote(x, rng)
        assert np.array_equal(x, np.full(3, -300.0))
        student.close()

    def test_a_result_is_found_by_its_kind_of_error(self):
        error = replies.raised({"error": ["Mine", "LinAlgError", "ValueError"], "says": "no"})
        assert isinstance(error, ValueError)
        assert type(error).__name__ == "Mine"


class _pair:  # noqa: N801 (used as a function that makes two ends)
    """A teacher's end, and a student's that answers ``hear`` in a thread."""

    def __init__(self, hear, *_):
        self.ends = socket.socketpair()
        ours, theirs = (end.fileno() for end in self.ends)
        self.teacher = wire.Wire(ours, ours, trusts=False)
        self.wire = wire.Wire(theirs, theirs, trusts=True)
        self.wire.answers["hear"] = hear
        self.thread = threading.Thread(target=self.wire.serve, daemon=True)
        self.thread.start()

    def __iter__(self):
        return iter((self.teacher, self))

    def close(self):
        self.ends[0].shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        for end in self.ends:
            end.close()


@pytest.mark.skipif(sys.platform != "linux", reason="no processes to be found")
def test_a_box_leaves_nothing_behind(boxes):
    one = boxes.new()
    family = [psutil.Process(one.process.pid), *one._family()]
    assert len(family) >= 2
    one.end()
    assert psutil.wait_procs(family, timeout=20)[1] == []
    assert not os.path.exists(one.place.name)


@pytest.mark.skipif(os.name != "posix", reason="nobody waits for the dead")
def test_the_dead_are_not_killed_again_and_again():
    one = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(one.pid)
    os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is still listed
    assert process.uids().real == os.getuid()
    assert box._owner(process) is None
    one.wait()
