"""The estimators COPKMeans and PCKMeans, with the interface of scikit-learn.

``fit`` contracts the relations into a network, runs Lloyd's loop from several initialisations, and
keeps the best run. Users call these classes directly. Chapter 11 explains them.

=======  ==================================================================
N, D     number of points x_i and of dimensions, e.g. 150 and 4
K, μ_k   number of clusters and their centres, e.g. μ_1 = [5.0, 3.4]
side     network of the relations, whose nodes are assigned to clusters
rule     function that assigns nodes to clusters, e.g. the result of pck_rule
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
from cgmm.kmeans.loop import (
    LloydRun,
    Nodes,
    engine_rule,
    find_broken,
    lloyd,
    pck_rule,
    run_to_convergence,
)
from cgmm.kmeans.seeding import SEEDINGS, choose_best_start, choose_seedings, run_without_edges
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

# Weights of relations below this fraction of half the mean squared distance rarely change an
# assignment.
NEGLIGIBLE = 0.01
COUNT = [Interval(Integral, 1, None, closed="left")]
ADVICE_FOR_Y = (
    "Known classes become relations by must_link=cgmm.scenarios.links_of_chunklets("
    "cgmm.network.number_classes(y)[1])."
)


class ConstrainedKMeans(
    Versioned, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Base class of both estimators: initialisation, restarts, and prediction for new points."""

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
    # The objective contains squared distances times this factor; in PCKMeans it is one half.
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
        """Check training points and return them; warn if y or relations are probably misread."""
        self._validate_params()
        warn_ignored(y, ADVICE_FOR_Y)
        check_rows(X, **relations)
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, ensure_min_samples=self.n_clusters)
        check_ranges(X, some_may_vanish=True)
        return X

    def _fit(
        self, X: FloatArray, side: SideInformation, chunklets: IntArray,
        sample_weight: ArrayLike | None,
    ) -> Self:  # fmt: skip
        """Run Lloyd's loop ``n_init`` times over the nodes of ``side``; keep the best run."""
        rng, graph = random_source(self.random_state), side.graph
        weights = check_sample_weight(sample_weight, len(X), self.n_clusters)
        # Centre the data, so that means are accurate even if the data have a large offset.
        offset = np.average(X, axis=0, weights=weights)
        nodes = Nodes.of(X - offset, side, self._factor, weights)
        tol = self.tol * np.average(np.square(X - offset), axis=0, weights=weights).mean()
        # Points of weight zero cannot be seeds.
        has_weight = slice(None) if weights is None else weights > 0
        groups = np.unique(chunklets[has_weight], return_inverse=True)[1]
        initialise = partial(self._list_initial_centres, X[has_weight], groups, graph, rng, offset)

        def one_run(run_id: int) -> LloydRun:
            steps = lloyd(nodes, graph, choose_best_start(initialise(), nodes), rule)
            return run_to_convergence(steps, tol, self.max_iter, self.verbose, run_id)

        try:
            if self.inference is None:
                hint = lambda: run_without_edges(nodes, initialise()[0]).labels  # noqa: E731
                search = {"max_search": self.max_search, "rng": rng, "hint": hint}
                rule = pck_rule(graph, self.n_clusters, **search)
            else:
                rule = engine_rule(graph, self.inference)
            # If the user gives the centres, all runs would be equal, so one run suffices.
            run = best_of(one_run, self.n_init if isinstance(self.init, str) else 1)
        except NetworkError as error:
            raise error.renamed(side.first_points, "point") from None
        self.cluster_centers_, self._n_features_out = run.step.centres + offset, self.n_clusters
        self.labels_: IntArray = run.step.labels[side.node_of].astype(np.int32)
        self.objective_, self.assignment_optimal_ = run.step.objective, run.step.optimal
        self.history_, self.n_iter_ = np.array(run.history), run.n_iter
        self.converged_ = run.converged
        squares = np.square(X - self.cluster_centers_[self.labels_]).sum(axis=1)
        self.inertia_ = float(squares.sum() if weights is None else weights @ squares)
        # Warn at the end, so that the model is complete even if a filter turns the warning into an
        # error.
        _warn_of_run(run, self.n_clusters, self.max_iter)
        _warn_of_small_weights(graph, run.step.labels, self.inertia_ / 2 / nodes.sizes.sum())
        return self

    def _list_initial_centres(
        self, X: FloatArray, chunklets: IntArray, graph: Graph, rng: Rng, offset: FloatArray
    ) -> list[FloatArray]:
        """Return candidates for the initial centres, each (K, D), relative to the offset."""
        if isinstance(self.init, str):
            names = choose_seedings(self.init, self.n_clusters, chunklets, graph)
            return [SEEDINGS[name](X, chunklets, self.n_clusters, rng) - offset for name in names]
        centres, shape = np.array(self.init, dtype=np.float64), (self.n_clusters, X.shape[1])
        if centres.shape != shape or not np.isfinite(centres).all():
            raise ValueError(
                f"init has shape {centres.shape}; as centres it must have (K, D) = {shape}, and "
                "contain finite numbers."
            )
        return [centres - offset]

    def predict(self, X: ArrayLike) -> IntArray:
        """Return the cluster of the nearest centre of each point; relations have no effect.

        Parameters
        ----------
        X : (N, D) array-like
            Points, not necessarily those of the fit.

        Returns
        -------
        (N,) int array
            The cluster of each point.
        """
        return self.transform(X).argmin(axis=1).astype(np.int32)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the distance of each point from each centre.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            Distances ``|x_i - μ_k|``, in units of the data.
        """
        check_is_fitted(self, "cluster_centers_")
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, reset=False)
        return cdist(X, self.cluster_centers_)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return minus the sum of squared distances to the nearest centres; higher is better.

        Parameters
        ----------
        X : (N, D) array-like
            Points.
        y : ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        float
            The score, in squared units of the data.
        """
        return -float(np.square(self.transform(X).min(axis=1)).sum())


