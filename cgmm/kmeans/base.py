"""What both constrained K-means estimators share: starts, runs, errors about points. Chapter 11.

=======  ==================================================================
N, D     points x_i, dimensions
K, μ_k   number of clusters, their centres
side     the relations as a network; its nodes are what is assigned
rule     how nodes are assigned to centres
=======  ==================================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
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
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.given import explain_missing
from cgmm.inference import ENGINES
from cgmm.inference.feasible import Hint, Rng
from cgmm.kmeans.assignment import engine_rule
from cgmm.kmeans.loop import Nodes, Rule, lloyd, nearest_rule
from cgmm.kmeans.runs import Run, best_of, growing, last_of, proved
from cgmm.kmeans.seeds import SEEDINGS, most_promising, starts_to_try
from cgmm.network import Engine, Graph, NetworkError, SideInformation, edgeless
from cgmm.network.misreadings import check_rows, warn_ignored
from cgmm.numerics import (
    FloatArray,
    IntArray,
    check_pairs,
    check_ranges,
    check_sample_weight,
    warn_caller,
)

# Iterations of plain K-means that hint at an assignment which breaks no relation.
HINT_ITERATIONS = 20
INSTEAD_OF_Y = (
    "Known classes become relations by must_link=cgmm.scenarios.links_of_chunklets("
    "cgmm.network.number_classes(y)[1])."
)


class ConstrainedKMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """What both estimators share: starts, runs, and what new points get."""

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"auto", *SEEDINGS}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "inference": [callable, StrOptions(set(ENGINES)), None],
        "max_search": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    n_clusters: int
    init: str | ArrayLike
    n_init: int
    max_iter: int
    tol: float
    inference: str | Engine | None
    max_search: int
    random_state: int | np.random.RandomState | None
    verbose: int

    cluster_centers_: FloatArray
    labels_: IntArray
    objective_: float
    assignment_optimal_: bool
    history_: FloatArray
    n_iter_: int
    converged_: bool
    inertia_: float

    def _points(self, X: ArrayLike, y: object, **relations: ArrayLike | None) -> FloatArray:
        """The training points, checked; whether what is given beside them is meant as read."""
        self._validate_params()
        warn_ignored(y, INSTEAD_OF_Y)
        check_rows(X, **relations)
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, ensure_min_samples=self.n_clusters)
        check_ranges(X, some_may_vanish=True)
        return X

    def _fit(
        self,
        X: FloatArray,
        side: SideInformation,
        chunklets: IntArray,
        make_rule: Callable[..., Rule],
        factor: float,
        sample_weight: ArrayLike | None,
    ) -> Self:
        """Best of n_init runs of Lloyd's loop over the nodes of ``side``."""
        rng = check_random_state(self.random_state)
        weights = check_sample_weight(sample_weight, len(X), self.n_clusters)
        # Centring saves the digits that a large offset of the data would cost the means.
        offset = np.average(X, axis=0, weights=weights)
        nodes = Nodes.of(X - offset, side, factor, weights)
        tol = self.tol * np.average(np.square(X - offset), axis=0, weights=weights).mean()

        # A point that does not count is no seed.
        counted = slice(None) if weights is None else weights > 0
        seeds, groups = X[counted], np.unique(chunklets[counted], return_inverse=True)[1]

        def hint() -> IntArray:
            centres = self._starts(seeds, groups, side.graph, rng)[0] - offset
            plain = lloyd(nodes, edgeless(side.n_nodes), centres, nearest_rule)
            # This run is not one to keep: an interrupt within it ends the fit.
            return deque(growing(plain, tol, HINT_ITERATIONS), maxlen=1).pop().step.labels

        rule = self._rule(side, make_rule, rng, hint)
        quick = partial(rule, prove=False)

        def one_run(number: int) -> Run:
            starts = [start - offset for start in self._starts(seeds, groups, side.graph, rng)]
            centres, z = most_promising(starts, nodes, side.graph, quick)
            steps = lloyd(nodes, side.graph, centres, quick, z)
            return last_of(growing(steps, tol, self.max_iter, self.verbose, number))

        # Relations that cannot be honoured would fail every run.
        best = best_of(one_run, self._n_runs(), fatal=(ValueError,))
        proof = lloyd(nodes, side.graph, best.step.centres, rule, best.step.labels)
        best = last_of(proved(best, proof, self.max_iter))
        self._store(best, side, offset)
        apart = np.square(X - self.cluster_centers_[self.labels_]).sum(axis=1)
        self.inertia_ = float(apart.sum() if weights is None else weights @ apart)
        # The model is complete by now: users may turn the warning into an error.
        for remark in _remarks(best, self.n_clusters, self.max_iter):
            warn_caller(remark, ConvergenceWarning)
        return self

    def _rule(
        self, side: SideInformation, make_rule: Callable[..., Rule], rng: Rng, hint: Hint
    ) -> Rule:
        """The assignment rule; its errors name points."""
        try:
            if self.inference is not None:
                return _named(engine_rule(side.graph, self.inference), side)
            return make_rule(
                side.graph, self.n_clusters, max_search=self.max_search, rng=rng, hint=hint
            )
        except NetworkError as error:
            raise _in_points(error, side) from None

    def _n_runs(self) -> int:
        """A start that is given is the same in every run."""
        return self.n_init if isinstance(self.init, str) else 1

    def _starts(
        self, X: FloatArray, chunklets: IntArray, graph: Graph, rng: Rng
    ) -> list[FloatArray]:
        """Centres (K, D) to be tried."""
        if isinstance(self.init, str):
            names = starts_to_try(self.init, self.n_clusters, chunklets, graph)
            return [SEEDINGS[name](X, chunklets, self.n_clusters, rng) for name in names]
        centres = np.array(self.init, dtype=np.float64)
        shape = (self.n_clusters, X.shape[1])
        if centres.shape != shape or not np.isfinite(centres).all():
            raise ValueError(
                f"init has shape {centres.shape}; as centres it must have (K, D) = {shape}, and "
                "hold finite numbers."
            )
        return [centres]

    def _store(self, run: Run, side: SideInformation, offset: FloatArray) -> None:
        self.cluster_centers_ = run.step.centres + offset
        self.labels_ = run.step.labels[side.node_of].astype(np.int32)
        self.objective_ = run.step.objective
        self.assignment_optimal_ = run.step.optimal
        self.history_ = np.array(run.history)
        self.n_iter_ = run.n_iter
        self.converged_ = run.converged

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _distances(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "cluster_centers_")
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, reset=False)
        return cdist(X, self.cluster_centers_)

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
        return self._distances(X).argmin(axis=1).astype(np.int32)

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
        return self._distances(X)

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
        return -float(np.square(self._distances(X).min(axis=1)).sum())


