"""The estimator ConstrainedGaussianMixture: it validates, chooses and stores. Chapters 1 to 10.

The mathematics is elsewhere: the loop in :mod:`cgmm.mixture.loop`, the start in
:mod:`cgmm.mixture.initialise`.
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
from cgmm.large.chunks import Chunks, fetch, like_array, read_chunks
from cgmm.mixture.base import ConstrainedMixture, ImputingMixture
from cgmm.mixture.doubts import poor_maximum, thin_covariances
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
from cgmm.mixture.weights import kept_alive
from cgmm.network import Engine, SideInformation
from cgmm.numerics import SMALLEST_RANGE, FloatArray, IntArray, Seed, check_extent
from cgmm.runs import Rng

NO_SCATTER = (
    "covariance_prior='fraley-raftery' needs the covariance of all points, which the workers of a "
    "cluster hold here: give it, covariance_prior=(D + 2, cov / K ** (2 / D)) with "
    "cov = dask.array.cov(X.T).compute()."
)
# A fit is at a poor maximum if another fit's log-evidence is higher by more than this, in nats.
POOR_GAIN = 1.0
# A column must span at least this many representable numbers.
FEWEST_STEPS = 1000


class ConstrainedGaussianMixture(ImputingMixture):
    """Gaussian mixture fitted by expectation maximisation, with whatever is known beside the data.

    Labels, must-links, cannot-links and preferences go to ``fit``; they become one Markov
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
        takes the cheapest exact engine for each connected component, and approximates, with a
        warning, where that costs too much; "exact" refuses there. "mean_field" and "gibbs" are
        approximate everywhere; see the notes.
    weights : {"auto", "exact", "cautious", "pseudo-likelihood", "ignore", "grid"}, default="auto"
        The update of the weights where the prior's normaliser depends on them: an entry of
        ``cgmm.mixture.UPDATES``. "auto" is "exact" where the engine is, with the data and without
        them, else "cautious". Without relations all are the closed form.
    tol : float, default=1e-3
        EM stops when an iteration gains less than this in log-evidence per point (nats).
    reg_covar : float, default=1e-6
        ε ≥ 0, added to each covariance's diagonal, in squared units of the data. With 0, an exact
        engine and its ``weights="auto"`` the log-evidence never falls. With ε > 0 it is the bound
        minus ½ ε Σ_k N_k tr Σ_k⁻¹ that no M-step lowers, and the log-evidence can fall by as much
        as that penalty does: see :mod:`cgmm.mixture.pooling`.
    covariance_prior : "fraley-raftery" or (ν, Λ), default=None
        Inverse Wishart prior of the covariances, whose most probable values an M-step takes: for
        components with few points. "fraley-raftery" is the weak prior of Fraley and Raftery (2007),
        ν = D + 2 and Λ the covariance of all points over K^(2 / D): with ten points a component in
        five columns new points become more probable, with thirty less. Runs are compared by the
        log-evidence plus the log-density of the prior.
    max_iter : int, default=100
        Most iterations of EM in one run.
    n_init : int, default=1
        Runs of EM from different starts; the one with the highest log-evidence is kept. With an
        engine that approximates they are compared by the classification likelihood: points with
        relations count by their best joint assignment instead of all. With ``init_params="auto"``
        more starts are tried as well, of further kinds first, and the ``n_init`` best go on.
    warm_start : bool, default=False
        Whether another ``fit`` goes on from where the last one ended, in one run, instead of from a
        start. What is known beside the data may differ from fit to fit, and so may
        ``covariance_type``.
    init_params : str or (N, K) array, default="auto"
        Where the responsibilities of the start come from. "auto" tries about fifty groupings of
        unlike kinds in short runs of EM, with equal balls, with one shared covariance and with
        those of ``covariance_type``; the Bayesian information criterion says which of the three the
        points support, and its best grouping goes on (``cgmm.mixture.starts``). Labels and
        relations count in these runs. Their iterations are not in ``history_``, and of many points
        a sample is tried. The others are single starts, and quicker: "kmeans" is K-means that
        breaks no hard relation, the best of ten runs where N ≤ K², and scikit-learn's where there
        is none; "k-means++", "random" and "random_from_data" use the points alone; "labels" the
        means of the labelled points; "chunklets" the centroids of large chunklets far apart. A
        start is adapted to labels and relations (:func:`cgmm.mixture.adapt_to_evidence`). An array
        is taken as these responsibilities themselves.
    weights_init : (K,) array, default=None
        Weights of the start, instead of those from ``init_params``.
    means_init : (K, D) array, default=None
        Means of the start; no others are tried. Without ``init_params`` as an array the other
        parameters are then taken from the points nearest to each.
    covariances_init : array, default=None
        Covariances of the start: (K, D, D), or scikit-learn's shape for the covariance type: (D, D)
        tied, (K, D) diag, (K,) spherical.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the starts, of ``sample``, and of "gibbs".
    verbose : int, default=0
        1: a line a run; 2: a line an iteration too.
    n_jobs : int, default=None
        Threads that work on blocks of points, as scikit-learn counts jobs: None is 1, -1 all. The
        fit is the same to the last bit. Where points have few columns threads wait for each other:
        there one is quicker. Linear algebra keeps to one thread a block, whatever the environment
        says.
    store_responsibilities : bool, default=True
        Whether to keep ``responsibilities_``, the only thing of N times K numbers that a fit makes
        where points have no edges.
    step_exponent : float, default=0.6
        α of ``partial_fit``, whose step t goes the part t^-α of the way: above ½, so that noise
        dies out, and at most 1, so that it gets everywhere. Nearer to ½ it forgets its start
        sooner.

    Attributes
    ----------
    weights_ : (K,) array
        π_k.
    means_ : (K, D) array
        μ_k.
    covariances_ : (K, D, D), (D, D), (K, D) or (K,) array
        Σ_k in scikit-learn's shape for the type: full, tied, diag, spherical. As (K, D, D) matrices
        they are ``parameters_.full_covariances``.
    precisions_, precisions_cholesky_
        Σ_k⁻¹, and upper triangular factors U_k with U_k U_kᵀ = Σ_k⁻¹, in the shape of
        ``covariances_`` and as scikit-learn has them. Made when asked for.
    parameters_ : Parameters
        θ, for the functions of :mod:`cgmm.mixture` and :mod:`cgmm.plot`.
    log_evidence_ : float
        log p(X, labels | relations) = log Z_posterior - log Z_prior in nats, of exactly these
        parameters. As near as it could be had, if it is not exact: see the notes.
    evidence_exact_ : bool
        Whether ``log_evidence_`` is exact: with all relations, and with both normalisers.
    lower_bound_ : float
        ``log_evidence_`` per training point. scikit-learn's is that of the parameters before the
        last M-step; this one belongs to the parameters reported.
    history_ : (n_iter_,) array
        history_[t] is the log-evidence of the parameters that enter iteration t; with the
        normaliser that the update assumes, if ``weights_update_`` is "cautious".
    n_iter_ : int
        Iterations of the run that was kept.
    converged_ : bool
        Whether that run gained less than ``tol`` in its last iteration but one.
    responsibilities_ : (N, K) array
        r_ik of the training points, given all that is known; not there if not to be stored.
    labels_ : (N,) int array
        The component of each training point. It breaks no hard relation, whatever the engine: the
        most probable *joint* assignment where that is known, else the best that a search finds.
    labels_exact_ : bool
        Whether ``labels_`` is known to be the most probable joint assignment.
    weights_update_ : str
        The update of the weights that was made: ``weights``, or what "auto" chose.
    inference_ : tuple of NamedTuples
        Who answered what: ``(engine, n_components, n_nodes, n_edges, width)`` of the network.
    n_steps_, n_samples_seen_
        How many steps ``partial_fit`` took, and of how many points; not there after ``fit``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    cgmm.mixture.em : the loop itself, as an iterator.
    SemiSupervisedGaussianClassifier : labels with names, and predictions in those names.

    Notes
    -----
    Cells may be empty, NaN, in ``fit`` and in predictions: a row then has the density of its
    present cells, and the M-step takes the expectation of its moments given these (Ghahramani and
    Jordan, 1994). This is maximum likelihood if cells are missing at random: whether a cell is
    empty may depend on the cells that are present, but not on its own value. :meth:`impute` fills
    them in. A table on a disk is read into memory if cells are empty; ``partial_fit`` and Dask
    refuse it.

    From the same start and with the same ``reg_covar`` the iterations without side information are
    those of ``sklearn.mixture.GaussianMixture``.

    Where the engine's answer is not exact, ``weights="auto"`` does not ask it for log Z_prior.
    Relations that may be answers about random pairs count as such, as data and not as a condition;
    only what was selected for being alike is held against uneven weights, as if each edge stood
    alone (:func:`cgmm.mixture.cautious`); ``history_`` is log Z_posterior less that, which EM
    raises. ``log_evidence_`` is less log Z_prior of the network as "auto" answers it, nats away
    from the exact one at most as a rule. With "exact", "grid", "ignore" or "pseudo-likelihood" both
    are less the engine's own log Z_prior, which may jump by hundreds of nats from one iteration to
    the next where relations are many. "ignore" lets components starve where relations only say
    "together", as in images.

    "gibbs" reports no log Z: ``log_evidence_`` is NaN, EM stops when responsibilities move by less
    than ``tol`` on average, or only tremble, and ``weights="exact"`` and "grid" are
    refused. The fit warns if its chains had not mixed in the last E-step.

    Examples
    --------
    >>> X = np.array([[1.2, 2.0], [0.9, 4.0], [0.9, 0.0], [9.2, 2.0], [8.9, 4.0], [8.9, 0.0]])
    >>> model = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    >>> sorted(model.means_.round(3).tolist())
    [[1.0, 2.0], [9.0, 2.0]]
    >>> model.predict([[0.0, 0.0]]) == model.labels_[0]
    array([ True])

    The same points with relations: the upper two differ from the lower two, and left is right:

    >>> model = ConstrainedGaussianMixture(2, covariance_type="tied", random_state=0)
    >>> model = model.fit(X, must_link=[[1, 4], [2, 5]], cannot_link=[[1, 2]])
    >>> bool(model.labels_[1] == model.labels_[4] != model.labels_[2])
    True

    New points, of which the first two must differ:

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

    def _read(self, X: ArrayLike) -> Any:
        # Column-major, since blocks are read column by column.
        as_is = {"dtype": np.float64, "order": "F"}
        if isinstance(X, np.memmap) and X.dtype in (np.float32, np.float64):
            as_is = {"dtype": X.dtype}  # a memmap is not copied
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
        validate_data(self, like_array(X), ensure_min_samples=n_least, ensure_all_finite=False)
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

    def _thin(self, theta: Any) -> list[str]:
        return thin_covariances(getattr(theta, "components", theta).covariances, self.reg_covar)

    def _has_collapsed(self, theta: Any) -> bool:
        return len(self._thin(theta)) > 0

    def _doubts(self, theta: Any, X: Any, known: dict[str, Any]) -> list[str]:
        if known["must_link"] is None and known["cannot_link"] is None:
            return self._thin(theta)
        doubts = super()._doubts(theta, X, known)
        if doubts and type(self) is ConstrainedGaussianMixture and X.shape[0] <= MOST_POINTS:
            doubts = self._second_opinion(doubts, X, known)
        return [*self._thin(theta), *doubts]

    def _second_opinion(self, doubts: list[str], X: Any, known: dict[str, Any]) -> list[str]:
        """Return the doubts about relations that remain at a maximum from more starts."""
        other = _Unquestioned(**self.get_params())
        other.set_params(init_params="auto", n_init=self.n_init + 2, warm_start=False, verbose=0)
        other.set_params(means_init=None, covariances_init=None, weights_init=None, random_state=0)
        with catch_warnings(action="ignore"):
            other.fit(fetch(X, np.arange(X.shape[0])), **known)  # type: ignore[arg-type]
        gain = other.log_evidence_ - self.log_evidence_
        if not gain > POOR_GAIN:
            return doubts
        remaining = super()._doubts(other.parameters_, X, known)
        return remaining or [poor_maximum(gain, other.n_init)]

    def _starts(self, X: Any, side: SideInformation, rng: Rng) -> list[Callable[[], Any]]:
        given = self._given((self.n_components, X.shape[1]))
        if len(given) == 3:
            return [lambda: Parameters(**given)] * self.n_init
        make: Callable[[], FloatArray]
        complete = X.filled if isinstance(X, PointsWithGaps) else X
        if not isinstance(self.init_params, str):
            r = check_responsibilities(self.init_params, (len(X), self.n_components))
            make = partial(np.asarray, r)
        elif "means" in given:
            make = partial(nearest, complete, given["means"])
        elif self.init_params == "auto":
            X, side = sample_for_portfolio(X, side, self.n_components, rng)
            shape = self.n_components, self.covariance_type
            found = portfolio(X, side, *shape, rng, self.n_init, self.verbose)
            makes = [partial(np.asarray, r) for r in found]
            return [partial(self._start_from, X, make, side, given) for make in makes]
        else:
            make = partial(named_start, self.init_params, complete, self.n_components, rng, side)
        return [partial(self._start_from, X, make, side, given)] * self.n_init

    def _given(self, shape: tuple[int, int]) -> dict[str, FloatArray]:
        """Return the given parts of θ, checked against (K, D) = ``shape`` and the type."""
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
            given["covariances"] = self._given_covariances(shape)
        return given

    def _given_covariances(self, shape: tuple[int, int]) -> FloatArray:
        """Return the given covariances in the form of θ, checked against the covariance type."""
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

    def _start_from(
        self, X: FloatArray, make: Callable[[], FloatArray], side: SideInformation,
        given: dict[str, FloatArray],
    ) -> Parameters:  # fmt: skip
        """Return what one M-step makes of responsibilities, but for what the user gives."""
        family = ConstrainedGaussianMixture._family(self)
        if side.is_empty:
            return family.start(X, make())._replace(**given)
        made = family.start(X, side.counted(make()))
        if not side.is_trivial or side.mask(self.n_components) is not None:
            made = made.with_weights(kept_alive(made.weights, len(X)))
        return made._replace(**given)

    def _keep(self, parameters: Any) -> None:
        self.weights_, self.means_, covariances = parameters
        self._type = self.covariance_type
        self.covariances_ = np.array(POOLINGS[self._type].reduce(covariances))

    def _parameters(self) -> Any:
        expanded = POOLINGS[self._type].expand(self.covariances_, *self.means_.shape)
        return Parameters(self.weights_, self.means_, expanded)

    @property
    def precisions_cholesky_(self) -> FloatArray:
        """U_k = W_kᵀ, upper triangular, with U_k U_kᵀ = Σ_k⁻¹."""
        check_is_fitted(self, "weights_")
        whiteners = whiten(ConstrainedGaussianMixture._parameters(self).covariances)[0]
        upper = whiteners if whiteners.ndim == 2 else whiteners.transpose(0, 2, 1)
        return np.array(POOLINGS[self._type].reduce(upper))

    @property
    def precisions_(self) -> FloatArray:
        """Σ_k⁻¹ = U_k U_kᵀ."""
        upper = self.precisions_cholesky_
        if upper.ndim < 2 or self._type == "diag":
            return np.square(upper)
        return upper @ np.swapaxes(upper, -1, -2)

    def _draw(self, n_samples: int, rng: Rng) -> tuple[FloatArray, IntArray]:
        return sample(self._parameters(), n_samples, rng)

    def _impute(self, X: ArrayLike, r: FloatArray, rng: Rng | None) -> FloatArray:
        points, theta = self._read_new(X), self._parameters()
        if not isinstance(points, PointsWithGaps):
            return np.array(points)
        if hasattr(theta, "split"):  # several components a class
            r, theta = theta.split(points, r), theta.components
        return points.completed(theta, r, rng)

    def _n_free(self) -> int:
        return POOLINGS[self._type].n_free(ConstrainedGaussianMixture._parameters(self))


class _Unquestioned(ConstrainedGaussianMixture):
    """A second fit for comparison, whose own relations are not tested."""

    def _doubts(self, theta: Any, X: Any, known: dict[str, Any]) -> list[str]:
        return []


# ---------------------------------------------------------------------------- what is refused


def check_scale(X: FloatArray, reg_covar: float) -> None:
    """Refuse data without usable squares or digits, and a reg_covar that would be all there is."""
    # reg_covar gives columns of vanishing range a representable variance.
    lows, highs = X.min(axis=0), X.max(axis=0)
    ranges = check_extent(lows, highs, len(X), some_may_vanish=reg_covar >= SMALLEST_RANGE)
    # Far from zero a mean is rounded by a noticeable part of a standard deviation.
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
    """Return the array; refuse a wrong shape and values that are not finite."""
    array = np.array(value, dtype=np.float64)
    if array.shape not in shapes:
        wanted = " or ".join(map(str, dict.fromkeys(shapes)))
        raise ValueError(f"{name} has shape {array.shape}; it must have {wanted}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity; give finite numbers.")
    return array
