"""Compared panels share limits that hold everything, below titles that fit."""

from __future__ import annotations

import numpy as np
import pytest
from drawings import TWO, filled_areas, points, vertices

from cgmm import plot


def panels() -> dict:
    near, far = points(), points() + np.array([20, 5])
    return {
        "Regions reach to the edges, in a title that is too long for one line": lambda ax: (
            plot.boundary(TWO, plot.scatter(near, ax=ax))
        ),
        "Points far away": lambda ax: plot.scatter(far, ax=ax),
        "All": lambda ax: plot.scatter(np.vstack([near, far]), ax=ax),
        "Again": lambda ax: plot.scatter(near, ax=ax),
    }


def test_compared_panels_share_limits_that_hold_everything():
    axes = plot.compare(panels())
    assert len(axes) == len(axes[0].figure.axes) == 4
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in axes}) == 1
    alone = plot.scatter(np.vstack([points(), points() + np.array([20, 5])]))
    np.testing.assert_allclose(axes[0].get_xlim(), alone.get_xlim(), rtol=0.2)


def test_a_background_fills_its_whole_panel():
    ax = plot.compare(panels())[0]
    area = np.concatenate([vertices(part) for part in filled_areas(ax)])
    np.testing.assert_allclose(
        [area.min(axis=0), area.max(axis=0)], np.transpose([ax.get_xlim(), ax.get_ylim()])
    )


@pytest.mark.parametrize("n_columns", [1, 3])
def test_titles_stay_within_their_panels(n_columns):
    axes = plot.compare(panels(), n_columns=n_columns)
    figure = axes[0].figure
    figure.canvas.draw()
    width, height = figure.bbox.width, figure.bbox.height
    columns = np.linspace(0, width, min(n_columns, 4) + 1)
    for i, ax in enumerate(axes):
        title = ax._left_title
        assert " ".join(title.get_text().split()) == list(panels())[i]
        box = title.get_window_extent()
        assert box.x1 <= columns[i % n_columns + 1] + 2
        assert box.y1 <= height + 1
        assert ax.get_window_extent().y0 >= 0


def test_a_title_in_lines_keeps_them():
    (ax,) = plot.compare({"Two\nlines": lambda ax: plot.scatter(points(), ax=ax)})
    assert ax.get_title(loc="left") == "Two\nlines"


@pytest.mark.parametrize("wrong", [{}, {" ": print}])
def test_compare_wants_titles(wrong):
    with pytest.raises(ValueError, match="a title that says"):
        plot.compare(wrong)
