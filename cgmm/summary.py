"""Display tables of results and the summary of a fitted model, as text and as HTML.

``cgmm.plot.table`` builds the tables of all chapters from ``Table``. Users call ``summarise`` after
a fit to see sizes, weights and means of the components, the evidence, the inference engine, and the
number of satisfied relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cgmm.given import read_rows
from cgmm.numerics import IntArray, check_pairs

__all__ = ["Summary", "Table", "summarise"]

MAX_COLUMNS = 4
"""Maximum number of columns whose means are shown; the summary leaves out further columns."""


class Table:
    """Table with a header row; the first column contains names of rows, the others numbers."""

    def __init__(self, head: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
        self.head, *self.rows = [list(map(str, row)) for row in (head, *rows)]

    def _repr_html_(self) -> str:
        # An empty cell is not marked as a heading, because screen readers would announce it.
        head = "".join(
            f'<th scope="col">{escape(word)}</th>' if word else "<td></td>" for word in self.head
        )
        body = "\n".join(
            f'<tr><th scope="row">{escape(name)}</th>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, *cells in self.rows
        )
        return (
            f'<table class="cgmm-table">\n<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody>\n</table>"
        )

    def __repr__(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip()
            for name, *cells in lines
        )


class Summary:
    """Facts about a fit, and a table of its components, which a notebook shows as HTML."""

    def __init__(self, title: str, facts: dict[str, str], components: Table) -> None:
        self.title, self.facts, self.components = title, facts, components

    def __repr__(self) -> str:
        width = max(map(len, self.facts), default=0)
        facts = [f"{name.ljust(width)}  {value}" for name, value in self.facts.items()]
        return "\n".join([self.title, *facts, repr(self.components)])

    def _repr_html_(self) -> str:
        facts = Table(["", ""], self.facts.items())
        tables = f"{facts._repr_html_()}\n{self.components._repr_html_()}"
        return f"<p><strong>{escape(self.title)}</strong></p>\n{tables}"


def summarise(
    model: Any,
    *,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
    preferences: ArrayLike | None = None,
) -> Summary:
    """Summarise a fitted mixture: its components, evidence, engine, and satisfied relations.

    Parameters
    ----------
    model : ConstrainedGaussianMixture or another mixture
        The fitted model.
    must_link, cannot_link : (P, 2) int array-like, default=None
        Relations of the fit; the summary counts those that ``labels_`` satisfies.
    preferences : (P, 3) array-like, default=None
        Rows ``i, j, log-odds``; a row is satisfied if the labels agree with the sign of its
        log-odds.

    Returns
    -------
    Summary
        The summary, shown as text by ``print`` and as tables in a notebook.

    Raises
    ------
    ValueError
        If the model is not fitted, or if a relation does not refer to two of its points.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = [[0.0], [0.5], [1.0], [6.0], [6.5], [7.5], [8.0]]
    >>> model = ConstrainedGaussianMixture(2, random_state=0)
    >>> summarise(model.fit(X, must_link=[[0, 1], [3, 6]]), must_link=[[0, 1], [3, 6]])
    ConstrainedGaussianMixture of 2 components, 7 points of 1 column
    log-evidence     -9.7, exact
    engine           independent (5 nodes)
    EM               converged in 3 iterations
    must-links kept  2 of 2
    component  points  weight  mean x0
    0               4    0.55     7.00
    1               3    0.45     0.50
    """
    theta, labels = model.parameters_, model.labels_
    n_components, n_columns = len(theta.weights), model.n_features_in_
    title = (
        f"{type(model).__name__} of {_pluralise(n_components, 'component')}, "
        f"{_pluralise(len(labels), 'point')} of {_pluralise(n_columns, 'column')}"
    )
    kept = _count_satisfied(labels, must_link, cannot_link, preferences)
    return Summary(title, _list_facts(model) | dict(kept), _tabulate_components(model))


def _pluralise(number: int, noun: str) -> str:
    """Return a number and a noun as text; the noun is in the plural unless the number is one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _list_facts(model: Any) -> dict[str, str]:
    """Return the evidence, the inference engines and the outcome of EM as texts, by name."""
    exact = "exact" if model.evidence_exact_ else "approximate"
    engines = [f"{part.engine} ({_pluralise(part.n_nodes, 'node')})" for part in model.inference_]
    ended = "converged in" if model.converged_ else "not converged after"
    return {
        "log-evidence": f"{model.log_evidence_:.1f}, {exact}",
        "engine": ", ".join(engines) or "none: points are independent",
        "EM": f"{ended} {_pluralise(model.n_iter_, 'iteration')}",
    }


def _count_satisfied(
    labels: IntArray,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | None,
    preferences: ArrayLike | None,
) -> Iterator[tuple[str, str]]:
    """Yield, for each kind of relation, its name and, for example, "2 of 3" satisfied."""
    soft = read_rows("preferences", preferences, 3)
    for name, pairs, together in (
        ("must_link", must_link, True),
        ("cannot_link", cannot_link, False),
        ("preferences", soft[:, :2], soft[:, 2] > 0),
    ):
        i, j = check_pairs(name, pairs, len(labels)).T
        if len(i):
            n_kept = int(((labels[i] == labels[j]) == together).sum())
            noun = {"must_link": "must-links", "cannot_link": "cannot-links"}.get(name, name)
            yield f"{noun} kept", f"{n_kept} of {len(i)}"


def _tabulate_components(model: Any) -> Table:
    """Return a table with the number of points, the weight and the mean of each component."""
    weights = model.weights_
    sizes = np.bincount(model.labels_, minlength=len(weights))
    means = getattr(model, "means_", np.empty((len(weights), 0)))
    # If a class has several components, there are more means than rows, so show none.
    if len(means) != len(weights):
        means = np.empty((len(weights), 0))
    is_number = ~getattr(model, "is_categorical_", np.zeros(means.shape[1], dtype=bool))
    names = getattr(model, "feature_names_in_", [f"x{d}" for d in range(len(is_number))])
    names = [name for name, has_mean in zip(names, is_number, strict=False) if has_mean]
    head = [f"mean {name}" for name, _ in zip(names, means[0], strict=False)][:MAX_COLUMNS]
    rows = (
        [k, sizes[k], f"{weights[k]:.2f}", *(f"{mean:.2f}" for mean in means[k, :MAX_COLUMNS])]
        for k in range(len(weights))
    )
    return Table(["component", "points", "weight", *head], rows)
