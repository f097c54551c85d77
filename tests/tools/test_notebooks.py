"""The committed notebooks are clean, and the tool that cleans them does what it says."""

from __future__ import annotations

import copy
import json

import nbformat
import notebooks
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

CHAPTERS = sorted(notebooks.BOOK.glob("*.ipynb"))
PNG = new_output("display_data", data={"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"})
EXPLORER = new_output(
    "display_data",
    data={
        notebooks.WIDGET_VIEW: {"model_id": "f00"},
        "text/html": "<div class='cgmm-explorer'></div>",
        "text/plain": "Explorer",
    },
)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_a_chapter_is_clean(path):
    assert notebooks.faults(path) == []


def cell(source="1 + 1", count=1, outputs=(), **metadata):
    outputs = [copy.deepcopy(output) for output in outputs]
    return new_code_cell(source, execution_count=count, outputs=outputs, metadata=metadata)


def write(path, *cells):
    """Write a notebook as the tool would leave it."""
    path.write_bytes(notebooks.to_bytes(notebooks.clean(new_notebook(cells=list(cells)))))
    return path


# ----------------------------------------------------------------------------- faults


@pytest.fixture
def path(tmp_path):
    return tmp_path / "chapter.ipynb"


def test_a_clean_notebook_has_no_fault(path):
    alt = {"mystnb": {"image": {"alt": "Two clouds of points."}}}
    write(path, new_markdown_cell("# A"), cell(), cell(count=2, outputs=[PNG], **alt))
    assert notebooks.faults(path) == []


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"mystnb": {"image": {"alt": "  "}}},
        {"mystnb": {"image": {"alt": "two_clouds.png"}}},
        {"mystnb": {"figure": {"caption": "Two clouds."}}},
    ],
)
def test_a_figure_needs_a_text_alternative(path, metadata):
    write(path, cell(outputs=[PNG], **metadata))
    assert "without a text alternative" in "".join(notebooks.faults(path))


def test_an_explorer_and_a_removed_figure_need_none(path):
    write(path, cell(outputs=[EXPLORER]), cell(count=2, outputs=[PNG], tags=["remove-output"]))
    assert notebooks.faults(path) == []


@pytest.mark.parametrize("counts", [(2, 3), (2, 1), (1, None), (1, 3)])
def test_cells_must_have_run_in_order(path, counts):
    write(path, *(cell(count=count) for count in counts))
    assert "not executed from top to bottom" in "".join(notebooks.faults(path))


def test_an_error_must_be_announced(path):
    error = new_output("error", ename="ValueError", evalue="no", traceback=["ValueError: no"])
    write(path, cell(outputs=[error]))
    assert "ends in an error" in "".join(notebooks.faults(path))
    write(path, cell(outputs=[error], tags=["raises-exception"]))
    assert notebooks.faults(path) == []


@pytest.mark.parametrize(
    "soil",
    [
        lambda notebook: notebook.cells[0].metadata.update(collapsed=True),
        lambda notebook: notebook.cells[0].metadata.update(execution={"iopub.execute_input": "t"}),
        lambda notebook: notebook.cells[0].outputs.append(copy.deepcopy(EXPLORER)),
        lambda notebook: notebook.metadata.update(widgets={"state": {}}),
        lambda notebook: notebook.metadata.language_info.update(version="3.11.7"),
        lambda notebook: notebook.metadata.kernelspec.update(name="mine"),
    ],
)
def test_what_differs_between_runs_is_a_fault(path, soil):
    notebook = notebooks.clean(new_notebook(cells=[cell()]))
    soil(notebook)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf8")
    assert "is not clean" in "".join(notebooks.faults(path))


# ----------------------------------------------------------------------------- cleaning


def test_cleaning_twice_is_cleaning_once():
    dirty = new_notebook(cells=[cell(outputs=[EXPLORER], tags=["hide-input"], collapsed=True)])
    once = notebooks.clean(dirty)
    assert notebooks.to_bytes(notebooks.clean(once)) == notebooks.to_bytes(once)
    assert once.cells[0].metadata == {"tags": ["hide-input"]}
    assert set(once.cells[0].outputs[0].data) == {"text/html", "text/plain"}
    assert dirty.cells[0].metadata["collapsed"]


def test_ids_are_kept_and_made_unique(path):
    raw = json.loads(nbformat.writes(new_notebook(cells=[cell(), cell(), cell("2"), cell("2")])))
    raw["cells"][0]["id"] = raw["cells"][1]["id"] = "mine"
    del raw["cells"][2]["id"], raw["cells"][3]["id"]
    path.write_text(json.dumps(raw), encoding="utf8")
    ids = [one.id for one in notebooks.load(path).cells]
    assert ids[:2] == ["mine", "mine-2"]
    assert len(set(ids)) == 4
    assert ids == [one.id for one in notebooks.load(path).cells]


def test_a_second_run_changes_no_byte(path):
    source = (
        "import os\nprint(os.environ['OMP_NUM_THREADS'])\nimport sys; print(1, file=sys.stderr)"
    )
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2], [2, 1])\nplt.show()"
    alt = {"mystnb": {"image": {"alt": "A falling line."}}}
    notebook = new_notebook(cells=[new_code_cell(source), new_code_cell(draw, metadata=alt)])
    path.write_text(nbformat.writes(notebook), encoding="utf8")
    assert notebooks.main([str(path)]) == 0
    first = path.read_bytes()
    assert b"image/png" in first
    assert nbformat.reads(first.decode(), 4).cells[0].outputs[0].text == "1\n"
    assert notebooks.main([str(path)]) == 0
    assert path.read_bytes() == first
