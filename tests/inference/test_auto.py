"""The table of engines and structures, crossed; and what auto puts together."""

import importlib
import itertools

import numpy as np
import pytest

from cgmm.inference import enumerate_assignments
from cgmm.inference.auto import auto
from cgmm.inference.clique import clique
from cgmm.inference.independent import independent
from cgmm.inference.junction_tree import junction_tree
from cgmm.inference.pairs import pairs
from cgmm.network import Graph, NetworkError, TooCostlyError, edgeless, simplify

# The module, not the engine of the same name.
module = importlib.import_module("cgmm.inference.auto")

ENGINES = {
    "independent": independent,
    "pairs": pairs,
    "clique": clique,
    "junction_tree": junction_tree,
    "auto": auto,
    "enumerate": enumerate_assignments,
}
ANY = {"junction_tree", "auto", "enumerate"}


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


def test_components_of_all_kinds_at_once(monkeypatch):
    graph, _ = mixture_of_components()
    unary = np.random.default_rng(1).normal(size=(12, 3)) * 2
    seen = {}
    for engine in ("independent", "pairs", "clique", "junction_tree"):
        original = getattr(module, engine)

        def spy(part, *, _name=engine, _original=original, **settings):
            seen[_name] = part.n_nodes
            return _original(part, **settings)

        monkeypatch.setattr(module, engine, spy)
    infer = auto(graph)
    assert seen == {"independent": 2, "pairs": 2, "clique": 3, "junction_tree": 5}
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
        assert sorted(caught.value.nodes) == sorted(names[7:])


def test_a_component_out_of_reach_is_named_with_its_cost_and_the_alternatives():
    wide = list(itertools.combinations(range(2, 32), 2))
    graph = tied(33, [(0, 1), *wide], 1.0)
    with pytest.raises(TooCostlyError) as caught:
        auto(graph)(np.zeros((33, 4)))
    np.testing.assert_array_equal(caught.value.nodes, np.arange(2, 32))
    for word in (
        "width of at least 15",
        "435 edges",
        "8 GiB",
        "2 GiB",
        "'mean_field'",
        "'gibbs'",
        "'span",
    ):
        assert word in str(caught.value)


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
