"""Test that the page of comparisons shows every claim, its verdict and correct totals."""

import re
from collections import Counter

import comparisons
import pytest
from errata import HEADINGS

from reruns.verdicts import KINDS, VERDICTS, by_sentence

CLAIMS = comparisons.load_claims()
PAGE = comparisons.build_page(CLAIMS)


def test_every_claim_has_a_row_under_its_figure():
    assert len(CLAIMS) > 90
    for paper, of_paper in comparisons.group_claims(CLAIMS, "paper").items():
        for figure, of_figure in comparisons.group_claims(of_paper, "figure").items():
            label = f"({comparisons.section_label(paper, figure)})="
            assert PAGE.count(label) == 1
            # Skip the head of the table and the line of dashes below it.
            rows = PAGE.split(label)[1].split("\n(")[0].strip().split("\n| ")[3:]
            assert len(rows) == len(of_figure)
            for row, (claim, (verdict, found), again) in zip(rows, of_figure, strict=True):
                assert f" | **{comparisons.WORDS[verdict]}**" in row
                assert row.rstrip("| \n").endswith(claim.why)
                assert row.count("does not hold") == sum(not f.holds for f in found)
                assert row.count("*From the default start:*") == int(again is not None)


def test_totals_of_verdicts_count_each_sentence_of_a_paper_once():
    sentences = by_sentence(one[:2] for one in CLAIMS)
    assert len(sentences) == len({one.claim.sentence for one in CLAIMS}) < 90
    counts = Counter((paper, v) for (paper, *_), (_, v) in sentences.items())
    counts += Counter(sentences.values())
    names = HEADINGS | comparisons.DATA
    for group in {name for name, _ in counts}:
        numbers = " | ".join(str(counts[group, v]) for v in VERDICTS)
        assert PAGE.count(f"| {names[group]} | {numbers} |\n") == 1
    kinds = [[counts[kind, v] for v in VERDICTS] for kind in KINDS]
    stated = list(map(int, re.findall(r"\d+", comparisons.summarise_in_a_sentence(CLAIMS))))
    expected = [n for kind in kinds for n in (sum(kind), *filter(None, kind))]
    assert stated == [len(sentences), len(CLAIMS), *expected]
    assert sum(map(sum, kinds)) == len(sentences)


def test_a_verdict_that_differs_from_the_results_raises_an_error():
    (changed, *_), *_ = [one for one in CLAIMS if one.claim.verdict == "not"]
    with pytest.raises(ValueError, match=r"(?s)mend .*verdict  not.*WRITTEN  reproduced"):
        comparisons.load_claims([changed._replace(verdict="reproduced")])
