"""Random networks that are small enough to be enumerated."""

import itertools

import numpy as np
from hypothesis import strategies as st

from cgmm.network import Graph


@st.composite
def networks(draw, max_nodes=6, max_states=3, p_forbidden=0.0):
    """A random graph with weights of both signs, and unaries with some impossible states."""
    n_nodes, n_states = draw(st.integers(1, max_nodes)), draw(st.integers(1, max_states))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    pairs = np.array(list(itertools.combinations(range(n_nodes), 2)), dtype=int).reshape(-1, 2)
    edges = pairs[rng.random(len(pairs)) < draw(st.sampled_from([0.3, 0.6, 1.0]))]
    weights = rng.normal(size=len(edges)) * draw(st.sampled_from([0.3, 2.0, 8.0]))
    weights[rng.random(len(edges)) < p_forbidden] = -np.inf
    unary = rng.normal(size=(n_nodes, n_states)) * draw(st.sampled_from([0.5, 3.0]))
    masked = rng.random(unary.shape) < 0.15
    masked[np.arange(n_nodes), rng.integers(n_states, size=n_nodes)] = False
    return Graph(n_nodes, edges, weights), np.where(masked, -np.inf, unary)
