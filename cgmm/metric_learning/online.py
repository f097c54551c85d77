"""Online relevant component analysis, for a stream of chunklets.

The estimator takes one step for each chunklet: the plain step of the paper or, if that would
overshoot, the flow that the step discretises and that cannot diverge. A schedule gives the sizes of
steps. The estimator warns or raises an error if the steps have not led to a whitening, or cannot.
Chapter 12 explains it.

=======  ======================================================================================
W, D     the map so far, D by D (K by D after a projection)
Ĉ        covariance within chunklets, which W is to whiten
h, y     deviation of a point from the mean of its chunklet, and its image y = W h
n        number of points in a chunklet, e.g. 4
η_0, η   the parameter ``eta``, and the size of a step that the schedule computes from it
T        number of points in chunklets so far, e.g. 120
=======  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from cgmm.metric_learning.chunklets import (
    chunklet_deviations,
    pooled_covariance,
    require_scatter,
    rounding_noise,
)
from cgmm.metric_learning.linear_map import ChunkletMap
from cgmm.metric_learning.whiten import TOL, Spectrum, correlation_spectrum
from cgmm.numerics import FloatArray, Seed, warn_caller
from cgmm.runs import random_source

# ------------------------------------------------------------ steps


# No step is accurate beyond this distance, measured in the metric learnt so far.
MAX_DISTANCE = 1e12

# If the logarithm of the growth in one step exceeds this, W or its squares overflow.
MAX_LOG_GROWTH = 300.0

SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": lambda eta, n_points: eta,
    # [barhillel2005, sect. 7]: η_0 / T, where T counts points because a step sums over points
    "decreasing": lambda eta, n_points: eta / n_points,
}
"""Functions by name that compute the step size η from η_0 and the number of points so far."""


def online_step(W: FloatArray, deviations: FloatArray, eta: float) -> FloatArray:
    """Correct the online map by one chunklet.

    Parameters
    ----------
    W : (K, D) array
        The map so far.
    deviations : (n, D) array
        h_i: the points of a chunklet minus their mean; for Algorithm 3 the one row x_1 - x_2.
    eta : float
        η.

    Returns
    -------
    (K, D) array
        W + η Σ_i (W - y_i y_iᵗ W) with y_i = W h_i.

    Notes
    -----
    [barhillel2005, Algs. 3 and 4]. The paper prints Σ (W - y yᵗ) W in Algorithm 4. This does not
    reduce to Algorithm 3 for one row. Its only invertible fixed point is the inverse of the
    covariance instead of the root of the inverse, and it is unstable: W vanishes, wholly or in
    part.

    The deviation of a point from the mean of its pair is half the difference, and Algorithm 4 sums
    over two such deviations: on pairs it converges to twice the W of Algorithm 3.

    Examples
    --------
    >>> online_step(np.eye(2), np.array([[2.0, 0.0]]), 0.1)
    array([[0.7, 0. ],
           [0. , 1.1]])
    """
    Y = deviations @ W.T
    # [barhillel2005, Alg. 4] with the bracket of Alg. 3
    return W + eta * (len(Y) * W - Y.T @ (Y @ W))


def flow_step(W: FloatArray, deviations: FloatArray, eta: float) -> FloatArray:
    """Correct the online map by infinitely many short steps, which cannot diverge.

    Parameters
    ----------
    W, deviations, eta
        As in :func:`~cgmm.metric_learning.online_step`.

    Returns
    -------
    (K, D) array
        W(η), where dW/dt = Σ_i (W - y_i y_iᵗ W) with y_i = W h_i, from W(0) = W.

    Notes
    -----
    Along an eigenvector of Σ y yᵗ, of eigenvalue λ, the differential equation is that of logistic
    growth, and W is multiplied by exp(nη) / sqrt(1 + (exp(2nη) - 1) λ / n), which is
    1 + η (n - λ) for small η. However far the points of a chunklet were, the sum of their squared
    distances along any direction is at most n / (1 - exp(-2nη)), about 1 / (2η), afterwards.

    Examples
    --------
    >>> flow_step(np.eye(1), np.array([[9.0]]), 0.1).round(3)
    array([[0.254]])
    >>> online_step(np.eye(1), np.array([[9.0]]), 0.1).round(3)
    array([[-7.]])
    """
    n = len(deviations)
    _, lengths, directions = np.linalg.svd(deviations @ W.T, full_matrices=False)
    growth, decay = np.exp(n * eta), -np.expm1(-2 * n * eta)
    factors = 1 / np.sqrt(1 - decay + decay * lengths**2 / n)
    varying = directions @ W
    return growth * (W - directions.T @ varying) + (directions.T * factors) @ varying


def overshoots(W: FloatArray, deviations: FloatArray, eta: float) -> bool:
    """Return whether the plain step would shrink some direction by more than half.

    Parameters
    ----------
    W, deviations, eta
        As in :func:`~cgmm.metric_learning.online_step`.

    Returns
    -------
    bool
        η (λ - n) > ½ for the largest eigenvalue λ of Σ y yᵗ.

    Raises
    ------
    ValueError
        If a deviation is so large that rounding would hide the effect of the step.

    Examples
    --------
    >>> [overshoots(np.eye(1), np.array([[3.0]]), eta) for eta in (0.01, 0.1)]
    [False, True]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        Y = deviations @ W.T
        power = np.sum(Y * Y)
    if not power < MAX_DISTANCE**2:
        raise ValueError(
            f"a deviation of {abs(deviations).max():.3g} from a chunklet's mean is more than "
            f"{MAX_DISTANCE:g} in the metric learnt so far, beyond what rounding lets a step "
            "correct. Remove the outlier; if the units have changed, start anew."
        )
    # The sum of the eigenvalues bounds the largest one, and decides nearly every case cheaply.
    if eta * (power - len(Y)) <= 0.5:
        return False
    gram = Y @ Y.T if len(Y) < Y.shape[1] else Y.T @ Y
    return bool(eta * (np.linalg.eigvalsh(gram)[-1] - len(Y)) > 0.5)


