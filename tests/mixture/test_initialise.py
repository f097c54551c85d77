"""Test the starts of EM: responsibilities, far seeds, side information, and the default."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmm import COPKMeans
from cgmm.mixture import (
    POOLINGS,
    STARTS,
    adapt_to_evidence,
    from_chunklets,
    from_labels,
    from_responsibilities,
    seeds,
)
from cgmm.mixture.initialise import from_kmeans, subsample_rows
from cgmm.network import SideInformation
from cgmm.scenarios import random_pairs


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@given(seed=st.integers(0, 10_000), n_components=st.integers(1, 5), n_dims=st.integers(1, 3))
def test_start_gives_distributions_and_repeats_with_its_seed(start, seed, n_components, n_dims):
    X = np.random.default_rng(seed).normal(size=(20, n_dims))
    r = start(X, n_components, np.random.RandomState(seed))
    assert r.shape == (20, n_components)
    assert (r >= 0).all()
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_array_equal(r, start(X, n_components, np.random.RandomState(seed)))


@pytest.mark.parametrize("pool", POOLINGS)
def test_component_without_points_starts_as_all_the_data(pool):
    X = np.random.default_rng(0).normal(size=(40, 2)) + 5
    r = np.column_stack([np.ones(40), np.zeros(40)])
    theta = from_responsibilities(X, r, POOLINGS[pool], reg_covar=0.0)
    np.testing.assert_allclose(theta.means[1], X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(theta.covariances[1], theta.covariances[0], rtol=1e-9)


@pytest.mark.parametrize("labels", [None, [-1, -1, -1]])
def test_a_start_from_labels_needs_a_label(labels):
    side = SideInformation.build(3, labels=labels)
    with pytest.raises(ValueError, match="needs at least one point of known class"):
        from_labels(np.zeros((3, 1)), 2, np.random.RandomState(0), side)


# ------------------------------------------------------------------ starts that know something


def test_seeds_are_drawn_by_mass_times_squared_distance():
    """From 0, with masses (1, 9, 1) at 0, 1, 3: both candidates are as likely, 9 · 1² = 1 · 3².

    Of two trials the one that leaves less is kept: 4 if the seed is 1, 9 · 1 if it is 3. So 3 is
    the seed when both trials are 3, in a quarter of all runs.
    """
    X, mass, n_runs = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 9.0, 1.0]), 4000
    rng = np.random.RandomState(0)
    last = [seeds(X, 2, rng, first=X[:1], mass=mass)[1, 0] for _ in range(n_runs)]
    assert set(last) == {1.0, 3.0}
    # Five standard errors of a binomial share.
    assert np.mean(np.equal(last, 3)) == pytest.approx(0.25, abs=5 * (3 / 16 / n_runs) ** 0.5)


@pytest.mark.parametrize("known", [(1, 2), (2, 0), (0, 1)])
def test_labels_name_the_components_whatever_classes_they_show(known):
    """Two classes have labels; the third component starts in the unlabelled group."""
    groups = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 300.0]])
    rng = np.random.default_rng(0)
    z = np.repeat(range(3), 8)
    X = groups[z] + rng.normal(size=(24, 2))
    labels = np.full(24, -1)
    for k in known:
        labels[[8 * k, 8 * k + 3]] = k
    side = SideInformation.build(24, labels=labels)
    r = from_labels(X, 3, np.random.RandomState(0), side)
    np.testing.assert_array_equal(r, np.eye(3)[z])


@pytest.mark.parametrize("seed", range(5))
def test_chunklets_start_at_their_means_and_single_points_nowhere(seed):
    """The means are 5 and 11; an outlier belongs to no chunklet."""
    X = np.array([[0.0], [10.0], [2.0], [20.0], [1000.0]])
    side = SideInformation.build(5, must_link=[[0, 1], [2, 3]])
    r = from_chunklets(X, 2, np.random.RandomState(seed), side)
    z = r.argmax(axis=1)
    assert len({z[0], z[1]}) == 2
    assert z.tolist() == [z[0], z[1], z[0], z[1], z[1]]


def test_the_first_chunklet_is_drawn_by_its_number_of_points():
    """One chunklet has six points and the other two; the first one drawn is component 0."""
    X = np.array([[0.0]] * 6 + [[1.0]] * 2)
    side = SideInformation.build(8, must_link=[[0, j] for j in range(1, 6)] + [[6, 7]])
    n_runs, rng = 2000, np.random.RandomState(0)
    began = [from_chunklets(X, 2, rng, side)[0, 0] for _ in range(n_runs)]
    assert np.mean(began) == pytest.approx(6 / 8, abs=5 * (3 / 16 / n_runs) ** 0.5)


def test_points_of_a_chunklet_start_alike_at_the_mean_of_their_starts():
    r = np.array([[1.0, 0.0], [0.4, 0.6], [0.1, 0.9], [0.3, 0.7]])
    side = SideInformation.build(4, must_link=[[0, 1], [1, 3]])
    expected = np.array([[1.7, 1.3], [1.7, 1.3], [0.3, 2.7], [1.7, 1.3]]) / 3
    np.testing.assert_allclose(adapt_to_evidence(r, side), expected, rtol=1e-15)


def test_a_start_of_weighted_chunklets_is_the_mean_of_their_points():
    """Weights act as repeated points; a point of weight zero keeps its start."""
    r = np.array([[1.0, 0.0], [0.4, 0.6], [0.1, 0.9], [0.3, 0.7]])
    side = SideInformation.build(4, must_link=[[0, 1], [2, 3]])
    weighted = side.weighted(np.array([2.0, 1.0, 0.0, 0.0]))
    found = adapt_to_evidence(r, weighted)
    np.testing.assert_allclose(found[:2], [[0.8, 0.2]] * 2, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)


def test_components_take_the_names_of_the_classes_that_most_points_show():
    """A chunklet of five outweighs three single points with other labels."""
    start = np.eye(2)[[1] * 5 + [0, 0, 1]]
    must_link = [[0, j] for j in range(1, 5)]
    side = SideInformation.build(8, labels=[0] * 7 + [1], must_link=must_link)
    np.testing.assert_array_equal(adapt_to_evidence(start, side).argmax(axis=1), [0] * 7 + [1])
    free = SideInformation.build(9, labels=[0] * 7 + [1, -1], must_link=must_link)
    # The unlabelled point, started with the five, is renamed with them.
    assert adapt_to_evidence(np.vstack([start, [[0.0, 1.0]]]), free)[8].tolist() == [1.0, 0.0]


def test_excluded_components_of_a_start_are_replaced_by_equal_ones():
    allowed = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    start = np.eye(3)[[0, 1, 0, 2]]
    side = SideInformation.build(4, labels=allowed)
    expected = [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]]
    np.testing.assert_array_equal(adapt_to_evidence(start, side), expected)


@pytest.mark.parametrize(("n_points", "n_init"), [(36, 10), (37, 1)])
def test_k_means_runs_ten_times_where_points_are_few_for_their_clusters(n_points, n_init):
    """In pure noise a single run seldom ends where the best of ten does."""
    X = np.random.default_rng(0).normal(size=(n_points, 2))
    known = random_pairs(np.arange(36) % 6, 12, random_state=0)._asdict()
    side = SideInformation.build(n_points, **known)
    r = from_kmeans(X, 6, np.random.RandomState(0), side)
    cop = COPKMeans(6, n_init=n_init, random_state=np.random.RandomState(0)).fit(X, **known)
    np.testing.assert_array_equal(r, np.eye(6)[cop.labels_])


def test_covariances_of_clusters_far_apart_lose_no_digits():
    z = np.arange(600) % 3
    X = np.random.default_rng(0).normal(size=(600, 2)) + 1e5 * z[:, None]
    theta = from_responsibilities(X, np.eye(3)[z], POOLINGS["full"])
    # About one mean for all, squares of 1e10 would leave six digits.
    truth = [np.cov(X[z == k].T, bias=True) for k in range(3)]
    np.testing.assert_allclose(theta.covariances, truth, rtol=1e-9, atol=1e-9)


def test_half_of_a_sample_are_points_of_which_something_is_known():
    """Link 60 points among 10,000: 25 pairs are in a sample of 100, where chance gives none."""
    side = SideInformation.build(10_000, must_link=np.arange(60).reshape(-1, 2))
    rows = subsample_rows(side, np.random.RandomState(0), 100)
    assert 50 <= (rows < 60).sum() <= 53
    assert len(rows) > 95
