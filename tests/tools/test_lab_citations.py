"""Citations are text in JupyterLab, and what is saved is what was opened."""

from __future__ import annotations

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
        ("{cite:t}`lu2007`", r"Lu and Leen \[2007\]"),
        ("{cite:p}`lu2007,shental2003`", r"\[Lu and Leen, 2007, Shental *et al.*, 2003\]"),
        ("{cite:author}`shental2003`", "Shental *et al.*"),
        ("{cite:alp}`lu2007`", "Lu and Leen, 2007"),
        ("{cite:t}`erdos1960`", "Erdős"),
    ],
)
def test_it_says_who_and_when(role, words):
    assert lab_citations.as_text(f"as {role}, §2").startswith(f"as [{words}")
    link = r"\]\((https://doi\.org/10\.\S+)?#cite:\w+:\S+\), §2$"
    assert re.search(link, lab_citations.as_text(f"{role}, §2"))


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("{py:func}`~cgmm.plot.scatter`", "[`scatter`](#role"),
        ("{py:func}`cgmm.plot.scatter`", "[`cgmm.plot.scatter`](#role"),
        ("{doc}`02_em`", "[EM as a lower bound](02_em.ipynb#role"),
        ("{doc}`glossary`", "[Glossary](glossary.md#role"),
        ("{doc}`the bound <02_em>`", "[the bound](02_em.ipynb#role"),
    ],
)
def test_names_and_chapters_are_words(role, words):
    assert lab_citations.as_text(role).startswith(words)
    assert lab_citations.as_roles(lab_citations.as_text(role)) == role


def test_what_is_no_citation_stays_as_it_is():
    text = r"[a], \[b\], [c](https://doi.org/10.1/x), `{cite:t}`, {cite:t}`nobody1900`, [x](#cite)"
    assert lab_citations.as_text(text) == text
    assert lab_citations.as_roles(text) == text


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
