"""What the estimators of all families share: from side information to a fitted mixture.

A family says how its data are read, where EM starts and which pooling maximises; this file builds
the network of what is known, puts an engine to it, runs EM and answers for new points.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from cgmm.inference import ENGINES, require_colourable
from cgmm.mixture.loop import FamilyPooling, Points, em, node_unaries
from cgmm.mixture.prior import Prior
from cgmm.mixture.runs import Run, best_of, follow, warn_about
from cgmm.mixture.seeding import Rng
from cgmm.mixture.weights import UPDATES, Update
from cgmm.network import (
    SAMPLING,
    Engine,
    ExactInfer,
    Infer,
    NetworkError,
    SideInformation,
    spanning_forest,
)
from cgmm.numerics import AnyArray, FloatArray, IntArray, log_normalise

SPANNING_TREE = "spanning_tree"

# Finite log-odds above this cost the log-evidence seven of its sixteen digits, and more.
LARGEST_ODDS = 1e9


class ConstrainedMixture(DensityMixin, BaseEstimator):
    """Base of the mixtures: everything but the family of the components.

    A subclass stores the parameters below, and gives ``_read(X)`` and ``_read_new(X)`` (points as
    its family wants them), ``_pool()`` and ``_options()`` (for the M-step), ``_start(X, side,
    rng)`` (parameters), ``_keep(parameters)`` and ``_parameters()`` (to and from attributes),
    ``_draw(n_samples, rng)`` and ``_n_free()`` (the number of free parameters).
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "sampling": [StrOptions(set(SAMPLING))],
        "inference": [StrOptions({*ENGINES, SPANNING_TREE}), callable],
        "weights": [StrOptions(set(UPDATES))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    n_components: int
    sampling: str
    inference: str | Engine
    weights: str
    tol: float
    max_iter: int
    n_init: int
    random_state: int | np.random.RandomState | None
    verbose: int

    weights_: FloatArray
    responsibilities_: FloatArray
    labels_: IntArray
    log_evidence_: float
    history_: FloatArray
    n_iter_: int
    converged_: bool

    if TYPE_CHECKING:

        def _read(self, X: ArrayLike) -> Points: ...
        def _read_new(self, X: ArrayLike) -> Points: ...
        def _pool(self) -> FamilyPooling[Any]: ...
        def _options(self) -> dict[str, float]: ...
        def _start(self, X: Any, side: SideInformation, rng: Rng) -> Any: ...
        def _keep(self, parameters: Any) -> None: ...
        def _parameters(self) -> Any: ...
        def _draw(self, n_samples: int, rng: Rng) -> tuple[FloatArray | IntArray, IntArray]: ...
        def _n_free(self) -> int: ...

    # ------------------------------------------------------------------ fitting

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        labels: ArrayLike | None = None,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None,
    ) -> Self:
        """Fit the mixture to the points and to what is known beside them.

        Parameters
        ----------
        X : (N, D) array-like
            The points, N ≥ K.
        y : ignored
            Present for scikit-learn's conventions.
        labels : (N,) int array or (N, K) bool array, default=None
            The component of each point, -1 where unknown; or the components still allowed.
        must_link, cannot_link : (P, 2) int array, default=None
            Pairs of points, by index, that share a component, or do not.
        preferences : (P, 3) array, default=None
            Rows ``i, j, log-odds`` that the two belong together; ±inf makes it hard. Finite ones
            may add up to 1e9 on a pair, beyond which they would leave no digits of the data.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are not finite or too few, or degenerate for the model; if what is known
            contradicts itself or cannot be honoured with K components; if a start does not fit; or
            if the engine cannot do what is asked.
        KeyboardInterrupt
            If interrupted before there is an iteration to keep, or once more after that.

        Warns
        -----
        ConvergenceWarning
            If the run that is kept reached ``max_iter``, or was interrupted from the keyboard; its
            last parameters are kept.
        """
        self._validate_params()
        X = self._read(X)
        side = SideInformation.build(
            X.shape[0], labels=labels, must_link=must_link, cannot_link=cannot_link,
            preferences=preferences, sampling=self.sampling,
        )  # fmt: skip
        # The mask of allowed components is made once, not in every E-step.
        side = side._replace(labels=None, allowed=side.mask(self.n_components))
        require_colourable(side, self.n_components)
        _require_resolvable(side)
        rng = check_random_state(self.random_state)
        data = _Arranged.of(X, side)
        try:
            room = _engine_room(self, data.side, rng)
            start = partial(self._start, X, side, rng)
            best = best_of(lambda n: self._one_run(start(), data, room, n), self.n_init)
            self._store(data, room, best)
        except NetworkError as error:
            raise error.renamed(data.side.first_points, "point") from None
        # After everything is stored: the warning may be an error.
        warn_about(best, self.max_iter)
        return self

    def _one_run(self, start: Any, data: _Arranged, room: _EngineRoom, number: int) -> Run:
        steps = em(
            data.X, start, room.side, room.infer(), self._pool(), room.update_weights,
            log_z_prior=room.log_z_prior, **self._options(),
        )  # fmt: skip
        return follow(
            steps, self.tol, self.max_iter, verbose=self.verbose, number=number,
            compared=self.n_init > 1,
        )  # fmt: skip

    def fit_predict(self, X: ArrayLike, y: object = None, **known: Any) -> IntArray:
        """Fit, and return ``labels_``.

        Parameters
        ----------
        X : (N, D) array-like
            The points.
        y : ignored
            Present for scikit-learn's conventions.
        **known
            What is known beside the points, as in ``fit``.

        Returns
        -------
        (N,) int array
            The component of each training point.
        """
        return self.fit(X, **known).labels_

    def _store(self, data: _Arranged, room: _EngineRoom, run: Run) -> None:
        # What may take long comes first: an interrupt then leaves no half of a fit.
        labels = data.restored(_joint_labels(data.X, room, run))
        self._keep(run.parameters)
        self.responsibilities_ = data.restored(run.posterior.responsibilities)
        self.labels_ = labels
        self.log_evidence_ = run.posterior.log_evidence
        self.history_ = np.array(run.history)
        self.n_iter_ = run.n_iter
        self.converged_ = run.converged

    # ------------------------------------------------------------------ new points

    def _log_joint(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "weights_")
        return self._parameters().log_joint(self._read_new(X))

    def predict(self, X: ArrayLike) -> IntArray:
        """Most probable component of each point, taken by itself.

        Parameters
        ----------
        X : (N, D) array-like
            Points, not necessarily those of the fit.

        Returns
        -------
        (N,) int array
            The component.
        """
        return self._log_joint(X).argmax(axis=1)

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Responsibilities of the components for each point, taken by itself.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            Rows sum to one.
        """
        return log_normalise(self._log_joint(X))[0]

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density of the mixture at each point.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N,) array
            log p(x_i | θ) in nats.
        """
        return log_normalise(self._log_joint(X))[1]

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log-density of the points.

        Parameters
        ----------
        X : (N, D) array-like
            Points.
        y : ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        float
            In nats per point.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[FloatArray | IntArray, IntArray]:
        """Draw points from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            How many.

        Returns
        -------
        X : (n_samples, D) array
            The points, grouped by component.
        z : (n_samples,) int array
            The component of each.

        Raises
        ------
        ValueError
            If ``n_samples`` is not positive.
        """
        check_is_fitted(self, "weights_")
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}; ask for at least one sample.")
        rng = check_random_state(self.random_state)
        return self._draw(n_samples, rng)

    def bic(self, X: ArrayLike) -> float:
        """Bayesian information criterion, lower is better.

        Parameters
        ----------
        X : (N, D) array-like
            Points, as a rule those of the fit.

        Returns
        -------
        float
            -2 log p(X | θ) + (number of free parameters) log N.
        """
        log_densities = self.score_samples(X)
        return float(-2 * log_densities.sum() + self._n_free() * np.log(len(log_densities)))

    def aic(self, X: ArrayLike) -> float:
        """Akaike information criterion, lower is better.

        Parameters
        ----------
        X : (N, D) array-like
            Points, as a rule those of the fit.

        Returns
        -------
        float
            -2 log p(X | θ) + 2 (number of free parameters).
        """
        return float(-2 * self.score_samples(X).sum() + 2 * self._n_free())


