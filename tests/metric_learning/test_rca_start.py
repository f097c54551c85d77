"""Test RCA as the initial metric of constrained EM, as a start and in a pipeline."""

import numpy as np
import pytest

from cgmm.datasets import three_classes
from cgmm.metric_learning import RCA, rca_start
from cgmm.network import SideInformation
from cgmm.scenarios import links_of_chunklets, pairs_until


@pytest.fixture(scope="module")
def data():
    return three_classes()


@pytest.fixture(scope="module")
def must(data):
    # "little" side information of [barhillel2005, sect. 8.3]
    return pairs_until(data.y, int(0.9 * len(data.y)), random_state=0)


def test_each_chunklet_is_at_its_nearest_seed_in_the_learnt_metric(data, must):
    # Seeds are centroids of chunklets; each of the three must win itself and all that is nearer to
    # it than to the others.
    r, again = (
        rca_start(data.X, 3, must_link=must, random_state=np.random.default_rng(1))
        for _ in range(2)
    )
    np.testing.assert_array_equal(r, again)
    Y = RCA().fit(data.X, must_link=must).transform(data.X)
    side = SideInformation.build(len(Y), must_link=must)
    centroids = side.sum_over_nodes(Y) / np.bincount(side.node_of)[:, None]
    groups = side.sum_over_nodes(r) > 0
    big = np.flatnonzero(np.bincount(side.node_of) > 1)

    def warning_texts(seeds):
        apart = np.linalg.norm(centroids[:, None] - centroids[seeds][None], axis=2)
        return np.array_equal(apart.argmin(axis=1), groups.argmax(axis=1))

    members = [big[groups[big, k]] for k in range(3)]
    assert any(warning_texts([a, b, c]) for a in members[0] for b in members[1] for c in members[2])


def test_the_start_is_hard_and_keeps_chunklets_whole_where_their_points_lie_apart():
    rng = np.random.default_rng(0)
    X, must = rng.normal(size=(40, 2)), rng.permutation(40)[:24].reshape(-1, 2)
    r = rca_start(X, 3, must_link=must, random_state=0)
    assert set(np.unique(r)) == {0.0, 1.0}
    np.testing.assert_array_equal(r.sum(axis=1), 1)
    np.testing.assert_array_equal(r[must[:, 0]], r[must[:, 1]])


def test_chunklets_by_y_are_those_by_links(data):
    y = np.where(np.arange(len(data.y)) % 7 == 0, data.y, -1)
    np.testing.assert_array_equal(
        rca_start(data.X, 3, y, random_state=0),
        rca_start(data.X, 3, must_link=links_of_chunklets(y), random_state=0),
    )


def test_the_given_rca_is_cloned_and_not_fitted(data, must):
    model = RCA(1)
    r = rca_start(data.X, 3, must_link=must, rca=model, random_state=0)
    assert not hasattr(model, "components_")
    assert (r != rca_start(data.X, 3, must_link=must, random_state=0)).any()
    with pytest.raises(ValueError, match="share a chunklet"):
        rca_start(data.X, 3)
