"""Test the verdicts on claims of the papers: the rows that they depend on, and their wording."""

import csv
import re

import pytest
from toy_experiments import ROOT

from reruns import __main__
from reruns.verdicts import (
    Comparison,
    by_sentence,
    from_the_default_start,
    read_comparisons,
    statement,
    verdict_on,
)  # fmt: skip

COMPARISONS = ROOT / "book/_data/comparisons.toml"


def make_claim(**changes) -> Comparison:
    """Return a claim that the score of method a is above 0.5 in each data set."""
    fields = {"paper": "p", "figure": "1", "quantity": "score", "printed": "high", "file": "f"}
    fields |= {"by": ["data"], "where": {"quantity": "score"}, "ours": {"method": "a"}}
    fields |= {"claim": "above", "bound": 0.5, "tolerance": 0.0, "verdict": "reproduced"}
    fields["data"] = "identity"
    return Comparison(**fields | changes)


def make_row(value, data="iris", method="a", realisation=0, quantity="score") -> dict[str, str]:
    """Return a row of a result file."""
    value = "" if value is None else str(value)
    return {
        "data": data, "method": method, "realisation": str(realisation), "quantity": quantity,
        "value": value,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "near", "far"),
    [("above", 0.49, 0.47), ("below", 0.51, 0.53), ("near", 0.51, 0.53), ("near", 0.49, 0.47)],
)
def test_a_claim_holds_within_its_tolerance(kind, near, far):
    claim = make_claim(claim=kind, tolerance=0.02)
    assert verdict_on(claim, [make_row(near)]).verdict == "reproduced"
    assert verdict_on(claim, [make_row(far)]).verdict == "not"


@pytest.mark.parametrize(("good", "verdict"), [(4, "reproduced"), (2, "partly"), (1, "not")])
def test_the_verdict_depends_on_the_number_of_groups_in_which_the_claim_holds(good, verdict):
    rows = [make_row(0.9 if i < good else 0.1, data=str(i)) for i in range(4)]
    assert verdict_on(make_claim(), rows).verdict == verdict


@pytest.mark.parametrize(
    ("spread", "verdict"), [(0.0, "partly"), (0.1, "partly"), (0.25, "undecided")]
)
def test_a_claim_that_fails_within_two_standard_errors_is_undecided(spread, verdict):
    """One of two groups has the mean 0.4, with standard error spread / √2; the bound is 0.6."""
    rows = [make_row(0.9, realisation=r) for r in (0, 1)]
    wine = 0.4 - spread / 2, 0.4 + spread / 2
    rows += [make_row(value, "wine", realisation=r) for r, value in enumerate(wine)]
    judgement = verdict_on(make_claim(bound=0.6), rows)
    assert judgement.verdict == verdict
    assert [g.near for g in judgement.found] == [False, verdict == "undecided"]


def test_a_value_can_be_compared_with_the_mean_of_two_methods():
    rows = [make_row(v, method=m) for m, v in {"a": 0.6, "b": 0.2, "c": 0.8}.items()]
    (found,) = verdict_on(make_claim(bound=0.0, minus={"method": ["b", "c"]}), rows).found
    assert (found.mean, found.holds) == (pytest.approx(0.1), True)
    (found,) = verdict_on(make_claim(bound=0.0, minus={"method": ["b", "d"]}), rows).found
    assert (found.n_failed, found.holds) == (1, False)


def test_gains_of_two_methods_are_compared_instead_of_their_scores():
    """Method a gains 0.7, from 0.2 to 0.9; b gains 0.75, although it ends below a."""
    levels = {("a", "0"): 0.2, ("a", "9"): 0.9, ("b", "0"): 0.1, ("b", "9"): 0.85}
    rows = [make_row(v, method=m) | {"n": n} for (m, n), v in levels.items()]
    higher = make_claim(bound=0.0, ours={"method": "a", "n": 9}, minus={"method": "b", "n": 9})
    assert verdict_on(higher, rows).verdict == "reproduced"
    rival = {"ours": {"method": "b", "n": 9}, "minus": {"method": "b", "n": 0}}
    gain = higher._replace(minus={"method": "a", "n": 0}, rival=rival)
    (found,) = verdict_on(gain, rows).found
    assert (found.mean, found.holds) == (pytest.approx(-0.05), False)


def test_a_claim_about_steps_is_judged_for_each_step_between_levels():
    """Levels are sorted as numbers, so 5 comes before 10."""
    levels = {"10": 0.9, "0": 0.2, "5": 0.1}
    rows = [make_row(v, data) | {"n": n} for data in ("iris", "wine") for n, v in levels.items()]
    found = verdict_on(make_claim(bound=0.0, steps="n"), rows).found
    assert [(f.group, f.holds) for f in found] == [
        ((data, step), holds)
        for data in ("iris", "wine")
        for step, holds in (("0 to 5", False), ("5 to 10", True))
    ]


