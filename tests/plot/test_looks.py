"""Test that colours differ for every kind of colour vision, and that shapes differ as well."""

import cgmm_dark
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from scipy.spatial.distance import pdist

from cgmm import plot
from cgmm.plot.style import TEXT_COLOURS

# Matrices of Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
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
# In dark mode, the book's pages invert the colours of figures and then rotate the hues back.
HUE_ROTATION = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])


def to_rgb_array(colours) -> np.ndarray:
    """Convert colours of matplotlib to rows of sRGB values."""
    return np.array([to_rgb(c) for c in colours])


def to_linear_rgb(srgb: np.ndarray) -> np.ndarray:
    """Convert sRGB to linear RGB."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def to_lab(linear_rgb: np.ndarray) -> np.ndarray:
    """Convert linear RGB to L*a*b*."""
    xyz = linear_rgb @ XYZ.T / XYZ.sum(axis=1)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    x, y, z = f.T
    return np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def simulate_deficiency(colours, deficiency: str) -> np.ndarray:
    """Return L*a*b* of colours as seen with this colour deficiency."""
    return to_lab(
        np.clip(to_linear_rgb(to_rgb_array(colours)) @ np.array(DEFICIENCIES[deficiency]).T, 0, 1)
    )


def contrast_ratios(colours, background: str) -> np.ndarray:
    """Return the contrast ratios of colours against a background, as WCAG defines them."""
    luminance = to_linear_rgb(to_rgb_array(colours)) @ XYZ[1] + 0.05
    paper = to_linear_rgb(to_rgb_array([background])) @ XYZ[1] + 0.05
    return np.maximum(luminance / paper, paper / luminance)


def to_dark_mode(colours) -> list[str]:
    """Return the colours that readers see in dark mode."""
    inverted = 0.93 - to_rgb_array(colours) * 0.86
    return [to_hex(c) for c in np.clip(inverted @ HUE_ROTATION.T, 0, 1)]


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("convert", [list, to_dark_mode], ids=["light", "dark"])
def test_colours_differ_for_each_kind_of_colour_vision_in_light_and_dark_mode(deficiency, convert):
    assert pdist(simulate_deficiency(convert(plot.COLOURS[:4]), deficiency)).min() > 20
    assert pdist(simulate_deficiency(convert(plot.COLOURS), deficiency)).min() > 14


def test_marks_and_text_have_enough_contrast_in_light_and_dark_mode():
    marks = [*plot.COLOURS, plot.NEUTRAL]
    texts = [*TEXT_COLOURS, plot.MUTED, plot.INK]
    dark_background = to_dark_mode([plot.BACKGROUND])[0]
    assert contrast_ratios(marks, plot.BACKGROUND).min() >= 3
    assert contrast_ratios(texts, plot.BACKGROUND).min() >= 4.5
    assert contrast_ratios(to_dark_mode(marks), dark_background).min() >= 3
    assert contrast_ratios(to_dark_mode(texts), dark_background).min() >= 4.5
    drawn = [cgmm_dark.dark(colour) for colour in (*marks, plot.INK, plot.MUTED)]
    assert contrast_ratios(drawn, "#121212").min() >= 3


def test_components_differ_in_shape_as_well_as_in_colour():
    looks = [(plot.colour(k), plot.marker(k)) for k in range(72)]
    assert len(set(looks)) == 72
    assert len({plot.marker(k) for k in range(8)}) == 8
    assert len({plot.line_style(k) for k in range(5)}) == 5
