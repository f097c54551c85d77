"""What the papers print beside what we found: every verdict follows from the result files.

Chapter 13.

``comparisons.toml`` holds one table ``[[comparison]]`` a claim. How ours is computed::

    file        result file, without .csv
    by          columns; the claim is checked in each group of rows that agree in these
    where       column = value or list of values: the rows that count
    ours        column = value: of these the mean over realisations
    claim       "above", "below" or "near"
    bound       the number that ours is to be above, below or near
    tolerance   how far on the wrong side still agrees, in units of the quantity
    minus       column = value, optional: whose mean is taken away, realisation by realisation; of
                a list of values the mean of all, so that ours is held to the middle between two
    data        "the papers' data": what the paper used, or a part of it; "our choice of data": the
                paper does not say what it used; "rebuilt": made here after a picture or a sentence;
                "identity": it follows from a definition or from numbers that are printed, whatever
                the data, and tests the program
    reading     optional: how a sentence is read that can be read in several ways
    void        optional: words of a reason; runs that carry them did not do what is claimed
    instead     optional: what all runs did in place of what is claimed

The verdict is "reproduced" if the claim holds in all groups. Where it does not, and every group in
which it fails lies within two standard errors of where it would hold, it is "undecided"; else
"partly" if it holds in half of the groups or more, and "not" if in fewer. "Not tested" if half of
the runs or more are void. A group in which more than half of the realisations failed does not hold.
A difference (with ``minus``) is to be above or below its bound without a tolerance, and must not be
the bound itself: nothing is not "slightly better".

Several readings are one sentence: :func:`by_sentence` judges it over the groups of all of them.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

from reruns.reading import Group, Rows, grouped, matching, require_columns, spread

__all__ = [
    "Comparison",
    "Found",
    "Judgement",
    "by_sentence",
    "read_comparisons",
    "verdict_on",
]

VERDICTS = ("reproduced", "partly", "undecided", "not", "not tested")
KINDS = ("the papers' data", "our choice of data", "rebuilt", "identity")


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
    data: str
    """What it stands on, one of ``KINDS``."""
    minus: dict[str, Any] | None = None
    why: str = ""
    """Why not, or why only partly; or what differs from the paper."""
    reading: str = ""
    """In words, where the paper leaves one open."""
    void: str = ""
    """Words of a reason that makes a run no test of the claim."""
    instead: str = ""
    """What all runs did in place of what is claimed."""

    @property
    def sentence(self) -> tuple[str, str, str]:
        """Paper, figure and quantity: what its readings have in common."""
        return self.paper, self.figure, self.quantity


class Found(NamedTuple):
    """Ours, in one group."""

    group: Group
    mean: float
    """Of the quantity, or of the difference; nan if every realisation failed."""
    standard_error: float
    """Of that mean, over realisations; nan for a single one."""
    n: int
    """Realisations that count."""
    n_failed: int
    holds: bool
    near: bool
    """Whether it fails by two standard errors at most."""


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
    for field, known in {"claim": _CLAIMS, "verdict": VERDICTS, "data": KINDS}.items():
        if (said := getattr(comparison, field)) not in known:
            raise ValueError(
                f"comparison {number}: {field} is {said!r}; it must be among {', '.join(known)}."
            )
    if _is_ordering(comparison) and comparison.tolerance:
        raise ValueError(
            f"comparison {number}: a difference that is to be {comparison.claim} "
            f"{comparison.bound:g} has the tolerance {comparison.tolerance:g}; write 0, and move "
            "the bound."
        )
    return comparison


def _is_ordering(comparison: Comparison) -> bool:
    """Whether it says that one method is better than another."""
    return comparison.minus is not None and comparison.claim != "near"


_CLAIMS = {
    "above": lambda mean, bound, tolerance: mean >= bound - tolerance,
    "below": lambda mean, bound, tolerance: mean <= bound + tolerance,
    "near": lambda mean, bound, tolerance: abs(mean - bound) <= tolerance,
}


def verdict_on(comparison: Comparison, rows: Rows) -> Judgement:
    """The verdict that follows from the rows of a result file.

    Parameters
    ----------
    comparison : Comparison
        The claim.
    rows : sequence of mappings of str to str
        As :func:`~reruns.read_rows` returns them.

    Returns
    -------
    Judgement
        Verdict, and what was found in each group.

    Raises
    ------
    ValueError
        If no row is of the kind that the comparison speaks of, or the file lacks a column.

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
    groups = grouped(matching(rows, ours), by)
    if not groups:
        raise ValueError(
            f"{comparison.file} has no row with {where | ours}, of which the comparison "
            f"{comparison.paper}, figure {comparison.figure}, speaks."
        )
    if minus is not None:
        groups = _less(groups, _partners(rows, by, minus))
    found = [_check(comparison, group, values) for group, values in groups.items()]
    tested = _is_tested(comparison, matching(rows, ours))
    return Judgement(_word(found) if tested else "not tested", found)


