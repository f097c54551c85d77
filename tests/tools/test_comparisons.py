"""Test that the page of comparisons shows every claim, its verdict and correct totals."""

import re
from collections import Counter

import comparisons
import pytest
from errata import HEADINGS

from reruns.verdicts import KINDS, VERDICTS, by_sentence


@pytest.fixture(scope="module")
def judged_claims():
    """Return all claims with their verdicts."""
    return comparisons.load_claims()


@pytest.fixture(scope="module")
def page_text(judged_claims):
    """Return the text of the page."""
    return comparisons.build_page(judged_claims)


def test_every_claim_has_a_row_under_its_figure(judged_claims, page_text):
    assert len(judged_claims) > 90
    for paper, of_paper in comparisons.group_claims(judged_claims, "paper").items():
        for figure, of_figure in comparisons.group_claims(of_paper, "figure").items():
            label = f"({comparisons.section_label(paper, figure)})="
            assert page_text.count(label) == 1
            # Skip the head of the table and the rule below it.
            rows = page_text.split(label)[1].split("\n(")[0].strip().split("\n| ")[3:]
            assert len(rows) == len(of_figure)
            for row, (claim, (verdict, found), again) in zip(rows, of_figure, strict=True):
                assert f" | **{comparisons.WORDS[verdict]}**" in row
                assert row.rstrip("| \n").endswith(claim.why)
                assert row.count("does not hold") == sum(not f.holds for f in found)
                assert row.count("*From the default start:*") == int(again is not None)


def test_the_totals_count_sentences_and_are_consistent(judged_claims, page_text):
    sentences = by_sentence(one[:2] for one in judged_claims)
    assert len(sentences) == len({one.claim.sentence for one in judged_claims}) < 90
    counts = Counter((paper, v) for (paper, *_), (_, v) in sentences.items())
    counts += Counter(sentences.values())
    names = HEADINGS | comparisons.DATA
    for group in {name for name, _ in counts}:
        numbers = " | ".join(str(counts[group, v]) for v in VERDICTS)
        assert page_text.count(f"| {names[group]} | {numbers} |\n") == 1
    kinds = [[counts[kind, v] for v in VERDICTS] for kind in KINDS]
    stated = [
        int(n) for n in re.findall(r"\d+", comparisons.summarise_in_a_sentence(judged_claims))
    ]
    expected = [n for kind in kinds for n in (sum(kind), *filter(None, kind))]
    assert stated == [len(sentences), len(judged_claims), *expected]
    assert sum(map(sum, kinds)) == len(sentences)


def test_a_changed_verdict_raises_an_error(judged_claims):

    (changed, *_), *_ = [one for one in judged_claims if one.claim.verdict == "not"]
    with pytest.raises(ValueError, match=r"(?s)mend .*verdict  not.*WRITTEN  reproduced"):
        comparisons.load_claims([changed._replace(verdict="reproduced")])
