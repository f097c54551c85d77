"""Relevant component analysis: a Mahalanobis metric learnt from points that belong together.

Points of one chunklet share a class, whichever it is, so their scatter about their mean has nothing
to do with classes. RCA measures this scatter and removes it by whitening [barhillel2005]. Chapter
12 explains and applies it.

==========  ===============================================================================
N, D        points in chunklets of two or more, and their dimensions; K columns of the result
n, n_j      number of chunklets and their sizes; Σ_j (n_j - 1) degrees of freedom
Ĉ, S_t      within-chunklet covariance; total covariance of all the data
A, W, B     rows of a linear map y = A x; one that whitens Ĉ; a metric B = AᵗA
R           rank of Ĉ: the number of directions in which chunklets vary
α           share of R to which PCA reduces the data if must-links do not suffice
==========  ===============================================================================

Ĉ may be singular, and then needs special treatment. Ranks are determined from correlations (each
column is first divided by its deviation), so they do not depend on units. Variance that rounding of
the data could have caused counts as none. There are three causes.

1. Columns that are constant or depend on others: the data span less than D. The map is learnt in
   the span, with as many columns; no training point loses anything.
2. Too few must-links, Σ_j (n_j - 1) below the dimensions of the data: the data are first projected
   onto their α R leading principal axes, as in Algorithm 2 (unless chunklets do not vary there).
3. A direction along which the data vary and chunklets do not would be stretched infinitely. It is
   left out: the metric is that of a pseudo-inverse, in units of each column's deviation.

A warning reports each and names the ranks. ``shrinkage`` is another remedy for 2 and 3.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from cgmm.metric_learning.chunklets import (
    covariance_of_all,
    pooled_covariance,
    require_scatter,
    rounding_noise,
)
from cgmm.metric_learning.criteria import cfld, principal_axes
from cgmm.metric_learning.linear_map import ChunkletMap
from cgmm.metric_learning.whiten import TOL, correlation_spectrum, whitening
from cgmm.numerics import FloatArray, warn_caller


class RCA(ChunkletMap):
    """Learn a metric by relevant component analysis, which whitens the scatter within chunklets.

    Parameters
    ----------
    n_components : int, default=None
        K, columns of the result, found by Fisher's discriminant from chunklets. None: the number of
        directions in which both data and chunklets vary.
    unbiased : bool, default=False
        Divide the scatter by N - n instead of N; the map is then smaller by a constant, which is
        sqrt(½) for pairs.
    alpha : float, default=0.5
        α in (0, 1]. If there are too few must-links to measure every direction, PCA first reduces
        the data to α R dimensions, where R is the rank of Ĉ (or to ``n_components`` if it is more).
    shrinkage : float, default=0
        s in [0, 1]: (1 - s) Ĉ + s S_t replaces Ĉ. It is invertible wherever the data vary, so PCA
        is not needed, and no direction is stretched beyond 1 / sqrt(s) of its deviation in the
        data.
    tol : float, default=1e-10
        Eigenvalues of a correlation matrix below this share of the largest count as zero.

    Attributes
    ----------
    components_ : (K, D) array
        W. Symmetric, the inverse square root of Ĉ, if ``n_components`` is None and Ĉ has rank D.
        Otherwise rows by descending ratio of total variance to variance within chunklets.
    inverse_components_ : (D, K) array
        The matrix by which ``inverse_transform`` multiplies.
    within_covariance_ : (D, D) array
        Ĉ, without shrinkage.
    mean_ : (D,) array
        Mean of the data; only the ``inverse_transform`` of a map that loses dimensions needs it.
    n_chunklets_ : int
        n, chunklets of two points or more.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    within_chunklet_covariance, whitening, cfld : the steps one by one.
    rca_start : RCA as the start of a mixture that is fitted in the original space.

    Notes
    -----
    [barhillel2005, Algs. 1 and 2]. The top of this module explains how deficient ranks are treated.
    Without any chunklet of two points there is nothing to learn from, and ``fit`` raises an error.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [4.0, 1.0], [0.0, 5.0], [-4.0, 6.0]])
    >>> rca = RCA().fit(X, must_link=[[0, 1], [2, 3]])
    >>> rca.components_
    array([[0.5, 0. ],
           [0. , 2. ]])
    >>> rca.transform(X)[:2]
    array([[0., 0.],
           [2., 2.]])
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "unbiased": ["boolean"],
        "alpha": [Interval(Real, 0, 1, closed="right")],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
        "tol": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        unbiased: bool = False,
        alpha: float = 0.5,
        shrinkage: float = 0.0,
        tol: float = TOL,
    ):
        self.n_components = n_components
        self.unbiased = unbiased
        self.alpha = alpha
        self.shrinkage = shrinkage
        self.tol = tol

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, *, must_link: ArrayLike | None = None
    ) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : (N, D) array-like
            The points, including those without relations: the total covariance needs them.
        y : (N,) int array-like, default=None
            The chunklet of each point, -1 for none. Class labels serve, too. A pipeline passes its
            ``y`` to this argument even if it is only meant for the score.
        must_link : (P, 2) int array-like, default=None
            Pairs of points that share a class, closed transitively together with the chunklets.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If no two points share a chunklet, if points of every chunklet coincide, if Ĉ has not
            the rank for ``n_components``, or if a relation or the data cannot be used.

        Warns
        -----
        UserWarning
            If ranks are deficient; the message names them and the remedy taken. If ``y`` and
            ``must_link`` are both given.
        """
        self._validate_params()
        X, chunklets = self._validate_chunklets(X, y, must_link)
        if (self.n_components or 1) > X.shape[1]:
            raise ValueError(
                f"n_components={self.n_components}, but the data have n_features = {X.shape[1]}; "
                "ask for at most as many."
            )
        within, noise = pooled_covariance(X, chunklets, self.unbiased), rounding_noise(X)
        require_scatter(within, noise)
        learnt = self._learn(X, within, chunklets.freedom, noise)
        self._report(learnt.ranks)
        self.within_covariance_ = within
        self.n_chunklets_ = len(chunklets.sizes)
        return self._store_map(learnt.components, learnt.inverse, X.mean(axis=0))

    def _learn(
        self, X: FloatArray, within: FloatArray, freedom: float, noise: FloatArray
    ) -> _Learnt:
        """Run Algorithm 1, which needs no S_t, if the rank is full, and Algorithm 2 otherwise."""
        total = None
        if self.shrinkage > 0:
            total = covariance_of_all(X)
            within = (1 - self.shrinkage) * within + self.shrinkage * total
            freedom = np.inf
        if self.n_components is None:
            W = whitening(within, tol=self.tol, noise=noise)
            if len(W) == len(within):
                return _Learnt(W, within @ W.T, _Ranks(*[len(W)] * 6))
        total = covariance_of_all(X) if total is None else total
        return self._reduce(within, total, freedom, noise)

    def _reduce(
        self, within: FloatArray, total: FloatArray, freedom: float, noise: FloatArray
    ) -> _Learnt:
        """Run Algorithm 2, given both covariances, and Algorithm 1 in the space that it leaves."""
        D, axes, wanted = len(within), None, self.n_components or 1
        rank = len(correlation_spectrum(within, self.tol, noise).values)
        span = D if rank == D else len(correlation_spectrum(total, self.tol, noise).values)
        if freedom < span:
            # [barhillel2005, Alg. 2, steps 1 and 2], where R is the actual rank, not its bound.
            axes = principal_axes(total, int(np.clip(self.alpha * rank, wanted, rank)))
            # After the rotation, a direction without scatter contains only rounding errors.
            rounding = D * np.finfo(float).eps * np.trace(within)
            turned_noise = np.sqrt(np.square(axes) @ np.square(noise) + rounding)
            A, ratios = cfld(
                axes @ within @ axes.T, axes @ total @ axes.T, tol=self.tol, noise=turned_noise
            )
            if len(A) < wanted:
                # The data vary most where chunklets do not, so PCA would drop too many directions.
                axes = None
        if axes is None:
            A, ratios = cfld(within, total, tol=self.tol, noise=noise)
        ranks = _Ranks(D, span, freedom, rank, D if axes is None else len(axes), len(A))
        A, ratios = A[: self.n_components], ratios[: self.n_components]
        A = A if axes is None else A @ axes
        # Regression of the data on their image inverts the map; it is exact if no rank is lost.
        return _Learnt(A, total @ A.T / ratios, ranks)

    def _report(self, ranks: _Ranks) -> None:
        """Warn about lost directions, or raise an error if too few are left."""
        losses = " ".join(_explain(ranks))
        if ranks.kept < (self.n_components or 1):
            raise ValueError(
                f"n_components={self.n_components}, but only {ranks.kept} directions can be "
                f"whitened. {losses} Lower n_components, or mend the cause."
            )
        if losses:
            K = self.n_components or ranks.kept
            warn_caller(f"{losses} transform gives {K} columns.", UserWarning)


# ------------------------------------------------------------ deficient ranks


class _Ranks(NamedTuple):
    """Numbers of dimensions at each stage from the data to the result."""

    features: int
    """D, number of columns of the data."""
    data: int
    """Rank of S_t."""
    freedom: float
    """Degrees of freedom, Σ_j (n_j - 1)."""
    chunklets: int
    """R, the rank of Ĉ."""
    axes: int
    """Number of principal axes that PCA kept; D without PCA."""
    kept: int
    """Number of directions that can be whitened."""


class _Learnt(NamedTuple):
    """The results of the two algorithms of RCA."""

    components: FloatArray
    """(K, D) W."""
    inverse: FloatArray
    """(D, K) matrix of the inverse map."""
    ranks: _Ranks


def _explain(ranks: _Ranks) -> list[str]:
    """Return a sentence for each loss of rank."""
    losses = []
    if ranks.data < ranks.features:
        losses.append(
            f"The data span {ranks.data} of {ranks.features} dimensions: columns are constant or "
            "depend on others."
        )
    if ranks.axes < ranks.features:
        losses.append(
            f"The chunklets have Σ(n_j - 1) = {ranks.freedom:.0f} degrees of freedom and vary in "
            f"{ranks.chunklets} of the {ranks.data} dimensions of the data, too few to measure "
            f"them all: PCA has reduced the data to {ranks.axes} dimensions first (alpha). Give "
            "more must-links, or shrinkage > 0."
        )
    reached = min(ranks.axes, ranks.data)
    if ranks.kept < reached:
        losses.append(
            f"The data vary and the chunklets do not in {reached - ranks.kept} of {reached} "
            "dimensions: the metric would stretch these infinitely, so they are left out. If they "
            "matter, give shrinkage > 0."
        )
    return losses
