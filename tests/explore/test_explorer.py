"""Test that explorers are reproducible, draw in their own style, and refuse invalid input."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from moving_dot import draw_dot, make_explorer
from refusals import refused

from cgmm.explore import Choice, Slider

pytestmark = pytest.mark.filterwarnings("error")

PROCESS = """
import sys; sys.path.insert(0, {tests!r})
from moving_dot import make_explorer
bundle = make_explorer()._repr_mimebundle_()
print(bundle["text/plain"], bundle["text/html"])
"""


def test_two_processes_write_the_same_bytes():
    """Sets have another order in the other process, which must not change the page."""
    code = PROCESS.format(tests=str(Path(__file__).parent))
    settings = os.environ | {"PYTHONHASHSEED": "1", "MPLBACKEND": "agg"}
    output = subprocess.check_output([sys.executable, "-c", code], env=settings, text=True)
    assert output.strip() == f"{make_explorer()!r} {make_explorer().html()}"


N, SIDE = Slider("n", [1]), Choice("to the", [1])
test_invalid_explorers_are_refused = refused(
    make_explorer,
    ({"max_frames": 7}, "4 × 2 = 8 frames are more than max_frames=7: give fewer values"),
    ({"max_bytes": 9000}, r"more than max_bytes=9000: its 8 frames have \d+ kB on average"),
    ({"controls": {}}, "at least one control"),
    ({"colours": 1}, "colours is 1: a palette has 2 to 256"),
    ({"controls": {"n": [1, 2]}}, "give a Slider or a Choice"),
    ({"controls": {"n": N}}, "draw_dot does not take the controls"),
    ({"controls": {"n": N, "q": SIDE}, "draw": lambda n, q: None}, "search field"),
    ({"describe": lambda n: ""}, "does not take the controls"),
    ({"describe": lambda n, side: " "}, "describe returned ' ' for {'n': 0, 'side': -1}"),
    ({"draw": lambda n, side: 3}, "draw returned 3 for {'n': 0, 'side': -1}"),
    ({"draw": lambda n, side: plt.figure(figsize=(1 + n, 1))}, "has 288 × 144 .* 144 × 144"),
)
test_invalid_sliders_are_refused = refused(
    partial(Slider, "steps"),
    ({"values": []}, "'steps' has no values"),
    ({"values": [0.14, 0.11], "format": "{:.1f}".format}, "two values .* called '0.1'"),
    ({"values": [1, 2], "start": -1}, "start=-1 is no position among the 2 values"),
    ({"values": [1, 2], "live": [2, 3]}, "live values .* lack '1'"),
)


def test_errors_name_missing_libraries(monkeypatch, explorer):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"ipywidgets.*constrained-mixtures\[widgets\]"):
        explorer.widget()
    assert set(explorer._repr_mimebundle_()) == {"text/plain", "text/html"}
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"Pillow.*constrained-mixtures\[widgets\]"):
        make_explorer()
    plt.close("all")


def test_frames_ignore_the_notebook_style_and_draw_may_return_axes(explorer):
    with plt.rc_context({"figure.facecolor": "red", "font.size": 30, "savefig.dpi": 30}):
        inside = make_explorer(draw=lambda n, side: draw_dot(n, side).axes[0]).html()
    assert inside == explorer.html()
