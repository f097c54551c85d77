"""Draw the figures of the recipes in book/howto.md from the variables that the recipes compute.

    python tools/howto.py

The recipes run in order, and after each section its figure is drawn from the variables that exist
then. `make notebooks` calls this tool. The page itself contains the captions and alternative texts.
The figures are files in book/_figures, named after the headings.
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
DRAWING_FUNCTIONS: dict[str, Draw] = {}
# Sections that show an existing picture, with its file.
EXISTING_PICTURES = {"ask-a-person-the-next-question": "_static/interview.png"}
SNIPPET = re.compile(r"```python\n(.*?)```", re.DOTALL)


def main() -> None:
    """Write all figures."""
    mpl.use("Agg")
    FIGURES.mkdir(exist_ok=True)
    with mpl.rc_context():
        plot.use_style()
        mpl.rcParams["figure.figsize"] = (4.8, 4.2)
        for name, scope in sections():
            if name in EXISTING_PICTURES:
                continue
            figure = DRAWING_FUNCTIONS[name](scope).figure
            for text in figure.findobj(Text):
                text.set_path_effects([])  # Outlines of letters would double the file size.
            (FIGURES / f"{name}.svg").write_text(plot.svg(figure), encoding="utf8")
            plt.close("all")


def slug(heading: str) -> str:
    """Return the anchor of a heading: its words in lower case, joined by dashes."""
    return re.sub(r"[^a-z]+", "-", heading.lower()).strip("-")


def headings() -> list[str]:
    """Return the anchors of all sections, in order."""
    return [slug(one) for one in re.findall(r"^## (.*)$", PAGE.read_text("utf8"), re.MULTILINE)]


def sections() -> Iterator[tuple[str, dict[str, Any]]]:
    """Run the recipes, and yield the anchor of each section with the variables defined so far."""
    scope: dict[str, Any] = {}
    for part in re.split(r"^## ", PAGE.read_text("utf8"), flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        for example in doctest.DocTestParser().get_examples("\n".join(SNIPPET.findall(text))):
            if example.exc_msg is None and doctest.SKIP not in example.options:
                with warnings.catch_warnings(action="ignore"):
                    exec(compile(example.source, str(PAGE), "exec"), scope)
        yield slug(heading), scope


def draws_figure_of(name: str) -> Callable[[Draw], Draw]:
    """Return a decorator that registers the function drawing the figure of a section."""

    def register(function: Draw) -> Draw:
        DRAWING_FUNCTIONS[name] = function
        return function

    return register


def line_chart(x: list[Any], heights: Any, xlabel: str, ylabel: str) -> Axes:
    """Draw a line through the heights at evenly spaced values ``x``."""
    _, ax = plt.subplots(figsize=(4.8, 2.8))
    ax.plot(range(len(x)), heights, "o-", color=plot.colour(0))
    ax.set_xticks(range(len(x)), map(str, x))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return ax


def draw_named_line(ax: Axes, ends: Any, names: Any, style: str = "-") -> None:
    """Draw a line between two points, with the names of the points beyond its ends."""
    ax.plot(*ends.T, style, color=plot.INK, lw=1.5, zorder=3)
    for name, end, other in zip(names, ends, ends[::-1], strict=True):
        x, y = 12 * (end - other) / np.linalg.norm(end - other)
        ha = "left" if x > 6 else "right" if x < -6 else "center"
        plot.label(ax, name, end, offset=(x / 3 if ha != "center" else x, y), ha=ha)


# ------------------------------------------------------------------------ one for each section


@draws_figure_of("start-points-and-pairs-of-points")
def _draw_points_and_pairs(scope: dict[str, Any]) -> Axes:
    ax = plot.scatter(scope["X"], size=14)
    for pair, style in (((36, 114), "-"), ((107, 27), "-"), ((101, 67), "--")):
        draw_named_line(ax, scope["X"][list(pair)], [str(row) for row in pair], style)
    return ax


@draws_figure_of("see-and-explain-a-fit")
def _draw_fit(scope: dict[str, Any]) -> Axes:
    relations = {"must_link": scope["must_link"], "cannot_link": scope["cannot_link"]}
    return plot.fit(scope["model"], scope["X"], **relations)


@draws_figure_of("use-labels-of-some-points")
def _draw_labels(scope: dict[str, Any]) -> Axes:
    ax = plot.scatter(scope["X"], scope["labels"], names=scope["classes"])
    return plot.boundary(scope["classifier"], ax, resolution=60)


@draws_figure_of("take-pairs-from-a-table-with-names-of-points")
def _draw_named_pairs(scope: dict[str, Any]) -> Axes:
    ax = plot.scatter(scope["X"], size=14)
    for pair in scope["answers"]:
        draw_named_line(ax, scope["X"][[scope["people"].index(name) for name in pair]], pair)
    return ax


@draws_figure_of("say-how-certain-an-answer-is")
def _draw_log_odds(scope: dict[str, Any]) -> Axes:
    certainty = np.linspace(0.03, 0.97, 200)
    _, ax = plt.subplots(figsize=(4.8, 2.8))
    ax.plot(certainty, np.log(certainty / (1 - certainty)), color=plot.colour(0))
    ax.plot(0.9, scope["soft"][0, 2], "o", color=plot.colour(1), zorder=3)
    plot.label(ax, "0.9: 2.2", (0.9, scope["soft"][0, 2]), 1, offset=(-8, 0), ha="right")
    ax.axhline(0, color=plot.NEUTRAL, lw=0.8)
    ax.set(xlabel="certainty that two points belong together", ylabel="log-odds")
    return ax


@draws_figure_of("decide-by-answers")
def _draw_scores_of_answers(scope: dict[str, Any]) -> Axes:
    found = scope["search"].cv_results_
    scores = zip(found["param_covariance_type"], found["mean_test_score"], strict=True)
    return plot.dots(dict(scores), xlabel="mean log score of answers held out")


@draws_figure_of("combine-several-annotators")
def _draw_error_rates(scope: dict[str, Any]) -> Axes:
    learnt = scope["learnt"]
    rates = dict(zip(learnt.annotators_, learnt.rates_[:, 0], strict=True))
    return plot.dots(rates, xlabel="error rate that was learnt (true: 0 and 0.33)")


@draws_figure_of("mend-relations-that-contradict-each-other")
def _draw_contradiction(scope: dict[str, Any]) -> Axes:
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


@draws_figure_of("use-relations-in-pipelines-searches-and-cross-validation")
def _draw_links_per_fold(scope: dict[str, Any]) -> Axes:
    pairs, rows = PairsAmong(scope["must_link"], 120), {}
    folds_of_points = KFold(3, shuffle=True, random_state=0)
    for name, folds in (("points", folds_of_points), ("groups", scope["folds"])):
        groups = scope["groups"] if name == "groups" else None
        trains = [train for train, _ in folds.split(scope["X"], groups=groups)]
        rows[f"folds of {name}"] = [len(pairs[train].pairs) for train in trains]
    return plot.dots(rows, xlabel="must-links of 16 that a training set keeps")


@draws_figure_of("predict-new-points-with-relations-among-them")
def _draw_predictions(scope: dict[str, Any]) -> Axes:
    new, model, panels = np.array(scope["new"]), scope["model"], {}
    for title, labels in (("Each by itself", model.predict(new)), ("Two apart", scope["apart"])):

        def draw(ax: Axes, labels: Any = labels, apart: bool = title == "Two apart") -> None:
            plot.ellipses(model, ax, names=())
            plot.scatter(new, labels, ax=ax, size=60)
            if apart:
                ax.plot(*new[:2].T, "--", color=plot.INK, zorder=1)

        panels[title] = draw
    return plot.compare(panels)[0]


@draws_figure_of("when-exact-inference-is-out-of-reach")
def _draw_costs(scope: dict[str, Any]) -> Axes:
    numbers = [40, 80, 120, 160, 200]
    costs = []
    for n in numbers:
        side = SideInformation.build(120, preferences=scope["many"][:n])
        costs.append(max(part.n_operations for part in inference_cost(side.graph, 2)))
    ax = line_chart(numbers, costs, "random preferences among 120 points", "table entries")
    ax.set_yscale("log")
    return ax


@draws_figure_of("choose-the-number-of-components")
def _draw_bic(scope: dict[str, Any]) -> Axes:
    return line_chart([2, 3, 4], [one.bic() for one in scope["models"]], "components", "BIC")


@draws_figure_of("give-a-class-several-gaussians")
def _draw_two_clumps(scope: dict[str, Any]) -> Axes:
    labels = (scope["truth"] == "odd").astype(int)
    return plot.boundary(scope["two"], plot.scatter(scope["points"], labels), resolution=80)


@draws_figure_of("learn-a-metric-from-pairs")
def _draw_scores_of_metrics(scope: dict[str, Any]) -> Axes:
    names = ["K-means alone", "after RCA", "after RCA, shrinkage 0.2"]
    found = dict(zip(names, scope["scores"], strict=True))
    return plot.dots(found, xlabel="adjusted Rand index, wine, 19 must-links", highlight=names[2])


@draws_figure_of("cluster-a-table-of-mixed-columns")
def _draw_island_shares(scope: dict[str, Any]) -> Axes:
    shares = {
        f"component {k}, {island}": scope["mixed"].probabilities_[0][k, place]
        for place, island in enumerate(scope["mixed"].categories_[0])
        for k in range(2)
    }
    return plot.dots(shares, xlabel="probability of the island")


@draws_figure_of("cluster-categorical-data")
def _draw_yes_shares(scope: dict[str, Any]) -> Axes:
    shares = {
        f"component {k}, question {q + 1}": scope["model"].probabilities_[q][k, 1]
        for q in range(2)
        for k in range(2)
    }
    return plot.dots(shares, xlabel='probability of "yes"')


@draws_figure_of("deal-with-missing-values")
def _draw_imputed_values(scope: dict[str, Any]) -> Axes:
    ax = plot.scatter(scope["X"][scope["keep"]], scope["model"].labels_[scope["keep"]], size=14)
    for row in np.flatnonzero(~scope["keep"]):
        height = scope["X"][row, 1]
        ax.axhline(height, color=plot.INK, lw=0.8, ls="--")
        samples = [table[row, 0] for table in scope["drawn"]]
        ax.plot(samples, np.full(len(samples), height), "x", color=plot.INK, ms=4)
        ax.plot(scope["expected"][row, 0], height, "D", color=plot.INK, ms=6)
        place = (5.2, height)
        plot.label(ax, f"row {row}", place, offset=(0, 3 if row == 3 else -3), ha="left")
    return ax


@draws_figure_of("save-time-and-memory")
def _draw_covariance_sizes(scope: dict[str, Any]) -> Axes:
    D, K = 20, 5
    sizes = {
        "full": K * D * (D + 1) // 2, "tied": D * (D + 1) // 2, "diag": K * D, "spherical": K,
    }  # fmt: skip
    return plot.dots(sizes, format="{:.0f}", xlabel="numbers in the covariances, K = 5, D = 20")


@draws_figure_of("save-and-load-a-fit")
def _draw_loaded_fit(scope: dict[str, Any]) -> Axes:
    return plot.ellipses(scope["again"], names=())


@draws_figure_of("judge-a-clustering-by-relations-held-out")
def _draw_held_out_relations(scope: dict[str, Any]) -> Axes:
    held_out = {"must_link": scope["must_link"][:5], "cannot_link": scope["cannot_link"][:5]}
    return plot.fit(scope["model"], scope["X"], names=(), **held_out)


if __name__ == "__main__":
    main()
