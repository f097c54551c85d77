"""Laws of public functions that no room's own tests hold, on random problems."""

from __future__ import annotations

import itertools
from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from cgmm import datasets, kmeans, metric_learning, mixture, scenarios
from cgmm.diagnose import expected_flip_rate
from cgmm.inference import (
    eliminate,
    elimination_order,
    enumerate_assignments,
    forbidden_clique,
    min_fill,
    require_colourable,
)
from cgmm.inference.auto import auto
from cgmm.inference.contraction_rounds import best, conditional, log_sum
from cgmm.inference.gibbs import gibbs, gibbs_chains
from cgmm.kmeans import Nodes
from cgmm.mixture import (
    POOLINGS,
    CategoricalParameters,
    Categories,
    Parameters,
    Posterior,
    Prior,
    categorical,
    closed_form,
    exact,
    grid,
    ignore,
    m_step,
    node_unaries,
    one_hot,
    prior_unaries,
    pseudo_likelihood,
    weighted_moments,
)
from cgmm.network import (
    Graph,
    NetworkError,
    SideInformation,
    are_disjoint_pairs,
    check_unary,
    edgeless,
    require_edgeless,
)
from cgmm.numerics import check_pairs, is_better
from cgmm.replicate.choosing import ask
from cgmm.replicate.design import Setting, attempt, seed_of

FEW = settings(max_examples=40)
SEEDS = st.integers(0, 2**31 - 1)
SMALL = st.integers(1, 5)


# ---------------------------------------------------------------------------- problems to try


def mixture_of(rng: np.random.Generator, K: int, D: int) -> Parameters:
    A = rng.normal(size=(K, D, D))
    covariances = A @ A.transpose(0, 2, 1) + 0.1 * np.eye(D)
    return Parameters(rng.dirichlet(np.ones(K)), 3 * rng.normal(size=(K, D)), covariances)


