"""Draw small problems for the tests of constrained K-means, and enumerate their assignments."""

import itertools

import numpy as np
from hard_graphs import hard_graph
from hypothesis import strategies as st

NONE_BROKEN = (0, 0)


def enumerate_assignments(n_nodes, n_clusters):
    """Return every assignment of the nodes to clusters, shape (n_clusters^n_nodes, n_nodes)."""
    return np.array(list(itertools.product(range(n_clusters), repeat=n_nodes)))


@st.composite
def draw_problem(draw, max_nodes=5):
    """Draw costs (n_nodes, n_clusters), and a graph of hard cannot-links or of mixed relations."""
    n_nodes, n_clusters = draw(st.integers(2, max_nodes)), draw(st.integers(2, 4))
    pairs = list(itertools.combinations(range(n_nodes), 2))
    graph = hard_graph(n_nodes, draw(st.lists(st.sampled_from(pairs), max_size=10, unique=True)))
    costs = np.random.default_rng(draw(st.integers(0, 10**6))).uniform(size=(n_nodes, n_clusters))
    if draw(st.booleans()):
        return costs, graph
    values = st.sampled_from([-np.inf, -2.0, -0.5, -0.1, 0.05, 0.3, 1.0, 4.0])
    return costs, graph._replace(weights=np.array([draw(values) for _ in graph.edges], dtype=float))
