"""Test belief propagation, plain and tree-reweighted: exact on forests, a bound elsewhere."""

import warnings

import numpy as np
import pytest
from answers import true_relations
from hard_graphs import planted_colouring
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import all_edges, chain_edges, enumerate_all, grid_edges, make_graph, networks

from cgmm import primer
from cgmm.inference.belief_propagation import (
    DAMPINGS,
    belief_propagation,
    compute_free_energy,
    direct_edges,
    iterate_messages,
)
from cgmm.inference.tree_reweighted import draw_covering_forests, tree_reweighted
from cgmm.network import (
    Graph,
    NetworkError,
    SideInformation,
    connected_components,
    simplify,
    spanning_forest,
)

pytestmark = pytest.mark.filterwarnings("ignore:the engine .* did not converge")
BOTH = pytest.mark.parametrize("engine", [belief_propagation, tree_reweighted])
TWO_CYCLES = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (3, 4)]


def draw_log_densities(hidden, separation, seed):
    """Draw points around class centres on a circle; return log-densities, up to a constant."""
    rng, n_states = np.random.default_rng(seed), hidden.max() + 1
    angle = 2 * np.pi * np.arange(n_states) / n_states
    centres = np.column_stack([np.cos(angle), np.sin(angle)])
    centres *= separation / (2 * np.sin(np.pi / n_states))
    X = centres[hidden] + rng.normal(size=(len(hidden), 2))
    return -((X[:, None] - centres) ** 2).sum(axis=2) / 2


# ---------------------------------------------------------------------------- both engines


@BOTH
@given(networks(p_forbidden=0.3))
def test_messages_are_exact_on_forests(engine, network):
    graph, unary = spanning_forest(network[0]), network[1]
    exact = enumerate_all(graph, unary)
    if exact is None:
        return
    # Without damping, messages converge after as many sweeps as the longest path has edges.
    result = engine(graph, tol=1e-14)(unary)
    assert result.residual <= 1e-14
    np.testing.assert_allclose(result.nodes, exact.nodes, atol=1e-9)
    assert result.log_z == pytest.approx(exact.log_z, rel=1e-9, abs=1e-9)


@BOTH
def test_evidence_reaches_the_end_of_a_long_chain(engine):
    """The chain has 1000 nodes of alternating states, more than the default `max_sweeps`."""
    graph, unary = Graph(1000, chain_edges(1000), np.full(999, -np.inf)), np.zeros((1000, 2))
    unary[0] = np.log([0.9, 0.1])
    result = engine(graph)(unary)
    np.testing.assert_allclose(result.nodes[::2], np.tile([0.9, 0.1], (500, 1)), atol=1e-9)
    np.testing.assert_allclose(result.nodes[1::2], np.tile([0.1, 0.9], (500, 1)), atol=1e-9)
    assert result.log_z == pytest.approx(0, abs=1e-9)


@BOTH
@pytest.mark.parametrize("weights", [[-np.inf] * 5 + [1.0], [2.0, -1.0, 0.5, 1.5, -3.0, -np.inf]])
def test_marginals_are_the_derivatives_of_log_z_by_the_unaries(engine, weights):
    graph = make_graph(5, TWO_CYCLES, weights)
    unary = np.random.default_rng(3).normal(size=(5, 3))
    infer = engine(graph, tol=1e-14, damping=0.3, max_sweeps=2000)
    expected = primer.derivative(lambda unary: infer(unary).log_z, unary)
    np.testing.assert_allclose(infer(unary).nodes, expected, atol=1e-7)


# ---------------------------------------------------------------------------- plain messages


def test_belief_propagation_finds_the_only_feasible_colouring():
    """All other assignments have probabilities far below 1e-308, because of cannot-links."""
    graph, hidden = planted_colouring(150, 3, 20, 0)
    unary = draw_log_densities(hidden, 1.0, 0)
    result = belief_propagation(graph)(unary)
    assert result.residual <= 1e-7
    np.testing.assert_array_equal(result.nodes.argmax(axis=1), hidden)
    assert result.log_z == pytest.approx(unary[np.arange(150), hidden].sum(), rel=1e-9)


# ---------------------------------------------------------------------------- convergence


