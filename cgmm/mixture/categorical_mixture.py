"""The estimator ``ConstrainedCategoricalMixture``, for tables of categories. Chapter 4."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from cgmm.mixture import categorical
from cgmm.mixture.base import ConstrainedMixture
from cgmm.mixture.categorical import CategoricalParameters, Categories, one_hot
from cgmm.mixture.initialise import check_responsibilities
from cgmm.network import Engine
from cgmm.numerics import FloatArray, IntArray, Seed
from cgmm.runs import Rng

# Maximum total number of categories that is inferred from X if ``n_categories`` is not given.
MOST_CATEGORIES = 1_000_000


class ConstrainedCategoricalMixture(ConstrainedMixture):
    """Mixture of independent categorical features, fitted with side information.

    Use it for surveys, texts as sets of words, and other tables of categories. Binary features
    (Bernoulli) have two categories. If every point is labelled, the model is naive Bayes.

    Parameters
    ----------
    n_components : int, default=1
        Number of components, K.
    n_categories : (D,) int array-like or None, default=None
        Number of categories of each feature, which are coded 0, 1, ... None: one more than the
        largest code in each column, if these numbers sum to at most a million.
    pseudo_count : float, default=1.0
        a ≥ 0, added to the expected count of each category. With a = 0, an exact engine and
        ``weights="auto"`` the log-evidence never falls; but a category that does not occur in a
        component gets probability zero there. With a > 0 an M-step never lowers the bound plus
        a Σ log p.
    sampling, inference, weights, tol, max_iter, n_init, warm_start
        As in :class:`ConstrainedGaussianMixture`.
    init_params : {"random_from_data", "random"} or (N, K) array, default="random_from_data"
        Initial responsibilities. "random_from_data" assigns each point to that of K random points
        with which it agrees in most features; "random" draws them. They are then adapted to the
        side information.
    random_state, verbose, n_jobs, store_responsibilities, step_exponent
        As in :class:`ConstrainedGaussianMixture`.

    Attributes
    ----------
    weights_ : (K,) array
        π_k.
    probabilities_ : list of D arrays (K, C_d)
        Probability of each category of feature d in each component.
    n_categories_ : (D,) int array
        C_d.
    log_evidence_, evidence_exact_, history_, n_iter_, converged_, responsibilities_, labels_,
    labels_exact_, weights_update_, inference_, n_steps_, n_samples_seen_
        As in :class:`ConstrainedGaussianMixture`.

    See Also
    --------
    cgmm.mixture.categorical : the family of components, a model for further families.

    Notes
    -----
    [schmidt2016, sect. 2.2] shows that EM works with any class-conditional density.

    Examples
    --------
    >>> X = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 1], [2, 1, 0], [2, 1, 0], [2, 0, 0]])
    >>> known = [1, -1, -1, -1, -1, 0]
    >>> ConstrainedCategoricalMixture(2, random_state=0).fit(X, labels=known).labels_
    array([1, 1, 1, 0, 0, 0])
    """

    _parameter_constraints = {
        **ConstrainedMixture._parameter_constraints,
        "n_categories": ["array-like", None],
        "pseudo_count": [Interval(Real, 0, None, closed="left")],
        "init_params": [StrOptions({"random", "random_from_data"}), "array-like"],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_categories: ArrayLike | None = None,
        pseudo_count: float = 1.0,
        sampling: str = "points",
        inference: str | Engine = "auto",
        weights: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        warm_start: bool = False,
        init_params: str | ArrayLike = "random_from_data",
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
        self.n_categories = n_categories
        self.pseudo_count = pseudo_count
        self.init_params = init_params

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags

    # ------------------------------------------------------------------ the family

    def _read_points(self, X: ArrayLike) -> csr_array:
        X = validate_data(self, X, dtype="numeric", ensure_min_samples=max(2, self.n_components))
        self.n_categories_ = self._count_categories(X)
        return one_hot(X, self.n_categories_)

    def _read_new(self, X: ArrayLike) -> csr_array:
        return one_hot(validate_data(self, X, dtype="numeric", reset=False), self.n_categories_)

    def _count_categories(self, X: IntArray) -> IntArray:
        if self.n_categories is None:
            largest = np.maximum(X.max(axis=0), 0)
            if largest.sum() > MOST_CATEGORIES:
                d = int(largest.argmax())
                raise ValueError(
                    f"feature {d} has the code {largest[d]:.15g}, so it would have one category "
                    "more than that, most of which never occur. Encode categories as 0, 1, ... "
                    "(OrdinalEncoder does), or pass n_categories if there really are so many."
                )
            return largest.astype(np.intp) + 1
        sizes = np.asarray(self.n_categories)
        if sizes.shape != (X.shape[1],) or sizes.dtype.kind not in "iu" or sizes.min() < 1:
            raise ValueError(
                f"n_categories is {self.n_categories!r}; it must hold {X.shape[1]} positive "
                "integers, one per feature."
            )
        return sizes.astype(np.intp)

    def _family(self) -> Categories:
        return Categories(tuple(self.n_categories_), self.pseudo_count)

    def _initial_responsibilities(self, X: csr_array, rng: Rng) -> FloatArray:
        """Return the initial (N, K) responsibilities that ``init_params`` asks for."""
        shape = (X.shape[0], self.n_components)
        if not isinstance(self.init_params, str):
            return check_responsibilities(self.init_params, shape)
        if self.init_params == "random":
            return rng.dirichlet(np.ones(self.n_components), shape[0])
        chosen = rng.choice(shape[0], self.n_components, replace=False)
        # The product of two one-hot rows is the number of features in which the points agree.
        agreement = (X @ X[chosen].T).toarray()
        return np.eye(self.n_components)[agreement.argmax(axis=1)]

    def _store_theta(self, parameters: CategoricalParameters) -> None:
        self.weights_ = parameters.weights
        ends = np.cumsum(self.n_categories_)[:-1]
        self.probabilities_ = np.split(parameters.probabilities, ends, axis=1)

    def _get_theta(self) -> CategoricalParameters:
        return CategoricalParameters(self.weights_, np.concatenate(self.probabilities_, axis=1))

    def _draw_points(self, n_samples: int, rng: Rng) -> tuple[IntArray, IntArray]:
        return categorical.sample(self._get_theta(), self._family(), n_samples, rng)
