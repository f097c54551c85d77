"""Relevant component analysis: a Mahalanobis metric learnt from points that belong together.

Points of one chunklet share a class, whatever it is, so how they scatter about their mean is
variability that tells nothing. RCA measures it and whitens it away [barhillel2005].

==========  ===============================================================================
N, D        points in chunklets of two or more, and their dimensions; K columns of the result
n, n_j      number of chunklets and their sizes; Σ_j (n_j - 1) degrees of freedom
Ĉ, S_t      within-chunklet covariance; total covariance of all the data
A, W, B     rows of a linear map y = A x; one that whitens Ĉ; a metric B = AᵗA
R           rank of Ĉ: in how many directions chunklets vary
η           step of the online algorithm
==========  ===============================================================================

What is done about rank, on which 1 / Ĉ depends. Ranks are judged on correlations (each column is
first divided by its deviation), so they do not depend on units. Variance that rounding of the data
could have made counts as none.

1. Columns that are constant or depend on others: the data span less than D. The map is learnt in
   the span, with as many columns; no training point loses anything.
2. Too few must-links, Σ_j (n_j - 1) below the dimensions of the data: the data are first projected
   on their α R leading principal axes, as Algorithm 2 has it (unless chunklets do not vary there).
3. A direction along which the data vary and chunklets do not would be stretched infinitely. It is
   left out: the metric is that of a pseudo-inverse, in units of each column's deviation.

Each is told by a warning that names the ranks. ``shrinkage`` is another answer to 2 and 3.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.initialise import from_chunklets
from cgmm.numerics import FloatArray, IntArray, blocks
from cgmm.side_information import SideInformation

__all__ = [
    "RCA",
    "SCHEDULES",
    "Discriminant",
    "OnlineRCA",
    "cfld",
    "flow_step",
    "information",
    "likelihood_criterion",
    "online_step",
    "overshoots",
    "principal_axes",
    "rca_start",
    "total_covariance",
    "variance_of_covariance",
    "variance_ratio",
    "weight_ratio",
    "whitening",
    "within_chunklet_covariance",
    "within_distance",
]

# Smallest eigenvalue of a correlation matrix, relative to the largest, that counts as variance.
TOL = 1e-10


# ---------------------------------------------------------------------------- covariances


def within_chunklet_covariance(
    X: FloatArray, chunklet_of: IntArray, *, unbiased: bool = False
) -> FloatArray:
    """Covariance of points about the means of their chunklets.

    Parameters
    ----------
    X : (N, D) array
        The points.
    chunklet_of : (N,) int array
        The chunklet of each point, -1 for none. A chunklet of one point says nothing about
        scatter and does not count.
    unbiased : bool, default=False
        Divide by N - n instead of N, the number of points in n chunklets.

    Returns
    -------
    (D, D) array
        Ĉ, in squared units of the data.

    Raises
    ------
    ValueError
        If no chunklet has two points, an entry of ``chunklet_of`` is not a chunklet, or squares of
        the data overflow or vanish.

    Notes
    -----
    With chunklets of one size k the biased Ĉ is (k - 1) / k of the unbiased one: half of it for
    pairs, however many there are. Only the scale of the metric feels it. Chunklets of several
    sizes are pooled by degrees of freedom, which of all unbiased means has the least variance and
    is the printed one where all sizes are k. Takes O(N + D²) memory beyond the data.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [5.0, 1.0], [5.0, 3.0], [9.0, 9.0]])
    >>> within_chunklet_covariance(X, [0, 0, 1, 1, -1])
    array([[0.5, 0. ],
           [0. , 0.5]])
    >>> within_chunklet_covariance(X, [0, 0, 1, 1, -1], unbiased=True)
    array([[1., 0.],
           [0., 1.]])
    """
    X = np.asarray(X, dtype=np.float64)
    _require_squares(X)
    groups = _grouped(_chunklets(chunklet_of, len(X)))
    if len(groups.sizes) == 0:
        raise ValueError(
            "no two points share a chunklet: there is no scatter within chunklets to measure. Give "
            "chunklet_of with at least one chunklet of two points."
        )
    return _within(X, groups, unbiased)


def total_covariance(X: FloatArray) -> FloatArray:
    """Covariance of all points about their common mean, divided by N.

    Parameters
    ----------
    X : (N, D) array
        The points.

    Returns
    -------
    (D, D) array
        S_t of [barhillel2005, eq. 14].

    Raises
    ------
    ValueError
        If squares of the data overflow or vanish.

    Examples
    --------
    >>> total_covariance(np.array([[0.0, 1.0], [4.0, 1.0]]))
    array([[4., 0.],
           [0., 0.]])
    """
    X = np.asarray(X, dtype=np.float64)
    _require_squares(X)
    return _total(X)


class _Groups(NamedTuple):
    """Points in chunklets of two or more, chunklet after chunklet."""

    order: IntArray  # (N,) their rows
    sizes: IntArray  # (n,) n_j

    @property
    def starts(self) -> IntArray:
        """(n,) where each chunklet starts in ``order``."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def freedom(self) -> int:
        """Σ_j (n_j - 1)."""
        return int(self.sizes.sum()) - len(self.sizes)


def _within(X: FloatArray, groups: _Groups, unbiased: bool = False) -> FloatArray:
    # [barhillel2005, eq. 1], N being the number of points in chunklets as in eq. 11;
    # [barhillel2005, sect. 5] for the unbiased one
    return _scatter(X, groups) / (groups.freedom if unbiased else len(groups.order))


def _total(X: FloatArray) -> FloatArray:
    return _scatter(X, _Groups(np.arange(len(X)), np.array([len(X)]))) / len(X)


def _chunklets(chunklet_of: ArrayLike, n_samples: int) -> IntArray:
    """(N,) integers from -1, or the first entry that is none."""
    array = np.asarray(chunklet_of)
    if array.shape != (n_samples,):
        raise ValueError(
            f"y has shape {array.shape}; it must be ({n_samples},), the chunklet of each sample, "
            "-1 for none."
        )
    try:
        array = array if array.dtype.kind in "iu" else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Unknown label type of y, {array.dtype}: chunklets are integers from 0, -1 for none. "
            "Encode names, by numpy.unique(y, return_inverse=True)[1] for instance."
        ) from error
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.intp)
    wrong = np.flatnonzero((whole != array) | (whole < -1))
    if len(wrong):
        raise ValueError(
            f"y[{wrong[0]}] is {array[wrong[0]]}; a chunklet must be an integer from 0, or -1 for "
            "none."
        )
    return whole


