"""Judge the papers' printed claims: every verdict follows from the result files.

:func:`verdict_on` judges one claim, :func:`judge_all` all of them, and :func:`statement` and
:func:`line` put a verdict into words. Chapter 13, the page of comparisons and the command line call
them. ``comparisons.toml`` holds one table ``[[comparison]]`` for each claim, with these keys::

    file        result file, without .csv
    by          columns; the claim is checked in each group of rows that agree in these
    where       column = value or list of values: the rows that count
    ours        column = value: the mean over realisations of these rows is what is judged
    claim       "above", "below" or "near"
    bound       the number that ours must be above, below or near
    tolerance   how far on the wrong side still agrees, in units of the quantity
    minus       column = value, optional: the rows whose value is subtracted, realisation by
                realisation; for a list of values their mean, so that ours is compared with the
                middle between two
    data        "the papers' data": what the paper used, or a part of it; "our choice of data": the
                paper does not say what it used; "rebuilt": made here after a picture or a sentence;
                "identity": it follows from a definition or from numbers that are printed, whatever
                the data, and tests the program
    rival       optional: {ours = …, minus = …}, a second difference, which is subtracted from the
                first: "gains more than" speaks of gains, and not of levels
    steps       optional: a column of numbers; the claim is about each step from one of its values
                to the next, and every step is a group
    reading     optional: how a sentence is read that can be read in several ways
    part_of     optional: the printed sentence of which this is a part, in a few words
    void        optional: words of a reason; runs with them did not do what the claim is about
    instead     optional: what all runs did in place of what the claim is about
    again       optional: a result file of the same experiment in which mixtures begin where the
                package's default has them begin; the claim is judged there too
    kmeans      optional: the end of K-means' names in that file, such as ", ten starts"

The verdict is "reproduced" if the claim holds in all groups. Where it does not, and every group in
which it fails lies within two standard errors of where it would hold, it is "undecided"; else
"partly" if it holds in half of the groups or more, and "not" if in fewer. It is "not tested" if
half of the runs or more are void. The claim does not hold in a group in which more than half of the
realisations failed. A difference (with ``minus``) that must be above or below its bound has no
tolerance, and must not equal the bound: a difference of nothing is not "slightly better".

A printed sentence counts once: data sets are its groups, and its readings and parts are judged
over the groups of all of them, by :func:`by_sentence`. The verdict that counts is that of the
papers' own number of starts, as far as it is known; :func:`from_the_default_start` says what stands
beside it.
"""

from __future__ import annotations

import os
import textwrap
import tomllib
from collections.abc import Iterable
from functools import cache
from itertools import chain, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reruns.design import DEFAULT
from reruns.reading import Group, Rows, grouped, matching, read_rows, require_columns, spread

__all__ = [
    "Comparison", "Found", "JudgedClaim", "by_sentence", "from_the_default_start", "judge_all",
    "line", "read_comparisons", "statement", "verdict_on",
]  # fmt: skip

CLAIMS = ("above", "below", "near")
VERDICTS = ("reproduced", "partly", "undecided", "not", "not tested")
WIDTH = 72  # characters in a line of a statement
KINDS = ("the papers' data", "our choice of data", "rebuilt", "identity")


class Comparison(NamedTuple):
    """One claim of a paper, and how it is checked."""

    paper: str
    figure: str
    quantity: str
    """The quantity that the claim is about, in words."""
    printed: str
    """The paper's statement in our words, or its number."""
    file: str
    by: list[str]
    where: dict[str, Any]
    ours: dict[str, Any]
    claim: str
    bound: float
    tolerance: float
    verdict: str
    """The verdict in the file; a test compares it with the one that follows from the results."""
    data: str
    """The kind of data behind it, one of ``KINDS``."""
    minus: dict[str, Any] | None = None
    why: str = ""
    """Reason why the claim does not hold, or holds only partly; or the difference to the paper."""
    rival: dict[str, dict[str, Any]] | None = None
    """A second difference, ``ours`` less ``minus``, that is subtracted from the first."""
    steps: str = ""
    """The column whose consecutive values are compared."""
    reading: str = ""
    """The reading of the sentence that is checked, if it can be read in several ways."""
    part_of: str = ""
    """The printed sentence, if this claim is only a part of it."""
    void: str = ""
    """Words of a reason; a run with such a reason is no test of the claim."""
    instead: str = ""
    """What all runs did in place of what the claim is about."""
    again: str = ""
    """The result file in which mixtures begin where the package's default has them begin."""
    kmeans: str = ""
    """The end of K-means' names in that file."""

    @property
    def sentence(self) -> tuple[str, str, str]:
        """Paper, figure and what all readings and parts of a printed sentence have in common."""
        return self.paper, self.figure, self.part_of or self.quantity