judge = verdict_on  # deprecated: cgmm.diagnose has a function of this name


def by_sentence(
    judged: Iterable[tuple[Comparison, Judgement]],
) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Kind of data and verdict of each sentence, over the groups of all its readings.

    Parameters
    ----------
    judged : iterable of (Comparison, Judgement)
        Claims, each with what :func:`verdict_on` finds.

    Returns
    -------
    dict of (paper, figure, quantity) to (kind, verdict)
        In the order in which they come. Readings that were not tested do not count, if others were.
    """
    readings: dict[tuple[str, str, str], list[tuple[Comparison, Judgement]]] = {}
    for claim, judgement in judged:
        readings.setdefault(claim.sentence, []).append((claim, judgement))
    found = {}
    for sentence, of_it in readings.items():
        tested = [j.found for _, j in of_it if j.verdict != "not tested"]
        verdict = _word([*chain(*tested)]) if tested else "not tested"
        found[sentence] = of_it[0][0].data, verdict
    return found


def _word(found: list[Found]) -> str:
    """The verdict on groups."""
    if all(group.holds for group in found):
        return "reproduced"
    if all(group.holds or group.near for group in found):
        return "undecided"
    return "partly" if np.mean([group.holds for group in found]) >= 0.5 else "not"


def _is_tested(comparison: Comparison, rows: Rows) -> bool:
    """Whether more than half of the runs did what the claim speaks of."""
    if comparison.instead:
        return False
    void = [bool(comparison.void) and comparison.void in row.get("reason", "") for row in rows]
    return bool(np.mean(void) < 0.5)


Values = dict[Group, dict[int, float]]


def _partners(rows: Rows, by: list[str], minus: dict[str, Any]) -> list[Values]:
    """By group and realisation, one table for each value where ``minus`` has a list."""
    several = product(*(v if isinstance(v, list) else [v] for v in minus.values()))
    return [
        grouped(matching(rows, dict(zip(minus, values, strict=True))), by) for values in several
    ]


def _less(ours: Values, partners: list[Values]) -> Values:
    """Ours less the mean of the partners; a realisation without one of them counts as failed."""

    def partner(group: Group, r: int) -> float:
        return float(np.mean([p.get(group, {}).get(r, np.nan) for p in partners]))

    return {
        group: {r: value - partner(group, r) for r, value in values.items()}
        for group, values in ours.items()
    }


def _check(comparison: Comparison, group: Group, values: dict[int, float]) -> Found:
    """Whether the claim holds in one group."""
    mean, error, n, n_failed = spread(np.array([*values.values()]))
    bound, tolerance = comparison.bound, comparison.tolerance
    agrees = _CLAIMS[comparison.claim](mean, bound, tolerance)
    if _is_ordering(comparison):
        agrees &= mean != bound
    holds = bool(agrees and n_failed <= n)
    gap = abs(mean - bound) - tolerance
    near = not holds and n_failed <= n and error > 0 and gap <= 2 * error
    return Found(group, mean, error, n, n_failed, holds, bool(near))
