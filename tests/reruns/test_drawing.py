"""Curves and ladders: marks and bars stand where the numbers are."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from reruns.drawing import BARS, ladder


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
