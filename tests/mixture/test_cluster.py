"""Test that fits of a ``dask.array`` equal fits in memory, and that errors of workers are clear."""

import os
import signal
import time
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_problems import SIDE_INFORMATION, assert_same_fit, draw_groups, draw_side_information
from refusals import refused

from cgmm import ConstrainedGaussianMixture
from cgmm.large.chunks import Cluster, read_chunks
from cgmm.mixture import initialise
from cgmm.network import SideInformation

N, K, D = 600, 3, 2
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def cluster():
    """Yield a client of two worker processes.

    A task whose workers have died twice is not repeated.
    """
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def assert_equal_fits(distributed, local):
    """Check that a distributed and a local fit are equal, including their inference reports."""
    assert_same_fit(distributed, local)
    assert distributed.labels_exact_ == local.labels_exact_
    assert distributed.inference_ == local.inference_


def draw_problem(kind, seed=0, n_points=N):
    """Return a random generator, points, and one kind of side information about them."""
    X, z = draw_groups(seed, n_points)
    rng = np.random.default_rng(seed)
    return rng, X, draw_side_information(rng, z, kind)


def fit_model(X, known, **options):
    """Fit a mixture; unless the options say otherwise, EM stops after 15 iterations."""
    options = {"random_state": 0, "max_iter": 15} | options
    return ConstrainedGaussianMixture(K, **options).fit(X, **known)


# ------------------------------------------------------------------ equal fits


@pytest.mark.parametrize("kind", ["nothing", "all"])
def test_fit_on_two_processes_equals_the_fit_in_memory(cluster, kind):
    _, X, known = draw_problem(kind)
    distributed = fit_model(da.from_array(X, chunks=(130, 1)), known)
    assert_equal_fits(distributed, fit_model(X, known))


@settings(max_examples=16)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(SIDE_INFORMATION),
    covariance_type=st.sampled_from(["full", "diag"]),
    sampling=st.sampled_from(["points", "chunklets"]),
    weighted=st.booleans(),
    height=st.integers(40, N),
)
def test_the_fit_does_not_depend_on_the_chunks(
    seed, kind, covariance_type, sampling, weighted, height
):
    """Chunks of any height give the fit in memory; Dask runs the tasks in this process."""
    rng, X, known = draw_problem(kind, seed)
    if weighted:
        known["sample_weight"] = rng.integers(0, 3, size=N)
    options = {"covariance_type": covariance_type, "sampling": sampling, "max_iter": 6}
    with dask.config.set(scheduler="synchronous"):
        distributed = fit_model(da.from_array(X, chunks=(height, -1)), known, **options)
    assert_equal_fits(distributed, fit_model(X, known, **options))


@pytest.mark.parametrize("inference", ["exact", "spanning_tree"])
def test_a_distributed_fit_uses_the_chosen_engine(inference):
    """Gibbs sampling needs the whole network at once, so it is refused."""
    rng, X, _ = draw_problem("nothing")
    pairs = np.column_stack([np.arange(0, 400, 4), np.arange(0, 400, 4) + 3])
    known = {"preferences": np.column_stack([pairs, rng.normal(size=100)])}
    options = {"inference": inference, "max_iter": 5}
    distributed = fit_model(da.from_array(X, chunks=(97, -1)), known, **options)
    assert_equal_fits(distributed, fit_model(X, known, **options))
    with pytest.raises(ValueError, match=r"'gibbs' .* set_params\(inference='auto'\)"):
        fit_model(da.from_array(X, chunks=(97, -1)), known, inference="gibbs")


def test_distributed_fit_accepts_given_responsibilities_and_warm_start():
    rng, X, _ = draw_problem("nothing")
    r, chunked = rng.dirichlet(np.ones(K), N), da.from_array(X, chunks=(250, -1))
    options = {"init_params": r, "max_iter": 3, "tol": 0, "warm_start": True}
    distributed, local = (fit_model(points, {}, **options) for points in (chunked, X))
    assert_equal_fits(distributed, local)
    assert_equal_fits(distributed.fit(chunked), local.fit(X))


# ------------------------------------------------------------------ subsamples for the start


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["nothing", "labels", "chunklets"])
@pytest.mark.parametrize("where", ["disk", "cluster"])
def test_start_from_a_subsample_reaches_the_same_optimum(kind, where, tmp_path, monkeypatch):
    """A subsample of 200 of 3,000 points leads to the same optimum as all points."""
    monkeypatch.setattr(initialise, "MOST_POINTS", 200)
    _, X, known = draw_problem(kind, 5, 3000)
    stored = da.from_array(X, chunks=(700, -1))
    if where == "disk":
        stored = np.memmap(tmp_path / "points", dtype=float, mode="w+", shape=X.shape)
        stored[:] = X
    fits = [fit_model(points, known, tol=1e-7, max_iter=200) for points in (stored, X)]
    means = [model.means_[np.argsort(model.means_[:, 0])] for model in fits]
    np.testing.assert_allclose(*means, atol=1e-3)


