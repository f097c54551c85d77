"""Test the autograders for Gradescope and Otter."""

import contextlib
import io
import json
import subprocess
import sys
import types
import zipfile

import nbformat
import pytest
from markapart import for_otter, gradescope, sources, trial
from nbgrader.utils import is_grade

NAME = "06_chunklet_em"


@pytest.fixture
def container(boxes, tmp_path):
    """Unpack our zip file as Gradescope does, but use this Python instead of running setup.sh."""
    gradescope.bundle(NAME, "autumn26", tmp_path / "upload.zip")
    root = tmp_path / "autograder"
    with zipfile.ZipFile(tmp_path / "upload.zip") as archive:
        archive.extractall(root / "source")
    (root / "submission").mkdir()
    (root / "venv/bin").mkdir(parents=True)
    (root / "venv/bin/python").symlink_to(sys.executable)
    return root


def graded(root, notebook=None):
    if notebook is not None:
        nbformat.write(notebook, root / "submission" / f"{NAME} (1).ipynb")
    shell = {"AUTOGRADER": str(root), "PATH": "/usr/bin:/bin",
             "PYTHONPATH": ":".join([str(root / "source"), *sys.path[1:]])}  # fmt: skip
    subprocess.run(["bash", root / "source/run_autograder"], env=shell, check=True, cwd=root,
                   capture_output=True)  # fmt: skip
    return json.loads((root / "results/results.json").read_text())


def test_gradescope_gets_points_and_messages_and_no_key(container):
    wrong = trial.wrong_submission(NAME, sources.mistakes(NAME)[0], "autumn26")
    tests = {test["name"]: test for test in graded(container, wrong)["tests"]}
    lost = [name for name, test in tests.items() if test["score"] < test["max_score"]]
    assert lost == [*sources.mistakes(NAME)[0].caught_by, "task-5", "task-6"]
    assert sources.mistakes(NAME)[0].says in tests[lost[0]]["output"]
    assert tests["task-5"]["output"] == "Your answer is read by your teacher."
    assert {test["visibility"] for test in tests.values()} == {"visible", "after_due_date"}
    assert sum(test["max_score"] for test in tests.values()) == 20


def test_gradescope_says_so_where_nothing_was_handed_in(container):
    assert f"hand in {NAME}.ipynb" in graded(container)["output"]


# ---------------------------------------------------------------------------------- Otter


def lost_in_otters_tests(name, notebook, monkeypatch, tmp_path):
    """Return the checks that fail if Otter's test files run one by one after the notebook."""
    otter = types.ModuleType("otter.test_files")
    otter.test_case = lambda points, hidden: lambda check: check
    monkeypatch.setitem(sys.modules, "otter.test_files", otter)
    monkeypatch.setitem(sys.modules, "otter", types.ModuleType("otter"))
    env = {"__name__": "__main__"}
    for cell in notebook.cells:
        if cell.cell_type == "code" and sources.grade_id(cell):
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                exec(cell.source, env)
    for_otter.bundle(name, None, tmp_path / "otter.zip")
    lost, points = [], 0
    with zipfile.ZipFile(tmp_path / "otter.zip") as archive:
        for path in archive.namelist():
            if path.startswith("tests/"):
                test = {}
                exec(archive.read(path), test)
                points += test["points"]
                try:
                    test["check"](env)
                except Exception:
                    lost.append(test["name"])
    return lost, points


@pytest.mark.filterwarnings("ignore")  # Wrong submissions may divide by zero.
@pytest.mark.parametrize("name", [NAME, "11_kmeans_limit"])
def test_otters_files_tell_right_from_wrong(name, monkeypatch, tmp_path):
    given = monkeypatch, tmp_path
    right = trial.right_submission(name)
    lost, points = lost_in_otters_tests(name, right, *given)
    checks = [cell for cell in sources.source(name).cells
              if cell.cell_type == "code" and is_grade(cell)]  # fmt: skip
    assert (lost, points) == ([], sum(cell.metadata.nbgrader.points for cell in checks))
    for mistake in sources.mistakes(name)[::4]:
        wrong = trial.wrong_submission(name, mistake)
        assert sorted(lost_in_otters_tests(name, wrong, *given)[0]) == sorted(mistake.caught_by)
