"""Sphinx extension that makes the live figure of the home page, and shares scripts between pages.

In a notebook each live figure contains its script. On the site, all pages with live figures of the
same mode load one script file instead.
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
        """Return a node with the HTML of the figure."""
        return [nodes.raw("", home_figure().html(), format="html")]


def home_figure() -> LiveFigure:
    """Return a small live version of the figure on the home page, in which two fits compete."""
    X, y = vertical_classes(16)[:2]
    is_upper = (X[:, 1] > 0).astype(int)
    X = X - np.outer(2 * is_upper - 1, [0, 6])
    return LiveFigure(
        X, mode="rivals", title="Who belongs with whom?", task=TASK, starts=[y, is_upper],
        words=["upright", "level"], name="home",
    )  # fmt: skip


def share_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Replace the scripts of live figures in a page by links to one file per mode."""
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
