"""Where EM starts: starts are distributions, seeds are far apart, given parameters are honoured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from cgmm.mixture import (
    POOLINGS,
    STARTS,
    far_points,
    from_labels,
    from_responsibilities,
    nearest,
)
from cgmm.network import SideInformation


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@given(seed=st.integers(0, 10_000), n_components=st.integers(1, 5), n_dims=st.integers(1, 3))
def test_start_gives_distributions_and_repeats_with_its_seed(start, seed, n_components, n_dims):
    X = np.random.default_rng(seed).normal(size=(20, n_dims))
    r = start(X, n_components, np.random.RandomState(seed))
    assert r.shape == (20, n_components)
    assert (r >= 0).all()
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_array_equal(r, start(X, n_components, np.random.RandomState(seed)))


@given(seed=st.integers(0, 10_000))
def test_nearest_equals_the_distance_matrix(seed):
    rng = np.random.default_rng(seed)
    X, centres = rng.normal(size=(30, 3)), rng.normal(size=(4, 3))
    np.testing.assert_array_equal(nearest(X, centres).argmax(axis=1), cdist(X, centres).argmin(1))


def test_kmeans_plus_plus_finds_well_separated_groups_every_time():
    """Two seeds in one group have probability of about 1e-6 a run at this separation."""
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [1000, 0], [0, 1000], [1000, 1000], [500, 5000]])
    z = np.repeat(np.arange(5), 10)
    X = centres[z] + rng.normal(size=(50, 2))
    for seed in range(100):
        found = far_points(X, 5, np.random.RandomState(seed)).argmax(axis=1)
        assert len(set(zip(z, found, strict=True))) == 5


def test_kmeans_plus_plus_draws_by_squared_distance():
    """The frequency of the unlikely split of 0, 1, 3 is that of the law, worked out by hand.

    K = 2 keeps the better of two draws. The split {0} | {1, 3} needs the seeds 0 and 1. After 0
    both draws must be 1 (probability 1/10 each, against 9/10 for 3); after 1 both must be 0 (1/5
    each); after 3 either other point gives {0, 1} | {3}. In all (1/100 + 1/25) / 3 = 1/60.
    """
    X, n_runs = np.array([[0.0], [1.0], [3.0]]), 6000
    unlikely = 0
    for seed in range(n_runs):
        z = far_points(X, 2, np.random.RandomState(seed)).argmax(axis=1)
        unlikely += z[0] != z[1]
    # Five standard errors of a binomial share.
    assert unlikely / n_runs == pytest.approx(1 / 60, abs=5 * (1 / 60 / n_runs) ** 0.5)


def test_duplicate_points_leave_components_without_points_not_nan():
    X = np.zeros((6, 2))
    r = far_points(X, 3, np.random.RandomState(0))
    theta = from_responsibilities(X, r, POOLINGS["full"], reg_covar=1e-6)
    assert all(np.isfinite(part).all() for part in theta)


def test_scale_does_not_matter_to_the_seeds():
    """Squared distances of 1e-300 must not underflow into a uniform draw."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    here = far_points(X, 4, np.random.RandomState(1))
    there = far_points(X * 2.0**-500, 4, np.random.RandomState(1))
    np.testing.assert_array_equal(here, there)


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
