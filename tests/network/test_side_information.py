"""Test side information: contraction of must-links, errors, and selection of rows."""

import itertools
import pickle
from functools import partial
from operator import attrgetter, call

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


def draw_relations(seed, n_samples=12):
    """Draw relations that agree with random classes, and three random preferences."""
    rng = np.random.default_rng(seed)
    relations = true_relations(rng, rng.integers(3, size=n_samples), n_samples)
    soft = np.column_stack([rng.choice(n_samples, size=(3, 2)), 3 * rng.normal(size=3)])
    return relations | {"preferences": soft}


@given(seed=st.integers(0, 100_000))
def test_nodes_are_the_must_link_components_of_networkx_in_any_order_of_pairs(seed):
    """With ``sampling="chunklets"`` the nodes are the same, but each has multiplicity one."""
    relations, rng = draw_relations(seed), np.random.default_rng(seed)
    must, cannot = relations["must_link"], relations["cannot_link"]
    side = SideInformation.build(
        12,
        must_link=rng.permutation(np.concatenate([must, must[:, ::-1], [[3, 3]]]), axis=0),
        cannot_link=rng.permutation(np.concatenate([cannot[:, ::-1], cannot]), axis=0),
    )
    graph = nx.empty_graph(12)
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


def test_preferences_of_the_same_pair_add_up_and_infinite_ones_become_hard():
    preferences = [
        [0, 1, 0.5], [1, 0, 0.25], [2, 3, np.inf], [3, 4, 1.0], [2, 4, 1.0], [0, 5, -np.inf],
        [1, 5, 2.0], [5, 1, -2.0], [2, 3, -7.0], [0, 5, 3.0], [0, 2, -1e300],
    ]  # fmt: skip
    side = SideInformation.build(6, preferences=preferences)
    assert side.node_of.tolist() == [0, 1, 2, 2, 3, 4]
    edges = dict(zip(map(tuple, side.graph.edges.tolist()), side.graph.weights, strict=True))
    assert edges == {(0, 1): 0.75, (2, 3): 2.0, (0, 4): -np.inf, (0, 2): -1e300}


def test_labels_and_allowed_classes_become_masks_of_nodes():
    allowed = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 0]], bool)
    side = SideInformation.build(4, labels=allowed, must_link=[[0, 1]])
    expected = [[0, 1, 0], [1, 1, 1], [1, 0, 0]]
    np.testing.assert_array_equal(side.mask(3), np.array(expected, bool))
    for side in (SideInformation.build(2), SideInformation.build(2, labels=[-1, -1])):
        assert side.is_trivial
        assert side.mask(2) is None


@given(seed=st.integers(0, 100_000))
def test_must_link_chain_is_a_shortest_path(seed):
    must = draw_relations(seed)["must_link"]
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


