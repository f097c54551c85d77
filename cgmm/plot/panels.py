"""Draw several panels side by side, with common limits of their axes.

All chapters use ``compare``. Because panels have the same limits, readers can compare sizes between
them.
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
    """Draw panels with common limits of their axes, each below a descriptive title.

    Parameters
    ----------
    panels : mapping from str to callable
        Titles, and functions that draw on given axes. Titles are wrapped unless they contain line
        breaks. Each function is called twice, the first time to find common limits.
    n_columns : int, optional
        Number of panels in a row; at most three by default.
    height : float, optional
        Height of the whole figure in inches; by default it follows from the shape of the panels.

    Returns
    -------
    list of Axes
        Axes of the panels, in the same order; their figure is ``axes[0].figure``.

    Raises
    ------
    ValueError
        If there is no panel, or a panel has no title.

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
    limits, is_equal = _compute_common_limits(panels.values())
    columns = n_columns or min(len(panels), 3)
    rows = -(-len(panels) // columns)
    height = height or rows * _compute_row_height(limits, is_equal, PAGE_WIDTH / columns, panels)
    size: dict[str, Any] = {
        "figsize": (PAGE_WIDTH, height),
        "layout": "compressed" if is_equal else "constrained",
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


def _compute_common_limits(draws: Iterable[Callable[[Axes], object]]) -> tuple[FloatArray, bool]:
    """Return limits of x and y that contain all panels, and True if a panel has equal scales."""
    drafts = []
    for draw in draws:
        drafts.append(Figure().add_subplot())
        draw(drafts[-1])
    limits = np.array([[ax.get_xlim(), ax.get_ylim()] for ax in drafts])
    common = np.stack([limits[..., 0].min(axis=0), limits[..., 1].max(axis=0)], axis=1)
    return common, any(ax.get_aspect() == 1 for ax in drafts)


def _compute_row_height(
    limits: FloatArray, is_equal: bool, width: float, titles: Iterable[str]
) -> float:
    """Return the height of a row of panels in inches, including titles and tick labels."""
    lines = max(wrap_title(title, width).count("\n") + 1 for title in titles)
    x, y = np.diff(limits, axis=1).ravel()
    panel = np.clip((width - 0.3) * y / x, 1.2, 5.5) if is_equal else 2.2
    return float(panel + 0.23 * lines + 0.4)


def wrap_title(title: str, width: float) -> str:
    """Wrap a title to a width in inches, into as few lines as possible of nearly equal length.

    Titles with line breaks are not changed: equal scales may make a panel narrower than its column,
    so the author may need to break lines by hand.
    """
    if "\n" in title:
        return title
    title = " ".join(title.split())
    size = STYLE["axes.titlesize"]
    letter_width = TextPath((0, 0), title, size=size).get_extents().width / 72 / len(title)
    max_letters = max(int((width - 0.5) / letter_width), 10)
    n_lines = len(textwrap.wrap(title, max_letters))
    # The narrowest width that needs no additional line makes the lengths of lines nearly equal.
    widths = range(len(title) // n_lines, max_letters + 1)
    wrapped = (textwrap.wrap(title, letters) for letters in widths)
    return "\n".join(next(lines for lines in wrapped if len(lines) <= n_lines))
