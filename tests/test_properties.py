"""Test laws of public functions on random problems, where no subpackage's tests have them."""

import itertools
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from cgmm import mixture
from cgmm.inference import require_colourable
from cgmm.mixture import (
    CategoricalParameters,
    Categories,
    Parameters,
    Posterior,
    categorical,
    one_hot,
)
from cgmm.network import Graph, SideInformation

FORTY = settings(max_examples=40)
SEEDS = st.integers(0, 2**31 - 1)
SMALL = st.integers(1, 5)


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


@FORTY
@given(SEEDS, st.integers(2, 7), st.integers(1, 4))
def test_colourable_as_far_as_cliques_tell(seed, n, K):
    graph = network(np.random.default_rng(seed), n, hard=0.7)
    side = SideInformation.build(n, preferences=np.column_stack([*graph.edges.T, graph.weights]))
    # A soft edge may be broken, so it proves nothing.
    apart = graph._replace(edges=graph.edges[np.isinf(graph.weights)])
    largest = max(map(len, nx.find_cliques(nx_graph(apart))))
    if largest <= K:
        require_colourable(side, K)
    else:
        with pytest.raises(ValueError, match=f"need {K + 1} components, and there are {K}"):
            require_colourable(side, K)


@FORTY
@given(SEEDS, st.integers(1, 20), st.lists(st.integers(1, 5), min_size=1, max_size=4), SMALL)
def test_one_hot_categories_round_trip(seed, N, sizes, K):
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
    # A drawn table can be read again, and was possible.
    assert (theta.log_density(one_hot(drawn, sizes))[np.arange(N), z] > -np.inf).all()


def pairs_of(course):
    for evidence in itertools.chain(course, itertools.repeat(course[-1])):
        yield None, Posterior(np.eye(2), np.ones(2), evidence)


@FORTY
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


@FORTY
@given(st.lists(st.booleans(), min_size=1, max_size=5), st.booleans(), st.integers(1, 99))
def test_warnings_describe_faults_of_a_run(dead, converged, max_iter):
    weights = np.where(dead, 0.0, 1.0)
    theta = Parameters(weights, np.zeros((len(dead), 1)), np.ones((len(dead), 1, 1)))
    run = mixture.Run(theta, Posterior(np.eye(2), np.ones(2), 0.0), [0.0], converged)
    expected = [f"{max_iter} iterations"] * (not converged)
    expected += [f"component {k} " for k in np.flatnonzero(dead)]
    with warnings.catch_warnings(record=True, action="always") as caught:
        mixture.warn_about(run, max_iter)
    messages = [str(one.message) for one in caught if one.category is ConvergenceWarning]
    assert len(messages) == len(expected)
    assert all(part in message for part, message in zip(expected, messages, strict=True))
