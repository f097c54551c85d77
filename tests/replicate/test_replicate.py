"""The reruns of the papers: the same files whatever happens, and verdicts that follow from them."""

from __future__ import annotations

import csv
import io
import re
import sys
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config

from cgmm import datasets
from cgmm.kmeans import SearchBudgetError
from cgmm.metric_learning import RCA
from cgmm.replicate import (
    EXPERIMENTS,
    Experiment,
    Result,
    Setting,
    attempt,
    load_data,
    read_rows,
    realise,
    replicate,
    runner,
    seed_of,
    tasks_of,
)
from cgmm.replicate.__main__ import main
from cgmm.replicate.barhillel2005 import taught, within_over_between
from cgmm.replicate.lu2007 import (
    TERRAINS,
    named_accuracy,
    snow_scene,
    snow_segmenters,
    textured_blocks,
    textured_image,
)
from cgmm.replicate.retrieval import purity
from cgmm.replicate.shental2003 import standardised
from cgmm.replicate.verdicts import Comparison, judge, read_comparisons, report, table
from cgmm.scenarios import expected_chunklet_size

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "book" / "_data" / "replication"
COMPARISONS = read_comparisons(ROOT / "book" / "_data" / "comparisons.toml")

# Fast, random, and without data: sizes of chunklets.
FAST = EXPERIMENTS["barhillel2005-fig3"]


def toy(run, **changes) -> Experiment:
    """An experiment of four realisations in two settings, on the irises."""
    settings = (Setting("iris", (2,)), Setting("iris", (10,)))
    fields = {"name": "toy-fig1", "paper": "toy", "figure": "1", "columns": ("n",)}
    fields |= {"design": settings, "quick": settings[:1], "realisations": 4, "run": run}
    return Experiment(**fields | changes)


def draw(data, n, rng):
    """A number for each of two methods; the second sometimes fails."""
    value = float(rng.normal())
    yield Result("mean", "score", value * n)
    yield Result("rash", "score", None if value > 0 else value, "why, exactly" if value > 0 else "")


def no_network(*args, **kwargs):
    raise OSError("no route to host")


# ---------------------------------------------------------------------------- seeds


def test_a_seed_is_made_of_names_and_stays_what_it_was():
    # From SHA-256 and numpy's SeedSequence, both of which are fixed for good.
    assert seed_of("a", Setting("iris", (0.15,)), 0) == PINNED
    assert seed_of("a", Setting("iris", ("0.15",)), "0") == PINNED


PINNED = 468878374


@pytest.mark.parametrize(
    ("name", "data", "values", "realisation", "seed"),
    [
        ("b", "iris", (0.15,), 0, 0),
        ("a", "wine", (0.15,), 0, 0),
        ("a", "iris", (0.3,), 0, 0),
        ("a", "iris", (0.15,), 1, 0),
        ("a", "iris", (0.15,), 0, 1),
    ],
)
def test_every_name_changes_the_seed(name, data, values, realisation, seed):
    assert seed_of(name, Setting(data, values), realisation, seed) != PINNED


def test_no_two_realisations_share_a_seed():
    seeds = [task.seed for e in EXPERIMENTS.values() for task in tasks_of(e, 100)]
    assert len(seeds) > 5000
    assert len(set(seeds)) == len(seeds)


def test_tasks_are_those_of_the_paper_unless_told_otherwise():
    experiment = toy(draw)
    assert len(tasks_of(experiment)) == 2 * 4
    assert len(tasks_of(experiment, 3, quick=True)) == 3
    assert [(t.setting.values, t.realisation) for t in tasks_of(experiment, 2)] == [
        ((2,), 0), ((10,), 0), ((2,), 1), ((10,), 1)
    ]  # fmt: skip
    assert len(tasks_of(toy(draw, realisations=1), 100)) == 2  # nothing is random: once


# ---------------------------------------------------------------------------- files


def written(experiment: Experiment, folder: Path, **options) -> bytes:
    assert replicate(experiment, folder, **options) == []
    assert not list(folder.glob("*.partial"))
    assert not list(folder.glob("*.new"))
    return (folder / f"{experiment.name}.csv").read_bytes()


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


