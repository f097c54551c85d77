"""The pairwise Markov network over assignments, and the side information that becomes one.

==========================================  ========================================================
:mod:`~cgmm.network.graph`                  nodes and weighted edges, and graphs made of graphs
:mod:`~cgmm.network.engine`                 what an engine is given and what it answers
:mod:`~cgmm.network.errors`                 how it refuses: impossible, or too costly
:mod:`~cgmm.network.messages`               what one end of an edge tells the other
:mod:`~cgmm.network.relations`              relations between points, checked and contracted
:mod:`~cgmm.network.rows`                   which rows they speak of: names, subsets, folds
:mod:`~cgmm.network.classes`                classes by any name, some of them unknown
:mod:`~cgmm.network.misreadings`            what may be meant otherwise than it is read
:mod:`~cgmm.network.evidence`               labels and sets of allowed classes
:mod:`~cgmm.network.side_information`       all that is known beside the data, as one network
==========================================  ========================================================

Chapter 4 gives labels, chapter 5 makes relations, chapters 6 and 7 the network.
"""

from cgmm.network.classes import number_classes
from cgmm.network.engine import (
    Engine, Infer, Inference, Marginals, Result, check_unary,
)  # fmt: skip
from cgmm.network.errors import (
    ApproximationWarning, DoubtWarning, NetworkError, TooCostlyError,
)  # fmt: skip
from cgmm.network.graph import (
    Graph, adjacency, are_disjoint_pairs, connected_components, edgeless, induced_subgraph,
    log_weight, require_edgeless, simplify, spanning_forest,
)  # fmt: skip
from cgmm.network.messages import edge_message
from cgmm.network.relations import must_link_chain
from cgmm.network.rows import PairsAmong, positions, related_groups
from cgmm.network.side_information import SAMPLING, SideInformation

__all__ = [
    "SAMPLING", "ApproximationWarning", "DoubtWarning", "Engine", "Graph", "Infer",
    "Inference", "Marginals", "NetworkError", "PairsAmong", "Result", "SideInformation",
    "TooCostlyError",
    "adjacency", "are_disjoint_pairs", "check_unary", "connected_components", "edge_message",
    "edgeless", "induced_subgraph", "log_weight", "must_link_chain", "number_classes", "positions",
    "related_groups", "require_edgeless", "simplify", "spanning_forest",
]  # fmt: skip
