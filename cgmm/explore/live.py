"""Define figures that compute in the browser while readers move points, relations and parameters.

Chapters create a :class:`LiveFigure`. Its scripts depend on its mode: they contain the algorithms
of the primer, the handling of input, the drawing, and the display for one question of the book.
With a kernel the same figure is a widget, which reports points and relations to Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cgmm.explore.controls import explain_missing_package
from cgmm.mixture import (
    POOLINGS,
    ConstrainedGaussianMixture,
    Parameters,
    from_responsibilities,
)
from cgmm.network import SideInformation
from cgmm.numerics import FloatArray, IntArray
from cgmm.plot.style import COLOURS

# ------------------------------------------------------------ the figure


# A preset may replace these arguments of a figure.
REPLACEABLE = ("X", "y", "must_link", "cannot_link", "starts")
# A figure of the mode "companion" can have these controls.
CONTROLS = ("labels", "together", "apart", "normaliser", "weight", "metric")
# The name of a figure is part of addresses, so only characters that need no escaping are allowed.
FIGURE_NAME = re.compile(r"[a-z][a-z0-9-]*")
FILES = {
    name: files("cgmm.explore").joinpath(name).read_text(encoding="utf8")
    for name in ("live.html", "live.css")
}


class LiveFigure:
    """Figure that computes while readers move its points, for notebooks and for static pages.

    Parameters
    ----------
    X : (N, 2) array-like
        The points.
    classes : int, default=2
        K, from 2 to 5.
    mode : {"em", "relations", "rivals", "weights", "kmeans", "metric", "cut", "duel", \
"companion"}, default="em"
        Algorithm and display. "em": EM by half-steps. "relations": EM with relations. "rivals":
        comparison of several starts, with hard relations. "weights": the same with answers whose
        log-weight readers set. "kmeans": EM whose variance goes to zero. "metric": the metric of
        RCA. "cut": the mixture defined by a straight cut. "duel": readers place ellipses that EM
        improves, and the first must-links are revealed one at a time. "companion": comparison of
        several starts, with the controls named in `controls`.
    title : str
        Title of the figure.
    task : str, optional
        Question that readers should answer before they use the figure.
    y : (N,) int array-like, optional
        Classes, for the mode "metric"; -1 if unknown.
    must_link, cannot_link : (P, 2) int array-like, optional
        Initial relations: pairs of points.
    starts : sequence of parameters or of (N,) int array-likes, optional
        Initial parameters of EM: objects with ``weights``, ``means`` and ``covariances``, like
        those of ``cgmm.primer`` and ``cgmm.mixture``; or classes, from which an M-step computes the
        parameters. Modes that compare starts take several, other modes take one; in the mode "duel"
        the reader moves the last one.
    words : sequence of str, optional
        Name of the fit from each start.
    pool : {"full", "tied", "diag", "spherical"}, default="full"
        Type of the covariances in the M-step.
    sampling : {"points", "chunklets"}, default="points"
        Unit of the sampling model, points or chunklets.
    presets : mapping from str to mapping, optional
        Named data sets that readers can choose; each may have its own ``X``, ``y``, ``must_link``,
        ``cannot_link`` and ``starts``. The figure begins with the first one.
    beside : bool, default=False
        True: readers may show K-means beside EM.
    weight, radius : float, default=1
        Initial values of the sliders: ``weight`` in the modes "weights" and "companion" (where 4
        makes relations hard), ``radius`` in the mode "kmeans".
    controls : sequence of str, default=()
        Controls of the mode "companion": "labels", "together", "apart", "normaliser", "weight" and
        "metric".
    name : str, optional
        Name of the figure in the address of the page. The address then stores the reader's
        settings, for instance ``#figure=pairs&together=1-17``; opening it restores them.

    Attributes
    ----------
    points : (N, 2) array
        The points; with a kernel, including the reader's changes.
    must_link, cannot_link : (P, 2) int arrays
        The relations; with a kernel, including the reader's changes.

    Raises
    ------
    ValueError
        If points, relations, starts or presets do not fit, or relations contradict each other.

    Examples
    --------
    >>> from cgmm import datasets
    >>> LiveFigure(datasets.two_clusters(20).X, title="EM under your hand")
    LiveFigure('EM under your hand', 40 points, em)
    """

    def __init__(
        self,
        X: ArrayLike,
        *,
        classes: int = 2,
        mode: str = "em",
        title: str,
        task: str | None = None,
        y: ArrayLike | None = None,
        must_link: ArrayLike = (),
        cannot_link: ArrayLike = (),
        starts: Sequence[Any] | None = None,
        words: Sequence[str] | None = None,
        pool: str = "full",
        sampling: str = "points",
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        beside: bool = False,
        weight: float = 1.0,
        radius: float = 1.0,
        controls: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        _check_choice("mode", mode, tuple(MODES))
        _check_choice("pool", pool, tuple(POOLINGS))
        _check_choice("classes", classes, (2, 3, 4, 5))
        for control in controls:
            _check_choice("a control", control, CONTROLS)
        if name is not None and not FIGURE_NAME.fullmatch(name):
            raise ValueError(
                f"name is {name!r}: in addresses use small letters, digits and hyphens"
            )
        self.title, self.task, self.mode = title, task, mode
        defaults = {"X": X, "y": y, "must_link": must_link, "cannot_link": cannot_link}
        defaults["starts"] = starts
        encoded = [
            _encode_preset(preset_name, {**defaults, **preset}, classes, sampling)
            for preset_name, preset in (presets or {"": {}}).items()
        ]
        names = list(words or [f"start {k + 1}" for k in range(len(encoded[0]["starts"]))])
        self.spec: dict[str, Any] = {
            "K": classes, "pool": pool, "sampled": sampling, "beside": beside,
            "answers": mode == "weights", "weight": weight, "beta": radius, "speed": 2,
            "view": _compute_limits([point for preset in encoded for point in preset["X"]]),
            "colours": COLOURS, "words": names,
            "presets": [encoded[0], *_keep_differences(encoded)],
        }  # fmt: skip
        if name is not None:
            self.spec["name"] = name
        if mode == "duel":
            self.spec["count"] = 0
        if mode == "companion":
            self.spec |= {
                "controls": [*controls],
                "normaliser": "kept",
                "role": "fit",
                "shape": pool,
            }
        self._widget: Any = None

    def __repr__(self) -> str:
        return f"LiveFigure({self.title!r}, {len(self._first_preset['X'])} points, {self.mode})"

    @property
    def _first_preset(self) -> dict[str, Any]:
        """Points, classes, links and starts of the first preset."""
        return self.spec["presets"][0]

    def _get_current(self, name: str) -> Any:
        """Return points or links of the widget, or of the first preset if there is no widget."""
        if self._widget is not None:
            return getattr(self._widget, name)
        return self._first_preset["X" if name == "points" else name]

    @property
    def points(self) -> FloatArray:
        """(N, 2) points; with a kernel, including the reader's changes."""
        return np.array(self._get_current("points"), dtype=float)

    @property
    def must_link(self) -> IntArray:
        """(P, 2) must-links; with a kernel, including the reader's changes."""
        return _select_pairs(self._get_current("links"), 1)

    @property
    def cannot_link(self) -> IntArray:
        """(P, 2) cannot-links; with a kernel, including the reader's changes."""
        return _select_pairs(self._get_current("links"), -1)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return the figure both as a widget and as HTML; a program shows what it supports."""
        bundle = {"text/plain": repr(self), "text/html": self.html()}
        try:
            widget = self.widget()
        except ImportError:
            return bundle
        return {**widget._repr_mimebundle_()[0], **bundle}

    def html(self) -> str:
        """Return the figure for pages without a kernel, as one self-contained HTML element.

        Returns
        -------
        str
            The HTML. Equal figures give equal bytes, on all machines and at every call.
        """
        return self._build_html(f"<script>\n{page_script(self.mode)}</script>\n", FILES["live.css"])

    def _build_html(self, script: str, style: str) -> str:
        """Return the HTML element, with a picture of its points for browsers without scripts."""
        left, bottom, right, top = self.spec["view"]
        zoom = 400 / (right - left)
        places = (np.array(self._first_preset["X"]) - [left, top]) * [zoom, -zoom]
        still = "".join(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="5"/>' for x, y in places)
        task = self.task and f'<p class="cgmm-live-task">Guess first. {escape(self.task)}</p>\n'
        # Replace "<", so that nothing in the data can end the script element around it.
        data = json.dumps(self.spec, ensure_ascii=False).replace("<", "\\u003c")
        return FILES["live.html"].rstrip().format(
            title=escape(self.title), mode=self.mode, task=task or "",
            text=escape(self._describe()), still=still, height=round(zoom * (top - bottom)),
            data=data, script=script, style=style,
        )  # fmt: skip

    def _describe(self) -> str:
        """Return a sentence with the initial numbers of points and relations."""
        counts = [len(_select_pairs(self._first_preset["links"], sign)) for sign in (1, -1)]
        links = ", {} must-links and {} cannot-links".format(*counts) if any(counts) else ""
        return f"{len(self._first_preset['X'])} points in the plane{links}."

    def widget(self) -> Any:
        """Return the figure as a widget that reports mouse and touch events to Python.

        Returns
        -------
        anywidget.AnyWidget
            The same object at every call.

        Raises
        ------
        ImportError
            If anywidget is missing.
        """
        if self._widget is None:
            html, module = self._build_html("", ""), build_widget_module(self.mode)
            preset = self._first_preset
            self._widget = build_live_widget(html, FILES["live.css"], module, preset, self.fit)
        return self._widget

    def fit(self) -> ConstrainedGaussianMixture:
        """Fit a mixture to the current points and relations, and draw it in the figure.

        Returns
        -------
        ConstrainedGaussianMixture
            The fitted mixture. The figure shows its ellipses at two standard deviations as dotted
            lines.

        Raises
        ------
        ImportError
            If anywidget is missing.
        ValueError
            As in ``fit`` of the model.
        """
        model = ConstrainedGaussianMixture(
            self.spec["K"], covariance_type=self.spec["pool"], sampling=self.spec["sampled"],
            n_init=4, random_state=0,
        )  # fmt: skip
        model.fit(self.points, must_link=self.must_link, cannot_link=self.cannot_link)
        self.widget().fitted = _encode_parameters(model.parameters_, self.spec["K"])
        return model


def _encode_preset(name: str, preset: Mapping[str, Any], K: int, sampling: str) -> dict[str, Any]:
    """Return points, classes, links and starts of a preset as plain lists, or raise an error."""
    if unknown := set(preset) - set(REPLACEABLE):
        raise ValueError(
            f"the preset {name!r} brings {sorted(unknown)}: it may bring {REPLACEABLE}"
        )
    X = np.array(preset["X"], dtype=float)
    if X.ndim != 2 or X.shape[1] != 2 or not np.isfinite(X).all() or len(X) < 3 * K:
        raise ValueError(
            f"X has shape {X.shape}: a live figure needs finite points in the plane, an (N, 2) "
            f"array with at least {3 * K} rows"
        )
    must, cannot = (np.array(preset[kind], dtype=int).reshape(-1, 2) for kind in REPLACEABLE[2:4])
    SideInformation.build(len(X), must_link=must, cannot_link=cannot, sampling=sampling)
    links = [[*pair, 1] for pair in must.tolist()] + [[*pair, -1] for pair in cannot.tolist()]
    y = np.full(len(X), -1) if preset["y"] is None else np.asarray(preset["y"], dtype=int)
    if y.shape != (len(X),) or y.max() >= K:
        raise ValueError(f"y must hold one class below {K} for each of {len(X)} points, -1: none")
    starts = preset["starts"] or [_compute_default_start(X, K)]
    return {
        "name": name, "X": _round_to_lists(X), "y": y.tolist(), "links": links,
        "starts": [_encode_parameters(_convert_start(start, X, K), K) for start in starts],
    }  # fmt: skip


def _keep_differences(presets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all presets but the first, without entries equal to the first one's, to save bytes."""
    first, *others = presets
    return [{key: other[key] for key in other if other[key] != first[key]} for other in others]


