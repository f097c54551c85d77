"""The estimator COPKMeans. Chapter 11."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from cgmm.inference.feasible import MAX_SEARCH
from cgmm.kmeans.assignment import cop_rule
from cgmm.kmeans.base import ConstrainedKMeans
from cgmm.network import Engine, SideInformation


class COPKMeans(ConstrainedKMeans):
    """K-means whose clusters break no relation.

    Must-links are contracted: what they tie together moves as one. Cannot-links make the
    assignment a colouring problem, which the sequential algorithm of Wagstaff et al. (2001) can
    fail to solve though it is solvable. This one fails only where there is nothing to be found,
    and then says why, or where a search ran out of steps, and then says that.

    Parameters
    ----------
    n_clusters : int, default=8
        K.
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
        that costs too much "exact" refuses, and "auto" takes the best that it finds. None:
        descents, and at the end a proof where it is cheap; see ``assignment_optimal_``.
    max_search : int, default=1000000
        Steps of the search for a first assignment that breaks no cannot-link.
    random_state : int, RandomState or None, default=None
        Seed of the starts, and of the search's restarts.
    verbose : int, default=0
        1: a line a run; 2: a line an iteration too.

    Attributes
    ----------
    cluster_centers_ : (K, D) array
        μ_k.
    labels_ : (N,) int array
        Cluster of each training point; no relation is broken.
    inertia_ : float
        ``Σ_i |x_i - μ_{z_i}|²``, with ``labels_`` and ``cluster_centers_`` as they are.
    objective_ : float
        The same: what is minimised.
    history_ : (n,) array
        The objective of each assignment, with the centres that it was made for; never rises.
    n_iter_ : int
        Iterations of the run that was kept.
    converged_ : bool
        Whether it ended by itself.
    assignment_optimal_ : bool
        Whether ``labels_`` is known to be the best of all assignments to ``cluster_centers_``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    [lu2007, eqs. C.16 to C.18]. Without relations the iterations are those of
    ``sklearn.cluster.KMeans`` from the same start.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0]]
    >>> model = COPKMeans(2, random_state=0).fit(X, must_link=[[2, 3]], cannot_link=[[0, 1]])
    >>> model.labels_[2] == model.labels_[3], model.labels_[0] != model.labels_[1]
    (np.True_, np.True_)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
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
            Pairs of points that share a cluster. Transitive: chains are closed.
        cannot_link : (P, 2) int array-like, default=None
            Pairs of points that do not share a cluster.
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
            If the data are not finite or too few, if relations contradict each other or cannot be
            honoured with K clusters (points to blame are named), or if ``init`` does not fit.
        SearchBudgetError
            If ``max_search`` steps did not settle whether they can.
        KeyboardInterrupt
            If interrupted before there is an iteration to keep.

        Warns
        -----
        ConvergenceWarning
            If the run that is kept reached ``max_iter``, was interrupted from the keyboard (what
            was reached is kept), or has empty clusters.
        """
        X = self._points(X, y, must_link=must_link, cannot_link=cannot_link)
        side = SideInformation.build(len(X), must_link=must_link, cannot_link=cannot_link)
        return self._fit(X, side, side.node_of, cop_rule, factor=1.0, sample_weight=sample_weight)
