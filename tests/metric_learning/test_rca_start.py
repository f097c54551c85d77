"""Test `rca_start`, which initialises constrained EM with the metric of RCA."""

from itertools import product

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cgmm.datasets import three_classes
from cgmm.metric_learning import RCA, rca_start
from cgmm.network import SideInformation
from cgmm.scenarios import links_of_chunklets, pairs_until


@pytest.fixture(scope="module")
def data():
    """Return the data set of three classes."""
    return three_classes()


@pytest.fixture(scope="module")
def must_links(data):
    """Draw must-links: the "little" side information of [barhillel2005, sect. 8.3]."""
    return pairs_until(data.y, int(0.9 * len(data.y)), random_state=0)


def test_rca_start_assigns_chunklets_to_the_nearest_seed_in_the_learnt_metric(data, must_links):
    """Seeds are centroids of chunklets; some set of three must explain all assignments."""
    r, again = (
        rca_start(data.X, 3, must_link=must_links, random_state=np.random.default_rng(1))
        for _ in range(2)
    )
    np.testing.assert_array_equal(r, again)
    Y = RCA().fit(data.X, must_link=must_links).transform(data.X)
    side = SideInformation.build(len(Y), must_link=must_links)
    centroids = side.sum_over_nodes(Y) / np.bincount(side.node_of)[:, None]
    groups = side.sum_over_nodes(r) > 0
    # Every point has one component, which is that of all points of its chunklet.
    assert set(np.unique(r)) == {0.0, 1.0}
    assert (groups.sum(axis=1) == 1).all()
    chunklets = np.flatnonzero(np.bincount(side.node_of) > 1)
    candidates = [chunklets[groups[chunklets, k]] for k in range(3)]
    nearest = [cdist(centroids, centroids[list(s)]).argmin(axis=1) for s in product(*candidates)]
    assert (np.array(nearest) == groups.argmax(axis=1)).all(axis=1).any()


def test_rca_start_gives_the_same_for_chunklets_by_y_and_by_must_links(data):
    y = np.where(np.arange(len(data.y)) % 7 == 0, data.y, -1)
    np.testing.assert_array_equal(
        rca_start(data.X, 3, y, random_state=0),
        rca_start(data.X, 3, must_link=links_of_chunklets(y), random_state=0),
    )


def test_rca_start_clones_the_given_rca(data, must_links):
    model = RCA(1)
    r = rca_start(data.X, 3, must_link=must_links, rca=model, random_state=0)
    assert not hasattr(model, "components_")
    assert (r != rca_start(data.X, 3, must_link=must_links, random_state=0)).any()
    with pytest.raises(ValueError, match="share a chunklet"):
        rca_start(data.X, 3)
