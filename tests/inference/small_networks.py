"""Draw and build networks that are small enough to compare an engine with enumeration.

Edges are (M, 2) arrays of node indices.
"""

import numpy as np
import pytest
from hypothesis import strategies as st

from cgmm.inference import enumerate_assignments
from cgmm.network import Graph, NetworkError, TooCostlyError, log_weight


@st.composite
def networks(draw, max_nodes=6, max_states=3, p_forbidden=0.0):
    """Draw a graph with positive and negative log-weights, and unaries with forbidden states.

    ``p_forbidden`` is the probability that an edge is a hard cannot-link (log-weight -inf).
    """
    n_nodes, n_states = draw(st.integers(1, max_nodes)), draw(st.integers(1, max_states))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    edges = all_edges(n_nodes)
    edges = edges[rng.random(len(edges)) < draw(st.sampled_from([0.3, 0.6, 1.0]))]
    weights = rng.normal(size=len(edges)) * draw(st.sampled_from([0.3, 2.0, 8.0]))
    weights[rng.random(len(edges)) < p_forbidden] = -np.inf
    unary = rng.normal(size=(n_nodes, n_states)) * draw(st.sampled_from([0.5, 3.0]))
    masked = rng.random(unary.shape) < 0.15
    masked[np.arange(n_nodes), rng.integers(n_states, size=n_nodes)] = False
    return Graph(n_nodes, edges, weights), np.where(masked, -np.inf, unary)


def make_graph(n_nodes, edges, weights):
    """Build a graph from edges, with one log-weight for all edges or one for each."""
    edges = np.array(list(edges), dtype=np.intp).reshape(-1, 2)
    return Graph(n_nodes, edges, np.broadcast_to(np.asarray(weights, float), len(edges)).copy())


def all_edges(n_nodes):
    """Return an edge between every two nodes."""
    return np.column_stack(np.triu_indices(n_nodes, 1))


def grid_edges(n_rows, n_columns):
    """Return the edges between horizontal and vertical neighbours of a rectangular grid."""
    names = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    across = np.column_stack([names[:, :-1].ravel(), names[:, 1:].ravel()])
    down = np.column_stack([names[:-1].ravel(), names[1:].ravel()])
    return np.concatenate([across, down])


def subgraph(graph, nodes):
    """Return the graph with only those edges whose two ends are among the given nodes."""
    among = np.isin(graph.edges, nodes).all(axis=1)
    return Graph(graph.n_nodes, graph.edges[among], graph.weights[among])


def chain_edges(n_nodes):
    """Return an edge between each node and the next."""
    return np.column_stack([np.arange(n_nodes - 1), np.arange(1, n_nodes)])


def enumerate_all(graph, unary):
    """Enumerate all assignments; return the marginals, or None if no assignment is possible."""
    try:
        return enumerate_assignments(graph)(unary)
    except TooCostlyError:
        raise
    except NetworkError:
        return None


def get_query_functions(infer):
    """Return the engine's functions for marginals and, if it has one, for the best states."""
    return [infer, infer.most_probable] if infer.finds_best else [infer]


def assert_equals_enumeration(infer, graph, unary, atol=1e-10):
    """Check an exact engine against enumeration; return whether any assignment is possible."""
    expected = enumerate_all(graph, unary)
    if expected is None:
        for query in get_query_functions(infer):
            with pytest.raises(NetworkError, match="no joint assignment of"):
                query(unary)
        return False
    result = infer(unary)
    assert result.exact
    np.testing.assert_allclose(result.nodes, expected.nodes, rtol=0, atol=atol)
    assert result.log_z == pytest.approx(expected.log_z, rel=1e-13, abs=atol)
    if infer.finds_best:
        engines = enumerate_assignments(graph), infer
        best, ours = (log_weight(graph, unary, one.most_probable(unary)) for one in engines)
        assert ours == pytest.approx(best, rel=1e-13, abs=1e-11)
    return True