# ---------------------------------------------------------------------------- the order of points


class _Arranged(NamedTuple):
    """Points in the order in which EM works on them: chunklets together, where only these tie."""

    X: Points
    side: SideInformation
    order: IntArray | None
    """(N,) the given places of the points; None where they are as given."""

    @classmethod
    def of(cls, X: Points, side: SideInformation) -> _Arranged:
        """Arrange if it saves more than it costs."""
        if side.nodes_are_points or len(side.graph.edges):
            return cls(X, side, None)
        order, arranged = side.by_size()
        # Dense points are column-major, and stay so.
        rows = X[order] if issparse(X) else np.take(X.T, order, axis=1).T
        return cls(rows, arranged, order)

    def restored(self, values: AnyArray) -> AnyArray:
        """One row a point, in the order in which the points were given."""
        if self.order is None:
            return values
        given = np.empty_like(values)
        given.T[..., self.order] = values.T
        return given


# ---------------------------------------------------------------------------- the engine room


class _EngineRoom(NamedTuple):
    """The network of what is known, and everything that depends on it alone."""

    side: SideInformation
    engine: Engine
    ready: Infer
    """The engine applied to the graph: the work on the structure is done."""
    update_weights: Update
    log_z_prior: Callable[[FloatArray], float]

    @property
    def is_exact(self) -> bool:
        """Whether the engine finds the most probable joint assignment, as all exact ones do."""
        return hasattr(self.ready, "most_probable")

    def infer(self) -> Infer:
        """The engine for one run: an approximate one may remember earlier calls, so a new one."""
        return self.ready if self.is_exact else self.engine(self.side.graph)


