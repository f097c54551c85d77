"""Learn the metric of relevant component analysis (RCA) online, from a stream of chunklets.

The estimator updates its map by one step per chunklet. This is the step of the paper or, if that
would overshoot, the exact solution of the differential equation that the step discretises, which
cannot diverge. A schedule determines the step sizes. The estimator warns, or raises an error, if
the map does not whiten the chunklets. Chapter 12 explains it.

=======  ======================================================================================
W, D     (D, D) matrix of the current map; (K, D) in chapter 12 after a projection
Ĉ        covariance within chunklets, which W should whiten
h, y     deviation of a point from the mean of its chunklet, and the mapped deviation y = W h
n        number of points in a chunklet, e.g. 4
η_0, η   the parameter ``eta``, and the step size that the schedule computes from it
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


# At larger distances, measured in the current metric, rounding errors make any step inaccurate.
MAX_DISTANCE = 1e12

# If a step multiplies W by more than exp of this number, W or its squares overflow.
MAX_LOG_GROWTH = 300.0

SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": lambda eta, n_points: eta,
    # [barhillel2005, sect. 7]: η_0 / T, where T counts points because each step sums over points.
    "decreasing": lambda eta, n_points: eta / n_points,
}
"""Schedules by name: functions that compute η from η_0 and the number of points so far."""


def online_step(W: FloatArray, deviations: FloatArray, eta: float) -> FloatArray:
    """Update the map of online RCA by one chunklet.

    Parameters
    ----------
    W : (K, D) array
        The current map.
    deviations : (n, D) array
        h_i: the points of a chunklet minus their mean; for Algorithm 3 the single row x_1 - x_2.
    eta : float
        η, the step size.

    Returns
    -------
    (K, D) array
        W + η Σ_i (W - y_i y_iᵗ W) with y_i = W h_i.

    Notes
    -----
    This is [barhillel2005, Algs. 3 and 4], with a correction: the paper prints Σ (W - y yᵗ) W in
    Algorithm 4. This formula does not reduce to Algorithm 3 for one row. Its only invertible fixed
    point is the inverse of the covariance instead of the root of the inverse, and this fixed point
    is unstable: W converges to zero, at least in some directions.

    On pairs, Algorithm 4 converges to twice the W of Algorithm 3, because the deviation of a point
    from the mean of its pair is half the difference of the points.

    Examples
    --------
    >>> online_step(np.eye(2), np.array([[2.0, 0.0]]), 0.1)
    array([[0.7, 0. ],
           [0. , 1.1]])
    """
    Y = deviations @ W.T
    # [barhillel2005, Alg. 4], with the bracket of Alg. 3.
    return W + eta * (len(Y) * W - Y.T @ (Y @ W))


def flow_step(W: FloatArray, deviations: FloatArray, eta: float) -> FloatArray:
    """Update the map of online RCA by infinitely many small steps, which cannot diverge.

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
    Along an eigenvector of Σ y yᵗ with eigenvalue λ, the differential equation describes logistic
    growth. Its solution multiplies W by exp(nη) / sqrt(1 + (exp(2nη) - 1) λ / n), which is
    1 + η (n - λ) for small η. However large the deviations were before the step, the sum of their
    squares along any direction is at most n / (1 - exp(-2nη)), about 1 / (2η), after the step.

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
    """Return True if ``online_step`` would shrink W by more than half in some direction.

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
            f"{MAX_DISTANCE:g} in the metric learnt so far, too large for an accurate step. "
            "Remove the outlier; if the units have changed, start anew."
        )
    # The sum of the eigenvalues is an upper bound of the largest one, and nearly always sufficient.
    if eta * (power - len(Y)) <= 0.5:
        return False
    gram = Y @ Y.T if len(Y) < Y.shape[1] else Y.T @ Y
    return bool(eta * (np.linalg.eigvalsh(gram)[-1] - len(Y)) > 0.5)


def compute_whiteness_error(W: FloatArray, within: FloatArray, rank: int) -> float:
    """Return the largest difference between one and a variance within mapped chunklets."""
    variances = np.linalg.eigvalsh(W @ within @ W.T)[::-1][:rank]
    return float(abs(variances - 1).max())


# ------------------------------------------------------------ growth


def check_size(W: FloatArray, scale: FloatArray) -> None:
    """Raise an error if W stretches some direction more than ``TOL`` permits."""
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(W * scale, axis=0)
    if not lengths.max() < TOL**-0.5:
        raise ValueError(
            f"W has grown to {lengths.max():.3g} times the reciprocal deviation of column "
            f"{lengths.argmax()}: some combination of columns does not vary within chunklets, or "
            "does so much less than at first. Drop columns that depend on others, reduce the data "
            "by RCA or PCA, or start anew."
        )


def check_growth(eta: float, n_points: int) -> None:
    """Raise an error if W would overflow in a direction without variance, by exp(η n)."""
    if not eta * n_points <= MAX_LOG_GROWTH:
        raise ValueError(
            f"a step of {eta:.3g} times the {n_points} points of a chunklet lets W grow by exp("
            f"{eta * n_points:.3g}), beyond all numbers, where the chunklet does not vary. Lower "
            "eta."
        )


def check_metric_is_finite(W: FloatArray) -> None:
    """Raise an error if the entries of the metric WᵗW overflow."""
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(np.square(W).sum())
    if not is_finite:
        raise ValueError(
            f"W has grown to {abs(W).max():.3g}: its squares, and with them the metric, overflow. "
            "Lower eta, or multiply the data by a constant."
        )


# ------------------------------------------------------------ the estimator


# The initial W is an orthogonal matrix times this factor, divided by the deviation of each column.
INITIAL_SCALE = 0.1


class OnlineRCA(ChunkletMap):
    """Learn the metric of relevant component analysis from a stream of chunklets.

    Parameters
    ----------
    schedule : {"decreasing", "constant"}, default="decreasing"
        "decreasing": step sizes η_0 / (number of points so far), with which the map converges to
        the metric of the whole stream. "constant": step size η_0, with which the map adapts if the
        source changes; its noise is proportional to η_0.
    eta : float, default=None
        η_0. None means 1 for decreasing steps, and 0.05 / D for constant steps.
    n_epochs : int, default=10
        Number of passes of ``fit`` over all chunklets, each in random order. ``partial_fit`` makes
        one pass.
    random_state : int, RandomState, Generator or None, default=None
        Seed for the initial map, and for the order of chunklets in ``fit``.
    verbose : int, default=0
        1 prints a line per epoch.

    Attributes
    ----------
    components_ : (D, D) array
        W, which converges to an orthogonal matrix times the inverse square root of Ĉ. Therefore its
        metric, but not W itself, can be compared with that of :class:`~cgmm.metric_learning.RCA`.
        Columns of W are zero for features that have not varied within any chunklet.
    inverse_components_ : (D, D) array
        Inverse or pseudo-inverse of W.
    mean_ : (D,) array
        Mean of the points so far.
    n_steps_, n_points_ : int
        Number of chunklets of two or more points so far, and number of points in them.
    n_guarded_ : int
        Number of steps so far that would have overshot, and were replaced by
        :func:`~cgmm.metric_learning.flow_step`. A small number of them at the beginning is
        harmless. If there are many with a constant step size, chunklets with large deviations have
        too little influence: lower ``eta``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    This is [barhillel2005, sect. 7 and App. C], with the bracket of Algorithm 4 corrected. The
    initial W is a random symmetric orthogonal matrix divided by ten times the standard deviation of
    each column. It is small, as in the paper, but not so small in any direction that it would need
    many steps to grow. Since it scales with the units of the data, the updates do not depend on the
    units.

    The steady state in the paper, the root of the inverse of E[(1/n) Σ h hᵗ], is correct if all
    chunklets have the same size. In general it is the inverse root of E[Σ h hᵗ] / E[n], which is Ĉ
    of ``RCA``.

    ``fit`` leaves out directions without variance within chunklets, because it knows all chunklets.
    ``partial_fit`` leaves out columns that have not varied so far. If a *combination* of columns
    never varies, W grows along it, until ``partial_fit`` raises an error.

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
        """Learn the metric from the initial map, in ``n_epochs`` passes over all chunklets.

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
            As in :meth:`cgmm.metric_learning.RCA.fit`. Also if W or the metric would overflow,
            because ``eta`` is too large or the data are extremely small.
        KeyboardInterrupt
            If the fit is interrupted before the first step is complete. The model is unchanged.

        Warns
        -----
        ConvergenceWarning
            If the variance within mapped chunklets differs from one by more than ½ in some
            direction, or if the fit was interrupted from the keyboard; the current map is kept.
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
            _warn_of_lost_directions(spectrum)
            rank = len(spectrum.values)
            error = self._run_epochs(chunklet_deviations(X, chunklets), rng, within, rank)
            self._n_rows = len(X)
            self._store_result(X.mean(axis=0))
        # Warn after everything is stored, because users may turn warnings into errors.
        self._warn_unfinished(error)
        return self

    def _run_epochs(
        self, deviations: list[FloatArray], rng: np.random.RandomState, within: FloatArray,
        rank: int,
    ) -> float | None:  # fmt: skip
        """Pass over all chunklets ``n_epochs`` times; return the final whiteness error.

        Return None if the user interrupted the passes.
        """
        try:
            for epoch in range(self.n_epochs):
                self._take_steps([deviations[j] for j in rng.permutation(len(deviations))])
                if self.verbose:
                    error = compute_whiteness_error(self.components_, within, rank)
                    print(f"epoch {epoch}: variance off by {error:.3f} at most")
        except KeyboardInterrupt:
            if self.n_steps_ == 0:
                raise
            return None
        return compute_whiteness_error(self.components_, within, rank)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, *, must_link: ArrayLike | None = None
    ) -> Self:
        """Update the map by the next chunklets of a stream, in the order of their first points.

        Parameters
        ----------
        X : (N, D) array-like
            The next points.
        y : (N,) int array-like, default=None
            The chunklet of each point, -1 for none. Chunklets of different calls are not related,
            even if they have the same number.
        must_link : (P, 2) int array-like, default=None
            Pairs of rows of this X that share a class.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If no two points share a chunklet, if W grows without bound because some combination of
            columns does not vary within chunklets, or if a point is extremely far from its
            chunklet. After an error, and after an interrupt from the keyboard, the model is the
            same as before the call.
        """
        self._validate_params()
        with _restore_on_error(self):
            is_first_call = not hasattr(self, "components_")
            X, chunklets = self._validate_chunklets(X, y, must_link, reset=is_first_call)
            within, noise = pooled_covariance(X, chunklets), rounding_noise(X)
            if is_first_call:
                require_scatter(within, noise)
                self._reset(X.shape[1], random_source(self.random_state))
            self._set_initial_map(correlation_spectrum(np.diag(within.diagonal()), TOL, noise))
            self._take_steps(chunklet_deviations(X, chunklets))
            check_size(self.components_, self._scale)
            self._n_rows += len(X)
            mean = self.mean_ + (X.mean(axis=0) - self.mean_) * (len(X) / self._n_rows)
            return self._store_result(mean)

    def _reset(self, D: int, rng: np.random.RandomState) -> None:
        """Reset all counters and the map, whose columns are zero until their features vary."""
        Q = np.linalg.qr(rng.normal(size=(D, D)))[0]
        self._symmetric = (Q * rng.choice([-1.0, 1.0], D)) @ Q.T
        self.components_, self.mean_, self._scale = np.zeros((D, D)), np.zeros(D), np.zeros(D)
        self.n_steps_ = self.n_points_ = self.n_guarded_ = self._n_rows = 0

    def _set_initial_map(self, spectrum: Spectrum) -> None:
        """Initialise the columns of W whose features vary for the first time."""
        start = (
            INITIAL_SCALE * self._symmetric @ spectrum.vectors @ spectrum.vectors.T / spectrum.scale
        )
        is_zero = ~self.components_.any(axis=0)
        self.components_ = np.where(is_zero, start, self.components_)
        self._scale = np.where(is_zero, spectrum.scale, self._scale)

    def _take_steps(self, deviations: list[FloatArray]) -> None:
        """Update W by one step per chunklet, given the (n, D) deviations from its mean."""
        eta = self.eta
        if eta is None:
            eta = 1.0 if self.schedule == "decreasing" else 0.05 / self.components_.shape[1]
        for H in deviations:
            n_points = self.n_points_ + len(H)
            step_size = SCHEDULES[self.schedule](eta, n_points)
            check_growth(step_size, len(H))
            is_guarded = overshoots(self.components_, H, step_size)
            take_step = flow_step if is_guarded else online_step
            self.components_ = take_step(self.components_, H, step_size)
            # Update the counters last, so that an interrupted step does not count.
            self.n_steps_, self.n_points_ = self.n_steps_ + 1, n_points
            self.n_guarded_ += int(is_guarded)

    def _store_result(self, mean: FloatArray) -> Self:
        """Store W, its pseudo-inverse and the mean of the points."""
        check_metric_is_finite(self.components_)
        inverse = cast("FloatArray", np.linalg.pinv(self.components_, rcond=1e-12))
        return self._store_map(self.components_, inverse, mean)

    def _warn_unfinished(self, error: float | None) -> None:
        """Warn if the fit was interrupted, or if the whiteness error is above ½."""
        if error is None:
            warn_caller(
                f"fitting was interrupted; the map after {self.n_steps_} steps is kept.",
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
    """Restore the attributes of the model if the block raises an error or is interrupted."""
    before = model.__dict__.copy()
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


def _warn_of_lost_directions(spectrum: Spectrum) -> None:
    """Warn if there are directions in which no chunklet varies."""
    D, rank = spectrum.vectors.shape
    if rank < D:
        warn_caller(
            f"The chunklets vary in {rank} of {D} dimensions: the metric would stretch the others "
            f"infinitely, so they are left out, and the {D} columns of transform have rank {rank}.",
            UserWarning,
        )
