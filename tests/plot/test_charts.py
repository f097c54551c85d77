"""Curves have the mixture's height, traces the history's, dots the methods' numbers."""

from __future__ import annotations

import numpy as np
import pytest
from drawings import TWO

from cgmm import plot
from cgmm.mixture import Parameters, log_density

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
        ({"values": {}}, "at least one method"),
        ({"values": {"a": []}}, "'a'"),
        ({"values": {"a": np.nan}}, "'a'"),
        ({"values": {"a": 1.0}, "highlight": "b"}, "'b' is not among"),
    ],
)
def test_dots_refuses_what_it_cannot_draw(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot.dots(**arguments)