def _encode_parameters(parameters: object, K: int) -> dict[str, Any]:
    """Return weights, means and covariances as plain lists, or raise an error for wrong shapes."""
    shapes = {"weights": (K,), "means": (K, 2), "covariances": (K, 2, 2)}
    arrays = {name: np.asarray(getattr(parameters, name, ()), dtype=float) for name in shapes}
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(
                f"{name} of a start have shape {arrays[name].shape}; with classes={K} in the plane "
                f"it must be {shape}"
            )
    return {name: _round_to_lists(values) for name, values in arrays.items()}


def _convert_start(start: Any, X: FloatArray, K: int) -> Any:
    """Return a start as parameters, by an M-step if it is an (N,) array of classes."""
    if hasattr(start, "means"):
        return start
    z = np.asarray(start)
    if z.shape != (len(X),) or not np.isin(z, range(K)).all():
        raise ValueError(
            f"a start must have weights, means and covariances, or be one class below {K} for each "
            f"of {len(X)} points"
        )
    return from_responsibilities(X, np.eye(K)[z.astype(int)], POOLINGS["full"])


def _compute_default_start(X: FloatArray, K: int) -> Parameters:
    """Return initial parameters with means in a row along the axis of the largest range."""
    order = X[:, np.ptp(X, axis=0).argmax()].argsort()
    means = np.array([X[part].mean(axis=0) for part in np.array_split(order, K)])
    return Parameters(np.full(K, 1 / K), means, np.repeat([np.cov(X.T)], K, axis=0))