def whiteness_error(W: FloatArray, within: FloatArray, rank: int) -> float:
    """Return the largest deviation from one of the variances within chunklets."""
    variances = np.linalg.eigvalsh(W @ within @ W.T)[::-1][:rank]
    return float(abs(variances - 1).max())


# ------------------------------------------------------------ growth


def require_bounded(W: FloatArray, scale: FloatArray) -> None:
    """Raise an error if W is larger than a whitening at the limit of ``TOL`` could be."""
    with np.errstate(over="ignore"):
        heights = np.linalg.norm(W * scale, axis=0)
    if not heights.max() < TOL**-0.5:
        raise ValueError(
            f"W has grown to {heights.max():.3g} times the reciprocal deviation of column "
            f"{heights.argmax()}: some combination of columns does not vary within chunklets, or "
            "does so much less than at first. Drop columns that depend on others, reduce the data "
            "by RCA or PCA, or start anew."
        )


def require_finite_growth(eta: float, n_points: int) -> None:
    """Raise an error if W would overflow where the chunklet does not vary: it grows by exp(η n)."""
    if not eta * n_points <= MAX_LOG_GROWTH:
        raise ValueError(
            f"a step of {eta:.3g} times the {n_points} points of a chunklet lets W grow by exp("
            f"{eta * n_points:.3g}), beyond all numbers, where the chunklet does not vary. Lower "
            "eta."
        )


