"""What the estimators of all families share: from side information to a fitted mixture.

A family says how its data are read, where EM starts and which pooling maximises; this file builds
the network of what is known, puts an engine to it and runs EM.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from cgmm.given import explain_missing
from cgmm.inference import ENGINES
from cgmm.inference.best_assignment import Assignment
from cgmm.mixture.arranged import named_as_points
from cgmm.mixture.chunks import Chunks
from cgmm.mixture.criteria import InformationCriteria
from cgmm.mixture.fold import fold
from cgmm.mixture.gaussian_checks import check_sample_weight
from cgmm.mixture.loop import FamilyPooling, Points
from cgmm.mixture.mixing import warn_about_chains
from cgmm.mixture.partitions import Partitions
from cgmm.mixture.predictions import Predictions
from cgmm.mixture.prepare import (
    SPANNING_TREE,
    Prepared,
    apply_engine,
    engine_of,
    prepare,
    require_same_shape,
)  # fmt: skip
from cgmm.mixture.reports import Answered, answers_of, say_last_words
from cgmm.mixture.runs import Run, best_of, follow, warn_about
from cgmm.mixture.seeding import Rng
from cgmm.mixture.threads import Over, telling, workers
from cgmm.mixture.tryouts import few_of, most_promising
from cgmm.mixture.weights import UPDATES
from cgmm.network import SAMPLING, ApproximationWarning, Engine, SideInformation
from cgmm.network.misreadings import check_rows, warn_ignored
from cgmm.numerics import FloatArray, IntArray, WarnedOnce


class ConstrainedMixture(Predictions, InformationCriteria, BaseEstimator, ABC):
    """Base of the mixtures: everything but the family of the components.

    A subclass stores the parameters below and says what its family does: the abstract methods.
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "sampling": [StrOptions(set(SAMPLING))],
        "inference": [StrOptions({*ENGINES, SPANNING_TREE}), callable],
        "weights": [StrOptions(set(UPDATES))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "store_responsibilities": ["boolean"],
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
    warm_start: bool
    n_jobs: int | None
    store_responsibilities: bool
    random_state: int | np.random.RandomState | None
    verbose: int

    weights_: FloatArray
    responsibilities_: FloatArray
    labels_: IntArray
    labels_exact_: bool
    log_evidence_: float
    history_: FloatArray
    n_iter_: int
    converged_: bool
    weights_update_: str
    inference_: tuple[Answered, ...]

    # ------------------------------------------------------------------ the family

    @abstractmethod
    def _read(self, X: ArrayLike) -> Points | Chunks:
        """The training points, checked, as the family wants them."""

    @abstractmethod
    def _pool(self) -> FamilyPooling:
        """What maximises the bound in the M-step."""

    @abstractmethod
    def _options(self) -> dict[str, float]:
        """What the M-step takes besides."""

    @abstractmethod
    def _start(self, X: Any, side: SideInformation, rng: Rng) -> Any:
        """θ of the start of a run."""

    def _starts(self, X: Any, side: SideInformation, rng: Rng) -> list[Any]:
        """Starts to be tried, of which a run takes the most promising."""
        return [self._start(X, side, rng)]

    @abstractmethod
    def _keep(self, parameters: Any) -> None:
        """Store θ in attributes."""

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
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the mixture to the points and to what is known beside them.

        Parameters
        ----------
        X : (N, D) array-like or dask.array
            The points, N ≥ K. An ``np.memmap`` stays on its disk. The chunks of a dask.array stay
            on the workers of a ``distributed.Client``, which do the work, or in this process where
            there is none; Gaussians are fitted there, other families fetch the points. A start is
            then made of at most 100,000 points.
        y : ignored
            Present for scikit-learn's conventions, whose searches score by it. What is known of
            classes goes to ``labels``.
        labels : (N,) int array or (N, K) bool array, default=None
            The component of each point, -1 where unknown; or the components still allowed.
        must_link, cannot_link : (P, 2) int array, default=None
            Pairs of points, by row number, that share a component, or do not. Here and below
            :class:`~cgmm.network.PairsAmong` where rows may be selected, as cross-validation does.
        preferences : (P, 3) array, default=None
            Rows ``i, j, log-odds`` that the two belong together; ±inf makes it hard. Finite ones
            may add up to 1e9 on a pair, beyond which they would leave no digits of the data. From
            certainties: :func:`cgmm.scenarios.preferences`.
        sample_weight : (N,) array, default=None
            How many points each point stands for, from 0 up. Of a point without relations each has
            a component of its own: a weight of 2 is the point twice. Of a point with relations all
            have the same: a weight of 2 is the point and another one must-linked to it. Draws of a
            start know no weights; what is made of them does.

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
            last parameters are kept. If the engine did not settle, or the chains of a sampler had
            not mixed, in its last E-step.
        ApproximationWarning
            Once a fit, if the engine approximates where exact inference costs too much.
        UserWarning
            If something may be meant otherwise than it is read: ``y`` that holds -1, None or NaN
            beside classes, or few classes and does not come from a pipeline or a search;
            preferences all between 0 and 1; row numbers beside an index of other integers.
        """
        self._validate_params()
        if labels is None:
            warn_ignored(y, "Known classes: fit(X, labels=cgmm.network.number_classes(y)[1]).")
        check_rows(X, must_link=must_link, cannot_link=cannot_link, preferences=preferences)
        continued = self._parameters() if self.warm_start and hasattr(self, "weights_") else None
        with explain_missing(X):
            X = self._read(X)
        if continued is not None:
            require_same_shape(continued, (self.n_components, X.shape[1]))
        side = SideInformation.build(
            X.shape[0], labels=labels, must_link=must_link, cannot_link=cannot_link,
            preferences=preferences, sampling=self.sampling,
        )  # fmt: skip
        # The mask of allowed components is made once, not in every E-step.
        side = side._replace(labels=None, allowed=side.mask(self.n_components))
        weights = check_sample_weight(sample_weight, X.shape[0])
        side = side.weighted(weights, self.sampling)
        rng = check_random_state(self.random_state)
        engine = engine_of(self.inference, rng, self.verbose)
        with (
            named_as_points(side), WarnedOnce(ApproximationWarning), workers(self.n_jobs) as over,
        ):  # fmt: skip
            pool, options = self._pool(), self._options()
            over = telling(over) if self.verbose > 1 else over
            at_work = partial(self._at_work, engine, pool, over)
            prepared, data = at_work(X, side)
            whole = not isinstance(getattr(self, "init_params", ""), str)
            few, told = few_of(X, side, rng, whole=whole)
            tried, tried_on = (prepared, data) if few is X else at_work(few, told)

            def begin(number: int) -> Any:
                starts = self._starts(few, told, rng) if continued is None else [continued]
                theta = most_promising(starts, tried_on, tried, pool, options)
                # An approximate engine may remember earlier calls: a new one for each run.
                own = data if prepared.finds_best else data._replace(infer=prepared.infer())
                return fold(
                    own, theta, pool, prepared.update_weights, options,
                    log_z_prior=prepared.log_z_prior,
                )  # fmt: skip

            one_run = partial(
                follow, begin, tol=self.tol, max_iter=self.max_iter, verbose=self.verbose,
                rate=partial(prepared.rate, data.given) if self.n_init > 1 else None,
            )  # fmt: skip
            best = best_of(one_run, self.n_init if continued is None else 1)
            chains = prepared.chains(data.given, best)
            joint = partial(prepared.joint_labels, data.given, chains=chains)
            self._store(prepared, best, data.joint_labels if isinstance(X, Chunks) else joint)
        # After everything is stored: the warning may be an error.
        warn_about(best, self.max_iter)
        warn_about_chains(chains)
        return self

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
        return self.fit(X, y, **known).labels_

    def _at_work(
        self, engine: Engine, pool: FamilyPooling, over: Over, X: Points | Chunks,
        side: SideInformation,
    ) -> tuple[Prepared, Any]:  # fmt: skip
        """An engine put to what is known of some points, and the points in blocks."""
        prepared = prepare(side, self.inference, engine, self.weights, self.n_components)
        height = pool.height(self.n_components, X.shape[1])
        if not isinstance(X, Chunks):
            return prepared, prepared.arrange(X, height, over)
        apply = partial(
            apply_engine, inference=self.inference, engine=prepared.engine,
            n_components=self.n_components,
        )  # fmt: skip
        return prepared, Partitions.of(X, prepared, apply, height, verbose=self.verbose)

    def _store(
        self, prepared: Prepared, run: Run, joint_labels: Callable[[Run], Assignment]
    ) -> None:
        # What may take long comes first: an interrupt then leaves no half of a fit.
        r, labels = run.posterior.answer(keep=self.store_responsibilities)
        say_last_words(prepared.at_work)
        exact = prepared.finds_best
        if len(prepared.graph.edges) or not exact:
            labels, exact = joint_labels(run)
        self._keep(run.parameters)
        for name in ("responsibilities_", "_known", "n_steps_", "n_samples_seen_"):
            vars(self).pop(name, None)
        if r is not None:
            self.responsibilities_ = r
        self.labels_, self.labels_exact_ = labels, exact
        self.log_evidence_, self._n_points = run.posterior.log_evidence, prepared.side.n_points
        self.history_ = np.array(run.history)
        self.n_iter_ = run.n_iter
        self.converged_ = run.converged
        self.weights_update_ = prepared.update
        self.inference_ = answers_of(
            prepared.side, prepared.ready, self.inference, len(self.weights_)
        )
        self._asked = self.sampling, self.inference, prepared.engine

    @property
    def parameters_(self) -> Any:
        """θ of the fit, as the functions of this package take it."""
        check_is_fitted(self, "weights_")
        return self._parameters()
