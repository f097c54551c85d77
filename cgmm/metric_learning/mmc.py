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
scatter the first constraint is tr M ≤ 1. Every factor L of norm one makes a feasible M = L Lᵀ: what
remains is a smooth problem on a sphere, which a quasi-Newton method solves in a dozen steps. And f
is concave: the gradient G at any M bounds the maximum from above by f(M) + λ_max(G) - tr(G M), so
that each answer comes with a certificate. For a diagonal A, λ_max is the largest entry; the rest is
the same.

The maximum often has a low rank. One direction can be the best trade of the two sums, and any other
then only dilutes it: on iris and wine, A flattens the data to a line.

Chapter 12. In the order of a fit: ``mmc_pairs`` has Q_P and Q_N; ``mmc_space`` whitens, and refuses
what has no maximum; ``mmc_distances`` has f, its gradient and the bound; ``mmc_ascent`` climbs.

=========  =================================================================================
N, D       number of points x_i, and their dimensions
Q_P, Q_N   must-linked and cannot-linked pairs, each a set of unordered pairs
A          the metric, ‖δ‖²_A = δᵀ A δ
W, V       whitening by the scatter over Q_P, to r ≤ D dimensions; whitened points V = X W
M, L       the metric there, A = W M Wᵀ, and a factor of it: M = L Lᵀ, tr M = ‖L‖² = 1;
           for a diagonal metric L is a vector and M = diag(L²)
u, d, η    difference of a cannot-linked pair in whitened coordinates; its length ‖Lᵀ u‖; the
           same, but not below a floor, as the gradient divides by it
G          gradient of f at M: ½ Σ_{Q_N} u uᵀ / η; for a diagonal metric its diagonal
=========  =================================================================================
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from cgmm.given import explain_missing
from cgmm.metric_learning.linear_map import LinearMap
from cgmm.metric_learning.mmc_ascent import Ascent
from cgmm.metric_learning.mmc_distances import Distances
from cgmm.metric_learning.mmc_pairs import check_classes, check_relations, sample_far_pairs
from cgmm.metric_learning.mmc_space import (
    Space,
    in_units_of_range,
    require_difference,
    require_maximum,
    whiten_by_scatter,
)
from cgmm.network.misreadings import check_rows
from cgmm.numerics import FloatArray, Seed, warn_caller
from cgmm.runs import random_source


class MMC(LinearMap):
    """Metric that keeps cannot-linked points apart and must-linked points near.

    Parameters
    ----------
    diagonal : bool, default=False
        Whether A is diagonal, a weight for each feature, or any positive semi-definite matrix.
    tol : float, default=1e-6
        The search stops when the objective is certainly within this fraction of its maximum.
        Below about 1e-8 rounding may hide from the search what is still to gain.
    max_iter : int, default=1000
        Most iterations.
    max_cannot_links : int or None, default=None
        Most cannot-links that ``y`` or ``cannot_link="rest"`` may imply. Where they imply more,
        this many are drawn at random; None takes all of them, which costs O(N²) time an iteration
        but no more memory than the points.
    random_state : int, RandomState, Generator or None, default=None
        Seed of that draw. Nothing else is random.
    verbose : int, default=0
        1: a line an iteration.

    Attributes
    ----------
    components_ : (D, D) array
        L with A = Lᵀ L: distances between transformed points are those of A. Of all such L the one
        that is symmetric where each feature is divided by its scatter over Q_P: so transformed
        points do not depend on the units of the features.
    objective_ : float
        Σ ‖x_i - x_j‖_A over Q_N, where Σ ‖x_i - x_j‖²_A over Q_P is one.
    gap_ : float
        No feasible metric has an objective above ``objective_ + gap_``.
    history_ : (n_iter_,) array
        history_[t] is the best objective when iteration t begins; history_[0] is that of the
        start, the inverse of the scatter over Q_P (RCA's metric, where chunklets are pairs).
    n_iter_ : int
        Number of metrics in ``history_``, the start among them.
    converged_ : bool
        Whether ``gap_`` is at most ``tol * objective_``.
    n_cannot_links_ : int
        Number of pairs in Q_N, without those of two identical points.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The problem is concave, so there are no local maxima and no starts to choose. Distances do not
    depend on the units of the features nor, with a full A, on the axes of the data.
    ``get_mahalanobis_matrix`` gives A, symmetric and positive semi-definite.

    Xing et al. fit a diagonal A by minimising Σ_{Q_P} ‖·‖²_A - log Σ_{Q_N} ‖·‖_A. That gives half
    of our A: of all its multiples, the one whose first sum is one half.

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
            The class of each point; -1, None or NaN where there is none: two points of one class
            are must-linked, two of different classes cannot-linked. Any other values name classes.
        must_link : (P, 2) int array, default=None
            Pairs of points that belong near.
        cannot_link : (P, 2) int array or "rest", default=None
            Pairs of points that do not. "rest": all pairs that no chain of must-links ties, as
            Xing et al. had it where only must-links were known [barhillel2005, sect. 8.3].

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
            nothing about them; the metric is zero there.
        """
        self._validate_params()
        check_rows(X, must_link=must_link, cannot_link=cannot_link)
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        near, far = check_relations(check_classes(X, y), must_link, cannot_link)
        far = sample_far_pairs(far, self.max_cannot_links, random_source(self.random_state))
        X, ranges, noise = in_units_of_range(X)
        space = whiten_by_scatter(X, noise, near, self.diagonal)
        require_maximum(X, space, far)
        distances = Distances(X @ space.whitening, far, identity_of=X)
        require_difference(distances.mean_length, space)
        ascent = Ascent(distances, self.max_iter, self.tol, self.verbose)
        # From the middle: all whitened directions count alike.
        ascent.run(np.ones(space.rank) if self.diagonal else np.eye(space.rank))
        self._store(ascent, space, ranges)
        # After everything is stored: the warning may be an error.
        _warn_about(space, ascent)
        return self

    def _store(self, ascent: Ascent, space: Space, ranges: FloatArray) -> None:
        L, W = ascent.best.factor, space.whitening * space.scatter[:, None]
        # A = W M Wᵀ, with features in units of their scatter.
        root = np.diag(W @ abs(L)) if self.diagonal else _symmetric_root(W @ L)
        self.components_ = root / (space.scatter * ranges)
        self.objective_ = ascent.best.objective
        self.gap_ = max(0.0, ascent.upper - self.objective_)
        self.history_ = np.array(ascent.history)
        self.n_iter_ = len(ascent.history)
        self.converged_ = ascent.certain
        self.n_cannot_links_ = ascent.distances.n_pairs


def _symmetric_root(B: FloatArray) -> FloatArray:
    """(B Bᵀ)^½ without the squares, in which small eigenvalues would drown."""
    used = B.any(axis=1)
    axes, s, _ = np.linalg.svd(B[used], full_matrices=False)
    root = np.zeros((len(B), len(B)))
    # Features that the metric does not use keep an exact zero.
    root[np.ix_(used, used)] = (axes * s) @ axes.T
    return root


def _warn_about(space: Space, ascent: Ascent) -> None:
    """Say what the user should know about the answer."""
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
        said = f"was interrupted; the best of {n_iter - 1} iterations is kept, and {known}."
    elif ascent.certain:
        return
    elif n_iter >= ascent.max_iter:
        said = f"did not converge in {n_iter} iterations; {known}. Increase max_iter or tol."
    else:
        said = f"stopped where rounding hides any gain; {known}. Increase tol."
    warn_caller(f"MMC {said}", ConvergenceWarning)
