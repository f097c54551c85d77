"""What is known beside the data, contracted into one Markov network over groups of points.

Points that are known to share a component are one node of the network. With nothing known every
point is a node of its own, of multiplicity one, and the graph has no edges: the plain mixture.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.network import Graph, edgeless

__all__ = ["SideInformation"]


class SideInformation(NamedTuple):
    """The network that side information makes of N points."""

    node_of: np.ndarray
    """(N,) the node to which each point belongs."""
    multiplicity: np.ndarray
    """(n_nodes,) n_j, the power of π in the prior of a node."""
    graph: Graph
    """Edges between nodes."""

    @classmethod
    def build(cls, n_samples: int) -> SideInformation:
        """Side information about ``n_samples`` points of which nothing is known.

        Parameters
        ----------
        n_samples : int
            N, at least one.

        Returns
        -------
        SideInformation
            One node a point, multiplicity one, no edges.

        Raises
        ------
        ValueError
            If ``n_samples`` is not positive.

        Examples
        --------
        >>> side = SideInformation.build(4)
        >>> side.graph.n_nodes, side.is_trivial
        (4, True)
        """
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}; there must be at least one point.")
        return cls(np.arange(n_samples), np.ones(n_samples), edgeless(n_samples))

    @property
    def is_trivial(self) -> bool:
        """Whether nodes are points and nothing ties them: Z_prior is one."""
        return len(self.graph.edges) == 0 and self.graph.n_nodes == len(self.node_of)
