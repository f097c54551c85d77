"""Constrained K-means: no broken relation, no rising objective, the limits of lu2007, App. C."""

import io
import itertools
import warnings
from contextlib import redirect_stdout
from itertools import islice

import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import cgmm.inference.feasible
import cgmm.kmeans.base
import cgmm.kmeans.search
from cgmm.inference import ENGINES, adjacency
from cgmm.inference.auto import auto
from cgmm.kmeans import (
    COPKMeans,
    Nodes,
    PCKMeans,
    SearchBudgetError,
    chunklet_seeds,
    nearest_rule,
    penalty,
)
from cgmm.kmeans.cop_assignment import cop_rule
from cgmm.kmeans.engine_assignment import engine_rule
from cgmm.kmeans.loop import lloyd
from cgmm.kmeans.pck_assignment import pck_rule
from cgmm.metrics import broken_relations
from cgmm.mixture import Parameters, e_step
from cgmm.network import Graph, NetworkError, SideInformation
from cgmm.scenarios import random_pairs, teachers

NONE_BROKEN = (0, 0)


@parametrize_with_checks([COPKMeans(), PCKMeans(), PCKMeans(init="k-means++", w=0.0)])
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


# ------------------------------------------------------------------ oracles and instances


def all_assignments(n_nodes, n_clusters):
    return np.array(list(itertools.product(range(n_clusters), repeat=n_nodes)))


def objective(costs, graph, z):
    """[lu2007, eq. 4.1] written down; infinite where a cannot-link of weight -inf is broken."""
    total = sum(costs[j, k] for j, k in enumerate(z))
    for (a, b), w in zip(graph.edges, graph.weights, strict=True):
        if w > 0 and z[a] != z[b]:
            total += w
        if w < 0 and z[a] == z[b]:
            total -= w
    return total


def enumerated(costs, graph):
    """The least objective of all assignments."""
    return min(objective(costs, graph, z) for z in all_assignments(*costs.shape))


def hard_graph(n_nodes, edges):
    edges = np.array(edges, dtype=np.intp).reshape(-1, 2)
    return Graph(n_nodes, edges, np.full(len(edges), -np.inf))


def planted(n_nodes, n_clusters, degree, seed):
    """A random graph of cannot-links that a hidden assignment honours."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(n_clusters, size=n_nodes)
    pairs = rng.integers(n_nodes, size=(20 * n_nodes * degree, 2))
    pairs = pairs[hidden[pairs[:, 0]] != hidden[pairs[:, 1]]][: n_nodes * degree // 2]
    return hard_graph(n_nodes, np.unique(np.sort(pairs, axis=1), axis=0)), hidden


def overlapping_pairs(y, n_pairs, seed):
    """Pairs drawn with replacement, so that relations hang together."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(len(y), size=(n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    return pairs[together], pairs[~together]


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


def breaks_none(graph, z):
    hard = graph.edges[graph.weights == -np.inf]
    return bool((z[hard[:, 0]] != z[hard[:, 1]]).all())


def never_rises(history):
    """Up to rounding in sums of a few thousand squares."""
    return bool((np.diff(history) <= 1e-11 * np.abs(history[:-1])).all())


@st.composite
def hard_problems(draw, max_nodes=6):
    n_nodes = draw(st.integers(2, max_nodes))
    n_clusters = draw(st.integers(2, 4))
    pairs = list(itertools.combinations(range(n_nodes), 2))
    edges = draw(st.lists(st.sampled_from(pairs), max_size=10))
    costs = np.random.default_rng(draw(st.integers(0, 10**6))).uniform(size=(n_nodes, n_clusters))
    return costs, hard_graph(n_nodes, edges)


@st.composite
def soft_problems(draw):
    costs, graph = draw(hard_problems(max_nodes=5))
    values = st.sampled_from([-np.inf, -2.0, -0.5, -0.1, 0.05, 0.3, 1.0, 4.0])
    return costs, graph._replace(weights=np.array([draw(values) for _ in graph.edges], dtype=float))


# ------------------------------------------------------------------ the reduction to K-means


@pytest.mark.parametrize("make", [COPKMeans, PCKMeans])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("settings", [{}, {"tol": 0.0}, {"max_iter": 2}, {"tol": 0.03}])
def test_without_relations_it_is_scikit_learns_k_means(make, seed, settings):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3)) + 1.5 * rng.integers(4, size=(150, 1))
    start = X[rng.choice(150, 5, replace=False)]
    theirs = KMeans(5, init=start, n_init=1, algorithm="lloyd", **settings)
    ours = make(5, init=start, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(X)
        ours.fit(X)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-10)
    assert ours.n_iter_ == theirs.n_iter_
    new = rng.normal(size=(50, 3))
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-7)
    assert ours.score(new) == pytest.approx(theirs.score(new), rel=1e-9)
    assert ours.assignment_optimal_


def test_a_lost_cluster_gets_the_farthest_point_as_in_scikit_learn():
    X = load_iris().data
    start = np.array([X[0], X[60], X[0] + 1000.0])
    ours = COPKMeans(3, init=start).fit(X)
    theirs = KMeans(3, init=start, n_init=1).fit(X)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.n_iter_ == theirs.n_iter_
    assert len(set(ours.labels_)) == 3


def test_an_offset_of_the_data_changes_nothing():
    X = np.round(load_wine().data * 2**10) / 2**10
    must, cannot = overlapping_pairs(load_wine().target, 60, 0)
    near = COPKMeans(3, random_state=0).fit(X, must_link=must, cannot_link=cannot)
    far = COPKMeans(3, random_state=0).fit(X + 2.0**30, must_link=must, cannot_link=cannot)
    np.testing.assert_array_equal(near.labels_, far.labels_)
    # 2^30 leaves 2^-23 of the last digits; inertia is of size 10^6.
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-6)


def test_means_of_many_points_far_from_zero_keep_their_digits():
    """Whole numbers beyond 2^40: their sums are rounded to multiples of 16 unless centred."""
    rng = np.random.default_rng(0)
    X = rng.integers(1000, size=(100_000, 1)) + 3000.0 * rng.integers(2, size=(100_000, 1))
    start = np.array([[0.0], [4000.0]])
    near = COPKMeans(2, init=start).fit(X)
    far = COPKMeans(2, init=start + 2.0**40).fit(X + 2.0**40)
    # A centre beyond 2^40 is itself rounded to a multiple of 2^-12.
    np.testing.assert_allclose(
        far.cluster_centers_ - 2.0**40, near.cluster_centers_, rtol=0, atol=2.0**-11
    )


# ------------------------------------------------------------------ COP: small problems, exactly


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
        # As in large components: no branch and bound.
        patch.setattr(cgmm.kmeans, "BOUNDED_NODES", 0)
        rule = cop_rule(graph, costs.shape[1])
        for z_before in (None, before):
            z, optimal = rule(costs, z_before)
            assert breaks_none(graph, z)
            if z_before is not None:
                assert objective(costs, graph, z) <= objective(costs, graph, before) + 1e-12
            if optimal:
                assert objective(costs, graph, z) == pytest.approx(best, rel=1e-12)


