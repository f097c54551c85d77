"""Figures are tested by what they are made of: places, shapes, levels, colours and words."""

from __future__ import annotations

import base64
import io
import itertools

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure
from nbclient import NotebookClient

from cgmm import plot
from cgmm.mixture import Parameters, log_density

# ---------------------------------------------------------------------------- colour science

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
# The filter that the book's pages lay over figures in the dark: invert, then turn the hues back.
HUE_ROTATION = np.array(
    [
        [-0.574, 1.430, 0.144],
        [0.426, 0.430, 0.144],
        [0.426, 1.430, -0.856],
    ]
)


def rgb(colours) -> np.ndarray:
    return np.array([to_rgb(c) for c in colours])


def linear(srgb: np.ndarray) -> np.ndarray:
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def lab(linear_rgb: np.ndarray) -> np.ndarray:
    xyz = linear_rgb @ XYZ.T / XYZ.sum(axis=1)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    x, y, z = f.T
    return np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def seen(colours, deficiency: str) -> np.ndarray:
    """L*a*b* of colours as an eye of that kind sees them."""
    return lab(np.clip(linear(rgb(colours)) @ np.array(DEFICIENCIES[deficiency]).T, 0, 1))


def distances(points: np.ndarray) -> np.ndarray:
    pairs = itertools.combinations(points, 2)
    return np.array([np.linalg.norm(a - b) for a, b in pairs])


def contrasts(colours, background: str) -> np.ndarray:
    """Contrast ratios as the WCAG define them."""
    luminance = linear(rgb(colours)) @ XYZ[1] + 0.05
    paper = linear(rgb([background])) @ XYZ[1] + 0.05
    return np.maximum(luminance / paper, paper / luminance)


def at_night(colours) -> list[str]:
    inverted = 0.93 - rgb(colours) * 0.86
    return [to_hex(c) for c in np.clip(inverted @ HUE_ROTATION.T, 0, 1)]


