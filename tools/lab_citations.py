"""Show citations as text while JupyterLab has a chapter open, and save them as roles again.

Chapters cite with roles such as {cite:t}`lu2007`, which only the build of the book can show. When
JupyterLab opens a chapter, the server replaces each role by a link, such as

    [Lu and Leen [2007]](https://doi.org/...#cite:t:lu2007)

The end of the link stores the role, so that saving an unchanged chapter restores the same file.
References to the package and to other chapters are replaced likewise, and cells that the book folds
are folded in JupyterLab too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from cgmm_roles import WORDS, as_text
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

REFERENCE_LINK = re.compile(r"\[[^\]\n]+\]\([^\s()]*#role:(?P<role>\w+):(?P<content>[^\s()]+)\)")
CITATION_LINK = re.compile(WORDS + r"\([^\s()]*#cite:(?P<role>\w+):(?P<keys>[^\s()]+)\)")


class Chapters(AsyncLargeFileManager):
    """Contents manager that shows citations in notebooks as text; other files are unchanged."""

    async def get(self, path: str, content: bool = True, *args: Any, **options: Any) -> dict:
        """Return a file for the browser; in notebooks, replace roles and fold hidden code."""
        model: dict = await super().get(path, content, *args, **options)
        if content and model["type"] == "notebook":
            change_markdown(model["content"], as_text)
            for cell in cells_with_hidden_code(model["content"]):
                cell["metadata"].setdefault("jupyter", {})["source_hidden"] = True
        return model

    async def save(self, model: dict, path: str = "") -> dict:
        """Save a file from the browser; in notebooks, restore roles and unfold code."""
        if model.get("type") == "notebook" and model.get("content"):
            change_markdown(model["content"], as_roles)
            for cell in cells_with_hidden_code(model["content"]):
                cell["metadata"].pop("jupyter", None)
        return await super().save(model, path)  # type: ignore[no-any-return]


def change_markdown(notebook: dict, convert: Callable[[str], str]) -> None:
    """Apply a function to each Markdown cell of a notebook, in place."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = convert(cell["source"])


def cells_with_hidden_code(notebook: dict) -> list[dict]:
    """Return the cells whose code the book folds or leaves out."""
    hidden = {"hide-input", "remove-input"}
    return [cell for cell in notebook["cells"] if hidden & set(cell["metadata"].get("tags", ()))]


def as_roles(source: str) -> str:
    """Replace links made by ``as_text`` by the original roles."""
    source = REFERENCE_LINK.sub(
        lambda found: f"{{{found['role'].replace('_', ':')}}}`{unquote(found['content'])}`", source
    )
    return CITATION_LINK.sub(restore_citation, source)


def restore_citation(found: re.Match[str]) -> str:
    """Return the citation role that a link replaces."""
    return f"{{cite:{found['role']}}}`{found['keys'].replace('%20', ' ')}`"
