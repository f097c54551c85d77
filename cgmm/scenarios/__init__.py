"""Where relations come from: teachers, random pairs, partial labels, answers that are wrong.

Chapter 5 is about this room; every experiment uses it.
"""

from cgmm.scenarios.answers import (
    certainty_from_weight,
    estimate_flip_rate,
    flip,
    preferences,
    weight_from_certainty,
)
from cgmm.scenarios.labels import (
    allowed_classes,
    class_set_stars,
    links_between_class_sets,
    partial_labels,
)
from cgmm.scenarios.relations import (
    Relations,
    grid_neighbours,
    links_of_chunklets,
    pairs_until,
    random_pairs,
)
from cgmm.scenarios.teaching import equal_chunklets, expected_chunklet_size, teachers

__all__ = [
    "Relations",
    "allowed_classes",
    "certainty_from_weight",
    "class_set_stars",
    "equal_chunklets",
    "estimate_flip_rate",
    "expected_chunklet_size",
    "flip",
    "grid_neighbours",
    "links_between_class_sets",
    "links_of_chunklets",
    "pairs_until",
    "partial_labels",
    "preferences",
    "random_pairs",
    "teachers",
    "weight_from_certainty",
]
