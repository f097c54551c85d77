"""Contraction: closure, what contradicts what, and the chain that shows it."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmm.network import SideInformation, must_link_chain


def random_relations(seed, n_samples=12):
    """True classes and relations that agree with them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_samples)
    pairs = np.array(list(itertools.combinations(range(n_samples), 2)))
    pairs = rng.permutation(pairs[rng.random(len(pairs)) < 0.2], axis=0)
    pairs = np.where(rng.random((len(pairs), 1)) < 0.5, pairs, pairs[:, ::-1])
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return y, pairs[same], pairs[~same]


def test_nothing_known_is_one_node_a_point():
    side = SideInformation.build(4)
    np.testing.assert_array_equal(side.node_of, range(4))
    np.testing.assert_array_equal(side.multiplicity, 1)
    assert side.is_trivial
    assert side.mask(3) is None


@given(seed=st.integers(0, 100_000))
def test_closure_equals_networkx(seed):
    y, must, cannot = random_relations(seed)
    side = SideInformation.build(len(y), must_link=must, cannot_link=cannot)
    graph = nx.Graph()
    graph.add_nodes_from(range(len(y)))
    graph.add_edges_from(must.tolist())
    components = sorted(nx.connected_components(graph), key=min)
    for j, component in enumerate(components):
        assert (side.node_of[sorted(component)] == j).all()
        assert side.multiplicity[j] == len(component)
    forbidden = {tuple(sorted(side.node_of[list(pair)])) for pair in cannot}
    assert forbidden == set(map(tuple, side.graph.edges))
    assert (side.graph.weights == -np.inf).all()


@given(seed=st.integers(0, 100_000))
def test_order_direction_and_repetition_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    y, must, cannot = random_relations(seed)
    reference = SideInformation.build(len(y), must_link=must, cannot_link=cannot)
    again = SideInformation.build(
        len(y),
        must_link=rng.permutation(np.concatenate([must, must[:, ::-1], [[3, 3]]]), axis=0),
        cannot_link=rng.permutation(np.concatenate([cannot[:, ::-1], cannot]), axis=0),
    )
    np.testing.assert_array_equal(again.node_of, reference.node_of)
    np.testing.assert_array_equal(again.graph.edges, reference.graph.edges)
    np.testing.assert_array_equal(again.graph.weights, reference.graph.weights)


def test_preferences_add_and_infinite_ones_are_hard():
    side = SideInformation.build(
        6,
        preferences=[
            [0, 1, 0.5], [1, 0, 0.25], [2, 3, np.inf], [3, 4, 1.0], [2, 4, 1.0], [0, 5, -np.inf],
            [1, 5, 2.0], [5, 1, -2.0], [2, 3, -7.0], [0, 5, 3.0],
        ],
    )  # fmt: skip
    assert side.node_of.tolist() == [0, 1, 2, 2, 3, 4]
    edges = dict(zip(map(tuple, side.graph.edges.tolist()), side.graph.weights, strict=True))
    assert edges == {(0, 1): 0.75, (2, 3): 2.0, (0, 4): -np.inf}


@pytest.mark.parametrize("odds", [700.0, 1e300, -700.0, -1e300])
def test_a_finite_preference_however_strong_is_never_hard(odds):
    side = SideInformation.build(2, preferences=[[0, 1, odds]])
    assert side.node_of.tolist() == [0, 1]
    assert side.graph.weights.tolist() == [odds]


def test_sampling_assumptions_differ_in_multiplicity_only():
    points = SideInformation.build(4, must_link=[[0, 1], [1, 2]])
    chunklets = SideInformation.build(4, must_link=[[0, 1], [1, 2]], sampling="chunklets")
    assert points.multiplicity.tolist() == [3, 1]
    assert chunklets.multiplicity.tolist() == [1, 1]
    np.testing.assert_array_equal(points.node_of, chunklets.node_of)


def test_labels_and_allowed_classes_become_masks_on_nodes():
    side = SideInformation.build(4, labels=[-1, 2, -1, 0], must_link=[[0, 1]])
    expected = [[0, 0, 1], [1, 1, 1], [1, 0, 0]]
    np.testing.assert_array_equal(side.mask(3), np.array(expected, bool))
    allowed = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 0]], bool)
    side = SideInformation.build(4, labels=allowed, must_link=[[0, 1]])
    expected = [[0, 1, 0], [1, 1, 1], [1, 0, 0]]
    np.testing.assert_array_equal(side.mask(3), np.array(expected, bool))
    assert SideInformation.build(2, labels=[-1, -1]).mask(2) is None