def relations(rng: np.random.Generator, N: int, K: int, **given_too) -> SideInformation:
    """What K classes z can honour: must-links, cannot-links and preferences."""
    z, pairs = rng.integers(K, size=N), rng.integers(N, size=(rng.integers(0, N + 1), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same, soft = z[pairs[:, 0]] == z[pairs[:, 1]], rng.random(len(pairs)) < 0.4
    odds = rng.normal(size=len(pairs)) * 3
    return SideInformation.build(
        N, must_link=pairs[same & ~soft], cannot_link=pairs[~same & ~soft],
        preferences=np.column_stack([pairs, odds])[soft], **given_too,
    )  # fmt: skip


def network(rng: np.random.Generator, n: int, *, hard: float = 0.3) -> Graph:
    pairs = np.array(list(itertools.combinations(range(n), 2)), dtype=int).reshape(-1, 2)
    edges = pairs[rng.random(len(pairs)) < 0.5]
    weights = np.where(rng.random(len(edges)) < hard, -np.inf, 2 * rng.normal(size=len(edges)))
    return Graph(n, edges, weights)


def nx_graph(graph: Graph) -> nx.Graph:
    made = nx.Graph()
    made.add_nodes_from(range(graph.n_nodes))
    made.add_edges_from(graph.edges.tolist())
    return made


# ---------------------------------------------------------------------------- numerics, network


@FEW
@given(st.lists(st.tuples(st.integers(-3, 9), st.integers(-3, 9)), max_size=6), st.integers(1, 9))
def test_pairs_come_back_whole_or_the_first_bad_row_is_named(pairs, n_points):
    wrong = [k for k, pair in enumerate(pairs) if not all(0 <= i < n_points for i in pair)]
    if wrong:
        with pytest.raises(ValueError, match=rf"^pairs\[{wrong[0]}\] is"):
            check_pairs("pairs", pairs, n_points)
    else:
        assert check_pairs("pairs", np.array(pairs, dtype=float), n_points).tolist() == [
            list(pair) for pair in pairs
        ]


@FEW
@given(SEEDS, st.integers(1, 8))
def test_disjoint_pairs_are_graphs_of_degree_one(seed, n):
    rng = np.random.default_rng(seed)
    graph = network(rng, n)
    graph = Graph(n, graph.edges[rng.random(len(graph.edges)) < 0.3], np.empty(0))
    degrees = [degree for _, degree in nx_graph(graph).degree]
    assert are_disjoint_pairs(graph) == (max(degrees, default=0) <= 1)


@FEW
@given(SEEDS, SMALL, SMALL)
def test_unaries_are_kept_or_the_node_is_named(seed, n, K):
    rng = np.random.default_rng(seed)
    unary = np.where(rng.random((n, K)) < 0.4, -np.inf, rng.normal(size=(n, K)))
    empty = np.flatnonzero((unary == -np.inf).all(axis=1))
    if len(empty):
        with pytest.raises(NetworkError, match=f"^node {empty[0]} "):
            check_unary(edgeless(n), unary)
    else:
        np.testing.assert_array_equal(check_unary(edgeless(n), unary), unary)
        with pytest.raises(ValueError, match="shape"):
            check_unary(edgeless(n + 1), unary)


@FEW
@given(SEEDS, st.integers(2, 7), st.integers(2, 5))
def test_forbidden_cliques_are_found_exactly_when_they_are_there(seed, n, size):
    graph = network(np.random.default_rng(seed), n, hard=0.8)
    hard = {tuple(edge) for edge in graph.edges[graph.weights == -np.inf].tolist()}
    cliques = [
        nodes for nodes in itertools.combinations(range(n), size)
        if all(pair in hard for pair in itertools.combinations(nodes, 2))
    ]  # fmt: skip
    found = forbidden_clique(graph, size)
    assert (found is None and not cliques) or tuple(found.tolist()) in cliques


@FEW
@given(SEEDS, st.integers(2, 6))
def test_a_graph_is_edgeless_or_the_edge_is_named(seed, n):
    rng = np.random.default_rng(seed)
    graph = network(rng, n, hard=0.0)
    graph = graph._replace(weights=graph.weights * (rng.random(len(graph.weights)) < 0.3))
    if not graph.weights.any():
        require_edgeless(graph, "mine")
        return
    a, b = graph.edges[np.flatnonzero(graph.weights)[0]]
    with pytest.raises(NetworkError, match=f"'mine' .* nodes {a} and {b} are tied"):
        require_edgeless(graph, "mine")


@FEW
@given(SEEDS, st.integers(2, 7), st.integers(1, 4))
def test_colourable_as_far_as_cliques_tell(seed, n, K):
    graph = network(np.random.default_rng(seed), n, hard=1.0)
    side = SideInformation.build(n, cannot_link=graph.edges)
    largest = max(map(len, nx.find_cliques(nx_graph(graph))))
    if largest <= K:
        require_colourable(side, K)
    else:
        with pytest.raises(ValueError, match=f"need {K + 1} components, and there are {K}"):
            require_colourable(side, K)


# ---------------------------------------------------------------------------- engines


def assert_same_as_enumeration(infer, graph: Graph, unary: np.ndarray) -> None:
    try:
        truth = enumerate_assignments(graph)(unary)
    except ValueError:
        with pytest.raises(ValueError, match=r"possible|mutually"):
            infer(unary)
        return
    found = infer(unary)
    np.testing.assert_allclose(found.nodes, truth.nodes, rtol=0, atol=1e-12)
    assert found.log_z == pytest.approx(truth.log_z, rel=1e-12, abs=1e-12)


@FEW
@given(SEEDS, st.integers(1, 6), st.integers(1, 3))
def test_auto_equals_enumeration(seed, n, K):
    rng = np.random.default_rng(seed)
    graph = network(rng, n)
    assert_same_as_enumeration(auto(graph), graph, 3 * rng.normal(size=(n, K)))


@settings(max_examples=15)
@given(SEEDS, st.integers(2, 4))
@example(638539, 3)  # no edge is strong, but two of them together hold a node
def test_gibbs_forgets_nothing_that_is_hard_and_is_near_the_truth(seed, n):
    rng = np.random.default_rng(seed)
    graph, unary = network(rng, n, hard=0.0), rng.normal(size=(n, 3))
    unary[0] = [-np.inf, 0.0, 0.0]
    found = gibbs(graph, n_chains=400, n_sweeps=100, burn_in=50, random_state=seed)(unary).nodes
    assert found[0, 0] == 0
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    # 40,000 sweeps, correlated: standard errors of a few thousandths, and a margin for few chains.
    np.testing.assert_allclose(found, enumerate_assignments(graph)(unary).nodes, atol=0.05)


@settings(max_examples=15)
@given(SEEDS, st.integers(1, 5), st.integers(1, 3))
def test_chains_are_those_of_the_engine(seed, n, K):
    rng = np.random.default_rng(seed)
    graph, unary = network(rng, n, hard=0.0), rng.normal(size=(n, K))
    few = {"n_sweeps": 7, "burn_in": 2, "n_chains": 3, "random_state": seed}
    chains = gibbs_chains(graph, unary, **few)
    np.testing.assert_array_equal(chains.nodes, gibbs(graph, **few)(unary).nodes)
    np.testing.assert_array_equal(chains.counts.sum(axis=0), np.full((3, 7), n))
    together = chains.best[graph.edges[:, 0]] == chains.best[graph.edges[:, 1]]
    largest = unary[np.arange(n), chains.best].sum() + graph.weights[together].sum()
    assert chains.log_weights.max() == pytest.approx(largest, rel=1e-12, abs=1e-12)


@FEW
@given(SEEDS, SMALL, SMALL, st.floats(-1e5, 1e5))
def test_sums_in_logs_bound_the_largest_and_move_with_offsets(seed, n, K, offset):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((n, K)) < 0.2, -np.inf, rng.normal(size=(n, K)) * 30)
    top, total = best(values, 1), log_sum(values, 1)
    assert (total >= top).all()
    assert (total <= top + np.log(K) + 1e-12).all()
    np.testing.assert_allclose(log_sum(values + offset, 1), total + offset, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(best(values + offset, 1), top + offset)


@FEW
@given(SEEDS, SMALL, SMALL, SMALL)
def test_conditionals_are_distributions_wherever_something_is_possible(seed, n, K, L):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((n, K, L)) < 0.3, -np.inf, rng.normal(size=(n, K, L)) * 50)
    found = conditional(values.copy(), 1)
    possible = (values > -np.inf).any(axis=1)
    np.testing.assert_allclose(found.sum(axis=1), possible.astype(float), rtol=1e-12, atol=0)
    assert (found[values == -np.inf] == 0).all()
    for i, j in np.argwhere(possible):
        seen = found[i, :, j] > 1e-300
        shares = np.log(found[i, seen, j]) - values[i, seen, j]
        np.testing.assert_allclose(shares, shares[0], rtol=0, atol=1e-10)


def assert_an_elimination(graph: Graph, steps) -> None:
    """Word for word: the neighbours of a node when it goes, who then are tied to each other."""
    left = nx_graph(graph)
    for v, near in steps:
        assert set(near) == set(left[v])
        left.add_edges_from(itertools.combinations(near, 2))
        left.remove_node(v)
    assert left.number_of_edges() == 0


@FEW
@given(SEEDS, st.integers(1, 9))
def test_every_order_eliminates_as_the_definition_says(seed, n):
    rng = np.random.default_rng(seed)
    graph = network(rng, n)
    nodes = np.unique(graph.edges)
    assert_an_elimination(graph, eliminate(graph.edges, rng.permutation(nodes).tolist()))
    filled = min_fill(graph.edges, rng.permutation(n), n)
    assert sorted(v for v, _ in filled) == nodes.tolist()
    assert_an_elimination(graph, filled)
    order = elimination_order(graph.edges, 3, n)
    assert sorted(order.nodes) == nodes.tolist()
    assert order.stuck == []
    assert_an_elimination(graph, zip(order.nodes, order.neighbours, strict=True))


# ---------------------------------------------------------------------------- EM


@FEW
@given(SEEDS, st.integers(1, 6), SMALL, st.integers(1, 3), st.sampled_from(["points", "chunklets"]))
def test_unaries_are_sums_over_the_points_of_a_node(seed, N, K, D, sampling):
    rng = np.random.default_rng(seed)
    theta, side = mixture_of(rng, K, D), relations(rng, N, K, sampling=sampling)
    X = rng.normal(size=(N, D))
    prior = prior_unaries(theta.weights, side)
    found = node_unaries(X, theta, side)
    for j in range(side.n_nodes):
        members = side.node_of == j
        n_j = members.sum() if sampling == "points" else 1
        np.testing.assert_allclose(prior[j], n_j * np.log(theta.weights), rtol=1e-12)
        sums = mixture.log_density(X, theta)[members].sum(axis=0)
        np.testing.assert_allclose(found[j], sums + prior[j], rtol=1e-9, atol=1e-9)


@FEW
@given(SEEDS, st.integers(5, 12), st.integers(1, 3), st.sampled_from(sorted(POOLINGS)))
def test_the_m_step_beats_every_competitor_of_its_type(seed, N, K, pool):
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(N, 2)) * 3, rng.dirichlet(np.ones(K), N)
    pooling, start = POOLINGS[pool], mixture_of(rng, K, 2)
    found = m_step(X, start, Posterior(r, r.sum(axis=0), 0.0), pooling, closed_form)
    scatter = weighted_moments(X, rng.dirichlet(np.ones(K), N)).scatter + np.eye(2)
    pooled = pooling.reduce(pooling.combine(r.sum(axis=0), scatter * rng.uniform(0.3, 3)))
    rival = Parameters(
        rng.dirichlet(np.ones(K)), found.means + rng.normal(size=(K, 2)) * 0.1,
        pooling.expand(pooled, K, 2),
    )  # fmt: skip
    bounds = [np.sum(r * theta.log_joint(X)) for theta in (found, rival)]
    assert bounds[0] >= bounds[1] - 1e-9 * abs(bounds[1])


