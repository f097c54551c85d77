"""The estimator OnlineRCA. Chapter 12."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from cgmm.metric_learning.chunklets import within_groups
from cgmm.metric_learning.linear_map import (
    LinearMap,
    read_points,
    rounding_of,
    warn_convergence,
    warn_left_out,
)
from cgmm.metric_learning.online_steps import (
    FASTEST,
    SCHEDULES,
    START,
    deviations_of,
    flow_step,
    online_step,
    overshoots,
    whiteness_error,
)
from cgmm.metric_learning.rca import require_scatter
from cgmm.metric_learning.whiten import TOL, Spectrum, spectrum_of
from cgmm.numerics import FloatArray


class OnlineRCA(LinearMap):
    """Relevant component analysis of a stream of chunklets.

    Parameters
    ----------
    schedule : {"decreasing", "constant"}, default="decreasing"
        "decreasing" steps η_0 / (points so far) converge to the metric of the whole stream.
        "constant" steps η_0 follow a source that drifts, with a noise in proportion to η_0.
    eta : float, default=None
        η_0. None is 1 for decreasing steps and 0.05 / D for constant ones.
    n_epochs : int, default=10
        How often ``fit`` takes all chunklets, in random order. ``partial_fit`` takes them once.
    random_state : int, RandomState or None, default=None
        Seed of the start, and of the order in ``fit``.
    verbose : int, default=0
        1: a line an epoch.

    Attributes
    ----------
    components_ : (D, D) array
        W: an orthonormal matrix times the inverse square root of Ĉ, so that only the metric is
        comparable with that of :class:`RCA`. Columns in which no chunklet has varied are zero.
    inverse_components_ : (D, D) array
        Its inverse, or pseudo-inverse.
    mean_ : (D,) array
        Mean of the points seen.
    n_steps_, n_points_ : int
        Chunklets of two or more, and the points in them, so far.
    n_guarded_ : int
        Steps so far that would have overshot, and were :func:`flow_step` instead. Those at the
        beginning do no harm; if with a constant step many do, far chunklets count for too
        little: lower ``eta``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    [barhillel2005, sect. 7 and App. C] with the bracket of Algorithm 4 corrected. W starts as a
    random symmetric orthogonal matrix over ten times the deviation of each column, small as the
    paper has it, but in no direction so small that growing takes long. It is written in units of
    the data, so that the course of the algorithm does not depend on them.

    The printed steady state, the root of the inverse of E[(1/n) Σ h hᵗ], holds for chunklets of one
    size; in general it is that of E[Σ h hᵗ] / E[n], which is Ĉ as the batch algorithm has it.

    Directions without variance within chunklets are left out by ``fit``, which sees all of them.
    ``partial_fit`` leaves out columns that have not varied yet; a *combination* of columns that
    never does makes W grow along it, which raises an error in the end.

    Examples
    --------
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
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        schedule: str = "decreasing",
        *,
        eta: float | None = None,
        n_epochs: int = 10,
        random_state: int | np.random.RandomState | None = None,
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
        """Start anew, and take all chunklets ``n_epochs`` times.

        Parameters
        ----------
        X, y, must_link
            As in :meth:`RCA.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As :meth:`RCA.fit`; and if a step could let W grow beyond all numbers, or W has grown so
            far that the metric overflows: ``eta`` is too large, or the data are tiny.
        KeyboardInterrupt
            If interrupted before the first step is complete. The model is then as it was before.

        Warns
        -----
        ConvergenceWarning
            If the variance within chunklets is still off by half in some direction, or if fitting
            was interrupted from the keyboard; what has been learnt is kept.
        UserWarning
            If there are directions in which no chunklet varies.
        """
        self._validate_params()
        with _wholly_or_not(self):
            X, groups = read_points(self, X, y, must_link)
            within = within_groups(X, groups)
            require_scatter(within, rounding_of(X))
            rng = check_random_state(self.random_state)
            self._reset(X.shape[1], rng)
            spectrum = spectrum_of(within, TOL, rounding_of(X))
            self._begin(spectrum)
            warn_left_out(spectrum)
            error = self._take_epochs(deviations_of(X, groups), rng, within, spectrum)
            self._n_rows = len(X)
            self._finish(X.mean(axis=0))
        # After everything is stored: the warning may be an error.
        self._warn_about(error)
        return self

    def _take_epochs(
        self,
        chunklets: list[FloatArray],
        rng: np.random.RandomState,
        within: FloatArray,
        spectrum: Spectrum,
    ) -> float | None:
        """Take all chunklets again and again; how far from white they are then.

        None if the keyboard ended it.
        """
        try:
            for epoch in range(self.n_epochs):
                self._follow([chunklets[j] for j in rng.permutation(len(chunklets))])
                if self.verbose:
                    error = whiteness_error(self.components_, within, spectrum)
                    print(f"epoch {epoch}: variance off by {error:.3f} at most")
        except KeyboardInterrupt:
            if self.n_steps_ == 0:
                raise
            return None
        return whiteness_error(self.components_, within, spectrum)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, *, must_link: ArrayLike | None = None
    ) -> Self:
        """Go on with the next chunklets of a stream, in the order of their first points.

        Parameters
        ----------
        X : (N, D) array-like
            The next points.
        y : (N,) int array-like, default=None
            The chunklet of each, -1 for none. Numbers mean nothing beyond this call.
        must_link : (P, 2) int array-like, default=None
            Pairs of rows of this X that share a class.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If no two points share a chunklet, if W grows without bound because some combination of
            columns does not vary within chunklets, or if a point is absurdly far. The model is then
            as it was before; so it is after an interrupt from the keyboard.
        """
        self._validate_params()
        with _wholly_or_not(self):
            return self._go_on(X, y, must_link)

    def _go_on(self, X: ArrayLike, y: ArrayLike | None, must_link: ArrayLike | None) -> Self:
        first = not hasattr(self, "components_")
        X, groups = read_points(self, X, y, must_link, reset=first)
        within = within_groups(X, groups)
        if first:
            require_scatter(within, rounding_of(X))
            self._reset(X.shape[1], check_random_state(self.random_state))
        self._begin(spectrum_of(np.diag(within.diagonal()), TOL, rounding_of(X)))
        self._follow(deviations_of(X, groups))
        _require_bounded(self.components_, self._scale)
        self._n_rows += len(X)
        return self._finish(self.mean_ + (X.mean(axis=0) - self.mean_) * (len(X) / self._n_rows))

    def _reset(self, D: int, rng: np.random.RandomState) -> None:
        """Nothing seen: W is zero until columns vary."""
        Q = np.linalg.qr(rng.normal(size=(D, D)))[0]
        self._symmetric = (Q * rng.choice([-1.0, 1.0], D)) @ Q.T
        self.components_, self.mean_, self._scale = np.zeros((D, D)), np.zeros(D), np.zeros(D)
        self.n_steps_ = self.n_points_ = self.n_guarded_ = self._n_rows = 0

    def _begin(self, spectrum: Spectrum) -> None:
        """Start the columns that vary for the first time."""
        start = START * self._symmetric @ spectrum.vectors @ spectrum.vectors.T / spectrum.scale
        untouched = ~self.components_.any(axis=0)
        self.components_ = np.where(untouched, start, self.components_)
        self._scale = np.where(untouched, spectrum.scale, self._scale)

    def _follow(self, chunklets: list[FloatArray]) -> None:
        """One step a chunklet."""
        step = SCHEDULES[self.schedule]
        eta = self.eta
        if eta is None:
            eta = 1.0 if self.schedule == "decreasing" else 0.05 / self.components_.shape[1]
        for H in chunklets:
            n_points = self.n_points_ + len(H)
            now = step(eta, n_points)
            _require_finite_growth(now, len(H))
            guarded = overshoots(self.components_, H, now)
            self.components_ = (flow_step if guarded else online_step)(self.components_, H, now)
            # A step that is interrupted does not count.
            self.n_steps_, self.n_points_ = self.n_steps_ + 1, n_points
            self.n_guarded_ += int(guarded)

    def _finish(self, mean: FloatArray) -> Self:
        _require_finite_metric(self.components_)
        inverse = cast("FloatArray", np.linalg.pinv(self.components_, rcond=1e-12))
        return self._store(self.components_, inverse, mean)

    def _warn_about(self, error: float | None) -> None:
        if error is None:
            warn_convergence(
                f"fitting was interrupted; what has been learnt is kept, of {self.n_steps_} steps "
                "(chunklets).",
                ConvergenceWarning,
            )
        elif error > 0.5:
            warn_convergence(
                f"after {self.n_epochs} epochs the variance within chunklets is still off by "
                f"{error:.2f} in some direction, where it should be 1. Increase n_epochs, or "
                "change eta: smaller if the steps are constant, larger if they decrease.",
                ConvergenceWarning,
            )


