"""Read assignments, write their student versions, and repair submitted notebooks.

Notebooks with solutions are in source/, and wrong submissions for testing the checks in mistakes/.
Student versions are made by preprocessors of nbgrader with the settings in nbgrader_config.py.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode
from nbgrader.nbgraderformat import ValidationError
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)
from nbgrader.utils import is_grade
from traitlets.config.loader import PyFileConfigLoader

from markapart.settings import COURSE

SEED_LINE = re.compile(r'^COURSE = "(.*)"$', re.MULTILINE)
# Preprocessors with which nbgrader makes a student version, without those for its database.
RELEASE_STEPS = [LockCells, ClearSolutions, ClearOutput, CheckCellMetadata, ClearHiddenTests,
           ComputeChecksums, CheckCellMetadata]  # fmt: skip
# This sentence must be the same as in nbgrader_config.py.
STUB = "This task is still yours: replace this line by your code."
ATTACHED_PICTURE = re.compile(r"!\[[^\]\n]{0,200}\]\(attachment:([^)\n]{1,200})\)")
# A picture stored as data in Markdown, as Colab does it, or in an HTML tag.
DATA_PICTURE = re.compile(
    r"""(?:!\[[^\]\n]{0,200}\]\(|<img [^<>]{0,200}?src=["'])"""
    r"""data:(image/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/=\s]+)(?:\)|["'][^<>]{0,200}>)"""
)
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


class Mistake(NamedTuple):
    """A wrong submission with a typical mistake in one cell; its other cells are right."""

    name: str
    cell: str
    code: str
    error: str = ""
    caught_by: Sequence[str] = ()
    says: str = ""
    must_not_say: str = ""


def names() -> list[str]:
    """Return the names of all assignments in alphabetical order."""
    return sorted(path.stem for path in COURSE.glob("source/*/*.ipynb"))


def source(name: str, seed: str | None = None) -> NotebookNode:
    """Read an assignment with its solutions, and replace its seed if one is given."""
    path = COURSE / "source" / name / f"{name}.ipynb"
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
    """Return a notebook as bytes of a file, without outputs and always with the same metadata."""
    notebook = copy.deepcopy(notebook)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC})
    notebook.nbformat_minor = 5
    for cell in notebook.cells:
        cell.id = grade_id(cell) or cell.id
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    return (nbformat.writes(notebook).rstrip("\n") + "\n").encode()


def grade_id(cell: NotebookNode) -> str | None:
    """Return the name that nbgrader gave a cell, or None."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def mistakes(name: str) -> list[Mistake]:
    """Read the wrong submissions of an assignment from mistakes/."""
    text = (COURSE / "mistakes" / f"{name}.toml").read_text(encoding="utf8")
    return [Mistake(**entry) for entry in tomllib.loads(text)["mistake"]]


@functools.cache
def rubric(name: str, task: str) -> dict:
    """Return the rubric of an open question, with marked sample answers; empty if it has none."""
    path = COURSE / "rubrics" / f"{name}.toml"
    text = path.read_text(encoding="utf8") if path.exists() else ""
    questions = tomllib.loads(text).get("question", [])
    return next((one for one in questions if one["task"] == task), {})


@functools.cache
def section_of(name: str, task: str) -> tuple[str, str] | None:
    """Return (address, title) of the section of the book that explains a task, or None."""
    path = COURSE / "sections.toml"
    sections = tomllib.loads(path.read_text(encoding="utf8")) if path.exists() else {}
    number = re.match(r"(?:task|check)-\d+", task)
    entry = sections.get(name, {}).get(number[0].replace("check", "task")) if number else None
    if entry is None:
        return None
    page, _, title = entry.partition("#")
    return f"{page}.html#{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}", title


def model_answer(name: str, task: str) -> str:
    """Return the model answer of an open question."""
    (cell,) = [cell for cell in source(name).cells if grade_id(cell) == task]
    return re.sub(r"^ *### (BEGIN|END) SOLUTION\n?", "", cell.source, flags=re.MULTILINE)


# ------------------------------------------------------------------------------ release


def student_versions(assignments: Iterable[str], seed: str | None = None) -> dict[str, bytes]:
    """Return {name: bytes} of the notebooks for students, without solutions and hidden checks."""
    return {name: _student_version(name, seed) for name in assignments}


@functools.cache
def _student_version(name: str, seed: str | None) -> bytes:
    config = PyFileConfigLoader("nbgrader_config.py", path=str(COURSE)).load_config()
    notebook = nbformat.reads(clean_bytes(source(name, seed)).decode(), as_version=4)
    for step in RELEASE_STEPS:
        try:
            notebook, _ = step(config=config).preprocess(notebook, {"nbgrader": {"notebook": name}})
        except (ValidationError, ValueError, RuntimeError) as error:
            raise ValueError(f"nbgrader cannot generate {name}: {error}") from None
    return clean_bytes(notebook)


def read_released(name: str, seed: str | None = None) -> NotebookNode:
    """Return the student version of an assignment."""
    return nbformat.reads(_student_version(name, seed).decode(), as_version=4)


def seed_of_copy(seed: str | None, student: str) -> str:
    """Return the seed of a student's copy: the course's seed, the name, and a digest of both."""
    course = seed or _read_seed(source(names()[0]))
    name = unicodedata.normalize("NFC", student)
    digest = hashlib.sha256(f"{course}--{name}".encode()).hexdigest()[:8]
    return f"{course}--{re.sub(r'[^A-Za-z0-9_]+', '-', name)}-{digest}"


# ------------------------------------------------------------------------------ return


def seed_of_file(content: bytes, seed: str | None) -> str | None:
    """Return the seed to grade a file with: that of its copy if it is one, else the course's."""
    own = re.search(rb'COURSE = \\"([A-Za-z0-9_ .-]+)\\"', content)
    word = own[1].decode() if own else ""
    course = seed or _read_seed(source(names()[0]))
    return word if word.startswith(f"{course}--") else seed


