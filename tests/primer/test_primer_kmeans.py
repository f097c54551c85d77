"""Chapter 11 by hand: against every assignment, and against the package."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primer_problems import FEW, SEEDS, assignments, network

from cgmm import kmeans, primer
from cgmm.inference.auto import auto
from cgmm.network import Graph, SideInformation

SIZES = {"seed": SEEDS, "N": st.integers(1, 5), "K": st.integers(2, 3)}


def problem(seed, N, K, **kinds):
    rng = np.random.default_rng(seed)
    _, edges, w = network(rng, N, K, **kinds)
    return 2 * rng.normal(size=(N, 2)), rng.normal(size=(K, 2)), edges, w


def cost_of_all(c, edges, w):
    """J of every assignment; infinite where a cannot-link is broken."""
    z = assignments(*c.shape)
    same = z[:, edges[:, 0]] == z[:, edges[:, 1]]
    broken = np.where(same == (w < 0), np.abs(w), 0)
    return z, c[range(len(c)), z].sum(axis=1) + broken.sum(axis=1)


@FEW
@given(**SIZES)
def test_the_objective_is_that_of_the_definition(seed, N, K):
    X, mu, edges, w = problem(seed, N, K, p_hard=0.3)
    c = primer.costs(X, mu)
    distances = [[np.linalg.norm(x - m) for m in mu] for x in X]
    np.testing.assert_allclose(c, np.square(distances) / 2, atol=1e-12)
    side = SideInformation.build(N)
    np.testing.assert_allclose(c, kmeans.Nodes.of(X, side, 0.5).costs(mu), atol=1e-12)
    z, J = cost_of_all(c, edges, w)
    rows = range(0, len(z), 7)
    found = [primer.objective(c, z[row], edges, w) for row in rows]
    np.testing.assert_allclose(found, J[rows], rtol=1e-12)
    for row in np.flatnonzero(np.isfinite(J))[::5]:
        theirs = c[range(N), z[row]].sum() + kmeans.penalty(Graph(N, edges, w), z[row])
        assert primer.objective(c, z[row], edges, w) == pytest.approx(theirs, rel=1e-12)


@FEW
@given(**SIZES)
def test_the_cheapest_assignment_is_the_best_of_all(seed, N, K):
    X, mu, edges, w = problem(seed, N, K, p_hard=0.4)
    c = primer.costs(X, mu)
    z, J = cost_of_all(c, edges, w)
    found = primer.cheapest(c, edges, w)
    np.testing.assert_array_equal(found, z[J.argmin()])
    theirs, optimal = kmeans.engine_rule(Graph(N, edges, w), auto)(c, None)
    assert optimal
    np.testing.assert_array_equal(found, theirs)


@FEW
@given(**SIZES)
def test_cop_breaks_nothing_and_takes_what_is_free(seed, N, K):
    X, mu, edges, w = problem(seed, N, K, p_hard=0.4)
    cannot, c = edges[np.isinf(w)], primer.costs(X, mu)
    order = np.random.default_rng(seed).permutation(N)
    z = primer.cop_rule(c, cannot, order)
    seated, place = z >= 0, order.argsort()
    pairs = cannot[seated[cannot].all(axis=1)]
    assert (z[pairs[:, 0]] != z[pairs[:, 1]]).all()
    taken = [set() for _ in range(N)]  # by those who came earlier
    for a, b in cannot:
        early, late = (a, b) if place[a] < place[b] else (b, a)
        taken[late].add(z[early])
    for i in np.flatnonzero(seated):
        assert set(np.flatnonzero(c[i] < c[i, z[i]])) <= taken[i]
    if not seated.all():  # it gives up where no cluster is left, though there may be an assignment
        first, *later = order[~seated[order]]
        assert taken[first] == set(range(K))
        assert not seated[later].any()
        return
    graph = Graph(N, cannot, np.full(len(cannot), -np.inf))
    best, _ = kmeans.cop_rule(graph, K)(c, None)
    assert c[range(N), best].sum() <= c[range(N), z].sum() + 1e-12
    if len(cannot) == 0:
        np.testing.assert_array_equal(z, kmeans.nearest_rule(c)[0])


@FEW
@given(**SIZES)
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
    # From there the rule of the package moves groups at most: never to what is worse.
    theirs, _ = kmeans.pck_rule(Graph(N, edges, w), K)(c, end)
    assert primer.objective(c, theirs, edges, w) <= reached + 1e-9


@FEW
@given(SEEDS, st.integers(1, 3))
def test_lloyd_takes_the_steps_of_the_package(seed, K):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    mu, none = X[:K], np.empty((0, 2), dtype=int)
    mine = list(primer.lloyd(X, mu, lambda c: c.argmin(axis=1), 4))
    J = [primer.objective(primer.costs(X, m), z, none, np.empty(0)) for m, z in mine]
    assert (np.diff(J) <= 1e-12).all()
    side = SideInformation.build(12)
    nodes = kmeans.Nodes.of(X, side, 0.5)
    theirs = list(islice(kmeans.lloyd(nodes, side.graph, mu, kmeans.nearest_rule), 4))
    for (centres, z), value, step in zip(mine, J, theirs, strict=True):
        np.testing.assert_allclose(centres, step.centres, atol=1e-12)
        np.testing.assert_array_equal(z, step.labels)
        assert value == pytest.approx(step.objective, rel=1e-12)