@pytest.mark.parametrize(("backend", "jobs"), [("loky", 2), ("threading", 2), ("loky", -1)])
def test_the_file_does_not_depend_on_the_workers(tmp_path, backend, jobs):
    alone = written(FAST, tmp_path / "alone", realisations=3)
    with parallel_config(backend=backend):
        assert written(FAST, tmp_path / "many", realisations=3, jobs=jobs) == alone


def test_a_dask_cluster_of_two_workers_writes_the_same_file(tmp_path):
    distributed = pytest.importorskip(
        "distributed", reason='no Dask here: pip install "dask[distributed]"'
    )
    alone = written(FAST, tmp_path / "alone", realisations=3)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        command = ["barhillel2005-fig3", "--realisations", "3", "--results", str(tmp_path / "dask")]
        assert main([*command, "--backend", "dask", "--scheduler", cluster.scheduler_address]) == 0
    assert (tmp_path / "dask" / f"{FAST.name}.csv").read_bytes() == alone


def test_without_dask_the_command_line_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SystemExit):
        main([FAST.name, "--backend", "dask", "--results", str(tmp_path)])
    assert 'pip install "dask[distributed]"' in capsys.readouterr().err


class Interrupted:
    """Runs ``draw``, counts what it is asked for, and is interrupted at one call."""

    def __init__(self, at: int | None = None):
        self.at, self.calls = at, []

    def __call__(self, data, n, rng):
        if len(self.calls) == self.at:
            raise KeyboardInterrupt
        self.calls.append(n)
        return draw(data, n, rng)


@pytest.mark.parametrize("at", [0, 1, 5, 7])
def test_an_interruption_loses_nothing_and_only_the_rest_is_run(tmp_path, at):
    whole = written(toy(draw), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        replicate(toy(Interrupted(at)), tmp_path)
    assert not (tmp_path / "toy-fig1.csv").exists()
    rest = Interrupted()
    assert written(toy(rest), tmp_path) == whole
    assert len(rest.calls) == 8 - at


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


def test_fresh_leaves_nothing_of_an_earlier_run_even_if_interrupted(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        replicate(toy(Interrupted(3)), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        replicate(toy(Interrupted(1)), tmp_path, fresh=True)
    rest = Interrupted()
    replicate(toy(rest), tmp_path)
    assert len(rest.calls) == 7


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


def test_the_bar_counts_every_realisation(tmp_path):
    out = io.StringIO()
    replicate(toy(draw), tmp_path, progress=out)
    shown = out.getvalue().split("\r")[1:]
    assert [line.split("] ")[1].strip() for line in shown] == [f"{i}/8" for i in range(1, 9)]
    assert shown[-1] == f"toy-fig1 [{'#' * 30}] 8/8\n"
    assert shown[3].count("#") == 15


# ---------------------------------------------------------------------------- failures, data


def fails(error):
    def measure():
        raise error

    return measure


@pytest.mark.parametrize(
    "error",
    [
        ValueError("it is singular. Use more points."),
        np.linalg.LinAlgError("it is singular"),
        SearchBudgetError("it is singular"),
        FloatingPointError("it is singular; or not"),
    ],
)
def test_a_failure_is_a_row_for_each_quantity(error):
    rows = attempt("rash", ("a", "b"), fails(error))
    assert [(r.method, r.quantity, r.value) for r in rows] == [
        ("rash", "a", None),
        ("rash", "b", None),
    ]
    assert {r.reason for r in rows} == {f"{type(error).__name__}: it is singular"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TypeError("a bug"), KeyError("a bug")])
def test_what_is_no_failure_of_a_method_is_not_hidden(error):
    with pytest.raises(type(error)):
        attempt("rash", ("a",), fails(error))


def test_warnings_are_written_down_beside_the_value():
    def measure():
        for _ in range(2):
            warnings.warn("slow, very slow. Do something", UserWarning, stacklevel=1)
        return {"a": 1.0}

    assert attempt("m", ("a",), measure) == [Result("m", "a", 1.0, "UserWarning: slow, very slow")]


def test_what_lacks_data_is_told_and_the_rest_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "fetch_openml", no_network)
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


# ---------------------------------------------------------------------------- command line


def test_the_command_line_runs_a_part_and_says_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(EXPERIMENTS, "toy-fig1", toy(Interrupted(3)))
    command = ["toy-fig1", "--results", str(tmp_path)]
    assert main([*command, "--quick"]) == 0
    assert len(read_rows(tmp_path / "toy-fig1.csv")) == 2 * 2
    assert main(command) == 130
    assert f"what is finished is in {tmp_path / 'toy-fig1.partial'}" in capsys.readouterr().err
    monkeypatch.setitem(EXPERIMENTS, "toy-fig1", toy(draw))
    assert main(command) == 0
    assert len(read_rows(tmp_path / "toy-fig1.csv")) == 8 * 2


def test_the_command_line_complains_about_data_and_names(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(datasets, "fetch_openml", no_network)
    monkeypatch.setitem(EXPERIMENTS, "toy-fig1", toy(draw, design=(Setting("pima", (2,)),)))
    options = ["--results", str(tmp_path), "--data-home", str(tmp_path)]
    assert main(["toy-fig1", *options]) == 1
    assert "no route to host" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["fig99", *options])
    assert "unknown: fig99" in capsys.readouterr().err


# ---------------------------------------------------------------------------- experiments


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_design_is_whole(name):
    experiment = EXPERIMENTS[name]
    assert experiment.name == name
    if experiment.paper != "book":  # its own simulations
        assert name.startswith(experiment.paper)
        assert f"{{{experiment.paper}," in (ROOT / "book" / "references.bib").read_text("utf-8")
    assert len(set(experiment.design)) == len(experiment.design)
    assert all(len(s.values) == len(experiment.columns) for s in experiment.design)


def test_realisations_are_those_of_the_papers():
    # shental2003: Fig. 5 over 100, Fig. 7 over "more than 1000"; lu2007: sect. 5.1.3 and 5.1.4;
    # barhillel2005: Fig. 4 over 50
    told = {"shental2003-fig5": 100, "shental2003-fig7": 1000, "lu2007-fig6": 100}
    told |= {"lu2007-fig8": 100, "lu2007-fig10": 20, "barhillel2005-fig4": 50}
    assert {name: EXPERIMENTS[name].realisations for name in told} == told


def test_features_of_one_scale():
    X = standardised(np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 1.0], [5.0, 5.0, 2.0]]))
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(X.std(axis=0), [1, 1])


