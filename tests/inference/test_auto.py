"""Test which engines `auto` chooses for the parts of a network, and when it approximates."""

import sys
import warnings
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from small_networks import (
    all_edges,
    assert_equals_enumeration,
    chain_edges,
    get_query_functions,
    make_graph,
    networks,
)

from cgmm.inference import enumerate_assignments, inference_cost
from cgmm.inference.auto import DividedNetwork, auto, exact
from cgmm.inference.belief_propagation import belief_propagation
from cgmm.inference.best_assignment import find_best
from cgmm.inference.costs import Budget
from cgmm.inference.reduction import MAX_PATTERNS
from cgmm.network import ApproximationWarning, Graph, NetworkError, TooCostlyError, simplify


@pytest.mark.parametrize("state", [0, 2])
def test_errors_of_auto_name_the_nodes_of_the_whole_graph(state):
    """Auto splits a graph into parts, but its errors must not use the numbering of a part."""
    # Use two single nodes, a soft pair, a hard triangle and a cycle, with shuffled node numbers.
    edges = [(2, 3), (4, 5), (4, 6), (5, 6), (7, 11), *(chain_edges(5) + 7)]
    weights = [1.5, *[-np.inf] * 3, -np.inf, -np.inf, 0.5, -1.0, 2.0]
    names = np.random.default_rng(0).permutation(12)
    graph = Graph(12, names[np.array(edges)], np.array(weights))
    with pytest.raises(NetworkError) as caught:
        auto(graph)(np.zeros((12, 2)))
    assert type(caught.value) is NetworkError
    assert sorted(caught.value.nodes) == sorted(names[[4, 5, 6]])
    unary = np.zeros((12, 3))
    unary[names[1]] = -np.inf
    with pytest.raises(NetworkError, match=f"node {names[1]} has only"):
        auto(graph)(unary)
    unary = np.zeros((12, 3))
    unary[names[[7, 8]]] = np.where(np.arange(3) == state, 0.0, -np.inf)
    for query in get_query_functions(auto(graph)):
        with pytest.raises(NetworkError) as caught:
            query(unary)
        assert set(caught.value.nodes) == set(names[[7, 8]])


def make_wide_graph_with_pair():
    """Build a graph of one pair, one single node, and 30 nodes that are all connected."""
    return make_graph(33, [(0, 1), *(all_edges(30) + 2)], 1.0)


def test_auto_approximates_only_the_wide_component_and_warns_once():
    """The pair stays exact, and log Z is the sum over the components."""
    graph, unary = make_wide_graph_with_pair(), np.random.default_rng(0).normal(size=(33, 4))
    infer = auto(graph)
    with pytest.warns(
        ApproximationWarning, match=r"30 nodes connected by 435 edges.*K = 4"
    ) as caught:
        result = infer(unary)
    assert len(caught) == 1
    assert issubclass(ApproximationWarning, ConvergenceWarning)
    with warnings.catch_warnings(action="error"):
        again, z = infer(unary), infer.most_probable(unary)
    pair = enumerate_assignments(make_graph(2, [(0, 1)], 1.0))
    wide = make_graph(30, all_edges(30), 1.0)
    small, large = pair(unary[:2]), belief_propagation(wide)(unary[2:32])
    assert not result.exact
    assert result.residual == large.residual
    assert result.log_z == again.log_z
    expected = small.log_z + large.log_z + np.log(np.exp(unary[32]).sum())
    assert result.log_z == pytest.approx(expected, rel=1e-12)
    expected = np.concatenate([small.nodes, large.nodes])
    np.testing.assert_allclose(result.nodes[:32], expected, atol=1e-12)
    np.testing.assert_array_equal(z[:2], pair.most_probable(unary[:2]))
    np.testing.assert_array_equal(z[2:32], find_best(wide, unary[2:32], large.nodes).states)
    for word in ("width of at least 22", "435 edges", "128 TiB", "2 GiB", "inference='auto'"):
        with pytest.raises(TooCostlyError, match=word) as refusal:
            exact(graph)(unary)
    np.testing.assert_array_equal(refusal.value.nodes, np.arange(2, 32))
    engines = {part.engine: part.exact for part in infer.results(unary)}
    assert engines == {"pairs": True, "belief_propagation": False}


def test_auto_is_exact_when_labels_split_a_wide_component():
    """Labels fix 26 of the 30 nodes, so enumeration of the other four gives the marginals."""
    graph, unary = make_wide_graph_with_pair(), np.zeros((33, 4))
    unary[4:30, 1:] = -np.inf
    with warnings.catch_warnings(action="error"):
        result = auto(graph)(unary)
    assert result.exact
    unary_of_four = np.zeros((4, 4))
    unary_of_four[:, 0] = 26.0
    expected = enumerate_assignments(make_graph(4, all_edges(4), 1.0))(unary_of_four).nodes
    np.testing.assert_allclose(result.nodes[[2, 3, 30, 31]], expected, atol=1e-12)