@given(seed=st.integers(0, 100_000))
def test_chain_is_a_shortest_path(seed):
    _, must, _ = random_relations(seed)
    graph = nx.Graph(must.tolist())
    for i, j in itertools.combinations(sorted(graph), 2):
        if nx.has_path(graph, i, j):
            chain = must_link_chain(must, i, j)
            assert (chain[0], chain[-1]) == (i, j)
            assert all(graph.has_edge(a, b) for a, b in itertools.pairwise(chain))
            assert len(chain) - 1 == nx.shortest_path_length(graph, i, j)
        else:
            with pytest.raises(ValueError, match="no chain"):
                must_link_chain(must, i, j)


@pytest.mark.parametrize(
    ("relations", "message"),
    [
        ({"must_link": [[0, 1], [1, 2]], "cannot_link": [[2, 0]]}, "2 - 1 - 0"),
        ({"must_link": [[0, 1]], "preferences": [[1, 0, -np.inf]]}, "1 - 0"),
        ({"labels": [0, -1, 1, -1, -1], "must_link": [[0, 1], [2, 1]]}, "0 - 1 - 2"),
        ({"labels": [0, 0, -1, -1, -1], "cannot_link": [[0, 1]]}, "both have class 0"),
        ({"labels": [0, -1, 0, -1, -1], "must_link": [[0, 1]], "cannot_link": [[1, 2]]}, "class 0"),
        ({"labels": [[1, 0], [0, 1], [1, 1], [1, 1], [1, 1]], "must_link": [[0, 1]]}, "0 - 1"),
        ({"labels": [[1, 0], [0, 0], [1, 1], [1, 1], [1, 1]]}, r"labels\[1\] allows no class"),
        ({"labels": [[1, 2]] * 5}, "must be booleans"),
        ({"cannot_link": [[0, 1], [3, 3]]}, r"cannot_link\[1\] ties point 3 to itself"),
        ({"preferences": [[2, 2, -np.inf]]}, "cannot differ from itself"),
        ({"preferences": [[0, 1, np.nan]]}, "must be numbers"),
        ({"must_link": [[0, 5]]}, r"must_link\[0\] is \[0, 5\]"),
        ({"must_link": [[0, -1]]}, "by index, 0 to 4"),
        ({"must_link": [[0, 1.5]]}, r"\[0.0, 1.5\]"),
        ({"must_link": [0, 1]}, r"must be \(P, 2\)"),
        ({"preferences": [[0, 1]]}, r"must be \(P, 3\)"),
        ({"labels": [0, 1]}, r"must be \(5,\) integers"),
        ({"labels": [0.5, 0, 0, 0, 0]}, r"labels\[0\] is 0.5"),
        ({"labels": [-2, 0, 0, 0, 0]}, "or -1 for unknown"),
        ({"sampling": "pairs"}, "sampling is 'pairs'"),
    ],
)
def test_contradictions_and_nonsense_are_shown(relations, message):
    with pytest.raises(ValueError, match=message):
        SideInformation.build(5, **relations)


def test_jointly_empty_masks_without_a_clashing_pair():
    allowed = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
    with pytest.raises(ValueError, match="have none in common to all"):
        SideInformation.build(3, labels=allowed, must_link=[[0, 1], [1, 2]])


def test_masks_must_fit_the_number_of_components():
    with pytest.raises(ValueError, match="point 1 has label 4"):
        SideInformation.build(2, labels=[0, 4]).mask(3)
    with pytest.raises(ValueError, match="has 2 columns"):
        SideInformation.build(2, labels=np.ones((2, 2), bool)).mask(3)


@given(seed=st.integers(0, 10_000))
def test_sums_over_nodes_and_their_spread_are_those_of_the_incidence_matrix(seed):
    rng = np.random.default_rng(seed)
    must_link = rng.integers(0, 20, size=(rng.integers(0, 12), 2))
    side, values = SideInformation.build(20, must_link=must_link), rng.normal(size=(20, 3))
    incidence = side.node_of[:, None] == np.arange(side.n_nodes)
    sums = side.sum_over_nodes(values)
    np.testing.assert_allclose(sums, incidence.T @ values, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(side.spread(sums), sums[incidence.argmax(axis=1)])
    np.testing.assert_array_equal(
        side.spread(side.multiplicity), incidence.sum(axis=0)[side.node_of]
    )


@pytest.mark.parametrize("n_samples", [0, -1])
def test_there_must_be_a_point(n_samples):
    with pytest.raises(ValueError, match=f"n_samples is {n_samples}"):
        SideInformation.build(n_samples)
