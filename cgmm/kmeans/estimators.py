"""The estimators COPKMeans and PCKMeans: runs from several starts, of which the best is kept.

Chapter 11.

=======  ==================================================================
N, D     points x_i, dimensions
K, μ_k   number of clusters, their centres
side     the relations as a network; its nodes are what is assigned
rule     how nodes are assigned to centres
=======  ==================================================================
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)  # fmt: skip
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.given import explain_missing, read_rows
from cgmm.inference import ENGINES
from cgmm.inference.feasible import MAX_SEARCH
from cgmm.kmeans.assignment import engine_rule, pck_rule
from cgmm.kmeans.loop import Nodes, Run, broken, follow, lloyd
from cgmm.kmeans.seeding import SEEDINGS, freely, most_promising, starts_to_try
from cgmm.network import Engine, Graph, NetworkError, SideInformation
from cgmm.network.misreadings import check_rows, warn_ignored
from cgmm.network.relations import closure, read_relations
from cgmm.network.side_information import contracted
from cgmm.numerics import (
    FloatArray,
    IntArray,
    Seed,
    check_pairs,
    check_ranges,
    check_sample_weight,
    warn_caller,
)  # fmt: skip
from cgmm.runs import Rng, Versioned, best_of, random_source

# Weights below that share of what points pay for their distances hardly ever decide.
SLIGHT = 0.01
COUNT = [Interval(Integral, 1, None, closed="left")]
INSTEAD_OF_Y = (
    "Known classes become relations by must_link=cgmm.scenarios.links_of_chunklets("
    "cgmm.network.number_classes(y)[1])."
)


class ConstrainedKMeans(
    Versioned, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """What both estimators share: starts, runs, and what new points get."""

    _parameter_constraints = {
        "n_clusters": COUNT,
        "n_init": COUNT,
        "max_iter": COUNT,
        "max_search": COUNT,
        "init": [StrOptions({"auto", *SEEDINGS}), "array-like"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "inference": [callable, StrOptions(set(ENGINES)), None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }
    # What a squared distance counts.
    _factor = 1.0

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
        random_state: Seed = None,
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

    def _check(self, X: ArrayLike, y: object, **relations: ArrayLike | None) -> FloatArray:
        """The training points, checked; whether what is given beside them is meant as read."""
        self._validate_params()
        warn_ignored(y, INSTEAD_OF_Y)
        check_rows(X, **relations)
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, ensure_min_samples=self.n_clusters)
        check_ranges(X, some_may_vanish=True)
        return X

    def _fit(
        self, X: FloatArray, side: SideInformation, chunklets: IntArray,
        sample_weight: ArrayLike | None,
    ) -> Self:  # fmt: skip
        """Best of n_init runs of Lloyd's loop over the nodes of ``side``."""
        rng, graph = random_source(self.random_state), side.graph
        weights = check_sample_weight(sample_weight, len(X), self.n_clusters)
        # Centring saves the digits that a large offset of the data would cost the means.
        offset = np.average(X, axis=0, weights=weights)
        nodes = Nodes.of(X - offset, side, self._factor, weights)
        tol = self.tol * np.average(np.square(X - offset), axis=0, weights=weights).mean()
        # A point that does not count is no seed.
        counted = slice(None) if weights is None else weights > 0
        groups = np.unique(chunklets[counted], return_inverse=True)[1]
        starts = partial(self._starts, X[counted], groups, graph, rng, offset)

        def one_run(number: int) -> Run:
            steps = lloyd(nodes, graph, most_promising(starts(), nodes), rule)
            return follow(steps, tol, self.max_iter, self.verbose, number)

        try:
            if self.inference is None:
                hint = lambda: freely(nodes, starts()[0]).labels  # noqa: E731
                search = {"max_search": self.max_search, "rng": rng, "hint": hint}
                rule = pck_rule(graph, self.n_clusters, **search)
            else:
                rule = engine_rule(graph, self.inference)
            # A start that is given is the same in every run.
            run = best_of(one_run, self.n_init if isinstance(self.init, str) else 1)
        except NetworkError as error:
            raise error.renamed(side.first_points, "point") from None
        self.cluster_centers_, self._n_features_out = run.step.centres + offset, self.n_clusters
        self.labels_: IntArray = run.step.labels[side.node_of].astype(np.int32)
        self.objective_, self.assignment_optimal_ = run.step.objective, run.step.optimal
        self.history_, self.n_iter_ = np.array(run.history), run.n_iter
        self.converged_ = run.converged
        apart = np.square(X - self.cluster_centers_[self.labels_]).sum(axis=1)
        self.inertia_ = float(apart.sum() if weights is None else weights @ apart)
        # The model is complete by now: users may turn the warning into an error.
        _warn_of_run(run, self.n_clusters, self.max_iter)
        _warn_of_slight_weights(graph, run.step.labels, self.inertia_ / 2 / nodes.sizes.sum())
        return self

    def _starts(
        self, X: FloatArray, chunklets: IntArray, graph: Graph, rng: Rng, offset: FloatArray
    ) -> list[FloatArray]:
        """Centres (K, D) to be tried, of points less the offset."""
        if isinstance(self.init, str):
            names = starts_to_try(self.init, self.n_clusters, chunklets, graph)
            return [SEEDINGS[name](X, chunklets, self.n_clusters, rng) - offset for name in names]
        centres, shape = np.array(self.init, dtype=np.float64), (self.n_clusters, X.shape[1])
        if centres.shape != shape or not np.isfinite(centres).all():
            raise ValueError(
                f"init has shape {centres.shape}; as centres it must have (K, D) = {shape}, and "
                "hold finite numbers."
            )
        return [centres - offset]

    def predict(self, X: ArrayLike) -> IntArray:
        """The nearest centre of each point, taken by itself: relations bind training points only.

        Parameters
        ----------
        X : (N, D) array-like
            Points, not necessarily those of the fit.

        Returns
        -------
        (N,) int array
            The cluster.
        """
        return self.transform(X).argmin(axis=1).astype(np.int32)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Distances to the centres.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            ``|x_i - μ_k|``, in units of the data.
        """
        check_is_fitted(self, "cluster_centers_")
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, reset=False)
        return cdist(X, self.cluster_centers_)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Minus the sum of squared distances to the nearest centres; higher is better.

        Parameters
        ----------
        X : (N, D) array-like
            Points.
        y : ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        float
            In squared units of the data.
        """
        return -float(np.square(self.transform(X).min(axis=1)).sum())


