"""Result files: nothing is lost, nothing is mixed, and each realisation is in them once."""

from __future__ import annotations

import numpy as np
import pytest
from toy_experiments import Interrupted, draw, toy, written

from cgmm.replicate import read_rows, replicate


def test_a_row_is_a_realisation_and_a_method(tmp_path):
    written(toy(draw), tmp_path)
    rows = read_rows(tmp_path / "toy-fig1.csv")
    names = "paper,figure,data,n,method,realisation,seed,quantity,value,reason"
    assert ",".join(rows[0]) == names
    assert [(r["n"], r["realisation"], r["method"]) for r in rows] == [
        (n, str(r), method) for n in ("2", "10") for r in range(4) for method in ("mean", "rash")
    ]
    for row in rows:
        value = np.random.default_rng(int(row["seed"])).normal()
        if row["method"] == "mean":
            assert float(row["value"]) == pytest.approx(value * int(row["n"]), rel=1e-7)
        else:
            assert (row["value"], row["reason"] != "") == (
                ("", True) if value > 0 else (f"{value:.8g}", False)
            )
    assert {row["reason"] for row in rows} == {"", "why, exactly"}


def test_two_interruptions_and_a_line_cut_off_in_writing(tmp_path):
    whole = written(toy(draw), tmp_path / "whole")
    partial = tmp_path / "toy-fig1.partial"
    with pytest.raises(KeyboardInterrupt):
        replicate(toy(Interrupted(3)), tmp_path)
    partial.write_text(partial.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        replicate(toy(Interrupted(2)), tmp_path)
    rest = Interrupted()
    assert written(toy(rest), tmp_path) == whole
    assert len(rest.calls) == 8 - (3 - 1 + 2)


def test_each_finished_realisation_is_on_disk_before_the_next_begins(tmp_path):
    seen = []

    def look(data, n, rng):
        partial = tmp_path / "toy-fig1.partial"
        seen.append(partial.read_text("utf-8").count("]]\n") if partial.exists() else 0)
        return draw(data, n, rng)

    replicate(toy(look), tmp_path)
    assert seen == list(range(8))


def test_more_realisations_are_added_and_fewer_take_nothing_away(tmp_path):
    whole = written(toy(draw), tmp_path / "whole")
    written(toy(draw), tmp_path, realisations=1, quick=True)
    more = Interrupted()
    assert written(toy(more), tmp_path) == whole
    assert len(more.calls) == 7
    assert written(toy(Interrupted(0)), tmp_path, realisations=2) == whole


def test_fresh_runs_everything_anew(tmp_path):
    whole = written(toy(draw), tmp_path)
    partial = tmp_path / "toy-fig1.partial"
    partial.write_text('[["left", "over"]]\n', encoding="utf-8")
    again = Interrupted()
    assert written(toy(again), tmp_path, fresh=True) == whole
    assert len(again.calls) == 8
    assert len(written(toy(draw), tmp_path, realisations=1, fresh=True)) < len(whole)


def test_another_seed_gives_another_file_and_never_a_mixture(tmp_path):
    first = written(toy(draw), tmp_path)
    with pytest.raises(ValueError, match=r"another seed than 1; use --fresh"):
        replicate(toy(draw), tmp_path, seed=1)
    assert written(toy(draw), tmp_path, seed=1, fresh=True) != first


def test_a_file_with_other_columns_is_not_mixed_with(tmp_path):
    written(toy(draw), tmp_path)
    with pytest.raises(ValueError, match="other columns"):
        replicate(toy(draw, columns=("m",)), tmp_path)
