"""Define the optimisation problem of Xing's metric: pairs, whitened space, and objective.

:class:`~cgmm.metric_learning.MMC` checks its relations, whitens its data and evaluates metrics with
these functions. Labels imply too many pairs for a list, so a set of pairs has two parts: a list,
and all pairs of points within the same group (for Q_P), or in different groups (for Q_N). In
coordinates that are whitened by the scatter over Q_P, the constraint on must-linked points is that
the trace of the metric is at most one. Directions in which no must-linked points differ are not
part of this space: either no cannot-linked points differ along them, or the objective has no
maximum. The objective is a sum of distances over Q_N; its gradient also gives an upper bound on its
maximum. Chapter 12 explains the problem.

=========  =================================================================================
Q_P, Q_N   sets of must-linked and of cannot-linked pairs
R          triangular matrix with Rᵀ R = Σ (x_i - x_j)(x_i - x_j)ᵀ over Q_P, the scatter
W, r       (D, r) map that whitens the scatter, and its rank
V          (N, r) whitened points
M, L       a metric in the whitened space and its factor: M = L Lᵀ with ‖L‖ = 1; for a diagonal
           metric L is a vector and M = diag(L²)
u, d       difference of a cannot-linked pair, and its length ‖Lᵀ u‖
η          the length d or a positive minimum, whichever is larger, because G divides by it
f, G       objective f = Σ d, and its gradient at M, ½ Σ u uᵀ / η; for a diagonal metric G is the
           diagonal of this matrix
=========  =================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.random import sample_without_replacement

from cgmm.metric_learning.chunklets import (
    Groups,
    centre_groups,
    close_chunklets,
    group_points,
    rounding_noise,
)  # fmt: skip
from cgmm.network import SideInformation, number_classes
from cgmm.network.labels import read_classes
from cgmm.numerics import BoolArray, FloatArray, IntArray, blocks, check_pairs, check_ranges

EPS = np.finfo(float).eps
# The gradient divides by distances, so smaller distances are replaced by this share of their mean.
SMALLEST_DISTANCE = 1e-8
EMPTY_PAIRS = np.empty((0, 2), dtype=np.intp)


class Pairs(NamedTuple):
    """Set of unordered pairs: a list, and all pairs within groups (Q_P) or between groups (Q_N)."""

    listed: IntArray
    """(P, 2) indices of listed pairs, without duplicates and without pairs implied by groups."""
    groups: Groups
    """Groups of points: of two or more points for Q_P, of any size for Q_N."""


def check_classes(X: FloatArray, y: ArrayLike | None) -> IntArray:
    """Return the (N,) class of each point as an integer, -1 for none."""
    if y is None:
        return np.full(len(X), -1)
    y = column_or_1d(check_array(read_classes(y), ensure_2d=False, dtype=None, input_name="y"))
    check_consistent_length(X, y)
    # Keep integers unchanged, so that error messages use the user's names of classes.
    if np.issubdtype(y.dtype, np.integer) and y.min() >= -1:
        return y.astype(np.intp)
    return number_classes(y)[1]


def check_relations(
    classes: IntArray, must_link: ArrayLike | None, cannot_link: ArrayLike | str | None
) -> tuple[Pairs, Pairs]:
    """Return Q_P and Q_N; raise an error if one is empty or if they contradict each other."""
    is_rest = isinstance(cannot_link, str)
    if is_rest and cannot_link != "rest":
        raise ValueError(f'cannot_link is {cannot_link!r}; it must be pairs of points, or "rest".')
    cannot = EMPTY_PAIRS if is_rest else check_pairs("cannot_link", cannot_link, len(classes))
    labels = classes if classes.max() >= 0 else None
    known: dict[str, Any] = {"labels": labels, "must_link": must_link, "cannot_link": cannot}
    side = SideInformation.build(len(classes), **known)
    near = Pairs(_drop_duplicates(side.must_link, classes), group_points(classes))
    if is_rest:
        far = Pairs(EMPTY_PAIRS, group_points(close_chunklets(classes, side.must_link).node_of, 1))
    else:
        far = Pairs(_drop_duplicates(cannot, classes), group_points(classes, 1))
    _check_not_empty(near, far)
    return near, far


def _drop_duplicates(pairs: IntArray, groups: IntArray) -> IntArray:
    """Return unordered pairs without duplicates, pairs (i, i), and pairs implied by groups."""
    i, j = np.sort(pairs.reshape(-1, 2).astype(np.intp), axis=1).T
    is_new = (i != j) & ((groups[i] < 0) | (groups[j] < 0))
    return np.column_stack(np.divmod(np.unique(i[is_new] * len(groups) + j[is_new]), len(groups)))


def _check_not_empty(near: Pairs, far: Pairs) -> None:
    """Raise an error unless there are both must-links and cannot-links."""
    if len(near.listed) == 0 and len(near.groups.sizes) == 0:
        raise ValueError(
            "there is no must-link: nothing says which distances should be small. Give must_link, "
            "or y with two points of one class."
        )
    if len(far.listed) == 0 and len(far.groups.sizes) < 2:
        raise ValueError(
            "there is no cannot-link: nothing says which distances should be large. Give "
            'cannot_link, or y with two classes, or cannot_link="rest" for all pairs that no '
            "must-link connects."
        )


def sample_far_pairs(far: Pairs, limit: int | None, rng: np.random.RandomState) -> Pairs:
    """Return Q_N with all listed pairs, but at most ``limit`` of the pairs between groups.

    If there are more pairs between groups, a random sample replaces them.
    """
    order, ends = far.groups.order, far.groups.ends
    n_pairs_up_to = np.cumsum(len(order) - ends)
    if limit is None or len(order) == 0 or n_pairs_up_to[-1] <= limit:
        return far
    # Row number r of ``order`` forms pairs with all rows after the end of its group. Pairs are
    # numbered row by row, so the cumulative numbers of pairs show which row pair k belongs to.
    k = np.sort(sample_without_replacement(n_pairs_up_to[-1], limit, random_state=rng))
    row = np.searchsorted(n_pairs_up_to, k, side="right")
    sampled = np.column_stack([order[row], order[len(order) - n_pairs_up_to[row] + k]])
    return Pairs(np.concatenate([far.listed, sampled]), Groups(order[:0], far.groups.sizes[:0]))


def yield_differences(X: FloatArray, pairs: IntArray) -> Iterator[FloatArray]:
    """Yield the differences x_i - x_j of all pairs, in blocks of rows."""
    for part in blocks(len(pairs), 4 * X.shape[1], at_least=4 * X.shape[1]):
        yield X[pairs[part, 0]] - X[pairs[part, 1]]


# ------------------------------------------------------------------------------------------- space


class Space(NamedTuple):
    """Whitening by the scatter of must-linked points, and the directions without such scatter."""

    whitening: FloatArray
    """(D, r) W: the whitened scatter over Q_P is the identity matrix; for a diagonal metric only
    its diagonal elements are one."""
    scatter: FloatArray
    """(D,) square root of each feature's scatter over Q_P, or one if it has no scatter."""
    free: FloatArray
    """(D, q) directions in which no must-linked points differ."""
    slack: FloatArray
    """(q,) largest differences along the free directions that rounding errors can cause."""
    noise: float
    """Largest whitened difference that rounding errors can cause."""

    @property
    def rank(self) -> int:
        """Number of dimensions of the whitened space."""
        return self.whitening.shape[1]