def require_finite_metric(W: FloatArray) -> None:
    """Raise an error if the squares of W, the entries of the metric, overflow."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.square(W).sum())
    if not finite:
        raise ValueError(
            f"W has grown to {abs(W).max():.3g}: its squares, and with them the metric, overflow. "
            "Lower eta, or multiply the data by a constant."
        )


# ------------------------------------------------------------ the estimator


# The initial W has this size, in units of the reciprocal deviation of each column.
INITIAL_SCALE = 0.1


class OnlineRCA(ChunkletMap):
    """Learn the metric of relevant component analysis from a stream of chunklets.

    Parameters
    ----------
    schedule : {"decreasing", "constant"}, default="decreasing"
        "decreasing" steps η_0 / (points so far) converge to the metric of the whole stream.
        "constant" steps η_0 adapt to a source that drifts, with noise in proportion to η_0.
    eta : float, default=None
        η_0. None is 1 for decreasing steps and 0.05 / D for constant ones.
    n_epochs : int, default=10
        Number of passes of ``fit`` over all chunklets, each in random order. ``partial_fit`` makes
        one pass.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the start, and of the order in ``fit``.
    verbose : int, default=0
        1 prints a line per epoch.

    Attributes
    ----------
    components_ : (D, D) array
        W, an orthonormal matrix times the inverse square root of Ĉ. Therefore its metric, but not W
        itself, can be compared with that of :class:`~cgmm.metric_learning.RCA`. Columns in which no
        chunklet has varied are zero.
    inverse_components_ : (D, D) array
        Its inverse, or pseudo-inverse.
    mean_ : (D,) array
        Mean of the points so far.
    n_steps_, n_points_ : int
        Number of chunklets of two or more points so far, and of the points in them.
    n_guarded_ : int
        Number of steps so far that would have overshot and were replaced by
        :func:`~cgmm.metric_learning.flow_step`. Those at the beginning do no harm. If there are
        many with a constant step, distant chunklets count too little: lower ``eta``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    [barhillel2005, sect. 7 and App. C] with the bracket of Algorithm 4 corrected. W starts as a
    random symmetric orthogonal matrix divided by ten times the deviation of each column: small, as
    in the paper, but in no direction so small that it takes long to grow. It scales with the units
    of the data, so the course of the algorithm does not depend on them.

    The steady state in the paper, the root of the inverse of E[(1/n) Σ h hᵗ], holds for chunklets
    of one size. In general it is the inverse root of E[Σ h hᵗ] / E[n], which is Ĉ of ``RCA``.

    ``fit`` leaves out directions without variance within chunklets, since it has all chunklets.
    ``partial_fit`` leaves out columns that have not varied yet. A *combination* of columns that
    never varies makes W grow along it, which finally raises an error.

    Examples
    --------
    >>> from cgmm.metric_learning import RCA
    >>> rng = np.random.default_rng(0)
    >>> centres = 9 * rng.normal(size=(2000, 2))
    >>> X = np.repeat(centres, 2, axis=0) + rng.normal(size=(4000, 2)) * [3.0, 0.5]
    >>> pairs = np.arange(4000).reshape(-1, 2)
    >>> model = OnlineRCA(random_state=0)
    >>> for start in range(0, 4000, 100):
    ...     model = model.partial_fit(X[start : start + 100], must_link=pairs[:50])
    >>> batch = RCA().fit(X, must_link=pairs)
    >>> product = model.get_mahalanobis_matrix() @ batch.within_covariance_
    >>> bool(abs(product - np.eye(2)).max() < 0.2)
    True
    """

    _parameter_constraints = {
        "schedule": [StrOptions(set(SCHEDULES))],
        "eta": [Interval(Real, 0, None, closed="neither"), None],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        schedule: str = "decreasing",
        *,
        eta: float | None = None,
        n_epochs: int = 10,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.schedule = schedule
        self.eta = eta
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, *, must_link: ArrayLike | None = None
    ) -> Self:
        """Reset the map, and pass over all chunklets ``n_epochs`` times.

        Parameters
        ----------
        X, y, must_link
            As in :meth:`cgmm.metric_learning.RCA.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in :meth:`cgmm.metric_learning.RCA.fit`. Also if a step could make W overflow, or W
            has grown until the metric overflows: ``eta`` is too large, or the data are tiny.
        KeyboardInterrupt
            If interrupted before the first step is complete. The model is then as it was before.

        Warns
        -----
        ConvergenceWarning
            If the variance within chunklets is still off by half in some direction, or if fitting
            was interrupted from the keyboard; what has been learnt is kept.
        UserWarning
            If there are directions in which no chunklet varies. If ``y`` and ``must_link`` are both
            given.
        """
        self._validate_params()
        with _restore_on_error(self):
            X, chunklets = self._validate_chunklets(X, y, must_link)
            within, noise = pooled_covariance(X, chunklets), rounding_noise(X)
            require_scatter(within, noise)
            rng = random_source(self.random_state)
            self._reset(X.shape[1], rng)
            spectrum = correlation_spectrum(within, TOL, noise)
            self._set_initial_map(spectrum)
            _warn_left_out(spectrum)
            rank = len(spectrum.values)
            error = self._take_epochs(chunklet_deviations(X, chunklets), rng, within, rank)
            self._n_rows = len(X)
            self._store_result(X.mean(axis=0))
        # Warn after everything is stored, because users may turn warnings into errors.
        self._warn_unfinished(error)
        return self

    def _take_epochs(
        self, stream: list[FloatArray], rng: np.random.RandomState, within: FloatArray, rank: int
    ) -> float | None:
        """Pass over all chunklets ``n_epochs`` times; return the final whiteness error.

        Return None if the user interrupted the passes.
        """
        try:
            for epoch in range(self.n_epochs):
                self._take_steps([stream[j] for j in rng.permutation(len(stream))])
                if self.verbose:
                    error = whiteness_error(self.components_, within, rank)
                    print(f"epoch {epoch}: variance off by {error:.3f} at most")
        except KeyboardInterrupt:
            if self.n_steps_ == 0:
                raise
            return None
        return whiteness_error(self.components_, within, rank)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, *, must_link: ArrayLike | None = None
    ) -> Self:
        """Continue with the next chunklets of a stream, in the order of their first points.

        Parameters
        ----------
        X : (N, D) array-like
            The next points.
        y : (N,) int array-like, default=None
            The chunklet of each point, -1 for none. The numbers hold for this call only.
        must_link : (P, 2) int array-like, default=None
            Pairs of rows of this X that share a class.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If no two points share a chunklet, if W grows without bound because some combination of
            columns does not vary within chunklets, or if a point is extremely far. After an error,
            and after an interrupt from the keyboard, the model is as it was before the call.
        """
        self._validate_params()
        with _restore_on_error(self):
            first = not hasattr(self, "components_")
            X, chunklets = self._validate_chunklets(X, y, must_link, reset=first)
            within, noise = pooled_covariance(X, chunklets), rounding_noise(X)
            if first:
                require_scatter(within, noise)
                self._reset(X.shape[1], random_source(self.random_state))
            self._set_initial_map(correlation_spectrum(np.diag(within.diagonal()), TOL, noise))
            self._take_steps(chunklet_deviations(X, chunklets))
            require_bounded(self.components_, self._scale)
            self._n_rows += len(X)
            mean = self.mean_ + (X.mean(axis=0) - self.mean_) * (len(X) / self._n_rows)
            return self._store_result(mean)

    def _reset(self, D: int, rng: np.random.RandomState) -> None:
        """Reset the state: each column of W is zero until its feature varies for the first time."""
        Q = np.linalg.qr(rng.normal(size=(D, D)))[0]
        self._symmetric = (Q * rng.choice([-1.0, 1.0], D)) @ Q.T
        self.components_, self.mean_, self._scale = np.zeros((D, D)), np.zeros(D), np.zeros(D)
        self.n_steps_ = self.n_points_ = self.n_guarded_ = self._n_rows = 0

    def _set_initial_map(self, spectrum: Spectrum) -> None:
        """Initialise the columns of W whose features vary for the first time."""
        start = (
            INITIAL_SCALE * self._symmetric @ spectrum.vectors @ spectrum.vectors.T / spectrum.scale
        )
        untouched = ~self.components_.any(axis=0)
        self.components_ = np.where(untouched, start, self.components_)
        self._scale = np.where(untouched, spectrum.scale, self._scale)

    def _take_steps(self, stream: list[FloatArray]) -> None:
        """Take one step per chunklet; each chunklet is given by deviations from its mean."""
        eta = self.eta
        if eta is None:
            eta = 1.0 if self.schedule == "decreasing" else 0.05 / self.components_.shape[1]
        for H in stream:
            n_points = self.n_points_ + len(H)
            step = SCHEDULES[self.schedule](eta, n_points)
            require_finite_growth(step, len(H))
            guarded = overshoots(self.components_, H, step)
            self.components_ = (flow_step if guarded else online_step)(self.components_, H, step)
            # The counters change last, so an interrupted step does not count.
            self.n_steps_, self.n_points_ = self.n_steps_ + 1, n_points
            self.n_guarded_ += int(guarded)

    def _store_result(self, mean: FloatArray) -> Self:
        """Store W with its pseudo-inverse, in which columns that have not varied are zero."""
        require_finite_metric(self.components_)
        inverse = cast("FloatArray", np.linalg.pinv(self.components_, rcond=1e-12))
        return self._store_map(self.components_, inverse, mean)

    def _warn_unfinished(self, error: float | None) -> None:
        """Warn if the fit was interrupted, or ended before chunklets were whitened."""
        if error is None:
            warn_caller(
                f"fitting was interrupted; what has been learnt is kept, of {self.n_steps_} steps "
                "(chunklets).",
                ConvergenceWarning,
            )
        elif error > 0.5:
            warn_caller(
                f"after {self.n_epochs} epochs the variance within chunklets is still off by "
                f"{error:.2f} in some direction, where it should be 1. Increase n_epochs, or "
                "change eta: smaller if the steps are constant, larger if they decrease.",
                ConvergenceWarning,
            )


@contextmanager
def _restore_on_error(model: OnlineRCA) -> Iterator[None]:
    """Restore the model if the block fails or is interrupted."""
    before = model.__dict__.copy()
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


def _warn_left_out(spectrum: Spectrum) -> None:
    """Warn if there are directions in which no chunklet varies."""
    D, rank = spectrum.vectors.shape
    if rank < D:
        warn_caller(
            f"The chunklets vary in {rank} of {D} dimensions: the metric would stretch the others "
            f"infinitely, so they are left out, and the {D} columns of transform have rank {rank}.",
            UserWarning,
        )
