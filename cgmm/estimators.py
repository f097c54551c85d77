"""scikit-learn estimators: they validate, choose and store; the mathematics is elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.em import Posterior, em
from cgmm.gaussian import POOLINGS, Parameters, log_joint, sample
from cgmm.inference import ENGINES
from cgmm.initialise import STARTS, from_responsibilities, nearest
from cgmm.network import Engine
from cgmm.numerics import log_normalise
from cgmm.side_information import SideInformation
from cgmm.weights import closed_form

__all__ = ["ConstrainedGaussianMixture"]


class ConstrainedGaussianMixture(DensityMixin, BaseEstimator):
    """Gaussian mixture fitted by expectation maximisation.

    Without side information, which is what ``fit`` takes so far, this is the plain mixture:
    inference in a network without edges.

    Parameters
    ----------
    n_components : int, default=1
        K.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        How the components' covariances are pooled.
    inference : str or callable, default="auto"
        The engine of the E-step: a name in ``cgmm.inference.ENGINES``, or an engine itself, which
        must report log Z. "auto" is "independent" where nothing ties the points.
    tol : float, default=1e-3
        EM stops when an iteration gains less than this in log-evidence per point (nats).
    reg_covar : float, default=1e-6
        ε ≥ 0, added to each covariance's diagonal, in squared units of the data. With 0 the
        log-evidence never falls. With ε > 0 it is the bound minus ½ ε Σ_k N_k tr Σ_k⁻¹ that no
        M-step lowers, and the log-evidence can fall by as much as that penalty does: see
        :mod:`cgmm.em`.
    max_iter : int, default=100
        Most iterations of EM in one run.
    n_init : int, default=1
        Runs from different starts; the one with the highest log-evidence is kept.
    init_params : {"k-means++", "random", "random_from_data"} or (N, K) array, default="k-means++"
        Where the responsibilities of the start come from, or these responsibilities themselves.
    weights_init : (K,) array, default=None
        Weights of the start, instead of those from ``init_params``.
    means_init : (K, D) array, default=None
        Means of the start. Without ``init_params`` as an array the other parameters are then taken
        from the points nearest to each.
    covariances_init : array, default=None
        Covariances of the start: (K, D, D), or scikit-learn's shape for the covariance type: (D, D)
        tied, (K, D) diag, (K,) spherical.
    random_state : int, RandomState or None, default=None
        Seed of the starts, and of ``sample``.
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
        log p(X) in nats of exactly these parameters.
    history_ : (n_iter_,) array
        history_[t] is the log-evidence of the parameters that enter iteration t.
    n_iter_ : int
        Iterations of the run that was kept.
    converged_ : bool
        Whether that run gained less than ``tol`` in its last iteration but one.
    responsibilities_ : (N, K) array
        r_ik of the training points.
    labels_ : (N,) int array
        The most probable component of each training point.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    cgmm.em.em : the loop itself, as an iterator.

    Notes
    -----
    From the same start and with the same ``reg_covar`` the iterations are those of
    ``sklearn.mixture.GaussianMixture``.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [9.0, 2.0], [9.0, 4.0], [9.0, 0.0]])
    >>> model = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    >>> sorted(model.means_.round(3).tolist())
    [[1.0, 2.0], [9.0, 2.0]]
    >>> model.predict([[0.0, 0.0]]) == model.labels_[0]
    array([ True])
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(POOLINGS))],
        "inference": [StrOptions(set(ENGINES)), callable],
        "tol": [Interval(Real, 0, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions(set(STARTS)), "array-like"],
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
        inference="auto",
        tol=1e-3,
        reg_covar=1e-6,
        max_iter=100,
        n_init=1,
        init_params="k-means++",
        weights_init=None,
        means_init=None,
        covariances_init=None,
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.inference = inference
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

    def fit(self, X, y=None):
        """Fit the mixture to the points.

        Parameters
        ----------
        X : (N, D) array-like
            The points, N ≥ K.
        y : ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are not finite or too few, if a start does not fit them, if ``reg_covar``
            exceeds their variance, or if a covariance becomes singular.

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
        side = SideInformation.build(len(X))
        infer = _engine(self.inference)(side.graph)
        pool = POOLINGS[self.covariance_type]
        rng = check_random_state(self.random_state)

        def one_run(number: int) -> _Run:
            start = self._start(X, rng)
            steps = em(X, start, side, infer, pool, closed_form, reg_covar=self.reg_covar)
            return _follow(steps, self.tol * len(X), self.max_iter, self.verbose, number)

        best = _best_of(one_run, self.n_init)
        _warn_about(best, self.max_iter)
        return self._store(best)

    def fit_predict(self, X, y=None):
        """Fit, and return ``labels_``.

        Parameters
        ----------
        X : (N, D) array-like
            The points.
        y : ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        (N,) int array
            The component of each training point.
        """
        return self.fit(X).labels_

    def _start(self, X: np.ndarray, rng: np.random.RandomState) -> Parameters:
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
            responsibilities = STARTS[self.init_params](X, self.n_components, rng)
        pool = POOLINGS[self.covariance_type]
        made = from_responsibilities(X, responsibilities, pool, reg_covar=self.reg_covar)
        return Parameters(*(m if g is None else g for g, m in zip(given, made, strict=True)))

    def _store(self, run: _Run) -> ConstrainedGaussianMixture:
        self.weights_, self.means_, self.covariances_ = run.parameters
        self.responsibilities_ = run.posterior.responsibilities
        self.labels_ = self.responsibilities_.argmax(axis=1)
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


# ---------------------------------------------------------------------------- one run


class _Run(NamedTuple):
    """One run of EM, as far as it went."""

    parameters: Parameters
    posterior: Posterior
    history: list[float]
    converged: bool
    interrupted: bool = False


def _follow(
    steps: Iterator[tuple[Parameters, Posterior]],
    smallest_gain: float,
    max_iter: int,
    verbose: int,
    number: int,
) -> _Run:
    """Take pairs from the loop until an iteration gains too little; then one more, and stop."""
    history: list[float] = []
    run = None
    try:
        for parameters, posterior in steps:
            if np.isnan(posterior.log_evidence):
                raise ValueError(
                    "the engine reports no log-evidence, by which runs are stopped and compared; "
                    "choose another value of inference, such as 'auto'."
                )
            converged = run is not None and run.converged
            run = _Run(parameters, posterior, history.copy(), converged)
            if converged or len(history) == max_iter:
                break
            gain = posterior.log_evidence - history[-1] if history else np.inf
            history.append(posterior.log_evidence)
            run = run._replace(converged=bool(abs(gain) < smallest_gain))
            if verbose > 1:
                print(f"  iteration {len(history):4d}   log-evidence {history[-1]:.6f}")
    except KeyboardInterrupt:
        if run is None:
            raise
        return run._replace(converged=False, interrupted=True)
    if verbose:
        state = "converged" if run.converged else "stopped"
        evidence = run.posterior.log_evidence
        print(f"run {number}: {state} after {len(history)} iterations, log-evidence {evidence:.6f}")
    return run


def _best_of(one_run: Callable[[int], _Run], n_init: int) -> _Run:
    """The run of highest evidence; one that fails or is interrupted does not lose the others."""
    best, failure = None, None
    for number in range(n_init):
        try:
            run = one_run(number)
        except ValueError as error:
            failure = error
            if n_init > 1:
                _warn(f"run {number} of {n_init} failed: {error}")
            continue
        except KeyboardInterrupt:
            if best is None:
                raise
            return best._replace(interrupted=True)
        if best is None or run.posterior.log_evidence > best.posterior.log_evidence:
            best = run._replace(interrupted=False)
        if run.interrupted:
            return best._replace(interrupted=True)
    if best is None:
        raise failure
    return best


def _warn_about(run: _Run, max_iter: int) -> None:
    """Say what the user should know about the run that is kept."""
    if run.interrupted:
        _warn(
            f"EM was interrupted; the best fit so far, of {len(run.history)} iterations, is kept."
        )
    elif not run.converged:
        _warn(
            f"EM did not converge in {max_iter} iterations; look at history_, and increase "
            "max_iter or tol."
        )
    for k in np.flatnonzero(run.parameters.weights == 0):
        _warn(
            f"component {k} explains no point any more and has weight zero; use fewer components, "
            "or another start."
        )


def _warn(message: str) -> None:
    """A ConvergenceWarning that points at the caller of ``fit``."""
    warnings.warn(message, ConvergenceWarning, stacklevel=4)


# ---------------------------------------------------------------------------- checks


def _engine(inference: str | Engine) -> Engine:
    """The engine that the parameter ``inference`` names or is."""
    return inference if callable(inference) else ENGINES[inference]


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