def _round_to_lists(values: ArrayLike) -> Any:
    """Return an array as nested lists, with numbers rounded to seven digits to save bytes."""
    values = np.asarray(values, dtype=float)
    return np.vectorize(lambda x: float(f"{x:.7g}"), otypes=[float])(values).tolist()


def _compute_limits(X: Sequence[Sequence[float]]) -> list[float]:
    """Return limits (left, bottom, right, top) around all points, with a moderate aspect ratio."""
    low, high = np.min(X, axis=0), np.max(X, axis=0)
    half, middle = 0.6 * (high - low), (low + high) / 2
    half = np.maximum(half, [half[1] / 0.95, half[0] * 0.7])
    left, bottom, right, top = np.concatenate([middle - half, middle + half])
    return _round_to_lists([left, bottom, right, top])


def _select_pairs(links: Sequence[Sequence[int]], sign: int) -> IntArray:
    """Return the (P, 2) pairs of the links (i, j, sign) with the given sign."""
    return np.array([link[:2] for link in links if link[2] == sign], dtype=int).reshape(-1, 2)


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Raise an error if the value of an argument is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {choices}")


# ------------------------------------------------------------ scripts


_EM = ("live_network.js", "live_mixture.js", "live_em.js")
_DRAWING = ("live_address.js", "live_figure.js", "live_panels.js")
_RIVALS = (*_EM, *_DRAWING, "live_rivals.js")
_STEPS = (*_EM, "live_lloyd.js", *_DRAWING, "live_steps.js")
# Each mode runs the code of these files; the last file defines an object with the mode's name.
MODES = {
    "em": _STEPS,
    "relations": _STEPS,
    "rivals": _RIVALS,
    "weights": (*_RIVALS, "live_weights.js"),
    "kmeans": ("live_network.js", "live_lloyd.js", *_DRAWING, "live_shrink.js"),
    "metric": ("live_network.js", "live_rca.js", *_DRAWING, "live_metric.js"),
    "cut": ("live_network.js", "live_mixture.js", *_DRAWING, "live_cut.js"),
    "duel": (*_EM, *_DRAWING, "live_cut.js", "live_duel.js"),
    "companion": (*_EM, "live_rca.js", *_DRAWING, "live_rivals.js", "live_companion.js"),
}
PAGE_SCRIPT = """(() => {{
"use strict";
{script}
for (const root of document.querySelectorAll(".cgmm-live[data-mode={mode}]:not([data-ready])")) {{
const data = root.querySelector("script[type='application/json']");
liveFigure(root, JSON.parse(data.textContent), {name});
}}
}})();
"""
WIDGET_MODULE = """{script}
export default {{
render({{ model, el }}) {{
el.innerHTML = model.get("html");
const root = el.querySelector(".cgmm-live"), data = root.querySelector("script");
liveFigure(root, JSON.parse(data.textContent), {name}, model);
}}
}};
"""