@FEW
@given(SEEDS, st.integers(1, 30), SMALL, SMALL, st.booleans())
def test_moments_are_those_of_numpy(seed, N, K, D, diagonal):
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(N, D)) * 3 + 7, rng.dirichlet(np.ones(K), N)
    found = weighted_moments(X, r, diagonal=diagonal)
    np.testing.assert_allclose(found.counts, r.sum(axis=0), rtol=1e-12)
    for k in range(K):
        np.testing.assert_allclose(found.means[k], np.average(X, axis=0, weights=r[:, k]))
        truth = np.cov(X.T, aweights=r[:, k], bias=True).reshape(D, D) * r[:, k].sum()
        truth = np.diag(truth) if diagonal else truth
        np.testing.assert_allclose(found.scatter[k], truth, rtol=1e-7, atol=1e-9 * N)


@FEW
@given(SEEDS, SMALL, st.integers(1, 3), st.integers(1, 200))
def test_samples_are_as_many_as_asked_and_an_affine_map_of_the_same_noise(seed, K, D, n):
    theta = mixture_of(np.random.default_rng(seed), K, D)
    X, z = mixture.sample(theta, n, np.random.default_rng(1))
    assert X.shape == (n, D)
    assert (np.diff(z) >= 0).all()
    moved = theta._replace(means=theta.means + 5, covariances=theta.covariances * 4)
    Y, same = mixture.sample(moved, n, np.random.default_rng(1))
    np.testing.assert_array_equal(z, same)
    np.testing.assert_allclose(Y - moved.means[z], 2 * (X - theta.means[z]), atol=1e-9)


