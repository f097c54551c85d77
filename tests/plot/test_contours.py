"""Test that ellipses, contours and boundaries agree with the mixture."""

import itertools

import numpy as np
import pytest
from drawings import (
    ONE,
    THREE,
    TWO,
    contour_lines,
    draw_points,
    filled_areas,
    mahalanobis,
    outline_points,
    vertices,
)
from matplotlib.colors import to_rgba

from cgmm import plot
from cgmm.mixture import log_density

# ---------------------------------------------------------------------------- ellipses


def test_points_of_an_ellipse_have_the_requested_mahalanobis_distance():
    ax = plot.ellipses(TWO, n_std=(1, 2))
    for patch, (k, n) in zip(ax.patches, itertools.product(range(2), (1, 2)), strict=True):
        np.testing.assert_allclose(mahalanobis(outline_points(patch), TWO, k), n, rtol=1e-3)
        assert patch.get_edgecolor() == to_rgba(plot.COLOURS[k])


def test_ellipses_mark_means_and_name_components():
    ax = plot.ellipses(TWO)
    np.testing.assert_array_equal([line.get_xydata()[0] for line in ax.lines], TWO.means)
    assert [text.get_text() for text in ax.texts] == ["component 0", "component 1"]
    # The line from each name ends on the outer ellipse.
    for k, text in enumerate(ax.texts):
        assert mahalanobis(np.array([text.xy]), TWO, k) == pytest.approx(2)
    assert not plot.ellipses(TWO, names=()).texts
    assert plot.ellipses(TWO, names=["a", "b"]).texts[1].get_text() == "b"


# ---------------------------------------------------------------------------- densities


def test_density_contours_of_one_component_are_its_ellipses():
    (lines,) = contour_lines(plot.density(ONE, n_std=(1, 2, 3), resolution=400))
    for path, n in zip(lines.get_paths(), (3, 2, 1), strict=True):
        np.testing.assert_allclose(mahalanobis(path.vertices, ONE), n, rtol=2e-3)


def test_the_density_on_each_contour_equals_its_level():
    (lines,) = contour_lines(plot.density(TWO, resolution=400))
    for path, level in zip(lines.get_paths(), lines.levels, strict=True):
        values = np.exp(log_density(path.vertices, TWO)) @ TWO.weights
        np.testing.assert_allclose(values, level, rtol=0.02)
    assert (np.diff(lines.levels) > 0).all()


@pytest.mark.parametrize("draw", [plot.density, plot.boundary])
def test_density_and_boundary_fill_the_axes_and_keep_their_limits(draw):
    ax = plot.scatter(draw_points())
    before = ax.get_xlim(), ax.get_ylim()
    draw(TWO, ax)
    assert (ax.get_xlim(), ax.get_ylim()) == before
    area = np.concatenate([vertices(part) for part in filled_areas(ax)])
    if draw is plot.boundary:
        np.testing.assert_allclose([area.min(axis=0), area.max(axis=0)], np.transpose(before))
    # Points that are drawn later can still extend the limits.
    plot.scatter(np.array([[30.0, 0.0]]), ax=ax)
    assert ax.get_xlim()[1] > 30


def test_boundary_is_where_two_components_are_equally_probable():
    ax = plot.boundary(TWO, plot.scatter(draw_points()))
    (line,) = contour_lines(ax)
    scores = np.log(TWO.weights) + log_density(vertices(line), TWO)
    np.testing.assert_allclose(scores[:, 0], scores[:, 1], atol=5e-3)


def test_boundary_tints_the_region_of_each_component():
    ax = plot.boundary(THREE, plot.scatter(draw_points()))
    regions = filled_areas(ax)
    assert len(regions) == 3
    for k, region in enumerate(regions):
        np.testing.assert_allclose(region.get_facecolor()[0, :3], plot.tint(plot.COLOURS[k]))
        inside = [path.contains_point(THREE.means[k]) for path in region.get_paths()]
        assert any(inside)
    # Two lines suffice for the boundaries between three regions.
    assert len(contour_lines(ax)) == 2


def test_boundary_of_a_linear_score_function_is_a_smooth_line():
    def scores(X):
        return np.column_stack([X @ [1, 0.3], np.full(len(X), 0.123)])

    ax = plot.boundary(scores, plot.scatter(draw_points()))
    line = np.concatenate([path.vertices for path in ax.collections[-1].get_paths()])
    assert len(line) > 20
    assert np.allclose(line @ [1, 0.3], 0.123)
