"""The table of engines and structures, crossed; and what auto puts together."""

import importlib
import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from small_networks import networks

from cgmm.inference import enumerate_assignments, inference_cost
from cgmm.inference.auto import auto, exact
from cgmm.inference.best_assignment import Assignment
from cgmm.inference.clique import clique
from cgmm.inference.independent import independent
from cgmm.inference.junction_tree import junction_tree
from cgmm.inference.pairs import pairs
from cgmm.network import (
    ApproximationWarning,
    Graph,
    Marginals,
    NetworkError,
    TooCostlyError,
    edgeless,
    log_weight,
    simplify,
)

# The module, not the engine of the same name.
module = importlib.import_module("cgmm.inference.auto")

ENGINES = {
    "independent": independent,
    "pairs": pairs,
    "clique": clique,
    "junction_tree": junction_tree,
    "auto": auto,
    "exact": exact,
    "enumerate": enumerate_assignments,
}
ANY = {"junction_tree", "auto", "exact", "enumerate"}


def tied(n_nodes, edges, weights):
    edges = np.array(list(edges), dtype=np.intp).reshape(-1, 2)
    return Graph(n_nodes, edges, np.broadcast_to(np.asarray(weights, float), len(edges)).copy())


CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
# Structure, and the engines that support it.
PROBLEMS = {
    "no edges": (edgeless(5), set(ENGINES)),
    "idle edges": (tied(5, [(0, 1), (1, 2)], 0.0), set(ENGINES)),
    "one node": (edgeless(1), set(ENGINES)),
    "soft pairs": (tied(5, [(0, 3), (4, 1)], [1.2, -0.7]), ANY | {"pairs"}),
    "hard pairs": (tied(5, [(0, 3), (4, 1)], -np.inf), ANY | {"pairs", "clique"}),
    "mixed pairs": (tied(5, [(0, 3), (4, 1)], [-np.inf, 2.0]), ANY | {"pairs"}),
    "pair named twice": (tied(5, [(0, 3), (3, 0)], [-np.inf, 2.0]), ANY | {"pairs", "clique"}),
    "hard triangle": (tied(5, [(0, 1), (0, 4), (1, 4)], -np.inf), ANY | {"clique"}),
    "hard triangle and pair": (
        tied(5, [(0, 1), (0, 4), (1, 4), (2, 3)], -np.inf),
        ANY | {"clique"},
    ),
    "soft triangle": (tied(5, [(0, 1), (0, 4), (1, 4)], [1.0, -1.0, -np.inf]), ANY),
    "path": (tied(5, [(0, 1), (1, 2), (2, 3)], [0.5, -np.inf, -2.0]), ANY),
    "star": (tied(5, [(4, j) for j in range(4)], [-np.inf, 1.0, -np.inf, 0.3]), ANY),
    "hard cycle": (tied(5, CYCLE, -np.inf), ANY),
    "all soft": (tied(5, itertools.combinations(range(5), 2), np.linspace(-1, 1, 10)), ANY),
}


@pytest.mark.parametrize("scale", [1.0, 900.0])
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", ENGINES)
def test_engine_on_structure(name, problem, scale):
    """Marginals, log Z and the best assignment as enumerated; or the engine says that it cannot."""
    graph, supported_by = PROBLEMS[problem]
    engine = ENGINES[name]
    if name not in supported_by:
        with pytest.raises(ValueError, match=f"'{name}'.*Choose an engine"):
            engine(graph)
        return
    unary = np.random.default_rng(0).uniform(-scale, scale, size=(graph.n_nodes, 3))
    infer, oracle = engine(graph), enumerate_assignments(graph)
    expected = oracle(unary)
    nodes, log_z, exact, _ = infer(unary)
    assert exact
    np.testing.assert_allclose(nodes, expected.nodes, rtol=0, atol=1e-10)
    assert log_z == pytest.approx(expected.log_z, rel=1e-13, abs=1e-10)
    np.testing.assert_array_equal(infer.most_probable(unary), oracle.most_probable(unary))


def mixture_of_components():
    """Two nodes by themselves, a soft pair, a hard triangle and a cycle, the names shuffled."""
    edges = [(2, 3), (4, 5), (4, 6), (5, 6), *((a + 7, b + 7) for a, b in CYCLE)]
    weights = [1.5, *[-np.inf] * 3, -np.inf, 0.5, -1.0, 2.0, -np.inf]
    names = np.random.default_rng(0).permutation(12)
    return Graph(12, names[np.array(edges)], np.array(weights)), names