def test_subsample_for_the_start_keeps_side_information():
    """The only label of each class must be drawn, and must-linked points together."""
    labels = np.full(100_000, -1)
    labels[[77, 50_000, 99_999]] = range(3)
    side = SideInformation.build(100_000, labels=labels, must_link=[[77, 4000], [5, 6]])
    side = side._replace(labels=None, allowed=side.mask(3))
    rows = initialise.subsample_rows(side, np.random.RandomState(0))
    assert len(rows) <= initialise.MOST_POINTS
    assert set(rows) >= {77, 4000, 50_000, 99_999, 5, 6}
    assert (np.diff(rows) > 0).all()


# ------------------------------------------------------------------ failures and refusals


def test_a_worker_that_dies_is_replaced_and_the_fit_is_the_same(cluster, monkeypatch):
    X, _ = draw_groups(0, N)
    each, calls = Cluster.each, []

    def kill_one_worker(self, of_block):
        calls.append(1)
        if len(calls) == 2:
            pids = cluster.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        return each(self, of_block)

    monkeypatch.setattr(Cluster, "each", kill_one_worker)
    known, options = {"must_link": [[0, 599]]}, {"tol": 0, "max_iter": 5, "init_params": "kmeans"}
    distributed = fit_model(da.from_array(X, chunks=(100, -1)), known, **options)
    assert len(calls) == 6
    assert_equal_fits(distributed, fit_model(X, known, **options))


def replace_chunk(change):
    """Return a chunked table in which a function has changed chunk 3, rows 300 to 399."""
    X, _ = draw_groups(0, N)
    chunks = [da.from_array(X[part]) for part in np.split(np.arange(N), 6)]
    changed = dask.delayed(change)(X[300:400])
    chunks[3] = da.from_delayed(changed, shape=(100, D), dtype=float)
    return da.concatenate(chunks)


def set_two_cells(chunk, value):
    """Return a copy of the chunk with this value in two cells of column 1."""
    chunk = chunk.copy()
    chunk[[40, 70], 1] = value
    return chunk


WHOLE = da.from_array(draw_groups(0, N)[0], chunks=(200, -1))


test_malformed_chunked_tables_are_refused = refused(
    partial(fit_model, known={}),
    (WHOLE[:, 0], r"reshape\(-1, 1\)"),
    (WHOLE.astype(complex), "complex128"),
    (WHOLE[:, :0], r"\(600, 0\)"),
    (WHOLE[:2], "minimum of 3"),
    (dask.delayed(WHOLE), "dask.array"),
    (WHOLE * 1e200, "its squares overflow"),
    # In these cases a chunk differs in type or shape from what the array declares.
    (replace_chunk(lambda c: c.astype(np.float32)), r"chunk 3 of X \(rows 300 to 399\) .*float32"),
    (replace_chunk(lambda c: c[:, :1]), r"shape \(100, 1\) .*, but X says \(100, 2\)"),
    (replace_chunk(lambda c: c[:90]), r"chunk 3 of X .* has shape \(90, 2\)"),
    (replace_chunk(lambda c: c.tolist()), r"chunk 3 of X .* has shape \(\)"),
    (replace_chunk(lambda c: set_two_cells(c, np.nan)), r"NaN: first in row 340, .* in 2 of 600"),
    (replace_chunk(lambda c: set_two_cells(c, np.inf)), r"infinity: first in row 340, column 1"),
)


def test_remedies_named_in_errors_about_chunked_tables_work():
    fit = partial(fit_model, known={}, max_iter=2)
    X = replace_chunk(lambda c: c.astype(np.float32))
    fit(X.map_blocks(lambda chunk: chunk.astype("float64"), dtype="float64"))
    X = replace_chunk(lambda c: set_two_cells(c, np.nan))
    keep = ~np.isnan(X).any(axis=1).compute()
    assert len(fit(X[keep]).labels_) == N - 2
    fit(replace_chunk(lambda c: c[:90]).compute_chunk_sizes())
    short = X[da.isfinite(X).all(axis=1)]
    with pytest.raises(ValueError, match=r"X = X\.persist\(\)\.compute_chunk_sizes\(\)"):
        fit(short)
    fit(short.persist().compute_chunk_sizes())


def test_errors_from_workers_name_rows_of_the_whole_table():
    X, _ = draw_groups(0, N)
    X[437] = 1e150
    inits = {
        "weights_init": np.full(K, 1 / K), "means_init": X[:K],
        "covariances_init": np.tile(1e-10 * np.eye(D), (K, 1, 1)),
    }  # fmt: skip
    for known in ({}, {"must_link": [[3, 451]]}):
        with pytest.raises(ValueError, match="row 437 has no possible value"):
            fit_model(da.from_array(X, chunks=(100, -1)), known, **inits)


def test_chunks_are_read_once(tmp_path):
    """Reading a chunk may open a file, so it must not be repeated in each iteration of EM."""

    def mark_read(block, block_info=None):
        chunk = block_info[0]["chunk-location"][0] if block_info else "nobody"
        (tmp_path / f"{chunk}-{time.time_ns()}").touch()
        return block

    X = da.from_array(draw_groups(0, N)[0], chunks=(200, -1))
    read = X.map_blocks(mark_read, dtype=float, meta=np.empty((0, 0)))
    fit_model(read, {"must_link": [[0, 599]]})
    assert len(list(tmp_path.iterdir())) == 3
    assert read_chunks(X.astype(np.float32))[0].shape == (N, D)