def owner_of(word: str, seed: str | None, people: Iterable[str]) -> str | None:
    """Return the student for whom a copy was made, or None if it is none of ``people``."""
    return next((one for one in people if seed_of_copy(seed, one) == word), None)


def names_of_student(student: str) -> set[str]:
    """Return all names of a student: the name, the platform's number, and both together."""
    match = re.fullmatch(r"(.+)_(\d+)", student)
    return {student, *match.groups()} if match else {student}


def same_person(one: str, other: str) -> bool:
    """Return whether two names may mean one person; Canvas writes lovelaceada for Ada Lovelace."""
    letters = [sorted(re.sub(r"[\W\d_]+", "", name.casefold())) for name in (one, other)]
    return bool(names_of_student(one) & names_of_student(other)) or letters[0] == letters[1] != []


def require_same_seed(notebook: NotebookNode, handed_out: NotebookNode) -> None:
    """Raise ValueError if a notebook has another seed, for example that of an earlier term."""
    own, ours = _read_seed(notebook), _read_seed(handed_out)
    if own not in (None, ours):
        raise ValueError(f'made with the seed "{own}", graded with "{ours}"; see --seed')


def _read_seed(notebook: NotebookNode) -> str | None:
    lines = [SEED_LINE.search(cell.source) for cell in notebook.cells]
    return next((line[1] for line in lines if line), None)


def repair(notebook: NotebookNode, handed_out: NotebookNode) -> NotebookNode:
    """Return a copy of a notebook in which deleted cells of the student version are inserted again.

    Some editors drop nbgrader's metadata or the id of a cell, or turn code into text. Such a cell
    is identified by its metadata, id or first line, whichever is left. The student's texts stay
    where they are. The notebook's metadata list the names of inserted cells as ``put_back``.
    """
    known = {grade_id(cell): cell for cell in handed_out.cells if grade_id(cell)}
    by_text: dict[str, str | None] = {}
    for name, cell in known.items():
        by_text[_first_line(cell)] = None if _first_line(cell) in by_text else name
    repaired = copy.deepcopy(notebook)
    taken = {grade_id(cell) for cell in repaired.cells}
    for n, cell in enumerate(repaired.cells):
        names = [grade_id(cell), cell.get("id"), by_text.get(_first_line(cell))]
        name = next((name for name in names if name in known), None)
        cell.metadata.pop("nbgrader", None)
        if name and (name == names[0] or name not in taken):
            repaired.cells[n] = _with_student_text(known[name], cell)
            taken.add(name)
    place, put_back = 0, []
    for name, cell in known.items():
        there = [i for i, other in enumerate(repaired.cells) if grade_id(other) == name]
        if not there and cell.cell_type == "markdown":
            there = _use_text_as_answer(repaired, handed_out, cell, place)
        if not there:
            if is_grade(cell):
                place = max(place, _end_of_task(repaired, handed_out, name))
            repaired.cells.insert(place, copy.deepcopy(cell))
            put_back.append(name)
        place = (there[-1] if there else place) + 1
    repaired.metadata["put_back"] = put_back
    return _with_unique_ids(repaired)


