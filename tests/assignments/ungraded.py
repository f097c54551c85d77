"""Run submissions in the process of the tests; this is safe only for our own code."""

import tomllib

from handed_in import right
from markapart import sources
from markapart.examine import build_rows, find_error, reference_sizes, run_check
from markapart.forms import ValueSizes
from nbgrader.utils import is_grade


def drop_cells(name, *cells):
    notebook = right(name)
    notebook.cells = [cell for cell in notebook.cells if sources.grade_id(cell) not in cells]
    return notebook


def run_here(who, name, notebook, seed=None):
    """Run a submission in this process, and return a row for each task."""
    ours = sources.source(name, seed).cells
    checks = {sources.grade_id(cell): cell for cell in ours if is_grade(cell)}
    released = sources.read_released(name, seed).cells
    shown = {sources.grade_id(cell): cell.source for cell in released}
    closing = {cell.source for cell in ours if not sources.grade_id(cell)}
    namespace = {"__name__": "__main__"}
    heard, answers = {}, {}
    for cell in notebook.cells:
        task = sources.grade_id(cell)
        if cell.cell_type != "code":
            answers[task] = cell.source
        # Run the teacher's version of a check, even if the student has changed the cell.
        elif task in checks:
            forms = ValueSizes(reference_sizes(name, seed)[task])
            heard[task] = run_check(shown[task], namespace, name, forms) or run_check(
                checks[task].source, namespace, name, forms, hidden=True)  # fmt: skip
        # The closing figure is left out, because it takes most of the time.
        elif task or cell.source not in closing:
            find_error(cell.source, namespace)
    return build_rows(who, name, heard, answers, seed)


def variants(name):
    """Return the alternative right solutions of an assignment's tasks."""
    text = (sources.COURSE / "variants" / f"{name}.toml").read_text(encoding="utf8")
    return [sources.Mistake(**entry) for entry in tomllib.loads(text)["variant"]]
