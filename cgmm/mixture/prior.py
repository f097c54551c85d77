"""The prior network over assignments and its normaliser Z_prior, which depends on the weights.

The updates in :mod:`cgmm.mixture.weights` use these classes, one exact and two approximate. Chapter
8 explains why the M-step needs the normaliser.

=====  ==================================================================
η      logarithms of the weights, normalised or not
s      Σ_k π_k², the probability that two independent points share a component
n_j    multiplicity of node j
w_e    log-weight of an edge
=====  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cgmm.network import Graph, Infer, SideInformation, induced_subgraph
from cgmm.numerics import BoolArray, FloatArray, log_normalise, log_powers

# Number of bisections that locate the zero of a slope in [0, 1], with an error of 2**-50.
N_BISECTIONS = 50


class Prior:
    """Exact or approximate normaliser of the prior network, computed by an engine.

    Isolated nodes of equal multiplicity contribute equal factors Σ_k π_k^n, so it suffices to count
    them. The engine is applied only to nodes with edges.

    Parameters
    ----------
    side : SideInformation
        Relations. Labels and allowed classes are evidence and do not affect the prior.
    engine : callable
        An entry of ``inference.ENGINES``.

    Attributes
    ----------
    side : SideInformation
        The argument ``side``.

    Examples
    --------
    >>> from cgmm.inference import ENGINES
    >>> prior = Prior(SideInformation.build(2, cannot_link=[[0, 1]]), ENGINES["pairs"])
    >>> round(float(np.exp(prior.log_z(np.array([0.5, 0.5])))), 6)
    0.5
    """

    def __init__(self, side: SideInformation, engine: Callable[[Graph], Infer]):
        self.side = side
        tied = side.tied
        self.sizes, self.node_counts = _count_by_size(side, ~tied)
        self.connected_sizes = side.multiplicity[tied]
        self.infer: Infer | None = None
        if tied.any():
            self.infer = engine(induced_subgraph(side.graph, np.flatnonzero(tied)))

    def is_exact(self, n_components: int) -> bool:
        """Return whether the engine is exact on the connected nodes, for K components.

        Parameters
        ----------
        n_components : int
            K.

        Returns
        -------
        bool
            The engine's own report for equal weights; True if the network has no edges.
        """
        unaries = np.tile(-self.connected_sizes[:, None] * np.log(n_components), n_components)
        return self.infer is None or self.infer(unaries).exact

    @property
    def is_one(self) -> bool:
        """True if Z_prior is 1 for all weights: no edges, and all multiplicities are one."""
        return self.infer is None and bool((self.sizes == 1).all())

    def log_z(self, weights: FloatArray) -> float:
        """Return log Z_prior for normalised weights (K,)."""
        if self.is_one:
            return 0.0
        with np.errstate(divide="ignore"):
            return self.log_z_and_counts(np.log(weights))[0]

    def log_z_and_counts(self, log_weights: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z_prior and the expected counts Σ_j n_j p(z_j = k) under the prior.

        Parameters
        ----------
        log_weights : (K,) array
            η, which need not be normalised.

        Returns
        -------
        log_z : float
            log Z_prior(η).
        counts : (K,) array
            The expected counts, which are the gradient of log Z_prior in η.
        """
        # [shental2003, eq. 6]: an isolated node's factor is Σ_k π_k^n
        shares, totals = log_normalise(log_powers(log_weights, self.sizes))
        log_z, counts = self.node_counts @ totals, (self.node_counts * self.sizes) @ shares
        if self.infer is not None:
            # [shental2003, eq. 10], [lu2007, eq. 2.12]
            nodes, connected_log_z, *_ = self.infer(log_powers(log_weights, self.connected_sizes))
            log_z, counts = log_z + connected_log_z, counts + self.connected_sizes @ nodes
        return float(log_z), counts


def _count_by_size(side: SideInformation, mask: BoolArray | slice) -> tuple[FloatArray, FloatArray]:
    """Return the distinct multiplicities of some nodes, and the number of nodes with each."""
    sizes, kind = np.unique(side.multiplicity[mask], return_inverse=True)
    copies = None if side.copies is None else side.copies[mask]
    return sizes, np.bincount(kind, copies, len(sizes)).astype(float)


