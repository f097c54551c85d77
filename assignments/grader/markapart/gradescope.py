"""Write an autograder for Gradescope.

    python -m markapart.gradescope NAME [--seed WORD] [--out FILE]

This writes a zip file to upload. Gradescope runs ``setup.sh`` once, and ``run_autograder`` for each
submission, which calls this file again with ``--grade``. If bubblewrap does not work in
Gradescope's containers, submissions run as a user who can read neither the key nor the submissions.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import zipfile
from pathlib import Path

from markapart.box import list_installed_files
from markapart.collect import COPY
from markapart.examine import Row
from markapart.grading import grade
from markapart.settings import COURSE, PROGRAM
from markapart.sources import grade_id, names, source

SETUP = """#!/usr/bin/env bash
set -euo pipefail
apt-get update
apt-get install --yes python3 python3-venv bubblewrap
python3 -c 'import sys; assert sys.version_info >= (3, 11), "choose a newer Ubuntu image"'
python3 -m venv /autograder/venv
/autograder/venv/bin/pip install -c /autograder/source/requirements-dev.lock \\
    '/autograder/source[live]' nbgrader
"""
RUN = """#!/usr/bin/env bash
root="${{AUTOGRADER:-/autograder}}"
python="$root/venv/bin/python"
chmod 700 "$root/source/course" "$root/submission"
export MARKAPART_COURSE="$root/source/course" PYTHONPATH="$root/source/grader:$PYTHONPATH"
exec "$python" -m markapart.gradescope {name} {seed} --grade "$root"
"""


def bundle(name: str, seed: str | None, out: Path) -> None:
    """Write the zip file that a teacher uploads to Gradescope."""
    source(name, seed)  # Raises ValueError for an unknown name or an invalid seed.
    course = [path for path in COURSE.iterdir() if path.suffix in (".py", ".toml")]
    course += (COURSE / "source" / name).glob("*.ipynb")
    files = list_installed_files() | {
        f"course/{path.relative_to(COURSE).as_posix()}": path for path in course
    }
    files |= {f"grader/markapart/{path.name}": path for path in PROGRAM.iterdir()
              if path.suffix in (".py", ".html", ".js")}  # fmt: skip
    run = RUN.format(name=name, seed=f'--seed "{seed}"' if seed else "")
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, path in sorted(files.items()):
            archive.write(path, inside)
        for script, text in {"setup.sh": SETUP, "run_autograder": run}.items():
            info = zipfile.ZipInfo(script)
            info.external_attr = 0o755 << 16
            archive.writestr(info, text)


def grade_there(name: str, seed: str | None, root: Path) -> None:
    """Grade the submission that Gradescope stored below ``root``, and write results.json."""
    found = sorted((root / "submission").rglob("*.ipynb"))
    own = [path for path in found if COPY.sub("", path.stem) == name] or found
    if not own:
        return _write_results(
            root, {"score": 0, "output": f"There is no notebook; hand in {name}.ipynb."}
        )
    with tempfile.TemporaryDirectory() as scratch:
        (result,) = grade({("student", name): own[0]}, Path(scratch), seed=seed)
    cells = source(name, seed).cells
    hiding = {grade_id(cell) for cell in cells if "### BEGIN HIDDEN TESTS" in cell.source}
    tests = [_result_of_check(Row(**row), hiding) for row in result["rows"]]
    kept_apart = f"Kept apart by {result['kept_apart']}." if result["kept_apart"] else ""
    print("\n".join([kept_apart, *result["notes"]]))  # Only teachers see this output.
    return _write_results(root, {"tests": tests, "stdout_visibility": "hidden"})


def _result_of_check(row: Row, hiding: set) -> dict:
    output = "" if row.state == "graded" else row.state
    if row.state == "awaits manual grading":
        output = "Your answer is read by your teacher."
    return {"name": row.task, "score": row.points, "max_score": row.max,
            "visibility": "after_due_date" if row.task in hiding else "visible",
            "output": row.message or output}  # fmt: skip


def _write_results(root: Path, results: dict) -> None:
    (root / "results").mkdir(exist_ok=True)
    (root / "results" / "results.json").write_text(json.dumps(results, indent=1), encoding="utf8")


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", choices=names(), metavar="NAME")
    parser.add_argument("--seed", metavar="WORD")
    parser.add_argument("--out", type=Path, help="default: NAME.zip")
    parser.add_argument("--grade", type=Path, metavar="ROOT", help="what Gradescope calls")
    options = parser.parse_args(arguments)
    if options.grade:
        grade_there(options.name, options.seed, options.grade)
    else:
        out = options.out or Path(f"{options.name}.zip")
        bundle(options.name, options.seed, out)
        print(out)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
