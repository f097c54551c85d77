"""A Mahalanobis metric from must-links and cannot-links: the method of Xing et al. (2003).

Must-linked points should be near, cannot-linked points far. [barhillel2005, eq. 8] asks for the
metric that makes the squared distances over the must-linked pairs Q_P small while the distances
over the cannot-linked pairs Q_N keep their sum. Both sums are homogeneous in the metric, so one may
as well maximise ::

    f(A) = Σ_{Q_N} ‖x_i - x_j‖_A    subject to    Σ_{Q_P} ‖x_i - x_j‖²_A ≤ 1,  A ⪰ 0

If A does that, then B = A / f(A)² solves eq. 8, whose minimum is 1 / f(A)².

Xing, Ng, Jordan and Russell (*Distance metric learning with application to clustering with
side-information*, NIPS 15) climb by small gradient steps and project back, on one constraint and
the other in turn. Three facts make that unnecessary. In coordinates whitened by the must-links'
scatter the first constraint is tr M ≤ 1. Every factor L of norm one makes a feasible M = L Lᵀ: what
remains is a smooth problem on a sphere, which a quasi-Newton method solves in a dozen steps. And f
is concave: the gradient G at any M bounds the maximum from above by f(M) + λ_max(G) - tr(G M), so
that each answer comes with a certificate. For a diagonal A, λ_max is the largest entry; the rest is
the same.

The maximum often has a low rank. One direction can be the best trade of the two sums, and any other
then only dilutes it: on iris and wine, A flattens the data to a line.

=========  =================================================================================
N, D       number of points x_i, and their dimensions
Q_P, Q_N   must-linked and cannot-linked pairs, each a set of unordered pairs
A          the metric, ‖δ‖²_A = δᵀ A δ
W, V       whitening by the scatter over Q_P, to r ≤ D dimensions; whitened points V = X W
M, L       the metric there, A = W M Wᵀ, and a factor of it: M = L Lᵀ, tr M = ‖L‖² = 1;
           for a diagonal metric L is a vector and M = diag(L²)
u, d, η    difference of a cannot-linked pair in whitened coordinates; its length ‖Lᵀ u‖; the
           same, but not below a floor, as the gradient divides by it
G          gradient of f at M: ½ Σ_{Q_N} u uᵀ / η; for a diagonal metric its diagonal
=========  =================================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain
from numbers import Integral, Real
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.numerics import BoolArray, FloatArray, IntArray, blocks
from cgmm.side_information import SideInformation

__all__ = ["MMC", "objective"]

EPS = np.finfo(float).eps
# No certificate can be closer than the rounding of the sums that it compares.
ROUNDING = 1e-14
# Distances below this part of the mean count as this much in the gradient, which divides by them.
FLOOR = 1e-8
# Differences that take less than this, in numbers, are kept from one iteration to the next: 16 MiB.
KEPT_CELLS = 2**21


class MMC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Metric that keeps cannot-linked points apart and must-linked points near.

    Parameters
    ----------
    diagonal : bool, default=False
        Whether A is diagonal, a weight for each feature, or any positive semi-definite matrix.
    tol : float, default=1e-6
        The search stops when the objective is certainly within this fraction of its maximum.
        Below about 1e-8 rounding may hide from the search what is still to gain.
    max_iter : int, default=1000
        Most iterations.
    max_cannot_links : int or None, default=None
        Most cannot-links that ``y`` or ``cannot_link="rest"`` may imply. Where they imply more,
        this many are drawn at random; None takes all of them, which costs O(N²) time an iteration
        but no more memory than the points.
    random_state : int, RandomState or None, default=None
        Seed of that draw. Nothing else is random.
    verbose : int, default=0
        1: a line an iteration.

    Attributes
    ----------
    components_ : (D, D) array
        L with A = Lᵀ L: distances between transformed points are those of A. Of all such L the one
        that is symmetric where each feature is divided by its scatter over Q_P: so transformed
        points do not depend on the units of the features.
    objective_ : float
        Σ ‖x_i - x_j‖_A over Q_N, where Σ ‖x_i - x_j‖²_A over Q_P is one.
    gap_ : float
        No feasible metric has an objective above ``objective_ + gap_``.
    history_ : (n_iter_,) array
        history_[t] is the best objective when iteration t begins; history_[0] is that of the
        start, the inverse of the scatter over Q_P (RCA's metric, where chunklets are pairs).
    n_iter_ : int
        Number of metrics in ``history_``, the start among them.
    converged_ : bool
        Whether ``gap_`` is at most ``tol * objective_``.
    n_cannot_links_ : int
        Number of pairs in Q_N, without those of two identical points.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The problem is concave, so there are no local maxima and no starts to choose. Distances do not
    depend on the units of the features nor, with a full A, on the axes of the data.

    Xing et al. fit a diagonal A by minimising Σ_{Q_P} ‖·‖²_A - log Σ_{Q_N} ‖·‖_A. That gives half
    of our A: of all its multiples, the one whose first sum is one half.

    Examples
    --------
    Pairs that must be near differ in the second feature, pairs that must be far in the first:

    >>> X = np.array([[0.0, 0.0], [0.1, 3.0], [1.0, 0.0], [1.1, -3.0]])
    >>> metric = MMC(diagonal=True).fit(X, must_link=[[0, 1], [2, 3]], cannot_link=[[0, 2], [1, 3]])
    >>> metric.get_mahalanobis_matrix().round(3)
    array([[50.,  0.],
           [ 0.,  0.]])
    >>> metric.converged_
    True
    """

    _parameter_constraints = {
        "diagonal": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_cannot_links": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        diagonal: bool = False,
        *,
        tol: float = 1e-6,
        max_iter: int = 1000,
        max_cannot_links: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ):
        self.diagonal = diagonal
        self.tol = tol
        self.max_iter = max_iter
        self.max_cannot_links = max_cannot_links
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | str | None = None,
    ) -> Self:
        """Learn the metric.

        Q_P and Q_N are sets, as in the papers: a pair that is given twice, or by ``y`` and by
        index, counts once. Must-links are taken as given, without their transitive closure; to sum
        over all pairs of a chunklet, give it by ``y``.

        Parameters
        ----------
        X : (N, D) array-like
            The points.
        y : (N,) array-like, default=None
            The class of each point, -1 where there is none: two points of one class are
            must-linked, two of different classes cannot-linked. Any other values name classes.
        must_link : (P, 2) int array, default=None
            Pairs of points that belong near.
        cannot_link : (P, 2) int array or "rest", default=None
            Pairs of points that do not. "rest": all pairs that no chain of must-links ties, as
            Xing et al. had it where only must-links were known [barhillel2005, sect. 8.3].

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If relations contradict each other, if there are none of one kind, or if the problem has
            no maximum: cannot-linked points differ in a direction in which no must-linked ones do.
        KeyboardInterrupt
            If interrupted before the first iteration is complete.

        Warns
        -----
        ConvergenceWarning
            If the search stopped, or was interrupted from the keyboard, before it could certify the
            objective to ``tol``; the best metric so far is kept.
        UserWarning
            If there are directions in which no two linked points differ, so that the relations say
            nothing about them; the metric is zero there.
        """
        self._validate_params()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        near, far = _relations(X, _check_y(X, y), must_link, cannot_link)
        far = _at_most(far, self.max_cannot_links, check_random_state(self.random_state))
        X, units = _in_units_of_range(X)
        space = _whiten(X, units, near, self.diagonal)
        _require_maximum(X, space, far)
        distances = _Distances(X @ space.whitening, far, identity_of=X)
        _require_difference(distances, space)
        ascent = _Ascent(distances, self.max_iter, self.tol, self.verbose)
        ascent.run(_centre(space.rank, self.diagonal))
        self._store(ascent, space, units)
        # After everything is stored: the warning may be an error.
        _warn_about(space, ascent)
        return self

    def _store(self, ascent: _Ascent, space: _Space, units: _Units) -> None:
        L, W = ascent.best.factor, space.whitening * space.scatter[:, None]
        # A = W M Wᵀ, with features in units of their scatter.
        root = np.diag(W @ abs(L)) if self.diagonal else _symmetric_root(W @ L)
        self.components_ = root / (space.scatter * units.ranges)
        self.objective_ = ascent.best.objective
        self.gap_ = max(0.0, ascent.upper - self.objective_)
        self.history_ = np.array(ascent.history)
        self.n_iter_ = len(ascent.history)
        self.converged_ = ascent.certain
        self.n_cannot_links_ = ascent.distances.n_pairs

    def transform(self, X: ArrayLike) -> FloatArray:
        """Map points so that Euclidean distances are those of the metric.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, D) array
            ``X @ components_.T``.
        """
        check_is_fitted(self, "components_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ self.components_.T

    def get_mahalanobis_matrix(self) -> FloatArray:
        """The metric itself.

        Returns
        -------
        (D, D) array
            A, symmetric and positive semi-definite, with Σ ‖x_i - x_j‖²_A = 1 over Q_P.
        """
        check_is_fitted(self, "components_")
        return self.components_.T @ self.components_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def objective(
    components: ArrayLike,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | str | None = None,
) -> float:
    """Value of any metric for given relations, whatever its scale: what :class:`MMC` maximises.

    Parameters
    ----------
    components : (any, D) array-like
        L with A = Lᵀ L.
    X : (N, D) array-like
        The points.
    y, must_link, cannot_link
        As in :meth:`MMC.fit`.

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
    near, far = _relations(X, _check_y(X, y), must_link, cannot_link)
    # Differences only: without an offset they round less.
    mapped = (X - X[0]) @ components.T
    scatter = np.linalg.norm(_root_of_scatter(mapped, near))
    if scatter == 0:
        raise ValueError(
            "all must-linked points coincide under this metric: the objective has no value. Give "
            "must-links, or components, that tell them apart."
        )
    return float(_Distances(mapped, far, identity_of=mapped).total() / scatter)


# ---------------------------------------------------------------------------- relations


class _Pairs(NamedTuple):
    """A set of unordered pairs: some by index, and all within, or between, groups of points."""

    pairs: IntArray
    """(P, 2) indices, each pair once, none of them implied by the groups."""
    groups: IntArray
    """(N,) the group of each point, -1 for none."""


def _check_y(X: FloatArray, y: ArrayLike | None) -> IntArray | None:
    """(N,) integers from -1 that name the class of each point; other values are numbered."""
    if y is None:
        return None
    y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"))
    check_consistent_length(X, y)
    if np.issubdtype(y.dtype, np.integer) and y.min() >= -1:
        return y.astype(np.intp)
    values, codes = np.unique(y, return_inverse=True)
    codes = codes.astype(np.intp)
    return np.where(y == -1, -1, codes) if np.issubdtype(values.dtype, np.number) else codes


def _relations(
    X: FloatArray,
    y: IntArray | None,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | str | None,
) -> tuple[_Pairs, _Pairs]:
    """Q_P and Q_N, checked not to contradict each other and not to be empty."""
    rest = isinstance(cannot_link, str)
    if rest and cannot_link != "rest":
        raise ValueError(f'cannot_link is {cannot_link!r}; it must be pairs of points, or "rest".')
    cannot = _NONE if rest or cannot_link is None else np.asarray(cannot_link)
    side = SideInformation.build(len(X), labels=y, must_link=must_link, cannot_link=cannot)
    classes = np.full(len(X), -1) if y is None else y
    near = _Pairs(_distinct(side.must_link, classes), classes)
    far = _Pairs(_distinct(cannot, classes), classes)
    if rest:
        closed = np.concatenate([side.must_link, _stars(classes)])
        far = _Pairs(_NONE, SideInformation.build(len(X), must_link=closed).node_of)
    _require_both(near, far)
    return near, far


_NONE = np.empty((0, 2), dtype=np.intp)


def _distinct(pairs: IntArray, groups: IntArray) -> IntArray:
    """Each unordered pair once, without a point's tie to itself and without what groups imply."""
    i, j = np.sort(pairs.reshape(-1, 2).astype(np.intp), axis=1).T
    new = (i != j) & ((groups[i] < 0) | (groups[j] < 0))
    return np.column_stack(np.divmod(np.unique(i[new] * len(groups) + j[new]), len(groups)))


def _stars(classes: IntArray) -> IntArray:
    """Must-links that tie every member of a class to its first."""
    members = np.flatnonzero(classes >= 0)
    _, first, codes = np.unique(classes[members], return_index=True, return_inverse=True)
    return np.column_stack([members[first[codes]], members])


def _require_both(near: _Pairs, far: _Pairs) -> None:
    """There must be must-links and cannot-links."""
    sizes = np.bincount(near.groups[near.groups >= 0])
    if len(near.pairs) == 0 and sizes.max(initial=0) < 2:
        raise ValueError(
            "there is no must-link: nothing says which distances should be small. Give must_link, "
            "or y with two points of one class."
        )
    if len(far.pairs) == 0 and len(np.unique(far.groups[far.groups >= 0])) < 2:
        raise ValueError(
            "there is no cannot-link: nothing says which distances should be large. Give "
            'cannot_link, or y with two classes, or cannot_link="rest" for all pairs that no '
            "must-link ties."
        )


def _at_most(far: _Pairs, limit: int | None, rng: np.random.RandomState) -> _Pairs:
    """The pairs between groups, or if they are too many a random sample of them."""
    order, ends = _by_group(far.groups)
    last = np.cumsum(len(order) - ends)
    if limit is None or len(order) == 0 or last[-1] <= limit:
        return far
    # Pairs are numbered along rows: the k-th joins the row in whose stretch k falls with one of
    # the points that stand behind the row's group.
    k = np.sort(sample_without_replacement(last[-1], limit, random_state=rng))
    row = np.searchsorted(last, k, side="right")
    drawn = np.column_stack([order[row], order[len(order) - last[row] + k]])
    nobody = np.full(len(far.groups), -1)
    return _Pairs(_distinct(np.concatenate([far.pairs, drawn]), nobody), nobody)


def _by_group(groups: IntArray) -> tuple[IntArray, IntArray]:
    """Points in the order of their groups, and for each the position where its group ends."""
    order = np.argsort(groups, kind="stable")
    order = order[np.searchsorted(groups[order], 0) :]
    return order, np.searchsorted(groups[order], groups[order], side="right")


# ---------------------------------------------------------------------------- whitening


class _Units(NamedTuple):
    """What the data were divided by, and how exact they are."""

    ranges: FloatArray
    """(D,) range of each feature, one where it is constant."""
    noise: FloatArray
    """(D,) rounding of the data, in these units."""


class _Space(NamedTuple):
    """Where the must-links hold the metric, and where they do not."""

    whitening: FloatArray
    """(D, r) W; the scatter over Q_P becomes the identity, or for a diagonal metric its diagonal
    ones."""
    scatter: FloatArray
    """(D,) root of each feature's scatter over Q_P, one where it has none."""
    free: FloatArray
    """(D, q) directions in which no must-linked points differ."""
    slack: FloatArray
    """(q,) differences along them that rounding can make."""
    noise: float
    """Whitened differences that rounding can make."""

    @property
    def rank(self) -> int:
        """The dimensions that the metric can use."""
        return self.whitening.shape[1]


def _in_units_of_range(X: FloatArray) -> tuple[FloatArray, _Units]:
    """Features between -½ and ½, so that nothing depends on their units."""
    with np.errstate(over="ignore"):
        ranges = X.max(axis=0) - X.min(axis=0)
    wrong = np.flatnonzero((ranges > 1e150) | ((ranges > 0) & (ranges < 1e-150)))
    if len(wrong):
        raise ValueError(
            f"column {wrong[0]} spans {ranges[wrong[0]]:.3g}: its squares cannot be represented. "
            "Multiply the data by a constant."
        )
    ranges = np.where(ranges > 0, ranges, 1.0)
    noise = EPS * np.maximum(1, abs(X).max(axis=0) / ranges)
    return (X - X.min(axis=0)) / ranges - 0.5, _Units(ranges, noise)


def _whiten(X: FloatArray, units: _Units, near: _Pairs, diagonal: bool) -> _Space:
    """Coordinates in which the scatter over Q_P is the identity, and the directions without any.

    Columns are first divided by their own scatter, so that a feature in small units is not taken
    for a missing one.
    """
    R = _root_of_scatter(X, near)
    scatter = np.linalg.norm(R, axis=0)
    # Each difference carries the rounding of two numbers; 4 is a margin.
    noise = 4 * units.noise * np.sqrt(_weight(near))
    seen = scatter > noise
    s = np.where(seen, scatter, 1.0)
    scaled, axes = np.diag(1 / s)[:, seen], np.eye(len(s))
    W, flat, leak = scaled, axes[:, :0], 0.0
    if not diagonal:
        cut = np.linalg.norm(noise[seen] / s[seen])
        turned, leak = _principal(R[:, seen] / s[seen], cut + max(X.shape) * EPS, X @ scaled)
        W, flat = (scaled @ part for part in turned)
    of_data = 8 * np.linalg.norm(units.noise / s)
    slack = np.concatenate([2 * noise[~seen], np.full(flat.shape[1], leak + of_data)])
    whitened_noise = 8 * float(np.linalg.norm(units.noise @ abs(W)))
    return _Space(W, s, np.hstack([axes[:, ~seen], flat]), slack, whitened_noise)


def _principal(
    R: FloatArray, cut: float, X: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """Axes of R, split into whitened ones and those of no length; and what leaks into the latter.

    A flat axis is known only as exactly as ``cut``, relative to the longest: a difference seems to
    have a part along it that is ``cut`` times its whitened length. Must-linked ones are below 1.
    """
    _, sigma, axes = np.linalg.svd(R)
    cut *= sigma.max(initial=0.0)
    rank = int((sigma > cut).sum())
    whitened, flat = axes[:rank].T / sigma[:rank], axes[rank:].T
    return (whitened, flat), cut * (1 + np.linalg.norm(np.ptp(X @ whitened, axis=0)))


def _root_of_scatter(X: FloatArray, near: _Pairs) -> FloatArray:
    """R, triangular, with Rᵀ R = Σ (x_i - x_j)(x_i - x_j)ᵀ over Q_P.

    By QR, block by block. The scatter is never formed: small directions would drown in its squares.
    """
    R: FloatArray = np.zeros((X.shape[1], X.shape[1]))
    for rows in chain(_differences(X, near.pairs), _spreads(X, near.groups)):
        R = cast("FloatArray", np.linalg.qr(np.vstack([R, rows]), mode="r"))
    return R


def _differences(X: FloatArray, pairs: IntArray) -> Iterator[FloatArray]:
    """x_i - x_j of the pairs, in blocks."""
    for part in blocks(len(pairs), 4 * X.shape[1], at_least=4 * X.shape[1]):
        yield X[pairs[part, 0]] - X[pairs[part, 1]]


def _spreads(X: FloatArray, groups: IntArray) -> Iterator[FloatArray]:
    """√n (x_i - mean) for each point of a group of n, in blocks.

    Over all pairs of a group, Σ (x_i - x_j)(x_i - x_j)ᵀ is n times the scatter about its mean.
    """
    order, ends = _by_group(groups)
    if len(order) == 0:
        return
    stops, group, n = np.unique(ends, return_inverse=True, return_counts=True)
    means = np.add.reduceat(X[order], stops - n) / n[:, None]
    for part in blocks(len(order), X.shape[1], at_least=4 * X.shape[1]):
        yield (X[order[part]] - means[group[part]]) * np.sqrt(n[group[part], None])


def _weight(near: _Pairs) -> float:
    """How many times the square of a number's rounding enters a column of the scatter."""
    sizes = np.bincount(near.groups[near.groups >= 0]).astype(float)
    return 2.0 * len(near.pairs) + float(np.square(sizes).sum())


# ---------------------------------------------------------------------------- no maximum


def _require_maximum(X: FloatArray, space: _Space, far: _Pairs) -> None:
    """Cannot-linked points must not differ where must-linked ones agree: A could grow for ever."""
    order, _ = _by_group(far.groups)
    for direction, slack in zip(space.free.T, space.slack, strict=True):
        along = X @ direction
        # Points of one group are must-linked and agree here: extremes are of different groups.
        candidates = [order[[along[order].argmin(), along[order].argmax()]]] if len(order) else []
        if len(far.pairs):
            gaps = abs(along[far.pairs[:, 0]] - along[far.pairs[:, 1]])
            candidates.append(far.pairs[gaps.argmax()])
        for i, j in candidates:
            if abs(along[i] - along[j]) > slack:
                raise ValueError(_explain_unbounded(min(i, j), max(i, j), direction, space))


def _explain_unbounded(i: int, j: int, direction: FloatArray, space: _Space) -> str:
    n_dims, rank = space.whitening.shape
    fewer = f", or reduce the data to {rank} dimensions or fewer (PCA, or drop features)"
    return (
        f"the cannot-linked points {i} and {j} differ in a direction, mostly that of feature "
        f"{abs(direction).argmax()}, in which no must-linked points differ (these span {rank} of "
        f"{n_dims} dimensions): the metric could grow along it for ever, and there is no maximum. "
        f"Give more must-links{fewer if rank else ', between points that differ'}."
    )


def _require_difference(distances: _Distances, space: _Space) -> None:
    """Some cannot-linked points must differ by more than rounding."""
    if distances.mean_length <= space.noise * np.sqrt(space.rank):
        raise ValueError(
            "all cannot-linked pairs are pairs of identical points, or of points that differ by "
            "rounding alone: no metric can tell them apart. Give cannot-links between points that "
            "differ."
        )


# ---------------------------------------------------------------------------- objective


class _Value(NamedTuple):
    """The objective at one factor, and what its gradient says."""

    factor: FloatArray
    """(r, r) L, or (r,) for a diagonal metric; of norm one."""
    objective: float
    """f = Σ_D d."""
    gradient: FloatArray
    """(r, r) G, or (r,) its diagonal."""
    upper: float
    """No M of trace one has a larger objective."""


class _Distances:
    """f and its gradient, over blocks of Q_N: only of few pairs are the differences kept."""

    def __init__(self, V: FloatArray, far: _Pairs, identity_of: FloatArray):
        # Identical points stay so under every metric, and their difference has no direction.
        # Asked before whitening, which may round equal rows differently.
        i, j = far.pairs.T
        self._pairs = far.pairs[(identity_of[i] != identity_of[j]).any(axis=1)]
        order, self._ends = _by_group(far.groups)
        self._identity = np.unique(identity_of[order], axis=0, return_inverse=True)[1].ravel()
        self._V, self._grouped, self._groups = V, V[order], far.groups[order]
        self.n_pairs = len(self._pairs) + int(sum(apart.sum() for *_, apart in self._rectangles()))
        few = self._pairs.size * V.shape[1] < KEPT_CELLS
        self._kept = list(_differences(V, self._pairs)) if few else []
        # Until the lengths are known, just enough to divide by.
        self._floor = EPS * abs(V).max(initial=1.0)
        self.mean_length = self.total() / max(1, self.n_pairs)
        self._floor = max(self._floor, FLOOR * self.mean_length / np.sqrt(max(1, V.shape[1])))

    def total(self) -> float:
        """Σ ‖u‖, the sum of the distances as they are."""
        ones = np.ones(self._V.shape[1])
        return float(sum(d for d, *_ in chain(self._listed(ones), self._between(ones))))

    def at(self, factor: FloatArray) -> _Value:
        """The value at a factor, which is brought to norm one."""
        L = factor / np.linalg.norm(factor)
        total, lengths, G = 0.0, 0.0, np.zeros_like(L)
        for d, eta, moment in chain(self._listed(L), self._between(L)):
            total, lengths, G = total + d, lengths + eta, G + 0.5 * moment
        # √q ≤ ½ (q / η + η) for any η > 0, so that f(M') ≤ tr(G M') + ½ Σ η ≤ λ_max(G) + ½ Σ η for
        # every M' of trace one. With η = d it is the tangent of f at M.
        largest = G.max() if G.ndim == 1 else np.linalg.eigvalsh(G)[-1]
        return _Value(L, float(total), G, float(largest + 0.5 * lengths))

    def _listed(self, L: FloatArray) -> Iterator[tuple[float, float, FloatArray]]:
        """Σ d, Σ η and Σ u uᵀ / η over blocks of the pairs that are given by index."""
        for u in self._kept or _differences(self._V, self._pairs):
            d = _lengths(u, L)
            eta = np.maximum(d, self._floor)
            yield d.sum(), eta.sum(), (1 / eta) @ u**2 if L.ndim == 1 else u.T @ (u / eta[:, None])

    def _between(self, L: FloatArray) -> Iterator[tuple[float, float, FloatArray]]:
        """The same over all pairs between groups, a few rows of the distance matrix at a time."""
        V = self._grouped
        mapped, degrees = _times(V, L), np.zeros(len(V))
        for rows, columns, apart in self._rectangles():
            d = cdist(mapped[rows], mapped[columns]) * apart
            eta = np.maximum(d, self._floor)
            w = apart / eta
            degrees[rows] += w.sum(axis=1)
            degrees[columns] += w.sum(axis=0)
            cross = _moment(V[rows], w @ V[columns], L.ndim)
            yield d.sum(), (eta * apart).sum(), -(cross + cross.T)
        # Σ w (v_i - v_j)(v_i - v_j)ᵀ: the squares, of which the cross terms above were taken.
        yield 0.0, 0.0, _moment(V * degrees[:, None], V, L.ndim)

    def _rectangles(self) -> Iterator[tuple[slice, slice, BoolArray]]:
        """Rows and columns of the distance matrix that hold each pair once, and which count."""
        groups, identity = self._groups, self._identity
        for rows in blocks(len(groups), len(groups), at_least=16):
            columns = slice(self._ends[rows.start], len(groups))
            # Of points sorted by group, those behind a row's group are its partners.
            apart = groups[columns] > groups[rows, None]
            apart &= identity[columns] != identity[rows, None]
            yield rows, columns, apart


def _times(X: FloatArray, L: FloatArray) -> FloatArray:
    """Rows x mapped to Lᵀ x, where a vector L stands for a diagonal matrix."""
    return X * L if L.ndim == 1 else X @ L


def _lengths(u: FloatArray, L: FloatArray) -> FloatArray:
    """‖Lᵀ u‖ of each row."""
    if L.ndim == 1:
        return np.sqrt(u**2 @ L**2)
    z = u @ L
    return np.sqrt(np.einsum("ij,ij->i", z, z))


def _moment(a: FloatArray, b: FloatArray, n_axes: int) -> FloatArray:
    """Σ a bᵀ over rows, or only its diagonal."""
    return np.einsum("ij,ij->j", a, b) if n_axes == 1 else a.T @ b


# ---------------------------------------------------------------------------- search


class _Ascent:
    """The search: L-BFGS on the factor, and a step that needs no rank where that is stuck."""

    def __init__(self, distances: _Distances, max_iter: int, tol: float, verbose: int):
        self.distances = distances
        self.max_iter, self.tol, self.verbose = max_iter, max(tol, ROUNDING), verbose
        # Unset until the first look, which is the first thing that a run does.
        self.best: _Value = None  # type: ignore[assignment]
        self.upper = np.inf
        self.history: list[float] = []
        self.interrupted = False

    @property
    def certain(self) -> bool:
        """Whether the best objective is within tol of every other."""
        return bool(self.upper - self.best.objective <= self.tol * self.best.objective)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do, or no iteration left to do it."""
        return self.certain or len(self.history) >= self.max_iter

    def run(self, start: FloatArray) -> None:
        """Climb from a factor until the objective is certain, or no step gains any more."""
        try:
            self._look(start)
            self._record()
            gains = True
            while gains and not self.done:
                before = self.best.objective
                self._quasi_newton()
                if not self.done:
                    self._towards_vertex()
                gains = self.best.objective > before * (1 + 4 * EPS)
        except KeyboardInterrupt:
            # Nothing yet but the start.
            if len(self.history) < 2:
                raise
            self.interrupted = True

    def _look(self, factor: FloatArray) -> _Value:
        """Evaluate; remember the best factor, and the lowest of the upper bounds."""
        value = self.distances.at(factor)
        if self.best is None or value.objective > self.best.objective:
            self.best = value
        self.upper = min(self.upper, value.upper)
        return value

    def _record(self) -> None:
        self.history.append(self.best.objective)
        if self.verbose:
            excess = self.upper / self.best.objective - 1
            print(
                f"  iteration {len(self.history) - 1:4d}   objective {self.best.objective:.8g}   "
                f"maximum at most {excess:.1e} higher"
            )

    def _quasi_newton(self) -> None:
        """Maximise log f(L / ‖L‖), which has no constraint and no scale, from the best factor."""
        shape = self.best.factor.shape

        def loss(x: FloatArray) -> tuple[float, FloatArray]:
            value = self._look(x.reshape(shape))
            L = value.factor
            GL = value.gradient * L if L.ndim == 1 else value.gradient @ L
            slope = 2 * GL / value.objective - L
            return -np.log(value.objective), -slope.ravel() / np.linalg.norm(x)

        def each_iteration(_: FloatArray) -> None:
            self._record()
            if self.done:
                raise StopIteration

        options: Any = {"maxiter": self.max_iter, "maxfun": np.inf, "ftol": 0.0, "gtol": 0.0}
        # The stubs want the callback's argument to be called xk.
        callback: Any = each_iteration
        x = self.best.factor.ravel()
        minimize(loss, x, jac=True, method="L-BFGS-B", callback=callback, options=options)

    def _towards_vertex(self) -> None:
        """Mix M with the rank-one metric to which f rises most: a step of Frank and Wolfe.

        A factor that has lost a direction has no slope into it; this step finds it again, and it
        gains whenever there is a gap.
        """
        value = self.best
        vertex = _vertex(value.gradient)
        for t in 0.5 ** np.arange(1, 40):
            if self._look(_mixed(value.factor, vertex, t)).objective > value.objective:
                break
        self._record()


def _centre(rank: int, diagonal: bool) -> FloatArray:
    """A factor of the identity's direction: the metric that whitens by S."""
    return np.ones(rank) if diagonal else np.eye(rank)


def _vertex(G: FloatArray) -> FloatArray:
    """The unit factor of rank one along which the gradient is steepest."""
    if G.ndim == 1:
        return np.eye(len(G))[G.argmax()]
    return np.linalg.eigh(G)[1][:, -1]


def _mixed(L: FloatArray, vertex: FloatArray, t: float) -> FloatArray:
    """A factor of (1 - t) M + t v vᵀ."""
    if L.ndim == 1:
        return np.sqrt((1 - t) * L**2 + t * vertex**2)
    U, s, _ = np.linalg.svd(np.column_stack([np.sqrt(1 - t) * L, np.sqrt(t) * vertex]))
    return U * s


def _symmetric_root(B: FloatArray) -> FloatArray:
    """(B Bᵀ)^½ without the squares, in which small eigenvalues would drown."""
    used = B.any(axis=1)
    axes, s, _ = np.linalg.svd(B[used], full_matrices=False)
    root = np.zeros((len(B), len(B)))
    # Features that the metric does not use keep an exact zero.
    root[np.ix_(used, used)] = (axes * s) @ axes.T
    return root


# ---------------------------------------------------------------------------- warnings


def _warn_about(space: _Space, ascent: _Ascent) -> None:
    """Say what the user should know about the answer."""
    n_dims, rank = space.whitening.shape
    if rank < n_dims:
        warnings.warn(
            f"linked points differ in {rank} of {n_dims} dimensions only (some feature is constant "
            "or depends on others); the metric is zero in the rest.",
            UserWarning,
            stacklevel=3,
        )
    excess = ascent.upper / ascent.best.objective - 1
    known = f"the maximum may be a fraction of {excess:.1e} above objective_"
    if ascent.interrupted:
        n_iter = len(ascent.history) - 1
        _warn(f"MMC was interrupted; the best of {n_iter} iterations is kept, and {known}.")
    elif not ascent.certain and len(ascent.history) >= ascent.max_iter:
        _warn(
            f"MMC did not converge in {ascent.max_iter} iterations; {known}. Increase max_iter or "
            "tol."
        )
    elif not ascent.certain:
        _warn(f"MMC stopped where rounding hides any gain; {known}. Increase tol.")


def _warn(message: str) -> None:
    """A ConvergenceWarning that points at the caller of ``fit``."""
    warnings.warn(message, ConvergenceWarning, stacklevel=4)
