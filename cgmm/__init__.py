"""Gaussian mixtures with side information: labels, chunklets, cannot-links and preferences.

The package is a tower of rooms, each with a door that lists what is public: ``numerics`` at the
bottom, then ``network``, ``inference`` with one engine a file, ``mixture`` with the one EM loop,
and on top ``kmeans``, ``metric_learning`` and the rest. Here stand the names that most people need.
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

__version__ = "0.3.0"