@given(problem=hard_problems(max_nodes=7))
def test_branch_and_bound_says_when_it_was_stopped(problem):
    costs, graph = problem
    best = enumerated(costs, graph)
    assume(best < np.inf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cgmm.kmeans, "BOUNDED_STEPS", -5)
        z, optimal = cop_rule(graph, costs.shape[1])(costs, None)
    assert breaks_none(graph, z)
    if optimal:
        assert objective(costs, graph, z) == pytest.approx(best, rel=1e-12)


def test_branch_and_bound_alone_finds_the_best():
    """From the worst colouring, without the descent that usually precedes it."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        graph, hidden = planted(7, 3, 3, seed)
        costs = rng.uniform(size=(7, 3))
        matrix = adjacency(graph._replace(weights=np.ones(len(graph.edges))))
        neighbours = [cgmm.kmeans.search._neighbours_of(matrix, j) for j in range(7)]
        z, complete = cgmm.kmeans.branch_and_bound.branch_and_bound(
            costs, neighbours, hidden, 10_000
        )
        assert complete
        assert breaks_none(graph, z)
        assert objective(costs, graph, z) == pytest.approx(enumerated(costs, graph), rel=1e-12)
        z, complete = cgmm.kmeans.branch_and_bound.branch_and_bound(costs, neighbours, hidden, 0)
        assert objective(costs, graph, z) <= objective(costs, graph, hidden) + 1e-12
        assert breaks_none(graph, z)


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_of_a_branch_lies_below_its_best_assignment(seed):
    """All want one cluster and clash at a hub: who leaves pays once, however many it meets."""
    rng = np.random.default_rng(seed)
    losses = rng.uniform(0.5, 1.5, size=(6, 3))
    losses[:, 0] = 0
    star = [[0, j] for j in range(1, 6)]
    graph = hard_graph(6, star + [[1, 2]] * (seed % 2))
    choice, lower, node = cgmm.kmeans.branch_and_bound._outlook(losses, graph.edges.T, np.inf)
    best = enumerated(losses, graph)
    assert 0 < lower <= best + 1e-12
    assert node in range(6)
    assert choice.tolist() == [0] * 6
    neighbours = [graph.edges[(graph.edges == j).any(axis=1)].sum(axis=1) - j for j in range(6)]
    worst = np.array([1, 0, 2, 0, 0, 0]) if seed % 2 else np.array([1, 2, 2, 2, 2, 2])
    z, complete = cgmm.kmeans.branch_and_bound.branch_and_bound(losses, neighbours, worst, 10_000)
    assert complete
    assert objective(losses, graph, z) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**60])
@pytest.mark.parametrize("n_nodes", [12, 300])
def test_units_of_the_costs_do_not_matter_to_any_rule(scale, n_nodes):
    """A power of two changes no digit, so that every comparison must come out the same."""
    graph, hidden = planted(n_nodes, 4, 3, 0)
    costs = np.random.default_rng(0).uniform(size=(n_nodes, 4))
    matrix = adjacency(graph._replace(weights=np.ones(len(graph.edges))))
    neighbours = [cgmm.kmeans.search._neighbours_of(matrix, j) for j in range(n_nodes)]
    ends = cgmm.kmeans.branch_and_bound.ends_of(neighbours)
    soft = graph._replace(weights=np.where(np.arange(len(graph.edges)) % 3, 0.3, -0.4))
    scaled = soft._replace(weights=scale * soft.weights)
    for here, there in (
        (cop_rule(graph, 4)(costs, None)[0], cop_rule(graph, 4)(scale * costs, None)[0]),
        (pck_rule(soft, 4)(costs, None)[0], pck_rule(scaled, 4)(scale * costs, None)[0]),
        (pck_rule(soft, 4)(costs, hidden)[0], pck_rule(scaled, 4)(scale * costs, hidden)[0]),
        *(
            (search(costs, form, hidden), search(scale * costs, form, hidden))
            for search, form in (
                (cgmm.kmeans.exchange.exchange, neighbours),
                (cgmm.kmeans.exchange.exchange_all, ends),
            )
        ),
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


def test_a_cluster_without_points_keeps_its_centre():
    nodes = Nodes.of(np.array([[1.0, 2.0], [3.0, 4.0]]), SideInformation.build(2))
    before = np.array([[7.0, -7.0], [5.0, 5.0], [6.0, 1.0]])
    centres = nodes.centres(np.array([1, 1]), before)
    np.testing.assert_array_equal(centres, [[7.0, -7.0], [2.0, 3.0], [6.0, 1.0]])


@pytest.mark.parametrize("seed", range(10))
def test_both_descents_by_exchanges_end_where_no_exchange_helps(seed):
    graph, hidden = planted(60, 4, 3, seed)
    costs = np.random.default_rng(seed).uniform(size=(60, 4))
    matrix = adjacency(graph._replace(weights=np.ones(len(graph.edges))))
    neighbours = [cgmm.kmeans.search._neighbours_of(matrix, j) for j in range(60)]
    one = cgmm.kmeans.exchange.exchange(costs, neighbours, hidden)
    ends = cgmm.kmeans.branch_and_bound.ends_of(neighbours)
    assert sorted(map(tuple, ends.T)) == sorted({tuple(sorted(e)) for e in graph.edges})
    all_at_once = cgmm.kmeans.exchange.exchange_all(costs, ends, hidden)
    for z in (one, all_at_once):
        assert breaks_none(graph, z)
        assert objective(costs, graph, z) < objective(costs, graph, hidden)
        np.testing.assert_array_equal(cgmm.kmeans.exchange.exchange(costs, neighbours, z), z)
        np.testing.assert_array_equal(cgmm.kmeans.exchange.exchange_all(costs, ends, z), z)
        assert best_exchange(costs, graph, z) <= 1e-12


def best_exchange(costs, graph, z):
    """The most that one exchange gains: two clusters, the parts of their subgraph one by one."""
    best = -np.inf
    for k, m in itertools.combinations(range(costs.shape[1]), 2):
        inside = np.flatnonzero(np.isin(z, (k, m)))
        part = adjacency(graph._replace(weights=np.ones(len(graph.edges))))[inside][:, inside]
        _, label = scipy.sparse.csgraph.connected_components(part, directed=False)
        gains = costs[inside, z[inside]] - costs[inside, k + m - z[inside]]
        best = max(best, np.bincount(label, gains).max(initial=-np.inf))
    return best


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


def test_colours_are_given_to_clusters_as_cheaply_as_possible():
    rng = np.random.default_rng(0)
    costs, z = rng.uniform(size=(30, 4)), rng.integers(4, size=30)
    named = cgmm.kmeans.cop_assignment._relabelled(costs, z)
    every_name = [
        costs[np.arange(30), np.array(p)[z]].sum() for p in itertools.permutations(range(4))
    ]
    assert costs[np.arange(30), named].sum() == pytest.approx(min(every_name), rel=1e-12)
    np.testing.assert_array_equal(named[:, None] == named, z[:, None] == z)


# ------------------------------------------------------------------ COP: dead ends, and none


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


@pytest.mark.parametrize("seed", range(10))
def test_wine_with_300_overlapping_pairs(seed):
    X, y = load_wine(return_X_y=True)
    must, cannot = overlapping_pairs(y, 300, seed)
    model = COPKMeans(3, random_state=seed).fit(X, must_link=must, cannot_link=cannot)
    assert broken_relations(model.labels_, must, cannot) == NONE_BROKEN
    assert never_rises(model.history_)
    assert model.converged_


@pytest.mark.parametrize("make", [COPKMeans, lambda k, **p: PCKMeans(k, w=np.inf, **p)])
@pytest.mark.parametrize("n_pairs", [500, 3000])
def test_digits_with_overlapping_pairs(make, n_pairs):
    X, y = load_digits(return_X_y=True)
    must, cannot = overlapping_pairs(y, n_pairs, 0)
    model = make(10, random_state=0).fit(X, must_link=must, cannot_link=cannot)
    assert broken_relations(model.labels_, must, cannot) == NONE_BROKEN
    assert never_rises(model.history_)
    assert set(model.labels_) == set(range(10))


@given(
    seed=st.integers(0, 10**6),
    n_clusters=st.integers(2, 5),
    n_pairs=st.integers(1, 120),
    init=st.sampled_from(["chunklets", "k-means++", "random"]),
    w=st.sampled_from([None, 0.0, 0.5, 5.0, np.inf]),
)
def test_feasible_problems_never_fail(seed, n_clusters, n_pairs, init, w):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_clusters, size=50)
    X = rng.normal(size=(50, 2)) + 2 * rng.normal(size=(n_clusters, 2))[y]
    must, cannot = overlapping_pairs(y, n_pairs, seed)
    params = {"init": init, "random_state": seed}
    model = COPKMeans(n_clusters, **params) if w is None else PCKMeans(n_clusters, w=w, **params)
    with warnings.catch_warnings():
        # Fifty points may be contracted into fewer groups than clusters.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, must_link=must, cannot_link=cannot)
    assert never_rises(model.history_)
    assert np.isfinite(model.cluster_centers_).all()
    if w is None or w == np.inf:
        assert broken_relations(model.labels_, must, cannot) == NONE_BROKEN
    apart = np.square(X - model.cluster_centers_[model.labels_]).sum()
    assert model.inertia_ == pytest.approx(apart, rel=1e-12)
    broken = sum(broken_relations(model.labels_, must, cannot))
    factor, weight = (1, 0) if w is None else (0.5, w)
    expected = factor * apart + (weight * broken if broken else 0)
    # Weights on one pair are added first: a repeated pair of each kind counts twice as well.
    assert model.objective_ == pytest.approx(expected, rel=1e-9)
    assert model.objective_ == pytest.approx(model.history_[-1], rel=1e-12)


def test_too_many_mutual_cannot_links_are_named():
    X = np.random.default_rng(0).normal(size=(12, 2))
    clique = list(itertools.combinations([1, 4, 7, 9], 2))
    with pytest.raises(ValueError, match=r"points 1, 4, 7 and 9 are mutually .* 3 clusters"):
        COPKMeans(3).fit(X, cannot_link=[*clique, (0, 1), (2, 3)])
    with pytest.raises(ValueError, match=r"points 1, 4, 7 and 9 .* Each stands for all points"):
        COPKMeans(3).fit(X, must_link=[[4, 5]], cannot_link=[*clique[:3], (5, 7), (5, 9), (7, 9)])
    model = COPKMeans(4, random_state=0).fit(X, cannot_link=clique)
    assert len(set(model.labels_[[1, 4, 7, 9]])) == 4


def test_an_odd_cycle_is_named_and_nothing_else():
    """Two clusters: the cycle 2 - 5 - 8 - 3 - 6 is to blame, the even one and the tails are not."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    odd = [(2, 5), (5, 8), (8, 3), (3, 6), (6, 2)]
    even = [(8, 10), (10, 11), (11, 12), (12, 8), (12, 13), (2, 14)]
    with pytest.raises(ValueError, match=r"points 2, 3, 5, 6 and 8 are tied .* is proved"):
        COPKMeans(2).fit(X, cannot_link=[*odd, *even])
    COPKMeans(3, random_state=0).fit(X, cannot_link=[*odd, *even])


