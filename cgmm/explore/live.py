"""The live figure: points, relations and parameters under the reader's hand. All chapters.

It computes in the page, by the scripts that its mode needs (``live_script.py``): the primer's
functions, hand and keys and drawing, and what a question of the book shows. With a kernel the same
figure is a widget (``live_widget.py``), whose points and relations come back to Python.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cgmm.explore.live_script import MODES, live_module, page_script
from cgmm.explore.live_widget import live_widget
from cgmm.mixture import POOLINGS, ConstrainedGaussianMixture, Parameters
from cgmm.network import SideInformation
from cgmm.numerics import FloatArray, IntArray
from cgmm.plot.looks import COLOURS

# What a preset may bring in the place of what the figure was given.
BROUGHT = ("X", "y", "must_link", "cannot_link", "starts")
FILES = {
    name: files("cgmm.explore").joinpath(name).read_text(encoding="utf8")
    for name in ("live.html", "live.css")
}


class LiveFigure:
    """A figure that computes while the reader moves its points, for a notebook and for its page.

    Parameters
    ----------
    X : (N, 2) array-like
        The points.
    classes : int, default=2
        K, from 2 to 5.
    mode : {"em", "relations", "rivals", "weights", "kmeans", "metric", "cut"}, default="em"
        What is computed: EM by half-steps; the same with relations; the best of several starts
        at once, under relations that hold, or under answers of a weight that the reader sets;
        a variance that goes to zero; the metric of RCA; the mixture that a straight cut makes.
    title : str
        What the figure is about.
    task : str, optional
        What to guess before the figure is touched.
    y : (N,) int array-like, optional
        Classes, for the metric; -1 where unknown.
    must_link, cannot_link : (P, 2) int array-like, optional
        Pairs of points that the figure starts with.
    starts : sequence of parameters, optional
        Where EM begins: objects with ``weights``, ``means`` and ``covariances``, as those of
        ``cgmm.primer`` and ``cgmm.mixture``. Several for the modes that compare; else one.
    words : sequence of str, optional
        What the fit from each start is called.
    pool : {"full", "tied", "diag", "spherical"}, default="full"
        Covariances of the M-step.
    sampling : {"points", "chunklets"}, default="points"
        What is sampled, points or chunklets.
    presets : mapping from str to mapping, optional
        Named data sets to choose from; each may bring its own ``X``, ``y``, ``must_link``,
        ``cannot_link`` and ``starts``, and the first is shown first.
    beside : bool, default=False
        Whether K-means may be shown beside EM.
    weight, radius : float, default=1
        Where the sliders of "weights" and "kmeans" start.

    Attributes
    ----------
    points : (N, 2) array
        The points; with a kernel, as the reader has moved them.
    must_link, cannot_link : (P, 2) int arrays
        The relations; with a kernel, as the reader has drawn them.

    Raises
    ------
    ValueError
        If points, relations, starts or presets do not fit, or no assignment keeps the relations.

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
    ) -> None:
        _check_choice("mode", mode, tuple(MODES))
        _check_choice("pool", pool, tuple(POOLINGS))
        _check_choice("classes", classes, (2, 3, 4, 5))
        self.title, self.task, self.mode = title, task, mode
        given = {"X": X, "y": y, "must_link": must_link, "cannot_link": cannot_link}
        given["starts"] = starts
        chosen = [(name, {**given, **preset}) for name, preset in (presets or {"": {}}).items()]
        read = [_preset(name, known, classes, sampling) for name, known in chosen]
        names = list(words or [f"start {k + 1}" for k in range(len(read[0]["starts"]))])
        self.spec: dict[str, Any] = {
            "K": classes, "pool": pool, "sampled": sampling, "beside": beside,
            "answers": mode == "weights", "weight": weight, "beta": radius, "speed": 2,
            "view": _view([point for one in read for point in one["X"]]),
            "colours": COLOURS, "words": names, "presets": [read[0], *_changes(read)],
        }  # fmt: skip
        self._widget: Any = None

    def __repr__(self) -> str:
        return f"LiveFigure({self.title!r}, {len(self._first['X'])} points, {self.mode})"

    @property
    def _first(self) -> dict[str, Any]:
        """Points and links that the figure starts with."""
        return self.spec["presets"][0]

    def _now(self, name: str) -> Any:
        """What the widget holds, if there is one, else what the figure starts with."""
        if self._widget is not None:
            return getattr(self._widget, name)
        return self._first["X" if name == "points" else name]

    @property
    def points(self) -> FloatArray:
        """(N, 2) the points; with a kernel, as the reader has moved them."""
        return np.array(self._now("points"), dtype=float)

    @property
    def must_link(self) -> IntArray:
        """(P, 2) pairs that belong together; with a kernel, as the reader has drawn them."""
        return _pairs(self._now("links"), 1)

    @property
    def cannot_link(self) -> IntArray:
        """(P, 2) pairs that do not; with a kernel, as the reader has drawn them."""
        return _pairs(self._now("links"), -1)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Both lives at once: Jupyter and the book each take the one that they can show."""
        bundle = {"text/plain": repr(self), "text/html": self.html()}
        try:
            widget = self.widget()
        except ImportError:
            return bundle
        return {**widget._repr_mimebundle_()[0], **bundle}

    def html(self) -> str:
        """The life without a kernel: one element that brings its data, style and scripts.

        Returns
        -------
        str
            The same bytes for the same figure, wherever and however often it is made.
        """
        return self._element(f"<script>\n{page_script(self.mode)}</script>\n", FILES["live.css"])

    def _element(self, script: str, style: str) -> str:
        """The element, with a still of its points for pages without script."""
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
        """What the figure shows before a hand has moved it."""
        told = [len(_pairs(self._first["links"], sign)) for sign in (1, -1)]
        links = ", {} must-links and {} cannot-links".format(*told) if any(told) else ""
        return f"{len(self._first['X'])} points in the plane{links}."

    def widget(self) -> Any:
        """The life with a kernel: the same figure, which tells Python what the hand has done.

        Returns
        -------
        anywidget.AnyWidget
            The same one at every call.

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
        """Fit the package's mixture to points and relations as they now are, and draw it.

        Returns
        -------
        ConstrainedGaussianMixture
            The model, whose ellipses of two deviations are dotted in the figure.

        Raises
        ------
        ImportError
            If anywidget is missing.
        ValueError
            As the model's ``fit`` does.
        """
        model = ConstrainedGaussianMixture(
            self.spec["K"], covariance_type=self.spec["pool"], sampling=self.spec["sampled"],
            n_init=4, random_state=0,
        )  # fmt: skip
        model.fit(self.points, must_link=self.must_link, cannot_link=self.cannot_link)
        self.widget().fitted = _theta(model.parameters_, self.spec["K"])
        return model


