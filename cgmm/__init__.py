"""Gaussian mixtures with side information: labels, chunklets, cannot-links and preferences.

The package is a tower of rooms, each with a door that lists what is public: ``numerics`` at the
bottom, then ``network``, ``inference`` with one engine a file, ``mixture`` with the one EM loop,
and on top ``kmeans``, ``metric_learning`` and the rest. Here stand the names that most people need.
A name, or a room, is loaded when it is first used; ``python -m cgmm`` shows around.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

__all__ = [
    "ENGINES", "MMC", "RCA", "COPKMeans", "ConstrainedCategoricalMixture",
    "ConstrainedGaussianMixture", "MixedMixture", "OnlineRCA", "PCKMeans", "Parameters",
    "Posterior", "SemiSupervisedGaussianClassifier", "SideInformation",
]  # fmt: skip

__version__ = "1.0.0"

if TYPE_CHECKING:
    from cgmm.inference import ENGINES
    from cgmm.kmeans import COPKMeans, PCKMeans
    from cgmm.metric_learning import MMC, RCA, OnlineRCA
    from cgmm.mixture import (
        ConstrainedCategoricalMixture, ConstrainedGaussianMixture, MixedMixture, Parameters,
        Posterior, SemiSupervisedGaussianClassifier,
    )  # fmt: skip
    from cgmm.network import SideInformation
else:

    def __getattr__(name):
        """Load a room, or a name of ``__all__`` from the lowest room whose door has it."""
        if name in _rooms():
            return import_module(f"cgmm.{name}")
        if name in __all__:
            for room in ("network", "inference", "kmeans", "mixture", "metric_learning"):
                door = import_module(f"cgmm.{room}")
                if name in door.__all__:
                    return globals().setdefault(name, getattr(door, name))
        raise AttributeError(f"module 'cgmm' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__, *_rooms()})


def _rooms() -> set[str]:
    return {module.name for module in iter_modules(__path__)} - {"__main__"}
