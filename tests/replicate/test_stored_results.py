"""What is stored is whole, is found again, and carries every verdict that is written down."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from toy_experiments import STORED

from cgmm.replicate import EXPERIMENTS, read_rows, realise, tasks_of
from cgmm.replicate.reading import by_realisation, spread
from cgmm.replicate.sentences import report
from cgmm.replicate.verdicts import judge, read_comparisons

COMPARISONS = read_comparisons(STORED.with_name("comparisons.toml"))


@pytest.mark.parametrize(
    "comparison", COMPARISONS, ids=lambda c: f"{c.paper}-{c.figure}-{c.quantity}"
)
def test_every_verdict_follows_from_the_results(comparison):
    judgement = judge(comparison, read_rows(STORED / f"{comparison.file}.csv"))
    assert judgement.verdict == comparison.verdict, "\n".join(report(comparison, judgement))
    assert comparison.verdict == "reproduced" or comparison.why
    experiment = EXPERIMENTS[comparison.file]
    assert (experiment.paper, comparison.figure in experiment.figure) == (comparison.paper, True)


@pytest.mark.parametrize("path", sorted(STORED.glob("*.csv")), ids=lambda p: p.stem)
def test_stored_results_are_whole(path):
    experiment = EXPERIMENTS[path.stem]
    rows = read_rows(path)
    assert tuple(rows[0]) == experiment.header
    # Data that must be fetched may have fewer realisations than what is at hand everywhere.
    n_of = {row["data"]: 1 + int(row["realisation"]) for row in rows}
    settings = {setting: i for i, setting in enumerate(experiment.design)}
    tasks = sorted(tasks_of(experiment, max(n_of.values())), key=lambda t: settings[t.setting])
    wanted = [t.key for t in tasks if t.realisation < n_of[t.setting.data]]
    columns = ("data", *experiment.columns, "realisation", "seed")
    keys = [tuple(row[c] for c in columns) for row in rows]
    stored = [key for before, key in pairwise([None, *keys]) if key != before]
    assert stored == wanted
    for row in rows:
        assert row["value"] or row["reason"]


def test_every_experiment_is_stored():
    assert {path.stem for path in STORED.glob("*.csv")} == EXPERIMENTS.keys()


@pytest.mark.parametrize(
    ("name", "data", "tolerance"),
    [
        # Another machine may put a point on a border elsewhere, no more.
        ("shental2003-fig5", "iris", 0.03),
        ("shental2003-fig5-units", "wine", 0.03),
        ("lu2007-fig2", "two_models", 0.01),
        ("lu2007-fig5", "lu_set_1", 0.01),
        ("lu2007-fig6", "lu_set_1", 0.03),
        ("lu2007-fig10-near", "lu_set_1_near", 0.03),
        ("lu2007-fig11", "none", 0.03),
        ("barhillel2005-fig10", "iris", 0.03),
        # Smooth functions of the points, or accuracies far from any border.
        ("barhillel2005-fig1", "three_classes", 1e-6),
        ("barhillel2005-fig3", "none", 1e-6),
        ("barhillel2005-fig11", "none", 1e-6),
    ],
)
def test_a_stored_realisation_is_what_is_found_again(name, data, tolerance):
    task = next(t for t in tasks_of(EXPERIMENTS[name], 1) if t.setting.data == data)
    header = EXPERIMENTS[name].header
    again = [dict(zip(header, row, strict=True)) for row in realise(task)]
    stored = [r for r in read_rows(STORED / f"{name}.csv") if r["seed"] == str(task.seed)]
    assert len(again) == len(stored) > 0
    for new, old in zip(again, stored, strict=True):
        assert {**new, "value": ""} == {**old, "value": ""}
        assert float(new["value"]) == pytest.approx(float(old["value"]), rel=tolerance)


def test_the_page_beside_the_results_says_how_many_realisations_there_are():
    text = (STORED / "README.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^\| ([a-z0-9]+-[a-z0-9-]+) \| .* \| (\d+) \| (\d+) \|$", text, re.MULTILINE
    )
    said = {name: here for name, here, _ in lines}
    paper = {name: there for name, _, there in lines}
    found = {
        path.stem: str(1 + max(int(row["realisation"]) for row in read_rows(path)))
        for path in STORED.glob("*.csv")
    }
    assert said == found
    assert paper == {name: str(e.realisations) for name, e in EXPERIMENTS.items()}


@pytest.mark.parametrize("path", sorted(STORED.glob("*.csv")), ids=lambda path: path.stem)
def test_arrays_hold_every_value_of_a_stored_file(path):
    rows = read_rows(path)
    settings = [c for c in rows[0] if c not in ("realisation", "seed", "value", "reason")]
    found = by_realisation(rows, settings)
    stored = np.sort([float(r["value"]) for r in rows if r["value"]])
    values = np.concatenate(list(found.values()))
    np.testing.assert_array_equal(np.sort(values[~np.isnan(values)]), stored)


def test_spread_is_what_the_verdicts_find():
    """Of every claim without a difference, on the stored files."""
    for claim in COMPARISONS:
        if claim.minus is None and claim.by == []:
            rows = read_rows(STORED / f"{claim.file}.csv")
            (values,) = by_realisation(rows, "paper", **claim.where, **claim.ours).values()
            (found,) = judge(claim, rows).found
            np.testing.assert_allclose(spread(values), found[1:5], rtol=1e-12)
