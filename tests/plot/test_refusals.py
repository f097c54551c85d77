"""Test that plots refuse unusable arguments by name, with the reason."""

import numpy as np
from drawings import ONE, TWO, draw_points
from refusals import refused

from cgmm import MixedMixture, plot

THREE_POINTS = np.zeros((3, 2))
NEGATIVE = TWO._replace(covariances=-TWO.covariances)
FLAT = TWO._replace(**{name: part[..., :1] for name, part in TWO._asdict().items()})
test_plots_refuse_arguments_that_cannot_be_drawn = refused(
    lambda draw, **given: draw(**({"X": THREE_POINTS} if draw is plot.scatter else {}) | given),
    (plot.ellipses, {"parameters": FLAT}, r"\(2, 1\)"),
    (plot.ellipses, {"parameters": NEGATIVE}, "component 0 is not"),
    (plot.ellipses, {"parameters": TWO, "n_std": ()}, "at least one"),
    (plot.ellipses, {"parameters": TWO, "n_std": (0, 1)}, "positive"),
    (plot.ellipses, {"parameters": TWO, "names": ["a"]}, "1 names for 2 components"),
    (plot.boundary, {"model": ONE}, "at least two"),
    (plot.boundary, {"model": lambda X: np.zeros(len(X), dtype=int)}, "draw the points first"),
    (
        lambda model: plot.boundary(model, plot.scatter(draw_points())),
        {"model": lambda X: np.zeros(5, dtype=int)},
        r"model\(points\) has shape \(5,\)",
    ),
    (plot.density_1d, {"parameters": TWO}, r"\(K, 1\)"),
    (plot.trace, {"history": {"fine": [1.0], "broken": []}}, "'broken' is empty or not finite"),
    (plot.trace, {"history": {"broken": [-1.0, np.nan]}}, "'broken' is empty or not finite"),
    (plot.dots, {"values": {}}, "at least one method"),
    (plot.dots, {"values": {"a": []}}, "'a'"),
    (plot.dots, {"values": {"a": np.nan}}, "'a'"),
    (plot.dots, {"values": {"a": 1.0}, "highlight": "b"}, "'b' is not among"),
    (plot.calibration, {"found": {}}, "found is empty"),
    (plot.compare, {"panels": {}}, "a title that says"),
    (plot.compare, {"panels": {" ": print}}, "a title that says"),
    (plot.table, {"head": ["", "right"], "rows": [["a"]]}, r"\['a'\] has 1 entries, the head 2"),
    (plot.fit, {"model": None, "X": [[0, 0], [np.nan, 1]]}, r"X\[1, 0\] is empty.*impute"),
    (plot.fit, {"model": None, "X": [[0, "a"], [1, "b"]]}, "no numbers.*Draw columns"),
    (plot.ellipses, {"parameters": MixedMixture(1).fit([["a"], ["b"]])}, "categories only"),
    (plot.scatter, {"X": np.zeros((3, 4))}, r"shape \(3, 4\)"),
    (plot.scatter, {"X": np.zeros((0, 2))}, r"shape \(0, 2\)"),
    (plot.scatter, {"X": [[0, 0], [np.nan, 1]]}, r"X\[1\] is not finite.*impute"),
    (plot.scatter, {"labels": [0, 1]}, r"labels has shape \(2,\)"),
    (plot.scatter, {"labels": [0.5, 1, 1]}, r"labels\[0\] is 0.5"),
    (plot.scatter, {"labels": [0, -2, 1]}, r"labels\[1\] is -2; .* or -1 for unknown"),
    (plot.scatter, {"responsibilities": [[1, 0], [0.5, 0.4], [0, 1]]}, r"responsibilities\[1\]"),
    (plot.scatter, {"responsibilities": [[1, 0], [1.5, -0.5], [0, 1]]}, r"responsibilities\[1\]"),
    (plot.scatter, {"responsibilities": [1, 0, 1]}, r"\(3, K\)"),
    (plot.scatter, {"labels": [0, 0, 1], "responsibilities": np.ones((3, 1))}, "give one"),
)
