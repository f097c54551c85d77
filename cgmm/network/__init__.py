"""The pairwise Markov network over assignments, and the side information that becomes one.

:mod:`~cgmm.network.graph` holds nodes and weighted edges, :mod:`~cgmm.network.engine` what an engine
is given and what it answers, :mod:`~cgmm.network.side_information` what is known beside the data.
Chapter 5 makes relations, chapters 6 and 7 the network.
"""

from cgmm.network.engine import (
    Engine,
    ExactInfer,
    Infer,
    Marginals,
    check_unary,
    with_most_probable,
)
from cgmm.network.errors import NetworkError
from cgmm.network.graph import (
    Graph,
    are_disjoint_pairs,
    components,
    edgeless,
    require_edgeless,
    simplify,
    spanning_forest,
)
from cgmm.network.messages import edge_message
from cgmm.network.relations import must_link_chain
from cgmm.network.side_information import SAMPLING, SideInformation

__all__ = [
    "Engine",
    "ExactInfer",
    "Graph",
    "Infer",
    "Marginals",
    "NetworkError",
    "SAMPLING",
    "SideInformation",
    "are_disjoint_pairs",
    "check_unary",
    "components",
    "edge_message",
    "edgeless",
    "must_link_chain",
    "require_edgeless",
    "simplify",
    "spanning_forest",
    "with_most_probable",
]
