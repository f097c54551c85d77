"""The fold over blocks is the loop over everything: every family, relation and covariance type."""

import tracemalloc
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture
from cgmm.inference import ENGINES
from cgmm.mixture import (
    POOLINGS,
    CategoricalParameters,
    Categories,
    Parameters,
    closed_form,
    em,
    from_responsibilities,
    one_hot,
    threads,
)
from cgmm.mixture.arranged import LARGEST_RUN, Arranged, named_as_points
from cgmm.mixture.class_family import ClassParameters, ClassPooling
from cgmm.mixture.fold import fold
from cgmm.network import NetworkError, SideInformation

N, K, D = 60, 3, 2
AUTO = ENGINES["auto"]
FAMILIES = [*POOLINGS, "classes", "categorical"]


def points_and_start(rng, family):
    """Points, a start and what maximises, of each family."""
    if family == "categorical":
        sizes = np.array([2, 4])
        X = one_hot(np.column_stack([rng.integers(size, size=N) for size in sizes]), sizes)
        p = np.concatenate([rng.dirichlet(np.ones(size), K).T for size in sizes]).T
        return X, CategoricalParameters(rng.dirichlet(np.ones(K)), p), Categories(tuple(sizes))
    # Far from zero or not; with components that are wide or tiny beside the whole: both forms.
    scale = 10.0 ** rng.integers(-4, 1, size=K)[rng.integers(K, size=N), None]
    X = scale * rng.normal(size=(N, D)) + rng.normal(size=D) * rng.integers(0, 2) * 100
    pool = POOLINGS["full" if family == "classes" else family]
    r = rng.dirichlet(np.ones(K), N)
    if family != "classes":
        return X, from_responsibilities(X, r, pool, reg_covar=1e-3), pool
    theta = from_responsibilities(X, rng.dirichlet(np.ones(5), N), pool, reg_covar=1e-3)
    shares = np.concatenate([rng.dirichlet(np.ones(size)) for size in (1, 3, 1)])
    theta = ClassParameters(np.full(K, 1 / K), theta.with_weights(shares), (1, 3, 1))
    return X, theta, ClassPooling(pool)


def what_is_known(rng, kind, sampling):
    """Relations, at most one edge a node, so that no engine approximates."""
    some = rng.permutation(N)
    known = {
        "nothing": {},
        "labels": {"labels": np.where(rng.uniform(size=N) < 0.3, rng.integers(K, size=N), -1)},
        "allowed": {"labels": (rng.uniform(size=(N, K)) < 0.5) | np.eye(K, dtype=bool)[some % K]},
        "chunklets": {"must_link": some[: 2 * 15].reshape(-1, 2) // 2},
        "pairs": {"cannot_link": some[:20].reshape(-1, 2)},
        "all": {
            "must_link": some[:20].reshape(-1, 2),
            "preferences": np.column_stack([some[20:40].reshape(-1, 2), rng.normal(size=10)]),
            "labels": np.where(some[np.argsort(some)] >= 55, 1, -1),
        },
    }[kind]
    return SideInformation.build(N, **known, sampling=sampling)


KINDS = ["nothing", "labels", "allowed", "chunklets", "pairs", "all"]


def folded(X, theta, side, pool, height, **more):
    """The fold, log Z_prior left out: what relations make of it is not the loop's."""
    data = Arranged.of(X, side, AUTO, height)
    options = {} if isinstance(pool, Categories) else {"reg_covar": 1e-9}
    return fold(data, theta, pool, closed_form, options, log_z_prior=lambda w: 0.0, **more)


def in_one(X, theta, side, pool):
    options = {} if isinstance(pool, Categories) else {"reg_covar": 1e-9}
    infer = AUTO(side.graph)
    return em(X, theta, side, infer, pool, closed_form, log_z_prior=lambda w: 0.0, **options)


def assert_same(ours, theirs, **tolerance):
    """Two sets of parameters, number by number."""
    for here, there in zip(ours, theirs, strict=True):
        if isinstance(here, tuple) and hasattr(here, "_fields"):
            assert_same(here, there, **tolerance)
        else:
            np.testing.assert_allclose(here, there, **tolerance)


@pytest.mark.each_value
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    height=st.integers(1, N),
    sampling=st.sampled_from(["points", "chunklets"]),
)
def test_the_fold_is_the_loop(family, kind, seed, height, sampling):
    rng = np.random.default_rng(seed)
    X, start, pool = points_and_start(rng, family)
    side = what_is_known(rng, kind, sampling)
    pairs = zip(folded(X, start, side, pool, height), in_one(X, start, side, pool), strict=False)
    for (ours, found), (theirs, posterior) in islice(pairs, 2):
        assert_same(ours, theirs, rtol=1e-9, atol=1e-12)
        assert found.log_evidence == pytest.approx(posterior.log_evidence, rel=1e-11, abs=1e-9)
        np.testing.assert_allclose(found.expected_counts, posterior.expected_counts, rtol=1e-9)
        np.testing.assert_allclose(found.responsibilities, posterior.responsibilities, atol=1e-9)


