"""The estimator ``ConstrainedGaussianMixture``, the main class of the package. Chapters 1 to 10.

This file validates data and parameters, chooses the initialisation and stores the results. The EM
loop is in :mod:`cgmm.mixture.loop`, the initialisation in :mod:`cgmm.mixture.initialise`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any
from warnings import catch_warnings

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.kmeans.seeding import nearest
from cgmm.large.chunks import Chunks, fetch, make_stand_in, read_chunks
from cgmm.mixture.base import ConstrainedMixture, ImputingMixture
from cgmm.mixture.doubts import check_covariances, describe_poor_maximum
from cgmm.mixture.gaussian import Parameters, sample, whiten
from cgmm.mixture.initialise import (
    GUIDED_STARTS,
    MOST_POINTS,
    STARTS,
    check_responsibilities,
    named_start,
)  # fmt: skip
from cgmm.mixture.missing import PointsWithGaps, with_gaps
from cgmm.mixture.pooling import POOLINGS, CovariancePrior
from cgmm.mixture.starts import portfolio, sample_for_portfolio
from cgmm.mixture.weights import lift_small_weights
from cgmm.network import Engine, SideInformation
from cgmm.numerics import SMALLEST_RANGE, FloatArray, IntArray, Seed, check_extent
from cgmm.runs import Rng

NO_SCATTER = (
    "covariance_prior='fraley-raftery' needs the covariance of all points, which are spread over "
    "the workers of a cluster: pass it, covariance_prior=(D + 2, cov / K ** (2 / D)) with "
    "cov = dask.array.cov(X.T).compute()."
)
# A fit is at a poor maximum if the log-evidence of another fit is more than this higher, in nats.
POOR_GAIN = 1.0
# The range of a column must contain at least this many floating-point numbers.
FEWEST_STEPS = 1000


class ConstrainedGaussianMixture(ImputingMixture):
    """Gaussian mixture fitted by expectation maximisation, with labels and pairwise relations.

    Pass labels, must-links, cannot-links and preferences to ``fit``. They define a Markov network
    over the assignments, in which the engine ``inference`` computes the posterior of the E-step.
    Without them this is the ordinary Gaussian mixture.

    Parameters
    ----------
    n_components : int, default=1
        Number of components, K.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Form of the covariances: one matrix per component, one shared matrix, diagonal matrices, or
        one variance per component.
    sampling : {"points", "chunklets"}, default="points"
        The units that are drawn independently. With "points" the prior of a chunklet is π_k to the
        power of its size, with "chunklets" it is π_k. (Assumptions 2 and 1 of shental2003.)
    inference : str or callable, default="auto"
        The engine of the E-step: a name in ``cgmm.inference.ENGINES``; "spanning_tree", which drops
        relations that would close a cycle and is exact on the rest; or an engine itself. "auto"
        takes the cheapest exact engine for each connected component; if that costs too much, it
        approximates and warns, whereas "exact" raises an error. "mean_field" and "gibbs" always
        approximate; see the notes.
    weights : {"auto", "exact", "cautious", "pseudo-likelihood", "ignore", "grid"}, default="auto"
        The update of the weights if the normaliser of the prior depends on them: an entry of
        ``cgmm.mixture.UPDATES``. "auto" means "exact" if the engine is exact with and without the
        data, otherwise "cautious". Without relations all updates are the same closed form.
    tol : float, default=1e-3
        EM stops when an iteration gains less than this in log-evidence per point (nats).
    reg_covar : float, default=1e-6
        ε ≥ 0, added to the diagonal of each covariance, in squared units of the data. With ε = 0,
        an exact engine and ``weights="auto"`` the log-evidence never falls. With ε > 0 an M-step
        never lowers the bound minus the penalty ½ ε Σ_k N_k tr Σ_k⁻¹, and the log-evidence can fall
        by at most as much as the penalty does: see :mod:`cgmm.mixture.pooling`.
    covariance_prior : "fraley-raftery" or (ν, Λ), default=None
        Inverse Wishart prior of the covariances, for components with few points. An M-step takes
        the mode of their posterior. "fraley-raftery" is the weak prior of Fraley and Raftery
        (2007), with ν = D + 2 and Λ the covariance of all points divided by K^(2 / D). In five
        columns it raised the density of new points with ten points per component, and lowered it
        with thirty. Runs are compared by the log-evidence plus the log-density of the prior.
    max_iter : int, default=100
        Maximum number of iterations of EM in one run.
    n_init : int, default=1
        Number of runs of EM from different starts; the run with the highest log-evidence is kept.
        If the engine approximates, runs are compared by the classification likelihood, which
        counts only the best joint assignment of points with relations. With ``init_params="auto"``
        a larger ``n_init`` also tries more initial groupings, at first of additional kinds, and EM
        runs from the ``n_init`` best.
    warm_start : bool, default=False
        True: another ``fit`` makes one run, which continues from the parameters of the last fit.
        The side information and ``covariance_type`` may differ from those of the last fit.
    init_params : str or (N, K) array, default="auto"
        Source of the initial responsibilities. "auto" tries about fifty groupings of different
        kinds in short runs of EM with three types of covariances: equal balls, one shared
        covariance, and those of ``covariance_type``. The Bayesian information criterion selects one
        of these types, and EM starts from its best grouping (``cgmm.mixture.starts``). Labels and
        relations are used in these runs, their iterations are not in ``history_``, and large data
        are subsampled. The other values name a single start, which is quicker: "kmeans" is K-means
        that breaks no hard relation, the best of ten runs if N ≤ K², and scikit-learn's K-means
        without hard relations; "k-means++", "random" and "random_from_data" use the points alone;
        "labels" uses the means of the labelled points; "chunklets" uses the centroids of large
        chunklets that are far apart. Each start is adapted to labels and relations
        (:func:`cgmm.mixture.adapt_to_evidence`). An array contains the initial responsibilities
        themselves.
    weights_init : (K,) array, default=None
        Initial weights, instead of those from ``init_params``.
    means_init : (K, D) array, default=None
        Initial means; no other starts are tried. Unless ``init_params`` is an array, the other
        initial parameters are computed from the points nearest to each mean.
    covariances_init : array, default=None
        Initial covariances: (K, D, D), or scikit-learn's shape for the covariance type, which is
        (D, D) for tied, (K, D) for diag, and (K,) for spherical.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the initialisation, of ``sample``, and of "gibbs".
    verbose : int, default=0
        1: print a line per run; 2: also print a line per iteration.
    n_jobs : int, default=None
        Number of threads that work on blocks of points, as in scikit-learn: None means 1, -1 means
        all cores. The result is identical to the last bit. With few columns the threads wait for
        each other, so a single thread is quicker. Linear algebra uses one thread per block,
        regardless of environment variables.
    store_responsibilities : bool, default=True
        Whether to store ``responsibilities_``. They are the only array of N times K numbers that a
        fit makes if no edges connect points.
    step_exponent : float, default=0.6
        α of ``partial_fit``, whose step t has the step size t^-α. It must be above ½, so that noise
        averages out, and at most 1, so that the steps can reach any parameters. With α near ½ the
        early batches are forgotten sooner.

    Attributes
    ----------
    weights_ : (K,) array
        π_k.
    means_ : (K, D) array
        μ_k.
    covariances_ : (K, D, D), (D, D), (K, D) or (K,) array
        Σ_k in scikit-learn's shapes for full, tied, diag and spherical covariances. The (K, D, D)
        matrices are ``parameters_.full_covariances``.
    precisions_, precisions_cholesky_
        Σ_k⁻¹, and upper triangular factors U_k with U_k U_kᵀ = Σ_k⁻¹, in the shape of
        ``covariances_``, as in scikit-learn. They are computed on access.
    parameters_ : Parameters
        θ, for the functions of :mod:`cgmm.mixture` and :mod:`cgmm.plot`.
    log_evidence_ : float
        log p(X, labels | relations) = log Z_posterior - log Z_prior, in nats, of the final
        parameters. If it is not exact, it is an approximation: see the notes.
    evidence_exact_ : bool
        Whether ``log_evidence_`` is exact: it includes all relations and both exact normalisers.
    lower_bound_ : float
        ``log_evidence_`` per training point, at the final parameters. scikit-learn reports that of
        the parameters before the last M-step.
    history_ : (n_iter_,) array
        history_[t] is the log-evidence of the parameters that enter iteration t. If
        ``weights_update_`` is "cautious", it uses the normaliser that this update assumes.
    n_iter_ : int
        Number of iterations of the best run.
    converged_ : bool
        Whether the best run gained less than ``tol`` in its last iteration but one.
    responsibilities_ : (N, K) array
        r_ik of the training points, given the side information. Missing unless
        ``store_responsibilities``.
    labels_ : (N,) int array
        The component of each training point, which breaks no hard relation with any engine. It is
        the most probable *joint* assignment if that is known, otherwise the best one that a search
        finds.
    labels_exact_ : bool
        Whether ``labels_`` is known to be the most probable joint assignment.
    weights_update_ : str
        The update of the weights that the fit used: ``weights``, or the choice of "auto".
    inference_ : tuple of NamedTuples
        The engine of each part of the network, and the size of this part:
        ``(engine, n_components, n_nodes, n_edges, width)``.
    n_steps_, n_samples_seen_
        Number of steps of ``partial_fit``, and of points in their batches; missing after ``fit``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    cgmm.mixture.em : the loop itself, as an iterator.
    SemiSupervisedGaussianClassifier : for labels with names, and predictions in those names.

    Notes
    -----
    Points may have missing values (NaN) in ``fit`` and in predictions. The density of a row is then
    that of its observed values, and the M-step uses expected moments given these (Ghahramani and
    Jordan, 1994). The estimates are those of maximum likelihood if values are missing at random:
    whether a value is missing may depend on the observed values of the row, but not on the missing
    value itself. :meth:`impute` fills in missing values. A memmap with missing values is read into
    memory; ``partial_fit`` and fits on a dask.array raise an error.

    Without side information, with the same initial parameters and ``reg_covar``, the iterations are
    those of ``sklearn.mixture.GaussianMixture``.

    If the engine approximates, ``weights="auto"`` does not use its log Z_prior. Relations that may
    be answers to questions about random pairs are treated as data, not as a condition, so they need
    no normaliser. Relations between pairs that were selected for being alike do need one; it is
    approximated as if each edge were isolated (:func:`cgmm.mixture.cautious`). ``history_`` is log
    Z_posterior minus this normaliser, and EM increases it. ``log_evidence_`` is log Z_posterior
    minus log Z_prior as computed by the engine "auto", usually within a few nats of the exact
    value. With "exact", "grid", "ignore" or "pseudo-likelihood" both subtract the engine's own
    log Z_prior, which may jump by hundreds of nats between iterations if there are many relations.
    With "ignore", components lose all their points if relations are mostly must-links, as in
    images.

    "gibbs" reports no log Z, so ``log_evidence_`` is NaN. EM then stops when responsibilities move
    by less than ``tol`` on average or only fluctuate randomly, and ``weights="exact"`` and "grid"
    raise an error. The fit warns if its chains had not mixed in the last E-step.

    Examples
    --------
    >>> X = np.array([[1.2, 2.0], [0.9, 4.0], [0.9, 0.0], [9.2, 2.0], [8.9, 4.0], [8.9, 0.0]])
    >>> model = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    >>> sorted(model.means_.round(3).tolist())
    [[1.0, 2.0], [9.0, 2.0]]
    >>> model.predict([[0.0, 0.0]]) == model.labels_[0]
    array([ True])

    The same points with relations, which join points of equal height and separate two heights:

    >>> model = ConstrainedGaussianMixture(2, covariance_type="tied", random_state=0)
    >>> model = model.fit(X, must_link=[[1, 4], [2, 5]], cannot_link=[[1, 2]])
    >>> bool(model.labels_[1] == model.labels_[4] != model.labels_[2])
    True

    New points, the first two of which are cannot-linked in the second prediction:

    >>> model = ConstrainedGaussianMixture(2, means_init=[[1.0, 2.0], [9.0, 2.0]]).fit(X)
    >>> new = [[4.5, 2.0], [4.0, 2.0], [9.0, 1.0]]
    >>> model.predict(new), model.predict(new, cannot_link=[[0, 1]])
    (array([0, 0, 1]), array([1, 0, 1]))
    """

    _prior: CovariancePrior | None = None
    _parameter_constraints = {
        **ConstrainedMixture._parameter_constraints,
        "covariance_type": [StrOptions(set(POOLINGS))],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "covariance_prior": [None, StrOptions({"fraley-raftery"}), tuple],
        "init_params": [StrOptions({"auto", *STARTS, *GUIDED_STARTS}), "array-like"],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "covariances_init": ["array-like", None],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        sampling: str = "points",
        inference: str | Engine = "auto",
        weights: str = "auto",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        covariance_prior: str | tuple[float, ArrayLike] | None = None,
        max_iter: int = 100,
        n_init: int = 1,
        warm_start: bool = False,
        init_params: str | ArrayLike = "auto",
        weights_init: ArrayLike | None = None,
        means_init: ArrayLike | None = None,
        covariances_init: ArrayLike | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        store_responsibilities: bool = True,
        step_exponent: float = 0.6,
    ):
        super().__init__(
            n_components, sampling=sampling, inference=inference, weights=weights, tol=tol,
            max_iter=max_iter, n_init=n_init, warm_start=warm_start, random_state=random_state,
            verbose=verbose, n_jobs=n_jobs, store_responsibilities=store_responsibilities,
            step_exponent=step_exponent,
        )  # fmt: skip
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.covariance_prior = covariance_prior
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.covariances_init = covariances_init

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # ------------------------------------------------------------------ the family

    def _read_points(self, X: ArrayLike) -> Any:
        # Blocks are read column by column, so the array is column-major.
        as_is = {"dtype": np.float64, "order": "F"}
        if isinstance(X, np.memmap) and X.dtype in (np.float32, np.float64):
            as_is = {"dtype": X.dtype}  # another dtype or order would copy the memmap
        as_is |= {"ensure_all_finite": "allow-nan", "ensure_min_samples": max(2, self.n_components)}
        points = np.asarray(validate_data(self, X, **as_is))
        points = with_gaps(points) if np.isnan(np.sum(points)) else points
        check_scale(points, self.reg_covar)
        self._prior = None
        if self.covariance_prior is not None:
            self._prior = CovariancePrior.of(self.covariance_prior, points, self.n_components)
        return points

    def _read_chunks(self, X: Any) -> Chunks:
        n_least = max(2, self.n_components)
        validate_data(self, make_stand_in(X), ensure_min_samples=n_least, ensure_all_finite=False)
        chunks, corners = read_chunks(X)
        check_scale(corners, self.reg_covar)
        if self.covariance_prior == "fraley-raftery":
            raise ValueError(NO_SCATTER)
        self._prior = CovariancePrior.of(self.covariance_prior, corners, self.n_components)
        return chunks

    def _read_new(self, X: ArrayLike) -> Any:
        allow_nan = {"ensure_all_finite": "allow-nan"}
        return with_gaps(
            validate_data(self, X, dtype=np.float64, reset=False, **allow_nan), is_new=True
        )

    def _family(self) -> Any:
        family = POOLINGS[self.covariance_type]
        return family._replace(reg_covar=self.reg_covar, prior=self._prior)

    def _log_prior(self, theta: Any) -> float:
        family = ConstrainedGaussianMixture._family(self)
        return family.log_prior(getattr(theta, "components", theta))

    def _find_thin_covariances(self, theta: Any) -> list[str]:
        return check_covariances(getattr(theta, "components", theta).covariances, self.reg_covar)

    def _has_collapsed(self, theta: Any) -> bool:
        return len(self._find_thin_covariances(theta)) > 0

    def _find_doubts(self, theta: Any, X: Any, known: dict[str, Any]) -> list[str]:
        if known["must_link"] is None and known["cannot_link"] is None:
            return self._find_thin_covariances(theta)
        doubts = super()._find_doubts(theta, X, known)
        if doubts and type(self) is ConstrainedGaussianMixture and X.shape[0] <= MOST_POINTS:
            doubts = self._recheck_doubts(doubts, X, known)
        return [*self._find_thin_covariances(theta), *doubts]

    def _recheck_doubts(self, doubts: list[str], X: Any, known: dict[str, Any]) -> list[str]:
        """Fit again from more starts; return the doubts that remain if that fit is better."""
        other = _FitWithoutDoubts(**self.get_params())
        other.set_params(init_params="auto", n_init=self.n_init + 2, warm_start=False, verbose=0)
        other.set_params(means_init=None, covariances_init=None, weights_init=None, random_state=0)
        with catch_warnings(action="ignore"):
            other.fit(fetch(X, np.arange(X.shape[0])), **known)  # type: ignore[arg-type]
        gain = other.log_evidence_ - self.log_evidence_
        if not gain > POOR_GAIN:
            return doubts
        remaining = super()._find_doubts(other.parameters_, X, known)
        return remaining or [describe_poor_maximum(gain, other.n_init)]

    def _starts(self, X: Any, side: SideInformation, rng: Rng) -> list[Callable[[], Any]]:
        given = self._check_initial_parameters((self.n_components, X.shape[1]))
        if len(given) == 3:
            return [lambda: Parameters(**given)] * self.n_init
        make_r: Callable[[], FloatArray]
        complete = X.filled if isinstance(X, PointsWithGaps) else X
        if not isinstance(self.init_params, str):
            r = check_responsibilities(self.init_params, (len(X), self.n_components))
            make_r = partial(np.asarray, r)
        elif "means" in given:
            make_r = partial(nearest, complete, given["means"])
        elif self.init_params == "auto":
            X, side = sample_for_portfolio(X, side, self.n_components, rng)
            shape = self.n_components, self.covariance_type
            found = portfolio(X, side, *shape, rng, self.n_init, self.verbose)
            makers = [partial(np.asarray, r) for r in found]
            return [partial(self._start_from_grouping, X, make_r, side, given) for make_r in makers]
        else:
            make_r = partial(named_start, self.init_params, complete, self.n_components, rng, side)
        return [partial(self._start_from_grouping, X, make_r, side, given)] * self.n_init

    def _check_initial_parameters(self, shape: tuple[int, int]) -> dict[str, FloatArray]:
        """Check the initial parameters that the user gives; ``shape`` is (K, D)."""
        given = {}
        if self.weights_init is not None:
            given["weights"] = weights = _check_array("weights_init", self.weights_init, shape[:1])
            if not (weights.min() >= 0 and abs(weights.sum() - 1) < 1e-8):
                raise ValueError(
                    f"weights_init is {weights}, summing to {weights.sum():g}; weights must be "
                    "non-negative and sum to one."
                )
        if self.means_init is not None:
            given["means"] = _check_array("means_init", self.means_init, shape)
        if self.covariances_init is not None:
            given["covariances"] = self._check_initial_covariances(shape)
        return given

    def _check_initial_covariances(self, shape: tuple[int, int]) -> FloatArray:
        """Check ``covariances_init`` against the covariance type; return them as in θ."""
        pool, full = POOLINGS[self.covariance_type], (*shape, shape[1])
        given = _check_array("covariances_init", self.covariances_init, full, pool.shape(*shape))
        own = pool.reduce(pool.combine(np.ones(shape[0]), given)) if given.shape == full else given
        theta = Parameters(np.ones(shape[0]), np.zeros(shape), pool.expand(own, *shape))
        if given.shape == full and not np.allclose(theta.full_covariances, given, 1e-10, 0):
            raise ValueError(
                f"covariances_init is not of the type {self.covariance_type!r}: pooling would "
                "change it. Give it in the shape of the type, or choose another covariance_type."
            )
        for k, covariance in enumerate(theta.covariances):
            if covariance.ndim == 2 and not np.allclose(covariance, covariance.T, 1e-10, 0):
                raise ValueError(
                    f"covariances_init[{k}] is not symmetric; average it with its transpose."
                )
            variances = np.linalg.eigvalsh(covariance) if covariance.ndim == 2 else covariance
            if np.min(variances) <= 0:
                raise ValueError(
                    f"covariances_init[{k}] is not positive definite; add a multiple of the "
                    "identity."
                )
        return theta.covariances

    def _start_from_grouping(
        self, X: FloatArray, make_r: Callable[[], FloatArray], side: SideInformation,
        given: dict[str, FloatArray],
    ) -> Parameters:  # fmt: skip
        """Return the ``given`` parameters, and the others by an M-step from ``make_r()``."""
        family = ConstrainedGaussianMixture._family(self)
        if side.is_empty:
            return family.start(X, make_r())._replace(**given)
        made = family.start(X, side.counted(make_r()))
        if not side.is_trivial or side.mask(self.n_components) is not None:
            made = made.with_weights(lift_small_weights(made.weights, len(X)))
        return made._replace(**given)

    def _store_theta(self, parameters: Any) -> None:
        self.weights_, self.means_, covariances = parameters
        self._type = self.covariance_type
        self.covariances_ = np.array(POOLINGS[self._type].reduce(covariances))

    def _get_theta(self) -> Any:
        expanded = POOLINGS[self._type].expand(self.covariances_, *self.means_.shape)
        return Parameters(self.weights_, self.means_, expanded)

    @property
    def precisions_cholesky_(self) -> FloatArray:
        """Upper triangular factors U_k with U_k U_kᵀ = Σ_k⁻¹, in the shape of ``covariances_``."""
        check_is_fitted(self, "weights_")
        whiteners = whiten(ConstrainedGaussianMixture._get_theta(self).covariances)[0]
        upper = whiteners if whiteners.ndim == 2 else whiteners.transpose(0, 2, 1)
        return np.array(POOLINGS[self._type].reduce(upper))

    @property
    def precisions_(self) -> FloatArray:
        """Inverse covariances Σ_k⁻¹ = U_k U_kᵀ, in the shape of ``covariances_``."""
        upper = self.precisions_cholesky_
        if upper.ndim < 2 or self._type == "diag":
            return np.square(upper)
        return upper @ np.swapaxes(upper, -1, -2)

    def _draw_points(self, n_samples: int, rng: Rng) -> tuple[FloatArray, IntArray]:
        return sample(self._get_theta(), n_samples, rng)

    def _impute(self, X: ArrayLike, r: FloatArray, rng: Rng | None) -> FloatArray:
        points, theta = self._read_new(X), self._get_theta()
        if not isinstance(points, PointsWithGaps):
            return np.array(points)
        # In a ClassMixture, r_ik refer to classes, so split them among the Gaussians of each.
        if hasattr(theta, "split_responsibilities"):
            r, theta = theta.split_responsibilities(points, r), theta.components
        return points.fill_in(theta, r, rng)

    def _count_free_parameters(self) -> int:
        return POOLINGS[self._type].n_free(ConstrainedGaussianMixture._get_theta(self))


class _FitWithoutDoubts(ConstrainedGaussianMixture):
    """A fit for comparison, which does not test its relations itself."""

    def _find_doubts(self, theta: Any, X: Any, known: dict[str, Any]) -> list[str]:
        return []


# ---------------------------------------------------------------------------- checks of arguments


def check_scale(X: FloatArray, reg_covar: float) -> None:
    """Raise an error if the scale of a column causes rounding errors, or reg_covar exceeds it."""
    # A positive reg_covar gives constant columns a representable variance.
    lows, highs = X.min(axis=0), X.max(axis=0)
    ranges = check_extent(lows, highs, len(X), some_may_vanish=reg_covar >= SMALLEST_RANGE)
    # Far from zero, the rounding error of a mean is a noticeable part of a standard deviation.
    steps = np.spacing(np.maximum(-lows, highs))
    widths = np.maximum(highs - lows, np.sqrt(reg_covar))
    blurred = (lows < highs) & (widths < FEWEST_STEPS * steps)
    if blurred.any():
        d = int(blurred.argmax())
        raise ValueError(
            f"column {d} spans {highs[d] - lows[d]:.3g} near {highs[d]:.3g}, where numbers are "
            f"{steps[d]:.2g} apart: too few digits are left for its means and deviations. Subtract "
            "a constant from the column."
        )
    largest = ranges.max() ** 2
    if 0 < largest < reg_covar:
        raise ValueError(
            f"reg_covar={reg_covar:g} exceeds the squared range {largest:.3g} of every column: "
            "each component would be the same ball of variance reg_covar. Scale the data, or "
            "lower reg_covar."
        )


def _check_array(name: str, value: Any, *shapes: tuple[int, ...]) -> FloatArray:
    """Return the value as an array, or raise an error for a wrong shape, NaN or infinity."""
    array = np.array(value, dtype=np.float64)
    if array.shape not in shapes:
        wanted = " or ".join(map(str, dict.fromkeys(shapes)))
        raise ValueError(f"{name} has shape {array.shape}; it must have {wanted}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity; give finite numbers.")
    return array
