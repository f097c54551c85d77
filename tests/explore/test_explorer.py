"""An explorer writes the same bytes everywhere, and refuses what no reader could use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from moving_dot import make

from cgmm.explore import Slider

pytestmark = pytest.mark.filterwarnings("error")

PROCESS = """
import sys; sys.path.insert(0, {tests!r})
from moving_dot import make
bundle = make()._repr_mimebundle_()
print(bundle["text/plain"], bundle["text/html"])
"""


def test_two_processes_write_the_same_bytes():
    code = PROCESS.format(tests=str(Path(__file__).parent))
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "MPLBACKEND": "agg"},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    first, second = (run.communicate()[0].decode() for run in runs)
    assert first == second
    assert first.strip() == f"{make()!r} {make().html()}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_frames": 7}, "4 × 2 = 8 frames are more than max_frames=7: give fewer values"),
        ({"max_bytes": 9000}, r"more than max_bytes=9000: its 8 frames have \d+ kB on average"),
        ({"controls": {}}, "at least one control"),
        ({"colours": 1}, "colours is 1: a palette has 2 to 256"),
        ({"controls": {"n": [1, 2]}}, "give a Slider or a Choice"),
        ({"controls": {"n": Slider("n", [1])}}, "draw does not take the controls"),
        ({"describe": lambda n: ""}, "does not take the controls"),
        ({"describe": lambda n, side: " "}, "describe returned ' ' for {'n': 0, 'side': -1}"),
        ({"describe": lambda n, side: None}, "describe returned None"),
        ({"draw": lambda n, side: 3}, "draw returned 3 for {'n': 0, 'side': -1}"),
        (
            {"draw": lambda n, side: plt.figure(figsize=(1 + n, 1))},
            r"\('1', 'left'\) has 288 × 144 pixels, .* 144 × 144",
        ),
    ],
)
def test_an_explorer_that_cannot_work_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_missing_libraries_are_named(monkeypatch, explorer):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"ipywidgets.*constrained-mixtures\[widgets\]"):
        explorer.widget()
    assert set(explorer._repr_mimebundle_()) == {"text/plain", "text/html"}
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"Pillow.*constrained-mixtures\[widgets\]"):
        make()
    plt.close("all")
