"""Test the seeds of K-means, and its default number of starts with relations."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

from cgmm.kmeans import COPKMeans, PCKMeans, chunklet_seeds
from cgmm.kmeans.seeding import choose_seedings
from cgmm.network import SideInformation
from cgmm.scenarios import random_pairs


def test_seeded_k_means_uses_the_relations_for_its_start_only():
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


# ---------------------------------------------------------------------------- several

# Six groups on a line, far apart: a start that misses one never finds it.
Y = np.repeat(range(6), 20)
X = 20.0 * Y[:, None] + np.random.default_rng(0).normal(size=(120, 1))


@pytest.mark.parametrize("kinds", [("must_link",), ("cannot_link",), ("must_link", "cannot_link")])
@pytest.mark.parametrize("Estimator", [COPKMeans, PCKMeans])
def test_true_relations_do_not_spoil_a_single_run(Estimator, kinds):
    """One start in several merges a group without a chunklet or a seed with its neighbour."""
    truth = float(6 * 20 * X.reshape(6, 20).var(axis=1).mean())
    for seed in range(10):
        pairs = random_pairs(Y, 50, random_state=seed)._asdict()
        model = Estimator(6, random_state=seed).fit(X, **{kind: pairs[kind] for kind in kinds})
        assert model.inertia_ == pytest.approx(truth, rel=1e-9)


def test_relations_decide_the_number_of_starts():
    alone = SideInformation.build(5)
    tied = SideInformation.build(5, must_link=[[0, 1]])
    apart = SideInformation.build(5, cannot_link=[[0, 1]])
    both = ["chunklets", "k-means++"]
    for init, n_clusters, side, names in (
        ("auto", 3, alone, ["k-means++"]),
        ("auto", 1, tied, ["k-means++"]),
        ("auto", 3, tied, both * 4),
        ("auto", 3, apart, both * 4),
        ("auto", 20, apart, both * 6),
        ("random", 3, apart, ["random"]),
    ):
        assert choose_seedings(init, n_clusters, side.node_of, side.graph) == names
