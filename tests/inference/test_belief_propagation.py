"""Belief propagation: exact on trees, what its equations say elsewhere, and honest about both."""

import itertools
import warnings

import numpy as np
import pytest
from hard_graphs import breaks_none, planted
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from small_networks import chain, grid, networks

from cgmm.inference import enumerate_assignments
from cgmm.inference.belief_propagation import (
    DAMPINGS,
    belief_propagation,
    both_directions,
    settle,
)
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Graph, NetworkError, simplify, spanning_forest

pytestmark = pytest.mark.filterwarnings("ignore:the engine 'belief_propagation' did not")


def by_definition(graph, unary, n_sweeps=100):
    """Messages in probabilities, one at a time; the free energy term by term."""
    ties = [(*edge, w) for edge, w in zip(graph.edges, graph.weights, strict=True)]
    ties += [(b, a, w) for a, b, w in ties]
    n_states = unary.shape[1]
    psi = {(a, b): 1 + (np.exp(w) - 1) * np.eye(n_states) for a, b, w in ties}
    said = {pair: np.ones(n_states) for pair in psi}

    def belief(j, without=None):
        heard = [said[a, b] for a, b in psi if b == j and a != without]
        return np.exp(unary[j]) * np.prod(heard, axis=0) if heard else np.exp(unary[j])

    def cavity(j, i):
        return belief(j, without=i) / belief(j, without=i).sum()

    for _ in range(n_sweeps):
        new = {(j, i): psi[j, i] @ cavity(j, i) for j, i in psi}
        said = {pair: np.sqrt(new[pair] * said[pair]) for pair in psi}
    said = {(j, i): psi[j, i] @ cavity(j, i) for j, i in psi}
    log_z = sum(np.log(belief(j).sum()) for j in range(graph.n_nodes))
    log_z -= sum(
        np.log(cavity(a, b) @ psi[a, b] @ cavity(b, a)) for a, b in map(tuple, graph.edges)
    )
    return np.array([belief(j) / belief(j).sum() for j in range(graph.n_nodes)]), log_z


def clumps(hidden, separation, seed):
    """Log-densities of points around as many centres as there are classes, on a circle."""
    rng, n_states = np.random.default_rng(seed), hidden.max() + 1
    angle = 2 * np.pi * np.arange(n_states) / n_states
    centres = np.column_stack([np.cos(angle), np.sin(angle)])
    centres *= separation / (2 * np.sin(np.pi / n_states))
    X = centres[hidden] + rng.normal(size=(len(hidden), 2))
    return -((X[:, None] - centres) ** 2).sum(axis=2) / 2


# ---------------------------------------------------------------------------- theorems


@given(networks(p_forbidden=0.3))
def test_on_forests_it_ends_at_the_exact_answer(network):
    graph, unary = spanning_forest(network[0]), network[1]
    try:
        exact = enumerate_assignments(graph)(unary)
    except ValueError:
        return
    # After as many sweeps as the longest path has edges nothing moves any more.
    found = belief_propagation(graph, tol=1e-14, damping=0.0)(unary)
    np.testing.assert_allclose(found.nodes, exact.nodes, atol=1e-9)
    assert found.log_z == pytest.approx(exact.log_z, rel=1e-9, abs=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(3, 6), st.integers(2, 4))
def test_the_fixed_point_is_that_of_the_definition(seed, n, k):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    edges = pairs[rng.random(len(pairs)) < 0.7]
    weights = rng.normal(size=len(edges)) * 0.7
    graph, unary = Graph(n, edges, weights), rng.normal(size=(n, k))
    nodes, log_z = by_definition(graph, unary)
    found = belief_propagation(graph, tol=1e-13)(unary)
    np.testing.assert_allclose(found.nodes, nodes, rtol=1e-8, atol=1e-10)
    assert found.log_z == pytest.approx(log_z, rel=1e-9, abs=1e-9)


