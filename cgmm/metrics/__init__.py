"""How well a clustering agrees with the truth, with relations, and with its neighbours."""

from cgmm.metrics.matching import match_labels, matched_accuracy
from cgmm.metrics.neighbours import cumulative_neighbour_purity
from cgmm.metrics.pairwise import PairwiseScores, balanced_rand_index, pairwise_scores, rand_index
from cgmm.metrics.relations import BrokenRelations, broken_relations

__all__ = [
    "BrokenRelations",
    "PairwiseScores",
    "balanced_rand_index",
    "broken_relations",
    "cumulative_neighbour_purity",
    "match_labels",
    "matched_accuracy",
    "pairwise_scores",
    "rand_index",
]