@FEW
@given(SEEDS, st.integers(1, 20), st.lists(st.integers(1, 5), min_size=1, max_size=4), SMALL)
def test_categories_survive_being_written_as_ones(seed, N, sizes, K):
    rng = np.random.default_rng(seed)
    X = rng.integers(sizes, size=(N, len(sizes)))
    rows = one_hot(X, sizes).toarray()
    parts = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
    np.testing.assert_array_equal(np.column_stack([p.argmax(axis=1) for p in parts]), X)
    assert (rows.sum(axis=1) == len(sizes)).all()
    p = [rng.dirichlet(np.ones(size), K) for size in sizes]
    theta = CategoricalParameters(rng.dirichlet(np.ones(K)), np.concatenate(p, axis=1))
    drawn, z = categorical.sample(theta, Categories(tuple(sizes)), N, rng)
    assert drawn.shape == X.shape
    assert ((drawn >= 0) & (drawn < sizes)).all()
    # What was drawn can be read again, and was possible.
    assert (theta.log_density(one_hot(drawn, sizes))[np.arange(N), z] > -np.inf).all()


# ---------------------------------------------------------------------------- weights


@FEW
@given(SEEDS, st.integers(2, 6), st.integers(2, 3))
def test_exact_weights_match_counts_and_the_grid_comes_near(seed, N, K):
    rng = np.random.default_rng(seed)
    side = relations(rng, N, K)
    prior = Prior(side, enumerate_assignments)
    counts = side.multiplicity @ rng.dirichlet(np.ones(K) * 5, side.n_nodes)
    # Counts that some weights can match: those of a prior.
    counts = prior.log_z_and_counts(np.log(closed_form(counts)))[1]
    weights = exact(prior)(counts)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    matched = prior.log_z_and_counts(np.log(weights))[1]
    np.testing.assert_allclose(matched, counts, atol=1e-4 * counts.sum())

    def bound(pi):
        return counts @ np.log(pi) - prior.log_z(pi)

    coarse = grid(prior, resolution=0.1)(counts)
    tried = np.array([p for p in itertools.product(range(1, 10), repeat=K) if sum(p) == 10]) / 10
    assert bound(coarse) == pytest.approx(max(map(bound, tried)), rel=1e-9, abs=1e-9)
    assert bound(weights) >= bound(coarse) - 1e-6 * counts.sum()
    np.testing.assert_array_equal(ignore(prior)(counts), closed_form(counts))


@FEW
@given(SEEDS, st.integers(2, 8), st.integers(2, 3))
def test_pseudo_likelihood_is_exact_where_relations_share_no_point(seed, n_pairs, K):
    rng = np.random.default_rng(seed)
    odds = rng.choice([-np.inf, -3.0, 0.5, 40.0, 800.0], n_pairs)
    pairs = np.arange(2 * n_pairs).reshape(-1, 2)
    side = SideInformation.build(
        2 * n_pairs + 3, preferences=np.column_stack([pairs, odds]),
        must_link=[[2 * n_pairs, 2 * n_pairs + 1]],
    )  # fmt: skip
    prior = Prior(side, auto)
    counts = prior.log_z_and_counts(np.log(rng.dirichlet(np.ones(K) * 9)))[1]
    np.testing.assert_allclose(pseudo_likelihood(prior)(counts), exact(prior)(counts), atol=1e-6)


# ---------------------------------------------------------------------------- starts


