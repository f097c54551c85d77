"""What an engine is given and what it answers: unary log-potentials in, marginals out. Chapter 7.

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


class Answer(NamedTuple):
    """Who answered for which part of a network, and at what cost."""

    engine: str
    """Its name in ENGINES, or "none"."""
    n_components: int
    """Components of the network that is left when evidence, and for K = 2 the mirror, are used."""
    n_nodes: int
    """Nodes in them."""
    n_edges: int
    """Edges in them."""
    width: int | None = None
    """The largest induced width among them, or a lower bound; None where the engine needs none."""
    n_bytes: int = 0
    """What the tables of exact inference take, or would take at least; 0 where not reckoned."""
    n_operations: int = 0
    """Entries of tables that exact inference visits in one call, or would visit at least."""

    @property
    def exact(self) -> bool:
        """Whether the answer is exact up to rounding."""
        return self.engine not in ("belief_propagation", "none")


Infer = Callable[[FloatArray], Marginals]
"""From the unary log-potentials (n_nodes, K) to the marginals."""


def _tells_none(unary: FloatArray) -> IntArray:
    raise ValueError(
        "this engine tells marginals, and no most probable joint assignment; ask one that does, "
        "such as inference='auto'."
    )


@dataclass(frozen=True)
class Inference:
    """A graph that an engine has prepared, and what may be asked of it, all from the same unaries.

    Called itself it answers with the marginals: every ``Inference`` is an ``Infer``.

    Examples
    --------
    >>> ask = Inference(lambda unary: Marginals(unary, 0.0, exact=True))
    >>> ask.finds_best, ask(np.array([[0.5, 0.5]])).exact
    (False, True)
    """

    marginals: Infer
    most_probable: Callable[[FloatArray], IntArray] = _tells_none
    """The most probable *joint* assignment (n_nodes,); it breaks no hard relation. Of equally
    probable ones the engine prefers low labels as far as its order of work allows."""
    answered: Callable[[FloatArray], list[Answer]] = lambda unary: []
    """Who answers for which part; an empty list from an engine that answers for all itself."""
    chains: Callable[[FloatArray], Any] | None = None
    """What the chains of a sampler go through, :class:`cgmm.inference.gibbs.Chains`."""

    def __call__(self, unary: FloatArray, /) -> Marginals:
        """From the unary log-potentials (n_nodes, K) to the marginals."""
        return self.marginals(unary)

    @property
    def finds_best(self) -> bool:
        """Whether it tells the most probable joint assignment, as exact ones do."""
        return self.most_probable is not _tells_none

    def approximates(self, unary: FloatArray) -> bool:
        """Whether it reports of some part of the network that it approximates it."""
        return not all(answer.exact for answer in self.answered(unary))


Engine = Callable[[Graph], Inference]
"""Works on the structure once, for many E-steps. Estimators take one that returns a plain ``Infer``
too, and know the marginals alone."""


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
        raise NetworkError(f"{{nodes}} has {cause}: {remedy}.", graph.named(node))
    return unary