def test_a_wheel_needs_four_clusters():
    """No clique of four, and yet three colours do not suffice: a hub and an odd rim."""
    rim = [(j, (j + 1) % 7) for j in range(7)]
    wheel = rim + [(7, j) for j in range(7)]
    with pytest.raises(NetworkError, match=r"that is proved") as info:
        cop_rule(hard_graph(9, [*wheel, (8, 0)]), 3)
    np.testing.assert_array_equal(np.sort(info.value.nodes), np.arange(8))
    cop_rule(hard_graph(9, [*wheel, (8, 0)]), 4)


def test_an_exhausted_budget_is_no_verdict():
    graph, _ = planted(150, 3, 5, 0)
    with pytest.raises(SearchBudgetError, match=r"stopped after 3 steps.*not known") as info:
        cop_rule(graph, 3, max_search=3)
    assert not isinstance(info.value, ValueError)
    z, _ = cop_rule(graph, 3)(np.zeros((150, 3)), None)
    assert breaks_none(graph, z)
    X = np.random.default_rng(0).normal(size=(150, 2))
    with pytest.raises(SearchBudgetError, match="max_search"):
        COPKMeans(3, max_search=3).fit(X, cannot_link=graph.edges)


def test_the_data_hint_at_an_assignment():
    """Near the hardest density, backtracking fails, but clusters that are seen help."""
    graph, hidden = planted(1000, 3, 5, 0)
    with pytest.raises(SearchBudgetError):
        cop_rule(graph, 3, max_search=5_000)
    wrong = hidden.copy()
    wrong[:50] = (wrong[:50] + 1) % 3
    z, _ = cop_rule(graph, 3, max_search=5_000, hint=lambda: wrong)(np.eye(3)[hidden], None)
    assert breaks_none(graph, z)
    X = 50 + np.eye(3)[hidden] + 0.2 * np.random.default_rng(0).normal(size=(1000, 3))
    model = COPKMeans(3, random_state=0, max_search=5_000).fit(X, cannot_link=graph.edges)
    assert breaks_none(graph, model.labels_)


def test_walks_start_near_the_hint_and_at_random_by_turns(monkeypatch):
    graph, hidden = planted(100, 3, 5, 3)
    wrong = np.roll(hidden, 1)
    starts = []

    def walk(matrix, start, n_colours, n_steps, rng):
        starts.append(start)
        return cgmm.inference.feasible.Search(None, complete=False), n_steps

    monkeypatch.setattr(cgmm.kmeans.search, "tabu_walk", walk)
    monkeypatch.setattr(
        cgmm.kmeans.search,
        "list_colouring",
        lambda *_, **__: cgmm.inference.feasible.Search(None, complete=False),
    )
    with pytest.raises(SearchBudgetError):
        cop_rule(graph, 3, max_search=50_000, hint=lambda: wrong)
    assert len(starts) >= 4
    assert all((starts[t] == starts[0]).all() for t in range(0, len(starts), 2))
    assert all((starts[t] != starts[0]).any() for t in range(1, len(starts), 2))
    assert (starts[1] != starts[3]).any()


