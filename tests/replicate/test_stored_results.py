"""What is stored is whole, and is found again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from toy_experiments import STORED

from cgmm.replicate import EXPERIMENTS, read_rows, realise, tasks_of


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


@pytest.mark.parametrize(
    ("name", "data", "tolerance"),
    [
        # Another machine may put a point on a border elsewhere, no more.
        ("shental2003-fig5", "iris", 0.03),
        ("lu2007-fig2", "two_models", 0.01),
        ("lu2007-fig5", "lu_set_1", 0.01),
        ("lu2007-fig6", "lu_set_1", 0.03),
        ("lu2007-fig11", "none", 0.03),
        ("barhillel2005-fig10", "iris", 0.03),
        # Smooth functions of the points, or accuracies far from any border.
        ("barhillel2005-fig1", "three_classes", 1e-6),
        ("barhillel2005-fig3", "none", 1e-6),
        ("barhillel2005-fig11", "none", 1e-6),
        ("choosing-map", "none", 0.02),
        ("choosing-classes", "none", 0.02),
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
