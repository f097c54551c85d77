"""Test that a submission cannot change other submissions, read the key, or harm the grader."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from fractions import Fraction

import nbformat
import numpy as np
import psutil
import pytest
from handed_in import Pair, at, changed, checks_of, right, solutions, written
from markapart import box, examine, grading, notes, sources, wire

NAME = "03_practice"
HONEST = "task-2"
ATTACKED = [cell for cell in solutions(NAME) if cell != HONEST]
SECONDS = 3
SLEEPER = "987654.25"  # Unusual duration, by which tests find processes that are left behind.

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
# Never kill a group or a grandparent, because that might include the processes of the tests.
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
        x = bytearray(4 * 10**8)
        time.sleep(1000)
time.sleep(1000)
"""
LOOPED = "task-5"
LOOPS = "def choose(*given):\n    while True:\n        pass"
PATCHES = """
import builtins
import numpy as np
np.allclose = np.isclose = lambda *a, **k: True
builtins.abs = lambda x: 0
builtins.AssertionError = ValueError
"""


def attacks(folder, port):
    """Return {name: code} of attacks, with those that outlast their cell as every fourth."""
    source = sources.COURSE / "source" / NAME / f"{NAME}.ipynb"
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
        "patches": PATCHES,
        "prints-100-MB": "for _ in range(100):\n    print('x' * 2**20)",
        "writes-script": "print('<script>alert(1)</script>')\nraise ValueError('<img onerror=x>')",
        "takes-memory": "x = bytearray(2**40)",
        "takes-it-by-parts": TAKES_IT_BY_PARTS,
        "ends-python": "import os\nos._exit(0)",
        "forges-messages": "import os\nos.write(3, b'\\x00' * 7 + b'\\x02[]' + b'\\xff' * 99)",
        "forks": "import os, time\nwhile True:\n    if not os.fork():\n        time.sleep(1000)",
        "fills-the-disk": "open('big', 'wb').write(b'x' * 2**28)",
    }


