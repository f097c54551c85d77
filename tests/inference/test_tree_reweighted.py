"""Tree-reweighted belief propagation: a bound of log Z from above, whatever the messages."""

import itertools
import warnings

import numpy as np
import pytest
from hard_graphs import planted
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from small_networks import networks

from cgmm.inference import enumerate_assignments
from cgmm.inference.belief_propagation import (
    belief_propagation,
    both_directions,
    free_energy,
    settle,
)
from cgmm.inference.mean_field import mean_field
from cgmm.inference.tree_reweighted import covering_forests, tree_reweighted
from cgmm.network import (
    Graph,
    NetworkError,
    SideInformation,
    connected_components,
    simplify,
    spanning_forest,
)

pytestmark = pytest.mark.filterwarnings("ignore:the engine 'tree_reweighted' did not")


def log_z_of(graph, unary):
    """By enumeration; None where no assignment exists."""
    try:
        return enumerate_assignments(graph)(unary).log_z
    except ValueError:
        return None


# ---------------------------------------------------------------------------- the bound


@given(networks(max_nodes=6, max_states=4, p_forbidden=0.2), st.sampled_from([1, 2, 500]))
def test_log_z_is_never_below_the_exact_one_converged_or_not(network, max_sweeps):
    graph, unary = network
    exact = log_z_of(graph, unary)
    try:
        bound = tree_reweighted(graph, max_sweeps=max_sweeps)(unary).log_z
    except NetworkError:
        assert exact is None
        return
    assert exact is None or bound >= exact - 1e-9 * (1 + abs(exact))


@pytest.mark.parametrize("n_states", [2, 3])
@pytest.mark.parametrize("n_nodes", [4, 8])
def test_the_bound_holds_in_complete_graphs_of_every_strength(n_nodes, n_states):
    rng = np.random.default_rng(n_nodes)
    pairs = np.array(list(itertools.combinations(range(n_nodes), 2)))
    for strength in (0.3, 1.0, 3.0, 10.0):
        graph = Graph(n_nodes, pairs, strength * rng.normal(size=len(pairs)))
        unary = rng.normal(size=(n_nodes, n_states))
        bound = tree_reweighted(graph)(unary).log_z
        assert bound >= log_z_of(graph, unary) - 1e-9


@given(networks(p_forbidden=0.3))
def test_on_forests_it_is_exact(network):
    graph, unary = spanning_forest(network[0]), network[1]
    exact = log_z_of(graph, unary)
    if exact is None:
        return
    found = tree_reweighted(graph, tol=1e-12, damping=0.0)(unary)
    assert found.log_z == pytest.approx(exact, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found.nodes, enumerate_assignments(graph)(unary).nodes, atol=1e-9)


@given(networks())
def test_log_z_lies_between_the_two_bounds(network):
    graph, unary = network
    low, high = (engine(graph)(unary).log_z for engine in (mean_field, tree_reweighted))
    exact = log_z_of(graph, unary)
    assert low - 1e-9 <= exact <= high + 1e-9


def test_the_difference_of_two_bounds_is_no_bound():
    """The caveat of the docstring, in numbers: it may lie on either side of the difference."""
    edges = np.array([[0, 1], [1, 2], [0, 2]])
    sides = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph, unary = Graph(3, edges, rng.normal(size=3) * 3), rng.normal(size=(3, 2)) * 2
        prior = np.log(np.full((3, 2), 0.5))
        bounds, exact = (
            engine(graph)(unary).log_z - engine(graph)(prior).log_z
            for engine in (tree_reweighted, enumerate_assignments)
        )
        sides.add(bool(bounds > exact))
    assert sides == {True, False}


def test_weak_relations_are_nearly_exact():
    rng = np.random.default_rng(1)
    edges = np.array(list(itertools.combinations(range(6), 2)))
    graph, unary = Graph(6, edges, 0.05 * rng.normal(size=len(edges))), rng.normal(size=(6, 3))
    exact, found = enumerate_assignments(graph)(unary), tree_reweighted(graph)(unary)
    assert 0 <= found.log_z - exact.log_z < 5e-3
    np.testing.assert_allclose(found.nodes, exact.nodes, atol=5e-3)


# ---------------------------------------------------------------------------- the fixed point


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(3, 6), st.integers(2, 3))
def test_at_the_fixed_point_the_bound_is_lowest_and_equal_to_the_free_energy(seed, n, k):
    """Convex duality: Σ_T log Z(θ_T) / M meets Σ_j log Z_j - Σ_e ρ_e log Z_e."""
    rng = np.random.default_rng(seed)
    edges = np.array(list(itertools.combinations(range(n), 2)))
    graph = Graph(n, edges, rng.normal(size=len(edges)))
    unary = rng.normal(size=(n, k))
    found = tree_reweighted(graph, tol=1e-12, damping=0.5, max_sweeps=3000)(unary)
    assert found.residual < 1e-9
    directed = both_directions(graph, covering_forests(graph).mean(axis=0))
    settled = settle(directed, unary.T, max_sweeps=3000, tol=1e-12, damping=0.5)
    assert found.log_z == pytest.approx(free_energy(directed, unary.T, settled), abs=1e-7)
    early = [tree_reweighted(graph, max_sweeps=m)(unary).log_z for m in (1, 2, 3)]
    assert found.log_z <= min(early) + 1e-9