@given(seed=st.integers(0, 10**6), n_clusters=st.integers(1, 4))
def test_the_core_is_what_peeling_leaves(seed, n_clusters):
    graph, _ = planted(30, 4, 5, seed)
    matrix = adjacency(graph._replace(weights=np.ones(len(graph.edges))))
    core, peeled = cgmm.kmeans.search._peel(matrix, n_clusters)
    assert sorted([*core.tolist(), *peeled]) == list(range(30))
    assert (np.diff(matrix[core][:, core].indptr) >= n_clusters).all()
    left = set(range(30))
    for j in peeled:
        left.discard(j)
        later = left & set(cgmm.kmeans.search._neighbours_of(matrix, j).tolist())
        assert len(later) < n_clusters


def test_the_walk_repairs_and_counts_its_steps():
    graph, hidden = planted(80, 3, 4, 3)
    matrix = adjacency(graph._replace(weights=np.ones(len(graph.edges))))
    rng = np.random.RandomState(0)
    found, steps = cgmm.kmeans.search.tabu_walk(matrix, hidden, 3, 10, rng)
    assert (found.complete, steps) == (True, 0)
    found, steps = cgmm.kmeans.search.tabu_walk(matrix, np.zeros(80, dtype=int), 3, 5000, rng)
    assert found.complete
    assert breaks_none(graph, found.colours)
    assert 0 < steps < 5000
    found, steps = cgmm.kmeans.search.tabu_walk(matrix, np.zeros(80, dtype=int), 3, 2, rng)
    assert (found.colours, found.complete, steps) == (None, False, 2)


# ------------------------------------------------------------------ PCK


@given(problem=soft_problems(), seed=st.integers(0, 99))
def test_pck_assignment_never_rises_and_is_a_local_minimum(problem, seed):
    costs, graph = problem
    simple = SideInformation.build(
        len(costs), preferences=np.column_stack([graph.edges, graph.weights])
    ).graph
    values = [objective(costs, simple, z) for z in all_assignments(*costs.shape)]
    assume(min(values) < np.inf)
    feasible = np.flatnonzero(np.isfinite(values))
    rule = pck_rule(graph, costs.shape[1])
    start = all_assignments(*costs.shape)[np.random.default_rng(seed).choice(feasible)]
    for before in (None, start):
        z, optimal = rule(costs, before)
        j_z = objective(costs, simple, z)
        assert breaks_none(simple, z)
        if before is not None:
            assert j_z <= objective(costs, simple, before) + 1e-12
        assert not optimal or j_z == pytest.approx(min(values), rel=1e-12)
        for j, k in itertools.product(range(len(z)), range(costs.shape[1])):
            moved = z.copy()
            moved[j] = k
            assert objective(costs, simple, moved) >= j_z - 1e-12
        # The gain of moves is in the right unit: the best is the engine's.
        best, _ = engine_rule(simple, ENGINES["enumerate"])(costs, None)
        assert objective(costs, simple, best) == pytest.approx(min(values), rel=1e-12)


def test_groups_that_hold_each_other_in_place_move_together():
    """Three points in a must-linked triangle: none moves alone, all are better off together."""
    graph = Graph(4, np.array([[0, 1], [1, 2], [0, 2], [2, 3]]), np.array([5.0, 5.0, 5.0, -0.1]))
    costs = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    stuck = np.zeros(4, dtype=int)
    z, _ = pck_rule(graph, 2)(costs, stuck)
    np.testing.assert_array_equal(z, [1, 1, 1, 0])
    # Without other ties a group is free, and goes where it is nearest.
    z, _ = pck_rule(Graph(3, graph.edges[:3], graph.weights[:3]), 2)(costs[:3], stuck[:3])
    np.testing.assert_array_equal(z, [1, 1, 1])


def test_hard_ties_with_preferences_move_along_chains():
    """A hard pair can only trade places; the preference that makes it worth while is soft."""
    graph = Graph(3, np.array([[0, 1], [1, 2]]), np.array([-np.inf, 2.0]))
    costs = np.array([[0.0, 0.5], [0.5, 0.0], [0.0, 9.0]])
    before = np.array([0, 1, 0])
    z, _ = pck_rule(graph, 2)(costs, before)
    np.testing.assert_array_equal(z, [1, 0, 0])
    assert objective(costs, graph, z) == pytest.approx(enumerated(costs, graph))


def test_hard_ties_with_preferences_start_where_none_is_broken():
    """A path 0 - 1 - 2 - 3 whose nearest centres are 1, 0, 0, 1: no node can repair it alone."""
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    graph = Graph(4, edges, np.array([-np.inf, -np.inf, -np.inf, 0.1]))
    costs = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    z, _ = pck_rule(graph, 2)(costs, None)
    assert breaks_none(graph, z)


def test_two_soft_neighbours_in_one_chain_keep_their_penalty():
    """0 and 2 are tied softly and hang on 1: a swap changes neither's equality with the other."""
    edges = np.array([[0, 1], [1, 2], [0, 2]])
    graph = Graph(3, edges, np.array([-np.inf, -np.inf, 3.0]))
    costs = np.array([[0.4, 0.0], [0.0, 0.6], [0.4, 0.0]])
    z, _ = pck_rule(graph, 2)(costs, np.array([0, 1, 0]))
    np.testing.assert_array_equal(z, [1, 0, 1])
    soft = adjacency(Graph(3, edges[2:], np.array([3.0])))
    chain, moved = np.arange(3), np.array([1, 0, 1])
    gain = cgmm.kmeans.exchange._gain(costs, soft, np.array([0, 1, 0]), chain, moved)
    assert gain == pytest.approx(1.4, rel=1e-12)
    leaves = cgmm.kmeans.exchange._gain(
        costs, soft, np.array([0, 1, 0]), np.array([0, 1]), moved[:2]
    )
    assert leaves == pytest.approx(1.0 - 3.0, rel=1e-12)


def test_penalty_is_what_equation_4_1_says():
    rng = np.random.default_rng(0)
    for _ in range(50):
        pairs = rng.permutation(list(itertools.combinations(range(6), 2)))[:7]
        graph = Graph(6, pairs, rng.normal(size=7))
        z = rng.integers(3, size=6)
        by_hand = objective(np.zeros((6, 3)), graph, z)
        assert penalty(graph, z) == pytest.approx(by_hand, rel=1e-12)


