"""Learn a Mahalanobis metric by relevant component analysis (RCA) from must-links or chunklets.

The points of a chunklet share a class, so their scatter about their mean has nothing to do with
differences between classes. RCA measures this scatter, and removes it by whitening
[barhillel2005]. Chapter 12 explains and applies it.

==========  ===============================================================================
N, D        number of points in chunklets of two or more points, and number of features
K           number of columns of the result
n, n_j      number of chunklets, and of points in each; Σ_j (n_j - 1) degrees of freedom
Ĉ, S_t      within-chunklet covariance; total covariance of all data
A, W, B     (K, D) matrix of a linear map y = A x; a map W that whitens Ĉ; a metric B = AᵗA
R           rank of Ĉ: the number of directions in which chunklets vary
α           share of R to which PCA reduces the data if there are too few must-links
==========  ===============================================================================

If Ĉ is singular, it needs special treatment. Ranks are determined from correlations (each column
is first divided by its standard deviation), so they do not depend on units. Variance that rounding
errors could have caused is treated as zero. There are three possible causes.

1. Some columns are constant or depend on others, so the data span fewer than D dimensions. The map
   is learnt in this span and has one column per dimension of it; no information is lost.
2. There are too few must-links: Σ_j (n_j - 1) is smaller than the dimension of the span. The data
   are first projected onto their α R leading principal axes, as in Algorithm 2 (unless chunklets do
   not vary there).
3. The data vary in a direction in which chunklets do not. The metric would stretch this direction
   infinitely, so it is left out: the metric is a pseudo-inverse of Ĉ, computed in units of each
   column's standard deviation.

A warning reports each of these cases, with the ranks. ``shrinkage`` is another remedy for cases 2
and 3.
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
        K, the number of columns of the result: the best directions by Fisher's discriminant with
        chunklets as classes. None: all directions in which both data and chunklets vary.
    unbiased : bool, default=False
        True: divide the scatter by N - n instead of N. This scales the map by a constant factor,
        which is sqrt(½) if all chunklets are pairs.
    alpha : float, default=0.5
        α in (0, 1]. If there are too few must-links to measure every direction, PCA first reduces
        the data to α R dimensions, where R is the rank of Ĉ (or to ``n_components`` if this is
        more).
    shrinkage : float, default=0
        s in [0, 1]: replace Ĉ by (1 - s) Ĉ + s S_t. This matrix is invertible wherever the data
        vary, so PCA is not needed, and the transformed data have a standard deviation of at most
        1 / sqrt(s) in any direction.
    tol : float, default=1e-10
        Eigenvalues of a correlation matrix below this share of the largest one are treated as zero.

    Attributes
    ----------
    components_ : (K, D) array
        W. If ``n_components`` is None and Ĉ has rank D, it is the symmetric inverse square root of
        Ĉ. Otherwise its rows are sorted by decreasing ratio of total variance to variance within
        chunklets.
    inverse_components_ : (D, K) array
        Matrix of the linear map of ``inverse_transform``.
    within_covariance_ : (D, D) array
        Ĉ, without shrinkage.
    mean_ : (D,) array
        Mean of the data, which ``inverse_transform`` uses if the map loses dimensions.
    n_chunklets_ : int
        n, the number of chunklets of two or more points.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    within_chunklet_covariance, whitening, cfld : the single steps of the algorithm.
    rca_start : Initialise a mixture in the space of RCA, and fit it in the original space.

    Notes
    -----
    This is [barhillel2005, Algs. 1 and 2]. If Ĉ is singular because columns are constant or depend
    on others, the map is learnt in the span of the data. If there are too few must-links, PCA
    reduces the data first. Directions in which the data vary but chunklets do not are left out. A
    warning reports each of these cases. If no chunklet has two points, ``fit`` raises an error.

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
        """Learn the metric from chunklets and must-links.

        Parameters
        ----------
        X : (N, D) array-like
            The points, including those without relations, which the total covariance uses.
        y : (N,) int array-like, default=None
            The chunklet of each point, -1 for none; these may be class labels. A pipeline passes
            its ``y`` to this argument even if it is only meant for the score.
        must_link : (P, 2) int array-like, default=None
            Pairs of points that share a class. The chunklets are the transitive closure of these
            pairs and of ``y``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If no two points share a chunklet, if the points of every chunklet are equal, if the
            rank of Ĉ is below ``n_components``, or if a relation or the data are invalid.

        Warns
        -----
        UserWarning
            If a rank is deficient; the message gives the ranks and what was done. If ``y`` and
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
        result = self._compute_map(X, within, chunklets.freedom, noise)
        self._report_lost_ranks(result.ranks)
        self.within_covariance_ = within
        self.n_chunklets_ = len(chunklets.sizes)
        return self._store_map(result.components, result.inverse, X.mean(axis=0))

    def _compute_map(
        self, X: FloatArray, within: FloatArray, freedom: float, noise: FloatArray
    ) -> _Result:
        """Run Algorithm 1 of RCA if Ĉ has full rank, and Algorithm 2 otherwise."""
        total = None
        if self.shrinkage > 0:
            total = covariance_of_all(X)
            within = (1 - self.shrinkage) * within + self.shrinkage * total
            freedom = np.inf
        if self.n_components is None:
            W = whitening(within, tol=self.tol, noise=noise)
            if len(W) == len(within):
                return _Result(W, within @ W.T, _Ranks(*[len(W)] * 6))
        total = covariance_of_all(X) if total is None else total
        return self._compute_reduced_map(within, total, freedom, noise)

    def _compute_reduced_map(
        self, within: FloatArray, total: FloatArray, freedom: float, noise: FloatArray
    ) -> _Result:
        """Reduce the dimensions by Algorithm 2 of RCA, and whiten the remaining ones."""
        D, axes, min_rank = len(within), None, self.n_components or 1
        rank = len(correlation_spectrum(within, self.tol, noise).values)
        span = D if rank == D else len(correlation_spectrum(total, self.tol, noise).values)
        if freedom < span:
            # [barhillel2005, Alg. 2, steps 1 and 2], where R is the actual rank, not its bound.
            axes = principal_axes(total, int(np.clip(self.alpha * rank, min_rank, rank)))
            # After the rotation, a direction without scatter contains only rounding errors.
            rounding = D * np.finfo(float).eps * np.trace(within)
            rotated_noise = np.sqrt(np.square(axes) @ np.square(noise) + rounding)
            A, ratios = cfld(
                axes @ within @ axes.T, axes @ total @ axes.T, tol=self.tol, noise=rotated_noise
            )
            if len(A) < min_rank:
                # Chunklets do not vary along enough of the principal axes, so do without PCA.
                axes = None
        if axes is None:
            A, ratios = cfld(within, total, tol=self.tol, noise=noise)
        ranks = _Ranks(D, span, freedom, rank, D if axes is None else len(axes), len(A))
        A, ratios = A[: self.n_components], ratios[: self.n_components]
        A = A if axes is None else A @ axes
        # Linear regression of the data on A x inverts the map, exactly if no rank is lost.
        return _Result(A, total @ A.T / ratios, ranks)

    def _report_lost_ranks(self, ranks: _Ranks) -> None:
        """Warn about lost directions; raise an error if fewer than ``n_components`` are left."""
        losses = " ".join(_explain_losses(ranks))
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
    """Number of dimensions at each stage from the data to the result."""

    features: int
    """D, the number of columns of the data."""
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


class _Result(NamedTuple):
    """Linear map that RCA has learnt, with its inverse and the ranks."""

    components: FloatArray
    """(K, D) W, the matrix of the map."""
    inverse: FloatArray
    """(D, K) matrix of the inverse map."""
    ranks: _Ranks
    """Number of dimensions at each stage."""


def _explain_losses(ranks: _Ranks) -> list[str]:
    """Return a message for each stage at which dimensions are lost."""
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
