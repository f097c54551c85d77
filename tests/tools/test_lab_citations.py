"""Citations are readable in JupyterLab, and saving a notebook does not change it."""

import asyncio
import json
import re
import shutil
from pathlib import Path

import lab_citations
import pytest

BOOK = Path(__file__).parents[2] / "book"


@pytest.mark.parametrize("path", sorted(BOOK.glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_citation_becomes_text_and_a_role_again(path):
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    for source in ("".join(c["source"]) for c in cells if c["cell_type"] == "markdown"):
        shown = lab_citations.as_text(source)
        assert not re.search(r"\{(cite|py|doc)\b", shown)
        assert lab_citations.as_roles(shown) == source


def test_a_file_opened_and_saved_is_the_same_file(tmp_path):
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
