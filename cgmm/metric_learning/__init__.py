"""Learn metrics from relations: relevant component analysis (RCA), and the method of Xing et al.

The estimators ``RCA``, ``OnlineRCA`` and ``MMC`` learn a linear map from must-links, chunklets or
cannot-links. The functions compute single steps of these algorithms, and the criteria that RCA
optimises. Chapter 12 explains them.
"""

from cgmm.metric_learning.chunklets import total_covariance, within_chunklet_covariance
from cgmm.metric_learning.criteria import (
    Discriminant, cfld, information, likelihood_criterion, principal_axes,
    variance_of_covariance, variance_ratio, weight_ratio, within_distance,
)  # fmt: skip
from cgmm.metric_learning.mmc import MMC
from cgmm.metric_learning.mmc_problem import objective
from cgmm.metric_learning.online import SCHEDULES, OnlineRCA, flow_step, online_step, overshoots
from cgmm.metric_learning.rca import RCA
from cgmm.metric_learning.start import rca_start
from cgmm.metric_learning.whiten import whitening

__all__ = [
    "MMC", "RCA", "SCHEDULES", "Discriminant", "OnlineRCA", "cfld", "flow_step", "information",
    "likelihood_criterion", "objective", "online_step", "overshoots", "principal_axes",
    "rca_start", "total_covariance", "variance_of_covariance", "variance_ratio", "weight_ratio",
    "whitening", "within_chunklet_covariance", "within_distance",
]  # fmt: skip
