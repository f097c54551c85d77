"""Draw the figures of the page of recipes, from what the recipes compute.

    python tools/howto.py

Runs the recipes of book/howto.md in order, and after each section draws its figure from the
variables that are there. `make notebooks` calls this; the page itself holds captions and
alternative texts. Figures lie in book/_figures, named after their headings.
"""

from __future__ import annotations

import doctest
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text
from pages import ROOT
from sklearn.model_selection import KFold

from cgmm import SideInformation, plot
from cgmm.inference import inference_cost
from cgmm.network import PairsAmong

PAGE, FIGURES = ROOT / "book/howto.md", ROOT / "book/_figures"
Draw = Callable[[dict[str, Any]], Axes]
DRAWN: dict[str, Draw] = {}
# Sections whose figure is a picture of a page, with its file.
SHOWN = {"ask-a-person-the-next-question": "_static/interview.png"}
SNIPPET = re.compile(r"```python\n(.*?)```", re.DOTALL)


def main() -> None:
    """Write every figure."""
    mpl.use("Agg")
    FIGURES.mkdir(exist_ok=True)
    with mpl.rc_context():
        plot.use_style()
        mpl.rcParams["figure.figsize"] = (4.8, 4.2)
        for name, scope in sections():
            if name in SHOWN:
                continue
            figure = DRAWN[name](scope).figure
            for text in figure.findobj(Text):
                text.set_path_effects([])  # an outline of letters doubles the file
            (FIGURES / f"{name}.svg").write_text(plot.svg(figure), encoding="utf8")
            plt.close("all")


def slug(heading: str) -> str:
    """Return a heading as its anchor is written: lower case, with dashes."""
    return re.sub(r"[^a-z]+", "-", heading.lower()).strip("-")


def headings() -> list[str]:
    """Return the slugs of all sections, in order."""
    return [slug(one) for one in re.findall(r"^## (.*)$", PAGE.read_text("utf8"), re.MULTILINE)]