class Found(NamedTuple):
    """Our result for one group of rows."""

    group: Group
    mean: float
    """Mean of the quantity or of the difference; nan if every realisation failed."""
    standard_error: float
    """Standard error of that mean; nan for a single realisation."""
    n: int
    """Number of realisations with a value."""
    n_failed: int
    holds: bool
    near: bool
    """True if the claim fails by at most two standard errors."""


class JudgedClaim(NamedTuple):
    """The verdict on a claim, with what was found in each group."""

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
        If an entry lacks a key, has an unknown one, or names an unknown claim or verdict.
    """
    with open(path, "rb") as file:
        entries = tomllib.load(file)["comparison"]
    comparisons = []
    for number, entry in enumerate(entries, start=1):
        try:
            comparisons.append(Comparison(**entry))
            _require_known(comparisons[-1])
        except (TypeError, ValueError) as error:
            raise ValueError(f"comparison {number}: {error}") from None
    return comparisons


def _require_known(comparison: Comparison) -> None:
    """Raise if a field has an unknown word, or if an ordering has a tolerance."""
    for field, known in {"claim": CLAIMS, "verdict": VERDICTS, "data": KINDS}.items():
        if (word := getattr(comparison, field)) not in known:
            raise ValueError(f"{field} is {word!r}; it must be among {', '.join(known)}.")
    if _is_ordering(comparison) and comparison.tolerance:
        raise ValueError(
            f"a difference that must be {comparison.claim} {comparison.bound:g} has the tolerance "
            f"{comparison.tolerance:g}; write 0, and move the bound."
        )


def _is_ordering(comparison: Comparison) -> bool:
    """Return whether a claim says that one method is better than another."""
    return comparison.minus is not None and comparison.claim != "near"


def verdict_on(comparison: Comparison, rows: Rows) -> JudgedClaim:
    """Return the verdict that follows from the rows of a result file.

    Parameters
    ----------
    comparison : Comparison
        The claim.
    rows : sequence of mappings of str to str
        As :func:`~reruns.read_rows` returns them.

    Returns
    -------
    JudgedClaim
        Verdict, and what was found in each group.

    Raises
    ------
    ValueError
        If no row is of the kind that the comparison is about, or the file lacks a column.

    Examples
    --------
    >>> claim = Comparison("a", "1", "score", "high", "a-fig1", ["data"], {}, {"method": "ours"},
    ...                    "above", 0.9, 0.0, "reproduced", "identity")
    >>> row = {"data": "iris", "method": "ours", "realisation": "0", "value": "0.95"}
    >>> verdict_on(claim, [row]).verdict, verdict_on(claim, [row | {"value": "0.5"}]).verdict
    ('reproduced', 'not')
    """
    by, where, ours, minus = comparison.by, comparison.where, comparison.ours, comparison.minus
    require_columns(rows, {*by, *where, *ours, *(minus or ())})
    rows = matching(rows, where)
    steps = [comparison.steps] * bool(comparison.steps)
    groups = _difference(rows, by + steps, ours, minus)
    if not groups:
        raise ValueError(
            f"{comparison.file} has no row with {where | ours}, which the comparison "
            f"{comparison.paper}, figure {comparison.figure}, is about."
        )
    if comparison.rival:
        other = _difference(rows, by, **comparison.rival)
        groups = {g: _less(values, other.get(g, {})) for g, values in groups.items()}
    if comparison.steps:
        groups = _step_by_step(groups)
    found = [_check(comparison, group, values) for group, values in groups.items()]
    tested = _is_tested(comparison, matching(rows, ours))
    return JudgedClaim(_word(found) if tested else "not tested", found)


def judge_all(
    comparisons: Iterable[Comparison], results: str | os.PathLike[str]
) -> list[tuple[Comparison, JudgedClaim]]:
    """Return every comparison with the verdict that follows from the result files.

    Parameters
    ----------
    comparisons : iterable of Comparison
        The claims.
    results : path
        Folder of the result files.

    Returns
    -------
    list of (Comparison, JudgedClaim)
        In the order of the claims.
    """
    rows = cache(lambda name: read_rows(Path(results) / f"{name}.csv"))
    return [(claim, verdict_on(claim, rows(claim.file))) for claim in comparisons]


def from_the_default_start(
    comparison: Comparison, results: str | os.PathLike[str]
) -> JudgedClaim | None:
    """Judge a claim where mixtures begin at the package's default, and K-means is the best of ten.

    Parameters
    ----------
    comparison : Comparison
        A claim.
    results : path
        Folder of the result files.

    Returns
    -------
    JudgedClaim or None
        None if the claim names no file of such runs, or the file does not exist.
    """
    path = Path(results) / f"{comparison.again}.csv"
    if not comparison.again or not path.exists():
        return None
    # Runs from other starts also record the log-evidence, which no claim is about.
    rows = [row for row in read_rows(path) if row["quantity"] != "log_evidence"]
    known = {row["method"] for row in rows}

    def rename(name: str) -> str:
        return next(n for n in (name + DEFAULT, name + comparison.kmeans, name) if n in known)

    def renamed(columns: dict[str, Any]) -> dict[str, Any]:
        if "method" not in columns:
            return columns
        method = columns["method"]
        new = [rename(m) for m in method] if isinstance(method, list) else rename(method)
        return columns | {"method": new}

    rival = comparison.rival and {k: renamed(v) for k, v in comparison.rival.items()}
    again = comparison._replace(
        ours=renamed(comparison.ours),
        minus=comparison.minus and renamed(comparison.minus),
        rival=rival,
    )
    return verdict_on(again, rows)


def by_sentence(
    judged: Iterable[tuple[Comparison, JudgedClaim]],
) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Return kind of data and verdict of each sentence, over the groups of all its readings.

    Parameters
    ----------
    judged : iterable of (Comparison, JudgedClaim)
        Claims, each with what :func:`verdict_on` finds.

    Returns
    -------
    dict of (paper, figure, quantity) to (kind, verdict)
        In the order of the claims. Readings that were not tested do not count if others were.
    """
    readings: dict[tuple[str, str, str], list[tuple[Comparison, JudgedClaim]]] = {}
    for claim, judgement in judged:
        readings.setdefault(claim.sentence, []).append((claim, judgement))
    found = {}
    for sentence, of_it in readings.items():
        tested = [j.found for _, j in of_it if j.verdict != "not tested"]
        verdict = _word([*chain(*tested)]) if tested else "not tested"
        found[sentence] = of_it[0][0].data, verdict
    return found


