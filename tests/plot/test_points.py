"""Test scatter plots and comparisons of panels."""

import numpy as np
from drawings import TWO, draw_points, filled_areas, vertices
from matplotlib.colors import to_rgb, to_rgba

from cgmm import plot


def test_scatter_draws_every_point_once_in_the_style_of_its_class():
    X, labels = draw_points(), np.arange(30) % 4 - 1
    ax = plot.scatter(X, labels)
    for k, marks in zip(range(-1, 3), ax.collections, strict=True):
        np.testing.assert_array_equal(marks.get_offsets(), X[labels == k])
    hollow, *full = ax.collections
    assert len(hollow.get_facecolors()) == 0
    np.testing.assert_allclose(hollow.get_edgecolors(), [to_rgba(plot.NEUTRAL)])
    for k, marks in enumerate(full):
        np.testing.assert_allclose(marks.get_facecolors(), [to_rgba(plot.COLOURS[k])])
    shapes = {marks.get_paths()[0].vertices.shape for marks in full}
    assert len(shapes) == 3
    assert ax.get_aspect() == 1


def test_scatter_mixes_the_colours_of_components_by_responsibility():
    r = np.array([[1.0, 0.0], [0.75, 0.25], [0.0, 1.0]])
    first, second = plot.scatter(draw_points(3), responsibilities=r).collections
    blue, orange = np.array([to_rgb(c) for c in plot.COLOURS[:2]])
    np.testing.assert_allclose(
        first.get_facecolors()[:, :3], [blue, 0.75 * blue + 0.25 * orange], atol=1e-9
    )
    np.testing.assert_allclose(second.get_facecolors()[:, :3], [orange])


def panels() -> dict:
    """Return four panels with different limits, one of which has a background."""
    near, far = draw_points(), draw_points() + np.array([20, 5])
    return {
        "Regions reach to the edges, in a title that is too long for one line": lambda ax: (
            plot.boundary(TWO, plot.scatter(near, ax=ax))
        ),
        "Points far away": lambda ax: plot.scatter(far, ax=ax),
        "All": lambda ax: plot.scatter(np.vstack([near, far]), ax=ax),
        "Again": lambda ax: plot.scatter(near, ax=ax),
    }


def test_compared_panels_share_limits_that_contain_all_points():
    """The background of the first panel reaches the common limits."""
    axes = plot.compare(panels())
    assert len(axes) == len(axes[0].figure.axes) == 4
    ((x, y),) = {(ax.get_xlim(), ax.get_ylim()) for ax in axes}
    alone = plot.scatter(np.vstack([draw_points(), draw_points() + np.array([20, 5])]))
    np.testing.assert_allclose(x, alone.get_xlim(), rtol=0.2)
    area = np.concatenate([vertices(part) for part in filled_areas(axes[0])])
    np.testing.assert_allclose([area.min(axis=0), area.max(axis=0)], np.transpose([x, y]))
