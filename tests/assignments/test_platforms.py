"""Other people's platforms: nbgrader's own commands, Gradescope, what Canvas and Moodle read."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import gradescope
import grading
import nbformat
import pytest
import sources
import tables
import trial

NAME = "06_chunklet_em"


@pytest.fixture
def container(tmp_path):
    """What Gradescope makes of our zip, with this Python in place of what setup.sh installs."""
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
    assert lost == [*sources.mistakes(NAME)[0].caught_by, "task-5"]
    assert sources.mistakes(NAME)[0].says in tests[lost[0]]["output"]
    assert tests["task-5"]["output"] == "Your answer is read by your teacher."
    assert sum(test["max_score"] for test in tests.values()) == 20


def test_gradescope_says_so_where_nothing_was_handed_in(container):
    assert f"hand in {NAME}.ipynb" in graded(container)["output"]


def test_the_upload_holds_one_assignment_and_what_runs_it(container):
    held = {path.name for path in (container / "source/assignments").rglob("*.ipynb")}
    assert held == {f"{NAME}.ipynb"}
    assert not (container / "source/assignments/RUBRICS.md").exists()
    assert (container / "source/cgmm/primer/__init__.py").exists()


@pytest.mark.slow  # two kernels and a database; the format itself is tested in test_assignments
def test_nbgraders_own_commands_read_our_sources(tmp_path):
    shutil.copy(sources.HERE / "nbgrader_config.py", tmp_path)
    with (tmp_path / "nbgrader_config.py").open("a") as config:
        config.write('c.CourseDirectory.course_id = "cgmm"\n')
    shutil.copytree(sources.HERE / "source" / NAME, tmp_path / "source" / NAME)
    handed_in = tmp_path / "submitted/ben" / NAME / f"{NAME}.ipynb"
    handed_in.parent.mkdir(parents=True)
    nbformat.write(trial.wrong_submission(NAME, sources.mistakes(NAME)[0]), handed_in)
    # nbgrader calls alembic by its name, which stands beside this Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in (["generate_assignment", NAME], ["autograde", NAME], ["export"]):
        subprocess.run([sys.executable, "-m", "nbgrader", *command], cwd=tmp_path, check=True,
                       capture_output=True, env=os.environ | {"PATH": path})  # fmt: skip
    released = (tmp_path / "release" / NAME / f"{NAME}.ipynb").read_bytes()
    assert released == sources.student_versions([NAME])[NAME]
    (line,) = csv.DictReader((tmp_path / "grades.csv").open())
    assert (float(line["score"]), float(line["max_score"])) == (14, 20)


# What the importers ask for, in their own code: Canvas' GradebookImporter wants Student, ID, then
# SIS User ID and SIS Login ID, then Section, and takes a row "Points Possible"; Moodle's
# assignfeedback_offline_grade_importer returns false without any of these three columns.
MOODLE_WANTS = {"Identifier", "Grade", "Last modified (grade)"}


def test_canvas_and_moodle_find_the_columns_that_they_ask_for(tmp_path):
    row = grading.Row("ada_11", "02_em", "check-1", 10.0, 12.0, "graded")
    result = {"student": "ada_11", "assignment": "02_em", "rows": [row], "cells": [], "notes": [],
              "handed_in": "2026-11-05T11:00+00:00", "kept_apart": "",
              "file": "in/Ada_7_assignsubmission_file_/02_em.ipynb"}  # fmt: skip
    tables.write_tables(tmp_path, [result])
    canvas, moodle = (list(csv.reader((tmp_path / name).open(encoding="utf-8-sig")))
                      for name in ("canvas.csv", "moodle_02_em.csv"))  # fmt: skip
    assert canvas[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "02_em"]
    assert (canvas[1][0].strip(), canvas[1][5]) == ("Points Possible", "12.0")
    assert set(moodle[0]) >= MOODLE_WANTS
    assert dict(zip(*moodle, strict=True))["Identifier"] == "Participant 7"
