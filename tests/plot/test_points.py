"""Points are drawn once each, where they are and in the look of their class."""

from __future__ import annotations

import numpy as np
import pytest
from drawings import points
from matplotlib.colors import to_rgb, to_rgba

from cgmm import plot


def test_scatter_draws_every_point_once_in_its_class_look():
    X, labels = points(), np.arange(30) % 4 - 1
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


def test_scatter_mixes_colours_by_responsibility():
    r = np.array([[1.0, 0.0], [0.75, 0.25], [0.0, 1.0]])
    first, second = plot.scatter(points(3), responsibilities=r).collections
    blue, orange = np.array([to_rgb(c) for c in plot.COLOURS[:2]])
    np.testing.assert_allclose(
        first.get_facecolors()[:, :3], [blue, 0.75 * blue + 0.25 * orange], atol=1e-9
    )
    np.testing.assert_allclose(second.get_facecolors()[:, :3], [orange])


def test_scatter_names_its_classes():
    ax = plot.scatter(points(), np.arange(30) % 2, names=["setosa", "virginica"])
    assert [text.get_text() for text in ax.texts] == ["setosa", "virginica"]
    assert [text.get_color() for text in ax.texts] == [plot.colour(k, text=True) for k in range(2)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.zeros((3, 4))}, r"shape \(3, 4\)"),
        ({"X": np.zeros((0, 2))}, r"shape \(0, 2\)"),
        ({"X": [[0, 0], [np.nan, 1]]}, r"X\[1\] is not finite"),
        ({"labels": [0, 1]}, r"labels has shape \(2,\)"),
        ({"labels": [0.5, 1, 1]}, r"labels\[0\] is 0.5"),
        ({"labels": [0, -2, 1]}, r"labels\[1\] is -2; .* or -1 for unknown"),
        ({"responsibilities": [[1, 0], [0.5, 0.4], [0, 1]]}, r"responsibilities\[1\]"),
        ({"responsibilities": [[1, 0], [1.5, -0.5], [0, 1]]}, r"responsibilities\[1\]"),
        ({"responsibilities": [1, 0, 1]}, r"\(3, K\)"),
        ({"labels": [0, 0, 1], "responsibilities": np.ones((3, 1))}, "give one"),
    ],
)
def test_scatter_refuses_what_it_cannot_draw(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot.scatter(**{"X": np.zeros((3, 2)), **arguments})
