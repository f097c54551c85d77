"""Frames are drawn in the book's style alone, and encoded without loss."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from moving_dot import draw, make
from PIL import Image

from cgmm.explore.frames import webp

pytestmark = pytest.mark.filterwarnings("error")


def test_frames_ignore_the_notebooks_own_style():
    with plt.rc_context({"figure.facecolor": "red", "font.size": 30, "savefig.dpi": 30}):
        assert make().html() == make().html()
        inside = make().html()
    assert inside == make().html()


def test_axes_will_do_for_a_figure():
    def on_axes(n, side):
        return draw(n, side).axes[0]

    assert make(draw=on_axes).html() == make().html()


def test_a_picture_with_transparency_keeps_every_pixel():
    pixels = np.random.default_rng(0).integers(256, size=(5, 7, 4)).astype(np.uint8)
    decoded = Image.open(io.BytesIO(webp(pixels)))
    assert decoded.mode == "RGBA"
    np.testing.assert_array_equal(np.asarray(decoded), pixels)


def test_a_pillow_without_webp_is_named(monkeypatch):
    monkeypatch.setattr("PIL.features.check", lambda feature: False)
    with pytest.raises(ImportError, match="cannot write WebP"):
        webp(np.zeros((2, 2, 4), dtype=np.uint8))
