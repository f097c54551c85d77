"""The contract of inference engines: unary log-potentials in, marginals out.

An engine prepares a graph once and returns an :class:`Inference`, which estimators call at every
E-step. An ``Inference`` also reports whether its marginals are exact, which engine worked on which
part of the network, and whether it must be prepared again for each restart. Chapter 7 explains
the contract.

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
    """Its name in ENGINES, or "none"."""
    n_components: int
    """Number of components in this part, after reduction by evidence and, for K = 2, mirroring."""
    n_nodes: int
    """Number of nodes in these components."""
    n_edges: int
    """Number of edges in these components."""
    exact: bool
    """True if the engine reports that it is exact on this part, up to rounding."""
    width: int | None = None
    """Largest induced width of these components, or a lower bound; None if it is not needed."""
    n_bytes: int = 0
    """Bytes of the tables of exact inference, or a lower bound; 0 if not estimated."""
    n_operations: int = 0
    """Table entries that exact inference visits in one call, or a lower bound."""


Infer = Callable[[FloatArray], Marginals]
"""Function from unary log-potentials (n_nodes, K) to marginals."""


def _computes_marginals_only(unary: FloatArray) -> IntArray:
    raise ValueError(
        "this engine computes marginals only, not a most probable joint assignment; use one that "
        "finds it, such as inference='auto'."
    )


@dataclass(frozen=True)
class Inference:
    """A graph prepared by an engine: functions of the unary log-potentials, and their properties.

    Calling it returns the marginals, so every ``Inference`` is an ``Infer``.

    Examples
    --------
    >>> ask = Inference(lambda unary: Marginals(unary, 0.0, exact=True))
    >>> ask.finds_best, ask(np.array([[0.5, 0.5]])).exact
    (False, True)
    """

    marginals: Infer
    most_probable: Callable[[FloatArray], IntArray] = _computes_marginals_only
    """Function that returns the most probable *joint* assignment (n_nodes,), which violates no hard
    relation. Among equally probable assignments an engine prefers low labels as far as its order of
    computation allows."""
    results: Callable[[FloatArray], list[Result]] = lambda unary: []
    """Function that returns a ``Result`` for each part of the network; of the unaries only the
    positions of -inf matter. The list is empty if the engine does not divide the network."""
    chains: Callable[[FloatArray], Any] | None = None
    """Function that returns a sampler's :class:`cgmm.inference.gibbs.Chains`; None for others."""
    exact: bool | None = None
    """True if marginals are exact for all unaries, False if for none; None if exactness depends on
    the unaries or is reported by the marginals only."""
    is_stateful: bool = False
    """True if marginals may depend on earlier calls. Estimators then apply the engine again for
    each restart, which keeps restarts independent."""

    def __call__(self, unary: FloatArray, /) -> Marginals:
        """Return the marginals for the unary log-potentials (n_nodes, K)."""
        return self.marginals(unary)

    @property
    def finds_best(self) -> bool:
        """True if the engine finds the most probable joint assignment, as exact engines do."""
        return self.most_probable is not _computes_marginals_only

    def approximates(self, unary: FloatArray) -> bool:
        """Return True if the engine reports an approximation for some part of the network."""
        return not all(result.exact for result in self.results(unary))

    def is_exact(self, unary: FloatArray) -> bool:
        """Return True if the engine reports exact marginals for these unaries.

        An engine that cannot report this in advance is called once.
        """
        if results := self.results(unary):
            return all(result.exact for result in results)
        return self.marginals(unary).exact if self.exact is None else self.exact


Engine = Callable[[Graph], Inference]
"""Function that prepares a graph once, for many E-steps. Estimators also take an engine that
returns a plain ``Infer``, which computes marginals only and is applied again for each restart. An
engine that draws random numbers has a parameter ``random_state``, which is how
:func:`cgmm.inference.needs_seed` recognises it."""


def check_unary(graph: Graph, unary: FloatArray) -> FloatArray:
    """Check that unary log-potentials fit the graph and allow every node a state; return floats.

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
        If a node has NaN, ``+inf`` or only ``-inf``; the error names the node.
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
        raise NetworkError(f"{{nodes}} has {cause}: {remedy}.", graph.named(node))
    return unary