@FEW
@given(SEEDS, st.integers(4, 12), st.integers(1, 4))
def test_starts_are_responsibilities_whatever_is_known(seed, N, K):
    rng, state = np.random.default_rng(seed), np.random.RandomState(seed)
    X = rng.normal(size=(N, 2))
    labels = np.where(rng.random(N) < 0.5, rng.integers(K, size=N), -1)
    labels[0] = 0
    side = SideInformation.build(N, labels=labels)
    for start in (
        mixture.far_points(X, K, state),
        mixture.random_points(X, K, state),
        mixture.random_responsibilities(X, K, state),
        mixture.from_labels(X, K, state, side),
        mixture.from_chunklets(X, K, state, relations(rng, N, K)),
    ):
        assert start.shape == (N, K)
        assert (start >= 0).all()
        np.testing.assert_allclose(start.sum(axis=1), 1, rtol=1e-12)
        honest = mixture.honour(start, side)
        np.testing.assert_allclose(honest.sum(axis=1), 1, rtol=1e-12)
        assert (honest[labels >= 0, labels[labels >= 0]] == 1).all()


@FEW
@given(SEEDS, st.integers(3, 12), st.integers(2, 4))
def test_honour_gives_a_chunklet_the_mean_of_its_points(seed, N, K):
    rng = np.random.default_rng(seed)
    r, side = rng.dirichlet(np.ones(K), N), relations(rng, N, K)
    found = mixture.honour(r, side)
    for j in range(side.n_nodes):
        members = side.node_of == j
        np.testing.assert_allclose(found[members], [r[members].mean(axis=0)] * members.sum())


@FEW
@given(SEEDS, st.integers(1, 12), st.integers(1, 4), st.floats(-100, 100))
def test_seeds_are_points_and_move_with_them(seed, N, K, offset):
    # Multiples of 1/8, so that the offset changes no distance.
    X = np.random.default_rng(seed).integers(-80, 80, size=(N, 2)) / 8
    found = mixture.seeds(X, K, np.random.RandomState(seed), first=X[:1])
    assert found.shape == (K, 2)
    np.testing.assert_array_equal(found[0], X[0])
    assert all((centre == X).all(axis=1).any() for centre in found)
    offset = np.round(offset)
    moved = mixture.seeds(X + offset, K, np.random.RandomState(seed), first=X[:1] + offset)
    np.testing.assert_array_equal(moved, found + offset)
    # As long as points differ from all seeds so far, the next one does.
    assert len(np.unique(found, axis=0)) == min(K, len(np.unique(X, axis=0)))


# ---------------------------------------------------------------------------- k-means


@FEW
@given(SEEDS, st.integers(2, 15), st.integers(1, 4))
def test_lloyd_falls_to_the_sum_of_squares_of_its_labels(seed, N, K):
    assume(K <= N)
    rng = np.random.default_rng(seed)
    X, side = rng.normal(size=(N, 2)), SideInformation.build(N)
    steps = kmeans.lloyd(Nodes.of(X, side), side.graph, X[:K], kmeans.nearest_rule)
    course = list(itertools.islice(steps, 8))
    for step in course:
        z, optimal = kmeans.nearest_rule(np.square(X[:, None] - step.centres).sum(axis=2))
        np.testing.assert_array_equal(step.labels, z)
        assert optimal
        assert step.objective == pytest.approx(np.square(X - step.centres[z]).sum(), rel=1e-9)
    assert (np.diff([step.objective for step in course]) <= 1e-9 * N).all()


@FEW
@given(SEEDS, st.integers(2, 8), st.integers(1, 4))
def test_the_penalty_is_the_sum_over_broken_edges(seed, n, K):
    rng = np.random.default_rng(seed)
    graph, z = network(rng, n), rng.integers(K, size=n)
    paid = sum(
        abs(w) for (a, b), w in zip(graph.edges, graph.weights, strict=True)
        if np.isfinite(w) and (z[a] == z[b]) == (w < 0)
    )  # fmt: skip
    assert kmeans.penalty(graph, z) == pytest.approx(paid, rel=1e-12)


@FEW
@given(SEEDS, st.integers(2, 12), st.integers(1, 4))
def test_seeds_by_chunklets_are_means_of_points(seed, N, K):
    assume(K <= N)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    node_of = relations(rng, N, 3).node_of
    found = kmeans.chunklet_seeds(X, node_of, K, np.random.RandomState(seed))
    assert found.shape == (K, 2)
    assert (found >= X.min(axis=0) - 1e-12).all()
    assert (found <= X.max(axis=0) + 1e-12).all()
    again = kmeans.chunklet_seeds(X, node_of, K, np.random.RandomState(seed))
    np.testing.assert_array_equal(found, again)


# ---------------------------------------------------------------------------- RCA


def spd(rng: np.random.Generator, D: int) -> np.ndarray:
    A = rng.normal(size=(D, D))
    return A @ A.T + 0.05 * np.eye(D)