def test_from_the_default_start_judges_a_claim_by_a_second_result_file(tmp_path):
    values = {"a, default start": 0.9, "a": 0.4, "b": 0.2, "b, ten starts": 0.95}
    rows = [make_row(value, method=method) for method, value in values.items()]
    with open(tmp_path / "g.csv", "w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    again = make_claim(again="g")
    assert from_the_default_start(again, tmp_path).found[0].mean == 0.9
    less = again._replace(bound=0.0, minus={"method": "b"}, kmeans=", ten starts")
    assert from_the_default_start(less, tmp_path).found[0].mean == pytest.approx(-0.05)
    assert from_the_default_start(make_claim(again="absent"), tmp_path) is None
    assert from_the_default_start(make_claim(), tmp_path) is None


def test_claims_about_one_printed_sentence_give_one_verdict():
    judgement = verdict_on(make_claim(), [make_row(0.9)])
    parts = [(make_claim(quantity=q, part_of="the caption"), judgement) for q in ("one", "two")]
    assert by_sentence(parts) == {("p", "1", "the caption"): ("identity", "reproduced")}


def test_a_claim_that_was_not_run_is_not_tested_and_does_not_count_against_its_sentence():
    good, bad = [make_row(0.9)], [make_row(0.1)]
    one, other = make_claim(reading="so"), make_claim(reading="otherwise")
    both = [(one, verdict_on(one, good)), (other, verdict_on(other, bad))]
    assert by_sentence(both) == {("p", "1", "score"): ("identity", "partly")}
    other = other._replace(instead="something else was run")
    both = [(one, verdict_on(one, good)), (other, verdict_on(other, bad))]
    assert verdict_on(other, good).verdict == "not tested"
    assert by_sentence(both) == {("p", "1", "score"): ("identity", "reproduced")}
    assert by_sentence(both[1:]) == {("p", "1", "score"): ("identity", "not tested")}


def test_a_claim_is_not_tested_if_half_of_its_runs_are_void():
    good = [make_row(0.9, realisation=i) | {"reason": "a tree is kept" * (i < 2)} for i in range(4)]
    tree = {"reason": "a tree is kept"}
    other = [make_row(0.9, method="b", realisation=i) | tree for i in range(9)]
    claimed = make_claim(void="tree is kept")
    assert verdict_on(claimed, good + other).verdict == "not tested"
    assert verdict_on(claimed, good[1:] + other).verdict == "reproduced"
    assert verdict_on(make_claim(), good + other).verdict == "reproduced"


def test_differences_are_computed_for_each_realisation():
    a = [make_row(v, realisation=i) for i, v in enumerate([0.1, 0.5, 0.9])]
    b = [make_row(v, method="b", realisation=i) for i, v in enumerate([0.0, 0.4, 0.8])]
    comparison = make_claim(minus={"method": "b"}, bound=0.1, tolerance=1e-9)
    (found,) = verdict_on(comparison, a + b[::-1]).found
    assert (found.mean, found.standard_error) == pytest.approx((0.1, 0.0), abs=1e-12)
    # A realisation without partner counts as failed.
    (found,) = verdict_on(comparison, a + b[1:]).found
    assert (found.n, found.n_failed, found.holds) == (2, 1, True)


def test_a_claim_fails_in_groups_in_which_most_runs_failed():
    values = [0.9, None, None]
    rows = [make_row(v, realisation=i) for i, v in enumerate(values)]
    judgement = verdict_on(make_claim(), rows)
    assert (judgement.verdict, judgement.found[0].n_failed) == ("not", 2)
    assert verdict_on(make_claim(), rows[:2]).verdict == "reproduced"
    assert verdict_on(make_claim(), rows[1:]).verdict == "not"


def test_a_claim_that_matches_no_row_or_several_is_refused():
    with pytest.raises(ValueError, match="no row"):
        verdict_on(make_claim(ours={"method": "c"}), [make_row(1.0)])
    with pytest.raises(ValueError, match="several values"):
        verdict_on(make_claim(by=[]), [make_row(1.0), make_row(0.0, data="wine")])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('claim = "over"', "claim is 'over'"),
        ('verdict = "maybe"', "verdict is 'maybe'"),
        ('data = "dreamt"', "data is 'dreamt'"),
        ('claim = "above"\nminus = {method = "b"}', "write 0, and move"),
        ("# bound", "comparison 1: .*bound"),
        ('printed = ""\nlimit = 1', "comparison 1: .*limit"),
    ],
)
def test_read_comparisons_refuses_invalid_entries_by_name(tmp_path, line, message):
    """Replace one line of the first comparison; the message names the fault."""
    name, text = re.search(r"\w+", line)[0], COMPARISONS.read_text(encoding="utf-8")
    entry = "[[comparison]]" + text.split("[[comparison]]")[1]
    path = tmp_path / "comparisons.toml"
    path.write_text(re.sub(rf"^{name} = .*", line, entry, flags=re.MULTILINE), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_comparisons(path)


# ---------------------------------------------------------------------------- wording


def test_a_statement_shows_the_written_verdict_only_if_it_differs():
    claims = [make_claim(verdict=verdict) for verdict in ("partly", "not")]
    wrong, right = (statement(one, verdict_on(one, [make_row(0.1)])).splitlines() for one in claims)
    assert wrong[-2:] == ["  verdict  not", "  WRITTEN  partly"]
    assert right == wrong[:-1]


def test_the_command_lists_changed_verdicts_again_at_the_end(monkeypatch, capsys):
    first, kept, *_ = read_comparisons(COMPARISONS)
    flipped = first._replace(verdict="partly")
    monkeypatch.setattr(__main__, "read_comparisons", lambda path: [flipped, kept])
    assert __main__.main(["--verdicts"]) == 1
    listed, closing = capsys.readouterr().out.split("1 of 2 verdicts are not as written down.\n")
    assert listed.count("WRITTEN") == 1
    assert closing.startswith(f"{first.paper}, Fig. {first.figure}")
    assert closing.endswith("  WRITTEN  partly\n")