def test_auto_reports_isolated_nodes_as_one_part():
    (part,) = auto(make_graph(5, [], 1.0)).results(np.zeros((5, 3)))
    assert part == ("independent", 5, 5, 0, True, 0, 8 * 15, 15)


def test_auto_solves_a_cheap_component_exactly_beside_an_expensive_one():
    """A small budget of memory or operations affects only the components that exceed it."""

    def count_nodes_by_engine(graph, n_states, **budgets):
        with pytest.warns(ApproximationWarning):
            parts = auto(graph, **budgets).results(np.zeros((graph.n_nodes, n_states)))
        return {part.engine: part.n_nodes for part in parts}

    ring = np.array([(0, 1), (1, 2), (2, 3), (0, 3)])
    edges = np.concatenate([make_wide_graph_with_pair().edges, ring + 33])
    for budgets in ({}, {"max_bytes": 30_000}, {"max_operations": 16}):
        sizes = count_nodes_by_engine(make_graph(37, edges, 1.0), 2, **budgets)
        assert sizes == {"pairs": 2, "junction_tree": 4, "belief_propagation": 30}
    edges = np.concatenate([all_edges(12), ring + 12])
    sizes = count_nodes_by_engine(make_graph(16, edges, 1.0), 3, max_bytes=30_000)
    assert sizes == {"junction_tree": 4, "belief_propagation": 12}


@settings(max_examples=20)
@given(problem=networks(max_nodes=7, p_forbidden=0.3), seed=st.integers(0, 999))
def test_an_exact_engine_can_be_called_with_any_number_of_states_and_any_evidence(problem, seed):
    """Marginals equal enumeration in every call, so no call influences the next."""
    graph, rng = simplify(problem[0]), np.random.default_rng(seed)
    infer = exact(graph)
    for n_states in (1, 2, 3, 2):
        for p_masked in (0.0, 0.3, 0.6):
            unary = rng.normal(size=(graph.n_nodes, n_states)) * 3
            masked = rng.random(unary.shape) < p_masked
            masked[np.arange(len(unary)), rng.integers(n_states, size=len(unary))] = False
            unary = np.where(masked, -np.inf, unary)
            if assert_equals_enumeration(infer, graph, unary):
                cost = inference_cost(graph, n_states, allowed=~masked)
                assert sorted(cost) == sorted(infer.results(unary))


# ---------------------------------------------------------------------------- cached patterns

# A pattern of evidence is the set of states that each node may have. A fit needs two patterns, one
# for its data and one for the prior; predictions for new points may need any number of patterns.


def unaries_with_distinct_patterns(n_patterns):
    """Yield unaries of a long chain: in unary j, node j has only the first of three states."""
    for j in range(n_patterns):
        unary = np.random.default_rng(j).normal(size=(3 * MAX_PATTERNS, 3))
        unary[j, 1:] = -np.inf
        yield unary


def count_calls(monkeypatch, module_name, function_name):
    """Replace a function by a mock that calls it and counts the calls; return the mock."""
    spy = Mock(wraps=getattr(sys.modules[module_name], function_name))
    monkeypatch.setattr(sys.modules[module_name], function_name, spy)
    return spy


LONG_CHAIN = make_graph(3 * MAX_PATTERNS, chain_edges(3 * MAX_PATTERNS), 1.0)


def test_auto_splits_and_reduces_the_graph_once_for_each_cached_pattern_of_evidence(monkeypatch):
    unaries = list(unaries_with_distinct_patterns(3 * MAX_PATTERNS))
    expected = [exact(LONG_CHAIN)(unary).log_z for unary in unaries]
    divisions = count_calls(monkeypatch, "cgmm.inference.auto", "choose_parts")
    reductions = count_calls(monkeypatch, "cgmm.inference.reduction", "propagate_evidence")
    module = sys.modules["cgmm.inference.auto"]
    engine = DividedNetwork(LONG_CHAIN, Budget(2**31, 1e8), module._raise_too_costly)
    for unary in 3 * unaries[:2]:
        engine.marginals(unary)
    assert divisions.call_count == reductions.call_count == 2
    for unary, log_z in zip(2 * unaries, 2 * expected, strict=True):
        assert engine.marginals(unary).log_z == log_z
        assert len(engine.parts) <= MAX_PATTERNS
    # In the second round no pattern is still in the cache, because there are too many of them.
    assert divisions.call_count == reductions.call_count == 2 + 2 * len(unaries) - 2
