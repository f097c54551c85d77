"""Test which engines auto combines, and when it approximates."""

import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from small_networks import assert_as_enumerated, chain, complete, make_graph, networks

from cgmm.inference import enumerate_assignments, inference_cost
from cgmm.inference.auto import DividedNetwork, auto, exact
from cgmm.inference.belief_propagation import belief_propagation
from cgmm.inference.best_assignment import find_best
from cgmm.inference.costs import Budget
from cgmm.inference.reduction import MAX_PATTERNS
from cgmm.network import ApproximationWarning, Graph, NetworkError, TooCostlyError, simplify


@pytest.mark.parametrize("state", [0, 2])
def test_errors_name_nodes_of_the_whole_graph(state):
    # Two single nodes, a soft pair, a hard triangle and a cycle, in shuffled order.
    edges = [(2, 3), (4, 5), (4, 6), (5, 6), (7, 11), *(chain(5) + 7)]
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
    for question in (auto(graph), auto(graph).most_probable):
        with pytest.raises(NetworkError) as caught:
            question(unary)
        assert set(caught.value.nodes) == set(names[[7, 8]])


def wide_and_pair():
    """Return a graph of a pair, a single node, and thirty nodes that are all connected."""
    return make_graph(33, [(0, 1), *(complete(30) + 2)], 1.0)


def test_components_too_wide_are_approximated_with_one_warning():
    graph, unary = wide_and_pair(), np.random.default_rng(0).normal(size=(33, 4))
    infer = auto(graph)
    with pytest.warns(ApproximationWarning, match=r"30 nodes tied by 435 edges.*K = 4") as caught:
        found = infer(unary)
    assert len(caught) == 1
    assert issubclass(ApproximationWarning, ConvergenceWarning)
    with warnings.catch_warnings(action="error"):
        again, z = infer(unary), infer.most_probable(unary)
    pair, wide = (
        enumerate_assignments(make_graph(2, [(0, 1)], 1.0)),
        make_graph(30, complete(30), 1.0),
    )
    small, large = pair(unary[:2]), belief_propagation(wide)(unary[2:32])
    assert not found.exact
    assert found.residual == large.residual
    assert found.log_z == again.log_z
    together = small.log_z + large.log_z + np.log(np.exp(unary[32]).sum())
    assert found.log_z == pytest.approx(together, rel=1e-12)
    expected = np.concatenate([small.nodes, large.nodes])
    np.testing.assert_allclose(found.nodes[:32], expected, atol=1e-12)
    np.testing.assert_array_equal(z[:2], pair.most_probable(unary[:2]))
    np.testing.assert_array_equal(z[2:32], find_best(wide, unary[2:32], large.nodes).states)
    for word in ("width of at least 22", "435 edges", "128 TiB", "2 GiB", "inference='auto'"):
        with pytest.raises(TooCostlyError, match=word) as refusal:
            exact(graph)(unary)
    np.testing.assert_array_equal(refusal.value.nodes, np.arange(2, 32))
    engines = {answer.engine: answer.exact for answer in infer.results(unary)}
    assert engines == {"pairs": True, "belief_propagation": False}


def test_labels_that_take_a_component_apart_make_it_exact():
    graph, unary = wide_and_pair(), np.zeros((33, 4))
    unary[4:30, 1:] = -np.inf
    with warnings.catch_warnings(action="error"):
        found = auto(graph)(unary)
    assert found.exact
    left = enumerate_assignments(make_graph(4, complete(4), 1.0))
    of_four = np.zeros((4, 4))
    of_four[:, 0] = 26.0
    np.testing.assert_allclose(found.nodes[[2, 3, 30, 31]], left(of_four).nodes, atol=1e-12)


def test_isolated_nodes_cost_one_table():
    (answer,) = auto(make_graph(5, [], 1.0)).results(np.zeros((5, 3)))
    assert answer == ("independent", 5, 5, 0, True, 0, 8 * 15, 15)


