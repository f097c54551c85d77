"""Compare every reduction of a network with enumeration of the original network."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import chain_edges, enumerate_all, grid_edges, make_graph, networks, subgraph

from cgmm.inference import enumerate_assignments
from cgmm.inference.reduction import contract_mirrored, propagate_evidence, reducer
from cgmm.network import NetworkError, log_weight, simplify

MIXED_OR_HARD = st.one_of(networks(p_forbidden=0.4), networks(p_forbidden=1.0))


def reduce_in_every_way(graph, unary):
    """Yield for each reduction its unaries, graph, constant, and functions to restore z and q."""
    same = lambda values: values  # noqa: E731
    evidence = propagate_evidence(graph, unary > -np.inf)
    yield unary + evidence.addend, evidence.graph, evidence.constant, same, same
    reduced = reducer(graph)(unary)
    back = reduced.expand_assignment, reduced.expand_marginals
    yield reduced.h, reduced.graph, reduced.constant, *back
    mirror = contract_mirrored(graph) if unary.shape[1] == 2 else None
    if mirror is not None:
        h, back = mirror.contract_unary(unary), (mirror.expand_assignment, mirror.expand_marginals)
        yield h, mirror.graph, mirror.constant, *back


@settings(max_examples=150)
@given(problem=MIXED_OR_HARD, p_masked=st.sampled_from([0.0, 0.3, 0.6]), seed=st.integers(0, 99))
def test_reductions_preserve_marginals_log_z_and_the_best_assignment(problem, p_masked, seed):
    """An infeasible network must stay infeasible, or the reduction must raise an error."""
    graph, unary = problem
    graph, rng = simplify(graph), np.random.default_rng(seed)
    masked = rng.random(unary.shape) < p_masked
    masked[np.arange(len(unary)), unary.argmax(axis=1)] = False
    unary = np.where(masked, -np.inf, unary)
    expected, before = enumerate_all(graph, unary), unary.copy()
    try:
        reductions = list(reduce_in_every_way(graph, unary))
    except NetworkError as error:
        if expected is not None:
            raise AssertionError("a feasible network is called contradictory") from error
        return
    for h, smaller, constant, restore_z, restore_q in reductions:
        smaller_result = enumerate_all(smaller, h)
        if expected is None:
            assert smaller_result is None
            continue
        np.testing.assert_allclose(restore_q(smaller_result.nodes), expected.nodes, atol=1e-11)
        log_z = smaller_result.log_z + constant
        assert log_z == pytest.approx(expected.log_z, rel=1e-12, abs=1e-11)
        z = restore_z(enumerate_assignments(smaller).most_probable(h))
        best = enumerate_assignments(graph).most_probable(unary)
        top = log_weight(graph, unary, best)
        assert log_weight(graph, unary, z) == pytest.approx(top, rel=1e-12, abs=1e-11)
    np.testing.assert_array_equal(unary, before)


# ------------------------------------------------------------------------- two states


@given(problem=networks(max_states=2, p_forbidden=0.5))
def test_contract_mirrored_removes_all_cannot_links_or_shows_an_odd_cycle(problem):
    """With two states, consecutive nodes of a cycle of cannot-links must alternate."""
    graph = simplify(problem[0])
    hard = {frozenset(edge) for edge in graph.edges[graph.weights == -np.inf].tolist()}
    try:
        mirror = contract_mirrored(graph)
    except NetworkError as error:
        cycle = error.nodes.tolist()
        assert len(cycle) % 2 == 1
        assert len(set(cycle)) == len(cycle)
        around = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        assert all(frozenset(edge) in hard for edge in around)
        assert enumerate_all(graph, np.zeros((graph.n_nodes, 2))) is None
        return
    assert np.isfinite(mirror.graph.weights).all() if hard else mirror is None


def test_evidence_that_contradicts_a_chain_of_two_states_is_shown_with_the_chain():
    path = make_graph(6, chain_edges(6), -np.inf)
    unary = np.zeros((6, 2))
    unary[1], unary[4] = [0, -np.inf], [0, -np.inf]
    with pytest.raises(NetworkError, match="leaves node 1 only the state 0") as caught:
        reducer(path)(unary)
    np.testing.assert_array_equal(np.sort(caught.value.nodes), [1, 2, 3, 4])
    unary[4] = [-np.inf, 0]
    assert reducer(path)(unary).graph.n_nodes == 1


def test_a_grid_of_cannot_links_with_two_states_is_contracted_to_one_node():
    """The state of one node fixes those of all others, by the parity of the distance."""
    mirror = contract_mirrored(simplify(make_graph(250_000, grid_edges(500, 500), -np.inf)))
    assert mirror.graph.n_nodes == 1
    row, column = np.divmod(np.arange(250_000), 500)
    np.testing.assert_array_equal(mirror.parity ^ mirror.parity[0], (row + column) % 2 == 1)


# --------------------------------------------------------------------------- evidence


def test_a_contradiction_is_shown_with_the_steps_that_lead_to_it():
    """Nodes 0 and 1 leave node 2 only state 2, and nodes 3 and 4 leave node 5, its neighbour, 2."""
    graph = make_graph(6, [(0, 2), (1, 2), (3, 5), (4, 5), (2, 5)], -np.inf)
    possible = np.ones((6, 3), dtype=bool)
    possible[[0, 3]], possible[[1, 4]] = [True, False, False], [False, True, False]
    with pytest.raises(NetworkError) as caught:
        propagate_evidence(graph, possible)
    message = str(caught.value)
    leaves = "the evidence leaves node {} only the state {}"
    for part in (leaves.format(0, 0), leaves.format(4, 1), "has no state"):
        assert part in message
    assert re.search(r"node [25], cannot-linked with .*, has only the state 2", message)
    assert set(caught.value.nodes.tolist()) == set(range(6))
    renamed = str(caught.value.renamed(np.arange(6) + 100, "point"))
    assert "the evidence leaves point 100 only the state 0" in renamed
    assert "node" not in renamed


@given(problem=networks(max_nodes=6, p_forbidden=1.0), seed=st.integers(0, 999))
def test_the_relations_named_by_a_contradiction_are_infeasible_by_themselves(problem, seed):
    (graph, unary), rng = problem, np.random.default_rng(seed)
    possible = rng.random(unary.shape) < 0.4
    possible[np.arange(len(unary)), rng.integers(unary.shape[1], size=len(unary))] = True
    try:
        propagate_evidence(simplify(graph), possible)
    except NetworkError as error:
        named = subgraph(graph, error.nodes)
        assert enumerate_all(named, np.where(possible, 0.0, -np.inf)) is None


def test_errors_show_only_the_ends_of_a_long_chain_of_steps():
    """Fixing the first node of a path of 50 fixes the others one after another, up to the last."""
    n = 50
    possible = np.ones((n, 3), dtype=bool)
    possible[np.arange(n), (np.arange(n) + 1) % 3] = False
    possible[0] = [True, False, False]
    possible[-1] = np.arange(3) == (n - 2) % 3
    with pytest.raises(NetworkError, match=r"steps more\), .*has no state") as caught:
        propagate_evidence(make_graph(n, chain_edges(n), -np.inf), possible)
    assert len(str(caught.value)) < 1500
