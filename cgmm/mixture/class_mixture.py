"""Several Gaussians a class: a family whose states are classes, each a mixture. Chapter 4.

Mixture discriminant analysis (Hastie and Tibshirani, 1996), with relations as well. The loop, the
engines and the weights' update see classes alone, and only their densities know of components. So
relations speak of classes: two points that must be linked share a class, and each has its own
component of it. Given their classes points are independent, so nothing is approximated, and what
an engine costs does not grow with the number of components.

=====  ====================================================================
C, M   number of classes, and of the components of all of them together
π_c    weights of the classes
ρ_m    share of component m in its class; shares of a class sum to one
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
from cgmm.mixture.missing import filled
from cgmm.mixture.pooling import SMALLEST_COUNT, Pooling
from cgmm.mixture.weights import kept_alive
from cgmm.network import Engine, SideInformation
from cgmm.numerics import FloatArray, IntArray, Seed
from cgmm.runs import Rng


class ClassParameters(NamedTuple):
    """θ of classes that are mixtures of Gaussians."""

    weights: FloatArray
    """(C,) π_c."""
    components: Parameters
    """The M components, class by class; their weights are the shares ρ_m."""
    sizes: tuple[int, ...]
    """(C,) how many components each class has, at least one."""

    @property
    def starts(self) -> IntArray:
        """(C,) the first component of each class."""
        return np.cumsum((0, *self.sizes[:-1]))

    @property
    def class_of(self) -> IntArray:
        """(M,) the class of each component."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def log_density(self, X: FloatArray) -> FloatArray:
        """(N, C) log p(x_i | class c) = log Σ_m ρ_m N(x_i | μ_m, Σ_m)."""
        # Hastie and Tibshirani (1996), eq. 1: a class is a mixture
        return np.logaddexp.reduceat(log_joint(X, self.components).T, self.starts).T

    def with_weights(self, weights: FloatArray) -> ClassParameters:
        """Return the same classes with other weights."""
        return self._replace(weights=weights)

    def split(self, X: FloatArray, responsibilities: FloatArray) -> FloatArray:
        """Return (N, M) responsibilities of components from (N, C) responsibilities of classes."""
        joint = log_joint(X, self.components)
        totals = np.logaddexp.reduceat(joint, self.starts, axis=1)[:, self.class_of]
        # Where a class has no density, its components get their overall shares.
        shares = np.broadcast_to(np.log(self.components.weights), joint.shape)
        known = totals > -np.inf
        within = np.where(known, joint - np.where(known, totals, 0), shares)
        return np.asfortranarray(responsibilities[:, self.class_of] * np.exp(within))

    def as_mixture(self) -> Parameters:
        """Return the mixture of all components, with weights π_c ρ_m."""
        return self.components.with_weights(self.weights[self.class_of] * self.components.weights)


class ClassPooling(NamedTuple):
    """The family of :class:`ClassParameters`: responsibilities are split, then each part pooled."""

    pool: Pooling
    """The family of the components; "tied" is what the authors do."""
    sizes: tuple[int, ...]
    """(C,) how many components each class has."""

    def start(self, X: FloatArray, responsibilities: FloatArray) -> ClassParameters:
        """Return θ made of (N, M) responsibilities of the components."""
        components = self.pool.start(X, responsibilities)
        theta = ClassParameters(np.ones(len(self.sizes)), components, self.sizes)
        counts = np.maximum(responsibilities.sum(axis=0), 1)
        of_class = np.add.reduceat(counts, theta.starts)
        components = components.with_weights(counts / of_class[theta.class_of])
        weights = kept_alive(of_class / of_class.sum(), len(X))
        return theta._replace(weights=weights, components=components)

    def statistics(
        self, X: FloatArray, responsibilities: FloatArray, parameters: ClassParameters
    ) -> Statistics:
        """Return the components' statistics from (N, C) responsibilities of the classes."""
        split = parameters.split(X, responsibilities)
        return self.pool.statistics(X, split, parameters.components)

    def maximise(self, statistics: Statistics, parameters: ClassParameters) -> ClassParameters:
        """Return θ with the shares, means and covariances that maximise the bound.

        Parameters
        ----------
        statistics : tuple of arrays
            From :meth:`statistics`.
        parameters : ClassParameters
            θ so far. Its weights stay, and so do the shares in a class without responsibility.

        Returns
        -------
        ClassParameters
            The new θ, with the old weights.

        Notes
        -----
        Hastie and Tibshirani (1996), sect. 3, with r_ic where they have a label.
        """
        counts = statistics[0]
        components = self.pool.maximise(statistics, parameters.components)
        totals = np.add.reduceat(counts, parameters.starts)[parameters.class_of]
        dead = totals <= SMALLEST_COUNT
        shares = np.where(dead, parameters.components.weights, counts / np.where(dead, 1, totals))
        return parameters._replace(components=components.with_weights(shares))

    def n_free(self, parameters: ClassParameters) -> int:
        """Return the number of free parameters, those of the shares included."""
        return self.pool.n_free(parameters.components)


