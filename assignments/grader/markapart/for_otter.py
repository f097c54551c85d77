"""Write an autograder for Otter.

    python -m markapart.for_otter NAME [--seed WORD] [--out FILE]

This writes the zip file that ``otter run -a`` and ``otter grade -a`` read. Students get the version
that ``course.py release`` writes. Its checks are asserts, which become test files without a change.
Otter runs them in the process of the student's code, so that this code could change their results.
"""

from __future__ import annotations

import argparse
import json
import zipfile
from pathlib import Path

from nbgrader.utils import is_grade, is_solution

from markapart.sources import grade_id, names, source

# A check may use names that earlier checks of the same task define, as in the notebook.
TEST = """import contextlib

from otter.test_files import test_case

OK_FORMAT = False

name = {name!r}
points = {points!r}

@test_case(points={points!r}, hidden=False)
def check(env):
    space = dict(env)
    for text in BEFORE:
        with contextlib.suppress(Exception):
            exec(text, space)
    exec(CHECK, space)


BEFORE = {before!r}
CHECK = {check!r}
"""


def bundle(name: str, seed: str | None, out: Path) -> None:
    """Write the zip file that Otter reads."""
    before: list[str] = []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("otter_config.json", json.dumps({"lang": "python"}))
        for cell in source(name, seed).cells:
            task = grade_id(cell)
            if task == "setup":
                setup = cell.source
            elif is_solution(cell):
                before = [setup]  # A new task begins here.
            elif is_grade(cell):
                points = float(cell.metadata.nbgrader.points)
                test = TEST.format(name=task, points=points, before=before, check=cell.source)
                archive.writestr(f"tests/{task}.py", test)
                before.append(cell.source)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", metavar="NAME", choices=names())
    parser.add_argument("--seed", metavar="WORD", help="as you released it")
    parser.add_argument("--out", metavar="FILE", type=Path, help="default: NAME_otter.zip")
    options = parser.parse_args()
    bundle(options.name, options.seed, options.out or Path(f"{options.name}_otter.zip"))


if __name__ == "__main__":
    main()