# ---------------------------------------------------------------------------- hard relations


class COPKMeans(ConstrainedKMeans):
    """K-means whose clusters break no relation.

    Must-links are contracted, so linked points are assigned together. Cannot-links make the
    assignment a colouring problem, which the sequential algorithm of Wagstaff et al. (2001) can
    fail to solve although a solution exists. This estimator raises an error only if no solution
    exists, and then names the points that cause this, or if the search runs out of steps.

    Parameters
    ----------
    n_clusters : int, default=8
        K.
    init : {"auto", "chunklets", "k-means++", "random"} or (K, D) array, default="auto"
        Initial centres: "chunklets" are large chunklets that are far apart (:func:`chunklet_seeds`;
        without must-links this is k-means++), "k-means++" are points chosen by k-means++, and
        "random" are points drawn uniformly. "auto" makes 2 (K + 1) initialisations, at most 12, of
        the first two kinds, runs six iterations of each, and continues the one of lowest objective;
        without relations it makes one initialisation by k-means++.
    n_init : int, default=1
        Number of runs from different initial centres; the run of lowest objective is kept. If
        ``init`` is an array, there is one run.
    max_iter : int, default=300
        Maximum number of iterations of a run.
    tol : float, default=1e-4
        A run stops if the sum of squared moves of the centres is below this fraction of the mean
        variance of the columns, as in scikit-learn, or if no assignment changes.
    inference : str or callable, default=None
        An engine with ``most_probable``, or its name, which finds the best assignment in each
        iteration. If this is too costly, "exact" raises an error and "auto" uses the best
        assignment that it finds. None: the best assignment if it can be proved at low cost,
        otherwise the best one that a search finds; see ``assignment_optimal_``.
    max_search : int, default=1000000
        Maximum number of steps of the search for a first assignment that breaks no cannot-link.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the initial centres, and of the restarts of the search.
    verbose : int, default=0
        1: print a line per run. 2: also print a line per iteration.

    Attributes
    ----------
    cluster_centers_ : (K, D) array
        μ_k.
    labels_ : (N,) int array
        Cluster of each training point; no relation is broken.
    inertia_ : float
        ``Σ_i |x_i - μ_{z_i}|²`` of ``labels_`` and ``cluster_centers_``.
    objective_ : float
        The minimised objective, which equals ``inertia_``.
    history_ : (n,) array
        The objective of each assignment with its own centres; it never rises.
    n_iter_ : int
        Number of iterations of the run that was kept.
    converged_ : bool
        True if the run that was kept converged.
    assignment_optimal_ : bool
        True if ``labels_`` is proved to be the best assignment to ``cluster_centers_``.
    n_features_in_, feature_names_in_
        Defined by scikit-learn.

    Notes
    -----
    This is [lu2007, eqs. C.16 to C.18]. Without relations the iterations are those of
    ``sklearn.cluster.KMeans`` from the same initial centres.

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
            Pairs of points that share a cluster. Chains are closed transitively.
        cannot_link : (P, 2) int array-like, default=None
            Pairs of points that do not share a cluster.
        sample_weight : (N,) array, default=None
            Number of copies that each point represents, not negative; the squared distance of the
            point is multiplied by it. A weight of 2 means two points in the same cluster. Weights
            do not affect relations. They do not affect initial centres either, except that points
            of weight zero are never seeds.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are not finite or too few, if relations contradict each other or cannot be
            satisfied with K clusters (the error names the points that cause this), or if ``init``
            has the wrong shape.
        SearchBudgetError
            If ``max_search`` steps do not suffice to decide if relations can be satisfied.
        KeyboardInterrupt
            If the user interrupts the fit before the first iteration ends.

        Warns
        -----
        ConvergenceWarning
            If the run that is kept reached ``max_iter``, was interrupted from the keyboard (its
            last state is kept), or has empty clusters.
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

    so w is in squared units of the data: a point breaks a relation of weight w if this reduces half
    its squared distance by more than w. To convert log-odds into such weights, multiply them by
    the variance of a column within a cluster. With ``w=0`` the relations determine only the initial
    centres, as in the seeded K-means of Basu, Banerjee and Mooney (2002).

    Parameters
    ----------
    n_clusters : int, default=8
        K.
    w : float, default=1.0
        Weight of each relation in ``must_link`` and ``cannot_link``, in squared units of the data;
        ``inf`` makes them hard.
    init, n_init, max_iter, tol, inference, max_search, random_state, verbose
        See :class:`COPKMeans`.

    Attributes
    ----------
    labels_ : (N,) int array
        Cluster of each training point.
    inertia_ : float
        ``Σ_i |x_i - μ_{z_i}|²`` of ``labels_`` and ``cluster_centers_``, without penalties.
    objective_ : float
        The minimised objective J; the weights of several relations of one pair are added.
    history_ : (n,) array
        J of each assignment with its own centres; it never rises.
    cluster_centers_, n_iter_, converged_, assignment_optimal_, n_features_in_, feature_names_in_
        See :class:`COPKMeans`.

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
            Pairs of points that should not share a cluster, each with weight ``w``.
        preferences : (P, 3) array-like, default=None
            Rows ``i, j, weight``, like those of ``SideInformation.build`` but in squared units of
            the data, positive for pairs that should share a cluster. ±inf makes a relation hard.
            The weights of rows with the same pair are added.
        sample_weight : (N,) array, default=None
            See :meth:`COPKMeans.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are not finite or have too few rows, if a relation does not refer to two
            points, if hard relations contradict each other or cannot be satisfied, or if ``init``
            has the wrong shape.
        SearchBudgetError
            See :meth:`COPKMeans.fit`; raised only if relations are hard.
        KeyboardInterrupt
            See :meth:`COPKMeans.fit`.

        Warns
        -----
        ConvergenceWarning
            See :meth:`COPKMeans.fit`.
        UserWarning
            If relations are broken, and all weights are so small compared with squared
            distances that they hardly affect the assignment.
        """
        known = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        X = self._check(X, y, **known)
        # Soft relations may contradict each other, so only their row numbers are checked here.
        read_relations(len(X), must_link, cannot_link, preferences)
        must, cannot = check_pairs("must_link", must_link), check_pairs("cannot_link", cannot_link)
        w = np.repeat([self.w, -self.w], [len(must), len(cannot)])
        rows = np.column_stack([np.concatenate([must, cannot]), w])
        rows = np.concatenate([rows, read_rows("preferences", preferences, 3)])
        # `SideInformation.build` would warn that weights in (0, 1) look like probabilities. Here
        # they are costs, so use `contracted`, which does not warn.
        side = contracted(len(X), preferences=rows)
        return self._fit(X, side, closure(len(X), must), sample_weight)