@pytest.fixture(scope="module", autouse=True)
def little_memory():
    """Reduce the memory limit of boxes to a third, which attacks reach sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box, "MAX_MEMORY", 2**30)
        yield


@pytest.fixture(scope="module")
def graded(boxes, tmp_path_factory):
    """Grade attackers and two honest students; return results, folder and network connections."""
    folder = tmp_path_factory.mktemp("class")
    server, heard = socket.create_server(("127.0.0.1", 0)), []
    threading.Thread(target=_listen, args=(server, heard), daemon=True).start()
    codes = attacks(folder, server.getsockname()[1])
    if boxes.kind == "user":
        codes["calls-home"] = "pass"
    notebooks = {"ada": right(NAME), "zoe": right(NAME)}
    notebooks["zoe"].cells[at(notebooks["zoe"], ATTACKED[0])].source += "\nquit()"
    notebooks["loops"] = changed(NAME, LOOPED, LOOPS)
    for names in zip(*[iter(codes)] * len(ATTACKED), strict=True):
        notebook = notebooks[" ".join(names)] = right(NAME)
        for cell, name in zip(ATTACKED, names, strict=True):
            notebook.cells[at(notebook, cell)].source = codes[name]
    out = folder / "out"
    paths = written(folder, NAME, notebooks)
    # With ``kinds`` given, the grader tests the box before it uses it.
    found = grading.grade(paths, out, timeout=SECONDS, jobs=2, kinds=[boxes.kind])
    grading.write_reports(out)
    server.close()
    return {result["student"]: result for result in found}, out, heard


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


def _result_of(graded, attack):
    """Return the result of the student who makes this attack."""
    return next(result for who, result in graded[0].items() if attack in who.split())


def test_attacks_cost_only_their_own_tasks(graded):
    found, _, _ = graded
    lost = {who: _lost(result) for who, result in found.items()}
    attacked = {check for cell in ATTACKED for check in checks_of(NAME, cell)}
    honest = {"ada": set(), "zoe": set(), "loops": set(checks_of(NAME, LOOPED))}
    assert lost == dict.fromkeys(lost, attacked) | honest


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
    shown = " ".join(cell.source for cell in sources.read_released(NAME).cells)
    hidden = [line for line in hidden if line not in shown and "assert" in line]
    assert len(hidden) > 5
    for who in found:
        page = _page(graded, who)
        assert [line for line in hidden if line in page] == []
        assert len(page) < 300_000
        assert "<script" not in page
        assert page.count("<img") == page.count('src="data:')
        assert "default-src 'none'" in page


def test_long_output_is_cut(graded):
    found, _, _ = graded
    assert max(len(json.dumps(result)) for result in found.values()) < 200_000
    assert "[...] too long" in _page(graded, _result_of(graded, "prints-100-MB")["student"])


def test_endless_code_and_code_that_ends_python_are_reported(graded):
    for attack, expected in {"ignores-interrupts": f"not done after {SECONDS} seconds",
                         "ends-python": "ended Python"}.items():  # fmt: skip
        cells = _result_of(graded, attack)["cells"]
        assert expected in " ".join(cell.get("error", "") for cell in cells)


def test_answer_keys_and_networks_are_unreachable(graded):
    assert graded[2] == []
    printed = [cell.get("printed") for cell in _result_of(graded, "reads-the-key")["cells"]]
    assert "not there\nnot there\n" in printed


def test_suspicious_code_is_reported(graded):
    assert graded[0]["ada"]["notes"] == []
    for attack, expected in (
        ("patches", "changes numpy"),
        ("reads-memory", "looks through memory"),
    ):
        assert expected in " ".join(_result_of(graded, attack)["notes"])


def test_lines_for_notebooks_are_not_noted_and_a_long_sum_is_survived():
    assert notes.find_unusual("%matplotlib inline\n!pip install x\ny = 1") == []
    assert notes.find_unusual("x = " + "+".join(["1"] * 10_000)) in ([], ["does not parse"])


class TestBox:
    """Test the box that confines a submission, and failures that are not the student's fault."""

    @pytest.fixture
    def one(self, boxes):
        """Return a box, and check that it leaves no process and no file."""
        one = boxes.new()
        family = [psutil.Process(one.process.pid), *one._list_processes()]
        assert len(family) >= 2 or sys.platform != "linux"
        yield one
        one.end()
        assert psutil.wait_procs(family, timeout=20)[1] == []
        assert not os.path.exists(one.place.name)

    def test_without_a_box_nothing_is_graded_and_the_message_says_what_to_install(
        self, tmp_path, monkeypatch
    ):
        # The kind "user" needs no program, so the test does not depend on bubblewrap.
        monkeypatch.setitem(box.COMMANDS, "user", lambda place, hide: (["false"], {}))
        paths = written(tmp_path, NAME, {"ada": right(NAME)})
        with pytest.raises(ValueError, match=r"(?s)does not start.*apt install.*brew.*wsl"):
            grading.grade(paths, tmp_path / "out", kinds=["user"])
        assert grading.read_results(tmp_path / "out") == []

    def test_a_box_in_which_keys_can_be_read_is_refused(self, boxes, monkeypatch):
        def open_house(place, hide):
            command, options = box.bubblewrap_command(place, [])
            at = command.index("--chdir")
            command[at:at] = ["--ro-bind", str(box.COURSE), str(box.COURSE)]
            return command, options

        if boxes.kind != "bwrap":
            pytest.skip("boxes are made without bubblewrap here (Debian: apt install bubblewrap)")
        monkeypatch.setitem(box.COMMANDS, "bwrap", open_house)
        assert "can be read" in box.Boxes("bwrap").find_fault()

    def test_a_sandbox_that_fails_to_start_is_started_again(self, boxes, tmp_path, monkeypatch):
        paths = written(tmp_path, NAME, {"ada": right(NAME)})
        with monkeypatch.context() as broken:
            broken.setitem(box.COMMANDS, boxes.kind, lambda place, hide: (["false"], {}))
            (result,) = grading.grade(paths, tmp_path / "out")
        assert all("does not start" in row["state"] for row in result["rows"])
        assert len(grading.write_reports(tmp_path / "out")) == len(result["rows"])
        (result,) = grading.grade(paths, tmp_path / "out")
        assert _lost(result) == set()
        assert result["digest"]

    def test_the_sandbox_has_the_usual_jupyter_functions(self, one):
        for code in ("!pip install cgmm\nimport math", "%pip install cgmm", "!echo hello",
                     "from sklearn.cluster import KMeans\n"
                     "from joblib import Parallel, delayed\n"
                     "KMeans(2, n_init=1).fit([[0], [1], [2]])\n"
                     "assert Parallel(2)(delayed(abs)(-n) for n in range(3)) == [0, 1, 2]",
                     "import mmap, multiprocessing\nmultiprocessing.Lock()"):  # fmt: skip
            assert "error" not in one.wire.ask(do="run", source=code), code
        assert "math" in one.wire.ask(do="get", names=["math"])["wrong"]

    @pytest.mark.parametrize("way", [
        "from cgmm.metric_learning import RCA",
        "import cgmm\ncgmm.RCA",
        'import importlib.util\nspec = importlib.util.find_spec("cg" + "mm.mixture")\nspec.loader',
        "import cgmm, os\nopen(os.path.dirname(cgmm.__file__) + '/runs.py')",
    ])  # fmt: skip
    def test_the_sandbox_imports_the_primer_but_no_grader(self, one, boxes, way):
        if boxes.kind == "user":
            pytest.skip("another user can read the packages that are installed")
        reply = one.wire.ask(do="run", source="from cgmm.primer import costs\nimport cgmm")
        assert "error" not in reply
        assert "error" in one.wire.ask(do="run", source=way)

    def test_the_imports_of_a_check_run_though_one_of_them_fails(self, one):
        one.wire.ask(do="imports", source="from cgmm.mixture import em\nfrom math import tau")
        assert one.wire.ask(do="get", names=["tau"])["found"] == {"tau": 6.283185307179586}

    def test_processes_that_take_too_much_together_end_their_box(self, boxes, one):
        if boxes.kind in ("podman", "docker"):
            pytest.skip("engines limit containers themselves")
        with (
            pytest.raises(wire.WireError),
            examine.limit_time(box.START_SECONDS, "the box goes on"),
        ):
            one.wire.ask(do="run", source=TAKES_IT_BY_PARTS)

    def test_a_check_ends_at_its_time_limit(self, boxes, tmp_path, monkeypatch):
        monkeypatch.setattr(examine, "TIMEOUTS_PER_PASS", 2)
        notebook = right(NAME)
        loops = [nbformat.v4.new_code_cell("while True:\n    pass") for _ in range(20)]
        notebook.cells[3:3] = loops
        paths = written(tmp_path, NAME, {"ada": notebook})
        began = time.monotonic()
        (result,) = grading.grade(paths, tmp_path / "out", timeout=1)
        starts = 4 * box.START_SECONDS  # Enough for as many boxes as there is time for cells.
        assert time.monotonic() - began < starts
        errors = [cell["error"] for cell in result["cells"] if cell.get("error")]
        assert sum("not done after" in error for error in errors) <= 2
        assert sum("the whole notebook" in error for error in errors) >= 18


