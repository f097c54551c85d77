"""Verdicts in words: statements and lines for the book, a table for a terminal."""

from __future__ import annotations

import csv

from toy_claims import claim, row

from cgmm.replicate.sentences import line, report, statement, table
from cgmm.replicate.verdicts import verdict_on


def judged(*values, **changes):
    """A claim, and what follows from two equal realisations of so many data sets."""
    asked = claim(**{"bound": 0.9, "tolerance": 0.05, "why": "Since."} | changes)
    named = [(f"set{i}", value) for i, value in enumerate(values)]
    rows = [row(value, data, realisation=r) for r in (0, 1) for data, value in named]
    return asked, verdict_on(asked, rows)


def test_a_statement_shows_the_extremes_and_how_many_hold():
    text = statement(*judged(0.95, 0.2, 0.99))
    assert "0.2 ± 0 (set1; n = 2) to 0.99 ± 0 (set2; n = 2); 2 of 3 as asked" in " ".join(
        text.split()
    )
    assert "above 0.9, tolerance 0.05" in text
    assert "partly. Since." in text
    assert "printed  high" in text


def test_failures_are_counted_and_lines_are_short():
    found = verdict_on(claim(), [row(None, "a"), row(-0.0004, "a", realisation=1)])
    text = statement(claim(quantity="word " * 40), found, width=50)
    assert "-0.0004 (a; n = 1, 1 failed)" in text
    assert max(map(len, text.split("\n"))) <= 50


def test_short_numbers():
    assert "0.95 ± 0 " in line(*judged(0.95))
    assert line(*judged(-2781.7198)).split()[1] == "-2781.7"
    assert line(*judged(-0.0)).split()[1] == "0"
    assert line(*judged(0.00034)).split()[1] == "0.0003"
    assert line(*judged(-2e-17)).split()[1] == "0"


def test_a_line_counts_groups_and_goes_on_indented():
    assert "1 of 3" in line(*judged(0.95, 0.2, 0.3))
    text = line(*judged(0.95, 0.2, quantity="word " * 20), width=60)
    first, second, *_ = text.split("\n")
    assert first.startswith("partly      1 of 2           word")
    assert second.startswith(" " * 29 + "word")
    assert max(map(len, text.split("\n"))) <= 60


# ---------------------------------------------------------------------------- for a terminal


def test_the_table_marks_what_is_not_as_written_down(tmp_path):
    with open(tmp_path / "f.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, row(0))
        out.writeheader()
        out.writerows([row(0.9), row(None, realisation=1)])
    lines, wrong = table([claim()], tmp_path)
    assert not wrong
    assert lines[-1] == "0 of 1 verdicts are not as written down."
    assert lines[0].endswith("high -> reproduced")
    assert "0.9000" in lines[1]
    assert "1 failed" in lines[1]
    lines, wrong = table([claim(verdict="not"), claim()], tmp_path)
    assert wrong
    assert lines[0].endswith("high -> reproduced  WRITTEN: not")
    closing = lines.index("1 of 2 verdicts are not as written down.")
    assert lines[closing + 1 :] == lines[:2]


def test_a_verdict_that_flips_is_named_with_the_new_numbers():
    values = {("iris", 0): 0.9, ("iris", 1): 0.7, ("wine", 0): 0.25, ("wine", 1): 0.35}
    rows = [row(v, data=data, realisation=i) for (data, i), v in values.items()]
    comparison = claim(quantity="score of a")
    head, *groups = report(comparison, verdict_on(comparison, rows))
    assert head == "p, Fig. 1: score of a: high -> partly  WRITTEN: reproduced"
    assert [" ".join(line.split()) for line in groups] == [
        "iris 0.8000 ± 0.1000 (n = 2) holds",
        "wine 0.3000 ± 0.0500 (n = 2) does not hold",
    ]
    comparison = claim(quantity="score of a", verdict="partly")
    assert "WRITTEN" not in report(comparison, verdict_on(comparison, rows))[0]
