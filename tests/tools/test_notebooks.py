"""Test that the committed notebooks are clean, and test the tool that runs and cleans them."""

import copy

import nbformat
import notebooks
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

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
def test_committed_chapters_are_clean(path):
    assert notebooks.find_faults(path) == []


def make_cell(source="1 + 1", count=1, outputs=(), **metadata):
    """Return a code cell with this execution count and copies of these outputs."""
    outputs = [copy.deepcopy(output) for output in outputs]
    return new_code_cell(source, execution_count=count, outputs=outputs, metadata=metadata)


def write_notebook(path, *cells):
    """Write a cleaned notebook to a file, and return the path."""
    path.write_bytes(notebooks.to_bytes(notebooks.clean(new_notebook(cells=list(cells)))))
    return path


@pytest.fixture
def path(tmp_path):
    """Return the path of a notebook that is not written yet."""
    return tmp_path / "chapter.ipynb"


ALT = "Two clouds of points."
ERROR = new_output("error", ename="ValueError", evalue="no", traceback=["ValueError: no"])


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ([make_cell(outputs=[PNG])], "without a text alternative"),
        ([make_cell(outputs=[PNG], mystnb={"image": {"alt": "two.png"}})], "a text alternative"),
        ([make_cell(outputs=[PNG], mystnb={"figure": {"caption": ALT}})], "a text alternative"),
        ([make_cell(outputs=[PNG], mystnb={"image": {"alt": ALT}})], ""),
        ([make_cell(outputs=[PNG], tags=["remove-output"])], ""),
        ([make_cell(outputs=[EXPLORER])], ""),
        ([make_cell(), make_cell(count=3)], "not executed from top to bottom"),
        ([make_cell(), make_cell(count=None)], "not executed from top to bottom"),
        ([make_cell(outputs=[ERROR])], "ends in an error"),
        ([make_cell(outputs=[ERROR], tags=["raises-exception"])], ""),
    ],
)
def test_find_faults_reports_missing_alternative_texts_bad_order_and_errors(path, cells, fault):
    report = "".join(notebooks.find_faults(write_notebook(path, *cells)))
    assert fault in report
    assert bool(fault) == bool(report)


@pytest.mark.parametrize(
    "add_clutter",
    [
        lambda notebook: notebook.cells[0].metadata.update(collapsed=True),
        lambda notebook: notebook.cells[0].metadata.update(execution={"iopub.execute_input": "t"}),
        lambda notebook: notebook.cells[0].outputs.append(copy.deepcopy(EXPLORER)),
        lambda notebook: notebook.metadata.update(widgets={"state": {}}),
        lambda notebook: notebook.metadata.language_info.update(version="3.11.7"),
        lambda notebook: notebook.metadata.kernelspec.update(name="mine"),
    ],
)
def test_clean_removes_outputs_and_metadata_that_differ_between_runs(path, add_clutter):
    notebook = notebooks.clean(new_notebook(cells=[make_cell(tags=["hide-input"])]))
    add_clutter(notebook)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf8")
    assert "is not clean" in "".join(notebooks.find_faults(path))
    cleaned = notebooks.clean(notebook)
    assert notebooks.find_faults(write_notebook(path, *cleaned.cells)) == []
    assert cleaned.cells[0].metadata == {"tags": ["hide-input"]}


def test_executing_a_notebook_twice_gives_the_same_bytes(path):
    source = "import os, sys\nprint(os.environ['OMP_NUM_THREADS'])\nprint(1, file=sys.stderr)"
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


def test_the_option_check_reports_faults_and_executes_nothing(path, capsys):
    notebook = new_notebook(cells=[new_code_cell("raise SystemExit")])
    path.write_text(nbformat.writes(notebook), encoding="utf8")
    before = path.read_bytes()
    assert notebooks.main(["--check", str(path)]) == 1
    assert "was not executed" in capsys.readouterr().out
    assert path.read_bytes() == before