def sections() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each section's slug, with the variables after its recipes have run."""
    scope: dict[str, Any] = {}
    for part in re.split(r"^## ", PAGE.read_text("utf8"), flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        for example in doctest.DocTestParser().get_examples("\n".join(SNIPPET.findall(text))):
            if example.exc_msg is None and doctest.SKIP not in example.options:
                with warnings.catch_warnings(action="ignore"):
                    exec(compile(example.source, str(PAGE), "exec"), scope)
        yield slug(heading), scope


def draws(name: str) -> Callable[[Draw], Draw]:
    """Register a function as that of a section."""

    def register(function: Draw) -> Draw:
        DRAWN[name] = function
        return function

    return register


def line_chart(x: list[Any], heights: Any, xlabel: str, ylabel: str) -> Axes:
    """Draw a number over a few values, each with its height written beside it."""
    _, ax = plt.subplots(figsize=(4.8, 2.8))
    ax.plot(range(len(x)), heights, "o-", color=plot.colour(0))
    ax.set_xticks(range(len(x)), map(str, x))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return ax


def join(ax: Axes, ends: Any, names: Any, style: str = "-") -> None:
    """Draw a line between two points, and their names beyond its ends."""
    ax.plot(*ends.T, style, color=plot.INK, lw=1.5, zorder=3)
    for name, end, other in zip(names, ends, ends[::-1], strict=True):
        x, y = 12 * (end - other) / np.linalg.norm(end - other)
        ha = "left" if x > 6 else "right" if x < -6 else "center"
        plot.label(ax, name, end, offset=(x / 3 if ha != "center" else x, y), ha=ha)


# ------------------------------------------------------------------------ one for each section


@draws("start-points-and-pairs-of-points")
def _start(s: dict[str, Any]) -> Axes:
    ax = plot.scatter(s["X"], size=14)
    for pair, style in (((36, 114), "-"), ((107, 27), "-"), ((101, 67), "--")):
        join(ax, s["X"][list(pair)], [str(row) for row in pair], style)
    return ax


@draws("see-and-explain-a-fit")
def _see(s: dict[str, Any]) -> Axes:
    return plot.fit(s["model"], s["X"], must_link=s["must_link"], cannot_link=s["cannot_link"])


@draws("use-labels-of-some-points")
def _labels(s: dict[str, Any]) -> Axes:
    ax = plot.scatter(s["X"], s["labels"], names=s["classes"])
    return plot.boundary(s["classifier"], ax, resolution=60)


@draws("take-pairs-from-a-table-with-names-of-points")
def _names(s: dict[str, Any]) -> Axes:
    ax = plot.scatter(s["X"], size=14)
    for pair in s["answers"]:
        join(ax, s["X"][[s["people"].index(name) for name in pair]], pair)
    return ax


@draws("say-how-certain-an-answer-is")
def _certain(s: dict[str, Any]) -> Axes:
    certainty = np.linspace(0.03, 0.97, 200)
    _, ax = plt.subplots(figsize=(4.8, 2.8))
    ax.plot(certainty, np.log(certainty / (1 - certainty)), color=plot.colour(0))
    ax.plot(0.9, s["soft"][0, 2], "o", color=plot.colour(1), zorder=3)
    plot.label(ax, "0.9: 2.2", (0.9, s["soft"][0, 2]), 1, offset=(-8, 0), ha="right")
    ax.axhline(0, color=plot.NEUTRAL, lw=0.8)
    ax.set(xlabel="certainty that two points belong together", ylabel="log-odds")
    return ax


@draws("decide-by-answers")
def _decide(s: dict[str, Any]) -> Axes:
    found = s["search"].cv_results_
    scores = zip(found["param_covariance_type"], found["mean_test_score"], strict=True)
    return plot.dots(dict(scores), xlabel="mean log score of answers held out")


@draws("combine-several-annotators")
def _annotators(s: dict[str, Any]) -> Axes:
    learnt = s["learnt"]
    rates = dict(zip(learnt.annotators_, learnt.rates_[:, 0], strict=True))
    return plot.dots(rates, xlabel="error rate that was learnt (true: 0 and 0.33)")


@draws("mend-relations-that-contradict-each-other")
def _mend(s: dict[str, Any]) -> Axes:
    _, ax = plt.subplots(figsize=(4.8, 1.8))
    for (x, y), row in zip(((0, 0), (1, 1), (2, 1), (3, 0)), (9, 2, 8, 5), strict=True):
        ax.plot(x, y, "o", ms=16, color=plot.colour(0), zorder=3)
        plot.label(ax, str(row), (x, y), offset=(0, 10) if y else (0, -10))
    ax.plot([0, 1, 2, 3], [0, 1, 1, 0], color=plot.INK)
    ax.plot([0, 3], [0, 0], "--", color=plot.INK)
    plot.label(ax, "must-links", (1.5, 1), offset=(0, 6))
    plot.label(ax, "cannot-link", (1.5, 0), offset=(0, 6))
    ax.set(xlim=(-0.5, 3.5), ylim=(-0.7, 1.8))
    ax.axis("off")
    return ax


@draws("use-relations-in-pipelines-searches-and-cross-validation")
def _folds(s: dict[str, Any]) -> Axes:
    pairs, rows = PairsAmong(s["must_link"], 120), {}
    for name, folds in (("points", KFold(3, shuffle=True, random_state=0)), ("groups", s["folds"])):
        groups = s["groups"] if name == "groups" else None
        trains = [train for train, _ in folds.split(s["X"], groups=groups)]
        rows[f"folds of {name}"] = [len(pairs[train].pairs) for train in trains]
    return plot.dots(rows, xlabel="must-links of 16 that a training set keeps")


@draws("predict-new-points-with-relations-among-them")
def _predict(s: dict[str, Any]) -> Axes:
    new = np.array(s["new"])
    panels = {}
    for title, labels in (("Each by itself", s["model"].predict(new)), ("Two apart", s["apart"])):

        def draw(ax: Axes, labels: Any = labels, apart: bool = title == "Two apart") -> None:
            plot.ellipses(s["model"], ax, names=())
            plot.scatter(new, labels, ax=ax, size=60)
            if apart:
                ax.plot(*new[:2].T, "--", color=plot.INK, zorder=1)

        panels[title] = draw
    return plot.compare(panels)[0]


@draws("when-exact-inference-is-out-of-reach")
def _costs(s: dict[str, Any]) -> Axes:
    numbers = [40, 80, 120, 160, 200]
    costs = []
    for n in numbers:
        side = SideInformation.build(120, preferences=s["many"][:n])
        costs.append(max(part.n_operations for part in inference_cost(side.graph, 2)))
    ax = line_chart(numbers, costs, "random preferences among 120 points", "table entries")
    ax.set_yscale("log")
    return ax


@draws("choose-the-number-of-components")
def _bic(s: dict[str, Any]) -> Axes:
    return line_chart([2, 3, 4], [one.bic() for one in s["models"]], "components", "BIC")


@draws("give-a-class-several-gaussians")
def _clumps(s: dict[str, Any]) -> Axes:
    labels = (s["truth"] == "odd").astype(int)
    return plot.boundary(s["two"], plot.scatter(s["points"], labels), resolution=80)


@draws("learn-a-metric-from-pairs")
def _metric(s: dict[str, Any]) -> Axes:
    names = ["K-means alone", "after RCA", "after RCA, shrinkage 0.2"]
    found = dict(zip(names, s["scores"], strict=True))
    return plot.dots(found, xlabel="adjusted Rand index, wine, 19 must-links", highlight=names[2])


@draws("cluster-a-table-of-mixed-columns")
def _mixed(s: dict[str, Any]) -> Axes:
    shares = {
        f"component {k}, {island}": s["mixed"].probabilities_[0][k, place]
        for place, island in enumerate(s["mixed"].categories_[0])
        for k in range(2)
    }
    return plot.dots(shares, xlabel="probability of the island")


@draws("cluster-categorical-data")
def _categories(s: dict[str, Any]) -> Axes:
    shares = {
        f"component {k}, question {q + 1}": s["model"].probabilities_[q][k, 1]
        for q in range(2)
        for k in range(2)
    }
    return plot.dots(shares, xlabel='probability of "yes"')


@draws("deal-with-missing-values")
def _missing(s: dict[str, Any]) -> Axes:
    ax = plot.scatter(s["X"][s["keep"]], s["model"].labels_[s["keep"]], size=14)
    for row in np.flatnonzero(~s["keep"]):
        height = s["X"][row, 1]
        ax.axhline(height, color=plot.INK, lw=0.8, ls="--")
        draws = [table[row, 0] for table in s["drawn"]]
        ax.plot(draws, np.full(len(draws), height), "x", color=plot.INK, ms=4)
        ax.plot(s["expected"][row, 0], height, "D", color=plot.INK, ms=6)
        place = (5.2, height)
        plot.label(ax, f"row {row}", place, offset=(0, 3 if row == 3 else -3), ha="left")
    return ax


@draws("save-time-and-memory")
def _time(s: dict[str, Any]) -> Axes:
    D, K = 20, 5
    sizes = {
        "full": K * D * (D + 1) // 2, "tied": D * (D + 1) // 2, "diag": K * D, "spherical": K,
    }  # fmt: skip
    return plot.dots(sizes, format="{:.0f}", xlabel="numbers in the covariances, K = 5, D = 20")


@draws("save-and-load-a-fit")
def _saved(s: dict[str, Any]) -> Axes:
    return plot.ellipses(s["again"], names=())


@draws("judge-a-clustering-by-relations-held-out")
def _held_out(s: dict[str, Any]) -> Axes:
    held_out = {"must_link": s["must_link"][:5], "cannot_link": s["cannot_link"][:5]}
    return plot.fit(s["model"], s["X"], names=(), **held_out)


if __name__ == "__main__":
    main()
