"""The live figure, in which readers move points, relations and parameters.

It computes in the page, by the scripts of its mode: the functions of the primer, input and drawing,
and the display of one question of the book. With a kernel the same figure is a widget, which
reports points and relations to Python. Chapters create it as :class:`LiveFigure`.
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


# A preset may replace these arguments of the figure.
REPLACEABLE = ("X", "y", "must_link", "cannot_link", "starts")
# The mode "companion" offers these.
CONTROLS = ("labels", "together", "apart", "normaliser", "weight", "metric")
# A name stands in addresses as it is.
FIGURE_NAME = re.compile(r"[a-z][a-z0-9-]*")
FILES = {
    name: files("cgmm.explore").joinpath(name).read_text(encoding="utf8")
    for name in ("live.html", "live.css")
}


class LiveFigure:
    """A figure that computes while readers move its points, for notebooks and for pages.

    Parameters
    ----------
    X : (N, 2) array-like
        The points.
    classes : int, default=2
        K, from 2 to 5.
    mode : {"em", "relations", "rivals", "weights", "kmeans", "metric", "cut", "duel", \
"companion"}, default="em"
        What is computed: EM by half-steps; EM with relations; several starts compared, with hard
        relations ("rivals") or with answers whose log-weight readers set ("weights"); EM whose
        variance goes to zero; the metric of RCA; the mixture defined by a straight cut; ellipses
        that readers place and EM improves, the first must-links being given one by one ("duel");
        or several starts compared, with the controls that `controls` names ("companion").
    title : str
        Title of the figure.
    task : str, optional
        Question that readers should answer before they use the figure.
    y : (N,) int array-like, optional
        Classes, for the mode "metric"; -1 if unknown.
    must_link, cannot_link : (P, 2) int array-like, optional
        Pairs of points that the figure starts with.
    starts : sequence of parameters or of (N,) int array-likes, optional
        Initial parameters of EM: objects with ``weights``, ``means`` and ``covariances``, as those
        of ``cgmm.primer`` and ``cgmm.mixture``, or classes, from which an M-step makes them. Modes
        that compare starts take several, others one; the last of "duel" is the reader's.
    words : sequence of str, optional
        Name of the fit from each start.
    pool : {"full", "tied", "diag", "spherical"}, default="full"
        Type of the covariances in the M-step.
    sampling : {"points", "chunklets"}, default="points"
        Unit of the sampling model, points or chunklets.
    presets : mapping from str to mapping, optional
        Named data sets to choose from; each may have its own ``X``, ``y``, ``must_link``,
        ``cannot_link`` and ``starts``. The first one is shown first.
    beside : bool, default=False
        True: readers may show K-means beside EM.
    weight, radius : float, default=1
        Initial values of the sliders of "weights" (and of "companion", where 4 means a hard
        relation) and "kmeans".
    controls : sequence of str, default=()
        Controls of the mode "companion": "labels", "together", "apart", "normaliser", "weight" and
        "metric".
    name : str, optional
        Name of the figure in the page's address, which then holds what readers have set, for
        instance ``#figure=pairs&together=1-17``. A link with such an address sets the figure.

    Attributes
    ----------
    points : (N, 2) array
        The points; with a kernel, as the reader has moved them.
    must_link, cannot_link : (P, 2) int arrays
        The relations; with a kernel, as the reader has drawn them.

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
        given = {"X": X, "y": y, "must_link": must_link, "cannot_link": cannot_link}
        given["starts"] = starts
        chosen = [(name, {**given, **preset}) for name, preset in (presets or {"": {}}).items()]
        read = [_preset(which, known, classes, sampling) for which, known in chosen]
        names = list(words or [f"start {k + 1}" for k in range(len(read[0]["starts"]))])
        self.spec: dict[str, Any] = {
            "K": classes, "pool": pool, "sampled": sampling, "beside": beside,
            "answers": mode == "weights", "weight": weight, "beta": radius, "speed": 2,
            "view": _view([point for one in read for point in one["X"]]),
            "colours": COLOURS, "words": names, "presets": [read[0], *_differences(read)],
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
        return f"LiveFigure({self.title!r}, {len(self._first['X'])} points, {self.mode})"

    @property
    def _first(self) -> dict[str, Any]:
        """Points and links of the first preset."""
        return self.spec["presets"][0]

    def _current(self, name: str) -> Any:
        """Return the current value of the widget, or of the first preset without one."""
        if self._widget is not None:
            return getattr(self._widget, name)
        return self._first["X" if name == "points" else name]

    @property
    def points(self) -> FloatArray:
        """(N, 2) the points; with a kernel, as the reader has moved them."""
        return np.array(self._current("points"), dtype=float)

    @property
    def must_link(self) -> IntArray:
        """(P, 2) pairs that belong together; with a kernel, as the reader has drawn them."""
        return _pairs(self._current("links"), 1)

    @property
    def cannot_link(self) -> IntArray:
        """(P, 2) pairs that do not; with a kernel, as the reader has drawn them."""
        return _pairs(self._current("links"), -1)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return widget and page together; Jupyter and the book show the one that they support."""
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
            Equal figures give equal bytes, on all machines and at every call.
        """
        return self._element(f"<script>\n{page_script(self.mode)}</script>\n", FILES["live.css"])

    def _element(self, script: str, style: str) -> str:
        """Return the HTML element, with a static picture of its points for pages without script."""
        left, bottom, right, top = self.spec["view"]
        zoom = 400 / (right - left)
        places = (np.array(self._first["X"]) - [left, top]) * [zoom, -zoom]
        still = "".join(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="5"/>' for x, y in places)
        task = self.task and f'<p class="cgmm-live-task">Guess first. {escape(self.task)}</p>\n'
        # Without "<", nothing in the data can end the script element that holds it.
        data = json.dumps(self.spec, ensure_ascii=False).replace("<", "\\u003c")
        return FILES["live.html"].rstrip().format(
            title=escape(self.title), mode=self.mode, task=task or "", text=escape(self._text()),
            still=still, height=round(zoom * (top - bottom)), data=data, script=script, style=style,
        )  # fmt: skip

    def _text(self) -> str:
        """Return a description of the figure before readers have moved anything."""
        counts = [len(_pairs(self._first["links"], sign)) for sign in (1, -1)]
        links = ", {} must-links and {} cannot-links".format(*counts) if any(counts) else ""
        return f"{len(self._first['X'])} points in the plane{links}."

    def widget(self) -> Any:
        """Return the figure as a widget that reports mouse and touch events to Python.

        Returns
        -------
        anywidget.AnyWidget
            The same widget at every call.

        Raises
        ------
        ImportError
            If anywidget is missing.
        """
        if self._widget is None:
            html = self._element("", "")
            module = live_module(self.mode)
            self._widget = live_widget(html, FILES["live.css"], module, self._first, self.fit)
        return self._widget

    def fit(self) -> ConstrainedGaussianMixture:
        """Fit a mixture to the current points and relations, and draw it.

        Returns
        -------
        ConstrainedGaussianMixture
            The model; its ellipses at two standard deviations are dotted in the figure.

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
        self.widget().fitted = _theta(model.parameters_, self.spec["K"])
        return model


def _preset(name: str, known: Mapping[str, Any], K: int, sampling: str) -> dict[str, Any]:
    """Return points, classes, links and starts as plain lists, or raise an error."""
    if unknown := set(known) - set(REPLACEABLE):
        raise ValueError(
            f"the preset {name!r} brings {sorted(unknown)}: it may bring {REPLACEABLE}"
        )
    X = np.array(known["X"], dtype=float)
    if X.ndim != 2 or X.shape[1] != 2 or not np.isfinite(X).all() or len(X) < 3 * K:
        raise ValueError(
            f"X has shape {X.shape}: a live figure needs finite points in the plane, an (N, 2) "
            f"array with at least {3 * K} rows"
        )
    must, cannot = (np.array(known[kind], dtype=int).reshape(-1, 2) for kind in REPLACEABLE[2:4])
    SideInformation.build(len(X), must_link=must, cannot_link=cannot, sampling=sampling)
    links = [[*pair, 1] for pair in must.tolist()] + [[*pair, -1] for pair in cannot.tolist()]
    y = np.full(len(X), -1) if known["y"] is None else np.asarray(known["y"], dtype=int)
    if y.shape != (len(X),) or y.max() >= K:
        raise ValueError(f"y must hold one class below {K} for each of {len(X)} points, -1: none")
    starts = known["starts"] or [_default_start(X, K)]
    return {
        "name": name, "X": _round_to_lists(X), "y": y.tolist(), "links": links,
        "starts": [_theta(_start(start, X, K), K) for start in starts],
    }  # fmt: skip


def _differences(presets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all presets but the first, reduced to their differences to save bytes."""
    first, *others = presets
    return [{key: one[key] for key in one if one[key] != first[key]} for one in others]


def _theta(parameters: object, K: int) -> dict[str, Any]:
    """Return parameters as plain lists, or raise an error if shapes are wrong."""
    shapes = {"weights": (K,), "means": (K, 2), "covariances": (K, 2, 2)}
    found = {name: np.asarray(getattr(parameters, name, ()), dtype=float) for name in shapes}
    for name, shape in shapes.items():
        if found[name].shape != shape:
            raise ValueError(
                f"{name} of a start have shape {found[name].shape}; with classes={K} in the plane "
                f"it must be {shape}"
            )
    return {name: _round_to_lists(values) for name, values in found.items()}


def _start(start: Any, X: FloatArray, K: int) -> Any:
    """Return initial parameters, from an M-step if the start is an (N,) array of classes."""
    if hasattr(start, "means"):
        return start
    z = np.asarray(start)
    if z.shape != (len(X),) or not np.isin(z, range(K)).all():
        raise ValueError(
            f"a start must have weights, means and covariances, or be one class below {K} for each "
            f"of {len(X)} points"
        )
    return from_responsibilities(X, np.eye(K)[z.astype(int)], POOLINGS["full"])


def _default_start(X: FloatArray, K: int) -> Parameters:
    """Return initial parameters with components in a row along the longer axis of the points."""
    order = X[:, np.ptp(X, axis=0).argmax()].argsort()
    means = np.array([X[part].mean(axis=0) for part in np.array_split(order, K)])
    return Parameters(np.full(K, 1 / K), means, np.repeat([np.cov(X.T)], K, axis=0))


def _round_to_lists(values: ArrayLike) -> Any:
    """Return nested lists of numbers, rounded to seven digits to save bytes."""
    values = np.asarray(values, dtype=float)
    return np.vectorize(lambda x: float(f"{x:.7g}"), otypes=[float])(values).tolist()


def _view(X: Sequence[Sequence[float]]) -> list[float]:
    """Return left, bottom, right and top of a view with all points and a moderate aspect ratio."""
    low, high = np.min(X, axis=0), np.max(X, axis=0)
    half, middle = 0.6 * (high - low), (low + high) / 2
    half = np.maximum(half, [half[1] / 0.95, half[0] * 0.7])
    left, bottom, right, top = np.concatenate([middle - half, middle + half])
    return _round_to_lists([left, bottom, right, top])


def _pairs(links: Sequence[Sequence[int]], sign: int) -> IntArray:
    """Return the (P, 2) pairs of the links of one sign."""
    return np.array([link[:2] for link in links if link[2] == sign], dtype=int).reshape(-1, 2)


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {choices}")


# ------------------------------------------------------------ scripts


_EM = ("live_network.js", "live_mixture.js", "live_em.js")
_DRAWING = ("live_address.js", "live_figure.js", "live_panels.js")
_RIVALS = (*_EM, *_DRAWING, "live_rivals.js")
_STEPS = (*_EM, "live_lloyd.js", *_DRAWING, "live_steps.js")
# These files make up each mode; the last one defines an object with the name of the mode.
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
    """Return the script of a page without a kernel."""
    return PAGE_SCRIPT.format(script=script(mode), mode=mode, name=mode.upper())


def live_module(mode: str) -> str:
    """Return the module of the widget."""
    return WIDGET_MODULE.format(script=script(mode), name=mode.upper())


def script(mode: str) -> str:
    """Return the functions of a mode without comments and indentation."""
    whole = "".join(_read(name) for name in MODES[mode])
    bare = re.sub(r"^\s*//.*$", "", whole, flags=re.MULTILINE)
    return "\n".join(line.strip() for line in bare.splitlines() if line.strip())


def _read(name: str) -> str:
    return files("cgmm.explore").joinpath(name).read_text(encoding="utf8")


# ------------------------------------------------------------ widget


def live_widget(
    html: str, style: str, module: str, preset: dict[str, Any], fit: Callable[[], object]
) -> Any:
    """Build a widget with traits points, links (i, j, sign) and fitted, whose button calls fit."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(
            "a live figure with a kernel needs anywidget: install it with pip install "
            "'constrained-mixtures[widgets]'"
        ) from error

    def trait(kind: type, **options: Any) -> Any:
        return kind(**options).tag(sync=True)

    class LiveWidget(anywidget.AnyWidget):
        _esm = module
        _css = style
        html = trait(traitlets.Unicode)
        points = trait(traitlets.List)
        links = trait(traitlets.List)
        fitted = trait(traitlets.Dict, allow_none=True, default_value=None)

    def handle_message(_: object, content: object, buffers: object) -> None:
        if content == {"fit": True}:
            fit()

    widget = LiveWidget(html=html, points=preset["X"], links=preset["links"])
    widget.on_msg(handle_message)
    return widget
