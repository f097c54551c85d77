"""How much is left to be known: the entropy of all assignments together, with what ties them.

=======  ======================================================================
z        assignments of all nodes; u_jk unary log-potentials, w_e log-weights
r_jk     p(z_j = k), p_e = p(z_a = z_b) of edge e, given everything
=======  ======================================================================
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from cgmm.diagnose import log_odds_together
from cgmm.mixture import Parameters, node_unaries
from cgmm.network import Infer, SideInformation
from cgmm.numerics import FloatArray


def assignment_entropy(
    X: FloatArray, parameters: Parameters, side: SideInformation, infer: Infer
) -> float:
    """Entropy of the posterior of all assignments together.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ, ``parameters_`` of a fit.
    side : SideInformation
        Everything that is known.
    infer : callable
        An exact engine applied to ``side.graph``.

    Returns
    -------
    float
        H(z | X, everything known, θ) in nats. ``bic() + 2 H`` is the criterion ICL, which holds
        classes that overlap against a fit.

    Raises
    ------
    ValueError
        If the engine reports no log-evidence.

    Notes
    -----
    ``H = log Z - Σ_jk r_jk u_jk - Σ_e w_e p_e``: one call of the engine, and the pairs that edges
    tie. Without relations it is the sum of the points' entropies; relations lower it.

    Biernacki, Celeux and Govaert (2000), Assessing a mixture model for clustering with the
    integrated completed likelihood.

    Examples
    --------
    Three points between two components, two of them certainly together: four assignments are left.

    >>> from cgmm.inference import ENGINES
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> side = SideInformation.build(3, must_link=[[0, 1]])
    >>> H = assignment_entropy(np.zeros((3, 1)), theta, side, ENGINES["auto"](side.graph))
    >>> round(float(np.exp(H)), 6)
    4.0
    """
    unary = node_unaries(X, parameters, side)
    believed, (edges, w) = infer(unary), side.graph[1:3]
    if np.isnan(believed.log_z):
        raise ValueError(
            "the engine reports no log-evidence, without which there is no entropy; ask an exact "
            "one: ENGINES['auto'](side.graph)."
        )
    r = believed.nodes
    tied = expit(log_odds_together(infer, unary, side.graph, edges))
    # What is impossible has no part in the mean.
    of_nodes = (r * np.where(r > 0, unary, 0.0)).sum()
    of_edges = (tied * np.where(tied > 0, w, 0.0)).sum()
    return float(max(believed.log_z - of_nodes - of_edges, 0.0))
