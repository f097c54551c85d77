"""Gaussian mixtures with side information: labels, chunklets, cannot-links and preferences.

The modules are the rooms of the book: ``gaussian`` and ``network`` at the bottom, one engine a
file in ``inference``, the loop in ``em``, thin scikit-learn estimators in ``estimators``.
"""

from cgmm.inference import ENGINES
from cgmm.kmeans import COPKMeans, PCKMeans
from cgmm.metric_learning import MMC, RCA, OnlineRCA
from cgmm.mixture import (
    ConstrainedCategoricalMixture, ConstrainedGaussianMixture, Parameters, Posterior,
    SemiSupervisedGaussianClassifier,
)  # fmt: skip
from cgmm.network import SideInformation

__all__ = [
    "ENGINES", "MMC", "RCA", "COPKMeans", "ConstrainedCategoricalMixture",
    "ConstrainedGaussianMixture", "OnlineRCA", "PCKMeans", "Parameters", "Posterior",
    "SemiSupervisedGaussianClassifier", "SideInformation",
]  # fmt: skip

__version__ = "0.1.0"