# ---------------------------------------------------------------------------- warnings


def _warn_of_run(run: LloydRun, n_clusters: int, max_iter: int) -> None:
    """Warn if the run that is kept was interrupted, did not converge, or has empty clusters."""
    remarks, n_used = [], len(np.unique(run.step.labels))
    if run.interrupted:
        remarks += [f"interrupted; the best run so far, of {run.n_iter} iterations, is kept."]
    elif not run.converged:
        remarks += [f"did not converge in {max_iter} iterations; increase max_iter or tol."]
    if n_used < n_clusters:
        remarks += [
            f"only {n_used} of {n_clusters} clusters have points, because more would not lower the "
            "objective. There may be duplicates, or must-links may leave too few groups; use "
            f"n_clusters={n_used}."
        ]
    for remark in remarks:
        warn_caller(remark, ConvergenceWarning)


def _warn_of_small_weights(graph: Graph, z: IntArray, half_square: float) -> None:
    """Warn if relations are broken and their weights are tiny compared with squared distances."""
    weights = np.abs(graph.weights[np.isfinite(graph.weights)])
    n_broken, largest = int(find_broken(graph, z).sum()), weights.max(initial=0.0)
    if n_broken and 0 < largest < NEGLIGIBLE * half_square:
        warn_caller(
            f"{n_broken} of {len(graph.edges)} relations are broken: a weight is in squared units "
            f"of the data, and the largest, {largest:.3g}, is small beside {half_square:.3g}, half "
            "the mean squared distance of a point from its centre. Standardise the columns of X, "
            "or raise the weights: w=np.inf makes relations hard.",
            UserWarning,
        )
