"""Initialisation of EM: initial responsibilities, and the parameters that follow from them.

Estimators call ``named_start`` with the value of ``init_params``. Functions that choose seeds from
the points alone are in :mod:`cgmm.kmeans.seeding`. Chapters 3, 4 and 6 explain the methods.

=====  ==================================================================
N, D   points and dimensions; K components
r_ik   initial responsibilities
=====  ==================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from cgmm.kmeans import COPKMeans, SearchBudgetError, chunklet_seeds
from cgmm.kmeans.seeding import far_points, nearest, random_points, seeds
from cgmm.large.blocks import Points
from cgmm.large.chunks import Chunks, fetch
from cgmm.mixture.family import AnyTheta, Family, with_settings
from cgmm.mixture.pooling import require_distributions
from cgmm.network import PairsAmong, SideInformation
from cgmm.numerics import FloatArray, IntArray
from cgmm.runs import Rng

# Larger data are subsampled to this number of points for the initialisation.
MOST_POINTS = 10_000
# Maximum number of steps of the search for an assignment that satisfies all hard relations. The
# search before a fit has the same limit.
MOST_SEARCH_STEPS = 20_000


def from_responsibilities(
    X: Any, responsibilities: FloatArray, family: Family[AnyTheta], **settings: Any
) -> AnyTheta:
    """Compute initial parameters from responsibilities by one M-step.

    Parameters
    ----------
    X : (N, D) array
        The points.
    responsibilities : (N, K) array
        r_ik ≥ 0, rows summing to one.
    family : Family
        An entry of ``POOLINGS``, or another family.
    **settings
        Settings that replace those of the family, such as ``reg_covar``.

    Returns
    -------
    Parameters
        A Gaussian without any responsibility gets the mean and covariance of all the data.

    Examples
    --------
    >>> from cgmm.mixture import POOLINGS
    >>> X = np.array([[0.0], [2.0], [6.0]])
    >>> theta = from_responsibilities(X, np.eye(2)[[0, 0, 1]], POOLINGS["full"], reg_covar=1e-6)
    >>> theta.means.ravel(), theta.weights.round(3)
    (array([1., 6.]), array([0.667, 0.333]))
    """
    return with_settings(family, **settings).start(X, responsibilities)


def random_responsibilities(X: FloatArray, n_components: int, rng: Rng) -> FloatArray:
    """Draw uniform random responsibilities, normalised; all means start near the overall mean.

    Parameters
    ----------
    X : (N, D) array
        The points; only their number is used.
    n_components : int
        K.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    (N, K) array
        Soft responsibilities.

    Examples
    --------
    >>> random_responsibilities(np.zeros((3, 1)), 2, np.random.RandomState(0)).sum(axis=1)
    array([1., 1., 1.])
    """
    responsibilities = rng.uniform(size=(len(X), n_components))
    return responsibilities / responsibilities.sum(axis=1, keepdims=True)


# ---------------------------------------------------------------------------- subsampling


def subsample_for_init(
    X: Points | Chunks, side: SideInformation, rng: Rng, *, whole: bool = False
) -> tuple[Points, SideInformation]:
    """Return the points for the initialisation, in memory, and their side information.

    Points of weight zero are dropped, and more than ``MOST_POINTS`` points are subsampled. With
    ``whole`` all points are returned, because the user gives an initial responsibility for each.
    """
    rows, weights = np.arange(X.shape[0]), side.sample_weight
    if not (whole or weights is None or weights.all()):
        rows = np.flatnonzero(weights)
        side = side.restrict(rows)
    if not whole and len(rows) > MOST_POINTS:
        chosen = subsample_rows(side, rng)
        rows, side = rows[chosen], side.restrict(chosen)
    if not isinstance(X, Chunks) and len(rows) == X.shape[0]:
        return X, side
    return fetch(X, rows), side


def subsample_rows(side: SideInformation, rng: Rng, max_rows: int | None = None) -> IntArray:
    """Return the sorted row numbers of a random subsample that favours side information.

    Up to half of the subsample are points with side information, in whole nodes, so that it
    contains complete chunklets and labelled points. The others are drawn from all points.
    """
    max_rows = max_rows or MOST_POINTS
    known = side.has_information
    nodes, sizes = rng.permutation(np.flatnonzero(known)), np.bincount(side.node_of)
    chosen = np.zeros_like(known)
    chosen[nodes[np.cumsum(sizes[nodes]) <= max_rows // 2]] = True
    rows = np.flatnonzero(side.spread(chosen))
    others = rng.randint(len(side.node_of), size=max_rows - len(rows))
    return np.union1d(rows, others)


# ---------------------------------------------------------------------------- side information


def from_labels(X: FloatArray, n_components: int, rng: Rng, side: SideInformation) -> FloatArray:
    """Return responsibilities that assign each point to the nearest mean of a labelled class.

    Parameters
    ----------
    X : (N, D) array
        The points.
    n_components : int
        K.
    rng : RandomState
        Source of randomness, for classes without a labelled point.
    side : SideInformation
        The labels; points that must-links connect to a labelled point have its class, too.

    Returns
    -------
    (N, K) array
        Each point is assigned to the nearest class mean. A class without a labelled point starts at
        a k-means++ seed far from the others.

    Raises
    ------
    ValueError
        If no point has a known class.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> side = SideInformation.build(4, labels=[1, -1, 0, -1])
    >>> from_labels(X, 2, np.random.RandomState(0), side).argmax(axis=1)
    array([1, 1, 0, 0])
    """
    classes = side.spread(side.known_classes(n_components))
    present = np.unique(classes[classes >= 0])
    if not len(present):
        raise ValueError(
            "init_params='labels' needs at least one point of known class; pass labels, or choose "
            "another start such as 'k-means++'."
        )
    means = np.array([X[classes == c].mean(axis=0) for c in present])
    order = np.concatenate([present, np.setdiff1d(np.arange(n_components), present)])
    centres = seeds(X, n_components, rng, first=means)
    return nearest(X, centres[np.argsort(order)])


def from_chunklets(X: FloatArray, n_components: int, rng: Rng, side: SideInformation) -> FloatArray:
    """Return responsibilities that assign each point to the nearest of K chunklet centroids.

    Parameters
    ----------
    X : (N, D) array
        The points.
    n_components : int
        K.
    rng : RandomState
        Source of randomness.
    side : SideInformation
        The chunklets.

    Returns
    -------
    (N, K) array
        Each point is assigned to the nearest centroid of :func:`cgmm.mixture.chunklet_seeds`,
        which chooses large chunklets that are far apart.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [8.0], [9.0]])
    >>> side = SideInformation.build(5, must_link=[[0, 1], [3, 4]])
    >>> sorted(from_chunklets(X, 2, np.random.RandomState(0), side).sum(axis=0).tolist())
    [2.0, 3.0]
    """
    return nearest(X, chunklet_seeds(X, side.node_of, n_components, rng))


def adapt_to_evidence(responsibilities: FloatArray, side: SideInformation) -> FloatArray:
    """Change responsibilities so that they agree with labels, allowed classes and chunklets.

    Parameters
    ----------
    responsibilities : (N, K) array
        Initial responsibilities that ignore the side information. The numbering of their components
        is arbitrary.
    side : SideInformation
        The side information, whose labels refer to particular components.

    Returns
    -------
    (N, K) array
        The responsibilities are averaged over each chunklet; the components are renumbered so that
        they agree with as many labels as possible; and excluded classes are set to zero. Points
        without side information are only renumbered.

    Examples
    --------
    >>> side = SideInformation.build(3, labels=[1, -1, -1], must_link=[[1, 2]])
    >>> adapt_to_evidence(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), side)
    array([[0. , 1. ],
           [0.5, 0.5],
           [0.5, 0.5]])
    """
    sizes = side.sum_over_nodes(np.ones((len(responsibilities), 1)))[:, 0]
    # A chunklet of total weight zero has no weighted mean, so it gets the row of its first point.
    alone = responsibilities[side.first_points]
    of_node = side.sum_over_nodes(responsibilities) / np.where(sizes > 0, sizes, 1)[:, None]
    of_node = np.where(sizes[:, None] > 0, of_node, alone)
    mask = side.mask(responsibilities.shape[1])
    if mask is not None:
        agreement = mask.T.astype(float) @ (sizes[:, None] * of_node)
        of_node = of_node[:, linear_sum_assignment(agreement, maximize=True)[1]]
        possible = np.where(mask, of_node, 0)
        # If a node has responsibility only for excluded classes, all its allowed classes become
        # equally likely.
        none_left = possible.sum(axis=1) < np.finfo(float).tiny
        possible[none_left] = mask[none_left]
        of_node = possible / possible.sum(axis=1, keepdims=True)
    return side.spread(of_node)


def from_kmeans(X: FloatArray, n_components: int, rng: Rng, side: SideInformation) -> FloatArray:
    """Return hard responsibilities from K-means that satisfies all hard relations.

    Parameters
    ----------
    X : (N, D) array
        The points.
    n_components : int
        K.
    rng : RandomState
        Source of randomness.
    side : SideInformation
        Only must-links and cannot-links are used, not preferences and labels.

    Returns
    -------
    (N, K) array
        The clusters of :class:`cgmm.COPKMeans`, the best of ten runs if N ≤ K². Without hard
        relations, or if its search reaches the limit of steps, the clusters of
        ``sklearn.cluster.KMeans``.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> side = SideInformation.build(4, cannot_link=[[0, 1]])
    >>> r = from_kmeans(X, 2, np.random.RandomState(0), side)
    >>> bool((r[0] != r[1]).all())
    True
    """
    first, weights = side.first_points[side.node_of], side.sample_weight
    others = np.flatnonzero(first != np.arange(len(X)))
    must_link = np.column_stack([first[others], others])
    cannot_link = side.first_points[side.graph.edges[np.isneginf(side.graph.weights)]]
    model = KMeans(n_components, n_init=1, random_state=rng)
    with warnings.catch_warnings():
        # The user needs no warnings about K-means, which only initialises the fit.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if len(must_link) or len(cannot_link):
            must, cannot = PairsAmong(must_link, len(X)), PairsAmong(cannot_link, len(X))
            # With many clusters and few points, a single run often ends at a poor grouping that EM
            # cannot repair. For 60 points in ten classes, ten runs get up to 6 % more points right.
            n_init = 10 if len(X) <= n_components**2 else 1
            cop = COPKMeans(
                n_components, n_init=n_init, max_search=MOST_SEARCH_STEPS, random_state=rng
            )
            with suppress(SearchBudgetError):
                cop.fit(X, must_link=must, cannot_link=cannot, sample_weight=weights)
                return np.eye(n_components)[cop.labels_]
        return np.eye(n_components)[model.fit(X, sample_weight=weights).labels_]


STARTS: dict[str, Callable[[FloatArray, int, Rng], FloatArray]] = {
    "k-means++": far_points,
    "random": random_responsibilities,
    "random_from_data": random_points,
}
"""Initialisations that use only the points, by their names for ``init_params``."""


GUIDED_STARTS: dict[str, Callable[[FloatArray, int, Rng, SideInformation], FloatArray]] = {
    "kmeans": from_kmeans,
    "labels": from_labels,
    "chunklets": from_chunklets,
}
"""Initialisations that also use side information, by their names for ``init_params``."""


def named_start(
    name: str, X: FloatArray, n_components: int, rng: Rng, side: SideInformation
) -> FloatArray:
    """Return the initial responsibilities of a named start, adapted to the side information."""
    if name in GUIDED_STARTS:
        responsibilities = GUIDED_STARTS[name](X, n_components, rng, side)
    else:
        responsibilities = STARTS[name](X, n_components, rng)
    return responsibilities if side.is_empty else adapt_to_evidence(responsibilities, side)


def check_responsibilities(responsibilities: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Return (N, K) responsibilities, or raise an error if a row is not a distribution."""
    r = np.asarray(responsibilities, dtype=np.float64)
    if r.shape != shape:
        raise ValueError(
            f"init_params has shape {r.shape}; as responsibilities it must have (N, K) = {shape}."
        )
    require_distributions("init_params", r)
    return r