def test_marginals_are_the_slopes_of_the_bound_in_the_unaries():
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [0, 2], [3, 4]])
    graph = Graph(5, edges, np.array([2.0, -np.inf, 0.5, -1.5, -np.inf, -3.0]))
    unary, eps = np.random.default_rng(3).normal(size=(5, 3)), 1e-5
    infer = tree_reweighted(graph, tol=1e-14, damping=0.3, max_sweeps=2000)
    slopes = np.empty(unary.shape)
    for j, k in np.ndindex(unary.shape):
        up, down = unary.copy(), unary.copy()
        up[j, k] += eps
        down[j, k] -= eps
        slopes[j, k] = (infer(up).log_z - infer(down).log_z) / (2 * eps)
    np.testing.assert_allclose(slopes, infer(unary).nodes, atol=1e-7)


# ---------------------------------------------------------------------------- forests


@given(networks(max_nodes=9))
def test_every_edge_is_in_two_forests_and_each_spans(network):
    graph = simplify(network[0])
    forests, bridges = covering_forests(graph), np.ones(len(graph.edges), dtype=bool)
    assert forests.sum(axis=0).min(initial=2) >= 2
    components = connected_components(graph)
    for rows in forests:
        part = Graph(graph.n_nodes, graph.edges[rows], graph.weights[rows])
        assert len(part.edges) == graph.n_nodes - len(np.unique(components))
        np.testing.assert_array_equal(connected_components(part), components)
    for e in range(len(graph.edges)):
        rest = Graph(graph.n_nodes, np.delete(graph.edges, e, 0), np.delete(graph.weights, e))
        bridges[e] = connected_components(rest).max() > components.max()
    # What ties two parts alone is in every forest.
    assert (forests.mean(axis=0)[bridges] == 1).all()


# ---------------------------------------------------------------------------- behaviour


def test_hard_relations_of_a_large_graph_are_bounded_in_few_forests():
    graph, _ = planted(300, 3, 6, 0)
    assert len(covering_forests(graph)) <= 12
    unary = np.random.default_rng(0).normal(size=(300, 3))
    found = tree_reweighted(graph)(unary)
    assert found.residual <= 1e-7
    assert found.log_z < np.log(np.exp(unary).sum(axis=1)).sum()


def test_the_warning_names_it_and_the_bound_still_holds():
    edges = np.array(list(itertools.combinations(range(6), 2)))
    graph, unary = Graph(6, edges, np.full(15, -3.0)), np.random.default_rng(0).normal(size=(6, 2))
    with pytest.warns(UserWarning, match=r"after 2 sweeps .*partial\(tree_reweighted, damping"):
        found = tree_reweighted(graph, max_sweeps=2)(unary)
    assert found.log_z >= log_z_of(graph, unary)


def answers_in_number(seed, n=600):
    """Truthful answers about random pairs, two and more a point, of three clumps that overlap."""
    rng = np.random.default_rng(seed)
    y, pairs = rng.integers(3, size=n), rng.integers(n, size=(9 * n // 4, 2))
    pairs, means = pairs[pairs[:, 0] != pairs[:, 1]], 2.5 * np.eye(3)
    X, same = means[y] + rng.normal(size=(n, 3)), y[pairs[:, 0]] == y[pairs[:, 1]]
    side = SideInformation.build(n, must_link=pairs[same], cannot_link=pairs[~same])
    unary = side.sum_over_nodes(-0.5 * ((X[:, None] - means) ** 2).sum(axis=-1))
    return side.graph, unary, y[side.first_points]


@pytest.mark.parametrize("seed", range(3))
def test_hard_relations_in_number_do_not_let_messages_run_away(seed):
    """With weights of -inf alone the bound ends hundreds of nats above; it is near Bethe's now."""
    graph, unary, y = answers_in_number(seed)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        found, bethe = tree_reweighted(graph)(unary), belief_propagation(graph)(unary)
    assert bethe.log_z - 0.1 < found.log_z < bethe.log_z + 5
    right = [(marginals.nodes.argmax(axis=1) == y).mean() for marginals in (found, bethe)]
    assert right[0] > right[1] - 0.02 > (unary.argmax(axis=1) == y).mean()


def test_evidence_that_outweighs_the_soft_stand_in_keeps_what_is_hard(monkeypatch):
    """Unaries of fifty nats against a stand-in of ten: the hard messages have the lower bound."""
    ring = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.full(4, -np.inf))
    unary = np.zeros((4, 3))
    unary[:, 0] = [50.0, 60.0, 0.0, 1.0]
    exact = enumerate_assignments(ring)(unary)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        for max_sweeps in (500, 7):
            found = tree_reweighted(ring, max_sweeps=max_sweeps)(unary)
            np.testing.assert_allclose(found.nodes[:2], exact.nodes[:2], atol=1e-3)
            assert found.log_z >= exact.log_z