def _word(found: list[Found]) -> str:
    """Return the verdict on groups."""
    if all(group.holds for group in found):
        return "reproduced"
    if all(group.holds or group.near for group in found):
        return "undecided"
    return "partly" if np.mean([group.holds for group in found]) >= 0.5 else "not"


def _is_tested(comparison: Comparison, rows: Rows) -> bool:
    """Return whether more than half of the runs did what the claim is about."""
    if comparison.instead:
        return False
    void = [bool(comparison.void) and comparison.void in row.get("reason", "") for row in rows]
    return bool(np.mean(void) < 0.5)


Values = dict[Group, dict[int, float]]


def _difference(
    rows: Rows, by: list[str], ours: dict[str, Any], minus: dict[str, Any] | None
) -> Values:
    """Return ours by group, less the mean of the rows that are subtracted."""
    groups = grouped(matching(rows, ours), by)
    if minus is None:
        return groups
    several = product(*(v if isinstance(v, list) else [v] for v in minus.values()))
    wanted = [dict(zip(minus, values, strict=True)) for values in several]
    partners = [grouped(matching(rows, one), by) for one in wanted]

    def partner(group: Group, r: int) -> float:
        return float(np.mean([p.get(group, {}).get(r, np.nan) for p in partners]))

    return {g: {r: v - partner(g, r) for r, v in values.items()} for g, values in groups.items()}


