"""Mixture discriminant analysis: each class is itself a mixture of Gaussians. Chapter 4.

The method is that of Hastie and Tibshirani (1996), extended by relations. The EM loop, the engines
and the update of the weights work with classes; only the densities depend on the components within
classes. A must-link therefore means that two points share a class, while their components within
the class may differ. Given the classes, the points are independent, so nothing is approximated, and
the cost of an engine does not grow with the number of components.

=====  ====================================================================
C, M   number of classes, and total number of components of all classes
π_c    weights of the classes
ρ_m    share of component m in its class; the shares of a class sum to one
r_ic   responsibilities of the classes
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from cgmm.mixture.family import Statistics, log_joint
from cgmm.mixture.gaussian import Parameters, sample
from cgmm.mixture.gaussian_mixture import ConstrainedGaussianMixture
from cgmm.mixture.missing import fill_by_regression
from cgmm.mixture.pooling import SMALLEST_COUNT, Pooling
from cgmm.mixture.weights import lift_small_weights
from cgmm.network import Engine, SideInformation
from cgmm.numerics import FloatArray, IntArray, Seed
from cgmm.runs import Rng


class ClassParameters(NamedTuple):
    """θ, the parameters of classes that are mixtures of Gaussians."""

    weights: FloatArray
    """(C,) π_c."""
    components: Parameters
    """The M components, ordered by class; their weights are the shares ρ_m."""
    sizes: tuple[int, ...]
    """(C,) number of components of each class, at least one."""

    @property
    def starts(self) -> IntArray:
        """(C,) index of the first component of each class."""
        return np.cumsum((0, *self.sizes[:-1]))

    @property
    def class_of(self) -> IntArray:
        """(M,) class of each component."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def log_density(self, X: FloatArray) -> FloatArray:
        """Return (N, C) log p(x_i | class c) = log Σ_m ρ_m N(x_i | μ_m, Σ_m)."""
        # Hastie and Tibshirani (1996), eq. 1: a class is a mixture
        return np.logaddexp.reduceat(log_joint(X, self.components).T, self.starts).T

    def with_weights(self, weights: FloatArray) -> ClassParameters:
        """Return the same classes with new weights."""
        return self._replace(weights=weights)

    def split_responsibilities(self, X: FloatArray, responsibilities: FloatArray) -> FloatArray:
        """Split (N, C) responsibilities of classes into (N, M) responsibilities of components."""
        joint = log_joint(X, self.components)
        totals = np.logaddexp.reduceat(joint, self.starts, axis=1)[:, self.class_of]
        # If a point has density zero in a class, it is split in proportion to the shares ρ_m.
        shares = np.broadcast_to(np.log(self.components.weights), joint.shape)
        known = totals > -np.inf
        within = np.where(known, joint - np.where(known, totals, 0), shares)
        return np.asfortranarray(responsibilities[:, self.class_of] * np.exp(within))

    def as_mixture(self) -> Parameters:
        """Return the mixture of all components, with weights π_c ρ_m."""
        return self.components.with_weights(self.weights[self.class_of] * self.components.weights)


class ClassPooling(NamedTuple):
    """The family of :class:`ClassParameters`, which fits the components of all classes."""

    pool: Pooling
    """The Gaussian family of the components; Hastie and Tibshirani use "tied"."""
    sizes: tuple[int, ...]
    """(C,) number of components of each class."""

    def start(self, X: FloatArray, responsibilities: FloatArray) -> ClassParameters:
        """Return an initial θ from (N, M) responsibilities of the components."""
        components = self.pool.start(X, responsibilities)
        theta = ClassParameters(np.ones(len(self.sizes)), components, self.sizes)
        counts = np.maximum(responsibilities.sum(axis=0), 1)
        of_class = np.add.reduceat(counts, theta.starts)
        components = components.with_weights(counts / of_class[theta.class_of])
        weights = lift_small_weights(of_class / of_class.sum(), len(X))
        return theta._replace(weights=weights, components=components)

    def statistics(
        self, X: FloatArray, responsibilities: FloatArray, parameters: ClassParameters
    ) -> Statistics:
        """Return the statistics of the components, given (N, C) responsibilities of classes."""
        split = parameters.split_responsibilities(X, responsibilities)
        return self.pool.statistics(X, split, parameters.components)

    def maximise(self, statistics: Statistics, parameters: ClassParameters) -> ClassParameters:
        """Return θ with the shares, means and covariances that maximise the bound.

        Parameters
        ----------
        statistics : tuple of arrays
            From :meth:`statistics`.
        parameters : ClassParameters
            The current θ. Its weights are returned unchanged, and so are the shares in a class
            without responsibility.

        Returns
        -------
        ClassParameters
            The new θ, with the old weights.

        Notes
        -----
        Hastie and Tibshirani (1996), sect. 3, with responsibilities r_ic in place of labels.
        """
        counts = statistics[0]
        components = self.pool.maximise(statistics, parameters.components)
        totals = np.add.reduceat(counts, parameters.starts)[parameters.class_of]
        empty = totals <= SMALLEST_COUNT
        shares = np.where(empty, parameters.components.weights, counts / np.where(empty, 1, totals))
        return parameters._replace(components=components.with_weights(shares))

    def n_free(self, parameters: ClassParameters) -> int:
        """Return the number of free parameters, including the shares."""
        return self.pool.n_free(parameters.components)


