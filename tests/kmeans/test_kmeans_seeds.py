"""Test the seeds of constrained K-means, and its default number of restarts."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

from cgmm.kmeans import COPKMeans, PCKMeans, chunklet_seeds
from cgmm.kmeans.seeding import choose_seedings
from cgmm.network import SideInformation
from cgmm.scenarios import random_pairs


def test_pck_means_without_penalty_uses_relations_only_for_seeds():
    """PCKMeans with w = 0 is Lloyd's algorithm started from the chunklets."""
    X, y = load_iris(return_X_y=True)
    must, _ = random_pairs(y, 60, random_state=0)
    model = PCKMeans(3, w=0.0, init="chunklets", random_state=5).fit(X, must_link=must)
    chunklets = SideInformation.build(150, must_link=must).node_of
    start = chunklet_seeds(X, chunklets, 3, np.random.RandomState(5))
    plain = KMeans(3, init=start, n_init=1).fit(X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)
    assert model.objective_ == pytest.approx(plain.inertia_ / 2, rel=1e-12)


# ---------------------------------------------------------------------------- restarts

# Six groups on a line are so far apart that K-means cannot recover if a group gets no seed.
Y = np.repeat(range(6), 20)
X = 20.0 * Y[:, None] + np.random.default_rng(0).normal(size=(120, 1))


@pytest.mark.parametrize("kinds", [("must_link",), ("cannot_link",), ("must_link", "cannot_link")])
@pytest.mark.parametrize("Estimator", [COPKMeans, PCKMeans])
def test_default_restarts_with_true_relations_find_all_groups(Estimator, kinds):
    """A single restart may merge two groups, so several are needed."""
    truth = float(6 * 20 * X.reshape(6, 20).var(axis=1).mean())
    for seed in range(10):
        pairs = random_pairs(Y, 50, random_state=seed)._asdict()
        model = Estimator(6, random_state=seed).fit(X, **{kind: pairs[kind] for kind in kinds})
        assert model.inertia_ == pytest.approx(truth, rel=1e-9)


def test_number_of_restarts_depends_on_the_relations():
    plain = SideInformation.build(5)
    linked = SideInformation.build(5, must_link=[[0, 1]])
    apart = SideInformation.build(5, cannot_link=[[0, 1]])
    both = ["chunklets", "k-means++"]
    for init, n_clusters, side, names in (
        ("auto", 3, plain, ["k-means++"]),
        ("auto", 1, linked, ["k-means++"]),
        ("auto", 3, linked, both * 4),
        ("auto", 3, apart, both * 4),
        ("auto", 20, apart, both * 6),
        ("random", 3, apart, ["random"]),
    ):
        assert choose_seedings(init, n_clusters, side.node_of, side.graph) == names