@contextmanager
def _wholly_or_not(model: OnlineRCA) -> Iterator[None]:
    """What fails, or is interrupted, leaves the model as it was."""
    before = model.__dict__.copy()
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


def _require_bounded(W: FloatArray, scale: FloatArray) -> None:
    """W may be as large as a whitening at the limit of ``TOL``, over deviations at first sight."""
    with np.errstate(over="ignore"):
        heights = np.linalg.norm(W * scale, axis=0)
    if not heights.max() < TOL**-0.5:
        raise ValueError(
            f"W has grown to {heights.max():.3g} times the reciprocal deviation of column "
            f"{heights.argmax()}: some combination of columns does not vary within chunklets, or "
            "does so much less than at first. Drop columns that depend on others, reduce the data "
            "by RCA or PCA, or start anew."
        )


def _require_finite_growth(eta: float, n_points: int) -> None:
    """Where a chunklet does not vary, W grows by exp(eta n), or 1 + eta n, and nothing holds it."""
    if not eta * n_points <= FASTEST:
        raise ValueError(
            f"a step of {eta:.3g} times the {n_points} points of a chunklet lets W grow by exp("
            f"{eta * n_points:.3g}), beyond all numbers, where the chunklet does not vary. Lower "
            "eta."
        )


def _require_finite_metric(W: np.ndarray) -> None:
    """Refuse a map whose squares, the entries of the metric, overflow."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.square(W).sum())
    if not finite:
        raise ValueError(
            f"W has grown to {abs(W).max():.3g}: its squares, and with them the metric, overflow. "
            "Lower eta, or multiply the data by a constant."
        )
