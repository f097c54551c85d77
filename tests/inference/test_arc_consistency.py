"""Arc consistency: no assignment is lost, and nothing is left that one known neighbour forbids."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmm.inference.arc_consistency import exclude_states, forbidden_pairs
from cgmm.network import Graph, NetworkError


def by_definition(graph, allowed):
    """Node by node, until nothing changes."""
    allowed, before = allowed.copy(), None
    while before is None or (allowed != before).any():
        before = allowed.copy()
        for (a, b), w in zip(graph.edges, graph.weights, strict=True):
            for j, i in ((a, b), (b, a)):
                if w == -np.inf and allowed[j].sum() == 1:
                    allowed[i] &= ~allowed[j]
    return allowed


@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 4))
def test_states_are_excluded_as_the_definition_says_and_no_assignment_is_lost(seed, n, k):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(n), 2)), dtype=int).reshape(-1, 2)
    edges = pairs[rng.random(len(pairs)) < 0.5]
    graph = Graph(n, edges, np.where(rng.random(len(edges)) < 0.7, -np.inf, 3.0))
    allowed = rng.random((n, k)) < 0.6
    allowed[np.arange(n), rng.integers(k, size=n)] = True
    hard = graph.edges[graph.weights == -np.inf]
    possible = [
        z
        for z in itertools.product(*(np.flatnonzero(row) for row in allowed))
        if all(z[a] != z[b] for a, b in hard)
    ]
    expected = by_definition(graph, allowed)
    if not expected.any(axis=1).all():
        assert not possible
        with pytest.raises(NetworkError, match=r"no joint assignment of .* is possible") as caught:
            exclude_states(forbidden_pairs(graph), allowed)
        assert len(caught.value.nodes) >= 2
        return
    before = allowed.copy()
    left = exclude_states(forbidden_pairs(graph), allowed)
    np.testing.assert_array_equal(left, expected)
    np.testing.assert_array_equal(allowed, before)
    assert all(left[np.arange(n), z].all() for z in possible)


def test_a_contradiction_blames_the_node_and_those_who_took_its_states():
    graph = Graph(6, np.array([[1, 4], [1, 5], [0, 1]]), np.array([-np.inf, -np.inf, 2.0]))
    allowed = np.ones((6, 2), dtype=bool)
    allowed[4] = [True, False]
    allowed[5] = [False, True]
    with pytest.raises(
        NetworkError, match=r"nodes 5, 4 and 1 is possible.*node 1, .* has no state"
    ):
        exclude_states(forbidden_pairs(graph), allowed)