def test_clusters_are_named_in_training():
    y, z = np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1])
    found = named_accuracy(y, z, np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0]))
    assert found == {"accuracy_train": 0.75, "accuracy_test": 0.5}
    # all of the test part in a cluster that training left empty
    assert named_accuracy(y, z, y, np.full(4, 7))["accuracy_test"] == 0.0


def test_textured_blocks_are_four_textures_in_five_features():
    X, y = textured_blocks(24, np.random.default_rng(0))
    assert (X.shape, y.shape) == ((576, 5), (24, 24))
    assert set(np.unique(y)) == {0, 1, 2, 3}
    assert np.all(np.diff(X.var(axis=0)) < 0)


def test_textured_blocks_are_those_of_the_image():
    image, y = textured_image(6, np.random.default_rng(3))
    X, also_y = textured_blocks(6, np.random.default_rng(3))
    assert image.shape == (42, 42)
    np.testing.assert_array_equal(y, also_y)
    # principal components keep no more than the distances of the blocks' pixels
    block = [
        image[7 * i : 7 * i + 7, 7 * j : 7 * j + 7].ravel() for i in range(6) for j in range(6)
    ]
    scores = np.linalg.svd(block - np.mean(block, axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(X), np.abs(scores[0] * scores[1])[:, :5], atol=1e-9)


def test_a_scene_of_snow_is_as_the_paper_describes_it():
    scene = snow_scene(np.random.default_rng(0))
    assert (scene.image.shape, scene.terrain.shape) == ((120, 400, 7), (24, 80))
    assert scene.X.shape == (1920, 50)
    np.testing.assert_array_equal(scene.snow, scene.terrain < 3)
    # of each block without snow, six partners with snow are at hand in either half
    assert 0.05 < np.mean(~scene.snow) < 1 / 7
    at_pixels = np.kron(scene.terrain, np.ones((5, 5), dtype=int))
    for k, (spectrum, *_) in enumerate(TERRAINS.values()):
        # the light, which varies by about a sixth, is common to all channels
        mean = scene.image[at_pixels == k].mean(axis=0)
        light = mean @ spectrum / np.square(spectrum).sum()
        assert light == pytest.approx(1, abs=0.2)
        np.testing.assert_allclose(mean, light * np.array(spectrum), atol=0.01)


def test_a_segmentation_has_the_component_without_snow_first():
    scene = snow_scene(np.random.default_rng(5))
    segment = snow_segmenters(scene, 3, np.random.default_rng(0))["hard PPC, told start"]
    z = segment()
    assert (z.shape, set(np.unique(z))) == ((24, 80), {0, 1, 2})
    assert np.mean((z == 0) == ~scene.snow) > 0.98


def test_variance_within_classes_over_variance_between_them():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    X = rng.normal(size=(90, 3)) + np.array([[0, 0, 0], [3, 0, 0], [0, 5, 0]])[y]
    means = np.array([X[y == k].mean(axis=0) for k in range(3)])
    within = np.square(X - means[y]).sum() / 90
    between = np.square(means - X.mean(axis=0)).sum() / 3
    assert within_over_between(X, y) == pytest.approx(within / between)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert within_over_between(X @ turn, y) == pytest.approx(within / between)
    # told all labels, whitening leaves one unit of variance a dimension within the classes
    W = np.linalg.inv(np.linalg.cholesky(np.cov((X - means[y]).T, bias=True)))
    white = np.array([(X @ W.T)[y == k].mean(axis=0) for k in range(3)])
    spread = np.square(white - white.mean(axis=0)).sum() / 3
    assert within_over_between(X @ W.T, y) == pytest.approx(3 / spread)


def seeded(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_whitened_chunklets_of_the_toy_problem_are_round():
    rows = list(EXPERIMENTS["barhillel2005-fig1"].run(load_data("three_classes"), 0.3, seeded(1)))
    found = {(r.method, r.quantity): r.value for r in rows}
    for k in (1, 2):
        assert found["after", f"chunklet_variance_{k}"] == pytest.approx(1, abs=1e-9)
    # standard deviations of 6 and 0.5: the right weights have the ratio 1/12
    assert found["after", "weight_ratio"] == pytest.approx(1 / 12, rel=0.4)
    assert found["before", "chunklet_variance_1"] > 10
    assert found["before", "accuracy"] < 0.6 < 0.95 < found["after", "accuracy"]


@pytest.mark.parametrize("n_dims", [5, 2])
def test_what_remains_of_the_lights_is_a_ratio_of_ratios(n_dims):
    y = np.repeat(np.arange(4), 16)
    persons = seeded(0).normal(size=(4, 5))
    lights = 5 * seeded(1).normal(size=(64, 5)) * [1, 1, 1, 0, 0]
    X = persons[y] + lights + 0.1 * seeded(2).normal(size=(64, 5))
    data = load_data("iris")._replace(X=X, y=y)
    rows = list(EXPERIMENTS["barhillel2005-fig5"].run(data, 0.5, n_dims, seeded(3)))
    found = {(r.method, r.quantity): r.value for r in rows}
    before, after = (found[m, "within_over_between"] for m in ("PCA", "RCA"))
    assert before == pytest.approx(within_over_between(X[:, :n_dims], y))
    assert found["RCA", "remaining"] == pytest.approx(after / before)
    assert after < 0.1 * before
    # the same teachers, asked here
    must_link = taught(y, 0.5, seeded(3)).must_link
    Y = RCA(n_dims).fit(X, must_link=must_link).transform(X)
    assert after == pytest.approx(within_over_between(Y, y))


def test_toy_problems_say_which_classes_are_gaussian():
    rows = list(EXPERIMENTS["lu2007-fig5"].run(load_data("lu_set_2"), seeded(0)))
    found = {(r.method, r.quantity): r.value for r in rows}
    # One Gaussian: the second costs six parameters, log 200 each, and gains little.
    assert -6 * np.log(200) < found["class 1", "bic_gain"] < 0
    assert found["class 2", "bic_gain"] > 50
    assert found["centres", "accuracy"] < found["Gaussians", "accuracy"] < 0.99


def test_chunklets_of_teachers_have_the_size_that_theory_gives_them():
    rng = np.random.default_rng(0)
    rows = [list(FAST.run(None, 30, rng)) for _ in range(50)]
    seen = [
        r.value for row in rows for r in row if (r.method, r.quantity) == ("as seen", "mean_size")
    ]
    # [barhillel2005, App. D]; draws are without replacement, from 64 points a class
    error = np.std(seen) / np.sqrt(len(seen))
    assert np.mean(seen) == pytest.approx(
        expected_chunklet_size(2, n_classes=30), abs=3 * error + 0.02
    )
    joined = [
        r.value for row in rows for r in row if (r.method, r.quantity) == ("joined", "mean_size")
    ]
    assert all(a <= b for a, b in zip(seen, joined, strict=True))


def test_a_shared_axis_shrinks_as_the_populations_say():
    eps = 0.1
    rng = np.random.default_rng(0)
    found = {}
    for _ in range(20):
        for row in EXPERIMENTS["barhillel2005-fig11"].run(None, eps, rng):
            found.setdefault((row.method, row.quantity), []).append(row.value)
    # Ĉ = diag((1 + ε²)/2, (1 + ε²)/2, 4)
    half = (1 + eps**2) / 2
    for k in (1, 2):
        for stage, expected in {
            "before": (4, 1, eps**2),
            "after": (1 / half, 1, eps**2 / half),
        }.items():
            means = [np.mean(found[stage, f"eigenvalue_{i}_class_{k}"]) for i in (1, 2, 3)]
            assert means == pytest.approx(expected, rel=0.03)
        # largest to smallest: 4 / ε² before, 1 / ε² after
        factor = np.mean(found["after", f"condition_factor_class_{k}"])
        assert factor == pytest.approx(4, rel=0.03)


def test_purity_falls_from_one_class_to_chance():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 64)
    far = list(purity(rng.normal(size=(128, 2)) + 50 * y[:, None], y).values())
    assert far == [1.0] * 7
    assert list(purity(rng.normal(size=(128, 2)), y).values())[-1] == pytest.approx(0.5, abs=0.05)


# ---------------------------------------------------------------------------- verdicts


def claim(**changes) -> Comparison:
    fields = {"paper": "p", "figure": "1", "quantity": "score", "printed": "high", "file": "f"}
    fields |= {"by": ["data"], "where": {"quantity": "score"}, "ours": {"method": "a"}}
    fields |= {"claim": "above", "bound": 0.5, "tolerance": 0.0, "verdict": "reproduced"}
    return Comparison(**fields | changes)


def row(value, data="iris", method="a", realisation=0, quantity="score") -> dict[str, str]:
    value = "" if value is None else str(value)
    return {
        "data": data, "method": method, "realisation": str(realisation), "quantity": quantity,
        "value": value,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value", "tolerance", "verdict"),
    [
        ("above", 0.5, 0.0, "reproduced"),
        ("above", 0.49, 0.0, "not"),
        ("above", 0.49, 0.02, "reproduced"),
        ("below", 0.5, 0.0, "reproduced"),
        ("below", 0.51, 0.0, "not"),
        ("below", 0.51, 0.02, "reproduced"),
        ("near", 0.51, 0.02, "reproduced"),
        ("near", 0.53, 0.02, "not"),
        ("near", 0.47, 0.02, "not"),
    ],
)
def test_a_claim_holds_within_its_tolerance(kind, value, tolerance, verdict):
    comparison = claim(claim=kind, tolerance=tolerance)
    assert judge(comparison, [row(value)]).verdict == verdict


@pytest.mark.parametrize(
    ("good", "verdict"), [(4, "reproduced"), (3, "partly"), (2, "partly"), (1, "not"), (0, "not")]
)
def test_the_verdict_counts_groups(good, verdict):
    rows = [row(0.9 if i < good else 0.1, data=str(i)) for i in range(4)]
    assert judge(claim(), rows).verdict == verdict


def test_ours_is_a_mean_over_realisations_of_the_rows_that_count():
    rows = [row(0.4, realisation=0), row(0.8, realisation=1), row(0.0, quantity="other")]
    rows += [row(0.0, method="b"), row(0.0, data="wine")]
    (found,) = judge(claim(where={"quantity": "score", "data": ["iris"]}), rows).found
    assert (found.mean, found.n, found.n_failed) == (pytest.approx(0.6), 2, 0)
    assert found.standard_error == pytest.approx(0.2)


def test_differences_are_taken_realisation_by_realisation():
    a = [row(v, realisation=i) for i, v in enumerate([0.1, 0.5, 0.9])]
    b = [row(v, method="b", realisation=i) for i, v in enumerate([0.0, 0.4, 0.8])]
    comparison = claim(minus={"method": "b"}, bound=0.1, tolerance=1e-9)
    (found,) = judge(comparison, a + b[::-1]).found
    assert (found.mean, found.standard_error) == pytest.approx((0.1, 0.0), abs=1e-12)
    # without its partner a realisation is a failure
    (found,) = judge(comparison, a + b[1:]).found
    assert (found.n, found.n_failed, found.holds) == (2, 1, True)


def test_a_group_whose_runs_mostly_failed_does_not_hold():
    values = [0.9, None, None]
    rows = [row(v, realisation=i) for i, v in enumerate(values)]
    judgement = judge(claim(), rows)
    assert (judgement.verdict, judgement.found[0].n_failed) == ("not", 2)
    assert judge(claim(), rows[:2]).verdict == "reproduced"
    assert judge(claim(), rows[1:]).verdict == "not"


def test_a_comparison_that_matches_nothing_or_too_much_is_an_error():
    with pytest.raises(ValueError, match="no row"):
        judge(claim(ours={"method": "c"}), [row(1.0)])
    with pytest.raises(ValueError, match="several rows"):
        judge(claim(by=[]), [row(1.0), row(0.0, data="wine")])


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('claim = "above"', 'claim = "over"', "claim is 'over'"),
        ('verdict = "partly"', 'verdict = "maybe"', "verdict\\s+'maybe'"),
        ("bound = 0.5\n", "", "comparison 1: .*bound"),
        ("bound = 0.5", "bound = 0.5\nlimit = 1", "comparison 1: .*limit"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, old, new, complaint):
    text = """[[comparison]]
paper = "p"
figure = "1"
quantity = "score"
printed = "high"
file = "f"
by = ["data"]
where = {quantity = "score"}
ours = {method = "a"}
claim = "above"
bound = 0.5
tolerance = 0.0
verdict = "partly"
"""
    path = tmp_path / "comparisons.toml"
    path.write_text(text, encoding="utf-8")
    assert read_comparisons(path) == [claim(verdict="partly")]
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=complaint):
        read_comparisons(path)


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
    head, *groups = report(comparison, judge(comparison, rows))
    assert head == "p, Fig. 1: score of a: high -> partly  WRITTEN: reproduced"
    assert [" ".join(line.split()) for line in groups] == [
        "iris 0.8000 ± 0.1000 (n = 2) holds",
        "wine 0.3000 ± 0.0500 (n = 2) does not hold",
    ]
    comparison = claim(quantity="score of a", verdict="partly")
    assert "WRITTEN" not in report(comparison, judge(comparison, rows))[0]


