"""EM over blocks equals EM over all points: every family, relation and covariance type."""

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
    KINDS,
    assert_same_theta,
    groups,
    points_and_start,
    regularise,
    what_is_known,
)

from cgmm import ConstrainedGaussianMixture
from cgmm.inference import ENGINES
from cgmm.large.blocks import Blocks, with_copies, workers
from cgmm.mixture import (
    POOLINGS,
    Parameters,
    closed_form,
    em,
    from_responsibilities,
)
from cgmm.mixture.loop import assign_block, zero_log_z_prior
from cgmm.network import SideInformation
from cgmm.numerics import WarnedOnce, warn_caller

N, K, D = 60, 3, 2
AUTO = ENGINES["auto"]


def steps_of(data, theta, side, pool, infer=None):
    """Return steps of EM without log Z_prior, which belongs to the whole network."""
    pool = regularise(pool, 1e-9)
    return em(data, theta, side, infer, pool, closed_form, log_z_prior=zero_log_z_prior)


def in_blocks(X, theta, side, pool, height):
    data = Blocks.of(X, side, AUTO, len(theta.weights), height=height)
    return data, steps_of(data, theta, side, pool)


@pytest.mark.each_value
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    height=st.integers(1, N),
    sampling=st.sampled_from(["points", "chunklets"]),
    weighted=st.booleans(),
)
def test_em_over_blocks_is_em_over_everything(family, kind, seed, height, sampling, weighted):
    rng = np.random.default_rng(seed)
    X, start, pool = points_and_start(rng, family)
    known = what_is_known(rng, rng.permutation(np.arange(N) % K), kind)
    side = SideInformation.build(N, **known, sampling=sampling)
    side = side.weighted(rng.integers(3, size=N) if weighted else None, sampling)
    data, steps = in_blocks(X, start, side, pool, height)
    whole = steps_of(X, start, side, pool, with_copies(side, AUTO(side.graph)))
    pairs = zip(steps, whole, strict=False)
    for (ours, found), (theirs, posterior) in islice(pairs, 2):
        assert_same_theta(ours, theirs, rtol=1e-9, atol=1e-12)
        assert found.log_evidence == pytest.approx(posterior.log_evidence, rel=1e-11, abs=1e-9)
        np.testing.assert_allclose(found.expected_counts, posterior.expected_counts, rtol=1e-9)
        r = data.gather(partial(assign_block, ours, True))
        np.testing.assert_allclose(r, posterior.responsibilities, atol=1e-9)
        assert (found.responsibilities is None) == (not data.is_whole)


def test_precision_lost_by_a_distant_start_returns():
    """Squares of 2^20 hide a spread of 2^-9, so a distant mean moves before its covariance."""
    rng = np.random.default_rng(0)
    tight = rng.integers(-3, 4, size=(30, 2)) * 2.0**-10
    X, z = np.concatenate([tight, tight + 2.0**20]), np.repeat([0, 1], 30)
    wide = Parameters(np.full(2, 0.5), np.zeros((2, 2)), np.tile(2.0**42 * np.eye(2), (2, 1, 1)))
    pool, side = POOLINGS["full"], SideInformation.build(len(X), labels=z)
    _, (first, _), *_, (ours, _) = islice(in_blocks(X, wide, side, pool, 7)[1], 5)
    np.testing.assert_array_equal(first.covariances[1], wide.covariances[1])
    expected = np.cov(tight.T, bias=True) + 1e-9 * np.eye(2)
    # A mean near 2^20 is rounded by 2^-33, whose square is nothing beside the spread.
    np.testing.assert_allclose(ours.covariances, [expected, expected], rtol=1e-9)


# ------------------------------------------------------------------ who works, and what is kept