def test_large_chunklets_and_small_ones():
    """Sizes below and above what is added member by member, and above a block."""
    rng = np.random.default_rng(0)
    sizes = [1] * 40 + [2] * 5 + [LARGEST_RUN] * 2 + [LARGEST_RUN + 1] * 2 + [300]
    node_of = np.repeat(np.arange(len(sizes)), sizes)[rng.permutation(sum(sizes))]
    links = [np.flatnonzero(node_of == j)[[0, m]] for j, n in enumerate(sizes) for m in range(1, n)]
    side = SideInformation.build(len(node_of), must_link=links)
    X = rng.normal(size=(len(node_of), D))
    start = from_responsibilities(X, rng.dirichlet(np.ones(K), len(X)), POOLINGS["full"])
    pairs = zip(
        folded(X, start, side, POOLINGS["full"], 100),
        in_one(X, start, side, POOLINGS["full"]),
        strict=False,
    )
    for (ours, found), (theirs, posterior) in islice(pairs, 5):
        assert_same(ours, theirs, rtol=1e-10)
        np.testing.assert_allclose(found.responsibilities, posterior.responsibilities, atol=1e-11)


def test_digits_that_the_first_sums_lost_are_won_back():
    """Squares of 2^20 hide a spread of 2^-9; the start is so wide that it asks for squares."""
    rng = np.random.default_rng(0)
    tight = rng.integers(-3, 4, size=(30, 2)) * 2.0**-10
    X, z = np.concatenate([tight, tight + 2.0**20]), np.repeat([0, 1], 30)
    wide = Parameters(np.full(2, 0.5), np.zeros((2, 2)), np.tile(2.0**42 * np.eye(2), (2, 1, 1)))
    pool, side = POOLINGS["full"], SideInformation.build(len(X), labels=z)
    assert pool.ready(wide, pool.survey(X)).densities.natural is not None
    _, (ours, _) = islice(folded(X, wide, side, pool, 7), 2)
    expected = np.cov(tight.T, bias=True) + 1e-9 * np.eye(2)
    # A mean near 2^20 is rounded by 2^-33: nothing, squared, beside the spread.
    np.testing.assert_allclose(ours.covariances, [expected, expected], rtol=1e-9)


def test_a_start_with_matrices_leads_to_diagonals():
    """Densities of matrices and sums of squares have no statistics in common."""
    rng = np.random.default_rng(0)
    X, _ = clumps(N, D)
    r, side = rng.dirichlet(np.ones(K), N), SideInformation.build(N)
    start, pool = from_responsibilities(X, r, POOLINGS["full"]), POOLINGS["diag"]
    pairs = zip(folded(X, start, side, pool, 17), in_one(X, start, side, pool), strict=False)
    for (ours, _), (theirs, _) in islice(pairs, 3):
        assert_same(ours, theirs, rtol=1e-10)


def test_a_point_without_density_is_named_by_its_given_place():
    X = np.zeros((50, 1))
    X[37] = 1e200
    theta = Parameters(np.full(2, 0.5), np.array([[0.0], [1.0]]), np.ones((2, 1, 1)))
    for known in ({}, {"must_link": [[3, 41]]}):
        side = SideInformation.build(50, **known)
        with pytest.raises(ValueError, match="row 37 has no possible value"):
            next(folded(X, theta, side, POOLINGS["full"], 8))


def test_a_tied_node_without_a_state_is_named_by_its_given_place():
    X, theta, pool = points_and_start(np.random.default_rng(0), "full")
    allowed = np.ones((N, K), dtype=bool)
    allowed[[20, 50]] = [False, True, False]
    side = SideInformation.build(N, labels=allowed, preferences=[[20, 51, -1.0]])
    side = side._replace(graph=side.graph._replace(weights=np.array([-np.inf])))
    allowed[51] = allowed[20]
    side = side._replace(allowed=allowed)
    with pytest.raises(NetworkError) as info, named_as_points(side):
        next(folded(X, theta, side, pool, 8))
    assert set(info.value.nodes) <= {20, 51}


# ------------------------------------------------------------------ who works, and what is kept


