"""The page of comparisons says what follows from the results, and is not stale."""

from __future__ import annotations

import csv
import math
import re
import shutil
from collections import Counter

import comparisons
import pytest
from errata import HEADINGS

from cgmm.replicate.verdicts import KINDS, VERDICTS, by_sentence

JUDGED = comparisons.load()
TEXT = comparisons.page(JUDGED)


@pytest.fixture
def results(tmp_path):
    """A copy of the result files, to be spoilt."""
    return shutil.copytree(comparisons.RESULTS, tmp_path / "results")


def shift(path, method, by):
    """Add a number to every value of a method."""
    with open(path, newline="", encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["method"] == method and row["value"]:
            row["value"] = str(float(row["value"]) + by)
    with open(path, "w", newline="", encoding="utf8") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(rows)


def test_every_claim_has_its_row_below_its_figure():
    assert len(JUDGED) > 90
    for paper, of_paper in comparisons.grouped(JUDGED, "paper").items():
        for figure, ours in comparisons.grouped(of_paper, "figure").items():
            label = f"({comparisons.label(paper, figure)})="
            assert TEXT.count(label) == 1
            # The first two are the head of the table and the rule below it.
            rows = TEXT.split(label)[1].split("\n(")[0].strip().split("\n| ")[3:]
            assert len(rows) == len(ours)
            for row, (claim, (verdict, found)) in zip(rows, ours, strict=True):
                assert f" | **{comparisons.WORDS[verdict]}**" in row
                assert row.rstrip("| \n").endswith(claim.why)
                assert row.count("does not hold") == sum(not f.holds for f in found)


def test_the_counts_on_top_are_of_sentences_and_add_up():
    sentences = by_sentence(JUDGED)
    assert len(sentences) == len({(c.paper, c.figure, c.quantity) for c, _ in JUDGED})
    counts = Counter((paper, v) for (paper, *_), (_, v) in sentences.items())
    counts += Counter(sentences.values())
    names = HEADINGS | comparisons.ON
    for group in {name for name, _ in counts}:
        numbers = " | ".join(str(counts[group, v]) for v in VERDICTS)
        assert TEXT.count(f"| {names[group]} | {numbers} |\n") == 1
    kinds = [[counts[kind, v] for v in VERDICTS] for kind in KINDS]
    said = [int(n) for n in re.findall(r"\d+", comparisons.in_a_sentence(JUDGED))]
    wanted = [n for kind in kinds for n in (sum(kind), *filter(None, kind))]
    assert said == [len(sentences), len(JUDGED), *wanted]
    assert sum(map(sum, kinds)) == len(sentences)


def test_a_printed_sentence_has_one_tolerance():
    """And one bound, where it is about one quantity of one file's kind."""
    found = {}
    for claim, _ in JUDGED:
        quantity = claim.where.get("quantity", claim.ours.get("quantity"))
        key = claim.paper, claim.printed, claim.claim, str(quantity)
        assert found.setdefault(key, (claim.bound, claim.tolerance)) == (
            claim.bound,
            claim.tolerance,
        )
    slightly = {c.bound for c, _ in JUDGED if c.printed.startswith("slightly")}
    assert slightly == {0.001}


def test_what_can_be_read_in_two_ways_says_how():
    """Two claims about one sentence and quantity differ in what they say of their reading."""
    said = Counter((c.paper, c.figure, c.quantity, c.reading) for c, _ in JUDGED)
    assert max(said.values()) == 1
    said = Counter((c.paper, c.figure, c.quantity) for c, _ in JUDGED)
    for claim, _ in JUDGED:
        several = said[claim.paper, claim.figure, claim.quantity] > 1
        assert bool(claim.reading) == several


def test_a_new_number_is_on_the_page_and_a_flipped_verdict_stops_it(results):
    path = results / "barhillel2005-fig3.csv"
    shift(path, "as seen", 0.02)
    assert comparisons.page(comparisons.load(results=results)) != TEXT
    shift(path, "as seen", 1.0)
    with pytest.raises(ValueError, match=r"(?s)mend .*mean size .*-> not  WRITTEN: reproduced\n"):
        comparisons.load(results=results)


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (-0.123456, 0.0123, "−0.123 ± 0.012"),
        (-2800.4, 31.0, "−2800 ± 31"),
        (0.575, 0.0, "0.575"),
        (0.575, math.nan, "0.575"),
        (0.99871, 0.000012, "0.9987 ± 0.0000"),
        (math.nan, math.nan, "none"),
    ],
)
def test_numbers_are_as_exact_as_they_are_known(mean, error, text):
    assert comparisons.quantity(mean, error) == text
