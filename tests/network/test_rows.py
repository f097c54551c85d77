"""Relations go with the rows that they speak of: selected, named, grouped."""

import itertools
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, train_test_split

from cgmm.network import PairsAmong, SideInformation, positions, related_groups
from cgmm.network.side_information import contracted


def random_relations(seed, n_samples=12):
    """Must-links, cannot-links and preferences that agree with random classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_samples)
    pairs = np.array(list(itertools.combinations(range(n_samples), 2)))
    pairs = rng.permutation(pairs[rng.random(len(pairs)) < 0.2], axis=0)
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    soft = rng.choice(n_samples, size=(3, 2))
    return {
        "must_link": pairs[same],
        "cannot_link": pairs[~same],
        "preferences": np.column_stack([soft, rng.normal(size=3) * 3]),
    }


def as_tuples(pairs):
    return {tuple(row) for row in np.asarray(pairs).tolist()}


# ---------------------------------------------------------------------------- selection


@given(seed=st.integers(0, 100_000))
def test_a_selection_holds_the_relations_within_it(seed):
    """Word for word: both ends are selected, and are called by their new places."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(10, size=(8, 2))
    rows = rng.permutation(10)[: rng.integers(1, 11)]
    selected = PairsAmong(pairs, 10)[rows]
    names = rows.tolist()
    expected = {(names.index(i), names.index(j)) for i, j in pairs.tolist() if {i, j} <= set(names)}
    assert as_tuples(selected) == expected
    assert len(selected) == selected.n_samples == len(rows)
    mask = np.isin(range(10), rows)
    assert as_tuples(PairsAmong(pairs, 10)[mask]) == as_tuples(PairsAmong(pairs, 10)[np.sort(rows)])


def test_log_odds_travel_along():
    soft = PairsAmong([[0, 3, -1.5], [1, 2, 0.25]], 4)
    assert soft[[3, 0]].pairs.tolist() == [[1.0, 0.0, -1.5]]
    side = SideInformation.build(2, preferences=soft[[3, 0]])
    assert side.graph.weights.tolist() == [-1.5]


def test_what_is_selected_from_is_left_alone():
    given_pairs = np.array([[0, 4], [1, 2]])
    pairs = PairsAmong(given_pairs, 5)
    pairs[::-1].pairs[:] = 0
    given_pairs[:] = 3
    assert as_tuples(pairs) == {(0, 4), (1, 2)}
    assert as_tuples(pickle.loads(pickle.dumps(pairs))) == {(0, 4), (1, 2)}


def test_scikit_learn_selects_them_with_the_rows():
    X = np.arange(10.0)[:, None]
    pairs = PairsAmong([[0, 9], [3, 4], [8, 2]], 10)
    _, _, of_train, of_test = train_test_split(X, pairs, random_state=0)
    train, test = train_test_split(X, random_state=0)
    for part, kept in [(train, of_train), (test, of_test)]:
        true = {(i, j) for i, j in as_tuples(pairs) if i in part and j in part}
        assert {(part[i, 0], part[j, 0]) for i, j in as_tuples(kept)} == true


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PairsAmong([[0, 5]], 5), r"pairs\[0\] is \[0, 5\]"),
        (lambda: PairsAmong([[0, 1, 1.0], [2, 5, 1.0]], 5), r"pairs\[1\]"),
        (lambda: PairsAmong([], 0), "n_samples is 0"),
        (lambda: PairsAmong([[0, 1]], 5)[[2, 1, 2]], r"row 2 is selected 2 times.*np.unique"),
        (lambda: PairsAmong([[0, 1]], 5)[[]], "no rows are selected"),
        (lambda: PairsAmong([[0, 1]], 5)[3], "no rows are selected"),
        (lambda: SideInformation.build(4, must_link=PairsAmong([[0, 1]], 5)), "among 5 samples, "),
        (
            lambda: SideInformation.build(4, preferences=PairsAmong([[0, 1, 2.0]], 5)),
            "preferences holds relations among 5 samples, but 4 came",
        ),
        (lambda: SideInformation.build(4, must_link=[[0, 7]]), r"PairsAmong\(must_link, n_before"),
    ],
)
def test_what_cannot_be_meant_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_there_are_no_items():
    with pytest.raises(TypeError, match="attribute pairs"):
        list(PairsAmong([[0, 1]], 5))


