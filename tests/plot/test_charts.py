"""Test charts: curves, dots and bars are at the values of their arguments."""

import numpy as np
import pytest

from cgmm import plot
from cgmm.metrics import reliability
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


def test_trace_draws_each_run_and_labels_its_last_value():
    runs = {"good start": [-30.0, -20.0, -12.0], "bad k-means start": [-31.0, -25.5]}
    ax = plot.trace(runs)
    for line, run in zip(ax.lines, runs.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([range(len(run)), run]))
    words = [text.get_text() for text in ax.texts]
    assert words == [
        "good start: \N{MINUS SIGN}12.0",
        "bad k-means start: \N{MINUS SIGN}25.5",
    ]


def test_dots_draws_a_dot_and_a_number_for_each_method():
    ax = plot.dots({"K-means": 0.5, "EM": [0.8, 0.9]}, format="{:.1%}", highlight="EM")
    assert [text.get_text() for text in ax.texts] == ["50.0%", "85.0%"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["K-means", "EM"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    means = [line for line in ax.lines if line.get_markersize() == 9]
    np.testing.assert_allclose([line.get_xdata()[0] for line in means], [0.5, 0.85])
    assert [line.get_color() for line in means] == [plot.NEUTRAL, plot.COLOURS[0]]
    (values,) = [line for line in ax.lines if line.get_markersize() == 4]
    np.testing.assert_array_equal(values.get_xdata(), [0.8, 0.9])


def test_calibration_draws_bins_with_bars_of_two_standard_errors_within_0_and_1():
    rng = np.random.default_rng(0)
    p = rng.random(30)
    bins = reliability(p, rng.random(30) < p)
    ax = plot.calibration(bins)
    assert [text.get_text() for text in ax.texts] == [f"error {bins.error:.2f}"]
    dots, bars = sorted(ax.collections, key=lambda collection: not hasattr(collection, "get_sizes"))
    np.testing.assert_array_equal(dots.get_offsets(), np.column_stack(bins[:2]))
    errors = 2 * np.sqrt(bins.predicted * (1 - bins.predicted) / bins.counts)
    ends = np.clip(np.column_stack([bins.predicted - errors, bins.predicted + errors]), 0, 1)
    np.testing.assert_allclose(np.array(bars.get_segments())[:, :, 1], ends)
