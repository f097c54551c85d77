"""Mixture models with side information: component families, the EM loop, and the estimators.

Chapters 1 to 10 explain these files. Densities are in :mod:`~cgmm.mixture.gaussian`, the E-step and
the M-step in :mod:`~cgmm.mixture.loop`, and the updates of the mixing weights in
:mod:`~cgmm.mixture.weights`.
"""

from cgmm.kmeans.seeding import chunklet_seeds, far_points, nearest, random_points, seeds
from cgmm.large.blocks import Points
from cgmm.mixture.base import ConstrainedMixture
from cgmm.mixture.categorical import CategoricalParameters, Categories, one_hot
from cgmm.mixture.categorical_mixture import ConstrainedCategoricalMixture
from cgmm.mixture.classifier import SemiSupervisedGaussianClassifier
from cgmm.mixture.family import Family, Statistics, Theta, log_joint
from cgmm.mixture.gaussian import Parameters, log_density, sample
from cgmm.mixture.gaussian_mixture import ConstrainedGaussianMixture
from cgmm.mixture.initialise import (
    GUIDED_STARTS, STARTS, adapt_to_evidence, from_chunklets, from_labels,
    from_responsibilities, random_responsibilities,
)  # fmt: skip
from cgmm.mixture.loop import (
    Posterior, Run, e_step, em, follow, m_step, node_unaries, prior_unaries, warn_about,
)  # fmt: skip
from cgmm.mixture.missing import PointsWithGaps, with_gaps
from cgmm.mixture.mixed_mixture import MixedMixture
from cgmm.mixture.pooling import POOLINGS, Pooling, lower_bound, penalty
from cgmm.mixture.prior import Prior
from cgmm.mixture.weights import (
    UPDATES, Update, cautious, choose_update, closed_form, grid, ignore, match_counts,
    pseudo_likelihood,
)  # fmt: skip
from cgmm.runs import best_of

__all__ = [
    "GUIDED_STARTS",
    "POOLINGS",
    "STARTS",
    "UPDATES",
    "CategoricalParameters",
    "Categories",
    "ConstrainedCategoricalMixture",
    "ConstrainedGaussianMixture",
    "ConstrainedMixture",
    "Family",
    "MixedMixture",
    "Parameters",
    "Points",
    "PointsWithGaps",
    "Pooling",
    "Posterior",
    "Prior",
    "Run",
    "SemiSupervisedGaussianClassifier",
    "Statistics",
    "Theta",
    "Update",
    "adapt_to_evidence",
    "best_of",
    "cautious",
    "choose_update",
    "chunklet_seeds",
    "closed_form",
    "e_step",
    "em",
    "far_points",
    "follow",
    "from_chunklets",
    "from_labels",
    "from_responsibilities",
    "grid",
    "ignore",
    "log_density",
    "log_joint",
    "lower_bound",
    "m_step",
    "match_counts",
    "nearest",
    "node_unaries",
    "one_hot",
    "penalty",
    "prior_unaries",
    "pseudo_likelihood",
    "random_points",
    "random_responsibilities",
    "sample",
    "seeds",
    "warn_about",
    "with_gaps",
]  # fmt: skip