# ---------------------------------------------------------------------------- the network


@given(seed=st.integers(0, 100_000), sampling=st.sampled_from(["points", "chunklets"]))
def test_a_restricted_network_is_what_closure_says_of_the_rows(seed, sampling):
    """Against the definition: build it from all pairs that the whole network implies."""
    relations = random_relations(seed)
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
def test_all_rows_are_the_network_itself(seed):
    side = SideInformation.build(12, **random_relations(seed))
    again = side.restrict(slice(None))
    for name in ("node_of", "multiplicity", "first_points"):
        np.testing.assert_array_equal(getattr(again, name), getattr(side, name), err_msg=name)
    np.testing.assert_array_equal(again.graph.edges, side.graph.edges)
    np.testing.assert_array_equal(again.graph.weights, side.graph.weights)
    # Whatever must-links are kept: they tie what they tied.
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
    relations = random_relations(seed)
    relations["preferences"][0, 2] = 0.0
    graph = nx.Graph()
    graph.add_nodes_from(range(12))
    graph.add_edges_from([*relations["must_link"].tolist(), *relations["cannot_link"].tolist()])
    graph.add_edges_from(relations["preferences"][1:, :2].astype(int).tolist())
    groups = related_groups(12, **relations)
    components = sorted(nx.connected_components(graph), key=min)
    assert [set(np.flatnonzero(groups == j)) for j in range(len(components))] == components


def test_a_split_by_groups_cuts_no_relation():
    pairs = np.random.default_rng(0).permutation(60)[:40].reshape(-1, 2)
    groups, X = related_groups(60, must_link=pairs), np.zeros((60, 1))

    def n_kept(splits):
        return [len(PairsAmong(pairs, 60)[rows].pairs) for split in splits for rows in split]

    whole, cut = GroupKFold(3).split(X, groups=groups), KFold(3).split(X)
    assert sum(n_kept(whole)) == 3 * len(pairs)
    assert sum(n_kept(cut)) < 3 * len(pairs)


# ---------------------------------------------------------------------------- names


@given(seed=st.integers(0, 100_000))
def test_names_are_found_where_they_stand(seed):
    rng = np.random.default_rng(seed)
    names = rng.choice(1000, size=9, replace=False)
    pairs = rng.integers(9, size=(5, 2))
    texts = names.astype(str)
    for index in (names, texts, names.tolist(), pd.Index(names), pl.Series(texts)):
        found = positions(np.asarray(index)[pairs], index)
        np.testing.assert_array_equal(found, pairs)
        assert found.n_samples == 9


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_beside_tables(frame):
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=["ann", "bob", "eve"])
    table = frame({"one": ["eve", "bob"], "other": ["ann", "eve"], "odds": [1.5, -0.5]})
    assert positions(table[["one", "other"]], X.index).pairs.tolist() == [[2, 0], [1, 2]]
    assert positions(table, X.index).pairs.tolist() == [[2.0, 0.0, 1.5], [1.0, 2.0, -0.5]]


@pytest.mark.parametrize(
    ("pairs", "names", "message"),
    [
        ([("ann", "Bob")], ["ann", "bob"], r"pairs\[0\] names 'Bob', .* no row; .*'ann', 'bob'"),
        ([(0, None)], [0, 1], r"pairs\[0\] names None"),
        ([("ann", "bob")], ["ann", "ann", "bob"], "rows 0 and 1 are both named 'ann'.*range"),
        ([("ann", "bob", 1, 2)], ["ann", "bob"], r"shape \(1, 4\)"),
        (["ann", "bob"], ["ann", "bob"], r"shape \(2,\)"),
    ],
)
def test_names_that_are_none_are_named(pairs, names, message):
    with pytest.raises(ValueError, match=message):
        positions(pairs, names)


def test_no_pair_is_no_pair():
    assert len(positions([], ["a", "b"]).pairs) == 0
    assert len(PairsAmong([], 3)[[0, 2]].pairs) == 0
