"""Simulated side information: the ways in which the papers derive it from known classes.

An experiment needs side information whose truth is known. Each function here simulates somebody who
knows something about the classes, and returns it in the formats of the estimators. The functions
use only the classes y, or positions in a grid, never the points. Chapters 4 to 12 call them.
"""

from cgmm.scenarios.answers import (
    answers_from_pairs, answers_from_preferences, certainty_from_weight, estimate_flip_rate,
    flip, pairs_from_answers, preferences, preferences_from_answers, weight_from_certainty,
)  # fmt: skip
from cgmm.scenarios.labels import allowed_classes, class_set_stars, partial_labels
from cgmm.scenarios.relations import (
    Relations, equal_chunklets, expected_chunklet_size, grid_neighbours, links_of_chunklets,
    pairs_until, random_pairs, teachers,
)  # fmt: skip

__all__ = [
    "Relations", "allowed_classes", "answers_from_pairs", "answers_from_preferences",
    "certainty_from_weight", "class_set_stars", "equal_chunklets", "estimate_flip_rate",
    "expected_chunklet_size", "flip", "grid_neighbours",
    "links_of_chunklets", "pairs_from_answers", "pairs_until", "partial_labels", "preferences",
    "preferences_from_answers", "random_pairs", "teachers", "weight_from_certainty",
]  # fmt: skip