# ---------------------------------------------------------------------------- the estimator


class ClassMixture(ConstrainedGaussianMixture):
    """Mixture of classes, each a mixture of Gaussians, with labels and relations of classes.

    Parameters
    ----------
    sizes : (C,) sequence of int, default=(1,)
        How many components each class has.
    covariance_type, sampling, inference, weights, tol, reg_covar, max_iter, n_init
        As in :class:`ConstrainedGaussianMixture`. A start is made of the labelled points.
    random_state, verbose, n_jobs, store_responsibilities
        As in :class:`ConstrainedGaussianMixture`.

    Attributes
    ----------
    weights_ : (C,) array
        π_c.
    shares_ : (M,) array
        ρ_m, components in the order of their classes.
    means_, covariances_
        Of the M components, as in :class:`ConstrainedGaussianMixture`, whose other attributes speak
        of classes.

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
        # The engine's states are the C classes.
        super().__init__(
            len(sizes), covariance_type=covariance_type, sampling=sampling, inference=inference,
            weights=weights, tol=tol, reg_covar=reg_covar, max_iter=max_iter, n_init=n_init,
            random_state=random_state, verbose=verbose, n_jobs=n_jobs,
            store_responsibilities=store_responsibilities,
        )  # fmt: skip
        self.sizes = sizes

    def partial_fit(self, *args: Any, **known: Any) -> Self:
        """Raise an error: classes of several Gaussians are fitted to all points at once."""
        raise NotImplementedError("there is no partial_fit for classes of several Gaussians: fit.")

    def _family(self) -> ClassPooling:
        return ClassPooling(super()._family(), tuple(self.sizes))

    def _starts(self, X: FloatArray, side: SideInformation, rng: Rng) -> list[Callable[[], Any]]:
        return [partial(self._start_of_classes, X, side, rng)] * self.n_init

    def _start_of_classes(self, X: FloatArray, side: SideInformation, rng: Rng) -> ClassParameters:
        # Every class has labels, which are the best start, so no others are made.
        known = side.spread(side.known_classes(len(self.sizes)))
        r = first_responsibilities(filled(X), self.sizes, known, rng)
        return self._family().start(X, side.counted(r))

    def _keep(self, parameters: ClassParameters) -> None:
        super()._keep(parameters.components)
        self.shares_, self.weights_ = self.weights_, parameters.weights

    def _parameters(self) -> ClassParameters:
        components = super()._parameters().with_weights(self.shares_)
        return ClassParameters(self.weights_, components, tuple(self.sizes))

    def _draw(self, n_samples: int, rng: Rng) -> tuple[FloatArray, IntArray]:
        theta = self._parameters()
        X, components = sample(theta.as_mixture(), n_samples, rng)
        return X, theta.class_of[components]


def first_responsibilities(
    X: FloatArray, sizes: Sequence[int], known: IntArray, rng: Rng
) -> FloatArray:
    """Return (N, M) responsibilities of the start: each point to its class's nearest centre.

    The centres of a class are those of K-means among the points ``known`` to be of it; a point of
    unknown class, -1, goes to the nearest of all.
    """
    centres = []
    for c, size in enumerate(sizes):
        own = X[known == c]
        # The start sees a sample; a class that is too rare in it starts from all points.
        own = own if len(np.unique(own, axis=0)) >= size else X
        centres.append(KMeans(size, n_init=1, random_state=rng).fit(own).cluster_centers_)
    distances = cdist(X, np.concatenate(centres), "sqeuclidean")
    of_another = known[:, None] != np.repeat(np.arange(len(sizes)), sizes)
    distances[of_another & (known >= 0)[:, None]] = np.inf
    return np.eye(sum(sizes))[distances.argmin(axis=1)]
