"""Figures in one style: points, components, densities, boundaries, traces and comparisons.

Letters, as in the book:

=====  ====================================================================
N, D   number of points x_i and of their dimensions
K      number of components, counted from 0 as in the code
θ      weights π_k, means μ_k and covariances Σ_k of a Gaussian mixture
r_ik   responsibility of component k for point i
=====  ====================================================================

Component or class k has the same colour, marker and line style in the whole book, so colour alone
never carries a meaning. The eight colours remain distinct for every kind of colour vision, and in
dark mode, which inverts figures; the first four also differ in lightness, for grey print.

Every function draws on the given axes, or on new ones, and returns the axes. All chapters use them.
"""

from cgmm.plot.axes import label
from cgmm.plot.charts import calibration, density_1d, dots, trace
from cgmm.plot.fitted import fit
from cgmm.plot.mixtures import boundary, density, ellipses, scatter
from cgmm.plot.panels import compare
from cgmm.plot.style import (
    BACKGROUND, COLOURS, INK, MUTED, NEUTRAL, PAGE_WIDTH, STYLE, colour, line_style, marker,
    png, svg, tint, use_style,
)  # fmt: skip
from cgmm.plot.tables import table

__all__ = [
    "BACKGROUND", "COLOURS", "INK", "MUTED", "NEUTRAL", "PAGE_WIDTH", "STYLE", "boundary",
    "calibration", "colour", "compare", "density", "density_1d", "dots", "ellipses", "fit", "label",
    "line_style", "marker", "png", "scatter", "svg", "table", "tint", "trace", "use_style",
]  # fmt: skip
