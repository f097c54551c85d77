"""Pairwise Markov networks over assignments, and the side information they are built from.

This package turns labels and relations between points into one network of nodes and weighted edges.
Estimators build it with ``SideInformation.build``; inference engines take its graph. Chapter 4
explains labels, chapter 5 relations, chapters 6 and 7 the network.

==========================================  ========================================================
:mod:`~cgmm.network.graph`                  nodes and weighted edges, and errors about them
:mod:`~cgmm.network.engine`                 the input and the result of an inference engine
:mod:`~cgmm.network.messages`               messages along edges, for belief propagation
:mod:`~cgmm.network.relations`              relations between points: checks, subsets, folds
:mod:`~cgmm.network.labels`                 class names, and labels as evidence on nodes
:mod:`~cgmm.network.misreadings`            checks for input that is likely to be misread
:mod:`~cgmm.network.side_information`       all side information of a data set, as one network
==========================================  ========================================================
"""

from cgmm.network.engine import Engine, Infer, Inference, Marginals, Result, check_unary
from cgmm.network.graph import (
    ApproximationWarning, DoubtWarning, Graph, NetworkError, TooCostlyError, adjacency,
    are_disjoint_pairs, connected_components, edgeless, induced_subgraph, log_weight,
    require_edgeless, simplify, spanning_forest,
)  # fmt: skip
from cgmm.network.labels import number_classes
from cgmm.network.messages import edge_message
from cgmm.network.relations import PairsAmong, must_link_chain, positions, related_groups
from cgmm.network.side_information import SAMPLING, SideInformation

__all__ = [
    "SAMPLING", "ApproximationWarning", "DoubtWarning", "Engine", "Graph", "Infer",
    "Inference", "Marginals", "NetworkError", "PairsAmong", "Result", "SideInformation",
    "TooCostlyError",
    "adjacency", "are_disjoint_pairs", "check_unary", "connected_components", "edge_message",
    "edgeless", "induced_subgraph", "log_weight", "must_link_chain", "number_classes", "positions",
    "related_groups", "require_edgeless", "simplify", "spanning_forest",
]  # fmt: skip
