"""K-means with side information, the limit of zero variance: one loop of Lloyd's, and its rules.

Chapter 11 reads this room, from :mod:`~cgmm.kmeans.loop` on. Whether hard relations can be honoured
at all is no question of K-means: :mod:`cgmm.inference.feasible` answers it.
"""

from cgmm.inference.feasible import SearchBudgetError
from cgmm.kmeans.assignment import cop_rule, engine_rule, pck_rule
from cgmm.kmeans.estimators import COPKMeans, PCKMeans
from cgmm.kmeans.loop import Nodes, Step, lloyd, nearest_rule, penalty
from cgmm.kmeans.seeding import chunklet_seeds

__all__ = [
    "COPKMeans", "Nodes", "PCKMeans", "SearchBudgetError", "Step", "chunklet_seeds", "cop_rule",
    "engine_rule", "lloyd", "nearest_rule", "pck_rule", "penalty",
]  # fmt: skip
