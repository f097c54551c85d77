"""Test that the primer's constrained K-means of chapter 11 agrees with the package."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import example
from hypothesis import strategies as st
from primer_problems import SEEDS, draw_network, given_examples

from cgmm import kmeans, primer
from cgmm.inference.auto import auto
from cgmm.network import Graph, SideInformation

SIZES = {"seed": SEEDS, "N": st.integers(1, 5), "K": st.integers(2, 3)}


def draw_problem(seed, N, K, **kinds):
    """Draw points, centres, and the edges of a network with their weights."""
    rng = np.random.default_rng(seed)
    _, edges, w = draw_network(rng, N, K, **kinds)
    return 2 * rng.normal(size=(N, 2)), rng.normal(size=(K, 2)), edges, w


@given_examples(**SIZES)
def test_objective_is_that_of_the_package(seed, N, K):
    X, mu, edges, w = draw_problem(seed, N, K)
    c, z = primer.costs(X, mu), np.random.default_rng(seed).integers(K, size=N)
    theirs = kmeans.Nodes.of(X, SideInformation.build(N), 0.5).costs(mu)
    np.testing.assert_allclose(c, theirs, atol=1e-12)
    total = theirs[range(N), z].sum() + kmeans.cost_of_broken(Graph(N, edges, w), z)
    assert primer.objective(c, z, edges, w) == pytest.approx(total, rel=1e-12)
    broken = z[edges[:, 0]] == z[edges[:, 1]]
    hard = np.full(len(w), -np.inf)
    assert np.isinf(primer.objective(c, z, edges, hard)) == broken.any()


@given_examples(**SIZES)
def test_cheapest_assignment_is_that_of_an_exact_engine(seed, N, K):
    X, mu, edges, w = draw_problem(seed, N, K, p_hard=0.4)
    c = primer.costs(X, mu)
    theirs, optimal = kmeans.engine_rule(Graph(N, edges, w), auto)(c, None)
    assert optimal
    np.testing.assert_array_equal(primer.cheapest(c, edges, w), theirs)


@given_examples(**SIZES)
# With this seed the rule finds no free cluster.
@example(seed=6, N=5, K=2)
def test_cop_rule_assigns_each_point_to_the_cheapest_free_cluster(seed, N, K):
    X, mu, edges, w = draw_problem(seed, N, K, p_hard=0.4)
    cannot, c = edges[np.isinf(w)], primer.costs(X, mu)
    order = np.random.default_rng(seed).permutation(N)
    z, expected = primer.cop_rule(c, cannot, order), np.full(N, -1)
    for i in order:
        partners = cannot[(cannot == i).any(axis=1)].ravel()
        free = sorted(set(range(K)) - set(expected[partners]), key=c[i].__getitem__)
        # The rule gives up, even if there is a possible assignment.
        if not free:
            break
        expected[i] = free[0]
    np.testing.assert_array_equal(z, expected)
    if -1 not in z:
        graph = Graph(N, cannot, np.full(len(cannot), -np.inf))
        best, _ = kmeans.cop_rule(graph, K)(c, None)
        assert c[range(N), best].sum() <= c[range(N), z].sum() + 1e-12


@given_examples(**SIZES)
def test_pck_rule_never_raises_the_objective_and_ends_at_a_local_minimum(seed, N, K):
    X, mu, edges, w = draw_problem(seed, N, K)
    c = primer.costs(X, mu)
    z = c.argmin(axis=1)

    def objective_after(n_sweeps):
        return primer.objective(c, primer.pck_rule(c, z, edges, w, n_sweeps), edges, w)

    assert (np.diff([objective_after(n) for n in range(3)]) <= 1e-12).all()
    final = primer.pck_rule(c, z, edges, w, 20)
    for i in range(N):
        moved = np.tile(final, (K, 1))
        moved[:, i] = np.arange(K)
        objectives = [primer.objective(c, z_moved, edges, w) for z_moved in moved]
        assert min(objectives) >= objective_after(20) - 1e-12


@given_examples(SEEDS, st.integers(1, 3))
def test_lloyd_equals_the_steps_of_the_package(seed, K):
    X = np.random.default_rng(seed).normal(size=(12, 2))
    side = SideInformation.build(12)
    nodes = kmeans.Nodes.of(X, side, 0.5)
    ours = primer.lloyd(X, X[:K], lambda c: c.argmin(axis=1), 4)
    theirs = kmeans.lloyd(nodes, side.graph, X[:K], kmeans.nearest_rule)
    for (centres, z), step in zip(ours, islice(theirs, 4), strict=True):
        np.testing.assert_allclose(centres, step.centres, atol=1e-12)
        np.testing.assert_array_equal(z, step.labels)