def test_hard_edges_have_the_fixed_point_of_the_definition():
    hidden = np.arange(8) % 4
    pairs = np.array(list(itertools.combinations(range(8), 2)))
    pairs = pairs[hidden[pairs[:, 0]] != hidden[pairs[:, 1]]][::3]
    graph, unary = Graph(8, pairs, np.full(len(pairs), -np.inf)), clumps(hidden, 1.0, 0)
    nodes, log_z = by_definition(graph, unary)
    found = belief_propagation(graph, tol=1e-13)(unary)
    np.testing.assert_allclose(found.nodes, nodes, rtol=1e-9)
    assert found.log_z == pytest.approx(log_z, rel=1e-10)
    assert not found.exact


@pytest.mark.parametrize("weights", [[-np.inf] * 5 + [1.0], [2.0, -1.0, 0.5, 1.5, -3.0, -np.inf]])
def test_marginals_are_the_slopes_of_log_z_in_the_unaries(weights):
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [0, 2], [3, 4]])
    graph = Graph(5, edges, np.array(weights))
    unary, eps = np.random.default_rng(3).normal(size=(5, 3)), 1e-5
    infer = belief_propagation(graph, tol=1e-14)
    slopes = np.empty(unary.shape)
    for j, k in np.ndindex(unary.shape):
        up, down = unary.copy(), unary.copy()
        up[j, k] += eps
        down[j, k] -= eps
        slopes[j, k] = (infer(up).log_z - infer(down).log_z) / (2 * eps)
    # Central differences err by eps squared, and by rounding of log Z over eps.
    np.testing.assert_allclose(slopes, infer(unary).nodes, atol=1e-8)


@given(networks(max_states=4, p_forbidden=0.1), st.integers(0, 10**6))
def test_names_of_nodes_and_states_and_shifts_mean_nothing(network, seed):
    (graph, unary), rng = network, np.random.default_rng(seed)
    n, k = unary.shape
    node, state, shift = rng.permutation(n), rng.permutation(k), rng.normal(size=(n, 1))
    moved = np.empty_like(unary)
    moved[node] = (unary + shift)[:, state]
    try:
        # Few sweeps: where the iteration is not stable, rounding does not grow beyond all bounds.
        here = belief_propagation(graph, max_sweeps=8)(unary)
    except NetworkError:
        return
    there = belief_propagation(Graph(n, node[graph.edges], graph.weights), max_sweeps=8)(moved)
    np.testing.assert_allclose(there.nodes[node], here.nodes[:, state], atol=1e-8)
    assert there.log_z - shift.sum() == pytest.approx(here.log_z, rel=1e-8, abs=1e-7)


# ---------------------------------------------------------------------------- how near it is