def test_w_grows_from_plain_k_means_to_hard_relations():
    X, y = load_wine(return_X_y=True)
    must, cannot = random_pairs(y, 80, random_state=0)
    start = X[[0, 70, 150]]
    counts, plain = [], KMeans(3, init=start, n_init=1).fit(X)
    for w in (0.0, 1e4, 1e5, np.inf):
        model = PCKMeans(3, w=w, init=start).fit(X, must_link=must, cannot_link=cannot)
        counts.append(sum(broken_relations(model.labels_, must, cannot)))
        if w == 0:
            np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert counts[0] > counts[1] > counts[3] == 0
    assert counts[1] >= counts[2]
    hard = COPKMeans(3, init=start).fit(X, must_link=must, cannot_link=cannot)
    np.testing.assert_array_equal(model.labels_, hard.labels_)
    assert model.objective_ == pytest.approx(hard.objective_ / 2, rel=1e-12)
    assert model.assignment_optimal_ == hard.assignment_optimal_


def test_preferences_are_weights_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    pairs = rng.permutation(40).reshape(-1, 2)
    must, cannot = pairs[:10], pairs[10:]
    rows = np.concatenate([np.c_[must, np.full(10, 0.7)], np.c_[cannot, np.full(10, -0.7)]])
    start = X[:3]
    given_as_pairs = PCKMeans(3, w=0.7, init=start).fit(X, must_link=must, cannot_link=cannot)
    given_as_rows = PCKMeans(3, w=99.0, init=start).fit(X, preferences=rows)
    np.testing.assert_array_equal(given_as_pairs.labels_, given_as_rows.labels_)
    assert given_as_pairs.objective_ == given_as_rows.objective_
    # Two reports on one pair add; opposite ones cancel.
    both = PCKMeans(3, w=0.7, init=start).fit(X, must_link=must, cannot_link=must)
    np.testing.assert_array_equal(both.labels_, COPKMeans(3, init=start).fit(X).labels_)
    firm = PCKMeans(3, init=start).fit(X, preferences=[[0, 1, np.inf], [0, 2, -np.inf]])
    assert firm.labels_[0] == firm.labels_[1] != firm.labels_[2]


# ------------------------------------------------------------------ engines


@pytest.mark.parametrize("make", [COPKMeans, PCKMeans])
def test_an_engine_makes_every_assignment_the_best(make):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    must, cannot = overlapping_pairs(y, 25, 3)
    start = X[:3]
    exact = make(3, init=start, inference=auto).fit(X, must_link=must, cannot_link=cannot)
    search = make(3, init=start).fit(X, must_link=must, cannot_link=cannot)
    assert exact.assignment_optimal_
    assert never_rises(exact.history_)
    assert exact.history_[0] <= search.history_[0] + 1e-12
    if make is COPKMeans:
        assert search.assignment_optimal_
        np.testing.assert_array_equal(exact.labels_, search.labels_)
        assert exact.n_iter_ == search.n_iter_


def test_engines_that_cannot_or_will_not_answer():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match=r"'mean_field' cannot tell the most probable"):
        PCKMeans(2, inference=ENGINES["mean_field"]).fit(X, preferences=[[0, 1, 1.0]])
    triangle = [[0, 1], [1, 2], [0, 2]]
    with pytest.raises(ValueError, match=r"^point"):
        COPKMeans(2, inference=auto).fit(X, must_link=[[0, 5]], cannot_link=triangle)


def test_equally_good_assignments_do_not_keep_the_loop_going():
    answers = iter(np.array([[0, 1], [1, 0], [1, 0]]))

    def engine(graph):
        def infer(unary):
            raise NotImplementedError

        infer.most_probable = lambda unary: next(answers)
        return infer

    rule = engine_rule(hard_graph(2, [[0, 1]]), engine)
    first, _ = rule(np.ones((2, 2)), None)
    second, _ = rule(np.ones((2, 2)), first)
    np.testing.assert_array_equal(first, second)
    third, _ = rule(np.array([[2.0, 1.0], [1.0, 2.0]]), first)
    np.testing.assert_array_equal(third, [1, 0])


# ------------------------------------------------------------------ limits of PPC: lu2007, App. C

SPHERE = np.eye(2)
SIGNED = [[0, 1, 0.9], [1, 2, -0.6], [2, 3, 0.4], [0, 4, -1.1], [3, 4, 0.7]]


def small_problem(seed):
    """Five points, three centres, uneven weights."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 2)), rng.normal(size=(3, 2)), rng.dirichlet([5, 5, 5])


def posterior(X, means, weights, rows, variance):
    """Responsibilities of PPC with spherical components, every assignment enumerated."""
    side = SideInformation.build(len(X), preferences=rows)
    theta = Parameters(weights, means, variance * np.stack([SPHERE] * len(means)))
    return e_step(X, theta, side, ENGINES["enumerate"](side.graph)).responsibilities


def scaled(rows, factor):
    return np.array(rows) * [1, 1, factor]


def two_best(X, means, rows):
    """The assignment of least J, and by how much the next one is worse."""
    side = SideInformation.build(len(X), preferences=rows)
    costs = Nodes.of(X, side, 0.5).costs(means)
    z = all_assignments(len(X), len(means))
    values = np.array([objective(costs, side.graph, a) for a in z])
    order = np.argsort(values)
    return z[order[0]], values[order[1]] - values[order[0]]


@pytest.mark.parametrize("seed", range(6))
def test_soft_posterior_becomes_the_assignment_of_pck(seed):
    """[lu2007, eqs. C.5, C.8, C.14]: σ → α σ and W → W / α²."""
    X, means, weights = small_problem(seed)
    best, gap = two_best(X, means, SIGNED)
    alpha = np.sqrt(gap / 60)
    r = posterior(X, means, weights, scaled(SIGNED, alpha**-2), alpha**2)
    # Other assignments have a share of at most e^-60 times ratios of weights, 3^5 times.
    np.testing.assert_allclose(r, np.eye(3)[best], atol=1e-12)
    wide = posterior(X, means, weights, SIGNED, 1.0)
    assert abs(wide - np.eye(3)[best]).max() > 0.05


@pytest.mark.parametrize("seed", range(6))
def test_the_whole_run_of_ppc_becomes_that_of_pck_means(seed):
    """Lloyd's loop and EM of means only, at a variance near zero, side by side."""
    X, means, weights = small_problem(seed)
    alpha = 1e-3
    side = SideInformation.build(5, preferences=SIGNED)
    nodes = Nodes.of(X, side, 0.5)
    rule = engine_rule(side.graph, ENGINES["enumerate"])
    for step in islice(lloyd(nodes, side.graph, means, rule), 6):
        r = posterior(X, means, weights, scaled(SIGNED, alpha**-2), alpha**2)
        np.testing.assert_allclose(means, step.centres, atol=1e-9)
        np.testing.assert_allclose(r, np.eye(3)[step.labels], atol=1e-9)
        if r.sum(axis=0).min() < 0.5:
            # Without points a cluster gets one in Lloyd's loop; in EM it keeps its mean.
            break
        means = (r.T @ X) / r.sum(axis=0)[:, None]