def _require_resolvable(side: SideInformation) -> None:
    """Refuse finite log-odds beside which the densities of points would be rounded away."""
    weights = side.graph.weights
    wrong = np.flatnonzero(np.isfinite(weights) & (abs(weights) > LARGEST_ODDS))
    if len(wrong):
        i, j = side.first_points[side.graph.edges[wrong[0]]]
        raise ValueError(
            f"preferences between the points {i} and {j}, or points tied to them, add up to "
            f"log-odds of {weights[wrong[0]]:.3g}: beyond ±{LARGEST_ODDS:.0e} they leave no digits "
            "of what the points say. Use ±inf, which makes the relation hard, or smaller log-odds."
        )


def _engine_room(model: ConstrainedMixture, side: SideInformation, rng: Rng) -> _EngineRoom:
    """Apply the engine to the structure, and refuse at once what cannot be done."""
    named = model.inference if callable(model.inference) else ENGINES.get(model.inference)
    engine = cast("Engine", named)
    if model.inference == SPANNING_TREE:
        side, engine = side._replace(graph=spanning_forest(side.graph)), ENGINES["auto"]
    if model.inference == "gibbs":
        engine = partial(cast("Callable[..., Infer]", engine), random_state=int(rng.randint(2**31)))
    prior = Prior(side, engine)
    log_z_prior = prior.log_z
    if np.isnan(log_z_prior(np.full(model.n_components, 1 / model.n_components))):
        _require_no_normaliser_needed(model)
        log_z_prior = _unknown
    room = _EngineRoom(side, engine, engine(side.graph), UPDATES[model.weights](prior), log_z_prior)
    _require_possible(room, model.n_components)
    return room


def _unknown(weights: FloatArray) -> float:
    """log Z_prior of an engine that has none."""
    return np.nan


def _require_no_normaliser_needed(model: ConstrainedMixture) -> None:
    """An engine without log Z cannot serve the updates that need it."""
    if model.weights in ("exact", "grid"):
        raise ValueError(
            f"weights={model.weights!r} needs the prior's normaliser, which the engine "
            f"{model.inference!r} does not report; use weights='pseudo-likelihood' or 'ignore', or "
            "another engine."
        )


def _require_possible(room: _EngineRoom, n_components: int) -> None:
    """Let an exact engine look for an assignment that honours all that is hard, before any work."""
    if room.is_exact and len(room.side.graph.edges):
        mask = room.side.mask(n_components)
        unary = np.zeros((room.side.n_nodes, n_components))
        room.ready(unary if mask is None else np.where(mask, 0.0, -np.inf))


def _joint_labels(X: Points, room: _EngineRoom, run: Run) -> IntArray:
    """The most probable joint assignment, where the engine can tell it."""
    if room.side.is_trivial or not room.is_exact:
        return run.posterior.responsibilities.argmax(axis=1)
    unary = node_unaries(X, run.parameters, room.side)
    ready = cast("ExactInfer", room.ready)
    return room.side.spread(ready.most_probable(unary))
