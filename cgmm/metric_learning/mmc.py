"""A Mahalanobis metric from must-links and cannot-links: the method of Xing et al. (2003).

Must-linked points should be near, cannot-linked points far. [barhillel2005, eq. 8] asks for the
metric that makes the squared distances over the must-linked pairs Q_P small while the distances
over the cannot-linked pairs Q_N keep their sum. Both sums are homogeneous in the metric, so one may
as well maximise ::

    f(A) = Σ_{Q_N} ‖x_i - x_j‖_A    subject to    Σ_{Q_P} ‖x_i - x_j‖²_A ≤ 1,  A ⪰ 0

If A does that, then B = A / f(A)² solves eq. 8, whose minimum is 1 / f(A)².

Xing, Ng, Jordan and Russell (*Distance metric learning with application to clustering with
side-information*, NIPS 15) climb by small gradient steps and project back, on one constraint and
the other in turn. Three facts make that unnecessary. In coordinates whitened by the must-links'
scatter the first constraint is tr M ≤ 1. Every factor L of norm one gives a feasible M = L Lᵀ, so
the problem becomes a smooth one on a sphere, which a quasi-Newton method solves in a dozen steps.
Finally, f is concave: the gradient G at any M bounds the maximum from above by
f(M) + λ_max(G) - tr(G M), so each result comes with a certificate. For a diagonal A, λ_max is the
largest entry, and the rest is the same.

The maximum often has a low rank. If one direction is the best trade-off between the two sums, any
other direction only dilutes it: on iris and wine, A flattens the data to a line.

This file has the estimator and the search. ``mmc_problem`` has the pairs, the whitened space, f,
its gradient and the bound. Chapter 12 explains the method.

=========  =================================================================================
N, D       number of points x_i, and their dimensions
Q_P, Q_N   must-linked and cannot-linked pairs, each a set of unordered pairs
A          the metric, ‖δ‖²_A = δᵀ A δ
W, V       whitening by the scatter over Q_P, to r ≤ D dimensions; whitened points V = X W
M, L       the metric there, A = W M Wᵀ, and a factor of it: M = L Lᵀ, tr M = ‖L‖² = 1;
           for a diagonal metric L is a vector and M = diag(L²)
u, d, η    difference of a cannot-linked pair in whitened coordinates; its length ‖Lᵀ u‖; that
           length or a floor, whichever is larger, because the gradient divides by it
G          gradient of f at M: ½ Σ_{Q_N} u uᵀ / η; for a diagonal metric its diagonal
v          vertex: the unit vector for which f rises most along v vᵀ
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
    check_relations,
    in_units_of_range,
    require_difference,
    require_maximum,
    sample_far_pairs,
    whiten_by_scatter,
)  # fmt: skip
from cgmm.network.misreadings import check_rows
from cgmm.numerics import FloatArray, Seed, warn_caller
from cgmm.runs import random_source

# A certificate cannot be more precise than the rounding of the sums that it compares.
ROUNDING = 1e-14


class MMC(LinearMap):
    """Learn a metric that keeps cannot-linked points apart and must-linked points near.

    Parameters
    ----------
    diagonal : bool, default=False
        True: A is diagonal, with one factor per feature. False: A is any positive semi-definite
        matrix.
    tol : float, default=1e-6
        The search stops when the objective is certainly within this fraction of its maximum.
        Below about 1e-8, rounding may hide the remaining gain from the search.
    max_iter : int, default=1000
        Largest number of iterations.
    max_cannot_links : int or None, default=None
        Largest number of cannot-links that ``y`` or ``cannot_link="rest"`` may imply. If they imply
        more, this many are drawn at random. None takes all of them, which costs O(N²) time per
        iteration but no more memory than the points.
    random_state : int, RandomState, Generator or None, default=None
        Seed of that draw. Nothing else is random.
    verbose : int, default=0
        1 prints a line per iteration.

    Attributes
    ----------
    components_ : (D, D) array
        L with A = Lᵀ L: distances between transformed points are those of A. Among all such L it is
        the one that is symmetric if each feature is divided by its scatter over Q_P; therefore
        transformed points do not depend on the units of the features.
    objective_ : float
        Σ ‖x_i - x_j‖_A over Q_N, where Σ ‖x_i - x_j‖²_A over Q_P is one.
    gap_ : float
        No feasible metric has an objective above ``objective_ + gap_``.
    history_ : (n_iter_,) array
        history_[t] is the best objective when iteration t begins; history_[0] is that of the
        start, the inverse of the scatter over Q_P (RCA's metric, where chunklets are pairs).
    n_iter_ : int
        Number of metrics in ``history_``, including the start.
    converged_ : bool
        Whether ``gap_`` is at most ``tol * objective_``.
    n_cannot_links_ : int
        Number of pairs in Q_N, not counting pairs of identical points.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The problem is concave, so there are no local maxima and no starts to choose. Distances do not
    depend on the units of the features nor, with a full A, on the axes of the data.
    ``get_mahalanobis_matrix`` gives A, symmetric and positive semi-definite.

    Xing et al. fit a diagonal A by minimising Σ_{Q_P} ‖·‖²_A - log Σ_{Q_N} ‖·‖_A. The minimum is
    half of our A: the multiple of it whose first sum is one half.

    Examples
    --------
    Pairs that must be near differ in the second feature, pairs that must be far in the first:

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
        """Learn the metric.

        Q_P and Q_N are sets, as in the papers: a pair that is given twice, or by ``y`` and by
        index, counts once. Must-links are taken as given, without their transitive closure; to sum
        over all pairs of a chunklet, give it by ``y``.

        Parameters
        ----------
        X : (N, D) array-like
            The points.
        y : (N,) array-like, default=None
            The class of each point: two points of one class are must-linked, two of different
            classes cannot-linked. -1, None or NaN mark unknown classes; other values name classes.
        must_link : (P, 2) int array, default=None
            Pairs of points that should be near.
        cannot_link : (P, 2) int array or "rest", default=None
            Pairs of points that should be far. "rest": all pairs that no chain of must-links links,
            as in Xing et al. if only must-links are known [barhillel2005, sect. 8.3].

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If relations contradict each other, if there are none of one kind, or if the problem has
            no maximum: cannot-linked points differ in a direction in which no must-linked ones do.
        KeyboardInterrupt
            If interrupted before the first iteration is complete.

        Warns
        -----
        ConvergenceWarning
            If the search stopped, or was interrupted from the keyboard, before it could certify the
            objective to ``tol``; the best metric so far is kept.
        UserWarning
            If there are directions in which no two linked points differ, so that the relations say
            nothing about them; the metric is zero there. If ``y`` and pairs are both given.
        """
        self._validate_params()
        check_rows(X, must_link=must_link, cannot_link=cannot_link)
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        classes = check_classes(X, y)
        warn_of_two_sources(self, classes, must_link=must_link, cannot_link=cannot_link)
        near, far = check_relations(classes, must_link, cannot_link)
        far = sample_far_pairs(far, self.max_cannot_links, random_source(self.random_state))
        X, ranges, noise = in_units_of_range(X)
        space = whiten_by_scatter(X, noise, near, self.diagonal)
        require_maximum(X, space, far)
        distances = Distances(X @ space.whitening, far, identity_of=X)
        require_difference(distances.mean_length, space)
        ascent = Ascent(distances, self.max_iter, self.tol, self.verbose)
        # The search starts from the identity in whitened coordinates, which favours no direction.
        ascent.run(np.ones(space.rank) if self.diagonal else np.eye(space.rank))
        self._store(ascent, space, ranges)
        # Warn after everything is stored, because users may turn warnings into errors.
        _warn_about(space, ascent)
        return self

    def _store(self, ascent: Ascent, space: Space, ranges: FloatArray) -> None:
        """Store the attributes of the fit, in the units of the data."""
        L, W = ascent.best.factor, space.whitening * space.scatter[:, None]
        # Here A = W M Wᵀ, with features in units of their scatter.
        root = np.diag(W @ abs(L)) if self.diagonal else _symmetric_root(W @ L)
        self.components_ = root / (space.scatter * ranges)
        self.objective_ = ascent.best.objective
        self.gap_ = max(0.0, ascent.upper - self.objective_)
        self.history_ = np.array(ascent.history)
        self.n_iter_ = len(ascent.history)
        self.converged_ = ascent.certain
        self.n_cannot_links_ = ascent.distances.n_pairs


def _symmetric_root(B: FloatArray) -> FloatArray:
    """Return (B Bᵀ)^½ without forming squares, which would lose small eigenvalues."""
    used = B.any(axis=1)
    axes, s, _ = np.linalg.svd(B[used], full_matrices=False)
    root = np.zeros((len(B), len(B)))
    # Features that the metric does not use stay exactly zero.
    root[np.ix_(used, used)] = (axes * s) @ axes.T
    return root


def _warn_about(space: Space, ascent: Ascent) -> None:
    """Warn about unused directions and about a search that did not converge."""
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
    elif ascent.certain:
        return
    elif n_iter >= ascent.max_iter:
        cause = f"did not converge in {n_iter} iterations; {known}. Increase max_iter or tol."
    else:
        cause = f"stopped where rounding hides any gain; {known}. Increase tol."
    warn_caller(f"MMC {cause}", ConvergenceWarning)


# ------------------------------------------------------------------------------------------ search


class Ascent:
    """Search for the best metric: L-BFGS on the factor, and Frank-Wolfe steps if it is stuck."""

    def __init__(self, distances: Distances, max_iter: int, tol: float, verbose: int):
        self.distances = distances
        self.max_iter, self.tol, self.verbose = max_iter, max(tol, ROUNDING), verbose
        # These bounds hold before the first evaluation.
        self.best = Value(np.empty(0), -np.inf, np.empty(0), np.inf)
        self.upper = np.inf
        self.history: list[float] = []
        self.interrupted = False

    @property
    def certain(self) -> bool:
        """True if the bound proves that the best objective is within ``tol`` of the maximum."""
        return bool(self.upper - self.best.objective <= self.tol * self.best.objective)

    @property
    def done(self) -> bool:
        """True if the bounds of the objective have met, or ``max_iter`` is reached."""
        return self.certain or len(self.history) >= self.max_iter

    def run(self, start: FloatArray) -> None:
        """Climb from a factor until the objective is certain or no step improves it."""
        try:
            self._evaluate(start)
            self._record()
            gains = True
            while gains and not self.done:
                before = self.best.objective
                self._run_quasi_newton()
                if not self.done:
                    self._step_towards_vertex()
                gains = self.best.objective > before * (1 + 4 * np.finfo(float).eps)
        except KeyboardInterrupt:
            # Without a complete iteration there is no metric but the start, so let the error pass.
            if len(self.history) < 2:
                raise
            self.interrupted = True

    def _evaluate(self, factor: FloatArray) -> Value:
        """Evaluate a factor; keep the best factor and the lowest upper bound."""
        value = self.distances.at(factor)
        if value.objective > self.best.objective:
            self.best = value
        self.upper = min(self.upper, value.upper)
        return value

    def _record(self) -> None:
        """Append the best objective to the history, and print it if asked to."""
        self.history.append(self.best.objective)
        if self.verbose:
            excess = self.upper / self.best.objective - 1
            print(
                f"  iteration {len(self.history) - 1:4d}   objective {self.best.objective:.8g}   "
                f"maximum at most {excess:.1e} higher"
            )

    def _run_quasi_newton(self) -> None:
        """Maximise log f(L / ‖L‖), which has no constraint and no scale, from the best factor."""
        shape = self.best.factor.shape

        def loss(x: FloatArray) -> tuple[float, FloatArray]:
            value = self._evaluate(x.reshape(shape))
            L = value.factor
            GL = value.gradient * L if L.ndim == 1 else value.gradient @ L
            slope = 2 * GL / value.objective - L
            return -np.log(value.objective), -slope.ravel() / np.linalg.norm(x)

        def each_iteration(_: FloatArray) -> None:
            self._record()
            if self.done:
                raise StopIteration

        options: Any = {"maxiter": self.max_iter, "maxfun": np.inf, "ftol": 0.0, "gtol": 0.0}
        # The type stubs require the name xk for the callback's argument.
        callback: Any = each_iteration
        x = self.best.factor.ravel()
        minimize(loss, x, jac=True, method="L-BFGS-B", callback=callback, options=options)

    def _step_towards_vertex(self) -> None:
        """Mix M with the rank-one metric along which f rises most: a Frank-Wolfe step.

        The gradient of a factor that has lost a direction is zero along it. This step recovers
        the direction, and improves the objective whenever there is a gap.
        """
        value = self.best
        vertex = _vertex(value.gradient)
        for t in 0.5 ** np.arange(1, 40):
            if self._evaluate(_step_between(value.factor, vertex, t)).objective > value.objective:
                break
        self._record()


def _vertex(G: FloatArray) -> FloatArray:
    """Return the unit factor of rank one along which the gradient is steepest."""
    if G.ndim == 1:
        return np.eye(len(G))[G.argmax()]
    return np.linalg.eigh(G)[1][:, -1]


def _step_between(L: FloatArray, vertex: FloatArray, t: float) -> FloatArray:
    """Return a factor of (1 - t) M + t v vᵀ."""
    if L.ndim == 1:
        return np.sqrt((1 - t) * L**2 + t * vertex**2)
    U, s, _ = np.linalg.svd(np.column_stack([np.sqrt(1 - t) * L, np.sqrt(t) * vertex]))
    return U * s