SPY = """
HEARD = []
def judge_runs(ends):
    HEARD.append(list(ends))
"""
# Ways to reveal hidden data: in the text or type of an error, in a value that a message repeats, in
# another task, and in an added cell.
TELLS = {
    "text": "raise ValueError(str(HEARD))",
    "type": "raise type('T' + str(HEARD).replace('.', '_'), (ValueError,), {})('')",
    "value": "return 0, str(HEARD)",
    "name": "raise NameError(str(HEARD))",
    "assertion": "raise AssertionError(str(HEARD))",
    "stub": f"raise NotImplementedError({sources.STUB!r} + str(HEARD))",
}


def test_hidden_data_never_reach_feedback(boxes, tmp_path):
    notebooks = {who: changed(NAME, HONEST, f"{SPY}    {way}") for who, way in TELLS.items()}
    for who, notebook in notebooks.items():
        for cell in ATTACKED:
            code = notebook.cells[at(notebook, cell)]
            names = sorted(examine.defined_names(code.source))
            code.source = "\n".join(
                f"def {one}(*given, **named):\n    {TELLS[who]}" for one in names)  # fmt: skip
        notebook.cells.append(nbformat.v4.new_code_cell("print(HEARD)\nraise ValueError(HEARD)"))
    paths = written(tmp_path, NAME, notebooks)
    for result in grading.grade(paths, tmp_path / "out", jobs=2, timeout=20):
        shown = [row["message"] for row in result["rows"]]
        shown += [cell.get(part, "") for cell in result["cells"] for part in ("printed", "error")]
        assert "-320" in " ".join(shown) or result["student"] == "value"  # From the visible check.
        assert [text for text in shown if "-300" in text] == []


