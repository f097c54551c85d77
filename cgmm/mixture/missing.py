"""Gaussian mixtures for tables with missing values, which are marginalised exactly. Chapter 3.

A missing value is NaN. The E-step uses the density of the observed values of each row, and the
M-step uses expected moments given these values (Ghahramani and Jordan, 1994). Both need small
matrices that depend only on *which* values of a row are missing, so rows are sorted by this
*pattern*. The estimates are those of maximum likelihood if values are missing at random: whether a
value is missing may depend on the observed values of the row, but not on the missing value itself.

=====  ====================================================================
N, D   number of points x_i and of their dimensions; K components
P      number of patterns, e.g. 3: no missing value, column 1 missing, columns 0 and 2 missing
o, m   the observed and the missing columns of a pattern
B_k    (m, D) regression on the observed columns: E[x_m - μ_m | x_o] = B_k (x - μ_k)
C_k    (m, m) covariance of the missing columns given the observed ones
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cgmm.mixture import products
from cgmm.mixture.categorical import Categories, draw_categories
from cgmm.mixture.family import Statistics
from cgmm.mixture.gaussian import SMALLEST_DEVIATION, Parameters, whiten
from cgmm.numerics import BLOCK_CELLS, BoolArray, FloatArray, IntArray, block_height
from cgmm.runs import Rng

# Number of EM iterations that fit a single Gaussian, which fills in values for the initialisation.
N_ITER = 20


class Piece(NamedTuple):
    """A block of consecutive rows of a table whose rows are sorted by missingness pattern."""

    rows: IntArray
    """(B,) row numbers in the original table."""
    X: FloatArray
    """(B, D) points, with NaN for missing values."""
    firsts: IntArray
    """(P,) index in the block of the first row of each pattern."""

    @property
    def n_rows(self) -> IntArray:
        """(P,) number of rows with each pattern."""
        return np.diff(self.firsts, append=len(self.X))

    @property
    def present(self) -> BoolArray:
        """(P, D) mask of the observed columns of each pattern."""
        return ~np.isnan(self.X[self.firsts])


class Regression(NamedTuple):
    """Regressions of missing on observed columns, for Q patterns with n missing columns each."""

    patterns: IntArray
    """(Q,) sorted indices of the patterns."""
    missing: IntArray
    """(Q, n) missing columns of each pattern."""
    coefficients: FloatArray
    """(K, Q, n, D) regression coefficients B, which are zero for missing columns."""
    covariances: FloatArray
    """(K, Q, n, n) conditional covariances C."""
    log_dets: FloatArray
    """(K, Q) log-determinants log|C|."""


class PointsWithGaps:
    """Points with missing values, in the format of the Gaussian families.

    Parameters
    ----------
    values : (N, D) array
        The points, with NaN for missing values.

    Examples
    --------
    >>> X = PointsWithGaps(np.array([[1.0, np.nan], [0.0, 2.0]]))
    >>> theta = Parameters(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    >>> theta.log_density(X).round(4)
    array([[-1.4189],
           [-3.8379]])
    """

    has_gaps = True

    def __init__(self, values: FloatArray, pattern_of: IntArray | None = None):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype
        if pattern_of is None:
            bits = np.packbits(~np.isnan(values), axis=1)
            pattern_of = np.unique(bits, axis=0, return_inverse=True)[1].ravel()
        self.pattern_of = pattern_of

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> PointsWithGaps:
        if isinstance(rows, slice) and rows == slice(0, len(self)):
            return self
        values = np.take(self.values.T, np.arange(len(self))[rows], axis=1).T
        return PointsWithGaps(values, self.pattern_of[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.values, dtype=dtype)

    @property
    def n_patterns(self) -> int:
        """Number P of different patterns."""
        return len(np.unique(self.pattern_of))

    def min(self, axis: int) -> FloatArray:
        """Return the smallest observed value of each column."""
        return np.asarray(np.nanmin(self.values, axis=axis))

    def max(self, axis: int) -> FloatArray:
        """Return the largest observed value of each column."""
        return np.asarray(np.nanmax(self.values, axis=axis))

    @cached_property
    def by_pattern(self) -> tuple[IntArray, FloatArray]:
        """(N,) row numbers sorted by pattern, and the (N, D) values in this order."""
        order, values = np.arange(len(self)), self.values
        if (np.diff(self.pattern_of) < 0).any():
            order = np.argsort(self.pattern_of, kind="stable")
            values = np.take(values.T, order, axis=1).T
        return order, values

    def pieces(self, n_components: int) -> Iterator[Piece]:
        """Yield pieces that are so small that points and matrices fit into the cache."""
        (order, values), (n_points, n_dims) = self.by_pattern, self.shape
        height = block_height(n_components, n_dims)
        n_patterns = max(1, 4 * BLOCK_CELLS // (n_components * n_dims**2))
        firsts = np.flatnonzero(np.diff(self.pattern_of[order], prepend=-1))
        edges = np.union1d(np.arange(0, n_points, height), firsts[::n_patterns])
        for start, stop in pairwise([*edges.tolist(), n_points]):
            inside = firsts[(start < firsts) & (firsts < stop)]
            yield Piece(order[start:stop], values[start:stop], np.append(start, inside) - start)

    def log_density(self, theta: Parameters) -> FloatArray:
        """Return (N, K) log N(x_o | μ_o, Σ_oo) of the observed values, column-major."""
        densities = np.empty((len(theta.means), len(self)))
        for piece in self.pieces(len(theta.means)):
            densities[:, piece.rows] = _compute_log_density(piece, theta)
        return densities.T

    def statistics(
        self, responsibilities: FloatArray, theta: Parameters, diagonal: bool, shared: bool
    ) -> Statistics:
        """Return the expected statistics of an M-step, given the observed values and θ.

        Parameters
        ----------
        responsibilities : (N, K) array
            r_ik.
        theta : Parameters
            The current θ; moments are computed about its means.
        diagonal, shared : bool
            Whether to return only the diagonals of second moments, or only their sum over
            components.

        Returns
        -------
        (K,) array, (K, D) array, array
            The same as :meth:`cgmm.mixture.Pooling.statistics`.
        """
        if not diagonal:
            theta = theta._replace(covariances=theta.full_covariances)
        total: Any = (0.0, 0.0, 0.0)
        for piece in self.pieces(len(theta.means)):
            found = _compute_moments(piece, theta, responsibilities[piece.rows])
            total = tuple(map(np.add, total, found))
        counts, first, second = total
        if diagonal and second.ndim == 3:
            second = np.einsum("kdd->kd", second)
        return counts, first, second.sum(axis=0, keepdims=True) if shared else second

    def fill_in(
        self, theta: Parameters, responsibilities: FloatArray, rng: Rng | None = None
    ) -> FloatArray:
        """Fill in missing values by expectations, or by draws if ``rng`` is given."""
        complete, theta = self.values.copy(), theta._replace(covariances=theta.full_covariances)
        for piece in self.pieces(len(theta.means)):
            r = responsibilities[piece.rows]
            if rng is None:
                means = theta.means[:, :, None] + _compute_deviations(piece, theta)
                found = np.einsum("nk,kdn->nd", r, means)
            else:
                found = _draw_complete(piece, theta, r, rng)
            complete[piece.rows] = np.where(np.isnan(piece.X), found, piece.X)
        return complete

    @cached_property
    def gaussian(self) -> Parameters:
        """A single Gaussian fitted to all points, with D pseudo-points of uncorrelated columns."""
        variances = np.nanvar(self.values, axis=0)
        # A constant column gets a variance that is tiny compared with the others.
        variances = np.where(variances > 0, variances, 1e-12 * variances.max())
        variances = np.maximum(variances, SMALLEST_DEVIATION**2)
        theta = Parameters(
            np.ones(1), np.nanmean(self.values, axis=0)[None], np.diag(variances)[None]
        )
        n_dims, r = self.shape[1], np.ones((len(self), 1))
        for _ in range(N_ITER):
            counts, first, second = self.statistics(r, theta, diagonal=False, shared=False)
            shift = first / counts
            scatter = second[0] - counts * shift.T @ shift + n_dims * np.diag(variances)
            theta = theta._replace(
                means=theta.means + shift, covariances=scatter[None] / (counts + n_dims)
            )
        return theta

    def repeat_gaussian(self, n_components: int, diagonal: bool) -> Parameters:
        """Return K components that all equal the single Gaussian of all points."""
        weights, means, covariances = self.gaussian
        covariances = self.gaussian.variances if diagonal else covariances
        return Parameters(
            *(np.repeat(of, n_components, axis=0) for of in (weights, means, covariances))
        )

    @cached_property
    def filled(self) -> FloatArray:
        """(N, D) points whose missing values are filled in by regression, for initialisation."""
        return np.asfortranarray(self.fill_in(self.gaussian, np.ones((len(self), 1))))


def with_gaps(X: FloatArray, *, is_new: bool = False, rows_may_be_empty: bool = False) -> Any:
    """Wrap points with missing values in ``PointsWithGaps``; return complete points unchanged.

    Parameters
    ----------
    X : (N, D) array
        The points, with NaN for missing values.
    is_new : bool, default=False
        True for predictions, in which a column may consist of missing values only.
    rows_may_be_empty : bool, default=False
        True if a row of missing values is allowed, because it has values in other columns, which
        are not part of X.

    Returns
    -------
    (N, D) array or PointsWithGaps

    Raises
    ------
    ValueError
        If a row or a column consists of missing values only; the message names it.

    Examples
    --------
    >>> with_gaps(np.array([[1.0, np.nan], [np.nan, np.nan]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: row 1 of X is empty: every entry is NaN. It says nothing about its component, ...
    """
    # Test the sum, which is fast: X contains no infinity, so it is NaN only if an entry is.
    if not np.isnan(np.sum(X)):
        return X
    present = ~np.isnan(X)
    rows, columns = (np.asarray(present.any(axis=axis)) for axis in (1, 0))
    if not rows.all() and not rows_may_be_empty:
        raise ValueError(EMPTY_ROW.format(int(rows.argmin()), int((~rows).sum())))
    if not columns.all() and not is_new:
        raise ValueError(
            f"column {int(columns.argmin())} of X is empty: every entry is NaN. Leave it out."
        )
    return X if present.all() else PointsWithGaps(np.asfortranarray(X))


EMPTY_ROW = (
    "row {} of X is empty: every entry is NaN. It says nothing about its component, as {} such "
    "rows do here. Leave them out: keep = ~np.isnan(X).all(axis=1), then fit(X[keep], must_link="
    "cgmm.network.PairsAmong(must_link, len(X))[keep]), and likewise other relations."
)


def fill_by_regression(X: Any) -> FloatArray:
    """Return points whose missing values, if there are any, are filled in by regression."""
    return X.filled if isinstance(X, PointsWithGaps) else X


# ---------------------------------------------------------------------------- pieces


def _compute_log_density(piece: Piece, theta: Parameters) -> FloatArray:
    """Return (K, B) log-densities of the observed values of a piece."""
    (whiteners, log_det), present = whiten(theta.covariances), piece.present
    if theta.covariances.ndim == 2:
        log_dets = np.log(theta.covariances) @ present.T
    else:
        log_dets = np.repeat(log_det[:, None], len(present), axis=1)
        for of in _compute_regressions(theta.covariances, present):
            log_dets[:, of.patterns] -= of.log_dets  # log|Σ| = log|Σ_oo| + log|C|
    constants = -0.5 * (log_dets + present.sum(axis=1) * np.log(2 * np.pi))
    # If missing values are set to their conditional means, the squared Mahalanobis distance of the
    # point from μ_k equals that of the observed values alone.
    x = _compute_deviations(piece, theta)
    with np.errstate(over="ignore"):  # an infinite distance correctly gives density zero
        if whiteners.ndim == 2:
            distances = (np.square(whiteners)[:, None] @ np.square(x))[:, 0]
        else:
            x = whiteners @ x
            distances = np.einsum("kdb,kdb->kb", x, x)
    return np.repeat(constants, piece.n_rows, axis=1) - 0.5 * distances


def _compute_moments(piece: Piece, theta: Parameters, r: FloatArray) -> Statistics:
    """Return counts, expected first and second moments of a piece, given observed values."""
    # Ghahramani and Jordan (1994), sect. 3.1: moments of x_m given x_o
    x, counts = _compute_deviations(piece, theta), np.add.reduceat(r, piece.firsts, axis=0).T
    r = r.T[:, :, None]
    first = (x @ r)[:, :, 0]
    if theta.covariances.ndim == 2:
        second = (np.square(x) @ r)[:, :, 0]
        return counts.sum(axis=1), first, second + counts @ ~piece.present * theta.covariances
    second = (x * r.mT) @ x.mT
    for of in _compute_regressions(theta.covariances, piece.present):
        cells: Any = slice(None), of.missing[:, :, None], of.missing[:, None]
        np.add.at(second, cells, counts[:, of.patterns, None, None] * of.covariances)
    # Products and inverses are symmetric only up to rounding, so remove the difference.
    second = (second + second.mT) / 2
    return counts.sum(axis=1), first, second


def _draw_complete(piece: Piece, theta: Parameters, r: FloatArray, rng: Rng) -> FloatArray:
    """Draw (B, D) complete points, given their observed values and responsibilities (B, K)."""
    z = draw_categories(r, Categories((r.shape[1],)), rng)[:, 0]
    y = rng.standard_normal(piece.X.shape)
    for k, factor in enumerate(np.linalg.cholesky(theta.covariances)):
        y[z == k] = theta.means[k] + y[z == k] @ factor.T
    # If y is drawn from component z, its deviation from its own conditional mean has the same
    # distribution as the deviation of x from the conditional mean of x.
    other = piece._replace(X=np.where(np.isnan(piece.X), np.nan, y))
    shifts = _compute_deviations(piece, theta) - _compute_deviations(other, theta)
    return np.asarray(y + shifts[z, :, np.arange(len(z))])


def _compute_deviations(piece: Piece, theta: Parameters) -> FloatArray:
    """Return (K, D, B) conditional means E[x - μ_k | x_o] of a piece."""
    x = np.where(np.isnan(piece.X), 0.0, piece.X)
    return _conditional_means(x, piece.firsts, piece.present, theta.means, theta.covariances)


@products.cache_last_result
def _conditional_means(
    x: FloatArray, firsts: IntArray, present: BoolArray, means: FloatArray, covariances: FloatArray
) -> FloatArray:
    """Return (K, D, B) conditional means E[x - μ_k | x_o]; pattern n begins at row firsts[n]."""
    pattern_of = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(x)))
    apart = np.zeros((*means.shape, len(x)))
    np.subtract(x.T, means[:, :, None], out=apart, where=present[pattern_of].T)
    if covariances.ndim == 2:
        return apart
    parts = np.split(apart, firsts[1:], axis=2)
    for of in _compute_regressions(covariances, present):
        found = [of.coefficients[:, q] @ parts[p] for q, p in enumerate(of.patterns)]
        rows = np.flatnonzero(np.isin(pattern_of, of.patterns))
        missing = of.missing[np.searchsorted(of.patterns, pattern_of[rows])]
        apart[:, missing.T, rows] = np.concatenate(found, axis=2)
    return apart


@products.cache_last_result
def _compute_regressions(covariances: FloatArray, present: BoolArray) -> list[Regression]:
    """Compute the regressions of all patterns, grouped by the number of missing columns."""
    # If a covariance is singular, this raises an error that names the component.
    whiteners = whiten(covariances)[0]
    precisions, n_missing = whiteners.mT @ whiteners, (~present).sum(axis=1)
    regressions = []
    for n in np.unique(n_missing[n_missing > 0]):
        patterns = np.flatnonzero(n_missing == n)
        missing = np.nonzero(~present[patterns])[1].reshape(-1, n)
        # With Λ = Σ⁻¹, B = -Λ_mm⁻¹ Λ_mo and C = Λ_mm⁻¹. Inverting Λ_mm instead of Σ_oo is cheap if
        # few columns are missing.
        inside: Any = precisions[:, missing[:, :, None], missing[:, None]]
        C, log_dets = np.linalg.inv(inside), -np.linalg.slogdet(inside)[1]
        B = C @ -(precisions[:, missing] * present[patterns][:, None])
        regressions.append(Regression(patterns, missing, B, C, log_dets))
    return regressions