@pytest.mark.parametrize("strength", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("damping", [0.0, 0.3, None])
def test_belief_propagation_warns_if_and_only_if_it_did_not_converge(damping, strength):
    """Strong edges make the messages oscillate; converged messages do not depend on damping."""
    for seed in range(3):
        # Edges of both signs cannot all be satisfied, and the unaries are weak.
        rng, edges = np.random.default_rng(seed), grid_edges(6, 6)
        graph = make_graph(36, edges, strength * rng.choice([-1.0, 1.0], size=len(edges)))
        unary = 0.1 * rng.normal(size=(36, 2))
        with warnings.catch_warnings(record=True, action="always") as caught:
            result = belief_propagation(graph, damping=damping, max_sweeps=300)(unary)
        assert len(caught) == (result.residual > 1e-7)
        if not caught:
            # A fixed point of the messages does not depend on the damping.
            damped = belief_propagation(graph, damping=0.6, max_sweeps=2000)(unary)
            np.testing.assert_allclose(result.nodes, damped.nodes, atol=1e-5)
        if strength == 3.0 and damping == 0.0:
            assert result.residual > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_damping_increases_if_its_first_value_is_too_small(seed):
    graph, hidden = planted_colouring(100, 5, 9, seed)
    unary = draw_log_densities(hidden, 0.5, seed)
    fixed, rising = (belief_propagation(graph, damping=d)(unary) for d in (DAMPINGS[0], None))
    assert fixed.residual > 0.1
    assert rising.residual <= 1e-7


@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_the_residual_is_the_largest_change_in_an_undamped_sweep(damping):
    graph, hidden = planted_colouring(30, 3, 4, 0)
    unary = draw_log_densities(hidden, 1.0, 0).T
    edges = direct_edges(graph, np.ones(len(graph.edges)))
    before, after = (
        iterate_messages(edges, unary, max_sweeps=n, tol=0.0, damping=damping) for n in (4, 5)
    )
    assert (before.n_sweeps, after.n_sweeps) == (4, 5)
    moved = np.abs(np.exp(after.cavities) - np.exp(before.cavities)).max()
    assert after.residual == pytest.approx(moved / (1 - damping), rel=1e-9)


# ---------------------------------------------------------------------------- extremes


@given(networks(max_states=4), st.sampled_from([1e9, -1e9]), st.sampled_from([1.0, 1e3]))
def test_log_weights_of_1e9_act_like_hard_relations(network, weight, scale):
    graph, unary = network
    graph, unary = simplify(graph), scale * unary
    strong = graph._replace(weights=np.where(graph.weights > 1, weight, graph.weights))
    result = belief_propagation(strong, max_sweeps=100)(unary)
    assert np.isfinite(result.log_z)
    np.testing.assert_allclose(result.nodes.sum(axis=1), 1, rtol=1e-6)
    assert (result.nodes[np.isneginf(unary)] == 0).all()
    if weight > 0:
        return
    hard = graph._replace(weights=np.where(graph.weights > 1, -np.inf, graph.weights))
    try:
        expected = belief_propagation(hard, max_sweeps=100)(unary)
    except NetworkError:
        return
    if max(result.residual, expected.residual) <= 1e-7 and expected.log_z > -1e6:
        np.testing.assert_allclose(result.nodes, expected.nodes, atol=1e-5)


def make_ring(n):
    """Build a cycle of n cannot-linked nodes."""
    return make_graph(n, [*chain_edges(n), (0, n - 1)], -np.inf)


def test_evidence_propagates_around_cycles_of_cannot_links():
    """The label of node 0 fixes the state of node 1, which fixes that of node 2."""
    unary = np.zeros((5, 3))
    unary[0, 1:] = unary[1, 2] = unary[2, 0] = -np.inf
    result, exact = belief_propagation(make_ring(5))(unary), enumerate_all(make_ring(5), unary)
    np.testing.assert_allclose(result.nodes, exact.nodes, atol=1e-6)
    assert result.log_z == pytest.approx(exact.log_z, abs=1e-6)
    with pytest.raises(NetworkError, match="leaves node 0 only the state 0, so node 1"):
        belief_propagation(make_ring(5))(unary[:, :2])
    with pytest.raises(NetworkError, match="no joint assignment"):
        belief_propagation(make_ring(5))(np.zeros((5, 1)))


# ---------------------------------------------------------------------------- tree-reweighted bound


@given(networks(max_states=4, p_forbidden=0.2), st.sampled_from([1, 2, 500]))
def test_tree_reweighted_log_z_is_an_upper_bound_even_before_convergence(network, max_sweeps):
    graph, unary = network
    exact = enumerate_all(graph, unary)
    try:
        bound = tree_reweighted(graph, max_sweeps=max_sweeps)(unary).log_z
    except NetworkError:
        assert exact is None
        return
    assert exact is None or bound >= exact.log_z - 1e-9 * (1 + abs(exact.log_z))


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(3, 6), st.integers(2, 3))
def test_the_converged_tree_reweighted_bound_is_lowest_and_equals_the_free_energy(seed, n, k):
    """Convex duality: the least Σ_T log Z(θ_T) / M equals Σ_j log Z_j - Σ_e ρ_e log Z_e."""
    rng = np.random.default_rng(seed)
    graph = make_graph(n, all_edges(n), rng.normal(size=n * (n - 1) // 2))
    unary = rng.normal(size=(n, k))
    result = tree_reweighted(graph, tol=1e-12, damping=0.5, max_sweeps=3000)(unary)
    assert result.residual < 1e-9
    directed = direct_edges(graph, draw_covering_forests(graph).mean(axis=0))
    converged = iterate_messages(directed, unary.T, max_sweeps=3000, tol=1e-12, damping=0.5)
    free_energy = compute_free_energy(directed, unary.T, converged)
    assert result.log_z == pytest.approx(free_energy, abs=1e-7)
    early = [tree_reweighted(graph, max_sweeps=m)(unary).log_z for m in (1, 2, 3)]
    assert result.log_z <= min(early) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_many_hard_relations_do_not_make_the_tree_reweighted_bound_diverge(seed):
    """The engine softens cannot-links at first; otherwise its bound would be hundreds too high."""
    # Draw three overlapping clusters, and relations of random pairs, more than two per point.
    rng = np.random.default_rng(seed)
    z, means = rng.integers(3, size=600), 2.5 * np.eye(3)
    side = SideInformation.build(600, **true_relations(rng, z, 1350))
    X = means[z] + rng.normal(size=(600, 3))
    unary = side.sum_over_nodes(-0.5 * ((X[:, None] - means) ** 2).sum(axis=-1))
    y, engines = z[side.first_points], (tree_reweighted, belief_propagation)
    result, bethe = (engine(side.graph)(unary) for engine in engines)
    assert bethe.log_z - 0.1 < result.log_z < bethe.log_z + 5
    accuracies = [(marginals.nodes.argmax(axis=1) == y).mean() for marginals in (result, bethe)]
    assert accuracies[0] > accuracies[1] - 0.02 > (unary.argmax(axis=1) == y).mean()


@pytest.mark.parametrize("max_sweeps", [500, 7])
def test_tree_reweighted_respects_cannot_links_against_strong_evidence(max_sweeps):
    """The engine first gives a cannot-link the log-weight -10, which unaries of 60 outweigh."""
    unary = np.zeros((4, 3))
    unary[:, 0] = [50.0, 60.0, 0.0, 1.0]
    exact = enumerate_all(make_ring(4), unary)
    result = tree_reweighted(make_ring(4), max_sweeps=max_sweeps)(unary)
    np.testing.assert_allclose(result.nodes[:2], exact.nodes[:2], atol=1e-3)
    assert result.log_z >= exact.log_z


@given(networks(max_nodes=9))
def test_covering_forests_span_the_graph_and_contain_every_edge_twice(network):
    """Each forest spans all components; an edge that is a bridge must be in every forest."""
    graph = simplify(network[0])
    forests, bridges = draw_covering_forests(graph), np.ones(len(graph.edges), dtype=bool)
    assert forests.sum(axis=0).min(initial=2) >= 2
    components = connected_components(graph)
    for rows in forests:
        part = Graph(graph.n_nodes, graph.edges[rows], graph.weights[rows])
        assert len(part.edges) == graph.n_nodes - len(np.unique(components))
        np.testing.assert_array_equal(connected_components(part), components)
    for e in range(len(graph.edges)):
        rest = Graph(graph.n_nodes, np.delete(graph.edges, e, 0), np.delete(graph.weights, e))
        bridges[e] = connected_components(rest).max() > components.max()
    assert (forests.mean(axis=0)[bridges] == 1).all()
