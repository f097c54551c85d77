"""The live figure of the home page, made while the book is built, and the scripts of all of them.

A figure brings its script along, so that a notebook needs nothing else. Of the site's pages, those
with figures of one mode share one file instead.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from cgmm.datasets import vertical_classes
from cgmm.explore import LiveFigure
from cgmm.explore.live import MODES, page_script

TASK = (
    "Two upright classes were meant; the likelihood prefers two level ones. Click an upper point, "
    "then a lower one of the same class: they belong together. How many such pairs does it take?"
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("live-home", LiveHome)
    app.connect("html-page-context", share_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class LiveHome(SphinxDirective):
    """Directive that places the live figure of the home page."""

    def run(self) -> list[nodes.Node]:
        """Put the figure where the directive stands."""
        return [nodes.raw("", home_figure().html(), format="html")]


def home_figure() -> LiveFigure:
    """Return a small live version of the front figure, in which two fits compete."""
    X, y = vertical_classes(16)[:2]
    level = (X[:, 1] > 0).astype(int)
    X = X - np.outer(2 * level - 1, [0, 6])
    return LiveFigure(
        X, mode="rivals", title="Who belongs with whom?", task=TASK, starts=[y, level],
        words=["upright", "level"], name="home",
    )  # fmt: skip


def share_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Move the script of each mode into one file for all pages that have such a figure."""
    if app.builder.name != "html" or "cgmm-live" not in context.get("body", ""):
        return
    folder = Path(app.outdir, "_static", "live")
    for mode in MODES:
        script = page_script(mode)
        inline = f"<script>\n{script}</script>"
        if inline in context["body"]:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{mode}.js").write_text(script, encoding="utf8")
            path = f"{'../' * pagename.count('/')}_static/live/{mode}.js"
            context["body"] = context["body"].replace(inline, f'<script src="{path}"></script>')
