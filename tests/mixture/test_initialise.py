"""Test the methods that initialise EM: responsibilities (N, K) from points and side information."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmm import COPKMeans, mixture
from cgmm.mixture.initialise import from_kmeans, subsample_rows
from cgmm.network import SideInformation
from cgmm.scenarios import random_pairs


@pytest.mark.parametrize("start", mixture.STARTS.values(), ids=mixture.STARTS)
@given(seed=st.integers(0, 10_000), n_components=st.integers(1, 5), n_dims=st.integers(1, 3))
def test_initial_responsibilities_are_distributions_and_reproducible(
    start, seed, n_components, n_dims
):
    X = np.random.default_rng(seed).normal(size=(20, n_dims))
    r = start(X, n_components, np.random.RandomState(seed))
    assert r.shape == (20, n_components)
    assert (r >= 0).all()
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_array_equal(r, start(X, n_components, np.random.RandomState(seed)))


@pytest.mark.parametrize("covariance_type", mixture.POOLINGS)
def test_component_without_points_starts_with_the_moments_of_all_points(covariance_type):
    X = np.random.default_rng(0).normal(size=(40, 2)) + 5
    r = np.column_stack([np.ones(40), np.zeros(40)])
    theta = mixture.from_responsibilities(X, r, mixture.POOLINGS[covariance_type], reg_covar=0.0)
    np.testing.assert_allclose(theta.means[1], X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(theta.covariances[1], theta.covariances[0], rtol=1e-9)


@pytest.mark.parametrize("labels", [None, [-1, -1, -1]])
def test_initialisation_from_labels_without_labels_is_refused(labels):
    side = SideInformation.build(3, labels=labels)
    with pytest.raises(ValueError, match="needs at least one point of known class"):
        mixture.from_labels(np.zeros((3, 1)), 2, np.random.RandomState(0), side)


# ------------------------------------------------------------------ side information


def test_seeds_are_drawn_by_mass_times_squared_distance():
    """Draw a second seed among points 0, 1 and 3 with masses 1, 9 and 1, if the first seed is 0.

    Points 1 and 3 are equally likely to be drawn, because 9 · 1² = 1 · 3². Of two drawn candidates
    the one with the smaller remaining sum is kept: 1 leaves 1 · 2² = 4, and 3 leaves 9 · 1² = 9.
    So 3 is kept only if it is drawn twice, in a quarter of all runs.
    """
    X, mass, n_runs = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 9.0, 1.0]), 4000
    rng = np.random.RandomState(0)
    second = [mixture.seeds(X, 2, rng, first=X[:1], mass=mass)[1, 0] for _ in range(n_runs)]
    assert set(second) == {1.0, 3.0}
    # The tolerance is five standard errors of a binomial share.
    assert np.mean(np.equal(second, 3)) == pytest.approx(0.25, abs=5 * (3 / 16 / n_runs) ** 0.5)


@pytest.mark.parametrize("labelled_classes", [(1, 2), (2, 0), (0, 1)])
def test_components_take_the_numbers_of_labelled_classes(labelled_classes):
    """If two of three classes have labels, the third component starts in the unlabelled group."""
    centres = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 300.0]])
    rng = np.random.default_rng(0)
    z = np.repeat(range(3), 8)
    X = centres[z] + rng.normal(size=(24, 2))
    labels = np.full(24, -1)
    for k in labelled_classes:
        labels[[8 * k, 8 * k + 3]] = k
    side = SideInformation.build(24, labels=labels)
    r = mixture.from_labels(X, 3, np.random.RandomState(0), side)
    np.testing.assert_array_equal(r, np.eye(3)[z])


@pytest.mark.parametrize("seed", range(5))
def test_components_start_at_means_of_chunklets_and_not_at_single_points(seed):
    """Components start at 5 and 11, the means of the chunklets, and not at the outlier."""
    X = np.array([[0.0], [10.0], [2.0], [20.0], [1000.0]])
    side = SideInformation.build(5, must_link=[[0, 1], [2, 3]])
    r = mixture.from_chunklets(X, 2, np.random.RandomState(seed), side)
    z = r.argmax(axis=1)
    assert len({z[0], z[1]}) == 2
    assert z.tolist() == [z[0], z[1], z[0], z[1], z[1]]


def test_first_chunklet_is_drawn_in_proportion_to_its_size():
    """Component 0 starts at the larger of two chunklets with probability 6 / 8."""
    X = np.array([[0.0]] * 6 + [[1.0]] * 2)
    side = SideInformation.build(8, must_link=[[0, j] for j in range(1, 6)] + [[6, 7]])
    n_runs, rng = 2000, np.random.RandomState(0)
    r_first = [mixture.from_chunklets(X, 2, rng, side)[0, 0] for _ in range(n_runs)]
    assert np.mean(r_first) == pytest.approx(6 / 8, abs=5 * (3 / 16 / n_runs) ** 0.5)


@pytest.mark.parametrize(
    ("weights", "shares"), [(None, [0.55, 0.35]), (np.array([2.0, 1, 1, 0]), [0.7, 0.4])]
)
def test_points_of_a_chunklet_get_the_weighted_mean_of_their_responsibilities(weights, shares):
    r = np.array([[1.0, 0.0], [0.4, 0.6], [0.1, 0.9], [0.3, 0.7]])
    side = SideInformation.build(4, must_link=[[0, 2], [3, 1]]).weighted(weights)
    expected = np.tile([[share, 1 - share] for share in shares], (2, 1))
    np.testing.assert_allclose(mixture.adapt_to_evidence(r, side), expected, rtol=1e-12)
    # A chunklet whose weights are all zero must not give NaN.
    r = mixture.adapt_to_evidence(r, side.weighted(np.array([1.0, 0, 1, 0])))
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-12)


def test_components_are_numbered_by_the_majority_of_labels():
    """Five points of a chunklet outvote two single points with the same label."""
    start = np.eye(2)[[1] * 5 + [0, 0, 1]]
    must_link = [[0, j] for j in range(1, 5)]
    side = SideInformation.build(8, labels=[0] * 7 + [1], must_link=must_link)
    np.testing.assert_array_equal(
        mixture.adapt_to_evidence(start, side).argmax(axis=1), [0] * 7 + [1]
    )
    free = SideInformation.build(9, labels=[0] * 7 + [1, -1], must_link=must_link)
    # The unlabelled point starts in the component of the five, which is renumbered.
    assert mixture.adapt_to_evidence(np.vstack([start, [[0.0, 1.0]]]), free)[8].tolist() == [
        1.0,
        0.0,
    ]


def test_points_that_start_in_excluded_components_get_equal_responsibilities():
    allowed = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    start = np.eye(3)[[0, 1, 0, 2]]
    side = SideInformation.build(4, labels=allowed)
    expected = [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]]
    np.testing.assert_array_equal(mixture.adapt_to_evidence(start, side), expected)


@pytest.mark.parametrize(("n_points", "n_init"), [(36, 10), (37, 1)])
def test_k_means_initialisation_restarts_if_clusters_are_small(n_points, n_init):
    """K-means restarts ten times for up to K² points in K clusters, and runs once for more.

    In pure noise a single run seldom equals the best of ten.
    """
    X = np.random.default_rng(0).normal(size=(n_points, 2))
    known = random_pairs(np.arange(36) % 6, 12, random_state=0)._asdict()
    side = SideInformation.build(n_points, **known)
    r = from_kmeans(X, 6, np.random.RandomState(0), side)
    cop = COPKMeans(6, n_init=n_init, random_state=np.random.RandomState(0)).fit(X, **known)
    np.testing.assert_array_equal(r, np.eye(6)[cop.labels_])


def test_covariances_of_distant_clusters_are_precise():
    z = np.arange(600) % 3
    X = np.random.default_rng(0).normal(size=(600, 2)) + 1e5 * z[:, None]
    theta = mixture.from_responsibilities(X, np.eye(3)[z], mixture.POOLINGS["full"])
    # Squared distances of 1e10 to a common mean would leave six digits.
    expected = [np.cov(X[z == k].T, bias=True) for k in range(3)]
    np.testing.assert_allclose(theta.covariances, expected, rtol=1e-9, atol=1e-9)


def test_half_of_a_subsample_are_points_with_side_information():
    """Half of a subsample of 100 must be drawn from the 60 must-linked points among 10,000."""
    side = SideInformation.build(10_000, must_link=np.arange(60).reshape(-1, 2))
    rows = subsample_rows(side, np.random.RandomState(0), 100)
    assert 50 <= (rows < 60).sum() <= 53
    assert len(rows) > 95
