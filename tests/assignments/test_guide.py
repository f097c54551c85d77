"""The commands of the guide for instructors work as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import chromium
import nbformat
import pytest
import sources
import trial

PROJECT = sources.HERE.parent
NAME = "12_rca"
GUIDES = ["book/instructors.md", "assignments/README.md"]


def commands(guide):
    """The lines of a guide that run course.py, as typed from the top folder."""
    text = (PROJECT / guide).read_text(encoding="utf8")
    lines = re.findall(
        r"^(?: {4})?(python (?:assignments/)?course\.py .*?)\s*(?:#|$)", text, re.MULTILINE
    )
    return [line.replace("python course.py", "python assignments/course.py") for line in lines]


@pytest.mark.slow  # test_course gives the commands one by one
def test_the_guides_commands_run_one_after_the_other(boxes, tmp_path):
    typed = commands(GUIDES[0])
    assert [line.split()[2] for line in typed] == [
        "release", "grade", "mark", "try", "exam", "key", "projects"]  # fmt: skip
    if chromium.find() is None:  # which printing needs
        typed = typed[:4]
    (tmp_path / "assignments").symlink_to(sources.HERE)
    (tmp_path / "SUBMISSIONS" / "ada").mkdir(parents=True)
    seed = re.search(r"--seed (\w+)", typed[1])[1]
    notebook = trial.right_submission(NAME, seed)
    nbformat.write(notebook, tmp_path / "SUBMISSIONS" / "ada" / f"{NAME}.ipynb")
    # A fresh shell with the project's environment: nothing of this process but where cgmm lies.
    shell = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
             "HOME": str(tmp_path), "PYTHONPATH": str(PROJECT)}  # fmt: skip
    for line in typed:
        line += f" {NAME}" if line.endswith((" try", " key")) else ""  # all of them take minutes
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=shell, text=True,
                              capture_output=True)  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "release" / f"{NAME}.ipynb").exists()
    assert len(list(tmp_path.glob("papers/*.pdf"))) == (15 if len(typed) == 7 else 0)
    assert ",16.0,20.0," in (tmp_path / "graded" / "submissions.csv").read_text(encoding="utf8")
