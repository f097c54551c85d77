"""Reliability diagrams, which compare probabilities with observed frequencies.

Chapter 14 draws them to check the calibration of a model.

=====  ====================================================================
p̄, t̄   mean probability in a bin, and the share of its cases that came true
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from cgmm.metrics import Reliability
from cgmm.plot.axes import axes_or_new, equal_scales, label
from cgmm.plot.looks import BACKGROUND, MUTED, colour, line_style, marker, tint

# Lines of text in the free corner are this far apart, as a share of the axis.
LINE = 0.075


def calibration(
    found: Reliability | Mapping[str, Reliability],
    ax: Axes | None = None,
    *,
    xlabel: str = "probability given",
    ylabel: str = "share that held",
) -> Axes:
    """Draw observed frequencies against probabilities; calibrated ones lie on the diagonal.

    Parameters
    ----------
    found : Reliability, or mapping from name to one
        Results of :func:`cgmm.metrics.reliability`.
    ax : Axes, optional
        Where to draw; a new figure by default.
    xlabel, ylabel : str
        Labels of the axes.

    Returns
    -------
    Axes
        The first line is the diagonal. The others have a dot per bin, with a band of two standard
        errors of a calibrated bin with the same number of cases; larger dots have more cases. Dots
        below the diagonal are overconfident. The label of a line has the expected calibration
        error.

    Raises
    ------
    ValueError
        If ``found`` is empty.

    Examples
    --------
    >>> from cgmm.metrics import reliability
    >>> ax = calibration({"too sure": reliability([0.9, 0.9, 0.2], [True, False, False])})
    >>> [text.get_text() for text in ax.texts]
    ['too sure: error 0.33']
    """
    named = {"": found} if isinstance(found, Reliability) else dict(found)
    if not named:
        raise ValueError("found is empty: give calibration(cgmm.metrics.reliability(p, held)).")
    ax = axes_or_new(ax)
    ax.plot([0, 1], [0, 1], color=MUTED, lw=1, zorder=1)
    for k, (name, bins) in enumerate(named.items()):
        _draw(ax, k, bins)
        words = f"{name}: error {bins.error:.2f}" if name else f"error {bins.error:.2f}"
        label(ax, words, (0.02, 0.96 - k * LINE), k, ha="left")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=xlabel, ylabel=ylabel)
    return equal_scales(ax)


def _draw(ax: Axes, k: int, bins: Reliability) -> None:
    """Draw dots, and bands of two standard errors that distinguish chance from error."""
    p, reach = bins.predicted, 2 * bins.standard_error
    low, high = np.clip([p - reach, p + reach], 0, 1)
    ax.vlines(p, low, high, color=tint(colour(k), 0.35), lw=4, zorder=2)
    ax.plot(p, bins.observed, color=colour(k), ls=line_style(k), lw=1.2, zorder=3)
    sizes = 20 + 100 * bins.counts / bins.counts.max()
    ax.scatter(
        p, bins.observed, s=sizes, color=colour(k), marker=marker(k), ec=BACKGROUND, zorder=4
    )
