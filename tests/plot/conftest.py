"""Draw every figure of these tests in the book's style."""

import matplotlib.pyplot as plt
import pytest

from cgmm import plot


@pytest.fixture(autouse=True)
def _style():
    """Use the book's style and restore the previous one afterwards."""
    with plt.rc_context():
        plot.use_style()
        yield
