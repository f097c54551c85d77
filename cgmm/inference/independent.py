"""Isolated nodes, in closed form: plain EM is inference in a network without edges. Chapter 1.

=====  ==============================================
j      node; K its number of states
Z      normaliser, the sum over all K**N assignments
=====  ==============================================
"""

from __future__ import annotations

from cgmm.network import (
    Graph,
    Inference,
    Marginals,
    check_unary,
    require_edgeless,
)  # fmt: skip
from cgmm.numerics import FloatArray, IntArray, log_normalise

__all__ = ["independent"]


def independent(graph: Graph) -> Inference:
    """Return an engine for graphs without edges: each node is normalised by itself.

    Parameters
    ----------
    graph : Graph
        Its edges, if any, must have weight zero.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to exact marginals and ``log Z = Σ_j log Σ_k exp(unary[j, k])``,
        in O(n_nodes K). Its ``most_probable`` is each node's best state.

    Raises
    ------
    NetworkError
        If two nodes are tied, or, when called, if a node has no possible state.

    Notes
    -----
    The sum over all ``K**N`` assignments factorises into N sums over K: the equation that
    schmidt2016 marks with three asterisks in §2.3.

    Examples
    --------
    >>> import numpy as np
    >>> from cgmm.network import edgeless
    >>> infer = independent(edgeless(2))
    >>> marginals = infer(np.log([[0.2, 0.6], [0.1, 0.1]]))
    >>> marginals.nodes
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    >>> round(float(np.exp(marginals.log_z)), 12)
    0.16
    """
    require_edgeless(graph, "independent")

    def infer(unary: FloatArray) -> Marginals:
        # [schmidt2016, eq. ***]
        nodes, log_totals = log_normalise(check_unary(graph, unary))
        return Marginals(nodes, float(log_totals.sum()), exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        return check_unary(graph, unary).argmax(axis=1)

    return Inference(infer, most_probable, exact=True)
