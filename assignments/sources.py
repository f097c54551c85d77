"""The assignments as their author wrote them, as students get them, and as they come back.

The notebooks with solutions lie in source/, the wrong submissions in mistakes/. Student versions
are made by nbgrader in a course directory of its own, with the settings of nbgrader_config.py.
"""

from __future__ import annotations

import copy
import functools
import logging
import os
import re
import shutil
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode
from nbgrader import api
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

HERE = Path(__file__).resolve().parent
SEED_LINE = re.compile(r'^COURSE = "(.*)"$', re.MULTILINE)
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# nbgrader calls alembic by name, which a virtual environment that is not activated does not find.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# For each new database it asks alembic for the same version again, in a process that takes seconds.
api.get_alembic_version = functools.cache(api.get_alembic_version)


class Mistake(NamedTuple):
    """A wrong submission: one typical error in one cell, everything else right."""

    name: str
    error: str
    cell: str
    code: str
    caught_by: list[str]
    says: str
    must_not_say: str = ""


def names() -> list[str]:
    """Return the names of all assignments, in order."""
    return sorted(path.stem for path in HERE.glob("source/*/*.ipynb"))


def source(name: str, seed: str | None = None) -> NotebookNode:
    """Read an assignment as its author wrote it, with another word for the seed if given."""
    path = HERE / "source" / name / f"{name}.ipynb"
    if not path.exists():
        raise ValueError(f"there is no assignment {name!r}; there are {', '.join(names())}.")
    notebook = nbformat.read(path, as_version=4)
    if seed is not None:
        (setup,) = [cell for cell in notebook.cells if SEED_LINE.search(cell.source)]
        if not re.fullmatch(r"[\w .-]+", seed):
            raise ValueError(f"the seed is {seed!r}; use a word of letters and digits.")
        setup.source = SEED_LINE.sub(f'COURSE = "{seed}"', setup.source)
    return notebook


def clean_bytes(notebook: NotebookNode) -> bytes:
    """Return a notebook as the bytes of a file that are the same at every writing."""
    notebook = copy.deepcopy(notebook)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC})
    notebook.nbformat_minor = 5
    for cell in notebook.cells:
        cell.id = grade_id(cell) or cell.id
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    return (nbformat.writes(notebook).rstrip("\n") + "\n").encode()


def grade_id(cell: NotebookNode) -> str | None:
    """Return the name by which nbgrader knows a cell, if it does."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def mistakes(name: str) -> list[Mistake]:
    """Read the named wrong submissions of an assignment."""
    text = (HERE / "mistakes" / f"{name}.toml").read_text(encoding="utf8")
    return [Mistake(**entry) for entry in tomllib.loads(text)["mistake"]]


# ------------------------------------------------------------------------------ release


class Course(NamedTuple):
    """A course directory of nbgrader in which the assignments have been generated."""

    directory: CourseDirectory
    config: Config

    @property
    def root(self) -> Path:
        """Where it lies."""
        return Path(self.directory.root)

    def gradebook(self) -> Gradebook:
        """Open the database of grades; use it in a ``with`` statement."""
        return Gradebook(self.directory.db_url, self.directory.course_id)

    def run(self, converter: type, assignment: str, **options) -> None:
        """Run one of nbgrader's converters on an assignment."""
        self.directory.assignment_id = assignment
        log = logging.getLogger("nbgrader")
        with warnings.catch_warnings():
            # nbgrader 0.9 meets SQLAlchemy 2; what it loses track of, it adds again.
            warnings.simplefilter("ignore", SAWarning)
            converter(coursedir=self.directory, config=self.config, log=log, **options).start()


def open_course(
    root: Path, assignments: Iterable[str], seed: str | None = None, timeout: int | None = None
) -> Course:
    """Generate the assignments in a new folder, with a fresh database."""
    config = PyFileConfigLoader("nbgrader_config.py", path=str(HERE)).load_config()
    config.CourseDirectory.root = str(root.resolve())
    if timeout is not None:
        config.Execute.timeout = timeout
    root.mkdir(parents=True)
    _log_into(root / "nbgrader.log")
    shutil.copy(HERE / "nbgrader_config.py", root)
    course = Course(CourseDirectory(config=config), config)
    for name in assignments:
        path = root / "source" / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(clean_bytes(source(name, seed)))
        _generate(course, name)
    return course


def _log_into(path: Path) -> None:
    """Send what nbgrader reports to a file, and nothing to the terminal."""
    log = logging.getLogger("nbgrader")
    for handler in log.handlers[:]:
        log.removeHandler(handler)
        handler.close()
    log.addHandler(logging.FileHandler(path, encoding="utf8", delay=True))
    log.setLevel(logging.WARNING)
    log.propagate = False


def _generate(course: Course, name: str) -> None:
    """Make the student version and enter the assignment into the database."""
    try:
        course.run(GenerateAssignment, name)
    except NbGraderException:
        report = (course.root / "nbgrader.log").read_text(encoding="utf8")
        raise ValueError(f"nbgrader cannot generate {name}; it reports:\n{report}") from None


def student_versions(assignments: Iterable[str], seed: str | None = None) -> dict[str, bytes]:
    """Return the files that students get: no solution, no hidden check, always the same bytes."""
    return {name: _student_version(name, seed) for name in assignments}


@functools.cache
def _student_version(name: str, seed: str | None) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        return clean_bytes(released(open_course(Path(scratch) / "course", [name], seed), name))


def released(course: Course, name: str) -> NotebookNode:
    """Read the student version that nbgrader has made in a course directory."""
    path = course.root / "release" / name / f"{name}.ipynb"
    return nbformat.read(path, as_version=4)


# ------------------------------------------------------------------------------ return


def require_same_seed(notebook: NotebookNode, handed_out: NotebookNode) -> None:
    """Refuse a notebook of another term, whose numbers are not those that are graded."""
    own, ours = _seed(notebook), _seed(handed_out)
    if own not in (None, ours):
        raise ValueError(f'made with the seed "{own}", graded with "{ours}"; see --seed')


def _seed(notebook: NotebookNode) -> str | None:
    lines = [SEED_LINE.search(cell.source) for cell in notebook.cells]
    return next((line[1] for line in lines if line), None)


def repair(notebook: NotebookNode, handed_out: NotebookNode) -> NotebookNode:
    """Put back what a student deleted, as the student version has it, at its old place.

    nbgrader itself restores the source of checks and of locked cells, but stumbles where
    a check is missing together with the cell before it, and knows no cell without metadata;
    some editors drop these and keep the cell's id.
    """
    known = {grade_id(cell): cell for cell in handed_out.cells if grade_id(cell)}
    repaired = copy.deepcopy(notebook)
    for cell in repaired.cells:
        if not grade_id(cell) and cell.get("id") in known:
            cell.metadata["nbgrader"] = copy.deepcopy(known[cell.id].metadata["nbgrader"])
    place = 0
    for name, cell in known.items():
        there = [i for i, other in enumerate(repaired.cells) if grade_id(other) == name]
        if not there:
            repaired.cells.insert(place, copy.deepcopy(cell))
        place = (there[-1] if there else place) + 1
    return _with_unique_ids(repaired)


def _with_unique_ids(notebook: NotebookNode) -> NotebookNode:
    """Give every cell that nbgrader knows its name as id; of copies, the last one counts."""
    taken = set()
    for n, cell in reversed(list(enumerate(notebook.cells))):
        name = grade_id(cell)
        if name is None or name in taken:
            cell.metadata.pop("nbgrader", None)
            cell["id"] = f"student-{n}"
        taken.add(name)
    return notebook
