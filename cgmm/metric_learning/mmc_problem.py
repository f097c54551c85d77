"""The problem behind Xing's metric: its pairs, its whitened space, and its objective.

:class:`~cgmm.metric_learning.MMC` reads its relations, whitens its data and evaluates metrics here.
Classes imply far too many pairs to list, so a set of pairs has two parts: some by index, and all
pairs within groups of points (Q_P), or between them (Q_N). In coordinates W whitened by the scatter
over Q_P, "must-linked points are near" becomes a trace of at most one. Directions in which no
must-linked points differ are not part of that space: either no cannot-linked points differ along
them, or the objective has no maximum. The objective is then a sum of distances over Q_N, whose
gradient also bounds its maximum. Chapter 12 explains the problem.

=========  =================================================================================
Q_P, Q_N   must-linked and cannot-linked pairs
R          triangular, with Rᵀ R = Σ (x_i - x_j)(x_i - x_j)ᵀ over Q_P, the scatter
W, r       whitening by the scatter, (D, r); its rank
V, L       whitened points; a factor of the metric M = L Lᵀ with ‖L‖ = 1, for a diagonal metric
           a vector, M = diag(L²)
u, d, η    difference of a cannot-linked pair; its length ‖Lᵀ u‖; that length or a floor, whichever
           is larger, because the gradient divides by it
f, G       f = Σ d; gradient of f at M, ½ Σ u uᵀ / η; for a diagonal metric its diagonal
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
# The gradient divides by distances, so distances are raised to at least this share of their mean.
SMALLEST_DISTANCE = 1e-8
EMPTY_PAIRS = np.empty((0, 2), dtype=np.intp)


class Pairs(NamedTuple):
    """A set of unordered pairs: listed ones, and all pairs within, or across, given groups."""

    listed: IntArray
    """(P, 2) indices, each pair once, none of them implied by the groups."""
    groups: Groups
    """Points in groups: for Q_P of two or more points, for Q_N of any size."""


def check_classes(X: FloatArray, y: ArrayLike | None) -> IntArray:
    """Return (N,) integers from -1, the class of each point; other values are numbered."""
    if y is None:
        return np.full(len(X), -1)
    y = column_or_1d(check_array(read_classes(y), ensure_2d=False, dtype=None, input_name="y"))
    check_consistent_length(X, y)
    # Non-negative integers stay as they are, so errors name classes as the user does.
    if np.issubdtype(y.dtype, np.integer) and y.min() >= -1:
        return y.astype(np.intp)
    return number_classes(y)[1]


def check_relations(
    classes: IntArray, must_link: ArrayLike | None, cannot_link: ArrayLike | str | None
) -> tuple[Pairs, Pairs]:
    """Return Q_P and Q_N, neither of them empty, and without contradictions."""
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
    _require_both(near, far)
    return near, far


def _drop_duplicates(pairs: IntArray, groups: IntArray) -> IntArray:
    """Return each unordered pair once, without pairs of one point and pairs implied by groups."""
    i, j = np.sort(pairs.reshape(-1, 2).astype(np.intp), axis=1).T
    new = (i != j) & ((groups[i] < 0) | (groups[j] < 0))
    return np.column_stack(np.divmod(np.unique(i[new] * len(groups) + j[new]), len(groups)))


def _require_both(near: Pairs, far: Pairs) -> None:
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
            "must-link ties."
        )


def sample_far_pairs(far: Pairs, limit: int | None, rng: np.random.RandomState) -> Pairs:
    """Return Q_N, or a sample of ``limit`` of the pairs between its groups if there are more.

    All listed pairs are kept.
    """
    order, ends = far.groups.order, far.groups.ends
    last = np.cumsum(len(order) - ends)
    if limit is None or len(order) == 0 or last[-1] <= limit:
        return far
    # A row forms pairs with all points after the end of its group. Pairs are numbered row by row,
    # so pair k belongs to the row whose range of numbers contains k.
    k = np.sort(sample_without_replacement(last[-1], limit, random_state=rng))
    row = np.searchsorted(last, k, side="right")
    drawn = np.column_stack([order[row], order[len(order) - last[row] + k]])
    return Pairs(np.concatenate([far.listed, drawn]), Groups(order[:0], far.groups.sizes[:0]))


def differences(X: FloatArray, pairs: IntArray) -> Iterator[FloatArray]:
    """Yield (any, D) differences x_i - x_j of the pairs, in blocks."""
    for part in blocks(len(pairs), 4 * X.shape[1], at_least=4 * X.shape[1]):
        yield X[pairs[part, 0]] - X[pairs[part, 1]]


# ------------------------------------------------------------------------------------------- space


class Space(NamedTuple):
    """The directions in which must-linked points differ, and those in which they do not."""

    whitening: FloatArray
    """(D, r) W: the whitened scatter over Q_P is the identity; for a diagonal metric only its
    diagonal is one."""
    scatter: FloatArray
    """(D,) root of each feature's scatter over Q_P, or one if it has no scatter."""
    free: FloatArray
    """(D, q) directions in which no must-linked points differ."""
    slack: FloatArray
    """(q,) largest differences along the free directions that rounding can cause."""
    noise: float
    """Largest whitened difference that rounding can cause."""

    @property
    def rank(self) -> int:
        """Number of dimensions that the metric can use."""
        return self.whitening.shape[1]


