"""Test side information: contraction, errors for contradictions, selection of rows."""

import itertools
import pickle
from functools import partial
from operator import call

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from answers import true_relations
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from cgmm.network import PairsAmong, SideInformation, must_link_chain, positions, related_groups
from cgmm.network.side_information import contracted


def random_relations(seed, n_samples=12):
    """Return true classes and relations that agree with them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_samples)
    return y, *true_relations(rng, y, n_samples).values()


@given(seed=st.integers(0, 100_000))
def test_closure_equals_networkx_in_whatever_order_and_chunklets_are_one_node_each(seed):
    y, must, cannot = random_relations(seed)
    rng = np.random.default_rng(seed)
    side = SideInformation.build(
        len(y),
        must_link=rng.permutation(np.concatenate([must, must[:, ::-1], [[3, 3]]]), axis=0),
        cannot_link=rng.permutation(np.concatenate([cannot[:, ::-1], cannot]), axis=0),
    )
    graph = nx.Graph()
    graph.add_nodes_from(range(len(y)))
    graph.add_edges_from(must.tolist())
    components = sorted(nx.connected_components(graph), key=min)
    for j, component in enumerate(components):
        assert (side.node_of[sorted(component)] == j).all()
        assert side.multiplicity[j] == len(component)
    forbidden = {tuple(sorted(side.node_of[list(pair)])) for pair in cannot}
    assert sorted(forbidden) == list(map(tuple, side.graph.edges))
    assert (side.graph.weights == -np.inf).all()
    chunklets = SideInformation.build(12, must_link=must, sampling="chunklets")
    assert (chunklets.multiplicity == 1).all()
    np.testing.assert_array_equal(chunklets.node_of, side.node_of)


def test_preferences_add_and_infinite_ones_are_hard():
    side = SideInformation.build(
        6,
        preferences=[
            [0, 1, 0.5], [1, 0, 0.25], [2, 3, np.inf], [3, 4, 1.0], [2, 4, 1.0], [0, 5, -np.inf],
            [1, 5, 2.0], [5, 1, -2.0], [2, 3, -7.0], [0, 5, 3.0], [0, 2, -1e300],
        ],
    )  # fmt: skip
    assert side.node_of.tolist() == [0, 1, 2, 2, 3, 4]
    edges = dict(zip(map(tuple, side.graph.edges.tolist()), side.graph.weights, strict=True))
    assert edges == {(0, 1): 0.75, (2, 3): 2.0, (0, 4): -np.inf, (0, 2): -1e300}


def test_labels_and_allowed_classes_become_masks_on_nodes():
    allowed = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 0]], bool)
    side = SideInformation.build(4, labels=allowed, must_link=[[0, 1]])
    expected = [[0, 1, 0], [1, 1, 1], [1, 0, 0]]
    np.testing.assert_array_equal(side.mask(3), np.array(expected, bool))
    for nothing in (SideInformation.build(2), SideInformation.build(2, labels=[-1, -1])):
        assert nothing.is_trivial
        assert nothing.mask(2) is None


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


test_contradictions_and_nonsense_are_shown = refused(
    partial(SideInformation.build, 5),
    ({"must_link": [[0, 1], [1, 2]], "cannot_link": [[2, 0]]}, "2 - 1 - 0"),
    ({"must_link": [[0, 1]], "preferences": [[1, 0, -np.inf]]}, "1 - 0"),
    ({"labels": [0, -1, 1, -1, -1], "must_link": [[0, 1], [2, 1]]}, "0 - 1 - 2"),
    ({"labels": [0, -1, 0, -1, -1], "must_link": [[0, 1]], "cannot_link": [[1, 2]]}, "class 0"),
    ({"labels": [[1, 0], [0, 1], [1, 1], [1, 1], [1, 1]], "must_link": [[0, 1]]}, "0 - 1"),
    (
        {
            "labels": [[1, 1, 0], [0, 1, 1], [1, 0, 1], *[[1] * 3] * 2],
            "must_link": [[0, 1], [1, 2]],
        },
        "no class is allowed for all of them",
    ),
    ({"labels": [[1, 0], [0, 0], [1, 1], [1, 1], [1, 1]]}, r"labels\[1\] allows no class"),
    ({"labels": [[1, 2]] * 5}, "must be booleans"),
    ({"cannot_link": [[0, 1], [3, 3]]}, r"cannot_link\[1\] links point 3 to itself"),
    ({"preferences": [[2, 2, -np.inf]]}, "cannot differ from itself"),
    ({"preferences": [[0, 1, np.nan]]}, "must be numbers"),
    ({"must_link": [[0, -1]]}, "by index, 0 to 4"),
    ({"labels": [0, 1]}, r"must be \(5,\) integers"),
    ({"labels": [-2, 0, 0, 0, 0]}, "or -1 for unknown"),
    ({"sampling": "pairs"}, "sampling is 'pairs'"),
    ({"must_link": [[0, 1], [2]]}, r"must_link\[1\] is \[2\]; it must be \(P, 2\)"),
    ({"cannot_link": [[0, None]]}, r"cannot_link\[0\] holds None"),
    ({"preferences": [[0, 1], [2, 4]]}, r"shape \(2, 2\).*certainty=0.9"),
    ({"preferences": [[0, 1, "x"]]}, r"preferences\[0\] holds 'x'"),
    ({"labels": ["a"] * 5}, r"labels .*'a' in row 0.*number_classes\(labels\)\[1\]"),
)


# ---------------------------------------------------------------------------- rows


def as_tuples(pairs):
    return {tuple(row) for row in np.asarray(pairs).tolist()}


def relations_of_all_kinds(seed):
    """Return relations that agree with random classes, and three preferences."""
    rng = np.random.default_rng(seed)
    _, must, cannot = random_relations(seed)
    soft = np.column_stack([rng.choice(12, size=(3, 2)), rng.normal(size=3) * 3])
    return {"must_link": must, "cannot_link": cannot, "preferences": soft}


# ---------------------------------------------------------------------------- selection


@given(seed=st.integers(0, 100_000))
def test_a_selection_holds_the_relations_within_it(seed):
    """A relation stays if both of its points are selected, under their new numbers."""
    rng = np.random.default_rng(seed)
    pairs = np.column_stack([rng.integers(10, size=(8, 2)), rng.normal(size=8)])
    rows = rng.permutation(10)[: rng.integers(1, 11)]
    given_pairs = pairs.copy()
    whole = PairsAmong(given_pairs, 10)
    selected, names = whole[rows], rows.tolist()
    expected = {
        (names.index(i), names.index(j), w) for i, j, w in pairs.tolist() if {i, j} <= set(names)
    }
    assert as_tuples(selected) == expected
    assert len(selected) == selected.n_samples == len(rows)
    assert as_tuples(whole[np.isin(range(10), rows)]) == as_tuples(whole[np.sort(rows)])
    # The original stays unchanged, even if the selection or the input is overwritten.
    selected.pairs[:] = given_pairs[:] = 0
    assert as_tuples(pickle.loads(pickle.dumps(whole))) == as_tuples(pairs)


test_what_cannot_be_meant_is_refused = refused(
    call,
    (lambda: SideInformation.build(0), "n_samples is 0"),
    (lambda: SideInformation.build(2, labels=[0, 4]).mask(3), "point 1 has label 4"),
    (lambda: SideInformation.build(2, labels=np.ones((2, 2), bool)).mask(3), "has 2 columns"),
    (lambda: PairsAmong([[0, 1, 1.0], [2, 5, 1.0]], 5), r"pairs\[1\]"),
    (lambda: list(PairsAmong([[0, 1]], 5)), "attribute pairs"),
    (lambda: PairsAmong([[0, 1]], 5)[[2, 1, 2]], r"row 2 is selected 2 times.*np.unique"),
    (lambda: PairsAmong([[0, 1]], 5)[[]], "no rows are selected"),
    (lambda: SideInformation.build(4, must_link=PairsAmong([[0, 1]], 5)), "among 5 samples, "),
    (lambda: SideInformation.build(4, must_link=[[0, 7]]), r"PairsAmong\(must_link, n_before"),
    error=(ValueError, TypeError),
)


# ---------------------------------------------------------------------------- the network


@given(seed=st.integers(0, 100_000), sampling=st.sampled_from(["points", "chunklets"]))
def test_a_restricted_network_equals_the_network_of_the_rows(seed, sampling):
    """It equals the network built from all pairs that the whole network implies."""
    relations = relations_of_all_kinds(seed)
    labels = np.full(12, -1)
    side = SideInformation.build(12, **relations, labels=labels, sampling=sampling)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(12)[: rng.integers(1, 13)]
    left = side.restrict(rows)
    nodes = side.node_of[rows]
    together = np.argwhere(np.triu(nodes[:, None] == nodes, 1))
    edges = [
        (int(np.flatnonzero(nodes == a)[0]), int(np.flatnonzero(nodes == b)[0]), w)
        for (a, b), w in zip(side.graph.edges, side.graph.weights, strict=True)
        if a in nodes and b in nodes
    ]
    expected = contracted(len(rows), must_link=together, preferences=edges, sampling=sampling)
    np.testing.assert_array_equal(left.node_of, expected.node_of)
    np.testing.assert_array_equal(left.graph.edges, expected.graph.edges)
    np.testing.assert_array_equal(left.graph.weights, expected.graph.weights)
    np.testing.assert_array_equal(left.first_points, expected.first_points)
    if sampling == "points" or not side.points_are_sampled:
        np.testing.assert_array_equal(left.multiplicity, expected.multiplicity)


@given(seed=st.integers(0, 100_000))
def test_must_links_of_a_network_give_the_same_nodes_again(seed):
    side = SideInformation.build(12, **relations_of_all_kinds(seed))
    again = side.restrict(slice(None))
    closed = SideInformation.build(12, must_link=again.must_link)
    np.testing.assert_array_equal(closed.node_of, side.node_of)


def test_labels_and_sets_of_classes_stay_with_their_chunklets():
    side = SideInformation.build(4, must_link=[[0, 1]], labels=[2, -1, -1, 0])
    assert side.restrict([2, 1]).labels.tolist() == [-1, 2]
    assert side.restrict([2]).labels is None
    allowed = np.array([[1, 0], [1, 1], [0, 1], [1, 1]], dtype=bool)
    side = SideInformation.build(4, must_link=[[0, 1]], labels=allowed)
    assert side.restrict([2, 1]).allowed.tolist() == [[False, True], [True, False]]


# ---------------------------------------------------------------------------- groups


@given(seed=st.integers(0, 100_000))
def test_groups_are_connected_components(seed):
    relations = relations_of_all_kinds(seed)
    relations["preferences"][0, 2] = 0.0
    graph = nx.Graph()
    graph.add_nodes_from(range(12))
    graph.add_edges_from([*relations["must_link"].tolist(), *relations["cannot_link"].tolist()])
    graph.add_edges_from(relations["preferences"][1:, :2].astype(int).tolist())
    groups = related_groups(12, **relations)
    components = sorted(nx.connected_components(graph), key=min)
    assert [set(np.flatnonzero(groups == j)) for j in range(len(components))] == components


# ---------------------------------------------------------------------------- names


@given(seed=st.integers(0, 100_000))
def test_positions_of_names_are_found(seed):
    rng = np.random.default_rng(seed)
    names = rng.choice(1000, size=9, replace=False)
    pairs = rng.integers(9, size=(5, 2))
    texts = names.astype(str)
    assert len(positions([], names).pairs) == len(PairsAmong([], 3)[[0, 2]].pairs) == 0
    for index in (names, texts, names.tolist(), pd.Index(names), pl.Series(texts)):
        found = positions(np.asarray(index)[pairs], index)
        np.testing.assert_array_equal(found, pairs)
        assert found.n_samples == 9


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_of_relations_are_accepted(frame):
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=["ann", "bob", "eve"])
    table = frame({"one": ["eve", "bob"], "other": ["ann", "eve"], "odds": [1.5, -0.5]})
    assert positions(table[["one", "other"]], X.index).pairs.tolist() == [[2, 0], [1, 2]]
    assert positions(table, X.index).pairs.tolist() == [[2.0, 0.0, 1.5], [1.0, 2.0, -0.5]]


test_names_that_are_none_are_named = refused(
    positions,
    ([("ann", "Bob")], ["ann", "bob"], r"pairs\[0\] names 'Bob', .* no row; .*'ann', 'bob'"),
    ([("ann", "bob")], ["ann", "ann", "bob"], "rows 0 and 1 are both named 'ann'.*range"),
    ([("ann", "bob", 1, 2)], ["ann", "bob"], r"shape \(1, 4\)"),
)
