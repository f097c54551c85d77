"""scikit-learn estimators: they validate, choose and store; the mathematics is elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.em import em, node_unaries
from cgmm.gaussian import POOLINGS, Parameters, log_joint, sample
from cgmm.inference import ENGINES
from cgmm.initialise import GUIDED_STARTS, STARTS, from_responsibilities, honour, nearest
from cgmm.network import Engine, Infer, NetworkError, spanning_forest
from cgmm.numerics import log_normalise
from cgmm.runs import Run, best_of, follow, warn_about
from cgmm.side_information import SAMPLING, SideInformation, require_colourable
from cgmm.weights import UPDATES, Prior, Update

__all__ = ["ConstrainedGaussianMixture"]

SPANNING_TREE = "spanning_tree"


class ConstrainedGaussianMixture(DensityMixin, BaseEstimator):
    """Gaussian mixture fitted by expectation maximisation, with whatever is known beside the data.

    Labels, must-links, cannot-links and preferences go to :meth:`fit`; they become one Markov
    network over the assignments, in which ``inference`` finds the E-step's posterior. Without them
    this is the plain mixture.

    Parameters
    ----------
    n_components : int, default=1
        K.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        How the components' covariances are pooled.
    sampling : {"points", "chunklets"}, default="points"
        What is drawn independently: points, so that a chunklet's prior is π_k to the power of its
        size, or chunklets, so that it is π_k. (Assumptions 2 and 1 of shental2003.)
    inference : str or callable, default="auto"
        The engine of the E-step: a name in ``cgmm.inference.ENGINES``; "spanning_tree", which drops
        relations that would close a cycle and is exact on the rest; or an engine itself. "auto"
        takes the cheapest exact engine for each connected component, and refuses where that costs
        too much. "mean_field" and "gibbs" are approximate; see the notes.
    weights : {"exact", "pseudo-likelihood", "ignore", "grid"}, default="exact"
        The update of the weights where the prior's normaliser depends on them: an entry of
        ``cgmm.weights.UPDATES``. Without relations all are the closed form.
    tol : float, default=1e-3
        EM stops when an iteration gains less than this in log-evidence per point (nats).
    reg_covar : float, default=1e-6
        ε ≥ 0, added to each covariance's diagonal, in squared units of the data. With 0, an exact
        engine and ``weights="exact"`` the log-evidence never falls. With ε > 0 it is the bound
        minus ½ ε Σ_k N_k tr Σ_k⁻¹ that no M-step lowers, and the log-evidence can fall by as much
        as that penalty does: see :mod:`cgmm.em`.
    max_iter : int, default=100
        Most iterations of EM in one run.
    n_init : int, default=1
        Runs from different starts; the one with the highest log-evidence is kept.
    init_params : str or (N, K) array, default="auto"
        Where the responsibilities of the start come from: "k-means++", "random" and
        "random_from_data" use the points alone; "labels" the means of the labelled points;
        "chunklets" the centroids of large chunklets far apart. "auto" is "labels" if a class is
        known for some point, else "chunklets" if at least K have two points, else "k-means++". The
        start is then made to agree with what is known (:func:`cgmm.initialise.honour`). Or these
        responsibilities themselves.
    weights_init : (K,) array, default=None
        Weights of the start, instead of those from ``init_params``.
    means_init : (K, D) array, default=None
        Means of the start. Without ``init_params`` as an array the other parameters are then taken
        from the points nearest to each.
    covariances_init : array, default=None
        Covariances of the start: (K, D, D), or scikit-learn's shape for the covariance type: (D, D)
        tied, (K, D) diag, (K,) spherical.
    random_state : int, RandomState or None, default=None
        Seed of the starts, of ``sample``, and of "gibbs".
    verbose : int, default=0
        1: a line a run; 2: a line an iteration too.

    Attributes
    ----------
    weights_ : (K,) array
        π_k.
    means_ : (K, D) array
        μ_k.
    covariances_ : (K, D, D) array
        Σ_k, full matrices whatever the covariance type.
    log_evidence_ : float
        log p(X, labels | relations) = log Z_posterior - log Z_prior in nats, of exactly these
        parameters; what the engine knows of it, if it is not exact.
    history_ : (n_iter_,) array
        history_[t] is the log-evidence of the parameters that enter iteration t.
    n_iter_ : int
        Iterations of the run that was kept.
    converged_ : bool
        Whether that run gained less than ``tol`` in its last iteration but one.
    responsibilities_ : (N, K) array
        r_ik of the training points, given all that is known.
    labels_ : (N,) int array
        The component of each training point: with an exact engine the most probable *joint*
        assignment, which breaks no hard relation; else each point's most probable component.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    cgmm.em.em : the loop itself, as an iterator.
    SemiSupervisedGaussianClassifier : labels with names, and predictions in those names.

    Notes
    -----
    From the same start and with the same ``reg_covar`` the iterations without side information are
    those of ``sklearn.mixture.GaussianMixture``.

    With "mean_field" the evidence is the difference of two lower bounds, which bounds nothing and
    may fall; it serves to stop and to compare runs. "gibbs" reports none: ``log_evidence_`` is NaN,
    EM stops when responsibilities move by less than ``tol`` on average, restarts cannot be
    compared, and ``weights="exact"`` and "grid", which need the normaliser, are refused. With
    "spanning_tree" a relation that was dropped may be broken by ``labels_``.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [9.0, 2.0], [9.0, 4.0], [9.0, 0.0]])
    >>> model = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    >>> sorted(model.means_.round(3).tolist())
    [[1.0, 2.0], [9.0, 2.0]]
    >>> model.predict([[0.0, 0.0]]) == model.labels_[0]
    array([ True])

    The same points, told that the upper two differ from the lower two and that left is right:

    >>> model = ConstrainedGaussianMixture(2, covariance_type="tied", random_state=0)
    >>> model = model.fit(X, must_link=[[1, 4], [2, 5]], cannot_link=[[1, 2]])
    >>> bool(model.labels_[1] == model.labels_[4] != model.labels_[2])
    True
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(POOLINGS))],
        "sampling": [StrOptions(set(SAMPLING))],
        "inference": [StrOptions({*ENGINES, SPANNING_TREE}), callable],
        "weights": [StrOptions(set(UPDATES))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"auto", *STARTS, *GUIDED_STARTS}), "array-like"],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "covariances_init": ["array-like", None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="full",
        sampling="points",
        inference="auto",
        weights="exact",
        tol=1e-3,
        reg_covar=1e-6,
        max_iter=100,
        n_init=1,
        init_params="auto",
        weights_init=None,
        means_init=None,
        covariances_init=None,
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.sampling = sampling
        self.inference = inference
        self.weights = weights
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.covariances_init = covariances_init
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ fitting

    def fit(self, X, y=None, *, labels=None, must_link=None, cannot_link=None, preferences=None):
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
            Rows ``i, j, log-odds`` that the two belong together; ±inf makes it hard.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are not finite or too few, if what is known contradicts itself or cannot be
            honoured with K components, if a start does not fit, if ``reg_covar`` exceeds the data's
            variance, if a covariance becomes singular, or if the engine cannot do what is asked.

        Warns
        -----
        ConvergenceWarning
            If the run that is kept reached ``max_iter``, or was interrupted from the keyboard; its
            last parameters are kept.
        """
        self._validate_params()
        # Column-major: each coordinate of all points lies together, as the blocks of work read it.
        n_least = max(2, self.n_components)
        X = validate_data(self, X, dtype=np.float64, order="F", ensure_min_samples=n_least)
        _check_scale(X, self.reg_covar)
        side = SideInformation.build(
            len(X), labels=labels, must_link=must_link, cannot_link=cannot_link,
            preferences=preferences, sampling=self.sampling,
        )  # fmt: skip
        require_colourable(side, self.n_components)
        rng = check_random_state(self.random_state)
        try:
            room = _engine_room(self, side, rng)
            best = best_of(lambda number: self._one_run(X, room, rng, number), self.n_init)
            warn_about(best, self.max_iter)
            return self._store(X, room, best)
        except NetworkError as error:
            raise error.renamed(side.first_points, "point") from None

    def _one_run(self, X: np.ndarray, room: _EngineRoom, rng, number: int) -> Run:
        start = self._start(X, room.side, rng)
        steps = em(
            X, start, room.side, room.infer(), POOLINGS[self.covariance_type], room.update_weights,
            log_z_prior=room.log_z_prior, reg_covar=self.reg_covar,
        )  # fmt: skip
        return follow(
            steps, self.tol, self.max_iter, verbose=self.verbose, number=number,
            compared=self.n_init > 1,
        )  # fmt: skip

    def fit_predict(self, X, y=None, **known):
        """Fit, and return ``labels_``.

        Parameters
        ----------
        X : (N, D) array-like
            The points.
        y : ignored
            Present for scikit-learn's conventions.
        **known
            What is known beside the points, as in :meth:`fit`.

        Returns
        -------
        (N,) int array
            The component of each training point.
        """
        return self.fit(X, **known).labels_

    def _start(self, X: np.ndarray, side: SideInformation, rng) -> Parameters:
        """θ of the start: what is given, and the rest from responsibilities."""
        given = _given_parameters(self, X.shape[1])
        if all(part is not None for part in given):
            return Parameters(*given)
        if not isinstance(self.init_params, str):
            shape = (len(X), self.n_components)
            responsibilities = _check_responsibilities(self.init_params, shape)
        elif given.means is not None:
            responsibilities = nearest(X, given.means)
        else:
            responsibilities = _named_start(self.init_params, X, self.n_components, rng, side)
        pool = POOLINGS[self.covariance_type]
        made = from_responsibilities(X, responsibilities, pool, reg_covar=self.reg_covar)
        return Parameters(*(m if g is None else g for g, m in zip(given, made, strict=True)))

    def _store(self, X: np.ndarray, room: _EngineRoom, run: Run) -> ConstrainedGaussianMixture:
        self.weights_, self.means_, self.covariances_ = run.parameters
        self.responsibilities_ = run.posterior.responsibilities
        self.labels_ = _joint_labels(X, room, run)
        self.log_evidence_ = run.posterior.log_evidence
        self.history_ = np.array(run.history)
        self.n_iter_ = len(run.history)
        self.converged_ = run.converged
        return self

    # ------------------------------------------------------------------ new points

    def _log_joint(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return log_joint(X, Parameters(self.weights_, self.means_, self.covariances_))

    def predict(self, X):
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

    def predict_proba(self, X):
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

    def score_samples(self, X):
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

    def score(self, X, y=None):
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

    def sample(self, n_samples=1):
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
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}; ask for at least one sample.")
        rng = check_random_state(self.random_state)
        return sample(Parameters(self.weights_, self.means_, self.covariances_), n_samples, rng)

    def bic(self, X):
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
        return float(-2 * log_densities.sum() + self._n_parameters() * np.log(len(log_densities)))

    def aic(self, X):
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
        return float(-2 * self.score_samples(X).sum() + 2 * self._n_parameters())

    def _n_parameters(self) -> int:
        n_components, n_dims = self.means_.shape
        of_covariances = POOLINGS[self.covariance_type].n_parameters(n_components, n_dims)
        return n_components - 1 + n_components * n_dims + of_covariances


# ---------------------------------------------------------------------------- the engine room


class _EngineRoom(NamedTuple):
    """The network of what is known, and everything that depends on it alone."""

    side: SideInformation
    engine: Engine
    ready: Infer
    """The engine applied to the graph: the work on the structure is done."""
    update_weights: Update
    log_z_prior: Callable[[np.ndarray], float]

    @property
    def is_exact(self) -> bool:
        """Whether the engine finds the most probable joint assignment, as all exact ones do."""
        return hasattr(self.ready, "most_probable")

    def infer(self) -> Infer:
        """The engine for one run: an approximate one may remember earlier calls, so a new one."""
        return self.ready if self.is_exact else self.engine(self.side.graph)


def _engine_room(model: ConstrainedGaussianMixture, side: SideInformation, rng) -> _EngineRoom:
    """Apply the engine to the structure, and refuse at once what cannot be done."""
    engine = model.inference if callable(model.inference) else ENGINES.get(model.inference)
    if model.inference == SPANNING_TREE:
        side, engine = side._replace(graph=spanning_forest(side.graph)), ENGINES["auto"]
    if model.inference == "gibbs":
        engine = partial(engine, random_state=int(rng.randint(2**31)))
    prior = Prior(side, engine)
    log_z_prior = prior.log_z
    if np.isnan(log_z_prior(np.full(model.n_components, 1 / model.n_components))):
        _require_no_normaliser_needed(model)
        log_z_prior = _unknown
    room = _EngineRoom(side, engine, engine(side.graph), UPDATES[model.weights](prior), log_z_prior)
    _require_possible(room, model.n_components)
    return room


def _unknown(weights: np.ndarray) -> float:
    """log Z_prior of an engine that has none."""
    return np.nan


def _require_no_normaliser_needed(model: ConstrainedGaussianMixture) -> None:
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


def _named_start(name: str, X, n_components: int, rng, side: SideInformation) -> np.ndarray:
    """Responsibilities of the start with that name, in agreement with what is known."""
    if name == "auto":
        name = _best_informed_start(n_components, side)
    if name in GUIDED_STARTS:
        responsibilities = GUIDED_STARTS[name](X, n_components, rng, side)
    else:
        responsibilities = STARTS[name](X, n_components, rng)
    return honour(responsibilities, side)


def _best_informed_start(n_components: int, side: SideInformation) -> str:
    """The start that makes most of what is known; see the table in benchmarks/starts.py."""
    mask = side.mask(n_components)
    if mask is not None and (mask.sum(axis=1) == 1).any():
        return "labels"
    n_chunklets = np.count_nonzero(np.bincount(side.node_of) >= 2)
    return "chunklets" if n_chunklets >= n_components else "k-means++"


def _joint_labels(X: np.ndarray, room: _EngineRoom, run: Run) -> np.ndarray:
    """The most probable joint assignment, where the engine can tell it."""
    if room.side.is_trivial or not room.is_exact:
        return run.posterior.responsibilities.argmax(axis=1)
    unary = node_unaries(X, run.parameters, room.side)
    return room.side.spread(room.ready.most_probable(unary))


# ---------------------------------------------------------------------------- checks


def _check_scale(X: np.ndarray, reg_covar: float) -> None:
    """Refuse data whose squares overflow, and a reg_covar that would be all there is to see."""
    with np.errstate(over="ignore"):
        ranges = X.max(axis=0) - X.min(axis=0)
        reach = np.square(ranges).sum() * len(X)
    if not np.isfinite(reach):
        raise ValueError(
            f"column {ranges.argmax()} spans {ranges.max():.3g}: its squares overflow. Divide the "
            "data by a constant."
        )
    largest = ranges.max() ** 2
    if 0 < largest < reg_covar:
        raise ValueError(
            f"reg_covar={reg_covar:g} exceeds the squared range {largest:.3g} of every column: "
            "each component would be the same ball of variance reg_covar. Scale the data, or "
            "lower reg_covar."
        )


def _check_responsibilities(responsibilities, shape: tuple[int, int]) -> np.ndarray:
    r = np.asarray(responsibilities, dtype=np.float64)
    if r.shape != shape:
        raise ValueError(
            f"init_params has shape {r.shape}; as responsibilities it must have (N, K) = {shape}."
        )
    wrong = np.flatnonzero(~((r >= 0).all(axis=1) & (abs(r.sum(axis=1) - 1) < 1e-8)))
    if len(wrong):
        raise ValueError(
            f"row {wrong[0]} of init_params is {r[wrong[0]]}; responsibilities must be "
            "non-negative and sum to one in each row."
        )
    return r


class _Given(NamedTuple):
    """What the user gives of the start, in the order of Parameters."""

    weights: np.ndarray | None
    means: np.ndarray | None
    covariances: np.ndarray | None


def _given_parameters(model: ConstrainedGaussianMixture, n_dims: int) -> _Given:
    n_components = model.n_components
    weights = _check_array("weights_init", model.weights_init, (n_components,))
    if weights is not None and not (weights.min() >= 0 and abs(weights.sum() - 1) < 1e-8):
        raise ValueError(
            f"weights_init is {weights}, summing to {weights.sum():g}; weights must be "
            "non-negative and sum to one."
        )
    means = _check_array("means_init", model.means_init, (n_components, n_dims))
    return _Given(weights, means, _given_covariances(model, n_components, n_dims))


def _check_array(name: str, value, *shapes: tuple[int, ...]) -> np.ndarray | None:
    """The array, if it has one of the shapes and is finite; None stays None."""
    if value is None:
        return None
    array = np.array(value, dtype=np.float64)
    if array.shape not in shapes:
        wanted = " or ".join(map(str, dict.fromkeys(shapes)))
        raise ValueError(f"{name} has shape {array.shape}; it must have {wanted}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity; give finite numbers.")
    return array


def _given_covariances(model, n_components: int, n_dims: int) -> np.ndarray | None:
    """covariances_init as (K, D, D), checked to be possible for the covariance type."""
    pool = POOLINGS[model.covariance_type]
    full = (n_components, n_dims, n_dims)
    given = _check_array(
        "covariances_init", model.covariances_init, full, pool.shape(n_components, n_dims)
    )
    if given is None:
        return None
    if given.shape != full:
        given = pool.expand(given, n_components, n_dims)
    for k, covariance in enumerate(given):
        if not np.allclose(covariance, covariance.T, rtol=1e-10, atol=0):
            raise ValueError(
                f"covariances_init[{k}] is not symmetric; average it with its transpose."
            )
        if np.linalg.eigvalsh(covariance)[0] <= 0:
            raise ValueError(
                f"covariances_init[{k}] is not positive definite; add a multiple of the identity."
            )
    ones = np.ones(n_components)
    if not np.allclose(pool.combine(ones, given), given, rtol=1e-10, atol=0):
        raise ValueError(
            f"covariances_init is not of the type {model.covariance_type!r}: pooling would change "
            "it. Give it in the shape of the type, or choose another covariance_type."
        )
    return given
