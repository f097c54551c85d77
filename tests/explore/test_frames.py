"""Frames are drawn in the book's style alone, and encoded without loss."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from moving_dot import draw, make
from PIL import Image

from cgmm.explore.frames import webp
from cgmm.plot import STYLE

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


def test_a_palette_halves_a_frame_and_is_not_seen():
    """A busy one: the colours of a map, of lines and of a hundred half transparent dots."""
    with plt.style.context(["default", STYLE]):
        figure, ax = plt.subplots(figsize=(3, 2), dpi=252)
        x, y = np.random.default_rng(0).standard_normal((2, 100))
        ax.scatter(x, y, c=x, cmap="viridis", alpha=0.6)
        ax.plot(x, y, color="#414c8b", linewidth=0.8)
        figure.canvas.draw()
        drawn = np.array(figure.canvas.buffer_rgba())
        plt.close(figure)
    whole, encoded = webp(drawn), webp(drawn, colours=64)
    assert len(encoded) < 0.6 * len(whole)
    shown = np.asarray(Image.open(io.BytesIO(encoded)))
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) <= 64
    # Of 255; and paper stays as it is.
    assert np.sqrt(np.mean((shown.astype(float) - drawn[..., :3]) ** 2)) < 4
    assert (shown[0, 0] == drawn[0, 0, :3]).all()


def test_a_picture_with_transparency_keeps_every_pixel():
    pixels = np.random.default_rng(0).integers(256, size=(5, 7, 4)).astype(np.uint8)
    decoded = Image.open(io.BytesIO(webp(pixels)))
    assert decoded.mode == "RGBA"
    np.testing.assert_array_equal(np.asarray(decoded), pixels)


def test_a_pillow_without_webp_is_named(monkeypatch):
    monkeypatch.setattr("PIL.features.check", lambda feature: False)
    with pytest.raises(ImportError, match="cannot write WebP"):
        webp(np.zeros((2, 2, 4), dtype=np.uint8))