def test_components_of_all_kinds_at_once():
    graph, _ = mixture_of_components()
    unary = np.random.default_rng(1).normal(size=(12, 3)) * 2
    infer = auto(graph)
    seen = {answer.engine: answer.n_nodes for answer in infer.answered(unary)}
    assert seen == {"pairs": 2, "clique": 3, "junction_tree": 5}
    nodes, log_z, exact, _ = infer(unary)
    expected = enumerate_assignments(graph)(unary)
    assert exact
    np.testing.assert_allclose(nodes, expected.nodes, atol=1e-12)
    assert log_z == pytest.approx(expected.log_z, rel=1e-13)
    best = enumerate_assignments(graph).most_probable(unary)
    np.testing.assert_array_equal(infer.most_probable(unary), best)


@pytest.mark.parametrize("state", [0, 2])
def test_errors_name_nodes_of_the_whole_graph(state):
    graph, names = mixture_of_components()
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
    """A pair, a node by itself, and thirty nodes of which every two are tied."""
    return tied(33, [(0, 1), *itertools.combinations(range(2, 32), 2)], 1.0)


def test_a_component_out_of_reach_is_named_with_its_cost_and_the_alternatives():
    with pytest.raises(TooCostlyError) as caught:
        exact(wide_and_pair())(np.zeros((33, 4)))
    np.testing.assert_array_equal(caught.value.nodes, np.arange(2, 32))
    for word in ("width of at least 22", "435 edges", "128 TiB", "2 GiB", "inference='auto'"):
        assert word in str(caught.value)


@pytest.fixture
def approximate(monkeypatch):
    """In the place of belief propagation an answer that anybody recognises."""
    asked = []

    def belief_propagation(graph):
        def infer(unary):
            asked.append(graph)
            return Marginals(np.full(unary.shape, 1 / unary.shape[1]), -5.0, False, 0.125)

        return infer

    def find_best(graph, unary, marginals):
        assert len(marginals) == graph.n_nodes
        return Assignment(np.arange(graph.n_nodes) % 4, exact=False)

    monkeypatch.setattr(module, "find_best", find_best)
    monkeypatch.setattr(module, "belief_propagation", belief_propagation)
    return asked


