"""Result files as arrays, verdicts as sentences, methods as colours: what shows the reruns.

Letters, as in the book:

=====  ====================================================================
R      realisations, counted from 0; v_r the value of one
δ, s   mean and standard deviation of the differences between two methods
n      realisations that somebody could afford
=====  ====================================================================

A result file has a row for every data set, setting, method, realisation and quantity, as
:mod:`cgmm.replicate.runner` writes it. Here rows become one array a method. Place r belongs to
realisation r, so that methods can be compared where they saw the same relations and start.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from cgmm.numerics import FloatArray
from cgmm.replicate.verdicts import Comparison, Found, Judgement, Rows

__all__ = [
    "Spread",
    "by_realisation",
    "line",
    "realisations_needed",
    "series",
    "spread",
    "statement",
    "wrong_order",
]


# ---------------------------------------------------------------------------- numbers


class Spread(NamedTuple):
    """A mean over realisations, and how well it is known."""

    mean: float
    """nan if every realisation failed."""
    standard_error: float
    """Of the mean; nan for a single realisation."""
    n: int
    """Realisations that count."""
    n_failed: int
    """Realisations without a value."""


def by_realisation(
    rows: Rows, by: str | Sequence[str] = "method", **where: object
) -> dict[Any, FloatArray]:
    """Values of some rows of a result file, one array a group, in the order of realisations.

    Parameters
    ----------
    rows : sequence of mappings of str to str
        As :func:`cgmm.replicate.read_rows` returns them.
    by : str or sequence of str, default="method"
        Column, or columns, whose values name a group.
    **where
        Column = value, or list of values: the rows that count.

    Returns
    -------
    dict of str or tuple of str to (R,) array
        In the order of the file; a name if ``by`` is a name, else a tuple. nan where a method
        failed, or where a realisation is not in the file.

    Raises
    ------
    ValueError
        If there is no such column or no such row, or if a group has several values for one
        realisation: then a column is missing in ``by`` or ``where``.

    Examples
    --------
    >>> file = [
    ...     {"method": "EM", "realisation": "1", "value": "0.9"},
    ...     {"method": "EM", "realisation": "0", "value": "0.7"},
    ...     {"method": "K-means", "realisation": "1", "value": ""},
    ... ]
    >>> by_realisation(file)
    {'EM': array([0.7, 0.9]), 'K-means': array([nan, nan])}
    """
    names = (by,) if isinstance(by, str) else tuple(by)
    _require_columns(rows, {*names, *where})
    chosen = [row for row in rows if _agrees(row, where)]
    if not chosen:
        raise ValueError(f"no row of the file agrees with {where}.")
    n = 1 + max(int(row["realisation"]) for row in chosen)
    groups: dict[tuple[str, ...], FloatArray] = {}
    seen = set()
    for row in chosen:
        group, r = tuple(row[name] for name in names), int(row["realisation"])
        if (group, r) in seen:
            raise ValueError(
                f"group {group} has several values for realisation {r}, one of them in {row}; "
                "name another column in by or where."
            )
        seen.add((group, r))
        values = groups.setdefault(group, np.full(n, np.nan))
        values[r] = float(row["value"] or "nan")
    return {group[0] if isinstance(by, str) else group: v for group, v in groups.items()}


def _require_columns(rows: Rows, columns: set[str]) -> None:
    unknown = columns - set(rows[0] if rows else ())
    if unknown:
        raise ValueError(
            f"the file has no column {', '.join(sorted(unknown))}; "
            f"it has {', '.join(rows[0]) if rows else 'no rows'}."
        )


def _agrees(row: Mapping[str, str], where: Mapping[str, object]) -> bool:
    """Numbers agree as numbers: 0.30 and "0.3"."""
    return all(
        row[column] in [v if isinstance(v, str) else f"{v:g}" for v in _several(value)]
        for column, value in where.items()
    )


def _several(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def series(
    rows: Rows, column: str, **where: object
) -> tuple[FloatArray, dict[str, list[FloatArray]]]:
    """Values of every method at every level of a setting, as curves and ladders take them.

    Parameters
    ----------
    rows : sequence of mappings of str to str
        As :func:`cgmm.replicate.read_rows` returns them.
    column : str
        Of the setting; its values are numbers.
    **where
        As for :func:`by_realisation`, which says what is raised.

    Returns
    -------
    levels : (M,) array
        Increasing.
    values : dict of str to list of M (R,) arrays
        Of each method; all nan at a level at which the method was not run.

    Examples
    --------
    >>> file = [
    ...     {"q": "0.3", "method": "EM", "realisation": "0", "value": "0.7"},
    ...     {"q": "0.15", "method": "EM", "realisation": "0", "value": "0.9"},
    ... ]
    >>> series(file, "q")
    (array([0.15, 0.3 ]), {'EM': [array([0.9]), array([0.7])]})
    """
    groups = by_realisation(rows, ("method", column), **where)
    levels = sorted({level for _, level in groups}, key=float)
    methods = dict.fromkeys(method for method, _ in groups)
    nothing = np.full(len(next(iter(groups.values()))), np.nan)
    values = {m: [groups.get((m, level), nothing) for level in levels] for m in methods}
    return np.array(levels, dtype=float), values


def spread(values: FloatArray) -> Spread:
    """Mean of realisations and its standard error.

    The standard error is s / √R, with s² = Σ (v_r - mean)² / (R - 1). It tells what another draw of
    relations and starts would have changed; nothing of another data set.

    Parameters
    ----------
    values : (R,) array
        One number a realisation, or a difference of two; nan where it failed.

    Returns
    -------
    Spread
        Over those that did not fail.

    Examples
    --------
    >>> spread(np.array([0.7, np.nan, 0.9]))
    Spread(mean=0.8, standard_error=0.1, n=2, n_failed=1)
    """
    values = np.asarray(values, dtype=float)
    kept = values[~np.isnan(values)]
    n = len(kept)
    mean = float(kept.mean()) if n else np.nan
    error = float(kept.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return Spread(mean, error, n, len(values) - n)


def wrong_order(difference: FloatArray, n: FloatArray | int) -> FloatArray:
    """Probability that a mean over n realisations has the wrong sign: Φ(-√n \\|δ\\| / s).

    Parameters
    ----------
    difference : (R,) array
        Differences of two methods, realisation by realisation; δ and s are estimated from them.
    n : int or array of int
        Realisations of an experiment that is yet to be made.

    Returns
    -------
    float or array, like n
        By the central limit theorem, so for n that is not tiny; 1/2 where δ is 0.

    Examples
    --------
    >>> wrong_order(np.array([1.0, 2.0, 3.0]), 1).round(4)
    np.float64(0.0228)
    """
    delta, s = _effect(difference)
    if s == 0:
        return np.zeros_like(n, dtype=float) if delta else np.full_like(n, 0.5, dtype=float)
    return ndtr(-np.sqrt(n) * abs(delta) / s)


def realisations_needed(difference: FloatArray, risk: float = 0.05) -> float:
    """Realisations after which the mean has the wrong sign with probability ``risk`` at most.

    Parameters
    ----------
    difference : (R,) array
        As for :func:`wrong_order`.
    risk : float, default=0.05
        Between 0 and 1/2.

    Returns
    -------
    float
        A whole number; infinity if the mean difference is 0.

    Raises
    ------
    ValueError
        If the risk is not between 0 and 1/2.

    Examples
    --------
    >>> realisations_needed(np.array([0.0, 1.0, 2.0, 1.0]))
    2.0
    """
    if not 0 < risk < 0.5:
        raise ValueError(f"risk={risk}: it must be between 0 and 1/2, which is a coin's.")
    delta, s = _effect(difference)
    if delta == 0:
        return np.inf
    return float(max(1.0, np.ceil((ndtri(risk) * s / delta) ** 2)))


def _effect(difference: FloatArray) -> tuple[float, float]:
    """δ and s."""
    kept = np.asarray(difference, dtype=float)
    kept = kept[~np.isnan(kept)]
    if len(kept) < 2:
        raise ValueError(f"{len(kept)} differences tell nothing of their spread; give two or more.")
    return float(kept.mean()), float(kept.std(ddof=1))


# ---------------------------------------------------------------------------- sentences


def statement(comparison: Comparison, judgement: Judgement, width: int = 72) -> str:
    """What was printed, what we find, how much may be missing, and the verdict.

    Parameters
    ----------
    comparison : Comparison
        A claim of a paper.
    judgement : Judgement
        What :func:`cgmm.replicate.verdicts.judge` finds.
    width : int, default=72
        Letters in a line.

    Returns
    -------
    str
        A few lines. Of several groups, the smallest and the largest are shown.

    Examples
    --------
    >>> from cgmm.replicate.verdicts import judge
    >>> claim = Comparison("a", "1", "score", "high", "a-fig1", ["data"], {}, {"method": "ours"},
    ...                    "above", 0.9, 0.0, "reproduced")
    >>> row = {"data": "iris", "method": "ours", "realisation": "0", "value": "0.95"}
    >>> print(statement(claim, judge(claim, [row, row | {"realisation": "1"}])))
    a, Fig. 1: score
      printed  high
      ours     0.95 ± 0 (iris; n = 2)
      asked    above 0.9
      verdict  reproduced
    """
    found = sorted(judgement.found, key=lambda group: np.nan_to_num(group.mean, nan=-np.inf))
    ours = _found(found[0])
    if len(found) > 1:
        n_holds = sum(group.holds for group in found)
        ours += f" to {_found(found[-1])}; {n_holds} of {len(found)} as asked"
    asked = f"{comparison.claim} {comparison.bound:.4g}"
    if comparison.tolerance:
        asked += f", tolerance {comparison.tolerance:.4g}"
    verdict = judgement.verdict
    if verdict != "reproduced" and comparison.why:
        verdict += ". " + comparison.why
    parts = {"printed": comparison.printed, "ours": ours, "asked": asked, "verdict": verdict}
    title = f"{comparison.paper}, Fig. {comparison.figure}: {comparison.quantity}"
    wrapped = textwrap.wrap(title, width, subsequent_indent="  ")
    for name, text in parts.items():
        first, more = f"  {name:<7}  ", " " * 11
        wrapped += textwrap.wrap(text, width, initial_indent=first, subsequent_indent=more)
    return "\n".join(wrapped)


def line(comparison: Comparison, judgement: Judgement, width: int = 72) -> str:
    """A claim in short: verdict, what is found, what of.

    Parameters
    ----------
    comparison : Comparison
        A claim of a paper.
    judgement : Judgement
        What :func:`cgmm.replicate.verdicts.judge` finds.
    width : int, default=72
        Letters in a line; what goes on is indented.

    Returns
    -------
    str
        Mean ± standard error, or, of several groups, in how many the claim holds.

    Examples
    --------
    >>> from cgmm.replicate.verdicts import judge
    >>> claim = Comparison("a", "1", "score", "high", "a-fig1", ["data"], {}, {"method": "ours"},
    ...                    "above", 0.9, 0.0, "reproduced")
    >>> row = {"data": "iris", "method": "ours", "realisation": "0", "value": "0.95"}
    >>> line(claim, judge(claim, [row]))
    'reproduced  0.95             score'
    >>> line(claim, judge(claim, [row, row | {"data": "wine", "value": "0.5"}]))
    'partly      1 of 2           score'
    """
    found = judgement.found
    ours = f"{sum(group.holds for group in found)} of {len(found)}"
    if len(found) == 1:
        ours = _number(found[0])
    head = f"{judgement.verdict:<10}  {ours:<15}  "
    wrapped = textwrap.wrap(
        comparison.quantity, width, initial_indent=head, subsequent_indent=" " * len(head)
    )
    return "\n".join(wrapped)


def _number(group: Found) -> str:
    """Mean ± standard error, of which a single realisation has none."""
    error = "" if np.isnan(group.standard_error) else f" ± {_short(group.standard_error)}"
    return _short(group.mean) + error


def _found(group: Found) -> str:
    """The same, and where."""
    failed = f", {group.n_failed} failed" if group.n_failed else ""
    where = f"{' '.join(group.group)}; " if group.group else ""
    return f"{_number(group)} ({where}n = {group.n}{failed})"


def _short(value: float) -> str:
    """Three places behind the point, one digit of what is smaller, and never minus nothing."""
    if 5e-5 <= abs(value) < 0.001:
        return f"{value:.1g}"
    return f"{round(value, 3) + 0.0:.{1 if abs(value) >= 100 else 3}f}".rstrip("0").rstrip(".")
