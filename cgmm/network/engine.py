"""The contract of inference engines: unary log-potentials in, marginals out.

An engine prepares a graph once and returns an :class:`Inference`, which estimators ask at every
E-step. An ``Inference`` also says whether its marginals are exact, which engine worked on which
part of the network, and whether it must be prepared anew for each restart. Chapter 7.

=======  ==============================================================
j, z_j   node and its state; K the number of states
Z        normaliser, the sum over all joint assignments z
=======  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cgmm.network.errors import NetworkError
from cgmm.network.graph import Graph
from cgmm.numerics import FloatArray, IntArray


class Marginals(NamedTuple):
    """Marginals and log-normaliser of a network, as an engine returns them."""

    nodes: FloatArray
    """(n_nodes, K) p(z_j = k), rows summing to one."""
    log_z: float
    """log Z in nats; NaN where an engine has none."""
    exact: bool
    """Whether both are exact up to rounding."""
    residual: float = 0.0
    """How far from its fixed point an iteration was left, as a change of probability; zero where
    nothing is iterated, NaN where the engine does not measure it."""


class Result(NamedTuple):
    """The engine that works on one part of a network, whether it is exact there, and its cost."""

    engine: str
    """Its name in ENGINES, or "none"."""
    n_components: int
    """Components of the network that is left when evidence, and for K = 2 the mirror, are used."""
    n_nodes: int
    """Nodes in them."""
    n_edges: int
    """Edges in them."""
    exact: bool
    """Whether the engine is exact on this part, up to rounding; the engine itself says so."""
    width: int | None = None
    """The largest induced width among them, or a lower bound; None where the engine needs none."""
    n_bytes: int = 0
    """What the tables of exact inference take, or would take at least; 0 where not reckoned."""
    n_operations: int = 0
    """Entries of tables that exact inference visits in one call, or would visit at least."""


Infer = Callable[[FloatArray], Marginals]
"""From the unary log-potentials (n_nodes, K) to the marginals."""


def _computes_marginals_only(unary: FloatArray) -> IntArray:
    raise ValueError(
        "this engine computes marginals only, not a most probable joint assignment; use one that "
        "finds it, such as inference='auto'."
    )


@dataclass(frozen=True)
class Inference:
    """A graph prepared by an engine, with everything that can be computed from unaries.

    Calling it returns the marginals: every ``Inference`` is an ``Infer``.

    Examples
    --------
    >>> ask = Inference(lambda unary: Marginals(unary, 0.0, exact=True))
    >>> ask.finds_best, ask(np.array([[0.5, 0.5]])).exact
    (False, True)
    """

    marginals: Infer
    most_probable: Callable[[FloatArray], IntArray] = _computes_marginals_only
    """The most probable *joint* assignment (n_nodes,); it breaks no hard relation. Of equally
    probable ones the engine prefers low labels as far as its order of work allows."""
    results: Callable[[FloatArray], list[Result]] = lambda unary: []
    """The engine of each part of the network, for unaries of which only the places of -inf matter;
    an empty list from an engine that does not divide the network."""
    chains: Callable[[FloatArray], Any] | None = None
    """The chains of a sampler, :class:`cgmm.inference.gibbs.Chains`; None for other engines."""
    exact: bool | None = None
    """Whether its marginals are exact for all unaries; None where that depends on the unaries, or
    where only the marginals say so."""
    is_stateful: bool = False
    """Whether marginals may depend on earlier calls. Estimators then apply the engine anew for each
    restart, so that restarts do not depend on each other."""

    def __call__(self, unary: FloatArray, /) -> Marginals:
        """Return the marginals for the unary log-potentials (n_nodes, K)."""
        return self.marginals(unary)

    @property
    def finds_best(self) -> bool:
        """Whether it finds the most probable joint assignment, as exact engines do."""
        return self.most_probable is not _computes_marginals_only

    def approximates(self, unary: FloatArray) -> bool:
        """Return whether it reports that it approximates some part of the network."""
        return not all(result.exact for result in self.results(unary))

    def is_exact(self, unary: FloatArray) -> bool:
        """Return whether the marginals of such unaries are exact, by the engine's own word.

        An engine that says nothing beforehand is called once.
        """
        if results := self.results(unary):
            return all(result.exact for result in results)
        return self.marginals(unary).exact if self.exact is None else self.exact


Engine = Callable[[Graph], Inference]
"""Works on the structure once, for many E-steps. Estimators also take an engine that returns a
plain ``Infer``: it has marginals only, and is applied anew for each restart. An engine that draws
random numbers has a parameter ``random_state``, by which :func:`cgmm.inference.needs_seed` knows
it."""


def check_unary(graph: Graph, unary: FloatArray) -> FloatArray:
    """Check that unary log-potentials fit the graph and leave every node a state; return floats.

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
        raise NetworkError(f"{{nodes}} has {cause}: {remedy}.", graph.named(node))
    return unary
