"""Test that EM over blocks of rows equals EM over the whole table, and needs less memory.

The blocks, and the threads that work on them, come from ``cgmm.large.blocks``.
"""

import threading
import time
import tracemalloc
from functools import partial
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_problems import (
    FAMILIES,
    SIDE_INFORMATION,
    assert_same_parameters,
    draw_groups,
    draw_points_and_start,
    draw_side_information,
    set_reg_covar,
)

from cgmm import ConstrainedGaussianMixture
from cgmm.inference import ENGINES
from cgmm.large.blocks import Blocks, extend_to_copies, workers
from cgmm.mixture import POOLINGS, Parameters, closed_form, em, from_responsibilities
from cgmm.mixture.loop import assign_block, zero_log_z_prior
from cgmm.network import SideInformation
from cgmm.numerics import WarnedOnce, warn_caller

N, K, D = 60, 3, 2
AUTO = ENGINES["auto"]


def iterate_em(data, theta, side, family, infer=None):
    """Iterate EM with log Z_prior left out of the evidence, because blocks do not compute it."""
    family = set_reg_covar(family, 1e-9)
    return em(data, theta, side, infer, family, closed_form, log_z_prior=zero_log_z_prior)


def iterate_em_in_blocks(X, theta, side, family, height):
    """Return the points in blocks of ``height`` rows, and an iterator of EM over them."""
    data = Blocks.build(X, side, AUTO, len(theta.weights), height=height)
    return data, iterate_em(data, theta, side, family)


@pytest.mark.each_value
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", SIDE_INFORMATION)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    height=st.integers(1, N),
    sampling=st.sampled_from(["points", "chunklets"]),
    weighted=st.booleans(),
)
def test_em_over_blocks_equals_em_over_the_table(family, kind, seed, height, sampling, weighted):
    rng = np.random.default_rng(seed)
    X, start, pool = draw_points_and_start(rng, family)
    known = draw_side_information(rng, rng.permutation(np.arange(N) % K), kind)
    side = SideInformation.build(N, **known, sampling=sampling)
    side = side.weighted(rng.integers(3, size=N) if weighted else None, sampling)
    data, steps = iterate_em_in_blocks(X, start, side, pool, height)
    steps_of_whole = iterate_em(X, start, side, pool, extend_to_copies(side, AUTO(side.graph)))
    pairs = zip(steps, steps_of_whole, strict=False)
    for (theta, posterior), (expected_theta, expected) in islice(pairs, 2):
        assert_same_parameters(theta, expected_theta, rtol=1e-9, atol=1e-12)
        assert posterior.log_evidence == pytest.approx(expected.log_evidence, rel=1e-11, abs=1e-9)
        np.testing.assert_allclose(posterior.expected_counts, expected.expected_counts, rtol=1e-9)
        r = data.gather(partial(assign_block, theta, True))
        np.testing.assert_allclose(r, expected.responsibilities, atol=1e-9)
        assert (posterior.responsibilities is None) == (not data.is_whole)


def test_covariances_become_precise_after_a_distant_start():
    """Start from means at a distance of 2^20, whose squares round away the spread of 2^-9.

    The first steps can only move the means; after them the covariances must be precise.
    """
    rng = np.random.default_rng(0)
    tight = rng.integers(-3, 4, size=(30, 2)) * 2.0**-10
    X, z = np.concatenate([tight, tight + 2.0**20]), np.repeat([0, 1], 30)
    wide = Parameters(np.full(2, 0.5), np.zeros((2, 2)), np.tile(2.0**42 * np.eye(2), (2, 1, 1)))
    pool, side = POOLINGS["full"], SideInformation.build(len(X), labels=z)
    _, (first, _), *_, (ours, _) = islice(iterate_em_in_blocks(X, wide, side, pool, 7)[1], 5)
    np.testing.assert_array_equal(first.covariances[1], wide.covariances[1])
    expected = np.cov(tight.T, bias=True) + 1e-9 * np.eye(2)
    # A mean near 2^20 is rounded by 2^-33, whose square is negligible beside the variances.
    np.testing.assert_allclose(ours.covariances, [expected, expected], rtol=1e-9)


