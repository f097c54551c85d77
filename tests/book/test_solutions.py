"""Test that each exercise has stars and a solution, and that solutions run after their chapter."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from built_book import ROOT
from cells import CHAPTERS, read_code_cells, read_prose

# The pathologist's case also has exercises.
WITH_EXERCISES = [*CHAPTERS, ROOT / "book/pathologist_case.ipynb"]
EXERCISE = re.compile(r"^:{3,}\{exercise\} *(.*)\n:label: (\S+)$", re.MULTILINE)
SOLUTION = re.compile(r"^(:{3,})\{solution\} (\S+)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Run the cells of a chapter, and then each solution with a copy of the variables that they define.
RUN = """
import contextlib, io, json, sys, matplotlib
matplotlib.use("Agg")
from cgmm import explore
# Do not draw the frames of explorers, because no solution uses them.
explore.Explorer = lambda *given, **named: None
cells, solutions = json.load(sys.stdin)
names = {"__name__": "__main__"}
with contextlib.redirect_stdout(io.StringIO()):
    for _, source in cells:
        exec(source, names)
        matplotlib.pyplot.close("all")
failed = {}
for label, source in solutions:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(source, dict(names))
    except Exception as error:
        failed[label] = repr(error)
print(json.dumps(failed))
"""


def read_solutions(path: Path) -> list[tuple[str, str]]:
    """Return the label and the code of each solution that has code."""
    found = ((label, CODE.findall(body)) for _, label, body in SOLUTION.findall(read_prose(path)))
    return [(label, "\n".join(parts)) for label, parts in found if parts]


@pytest.mark.parametrize("path", WITH_EXERCISES, ids=lambda path: path.stem)
def test_an_exercise_has_stars_and_a_solution(path):
    text = read_prose(path)
    exercises = EXERCISE.findall(text)
    assert exercises
    assert [label for _, label in exercises] == [label for _, label, _ in SOLUTION.findall(text)]
    assert [label for title, label in exercises if not re.match("★{1,3} ", title)] == []


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem[:2] != "05"))
     for path in WITH_EXERCISES],
)  # fmt: skip
def test_solutions_run_and_their_assertions_hold(path):
    run = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([read_code_cells(path), read_solutions(path)]),
        cwd=path.parent,  # A notebook reads tables from its own folder.
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {}
