"""Citations are text in JupyterLab, and what is saved is what was opened."""

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


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("{cite:t}`lu2007`", r"[Lu and Leen \[2007\]]("),
        ("{cite:p}`lu2007,shental2003`", r"[\[Lu and Leen, 2007, Shental *et al.*, 2003\]]("),
        ("{cite:author}`shental2003`", "[Shental *et al.*]("),
        ("{cite:alp}`lu2007`", "[Lu and Leen, 2007]("),
        ("{cite:t}`erdos1960`", "[Erdős"),
        ("{cite:t}`nobody1900`", "{cite:t}`nobody1900`"),
        ("{py:func}`~cgmm.plot.scatter`", "[`scatter`](#role"),
        ("{doc}`02_em`", "[EM as a lower bound](02_em.ipynb#role"),
        ("{doc}`the bound <02_em>`", "[the bound](02_em.ipynb#role"),
    ],
)
def test_it_says_who_and_when_and_what(role, words):
    shown = lab_citations.as_text(f"as {role}, §2")
    assert shown.startswith(f"as {words}")
    assert lab_citations.as_roles(shown) == f"as {role}, §2"


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
