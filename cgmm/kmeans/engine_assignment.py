"""Assignments by an engine of inference: the best joint one, if the engine is exact. Chapter 11.

=======  ==================================================================
z_j      cluster of node j
c_jk     cost of giving node j to cluster k: its negative unary
w_e      log-weight of an edge
J        costs plus the penalties of broken edges
=======  ==================================================================
"""

from __future__ import annotations

from cgmm.inference.exchange import ROUNDING
from cgmm.kmeans.loop import Rule, total_cost
from cgmm.network import Engine, Graph, simplify
from cgmm.numerics import FloatArray, IntArray


def engine_rule(graph: Graph, engine: Engine) -> Rule:
    """The best assignment, by an inference engine that knows the most probable one.

    Parameters
    ----------
    graph : Graph
        Relations between nodes.
    engine : callable
        An engine, such as :func:`cgmm.inference.auto`.

    Returns
    -------
    callable
        The rule.

    Raises
    ------
    ValueError
        If the engine has no ``most_probable``, if it refuses the graph, or, when called, if no
        assignment is possible.

    Notes
    -----
    [lu2007, eq. C.8]: unaries -c_jk and log-weights w_e have the assignment of least J as their
    most probable one. An assignment is called optimal unless the engine says of a part of the
    network that it approximates it.

    Examples
    --------
    >>> import numpy as np
    >>> from cgmm.inference.auto import auto
    >>> rule = engine_rule(Graph(2, np.array([[0, 1]]), np.array([-np.inf])), auto)
    >>> rule(np.array([[0.0, 9.0], [1.0, 3.0]]), None)
    (array([0, 1]), True)
    """
    graph = simplify(graph)
    infer = engine(graph)
    most_probable = getattr(infer, "most_probable", None)
    if most_probable is None:
        raise ValueError(
            f"the engine {getattr(engine, '__name__', engine)!r} cannot tell the most probable "
            "assignment; hand in one that can, such as cgmm.inference.auto, or None to search."
        )

    def rule(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        best = most_probable(-costs)
        answered = getattr(infer, "answered", None)
        optimal = answered is None or all(answer.exact for answer in answered(-costs))
        # Of equally good assignments keep the one at hand, or the loop might never settle.
        if z is not None:
            before = total_cost(costs, graph, z)
            if total_cost(costs, graph, best) >= before - ROUNDING * abs(before):
                best = z
        return best, optimal

    return rule
