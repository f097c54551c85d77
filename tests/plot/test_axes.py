"""A word is written beside the thing that it names."""

from __future__ import annotations

import matplotlib.pyplot as plt

from cgmm import plot


def test_label_is_legible_above_marks():
    _, ax = plt.subplots()
    plot.label(ax, "outlier", (0.2, 0.4), 2, offset=(0, -5))
    (text,) = ax.texts
    assert (text.get_text(), text.xy, text.get_va()) == ("outlier", (0.2, 0.4), "top")
    assert text.get_color() == plot.colour(2, text=True)
    (halo,) = text.get_path_effects()
    assert halo._gc["foreground"] == plot.BACKGROUND
