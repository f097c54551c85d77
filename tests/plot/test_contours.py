"""Test that ellipses, contours and boundaries agree with the mixture."""

import itertools

import numpy as np
import pytest
from drawings import ONE, THREE, TWO, contour_lines, filled_areas, mahalanobis, points, vertices
from matplotlib.colors import to_rgba

from cgmm import plot
from cgmm.mixture import log_density

# ---------------------------------------------------------------------------- ellipses


def test_all_points_of_an_ellipse_have_the_given_mahalanobis_distance():
    ax = plot.ellipses(TWO, n_std=(1, 2))
    for patch, (k, n) in zip(ax.patches, itertools.product(range(2), (1, 2)), strict=True):
        outline = patch.get_patch_transform().transform(patch.get_path().vertices)
        # The outline is a Bézier curve, of whose control points every third lies on it.
        on_it = outline[:-1:3] if len(outline) % 3 == 2 else outline[::3]
        np.testing.assert_allclose(mahalanobis(on_it, TWO, k), n, rtol=1e-3)
        assert patch.get_edgecolor() == to_rgba(plot.COLOURS[k])


def test_ellipses_mark_means_and_name_components():
    ax = plot.ellipses(TWO)
    np.testing.assert_array_equal([line.get_xydata()[0] for line in ax.lines], TWO.means)
    assert [text.get_text() for text in ax.texts] == ["component 0", "component 1"]
    # Each name touches its outer ellipse.
    for k, text in enumerate(ax.texts):
        assert mahalanobis(np.array([text.xy]), TWO, k) == pytest.approx(2)
    assert not plot.ellipses(TWO, names=()).texts
    assert plot.ellipses(TWO, names=["a", "b"]).texts[1].get_text() == "b"


# ---------------------------------------------------------------------------- densities


def test_density_of_one_component_has_its_ellipses_for_contours():
    (lines,) = contour_lines(plot.density(ONE, n_std=(1, 2, 3), resolution=400))
    for path, n in zip(lines.get_paths(), (3, 2, 1), strict=True):
        np.testing.assert_allclose(mahalanobis(path.vertices, ONE), n, rtol=2e-3)


def test_density_contours_lie_at_their_levels():
    (lines,) = contour_lines(plot.density(TWO, resolution=400))
    for path, level in zip(lines.get_paths(), lines.levels, strict=True):
        values = np.exp(log_density(path.vertices, TWO)) @ TWO.weights
        np.testing.assert_allclose(values, level, rtol=0.02)
    assert (np.diff(lines.levels) > 0).all()


@pytest.mark.parametrize("draw", [plot.density, plot.boundary])
def test_backgrounds_fill_the_limits_and_keep_them(draw):
    ax = plot.scatter(points())
    before = ax.get_xlim(), ax.get_ylim()
    draw(TWO, ax)
    assert (ax.get_xlim(), ax.get_ylim()) == before
    area = np.concatenate([vertices(part) for part in filled_areas(ax)])
    if draw is plot.boundary:
        np.testing.assert_allclose([area.min(axis=0), area.max(axis=0)], np.transpose(before))
    # Later points are not cut off.
    plot.scatter(np.array([[30.0, 0.0]]), ax=ax)
    assert ax.get_xlim()[1] > 30


def test_boundary_is_where_the_odds_are_even():
    ax = plot.boundary(TWO, plot.scatter(points()))
    (line,) = contour_lines(ax)
    scores = np.log(TWO.weights) + log_density(vertices(line), TWO)
    np.testing.assert_allclose(scores[:, 0], scores[:, 1], atol=5e-3)


def test_boundary_tints_the_region_of_each_component():
    ax = plot.boundary(THREE, plot.scatter(points()))
    regions = filled_areas(ax)
    assert len(regions) == 3
    for k, region in enumerate(regions):
        np.testing.assert_allclose(region.get_facecolor()[0, :3], plot.tint(plot.COLOURS[k]))
        inside = [path.contains_point(THREE.means[k]) for path in region.get_paths()]
        assert any(inside)
    # The edges of two of three regions are all edges.
    assert len(contour_lines(ax)) == 2


def test_boundary_of_scores_has_no_steps():
    def scores(X):
        return np.column_stack([X @ [1, 0.3], np.full(len(X), 0.123)])

    ax = plot.boundary(scores, plot.scatter(points()))
    line = np.concatenate([path.vertices for path in ax.collections[-1].get_paths()])
    assert len(line) > 20
    assert np.allclose(line @ [1, 0.3], 0.123)
