"""Panels side by side, with the same axes and different contents.

All panels share their limits, so sizes can be compared between them. All chapters use them.
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
    """Draw small multiples that share their axes, each under a descriptive title.

    Parameters
    ----------
    panels : mapping from str to callable
        Title, which is wrapped unless it has line breaks, and a function that draws on the axes
        given to it. Each function is called twice, the first time to find common limits.
    n_columns : int, optional
        Panels in a row; up to three by default.
    height : float, optional
        Height of the whole figure in inches; by default it follows from the shape of the panels.

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
    """Return limits of x and y that contain all panels, and True if scales must be equal."""
    trials = []
    for draw in draws:
        trials.append(Figure().add_subplot())
        draw(trials[-1])
    limits = np.array([[ax.get_xlim(), ax.get_ylim()] for ax in trials])
    joint = np.stack([limits[..., 0].min(axis=0), limits[..., 1].max(axis=0)], axis=1)
    return joint, any(ax.get_aspect() == 1 for ax in trials)


def _panel_height(limits: FloatArray, equal: bool, width: float, titles: Iterable[str]) -> float:
    """Return the height of a row in inches, for the shape of the data, titles and tick labels."""
    lines = max(wrap_title(title, width).count("\n") + 1 for title in titles)
    x, y = np.diff(limits, axis=1).ravel()
    panel = np.clip((width - 0.3) * y / x, 1.2, 5.5) if equal else 2.2
    return float(panel + 0.23 * lines + 0.4)


def wrap_title(title: str, width: float) -> str:
    """Wrap a title into the fewest lines that fit the width in inches, of nearly equal length.

    Line breaks in a title are kept, since equal scales may make a panel narrower than its width.
    """
    if "\n" in title:
        return title
    title = " ".join(title.split())
    size = STYLE["axes.titlesize"]
    letter = TextPath((0, 0), title, size=size).get_extents().width / 72 / len(title)
    most = max(int((width - 0.5) / letter), 10)
    n_lines = len(textwrap.wrap(title, most))
    # The narrowest width with the same number of lines makes them nearly equally long.
    widths = range(len(title) // n_lines, most + 1)
    wrapped = (textwrap.wrap(title, letters) for letters in widths)
    return "\n".join(next(lines for lines in wrapped if len(lines) <= n_lines))
