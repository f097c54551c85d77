"""The prior's network, whose normaliser Z_prior the weights' update needs. Chapter 8.

=====  ==================================================================
η      logarithms of the weights, normalised or not
s      Σ_k π_k², how often two points drawn at random are of one component
n_j    multiplicity of node j
w_e    log-weight of an edge
=====  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cgmm.network import Graph, Infer, SideInformation, induced_subgraph
from cgmm.numerics import BoolArray, FloatArray, log_normalise, log_powers

# Number of bisections for the zero of a slope between 0 and 1, found to 2**-50.
N_BISECTIONS = 50


class Prior:
    """The network without the data, reduced to what distinguishes its nodes.

    Isolated nodes of equal multiplicity contribute equal factors, Σ_k π_k^n, and are counted; only
    tied nodes go through an engine.

    Parameters
    ----------
    side : SideInformation
        What is known. Labels and allowed classes are evidence and do not count here.
    engine : callable
        An entry of ``inference.ENGINES``, applied here to the tied nodes.

    Attributes
    ----------
    side : SideInformation
        As given.

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
        self.sizes, self.how_many = _kinds(side, ~tied)
        self.tied_sizes = side.multiplicity[tied]
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
            By its answer at equal weights; True where no node is tied.
        """
        unaries = np.tile(-self.tied_sizes[:, None] * np.log(n_components), n_components)
        return self.infer is None or self.infer(unaries).exact

    @property
    def is_one(self) -> bool:
        """True if Z_prior is one for any weights: no edges, and all multiplicities are one."""
        return self.infer is None and bool((self.sizes == 1).all())

    def log_z(self, weights: FloatArray) -> float:
        """Return log Z_prior of weights (K,) on the simplex."""
        if self.is_one:
            return 0.0
        with np.errstate(divide="ignore"):
            return self.log_z_and_counts(np.log(weights))[0]

    def log_z_and_counts(self, log_weights: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z_prior and the expected counts Σ_j n_j p(z_j = k) under the prior.

        Parameters
        ----------
        log_weights : (K,) array
            η; need not be normalised.

        Returns
        -------
        log_z : float
            log Z_prior(η).
        counts : (K,) array
            Its gradient in η.
        """
        # [shental2003, eq. 6]: an isolated node's factor is Σ_k π_k^n
        shares, totals = log_normalise(log_powers(log_weights, self.sizes))
        log_z, counts = self.how_many @ totals, (self.how_many * self.sizes) @ shares
        if self.infer is not None:
            # [shental2003, eq. 10], [lu2007, eq. 2.12]
            nodes, tied_log_z, *_ = self.infer(log_powers(log_weights, self.tied_sizes))
            log_z, counts = log_z + tied_log_z, counts + self.tied_sizes @ nodes
        return float(log_z), counts


def _kinds(side: SideInformation, of: BoolArray | slice) -> tuple[FloatArray, FloatArray]:
    """Return the multiplicities of nodes, and the number of nodes with each."""
    sizes, kind = np.unique(side.multiplicity[of], return_inverse=True)
    copies = None if side.copies is None else side.copies[of]
    return sizes, np.bincount(kind, copies, len(sizes)).astype(float)


class PairwisePrior:
    """Normaliser of the prior, and its gradient, as if edges were disjoint."""

    def __init__(self, side: SideInformation):
        self.sizes, self.how_many = _kinds(side, slice(None))
        ends = side.multiplicity[side.graph.edges].reshape(-1, 2)
        kinds = np.column_stack([np.sort(ends, axis=1), side.graph.weights])
        kinds, self.n_edges = np.unique(kinds, axis=0, return_counts=True)
        self.n_a, self.n_b, w = kinds.T
        # e^w - 1 (-1 for a cannot-link) and 1, both divided by e^w if w > 0, so that a strong
        # preference does not overflow.
        self.top = np.maximum(w, 0)
        self.one, self.excess = np.exp(-self.top), np.where(w > 0, -1, 1) * np.expm1(-abs(w))

    def log_z_and_counts(self, log_weights: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z_prior and the expected counts, as :class:`Prior` does."""
        shares, totals = log_normalise(log_powers(log_weights, self.sizes))
        log_z, counts = self.how_many @ totals, (self.how_many * self.sizes) @ shares
        p_a, _ = log_normalise(log_powers(log_weights, self.n_a))
        p_b, _ = log_normalise(log_powers(log_weights, self.n_b))
        same = np.einsum("ek,ek->e", p_a, p_b)
        # [shental2003, eq. 12]: an edge's factor; (1 - Σ π²) for a cannot-link of two points
        factors = self.one + self.excess * same
        change = self.n_a[:, None] * p_a * (p_b - same[:, None])
        change += self.n_b[:, None] * p_b * (p_a - same[:, None])
        log_z += self.n_edges @ (self.top + np.log(factors))
        return float(log_z), counts + (self.n_edges * self.excess / factors) @ change


class SelectedPairs:
    """Normaliser for pairs selected for being alike; zero if pairs were drawn at random.

    An edge between two points multiplies Z_prior by f_e(s) = 1 + (e^w - 1) s, s = Σ_k π_k², if it
    stands alone. Answers to questions about pairs at random have no normaliser: as many pairs
    belong together as s says, and the sum of log f_e is stationary there. So ``balance``, the s at
    which it is, is the s that relations suggest. Where s is smaller, more pairs belong together
    than random ones would: neighbouring pixels, friends, whatever was selected for being alike.
    Only that is held against π: the sum as a function of min(s, balance). It never falls with s.

    Parameters
    ----------
    side : SideInformation
        What is known.

    Attributes
    ----------
    balance : float
        From 0, if no edge draws its ends together, to 1, if none keeps them apart.

    Examples
    --------
    Of four answers one is that two points belong together, as for four equal classes:

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
        """Return ∂ Σ_e log f_e / ∂ s, which falls with s."""
        edges = self.edges
        # Minus infinity for a cannot-link if there is a single component.
        with np.errstate(divide="ignore"):
            return float(edges.n_edges @ (edges.excess / (edges.one + edges.excess * s)))

    def log_z(self, weights: FloatArray) -> FloatArray:
        """Return Σ_e log f_e at min(s, balance), for weights (..., K)."""
        edges, s = self.edges, np.minimum((weights**2).sum(axis=-1), self.balance)
        factors = edges.one + edges.excess * s[..., None]
        return np.asarray((edges.top + np.log(factors)) @ edges.n_edges)