ALLOWED_CLASSES = [[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1], [1, 1, 1]]
test_side_information_refuses_contradictory_and_invalid_relations = refused(
    partial(SideInformation.build, 5),
    ({"must_link": [[0, 1], [1, 2]], "cannot_link": [[2, 0]]}, "2 - 1 - 0"),
    ({"must_link": [[0, 1]], "preferences": [[1, 0, -np.inf]]}, "1 - 0"),
    ({"labels": [0, -1, 1, -1, -1], "must_link": [[0, 1], [2, 1]]}, "0 - 1 - 2"),
    ({"labels": [0, -1, 0, -1, -1], "must_link": [[0, 1]], "cannot_link": [[1, 2]]}, "class 0"),
    ({"labels": [[1, 0], [0, 1], [1, 1], [1, 1], [1, 1]], "must_link": [[0, 1]]}, "0 - 1"),
    (
        {"labels": ALLOWED_CLASSES, "must_link": [[0, 1], [1, 2]]},
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


# ---------------------------------------------------------------------------- selection of rows


def pairs_to_set(pairs):
    """Return the rows of an array as a set of tuples."""
    return {tuple(row) for row in np.asarray(pairs).tolist()}


@given(seed=st.integers(0, 100_000))
def test_selecting_points_keeps_the_pairs_among_them_with_new_numbers(seed):
    rng = np.random.default_rng(seed)
    pairs = np.column_stack([rng.integers(10, size=(8, 2)), rng.normal(size=8)])
    rows = rng.permutation(10)[: rng.integers(1, 11)]
    given_pairs = pairs.copy()
    whole = PairsAmong(given_pairs, 10)
    selected, names = whole[rows], rows.tolist()
    expected = {
        (names.index(i), names.index(j), w) for i, j, w in pairs.tolist() if {i, j} <= set(names)
    }
    assert pairs_to_set(selected) == expected
    assert len(selected) == selected.n_samples == len(rows)
    assert pairs_to_set(whole[np.isin(range(10), rows)]) == pairs_to_set(whole[np.sort(rows)])
    # The original stays unchanged, even if the selection and the input array are overwritten.
    selected.pairs[:] = given_pairs[:] = 0
    assert pairs_to_set(pickle.loads(pickle.dumps(whole))) == pairs_to_set(pairs)


test_pairs_and_labels_that_do_not_fit_are_refused = refused(
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


# ---------------------------------------------------------------------------- restricted networks


@given(seed=st.integers(0, 100_000), sampling=st.sampled_from(["points", "chunklets"]))
def test_a_restricted_network_equals_the_network_built_from_the_selected_rows(seed, sampling):
    """Compare with a network built from all pairs of selected rows that the original implies."""
    relations = draw_relations(seed)
    labels = np.full(12, -1)
    side = SideInformation.build(12, **relations, labels=labels, sampling=sampling)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(12)[: rng.integers(1, 13)]
    restricted = side.restrict(rows)
    nodes = side.node_of[rows]
    same_node = np.argwhere(np.triu(nodes[:, None] == nodes, 1))
    edges = [
        (int(np.flatnonzero(nodes == a)[0]), int(np.flatnonzero(nodes == b)[0]), w)
        for (a, b), w in zip(side.graph.edges, side.graph.weights, strict=True)
        if a in nodes and b in nodes
    ]
    expected = contracted(len(rows), must_link=same_node, preferences=edges, sampling=sampling)
    for part in ("node_of", "graph.edges", "graph.weights", "first_points"):
        np.testing.assert_array_equal(*map(attrgetter(part), (restricted, expected)))
    if sampling == "points" or not side.points_are_sampled:
        np.testing.assert_array_equal(restricted.multiplicity, expected.multiplicity)


@given(seed=st.integers(0, 100_000))
def test_must_links_of_a_network_rebuild_its_nodes(seed):
    side = SideInformation.build(12, **draw_relations(seed))
    rebuilt = SideInformation.build(12, must_link=side.restrict(slice(None)).must_link)
    np.testing.assert_array_equal(rebuilt.node_of, side.node_of)


def test_restrict_keeps_labels_and_allowed_classes_of_whole_chunklets():
    """Row 1 keeps the label of row 0, its must-linked partner, even if row 0 is dropped."""
    side = SideInformation.build(4, must_link=[[0, 1]], labels=[2, -1, -1, 0])
    assert side.restrict([2, 1]).labels.tolist() == [-1, 2]
    assert side.restrict([2]).labels is None
    allowed = np.array([[1, 0], [1, 1], [0, 1], [1, 1]], dtype=bool)
    side = SideInformation.build(4, must_link=[[0, 1]], labels=allowed)
    assert side.restrict([2, 1]).allowed.tolist() == [[False, True], [True, False]]


# ---------------------------------------------------------------------------- related groups


@given(seed=st.integers(0, 100_000))
def test_related_groups_are_connected_components(seed):
    """A preference of log-odds zero connects no points."""
    relations = draw_relations(seed)
    relations["preferences"][0, 2] = 0.0
    graph = nx.empty_graph(12)
    soft = relations["preferences"][1:, :2].astype(int)
    for pairs in (relations["must_link"], relations["cannot_link"], soft):
        graph.add_edges_from(pairs.tolist())
    groups = related_groups(12, **relations)
    components = sorted(nx.connected_components(graph), key=min)
    assert [set(np.flatnonzero(groups == j)) for j in range(len(components))] == components


# ---------------------------------------------------------------------------- names of rows


@given(seed=st.integers(0, 100_000))
def test_positions_translates_names_of_rows_into_indices(seed):
    rng = np.random.default_rng(seed)
    names = rng.choice(1000, size=9, replace=False)
    pairs = rng.integers(9, size=(5, 2))
    texts = names.astype(str)
    assert len(positions([], names).pairs) == len(PairsAmong([], 3)[[0, 2]].pairs) == 0
    for index in (names, texts, names.tolist(), pd.Index(names), pl.Series(texts)):
        indices = positions(np.asarray(index)[pairs], index)
        np.testing.assert_array_equal(indices, pairs)
        assert indices.n_samples == 9


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_positions_accepts_tables_of_relations(frame):
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=["ann", "bob", "eve"])
    table = frame({"one": ["eve", "bob"], "other": ["ann", "eve"], "odds": [1.5, -0.5]})
    assert positions(table[["one", "other"]], X.index).pairs.tolist() == [[2, 0], [1, 2]]
    assert positions(table, X.index).pairs.tolist() == [[2.0, 0.0, 1.5], [1.0, 2.0, -0.5]]


test_positions_refuses_unknown_and_ambiguous_names = refused(
    positions,
    ([("ann", "Bob")], ["ann", "bob"], r"pairs\[0\] names 'Bob', .* no row; .*'ann', 'bob'"),
    ([("ann", "bob")], ["ann", "ann", "bob"], "rows 0 and 1 are both named 'ann'.*range"),
    ([("ann", "bob", 1, 2)], ["ann", "bob"], r"shape \(1, 4\)"),
)
