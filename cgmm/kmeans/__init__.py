"""K-means with side information, the limit of a mixture whose variance goes to zero.

The package consists of Lloyd's loop, several assignment rules, and two estimators. Chapter 11
explains it; read :mod:`~cgmm.kmeans.loop` first. Whether hard relations can be satisfied at all
does not depend on K-means, so :mod:`cgmm.inference.feasible` decides this.
"""

from cgmm.inference.feasible import SearchBudgetError
from cgmm.kmeans.estimators import COPKMeans, PCKMeans
from cgmm.kmeans.loop import (
    Nodes, Step, cop_rule, cost_of_broken, engine_rule, lloyd, nearest_rule, pck_rule,
)  # fmt: skip
from cgmm.kmeans.seeding import chunklet_seeds

__all__ = [
    "COPKMeans", "Nodes", "PCKMeans", "SearchBudgetError", "Step", "chunklet_seeds", "cop_rule",
    "cost_of_broken", "engine_rule", "lloyd", "nearest_rule", "pck_rule",
]  # fmt: skip
