"""Panels side by side: the same axes, different things on them. All chapters.

Panels have one pair of limits that holds all of them, so that what looks larger is larger.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from cgmm.numerics import FloatArray
from cgmm.plot.style import PAGE_WIDTH, STYLE


def compare(
    panels: Mapping[str, Callable[[Axes], object]],
    *,
    n_columns: int | None = None,
    height: float | None = None,
) -> list[Axes]:
    """Draw small multiples that share their axes, each under a title that says what it shows.

    Parameters
    ----------
    panels : mapping from str to callable
        Title, wrapped where it does not come in lines, and a function that draws on the axes handed
        to it. Each function is called twice: the first time to find limits that hold all panels.
    n_columns : int, optional
        Panels in a row; up to three by default.
    height : float, optional
        Of the whole figure, in inches; by default what the panels' shape needs.

    Returns
    -------
    list of Axes
        In the order of the panels; their figure is ``axes[0].figure``.

    Raises
    ------
    ValueError
        If there is no panel, or one without a title.

    Examples
    --------
    >>> from cgmm.plot import scatter
    >>> X = np.array([[0.0, 0.0], [4.0, 3.0]])
    >>> left, right = compare({
    ...     "Before": lambda ax: scatter(X, ax=ax),
    ...     "After, both are known": lambda ax: scatter(X, [0, 1], ax=ax),
    ... })
    >>> right.get_title(loc="left"), left.get_xlim() == right.get_xlim()
    ('After, both are known', True)
    """
    if not panels or not all(title.strip() for title in panels):
        raise ValueError(
            f"panels with the titles {list(panels)}: give at least one, each with a title that "
            "says what it shows"
        )
    limits, equal = _joint_limits(panels.values())
    columns = n_columns or min(len(panels), 3)
    rows = -(-len(panels) // columns)
    height = height or rows * _panel_height(limits, equal, PAGE_WIDTH / columns, panels)
    size: dict[str, Any] = {
        "figsize": (PAGE_WIDTH, height),
        "layout": "compressed" if equal else "constrained",
    }
    _, grid = plt.subplots(rows, columns, sharex=True, sharey=True, squeeze=False, **size)
    axes = list(grid.flat)
    axes[0].set(xlim=limits[0], ylim=limits[1])
    for ax, (title, draw) in zip(axes, panels.items(), strict=False):
        draw(ax)
        ax.set_title(wrap_title(title, PAGE_WIDTH / columns), loc="left")
        ax.label_outer()
    for ax in axes[len(panels) :]:
        ax.remove()
    return axes[: len(panels)]


def _joint_limits(draws: Iterable[Callable[[Axes], object]]) -> tuple[FloatArray, bool]:
    """Limits of x and y that hold every panel, and whether the scales must be equal."""
    trials = []
    for draw in draws:
        trials.append(Figure().add_subplot())
        draw(trials[-1])
    limits = np.array([[ax.get_xlim(), ax.get_ylim()] for ax in trials])
    joint = np.stack([limits[..., 0].min(axis=0), limits[..., 1].max(axis=0)], axis=1)
    return joint, any(ax.get_aspect() == 1 for ax in trials)


def _panel_height(limits: FloatArray, equal: bool, width: float, titles: Iterable[str]) -> float:
    """Height of a row of panels in inches: the data's shape, the titles' lines, the tick labels."""
    lines = max(wrap_title(title, width).count("\n") + 1 for title in titles)
    x, y = np.diff(limits, axis=1).ravel()
    panel = np.clip((width - 0.3) * y / x, 1.2, 5.5) if equal else 2.2
    return float(panel + 0.23 * lines + 0.4)


def wrap_title(title: str, width: float) -> str:
    """A title in as few lines as fit a panel of that width in inches, of about the same length.

    One that comes in lines keeps them: equal scales may leave a panel narrower than its share.
    """
    if "\n" in title:
        return title
    title = " ".join(title.split())
    size = STYLE["axes.titlesize"]
    letter = TextPath((0, 0), title, size=size).get_extents().width / 72 / len(title)
    most = max(int((width - 0.5) / letter), 10)
    n_lines = len(textwrap.wrap(title, most))
    # The narrowest width that needs no more lines makes them equally long, or nearly.
    widths = range(len(title) // n_lines, most + 1)
    wrapped = (textwrap.wrap(title, letters) for letters in widths)
    return "\n".join(next(lines for lines in wrapped if len(lines) <= n_lines))