def with_weights(pairs: ArrayLike | None, weight: float) -> FloatArray:
    """(P, 3) rows of i, j, weight."""
    pairs = check_pairs("pairs", pairs)
    return np.column_stack([pairs, np.full(len(pairs), weight)])


def _remarks(run: Run, n_clusters: int, max_iter: int) -> Iterator[str]:
    """What the user should know about the run that is kept."""
    if run.interrupted:
        yield f"interrupted; the best run so far, of {run.n_iter} iterations, is kept."
    elif not run.converged:
        yield f"did not converge in {max_iter} iterations; increase max_iter or tol."
    n_used = len(np.unique(run.step.labels))
    if n_used < n_clusters:
        yield (
            f"only {n_used} of {n_clusters} clusters have points: more would not lower the "
            "objective. There may be duplicates, or must-links may leave too few groups; use "
            f"n_clusters={n_used}."
        )


# ---------------------------------------------------------------------------- errors


def _named(rule: Rule, side: SideInformation) -> Rule:
    """The same rule; its errors name points."""

    def named(costs: FloatArray, z: IntArray | None, prove: bool = True) -> tuple[IntArray, bool]:
        try:
            return rule(costs, z, prove)
        except NetworkError as error:
            raise _in_points(error, side) from None

    return named


def _in_points(error: NetworkError, side: SideInformation) -> ValueError:
    """The same error about the first points of the nodes, as users know points only."""
    first = np.unique(side.node_of, return_index=True)[1]
    text = str(error.renamed(first, "point"))
    if (side.multiplicity[error.nodes] > 1).any():
        text += " Each stands for all points that must-links tie to it."
    return ValueError(text)