@pytest.mark.parametrize("seed", range(6))
def test_the_whole_run_of_ppc_becomes_that_of_cop_k_means(seed):
    """[lu2007, eq. C.21]: σ → β σ and W → W / β³: broken relations cost ever more."""
    X, means, weights = small_problem(seed)
    must, cannot, beta = [[0, 1]], [[1, 2], [2, 3], [0, 4]], 1e-3
    rows = [[i, j, 1.0] for i, j in must] + [[i, j, -1.0] for i, j in cannot]
    side = SideInformation.build(5, must_link=must, cannot_link=cannot)
    nodes, rule = Nodes.of(X, side), cop_rule(side.graph, 3)
    for step in islice(lloyd(nodes, side.graph, means, rule), 6):
        r = posterior(X, means, weights, scaled(rows, beta**-3), beta**2)
        np.testing.assert_allclose(means, step.centres, atol=1e-9)
        np.testing.assert_allclose(r, np.eye(3)[step.labels[side.node_of]], atol=1e-9)
        if r.sum(axis=0).min() < 0.5:
            break
        means = (r.T @ X) / r.sum(axis=0)[:, None]


def test_the_hard_limit_without_a_consistent_assignment_breaks_as_few_as_it_can():
    """[lu2007, App. C.2] assumes S_Z not empty, which depends on K: three mutual cannot-links."""
    X, means, _ = small_problem(0)
    triangle, beta = [[0, 1], [1, 2], [0, 2]], 1e-3
    with pytest.raises(ValueError, match="points 0, 1 and 2 are mutually"):
        COPKMeans(2).fit(X, cannot_link=triangle)
    rows = [[i, j, -1.0] for i, j in triangle]
    r = posterior(X, means[:2], np.array([0.5, 0.5]), scaled(rows, beta**-3), beta**2)
    z = all_assignments(5, 2)
    n_broken = sum((z[:, i] == z[:, j]).astype(int) for i, j in triangle)
    costs = np.square(X[:, None] - means[:2]).sum(axis=2)[np.arange(5), z].sum(axis=1)
    best = np.lexsort((costs, n_broken))[0]
    assert n_broken[best] == 1
    np.testing.assert_allclose(r, np.eye(2)[z[best]], atol=1e-9)


def test_the_limit_needs_a_single_best_assignment():
    """[lu2007, eqs. C.7, C.14] fail at a tie: both halves of it stay, however small the variance.

    C.12 takes ε > 0 for every other assignment. Consistent relations do not give that.
    """
    X, means = np.array([[0.0, 0.0], [0.0, 0.0]]), np.array([[-1.0, 0.0], [1.0, 0.0]])
    for beta in (1.0, 1e-1, 1e-3):
        rows = scaled([[0, 1, -1.0]], beta**-3)
        r = posterior(X, means, np.array([0.5, 0.5]), rows, beta**2)
        np.testing.assert_allclose(r, 0.5, atol=1e-12)


def test_the_normaliser_is_no_constant_but_may_be_left_out():
    """[lu2007, eqs. C.15, C.23] call log Ω constant; it depends on π, but stays bounded in that."""
    differences = []
    for alpha in (1.0, 0.1, 0.01):
        graph = SideInformation.build(5, preferences=scaled(SIGNED, alpha**-2)).graph
        infer = ENGINES["enumerate"](graph)
        log_z = [infer(np.tile(np.log(w), (5, 1))).log_z for w in ([0.5, 0.5], [0.9, 0.1])]
        differences.append(abs(log_z[0] - log_z[1]))
    assert min(differences) > 0.1
    # Five factors of π, none below 0.1: at most 5 log 10, where 1 / α² grows to 10^4.
    assert max(differences) < 5 * np.log(10)


def test_the_variance_scales_the_penalties():
    """[lu2007, eq. C.8] has no σ: with σ² ≠ 1 the limit of C.6 has the penalties σ² W."""
    X, means = np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([[0.0, 0.0], [3.0, 0.0]])
    weights, alpha, sigma2 = np.array([0.4, 0.6]), 0.05, 4.0
    # Together costs 4.5, apart w or σ² w = 8.
    rows = [[0, 1, 2.0]]
    r = posterior(X, means, weights, scaled(rows, alpha**-2), alpha**2 * sigma2)
    np.testing.assert_array_equal(two_best(X, means, rows)[0], [0, 1])
    together = r.argmax(axis=1)
    assert together[0] == together[1]
    assert two_best(X, means, scaled(rows, sigma2))[1] == pytest.approx(0, abs=1e-12)  # 0 0 or 1 1


# What App. C prints, evaluated on a small problem beside what its own definitions give.


@pytest.fixture
def printed():
    X, means, weights = small_problem(1)
    half = 0.5 * np.square(X[:, None] - means).sum(axis=2)
    W = np.zeros((5, 5))
    for i, j, w in SIGNED:
        W[int(i), int(j)] = W[int(j), int(i)] = w
    z = all_assignments(5, 3)
    same = (z[:, :, None] == z[:, None, :]).astype(float)
    distances = half[np.arange(5), z].sum(axis=1)
    cost = np.array([objective(half, Graph(5, np.array(SIGNED)[:, :2].astype(int),
                                           np.array(SIGNED)[:, 2]), a) for a in z])  # fmt: skip
    return X, means, weights, W, z, same, distances, cost


def test_the_sum_of_eq_c2_runs_over_unordered_pairs_and_its_constant_is_positive(printed):
    *_, W, _, same, distances, cost = printed
    ordered = np.einsum("zij,ij->z", same, W)
    links = W[W > 0].sum() / 2
    np.testing.assert_allclose(distances - ordered / 2 + links, cost, rtol=1e-12)
    # As printed: both orders of each pair, and C = -Σ a.
    assert np.ptp(distances - ordered - cost) > 1
    assert abs(distances - ordered / 2 - links - cost).min() > 1


def test_eqs_c4_c6_c20_c22_print_a_sum_inside_the_product(printed):
    X, means, weights, W, z, same, distances, _ = printed
    ties = np.einsum("zij,ij->z", same, W) / 2
    log_pi = np.log(weights)[z].sum(axis=1)
    side = SideInformation.build(5, preferences=SIGNED)
    theta = Parameters(weights, means, np.stack([SPHERE] * 3))
    evidence = e_step(X, theta, side, ENGINES["enumerate"](side.graph)).log_evidence
    # p(X) = Σ_Z p(X, Z) / Ω, with the density's constant of 1 / 2π a point.
    log_omega = np.log(np.exp(log_pi + ties).sum())
    right = np.log(np.exp(log_pi - distances + ties).sum()) - log_omega - 5 * np.log(2 * np.pi)
    assert right == pytest.approx(evidence, rel=1e-12)
    nested = np.log(np.exp(log_pi - 5 * distances + ties).sum()) - log_omega - 5 * np.log(2 * np.pi)
    assert abs(nested - evidence) > 1


