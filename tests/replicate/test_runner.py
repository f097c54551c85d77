"""The runner: the same files whoever runs, whatever happens."""

from __future__ import annotations

import io
from collections import Counter

import numpy as np
import pytest
from joblib import parallel_config
from toy_experiments import FAST, Interrupted, draw, no_network, toy, written

from cgmm.datasets import fetched
from cgmm.replicate import Setting, load_data, read_rows, replicate


@pytest.mark.parametrize(("backend", "jobs"), [("loky", 2), ("threading", 2)])
def test_the_file_does_not_depend_on_the_workers(tmp_path, backend, jobs):
    alone = written(FAST, tmp_path / "alone", realisations=3)
    with parallel_config(backend=backend):
        assert written(FAST, tmp_path / "many", realisations=3, jobs=jobs) == alone


@pytest.mark.parametrize("at", [0, 5])
def test_an_interruption_loses_nothing_and_only_the_rest_is_run(tmp_path, at):
    whole = written(toy(draw), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        replicate(toy(Interrupted(at)), tmp_path)
    assert not (tmp_path / "toy-fig1.csv").exists()
    rest = Interrupted()
    assert written(toy(rest), tmp_path) == whole
    assert len(rest.calls) == 8 - at


def test_the_bar_counts_every_realisation(tmp_path):
    out = io.StringIO()
    replicate(toy(draw), tmp_path, progress=out)
    shown = out.getvalue().split("\r")[1:]
    assert [line.split("] ")[1].strip() for line in shown] == [f"{i}/8" for i in range(1, 9)]
    assert shown[-1] == f"toy-fig1 [{'#' * 30}] 8/8\n"
    assert shown[3].count("#") == 15


def test_what_lacks_data_is_told_and_the_rest_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(fetched, "fetch_openml", no_network)
    experiment = toy(draw, design=(Setting("iris", (2,)), Setting("pima", (2,))))
    (complaint,) = replicate(experiment, tmp_path, data_home=tmp_path / "empty")
    assert f"pima is not at {tmp_path / 'empty' / 'pima.csv'}" in complaint
    assert Counter(r["data"] for r in read_rows(tmp_path / "toy-fig1.csv")) == {"iris": 8}


def test_part_of_the_pen_digits(tmp_path):
    labels = np.repeat(list("9876543210"), 800)
    lines = [f"{i},{label}" for i, label in enumerate(labels)]
    (tmp_path / "pendigits.csv").write_text("\n".join(["x,label", *lines]), encoding="utf-8")
    data = load_data("pendigits-0689", str(tmp_path))
    assert data.target_names == ("0", "6", "8", "9")
    assert np.bincount(data.y).tolist() == [750] * 4
    assert data.X[data.y == 3].ravel().tolist() == list(range(750))
    assert data.X[0] == 7200