def remaining_threads(model):
    """Return every fitted number as bytes."""
    arrays = [*model.parameters_, model.responsibilities_, model.labels_, model.history_]
    return [np.asarray(array).tobytes() for array in arrays]


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["nothing", "chunklets", "cannot"])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_the_number_of_threads_changes_no_bit(kind, covariance_type):
    X, z = groups(0, 30_000, 4)
    known = what_is_known(np.random.default_rng(0), z, kind)
    fits = [
        ConstrainedGaussianMixture(
            K, covariance_type=covariance_type, random_state=0, n_jobs=n_jobs, max_iter=5, tol=1
        ).fit(X, **known)
        for n_jobs in (None, 2, 3)
    ]
    assert remaining_threads(fits[0]) == remaining_threads(fits[1]) == remaining_threads(fits[2])


def peak_of(fit, *args, **known):
    """Return the peak memory of a fit in bytes."""
    tracemalloc.start()
    fit(*args, **known)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_peak_memory_is_bounded_by_a_block():
    """200,000 points in 40 components: a table of N times K numbers is 64 MB."""
    X, _ = groups(0, 200_000)
    X = np.asfortranarray(X)
    model = ConstrainedGaussianMixture(
        40, means_init=X[:40], max_iter=2, tol=1e9, store_responsibilities=False
    )
    start = from_responsibilities(X, np.eye(40)[np.arange(len(X)) % 40], POOLINGS["full"])
    model.set_params(weights_init=start.weights, covariances_init=start.covariances)
    # Labels, node numbers and the like are several (N,) arrays of 1.6 MB each.
    assert peak_of(model.fit, X) < 3.2e7
    assert not hasattr(model, "responsibilities_")
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def on_disk(path, X, dtype):
    np.save(path, X.astype(dtype))
    return np.load(path, mmap_mode="r")


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("linked", [False, True])
def test_points_on_a_disk_are_fitted_where_they_lie(tmp_path, dtype, linked):
    X, z = groups(0, 60_000, 40)
    stored = on_disk(tmp_path / "points.npy", X, dtype)
    known = {"must_link": np.flatnonzero(z == 0)[:4000].reshape(-1, 2)} if linked else {}
    start = from_responsibilities(X, np.eye(K)[z], POOLINGS["full"])
    model = ConstrainedGaussianMixture(
        K, weights_init=start.weights, means_init=start.means,
        covariances_init=start.covariances, max_iter=3, tol=1, store_responsibilities=False,
    )  # fmt: skip
    # A copy in float64 would be 19 MB. Measured: blocks, and (N,) arrays of 0.5 MB each.
    assert peak_of(model.fit, stored, **known) < 1.4e7
    here = model.parameters_
    there = model.fit(np.array(stored, dtype=float), **known).parameters_
    assert_same_theta(here, there, rtol=1e-12, atol=1e-13)


def test_a_table_on_a_disk_may_have_empty_cells(tmp_path):
    X, _ = groups(0, 5000, 4)
    X[4321, 2] = np.nan
    stored = on_disk(tmp_path / "points.npy", X, np.float64)
    here, there = (ConstrainedGaussianMixture(K, random_state=0).fit(of) for of in (X, stored))
    assert_same_theta(here.parameters_, there.parameters_, rtol=1e-12, atol=1e-13)


def test_several_threads_work_at_the_same_time():
    together = threading.Barrier(3, timeout=20)
    with workers(3) as over:
        list(over(lambda block: together.wait(), range(3)))


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_results_come_in_the_order_of_their_blocks_until_the_first_error_ends_the_rest(n_jobs):
    begun, found = [], []

    def work(block):
        begun.append(block)
        time.sleep(0.02 if block in {0, 3} else 0.001)  # these are overwritten
        if block in {3, 4}:
            raise ValueError(block)
        return block

    with workers(n_jobs) as over, pytest.raises(ValueError, match="3"):
        found.extend(over(work, range(500)))
    assert len(begun) < 500
    assert found == [0, 1, 2]


def test_threads_hold_back_warnings_as_the_fit_does():
    def work(block):
        warn_caller("the same", UserWarning)

    with pytest.warns(UserWarning, match="the same") as caught, WarnedOnce(), workers(2) as over:
        list(over(work, range(20)))
    assert len(caught) == 1
