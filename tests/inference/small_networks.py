"""Networks small enough for enumeration, and comparisons with its results."""

import numpy as np
import pytest
from hypothesis import strategies as st

from cgmm.inference import enumerate_assignments
from cgmm.network import Graph, NetworkError, TooCostlyError, log_weight


@st.composite
def networks(draw, max_nodes=6, max_states=3, p_forbidden=0.0):
    """Draw a random graph with weights of both signs, and unaries with impossible states."""
    n_nodes, n_states = draw(st.integers(1, max_nodes)), draw(st.integers(1, max_states))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    edges = complete(n_nodes)
    edges = edges[rng.random(len(edges)) < draw(st.sampled_from([0.3, 0.6, 1.0]))]
    weights = rng.normal(size=len(edges)) * draw(st.sampled_from([0.3, 2.0, 8.0]))
    weights[rng.random(len(edges)) < p_forbidden] = -np.inf
    unary = rng.normal(size=(n_nodes, n_states)) * draw(st.sampled_from([0.5, 3.0]))
    masked = rng.random(unary.shape) < 0.15
    masked[np.arange(n_nodes), rng.integers(n_states, size=n_nodes)] = False
    return Graph(n_nodes, edges, weights), np.where(masked, -np.inf, unary)


def make_graph(n_nodes, edges, weights):
    """Return a graph of these edges with one log-weight for all or one for each."""
    edges = np.array(list(edges), dtype=np.intp).reshape(-1, 2)
    return Graph(n_nodes, edges, np.broadcast_to(np.asarray(weights, float), len(edges)).copy())


def complete(n_nodes):
    """Return edges between every two nodes."""
    return np.column_stack(np.triu_indices(n_nodes, 1))


def grid(n_rows, n_columns):
    """Return edges between horizontal and vertical neighbours."""
    names = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    across = np.column_stack([names[:, :-1].ravel(), names[:, 1:].ravel()])
    down = np.column_stack([names[:-1].ravel(), names[1:].ravel()])
    return np.concatenate([across, down])


def without_others(graph, nodes):
    """Return the graph with only the edges among some nodes."""
    among = np.isin(graph.edges, nodes).all(axis=1)
    return Graph(graph.n_nodes, graph.edges[among], graph.weights[among])


def chain(n_nodes):
    """Return edges between each node and the next."""
    return np.column_stack([np.arange(n_nodes - 1), np.arange(1, n_nodes)])


def enumerate_all(graph, unary):
    """Return the result of enumeration, or None if no assignment is possible."""
    try:
        return enumerate_assignments(graph)(unary)
    except TooCostlyError:
        raise
    except NetworkError:
        return None


def assert_as_enumerated(infer, graph, unary, atol=1e-10):
    """Compare an engine with enumeration; return whether any assignment is possible."""
    expected = enumerate_all(graph, unary)
    if expected is None:
        for question in [infer, infer.most_probable][: 1 + infer.finds_best]:
            with pytest.raises(NetworkError, match="no joint assignment of"):
                question(unary)
        return False
    found = infer(unary)
    assert found.exact
    np.testing.assert_allclose(found.nodes, expected.nodes, rtol=0, atol=atol)
    assert found.log_z == pytest.approx(expected.log_z, rel=1e-13, abs=atol)
    if not infer.finds_best:
        return True
    best = log_weight(graph, unary, enumerate_assignments(graph).most_probable(unary))
    log_best = log_weight(graph, unary, infer.most_probable(unary))
    assert log_best == pytest.approx(best, rel=1e-13, abs=1e-11)
    return True
