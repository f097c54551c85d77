"""Build submissions for tests: the right one, and the right one with changes."""

import json
import socket
import threading

import nbformat
from markapart import sources, trial, wire


def right(name):
    return nbformat.reads(sources.clean_bytes(trial.right_submission(name)), as_version=4)


def solutions(name):
    """Return the names of the solution cells with code, in order."""
    cells = [cell for cell in sources.source(name).cells if cell.cell_type == "code"]
    return [sources.grade_id(cell) for cell in cells if "BEGIN SOLUTION" in cell.source]


def checks_of(name, solution):
    """Return the names of the checks that follow a solution cell."""
    ids = [sources.grade_id(c) for c in sources.source(name).cells if sources.grade_id(c)]
    after = ids[ids.index(solution) + 1 :]
    stops = [i for i, other in enumerate(after) if not other.startswith("check")]
    return after[: stops[0]]


def at(notebook, name):
    (found,) = [i for i, cell in enumerate(notebook.cells) if sources.grade_id(cell) == name]
    return found


def changed(name, cell, source):
    notebook = right(name)
    notebook.cells[at(notebook, cell)].source = source
    return notebook


def written(folder, name, notebooks):
    """Write notebooks to files; return their paths, keyed by (student, assignment)."""
    paths = {}
    for who, notebook in notebooks.items():
        path = paths[who, name] = folder / "in" / who / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook))
    return paths


def as_kept(student, name, rows, **changes):
    """Return the result of a submission as grading stores it."""
    plain = {"cells": [], "notes": [], "handed_in": "", "file": "", "kept_apart": "",
             "platform": "", "late": False}  # fmt: skip
    return {"student": student, "assignment": name, "rows": rows} | plain | changes


class Pair:
    """Both ends of a connection; the student's end runs in a thread."""

    def __init__(self):
        self.ends = socket.socketpair()
        ours, theirs = (end.fileno() for end in self.ends)
        self.teacher = wire.Wire(ours, ours, trusts=False)
        self.student = wire.Wire(theirs, theirs, trusts=True)
        self.thread = threading.Thread(target=self.student.serve, daemon=True)
        self.thread.start()

    def close(self):
        self.ends[0].shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        for end in self.ends:
            end.close()
