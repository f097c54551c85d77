"""Learn a Mahalanobis metric from must-links and cannot-links, by the method of Xing et al. (2003).

Must-linked points should be near, and cannot-linked points far. [barhillel2005, eq. 8] asks for the
metric with the smallest sum of squared distances over the must-linked pairs Q_P, for a fixed sum of
distances over the cannot-linked pairs Q_N. Both sums are homogeneous in the metric, so one can also
maximise ::

    f(A) = Σ_{Q_N} ‖x_i - x_j‖_A    subject to    Σ_{Q_P} ‖x_i - x_j‖²_A ≤ 1,  A ⪰ 0

If A is the maximiser, then B = A / f(A)² solves eq. 8, whose minimum is 1 / f(A)².

Xing, Ng, Jordan and Russell (*Distance metric learning with application to clustering with
side-information*, NIPS 15) take small gradient steps, and project alternately on each constraint.
Three facts make this unnecessary. First, in coordinates whitened by the scatter of must-linked
points, the first constraint is tr M ≤ 1. Second, every factor L with norm one gives a feasible
M = L Lᵀ, so the problem becomes smooth optimisation on a sphere, which a quasi-Newton method solves
in a dozen steps. Third, f is concave: the gradient G at any M gives the upper bound
f(M) + λ_max(G) - tr(G M) on the maximum, so each result comes with a proof of its accuracy. The
same holds for a diagonal A, where λ_max is the largest entry of G.

The maximum often has a low rank. If one direction is the best trade-off between the two sums, any
other direction makes the trade-off worse: on iris and wine, A has rank one.

This file contains the estimator and the search. ``mmc_problem`` contains the pairs, the whitened
space, f, its gradient and the bound. Chapter 12 explains the method.

=========  =================================================================================
N, D       number of points x_i, and number of features
Q_P, Q_N   sets of must-linked and of cannot-linked (unordered) pairs
A          the metric, ‖δ‖²_A = δᵀ A δ
W, V       (D, r) map that whitens the scatter over Q_P, r ≤ D; whitened points V = X W
M, L       the metric in the whitened space, A = W M Wᵀ, and a factor of it: M = L Lᵀ with
           tr M = ‖L‖² = 1; for a diagonal metric L is a vector and M = diag(L²)
u, d       difference of a cannot-linked pair in whitened coordinates, and its length ‖Lᵀ u‖
η          the length d or a positive minimum, whichever is larger, because G divides by it
G          gradient of f at M: ½ Σ_{Q_N} u uᵀ / η; for a diagonal metric its diagonal
v          vertex: the unit vector for which f increases most along v vᵀ
=========  =================================================================================
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from cgmm.given import explain_missing
from cgmm.metric_learning.linear_map import LinearMap, warn_of_two_sources
from cgmm.metric_learning.mmc_problem import (
    Distances,
    Space,
    Value,
    check_classes,
    check_differences,
    check_maximum_exists,
    check_relations,
    divide_by_range,
    sample_far_pairs,
    whiten_by_scatter,
)  # fmt: skip
from cgmm.network.misreadings import check_rows
from cgmm.numerics import FloatArray, Seed, warn_caller
from cgmm.runs import random_source

# The bound on the maximum cannot be more precise than the rounding errors of the sums in it.
ROUNDING = 1e-14


class MMC(LinearMap):
    """Learn a metric under which must-linked points are near and cannot-linked points are far.

    Parameters
    ----------
    diagonal : bool, default=False
        True: A is a diagonal matrix, with one factor per feature. False: A is any positive
        semi-definite matrix.
    tol : float, default=1e-6
        The search stops when the objective is provably within this fraction of its maximum. Below
        about 1e-8, rounding errors may prevent further improvement.
    max_iter : int, default=1000
        Largest number of iterations.
    max_cannot_links : int or None, default=None
        Largest number of cannot-links implied by ``y`` or by ``cannot_link="rest"`` that are used.
        If there are more, this many are drawn at random. None uses all of them, which takes O(N²)
        time per iteration, but no more memory than the points.
    random_state : int, RandomState, Generator or None, default=None
        Seed for drawing cannot-links; nothing else is random.
    verbose : int, default=0
        1 prints a line per iteration.

    Attributes
    ----------
    components_ : (D, D) array
        L with A = Lᵀ L, so the Euclidean distance between transformed points is the distance in the
        metric A. Of all such matrices, L is the one that is symmetric after each feature has been
        divided by the root of its scatter over Q_P. Therefore transformed points do not depend on
        the units of the features.
    objective_ : float
        Σ ‖x_i - x_j‖_A over Q_N, for the scale of A at which Σ ‖x_i - x_j‖²_A over Q_P is one.
    gap_ : float
        The objective of the best metric is at most ``objective_ + gap_``.
    history_ : (n_iter_,) array
        history_[t] is the best objective before iteration t. history_[0] is the objective of the
        initial metric, the inverse of the scatter over Q_P (RCA's metric if chunklets are pairs).
    n_iter_ : int
        Number of entries of ``history_``.
    converged_ : bool
        True if ``gap_`` is at most ``tol * objective_``.
    n_cannot_links_ : int
        Number of pairs in Q_N, not counting pairs of identical points.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The problem is concave, so there are no local maxima, and the result does not depend on the
    initialisation. Distances do not depend on the units of the features or, unless A is diagonal,
    on the orientation of the axes. ``get_mahalanobis_matrix`` returns A, which is symmetric and
    positive semi-definite.

    Xing et al. fit a diagonal A by minimising Σ_{Q_P} ‖·‖²_A - log Σ_{Q_N} ‖·‖_A. Their minimum is
    half of our A, because the first sum is one half at the minimum.

    Examples
    --------
    Must-linked points differ in the second feature, and cannot-linked points in the first:

    >>> X = np.array([[0.0, 0.0], [0.1, 3.0], [1.0, 0.0], [1.1, -3.0]])
    >>> metric = MMC(diagonal=True).fit(X, must_link=[[0, 1], [2, 3]], cannot_link=[[0, 2], [1, 3]])
    >>> metric.get_mahalanobis_matrix().round(3)
    array([[50.,  0.],
           [ 0.,  0.]])
    >>> metric.converged_
    True
    """

    _parameter_constraints = {
        "diagonal": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_cannot_links": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        diagonal: bool = False,
        *,
        tol: float = 1e-6,
        max_iter: int = 1000,
        max_cannot_links: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.diagonal = diagonal
        self.tol = tol
        self.max_iter = max_iter
        self.max_cannot_links = max_cannot_links
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | str | None = None,
    ) -> Self:
        """Learn the metric from must-links and cannot-links.

        Q_P and Q_N are sets, as in the papers: a pair that is given twice, or both by ``y`` and by
        its indices, counts once. Must-links are not closed transitively; to include all pairs of a
        chunklet, give the chunklet by ``y``.

        Parameters
        ----------
        X : (N, D) array-like
            The points.
        y : (N,) array-like, default=None
            The class of each point; -1, None or NaN if it is unknown. Points of the same class are
            must-linked, points of different classes are cannot-linked.
        must_link : (P, 2) int array, default=None
            Pairs of points that should be near.
        cannot_link : (P, 2) int array or "rest", default=None
            Pairs of points that should be far. "rest": all pairs that no chain of must-links
            connects, as in Xing et al. if only must-links are known [barhillel2005, sect. 8.3].

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If relations contradict each other, if there are no must-links or no cannot-links, or if
            the problem has no maximum, because cannot-linked points differ in a direction in which
            no must-linked points differ.
        KeyboardInterrupt
            If the search is interrupted before the first iteration is complete.

        Warns
        -----
        ConvergenceWarning
            If the search ended, or was interrupted from the keyboard, before the objective was
            provably within ``tol`` of its maximum; the best metric so far is kept.
        UserWarning
            If there are directions in which no related points differ; the metric is zero in these
            directions. If ``y`` and pairs are both given.
        """
        self._validate_params()
        check_rows(X, must_link=must_link, cannot_link=cannot_link)
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        classes = check_classes(X, y)
        warn_of_two_sources(self, classes, must_link=must_link, cannot_link=cannot_link)
        near, far = check_relations(classes, must_link, cannot_link)
        far = sample_far_pairs(far, self.max_cannot_links, random_source(self.random_state))
        X, ranges, noise = divide_by_range(X)
        space = whiten_by_scatter(X, noise, near, self.diagonal)
        check_maximum_exists(X, space, far)
        distances = Distances(X @ space.whitening, far, identity_of=X)
        check_differences(distances.mean_length, space)
        ascent = Ascent(distances, self.max_iter, self.tol, self.verbose)
        # Start from the identity matrix in the whitened space, which prefers no direction.
        ascent.maximise_from(np.ones(space.rank) if self.diagonal else np.eye(space.rank))
        self._store_result(ascent, space, ranges)
        # Warn after everything is stored, because users may turn warnings into errors.
        _warn_about_result(space, ascent)
        return self

    def _store_result(self, ascent: Ascent, space: Space, ranges: FloatArray) -> None:
        """Store the attributes of the fit, in the units of the data."""
        L, W = ascent.best.factor, space.whitening * space.scatter[:, None]
        # Compute the root of A = W M Wᵀ in units of each feature's scatter, then convert its units.
        root = np.diag(W @ abs(L)) if self.diagonal else _compute_symmetric_root(W @ L)
        self.components_ = root / (space.scatter * ranges)
        self.objective_ = ascent.best.objective
        self.gap_ = max(0.0, ascent.upper - self.objective_)
        self.history_ = np.array(ascent.history)
        self.n_iter_ = len(ascent.history)
        self.converged_ = ascent.is_certain
        self.n_cannot_links_ = ascent.distances.n_pairs


def _compute_symmetric_root(B: FloatArray) -> FloatArray:
    """Return (B Bᵀ)^½ without computing B Bᵀ, which would lose small eigenvalues."""
    used = B.any(axis=1)
    axes, s, _ = np.linalg.svd(B[used], full_matrices=False)
    root = np.zeros((len(B), len(B)))
    # Rows of features that the metric does not use remain exactly zero.
    root[np.ix_(used, used)] = (axes * s) @ axes.T
    return root


def _warn_about_result(space: Space, ascent: Ascent) -> None:
    """Warn if there are unused directions, or if the search did not converge."""
    n_dims, rank = space.whitening.shape
    if rank < n_dims:
        warn_caller(
            f"linked points differ in {rank} of {n_dims} dimensions only (some feature is constant "
            "or depends on others); the metric is zero in the rest.",
            UserWarning,
        )
    excess = ascent.upper / ascent.best.objective - 1
    known = f"the maximum may be a fraction of {excess:.1e} above objective_"
    n_iter = len(ascent.history)
    if ascent.interrupted:
        cause = f"was interrupted; the best of {n_iter - 1} iterations is kept, and {known}."
    elif ascent.is_certain:
        return
    elif n_iter >= ascent.max_iter:
        cause = f"did not converge in {n_iter} iterations; {known}. Increase max_iter or tol."
    else:
        cause = f"stopped, since rounding errors hide any further gain; {known}. Increase tol."
    warn_caller(f"MMC {cause}", ConvergenceWarning)


# ------------------------------------------------------------------------------------------ search


class Ascent:
    """Search for the best metric by L-BFGS on its factor L, alternating with Frank-Wolfe steps."""

    def __init__(self, distances: Distances, max_iter: int, tol: float, verbose: int):
        self.distances = distances
        self.max_iter, self.tol, self.verbose = max_iter, max(tol, ROUNDING), verbose
        # Before the first evaluation the best objective is -inf, and its upper bound +inf.
        self.best = Value(np.empty(0), -np.inf, np.empty(0), np.inf)
        self.upper = np.inf
        self.history: list[float] = []
        self.interrupted = False

    @property
    def is_certain(self) -> bool:
        """True if the bound proves that the best objective is within ``tol`` of the maximum."""
        return bool(self.upper - self.best.objective <= self.tol * self.best.objective)

    @property
    def is_done(self) -> bool:
        """True if the objective is certain, or ``max_iter`` is reached."""
        return self.is_certain or len(self.history) >= self.max_iter

    def maximise_from(self, start: FloatArray) -> None:
        """Maximise the objective, from a factor L, until it is certain or does not increase."""
        try:
            self._evaluate(start)
            self._record()
            improves = True
            while improves and not self.is_done:
                before = self.best.objective
                self._run_quasi_newton()
                if not self.is_done:
                    self._step_towards_vertex()
                improves = self.best.objective > before * (1 + 4 * np.finfo(float).eps)
        except KeyboardInterrupt:
            # Without a complete iteration there is no result to keep, so raise the error again.
            if len(self.history) < 2:
                raise
            self.interrupted = True

    def _evaluate(self, factor: FloatArray) -> Value:
        """Evaluate a factor L, and remember the best factor and the lowest upper bound."""
        value = self.distances.evaluate(factor)
        if value.objective > self.best.objective:
            self.best = value
        self.upper = min(self.upper, value.upper)
        return value

    def _record(self) -> None:
        """Append the best objective to the history, and print it if ``verbose`` is set."""
        self.history.append(self.best.objective)
        if self.verbose:
            excess = self.upper / self.best.objective - 1
            print(
                f"  iteration {len(self.history) - 1:4d}   objective {self.best.objective:.8g}   "
                f"maximum at most {excess:.1e} higher"
            )

    def _run_quasi_newton(self) -> None:
        """Maximise log f(L / ‖L‖), which needs no constraint, by L-BFGS from the best factor."""
        shape = self.best.factor.shape

        def compute_loss(x: FloatArray) -> tuple[float, FloatArray]:
            value = self._evaluate(x.reshape(shape))
            L = value.factor
            GL = value.gradient * L if L.ndim == 1 else value.gradient @ L
            slope = 2 * GL / value.objective - L
            return -np.log(value.objective), -slope.ravel() / np.linalg.norm(x)

        def finish_iteration(_: FloatArray) -> None:
            self._record()
            if self.is_done:
                raise StopIteration

        options: Any = {"maxiter": self.max_iter, "maxfun": np.inf, "ftol": 0.0, "gtol": 0.0}
        # Use Any, because the type stubs require that the callback's argument is named xk.
        callback: Any = finish_iteration
        x = self.best.factor.ravel()
        minimize(compute_loss, x, jac=True, method="L-BFGS-B", callback=callback, options=options)

    def _step_towards_vertex(self) -> None:
        """Move M towards the rank-one metric along which f increases most: a Frank-Wolfe step.

        If the factor L has lost a direction, the gradient with respect to L is zero along it, and
        L-BFGS cannot recover the direction. This step can, and it increases the objective unless M
        is the maximiser.
        """
        value = self.best
        vertex = _find_vertex(value.gradient)
        for t in 0.5 ** np.arange(1, 40):
            factor = _interpolate(value.factor, vertex, t)
            if self._evaluate(factor).objective > value.objective:
                break
        self._record()


def _find_vertex(G: FloatArray) -> FloatArray:
    """Return the unit vector v for which the objective increases most along v vᵀ."""
    if G.ndim == 1:
        return np.eye(len(G))[G.argmax()]
    return np.linalg.eigh(G)[1][:, -1]


def _interpolate(L: FloatArray, vertex: FloatArray, t: float) -> FloatArray:
    """Return a factor of the metric (1 - t) M + t v vᵀ."""
    if L.ndim == 1:
        return np.sqrt((1 - t) * L**2 + t * vertex**2)
    U, s, _ = np.linalg.svd(np.column_stack([np.sqrt(1 - t) * L, np.sqrt(t) * vertex]))
    return U * s
