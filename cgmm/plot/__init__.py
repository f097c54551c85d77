"""Draw figures in the style of the book: points, components, densities, traces and comparisons.

All chapters use these functions. Each draws on the given axes, or on those of a new figure, and
returns the axes. The letters are those of the book:

=====  ====================================================================
N, D   number of points x_i, and number of their dimensions
K      number of components, whose indices begin with 0
θ      weights π_k, means μ_k and covariances Σ_k of a Gaussian mixture
r_ik   responsibility of component k for point i
=====  ====================================================================

A component or class k has the same colour, marker and line style in all figures, so readers never
depend on colour alone. The eight colours can be distinguished with all kinds of colour vision, and
in dark mode, which inverts figures. The first four also differ in lightness, for grey print.
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