def divide_by_range(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return centred features divided by their ranges, the ranges, and bounds of rounding errors.

    Features are centred at their medians, because a mean far from most points (due to an outlier)
    would cost them precision. The range of a constant feature is set to one.
    """
    ranges = check_ranges(X)
    ranges = np.where(ranges > 0, ranges, 1.0)
    noise = np.maximum(4 * EPS, rounding_noise(X) / ranges)
    return (X - np.median(X, axis=0)) / ranges, ranges, noise


def whiten_by_scatter(X: FloatArray, noise: FloatArray, near: Pairs, diagonal: bool) -> Space:
    """Whiten by the scatter over Q_P, and find the directions without scatter.

    Features are first divided by the root of their own scatter, so that a feature in small units is
    not mistaken for a constant one.
    """
    R = compute_scatter_root(X, near)
    scatter = np.linalg.norm(R, axis=0)
    # The scatter of a feature contains two squared rounding errors per listed pair, and n² per
    # group of n points.
    n_errors = 2.0 * len(near.listed) + np.square(near.groups.sizes).sum()
    max_error = noise * np.sqrt(n_errors)
    varies = scatter > max_error
    s = np.where(varies, scatter, 1.0)
    scaled, axes = np.diag(1 / s)[:, varies], np.eye(len(s))
    W, flat, flat_error = scaled, axes[:, :0], 0.0
    if not diagonal:
        tol = np.linalg.norm(max_error[varies] / s[varies]) + max(X.shape) * EPS
        rotation, flat, flat_error = _split_axes(R[:, varies] / s[varies], tol, X @ scaled)
        W, flat = scaled @ rotation, scaled @ flat
    data_error = 2 * np.linalg.norm(noise / s)
    slack = np.concatenate(
        [2 * max_error[~varies], np.full(flat.shape[1], flat_error + data_error)]
    )
    whitened_noise = 2 * float(np.linalg.norm(noise @ abs(W)))
    return Space(W, s, np.hstack([axes[:, ~varies], flat]), slack, whitened_noise)


def _split_axes(R: FloatArray, tol: float, X: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return whitened axes with scatter, axes without scatter, and the largest error along these.

    Rounding errors rotate an axis without scatter by up to ``tol``. So a difference may seem to
    have a component along this axis of up to ``tol`` times its whitened length.
    """
    _, sigma, axes = np.linalg.svd(R)
    tol *= sigma.max(initial=0.0)
    rank = int((sigma > tol).sum())
    whitened, flat = axes[:rank].T / sigma[:rank], axes[rank:].T
    return whitened, flat, tol * (1 + np.linalg.norm(np.ptp(X @ whitened, axis=0)))


def compute_scatter_root(X: FloatArray, near: Pairs) -> FloatArray:
    """Return the triangular root R of the scatter, by a QR decomposition in blocks.

    The scatter itself is never computed, because squaring would lose directions of small scatter.
    """
    R: FloatArray = np.zeros((X.shape[1], X.shape[1]))
    for rows in chain(yield_differences(X, near.listed), _yield_deviations(X, near.groups)):
        R = cast("FloatArray", np.linalg.qr(np.vstack([R, rows]), mode="r"))
    return R


def _yield_deviations(X: FloatArray, groups: Groups) -> Iterator[FloatArray]:
    """Yield √n (x_i - mean) for each point of a group of n points, in blocks of rows.

    The sum of (x_i - x_j)(x_i - x_j)ᵀ over all pairs of a group is n times the scatter of the group
    about its mean.
    """
    rows, _ = centre_groups(X[groups.order], groups.starts, groups.sizes)
    root_n = np.sqrt(np.repeat(groups.sizes, groups.sizes))
    for part in blocks(len(rows), X.shape[1], at_least=4 * X.shape[1]):
        yield rows[part] * root_n[part, None]


def check_maximum_exists(X: FloatArray, space: Space, far: Pairs) -> None:
    """Raise an error if cannot-linked points differ in a direction without must-linked scatter."""
    order = far.groups.order
    for direction, slack in zip(space.free.T, space.slack, strict=True):
        x = X @ direction
        # Must-linked points have equal x, so minimum and maximum belong to different groups.
        candidates = [order[[x[order].argmin(), x[order].argmax()]]] if len(order) else []
        if len(far.listed):
            gaps = abs(x[far.listed[:, 0]] - x[far.listed[:, 1]])
            candidates.append(far.listed[gaps.argmax()])
        for i, j in candidates:
            if abs(x[i] - x[j]) > slack:
                raise ValueError(_explain_unbounded(min(i, j), max(i, j), direction, space))


def _explain_unbounded(i: int, j: int, direction: FloatArray, space: Space) -> str:
    """Return the message that the objective has no maximum, because of points i and j."""
    n_dims, rank = space.whitening.shape
    fewer = f", or reduce the data to {rank} dimensions or fewer (PCA, or drop features)"
    return (
        f"the cannot-linked points {i} and {j} differ in a direction, mostly that of feature "
        f"{abs(direction).argmax()}, in which no must-linked points differ (these span {rank} of "
        f"{n_dims} dimensions): the metric could grow along it for ever, and there is no maximum. "
        f"Give more must-links{fewer if rank else ', between points that differ'}."
    )


def check_differences(mean_length: float, space: Space) -> None:
    """Raise an error if cannot-linked points are equal, apart from rounding errors."""
    if mean_length <= space.noise * np.sqrt(space.rank):
        raise ValueError(
            "all cannot-linked pairs are pairs of identical points, or of points that differ by "
            "rounding alone: no metric can tell them apart. Give cannot-links between points that "
            "differ."
        )


# --------------------------------------------------------------------------------------- objective


def objective(
    components: ArrayLike,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | str | None = None,
) -> float:
    """Compute the objective of :class:`~cgmm.metric_learning.MMC` for any metric.

    The result does not depend on the scale of the metric.

    Parameters
    ----------
    components : (any, D) array-like
        L, which defines the metric A = Lᵀ L.
    X : (N, D) array-like
        The points.
    y, must_link, cannot_link
        As in :meth:`cgmm.metric_learning.MMC.fit`.

    Returns
    -------
    float
        Σ_{Q_N} ‖x_i - x_j‖_A / (Σ_{Q_P} ‖x_i - x_j‖²_A)^½.

    Raises
    ------
    ValueError
        If relations contradict each other, if there are no must-links or no cannot-links, or if the
        distance of all must-linked points is zero.

    Examples
    --------
    >>> X = [[0, 0], [3, 4], [5, 12]]
    >>> objective(np.eye(2), X, must_link=[[0, 1]], cannot_link=[[0, 2]])
    2.6
    """
    X = check_array(X, dtype=np.float64, input_name="X")
    components = check_array(components, dtype=np.float64, input_name="components")
    if components.shape[1] != X.shape[1]:
        raise ValueError(
            f"components has {components.shape[1]} columns, but the points have {X.shape[1]} "
            "features; give L of shape (any, D)."
        )
    near, far = check_relations(check_classes(X, y), must_link, cannot_link)
    # Subtract an offset, because differences of small numbers have smaller rounding errors. Use the
    # median, because outliers do not move it.
    mapped = (X - np.median(X, axis=0)) @ components.T
    scatter = np.linalg.norm(compute_scatter_root(mapped, near))
    if scatter == 0:
        raise ValueError(
            "all must-linked points coincide under this metric: the objective has no value. Give "
            "must-links, or components, under which they differ."
        )
    return float(Distances(mapped, far, identity_of=mapped).compute_total() / scatter)


class Value(NamedTuple):
    """Value of the objective at one factor L, with the gradient and an upper bound."""

    factor: FloatArray
    """(r, r) L, or (r,) for a diagonal metric; its norm is one."""
    objective: float
    """f = Σ d over Q_N."""
    gradient: FloatArray
    """(r, r) gradient G, or its (r,) diagonal for a diagonal metric."""
    upper: float
    """Upper bound on the objective of any metric M with trace one."""


class Distances:
    """Compute the objective f and its gradient, as sums over blocks of Q_N.

    ``identity_of`` has one row per point; points with equal rows are treated as identical.
    """

    def __init__(self, V: FloatArray, far: Pairs, identity_of: FloatArray):
        # Drop pairs of identical points, whose distance is zero under any metric. Compare points
        # before whitening, because whitening may round equal rows differently.
        i, j = far.listed.T
        self._listed = far.listed[(identity_of[i] != identity_of[j]).any(axis=1)]
        order, self._ends = far.groups.order, far.groups.ends
        self._identity = np.unique(identity_of[order], axis=0, return_inverse=True)[1].ravel()
        self._V, self._grouped = V, V[order]
        n_between = sum(is_pair.sum() for *_, is_pair in self._yield_blocks())
        self.n_pairs = len(self._listed) + int(n_between)
        # This minimum prevents divisions by zero until the mean length is known.
        self._min_distance = np.finfo(float).eps * abs(V).max(initial=1.0)
        self.mean_length = self.compute_total() / max(1, self.n_pairs)
        share = SMALLEST_DISTANCE / np.sqrt(max(1, V.shape[1]))
        self._min_distance = max(self._min_distance, share * self.mean_length)

    def compute_total(self) -> float:
        """Return Σ ‖u‖, the sum of all distances if the metric is the identity matrix."""
        ones = np.ones(self._V.shape[1])
        return float(
            sum(d for d, *_ in chain(self._sum_listed(ones), self._sum_between_groups(ones)))
        )

    def evaluate(self, factor: FloatArray) -> Value:
        """Return the objective, its gradient and an upper bound, after normalising the factor."""
        L = factor / np.linalg.norm(factor)
        total, sum_of_eta, G = 0.0, 0.0, np.zeros_like(L)
        for d, eta, moment in chain(self._sum_listed(L), self._sum_between_groups(L)):
            total, sum_of_eta, G = total + d, sum_of_eta + eta, G + 0.5 * moment
        # Bound the maximum of f over all M' with trace one: since √q ≤ ½ (q / η + η) for any η > 0,
        # f(M') ≤ tr(G M') + ½ Σ η ≤ λ_max(G) + ½ Σ η, with q the squared distance of a pair
        # under M'. If η is its distance d under M, the middle term is the tangent of f at M.
        largest = G.max() if G.ndim == 1 else np.linalg.eigvalsh(G)[-1]
        return Value(L, float(total), G, float(largest + 0.5 * sum_of_eta))

    def _sum_listed(self, L: FloatArray) -> Iterator[tuple[float, float, FloatArray]]:
        """Yield Σ d, Σ η and Σ u uᵀ / η over blocks of the listed pairs."""
        for u in yield_differences(self._V, self._listed):
            d = _compute_lengths(u, L)
            eta = np.maximum(d, self._min_distance)
            yield d.sum(), eta.sum(), (1 / eta) @ u**2 if L.ndim == 1 else u.T @ (u / eta[:, None])

    def _sum_between_groups(self, L: FloatArray) -> Iterator[tuple[float, float, FloatArray]]:
        """Yield Σ d, Σ η and Σ u uᵀ / η over blocks of the pairs between groups."""
        V = self._grouped
        mapped, degrees = _map_rows(V, L), np.zeros(len(V))
        for rows, columns, is_pair in self._yield_blocks():
            d = cdist(mapped[rows], mapped[columns]) * is_pair
            eta = np.maximum(d, self._min_distance)
            w = is_pair / eta
            degrees[rows] += w.sum(axis=1)
            degrees[columns] += w.sum(axis=0)
            cross = _sum_products(V[rows], w @ V[columns], L.ndim)
            yield d.sum(), (eta * is_pair).sum(), -(cross + cross.T)
        # The loop yields the cross terms of Σ w (v_i - v_j)(v_i - v_j)ᵀ, so add the squares.
        yield 0.0, 0.0, _sum_products(V * degrees[:, None], V, L.ndim)

    def _yield_blocks(self) -> Iterator[tuple[slice, slice, BoolArray]]:
        """Yield (rows, columns, mask of pairs in Q_N) for blocks of the distance matrix."""
        ends, identity = self._ends, self._identity
        for rows in blocks(len(ends), len(ends), at_least=16):
            columns = slice(ends[rows.start], len(ends))
            # Points are sorted by group; each forms pairs with all points after its group.
            is_pair = np.arange(columns.start, columns.stop) >= ends[rows, None]
            is_pair &= identity[columns] != identity[rows, None]
            yield rows, columns, is_pair


def _map_rows(X: FloatArray, L: FloatArray) -> FloatArray:
    """Return Lᵀ x for each row x of X, where a vector L stands for a diagonal matrix."""
    return X * L if L.ndim == 1 else X @ L


def _compute_lengths(u: FloatArray, L: FloatArray) -> FloatArray:
    """Return ‖Lᵀ u‖ for each row u, where a vector L stands for a diagonal matrix."""
    if L.ndim == 1:
        return np.sqrt(u**2 @ L**2)
    z = u @ L
    return np.sqrt(np.einsum("ij,ij->i", z, z))


def _sum_products(a: FloatArray, b: FloatArray, n_axes: int) -> FloatArray:
    """Return Σ a bᵀ over the rows of a and b, or only its diagonal if ``n_axes`` is one."""
    return np.einsum("ij,ij->j", a, b) if n_axes == 1 else a.T @ b
