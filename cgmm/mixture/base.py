"""The estimator of mixtures: from side information to a fitted mixture, and what that answers.

A subclass names its family of components and, where the defaults below do not serve, says how its
data are read, where EM starts and which attributes hold θ. This file builds the network of the side
information, applies an engine to it and runs EM. Mixtures that take empty cells inherit ``impute``
from the second class. Chapters 3 to 10.

=====  ====================================================================
N, K   points and components; θ the parameters
t, γ   number of a step after a batch of points, and how far it goes: γ_t = t^-α
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
from cgmm.large.batches import Average, add_statistics, scale_statistics, step
from cgmm.large.blocks import Blocks, Points, workers
from cgmm.mixture.doubts import doubted_relations
from cgmm.mixture.family import Family, log_joint
from cgmm.mixture.initialise import adapt_to_evidence, subsample_for_init
from cgmm.mixture.loop import Run, assigned, expectation, follow, warn_about
from cgmm.mixture.problem import (
    SPANNING_TREE,
    AssignmentModel,
    Found,
    PlainProblem,
    apply_engine,
    engine_of,
    pose,
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

# Number of points from which a component starts if its family has no starts of its own.
SEED_POINTS = 3
# Attributes that the next fit or step makes outdated.
RESULTS = (
    "history_", "n_iter_", "converged_", "log_evidence_", "evidence_exact_", "responsibilities_",
    "labels_exact_", "weights_update_", "inference_", "_n_points", "n_steps_", "n_samples_seen_",
    "_batches",
)  # fmt: skip
NO_BATCHES_WITH_GAPS = (
    "X holds NaN, which partial_fit cannot use: the moments of all batches are averaged about the "
    "parameters of the first step, and those of an empty cell depend on the present parameters. "
    "Fit all points at once, fit(X), or pass the complete rows of the batch, "
    "X[~np.isnan(X).any(axis=1)]."
)


class ConstrainedMixture(Versioned, DensityMixin, BaseEstimator, ABC):
    """Base class of the mixtures: everything but the family of the components.

    A subclass returns its family from ``_family``; CONTRIBUTING writes one in full.
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

    def _read(self, X: ArrayLike) -> Any:
        """Return the training points, checked, in the form that the family takes."""
        least = max(2, self.n_components)
        return validate_data(self, X, dtype=np.float64, order="F", ensure_min_samples=least)

    def _read_chunks(self, X: Any) -> Any:
        """Return the training points of a dask.array; by default, brought together."""
        return self._read(X)

    def _read_new(self, X: ArrayLike) -> Any:
        """Return new points, checked against those of the fit."""
        return validate_data(self, X, dtype=np.float64, reset=False)

    def _starts(self, X: Any, side: SideInformation, rng: Rng) -> list[Callable[[], Any]]:
        """Return functions without arguments, each of which makes θ of the start of one run."""
        return [partial(self._start, X, side, rng)] * self.n_init

    def _start(self, X: Any, side: SideInformation, rng: Rng) -> Any:
        """Return θ made of responsibilities that agree with what is known."""
        r = adapt_to_evidence(self._responsibilities(X, rng), side)
        return self._family().start(X, side.counted(r))

    def _responsibilities(self, X: Any, rng: Rng) -> FloatArray:
        """Return (N, K) responsibilities under components made of a few random points each."""
        drawn = rng.randint(X.shape[0], size=(self.n_components, SEED_POINTS))
        r = np.zeros((X.shape[0], self.n_components))
        r[drawn, np.arange(self.n_components)[:, None]] = 1
        return log_normalise(log_joint(X, self._family().start(X, r)))[0]

    def _keep(self, parameters: Any) -> None:
        """Store θ in attributes."""
        self._theta, self.weights_ = parameters, parameters.weights

    def _parameters(self) -> Any:
        """Return θ, made of the attributes."""
        return self._theta

    def _draw(self, n_samples: int, rng: Rng) -> tuple[Any, IntArray]:
        """Return points drawn from the fitted mixture, and their components."""
        raise NotImplementedError(f"{type(self).__name__} does not say how points are drawn.")

    def _n_free(self) -> int:
        """Return the number of free parameters."""
        return self._family().n_free(self._parameters())

    # ------------------------------------------------------------------ fitting

    def fit(
        self, X: ArrayLike, y: object = None, *, labels: ArrayLike | None = None,
        must_link: ArrayLike | None = None, cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Fit the mixture to the points and to what is known beside them.

        Parameters
        ----------
        X : (N, D) array-like or dask.array
            The points, N ≥ K. Mixtures of Gaussians take NaN in cells that are empty. An
            ``np.memmap`` stays on its disk. The chunks of a dask.array stay on the workers of a
            ``distributed.Client``, which do the work, or in this process where there is none;
            Gaussians are fitted there, other families fetch the points. A start is made of
            10,000 of the points at most.
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
            start leave out what has no weight, and know no others; what is made of them does.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are not finite or too few, or degenerate for the model; if what is known
            contradicts itself or cannot be satisfied with K components; if a start does not fit; or
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
        DoubtWarning
            If the points speak against hard relations, with a probability of at most 1 % where the
            relations are right and the components are what made the points: L = p(x_i, x_j | wrong)
            / p(x_i, x_j | right) has then the expectation 1, and its mean over relations reaches
            100 no more often (Markov's inequality). Where classes have other tails than Gaussians,
            true relations may look wrong, too. If they look wrong only because EM has ended at a
            poor maximum, the message says so: a second fit from other starts is compared, of up to
            10,000 points. If a covariance would be all but singular without ``reg_covar``.
        UserWarning
            If something may be meant otherwise than it is read: weights of related points that
            are fractions of a point; ``y`` that holds -1, None or NaN
            beside classes, or few classes and does not come from a pipeline or a search;
            preferences all between 0 and 1; row numbers beside an index of other integers.
        """
        self._validate_params()
        ties = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        known = ties | {"labels": labels, "sample_weight": sample_weight}
        if not y is must_link is cannot_link is preferences is None:
            self._warn_of_misreadings(X, y, labels, **ties)
        theta = self._parameters() if self.warm_start and hasattr(self, "weights_") else None
        with explain_missing(X):
            points = self._read_chunks(X) if is_dask(X) else self._read(X)
        side, rng = self._side(points.shape[0], **known), random_source(self.random_state)
        with (
            nullcontext() if side.is_empty else naming(side.first_points, "point"),
            WarnedOnce(ApproximationWarning), workers(self.n_jobs) as map_blocks,
        ):  # fmt: skip
            problem = pose(
                points, side, self._family(), map_blocks, n_components=self.n_components,
                inference=self.inference, weights=self.weights, rng=rng,
            )  # fmt: skip
            starts = self._starts_of_runs(points, side, rng, theta)
            best = self._best_run(problem, starts)
            # This may take long, so it precedes storing: an interrupt leaves no half-stored fit.
            found = problem.assign(best, self.store_responsibilities)
        self._store(problem, best, found)
        # After everything is stored: a warning may be raised as an error.
        self._warn(best, found, points, known)
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
            What is known beside the points, as in ``fit``.

        Returns
        -------
        (N,) int array
            The component of each training point.
        """
        return self.fit(X, y, **known).labels_

    def _warn_of_misreadings(self, X: Any, y: object, labels: Any, **ties: Any) -> None:
        """Warn about what may be meant otherwise than it is read."""
        if labels is None and y is not None:
            warn_ignored(y, "Known classes: fit(X, labels=cgmm.network.number_classes(y)[1]).")
        if any(pairs is not None for pairs in ties.values()):
            check_rows(X, **ties)

    def _side(
        self, n_points: int, sample_weight: ArrayLike | None, preferences: Any = None, **known: Any
    ) -> SideInformation:
        """Build the network of what is known, with its mask of allowed components cached."""
        known = known | {"preferences": preferences, "sampling": self.sampling}
        side = SideInformation.build(n_points, **known)
        if known.get("labels") is not None:
            side = side._replace(labels=None, allowed=side.mask(self.n_components))
        if sample_weight is None:
            return side
        weights = check_sample_weight(sample_weight, n_points, self.n_components)
        # A preference of zero makes two points related, as one of 1e-12 does.
        mentioned = read_rows("preferences", preferences, 3)[:, :2].astype(int)
        side = side.weighted(weights, self.sampling, mentioned)
        warn_of_fractions(side.power)
        return side

    def _starts_of_runs(
        self, points: Any, side: SideInformation, rng: Rng, theta: Any
    ) -> list[Callable[[], Any]]:
        """Return functions that make θ of the start of each run; only ``theta`` if it is given."""
        if theta is not None:
            self._require_same_shape(theta, points)
            return [lambda: theta]
        is_table = not isinstance(getattr(self, "init_params", "auto"), str)
        return self._starts(*subsample_for_init(points, side, rng, whole=is_table), rng)

    def _best_run(self, problem: PlainProblem, starts: list[Callable[[], Any]]) -> Run:
        """Run EM from the starts and return the run of the highest score.

        Of a portfolio one run more than ``n_init`` is made. A run that collapses onto a point or
        two is replaced by the next, since its evidence has no upper bound. If all runs collapse,
        the one from the best start is kept.
        """
        one_run = partial(
            follow, partial(problem.steps, starts), tol=self.tol, max_iter=self.max_iter,
            verbose=self.verbose, rate=partial(self._rate, problem) if len(starts) > 1 else None,
            report=problem.report,
        )  # fmt: skip
        n_runs = min(self.n_init + (len(starts) > self.n_init), len(starts))
        return best_of(one_run, n_runs, len(starts), self._is_usable)

    def _rate(self, problem: PlainProblem, run: Run) -> float:
        """Return the score by which runs are compared."""
        return problem.score(run) + self._log_prior(run.parameters)

    def _log_prior(self, theta: Any) -> float:
        """Return the log-density of the prior at θ; 0 where there is none."""
        return 0.0

    def _is_usable(self, run: Run) -> bool:
        """Return whether a run describes more than a point or two by each of its components."""
        init = getattr(self, "init_params", "")
        is_portfolio = isinstance(init, str) and init == "auto"
        return not (is_portfolio and self._has_collapsed(run.parameters))

    def _store(self, problem: PlainProblem, run: Run, found: Found) -> None:
        """Store what was found in the attributes of the estimator."""
        self._forget()
        self._keep(run.parameters)
        if self.store_responsibilities:
            self.responsibilities_ = found.responsibilities
        self.labels_, self.labels_exact_ = found.labels, found.labels_exact
        self.log_evidence_, self.evidence_exact_ = run.posterior.log_evidence, found.evidence_exact
        self.history_, self.n_iter_ = np.array(run.history), len(run.history)
        self.converged_ = run.converged
        self.weights_update_, self.inference_ = problem.update, found.results
        self._n_points, self._n_columns = problem.side.n_points, problem.points.shape[1]
        self._asked = self.sampling, self.inference, problem.engine

    def _warn(self, run: Run, found: Found, points: Any, known: dict[str, Any]) -> None:
        """Warn about a run that did not converge, chains that did not mix, and doubts."""
        warn_about(run, self.max_iter)
        for doubt in self._doubts(run.parameters, points, known):
            warn_caller(doubt, DoubtWarning)
        if found.chains is not None:
            warn_about_chains(found.chains)

    def _has_collapsed(self, theta: Any) -> bool:
        """Return whether a component of the fit describes a point or two, or none."""
        return False

    def _require_same_shape(self, theta: Any, X: Any) -> None:
        """Refuse to go on from parameters of other components or other data."""
        wanted = self.n_components, X.shape[1]
        if (found := (len(theta.weights), self._n_columns)) != wanted:
            raise ValueError(
                f"warm_start goes on from a fit of {found[0]} components in {found[1]} columns, "
                f"but this one has {wanted[0]} in {wanted[1]}: begin anew, "
                "set_params(warm_start=False)."
            )

    def _doubts(self, theta: Any, X: Any, known: dict[str, Any]) -> list[str]:
        """Return the messages of ``DoubtWarning``."""
        return doubted_relations(theta, X, known["must_link"], known["cannot_link"])

    def _forget(self) -> None:
        """Delete the results of an earlier fit or step."""
        for name in RESULTS:
            vars(self).pop(name, None)

    @property
    def parameters_(self) -> Any:
        """θ of the fit, as the functions of this package take it."""
        check_is_fitted(self, "weights_")
        return self._parameters()

    # ------------------------------------------------------------------ batch by batch

    def partial_fit(
        self, X: ArrayLike, y: object = None, *, labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Take one step of EM with a batch of points, which is not kept.

        The first call starts as ``fit`` does, from this batch, and makes an iteration of EM of it;
        after ``fit`` it starts from what was fitted. Step t goes the part t^-α of the way to what
        its batch says, with α the ``step_exponent`` (Cappé and Moulines, 2009). A batch should hold
        several points for each number in a component's covariance.

        Parameters
        ----------
        X : (B, D) array-like
            The batch; the first one with B ≥ K.
        y : ignored
            Present for scikit-learn's conventions.
        labels : (B,) int array or (B, K) bool array, default=None
            As in ``fit``. Relations need all that they tie at once: there are none here.
        sample_weight : (B,) array, default=None
            As in ``fit``.

        Returns
        -------
        self
            With ``n_steps_``, ``n_samples_seen_``, and ``labels_`` of this batch.

        Raises
        ------
        ValueError
            If the batch is not finite or has empty cells, has other columns than the first, or
            leaves a component without a covariance; if ``labels`` does not fit.
        """
        self._validate_params()
        batch: Any = X
        batch = batch.compute() if is_dask(X) else X
        theta = self._parameters() if hasattr(self, "weights_") else None
        with explain_missing(batch):
            points = self._read(batch) if theta is None else self._read_new(batch)
        if getattr(points, "has_gaps", False):
            raise ValueError(NO_BATCHES_WITH_GAPS)
        side = self._side(points.shape[0], sample_weight, labels=labels)
        family, rng = self._family(), random_source(self.random_state)
        with workers(self.n_jobs) as map_blocks:
            data = Blocks.of(points, side, ENGINES["auto"], self.n_components, map=map_blocks)
            theta = self._starts_of_runs(points, side, rng, theta)[0]()
            before: Average | None = getattr(self, "_batches", None)
            about = theta if before is None else before.about
            half = partial(expectation, theta, family=family, keep=False, about=about)
            _, counts, _, statistics = reduce(add_statistics, data.each(half))
            after = step(before, about, (counts, statistics), side.n_points, self.step_exponent)
            # Scaled to all points so far, so that pseudo-counts keep their meaning.
            counts, statistics = scale_statistics(after.mean, after.n_points)
            theta = family.maximise(statistics, about).with_weights(closed_form(counts))
            labels = data.gather(partial(assigned, theta, False))
        self._forget()
        self._keep(theta)
        self.labels_, self._batches, self._n_columns = labels, after, points.shape[1]
        self.n_steps_: int = after.n_steps
        self.n_samples_seen_: float = after.n_points
        self._asked = self.sampling, self.inference, engine_of(self.inference, rng)
        return self

    # ------------------------------------------------------------------ new points

    def _log_joint(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "weights_")
        with explain_missing(X):
            X = self._read_new(X)
        return log_joint(X, self._parameters())

    def _predict_with_relations(
        self, X: ArrayLike, **known: Any
    ) -> tuple[Points, AssignmentModel, FloatArray]:
        """Return new points, their network, and their responsibilities at the fitted θ."""
        check_is_fitted(self, "weights_")
        check_rows(X, **known)
        with explain_missing(X):
            points, theta = self._read_new(X), self._parameters()
        sampling, inference, engine = self._asked
        side = SideInformation.build(points.shape[0], **known, sampling=sampling)
        with naming(side.first_points, "point"), WarnedOnce(ApproximationWarning):
            model = apply_engine(side, inference, engine, len(theta.weights))
            return points, model, model.blocks(points).gather(partial(assigned, theta, True))

    def predict(
        self, X: ArrayLike, *, must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None, preferences: ArrayLike | None = None,
    ) -> IntArray:  # fmt: skip
        """Return the most probable component of each point, alone or jointly with related points.

        Points of the fit are points as any others: what was known of them counts in ``labels_``,
        and here only if it is given once more.

        Parameters
        ----------
        X : (N, D) array-like
            Points, not necessarily those of the fit.
        must_link, cannot_link, preferences : arrays, default=None
            Relations among these points, as in ``fit``. There are no ``labels`` here: of a point
            whose class is known there is nothing to predict, and what it says about its
            neighbours can be said with ``fit``, which learns from it as well.

        Returns
        -------
        (N,) int array
            The component. With relations the components of all points together, found as
            ``labels_`` is: no hard relation is broken.

        Raises
        ------
        ValueError
            If relations name a point that does not exist, contradict each other or cannot be
            satisfied; if the engine of the fit cannot do what is asked.
        """
        if must_link is cannot_link is preferences is None:
            return most_probable(self.predict_proba(X))
        ties = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        (points, model, r), theta = self._predict_with_relations(X, **ties), self._parameters()
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
        ties = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        return self._predict_with_relations(X, **ties)[2]

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
        """Return what was fitted, as text and as HTML in a notebook.

        Parameters
        ----------
        **relations
            ``must_link``, ``cannot_link`` and ``preferences`` of the fit, of which is told how
            many are kept.

        Returns
        -------
        Summary
            Sizes, weights, evidence, engine, and relations kept.
        """
        return summarise(self, **relations)

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
        return self._draw(n_samples, random_source(self.random_state))

    # ------------------------------------------------------------------ criteria

    @property
    def lower_bound_(self) -> float:
        """Log-evidence per training point, ``log_evidence_ / N``, in nats."""
        check_is_fitted(self, "weights_")
        return self.log_evidence_ / self._n_points

    def bic(self, X: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion; lower is better.

        θ of a fit with relations is not what fits the points best by themselves, so ``bic(X)``
        holds against it what it was told to satisfy; with relations or labels, choose K by
        ``bic()``, of fits that were told the same.

        Parameters
        ----------
        X : (N, D) array-like, default=None
            Points by themselves, new ones or those of the fit; relations and labels do not count,
            as in scikit-learn. None: the training points with all that was known of them, by which
            to choose the number of components where relations were given.

        Returns
        -------
        float
            -2 log p(X | θ) + ν log N, or -2 ``log_evidence_`` + ν log N. N counts points, whatever
            is tied. The two are equal where nothing was known.

        Raises
        ------
        ValueError
            Without ``X``, if the engine of the fit reports no evidence.

        Warns
        -----
        ApproximationWarning
            Without ``X``, if ``evidence_exact_`` is False.
        """
        evidence, n_samples = self._evidence(X)
        return float(-2 * evidence + self._n_free() * np.log(n_samples))

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
        return float(-2 * self._evidence(X)[0] + 2 * self._n_free())

    def _evidence(self, X: ArrayLike | None) -> tuple[float, float]:
        """Return the log-evidence and number of the given points, or those of the fit itself."""
        if X is not None:
            log_densities = self.score_samples(X)
            return float(log_densities.sum()), len(log_densities)
        check_is_fitted(self, "weights_")
        if np.isnan(self.log_evidence_):
            raise ValueError(
                "the engine of this fit reports no log-evidence, so there is no criterion that "
                "counts what was known. Fit with another, set_params(inference='auto').fit(...), "
                "or ask for points by themselves, bic(X)."
            )
        if not self.evidence_exact_:
            warn_caller(
                "the log-evidence of this fit is an approximation, which may be nats off: fits "
                "that differ by a few are not told apart by it. set_params(inference='exact') "
                "computes it where that is affordable; bic(X) asks for points by themselves.",
                ApproximationWarning,
            )
        return self.log_evidence_, self._n_points


# ------------------------------------------------------------ empty cells


class ImputingMixture(ConstrainedMixture):
    """Base of the mixtures that take empty cells."""

    def impute(
        self, X: ArrayLike, *, draw: bool = False, random_state: Seed = None,
        must_link: ArrayLike | None = None, cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """Return the table with its empty cells filled in.

        Parameters
        ----------
        X : (N, D) array-like
            Points, with NaN in empty cells.
        draw : bool, default=False
            False: each cell gets its expectation given the present cells of its row, and a category
            the most probable one. Variances and correlations of such a table are too small or too
            large; it is for looking at, and for methods that need complete rows. True: each row is
            drawn from the mixture given its present cells, so that several draws show how uncertain
            the cells are (multiple imputation).
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws; None: that of the estimator.
        must_link, cannot_link, preferences : arrays, default=None
            Relations among these points, as in ``predict``; they tell which components a point
            may have.

        Returns
        -------
        (N, D) array, or a table like X
            Present cells are unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from cgmm import ConstrainedGaussianMixture
        >>> X = np.array([[0.0, 0.1], [1.0, 0.9], [2.0, 2.1], [3.0, np.nan]])
        >>> ConstrainedGaussianMixture().fit(X).impute(X)[3].round(1)
        array([3., 3.])
        """
        ties = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        r = self.predict_proba(X, **ties)
        if not draw:
            return self._impute(X, r, None)
        seed = self.random_state if random_state is None else random_state
        return self._impute(X, r, random_source(seed))

    @abstractmethod
    def _impute(self, X: ArrayLike, r: FloatArray, rng: Rng | None) -> Any:
        """Return the table with cells filled in, given (N, K) responsibilities of its points."""
