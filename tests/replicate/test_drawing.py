"""Curves and ladders: marks and bars stand where the numbers are."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from cgmm import plot
from cgmm.replicate.drawing import BARS, LOOKS, curves, ladder


@pytest.mark.parametrize(
    ("bars", "ends"),
    [
        ("quartiles", (1, 3)),
        ("deviation", (2 - np.sqrt(2.5), 2 + np.sqrt(2.5))),
        ("standard error", (2 - np.sqrt(0.5), 2 + np.sqrt(0.5))),
    ],
)
def test_bars(bars, ends):
    v = np.array([0, 1, 2, 3, 4, np.nan])
    np.testing.assert_allclose(BARS[bars](v), ends)
    ax = ladder(plt.subplots()[1], {"EM": [v]}, bars)
    bar, mark = ax.lines[-2:]
    np.testing.assert_allclose(bar.get_xdata(), ends)
    assert mark.get_xdata() == [2]


def test_a_ladder_goes_down_and_its_last_level_is_full():
    v = np.array([0.0, 1.0])
    ax = ladder(plt.subplots()[1], {"EM": [v, v + 1], "K-means": [v, v]})
    marks = [mark for mark in ax.lines if mark.get_marker() == "o"]
    y = [float(mark.get_ydata()[0]) for mark in marks]
    assert y == sorted(y)
    assert ax.yaxis_inverted()
    full = [to_hex(mark.get_markerfacecolor()) != plot.BACKGROUND for mark in marks]
    assert full == [False, True, False, True]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["EM", "K-means"]
    assert to_hex(marks[0].get_markeredgecolor()) == plot.colour(LOOKS["EM"].colour)


def test_curves_draw_means_bars_and_names():
    values = {"RCA": [np.array([0.0, 2.0]), np.array([3.0, 5.0])], "original": [np.zeros(2)] * 2}
    ax = curves(plt.subplots()[1], [1, 2], values, "deviation", ls=":", ms=3)
    rca, given_data = ax.lines
    assert rca.get_ydata().tolist() == [1, 4]
    assert rca.get_linestyle() == ":"
    assert [one.get_label() for one in (rca, given_data)] == ["RCA", "as given"]
    assert rca.get_color() == plot.colour(2)
    assert given_data.get_color() == plot.NEUTRAL
    ends = np.array([path.vertices[:, 1] for path in ax.collections[0].get_paths()])
    np.testing.assert_allclose(ends, [[1 - 2**0.5, 1 + 2**0.5], [4 - 2**0.5, 4 + 2**0.5]])
