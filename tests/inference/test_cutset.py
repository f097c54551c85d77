"""Conditioning on a cutset, and the budgets of the engine exact."""

import numpy as np
import pytest
from grids_and_chains import grid
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import networks

from cgmm.inference import cutset as module
from cgmm.inference import enumerate_assignments, inference_cost
from cgmm.inference.cutset import cutset, plan_cutset
from cgmm.inference.exact import exact
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Graph, NetworkError, TooCostlyError, log_weight, simplify


@settings(deadline=None, max_examples=150)
@given(
    problem=networks(max_nodes=7, p_forbidden=0.3),
    max_bytes=st.sampled_from([100, 500, 2000]),
    scale=st.sampled_from([1.0, 300.0]),
)
def test_a_cutset_equals_enumeration(problem, max_bytes, scale):
    graph, unary = problem
    graph, unary = simplify(graph), unary * scale
    infer, oracle = cutset(graph, max_bytes=max_bytes), enumerate_assignments(graph)
    try:
        expected = oracle(unary)
    except ValueError:
        for question in (infer, infer.most_probable):
            with pytest.raises(NetworkError, match="no joint assignment of"):
                question(unary)
        return
    found = infer(unary)
    np.testing.assert_allclose(found.nodes, expected.nodes, rtol=0, atol=1e-11)
    assert found.log_z == pytest.approx(expected.log_z, rel=1e-13, abs=1e-11)
    top = log_weight(graph, unary, oracle.most_probable(unary))
    best = log_weight(graph, unary, infer.most_probable(unary))
    assert best == pytest.approx(top, rel=1e-13, abs=1e-11)


def dense(n, seed=0):
    """Seven of ten pairs tied, K = 3, an assignment being possible."""
    rng = np.random.default_rng(seed)
    edges = np.array([[i, j] for i in range(n) for j in range(i) if rng.random() < 0.7])
    differ = (edges[:, 0] - edges[:, 1]) % 3 > 0
    weights = np.where(
        differ & (rng.random(len(edges)) < 0.3), -np.inf, rng.normal(size=len(edges))
    )
    return simplify(Graph(n, edges, weights)), rng.normal(size=(n, 3))


def test_a_dense_graph_is_answered_in_less_memory_than_its_junction_tree_takes():
    graph, unary = dense(12)
    plan = plan_cutset(graph, 3, 30_000, 1e9)
    assert 1 <= len(plan.chosen) <= 5
    assert plan.n_bytes <= 30_000
    infer = exact(graph, max_bytes=30_000)
    assert [answer.engine for answer in infer.answered(unary)] == ["cutset"]
    found, expected = infer(unary), junction_tree(graph)(unary)
    np.testing.assert_allclose(found.nodes, expected.nodes, rtol=0, atol=1e-11)
    assert found.log_z == pytest.approx(expected.log_z, rel=1e-12)
    with pytest.raises(TooCostlyError, match=r"more than 29\.3 KiB"):
        junction_tree(graph, max_bytes=30_000)(unary)


def test_each_component_has_a_cost_of_its_own():
    """A ring beside a dense part stays with the junction tree, however dear the other is."""
    graph, unary = dense(12)
    ring = np.array([[12, 13], [13, 14], [14, 15], [12, 15]])
    edges = np.concatenate([graph.edges, ring])
    both = Graph(16, edges, np.append(graph.weights, np.ones(4)))
    unary = np.concatenate([unary, np.zeros((4, 3))])
    infer = exact(both, max_bytes=30_000)
    engines = {answer.engine: answer for answer in infer.answered(unary)}
    assert {name: answer.n_nodes for name, answer in engines.items()} == {
        "junction_tree": 4, "cutset": 12,
    }  # fmt: skip
    assert engines["junction_tree"].n_bytes < 10_000
    assert infer(unary).log_z == pytest.approx(junction_tree(both)(unary).log_z, rel=1e-12)


def mixed_grid(n, seed=0):
    rng = np.random.default_rng(seed)
    edges = grid(n, n)
    weights = np.where(rng.random(len(edges)) < 0.3, -np.inf, rng.normal(size=len(edges)))
    return simplify(Graph(n * n, edges, weights)), rng.normal(size=(n * n, 3))


def test_a_refusal_names_both_costs_both_budgets_and_an_engine_that_answers():
    graph, unary = mixed_grid(8)
    with pytest.raises(TooCostlyError) as caught:
        exact(graph, max_bytes=100_000, max_operations=1e5)(unary)
    message = str(caught.value)
    for word in ("64 in all", "112 edges", "97.7 KiB", "1e+05", "width of", "inference='auto'"):
        assert word in message
    assert len(caught.value.nodes) == 64
    wide, unary = mixed_grid(30)
    with pytest.raises(TooCostlyError, match=r"at least .* operations \(max_operations is 2e\+11"):
        exact(wide)(unary)


def test_errors_name_nodes_of_the_whole_graph_through_all_reductions():
    """K = 2: a dense soft part that is contracted; all of its members are named."""
    rng = np.random.default_rng(0)
    pairs = np.array([[i, j] for i in range(30) for j in range(i)])
    soft = Graph(70, 10 + pairs, rng.normal(size=len(pairs)))
    twins = np.column_stack([10 + np.arange(30), 40 + np.arange(30)])
    edges, weights = np.concatenate([soft.edges, twins]), np.append(soft.weights, [-np.inf] * 30)
    with pytest.raises(TooCostlyError) as caught:
        exact(Graph(70, edges, weights), max_operations=1e6)(np.zeros((70, 2)))
    np.testing.assert_array_equal(caught.value.nodes, np.arange(10, 70))


def test_progress_is_told(monkeypatch, capsys):
    monkeypatch.setattr(module, "BETWEEN_LINES", -1.0)
    graph, unary = dense(8)
    exact(graph, max_bytes=5_000, verbose=1)(unary)
    lines = capsys.readouterr().out.splitlines()
    total = 3 ** len(plan_cutset(graph, 3, 5_000, 1e9).chosen)
    assert lines[0].startswith(f"exact: 1 of {total} assignments of a cutset, ")
    assert lines[-1].startswith(f"exact: {total} of {total} assignments of a cutset, 0 s to go")
    exact(graph, max_bytes=5_000)(unary)
    assert not capsys.readouterr().out


def test_an_interrupt_is_not_swallowed(monkeypatch):
    graph, unary = dense(8)
    infer = exact(graph, max_bytes=5_000)
    expected = infer(unary)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "log_weight", interrupt)
    with pytest.raises(KeyboardInterrupt):
        infer(unary)
    monkeypatch.undo()
    np.testing.assert_array_equal(infer(unary).nodes, expected.nodes)


def test_costs_are_told_without_the_work():
    graph, _ = mixed_grid(8)
    (answer,) = inference_cost(graph, 3)
    assert answer.engine == "junction_tree"
    assert (answer.n_nodes, answer.n_edges, answer.width) == (64, 112, 8)
    assert answer.exact
    assert inference_cost(dense(12)[0], 3, max_bytes=100_000)[0].engine == "cutset"
    (wide,) = inference_cost(mixed_grid(30)[0], 3)
    assert (wide.engine, wide.n_nodes) == ("none", 900)
    assert not wide.exact
    labels = np.arange(64) % 3
    mask = np.ones((64, 3), dtype=bool)
    mask[::2] = labels[::2, None] == np.arange(3)
    soft = graph._replace(weights=np.ones(len(graph.weights)))
    assert inference_cost(soft, 3, allowed=mask)[0].n_operations < answer.n_operations / 10
