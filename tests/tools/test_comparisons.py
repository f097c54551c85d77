"""The page of comparisons says what follows from the results, and is not stale."""

import re
from collections import Counter

import comparisons
import pytest
from errata import HEADINGS

from cgmm.replicate.verdicts import KINDS, VERDICTS, by_sentence

JUDGED = comparisons.load()
TEXT = comparisons.page(JUDGED)


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


def test_a_flipped_verdict_stops_the_page():
    (flipped, _), *_ = [one for one in JUDGED if one.claim.verdict == "not"]
    with pytest.raises(ValueError, match=r"(?s)mend .* -> not  WRITTEN: reproduced\n"):
        comparisons.load([flipped._replace(verdict="reproduced")])