def _end_of_task(notebook: NotebookNode, handed_out: NotebookNode, name: str) -> int:
    """Return the index of the text cell that follows the task of a check, or 0 if it is missing.

    A check must run after the student's cells of its task, even if these lost their names; all of
    them are before that text.
    """
    names = [grade_id(cell) for cell in handed_out.cells]
    texts = [cell for cell in handed_out.cells[names.index(name) :]
             if cell.cell_type == "markdown" and not grade_id(cell)]  # fmt: skip
    places = [n for n, cell in enumerate(notebook.cells)
              if texts and _first_line(cell) == _first_line(texts[0])]  # fmt: skip
    return places[0] if places else 0


def _use_text_as_answer(
    notebook: NotebookNode, handed_out: NotebookNode, cell, place: int
) -> list[int]:
    """Turn an unnamed text cell into a missing answer; return its index in a list, or []."""
    ours = {other.source for other in handed_out.cells}
    for n, other in enumerate(notebook.cells[place:], start=place):
        if other.cell_type == "markdown" and other.source not in ours and not grade_id(other):
            notebook.cells[n] = _with_student_text(cell, other)
            return [n]
    return []


def collect_misplaced_answers(notebook: NotebookNode, handed_out: NotebookNode) -> list[str]:
    """Copy answers that a student wrote into other cells to blank answers; return notes."""
    notes, ours = [], {cell.source for cell in handed_out.cells}
    for n, question in enumerate(handed_out.cells):
        if question.cell_type != "markdown" or not grade_id(question):
            continue
        (place,) = [i for i, cell in enumerate(notebook.cells)
                    if grade_id(cell) == grade_id(question)]  # fmt: skip
        answer, asked = notebook.cells[place], handed_out.cells[n - 1]
        around = [
            i for i, cell in enumerate(notebook.cells) if _first_line(cell) == _first_line(asked)
        ]
        start = min([*around, place])
        ends = [i for i, cell in enumerate(notebook.cells) if i > place and grade_id(cell)]
        near = notebook.cells[start : min([*ends, len(notebook.cells)])]
        own = [cell for cell in near if cell.source not in ours and not grade_id(cell)]
        lines = [line for cell in own for line in [*cell.source.splitlines(), ""]
                 if line not in asked.source.splitlines() or not line]  # fmt: skip
        if answer.source.strip() == question.source.strip() and any(lines):
            answer.source = "\n".join(lines).strip()
            for cell in own:
                answer.setdefault("attachments", {}).update(cell.get("attachments", {}))
            notes.append(f"{grade_id(question)}: answered in another cell, from which it is taken")
    return notes


def _first_line(cell: NotebookNode) -> str:
    """Return the first line of a cell, which identifies a cell without metadata and id."""
    return cell.source.strip().partition("\n")[0]


def _with_student_text(cell: NotebookNode, written: NotebookNode) -> NotebookNode:
    """Return a cell of the student version with the text and pictures of a submitted cell."""
    own = {name: written[name] for name in ("source", "attachments") if name in written}
    return nbformat.from_dict(copy.deepcopy(cell) | own)


def name_pictures(cell: NotebookNode) -> None:
    """Give each picture in a text cell a name that depends on its content, in place.

    Colab stores pictures as data in the text. Jupyter names every picture image.png, so that an
    answer would look unchanged after its picture was replaced.
    """
    pictures = {}

    def attach(kind: str, content: str) -> str:
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]
        pictures[f"picture-{digest}"] = {kind: content}
        return f"![picture](attachment:picture-{digest})"

    def rename_attachment(match: re.Match) -> str:
        kinds = cell.get("attachments", {}).get(match[1]) or {}
        return next((attach(*pair) for pair in kinds.items()), match[0])

    text = DATA_PICTURE.sub(lambda match: attach(match[1], "".join(match[2].split())), cell.source)
    cell.source = ATTACHED_PICTURE.sub(rename_attachment, text)
    cell["attachments"] = pictures


def _with_unique_ids(notebook: NotebookNode) -> NotebookNode:
    """Remove nbgrader's metadata from all but the last of cells with the same name, in place."""
    taken = set()
    for n, cell in reversed(list(enumerate(notebook.cells))):
        name = grade_id(cell)
        if name is None or name in taken:
            cell.metadata.pop("nbgrader", None)
            cell["id"] = f"student-{n}"
        taken.add(name)
    return notebook
