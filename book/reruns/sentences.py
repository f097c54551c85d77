"""Verdicts in words: for the book, for a terminal, for a test that fails. Chapter 13."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from reruns.store import read_rows
from reruns.verdicts import Comparison, Found, Judgement, verdict_on

__all__ = ["line", "report", "statement", "table"]


def statement(comparison: Comparison, judgement: Judgement, width: int = 72) -> str:
    """What was printed, what we find, how much may be missing, and the verdict.

    Parameters
    ----------
    comparison : Comparison
        A claim of a paper.
    judgement : Judgement
        What :func:`~reruns.verdicts.verdict_on` finds.
    width : int, default=72
        Letters in a line.

    Returns
    -------
    str
        A few lines. Of several groups, the smallest and the largest are shown.

    Examples
    --------
    >>> claim = Comparison("a", "1", "score", "high", "a-fig1", ["data"], {}, {"method": "ours"},
    ...                    "above", 0.9, 0.0, "reproduced", "identity")
    >>> row = {"data": "iris", "method": "ours", "realisation": "0", "value": "0.95"}
    >>> print(statement(claim, verdict_on(claim, [row, row | {"realisation": "1"}])))
    a, Fig. 1: score
      printed  high
      data     identity
      ours     0.95 ± 0 (iris; n = 2)
      asked    above 0.9
      verdict  reproduced
    """
    found = sorted(judgement.found, key=lambda group: np.nan_to_num(group.mean, nan=-np.inf))
    ours = _mean_and_where(found[0])
    if len(found) > 1:
        n_holds = sum(group.holds for group in found)
        ours += f" to {_mean_and_where(found[-1])}; {n_holds} of {len(found)} as asked"
    asked = f"{comparison.claim} {comparison.bound:.4g}"
    if comparison.tolerance:
        asked += f", tolerance {comparison.tolerance:.4g}"
    verdict = judgement.verdict
    if verdict != "reproduced" and comparison.why:
        verdict += ". " + comparison.why
    parts = {"printed": comparison.printed, "read as": comparison.reading}
    parts |= {"data": comparison.data, "ours": ours, "asked": asked, "verdict": verdict}
    title = f"{comparison.paper}, Fig. {comparison.figure}: {comparison.quantity}"
    wrapped = textwrap.wrap(title, width, subsequent_indent="  ")
    for name, text in parts.items():  # none, where there is only one reading
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
        What :func:`~reruns.verdicts.verdict_on` finds.
    width : int, default=72
        Letters in a line; what goes on is indented.

    Returns
    -------
    str
        Mean ± standard error, or, of several groups, in how many the claim holds.

    Examples
    --------
    >>> claim = Comparison("a", "1", "score", "high", "a-fig1", ["data"], {}, {"method": "ours"},
    ...                    "above", 0.9, 0.0, "reproduced", "identity")
    >>> row = {"data": "iris", "method": "ours", "realisation": "0", "value": "0.95"}
    >>> line(claim, verdict_on(claim, [row]))
    'reproduced  0.95             score'
    >>> line(claim, verdict_on(claim, [row, row | {"data": "wine", "value": "0.5"}]))
    'partly      1 of 2           score'
    """
    found = judgement.found
    ours = f"{sum(group.holds for group in found)} of {len(found)}"
    if len(found) == 1:
        ours = _mean_and_error(found[0])
    head = f"{judgement.verdict:<10}  {ours:<15}  "
    wrapped = textwrap.wrap(
        comparison.quantity, width, initial_indent=head, subsequent_indent=" " * len(head)
    )
    return "\n".join(wrapped)


def _mean_and_error(group: Found) -> str:
    """Mean ± standard error, of which a single realisation has none."""
    error = "" if np.isnan(group.standard_error) else f" ± {_short(group.standard_error)}"
    return _short(group.mean) + error


def _mean_and_where(group: Found) -> str:
    """The same, and where."""
    failed = f", {group.n_failed} failed" if group.n_failed else ""
    where = f"{' '.join(group.group)}; " if group.group else ""
    return f"{_mean_and_error(group)} ({where}n = {group.n}{failed})"


def _short(value: float) -> str:
    """Three places behind the point, one digit of what is smaller, and never minus nothing."""
    if 5e-5 <= abs(value) < 0.001:
        return f"{value:.1g}"
    return f"{round(value, 3) + 0.0:.{1 if abs(value) >= 100 else 3}f}".rstrip("0").rstrip(".")


# ---------------------------------------------------------------------------- for a terminal


def report(comparison: Comparison, judgement: Judgement) -> list[str]:
    """A comparison as lines of text: claim and verdict, then what was found in each group.

    Parameters
    ----------
    comparison : Comparison
        The claim.
    judgement : Judgement
        What :func:`~reruns.verdicts.verdict_on` finds in the result file.

    Returns
    -------
    list of str
        For a terminal, or for a test that fails: where another verdict is written down, it is named
        beside the one that follows.

    Examples
    --------
    >>> claim = Comparison("a", "1", "score", "high", "a-fig1", ["data"], {}, {"method": "ours"},
    ...                    "above", 0.9, 0.0, "reproduced", "identity")
    >>> row = {"data": "iris", "method": "ours", "realisation": "0", "value": "0.5"}
    >>> print(report(claim, verdict_on(claim, [row]))[0])
    a, Fig. 1: score: high -> not  WRITTEN: reproduced
    """
    mark = "" if judgement.verdict == comparison.verdict else "  WRITTEN: " + comparison.verdict
    claim = f"{comparison.paper}, Fig. {comparison.figure}: {comparison.quantity}"
    head = f"{claim}: {comparison.printed} -> {judgement.verdict}{mark}"
    return [head, *(f"    {_columns(found)}" for found in judgement.found)]


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
        judgement = verdict_on(comparison, read_rows(Path(results) / f"{comparison.file}.csv"))
        reports.append(report(comparison, judgement))
        if judgement.verdict != comparison.verdict:
            wrong.append(reports[-1])
    closing = f"{len(wrong)} of {len(comparisons)} verdicts are not as written down."
    return list(chain(*reports, ["", closing], *wrong)), bool(wrong)


def _columns(found: Found) -> str:
    """A group, its mean and whether the claim holds there, in columns of a terminal."""
    failed = f", {found.n_failed} failed" if found.n_failed else ""
    return (
        f"{' '.join(found.group):<28} {found.mean:9.4f} ± {found.standard_error:.4f} "
        f"(n = {found.n}{failed}) {'holds' if found.holds else 'does not hold'}"
    )
