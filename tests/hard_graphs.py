"""Make graphs of cannot-links for tests of inference engines, searches and K-means."""

import numpy as np

from cgmm.network import Graph


def hard_graph(n_nodes, edges):
    """Return a graph in which all edges are cannot-links."""
    edges = np.array(edges, dtype=np.intp).reshape(-1, 2)
    return Graph(n_nodes, edges, np.full(len(edges), -np.inf))


def planted_colouring(n_nodes, n_clusters, degree, seed):
    """Draw a hidden assignment and a graph of cannot-links that it satisfies; return both."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(n_clusters, size=n_nodes)
    pairs = rng.integers(n_nodes, size=(20 * n_nodes * degree, 2))
    pairs = pairs[hidden[pairs[:, 0]] != hidden[pairs[:, 1]]][: n_nodes * degree // 2]
    return hard_graph(n_nodes, np.unique(np.sort(pairs, axis=1), axis=0)), hidden


def breaks_no_edge(graph, z):
    """Return True if the assignment z separates the nodes of every cannot-link."""
    hard = graph.edges[graph.weights == -np.inf]
    return bool((z[hard[:, 0]] != z[hard[:, 1]]).all())


def objective(costs, graph, z):
    """Return the K-means objective with penalties, or infinity if a hard cannot-link is broken."""
    total = sum(costs[j, k] for j, k in enumerate(z))
    for (a, b), w in zip(graph.edges, graph.weights, strict=True):
        if w > 0 and z[a] != z[b]:
            total += w
        if w < 0 and z[a] == z[b]:
            total -= w
    return total