def test_the_colour_science_reproduces_known_values():
    np.testing.assert_allclose(lab(linear(rgb(["#ffffff"]))), [[100, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(lab(linear(rgb(["#ff0000"]))), [[53.24, 80.09, 67.20]], atol=0.02)
    assert contrasts(["#000000"], "#ffffff") == pytest.approx(21)
    assert contrasts(["#777777"], "#ffffff") == pytest.approx(4.48, abs=0.01)
    # A simulated eye sees greys unchanged.
    for deficiency in DEFICIENCIES:
        np.testing.assert_allclose(seen(["#808080"], deficiency)[:, 1:], 0, atol=0.1)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_are_apart_for_every_eye(deficiency):
    assert distances(seen(plot.COLOURS[:4], deficiency)).min() > 20
    assert distances(seen(plot.COLOURS, deficiency)).min() > 14


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_are_apart_at_night(deficiency):
    assert distances(seen(at_night(plot.COLOURS[:4]), deficiency)).min() > 20
    assert distances(seen(at_night(plot.COLOURS), deficiency)).min() > 14


def test_the_first_four_colours_step_in_grey():
    lightness = np.sort(seen(plot.COLOURS[:4], "none")[:, 0])
    assert np.diff(lightness).min() > 12


def test_marks_and_text_stand_out_by_day_and_by_night():
    marks = [*plot.COLOURS, plot.NEUTRAL]
    texts = [*plot.TEXT_COLOURS, plot.MUTED, plot.INK]
    night = at_night([plot.BACKGROUND])[0]
    assert contrasts(marks, plot.BACKGROUND).min() >= 3
    assert contrasts(texts, plot.BACKGROUND).min() >= 4.5
    assert contrasts(at_night(marks), night).min() >= 3
    assert contrasts(at_night(texts), night).min() >= 4.5


def test_mixed_colours_stand_out_too():
    rng = np.random.default_rng(0)
    mixed = plot._blend(rng.dirichlet(np.full(8, 0.3), size=500))
    assert contrasts(mixed, plot.BACKGROUND).min() >= 3


def test_text_has_the_hue_of_its_component():
    for k in range(8):
        mark, text = seen([plot.colour(k), plot.colour(k, text=True)], "none")
        angles = np.arctan2([mark[2], text[2]], [mark[1], text[1]])
        assert abs(np.angle(np.exp(1j * (angles[0] - angles[1])))) < 0.25


def test_colour_is_never_alone():
    looks = [(plot.colour(k), plot.marker(k)) for k in range(72)]
    assert len(set(looks)) == 72
    assert len({plot.marker(k) for k in range(8)}) == 8
    assert len({plot.line_style(k) for k in range(5)}) == 5


# ---------------------------------------------------------------------------- style


@pytest.fixture(autouse=True)
def _style():
    with plt.rc_context():
        plot.use_style()
        yield
    plt.close("all")


def test_letters_are_legible_on_the_page_and_on_a_telephone():
    points = min(
        plt.rcParams[f"{part}.labelsize"] if "tick" in part else plt.rcParams["font.size"]
        for part in ("xtick", "ytick", "font")
    )
    inches = points / 72 / plot.PAGE_WIDTH
    assert inches * 720 > 14
    assert inches * 358 > 7.5


def test_png_is_the_same_twice_and_says_nothing_of_its_maker():
    def draw():
        return plot.scatter(np.eye(2), [0, 1]).figure

    first, second = plot.png(draw()), plot.png(draw())
    assert first == second
    assert b"Software" not in first
    assert b"tEXt" not in first


def test_figures_are_as_wide_as_the_page():
    pixels = plt.imread(io.BytesIO(plot.png(plt.figure())))
    assert pixels.shape[:2] == (576, 1152)
    np.testing.assert_allclose(pixels[0, 0, :3], to_rgb(plot.BACKGROUND), atol=1 / 255)


def test_inline_figures_are_whole_and_without_metadata():
    code = """
from cgmm import plot
plot.use_style()
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.show()
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    (output,) = notebook.cells[0].outputs
    png = base64.b64decode(output.data["image/png"])
    assert b"Software" not in png
    assert tuple(np.frombuffer(png[16:24], ">u4")) == (1152, 576)


# ---------------------------------------------------------------------------- helpers

TILTED = np.array([[2.0, 0.9], [0.9, 0.8]])
ONE = Parameters(np.ones(1), np.array([[1.0, -2.0]]), TILTED[None])
TWO = Parameters(
    np.array([0.3, 0.7]),
    np.array([[-2.0, 0.0], [2.0, 1.0]]),
    np.array([TILTED, [[0.5, -0.2], [-0.2, 1.0]]]),
)
THREE = Parameters(
    np.array([0.3, 0.3, 0.4]),
    np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]]),
    np.repeat(np.eye(2)[None], 3, axis=0),
)


def points(n: int = 30) -> np.ndarray:
    return np.random.default_rng(1).normal(0, 2, (n, 2))


def mahalanobis(x: np.ndarray, parameters: Parameters, k: int = 0) -> np.ndarray:
    apart = x - parameters.means[k]
    return np.sqrt((apart @ np.linalg.inv(parameters.covariances[k]) * apart).sum(axis=1))


def vertices(collection) -> np.ndarray:
    return np.concatenate([path.vertices for path in collection.get_paths() if len(path.vertices)])


def contour_lines(ax) -> list:
    return [c for c in ax.collections if hasattr(c, "levels") and not c.filled]


def filled_areas(ax) -> list:
    return [c for c in ax.collections if hasattr(c, "levels") and c.filled]


# ---------------------------------------------------------------------------- scatter


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


def test_scatter_without_labels_is_neutral():
    (marks,) = plot.scatter(points()).collections
    np.testing.assert_allclose(marks.get_edgecolors(), [to_rgba(plot.NEUTRAL)])


def test_scatter_mixes_colours_by_responsibility():
    r = np.array([[1.0, 0.0], [0.75, 0.25], [0.0, 1.0]])
    first, second = plot.scatter(points(3), responsibilities=r).collections
    blue, orange = rgb(plot.COLOURS[:2])
    np.testing.assert_allclose(
        first.get_facecolors()[:, :3], [blue, 0.75 * blue + 0.25 * orange], atol=1e-9
    )
    np.testing.assert_allclose(second.get_facecolors()[:, :3], [orange])


def test_scatter_names_its_classes():
    ax = plot.scatter(points(), np.arange(30) % 2, names=["setosa", "virginica"])
    assert [text.get_text() for text in ax.texts] == ["setosa", "virginica"]
    assert [text.get_color() for text in ax.texts] == list(plot.TEXT_COLOURS[:2])


def test_scatter_draws_where_it_is_told():
    figure = Figure()
    ax = figure.add_subplot()
    assert plot.scatter(points(), ax=ax) is ax


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.zeros((3, 4))}, r"shape \(3, 4\)"),
        ({"X": np.zeros((0, 2))}, r"shape \(0, 2\)"),
        ({"X": [[0, 0], [np.nan, 1]]}, r"X\[1\] is not finite"),
        ({"labels": [0, 1]}, r"labels have the shape \(2,\)"),
        ({"labels": [0.5, 1, 1]}, "float64"),
        ({"labels": [0, -2, 1]}, "-1 for a point without a label"),
        ({"responsibilities": [[1, 0], [0.5, 0.4], [0, 1]]}, r"responsibilities\[1\]"),
        ({"responsibilities": [[1, 0], [1.5, -0.5], [0, 1]]}, r"responsibilities\[1\]"),
        ({"responsibilities": [1, 0, 1]}, r"\(3, K\)"),
        ({"labels": [0, 0, 1], "responsibilities": np.ones((3, 1))}, "give one"),
    ],
)
def test_scatter_refuses_what_it_cannot_draw(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot.scatter(**{"X": np.zeros((3, 2)), **arguments})


# ---------------------------------------------------------------------------- ellipses


def test_ellipse_axes_are_the_eigenvalues():
    ax = plot.ellipses(TWO, n_std=(1, 2.5))
    sizes = [np.sqrt(np.linalg.eigvalsh(c)) for c in TWO.covariances]
    for patch, (size, n) in zip(ax.patches, itertools.product(sizes, (1, 2.5)), strict=True):
        np.testing.assert_allclose([patch.height, patch.width], 2 * n * size)


def test_every_point_of_an_ellipse_has_its_distance():
    ax = plot.ellipses(TWO, n_std=(1, 2))
    for patch, (k, n) in zip(ax.patches, itertools.product(range(2), (1, 2)), strict=True):
        outline = patch.get_patch_transform().transform(patch.get_path().vertices)
        # The outline is a Bézier curve: its first control point of every three lies on it.
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


def test_ellipses_fit_into_the_axes():
    ax = plot.ellipses(TWO)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    for patch in ax.patches:
        box = patch.get_extents().transformed(ax.transData.inverted())
        assert left <= box.x0 < box.x1 <= right
        assert bottom <= box.y0 < box.y1 <= top


def test_many_components_have_short_names():
    many = Parameters(np.full(6, 1 / 6), points(6), np.repeat(np.eye(2)[None], 6, axis=0))
    assert [text.get_text() for text in plot.ellipses(many).texts] == list("012345")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameters": Parameters(*(part[..., :1] for part in TWO))}, r"\(2, 1\)"),
        ({"parameters": TWO._replace(covariances=-TWO.covariances)}, "component 0 is not positive"),
        ({"n_std": ()}, "at least one"),
        ({"n_std": (0, 1)}, "positive"),
        ({"names": ["a"]}, "1 names for 2 components"),
    ],
)
def test_ellipses_refuse_what_they_cannot_draw(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot.ellipses(**{"parameters": TWO, **arguments})


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


def test_backgrounds_on_empty_axes_show_the_components():
    for draw in (plot.density, plot.boundary):
        ax = draw(TWO)
        assert ax.get_xlim()[0] <= -2 - 3 * np.sqrt(2)
        assert ax.get_ylim()[1] >= 1 + 3


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
    # Two of three regions' edges are all edges.
    assert len(contour_lines(ax)) == 2


def test_boundary_of_a_function():
    ax = plot.boundary(lambda X: (X[:, 0] > 0.5).astype(int), plot.scatter(points()))
    (line,) = contour_lines(ax)
    np.testing.assert_allclose(vertices(line)[:, 0], 0.5, atol=0.03)


def test_boundary_with_an_impossible_component():
    dead = THREE._replace(weights=np.array([0.5, 0.5, 0.0]))
    ax = plot.boundary(dead, plot.scatter(points()))
    assert len(filled_areas(ax)) == 2
    (line,) = contour_lines(ax)
    np.testing.assert_allclose(vertices(line)[:, 0], 0, atol=1e-6)


def test_boundary_refuses_what_it_cannot_draw():
    with pytest.raises(ValueError, match="at least two"):
        plot.boundary(ONE)
    with pytest.raises(ValueError, match="draw the points first"):
        plot.boundary(lambda X: np.zeros(len(X), dtype=int))


# ---------------------------------------------------------------------------- curves

LINE = Parameters(
    np.array([0.2, 0.8]), np.array([[-3.0], [1.0]]), np.array([[[0.25]], [[1.0]]])
)  # fmt: skip


def test_density_1d_is_the_weighted_sum_of_its_components():
    total, *parts = plot.density_1d(LINE).lines
    x = total.get_xdata()
    for k, part in enumerate(parts):
        expected = LINE.weights[k] * np.exp(log_density(x[:, None], LINE)[:, k])
        np.testing.assert_allclose(part.get_ydata(), expected)
        assert np.trapezoid(part.get_ydata(), x) == pytest.approx(LINE.weights[k], rel=1e-3)
        assert part.get_color() == plot.COLOURS[k]
    np.testing.assert_allclose(total.get_ydata(), sum(part.get_ydata() for part in parts))


def test_density_1d_names_the_peaks():
    ax = plot.density_1d(LINE)
    places = {text.get_text(): text.xy[0] for text in ax.texts}
    assert places["component 0"] == -3
    assert places["component 1"] == 1
    assert places["mixture"] > 1
    assert not plot.density_1d(LINE, names=()).texts


def test_density_1d_shows_the_points_as_a_histogram():
    X = np.random.default_rng(0).normal(0, 1, 200)
    bars = plot.density_1d(LINE, X=X).patches
    assert sum(bar.get_width() * bar.get_height() for bar in bars) == pytest.approx(1)
    assert min(bar.get_x() for bar in bars) == pytest.approx(X.min())


def test_density_1d_refuses_the_plane():
    with pytest.raises(ValueError, match=r"\(K, 1\)"):
        plot.density_1d(TWO)


def test_trace_draws_and_labels_each_run():
    runs = {"good start": [-30.0, -20.0, -12.0], "bad k-means start": [-31.0, -25.5]}
    ax = plot.trace(runs)
    for line, run in zip(ax.lines, runs.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([range(len(run)), run]))
    words = [text.get_text() for text in ax.texts]
    assert words == [
        "good start: \N{MINUS SIGN}12.0",
        "bad k-means start: \N{MINUS SIGN}25.5",
    ]


def test_trace_of_one_run_needs_no_name():
    ax = plot.trace([-3.0, -2.5])
    assert [text.get_text() for text in ax.texts] == ["\N{MINUS SIGN}2.5"]
    assert ax.lines[0].get_color() == plot.INK


def test_labels_of_runs_that_end_together_stand_apart():
    ax = plot.trace({name: [-9.0, -5.0 + 0.01 * i] for i, name in enumerate("abcd")})
    heights = np.sort([text.xy[1] for text in ax.texts])
    low, high = ax.get_ylim()
    assert np.diff(heights).min() > 0.07 * (high - low)


@pytest.mark.parametrize("run", [[], [-1.0, np.nan], [-np.inf]])
def test_trace_refuses_what_it_cannot_draw(run):
    with pytest.raises(ValueError, match="'broken' is empty or not finite"):
        plot.trace({"fine": [1.0], "broken": run})


def test_dots_puts_a_number_to_each_method():
    ax = plot.dots({"K-means": 0.5, "EM": [0.8, 0.9]}, format="{:.1%}", highlight="EM")
    assert [text.get_text() for text in ax.texts] == ["50.0%", "85.0%"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["K-means", "EM"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    big = [line for line in ax.lines if line.get_markersize() == 9]
    np.testing.assert_allclose([line.get_xdata()[0] for line in big], [0.5, 0.85])
    assert [line.get_color() for line in big] == [plot.NEUTRAL, plot.COLOURS[0]]
    (small,) = [line for line in ax.lines if line.get_markersize() == 4]
    np.testing.assert_array_equal(small.get_xdata(), [0.8, 0.9])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": {}}, r"not among the methods \[\]"),
        ({"values": {"a": []}}, "'a'"),
        ({"values": {"a": np.nan}}, "'a'"),
        ({"values": {"a": 1.0}, "highlight": "b"}, "'b' is not among"),
    ],
)
def test_dots_refuses_what_it_cannot_draw(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot.dots(**arguments)


# ---------------------------------------------------------------------------- text and panels


def test_label_is_legible_above_marks():
    _, ax = plt.subplots()
    plot.label(ax, "outlier", (0.2, 0.4), 2, offset=(0, -5))
    (text,) = ax.texts
    assert (text.get_text(), text.xy, text.get_va()) == ("outlier", (0.2, 0.4), "top")
    assert text.get_color() == plot.TEXT_COLOURS[2]
    (halo,) = text.get_path_effects()
    assert halo._gc["foreground"] == plot.BACKGROUND


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


@pytest.mark.parametrize("n_columns", [1, 2, 3, 4])
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


def test_compare_takes_curves_as_well():
    left, right = plot.compare(
        {"Rises": lambda ax: plot.trace([1.0, 2.0], ax), "Falls": lambda ax: ax.plot([5.0, 1.0])}
    )
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[1] >= 5
    assert left.get_aspect() == "auto"


@pytest.mark.parametrize("wrong", [{}, {" ": print}])
def test_compare_wants_titles(wrong):
    with pytest.raises(ValueError, match="a title that says"):
        plot.compare(wrong)


def test_a_title_is_wrapped_by_its_words_alone():
    spaced = plot._wrap("a" + 300 * " " + "b", 3.5)
    assert spaced == plot._wrap("a b", 3.5) == "a b"


def test_dots_go_where_they_are_told():
    ax = plt.subplots()[1]
    assert plot.dots({"EM": 0.5}, ax=ax) is ax
    assert [text.get_text() for text in ax.texts] == ["0.50"]
    plt.close(ax.figure)
