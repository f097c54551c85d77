"""Where K-means starts."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

from cgmm.kmeans import PCKMeans, chunklet_seeds
from cgmm.mixture import from_chunklets, nearest
from cgmm.network import SideInformation
from cgmm.scenarios import random_pairs


def test_large_chunklets_far_apart_are_the_seeds():
    """Three chunklets of four points far apart, and one pair that is near the first."""
    rng = np.random.default_rng(0)
    places = np.array([[0, 0], [100, 0], [0, 100], [1, 1]])
    X = np.repeat(places, [4, 4, 4, 2], axis=0) + 0.01 * rng.normal(size=(14, 2))
    node_of = np.repeat(np.arange(4), [4, 4, 4, 2])
    X, node_of = np.r_[X, 50 * rng.normal(size=(30, 2))], np.r_[node_of, np.arange(4, 34)]
    for seed in range(20):
        seeds = chunklet_seeds(X, node_of, 3, np.random.RandomState(seed))
        nearest = np.linalg.norm(seeds[:, None] - places[:3], axis=2).argmin(axis=1)
        assert set(nearest) == {0, 1, 2}
        assert np.linalg.norm(seeds - places[nearest], axis=1).max() < 1.5


def test_seeds_do_not_tear_chunklets():
    """Three chunklets whose points lie among those of the others; their means are far apart."""
    X = np.array([[-50.0], [50.0], [-40.0], [60.0], [-45.0], [75.0]])
    for seed in range(10):
        seeds = chunklet_seeds(X, np.repeat([0, 1, 2], 2), 3, np.random.RandomState(seed))
        np.testing.assert_allclose(np.sort(seeds.ravel()), [0.0, 10.0, 15.0])


def test_both_rooms_start_from_the_same_seeds():
    """The mixture gives each point to the nearest of the centres that K-means begins at."""
    X, y = load_iris(return_X_y=True)
    for n_pairs in (1, 20):
        side = SideInformation.build(150, must_link=random_pairs(y, n_pairs, random_state=0)[0])
        for seed in range(5):
            centres = chunklet_seeds(X, side.node_of, 3, np.random.RandomState(seed))
            start = from_chunklets(X, 3, np.random.RandomState(seed), side)
            np.testing.assert_array_equal(start, nearest(X, centres))


def test_seeded_k_means_uses_the_relations_for_its_start_only():
    """PCKMeans with w = 0: Lloyd from the chunklets, and no penalty afterwards."""
    X, y = load_iris(return_X_y=True)
    must, _ = random_pairs(y, 60, random_state=0)
    model = PCKMeans(3, w=0.0, init="chunklets", random_state=5).fit(X, must_link=must)
    chunklets = SideInformation.build(150, must_link=must).node_of
    start = chunklet_seeds(X, chunklets, 3, np.random.RandomState(5))
    plain = KMeans(3, init=start, n_init=1).fit(X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)
    assert model.objective_ == pytest.approx(plain.inertia_ / 2, rel=1e-12)
