"""Networks and their scores, for the tests of the junction tree and its parts."""

import numpy as np


def grid(n_rows, n_columns):
    """Edges between horizontal and vertical neighbours."""
    names = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    across = np.column_stack([names[:, :-1].ravel(), names[:, 1:].ravel()])
    down = np.column_stack([names[:-1].ravel(), names[1:].ravel()])
    return np.concatenate([across, down])


def chain(n_nodes):
    return np.column_stack([np.arange(n_nodes - 1), np.arange(1, n_nodes)])


def log_weight(graph, unary, z):
    equal = z[graph.edges[:, 0]] == z[graph.edges[:, 1]]
    return unary[np.arange(len(z)), z].sum() + graph.weights[equal].sum()