# Ways to forge the answers to calls of a check.
FIND_THE_LINE = """
import gc
from markapart.wire import Wire
LINE = next(one for one in gc.get_objects() if isinstance(one, Wire))
"""
FORGES = {
    "names": """
get = LINE.answers["get"]
def more(request):
    reply = get(request)
    reply["found"] |= dict.fromkeys(["np", "abs", "AssertionError", "__builtins__"])
    return reply
LINE.answers["get"] = more
""",
    "theirs": "LINE.encode = lambda value: ['theirs', 0]",
    "echo": """
LINE.answers["call"] = lambda request: {"value": request["given"], "changed": ["list"]}
""",
    "readers": """
from markapart import wire
wire.READERS.clear()
wire.describe_error = lambda error: {"value": 1, "changed": ["list"]}
""",
}


def test_forged_answers_earn_nothing(boxes, tmp_path):
    notebooks = {who: right(NAME) for who in FORGES}
    for who, notebook in notebooks.items():
        for task in ATTACKED:
            cell = notebook.cells[at(notebook, task)]
            names = sorted(examine.defined_names(cell.source))
            cell.source = "\n".join(f"def {one}(*given):\n    return 1" for one in names)
        notebook.cells[at(notebook, ATTACKED[0])].source += FIND_THE_LINE + FORGES[who]
    asked = {check for task in ATTACKED for check in checks_of(NAME, task)}
    paths = written(tmp_path, NAME, notebooks)
    for result in grading.grade(paths, tmp_path / "out", jobs=2, timeout=6):
        assert asked <= _lost(result), result["student"]


def test_a_hidden_message_cuts_values_and_keeps_its_own_words():
    check = "assert not x, f'your x is {x!r} and {len(x):3d} long; which should it be?'"
    reply = examine.find_error(check, {"x": "secret " * 9}, hidden=True)
    assert reply == "AssertionError: your x is […] and 63 long; which should it be?"
    assert "secret secret" in examine.find_error(check, {"x": "secret " * 9})
    assert "'NoneType' object is not iterable" in examine.find_error("list(None)", {}, hidden=True)
    assert "secret" not in examine.find_error("int('secret')", {}, hidden=True)


def _fail_to_import(packed):
    raise ModuleNotFoundError("No module named 'cgmm.mixture'")


