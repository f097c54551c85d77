"""Gaussian mixtures with side information: labels, chunklets, cannot-links and preferences.

The package consists of layers of subpackages: ``numerics`` at the bottom, then ``network``,
``inference`` with one engine per file, ``mixture`` with the EM loop, and on top ``kmeans``,
``metric_learning`` and others. Each subpackage lists its public names in ``__all__``; this module
exports the names that most users need. A name or a subpackage is loaded when it is first used.
``python -m cgmm`` runs a short tour.
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
        """Load a subpackage, or a name of ``__all__`` from the lowest subpackage that has it."""
        if name in _subpackages():
            return import_module(f"cgmm.{name}")
        if name in __all__:
            for layer in ("network", "inference", "kmeans", "mixture", "metric_learning"):
                subpackage = import_module(f"cgmm.{layer}")
                if name in subpackage.__all__:
                    return globals().setdefault(name, getattr(subpackage, name))
        raise AttributeError(f"module 'cgmm' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__, *_subpackages()})


def _subpackages() -> set[str]:
    return {module.name for module in iter_modules(__path__)} - {"__main__"}