def _preset(name: str, known: Mapping[str, Any], K: int, sampling: str) -> dict[str, Any]:
    """Points, classes, links and starts as plain lists; what does not fit is refused."""
    if unknown := set(known) - set(BROUGHT):
        raise ValueError(f"the preset {name!r} brings {sorted(unknown)}: it may bring {BROUGHT}")
    X = np.array(known["X"], dtype=float)
    if X.ndim != 2 or X.shape[1] != 2 or not np.isfinite(X).all() or len(X) < 3 * K:
        raise ValueError(
            f"X has shape {X.shape}: a live figure needs finite points in the plane, an (N, 2) "
            f"array with at least {3 * K} rows"
        )
    must, cannot = (np.array(known[kind], dtype=int).reshape(-1, 2) for kind in BROUGHT[2:4])
    SideInformation.build(len(X), must_link=must, cannot_link=cannot, sampling=sampling)
    links = [[*pair, 1] for pair in must.tolist()] + [[*pair, -1] for pair in cannot.tolist()]
    y = np.full(len(X), -1) if known["y"] is None else np.asarray(known["y"], dtype=int)
    if y.shape != (len(X),) or y.max() >= K:
        raise ValueError(f"y must hold one class below {K} for each of {len(X)} points, -1: none")
    starts = known["starts"] or [_side_by_side(X, K)]
    return {
        "name": name, "X": _plain(X), "y": y.tolist(), "links": links,
        "starts": [_theta(start, K) for start in starts],
    }  # fmt: skip


def _changes(presets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of all but the first, what is not as in the first: the page is to be light."""
    first, *others = presets
    return [{key: one[key] for key in one if one[key] != first[key]} for one in others]


def _theta(parameters: object, K: int) -> dict[str, Any]:
    """Parameters as plain lists."""
    shapes = {"weights": (K,), "means": (K, 2), "covariances": (K, 2, 2)}
    found = {name: np.asarray(getattr(parameters, name, ()), dtype=float) for name in shapes}
    for name, shape in shapes.items():
        if found[name].shape != shape:
            raise ValueError(
                f"{name} of a start have shape {found[name].shape}; with classes={K} in the plane "
                f"it must be {shape}"
            )
    return {name: _plain(values) for name, values in found.items()}


def _side_by_side(X: FloatArray, K: int) -> Parameters:
    """K components in a row along the longer axis of the points."""
    order = X[:, np.ptp(X, axis=0).argmax()].argsort()
    means = np.array([X[part].mean(axis=0) for part in np.array_split(order, K)])
    return Parameters(np.full(K, 1 / K), means, np.repeat([np.cov(X.T)], K, axis=0))


def _plain(values: ArrayLike) -> Any:
    """Nested lists of numbers with seven digits: enough for a figure, and light in a page."""
    values = np.asarray(values, dtype=float)
    return np.vectorize(lambda x: float(f"{x:.7g}"), otypes=[float])(values).tolist()


def _view(X: Sequence[Sequence[float]]) -> list[float]:
    """Left, bottom, right, top: all points with a margin, neither too flat nor too tall."""
    low, high = np.min(X, axis=0), np.max(X, axis=0)
    half, middle = 0.6 * (high - low), (low + high) / 2
    half = np.maximum(half, [half[1] / 0.95, half[0] * 0.7])
    left, bottom, right, top = np.concatenate([middle - half, middle + half])
    return _plain([left, bottom, right, top])


def _pairs(links: Sequence[Sequence[int]], sign: int) -> IntArray:
    """(P, 2) the pairs of links of one sign."""
    return np.array([link[:2] for link in links if link[2] == sign], dtype=int).reshape(-1, 2)


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {choices}")
