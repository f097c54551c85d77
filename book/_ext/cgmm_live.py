"""The live figure of the home page, made while the book is built: it cannot be out of date."""

from __future__ import annotations

import numpy as np
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from cgmm.datasets import vertical_classes
from cgmm.explore import LiveFigure

TASK = (
    "Two upright classes were meant; the likelihood prefers two level ones. Click an upper point, "
    "then a lower one of the same class: they belong together. How many such pairs does it take?"
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("live-home", LiveHome)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class LiveHome(SphinxDirective):
    """The question of the book, under the reader's hand."""

    def run(self) -> list[nodes.Node]:
        """Put the figure where the directive stands."""
        return [nodes.raw("", home_figure().html(), format="html")]


def home_figure() -> LiveFigure:
    """A small version of the front figure, with the upright and the level fit as rivals."""
    X, y = vertical_classes(16)[:2]
    level = (X[:, 1] > 0).astype(int)
    X = X - np.outer(2 * level - 1, [0, 6])
    return LiveFigure(
        X, mode="rivals", title="Who belongs with whom?", task=TASK, starts=[y, level],
        words=["upright", "level"], name="home",
    )  # fmt: skip
