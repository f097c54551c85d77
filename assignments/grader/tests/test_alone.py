"""Test the grader with another course than the one in this project."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
from handed_in import right
from markapart import box
from markapart.settings import COURSE, PROGRAM

EXAMPLE = "12_rca"
ASKED_FOR = ["course.toml", "nbgrader_config.py", "visible_package.py", f"source/{EXAMPLE}"]


def test_the_grader_names_no_particular_course():
    for path in [*PROGRAM.glob("*.py"), *PROGRAM.glob("*.html"), *PROGRAM.glob("*.js")]:
        assert not re.search(r"cgmm|mixture|chunklet", path.read_text(encoding="utf8")), path.name


def test_a_folder_with_one_assignment_is_a_course(boxes, tmp_path):
    course = tmp_path / "course"
    for name in ASKED_FOR:
        copy = shutil.copytree if (COURSE / name).is_dir() else shutil.copy
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        copy(COURSE / name, course / name)
    (tmp_path / "in/ada").mkdir(parents=True)
    nbformat.write(right(EXAMPLE), tmp_path / "in/ada" / f"{EXAMPLE}.ipynb")
    env = os.environ | {"MARKAPART_COURSE": str(course), "PYTHONPATH": str(PROGRAM.parent)}
    for command in (["release"], ["grade", "in"]):
        run = [sys.executable, "-m", "markapart.cli", *command]
        done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "release").iterdir()] == [f"{EXAMPLE}.ipynb"]
    assert re.search(rf"ada +{EXAMPLE} +15 +20  awaits manual grading", done.stdout)


def test_bubblewrap_is_started_from_where_the_path_has_it(tmp_path, monkeypatch):
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\necho "started from the path" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "started from the path" in box.Boxes("bwrap").find_fault()


def test_a_python_that_others_may_not_read_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(box.os, "getuid", lambda: 0)
    monkeypatch.setattr(box.sys, "platform", "linux")
    tmp_path.chmod(0o700)
    monkeypatch.setattr(box, "PYTHON", str(tmp_path / "python"))
    assert f"no other user may read Python, which is {tmp_path}" in box.Boxes("user").find_fault()