def test_what_is_too_wide_is_approximated_and_says_so_once(approximate):
    graph, unary = wide_and_pair(), np.random.default_rng(0).normal(size=(33, 4))
    infer = auto(graph)
    with pytest.warns(ApproximationWarning, match=r"30 nodes tied by 435 edges.*K = 4") as caught:
        found = infer(unary)
    assert len(caught) == 1
    assert issubclass(ApproximationWarning, ConvergenceWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again, z = infer(unary), infer.most_probable(unary)
    pair = enumerate_assignments(tied(2, [(0, 1)], 1.0))
    small = pair(unary[:2])
    assert not found.exact
    assert found.residual == 0.125
    assert found.log_z == again.log_z
    assert found.log_z == pytest.approx(small.log_z - 5 + np.log(np.exp(unary[32]).sum()))
    np.testing.assert_allclose(found.nodes[:2], small.nodes, atol=1e-12)
    np.testing.assert_array_equal(found.nodes[2:32], 0.25)
    np.testing.assert_array_equal(z[:2], pair.most_probable(unary[:2]))
    np.testing.assert_array_equal(z[2:32], np.arange(30) % 4)
    engines = {answer.engine: answer.exact for answer in infer.answered(unary)}
    assert engines == {"pairs": True, "belief_propagation": False}
    assert approximate[0].n_nodes == 30


def test_labels_that_take_a_component_apart_make_it_exact(approximate):
    graph, unary = wide_and_pair(), np.zeros((33, 4))
    unary[4:30, 1:] = -np.inf
    infer = auto(graph)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = infer(unary)
    assert found.exact
    assert not approximate
    left = enumerate_assignments(tied(4, itertools.combinations(range(4), 2), 1.0))
    of_four = np.zeros((4, 4))
    of_four[:, 0] = 26.0
    np.testing.assert_allclose(found.nodes[[2, 3, 30, 31]], left(of_four).nodes, atol=1e-12)


@pytest.mark.usefixtures("approximate")
def test_a_cheap_component_beside_a_dear_one_stays_exact():
    ring = [(33, 34), (34, 35), (35, 36), (33, 36)]
    graph = tied(37, [*wide_and_pair().edges.tolist(), *ring], 1.0)
    for budgets in ({}, {"max_bytes": 30_000}, {"max_operations": 1e5}):
        with pytest.warns(ApproximationWarning):
            found = auto(graph, **budgets).answered(np.zeros((37, 2)))
        sizes = {answer.engine: answer.n_nodes for answer in found}
        assert sizes == {"pairs": 2, "junction_tree": 4, "belief_propagation": 30}
    wide = tied(16, [*itertools.combinations(range(12), 2), *(np.array(ring) - 21)], 1.0)
    with pytest.warns(ApproximationWarning):
        found = auto(wide, max_bytes=30_000).answered(np.zeros((16, 3)))
    sizes = {answer.engine: answer.n_nodes for answer in found}
    assert sizes == {"junction_tree": 4, "belief_propagation": 12}


def test_time_is_a_budget_too(approximate):
    """Ten hubs and a thousand nodes that are tied to several of them, within memory."""
    rng = np.random.default_rng(0)
    edges = np.column_stack([rng.integers(10, size=4000), 10 + rng.integers(1000, size=4000)])
    graph, unary = tied(1010, edges, -np.inf), np.zeros((1010, 3))
    with pytest.warns(ApproximationWarning):
        assert not auto(graph, max_operations=1e6)(unary).exact
    assert [answer.engine for answer in exact(graph).answered(unary)] == ["junction_tree"]


@settings(deadline=None, max_examples=60)
@given(problem=networks(max_nodes=7, p_forbidden=0.3), seed=st.integers(0, 999))
def test_one_engine_answers_for_any_number_of_states_and_any_evidence(problem, seed):
    """Reduced, divided and put together as enumerated; nothing of a call is left for the next."""
    graph, rng = problem[0], np.random.default_rng(seed)
    graph = simplify(graph)
    said = exact(graph)
    for states in (1, 2, 3, 2):
        for share in (0.0, 0.3, 0.6):
            unary = rng.normal(size=(graph.n_nodes, states)) * 3
            masked = rng.random(unary.shape) < share
            masked[np.arange(len(unary)), rng.integers(states, size=len(unary))] = False
            unary = np.where(masked, -np.inf, unary)
            assert_as_enumerated(said, graph, unary)
            if possible(graph, unary):
                told = inference_cost(graph, states, allowed=~masked)
                assert sorted(told) == sorted(said.answered(unary))


def possible(graph, unary):
    try:
        enumerate_assignments(graph)(unary)
    except ValueError:
        return False
    return True


def assert_as_enumerated(infer, graph, unary):
    if not possible(graph, unary):
        for question in (infer, infer.most_probable):
            with pytest.raises(NetworkError, match="no joint assignment of"):
                question(unary)
        return
    found, expected = infer(unary), enumerate_assignments(graph)(unary)
    assert found.exact
    np.testing.assert_allclose(found.nodes, expected.nodes, rtol=0, atol=1e-11)
    assert found.log_z == pytest.approx(expected.log_z, rel=1e-12, abs=1e-11)
    best = enumerate_assignments(graph).most_probable(unary)
    top = log_weight(graph, unary, best)
    assert log_weight(graph, unary, infer.most_probable(unary)) == pytest.approx(top, rel=1e-12)


def test_no_hard_relation_is_ever_broken():
    """Thousands of random feasible problems: colour at random, forbid only what differs."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, k = rng.integers(2, 15), rng.integers(2, 5)
        truth = rng.integers(k, size=n)
        edges = rng.integers(n, size=(rng.integers(1, 2 * n), 2))
        edges = edges[truth[edges[:, 0]] != truth[edges[:, 1]]]
        soft = rng.integers(n, size=(3, 2))
        soft = soft[soft[:, 0] != soft[:, 1]]
        weights = np.concatenate([np.full(len(edges), -np.inf), rng.normal(size=len(soft)) * 5])
        graph = simplify(Graph(int(n), np.concatenate([edges, soft]), weights))
        infer = auto(graph)
        for scale in (0.0, 1.0, 30.0, 900.0):
            unary = rng.uniform(-scale, scale, size=(n, k))
            z = infer.most_probable(unary)
            assert (z[edges[:, 0]] != z[edges[:, 1]]).all()
            nodes, log_z, *_ = infer(unary)
            assert np.isfinite(nodes).all()
            np.testing.assert_allclose(nodes.sum(axis=1), 1, rtol=1e-10)
            assert log_z >= unary[np.arange(n), truth].sum() - np.abs(weights[len(edges) :]).sum()