def test_a_cheap_component_beside_an_expensive_one_stays_exact():
    ring = [(33, 34), (34, 35), (35, 36), (33, 36)]
    graph = make_graph(37, [*wide_and_pair().edges.tolist(), *ring], 1.0)
    for budgets in ({}, {"max_bytes": 30_000}, {"max_operations": 16}):
        with pytest.warns(ApproximationWarning):
            found = auto(graph, **budgets).results(np.zeros((37, 2)))
        sizes = {answer.engine: answer.n_nodes for answer in found}
        assert sizes == {"pairs": 2, "junction_tree": 4, "belief_propagation": 30}
    wide = make_graph(16, [*complete(12), *(np.array(ring) - 21)], 1.0)
    with pytest.warns(ApproximationWarning):
        found = auto(wide, max_bytes=30_000).results(np.zeros((16, 3)))
    sizes = {answer.engine: answer.n_nodes for answer in found}
    assert sizes == {"junction_tree": 4, "belief_propagation": 12}


@settings(max_examples=20)
@given(problem=networks(max_nodes=7, p_forbidden=0.3), seed=st.integers(0, 999))
def test_one_engine_answers_for_any_number_of_states_and_any_evidence(problem, seed):
    """Results equal enumeration, and no call influences the next."""
    graph, rng = problem[0], np.random.default_rng(seed)
    graph = simplify(graph)
    result = exact(graph)
    for states in (1, 2, 3, 2):
        for share in (0.0, 0.3, 0.6):
            unary = rng.normal(size=(graph.n_nodes, states)) * 3
            masked = rng.random(unary.shape) < share
            masked[np.arange(len(unary)), rng.integers(states, size=len(unary))] = False
            unary = np.where(masked, -np.inf, unary)
            if assert_as_enumerated(result, graph, unary):
                cost = inference_cost(graph, states, allowed=~masked)
                assert sorted(cost) == sorted(result.results(unary))


# ---------------------------------------------------------------------------- what is remembered


def patterns_of(graph, n):
    """Return unaries each of which restricts another node to one of three states."""
    for j in range(n):
        unary = np.random.default_rng(j).normal(size=(graph.n_nodes, 3))
        unary[j, 1:] = -np.inf
        yield unary


def test_a_pattern_of_evidence_is_divided_once_and_few_patterns_are_remembered(monkeypatch):
    """A fit needs two patterns, of data and prior; new points may bring any number."""
    graph, made = make_graph(3 * MAX_PATTERNS, chain(3 * MAX_PATTERNS), 1.0), []
    module = sys.modules["cgmm.inference.auto"]
    choose = module.choose_parts
    monkeypatch.setattr(module, "choose_parts", lambda *given: made.append(1) or choose(*given))
    asked = DividedNetwork(graph, Budget(2**31, 1e8), module._raise_too_costly)
    two = list(patterns_of(graph, 2))
    for unary in 3 * two:
        asked.marginals(unary)
    assert len(made) == 2
    for unary in patterns_of(graph, 3 * MAX_PATTERNS):
        found = asked.marginals(unary)
        assert len(asked.parts) <= MAX_PATTERNS
        assert found.log_z == exact(graph)(unary).log_z


def test_evidence_is_propagated_once_a_pattern_and_few_patterns_are_remembered(monkeypatch):
    module, made = sys.modules["cgmm.inference.reduction"], []
    propagate = module.propagate_evidence
    counted = lambda *given: made.append(1) or propagate(*given)  # noqa: E731
    monkeypatch.setattr(module, "propagate_evidence", counted)
    graph = make_graph(3 * MAX_PATTERNS, chain(3 * MAX_PATTERNS), 1.0)
    reduce, many = module.reducer(graph), list(patterns_of(graph, 3 * MAX_PATTERNS))
    for unary in 3 * many[:2]:
        reduce(unary)
    assert len(made) == 2
    for unary in 2 * many:
        reduce(unary)
    # None of the first patterns is remembered when it comes again.
    assert len(made) == 2 + 2 * len(many) - 2