def clumps(n_points, n_dims=4):
    rng = np.random.default_rng(0)
    z = rng.integers(K, size=n_points)
    return rng.normal(size=(n_points, n_dims)) + 3 * rng.normal(size=(K, n_dims))[z], z


def left(model):
    """Every number that a fit leaves, in bytes."""
    arrays = [*model.parameters_, model.responsibilities_, model.labels_, model.history_]
    return [np.asarray(array).tobytes() for array in arrays]


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["nothing", "must_link", "cannot_link"])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_the_number_of_threads_changes_no_bit(kind, covariance_type):
    X, z = clumps(30_000)
    first = np.flatnonzero(z == 0)[:4000].reshape(-1, 2)
    other = np.column_stack([np.flatnonzero(z == 1)[:2000], np.flatnonzero(z == 2)[:2000]])
    known = {"must_link": first, "cannot_link": other}
    known = {name: pairs for name, pairs in known.items() if name == kind}
    fits = [
        ConstrainedGaussianMixture(
            K, covariance_type=covariance_type, random_state=0, n_jobs=n_jobs, max_iter=5, tol=1
        ).fit(X, **known)
        for n_jobs in (None, 2, 3)
    ]
    assert left(fits[0]) == left(fits[1]) == left(fits[2])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_long_iteration_says_how_far_it_is(n_jobs, monkeypatch, capsys):
    monkeypatch.setattr(threads, "SILENCE", 0.0)
    X, _ = clumps(60_000)
    options = {"random_state": 0, "max_iter": 2, "tol": 0, "n_jobs": n_jobs}
    with pytest.warns(ConvergenceWarning):
        told = ConstrainedGaussianMixture(K, verbose=2, **options).fit(X)
    said = capsys.readouterr().out.splitlines()
    n_blocks = int(said[0].split()[-1])
    assert n_blocks > 3
    assert said[:n_blocks] == [f"    block {b} of {n_blocks}" for b in range(1, n_blocks + 1)]
    with pytest.warns(ConvergenceWarning):
        silent = ConstrainedGaussianMixture(K, **options).fit(X)
    assert left(told) == left(silent)
    assert not capsys.readouterr().out


def test_memory_is_that_of_a_block():
    """200,000 points in 40 components: a table of N times K numbers is 64 MB."""
    X, _ = clumps(200_000, n_dims=2)
    X = np.asfortranarray(X)
    model = ConstrainedGaussianMixture(
        40, means_init=X[:40], max_iter=2, tol=1e9, store_responsibilities=False
    )
    start = from_responsibilities(X, np.eye(40)[np.arange(len(X)) % 40], POOLINGS["full"])
    model.set_params(weights_init=start.weights, covariances_init=start.covariances)
    tracemalloc.start()
    model.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Labels, numbers of nodes and their like are some (N,) arrays, 1.6 MB each.
    assert peak < 3.2e7
    assert not hasattr(model, "responsibilities_")
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def on_disk(path, X, dtype):
    stored = np.memmap(path, dtype=dtype, mode="w+", shape=X.shape)
    stored[:] = X
    stored.flush()
    return np.memmap(path, dtype=dtype, mode="r", shape=X.shape)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("linked", [False, True])
def test_points_on_a_disk_are_fitted_where_they_lie(tmp_path, dtype, linked):
    X, z = clumps(60_000, n_dims=40)
    stored = on_disk(tmp_path / "points", X, dtype)
    known = {"must_link": np.flatnonzero(z == 0)[:4000].reshape(-1, 2)} if linked else {}
    start = from_responsibilities(X, np.eye(K)[z], POOLINGS["full"])
    model = ConstrainedGaussianMixture(
        K, weights_init=start.weights, means_init=start.means,
        covariances_init=start.covariances, max_iter=3, tol=1, store_responsibilities=False,
    )  # fmt: skip
    tracemalloc.start()
    here = model.fit(stored, **known).parameters_
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A copy in float64 would be 19 MB. Measured: blocks, and (N,) arrays of 0.5 MB each.
    assert peak < 1.4e7
    there = model.fit(np.array(stored, dtype=float), **known).parameters_
    assert_same(here, there, rtol=1e-12, atol=1e-13)


def test_a_missing_value_on_a_disk_is_named_by_its_row(tmp_path):
    X, _ = clumps(50_000)
    X[43_210, 2] = np.nan
    stored = on_disk(tmp_path / "points", X, np.float32)
    with pytest.raises(ValueError, match="first in row 43210, column 2, and in 1 of 50000 rows"):
        ConstrainedGaussianMixture(K).fit(stored)
