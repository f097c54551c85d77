"""Test that JupyterLab shows citations as text, and that saving restores their markup."""

import asyncio
import json
import re
import shutil
from pathlib import Path

import lab_citations
import pytest

BOOK = Path(__file__).parents[2] / "book"


@pytest.mark.parametrize("path", sorted(BOOK.glob("*.ipynb")), ids=lambda path: path.stem)
def test_citations_are_converted_to_text_and_back(path):
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    for source in ("".join(c["source"]) for c in cells if c["cell_type"] == "markdown"):
        shown = lab_citations.as_text(source)
        assert not re.search(r"\{(cite|py|doc)\b", shown)
        assert lab_citations.as_roles(shown) == source


def test_opening_and_saving_a_notebook_does_not_change_its_file(tmp_path):
    path = Path(shutil.copy(BOOK / "04_some_labels.ipynb", tmp_path))
    files = lab_citations.Chapters(root_dir=str(tmp_path))

    async def open_and_save() -> dict:
        model = await files.get(path.name)
        shown = json.dumps(model["content"]["cells"])
        assert '"source_hidden": true' in shown
        await files.save(model, path.name)
        return shown

    shown = asyncio.run(open_and_save())
    assert "{cite:" not in shown
    assert path.read_bytes() == (BOOK / path.name).read_bytes()