def page_script(mode: str) -> str:
    """Return the script that starts all figures of a mode on a page without a kernel."""
    return PAGE_SCRIPT.format(script=join_script_files(mode), mode=mode, name=mode.upper())


def build_widget_module(mode: str) -> str:
    """Return the JavaScript module of a widget for figures of a mode."""
    return WIDGET_MODULE.format(script=join_script_files(mode), name=mode.upper())


def join_script_files(mode: str) -> str:
    """Return the code of all files of a mode, without comments and indentation."""
    code = "".join(_read_file(name) for name in MODES[mode])
    code = re.sub(r"^\s*//.*$", "", code, flags=re.MULTILINE)
    return "\n".join(line.strip() for line in code.splitlines() if line.strip())


def _read_file(name: str) -> str:
    """Return the text of a file of this subpackage."""
    return files("cgmm.explore").joinpath(name).read_text(encoding="utf8")


# ------------------------------------------------------------ widget


def build_live_widget(
    html: str, style: str, module: str, preset: dict[str, Any], fit: Callable[[], object]
) -> Any:
    """Build a widget that shares points, links (i, j, sign) and fitted parameters with Python.

    The button of the widget calls ``fit``.
    """
    with explain_missing_package("anywidget", "a live figure with a kernel", "widgets"):
        import anywidget
        import traitlets

    def make_trait(kind: type, **options: Any) -> Any:
        return kind(**options).tag(sync=True)

    class LiveWidget(anywidget.AnyWidget):
        _esm = module
        _css = style
        html = make_trait(traitlets.Unicode)
        points = make_trait(traitlets.List)
        links = make_trait(traitlets.List)
        fitted = make_trait(traitlets.Dict, allow_none=True, default_value=None)

    def handle_message(_: object, content: object, buffers: object) -> None:
        if content == {"fit": True}:
            fit()

    widget = LiveWidget(html=html, points=preset["X"], links=preset["links"])
    widget.on_msg(handle_message)
    return widget
