"""Write the page book/comparisons.md, which compares printed results with our reruns.

    python tools/comparisons.py

The claims and their verdicts are in book/_data/comparisons.toml, our results in
book/_data/replication. A verdict that does not follow from the results is an error, because the
explanation beside it would be wrong too. Chapters link to a figure by its label, as in
{ref}`Figure 5 <comparisons-lu2007-5>`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from errata import HEADINGS
from pages import BOOK, markdown_table

from reruns.verdicts import (
    KINDS,
    VERDICTS,
    Comparison,
    Found,
    JudgedClaim,
    by_sentence,
    from_the_default_start,
    judge_all,
    read_comparisons,
    statement,
)

PAGE = BOOK / "comparisons.md"
TABLE = BOOK / "_data" / "comparisons.toml"
RESULTS = BOOK / "_data" / "replication"
WORDS = {
    "reproduced": "Reproduced",
    "partly": "Partly",
    "undecided": "Undecided",
    "not": "Not reproduced",
    "not tested": "Not tested",
}
DATA = {
    "the papers' data": "The papers' data",
    "our choice of data": "Our choice of data",
    "rebuilt": "Rebuilt data",
    "identity": "Identities",
}
BOUNDS = {"above": "at least {}", "below": "at most {}", "near": "near {}"}
FAILS = "; does not hold"
# Values of these columns are shown without the name of the column.
UNNAMED_COLUMNS = {"data", "method", "quantity"}
INTRODUCTION = """\
# The papers and our reruns

<!-- Written by tools/comparisons.py from book/_data/: change that, and run it. -->

The claims of the three papers with experiments that we could put to the test, in the order of
their figures: what is printed, what we find, and whether the two agree. `python -m reruns`
makes the numbers again.

Our number is the mean over realisations ± its standard error. A claim says that this mean is at
least, at most, or near a number; the tolerance is how far on the wrong side still agrees, in the
same units. Where a claim is about several data sets or settings, each is judged by itself.

- *Reproduced*: the claim holds in all of them.
- *Undecided*: wherever it fails, it is within two standard errors of holding, so the draws do not
  decide.
- *Partly*: it holds in half of them or more. *Not reproduced*: in fewer.
- *Not tested*: the runs did something else than the claim is about.

"One method is better than another" has no tolerance, and a difference of zero is not better. "Gains
more" compares gains, not levels. "Improves consistently" is judged step by step. The verdicts
are computed from the result files, and a test fails when one no longer follows.

The unit of the counts is a printed sentence. Data sets are groups within it, and so are the ways in
which it can be read; each reading stands here beside the words that describe it.

*Where EM starts.* Each verdict is for the starts that the paper names, or as near to them as we
could run: {cite:t}`lu2007` keep the best of a hundred, ours is the best of ten;
{cite:t}`shental2003` and {cite:t}`barhillel2005` do not say. Where the experiment was run again
with the default start of this package, in at least 24 new realisations, the verdict for that stands
beside it.