# ---------------------------------------------------------------------------- hard relations


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
        the best one where its proof is cheap, else a descent; see ``assignment_optimal_``.
    max_search : int, default=1000000
        Steps of the search for a first assignment that breaks no cannot-link.
    random_state : int, RandomState, Generator or None, default=None
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
        X = self._check(X, y, must_link=must_link, cannot_link=cannot_link)
        side = SideInformation.build(len(X), must_link=must_link, cannot_link=cannot_link)
        return self._fit(X, side, side.node_of, sample_weight)


# ---------------------------------------------------------------------------- soft relations


class PCKMeans(ConstrainedKMeans):
    """K-means in which a broken relation costs a penalty.

    The objective is [lu2007, eq. 4.1] ::

        J = ½ Σ_i |x_i - μ_{z_i}|² + Σ_(preferred together, but apart) w_ij
                                   + Σ_(preferred apart, but together) |w_ij|

    so w is in squared units of the data: a point goes against a relation of weight w when that
    saves it more than w in half its squared distance. Log-odds become such weights when they are
    multiplied by the variance of a column within a cluster. With ``w=0`` the relations choose the
    start and nothing else, which is the seeded K-means of Basu, Banerjee and Mooney (2002).

    Parameters
    ----------
    n_clusters : int, default=8
        K.
    w : float, default=1.0
        Weight of each relation in ``must_link`` and ``cannot_link``, in squared units of the data;
        ``inf`` makes them hard.
    init, n_init, max_iter, tol, inference, max_search, random_state, verbose
        As in :class:`COPKMeans`.

    Attributes
    ----------
    labels_ : (N,) int array
        Cluster of each training point.
    inertia_ : float
        ``Σ_i |x_i - μ_{z_i}|²`` of ``labels_`` and ``cluster_centers_`` as they are; no penalties.
    objective_ : float
        J, what is minimised; weights of relations on the same two points are added first.
    history_ : (n,) array
        J of each assignment, with the centres that it was made for; never rises.
    cluster_centers_, n_iter_, converged_, assignment_optimal_, n_features_in_, feature_names_in_
        As in :class:`COPKMeans`.

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
    _factor = 0.5

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
        random_state: Seed = None,
        verbose: int = 0,
    ):
        super().__init__(
            n_clusters, init=init, n_init=n_init, max_iter=max_iter, tol=tol, inference=inference,
            max_search=max_search, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.w = w

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
            Rows ``i, j, weight``, as in ``SideInformation.build``, but in squared units of the
            data, positive for pairs that should share a cluster. ±inf makes the relation hard.
            Several on one pair add.
        sample_weight : (N,) array, default=None
            As in :meth:`COPKMeans.fit`.

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
        UserWarning
            If relations are broken, and all their weights are so slight beside squared distances
            that they hardly ever decide.
        """
        known = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        X = self._check(X, y, **known)
        # What is soft may contradict itself, but must name points.
        read_relations(len(X), must_link, cannot_link, preferences)
        must, cannot = check_pairs("must_link", must_link), check_pairs("cannot_link", cannot_link)
        w = np.repeat([self.w, -self.w], [len(must), len(cannot)])
        rows = np.column_stack([np.concatenate([must, cannot]), w])
        rows = np.concatenate([rows, read_rows("preferences", preferences, 3)])
        # Weights in squared units of the data may look like probabilities and are none.
        side = contracted(len(X), preferences=rows)
        return self._fit(X, side, closure(len(X), must), sample_weight)


# ---------------------------------------------------------------------------- what is to be known


def _warn_of_run(run: Run, n_clusters: int, max_iter: int) -> None:
    """What the user should know about the run that is kept."""
    remarks, n_used = [], len(np.unique(run.step.labels))
    if run.interrupted:
        remarks += [f"interrupted; the best run so far, of {run.n_iter} iterations, is kept."]
    elif not run.converged:
        remarks += [f"did not converge in {max_iter} iterations; increase max_iter or tol."]
    if n_used < n_clusters:
        remarks += [
            f"only {n_used} of {n_clusters} clusters have points: more would not lower the "
            "objective. There may be duplicates, or must-links may leave too few groups; use "
            f"n_clusters={n_used}."
        ]
    for remark in remarks:
        warn_caller(remark, ConvergenceWarning)


def _warn_of_slight_weights(graph: Graph, z: IntArray, half_square: float) -> None:
    """Weights that look like log-odds, in data whose squares are of another size."""
    weights = np.abs(graph.weights[np.isfinite(graph.weights)])
    n_broken, top = int(broken(graph, z).sum()), weights.max(initial=0.0)
    if n_broken and 0 < top < SLIGHT * half_square:
        warn_caller(
            f"{n_broken} of {len(graph.edges)} relations are broken: a weight is in squared units "
            f"of the data, and the largest, {top:.3g}, is slight beside {half_square:.3g}, half "
            "the mean squared distance of a point from its centre. Standardise the columns of X, "
            "or raise the weights: w=np.inf makes relations hard.",
            UserWarning,
        )