@pytest.mark.parametrize(("n_edges", "separation"), [(20, 1.0), (40, 1.0), (40, 1.5), (40, 2.5)])
def test_sparse_cannot_links_are_nearly_exact_and_never_worse_than_a_tree(n_edges, separation):
    """Mean error of a probability at most 0.02 over ten networks of 40 nodes in three clumps."""
    errors = []
    for seed in range(10):
        graph, hidden = planted(40, 3, 2 * n_edges // 40, seed)
        unary = clumps(hidden, separation, seed)
        exact = junction_tree(graph)(unary).nodes
        found = belief_propagation(graph)(unary)
        assert found.residual <= 1e-7
        tree = junction_tree(spanning_forest(graph))(unary).nodes
        errors.append([np.abs(nodes - exact).mean() for nodes in (found.nodes, tree)])
    by_messages, by_tree = np.array(errors).T
    assert by_messages.mean() <= 0.02
    # On forests both are exact, the messages up to their residual.
    assert (by_messages <= by_tree + 1e-7).all()


def test_where_one_colouring_is_left_it_is_found():
    """So many cannot-links that all but certainty vanishes: probabilities far below 1e-308."""
    graph, hidden = planted(150, 3, 20, 0)
    found = belief_propagation(graph)(clumps(hidden, 1.0, 0))
    assert found.residual <= 1e-7
    assert np.isfinite(found.log_z)
    np.testing.assert_array_equal(found.nodes.argmax(axis=1), hidden)
    assert breaks_none(graph, found.nodes.argmax(axis=1))
    energy = clumps(hidden, 1.0, 0)[np.arange(150), hidden].sum()
    assert found.log_z == pytest.approx(energy, rel=1e-9)


# ---------------------------------------------------------------------------- convergence


def frustrated_grid(strength=3.0, n=6, seed=0):
    """Preferences of both signs, strong, between weak unaries: no assignment contents them all."""
    rng, edges = np.random.default_rng(seed), grid(n, n)
    weights = strength * rng.choice([-1.0, 1.0], size=len(edges))
    return Graph(n * n, edges, weights), 0.1 * rng.normal(size=(n * n, 2))


@pytest.mark.parametrize("strength", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("damping", [0.0, 0.3, None])
def test_nothing_is_wrong_in_silence(damping, strength):
    """Strong messages go round in circles here; others stop there, far off, without a word."""
    for seed in range(3):
        graph, unary = frustrated_grid(strength, seed=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = belief_propagation(graph, damping=damping, max_sweeps=300)(unary)
        assert len(caught) == (found.residual > 1e-7)
        if not caught:
            # It is a fixed point of any damping.
            slow = belief_propagation(graph, damping=0.6, max_sweeps=2000)(unary)
            np.testing.assert_allclose(found.nodes, slow.nodes, atol=1e-5)
        if strength == 3.0 and damping == 0.0:
            (warning,) = caught
            assert found.residual > 0.1
            assert issubclass(warning.category, ConvergenceWarning)


def test_the_warning_says_how_far_off_and_what_to_do_and_points_at_the_caller():
    # Three states, nine mutually cannot-linked nodes: impossible, and beyond what messages notice.
    edges = np.array(list(itertools.combinations(range(9), 2)))
    unary = np.random.default_rng(0).normal(size=(9, 3))
    infer = belief_propagation(Graph(9, edges, np.full(36, -np.inf)), damping=0.0, max_sweeps=50)
    with pytest.warns(ConvergenceWarning) as caught:
        found = infer(unary)
    (warning,) = caught
    assert warning.filename == __file__
    assert found.residual > 0.01
    text = str(warning.message)
    for part in ("9 nodes", "36 relations", "50 sweeps", f"{found.residual:.1g}", "1e-07"):
        assert part in text
    assert "inference=partial(belief_propagation, damping=0.9, max_sweeps=5000)" in text
    assert np.isfinite(found.nodes).all()


@pytest.mark.parametrize("seed", range(3))
def test_damping_rises_where_the_first_is_too_little(seed):
    graph, hidden = planted(100, 5, 9, seed)
    unary = clumps(hidden, 0.5, seed)
    fixed, rising = (belief_propagation(graph, damping=d)(unary) for d in (DAMPINGS[0], None))
    assert fixed.residual > 0.1
    assert rising.residual <= 1e-7


@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_the_residual_is_the_largest_change_that_an_undamped_sweep_would_make(damping):
    graph, hidden = planted(30, 3, 4, 0)
    edges, unary = both_directions(graph, np.ones(len(graph.edges))), clumps(hidden, 1.0, 0).T
    before, after = (settle(edges, unary, max_sweeps=n, tol=0.0, damping=damping) for n in (4, 5))
    assert (before.n_sweeps, after.n_sweeps) == (4, 5)
    moved = np.abs(np.exp(after.cavities) - np.exp(before.cavities)).max()
    assert after.residual == pytest.approx(moved / (1 - damping), rel=1e-9)


def test_damping_rises_only_where_it_must():
    hidden = np.arange(60) % 3
    graph, _ = planted(60, 3, 2, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_itself = belief_propagation(graph)(clumps(hidden, 1.5, 0))
        fixed = belief_propagation(graph, damping=DAMPINGS[0])(clumps(hidden, 1.5, 0))
    np.testing.assert_array_equal(by_itself.nodes, fixed.nodes)


def test_without_a_word_about_states_all_are_alike():
    graph, _ = planted(60, 3, 4, 0)
    found = belief_propagation(graph)(np.zeros((60, 3)))
    np.testing.assert_allclose(found.nodes, 1 / 3, rtol=1e-12)
    assert found.residual == pytest.approx(0, abs=1e-15)


# ---------------------------------------------------------------------------- extremes


@given(networks(max_states=4), st.sampled_from([1e9, -1e9]), st.sampled_from([1.0, 1e3]))
def test_weights_of_a_thousand_million_are_as_good_as_hard(network, weight, scale):
    graph, unary = network
    graph, unary = simplify(graph), scale * unary
    strong = graph._replace(weights=np.where(graph.weights > 1, weight, graph.weights))
    found = belief_propagation(strong, max_sweeps=100)(unary)
    assert np.isfinite(found.nodes).all()
    assert np.isfinite(found.log_z)
    np.testing.assert_allclose(found.nodes.sum(axis=1), 1, rtol=1e-6)
    assert (found.nodes[np.isneginf(unary)] == 0).all()
    if weight > 0:
        return
    hard = graph._replace(weights=np.where(graph.weights > 1, -np.inf, graph.weights))
    try:
        expected = belief_propagation(hard, max_sweeps=100)(unary)
    except NetworkError:
        return
    if max(found.residual, expected.residual) <= 1e-7 and expected.log_z > -1e6:
        np.testing.assert_allclose(found.nodes, expected.nodes, atol=1e-5)


def test_sums_that_underflow_are_formed_in_logs():
    """Evidence of a thousand nats against evidence of as much: what is left decides."""
    graph = Graph(3, np.array([[0, 1], [1, 2], [0, 2]]), np.full(3, -np.inf))
    unary = np.array([[1000.0, 0.0, -2.0], [1001.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    found, exact = (engine(graph)(unary) for engine in (belief_propagation, enumerate_assignments))
    # Either of the first two has state 0, which no sum of probabilities below 1e-308 could tell.
    assert exact.nodes[1, 0] == pytest.approx(found.nodes[1, 0], abs=0.1)
    assert found.log_z == pytest.approx(exact.log_z, abs=0.5)


def test_masks_are_honoured_beyond_cycles():
    """A label takes its state from a neighbour, who is then known and takes it from the next."""
    graph = Graph(5, np.vstack([chain(5), [[0, 4]]]), np.full(5, -np.inf))
    unary = np.zeros((5, 3))
    unary[0, 1:] = unary[1, 2] = unary[2, 0] = -np.inf
    found, exact = (engine(graph)(unary) for engine in (belief_propagation, enumerate_assignments))
    np.testing.assert_allclose(found.nodes, exact.nodes, atol=1e-6)
    assert found.log_z == pytest.approx(exact.log_z, abs=1e-6)


def test_what_known_neighbours_rule_out_is_refused_by_name():
    graph = Graph(5, np.vstack([chain(5), [[0, 4]]]), np.full(5, -np.inf))
    unary = np.zeros((5, 2))
    unary[0, 1] = -np.inf
    with pytest.raises(
        NetworkError, match=r"the evidence leaves node 0 only the state 0, so node 1"
    ):
        belief_propagation(graph)(unary)
    with pytest.raises(NetworkError, match="no joint assignment"):
        belief_propagation(graph)(np.zeros((5, 1)))
    # An odd ring of two states without a word about any is a contradiction that it does not notice.
    np.testing.assert_allclose(belief_propagation(graph)(np.zeros((5, 2))).nodes, 0.5)


# ---------------------------------------------------------------------------- behaviour
