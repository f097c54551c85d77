"""Execute and clean the chapters in place.

    python tools/notebooks.py              execute and clean every book/*.ipynb
    python tools/notebooks.py 02_em.ipynb  only these
    python tools/notebooks.py --check      execute nothing, only report faults

A second run gives the same bytes: cell ids are kept, timing and widget state are removed, and
kernels compute on one thread, so that the order of additions is always the same.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from pages import BOOK

# Environment variables that restrict every linear algebra library to one thread.
SINGLE_THREAD = dict.fromkeys(
    ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"], "1"
)

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "pygments_lexer": "ipython3",
}
CELL_METADATA_TO_KEEP = {"tags", "mystnb", "nbgrader"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
IMAGES = {"image/png", "image/jpeg", "image/svg+xml"}
IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".svg", ".webp")
HIDDEN_OUTPUT_TAGS = {"remove-output", "remove-cell"}
SECONDS_PER_CELL = 300


def main(arguments: list[str] | None = None) -> int:
    """Execute or check the notebooks that the command line names; return 1 if there are faults."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks (default: all of book/)")
    parser.add_argument("--check", action="store_true", help="execute nothing, report faults")
    options = parser.parse_args(arguments)
    paths = options.paths or sorted(BOOK.glob("*.ipynb"))
    if not options.check:
        execute(paths)
    found = [f"{path}: {fault}" for path in paths for fault in find_faults(path)]
    print("\n".join(found))
    return int(bool(found))


def execute(paths: list[Path]) -> None:
    """Execute and clean notebooks, two at a time, and print which of them changed."""
    os.environ.update(SINGLE_THREAD)
    with ThreadPoolExecutor(max_workers=2) as pool:
        for path, changed in zip(paths, pool.map(refresh, paths), strict=True):
            print(f"{path}: {'changed' if changed else 'unchanged'}")


def refresh(path: Path) -> bool:
    """Execute and clean one notebook in place; return whether its bytes changed."""
    notebook = load(path)
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        extra_arguments=["--log-level=ERROR"],
    )
    client.execute()
    before, after = path.read_bytes(), to_bytes(clean(notebook))
    if after != before:
        path.write_bytes(after)
    return after != before


# ----------------------------------------------------------------------------- cleaning


def load(path: Path) -> NotebookNode:
    """Read a notebook; cells without an id get one from their source, not a random one."""
    raw = json.loads(path.read_text(encoding="utf8"))
    raw["nbformat_minor"] = 5
    _complete_ids(raw["cells"])
    return nbformat.reads(json.dumps(raw), as_version=4)


def clean(notebook: NotebookNode) -> NotebookNode:
    """Return a copy without metadata and outputs that differ between runs or machines."""
    notebook = copy.deepcopy(notebook)
    kept = {key: notebook.metadata[key] for key in {"mystnb"} & notebook.metadata.keys()}
    about = {"kernelspec": KERNELSPEC, "language_info": LANGUAGE}
    notebook.metadata = nbformat.from_dict(copy.deepcopy(about | kept))
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in CELL_METADATA_TO_KEEP & cell.metadata.keys()}
        cell.metadata = NotebookNode(kept)
        if cell.cell_type == "code":
            cell.outputs = _clean_outputs(cell.outputs)
    return notebook


def _complete_ids(cells: list[dict]) -> None:
    """Give cells without an id one made of their source, and make repeated ids unique."""
    used_ids: set[str] = set()
    for cell in cells:
        source = "".join(cell["source"])
        name = cell.get("id") or hashlib.sha256(source.encode()).hexdigest()[:8]
        cell["id"] = name if name not in used_ids else _next_unused_id(name, used_ids)
        used_ids.add(cell["id"])


def _next_unused_id(name: str, used_ids: set[str]) -> str:
    """Return the first of ``name-2``, ``name-3``, ... that is not in use."""
    return next(f"{name}-{n}" for n in range(2, len(used_ids) + 3) if f"{name}-{n}" not in used_ids)


def _clean_outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Remove views of live widgets, and join consecutive outputs of the same stream."""
    kept: list[NotebookNode] = []
    for output in outputs:
        if "data" in output:
            output.data.pop(WIDGET_VIEW, None)
            if not output.data:
                continue
        if output.output_type == "stream" and kept and kept[-1].get("name") == output.name:
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


def to_bytes(notebook: NotebookNode) -> bytes:
    """Return the notebook as the bytes of its file, which end in a newline."""
    return (nbformat.writes(notebook).rstrip("\n") + "\n").encode()


# ----------------------------------------------------------------------------- checking


def find_faults(path: Path) -> list[str]:
    """Return a message for each fault of a committed notebook."""
    notebook = load(path)
    same = to_bytes(clean(notebook)) == path.read_bytes()
    found = [] if same else ["is not clean: run `make notebooks`"]
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
        found.append("was not executed from top to bottom: run `make notebooks`")
    for cell in code:
        found += [f"cell {cell.id} {fault}" for fault in _find_cell_faults(cell)]
    return found


def _find_cell_faults(cell: NotebookNode) -> list[str]:
    """Return a message for each fault of a code cell: an error, or a figure without text."""
    tags = set(cell.metadata.get("tags", []))
    found = []
    failed = any(output.output_type == "error" for output in cell.outputs)
    if failed and "raises-exception" not in tags:
        found.append("ends in an error")
    shows_image = any(_is_bare_image(output) for output in cell.outputs)
    if shows_image and not tags & HIDDEN_OUTPUT_TAGS and not _has_alt_text(cell):
        found.append("draws a figure without a text alternative: set mystnb.image.alt")
    return found


def _is_bare_image(output: NotebookNode) -> bool:
    """Return whether an output is an image without HTML; explorers have HTML with its own text."""
    data = output.get("data", {})
    return bool(IMAGES & data.keys()) and "text/html" not in data


def _has_alt_text(cell: NotebookNode) -> bool:
    """Return whether a cell has an alternative text that is not just a file name."""
    alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "").strip()
    return bool(alt) and not alt.lower().endswith(IMAGE_ENDINGS)


if __name__ == "__main__":
    sys.exit(main())