# ---------------------------------------------------------------------------- the estimator


class ClassMixture(ConstrainedGaussianMixture):
    """Estimator of classes that are mixtures of Gaussians; labels and relations refer to classes.

    Parameters
    ----------
    sizes : (C,) sequence of int, default=(1,)
        Number of components of each class.
    covariance_type, sampling, inference, weights, tol, reg_covar, max_iter, n_init
        As in :class:`ConstrainedGaussianMixture`. EM starts from the labelled points.
    random_state, verbose, n_jobs, store_responsibilities
        As in :class:`ConstrainedGaussianMixture`.

    Attributes
    ----------
    weights_ : (C,) array
        π_c.
    shares_ : (M,) array
        ρ_m, ordered by class.
    means_, covariances_
        Parameters of the M components, as in :class:`ConstrainedGaussianMixture`. All other
        attributes refer to classes.

    Examples
    --------
    >>> X = np.array([[0.0], [0.3], [4.0], [4.4], [8.0], [8.3], [0.1], [3.9], [8.1]])
    >>> model = ClassMixture((1, 2), random_state=0).fit(X, labels=[1, 1, 0, 0, 1, 1, -1, -1, -1])
    >>> model.labels_, model.means_.ravel().round(1)
    (array([1, 1, 0, 0, 1, 1, 1, 0, 1]), array([4.1, 8.1, 0.1]))
    """

    def __init__(
        self,
        sizes: Sequence[int] = (1,),
        *,
        covariance_type: str = "full",
        sampling: str = "points",
        inference: str | Engine = "auto",
        weights: str = "auto",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        store_responsibilities: bool = True,
    ):
        # The base class takes the C classes for its components.
        super().__init__(
            len(sizes), covariance_type=covariance_type, sampling=sampling, inference=inference,
            weights=weights, tol=tol, reg_covar=reg_covar, max_iter=max_iter, n_init=n_init,
            random_state=random_state, verbose=verbose, n_jobs=n_jobs,
            store_responsibilities=store_responsibilities,
        )  # fmt: skip
        self.sizes = sizes

    def partial_fit(self, *args: Any, **known: Any) -> Self:
        """Raise an error, because classes of several Gaussians cannot be fitted in batches."""
        raise NotImplementedError("classes of several Gaussians have no partial_fit; use fit.")

    def _family(self) -> ClassPooling:
        return ClassPooling(super()._family(), tuple(self.sizes))

    def _starts(self, X: FloatArray, side: SideInformation, rng: Rng) -> list[Callable[[], Any]]:
        return [partial(self._start_from_labels, X, side, rng)] * self.n_init

    def _start_from_labels(self, X: FloatArray, side: SideInformation, rng: Rng) -> ClassParameters:
        # Every class has labelled points, which are the best start, so no others are tried.
        known = side.spread(side.known_classes(len(self.sizes)))
        r = initial_responsibilities(fill_by_regression(X), self.sizes, known, rng)
        return self._family().start(X, side.counted(r))

    def _store_theta(self, parameters: ClassParameters) -> None:
        super()._store_theta(parameters.components)
        self.shares_, self.weights_ = self.weights_, parameters.weights

    def _get_theta(self) -> ClassParameters:
        components = super()._get_theta().with_weights(self.shares_)
        return ClassParameters(self.weights_, components, tuple(self.sizes))

    def _draw_points(self, n_samples: int, rng: Rng) -> tuple[FloatArray, IntArray]:
        theta = self._get_theta()
        X, components = sample(theta.as_mixture(), n_samples, rng)
        return X, theta.class_of[components]


def initial_responsibilities(
    X: FloatArray, sizes: Sequence[int], known: IntArray, rng: Rng
) -> FloatArray:
    """Assign each point to the nearest K-means centre of its class; return (N, M) indicators.

    ``known`` (N,) is the class of each point, or -1. The centres of a class come from K-means on
    its known points. A point of unknown class is assigned to the nearest centre of all classes.
    """
    centres = []
    for c, size in enumerate(sizes):
        class_points = X[known == c]
        # X may be a subsample. If it has too few distinct points of a class, K-means uses all of X.
        class_points = class_points if len(np.unique(class_points, axis=0)) >= size else X
        centres.append(KMeans(size, n_init=1, random_state=rng).fit(class_points).cluster_centers_)
    distances = cdist(X, np.concatenate(centres), "sqeuclidean")
    is_of_another_class = known[:, None] != np.repeat(np.arange(len(sizes)), sizes)
    distances[is_of_another_class & (known >= 0)[:, None]] = np.inf
    return np.eye(sum(sizes))[distances.argmin(axis=1)]
