"""Test curves and ladders: marks and bars are at the values of their numbers."""

import matplotlib.pyplot as plt
import numpy as np

from reruns.drawing import curves, ladder

# A failed realisation is nan. The mean is 2, the standard error √(2.5 / 5).
VALUES = np.array([0, 1, 2, 3, 4, np.nan])


def test_a_ladder_has_a_bar_of_quartiles_around_the_mean():
    bar, mark = ladder(plt.subplots()[1], {"EM": [VALUES]}).lines[-2:]
    np.testing.assert_allclose(bar.get_xdata(), [1, 3])
    assert mark.get_xdata() == [2]


def test_few_realisations_are_dots_and_many_are_not():
    for n, dots in ((30, 30), (31, 0)):
        lines = ladder(plt.subplots()[1], {"EM": [np.arange(n)]}).lines
        assert sum(len(x.get_xdata()) for x in lines if x.get_marker() == ".") == dots


def test_a_curve_has_bars_of_one_standard_error():
    ax = curves(plt.subplots()[1], [7], {"EM": [VALUES]})
    ((start, end),) = ax.collections[0].get_segments()
    np.testing.assert_allclose([start, end], [[7, 2 - np.sqrt(0.5)], [7, 2 + np.sqrt(0.5)]])
    assert ax.lines[0].get_xydata().tolist() == [[7, 2]]