@FEW
@given(SEEDS, st.integers(2, 5))
def test_fishers_directions_solve_his_equation(seed, D):
    rng = np.random.default_rng(seed)
    within = spd(rng, D)
    total = within + spd(rng, D)
    K = int(rng.integers(1, D + 1))
    rows, ratios = metric_learning.cfld(within, total, K)
    np.testing.assert_allclose(rows @ within @ rows.T, np.eye(K), atol=1e-9)
    np.testing.assert_allclose(rows @ total, ratios[:, None] * rows @ within, atol=1e-7 * ratios[0])
    assert (np.diff(ratios) <= 1e-9 * ratios[0]).all()


@FEW
@given(SEEDS, st.integers(1, 5))
def test_no_direction_varies_more_than_the_principal_ones(seed, D):
    rng = np.random.default_rng(seed)
    S = spd(rng, D)
    rows = metric_learning.principal_axes(S, D)
    np.testing.assert_allclose(rows @ rows.T, np.eye(D), atol=1e-12)
    variances = np.einsum("kd,de,ke->k", rows, S, rows)
    assert (np.diff(variances) <= 1e-9 * variances[0]).all()
    other = rng.normal(size=D)
    assert other @ S @ other <= variances[0] * (other @ other) * (1 + 1e-9)


@FEW
@given(SEEDS, st.integers(1, 4), st.integers(1, 50))
def test_likelihood_is_least_at_the_inverse_of_the_covariance(seed, D, n):
    rng = np.random.default_rng(seed)
    within, metric = spd(rng, D), spd(rng, D)
    least = metric_learning.likelihood_criterion(np.linalg.inv(within), within, n)
    assert least <= metric_learning.likelihood_criterion(metric, within, n) + 1e-8 * abs(least)
    # Shrinking the data by s and enlarging the metric by s² adds -n D log s².
    moved = metric_learning.likelihood_criterion(metric * 4, within / 4, n)
    apart = metric_learning.likelihood_criterion(metric, within, n) - n * D * np.log(4)
    assert moved == pytest.approx(apart, rel=1e-9, abs=1e-9)


@FEW
@given(SEEDS, st.integers(1, 4), st.integers(1, 6), st.floats(1e-3, 2))
def test_a_step_overshoots_exactly_when_it_takes_more_than_half(seed, D, n, eta):
    rng = np.random.default_rng(seed)
    W, H = rng.normal(size=(D, D)), rng.normal(size=(n, D))
    Y = H @ W.T
    excess = eta * (np.linalg.eigvalsh(Y.T @ Y)[-1] - n) - 0.5
    assume(abs(excess) > 1e-9)
    assert metric_learning.overshoots(W, H, eta) == (excess > 0)


@FEW
@given(SEEDS, st.integers(2, 20), st.integers(1, 4))
def test_total_covariance_splits_into_chunklets_and_their_means(seed, N, D):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * 5 + 100
    np.testing.assert_allclose(
        metric_learning.total_covariance(X), np.cov(X.T, bias=True).reshape(D, D)
    )
    y = np.arange(N) // 2 if N % 2 == 0 else np.zeros(N, dtype=int)
    means = np.array([X[y == j].mean(axis=0) for j in y])
    parts = metric_learning.within_chunklet_covariance(X, y) + metric_learning.total_covariance(
        means
    )
    np.testing.assert_allclose(parts, metric_learning.total_covariance(X), atol=1e-9)


@FEW
@given(SEEDS, st.integers(1, 4), st.integers(2, 9), st.integers(1, 99))
def test_variances_of_covariances_follow_from_degrees_of_freedom(seed, D, size, n):
    C = spd(np.random.default_rng(seed), D)
    chunklets = metric_learning.variance_of_covariance(C, n * (size - 1))
    one = metric_learning.variance_of_covariance(C, n * size - 1)
    np.testing.assert_allclose(chunklets, metric_learning.variance_ratio(size, n) * one, rtol=1e-12)
    assert (
        metric_learning.variance_ratio(size, n)
        <= metric_learning.variance_ratio(size)
        == size / (size - 1)
    )
    values = np.linalg.eigvalsh(C)
    ratios = metric_learning.weight_ratio(values)
    assert ratios.mean() == pytest.approx(1)
    np.testing.assert_allclose(ratios * values[0], ratios[0] * values, rtol=1e-9)