def test_eqs_c10_and_c11_print_one_term_twice(printed):
    _, _, weights, W, z, same, distances, cost = printed
    ties = np.einsum("zij,ij->z", same, W) / 2
    best, log_pi = cost.argmin(), np.log(weights)[z].sum(axis=1)
    log_p = log_pi - distances + ties
    epsilon = (distances - distances[best]) - (ties - ties[best])
    np.testing.assert_allclose(log_p[best] - log_p, log_pi[best] - log_pi + epsilon, atol=1e-12)
    assert (np.delete(epsilon, best) > 0).all()
    # As printed, z' minus z' in the distances leaves the ties alone. These are no larger for Z*
    # than for the same partition under other names, so C.11 would not be positive there.
    assert np.delete(ties[best] - ties, best).min() < 1e-12


# ------------------------------------------------------------------ starts


def test_large_chunklets_far_apart_are_the_seeds():
    """Three chunklets of four points far apart, and one pair that is near the first."""
    rng = np.random.default_rng(0)
    places = np.array([[0, 0], [100, 0], [0, 100], [1, 1]])
    X = np.repeat(places, [4, 4, 4, 2], axis=0) + 0.01 * rng.normal(size=(14, 2))
    node_of = np.repeat(np.arange(4), [4, 4, 4, 2])
    X, node_of = np.r_[X, 50 * rng.normal(size=(30, 2))], np.r_[node_of, np.arange(4, 34)]
    for seed in range(20):
        seeds = chunklet_seeds(X, node_of, 3, np.random.RandomState(seed))
        nearest = np.linalg.norm(seeds[:, None] - places[:3], axis=2).argmin(axis=1)
        assert set(nearest) == {0, 1, 2}
        assert np.linalg.norm(seeds - places[nearest], axis=1).max() < 1.5


def test_seeds_do_not_tear_chunklets():
    """Three chunklets whose points lie among those of the others; their means are far apart."""
    X = np.array([[-50.0], [50.0], [-40.0], [60.0], [-45.0], [75.0]])
    for seed in range(10):
        seeds = chunklet_seeds(X, np.repeat([0, 1, 2], 2), 3, np.random.RandomState(seed))
        np.testing.assert_allclose(np.sort(seeds.ravel()), [0.0, 10.0, 15.0])


def test_with_few_chunklets_each_is_a_seed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    node_of = np.r_[0, 0, 0, 1, 1, np.arange(2, 27)]
    seeds = chunklet_seeds(X, node_of, 5, np.random.RandomState(0))
    np.testing.assert_allclose(seeds[0], X[:3].mean(axis=0))
    np.testing.assert_allclose(seeds[1], X[3:5].mean(axis=0))
    assert seeds.shape == (5, 2)
    assert len(np.unique(seeds, axis=0)) == 5
    without = chunklet_seeds(X, np.arange(30), 5, np.random.RandomState(0))
    start = cgmm.kmeans.seeds._plus_plus(X, None, 5, np.random.RandomState(0))
    np.testing.assert_array_equal(without, start)


def test_seeded_k_means_uses_the_relations_for_its_start_only():
    """PCKMeans with w = 0: Lloyd from the chunklets, and no penalty afterwards."""
    X, y = load_iris(return_X_y=True)
    must, _ = random_pairs(y, 60, random_state=0)
    model = PCKMeans(3, w=0.0, random_state=5).fit(X, must_link=must)
    chunklets = SideInformation.build(150, must_link=must).node_of
    start = chunklet_seeds(X, chunklets, 3, np.random.RandomState(5))
    plain = KMeans(3, init=start, n_init=1).fit(X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)
    assert model.objective_ == pytest.approx(plain.inertia_ / 2, rel=1e-12)


# ------------------------------------------------------------------ empty clusters


@given(seed=st.integers(0, 10**6), make=st.sampled_from([COPKMeans, PCKMeans]))
def test_empty_clusters_are_filled_without_loss(seed, make):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=30)
    X = rng.normal(size=(30, 2)) + 3 * np.eye(3)[y][:, :2]
    must, cannot = overlapping_pairs(y, 12, seed)
    start = np.concatenate([X[:2], X[:3] + 500])
    model = make(5, init=start).fit(X, must_link=must, cannot_link=cannot)
    assert len(set(model.labels_)) == 5
    assert never_rises(model.history_)
    if make is COPKMeans:
        assert broken_relations(model.labels_, must, cannot) == NONE_BROKEN


def test_a_node_that_ties_hold_is_not_torn_away():
    """The farthest point, 2, would pay 1000 for leaving: 0 fills the empty cluster."""
    costs = np.array([[4.0, 9.0], [1.0, 9.0], [6.0, 9.0]])
    graph = Graph(3, np.array([[1, 2]]), np.array([1000.0]))
    z = cgmm.kmeans.loop._fill_empty(costs, graph, np.zeros(3, dtype=int))
    np.testing.assert_array_equal(z, [1, 0, 0])
    repelled = graph._replace(weights=np.array([-3.5]))
    z = cgmm.kmeans.loop._fill_empty(costs, repelled, np.zeros(3, dtype=int))
    np.testing.assert_array_equal(z, [0, 0, 1])


def test_a_lonely_point_does_not_leave_its_cluster():
    costs = np.array([[4.0, 9.0, 9.0], [9.0, 1.0, 9.0], [9.0, 2.0, 9.0]])
    z = cgmm.kmeans.loop._fill_empty(costs, Graph(3, np.empty((0, 2), int), np.empty(0)),
                                np.array([0, 1, 1]))  # fmt: skip
    np.testing.assert_array_equal(z, [0, 1, 2])


def test_clusters_that_nothing_can_fill_are_reported():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 2 of 3 clusters"):
        model = COPKMeans(3, random_state=0).fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    assert model.inertia_ == 0
    chain = [[i, i + 1] for i in range(9)]
    with pytest.warns(ConvergenceWarning, match="only 1 of 2 clusters"):
        COPKMeans(2, random_state=0).fit(np.random.default_rng(0).normal(size=(10, 2)),
                                         must_link=chain)  # fmt: skip


# ------------------------------------------------------------------ the shell


def relations_on_wine():
    X, y = load_wine(return_X_y=True)
    must, cannot = overlapping_pairs(y, 150, 0)
    return X, {"must_link": must, "cannot_link": cannot}


@pytest.mark.parametrize("make", [COPKMeans, PCKMeans])
def test_same_seed_same_answer_and_more_starts_are_no_worse(make):
    X, relations = relations_on_wine()
    one = make(4, random_state=2, init="random").fit(X, **relations)
    again = clone(one).fit(X, **relations)
    np.testing.assert_array_equal(one.labels_, again.labels_)
    np.testing.assert_array_equal(one.history_, again.history_)
    many = clone(one).set_params(n_init=10).fit(X, **relations)
    rng, singles = np.random.RandomState(2), []
    for _ in range(10):
        singles.append(make(4, random_state=rng, init="random").fit(X, **relations).objective_)
    assert many.objective_ == min(singles) < max(singles)
    assert singles[0] == one.objective_
    np.testing.assert_array_equal(one.fit_predict(X, **relations), one.labels_)


