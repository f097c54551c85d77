"""A fit on a dask.array equals the fit on one machine, and workers' errors are explained."""

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
from mixture_problems import KINDS, assert_same_fit, groups, what_is_known
from refusals import refused

from cgmm import ConstrainedGaussianMixture
from cgmm.large.chunks import Cluster, read_chunks
from cgmm.mixture import initialise
from cgmm.network import SideInformation

N, K, D = 600, 3, 2
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def cluster():
    """Yield a client of two processes; a task that has ended both is given up."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def assert_same(there, here):
    """Compare two fits number by number."""
    assert_same_fit(there, here)
    assert (there.labels_exact_, there.inference_) == (here.labels_exact_, here.inference_)


def problem(kind, seed=0, n_points=N):
    X, z = groups(seed, n_points)
    rng = np.random.default_rng(seed)
    return rng, X, what_is_known(rng, z, kind)


def fit_model(X, known, **options):
    options = {"random_state": 0, "max_iter": 15} | options
    return ConstrainedGaussianMixture(K, **options).fit(X, **known)


# ------------------------------------------------------------------ the same fit


@pytest.mark.parametrize("kind", ["nothing", "all"])
def test_a_cluster_of_two_processes_fits_as_one_machine(cluster, kind):
    _, X, known = problem(kind)
    there = fit_model(da.from_array(X, chunks=(130, 1)), known)
    assert_same(there, fit_model(X, known))


@settings(max_examples=16)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    covariance_type=st.sampled_from(["full", "diag"]),
    sampling=st.sampled_from(["points", "chunklets"]),
    weighted=st.booleans(),
    height=st.integers(40, N),
)
def test_the_fit_does_not_depend_on_the_chunks(
    seed, kind, covariance_type, sampling, weighted, height
):
    """Without a cluster, Dask uses threads or does one task after the other."""
    rng, X, known = problem(kind, seed)
    if weighted:
        known["sample_weight"] = rng.integers(0, 3, size=N)
    options = {"covariance_type": covariance_type, "sampling": sampling, "max_iter": 6}
    with dask.config.set(scheduler="synchronous"):
        there = fit_model(da.from_array(X, chunks=(height, -1)), known, **options)
    assert_same(there, fit_model(X, known, **options))


@pytest.mark.parametrize("inference", ["exact", "spanning_tree"])
def test_a_distributed_fit_uses_the_chosen_engine(inference):
    """An engine that needs the whole network is refused."""
    rng, X, _ = problem("nothing")
    pairs = np.column_stack([np.arange(0, 400, 4), np.arange(0, 400, 4) + 3])
    known = {"preferences": np.column_stack([pairs, rng.normal(size=100)])}
    options = {"inference": inference, "max_iter": 5}
    there = fit_model(da.from_array(X, chunks=(97, -1)), known, **options)
    assert_same(there, fit_model(X, known, **options))
    with pytest.raises(ValueError, match=r"'gibbs' .* set_params\(inference='auto'\)"):
        fit_model(da.from_array(X, chunks=(97, -1)), known, inference="gibbs")


def test_starts_from_responsibilities_and_warm_starts():
    rng, X, _ = problem("nothing")
    r, far = rng.dirichlet(np.ones(K), N), da.from_array(X, chunks=(250, -1))
    options = {"init_params": r, "max_iter": 3, "tol": 0, "warm_start": True}
    there, here = fit_model(far, {}, **options), fit_model(X, {}, **options)
    assert_same(there, here)
    assert_same(there.fit(far), here.fit(X))


# ------------------------------------------------------------------ more than is to be fetched


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["nothing", "labels", "chunklets"])
@pytest.mark.parametrize("where", ["disk", "cluster"])
def test_a_distributed_start_uses_a_sample(kind, where, tmp_path, monkeypatch):
    """A sample of 200 of 3,000 points leads to the same optimum."""
    monkeypatch.setattr(initialise, "MOST_POINTS", 200)
    _, X, known = problem(kind, 5, 3000)
    far = da.from_array(X, chunks=(700, -1))
    if where == "disk":
        far = np.memmap(tmp_path / "points", dtype=float, mode="w+", shape=X.shape)
        far[:] = X
    there, here = (fit_model(points, known, tol=1e-7, max_iter=200) for points in (far, X))
    order = [np.argsort(model.means_[:, 0]) for model in (there, here)]
    np.testing.assert_allclose(there.means_[order[0]], here.means_[order[1]], atol=1e-3)


def test_the_sample_of_a_start_keeps_side_information():
    """One label a class among 100,000 points is in the sample, and linked points come together."""
    labels = np.full(100_000, -1)
    labels[[77, 50_000, 99_999]] = range(3)
    side = SideInformation.build(100_000, labels=labels, must_link=[[77, 4000], [5, 6]])
    side = side._replace(labels=None, allowed=side.mask(3))
    rows = initialise.subsample_rows(side, np.random.RandomState(0))
    assert len(rows) <= initialise.MOST_POINTS
    assert set(rows) >= {77, 4000, 50_000, 99_999, 5, 6}
    assert (np.diff(rows) > 0).all()


# ------------------------------------------------------------------ what goes wrong


def test_a_worker_that_dies_is_replaced_and_the_fit_is_the_same(cluster, monkeypatch):
    X, _ = groups(0, N)
    each, calls = Cluster.each, []

    def one_dies(self, of_block):
        calls.append(1)
        if len(calls) == 2:
            pids = cluster.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        return each(self, of_block)

    monkeypatch.setattr(Cluster, "each", one_dies)
    options = {"tol": 0, "max_iter": 5, "init_params": "kmeans"}
    there = fit_model(da.from_array(X, chunks=(100, -1)), {"must_link": [[0, 599]]}, **options)
    assert len(calls) == 6
    assert_same(there, fit_model(X, {"must_link": [[0, 599]]}, **options))


def with_chunk(other):
    """Return an array whose chunk 3 differs from the others."""
    X, _ = groups(0, N)
    chunks = [da.from_array(X[part]) for part in np.split(np.arange(N), 6)]
    there = dask.delayed(other)(X[300:400])
    chunks[3] = da.from_delayed(there, shape=(100, D), dtype=float)
    return da.concatenate(chunks)


def with_gaps(chunk, value):
    chunk = chunk.copy()
    chunk[[40, 70], 1] = value
    return chunk


WHOLE = da.from_array(groups(0, N)[0], chunks=(200, -1))


test_what_is_no_table_of_points_is_refused = refused(
    partial(fit_model, known={}),
    (WHOLE[:, 0], r"reshape\(-1, 1\)"),
    (WHOLE.astype(complex), "complex128"),
    (WHOLE[:, :0], r"\(600, 0\)"),
    (WHOLE[:2], "minimum of 3"),
    (dask.delayed(WHOLE), "dask.array"),
    (WHOLE * 1e200, "its squares overflow"),
    # A chunk whose shape differs from what the array declares.
    (with_chunk(lambda c: c.astype(np.float32)), r"chunk 3 of X \(rows 300 to 399\) .*float32"),
    (with_chunk(lambda c: c[:, :1]), r"shape \(100, 1\) .*, but X says \(100, 2\)"),
    (with_chunk(lambda c: c[:90]), r"chunk 3 of X .* has shape \(90, 2\)"),
    (with_chunk(lambda c: c.tolist()), r"chunk 3 of X .* has shape \(\)"),
    (
        with_chunk(lambda c: with_gaps(c, np.nan)),
        r"NaN: first in row 340, .* in 2 of 600",
    ),
    (with_chunk(lambda c: with_gaps(c, np.inf)), r"infinity: first in row 340, column 1"),
)


def test_remedies_named_for_chunked_tables_work():
    fit = partial(fit_model, known={}, max_iter=2)
    X = with_chunk(lambda c: c.astype(np.float32))
    fit(X.map_blocks(lambda chunk: chunk.astype("float64"), dtype="float64"))
    X = with_chunk(lambda c: with_gaps(c, np.nan))
    keep = ~np.isnan(X).any(axis=1).compute()
    assert len(fit(X[keep]).labels_) == N - 2
    fit(with_chunk(lambda c: c[:90]).compute_chunk_sizes())
    short = X[da.isfinite(X).all(axis=1)]
    with pytest.raises(ValueError, match=r"X = X\.persist\(\)\.compute_chunk_sizes\(\)"):
        fit(short)
    fit(short.persist().compute_chunk_sizes())


def test_errors_from_workers_name_points_as_they_were_given():
    X, _ = groups(0, N)
    X[437] = 1e150
    inits = {
        "weights_init": np.full(K, 1 / K), "means_init": X[:K],
        "covariances_init": np.tile(1e-10 * np.eye(D), (K, 1, 1)),
    }  # fmt: skip
    for known in ({}, {"must_link": [[3, 451]]}):
        with pytest.raises(ValueError, match="row 437 has no possible value"):
            fit_model(da.from_array(X, chunks=(100, -1)), known, **inits)


def test_chunks_are_read_once(tmp_path):
    """A file is opened once for each chunk, however often EM uses the points."""
    markers = tmp_path / "seen"
    markers.mkdir()

    def mark_read(block, block_info=None):
        place = block_info[0]["chunk-location"][0] if block_info else "nobody"
        (markers / f"{place}-{time.time_ns()}").touch()
        return block

    X = da.from_array(groups(0, N)[0], chunks=(200, -1))
    read = X.map_blocks(mark_read, dtype=float, meta=np.empty((0, 0)))
    fit_model(read, {"must_link": [[0, 599]]})
    assert len(list(markers.iterdir())) == 3
    assert read_chunks(X.astype(np.float32))[0].shape == (N, D)