class PairwisePrior:
    """Approximate normaliser of the prior that treats edges as if they shared no nodes."""

    def __init__(self, side: SideInformation):
        self.sizes, self.node_counts = _count_by_size(side, slice(None))
        ends = side.multiplicity[side.graph.edges].reshape(-1, 2)
        kinds = np.column_stack([np.sort(ends, axis=1), side.graph.weights])
        kinds, self.n_edges = np.unique(kinds, axis=0, return_counts=True)
        self.n_a, self.n_b, w = kinds.T
        # The factor of an edge contains 1 and e^w - 1 (-1 for a cannot-link). Both are divided by
        # e^w if w > 0, so that a strong preference does not overflow.
        self.log_scale = np.maximum(w, 0)
        self.one, self.excess = np.exp(-self.log_scale), np.where(w > 0, -1, 1) * np.expm1(-abs(w))

    def log_z_and_counts(self, log_weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the approximate log Z_prior and its gradient, as :class:`Prior` does."""
        shares, totals = log_normalise(log_powers(log_weights, self.sizes))
        log_z, counts = self.node_counts @ totals, (self.node_counts * self.sizes) @ shares
        p_a, _ = log_normalise(log_powers(log_weights, self.n_a))
        p_b, _ = log_normalise(log_powers(log_weights, self.n_b))
        same = np.einsum("ek,ek->e", p_a, p_b)
        # [shental2003, eq. 12]: the factor of an edge; 1 - Σ π² for a cannot-link of two points
        factors = self.one + self.excess * same
        change = self.n_a[:, None] * p_a * (p_b - same[:, None])
        change += self.n_b[:, None] * p_b * (p_a - same[:, None])
        log_z += self.n_edges @ (self.log_scale + np.log(factors))
        return float(log_z), counts + (self.n_edges * self.excess / factors) @ change


class SelectedPairs:
    """Approximate normaliser that corrects for pairs that were selected for being alike.

    An isolated edge between two points multiplies Z_prior by f_e(s) = 1 + (e^w - 1) s, where
    s = Σ_k π_k². If the pairs were drawn at random, the answers about them need no normaliser: the
    share of pairs that belong together is then about s, and Σ_e log f_e is stationary at this s.
    ``balance`` is the s at which the sum is stationary, the value that the relations suggest. If
    the weights have a smaller s, more pairs belong together than random pairs would: they were
    selected for being alike, as neighbouring pixels or friends are. Only this excess is corrected:
    the normaliser is the sum at min(s, balance), which never falls as s grows.

    Parameters
    ----------
    side : SideInformation
        Relations.

    Attributes
    ----------
    balance : float
        From 0, if every edge favours different components, to 1, if every edge favours a shared
        component.

    Examples
    --------
    One of four answers is that two points belong together, as expected for four equal classes:

    >>> answers = [[0, 1, 50.0], [2, 3, -50.0], [4, 5, -50.0], [6, 7, -50.0]]
    >>> pairs = SelectedPairs(SideInformation.build(8, preferences=answers))
    >>> round(pairs.balance, 3)
    0.25
    >>> uneven, more_uneven = pairs.log_z(np.array([[0.5, 0.5], [0.9, 0.1]]))
    >>> bool(uneven == more_uneven)
    True
    """

    def __init__(self, side: SideInformation):
        self.edges = PairwisePrior(side)
        low, high = 0.0, 1.0
        for _ in range(N_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.slope(middle) > 0 else (low, middle)
        self.balance = low

    def slope(self, s: float) -> float:
        """Return the derivative ∂ Σ_e log f_e / ∂ s, which decreases with s."""
        edges = self.edges
        # With a single component, s = 1 and the slope of a cannot-link is minus infinity.
        with np.errstate(divide="ignore"):
            return float(edges.n_edges @ (edges.excess / (edges.one + edges.excess * s)))

    def log_z(self, weights: FloatArray) -> FloatArray:
        """Return Σ_e log f_e at min(s, balance), for weights (..., K)."""
        edges, s = self.edges, np.minimum((weights**2).sum(axis=-1), self.balance)
        factors = edges.one + edges.excess * s[..., None]
        return np.asarray((edges.log_scale + np.log(factors)) @ edges.n_edges)
