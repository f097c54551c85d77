"""Scores of a clustering against known classes: on points, on pairs, on neighbourhoods.

A clustering has no names for its clusters, so a score must not depend on them. There are two
solutions. Either *match* clusters with classes and count points, or ask only whether the two points
of each *pair* belong together, which is also what must-links and cannot-links state. Two methods
are compared by the differences of their scores on the same draws. Probabilities are compared with
the frequencies of the events. All chapters use these functions.
"""

from cgmm.metrics.scores import (
    BrokenRelations, PairwiseScores, balanced_rand_index, broken_relations,
    cumulative_neighbour_purity, match_labels, matched_accuracy, pairwise_scores,
)  # fmt: skip
from cgmm.metrics.uncertainty import PairedDifference, Reliability, paired_difference, reliability

__all__ = [
    "BrokenRelations", "PairedDifference", "PairwiseScores", "Reliability", "balanced_rand_index",
    "broken_relations", "cumulative_neighbour_purity", "match_labels",
    "matched_accuracy", "paired_difference", "pairwise_scores", "reliability",
]  # fmt: skip
