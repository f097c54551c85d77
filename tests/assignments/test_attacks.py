"""One submission cannot touch another, the key, or the person who grades."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading

import box
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
# Never a group, nor the parent of a parent: without namespaces that might be all processes.
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
        "patches": PATCHES,
        "forges-messages": "import os\nos.write(3, b'\\x00' * 7 + b'\\x02[]' + b'\\xff' * 99)",
        "ends-python": "import os\nos._exit(0)",
        "fills-the-disk": "open('big', 'wb').write(b'x' * 2**28)",
    }


@pytest.fixture(
    scope="module", params=["namespaces", pytest.param("limits", marks=pytest.mark.slow)]
)
def graded(request, tmp_path_factory):
    """A class of attackers and two who are honest: results, pages, the folder, and who called."""
    folder = tmp_path_factory.mktemp("class")
    server, heard = socket.create_server(("127.0.0.1", 0)), []
    threading.Thread(target=_listen, args=(server, heard), daemon=True).start()
    codes = attacks(folder, server.getsockname()[1])
    if request.param == "limits":  # without namespaces files and network are in reach, as it says
        for name in ("writes-marks", "reads-the-key", "calls-home", "takes-memory"):
            del codes[name]
    notebooks = {"ada": right(NAME), "zoe": right(NAME)}
    for who, code in codes.items():
        notebooks[who] = changed(NAME, FIRST, code)
    paths = {}
    for who, notebook in notebooks.items():
        paths[who, NAME] = folder / "in" / who / f"{NAME}.ipynb"
        paths[who, NAME].parent.mkdir(parents=True)
        nbformat.write(notebook, paths[who, NAME])
    out = folder / "out"
    apart = request.param == "namespaces"
    found = grading.grade(paths, out, timeout=SECONDS, jobs=2, namespaces=apart)
    if apart and found[0]["kept_apart"] != box.NAMESPACES:
        pytest.skip("this system has no namespaces for us")
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
        assert len(page) < 100_000
        assert "<script" not in page
        assert "<img" not in page
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


def test_the_primer_is_there_to_build_on():
    for line in ("from cgmm import primer", "from cgmm.primer import costs", "import cgmm.primer"):
        assert notes._odd(line) == []
    for line in ("import cgmm", "from cgmm import RCA", "from cgmm.kmeans import cop_rule"):
        assert notes._odd(line) == ["imports cgmm"]


class TestWire:
    """What a student's process may send is data."""

    def test_no_code_is_accepted_from_a_student(self):
        ours, _ = socket.socketpair()
        teacher = wire.Wire(ours, trusts=False)
        for sent in (["pickle", "gASVAAAA", 0], ["array", "O", [1], ""], ["array", "|V8", [1], ""],
                     ["theirs", 0], ["nothing"], ["generator", "open", {}]):  # fmt: skip
            with pytest.raises(wire.Gone):
                teacher.decode(sent)

    def test_a_value_is_the_same_after_the_journey(self):
        ours, theirs = socket.socketpair()
        teacher, student = wire.Wire(ours, trusts=False), wire.Wire(theirs, trusts=True)
        values = [None, True, 3, 10**30, 1.5, float("nan"), "ä", b"x", 1 + 2j, (1, [2, {3}]),
                  {"a": (1,)}, range(3), np.float32(1.5), np.arange(6).reshape(2, 3).T,
                  np.longdouble(1) / 3, np.array([True]), np.array(2.0)]  # fmt: skip
        for value in values:
            for here, there in ((teacher, student), (student, teacher)):
                got = there.decode(json.loads(json.dumps(here.encode(value))))
                assert type(got) is type(value)
                assert repr(got) == repr(value)

    def test_a_result_is_found_by_its_kind_of_error(self):
        error = replies.raised({"error": ["Mine", "LinAlgError", "ValueError"], "says": "no"})
        assert isinstance(error, ValueError)
        assert type(error).__name__ == "Mine"


@pytest.mark.skipif(sys.platform != "linux", reason="no processes to be found")
def test_a_box_does_not_outlive_its_teacher(tmp_path):
    with box.Boxes() as boxes:
        one = boxes.new()
        helper = psutil.Process(boxes.helper.pid)
        assert helper.children(recursive=True)
        one.line.close()
        one.life.close()
        assert psutil.wait_procs(helper.children(recursive=True), timeout=20)[1] == []
