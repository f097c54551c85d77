"""The rule of COP-KMeans: no broken relation, and the best assignment where there are few nodes."""

import numpy as np
import pytest
from hard_graphs import breaks_none, hard_graph, planted
from hypothesis import assume, example, given
from hypothesis import strategies as st
from kmeans_problems import NONE_BROKEN, all_assignments, enumerated, hard_problems, objective

import cgmm.inference.best_assignment
from cgmm.inference.exchange import exchange
from cgmm.kmeans import COPKMeans, Nodes, cop_rule, pck_rule
from cgmm.metrics import broken_relations
from cgmm.network import NetworkError, SideInformation


def sequential_greedy(costs, graph, order):
    """Wagstaff et al. (2001): one after another to the nearest cluster left; None at a dead end."""
    z = np.full(len(costs), -1)
    for j in order:
        rows = graph.edges[(graph.edges == j).any(axis=1)]
        taken = {z[other] for other in rows.ravel() if other != j}
        left = [k for k in np.argsort(costs[j]) if k not in taken]
        if not left:
            return None
        z[j] = left[0]
    return z


@given(problem=hard_problems(), seed=st.integers(0, 99))
@example(problem=(np.eye(3)[:, :2], hard_graph(3, [[0, 1], [1, 2], [0, 2]])), seed=0)
def test_cop_assignment_is_the_best_or_there_is_none(problem, seed):
    costs, graph = problem
    best = enumerated(costs, graph)
    if best == np.inf:
        with pytest.raises(NetworkError, match="no assignment"):
            cop_rule(graph, costs.shape[1])
        return
    rule = cop_rule(graph, costs.shape[1])
    z, optimal = rule(costs, None)
    assert breaks_none(graph, z)
    assert optimal
    assert objective(costs, graph, z) == pytest.approx(best, rel=1e-12)
    # From any assignment that breaks nothing: the same.
    feasible = [a for a in all_assignments(*costs.shape) if breaks_none(graph, a)]
    other = feasible[np.random.default_rng(seed).integers(len(feasible))]
    again, optimal = rule(costs, other)
    assert optimal
    assert objective(costs, graph, again) == pytest.approx(best, rel=1e-12)


@given(problem=hard_problems(max_nodes=7), seed=st.integers(0, 99))
def test_searches_that_stop_early_still_improve_and_break_nothing(problem, seed):
    costs, graph = problem
    best = enumerated(costs, graph)
    assume(best < np.inf)
    feasible = [a for a in all_assignments(*costs.shape) if breaks_none(graph, a)]
    before = feasible[np.random.default_rng(seed).integers(len(feasible))]
    with pytest.MonkeyPatch.context() as patch:
        # As in large components: no elimination, and no time for a proof.
        patch.setattr(cgmm.inference.best_assignment, "MAX_STATES", 1)
        rule = cop_rule(graph, costs.shape[1])
        for z_before in (None, before):
            z, optimal = rule(costs, z_before, 0.0)
            assert breaks_none(graph, z)
            if z_before is not None:
                assert objective(costs, graph, z) <= objective(costs, graph, before) + 1e-12
            if optimal:
                assert objective(costs, graph, z) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**60])
@pytest.mark.parametrize("n_nodes", [12, 300])
def test_units_of_the_costs_do_not_matter_to_any_rule(scale, n_nodes):
    """A power of two changes no digit, so that every comparison must come out the same."""
    graph, hidden = planted(n_nodes, 4, 3, 0)
    costs = np.random.default_rng(0).uniform(size=(n_nodes, 4))
    soft = graph._replace(weights=np.where(np.arange(len(graph.edges)) % 3, 0.3, -0.4))
    scaled = soft._replace(weights=scale * soft.weights)
    for here, there in (
        (cop_rule(graph, 4)(costs, None)[0], cop_rule(graph, 4)(scale * costs, None)[0]),
        (pck_rule(soft, 4)(costs, None)[0], pck_rule(scaled, 4)(scale * costs, None)[0]),
        (pck_rule(soft, 4)(costs, hidden)[0], pck_rule(scaled, 4)(scale * costs, hidden)[0]),
        (exchange(costs, graph.edges, hidden), exchange(scale * costs, graph.edges, hidden)),
    ):
        np.testing.assert_array_equal(here, there)


def test_what_a_node_pays_everywhere_does_not_matter_to_the_best_assignment():
    """Far from all centres, and what tells them apart is the last third of the digits."""
    graph, _ = planted(12, 3, 3, 1)
    costs = np.random.default_rng(1).integers(1, 1024, size=(12, 3)) * 2.0**-30
    far = costs + 2.0**20
    here, there = (cop_rule(graph, 3)(c, None) for c in (costs, far))
    assert here[1]
    assert there[1]
    np.testing.assert_array_equal(here[0], there[0])


def test_the_start_of_large_components_is_near_the_first_choices():
    """Twenty of 400 nodes are misled; each should cost little more than what gives way to it.

    The colouring that is found without looking at costs leads to a poor local minimum.
    """
    graph, hidden = planted(400, 6, 14, 0)
    costs = 1.0 - np.eye(6)[hidden]
    costs[:20] = np.roll(costs[:20], 1, axis=1)
    z, _ = cop_rule(graph, 6)(costs, None)
    assert breaks_none(graph, z)
    assert objective(costs, graph, z) <= 40


def test_where_the_greedy_order_meets_a_dead_end():
    """A path 0 - 1 - 2 - 3, its ends near one centre: greedy puts both there and is stuck."""
    X = np.array([[0.0], [0.1], [10.0], [0.2]])
    cannot = [[0, 1], [1, 2], [2, 3]]
    start = np.array([[0.0], [10.0]])
    side = SideInformation.build(4, cannot_link=cannot)
    costs = Nodes.of(X, side).costs(start)
    assert sequential_greedy(costs, side.graph, [0, 3, 1, 2]) is None
    model = COPKMeans(2, init=start).fit(X, cannot_link=cannot)
    assert broken_relations(model.labels_, (), cannot) == NONE_BROKEN
    z, _ = cop_rule(side.graph, 2)(costs, None)
    assert objective(costs, side.graph, z) == pytest.approx(enumerated(costs, side.graph))


def test_where_greedy_fails_in_every_order_tried():
    """Three colours, 90 nodes, five cannot-links a node: few assignments honour them all."""
    graph, _ = planted(90, 3, 5, 1)
    costs = np.random.default_rng(0).uniform(size=(90, 3))
    orders = [np.random.default_rng(seed).permutation(90) for seed in range(50)]
    assert all(sequential_greedy(costs, graph, order) is None for order in orders)
    rule = cop_rule(graph, 3)
    z, _ = rule(costs, None)
    assert breaks_none(graph, z)
    again, _ = rule(costs, z)
    assert breaks_none(graph, again)
    assert objective(costs, graph, again) <= objective(costs, graph, z) + 1e-12
