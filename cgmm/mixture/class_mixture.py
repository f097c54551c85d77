"""The mixture behind a classifier with several Gaussians a class: how it starts, what it stores.

Chapter 4. The mathematics is in :mod:`cgmm.mixture.class_family`; the letters are those of there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from cgmm.mixture.class_family import ClassParameters, ClassPooling
from cgmm.mixture.gaussian import Parameters, sample
from cgmm.mixture.gaussian_mixture import ConstrainedGaussianMixture
from cgmm.mixture.initialise import counted, from_responsibilities, kept_alive
from cgmm.mixture.pooling import POOLINGS
from cgmm.mixture.seeding import Rng, nearest, seeds
from cgmm.network import Engine, SideInformation
from cgmm.numerics import BoolArray, FloatArray, IntArray


class ClassMixture(ConstrainedGaussianMixture):
    """Mixture of classes, each a mixture of Gaussians, told labels and relations of classes.

    Parameters
    ----------
    sizes : (C,) sequence of int, default=(1,)
        How many components each class has.
    covariance_type, inference, weights, tol, reg_covar, max_iter, n_init, random_state, verbose,
    n_jobs
        As in :class:`ConstrainedGaussianMixture`. A start is made of the labelled points.

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

    sampling = "points"
    warm_start = False
    store_responsibilities = True
    step_exponent = 0.6

    def __init__(
        self,
        sizes: Sequence[int] = (1,),
        *,
        covariance_type: str = "full",
        inference: str | Engine = "auto",
        weights: str = "auto",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ):
        self.sizes = sizes
        self.covariance_type = covariance_type
        self.inference = inference
        self.weights = weights
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    @property
    # What an option was is a number that follows from another.
    def n_components(self) -> int:  # type: ignore[override]
        """C, which the engine sees."""
        return len(self.sizes)

    # θ is of classes here: another form than that of the class above.
    def _pool(self) -> ClassPooling:  # type: ignore[override]
        return ClassPooling(POOLINGS[self.covariance_type])

    # θ is of classes here: another form than that of the class above.
    def _starts(self, X: FloatArray, side: SideInformation, rng: Rng) -> list[ClassParameters]:  # type: ignore[override]
        # Labels of every class are known: they are the best start, and the only one.
        return [self._start(X, side, rng)]

    # θ is of classes here: another form than that of the class above.
    def _start(self, X: FloatArray, side: SideInformation, rng: Rng) -> ClassParameters:  # type: ignore[override]
        mask = cast("BoolArray", side.mask(len(self.sizes)))
        known = side.spread(np.where(mask.sum(axis=1) == 1, mask.argmax(axis=1), -1))
        r = counted(first_responsibilities(X, self.sizes, known, rng), side)
        components = from_responsibilities(X, r, self._pool().pool, reg_covar=self.reg_covar)
        theta = ClassParameters(np.ones(len(self.sizes)), components, tuple(self.sizes))
        counts = np.maximum(r.sum(axis=0), 1)
        of_class = np.add.reduceat(counts, theta.starts)
        components = components.with_weights(counts / of_class[theta.class_of])
        weights = kept_alive(of_class / of_class.sum(), len(X))
        return theta._replace(weights=weights, components=components)

    # θ is of classes here: another form than that of the class above.
    def _keep(self, parameters: ClassParameters) -> None:  # type: ignore[override]
        super()._keep(parameters.components)
        self.shares_, self.weights_ = self.weights_, parameters.weights

    def _gaussians(self) -> Parameters:
        return super()._gaussians().with_weights(self.shares_)

    # θ is of classes here: another form than that of the class above.
    def _parameters(self) -> ClassParameters:  # type: ignore[override]
        return ClassParameters(self.weights_, self._gaussians(), tuple(self.sizes))

    def _draw(self, n_samples: int, rng: Rng) -> tuple[FloatArray, IntArray]:
        theta = self._parameters()
        X, components = sample(theta.as_mixture(), n_samples, rng)
        return X, theta.class_of[components]


def first_responsibilities(
    X: FloatArray, sizes: Sequence[int], known: IntArray, rng: Rng
) -> FloatArray:
    """(N, M) responsibilities of the start: each point to the nearest centre of its class.

    The centres of a class are the means about k-means++ seeds among the points ``known`` to be of
    it; a point of unknown class, -1, goes to the nearest of all.
    """
    ends = np.cumsum((0, *sizes))
    own = [np.flatnonzero(known == c) for c in range(len(sizes))]
    parts = []
    for points, size in zip(own, sizes, strict=True):
        first = X[points[[rng.randint(len(points))]]]
        parts.append(nearest(X[points], seeds(X[points], size, rng, first=first)))
    centres = [
        (r.T @ X[points]) / np.maximum(r.sum(axis=0), 1)[:, None]
        for r, points in zip(parts, own, strict=True)
    ]
    responsibilities = nearest(X, np.concatenate(centres))
    for c, (points, r) in enumerate(zip(own, parts, strict=True)):
        responsibilities[points] = 0
        responsibilities[points, ends[c] : ends[c + 1]] = r
    return responsibilities
