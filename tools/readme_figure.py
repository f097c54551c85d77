"""Draw the figure of the README, book/_static/readme.png, and of the book's first page, front.svg.

    python tools/readme_figure.py

The same points three times: as they arrive, as they were meant, and as the likelihood cuts them.
"""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pages import BOOK

from cgmm import ConstrainedGaussianMixture, plot
from cgmm.datasets import vertical_classes

TARGET = BOOK / "_static" / "readme.png"


def draw() -> Figure:
    """The points, the upright solution and the level one, in three panels of one scale."""
    X, y, *_ = vertical_classes()
    best = ConstrainedGaussianMixture(n_components=2, n_init=10, random_state=0).fit(X)
    # From the middles of the upright classes EM finds the upright solution, also a maximum.
    middles = [X[y == k].mean(axis=0) for k in np.unique(y)]
    meant = ConstrainedGaussianMixture(n_components=2, means_init=middles).fit(X)
    figure, axes = plt.subplots(1, 3, figsize=(plot.PAGE_WIDTH, 4.5), sharex=True, sharey=True)
    plot.scatter(X, ax=axes[0], size=12)
    axes[0].set_title("What arrives:\n600 points")
    _show(axes[1], X, meant, "What was meant:")
    _show(axes[2], X, best, "What is most likely:")
    axes[0].set(xlim=(-9, 9), ylim=(-15, 15), xticks=[-5, 0, 5])
    return figure


def _show(ax: Axes, X: np.ndarray, model: ConstrainedGaussianMixture, title: str) -> None:
    """The points in the colours of a fitted mixture, its components, its log-likelihood."""
    plot.scatter(X, model.labels_, ax=ax, size=12)
    theta = model.parameters_
    plot.ellipses(theta, ax, n_std=[1], names=())
    ax.set_title(f"{title}\nlog-likelihood \N{MINUS SIGN}{-model.log_evidence_:.0f}")


if __name__ == "__main__":
    mpl.use("Agg")
    plot.use_style()
    figure = draw()
    TARGET.write_bytes(plot.png(figure))
    TARGET.with_name("front.svg").write_text(str(plot.svg(figure)), encoding="utf8")