What a verdict is worth depends on its data. *The papers' data*: what the paper used, or a
part of it (of the faces of {cite:t}`barhillel2005` ten persons of thirty), or a generator whose
recipe is published (waveform). *Our choice of data*: {cite:t}`shental2003` and
{cite:t}`barhillel2005` name their UCI sets in pictures that our copies of the papers lack, and the
six here are ours. *Rebuilt data*: toy problems and scenes that were not published, made here after
a picture, a sentence, or what other claims imply; a claim that holds on them can be true, and no
more is shown. *Identities* follow from a definition or from a printed recipe, whatever the
data: they test the program.
"""


class Judged(NamedTuple):
    """A claim with the verdict that follows from the results."""

    claim: Comparison
    judgement: JudgedClaim
    again: JudgedClaim | None = None
    """Verdict if EM starts as the package does by default; None if that was not run."""


def main() -> None:
    """Write the page."""
    PAGE.write_text(build_page(load_claims()), encoding="utf8")


def load_claims(claims: list[Comparison] | None = None, results: Path = RESULTS) -> list[Judged]:
    """Return all claims with their verdicts; raise ValueError if the table has other verdicts."""
    claims = read_comparisons(TABLE) if claims is None else claims
    judged = [
        Judged(*one, from_the_default_start(one[0], results)) for one in judge_all(claims, results)
    ]
    wrong = [statement(*one[:2]) for one in judged if one.claim.verdict != one.judgement.verdict]
    if wrong:
        raise ValueError("\n".join([f"mend verdict and why in {TABLE.name}:", *wrong]))
    return judged


def build_page(judged: list[Judged]) -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION, build_summary(judged)]
    for paper, of_paper in group_claims(judged, "paper").items():
        parts.append(f"(comparisons-{paper})=\n## {HEADINGS[paper]}\n\n{{cite:t}}`{paper}`.\n")
        for figure, ours in group_claims(of_paper, "figure").items():
            many = "s" if " " in figure else ""
            parts.append(f"({section_label(paper, figure)})=\n### Figure{many} {figure}\n")
            parts.append(markdown_table([("Claim", "What we find"), *map(_format_row, ours)]))
    return "\n".join(parts)


def group_claims(judged: Iterable[Judged], field: str) -> dict[str, list[Judged]]:
    """Group claims by paper or figure, in the order of their first occurrence."""
    groups: dict[str, list[Judged]] = {}
    for one in judged:
        groups.setdefault(getattr(one.claim, field), []).append(one)
    return groups


def section_label(paper: str, figure: str) -> str:
    """Return the label of the section about a figure of a paper."""
    return f"comparisons-{paper}-{figure.replace(' ', '-')}"


def build_summary(judged: list[Judged]) -> str:
    """Return the counts of verdicts, and the figures with claims that were not reproduced."""
    sentences = by_sentence(one[:2] for one in judged)
    lines = []
    for paper, of_paper in group_claims(judged, "paper").items():
        figures = group_claims(
            (one for one in of_paper if one.judgement.verdict == "not"), "figure"
        )
        links = ", ".join(
            f"{{ref}}`{figure} <{section_label(paper, figure)}>`" for figure in figures
        )
        lines += [f"- {HEADINGS[paper]}, Figure {links}"] * bool(figures)
    counts = _format_counts(
        "Data", {DATA[kind]: [v for k, v in sentences.values() if k == kind] for kind in KINDS}
    )
    papers = {
        HEADINGS[paper]: [v for (of, *_), (_, v) in sentences.items() if of == paper]
        for paper in group_claims(judged, "paper")
    }
    counts += ["", *_format_counts("Paper", papers)]
    if lines:
        lines = ["Those that were not reproduced are among the claims of", "", *lines]
    return "\n".join([summarise_in_a_sentence(judged), "", *counts, "", *lines, ""])


def summarise_in_a_sentence(judged: list[Judged]) -> str:
    """Return a sentence with the counts of verdicts for each kind of data."""
    sentences = by_sentence(one[:2] for one in judged)
    phrases = []
    for kind in KINDS:
        count = Counter(verdict for of, verdict in sentences.values() if of == kind)
        words = ", ".join(f"{count[v]} {WORDS[v].lower()}" for v in VERDICTS if count[v])
        phrases.append(f"{DATA[kind][0].lower()}{DATA[kind][1:]}, {count.total()}: {words}")
    return (
        f"{len(sentences)} sentences, some of which have several readings or parts ({len(judged)} "
        f"claims in all). {'; '.join(phrases).capitalize()}."
    )


def _format_counts(of: str, groups: dict[str, list[str]]) -> list[str]:
    """Return a Markdown table with the counts of verdicts in each group."""
    rows = [(of, *WORDS.values()), ("---", *["--:"] * len(WORDS))]
    for name, verdicts in groups.items():
        rows.append((name, *(str(verdicts.count(v)) for v in WORDS)))
    return [f"| {' | '.join(row)} |" for row in rows]


def _format_row(judged: Judged) -> tuple[str, str]:
    """Return the cells of a claim's row: what is claimed, and what we find."""
    claim, (verdict, found), again = judged
    bound = BOUNDS[claim.claim].format(_format_number(claim.bound))
    tolerance = f", tolerance {_format_number(claim.tolerance)}" if claim.tolerance else ""
    printed = re.sub(r"-(?=\d)", "−", claim.printed)
    left = [_to_sentence(claim.quantity), f"*Printed:* {printed.removesuffix('.')}."]
    left += [f"*Read as:* {claim.reading}."] * bool(claim.reading)
    left += [f"*In its place:* {claim.instead}."] * bool(claim.instead)
    left.append(f"*Agrees if* {bound}{tolerance}. *On* {DATA[claim.data].lower()}.")
    holding = f", in {sum(f.holds for f in found)} of {len(found)}" if len(found) > 1 else ""
    right = [f"**{WORDS[verdict]}**{holding}. {_format_realisations(found)}."]
    right += [_format_result(claim, one) for one in found]
    right += [_format_default_start(claim, again)] if again else []
    return "<br>".join(left), "<br>".join(right + [claim.why] * bool(claim.why))


