"""Dots lie where probabilities and shares are, bars where chance would put them."""

from __future__ import annotations

import numpy as np
import pytest

from cgmm import plot
from cgmm.metrics import reliability


def found(seed=0, sure=1.0, n=400):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    held = rng.random(n) < p
    logits = sure * np.log(p / (1 - p))
    return reliability(1 / (1 + np.exp(-logits)), held)


def test_dots_are_bins_on_their_own_axes():
    bins = found()
    ax = plot.calibration(bins)
    (dots,) = [c for c in ax.collections if hasattr(c, "get_sizes")]
    np.testing.assert_array_equal(dots.get_offsets(), np.column_stack(bins[:2]))
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[0, 0], [1, 1]])
    # Areas are in the order of the counts.
    order = np.argsort(bins.counts, kind="stable")
    assert (np.diff(dots.get_sizes()[order]) >= 0).all()
    assert [text.get_text() for text in ax.texts] == [f"error {bins.error:.2f}"]


def test_bars_are_two_standard_errors_within_the_range():
    bins = found(n=30)
    ax = plot.calibration(bins)
    (bars,) = [c for c in ax.collections if not hasattr(c, "get_sizes")]
    ends = np.array(bars.get_segments())
    reach = 2 * np.sqrt(bins.predicted * (1 - bins.predicted) / bins.counts)
    np.testing.assert_allclose(ends[:, 0, 1], np.maximum(bins.predicted - reach, 0))
    np.testing.assert_allclose(ends[:, 1, 1], np.minimum(bins.predicted + reach, 1))


def test_several_differ_in_colour_and_in_marker():
    ax = plot.calibration({"plain": found(), "too sure": found(sure=3.0)})
    dots = [c for c in ax.collections if hasattr(c, "get_sizes")]
    assert len({tuple(c.get_facecolor()[0]) for c in dots}) == 2
    paths = [c.get_paths()[0].vertices.shape for c in dots]
    assert paths[0] != paths[1]
    heights = [text.xy[1] for text in ax.texts]
    assert heights[0] > heights[1]


def test_nothing_is_refused():
    with pytest.raises(ValueError, match="found is empty"):
        plot.calibration({})
