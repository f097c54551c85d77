"""What an engine is given and what it answers: unary log-potentials in, marginals out. Chapter 7.

=======  ==============================================================
j, z_j   node and its state; K the number of states
Z        normaliser, the sum over all joint assignments z
=======  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from cgmm.network.errors import NetworkError
from cgmm.network.graph import Graph
from cgmm.numerics import FloatArray, IntArray


class Marginals(NamedTuple):
    """What an engine says about a network."""

    nodes: FloatArray
    """(n_nodes, K) p(z_j = k), rows summing to one."""
    log_z: float
    """log Z in nats; NaN where an engine has none."""
    exact: bool
    """Whether both are exact up to rounding."""
    residual: float = 0.0
    """How far from its fixed point an iteration was left, as a change of probability; zero where
    nothing is iterated, NaN where the engine does not measure it."""


Infer = Callable[[FloatArray], Marginals]
"""From the unary log-potentials (n_nodes, K) to the marginals.

Where an engine can tell the most probable *joint* assignment, the function has an attribute
``most_probable``, from the same unaries to (n_nodes,) int; it breaks no hard relation. Of equally
probable assignments it returns one, preferring low labels as far as its order of work allows.
"""


class ExactInfer(Protocol):
    """An ``Infer`` that can also tell the most probable joint assignment, as exact ones do."""

    @property
    def most_probable(self) -> Callable[[FloatArray], IntArray]:
        """From the same unaries to the most probable joint assignment."""
        ...

    def __call__(self, unary: FloatArray, /) -> Marginals:
        """From the unary log-potentials (n_nodes, K) to the marginals."""
        ...


Engine = Callable[[Graph], Infer]
"""Works on the structure once and returns a function for many E-steps."""


def with_most_probable(infer: Infer, most_probable: Callable[[FloatArray], IntArray]) -> ExactInfer:
    """Give a function of exact inference its attribute ``most_probable``.

    Parameters
    ----------
    infer : callable
        From unaries to marginals.
    most_probable : callable
        From the same unaries to the most probable joint assignment.

    Returns
    -------
    callable
        ``infer`` itself.

    Examples
    --------
    >>> def infer(unary):
    ...     return Marginals(unary, 0.0, exact=True)
    >>> with_most_probable(infer, lambda unary: unary.argmax(axis=1)) is infer
    True
    >>> infer.most_probable(np.array([[1.0, 2.0]]))
    array([1])
    """
    exact: Any = infer
    exact.most_probable = most_probable
    return cast("ExactInfer", exact)


def check_unary(graph: Graph, unary: FloatArray) -> FloatArray:
    """Unary log-potentials as floats, if they fit the graph and leave every node a state.

    Parameters
    ----------
    graph : Graph
        The graph.
    unary : (n_nodes, K) array
        Natural logarithms; ``-inf`` means impossible.

    Returns
    -------
    (n_nodes, K) array
        The same numbers.

    Raises
    ------
    NetworkError
        If a node has NaN, ``+inf`` or only ``-inf``; it is named.
    ValueError
        If the shape does not fit.

    Examples
    --------
    >>> from cgmm.network import edgeless
    >>> check_unary(edgeless(1), np.array([[0, -1]]))
    array([[ 0., -1.]])
    """
    unary = np.asarray(unary, dtype=float)
    if unary.ndim != 2 or len(unary) != graph.n_nodes or unary.shape[1] == 0:
        raise ValueError(
            f"unary has shape {unary.shape}; it must be (n_nodes, K) = ({graph.n_nodes}, K) with "
            "at least one state."
        )
    top = unary.max(axis=1)
    if not np.isfinite(top).all():
        node = np.flatnonzero(~np.isfinite(top))[:1]
        cause = "only log-potentials of -inf, so no state is possible"
        if top[node[0]] != -np.inf:
            cause = f"a log-potential of {top[node[0]]}; log-potentials must be below +inf"
        remedy = "rescale the data or revise the evidence"
        raise NetworkError(f"{{nodes}} has {cause}: {remedy}.", node)
    return unary
