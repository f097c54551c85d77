"""One explorer for all that only look at it; and no figure stays open."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest
from moving_dot import make

from cgmm.explore import Explorer


@pytest.fixture(scope="session")
def explorer() -> Explorer:
    return make()


@pytest.fixture(autouse=True)
def _no_figure_is_left_over():
    plt.close("all")
    yield
    assert not plt.get_fignums()