# ---------------------------------------------------------------------------- what is stored


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
    n = 1 + max(int(row["realisation"]) for row in rows)
    settings = {setting: i for i, setting in enumerate(experiment.design)}
    tasks = sorted(tasks_of(experiment, n), key=lambda task: settings[task.setting])
    wanted = [task.key for task in tasks]
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
        ("lu2007-fig2", "two_models", 0.01),
        ("lu2007-fig5", "lu_set_1", 0.01),
        ("lu2007-fig6", "lu_set_1", 0.03),
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


def test_threads_are_limited_while_a_realisation_runs(monkeypatch):
    limits = []
    original = runner.threadpool_limits
    monkeypatch.setattr(runner, "threadpool_limits", lambda n: limits.append(n) or original(n))
    realise(tasks_of(FAST, 1)[0])
    assert limits == [1]


def test_the_page_beside_the_results_says_how_many_realisations_there_are():
    text = (STORED / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| ([a-z0-9]+-[a-z0-9]+) \| .* \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    said = {name: here for name, here, _ in lines}
    paper = {name: there for name, _, there in lines}
    found = {
        path.stem: str(1 + max(int(row["realisation"]) for row in read_rows(path)))
        for path in STORED.glob("*.csv")
    }
    assert said == found
    assert paper == {name: str(e.realisations) for name, e in EXPERIMENTS.items()}


def test_the_command_line_judges_what_is_stored(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["--verdicts"]) == 0
    shown = capsys.readouterr().out
    assert shown.count(" -> ") == len(COMPARISONS)
    assert "WRITTEN" not in shown
    assert shown.endswith(f"0 of {len(COMPARISONS)} verdicts are not as written down.\n")
