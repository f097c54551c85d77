"""Test the figures of chapter 13: marks and bars are at means, quartiles and standard errors."""

import matplotlib.pyplot as plt
import numpy as np

from reruns.drawing import curves, ladder

# The last realisation failed. The mean of the others is 2, its standard error √(2.5 / 5).
VALUES = np.array([0, 1, 2, 3, 4, np.nan])


def test_ladder_draws_a_bar_between_quartiles_and_a_mark_at_the_mean():
    bar, mark = ladder(plt.subplots()[1], {"EM": [VALUES]}).lines[-2:]
    np.testing.assert_allclose(bar.get_xdata(), [1, 3])
    assert mark.get_xdata() == [2]


def test_ladder_draws_a_dot_for_each_of_up_to_30_realisations():
    for n, dots in ((30, 30), (31, 0)):
        lines = ladder(plt.subplots()[1], {"EM": [np.arange(n)]}).lines
        assert sum(len(x.get_xdata()) for x in lines if x.get_marker() == ".") == dots


def test_curves_have_bars_of_one_standard_error():
    ax = curves(plt.subplots()[1], [7], {"EM": [VALUES]})
    ((start, end),) = ax.collections[0].get_segments()
    np.testing.assert_allclose([start, end], [[7, 2 - np.sqrt(0.5)], [7, 2 + np.sqrt(0.5)]])
    assert ax.lines[0].get_xydata().tolist() == [[7, 2]]
