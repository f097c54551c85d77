"""Draw small problems for the tests of the primer, and enumerate their assignments.

Letters: J: number of nodes; u (J, K): log-weights of the states of nodes; w: log-weights of edges.
"""

import itertools
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from cgmm.inference import ENGINES
from cgmm.mixture import POOLINGS, Parameters, closed_form, em
from cgmm.network import Graph, SideInformation
from cgmm.primer import Theta

SEEDS = st.integers(0, 2**31 - 1)
# Error of derivatives of log Z that are computed by central differences over 1e-5.
SLOPE_ERROR = 2e-8


def given_examples(*drawn, **named):
    """Return a decorator that runs a test with 25 drawn examples."""
    return lambda test: settings(max_examples=25)(given(*drawn, **named)(test))


def draw_theta(rng, K, D):
    """Draw the parameters θ of overlapping components."""
    A = rng.normal(size=(K, D, D))
    covariances = A @ A.transpose(0, 2, 1) + 0.3 * np.eye(D)
    return Theta(rng.dirichlet(np.full(K, 5.0)), 2 * rng.normal(size=(K, D)), covariances)


def convert_to_theta(parameters):
    """Convert the package's parameters to the primer's format, with K full covariance matrices."""
    K, D = parameters.means.shape
    S = parameters.covariances
    matrices = S[:, :, None] * np.eye(D) if S.ndim == 2 else S
    return Theta(*parameters[:2], np.broadcast_to(matrices, (K, D, D)))


def compare_em_steps(ours, X, theta, side, kind, update=closed_form, engine="independent"):
    """Yield pairs of values of the primer and of the package in each step of EM."""
    infer = ENGINES[engine](side.graph)
    theirs = em(X, Parameters(*theta), side, infer, POOLINGS[kind], update)
    # The package's iterator never ends.
    for (our_theta, log_evidence), (their_theta, posterior) in zip(ours, theirs, strict=False):
        yield log_evidence, posterior.log_evidence
        yield from zip(our_theta, convert_to_theta(their_theta), strict=True)


class Network(NamedTuple):
    """Arguments of the primer's functions for a network: node and edge log-weights."""

    u: np.ndarray
    edges: np.ndarray
    w: np.ndarray

    @property
    def graph(self):
        return Graph(len(self.u), self.edges, self.w)


def draw_network(rng, J, K, *, p_edge=0.5, p_hard=0.0, p_masked=0.0):
    """Draw a network that has at least one possible assignment z."""
    z = rng.integers(K, size=J)
    pairs = np.array(list(itertools.combinations(range(J), 2)), dtype=int).reshape(-1, 2)
    edges = pairs[rng.random(len(pairs)) < p_edge]
    hard = (z[edges[:, 0]] != z[edges[:, 1]]) & (rng.random(len(edges)) < p_hard)
    w = np.where(hard, -np.inf, 2 * rng.normal(size=len(edges)))
    u = 2 * rng.normal(size=(J, K))
    masked = rng.random(u.shape) < p_masked
    masked[range(J), z] = False
    return Network(np.where(masked, -np.inf, u), edges, w)


class Enumeration(NamedTuple):
    """All joint assignments z (n, J) of a network, and their log-weights (n,)."""

    z: np.ndarray
    log_weights: np.ndarray

    @property
    def log_z(self):
        return logsumexp(self.log_weights)

    @property
    def p(self):
        return np.exp(self.log_weights - self.log_z)

    def marginals(self, K):
        return np.tensordot(self.p, self.z[:, :, None] == np.arange(K), axes=1)


def enumerate_assignments(J, K):
    """Return all assignments of J nodes to K states, shape (K^J, J)."""
    return np.array(list(itertools.product(range(K), repeat=J)))


def enumerate_all(u, edges, w):
    """Return Σ_j u_jz + Σ_e w_e [z_a = z_b] for every assignment z."""
    z = enumerate_assignments(*u.shape)
    log_weights = u[range(len(u)), z].sum(axis=1)
    for (a, b), w_e in zip(edges, w, strict=True):
        log_weights = log_weights + np.where(z[:, a] == z[:, b], w_e, 0.0)
    return Enumeration(z, log_weights)


class RelatedPoints(NamedTuple):
    """Points with must-links, cannot-links and preferences that some assignment satisfies."""

    X: np.ndarray
    must: np.ndarray
    cannot: np.ndarray
    soft: np.ndarray
    odds: np.ndarray

    def side(self, sampling="points"):
        preferences = np.column_stack([self.soft, self.odds])
        return SideInformation.build(
            len(self.X), must_link=self.must, cannot_link=self.cannot, preferences=preferences,
            sampling=sampling,
        )  # fmt: skip

    def edges_between(self, chunklet):
        """Return the edges between different chunklets, and their log-weights."""
        edges = chunklet[np.concatenate([self.cannot, self.soft])]
        w = np.concatenate([np.full(len(self.cannot), -np.inf), self.odds])
        apart = edges[:, 0] != edges[:, 1]
        return edges[apart], w[apart]


def draw_related_points(rng, N, K, D):
    """Draw points, and relations that agree with their hidden components."""
    z, pairs = rng.integers(K, size=N), rng.integers(N, size=(N, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same, soft = z[pairs[:, 0]] == z[pairs[:, 1]], rng.random(len(pairs)) < 0.3
    return RelatedPoints(
        rng.normal(size=(N, D)) + z[:, None], pairs[same & ~soft], pairs[~same & ~soft],
        pairs[soft], rng.normal(size=soft.sum()),
    )  # fmt: skip