class TestWire:
    """Test that a student's process can send nothing but data."""

    def test_no_code_is_accepted_from_a_student(self):
        teacher = wire.Wire(0, 1, trusts=False)
        for sent in (["range", 0, 10**8, 1], ["pickle", "gASVAAAA", 0],
                     ["array", "O", [1], ""], ["array", "|V8", [1], ""],
                     ["theirs", 0], ["nothing"], ["generator", "open", {}]):  # fmt: skip
            with pytest.raises(wire.WireError):
                teacher.decode(sent)

    def test_values_survive_serialisation(self):
        teacher, student = wire.Wire(0, 1, trusts=False), wire.Wire(0, 1, trusts=True)
        values = [None, True, 3, 10**30, 1.5, float("nan"), "ä", b"x", 1 + 2j, (1, [2, {3}]),
                  {"a": (1,)}, range(3), np.float32(1.5), np.arange(6).reshape(2, 3).T,
                  np.longdouble(1) / 3, np.array([True]), np.array(2.0)]  # fmt: skip
        for value in values:
            for here, there in ((teacher, student), (student, teacher)):
                got = there.decode(json.loads(json.dumps(here.encode(value))))
                assert type(got) is type(value)
                assert repr(got) == repr(value)

    def test_messages_with_too_many_items_are_refused_unread(self):
        pair = Pair()
        remote = pair.teacher.decode(pair.student.encode(lambda: [[]] * 10**6))
        with pytest.raises(ValueError, match="more than a million items are returned"):
            remote()
        pair.close()
        forger, (reads, writes) = wire.Wire(0, 1, trusts=False), os.pipe()
        text = b'{"re": 1, "value": ["list"' + b",[]" * 10**6 + b"]}"
        message = len(text).to_bytes(8, "big") + text
        sender = threading.Thread(target=os.write, args=(writes, message), daemon=True)
        sender.start()
        forger.read = reads
        with pytest.raises(wire.WireError, match="million items"):
            forger._receive()
        sender.join(10)
        os.close(reads)
        os.close(writes)

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory so")
    def test_a_check_takes_little_memory_in_the_teachers_process(self):
        with pytest.raises(MemoryError), examine.limit_memory():
            np.empty(2 * examine.CHECK_MEMORY, np.uint8)
        np.empty(2 * examine.CHECK_MEMORY, np.uint8)  # Reserves memory without using it.

    def test_objects_of_other_packages_come_back_unchanged(self, monkeypatch):
        pair, sent = Pair(), Fraction(1, 3)
        remote = pair.teacher.decode(pair.student.encode(lambda x: (type(x).__name__, x)))
        monkeypatch.setattr(wire.pickle, "loads", _fail_to_import)
        name, back = remote(sent)
        assert (name, back is sent) == ("Opaque", True)
        pair.close()

    def test_lazy_values_are_not_expanded_by_the_grader(self):
        student = wire.Wire(0, 1, trusts=True)
        for value in (range(10**8), np.broadcast_to(0.0, (10**5, 10**5))):
            with pytest.raises(ValueError, match="more than"):
                student.encode(value)

    def test_arguments_are_copies_but_for_generators_and_on_request(self):
        def change(x, rng):
            x[:] = -300
            return rng.random()

        pair = Pair()
        remote = pair.teacher.decode(pair.student.encode(change))
        x, rng, same = np.ones(3), np.random.default_rng(1), np.random.default_rng(1)
        for _ in range(2):
            assert remote(x, rng) == same.random()
        assert np.array_equal(x, np.ones(3))
        pair.teacher.in_place = True
        remote(x, rng)
        assert np.array_equal(x, np.full(3, -300.0))
        pair.close()


@pytest.mark.skipif(os.name != "posix", reason="nobody waits for the dead")
def test_dead_processes_are_not_killed_again():
    one = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(one.pid)
    os.waitid(
        os.P_PID, one.pid, os.WEXITED | os.WNOWAIT
    )  # Wait until it has ended, but keep it as a zombie.
    assert process.uids().real == os.getuid()
    assert box._user_of(process) is None
    one.wait()
