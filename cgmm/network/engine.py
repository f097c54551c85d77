"""The interface of inference engines: they take unary log-potentials and return marginals.

An engine prepares a graph once and returns an :class:`Inference`, which estimators call at every
E-step. An ``Inference`` also reports whether its marginals are exact, which engine computed which
part of the network, and whether it must be prepared again for each restart. Chapter 7 explains
this interface.

=======  ======================================================================
j, z_j   node and its state, e.g. z_3 = 1
K        number of states of a node, e.g. 3
Z        normaliser, the sum of the weights of all joint assignments z, e.g. 0.02
=======  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cgmm.network.graph import Graph, NetworkError
from cgmm.numerics import FloatArray, IntArray


class Marginals(NamedTuple):
    """Marginals and log-normaliser of a network, returned by an engine."""

    nodes: FloatArray
    """(n_nodes, K) p(z_j = k), rows summing to one."""
    log_z: float
    """log Z in nats; NaN if the engine does not compute it."""
    exact: bool
    """True if marginals and log Z are exact up to rounding."""
    residual: float = 0.0
    """Largest change of a probability in the last iteration; zero for engines that do not iterate,
    NaN for engines that do not measure it."""


class Result(NamedTuple):
    """The engine chosen for one part of a network, with its exactness and its cost."""

    engine: str
    """Name of the engine in ``ENGINES``, or "none" if no engine computes this part."""
    n_components: int
    """Number of connected components in this part of the network, after evidence has reduced it."""
    n_nodes: int
    """Total number of nodes of these components."""
    n_edges: int
    """Total number of edges of these components."""
    exact: bool
    """True if the engine reports that its result for this part is exact up to rounding."""
    width: int | None = None
    """Largest induced width of these components, or a lower bound; None if it was not computed."""
    n_bytes: int = 0
    """Bytes that the tables of exact inference take, or a lower bound; 0 if not estimated."""
    n_operations: int = 0
    """Number of table entries that exact inference visits in one call, or a lower bound."""


Infer = Callable[[FloatArray], Marginals]
"""Function from unary log-potentials (n_nodes, K) to marginals."""


def _reject_most_probable(unary: FloatArray) -> IntArray:
    """Raise ``ValueError``, because the engine computes marginals only."""
    raise ValueError(
        "this engine computes marginals only, not a most probable joint assignment; use one that "
        "finds it, such as inference='auto'."
    )


@dataclass(frozen=True)
class Inference:
    """A graph prepared by an engine: functions of the unary log-potentials, and their properties.

    Calling an ``Inference`` returns the marginals, so it can be used as an ``Infer``.

    Examples
    --------
    >>> infer = Inference(lambda unary: Marginals(unary, 0.0, exact=True))
    >>> infer.finds_best, infer(np.array([[0.5, 0.5]])).exact
    (False, True)
    """

    marginals: Infer
    most_probable: Callable[[FloatArray], IntArray] = _reject_most_probable
    """Function that returns the most probable *joint* assignment (n_nodes,), which violates no hard
    relation. Among equally probable assignments, an engine prefers those with small labels if its
    order of computation allows this."""
    results: Callable[[FloatArray], list[Result]] = lambda unary: []
    """Function that returns a ``Result`` for each part of the network. The list depends only on
    which unaries are -inf; it is empty if the engine does not divide the network into parts."""
    chains: Callable[[FloatArray], Any] | None = None
    """Function that returns the :class:`cgmm.inference.gibbs.Chains` of a sampler; None if the
    engine is no sampler."""
    exact: bool | None = None
    """True if the marginals are exact for all unaries, False if they are exact for none. None if
    exactness depends on the unaries, or if only the computed marginals report it."""
    is_stateful: bool = False
    """True if marginals may depend on earlier calls. Estimators then prepare the graph again for
    each restart, so that restarts are independent."""

    def __call__(self, unary: FloatArray, /) -> Marginals:
        """Return the marginals for the unary log-potentials (n_nodes, K)."""
        return self.marginals(unary)

    @property
    def finds_best(self) -> bool:
        """True if the engine can find the most probable joint assignment, as exact engines can."""
        return self.most_probable is not _reject_most_probable

    def approximates(self, unary: FloatArray) -> bool:
        """Return True if the engine reports that it approximates some part of the network."""
        return not all(result.exact for result in self.results(unary))

    def is_exact(self, unary: FloatArray) -> bool:
        """Return True if the engine reports exact marginals for these unaries.

        If the engine cannot report this in advance, it is called once to find out.
        """
        if results := self.results(unary):
            return all(result.exact for result in results)
        return self.marginals(unary).exact if self.exact is None else self.exact


Engine = Callable[[Graph], Inference]
"""Function that prepares a graph once, for many E-steps. Estimators also accept an engine that
returns a plain ``Infer``; it computes marginals only, and the graph is prepared again for each
restart. An engine that draws random numbers has a parameter ``random_state``, by which
:func:`cgmm.inference.needs_seed` recognises it."""


def check_unary(graph: Graph, unary: FloatArray) -> FloatArray:
    """Check that unary log-potentials fit the graph and leave a possible state to every node.

    Parameters
    ----------
    graph : Graph
        The graph.
    unary : (n_nodes, K) array
        Natural logarithms; ``-inf`` means impossible.

    Returns
    -------
    (n_nodes, K) array
        The log-potentials, as floats.

    Raises
    ------
    NetworkError
        If a node has a log-potential of NaN or ``+inf``, or only ``-inf``; the error names it.
    ValueError
        If the shape does not fit the graph.

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
    largest = unary.max(axis=1)
    if not np.isfinite(largest).all():
        node = np.flatnonzero(~np.isfinite(largest))[:1]
        cause = "only log-potentials of -inf, so no state is possible"
        if largest[node[0]] != -np.inf:
            cause = f"a log-potential of {largest[node[0]]}; log-potentials must be below +inf"
        remedy = "rescale the data or revise the evidence"
        raise NetworkError(f"{{nodes}} has {cause}: {remedy}.", graph.named(node))
    return unary
