"""K-means with side information, the limit of a mixture whose variance goes to zero.

It consists of one loop (Lloyd's), several assignment rules, and two estimators. Chapter 11 explains
it, beginning with :mod:`~cgmm.kmeans.loop`. Whether hard relations can be satisfied at all does not
depend on K-means, so :mod:`cgmm.inference.feasible` decides it.
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