def in_units_of_range(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the features divided by their ranges, the ranges, and the rounding noise.

    Features are centred at their medians, so an outlier does not cost the other points digits. A
    constant feature gets the range one.
    """
    ranges = check_ranges(X)
    ranges = np.where(ranges > 0, ranges, 1.0)
    noise = np.maximum(4 * EPS, rounding_noise(X) / ranges)
    return (X - np.median(X, axis=0)) / ranges, ranges, noise


def whiten_by_scatter(X: FloatArray, noise: FloatArray, near: Pairs, diagonal: bool) -> Space:
    """Whiten by the scatter over Q_P, and find the directions without scatter.

    Columns are first divided by their own scatter, so that a feature in small units does not look
    like a constant one.
    """
    R = root_of_scatter(X, near)
    scatter = np.linalg.norm(R, axis=0)
    # The squared rounding error of a number enters the sum of a column twice for a listed pair,
    # and n² times for a group of n points.
    n_errors = 2.0 * len(near.listed) + np.square(near.groups.sizes).sum()
    least = noise * np.sqrt(n_errors)
    varies = scatter > least
    s = np.where(varies, scatter, 1.0)
    scaled, axes = np.diag(1 / s)[:, varies], np.eye(len(s))
    W, flat, leak = scaled, axes[:, :0], 0.0
    if not diagonal:
        cut = np.linalg.norm(least[varies] / s[varies]) + max(X.shape) * EPS
        turn, flat, leak = _split_axes(R[:, varies] / s[varies], cut, X @ scaled)
        W, flat = scaled @ turn, scaled @ flat
    of_data = 2 * np.linalg.norm(noise / s)
    slack = np.concatenate([2 * least[~varies], np.full(flat.shape[1], leak + of_data)])
    whitened_noise = 2 * float(np.linalg.norm(noise @ abs(W)))
    return Space(W, s, np.hstack([axes[:, ~varies], flat]), slack, whitened_noise)


def _split_axes(R: FloatArray, cut: float, X: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the whitened axes of R, its flat axes (of length zero), and errors along those.

    Rounding tilts a flat axis by up to ``cut``, relative to the longest axis. So a difference seems
    to have a component along it of up to ``cut`` times its whitened length.
    """
    _, sigma, axes = np.linalg.svd(R)
    cut *= sigma.max(initial=0.0)
    rank = int((sigma > cut).sum())
    whitened, flat = axes[:rank].T / sigma[:rank], axes[rank:].T
    return whitened, flat, cut * (1 + np.linalg.norm(np.ptp(X @ whitened, axis=0)))


def root_of_scatter(X: FloatArray, near: Pairs) -> FloatArray:
    """Return R by QR, block by block.

    The scatter itself is never formed: its squares would lose small directions.
    """
    R: FloatArray = np.zeros((X.shape[1], X.shape[1]))
    for rows in chain(differences(X, near.listed), _yield_deviations(X, near.groups)):
        R = cast("FloatArray", np.linalg.qr(np.vstack([R, rows]), mode="r"))
    return R


def _yield_deviations(X: FloatArray, groups: Groups) -> Iterator[FloatArray]:
    """Yield √n (x_i - mean) for each point of a group of n, in blocks.

    Over all pairs of a group, Σ (x_i - x_j)(x_i - x_j)ᵀ is n times the scatter about its mean.
    """
    rows, _ = centre_groups(X[groups.order], groups.starts, groups.sizes)
    root_n = np.sqrt(np.repeat(groups.sizes, groups.sizes))
    for part in blocks(len(rows), X.shape[1], at_least=4 * X.shape[1]):
        yield rows[part] * root_n[part, None]


def require_maximum(X: FloatArray, space: Space, far: Pairs) -> None:
    """Raise an error if cannot-linked points differ where must-linked ones agree."""
    order = far.groups.order
    for direction, slack in zip(space.free.T, space.slack, strict=True):
        along = X @ direction
        # Points of one group are must-linked and agree here, so extremes are of different groups.
        candidates = [order[[along[order].argmin(), along[order].argmax()]]] if len(order) else []
        if len(far.listed):
            gaps = abs(along[far.listed[:, 0]] - along[far.listed[:, 1]])
            candidates.append(far.listed[gaps.argmax()])
        for i, j in candidates:
            if abs(along[i] - along[j]) > slack:
                raise ValueError(_explain_unbounded(min(i, j), max(i, j), direction, space))


def _explain_unbounded(i: int, j: int, direction: FloatArray, space: Space) -> str:
    """Return the message that names two points and a direction without must-linked differences."""
    n_dims, rank = space.whitening.shape
    fewer = f", or reduce the data to {rank} dimensions or fewer (PCA, or drop features)"
    return (
        f"the cannot-linked points {i} and {j} differ in a direction, mostly that of feature "
        f"{abs(direction).argmax()}, in which no must-linked points differ (these span {rank} of "
        f"{n_dims} dimensions): the metric could grow along it for ever, and there is no maximum. "
        f"Give more must-links{fewer if rank else ', between points that differ'}."
    )


def require_difference(mean_length: float, space: Space) -> None:
    """Raise an error if cannot-linked points differ by rounding errors only."""
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

    The scale of the metric does not matter.

    Parameters
    ----------
    components : (any, D) array-like
        L with A = Lᵀ L.
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
        If the relations contradict each other or one kind is missing, or if all must-linked points
        coincide under the metric.

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
    # Only differences matter, and they round less without an offset. Outliers do not move medians.
    mapped = (X - np.median(X, axis=0)) @ components.T
    scatter = np.linalg.norm(root_of_scatter(mapped, near))
    if scatter == 0:
        raise ValueError(
            "all must-linked points coincide under this metric: the objective has no value. Give "
            "must-links, or components, that tell them apart."
        )
    return float(Distances(mapped, far, identity_of=mapped).total() / scatter)


class Value(NamedTuple):
    """The objective at one factor, with its gradient and an upper bound."""

    factor: FloatArray
    """(r, r) L, or (r,) for a diagonal metric; of norm one."""
    objective: float
    """f = Σ d over Q_N."""
    gradient: FloatArray
    """(r, r) G, or (r,) its diagonal."""
    upper: float
    """No M of trace one has a larger objective."""


class Distances:
    """The objective f and its gradient, as sums over blocks of Q_N."""

    def __init__(self, V: FloatArray, far: Pairs, identity_of: FloatArray):
        # Identical points coincide under every metric, so their pairs are dropped. They are
        # detected before whitening, because whitening may round equal rows differently.
        i, j = far.listed.T
        self._listed = far.listed[(identity_of[i] != identity_of[j]).any(axis=1)]
        order, self._ends = far.groups.order, far.groups.ends
        self._identity = np.unique(identity_of[order], axis=0, return_inverse=True)[1].ravel()
        self._V, self._grouped = V, V[order]
        self.n_pairs = len(self._listed) + int(sum(apart.sum() for *_, apart in self._rectangles()))
        # This floor prevents divisions by zero until the mean length is known.
        self._floor = np.finfo(float).eps * abs(V).max(initial=1.0)
        self.mean_length = self.total() / max(1, self.n_pairs)
        self._floor = max(
            self._floor, SMALLEST_DISTANCE * self.mean_length / np.sqrt(max(1, V.shape[1]))
        )

    def total(self) -> float:
        """Return Σ ‖u‖, the sum of the distances under the identity."""
        ones = np.ones(self._V.shape[1])
        return float(
            sum(d for d, *_ in chain(self._sum_listed(ones), self._sum_between_groups(ones)))
        )

    def at(self, factor: FloatArray) -> Value:
        """Evaluate a factor, after normalising it."""
        L = factor / np.linalg.norm(factor)
        total, lengths, G = 0.0, 0.0, np.zeros_like(L)
        for d, eta, moment in chain(self._sum_listed(L), self._sum_between_groups(L)):
            total, lengths, G = total + d, lengths + eta, G + 0.5 * moment
        # √q ≤ ½ (q / η + η) for any η > 0, so f(M') ≤ tr(G M') + ½ Σ η ≤ λ_max(G) + ½ Σ η for
        # every M' of trace one. With η = d, the middle term is the tangent of f at M.
        largest = G.max() if G.ndim == 1 else np.linalg.eigvalsh(G)[-1]
        return Value(L, float(total), G, float(largest + 0.5 * lengths))

    def _sum_listed(self, L: FloatArray) -> Iterator[tuple[float, float, FloatArray]]:
        """Yield Σ d, Σ η and Σ u uᵀ / η over blocks of the listed pairs."""
        for u in differences(self._V, self._listed):
            d = _lengths(u, L)
            eta = np.maximum(d, self._floor)
            yield d.sum(), eta.sum(), (1 / eta) @ u**2 if L.ndim == 1 else u.T @ (u / eta[:, None])

    def _sum_between_groups(self, L: FloatArray) -> Iterator[tuple[float, float, FloatArray]]:
        """Yield Σ d, Σ η and Σ u uᵀ / η over blocks of the pairs between groups."""
        V = self._grouped
        mapped, degrees = _map_rows(V, L), np.zeros(len(V))
        for rows, columns, apart in self._rectangles():
            d = cdist(mapped[rows], mapped[columns]) * apart
            eta = np.maximum(d, self._floor)
            w = apart / eta
            degrees[rows] += w.sum(axis=1)
            degrees[columns] += w.sum(axis=0)
            cross = _moment(V[rows], w @ V[columns], L.ndim)
            yield d.sum(), (eta * apart).sum(), -(cross + cross.T)
        # The loop yielded the cross terms of Σ w (v_i - v_j)(v_i - v_j)ᵀ; these are its squares.
        yield 0.0, 0.0, _moment(V * degrees[:, None], V, L.ndim)

    def _rectangles(self) -> Iterator[tuple[slice, slice, BoolArray]]:
        """Yield blocks of the distance matrix that hold each pair once, with a mask of Q_N."""
        ends, identity = self._ends, self._identity
        for rows in blocks(len(ends), len(ends), at_least=16):
            columns = slice(ends[rows.start], len(ends))
            # Points are sorted by group, so the partners of a row are all points after its group.
            apart = np.arange(columns.start, columns.stop) >= ends[rows, None]
            apart &= identity[columns] != identity[rows, None]
            yield rows, columns, apart


def _map_rows(X: FloatArray, L: FloatArray) -> FloatArray:
    """Map rows x to Lᵀ x; a vector L is the diagonal of a matrix."""
    return X * L if L.ndim == 1 else X @ L


def _lengths(u: FloatArray, L: FloatArray) -> FloatArray:
    """Return ‖Lᵀ u‖ of each row."""
    if L.ndim == 1:
        return np.sqrt(u**2 @ L**2)
    z = u @ L
    return np.sqrt(np.einsum("ij,ij->i", z, z))


def _moment(a: FloatArray, b: FloatArray, n_axes: int) -> FloatArray:
    """Return Σ a bᵀ over rows, or only its diagonal."""
    return np.einsum("ij,ij->j", a, b) if n_axes == 1 else a.T @ b