@FEW
@given(SEEDS, st.integers(2, 4), st.integers(2, 4))
def test_the_start_by_rca_keeps_chunklets_whole(seed, K, size):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(6), size)
    X = rng.normal(size=(len(y), 2)) + 3 * rng.normal(size=(6, 2))[y]
    r = metric_learning.rca_start(X, K, y, random_state=seed)
    assert r.shape == (len(y), K)
    np.testing.assert_array_equal(np.sort(r, axis=1)[:, -1], 1)
    np.testing.assert_array_equal(r, r[np.arange(len(y)) // size * size])


# ---------------------------------------------------------------------------- scenarios, data


@FEW
@given(SEEDS, st.integers(1, 15), st.integers(1, 4))
def test_class_sets_as_masks_and_as_links_agree(seed, N, n_sets):
    rng = np.random.default_rng(seed)
    sets = [[2 * s, 2 * s + 1] for s in range(n_sets)]
    set_of = rng.integers(-1, n_sets, size=N)
    mask = scenarios.allowed_classes(set_of, sets, 2 * n_sets)
    for i in range(N):
        expected = range(2 * n_sets) if set_of[i] < 0 else sets[set_of[i]]
        assert np.flatnonzero(mask[i]).tolist() == list(expected)
    links = {tuple(pair) for pair in scenarios.links_between_class_sets(set_of).tolist()}
    apart = {
        (i, j) for i, j in itertools.combinations(range(N), 2) if not (mask[i] & mask[j]).any()
    }
    assert links == apart


@FEW
@given(SEEDS, st.integers(2, 20), st.floats(0.01, 0.99))
def test_what_is_flipped_is_what_is_estimated(seed, N, certainty):
    rng = np.random.default_rng(seed)
    y, pairs = rng.integers(3, size=N), rng.integers(N, size=(9, 2))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    lies = rng.random(9) < 0.3
    must, cannot = pairs[same ^ lies], pairs[~(same ^ lies)]
    assert scenarios.estimate_flip_rate(y, must, cannot) == pytest.approx(lies.mean())
    rows = scenarios.preferences(must, cannot, certainty=certainty)
    np.testing.assert_array_equal(rows[:, :2], np.concatenate([must, cannot]))
    # w is the log-odds of being right, with the sign of the relation.
    odds = np.log(certainty / (1 - certainty)) * np.repeat([1, -1], [len(must), len(cannot)])
    np.testing.assert_allclose(rows[:, 2], odds, rtol=1e-9, atol=1e-12)


@FEW
@given(st.integers(1, 8), st.integers(1, 6))
def test_the_expected_chunklet_is_that_of_the_binomial(n_classes, ratio):
    assume(n_classes * ratio >= 2)
    n = ratio * n_classes
    chances = [
        comb(n, x) * (1 / n_classes) ** x * (1 - 1 / n_classes) ** (n - x) for x in range(n + 1)
    ]
    mean = sum(x * p for x, p in enumerate(chances) if x >= 2) / sum(chances[2:])
    assert scenarios.expected_chunklet_size(ratio, n_classes) == pytest.approx(mean, rel=1e-9)
    limit = scenarios.expected_chunklet_size(ratio)
    assert scenarios.expected_chunklet_size(ratio, 10**6) == pytest.approx(limit, rel=1e-4)


MADE = {
    "vertical_classes": datasets.vertical_classes,
    "overlapping_classes": datasets.overlapping_classes,
    "three_classes": datasets.three_classes,
    "shared_axis": datasets.shared_axis,
    "two_models": datasets.two_models,
    "lu_set_1": datasets.lu_set_1,
    "lu_set_2": datasets.lu_set_2,
    "lu_set_3": datasets.lu_set_3,
    "two_clusters": datasets.two_clusters,
}


@settings(max_examples=60)
@given(SEEDS, st.sampled_from(sorted(MADE)), st.integers(40, 120))
def test_made_data_are_what_their_seed_says(seed, name, n):
    data, again = (datasets.load(name, n_per_class=n, random_state=seed) for _ in range(2))
    np.testing.assert_array_equal(data.X, again.X)
    np.testing.assert_array_equal(MADE[name](n, random_state=seed).X, data.X)
    assert np.isfinite(data.X).all()
    assert (np.bincount(data.y) == n).all()
    assert len(data.target_names) == data.y.max() + 1
    other = datasets.load(name, n_per_class=n, random_state=seed + 1)
    assert not np.array_equal(data.X, other.X)


@settings(max_examples=20)
@given(SEEDS, st.integers(2, 60))
def test_waves_are_between_their_corners(seed, n):
    data = datasets.waveform(n, random_state=seed)
    assert data.X.shape == (n, 21)
    np.testing.assert_array_equal(data.X, datasets.waveform(n, random_state=seed).X)
    # A wave is between 0 and 6; its noise has deviation one, and 9 of them never happen.
    assert (data.X > -9).all()
    assert (data.X < 15).all()
    assert set(data.y) <= {0, 1, 2}


# ---------------------------------------------------------------------------- runs, replication


def pairs_of(course):
    for evidence in itertools.chain(course, itertools.repeat(course[-1])):
        yield None, Posterior(np.eye(2), np.ones(2), evidence)


@FEW
@given(st.lists(st.floats(-100, 0), min_size=1, max_size=9), st.integers(1, 12), st.floats(0, 5))
def test_a_run_stops_one_step_after_the_first_small_gain(course, max_iter, tol):
    run = mixture.follow(lambda number: pairs_of(course), tol=tol, max_iter=max_iter)
    values = course + [course[-1]] * (max_iter + 2)
    small = [t for t in range(1, max_iter) if abs(values[t] - values[t - 1]) / 2 < tol]
    length = small[0] + 1 if small else max_iter
    assert run.history == values[:length]
    assert run.posterior.log_evidence == values[length]
    assert run.converged == bool(small)
    assert run.n_iter == length


@FEW
@given(st.lists(st.floats(-9, 9), min_size=1, max_size=6), st.integers(0, 6), st.booleans())
def test_the_best_run_is_kept_and_the_last_of_a_course_is_its_end(scores, where, interrupted):
    made = [
        mixture.Run(k, Posterior(np.eye(2), np.ones(2), score), [score], True)
        for k, score in enumerate(scores)
    ]

    def course():
        for k, run in enumerate(made):
            if interrupted and k == where:
                raise KeyboardInterrupt
            yield run

    seen = made[:where] if interrupted and where < len(made) else made
    if seen:
        last = mixture.last_of(course())
        assert last.parameters == len(seen) - 1
        assert last.interrupted == (len(seen) < len(made))
        best_run = mixture.best_of(lambda k: seen[k], len(seen))
        assert not is_better(max(run.score for run in seen), best_run.score)
    else:
        with pytest.raises(KeyboardInterrupt):
            mixture.last_of(course())


@FEW
@given(st.lists(st.booleans(), min_size=1, max_size=5), st.booleans(), st.integers(1, 99))
def test_what_is_wrong_with_a_run_is_said(dead, converged, max_iter):
    weights = np.where(dead, 0.0, 1.0)
    theta = Parameters(weights, np.zeros((len(dead), 1)), np.ones((len(dead), 1, 1)))
    run = mixture.Run(theta, Posterior(np.eye(2), np.ones(2), 0.0), [0.0], converged)
    expected = [f"{max_iter} iterations"] * (not converged)
    expected += [f"component {k} " for k in np.flatnonzero(dead)]
    with pytest.warns(ConvergenceWarning) if expected else nothing_warned() as caught:
        mixture.warn_about(run, max_iter)
    told = [str(warning.message) for warning in caught]
    assert len(told) == len(expected)
    assert all(part in message for part, message in zip(expected, told, strict=True))


def nothing_warned():
    import warnings

    return warnings.catch_warnings(record=True)


@FEW
@given(st.text(max_size=5), st.floats(-9, 9), st.integers(0, 99), st.integers(0, 99))
def test_seeds_of_realisations_depend_on_every_name(experiment, value, realisation, seed):
    setting = Setting("iris", (value,))
    first = seed_of(experiment, setting, realisation, seed)
    assert first == seed_of(experiment, Setting("iris", (value,)), realisation, seed)
    assert 0 <= first < 2**32
    for other in (
        seed_of(experiment + "x", setting, realisation, seed),
        seed_of(experiment, Setting("wine", (value,)), realisation, seed),
        seed_of(experiment, Setting("iris", (value + 1,)), realisation, seed),
        seed_of(experiment, setting, realisation + 1, seed),
        seed_of(experiment, setting, realisation, seed + 1),
    ):
        assert other != first


@FEW
@given(st.dictionaries(st.sampled_from("abc"), st.floats(-9, 9), min_size=1), st.booleans())
def test_an_attempt_has_a_row_for_every_quantity(values, fails):
    def measure():
        if fails:
            raise ValueError("no luck; try again")
        return values

    rows = attempt("mine", tuple(sorted(values)), measure)
    assert {row.quantity for row in rows} == set(values)
    for row in rows:
        assert row.value == (None if fails else values[row.quantity])
        assert ("no luck" in row.reason) == fails


@FEW
@given(st.lists(st.floats(-800, 800), min_size=1, max_size=9))
def test_the_expected_flip_rate_is_the_mean_chance_of_a_flip(log_odds):
    rate = expected_flip_rate(log_odds)
    assert 0 <= rate <= 1
    assert rate + expected_flip_rate([-value for value in log_odds]) == pytest.approx(1)
    with np.errstate(over="ignore"):
        assert rate == pytest.approx(np.mean(1 / (1 + np.exp(np.array(log_odds)))))


@FEW
@given(SEEDS, st.integers(2, 4), st.integers(1, 6))
def test_answers_are_right_without_errors_and_as_many_with_them(seed, K, n_answers):
    y = np.repeat(np.arange(K), 6)
    for q in (0.0, 0.5):
        (must, cannot), labels = ask(y, n_answers, q, np.random.default_rng(seed))
        assert len(must) + len(cannot) == n_answers
        shown = labels >= 0
        assert shown.sum() == n_answers
        # One point of each pair is shown.
        assert (shown[np.concatenate([must, cannot])].sum(axis=1) == 1).all()
        if q == 0:
            assert (labels == y)[shown].all()
            assert (y[must[:, 0]] == y[must[:, 1]]).all()
            assert (y[cannot[:, 0]] != y[cannot[:, 1]]).all()