def test_labels_of_the_fit_obey_relations_and_predictions_do_not():
    X = np.array([[0.0], [0.1], [10.0], [10.1]])
    model = COPKMeans(2, init=[[0.0], [10.0]]).fit(X, cannot_link=[[0, 1]], must_link=[[2, 3]])
    assert model.labels_[0] != model.labels_[1]
    assert model.predict([[0.0], [0.1]])[0] == model.predict([[0.0], [0.1]])[1]
    assert model.transform(X).shape == (4, 2)
    assert list(model.get_feature_names_out()) == ["copkmeans0", "copkmeans1"]
    with pytest.raises(NotFittedError):
        COPKMeans(2).predict(X)


def test_too_few_iterations_warn():
    X, relations = relations_on_wine()
    with pytest.warns(ConvergenceWarning, match="did not converge in 1"):
        model = COPKMeans(3, random_state=0, max_iter=1, init="random").fit(X, **relations)
    assert not model.converged_
    assert model.n_iter_ == 1
    must, cannot = relations.values()
    assert broken_relations(model.labels_, must, cannot) == NONE_BROKEN


def interrupting(after, original):
    calls = iter(range(10**6))

    def loop(*args):
        for step in original(*args):
            if next(calls) == after:
                raise KeyboardInterrupt
            yield step

    return loop


@pytest.mark.parametrize("after", [2, 12])
def test_interruption_keeps_the_best_so_far(monkeypatch, after):
    X, relations = relations_on_wine()
    settings = {"random_state": 0, "init": "random", "n_init": 50}
    monkeypatch.setattr(cgmm.kmeans.base, "lloyd", interrupting(after, lloyd))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = PCKMeans(3, w=1e4, **settings).fit(X, **relations)
    monkeypatch.undo()
    whole = PCKMeans(3, w=1e4, **settings).set_params(n_init=1).fit(X, **relations)
    if after == 2:
        np.testing.assert_array_equal(model.history_, whole.history_[:2])
    else:
        assert model.objective_ <= whole.objective_
    assert model.objective_ == pytest.approx(model.history_[-1], rel=1e-12)


def test_interruption_at_the_beginning_of_a_later_run_keeps_the_earlier(monkeypatch):
    X, relations = relations_on_wine()
    first = PCKMeans(3, random_state=0, init="random").fit(X, **relations)
    after = len(first.history_)
    monkeypatch.setattr(cgmm.kmeans.base, "lloyd", interrupting(after, lloyd))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = PCKMeans(3, random_state=0, init="random", n_init=5).fit(X, **relations)
    np.testing.assert_array_equal(model.labels_, first.labels_)


def test_interruption_before_anything_is_an_interruption(monkeypatch):
    X, relations = relations_on_wine()
    monkeypatch.setattr(cgmm.kmeans.base, "lloyd", interrupting(0, lloyd))
    with pytest.raises(KeyboardInterrupt):
        COPKMeans(3, random_state=0).fit(X, **relations)


def test_verbose_reports_runs_and_iterations():
    X, relations = relations_on_wine()
    out = io.StringIO()
    with redirect_stdout(out):
        COPKMeans(3, random_state=0, n_init=2, verbose=2).fit(X, **relations)
        COPKMeans(3, random_state=0).fit(X, **relations)
    lines = out.getvalue().splitlines()
    assert sum(line.startswith("run ") for line in lines) == 2
    assert any("iteration    0" in line for line in lines)
    assert len([line for line in lines if not line.startswith(("run", "  iteration"))]) == 0


@pytest.mark.parametrize("make", [COPKMeans, PCKMeans])
@pytest.mark.parametrize(
    ("relations", "message"),
    [
        ({"must_link": [[0, 99]]}, r"must_link\[0\] is \[0, 99\]"),
        ({"cannot_link": [[0, 1], [3, 3]]}, r"cannot_link\[1\] ties point 3 to itself"),
        ({"cannot_link": [[0, 1, 2]]}, r"cannot_link has shape"),
    ],
)
def test_relations_that_name_no_pair_are_refused(make, relations, message):
    with pytest.raises(ValueError, match=message):
        make(2).fit(np.arange(10.0).reshape(5, 2), **relations)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda X: COPKMeans(2, init=np.zeros((3, 2))).fit(X), r"init has shape \(3, 2\)"),
        (lambda X: COPKMeans(2, init=np.full((2, 2), np.nan)).fit(X), "finite"),
        (lambda X: COPKMeans(2, init="nowhere").fit(X), "init"),
        (lambda X: PCKMeans(2, w=-1.0).fit(X), "w"),
        (lambda X: COPKMeans(9).fit(X), "minimum of 9"),
        (lambda X: COPKMeans(2).fit(X * 1e200), r"column \d spans .* overflow"),
        (lambda X: PCKMeans(2).fit(X, preferences=[[0, 1, np.nan]]), r"preferences\[0\]"),
        (
            lambda X: COPKMeans(2).fit(X, must_link=[[0, 1], [1, 2]], cannot_link=[[0, 2]]),
            "0 - 1 - 2",
        ),
        (lambda X: COPKMeans(1).fit(X, cannot_link=[[0, 3]]), r"points 0 and 3 are mutually"),
    ],
)
def test_bad_input_is_refused(fit, message):
    with pytest.raises(ValueError, match=message):
        fit(np.arange(10.0).reshape(5, 2))


def test_teachers_relations_are_honoured():
    """[shental2003, sect. 3]: cliques of chunklets, from every teacher, on all of wine."""
    X, y = load_wine(return_X_y=True)
    must, cannot = teachers(y, 30, 6, random_state=0)
    model = COPKMeans(3, random_state=0).fit(X, must_link=must, cannot_link=cannot)
    assert broken_relations(model.labels_, must, cannot) == NONE_BROKEN


def test_nearest_rule_knows_no_relations():
    z, optimal = nearest_rule(np.array([[1.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(z, [1, 0])
    assert optimal


def test_exchanges_stop_where_every_node_is_tempted_and_none_can_move():
    # Each of three would rather be where the next one is, who loses more by any exchange.
    costs = np.array([[1.0, 0.0, 9.0], [9.0, 1.0, 0.0], [0.0, 9.0, 1.0]])
    neighbours = [np.array([1, 2]), np.array([0, 2]), np.array([0, 1])]
    z = np.arange(3)
    np.testing.assert_array_equal(cgmm.kmeans.exchange.exchange(costs, neighbours, z), z)
    # All three at once do better, which is why the search goes on after exchanges.
    found, best = cgmm.kmeans.branch_and_bound.branch_and_bound(costs, neighbours, z, 1000)
    np.testing.assert_array_equal(found, [1, 2, 0])
    assert best


def test_a_component_without_a_core_needs_no_search():
    path = Graph(6, np.column_stack([np.arange(5), np.arange(1, 6)]), np.ones(5))
    search = cgmm.kmeans.search.Colourer(2, 0, np.random.RandomState(0), None)
    colours = search._colour_component(adjacency(path), np.arange(6), None)
    assert set(colours.tolist()) == {0, 1}
    assert (np.diff(colours) != 0).all()
