"""The primer's functions of chapter 11 agree with the package: objective, rules, steps."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import example
from hypothesis import strategies as st
from primer_problems import SEEDS, examples, network

from cgmm import kmeans, primer
from cgmm.inference.auto import auto
from cgmm.network import Graph, SideInformation

SIZES = {"seed": SEEDS, "N": st.integers(1, 5), "K": st.integers(2, 3)}


def problem(seed, N, K, **kinds):
    rng = np.random.default_rng(seed)
    _, edges, w = network(rng, N, K, **kinds)
    return 2 * rng.normal(size=(N, 2)), rng.normal(size=(K, 2)), edges, w


@examples(**SIZES)
def test_the_objective_is_that_of_the_package(seed, N, K):
    X, mu, edges, w = problem(seed, N, K)
    c, z = primer.costs(X, mu), np.random.default_rng(seed).integers(K, size=N)
    theirs = kmeans.Nodes.of(X, SideInformation.build(N), 0.5).costs(mu)
    np.testing.assert_allclose(c, theirs, atol=1e-12)
    total = theirs[range(N), z].sum() + kmeans.cost_of_broken(Graph(N, edges, w), z)
    assert primer.objective(c, z, edges, w) == pytest.approx(total, rel=1e-12)
    broken = z[edges[:, 0]] == z[edges[:, 1]]
    hard = np.full(len(w), -np.inf)
    assert np.isinf(primer.objective(c, z, edges, hard)) == broken.any()


@examples(**SIZES)
def test_the_cheapest_assignment_is_the_best_of_all(seed, N, K):
    X, mu, edges, w = problem(seed, N, K, p_hard=0.4)
    c = primer.costs(X, mu)
    theirs, optimal = kmeans.engine_rule(Graph(N, edges, w), auto)(c, None)
    assert optimal
    np.testing.assert_array_equal(primer.cheapest(c, edges, w), theirs)


@examples(**SIZES)
@example(seed=6, N=5, K=2)  # It gives up.
def test_cop_gives_each_in_turn_the_cheapest_that_is_free_or_gives_up(seed, N, K):
    X, mu, edges, w = problem(seed, N, K, p_hard=0.4)
    cannot, c = edges[np.isinf(w)], primer.costs(X, mu)
    order = np.random.default_rng(seed).permutation(N)
    z, expected = primer.cop_rule(c, cannot, order), np.full(N, -1)
    for i in order:
        partners = cannot[(cannot == i).any(axis=1)].ravel()
        free = sorted(set(range(K)) - set(expected[partners]), key=c[i].__getitem__)
        if not free:  # though there may be an assignment
            break
        expected[i] = free[0]
    np.testing.assert_array_equal(z, expected)
    if -1 not in z:
        graph = Graph(N, cannot, np.full(len(cannot), -np.inf))
        best, _ = kmeans.cop_rule(graph, K)(c, None)
        assert c[range(N), best].sum() <= c[range(N), z].sum() + 1e-12


@examples(**SIZES)
def test_pck_never_rises_and_ends_where_no_point_gains(seed, N, K):
    X, mu, edges, w = problem(seed, N, K)
    c = primer.costs(X, mu)
    z = c.argmin(axis=1)
    course = [primer.objective(c, primer.pck_rule(c, z, edges, w, n), edges, w) for n in range(3)]
    assert (np.diff(course) <= 1e-12).all()
    end = primer.pck_rule(c, z, edges, w, 20)
    reached = primer.objective(c, end, edges, w)
    for i in range(N):
        moved = np.tile(end, (K, 1))
        moved[:, i] = np.arange(K)
        assert min(primer.objective(c, one, edges, w) for one in moved) >= reached - 1e-12


@examples(SEEDS, st.integers(1, 3))
def test_lloyd_takes_the_steps_of_the_package(seed, K):
    X = np.random.default_rng(seed).normal(size=(12, 2))
    side = SideInformation.build(12)
    nodes = kmeans.Nodes.of(X, side, 0.5)
    mine = primer.lloyd(X, X[:K], lambda c: c.argmin(axis=1), 4)
    theirs = kmeans.lloyd(nodes, side.graph, X[:K], kmeans.nearest_rule)
    for (centres, z), step in zip(mine, islice(theirs, 4), strict=True):
        np.testing.assert_allclose(centres, step.centres, atol=1e-12)
        np.testing.assert_array_equal(z, step.labels)
