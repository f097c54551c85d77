"""What the papers print beside what we found: every verdict follows from the result files.

``comparisons.toml`` holds one table ``[[comparison]]`` a claim. How ours is computed::

    file        result file, without .csv
    by          columns; the claim is checked in each group of rows that agree in these
    where       column = value or list of values: the rows that count
    ours        column = value: of these the mean over realisations
    minus       column = value, optional: whose mean is taken away, realisation by realisation
    claim       "above", "below" or "near"
    bound       the number that ours is to be above, below or near
    tolerance   how far on the wrong side still agrees, in units of the quantity

The verdict is "reproduced" if the claim holds in all groups, "partly" if in half of them or more,
else "not". A group in which more than half of the realisations failed does not hold.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cgmm.replicate.store import read_rows

__all__ = ["Comparison", "Found", "Judgement", "judge", "read_comparisons", "report", "table"]

Rows = Sequence[Mapping[str, str]]
Groups = dict[tuple[str, ...], dict[str, float]]
VERDICTS = ("reproduced", "partly", "not")


class Comparison(NamedTuple):
    """One claim of a paper, and how it is checked."""

    paper: str
    figure: str
    quantity: str
    """In words."""
    printed: str
    """What the paper says, in words of our own, or its number."""
    file: str
    by: list[str]
    where: dict[str, Any]
    ours: dict[str, Any]
    claim: str
    bound: float
    tolerance: float
    verdict: str
    """As written down; a test holds it against the one that follows."""
    minus: dict[str, Any] | None = None
    why: str = ""
    """Why not, or why only partly; or what differs from the paper."""


class Found(NamedTuple):
    """Ours, in one group."""

    group: tuple[str, ...]
    mean: float
    """Of the quantity, or of the difference; nan if every realisation failed."""
    standard_error: float
    """Of that mean, over realisations; nan for a single one."""
    n: int
    """Realisations that count."""
    n_failed: int
    holds: bool


class Judgement(NamedTuple):
    """What the result file says of a claim."""

    verdict: str
    found: list[Found]


def read_comparisons(path: str | os.PathLike[str]) -> list[Comparison]:
    """Read the claims.

    Parameters
    ----------
    path : path
        A ``comparisons.toml``.

    Returns
    -------
    list of Comparison
        In the order of the file.

    Raises
    ------
    ValueError
        If an entry lacks a key, has an unknown one, or names no such claim or verdict.
    """
    with open(path, "rb") as file:
        entries = tomllib.load(file)["comparison"]
    return [_checked(entry, i) for i, entry in enumerate(entries, start=1)]


def _checked(entry: dict[str, Any], number: int) -> Comparison:
    try:
        comparison = Comparison(**entry)
    except TypeError as error:
        raise ValueError(
            f"comparison {number}: {error}".replace("Comparison.__new__() ", "")
        ) from None
    if comparison.claim not in _CLAIMS or comparison.verdict not in VERDICTS:
        raise ValueError(
            f"comparison {number}: claim is {comparison.claim!r} and verdict "
            f"{comparison.verdict!r}; they must be among {', '.join(_CLAIMS)} and "
            f"{', '.join(VERDICTS)}."
        )
    return comparison


_CLAIMS = {
    "above": lambda mean, bound, tolerance: mean >= bound - tolerance,
    "below": lambda mean, bound, tolerance: mean <= bound + tolerance,
    "near": lambda mean, bound, tolerance: abs(mean - bound) <= tolerance,
}


def judge(comparison: Comparison, rows: Rows) -> Judgement:
    """The verdict that follows from the rows of a result file.

    Parameters
    ----------
    comparison : Comparison
        The claim.
    rows : sequence of mappings of str to str
        As :func:`cgmm.replicate.read_rows` returns them.

    Returns
    -------
    Judgement
        Verdict, and what was found in each group.

    Raises
    ------
    ValueError
        If no row is of the kind that the comparison speaks of.

    Examples
    --------
    >>> claim = Comparison("a", "1", "score", "high", "a-fig1", ["data"], {}, {"method": "ours"},
    ...                    "above", 0.9, 0.0, "reproduced")
    >>> row = {"data": "iris", "method": "ours", "realisation": "0", "value": "0.95"}
    >>> judge(claim, [row]).verdict, judge(claim, [row | {"value": "0.5"}]).verdict
    ('reproduced', 'not')
    """
    rows = [row for row in rows if _agrees(row, comparison.where)]
    ours = _by_group(rows, comparison.ours, comparison.by)
    if not ours:
        raise ValueError(
            f"{comparison.file} has no row with {comparison.where | comparison.ours}, of which "
            f"the comparison {comparison.paper}, figure {comparison.figure}, speaks."
        )
    minus = None if comparison.minus is None else _by_group(rows, comparison.minus, comparison.by)
    found = [
        _found(comparison, group, values, None if minus is None else minus.get(group, {}))
        for group, values in ours.items()
    ]
    share = np.mean([group.holds for group in found])
    return Judgement(VERDICTS[0 if share == 1 else 1 if share >= 0.5 else 2], found)


def _agrees(row: Mapping[str, str], wanted: Mapping[str, Any]) -> bool:
    """Whether a row has the wanted values; a list names several."""
    return all(
        row[column] in [str(v) for v in (value if isinstance(value, list) else [value])]
        for column, value in wanted.items()
    )


def _by_group(rows: Rows, wanted: Mapping[str, Any], by: Iterable[str]) -> Groups:
    """Group -> realisation -> value, nan where the method failed."""
    groups: dict[tuple[str, ...], dict[str, float]] = {}
    by = list(by)
    for row in rows:
        if _agrees(row, wanted):
            group = groups.setdefault(tuple(row[column] for column in by), {})
            if row["realisation"] in group:
                raise ValueError(f"several rows of one realisation agree with {wanted}: {row}.")
            group[row["realisation"]] = float(row["value"]) if row["value"] else np.nan
    return groups


def _found(
    comparison: Comparison,
    group: tuple[str, ...],
    ours: dict[str, float],
    minus: dict[str, float] | None,
) -> Found:
    values = np.array([v if minus is None else v - minus.get(r, np.nan) for r, v in ours.items()])
    kept = values[~np.isnan(values)]
    n, n_failed = len(kept), len(values) - len(kept)
    mean = float(kept.mean()) if n else np.nan
    error = float(kept.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    agrees = n > 0 and _CLAIMS[comparison.claim](mean, comparison.bound, comparison.tolerance)
    return Found(group, mean, error, n, n_failed, bool(agrees and n_failed <= n))


def report(comparison: Comparison, judgement: Judgement) -> list[str]:
    """A comparison as lines of text: claim and verdict, then what was found in each group.

    Parameters
    ----------
    comparison : Comparison
        The claim.
    judgement : Judgement
        What follows from the result file, as :func:`judge` returns it.

    Returns
    -------
    list of str
        For a terminal, or for a test that fails: where another verdict is written down, it is named
        beside the one that follows.

    Examples
    --------
    >>> claim = Comparison("a", "1", "score", "high", "a-fig1", ["data"], {}, {"method": "ours"},
    ...                    "above", 0.9, 0.0, "reproduced")
    >>> row = {"data": "iris", "method": "ours", "realisation": "0", "value": "0.5"}
    >>> print(report(claim, judge(claim, [row]))[0])
    a, Fig. 1: score: high -> not  WRITTEN: reproduced
    """
    mark = "" if judgement.verdict == comparison.verdict else "  WRITTEN: " + comparison.verdict
    claim = f"{comparison.paper}, Fig. {comparison.figure}: {comparison.quantity}"
    head = f"{claim}: {comparison.printed} -> {judgement.verdict}{mark}"
    return [head, *(f"    {_line(found)}" for found in judgement.found)]


def table(
    comparisons: Sequence[Comparison], results: str | os.PathLike[str]
) -> tuple[list[str], bool]:
    """Every comparison as lines of text, and whether one is not as written down.

    Parameters
    ----------
    comparisons : sequence of Comparison
        The claims.
    results : path
        Folder of the result files.

    Returns
    -------
    lines : list of str
        For a terminal. Those that are not as written down are repeated at the end.
    wrong : bool
        Whether a verdict differs from the one that follows.
    """
    reports, wrong = [], []
    for comparison in comparisons:
        judgement = judge(comparison, read_rows(Path(results) / f"{comparison.file}.csv"))
        reports.append(report(comparison, judgement))
        if judgement.verdict != comparison.verdict:
            wrong.append(reports[-1])
    closing = f"{len(wrong)} of {len(comparisons)} verdicts are not as written down."
    return list(chain(*reports, ["", closing], *wrong)), bool(wrong)


def _line(found: Found) -> str:
    failed = f", {found.n_failed} failed" if found.n_failed else ""
    return (
        f"{' '.join(found.group):<28} {found.mean:9.4f} ± {found.standard_error:.4f} "
        f"(n = {found.n}{failed}) {'holds' if found.holds else 'does not hold'}"
    )
