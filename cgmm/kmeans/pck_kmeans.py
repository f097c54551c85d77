"""The estimator PCKMeans. Chapter 11."""

from __future__ import annotations

from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from cgmm.inference.feasible import MAX_SEARCH
from cgmm.kmeans.assignment import pck_rule
from cgmm.kmeans.base import ConstrainedKMeans, with_weights
from cgmm.network import Engine, SideInformation
from cgmm.network.side_information import contracted
from cgmm.numerics import IntArray


class PCKMeans(ConstrainedKMeans):
    """K-means in which a broken relation costs a penalty.

    The objective is [lu2007, eq. 4.1] ::

        J = ½ Σ_i |x_i - μ_{z_i}|² + Σ_(preferred together, but apart) w_ij
                                   + Σ_(preferred apart, but together) |w_ij|

    so w is in squared units of the data: a point goes against a relation of weight w when that
    saves it more than w in half its squared distance. With ``w=0`` the relations choose the start
    and nothing else, which is the seeded K-means of Basu, Banerjee and Mooney (2002).

    Parameters
    ----------
    n_clusters : int, default=8
        K.
    w : float, default=1.0
        Weight of each relation in ``must_link`` and ``cannot_link``; ``inf`` makes them hard.
    init : {"auto", "chunklets", "k-means++", "random"} or (K, D) array, default="auto"
        Where centres start: at large chunklets far apart (:func:`chunklet_seeds`; without
        must-links that is k-means++), as k-means++ chooses among points, around points drawn
        uniformly, or here. "auto" tries 2 (K + 1) starts, at most 12, of the first two kinds for a
        few iterations each, and goes on from the one of lowest objective; without relations it is
        one start of k-means++.
    n_init : int, default=1
        Runs from different starts; the one with the lowest objective is kept. A given ``init`` is
        run once.
    max_iter : int, default=300
        Most iterations of one run.
    tol : float, default=1e-4
        A run stops when the centres move by less than this share of the mean variance of the
        columns (squared distances, as in scikit-learn), or when no assignment changes.
    inference : str or callable, default=None
        An engine with ``most_probable``, or its name: each assignment is then the best one. Where
        that costs too much "exact" refuses, and "auto" takes the best that it finds. None: as
        in :class:`COPKMeans`.
    max_search : int, default=1000000
        As in :class:`COPKMeans`, where relations are hard.
    random_state : int, RandomState or None, default=None
        Seed of the starts, and of the search's restarts.
    verbose : int, default=0
        1: a line a run; 2: a line an iteration too.

    Attributes
    ----------
    cluster_centers_ : (K, D) array
        μ_k.
    labels_ : (N,) int array
        Cluster of each training point.
    inertia_ : float
        ``Σ_i |x_i - μ_{z_i}|²`` of ``labels_`` and ``cluster_centers_`` as they are; no penalties.
    objective_ : float
        J, what is minimised; weights of relations on the same two points are added first.
    history_ : (n,) array
        J of each assignment, with the centres that it was made for; never rises.
    n_iter_ : int
        Iterations of the run that was kept.
    converged_ : bool
        Whether it ended by itself.
    assignment_optimal_ : bool
        Whether ``labels_`` is known to be the best of all assignments to ``cluster_centers_``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0]]
    >>> loose = PCKMeans(2, w=1.0, random_state=0).fit(X, must_link=[[2, 3]])
    >>> strict = PCKMeans(2, w=100.0, random_state=0).fit(X, must_link=[[2, 3]])
    >>> loose.labels_[2] == loose.labels_[3], strict.labels_[2] == strict.labels_[3]
    (np.False_, np.True_)
    """

    _parameter_constraints = {
        **ConstrainedKMeans._parameter_constraints,
        "w": [Interval(Real, 0, np.inf, closed="both")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        w: float = 1.0,
        init: str | ArrayLike = "auto",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        inference: str | Engine | None = None,
        max_search: int = MAX_SEARCH,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.w = w
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.inference = inference
        self.max_search = max_search
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Cluster the points.

        Parameters
        ----------
        X : (N, D) array-like
            The points, N ≥ K.
        y : ignored
            Present for scikit-learn's conventions.
        must_link : (P, 2) int array-like, default=None
            Pairs of points that should share a cluster, each with weight ``w``.
        cannot_link : (P, 2) int array-like, default=None
            Pairs of points that should not, each with weight ``w``.
        preferences : (P, 3) array-like, default=None
            Rows ``i, j, log-odds``, as in ``SideInformation.build``: weights of their own, in
            squared units of the data, positive for pairs that should share a cluster. ±inf makes
            the relation hard. Several on one pair add.
        sample_weight : (N,) array, default=None
            How many points each point stands for, from 0 up: its distance counts so often. A weight
            of 2 is the point twice, both in the same cluster; relations count once. Draws of a
            start know of weights only that what has none is no seed.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are not finite or too few, if a relation names no two points, if hard
            relations contradict each other or cannot be honoured, or if ``init`` does not fit.
        SearchBudgetError
            As :meth:`COPKMeans.fit`, where relations are hard.
        KeyboardInterrupt
            As :meth:`COPKMeans.fit`.

        Warns
        -----
        ConvergenceWarning
            As :meth:`COPKMeans.fit`.
        """
        X = self._points(
            X, y, must_link=must_link, cannot_link=cannot_link, preferences=preferences
        )
        chunklets, side = self._network(len(X), must_link, cannot_link, preferences)
        return self._fit(X, side, chunklets, pck_rule, factor=0.5, sample_weight=sample_weight)

    def _network(
        self,
        n_samples: int,
        must_link: ArrayLike | None,
        cannot_link: ArrayLike | None,
        preferences: ArrayLike | None,
    ) -> tuple[IntArray, SideInformation]:
        """(N,) the chunklets by must-links, and all relations as edges."""
        # Weights in squared units of the data may look like probabilities and are none.
        # Each by itself: what is soft may contradict itself, but must name points.
        chunklets = contracted(n_samples, must_link=must_link).node_of
        contracted(n_samples, cannot_link=cannot_link)
        contracted(n_samples, preferences=preferences)
        weighted = [with_weights(must_link, self.w), with_weights(cannot_link, -self.w)]
        if preferences is not None and np.size(preferences):
            weighted.append(np.asarray(preferences, dtype=float))
        side = contracted(n_samples, preferences=np.concatenate(weighted))
        return chunklets, side