def _grouped(chunklet_of: IntArray) -> _Groups:
    members = np.flatnonzero(chunklet_of >= 0)
    order = members[np.argsort(chunklet_of[members], kind="stable")]
    starts = np.flatnonzero(np.diff(chunklet_of[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    return _Groups(order[np.repeat(sizes > 1, sizes)], sizes[sizes > 1])


def _scatter(X: FloatArray, groups: _Groups) -> FloatArray:
    """Σ_j Σ_i (x_ji - m_j)(x_ji - m_j)ᵗ, over blocks that may cut chunklets anywhere."""
    order, starts = groups.order, groups.starts
    scatter = np.zeros((X.shape[1], X.shape[1]))
    seen, mean = 0, np.zeros(X.shape[1])
    for block in blocks(len(order), 2 * X.shape[1]):
        first, last = np.searchsorted(starts, [block.start, block.stop - 1], side="right")
        begins = np.maximum(starts[first - 1 : last] - block.start, 0)
        counts = np.diff(begins, append=block.stop - block.start)
        rows, means = _centred(X[order[block]], begins, counts)
        scatter += rows.T @ rows
        if starts[first - 1] == block.start:
            seen = 0
        # Two parts of a chunklet scatter about their common mean as well.
        apart = means[0] - mean
        scatter += np.outer(apart, apart) * (seen * counts[0] / (seen + counts[0]))
        mean = means[-1] + (seen * (mean - means[-1]) / (seen + counts[0])) * (len(begins) == 1)
        seen = counts[-1] + seen * (len(begins) == 1)
    return scatter


def _centred(rows: FloatArray, begins: IntArray, counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Rows less the mean of their group, and these means."""
    # By the first row of each group first: equal rows then leave exact zeros, and no offset of the
    # data costs digits.
    anchors = rows[begins]
    rows -= np.repeat(anchors, counts, axis=0)
    means = np.add.reduceat(rows, begins, axis=0) / counts[:, None]
    rows -= np.repeat(means, counts, axis=0)
    return rows, anchors + means


def _require_squares(X: FloatArray) -> None:
    """Refuse data whose squares overflow, or vanish."""
    with np.errstate(over="ignore"):
        low, high = X.min(axis=0), X.max(axis=0)
        ranges, sizes = high - low, np.maximum(high, -low)
        reach = (np.square(ranges).sum() + sizes.max()) * len(X)
    if not np.isfinite(reach):
        worst = np.maximum(ranges, sizes).argmax()
        raise ValueError(
            f"column {worst} spans {low[worst]:.3g} to {high[worst]:.3g}: its squares overflow. "
            "Divide the data by a constant."
        )
    small = np.flatnonzero((ranges > 0) & (ranges < 1e-150))
    if len(small):
        raise ValueError(
            f"column {small[0]} spans {ranges[small[0]]:.3g}: its squares vanish. Multiply the "
            "data by a constant, or drop the column."
        )


# ---------------------------------------------------------------------------- linear maps


class _Spectrum(NamedTuple):
    """Directions in which there is variance, in units of each column's deviation."""

    scale: FloatArray  # (D,)
    values: FloatArray  # (R,) ascending
    vectors: FloatArray  # (D, R)


def _spectrum(covariance: FloatArray, tol: float, noise: FloatArray | float) -> _Spectrum:
    """Eigenvectors of the correlation matrix that stand out of rounding."""
    scale = np.sqrt(covariance.diagonal())
    varies = scale > noise
    scale = np.where(varies, scale, 1)
    values, vectors = eigh(covariance / scale / scale[:, None] * np.outer(varies, varies))
    vectors[~varies] = 0  # to the last digit
    # The variance that an error of ``noise`` in each column makes along each eigenvector
    floor = tol * values[-1] + np.square(noise / scale) @ np.square(vectors)
    kept = values > np.maximum(floor, 0)
    return _Spectrum(scale, values[kept], vectors[:, kept])


def whitening(
    covariance: FloatArray, *, tol: float = TOL, noise: FloatArray | float = 0.0
) -> FloatArray:
    """A linear map W with W C Wᵗ = I.

    Parameters
    ----------
    covariance : (D, D) array
        C, symmetric, positive semi-definite.
    tol : float, default=1e-10
        Eigenvalues of the correlation matrix below this share of the largest count as zero.
    noise : float or (D,) array, default=0
        Standard deviation of rounding in each column: what no direction's variance may owe to it.

    Returns
    -------
    (R, D) array
        Of rank R: if that is D, the symmetric inverse square root; otherwise R rows that span the
        directions with variance, whose metric WᵗW is a pseudo-inverse of C in units of each
        column's deviation. Where columns differ so much in scale (10⁸ and more) that the symmetric
        root cannot be held in floating point, the rows are a rotation of it.

    Examples
    --------
    >>> whitening(np.diag([4.0, 0.25]))
    array([[0.5, 0. ],
           [0. , 2. ]])
    >>> whitening(np.diag([4.0, 0.0]))
    array([[0.5, 0. ]])
    """
    # [barhillel2005, Alg. 1, step 3]
    root = _easy_root(covariance, tol, noise)
    if root is not None:
        return root
    scale, values, vectors = _spectrum(covariance, tol, noise)
    rows = (vectors / np.sqrt(values)).T / scale
    if len(rows) < len(covariance):
        return _signed(rows[::-1], scale)
    # rows = U S Vᵗ and rowsᵗ rows = C⁻¹, so V S Vᵗ is its root; no digit of C is lost to squaring.
    _, lengths, right = np.linalg.svd(rows)
    root = (right.T * lengths) @ right
    correlation = covariance / scale / scale[:, None]

    def error(W: FloatArray) -> float:
        return abs((W * scale) @ correlation @ (W * scale).T - np.eye(len(W))).max()

    return root if error(root) < 1e-8 + 10 * error(rows) else vectors @ rows


def _easy_root(covariance: FloatArray, tol: float, noise: FloatArray | float) -> FloatArray | None:
    """The inverse root from one decomposition, where the condition number permits; or None."""
    values, vectors = np.linalg.eigh(covariance)
    variances = covariance.diagonal()
    if not (values[0] > 1e-6 * values[-1] and variances.min() > 0):
        return None
    # That of the correlation matrix is at most D times as large (van der Sluis, 1969).
    most_noise = np.max(noise**2 / variances)
    if values[0] < (tol + most_noise) * len(values) * values[-1]:
        return None
    return (vectors / np.sqrt(values)) @ vectors.T


def _signed(rows: FloatArray, scale: FloatArray) -> FloatArray:
    """Each row with the sign that makes its heaviest entry positive."""
    heaviest = abs(rows * scale).argmax(axis=1)
    signs = np.sign(rows[np.arange(len(rows)), heaviest])
    return rows * signs[:, None] + 0.0  # no -0.0


class Discriminant(NamedTuple):
    """Fisher's linear discriminant from chunklets."""

    rows: FloatArray
    """(K, D) A: A Ĉ Aᵗ = I and A S_t Aᵗ is diagonal."""
    ratios: FloatArray
    """(K,) the diagonal of A S_t Aᵗ, descending: total variance per variance within chunklets."""


def cfld(
    within: FloatArray,
    total: FloatArray,
    n_components: int | None = None,
    *,
    tol: float = TOL,
    noise: FloatArray | float = 0.0,
) -> Discriminant:
    """Fisher's linear discriminant with chunklets for classes, whitened.

    Parameters
    ----------
    within, total : (D, D) array
        Ĉ and S_t.
    n_components : int, default=None
        K; None and more than the rank of Ĉ give that rank.
    tol, noise
        As in :func:`whitening`.

    Returns
    -------
    Discriminant
        The leading K solutions of S_t a = λ Ĉ a, scaled to unit variance within chunklets, and λ.

    Notes
    -----
    [barhillel2005, Alg. 2, step 3 and eq. 14], with the determinants that eq. 14 lacks. Solved by
    whitening Ĉ first, so that a direction in which chunklets do not vary is no division by zero.

    Examples
    --------
    >>> A, ratios = cfld(np.diag([1.0, 4.0]), np.diag([1.0, 36.0]))
    >>> A, ratios
    (array([[0. , 0.5],
           [1. , 0. ]]), array([9., 1.]))
    """
    # [barhillel2005, eq. 14]
    scale, values, vectors = _spectrum(within, tol, noise)
    rows = (vectors / np.sqrt(values)).T / scale
    ratios, turn = np.linalg.eigh(rows @ total @ rows.T)
    K = len(rows) if n_components is None else min(n_components, len(rows))
    return Discriminant(_signed(turn.T[::-1][:K] @ rows, scale), ratios[::-1][:K])


def principal_axes(covariance: FloatArray, n_components: int) -> FloatArray:
    """Directions of largest variance.

    Parameters
    ----------
    covariance : (D, D) array
        As a rule S_t; the directions depend on the units of its columns.
    n_components : int
        How many.

    Returns
    -------
    (n_components, D) array
        Orthonormal rows, largest variance first.

    Examples
    --------
    >>> principal_axes(np.diag([1.0, 9.0]), 1)
    array([[0., 1.]])
    """
    rows = np.linalg.eigh(covariance)[1].T[::-1][:n_components]
    return _signed(rows, np.ones(len(covariance)))


# ---------------------------------------------------------------------------- the batch algorithm


class _Ranks(NamedTuple):
    """Dimensions met on the way from the data to the result."""

    features: int  # D
    data: int  # rank of S_t
    freedom: float  # Σ_j (n_j - 1)
    chunklets: int  # R
    axes: int  # what PCA left, D if it was not used
    kept: int  # directions left to whiten


class _Learnt(NamedTuple):
    components: FloatArray  # (K, D)
    inverse: FloatArray  # (D, K)
    ranks: _Ranks


def _learn(
    within: FloatArray,
    total: FloatArray,
    freedom: float,
    noise: FloatArray,
    n_components: int | None,
    alpha: float,
    tol: float,
) -> _Learnt:
    """Algorithm 2 from the two covariances on, and Algorithm 1 in what it leaves."""
    D, axes = len(within), None
    rank = len(_spectrum(within, tol, noise).values)
    span = D if rank == D else len(_spectrum(total, tol, noise).values)
    C, S, seen = within, total, noise
    if freedom < span:
        # [barhillel2005, Alg. 2, steps 1 and 2], R being what the rank is, not its bound
        axes = principal_axes(total, int(np.clip(alpha * rank, n_components or 1, rank)))
        seen = np.sqrt(np.square(axes) @ np.square(noise))
        C, S = axes @ within @ axes.T, axes @ total @ axes.T
    A, ratios = cfld(C, S, tol=tol, noise=seen)
    if axes is not None and len(A) < (n_components or 1):
        # The largest variance lies where chunklets have none, and PCA leaves too little of theirs.
        return _learn(within, total, np.inf, noise, n_components, alpha, tol)
    ranks = _Ranks(D, span, freedom, rank, len(C), len(A))
    A, ratios = A[:n_components], ratios[:n_components]
    A = A if axes is None else A @ axes
    # Regression of the data on their image: exact on the span of the data where the rank allows.
    return _Learnt(A, total @ A.T / ratios, ranks)


def _explain(ranks: _Ranks) -> list[str]:
    """What the user should know about ranks: one sentence a loss."""
    said = []
    if ranks.data < ranks.features:
        said.append(
            f"The data span {ranks.data} of {ranks.features} dimensions: columns are constant or "
            "depend on others."
        )
    if ranks.axes < ranks.features:
        said.append(
            f"The chunklets have Σ(n_j - 1) = {ranks.freedom:.0f} degrees of freedom and vary in "
            f"{ranks.chunklets} of the {ranks.data} dimensions of the data, too few to measure "
            f"them all: PCA has reduced the data to {ranks.axes} dimensions first (alpha). Give "
            "more must-links, or shrinkage > 0."
        )
    lost = min(ranks.axes, ranks.data) - ranks.kept
    if lost > 0:
        said.append(
            f"The data vary and the chunklets do not in {lost} of "
            f"{min(ranks.axes, ranks.data)} dimensions: the metric would stretch these infinitely, "
            "so they are left out. If they matter, give shrinkage > 0."
        )
    return said


# ---------------------------------------------------------------------------- optimality


def information(rows: FloatArray, within: FloatArray, total: FloatArray | None = None) -> float:
    """The information criterion of a linear map, scaled to unit scatter within chunklets.

    Parameters
    ----------
    rows : (K, D) array
        A, of rank K; its scale does not matter.
    within : (D, D) array
        Ĉ.
    total : (D, D) array, default=None
        Covariance of the data; the criterion is then that of eq. 5, for any K. Without it K must
        be D.

    Returns
    -------
    float
        ``log |det A|``, or log det(A S_t Aᵗ), of A scaled to tr(A Ĉ Aᵗ) = 1; in nats. Up to a
        constant it is the entropy of A x (of a Gaussian x where ``total`` is given, and then twice
        that).

    Raises
    ------
    ValueError
        If ``total`` is missing and A is not square.

    Notes
    -----
    [barhillel2005, eqs. 3 to 5], with B = AᵗA in eq. 4.

    Examples
    --------
    >>> C = np.diag([1.0, 4.0])
    >>> information(whitening(C), C) > information(np.eye(2), C)
    True
    """
    A = np.asarray(rows, dtype=float)
    if total is None and A.shape[0] != A.shape[1]:
        raise ValueError(
            f"a map of shape {A.shape} loses dimensions, and its criterion depends on the data: "
            "give their covariance as total."
        )
    # [barhillel2005, eqs. 3 and 4]: the constraint is met with equality
    A = A / np.sqrt(np.einsum("kd,de,ke->", A, within, A))
    if total is None:
        return float(np.linalg.slogdet(A).logabsdet)
    # [barhillel2005, eq. 5]
    return float(np.linalg.slogdet(A @ total @ A.T).logabsdet)


def within_distance(metric: FloatArray, within: FloatArray) -> float:
    """Mean squared distance of points to the mean of their chunklet, at unit volume.

    Parameters
    ----------
    metric : (D, D) array
        B, symmetric, positive definite; its scale does not matter.
    within : (D, D) array
        Ĉ.

    Returns
    -------
    float
        tr(B Ĉ) of B scaled to det B = 1; at least D det(Ĉ)^(1/D), which B = Ĉ⁻¹ attains.

    Notes
    -----
    [barhillel2005, eqs. 6 and 7]. The exponent of det Ĉ in the solution is 1/D.

    Examples
    --------
    >>> C = np.diag([1.0, 4.0])
    >>> within_distance(np.eye(2), C), round(within_distance(np.linalg.inv(C), C), 12)
    (5.0, 4.0)
    """
    volume = np.linalg.slogdet(metric).logabsdet
    # [barhillel2005, eq. 6]
    return float(np.sum(metric * within) * np.exp(-volume / len(within)))


def likelihood_criterion(metric: FloatArray, within: FloatArray, n_points: int) -> float:
    """What maximum likelihood minimises when all classes are Gaussian with one covariance.

    Parameters
    ----------
    metric : (D, D) array
        B = Σ⁻¹.
    within : (D, D) array
        Ĉ, the biased one.
    n_points : int
        N, points in chunklets.

    Returns
    -------
    float
        Minus twice the log-likelihood of the chunklets about their own means, in nats, less the
        constant N D log 2π. Least at B = Ĉ⁻¹.

    Notes
    -----
    [barhillel2005, eq. 11], whose sum over points is N tr(B Ĉ).

    Examples
    --------
    >>> round(likelihood_criterion(np.eye(2), np.eye(2), 10), 12)
    20.0
    """
    # [barhillel2005, eq. 11]
    return float(n_points * (np.sum(metric * within) - np.linalg.slogdet(metric).logabsdet))


def variance_ratio(size: int, n_chunklets: float = np.inf) -> float:
    """How much more the unbiased Ĉ varies than if all its points were one chunklet.

    Parameters
    ----------
    size : int
        k ≥ 2, points in each chunklet.
    n_chunklets : float, default=inf
        n; without it the limit of many, k / (k - 1), which bounds the ratio for every n.

    Returns
    -------
    float
        (nk - 1) / (n (k - 1)), for every element of Ĉ.

    Raises
    ------
    ValueError
        If chunklets of this size have no scatter.

    Notes
    -----
    [barhillel2005, eq. 12] is the bound. It is an equality with (nk - 1) / (nk) times its right
    side: both estimates are Wishart matrices per degree of freedom, with n (k - 1) and nk - 1.

    Examples
    --------
    >>> variance_ratio(2), variance_ratio(2, 10)
    (2.0, 1.9)
    """
    if size < 2 or n_chunklets < 1:
        raise ValueError(
            f"size is {size} and n_chunklets {n_chunklets}; give at least one chunklet of at least "
            "two points."
        )
    # [barhillel2005, eq. 12]
    return float((size - 1 / n_chunklets) / (size - 1))


def variance_of_covariance(covariance: FloatArray, freedom: float) -> FloatArray:
    """Variance of each element of the unbiased covariance of Gaussian points.

    Parameters
    ----------
    covariance : (D, D) array
        C, the true one.
    freedom : float
        Degrees of freedom: points less one, or Σ_j (n_j - 1) for chunklets.

    Returns
    -------
    (D, D) array
        (C_ij² + C_ii C_jj) / freedom.

    Notes
    -----
    [barhillel2005, App. B] gives the case of diagonal C, but with k for k - 1 in the off-diagonal
    elements.

    Examples
    --------
    >>> variance_of_covariance(np.diag([1.0, 3.0]), 2)
    array([[1. , 1.5],
           [1.5, 9. ]])
    """
    diagonal = np.diagonal(covariance)
    return (np.square(covariance) + np.outer(diagonal, diagonal)) / freedom


def weight_ratio(variances: FloatArray) -> FloatArray:
    """Weight of each principal direction in squared distances, before whitening per after.

    Parameters
    ----------
    variances : (D,) array
        λ^i, eigenvalues of the within-class covariance.

    Returns
    -------
    (D,) array
        λ^i over their mean: above one where RCA turns a direction down.

    Notes
    -----
    [barhillel2005, eq. 13].

    Examples
    --------
    >>> weight_ratio([3.0, 1.0])
    array([1.5, 0.5])
    """
    variances = np.asarray(variances, dtype=float)
    # [barhillel2005, eq. 13]
    return variances / variances.mean()


# ---------------------------------------------------------------------------- the online algorithm


def online_step(W: FloatArray, deviations: FloatArray, eta: float) -> FloatArray:
    """One chunklet's correction of the online map.

    Parameters
    ----------
    W : (K, D) array
        The map so far.
    deviations : (n, D) array
        h_i: the points of a chunklet less their mean; for Algorithm 3 the one row x_1 - x_2.
    eta : float
        η.

    Returns
    -------
    (K, D) array
        W + η Σ_i (W - y_i y_iᵗ W) with y_i = W h_i.

    Notes
    -----
    [barhillel2005, Algs. 3 and 4]. Algorithm 4 prints Σ (W - y yᵗ) W, which does not become
    Algorithm 3 for one row, and whose only invertible fixed point is the inverse of the covariance
    instead of the root of that, and is unstable: W fades away, wholly or in part.

    Half the difference of a pair is the deviation from its mean, and Algorithm 4 has two of them:
    on pairs it converges to twice the W of Algorithm 3.

    Examples
    --------
    >>> online_step(np.eye(2), np.array([[2.0, 0.0]]), 0.1)
    array([[0.7, 0. ],
           [0. , 1.1]])
    """
    Y = deviations @ W.T
    # [barhillel2005, Alg. 4] with the bracket of Alg. 3
    return W + eta * (len(Y) * W - Y.T @ (Y @ W))


def flow_step(W: FloatArray, deviations: FloatArray, eta: float) -> FloatArray:
    """The correction of :func:`online_step` made of infinitely many short ones: it cannot diverge.

    Parameters
    ----------
    W, deviations, eta
        As in :func:`online_step`.

    Returns
    -------
    (K, D) array
        W(η), where dW/dt = Σ_i (W - y_i y_iᵗ W) with y_i = W h_i, from W(0) = W.

    Notes
    -----
    Along an eigenvector of Σ y yᵗ, of eigenvalue λ, the differential equation is that of logistic
    growth, and W is multiplied by exp(nη) / sqrt(1 + (exp(2nη) - 1) λ / n), which is
    1 + η (n - λ) for small η. However far a chunklet is, afterwards it is seen at a squared
    distance of no more than n / (1 - exp(-2nη)), about 1 / (2η).

    Examples
    --------
    >>> flow_step(np.eye(1), np.array([[9.0]]), 0.1).round(3)
    array([[0.254]])
    >>> online_step(np.eye(1), np.array([[9.0]]), 0.1).round(3)
    array([[-7.]])
    """
    n = len(deviations)
    _, lengths, directions = np.linalg.svd(deviations @ W.T, full_matrices=False)
    growth, decay = np.exp(n * eta), -np.expm1(-2 * n * eta)
    factors = 1 / np.sqrt(1 - decay + decay * lengths**2 / n)
    seen = directions @ W
    return growth * (W - directions.T @ seen) + (directions.T * factors) @ seen


def overshoots(W: FloatArray, deviations: FloatArray, eta: float) -> bool:
    """Whether :func:`online_step` would shrink some direction by more than half.

    Parameters
    ----------
    W, deviations, eta
        As in :func:`online_step`.

    Returns
    -------
    bool
        η (λ - n) > ½ for the largest eigenvalue λ of Σ y yᵗ.

    Raises
    ------
    ValueError
        If a deviation is so far that rounding would hide what the step does.

    Examples
    --------
    >>> [overshoots(np.eye(1), np.array([[3.0]]), eta) for eta in (0.01, 0.1)]
    [False, True]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        Y = deviations @ W.T
        power = np.sum(Y * Y)
    if not power < FARTHEST**2:
        raise ValueError(
            f"a deviation of {abs(deviations).max():.3g} from a chunklet's mean is more than "
            f"{FARTHEST:g} in the metric learnt so far, beyond what rounding lets a step correct. "
            "Remove the outlier; if the units have changed, start anew."
        )
    # The sum of the eigenvalues bounds the largest, and settles nearly every case.
    if eta * (power - len(Y)) <= 0.5:
        return False
    gram = Y @ Y.T if len(Y) < Y.shape[1] else Y.T @ Y
    return bool(eta * (np.linalg.eigvalsh(gram)[-1] - len(Y)) > 0.5)


def _constant(eta: float, n_points: int) -> float:
    return eta


def _decreasing(eta: float, n_points: int) -> float:
    # [barhillel2005, sect. 7]: η_0 / T, T in points, for a step of Algorithm 4 sums over points
    return eta / n_points


SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": _constant,
    "decreasing": _decreasing,
}
"""Steps of :class:`OnlineRCA` by name: from η_0 and the points seen so far to η."""

# Size of W at the start, in units of the reciprocal deviation of each column.
START = 0.1

# Distance in the metric so far beyond which no step is accurate.
FARTHEST = 1e12
# Logarithm of the growth in one step beyond which W would overflow, or its squares.
FASTEST = 300.0


# ---------------------------------------------------------------------------- what estimators share


class _LinearMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What is fitted is ``components_``, and its inverse as far as there is one."""

    def transform(self, X: ArrayLike) -> FloatArray:
        """Map points to where the Euclidean distance is the learnt metric.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            ``X @ components_.T``; nothing is centred.
        """
        check_is_fitted(self, "components_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ self.components_.T

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Map points back.

        Parameters
        ----------
        X : (N, K) array-like
            Points in the space of ``transform``.

        Returns
        -------
        (N, D) array
            The points. Exact where the map has an inverse: where K = D, and on the span of the
            training data where only constant or dependent columns were dropped. Otherwise what
            linear regression of the training data makes of X.

        Raises
        ------
        ValueError
            If X does not have K columns.
        """
        check_is_fitted(self, "components_")
        Y = np.asarray(X, dtype=np.float64)
        if Y.ndim != 2 or Y.shape[1] != len(self.components_):
            raise ValueError(
                f"X has shape {Y.shape}; inverse_transform takes what transform returns, "
                f"(N, {len(self.components_)})."
            )
        return Y @ self.inverse_components_.T + self._offset

    def get_mahalanobis_matrix(self) -> FloatArray:
        """The metric as a matrix.

        Returns
        -------
        (D, D) array
            B = WᵗW, W being ``components_``: the squared distance is (x - x')ᵗ B (x - x').
        """
        check_is_fitted(self, "components_")
        return self.components_.T @ self.components_

    def _store(self, components: FloatArray, inverse: FloatArray, mean: FloatArray) -> Self:
        self.components_, self.inverse_components_, self.mean_ = components, inverse, mean
        self._offset = mean - inverse @ (components @ mean)
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def _read(
    model: _LinearMap,
    X: ArrayLike,
    y: ArrayLike | None,
    must_link: ArrayLike | None,
    *,
    reset: bool = True,
) -> tuple[FloatArray, _Groups]:
    """The points, and the chunklets by ``y`` and ``must_link`` together."""
    X = validate_data(model, X, dtype=np.float64, ensure_min_samples=2, reset=reset)
    _require_squares(X)
    groups = _groups_of(y, must_link, len(X))
    if len(groups.sizes) == 0:
        raise ValueError(
            f"no two of the {len(X)} points share a chunklet, and {type(model).__name__} learns "
            "from how points of a chunklet scatter. Give must_link pairs, or y, integers with -1 "
            "for none, with at least one chunklet of two points. Without side information, "
            "sklearn.decomposition.PCA(whiten=True) whitens the total covariance."
        )
    return X, groups


def _groups_of(y: ArrayLike | None, must_link: ArrayLike | None, n_samples: int) -> _Groups:
    chunklet_of = np.full(n_samples, -1) if y is None else _chunklets(y, n_samples)
    return _grouped(chunklet_of if must_link is None else _joined(chunklet_of, must_link).node_of)


def _joined(chunklet_of: IntArray, must_link: ArrayLike | None) -> SideInformation:
    """Chunklets closed under must-links as well: those of ``y`` are stars about a member."""
    given = SideInformation.build(len(chunklet_of), must_link=must_link).must_link
    members = np.flatnonzero(chunklet_of >= 0)
    _, first, which = np.unique(chunklet_of[members], return_index=True, return_inverse=True)
    stars = np.stack([members[first][which], members], axis=1)
    return SideInformation.build(len(chunklet_of), must_link=np.concatenate([given, stars]))


def _rounding(X: FloatArray) -> FloatArray:
    """(D,) what rounding may have done to each column."""
    return 4 * np.finfo(float).eps * np.maximum(X.max(axis=0), -X.min(axis=0))


# ---------------------------------------------------------------------------- estimators


class RCA(_LinearMap):
    """Relevant component analysis: whiten what varies within chunklets.

    Parameters
    ----------
    n_components : int, default=None
        K, columns of the result, by Fisher's discriminant from chunklets. None: as many as there
        are directions in which both data and chunklets vary.
    unbiased : bool, default=False
        Divide the scatter by N - n instead of N; the map is then smaller by a constant, which is
        sqrt(½) for pairs.
    alpha : float, default=0.5
        α in (0, 1]: where must-links are too few to measure every direction, PCA to α R dimensions
        comes first, R being the rank of Ĉ (or to ``n_components``, if that is more).
    shrinkage : float, default=0
        s in [0, 1]: (1 - s) Ĉ + s S_t takes the place of Ĉ. It is invertible wherever the data
        vary, so that PCA is not needed, and no direction is stretched beyond 1 / sqrt(s) of its
        deviation in the data.
    tol : float, default=1e-10
        Eigenvalues of a correlation matrix below this share of the largest count as zero.

    Attributes
    ----------
    components_ : (K, D) array
        W. Symmetric, the inverse square root of Ĉ, if ``n_components`` is None and Ĉ has rank D.
        Otherwise rows by descending ratio of total variance to variance within chunklets.
    inverse_components_ : (D, K) array
        What ``inverse_transform`` multiplies with.
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
    [barhillel2005, Algs. 1 and 2]. What is done about rank is said at the top of this module.
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
            The points, also those that no relation mentions: they tell the total covariance.
        y : (N,) int array-like, default=None
            The chunklet of each point, -1 for none. Class labels will do.
        must_link : (P, 2) int array-like, default=None
            Pairs of points that share a class; chains are closed. Both join what they tie.

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
            If ranks are deficient: which, and what has been done.
        """
        self._validate_params()
        X, groups = _read(self, X, y, must_link)
        _require_width(self.n_components, X.shape[1])
        within = _within(X, groups, self.unbiased)
        _require_scatter(within, _rounding(X))
        learnt = self._learnt(X, within, groups.freedom)
        self._report(learnt.ranks)
        self.within_covariance_ = within
        self.n_chunklets_ = len(groups.sizes)
        return self._store(learnt.components, learnt.inverse, X.mean(axis=0))

    def _learnt(self, X: FloatArray, within: FloatArray, freedom: float) -> _Learnt:
        total, noise = None, _rounding(X)
        if self.shrinkage > 0:
            total = _total(X)
            within = (1 - self.shrinkage) * within + self.shrinkage * total
            freedom = np.inf
        if self.n_components is None:
            W = whitening(within, tol=self.tol, noise=noise)
            if len(W) == len(within):
                return _Learnt(W, within @ W.T, _Ranks(*[len(W)] * 6))
        total = _total(X) if total is None else total
        return _learn(within, total, freedom, noise, self.n_components, self.alpha, self.tol)

    def _report(self, ranks: _Ranks) -> None:
        said = " ".join(_explain(ranks))
        if ranks.kept < (self.n_components or 1):
            raise ValueError(
                f"n_components={self.n_components}, but only {ranks.kept} directions can be "
                f"whitened. {said} Lower n_components, or mend the cause."
            )
        if said:
            K = self.n_components or ranks.kept
            _warn(f"{said} transform gives {K} columns.")


class OnlineRCA(_LinearMap):
    """Relevant component analysis of a stream of chunklets.

    Parameters
    ----------
    schedule : {"decreasing", "constant"}, default="decreasing"
        "decreasing" steps η_0 / (points so far) converge to the metric of the whole stream.
        "constant" steps η_0 follow a source that drifts, with a noise in proportion to η_0.
    eta : float, default=None
        η_0. None is 1 for decreasing steps and 0.05 / D for constant ones.
    n_epochs : int, default=10
        How often ``fit`` takes all chunklets, in random order. ``partial_fit`` takes them once.
    random_state : int, RandomState or None, default=None
        Seed of the start, and of the order in ``fit``.
    verbose : int, default=0
        1: a line an epoch.

    Attributes
    ----------
    components_ : (D, D) array
        W: an orthonormal matrix times the inverse square root of Ĉ, so that only the metric is
        comparable with that of :class:`RCA`. Columns in which no chunklet has varied are zero.
    inverse_components_ : (D, D) array
        Its inverse, or pseudo-inverse.
    mean_ : (D,) array
        Mean of the points seen.
    n_steps_, n_points_ : int
        Chunklets of two or more, and the points in them, so far.
    n_guarded_ : int
        Steps so far that would have overshot, and were :func:`flow_step` instead. Those at the
        beginning do no harm; if with a constant step many do, far chunklets count for too
        little: lower ``eta``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    [barhillel2005, sect. 7 and App. C] with the bracket of Algorithm 4 corrected. W starts as a
    random symmetric orthogonal matrix over ten times the deviation of each column, small as the
    paper has it, but in no direction so small that growing takes long. It is written in units of
    the data, so that the course of the algorithm does not depend on them.

    The printed steady state, the root of the inverse of E[(1/n) Σ h hᵗ], holds for chunklets of one
    size; in general it is that of E[Σ h hᵗ] / E[n], which is Ĉ as the batch algorithm has it.

    Directions without variance within chunklets are left out by ``fit``, which sees all of them.
    ``partial_fit`` leaves out columns that have not varied yet; a *combination* of columns that
    never does makes W grow along it, which raises an error in the end.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = 9 * rng.normal(size=(2000, 2))
    >>> X = np.repeat(centres, 2, axis=0) + rng.normal(size=(4000, 2)) * [3.0, 0.5]
    >>> pairs = np.arange(4000).reshape(-1, 2)
    >>> model = OnlineRCA(random_state=0)
    >>> for start in range(0, 4000, 100):
    ...     model = model.partial_fit(X[start : start + 100], must_link=pairs[:50])
    >>> batch = RCA().fit(X, must_link=pairs)
    >>> product = model.get_mahalanobis_matrix() @ batch.within_covariance_
    >>> bool(abs(product - np.eye(2)).max() < 0.2)
    True
    """

    _parameter_constraints = {
        "schedule": [StrOptions(set(SCHEDULES))],
        "eta": [Interval(Real, 0, None, closed="neither"), None],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        schedule: str = "decreasing",
        *,
        eta: float | None = None,
        n_epochs: int = 10,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ):
        self.schedule = schedule
        self.eta = eta
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, *, must_link: ArrayLike | None = None
    ) -> Self:
        """Start anew, and take all chunklets ``n_epochs`` times.

        Parameters
        ----------
        X, y, must_link
            As in :meth:`RCA.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As :meth:`RCA.fit`; and if a step could let W grow beyond all numbers, or W has grown so
            far that the metric overflows: ``eta`` is too large, or the data are tiny.
        KeyboardInterrupt
            If interrupted before the first step is complete. The model is then as it was before.

        Warns
        -----
        ConvergenceWarning
            If the variance within chunklets is still off by half in some direction, or if fitting
            was interrupted from the keyboard; what has been learnt is kept.
        UserWarning
            If there are directions in which no chunklet varies.
        """
        self._validate_params()
        with _wholly_or_not(self):
            X, groups = _read(self, X, y, must_link)
            within = _within(X, groups)
            _require_scatter(within, _rounding(X))
            rng = check_random_state(self.random_state)
            self._reset(X.shape[1], rng)
            spectrum = _spectrum(within, TOL, _rounding(X))
            self._begin(spectrum)
            _warn_left_out(spectrum)
            error = self._take_epochs(_deviations(X, groups), rng, within, spectrum)
            self._n_rows = len(X)
            self._finish(X.mean(axis=0))
        # After everything is stored: the warning may be an error.
        self._warn_about(error)
        return self

    def _take_epochs(
        self,
        chunklets: list[FloatArray],
        rng: np.random.RandomState,
        within: FloatArray,
        spectrum: _Spectrum,
    ) -> float | None:
        """Take all chunklets again and again; how far from white they are then.

        None if the keyboard ended it.
        """
        try:
            for epoch in range(self.n_epochs):
                self._follow([chunklets[j] for j in rng.permutation(len(chunklets))])
                if self.verbose:
                    error = _whiteness_error(self.components_, within, spectrum)
                    print(f"epoch {epoch}: variance off by {error:.3f} at most")
        except KeyboardInterrupt:
            if self.n_steps_ == 0:
                raise
            return None
        return _whiteness_error(self.components_, within, spectrum)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, *, must_link: ArrayLike | None = None
    ) -> Self:
        """Go on with the next chunklets of a stream, in the order of their first points.

        Parameters
        ----------
        X : (N, D) array-like
            The next points.
        y : (N,) int array-like, default=None
            The chunklet of each, -1 for none. Numbers mean nothing beyond this call.
        must_link : (P, 2) int array-like, default=None
            Pairs of rows of this X that share a class.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If no two points share a chunklet, if W grows without bound because some combination of
            columns does not vary within chunklets, or if a point is absurdly far. The model is then
            as it was before; so it is after an interrupt from the keyboard.
        """
        self._validate_params()
        with _wholly_or_not(self):
            return self._go_on(X, y, must_link)

    def _go_on(self, X: ArrayLike, y: ArrayLike | None, must_link: ArrayLike | None) -> Self:
        first = not hasattr(self, "components_")
        X, groups = _read(self, X, y, must_link, reset=first)
        within = _within(X, groups)
        if first:
            _require_scatter(within, _rounding(X))
            self._reset(X.shape[1], check_random_state(self.random_state))
        self._begin(_spectrum(np.diag(within.diagonal()), TOL, _rounding(X)))
        self._follow(_deviations(X, groups))
        _require_bounded(self.components_, self._scale)
        self._n_rows += len(X)
        return self._finish(self.mean_ + (X.mean(axis=0) - self.mean_) * (len(X) / self._n_rows))

    def _reset(self, D: int, rng: np.random.RandomState) -> None:
        """Nothing seen: W is zero until columns vary."""
        Q = np.linalg.qr(rng.normal(size=(D, D)))[0]
        self._symmetric = (Q * rng.choice([-1.0, 1.0], D)) @ Q.T
        self.components_, self.mean_, self._scale = np.zeros((D, D)), np.zeros(D), np.zeros(D)
        self.n_steps_ = self.n_points_ = self.n_guarded_ = self._n_rows = 0

    def _begin(self, spectrum: _Spectrum) -> None:
        """Start the columns that vary for the first time."""
        start = START * self._symmetric @ spectrum.vectors @ spectrum.vectors.T / spectrum.scale
        untouched = ~self.components_.any(axis=0)
        self.components_ = np.where(untouched, start, self.components_)
        self._scale = np.where(untouched, spectrum.scale, self._scale)

    def _follow(self, chunklets: list[FloatArray]) -> None:
        """One step a chunklet."""
        step = SCHEDULES[self.schedule]
        eta = self.eta
        if eta is None:
            eta = 1.0 if self.schedule == "decreasing" else 0.05 / self.components_.shape[1]
        for H in chunklets:
            n_points = self.n_points_ + len(H)
            now = step(eta, n_points)
            _require_finite_growth(now, len(H))
            guarded = overshoots(self.components_, H, now)
            self.components_ = (flow_step if guarded else online_step)(self.components_, H, now)
            # A step that is interrupted does not count.
            self.n_steps_, self.n_points_ = self.n_steps_ + 1, n_points
            self.n_guarded_ += int(guarded)

    def _finish(self, mean: FloatArray) -> Self:
        _require_finite_metric(self.components_)
        inverse = cast("FloatArray", np.linalg.pinv(self.components_, rcond=1e-12))
        return self._store(self.components_, inverse, mean)

    def _warn_about(self, error: float | None) -> None:
        if error is None:
            _warn(
                f"fitting was interrupted; what has been learnt is kept, of {self.n_steps_} steps "
                "(chunklets).",
                ConvergenceWarning,
            )
        elif error > 0.5:
            _warn(
                f"after {self.n_epochs} epochs the variance within chunklets is still off by "
                f"{error:.2f} in some direction, where it should be 1. Increase n_epochs, or "
                "change eta: smaller if the steps are constant, larger if they decrease.",
                ConvergenceWarning,
            )


@contextmanager
def _wholly_or_not(model: OnlineRCA) -> Iterator[None]:
    """What fails, or is interrupted, leaves the model as it was."""
    before = model.__dict__.copy()
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


def _deviations(X: FloatArray, groups: _Groups) -> list[FloatArray]:
    """Points less the mean of their chunklet, chunklets in the order of their first points."""
    rows, _ = _centred(X[groups.order], groups.starts, groups.sizes)
    chunklets = np.split(rows, groups.starts[1:])
    return [chunklets[j] for j in np.argsort(groups.order[groups.starts])]


def _whiteness_error(W: FloatArray, within: FloatArray, spectrum: _Spectrum) -> float:
    """How far variances within chunklets are from one, where there are any."""
    variances = np.linalg.eigvalsh(W @ within @ W.T)[::-1][: len(spectrum.values)]
    return float(abs(variances - 1).max())


# ---------------------------------------------------------------------------- checks


def _require_width(n_components: int | None, n_features: int) -> None:
    if n_components is not None and n_components > n_features:
        raise ValueError(
            f"n_components={n_components}, but the data have n_features = {n_features}; ask for "
            "at most as many."
        )


def _require_scatter(within: FloatArray, noise: FloatArray) -> None:
    if not (np.sqrt(within.diagonal()) > noise).any():
        raise ValueError(
            "the points of every chunklet coincide, or differ by no more than rounding, so they "
            "tell nothing of how a class scatters. Give must-links between points that differ."
        )


def _require_bounded(W: FloatArray, scale: FloatArray) -> None:
    """W may be as large as a whitening at the limit of ``TOL``, over deviations at first sight."""
    with np.errstate(over="ignore"):
        heights = np.linalg.norm(W * scale, axis=0)
    if not heights.max() < TOL**-0.5:
        raise ValueError(
            f"W has grown to {heights.max():.3g} times the reciprocal deviation of column "
            f"{heights.argmax()}: some combination of columns does not vary within chunklets, or "
            "does so much less than at first. Drop columns that depend on others, reduce the data "
            "by RCA or PCA, or start anew."
        )


def _require_finite_growth(eta: float, n_points: int) -> None:
    """Where a chunklet does not vary, W grows by exp(eta n), or 1 + eta n, and nothing holds it."""
    if not eta * n_points <= FASTEST:
        raise ValueError(
            f"a step of {eta:.3g} times the {n_points} points of a chunklet lets W grow by exp("
            f"{eta * n_points:.3g}), beyond all numbers, where the chunklet does not vary. Lower "
            "eta."
        )


def _require_finite_metric(W: np.ndarray) -> None:
    """Refuse a map whose squares, the entries of the metric, overflow."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.square(W).sum())
    if not finite:
        raise ValueError(
            f"W has grown to {abs(W).max():.3g}: its squares, and with them the metric, overflow. "
            "Lower eta, or multiply the data by a constant."
        )


def _warn_left_out(spectrum: _Spectrum) -> None:
    D, rank = spectrum.vectors.shape
    if rank < D:
        _warn(
            f"The chunklets vary in {rank} of {D} dimensions: the metric would stretch the others "
            f"infinitely, so they are left out, and the {D} columns of transform have rank {rank}."
        )


def _warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the caller of ``fit``, two calls up."""
    warnings.warn(message, category, stacklevel=4)


# ---------------------------------------------------------------------------- a start for EM


def rca_start(
    X: ArrayLike,
    n_components: int,
    y: ArrayLike | None = None,
    *,
    must_link: ArrayLike | None = None,
    rca: RCA | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> FloatArray:
    """Responsibilities from which EM in the original space starts with the learnt metric.

    Parameters
    ----------
    X : (N, D) array-like
        The points.
    n_components : int
        K, components of the mixture.
    y, must_link
        As in :meth:`RCA.fit`.
    rca : RCA, default=None
        With which parameters; None: those of ``RCA()``. It is cloned, not fitted.
    random_state : int, RandomState or None, default=None
        Seed of the k-means++ draws.

    Returns
    -------
    (N, K) array
        Hard responsibilities, for ``ConstrainedGaussianMixture(init_params=...)``: k-means++ seeds
        by chunklets in the space of RCA, and each chunklet, as a whole, at the nearest.

    Raises
    ------
    ValueError
        As :meth:`RCA.fit`.

    Notes
    -----
    "RCA as the initial metric" of constrained EM, variant f of [barhillel2005, sect. 8.3]. A
    pipeline of :class:`RCA` and the mixture is the other reading: covariances "full" and "tied"
    are then equivariant, and the metric tells in the start (and in ``reg_covar``) alone.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [9.0, 0.1], [0.5, 1.0], [9.5, 1.0]])
    >>> r = rca_start(X, 2, must_link=[[0, 1], [2, 3]], random_state=0)
    >>> r.argmax(axis=1) == r[0].argmax()
    array([ True,  True, False, False])
    """
    model = RCA() if rca is None else clone(rca)
    Y = model.fit(X, y, must_link=must_link).transform(X)
    side = _joined(np.full(len(Y), -1) if y is None else _chunklets(y, len(Y)), must_link)
    # Of one chunklet all points are nearest to what their mean is nearest to.
    centroids = side.sum_over_nodes(Y) / np.bincount(side.node_of)[:, None]
    rng = check_random_state(random_state)
    return from_chunklets(side.spread(centroids), n_components, rng, side)