def _less(values: dict[int, float], others: dict[int, float]) -> dict[int, float]:
    """Subtract realisation by realisation; one without a partner counts as failed."""
    return {r: v - others.get(r, np.nan) for r, v in values.items()}


def _step_by_step(levels: Values) -> Values:
    """Return what each level adds to the one below it, as a group named "0 to 50"."""
    steps: Values = {}
    in_order = sorted(levels, key=lambda group: (group[:-1], float(group[-1])))
    for before, after in pairwise(in_order):
        if before[:-1] == after[:-1]:
            name = *after[:-1], f"{before[-1]} to {after[-1]}"
            steps[name] = _less(levels[after], levels[before])
    return steps


def _check(comparison: Comparison, group: Group, values: dict[int, float]) -> Found:
    """Return whether the claim holds in one group, and by how much."""
    mean, error, n, n_failed = spread(np.array([*values.values()]))
    away = mean - comparison.bound
    # How far the mean is from where the claim would hold; not positive where it holds.
    gap = {"above": -away, "below": away, "near": abs(away)}[comparison.claim]
    gap -= comparison.tolerance
    is_whole, must_differ = n_failed <= n, _is_ordering(comparison)
    holds = is_whole and (gap < 0 or (gap == 0 and not must_differ))
    near = is_whole and not holds and error > 0 and gap <= 2 * error
    return Found(group, mean, error, n, n_failed, holds, near)


# ---------------------------------------------------------------------------- in words


def statement(comparison: Comparison, judgement: JudgedClaim) -> str:
    """Describe a claim in a few lines: what was printed, what we find, the bound and the verdict.

    Parameters
    ----------
    comparison : Comparison
        A claim of a paper.
    judgement : JudgedClaim
        The result of :func:`verdict_on`.

    Returns
    -------
    str
        With several groups, those with the smallest and the largest mean. A verdict that differs
        from the one in ``comparisons.toml`` is followed by the latter.

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
    if judgement.verdict != comparison.verdict:
        parts["WRITTEN"] = comparison.verdict
    title = f"{comparison.paper}, Fig. {comparison.figure}: {comparison.quantity}"
    wrapped = textwrap.wrap(title, WIDTH, subsequent_indent="  ")
    # A part without text has no line, e.g. "read as" where there is only one reading.
    for name, text in parts.items():
        first, more = f"  {name:<7}  ", " " * 11
        wrapped += textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=more)
    return "\n".join(wrapped)


def line(comparison: Comparison, judgement: JudgedClaim) -> str:
    """Describe a claim in a line: verdict, what we find, and the quantity.

    Parameters
    ----------
    comparison : Comparison
        A claim of a paper.
    judgement : JudgedClaim
        The result of :func:`verdict_on`.

    Returns
    -------
    str
        Mean ± standard error or, with several groups, in how many the claim holds.

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
    more = " " * len(head)
    return textwrap.fill(comparison.quantity, WIDTH, initial_indent=head, subsequent_indent=more)


def _mean_and_error(group: Found) -> str:
    """Format mean ± standard error; a single realisation has no standard error."""
    error = "" if np.isnan(group.standard_error) else f" ± {_short(group.standard_error)}"
    return _short(group.mean) + error


def _mean_and_where(group: Found) -> str:
    """Format the same with the group, and how many realisations count and failed."""
    failed = f", {group.n_failed} failed" if group.n_failed else ""
    where = f"{' '.join(group.group)}; " if group.group else ""
    return f"{_mean_and_error(group)} ({where}n = {group.n}{failed})"


def _short(value: float) -> str:
    """Format with three decimals, one digit below 0.001, and no minus sign before zero."""
    if 5e-5 <= abs(value) < 0.001:
        return f"{value:.1g}"
    return f"{round(value, 3) + 0.0:.{1 if abs(value) >= 100 else 3}f}".rstrip("0").rstrip(".")
