"""Gaussian mixtures of tables with empty cells: exact marginals, grouped by pattern. Chapter 3.

A cell is NaN where nothing was measured. The E-step uses the density of the cells that are present,
and the M-step the expectation of the moments given these cells (Ghahramani and Jordan, 1994). Both
need small matrices that depend only on *which* cells a row has, so rows are sorted by this pattern.
The estimates are those of maximum likelihood if cells are missing at random: whether a cell is
empty may depend on the cells that are present, but not on its own value.

=====  ====================================================================
N, D   number of points x_i and of their dimensions; K components
P      number of patterns, e.g. 3: complete, second column empty, both others empty
o, m   the columns of a pattern that are present, and those that are missing
A_k    (D, D) regression of all columns on the present ones: E[x - μ_k | x_o] = A_k (x - μ_k)
C_k    (D, D) covariance of the columns given the present ones, zero outside of m
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

# Iterations that fit a single Gaussian, whose regressions fill in the cells for a start.
N_ITER = 20


class Piece(NamedTuple):
    """Some rows of a table, sorted by pattern."""

    rows: IntArray
    """(B,) their row numbers in the table."""
    X: FloatArray
    """(B, D) the points, NaN where a cell is empty."""
    present: BoolArray
    """(P, D) which cells each pattern has."""
    parts: list[slice]
    """The rows of each pattern, among the B."""

    def deviations(self, number: int, means: FloatArray) -> FloatArray:
        """Return (K, n, D) x - μ_k of the points of one pattern, zero in empty cells."""
        apart = self.X[self.parts[number]] - means[:, None]
        return np.where(self.present[number], apart, 0.0)


class PointsWithGaps:
    """Points of which some cells are empty, as families of Gaussians take them.

    Parameters
    ----------
    values : (N, D) array
        The points, NaN where a cell is empty.

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
        """P."""
        return len(np.unique(self.pattern_of))

    def min(self, axis: int) -> FloatArray:
        """Return the smallest present value of each column."""
        return np.asarray(np.nanmin(self.values, axis=axis))

    def max(self, axis: int) -> FloatArray:
        """Return the largest present value of each column."""
        return np.asarray(np.nanmax(self.values, axis=axis))

    @cached_property
    def by_pattern(self) -> tuple[IntArray, FloatArray, IntArray]:
        """(N,) rows sorted by pattern, (N, D) their values, (P + 1,) where patterns begin and N."""
        order, values = np.argsort(self.pattern_of, kind="stable"), self.values
        if (np.diff(order) != 1).any():
            values = np.take(values.T, order, axis=1).T
        starts = np.flatnonzero(np.diff(self.pattern_of[order], prepend=-1))
        return order, values, np.append(starts, len(order))

    def pieces(self, n_components: int) -> Iterator[Piece]:
        """Yield pieces whose points, and whose matrices of patterns, fit the cache."""
        (order, values, starts), n_dims = self.by_pattern, self.shape[1]
        n_patterns = max(1, 4 * BLOCK_CELLS // (n_components * n_dims**2))
        height = block_height(n_components, n_dims)
        edges = np.union1d(np.arange(0, len(order), height), starts[::n_patterns])
        for start, stop in zip(edges, [*edges[1:], len(order)], strict=True):
            if start == stop:
                continue
            first, last = np.searchsorted(starts, [start + 1, stop])
            own = np.clip(starts[first - 1 : last + 1], start, stop) - start
            parts = [slice(a, b) for a, b in pairwise(own) if a < b]
            x = values[start:stop]
            present = ~np.isnan(x[[part.start for part in parts]])
            yield Piece(order[start:stop], x, present, parts)

    def log_density(self, theta: Parameters) -> FloatArray:
        """(N, K) log N(x_o | μ_o, Σ_oo) of the present cells, column-major."""
        densities = np.empty((len(theta.means), len(self)))
        for piece in self.pieces(len(theta.means)):
            densities[:, piece.rows] = _log_density(piece, theta)
        return densities.T

    def statistics(
        self, responsibilities: FloatArray, theta: Parameters, diagonal: bool, shared: bool
    ) -> Statistics:
        """Return the expected statistics of an M-step, given the present cells and θ.

        Parameters
        ----------
        responsibilities : (N, K) array
            r_ik.
        theta : Parameters
            θ so far, whose means the moments are about.
        diagonal, shared : bool
            Whether only diagonals of the second moments are wanted; or their sum over components.

        Returns
        -------
        (K,) array, (K, D) array, array
            As :meth:`cgmm.mixture.Pooling.statistics`.
        """
        if not diagonal and theta.covariances.ndim == 2:
            theta = theta._replace(covariances=theta.full_covariances)
        total: Any = (0.0, 0.0, 0.0)
        for piece in self.pieces(len(theta.means)):
            found = _complete(piece, theta, *_moments(piece, theta, responsibilities[piece.rows]))
            total = tuple(map(np.add, total, found))
        counts, first, second = total
        if diagonal and second.ndim == 3:
            second = np.einsum("kdd->kd", second)
        return counts, first, second.sum(axis=0, keepdims=True) if shared else second

    def completed(
        self, theta: Parameters, responsibilities: FloatArray, rng: Rng | None = None
    ) -> FloatArray:
        """Return (N, D) points with all cells: expectations, or draws from ``rng``."""
        complete, theta = self.values.copy(), theta._replace(covariances=theta.full_covariances)
        for piece in self.pieces(len(theta.means)):
            A, C = _regressions(piece.present, theta)
            for p, part in enumerate(piece.parts):
                rows, r = piece.rows[part], responsibilities[piece.rows[part]]
                means = theta.means[:, None] + piece.deviations(p, theta.means) @ A[p].mT
                if rng is None:
                    found = np.einsum("nk,knd->nd", r, means)
                else:
                    gaps = ~piece.present[p]
                    padded = np.where(gaps & gaps[:, None], C[p], np.eye(len(gaps)))
                    z = draw_categories(r, Categories((r.shape[1],)), rng)[:, 0]
                    noise = rng.standard_normal((len(r), len(gaps), 1))
                    found = means[z, np.arange(len(r))]
                    found = found + (np.linalg.cholesky(padded)[z] @ noise)[:, :, 0]
                complete[rows] = np.where(piece.present[p], complete[rows], found)
        return complete

    @cached_property
    def single(self) -> Parameters:
        """The one Gaussian of all points, pulled towards uncorrelated columns by D points."""
        variances = np.nanvar(self.values, axis=0)
        # A constant column gets a variance that is small beside the others.
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

    def repeat_single(self, n_components: int, diagonal: bool) -> Parameters:
        """Return so many times the one Gaussian of all points."""
        weights, means, covariances = self.single
        covariances = self.single.variances if diagonal else covariances
        return Parameters(
            *(np.repeat(of, n_components, axis=0) for of in (weights, means, covariances))
        )

    @cached_property
    def filled(self) -> FloatArray:
        """(N, D) points with empty cells regressed on the present ones: what starts are made of."""
        return np.asfortranarray(self.completed(self.single, np.ones((len(self), 1))))


def with_gaps(X: FloatArray, *, is_new: bool = False, rows_may_be_empty: bool = False) -> Any:
    """Return points as families of Gaussians take them: unchanged if every cell is present.

    Parameters
    ----------
    X : (N, D) array
        The points, NaN where a cell is empty.
    is_new : bool, default=False
        Whether parameters are known already, so that a column may be empty altogether.
    rows_may_be_empty : bool, default=False
        Whether other columns than these say something of a row.

    Returns
    -------
    (N, D) array or PointsWithGaps

    Raises
    ------
    ValueError
        If a row or a column is empty altogether; it is named.

    Examples
    --------
    >>> with_gaps(np.array([[1.0, np.nan], [np.nan, np.nan]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: row 1 of X is empty: every entry is NaN. It says nothing about its component, ...
    """
    if not np.isnan(np.sum(X)):  # a quick test; infinities are refused before
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


def filled(X: Any) -> FloatArray:
    """Return complete points: the same, or with empty cells regressed on the present ones."""
    return X.filled if isinstance(X, PointsWithGaps) else X


# ---------------------------------------------------------------------------- pieces


@products.remembered
def _whiten_patterns(covariances: FloatArray, present: BoolArray) -> tuple[FloatArray, FloatArray]:
    """(P, K, ...) W of Σ_oo, in missing rows and columns the identity, or zero if diagonal.

    And (P, K) log|Σ_oo|.
    """
    whiteners, log_dets = whiten(covariances)  # errors name the component
    if covariances.ndim == 2:
        return whiteners * present[:, None], present.astype(float) @ np.log(covariances).T
    both = present[:, None, None] & present[:, None, :, None]
    padded = np.where(both, covariances, np.eye(covariances.shape[1]))
    shape = len(present), len(covariances)
    whiteners, log_dets = whiten(padded.reshape(-1, *covariances.shape[1:]))
    return whiteners.reshape(padded.shape), log_dets.reshape(shape)


def _phi(piece: Piece, theta: Parameters) -> FloatArray | None:
    """(size, B) φ of the points with the middle of the means in empty cells; None: not safe."""
    filled = np.where(np.isnan(piece.X), theta.means.mean(axis=0), piece.X)
    return products.phi(np.asfortranarray(filled), theta.means, whiten(theta.covariances)[0])


def _log_density(piece: Piece, theta: Parameters) -> FloatArray:
    """(K, B) log-densities of the present cells."""
    whiteners, log_dets = _whiten_patterns(theta.covariances, piece.present)
    n_present = piece.present.sum(axis=1, keepdims=True)
    constants = -0.5 * (log_dets + n_present * np.log(2 * np.pi))
    densities, phi = np.empty((len(theta.means), len(piece.X))), _phi(piece, theta)
    if phi is not None:
        shifts = _shifts(piece, theta).reshape(-1, piece.X.shape[1])
        flat = whiteners.reshape(-1, *whiteners.shape[2:])
        natural = products.natural_parameters(shifts, flat, constants.ravel())
        natural = natural.reshape(*constants.shape, -1)
    for p, part in enumerate(piece.parts):
        if phi is not None:
            densities[:, part] = natural[p] @ phi[:, part]
        else:
            x = piece.deviations(p, theta.means)
            is_full = whiteners.ndim == 4
            x = x @ whiteners[p].mT if is_full else x * whiteners[p][:, None]
            densities[:, part] = constants[p][:, None] - 0.5 * np.einsum("knd,knd->kn", x, x)
    return densities


def _shifts(piece: Piece, theta: Parameters) -> FloatArray:
    """(P, K, D) means from their middle, zero where a pattern has no cell."""
    return np.where(piece.present[:, None], theta.means - theta.means.mean(axis=0), 0.0)


def _moments(piece: Piece, theta: Parameters, r: FloatArray) -> Statistics:
    """(P, K) counts, (P, K, D) first and (P, K, ...) second moments of the present cells."""
    (n_patterns, n_dims), n_components = piece.present.shape, len(theta.means)
    diagonal, phi = theta.covariances.ndim == 2, _phi(piece, theta)
    if phi is not None:
        sums = np.stack([(phi[:, part] @ r[part]).T for part in piece.parts])
        flat, shifts = sums.reshape(-1, len(phi)), _shifts(piece, theta).reshape(-1, n_dims)
        found = products.about_shifts(flat, shifts, diagonal)
        counts, first, second = (
            of.reshape(n_patterns, n_components, *of.shape[1:]) for of in found
        )
        return counts, first, second
    counts = np.stack([r[part].sum(axis=0) for part in piece.parts])
    first = np.empty((*counts.shape, n_dims))
    second = np.empty((*first.shape, *theta.covariances.shape[2:]))
    for p, part in enumerate(piece.parts):
        apart = piece.deviations(p, theta.means)
        weighted = apart * r[part].T[:, :, None]
        first[p] = weighted.sum(axis=1)
        second[p] = (weighted * apart).sum(axis=1) if diagonal else weighted.mT @ apart
    return counts, first, second


def _complete(
    piece: Piece, theta: Parameters, counts: FloatArray, first: FloatArray, second: FloatArray
) -> Statistics:
    """Return the expected moments of all cells, summed over patterns."""
    if theta.covariances.ndim == 2:
        spread = np.where(piece.present[:, None], 0.0, theta.covariances)
        second = second + counts[:, :, None] * spread
    else:
        # Ghahramani and Jordan (1994), sect. 3.1: moments of x_m given x_o
        A, C = _regressions(piece.present, theta)
        first = (A @ first[..., None])[..., 0]
        second = A @ second @ A.mT + counts[..., None, None] * C
    second = second.sum(axis=0)
    if second.ndim == 3:
        second = (second + second.mT) / 2  # rounding of the products is not symmetric
    return counts.sum(axis=0), first.sum(axis=0), second


def _regressions(present: BoolArray, theta: Parameters) -> tuple[FloatArray, FloatArray]:
    """Return (P, K, D, D) A and C of each pattern and component."""
    covariances = theta.covariances
    whiteners = _whiten_patterns(covariances, present)[0]
    is_present = present[:, None, :, None]
    precisions = (whiteners.mT @ whiteners) * (is_present & present[:, None, None])
    A = np.where(is_present, np.eye(present.shape[1]), covariances @ precisions)
    both = ~is_present & ~present[:, None, None]
    return A, np.where(both, covariances - A @ covariances, 0.0)
