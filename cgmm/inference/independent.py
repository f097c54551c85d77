"""Exact inference for isolated nodes, in closed form.

Plain EM is inference in a network without edges, so this engine is the E-step of chapter 1. The
engine ``auto`` applies it to components of one node.

=====  =======================================================
j      node, e.g. 4
K      number of states of a node, e.g. 3
Z      normaliser, the sum over all K**N assignments, e.g. 0.02
=====  =======================================================
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
    """Return an engine for graphs without edges, which normalises each node by itself.

    Parameters
    ----------
    graph : Graph
        A graph whose edges, if any, have log-weight zero.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to exact marginals and
        ``log Z = Σ_j log Σ_k exp(unary[j, k])``, in O(n_nodes K). Its ``most_probable`` returns
        each node's best state.

    Raises
    ------
    NetworkError
        If two nodes are connected, or, when called, if a node has no possible state.

    Notes
    -----
    The sum over all ``K**N`` assignments factorises into N sums over K, which is the equation that
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