def _format_default_start(claim: Comparison, judgement: JudgedClaim) -> str:
    """Return the text on the verdict if EM starts as the package does by default."""
    found = judgement.found
    holding = f", in {sum(f.holds for f in found)} of {len(found)}" if len(found) > 1 else ""
    groups = (_format_result(claim, one) for one in found if not one.holds)
    failing = "; ".join(group.removesuffix(FAILS) for group in groups)
    text = f"*From the default start:* {WORDS[judgement.verdict].lower()}{holding}"
    numbers = f" ({failing})" if failing else ""
    return f"{text}, {_format_realisations(found)}{numbers}."


def _to_sentence(words: str) -> str:
    """Return words as a sentence, with a capital and a full stop."""
    # The symbol f½ is always lower case.
    words = words if words.startswith("f½") else words[0].upper() + words[1:]
    return f"{words.removesuffix('.')}."


def _format_realisations(found: list[Found]) -> str:
    """Return the text on the number of realisations, as a range if groups differ."""
    numbers = sorted({one.n + one.n_failed for one in found})
    several = "–".join(str(n) for n in dict.fromkeys((numbers[0], numbers[-1])))
    text = f"{several} realisation{'s' * (numbers[-1] > 1)}"
    return text + (" each" if len(found) > 1 else "")


def _format_result(claim: Comparison, found: Found) -> str:
    """Return the text on our result for one group of a claim, e.g. one data set."""
    columns = [*claim.by, *[claim.steps] * bool(claim.steps)]
    names = [
        value if column in UNNAMED_COLUMNS else f"{column} {value}".replace("_", " ")
        for column, value in zip(columns, found.group, strict=True)
    ]
    head = f"{', '.join(names)}: " if names else ""
    failed = f"; {found.n_failed} failed" if found.n_failed else ""
    wrong = "" if found.holds else FAILS
    return f"{head}{format_estimate(found.mean, found.standard_error)}{failed}{wrong}"


def format_estimate(mean: float, error: float) -> str:
    """Return "mean ± error", rounded to two digits of the error and to at most four decimals."""
    if math.isnan(mean):
        return "none"
    if math.isnan(error) or error < 1e-9:
        return _format_number(float(f"{mean:.4g}"))
    digits = min(4, max(0, 1 - math.floor(math.log10(error))))
    return f"{mean:.{digits}f} ± {error:.{digits}f}".replace("-", "−")


def _format_number(number: float) -> str:
    """Return a number as text, with a minus sign in place of a hyphen."""
    return f"{number:g}".replace("-", "−")


if __name__ == "__main__":
    main()