# ------------------------------------------------------------------ threads and memory


def serialise_fit(model):
    """Return all fitted arrays as bytes, so that fits can be compared bit by bit."""
    arrays = [*model.parameters_, model.responsibilities_, model.labels_, model.history_]
    return [np.asarray(array).tobytes() for array in arrays]


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["nothing", "chunklets", "cannot"])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_fits_are_bitwise_equal_for_any_number_of_threads(kind, covariance_type):
    X, z = draw_groups(0, 30_000, 4)
    known = draw_side_information(np.random.default_rng(0), z, kind)
    fits = [
        ConstrainedGaussianMixture(
            K, covariance_type=covariance_type, random_state=0, n_jobs=n_jobs, max_iter=5, tol=1
        ).fit(X, **known)
        for n_jobs in (None, 2, 3)
    ]
    assert len({tuple(serialise_fit(model)) for model in fits}) == 1


def measure_peak_memory(fit, *args, **known):
    """Return the largest amount of memory in bytes that a call of ``fit`` allocates."""
    tracemalloc.start()
    fit(*args, **known)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_peak_memory_is_bounded_by_a_block():
    """Fit 200,000 points in 40 components, whose responsibilities (N, K) would take 64 MB."""
    X, _ = draw_groups(0, 200_000)
    X = np.asfortranarray(X)
    model = ConstrainedGaussianMixture(
        40, means_init=X[:40], max_iter=2, tol=1e9, store_responsibilities=False
    )
    start = from_responsibilities(X, np.eye(40)[np.arange(len(X)) % 40], POOLINGS["full"])
    model.set_params(weights_init=start.weights, covariances_init=start.covariances)
    # Labels, node numbers and similar arrays (N,) take 1.6 MB each.
    assert measure_peak_memory(model.fit, X) < 3.2e7
    assert not hasattr(model, "responsibilities_")
    np.testing.assert_array_equal(model.labels_, model.predict(X))


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("linked", [False, True])
def test_memory_mapped_points_are_fitted_without_a_copy(tmp_path, dtype, linked):
    X, z = draw_groups(0, 60_000, 40)
    np.save(tmp_path / "points.npy", X.astype(dtype))
    stored = np.load(tmp_path / "points.npy", mmap_mode="r")
    known = {"must_link": np.flatnonzero(z == 0)[:4000].reshape(-1, 2)} if linked else {}
    start = from_responsibilities(X, np.eye(K)[z], POOLINGS["full"])
    model = ConstrainedGaussianMixture(
        K, weights_init=start.weights, means_init=start.means,
        covariances_init=start.covariances, max_iter=3, tol=1, store_responsibilities=False,
    )  # fmt: skip
    # A copy in float64 would take 19 MB; blocks and some arrays (N,) of 0.5 MB are allocated.
    assert measure_peak_memory(model.fit, stored, **known) < 1.4e7
    mapped = model.parameters_
    in_memory = model.fit(np.array(stored, dtype=float), **known).parameters_
    assert_same_parameters(mapped, in_memory, rtol=1e-12, atol=1e-13)


def test_workers_run_in_parallel():
    # The barrier raises an error unless three threads wait at the same time.
    barrier = threading.Barrier(3, timeout=20)
    with workers(3) as map_blocks:
        list(map_blocks(lambda block: barrier.wait(), range(3)))


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_workers_keep_the_order_of_blocks_and_stop_at_the_first_error(n_jobs):
    begun, results = [], []

    def work(block):
        begun.append(block)
        # Blocks 0 and 3 are slow, so that later blocks finish before them.
        time.sleep(0.02 if block in {0, 3} else 0.001)
        if block in {3, 4}:
            raise ValueError(block)
        return block

    with workers(n_jobs) as map_blocks, pytest.raises(ValueError, match="3"):
        results.extend(map_blocks(work, range(500)))
    assert len(begun) < 500
    assert results == [0, 1, 2]


def test_workers_show_a_repeated_warning_once():
    def work(block):
        warn_caller("the same", UserWarning)

    with pytest.warns(UserWarning, match="the same") as caught, WarnedOnce(), workers(2) as mapped:
        list(mapped(work, range(20)))
    assert len(caught) == 1
