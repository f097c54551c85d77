"""For every test of the project."""

import sys

import numpy as np
import pytest
from _pytest.doctest import DoctestItem


@pytest.fixture(autouse=True)
def examples_are_seeded(request):
    """An example whose answer the global generator decides would print it on some days only."""
    if not isinstance(request.node, DoctestItem):
        yield
        return
    before = _global_state()
    yield
    assert _global_state() == before, f"{request.node.name} draws without random_state"


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Matplotlib warns of the twenty-first open figure, in whatever test that may be."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def _global_state() -> bytes:
    """Of the generator that scikit-learn falls back on."""
    _, words, position, *_ = np.random.get_state()  # noqa: NPY002
    return words.tobytes() + bytes([position % 256, position // 256])
