"""Test that colours differ for every kind of vision, and are never the only sign."""

import cgmm_dark
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from scipy.spatial.distance import pdist

from cgmm import plot
from cgmm.plot.style import TEXT_COLOURS

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
# The filter that the book's pages lay over figures in the dark: invert, then turn the hues back.
HUE_ROTATION = np.array(
    [
        [-0.574, 1.430, 0.144],
        [0.426, 0.430, 0.144],
        [0.426, 1.430, -0.856],
    ]
)


def rgb(colours) -> np.ndarray:
    return np.array([to_rgb(c) for c in colours])


def linear(srgb: np.ndarray) -> np.ndarray:
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def lab(linear_rgb: np.ndarray) -> np.ndarray:
    xyz = linear_rgb @ XYZ.T / XYZ.sum(axis=1)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    x, y, z = f.T
    return np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def simulate(colours, deficiency: str) -> np.ndarray:
    """Return L*a*b* of colours as seen with this colour deficiency."""
    return lab(np.clip(linear(rgb(colours)) @ np.array(DEFICIENCIES[deficiency]).T, 0, 1))


def contrasts(colours, background: str) -> np.ndarray:
    """Return contrast ratios as defined by WCAG."""
    luminance = linear(rgb(colours)) @ XYZ[1] + 0.05
    paper = linear(rgb([background])) @ XYZ[1] + 0.05
    return np.maximum(luminance / paper, paper / luminance)


def in_dark_mode(colours) -> list[str]:
    inverted = 0.93 - rgb(colours) * 0.86
    return [to_hex(c) for c in np.clip(inverted @ HUE_ROTATION.T, 0, 1)]


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("light", [list, in_dark_mode], ids=["day", "night"])
def test_colours_differ_under_colour_blindness_in_light_and_dark(deficiency, light):
    assert pdist(simulate(light(plot.COLOURS[:4]), deficiency)).min() > 20
    assert pdist(simulate(light(plot.COLOURS), deficiency)).min() > 14


def test_marks_and_text_have_contrast_in_light_and_dark():
    marks = [*plot.COLOURS, plot.NEUTRAL]
    texts = [*TEXT_COLOURS, plot.MUTED, plot.INK]
    night = in_dark_mode([plot.BACKGROUND])[0]
    assert contrasts(marks, plot.BACKGROUND).min() >= 3
    assert contrasts(texts, plot.BACKGROUND).min() >= 4.5
    assert contrasts(in_dark_mode(marks), night).min() >= 3
    assert contrasts(in_dark_mode(texts), night).min() >= 4.5
    drawn = [cgmm_dark.dark(colour) for colour in (*marks, plot.INK, plot.MUTED)]
    assert contrasts(drawn, "#121212").min() >= 3


def test_every_component_differs_in_more_than_colour():
    looks = [(plot.colour(k), plot.marker(k)) for k in range(72)]
    assert len(set(looks)) == 72
    assert len({plot.marker(k) for k in range(8)}) == 8
    assert len({plot.line_style(k) for k in range(5)}) == 5
