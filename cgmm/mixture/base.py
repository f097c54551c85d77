"""The base class of all mixture estimators: fit, partial_fit, predictions, scores and criteria.

The base class builds the network of the side information, applies an inference engine to it and
runs EM. A subclass returns its family of components; it may also override how data are read, where
EM starts and which attributes store θ. Estimators that accept missing values inherit ``impute``
from the second class. Chapters 3 to 10 explain the methods.

=====  ====================================================================
N, K   points and components; θ the parameters
t, γ   number of a step of ``partial_fit``, and its step size γ_t = t^-α
=====  ====================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, reduce
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.given import explain_missing, is_dask, read_rows
from cgmm.inference import ENGINES
from cgmm.large.batches import Average, add_batch, add_statistics, scale_statistics
from cgmm.large.blocks import Blocks, Points, workers
from cgmm.mixture.doubts import describe_doubted_relations
from cgmm.mixture.family import Family, log_joint
from cgmm.mixture.initialise import adapt_to_evidence, subsample_for_init
from cgmm.mixture.loop import Run, assign_block, expectation, follow, warn_about
from cgmm.mixture.problem import (
    SPANNING_TREE,
    AssignmentModel,
    FitResult,
    PlainProblem,
    apply_engine,
    build_problem,
    resolve_engine,
    warn_about_chains,
)  # fmt: skip
from cgmm.mixture.weights import UPDATES, closed_form
from cgmm.network import SAMPLING, ApproximationWarning, DoubtWarning, Engine, SideInformation
from cgmm.network.graph import naming
from cgmm.network.misreadings import check_rows, warn_ignored, warn_of_fractions
from cgmm.numerics import (
    FloatArray,
    IntArray,
    Seed,
    WarnedOnce,
    check_sample_weight,
    log_normalise,
    most_probable,
    warn_caller,
)  # fmt: skip
from cgmm.runs import Rng, Versioned, best_of, random_source
from cgmm.summary import Summary, summarise

# Number of random points from which a component is initialised if the estimator does not override
# the initialisation.
SEED_POINTS = 3
# Attributes that are deleted before the results of the next fit or step are stored.
RESULTS = (
    "history_", "n_iter_", "converged_", "log_evidence_", "evidence_exact_", "responsibilities_",
    "labels_exact_", "weights_update_", "inference_", "_n_points", "n_steps_", "n_samples_seen_",
    "_batches",
)  # fmt: skip
NO_BATCHES_WITH_GAPS = (
    "X holds NaN, which partial_fit cannot use: the moments of all batches are averaged about the "
    "parameters of the first step, but moments of a missing value depend on the current "
    "parameters. Fit all points at once, fit(X), or pass the complete rows of the batch, "
    "X[~np.isnan(X).any(axis=1)]."
)


class ConstrainedMixture(Versioned, DensityMixin, BaseEstimator, ABC):
    """Base class of all mixture estimators; only the family of the components is missing.

    A subclass returns its family from ``_family``; CONTRIBUTING shows a complete example.
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
        "step_exponent": [Interval(Real, 0.5, 1, closed="right")],
        "store_responsibilities": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int,
        *,
        sampling: str = "points",
        inference: str | Engine = "auto",
        weights: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        warm_start: bool = False,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        store_responsibilities: bool = True,
        step_exponent: float = 0.6,
    ):
        self.n_components = n_components
        self.sampling = sampling
        self.inference = inference
        self.weights = weights
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.store_responsibilities = store_responsibilities
        self.step_exponent = step_exponent

    # ------------------------------------------------------------------ the family

    @abstractmethod
    def _family(self) -> Family[Any]:
        """Return the family of the components, with the settings of its M-step."""

    def _read_points(self, X: ArrayLike) -> Any:
        """Check the training points and return them in the format of the family."""
        least = max(2, self.n_components)
        return validate_data(self, X, dtype=np.float64, order="F", ensure_min_samples=least)

    def _read_chunks(self, X: Any) -> Any:
        """Check the training points of a dask.array; by default, load all of them into memory."""
        return self._read_points(X)

    def _read_new(self, X: ArrayLike) -> Any:
        """Check new points: they must have the same columns as the training points."""
        return validate_data(self, X, dtype=np.float64, reset=False)

    def _starts(self, X: Any, side: SideInformation, rng: Rng) -> list[Callable[[], Any]]:
        """Return one function per run of EM, which takes no arguments and returns the initial θ."""
        return [partial(self._initial_parameters, X, side, rng)] * self.n_init

    def _initial_parameters(self, X: Any, side: SideInformation, rng: Rng) -> Any:
        """Return an initial θ from responsibilities that agree with the side information."""
        r = adapt_to_evidence(self._initial_responsibilities(X, rng), side)
        return self._family().start(X, side.counted(r))

    def _initial_responsibilities(self, X: Any, rng: Rng) -> FloatArray:
        """Initialise each component from ``SEED_POINTS`` random points; return responsibilities."""
        drawn = rng.randint(X.shape[0], size=(self.n_components, SEED_POINTS))
        r = np.zeros((X.shape[0], self.n_components))
        r[drawn, np.arange(self.n_components)[:, None]] = 1
        return log_normalise(log_joint(X, self._family().start(X, r)))[0]

    def _store_theta(self, parameters: Any) -> None:
        """Store θ in the estimator's attributes."""
        self._theta, self.weights_ = parameters, parameters.weights

    def _get_theta(self) -> Any:
        """Build θ from the estimator's attributes."""
        return self._theta

    def _draw_points(self, n_samples: int, rng: Rng) -> tuple[Any, IntArray]:
        """Draw points from the fitted mixture; return them with their components."""
        raise NotImplementedError(f"{type(self).__name__} has no method that draws samples.")

    def _count_free_parameters(self) -> int:
        """Return the number of free parameters of the fitted mixture."""
        return self._family().n_free(self._get_theta())

    # ------------------------------------------------------------------ fitting

    def fit(
        self, X: ArrayLike, y: object = None, *, labels: ArrayLike | None = None,
        must_link: ArrayLike | None = None, cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Fit the mixture to the points and their side information.

        Parameters
        ----------
        X : (N, D) array-like or dask.array
            The points, N ≥ K. Gaussian mixtures accept NaN for missing values. An ``np.memmap``
            is read from disk block by block. The chunks of a dask.array stay on the workers of a
            ``distributed.Client``, or in this process if there is no client; Gaussian mixtures
            are fitted chunk by chunk there, and other families load all points into memory.
            Initialisation uses at most 10,000 of the points.
        y : ignored
            Present for API consistency: scikit-learn's searches pass the classes here to score
            the fit. Pass known classes as ``labels``.
        labels : (N,) int array or (N, K) bool array, default=None
            The component of each point, -1 where unknown; or a mask of the allowed components.
        must_link, cannot_link : (P, 2) int array, default=None
            Pairs of row numbers: points that share a component, and points that do not. If rows
            may be selected later, as in cross-validation, pass relations (these and
            ``preferences``) as :class:`~cgmm.network.PairsAmong`.
        preferences : (P, 3) array, default=None
            Rows ``i, j, w``, where w is the log-odds that points i and j share a component; ±inf
            makes the relation hard. The finite log-odds of a pair may sum to at most 1e9, since
            larger numbers would round away the densities of the points. To convert certainties to
            log-odds, use :func:`cgmm.scenarios.preferences`.
        sample_weight : (N,) array, default=None
            Number of points, at least 0, that each row represents. Copies of a point without
            relations have independent components: a weight of 2 means the same as giving the point
            twice. Copies of a point with relations share one component: a weight of 2 means the
            same as a second, must-linked copy. Random draws in the initialisation never choose
            points of weight zero and treat all others alike; the initial θ is computed with the
            weights.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are infinite, too few or degenerate for the model; if the side information
            contradicts itself or cannot be satisfied with K components; if an initial parameter
            has a wrong shape or value; or if the engine does not support the request.
        KeyboardInterrupt
            If interrupted before the first iteration is complete, or a second time after that.

        Warns
        -----
        ConvergenceWarning
            If the best run reached ``max_iter`` or was interrupted from the keyboard; its last
            parameters are kept. Also if the engine did not converge in the last E-step, or the
            chains of a sampler had not mixed there.
        ApproximationWarning
            Once per fit, if the engine approximates because exact inference would cost too much.
        DoubtWarning
            If the points contradict the hard relations. The probability of this warning is at most
            1 % if all relations are right and the model is correct: the likelihood ratio
            L = p(x_i, x_j | wrong) / p(x_i, x_j | right) of a relation then has expectation 1, so
            its mean over relations reaches 100 with probability 1 % at most (Markov's inequality).
            If the classes have other tails than Gaussians, true relations may look wrong, too. With
            up to 10,000 points the relations are tested again at a second fit from other starts; if
            they look right there, the message says that this fit ended at a poor maximum.
            The warning is also given if a covariance would be nearly singular without
            ``reg_covar``.
        UserWarning
            If an argument was probably meant differently than ``fit`` reads it: a fractional weight
            of a point with relations; a ``y`` that looks like partial labels (it contains -1, None
            or NaN in addition to classes, or only a few classes, and no pipeline or search passed
            it); preferences that are all between 0 and 1, like probabilities; or row numbers for a
            table whose index consists of other integers.
        """
        self._validate_params()
        relations = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        known = relations | {"labels": labels, "sample_weight": sample_weight}
        if not y is must_link is cannot_link is preferences is None:
            self._warn_of_misreadings(X, y, labels, **relations)
        theta = self._get_theta() if self.warm_start and hasattr(self, "weights_") else None
        with explain_missing(X):
            points = self._read_chunks(X) if is_dask(X) else self._read_points(X)
        side, rng = self._build_side(points.shape[0], **known), random_source(self.random_state)
        with (
            nullcontext() if side.is_empty else naming(side.first_points, "point"),
            WarnedOnce(ApproximationWarning), workers(self.n_jobs) as map_blocks,
        ):  # fmt: skip
            problem = build_problem(
                points, side, self._family(), map_blocks, n_components=self.n_components,
                inference=self.inference, weights=self.weights, rng=rng,
            )  # fmt: skip
            starts = self._choose_starts(points, side, rng, theta)
            best = self._find_best_run(problem, starts)
            # This step may take long. It precedes storing, so an interrupt cannot leave a fit that
            # is stored only in part.
            fitted = problem.assign_points(best, self.store_responsibilities)
        self._store_results(problem, best, fitted)
        # Warnings come after storing, because the user may turn warnings into errors.
        self._warn_user(best, fitted, points, known)
        return self

    def fit_predict(self, X: ArrayLike, y: object = None, **known: Any) -> IntArray:
        """Fit the mixture and return ``labels_``.

        Parameters
        ----------
        X : (N, D) array-like
            The points.
        y : ignored
            Present for scikit-learn's conventions.
        **known
            Side information, with the keywords of ``fit``.

        Returns
        -------
        (N,) int array
            The component of each training point.
        """
        return self.fit(X, y, **known).labels_

    def _warn_of_misreadings(self, X: Any, y: object, labels: Any, **relations: Any) -> None:
        """Warn about arguments that were probably meant differently than ``fit`` reads them."""
        if labels is None and y is not None:
            warn_ignored(y, "Known classes: fit(X, labels=cgmm.network.number_classes(y)[1]).")
        if any(pairs is not None for pairs in relations.values()):
            check_rows(X, **relations)

    def _build_side(
        self, n_points: int, sample_weight: ArrayLike | None, preferences: Any = None, **known: Any
    ) -> SideInformation:
        """Build the side information; replace labels by the mask of allowed components."""
        known = known | {"preferences": preferences, "sampling": self.sampling}
        side = SideInformation.build(n_points, **known)
        if known.get("labels") is not None:
            side = side._replace(labels=None, allowed=side.mask(self.n_components))
        if sample_weight is None:
            return side
        weights = check_sample_weight(sample_weight, n_points, self.n_components)
        # A preference of zero also makes its points related, so the fit equals that with 1e-12.
        mentioned = read_rows("preferences", preferences, 3)[:, :2].astype(int)
        side = side.weighted(weights, self.sampling, mentioned)
        warn_of_fractions(side.power)
        return side

    def _choose_starts(
        self, points: Any, side: SideInformation, rng: Rng, theta: Any
    ) -> list[Callable[[], Any]]:
        """Return one function per run that returns the initial θ; a single one if θ is given."""
        if theta is not None:
            self._require_same_shape(theta, points)
            return [lambda: theta]
        is_table = not isinstance(getattr(self, "init_params", "auto"), str)
        return self._starts(*subsample_for_init(points, side, rng, whole=is_table), rng)

    def _find_best_run(self, problem: PlainProblem, starts: list[Callable[[], Any]]) -> Run:
        """Run EM from the starts and return the run with the highest score.

        With ``init_params="auto"`` EM runs ``n_init`` + 1 times. A run in which a component
        collapses onto one or two points is replaced by a run from the next start, because its
        evidence has no upper bound. If all runs collapse, the one from the best start is kept.
        """
        one_run = partial(
            follow, partial(problem.iterate_em, starts), tol=self.tol, max_iter=self.max_iter,
            verbose=self.verbose, rate=partial(self._score, problem) if len(starts) > 1 else None,
            report=problem.correct_evidence,
        )  # fmt: skip
        n_runs = min(self.n_init + (len(starts) > self.n_init), len(starts))
        return best_of(one_run, n_runs, len(starts), self._is_usable)

    def _score(self, problem: PlainProblem, run: Run) -> float:
        """Return the score for comparing runs, including the prior of the covariances."""
        return problem.score(run) + self._log_prior(run.parameters)

    def _log_prior(self, theta: Any) -> float:
        """Return the log-density of the prior of the covariances at θ; 0 without a prior."""
        return 0.0

    def _is_usable(self, run: Run) -> bool:
        """Return whether a run may be kept; with "auto", no component may have collapsed."""
        init = getattr(self, "init_params", "")
        is_portfolio = isinstance(init, str) and init == "auto"
        return not (is_portfolio and self._has_collapsed(run.parameters))

    def _store_results(self, problem: PlainProblem, run: Run, fitted: FitResult) -> None:
        """Store the results of the best run in the estimator's attributes."""
        self._delete_results()
        self._store_theta(run.parameters)
        if self.store_responsibilities:
            self.responsibilities_ = fitted.responsibilities
        self.labels_, self.labels_exact_ = fitted.labels, fitted.labels_exact
        self.log_evidence_, self.evidence_exact_ = run.posterior.log_evidence, fitted.evidence_exact
        self.history_, self.n_iter_ = np.array(run.history), len(run.history)
        self.converged_ = run.converged
        self.weights_update_, self.inference_ = problem.update, fitted.results
        self._n_points, self._n_columns = problem.side.n_points, problem.points.shape[1]
        self._engine_settings = self.sampling, self.inference, problem.engine

    def _warn_user(self, run: Run, fitted: FitResult, points: Any, known: dict[str, Any]) -> None:
        """Warn about a run that did not converge, chains that did not mix, and doubts."""
        warn_about(run, self.max_iter)
        for doubt in self._find_doubts(run.parameters, points, known):
            warn_caller(doubt, DoubtWarning)
        if fitted.chains is not None:
            warn_about_chains(fitted.chains)

    def _has_collapsed(self, theta: Any) -> bool:
        """Return whether a component has collapsed onto one or two points, or lost all points."""
        return False

    def _require_same_shape(self, theta: Any, X: Any) -> None:
        """Raise an error if θ has another number of components or columns than this fit."""
        wanted = self.n_components, X.shape[1]
        if (fitted := (len(theta.weights), self._n_columns)) != wanted:
            raise ValueError(
                f"warm_start continues a fit of {fitted[0]} components in {fitted[1]} columns, "
                f"but this one has {wanted[0]} in {wanted[1]}: begin anew, "
                "set_params(warm_start=False)."
            )

    def _find_doubts(self, theta: Any, X: Any, known: dict[str, Any]) -> list[str]:
        """Return the messages of ``DoubtWarning``."""
        return describe_doubted_relations(theta, X, known["must_link"], known["cannot_link"])

    def _delete_results(self) -> None:
        """Delete the attributes that store the results of an earlier fit or step."""
        for name in RESULTS:
            vars(self).pop(name, None)

    @property
    def parameters_(self) -> Any:
        """The fitted θ, in the format that the functions of :mod:`cgmm.mixture` accept."""
        check_is_fitted(self, "weights_")
        return self._get_theta()

    # ------------------------------------------------------------------ batch by batch

    def partial_fit(
        self, X: ArrayLike, y: object = None, *, labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Take one step of EM with a batch of points, which is not stored.

        The first call initialises θ from this batch, as ``fit`` does, and runs one iteration of EM
        on it; after a ``fit`` it continues from the fitted θ. Step t moves the average statistics
        towards those of its batch by the step size t^-α, where α is ``step_exponent`` (Cappé and
        Moulines, 2009). A batch should have several points per free parameter of a component's
        covariance.

        Parameters
        ----------
        X : (B, D) array-like
            The batch; the first one needs B ≥ K points.
        y : ignored
            Present for API consistency.
        labels : (B,) int array or (B, K) bool array, default=None
            As in ``fit``. Relations are not supported, since related points could be in different
            batches.
        sample_weight : (B,) array, default=None
            As in ``fit``.

        Returns
        -------
        self
            The estimator with ``n_steps_``, ``n_samples_seen_``, and ``labels_`` of this batch.

        Raises
        ------
        ValueError
            If the batch has infinite or missing values, has other columns than the first batch, or
            makes the covariance of a component singular; or if ``labels`` has a wrong shape or
            value.
        """
        self._validate_params()
        batch: Any = X
        batch = batch.compute() if is_dask(X) else X
        theta = self._get_theta() if hasattr(self, "weights_") else None
        with explain_missing(batch):
            points = self._read_points(batch) if theta is None else self._read_new(batch)
        if getattr(points, "has_gaps", False):
            raise ValueError(NO_BATCHES_WITH_GAPS)
        side = self._build_side(points.shape[0], sample_weight, labels=labels)
        family, rng = self._family(), random_source(self.random_state)
        with workers(self.n_jobs) as map_blocks:
            data = Blocks.build(points, side, ENGINES["auto"], self.n_components, map=map_blocks)
            theta = self._choose_starts(points, side, rng, theta)[0]()
            last: Average | None = getattr(self, "_batches", None)
            about = theta if last is None else last.about
            half = partial(expectation, theta, family=family, keep_r=False, reference=about)
            _, counts, _, statistics = reduce(add_statistics, data.each(half))
            after = add_batch(last, about, (counts, statistics), side.n_points, self.step_exponent)
            # The averages are multiplied by the number of points so far, so that a pseudo-count has
            # the same effect as in ``fit``.
            counts, statistics = scale_statistics(after.mean, after.n_points)
            theta = family.maximise(statistics, about).with_weights(closed_form(counts))
            labels = data.gather(partial(assign_block, theta, False))
        self._delete_results()
        self._store_theta(theta)
        self.labels_, self._batches, self._n_columns = labels, after, points.shape[1]
        self.n_steps_: int = after.n_steps
        self.n_samples_seen_: float = after.n_points
        self._engine_settings = self.sampling, self.inference, resolve_engine(self.inference, rng)
        return self

    # ------------------------------------------------------------------ new points

    def _log_joint(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "weights_")
        with explain_missing(X):
            X = self._read_new(X)
        return log_joint(X, self._get_theta())

    def _predict_with_relations(
        self, X: ArrayLike, **known: Any
    ) -> tuple[Points, AssignmentModel, FloatArray]:
        """Return new points, their model with the engine applied to their relations, and r_ik."""
        check_is_fitted(self, "weights_")
        check_rows(X, **known)
        with explain_missing(X):
            points, theta = self._read_new(X), self._get_theta()
        sampling, inference, engine = self._engine_settings
        side = SideInformation.build(points.shape[0], **known, sampling=sampling)
        with naming(side.first_points, "point"), WarnedOnce(ApproximationWarning):
            model = apply_engine(side, inference, engine, len(theta.weights))
            return points, model, model.divide(points).gather(partial(assign_block, theta, True))

    def predict(
        self, X: ArrayLike, *, must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None, preferences: ArrayLike | None = None,
    ) -> IntArray:  # fmt: skip
        """Return the most probable component of each point, given relations among the points.

        Training points are treated as new points: their side information affects ``labels_``, but
        it affects this prediction only if it is passed again.

        Parameters
        ----------
        X : (N, D) array-like
            The points.
        must_link, cannot_link, preferences : arrays, default=None
            Relations among these points, as in ``fit``. There is no argument ``labels``, because a
            point of known class needs no prediction. To use such labels for related points, pass
            all of them to ``fit``, which also learns from them.

        Returns
        -------
        (N,) int array
            The component of each point. With relations it is the most probable joint assignment,
            computed as for ``labels_``, which breaks no hard relation.

        Raises
        ------
        ValueError
            If a relation refers to a point that does not exist, if relations contradict each other
            or cannot be satisfied, or if the engine of the fit does not support the request.
        """
        if must_link is cannot_link is preferences is None:
            return most_probable(self.predict_proba(X))
        relations = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        (points, model, r), theta = self._predict_with_relations(X, **relations), self._get_theta()
        with naming(model.side.first_points, "point"):
            return model.joint_labels(points, theta, r, model.chains(points, theta)).states

    def predict_proba(
        self, X: ArrayLike, *, must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None, preferences: ArrayLike | None = None,
    ) -> FloatArray:  # fmt: skip
        """Return the responsibilities of the components, given the relations among the points.

        Parameters
        ----------
        X : (N, D) array-like
            Points.
        must_link, cannot_link, preferences : arrays, default=None
            As in ``predict``.

        Returns
        -------
        (N, K) array
            Rows sum to one.
        """
        if must_link is cannot_link is preferences is None:
            return log_normalise(self._log_joint(X))[0]
        relations = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        return self._predict_with_relations(X, **relations)[2]

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return the log-density of the mixture at each point.

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

    def score(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the mean log-density of the points.

        Parameters
        ----------
        X : (N, D) array-like
            Points.
        y : ignored
            Present for scikit-learn's conventions.
        sample_weight : (N,) array, default=None
            How often each point counts in the mean.

        Returns
        -------
        float
            In nats per point.
        """
        log_densities = self.score_samples(X)
        weights = check_sample_weight(sample_weight, len(log_densities))
        return float(np.average(log_densities, weights=weights))

    def summary(self, **relations: Any) -> Summary:
        """Return a summary of the fit, shown as text or, in a notebook, as HTML.

        Parameters
        ----------
        **relations
            ``must_link``, ``cannot_link`` and ``preferences`` of the fit; the summary then also
            counts how many of them ``labels_`` satisfies.

        Returns
        -------
        Summary
            Sizes, weights, evidence, engine, and the number of satisfied relations.
        """
        return summarise(self, **relations)

    def sample(self, n_samples: int = 1) -> tuple[FloatArray | IntArray, IntArray]:
        """Draw points from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points to draw.

        Returns
        -------
        X : (n_samples, D) array
            The points, grouped by component.
        z : (n_samples,) int array
            The component of each point.

        Raises
        ------
        ValueError
            If ``n_samples`` is not positive.
        """
        check_is_fitted(self, "weights_")
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}; ask for at least one sample.")
        return self._draw_points(n_samples, random_source(self.random_state))

    # ------------------------------------------------------------------ criteria

    @property
    def lower_bound_(self) -> float:
        """Log-evidence per training point, ``log_evidence_ / N``, in nats."""
        check_is_fitted(self, "weights_")
        return self.log_evidence_ / self._n_points

    def bic(self, X: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion; lower is better.

        A θ that satisfies relations fits the points alone less well, so ``bic(X)`` penalises the
        fit for satisfying its relations. With relations or labels, choose K by ``bic()``, and
        compare only fits that were given the same side information.

        Parameters
        ----------
        X : (N, D) array-like, default=None
            Points, new ones or those of the fit; relations and labels are not used, as in
            scikit-learn. None: use the training points with all their side information, which is
            the right way to choose K if relations were given.

        Returns
        -------
        float
            -2 log p(X | θ) + ν log N, or -2 ``log_evidence_`` + ν log N without ``X``. N is the
            number of points, whether or not they are linked. Without side information the two are
            equal for the training points.

        Raises
        ------
        ValueError
            Without ``X``, if the engine of the fit reports no evidence.

        Warns
        -----
        ApproximationWarning
            Without ``X``, if ``evidence_exact_`` is False.
        """
        evidence, n_samples = self._get_evidence_and_size(X)
        return float(-2 * evidence + self._count_free_parameters() * np.log(n_samples))

    def aic(self, X: ArrayLike | None = None) -> float:
        """Return the Akaike information criterion; lower is better.

        Parameters
        ----------
        X : (N, D) array-like, default=None
            As in :meth:`bic`.

        Returns
        -------
        float
            -2 log p(X | θ) + 2 ν, or -2 ``log_evidence_`` + 2 ν.

        Raises
        ------
        ValueError
            As :meth:`bic`.
        """
        return float(-2 * self._get_evidence_and_size(X)[0] + 2 * self._count_free_parameters())

    def _get_evidence_and_size(self, X: ArrayLike | None) -> tuple[float, float]:
        """Return the log-evidence of the given or else the training points, and their number."""
        if X is not None:
            log_densities = self.score_samples(X)
            return float(log_densities.sum()), len(log_densities)
        check_is_fitted(self, "weights_")
        if np.isnan(self.log_evidence_):
            raise ValueError(
                "the engine of this fit reports no log-evidence, so no criterion can include the "
                "side information. Fit with another engine, set_params(inference='auto').fit(...), "
                "or compute the criterion for the points alone, bic(X)."
            )
        if not self.evidence_exact_:
            warn_caller(
                "the log-evidence of this fit is an approximation, which may be nats off: fits "
                "with similar values may be ranked wrongly. set_params(inference='exact') "
                "computes it exactly if that is affordable; bic(X) uses the points alone.",
                ApproximationWarning,
            )
        return self.log_evidence_, self._n_points


# ------------------------------------------------------------ missing values


class ImputingMixture(ConstrainedMixture):
    """Base class of the mixtures that accept missing values."""

    def impute(
        self, X: ArrayLike, *, draw: bool = False, random_state: Seed = None,
        must_link: ArrayLike | None = None, cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """Return the table with its missing values filled in.

        Parameters
        ----------
        X : (N, D) array-like
            Points, with NaN for missing values.
        draw : bool, default=False
            False: replace each missing number by its expectation given the observed values of its
            row, and each missing category by the most probable one. The variances and correlations
            of such a table are biased, so use it for inspection, or for methods that need complete
            rows. True: draw the missing values of each row from the mixture, given its observed
            values; several such draws show how uncertain the values are (multiple imputation).
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws; None: use the seed of the estimator.
        must_link, cannot_link, preferences : arrays, default=None
            Relations among these points, as in ``predict``; they affect the responsibilities.

        Returns
        -------
        (N, D) array, or a table like X
            Observed values are unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from cgmm import ConstrainedGaussianMixture
        >>> X = np.array([[0.0, 0.1], [1.0, 0.9], [2.0, 2.1], [3.0, np.nan]])
        >>> ConstrainedGaussianMixture().fit(X).impute(X)[3].round(1)
        array([3., 3.])
        """
        relations = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        r = self.predict_proba(X, **relations)
        if not draw:
            return self._impute(X, r, None)
        seed = self.random_state if random_state is None else random_state
        return self._impute(X, r, random_source(seed))

    @abstractmethod
    def _impute(self, X: ArrayLike, r: FloatArray, rng: Rng | None) -> Any:
        """Fill in missing values, given (N, K) responsibilities; without rng, by expectations."""
