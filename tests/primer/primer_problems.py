"""Small random problems, and sums over all assignments as the oracle of the primer."""

import itertools
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from cgmm import mixture as production
from cgmm.inference import ENGINES
from cgmm.mixture import POOLINGS, Parameters
from cgmm.network import Graph, SideInformation
from cgmm.primer import Theta

SEEDS = st.integers(0, 2**31 - 1)
# Central differences over 1e-5 of numbers of the size of log Z.
SLOPE = 2e-8


def examples(*drawn, **named):
    """Return hypothesis settings for 25 examples."""
    return lambda test: settings(max_examples=25)(given(*drawn, **named)(test))


def mixture(rng, K, D):
    """Return θ with overlapping components."""
    A = rng.normal(size=(K, D, D))
    covariances = A @ A.transpose(0, 2, 1) + 0.3 * np.eye(D)
    return Theta(rng.dirichlet(np.full(K, 5.0)), 2 * rng.normal(size=(K, D)), covariances)


def as_theta(parameters):
    """Convert the package's parameters to the primer's, with one full matrix per component."""
    K, D = parameters.means.shape
    S = parameters.covariances
    whole = S[:, :, None] * np.eye(D) if S.ndim == 2 else S
    return Theta(*parameters[:2], np.broadcast_to(whole, (K, D, D)))


def courses(mine, X, theta, side, kind, update=production.closed_form, engine="independent"):
    """Yield pairs that must be equal, along the iterations of the primer and of the package."""
    infer = ENGINES[engine](side.graph)
    theirs = production.em(X, Parameters(*theta), side, infer, POOLINGS[kind], update)
    # The package's loop is endless.
    for (here, log_evidence), (there, posterior) in zip(mine, theirs, strict=False):
        yield log_evidence, posterior.log_evidence
        yield from zip(here, as_theta(there), strict=True)


class Network(NamedTuple):
    u: np.ndarray
    edges: np.ndarray
    w: np.ndarray

    @property
    def graph(self):
        return Graph(len(self.u), self.edges, self.w)


def network(rng, J, K, *, p_edge=0.5, p_hard=0.0, p_masked=0.0):
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


class Enumerated(NamedTuple):
    z: np.ndarray
    """Every joint assignment, one a row."""
    log_weights: np.ndarray

    @property
    def log_z(self):
        return logsumexp(self.log_weights)

    @property
    def p(self):
        return np.exp(self.log_weights - self.log_z)

    def marginals(self, K):
        return np.tensordot(self.p, self.z[:, :, None] == np.arange(K), axes=1)


def assignments(J, K):
    return np.array(list(itertools.product(range(K), repeat=J)))


def enumerate_all(u, edges, w):
    """Return Σ_j u_jz + Σ_e w_e [z_a = z_b] for every z, by the definition."""
    z = assignments(*u.shape)
    total = u[range(len(u)), z].sum(axis=1)
    for (a, b), x in zip(edges, w, strict=True):
        total = total + np.where(z[:, a] == z[:, b], x, 0.0)
    return Enumerated(z, total)


class Related(NamedTuple):
    """Points with relations that some assignment satisfies."""

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

    def edges_of(self, chunklet):
        """Return edges between chunklets and their log-weights, without those inside a chunklet."""
        edges = chunklet[np.concatenate([self.cannot, self.soft])]
        w = np.concatenate([np.full(len(self.cannot), -np.inf), self.odds])
        apart = edges[:, 0] != edges[:, 1]
        return edges[apart], w[apart]


def related(rng, N, K, D, *, with_edges=True):
    z, pairs = rng.integers(K, size=N), rng.integers(N, size=(N, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same, soft = z[pairs[:, 0]] == z[pairs[:, 1]], rng.random(len(pairs)) < 0.3
    if not with_edges:
        pairs, same, soft = pairs[same], same[same], np.zeros(same.sum(), dtype=bool)
    return Related(
        rng.normal(size=(N, D)) + z[:, None], pairs[same & ~soft], pairs[~same & ~soft],
        pairs[soft], rng.normal(size=soft.sum()),
    )  # fmt: skip
