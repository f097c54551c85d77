"""The estimator ``MixedMixture``, for tables of numbers and categories. Chapter 4."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from cgmm.mixture.base import ImputingMixture
from cgmm.mixture.categorical import Categories, draw_categories, one_hot_with_gaps
from cgmm.mixture.columns import FROM_DTYPE, Columns, check_table
from cgmm.mixture.doubts import check_covariances
from cgmm.mixture.gaussian_mixture import check_scale
from cgmm.mixture.initialise import check_responsibilities
from cgmm.mixture.missing import PointsWithGaps, with_gaps
from cgmm.mixture.mixed import MixedFamily, MixedParameters, MixedPoints, coordinates
from cgmm.mixture.pooling import POOLINGS
from cgmm.mixture.starts import portfolio, sample_for_portfolio
from cgmm.mixture.weights import lift_small_weights
from cgmm.network import Engine, SideInformation
from cgmm.numerics import FloatArray, IntArray, Seed
from cgmm.runs import Rng


class MixedMixture(ImputingMixture):
    """Mixture for tables of numbers and categories, fitted with side information.

    Given the component, numbers are Gaussian, categories are multinomial, and the two kinds are
    independent. Both may have missing values.

    Parameters
    ----------
    n_components : int, default=1
        Number of components, K.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        The categorical columns: a (D,) boolean mask, or indices or names of columns, as in
        scikit-learn's ``HistGradientBoostingClassifier``. "from_dtype" selects columns of
        categories, strings and booleans; None means that all columns are numbers.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Form of the covariances of the numeric columns.
    handle_unknown : {"error", "missing"}, default="error"
        Treatment of categories that did not occur in the fit: raise an error, or treat them as
        missing values.
    pseudo_count : float, default=1.0
        a ≥ 0, added to the expected count of each category, as in
        :class:`ConstrainedCategoricalMixture`.
    reg_covar : float, default=1e-6
        ε ≥ 0, added to the diagonal of each covariance.
    sampling, inference, weights, tol, max_iter, n_init, warm_start
        As in :class:`ConstrainedGaussianMixture`.
    init_params : "auto" or (N, K) array, default="auto"
        Initial responsibilities. "auto" tries groupings as :class:`ConstrainedGaussianMixture`
        does; it uses the numeric columns, and the leading coordinates of a correspondence analysis
        of the categories.
    random_state, verbose, n_jobs, store_responsibilities, step_exponent
        As in :class:`ConstrainedGaussianMixture`.

    Attributes
    ----------
    weights_ : (K,) array
        π_k.
    means_, covariances_
        Parameters of the numeric columns, as in :class:`ConstrainedGaussianMixture`.
    probabilities_ : list of arrays (K, C_d)
        Probability of each category in each component, for each categorical column.
    categories_ : list of lists
        The categories of each categorical column, in the order of ``probabilities_``.
    is_categorical_ : (D,) bool array
        True for categorical columns.
    log_evidence_, evidence_exact_, history_, n_iter_, converged_, responsibilities_, labels_,
    labels_exact_, weights_update_, inference_, n_steps_, n_samples_seen_
        As in :class:`ConstrainedGaussianMixture`.

    See Also
    --------
    cgmm.mixture.mixed : the family of components.

    Notes
    -----
    A missing value is left out of the density of its row. This is correct if values are missing at
    random: whether a value is missing may depend on the observed values of the row, but not on the
    missing value itself.

    Examples
    --------
    >>> X = [[1.0, "a"], [1.2, "a"], [None, "a"], [5.0, "b"], [5.2, None], [4.8, "b"]]
    >>> model = MixedMixture(2, random_state=0, pseudo_count=0.1).fit(X)
    >>> model.labels_ == model.labels_[0]
    array([ True,  True,  True, False, False, False])
    >>> model.impute(X)[4].tolist()
    [5.2, 'b']
    """

    _parameter_constraints = {
        **ImputingMixture._parameter_constraints,
        "categorical_features": ["array-like", StrOptions({FROM_DTYPE}), None],
        "covariance_type": [StrOptions(set(POOLINGS))],
        "handle_unknown": [StrOptions({"error", "missing"})],
        "pseudo_count": [Interval(Real, 0, None, closed="left")],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "init_params": [StrOptions({"auto"}), "array-like"],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        categorical_features: ArrayLike | str | None = FROM_DTYPE,
        covariance_type: str = "full",
        handle_unknown: str = "error",
        pseudo_count: float = 1.0,
        reg_covar: float = 1e-6,
        sampling: str = "points",
        inference: str | Engine = "auto",
        weights: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        warm_start: bool = False,
        init_params: str | ArrayLike = "auto",
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
        self.categorical_features = categorical_features
        self.covariance_type = covariance_type
        self.handle_unknown = handle_unknown
        self.pseudo_count = pseudo_count
        self.reg_covar = reg_covar
        self.init_params = init_params

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    # ------------------------------------------------------------------ the family

    def _read_points(self, X: ArrayLike) -> MixedPoints:
        table = check_table(X, max(2, self.n_components))
        validate_data(self, table, skip_check_array=True)
        self._columns = Columns.learn(table, self.categorical_features)
        self.is_categorical_, self.categories_ = self._columns[1:]
        points = self._read_new(table, is_new=False)
        if not self.is_categorical_.all():
            check_scale(points.parts[0], self.reg_covar)
        return points

    def _read_new(self, X: ArrayLike, is_new: bool = True) -> MixedPoints:
        table = check_table(X)
        validate_data(self, table, skip_check_array=True, reset=False)
        numbers, codes = self._columns.read(table, self.handle_unknown == "missing")
        parts: list[Any] = []
        if numbers.shape[1]:
            gaussian = np.asfortranarray(numbers)
            parts.append(with_gaps(gaussian, is_new=is_new, rows_may_be_empty=True))
        if codes.shape[1]:
            parts.append(one_hot_with_gaps(codes, self._columns.sizes))
        return MixedPoints(tuple(parts), table.shape[1])

    def _family(self) -> MixedFamily:
        kinds: list[Any] = []
        if not self.is_categorical_.all():
            kinds.append(POOLINGS[self.covariance_type]._replace(reg_covar=self.reg_covar))
        if self.is_categorical_.any():
            kinds.append(Categories(self._columns.sizes, self.pseudo_count))
        return MixedFamily(tuple(kinds))

    def _starts(
        self, X: MixedPoints, side: SideInformation, rng: Rng
    ) -> list[Callable[[], MixedParameters]]:
        if isinstance(self.init_params, str):
            X, side = sample_for_portfolio(X, side, self.n_components, rng)
            # The coordinates of categories are rotated, so they are correlated within components.
            kind = "full" if self.is_categorical_.any() else self.covariance_type
            numbers, shape = self._as_numeric_table(X), (self.n_components, kind)
            groupings = portfolio(numbers, side, *shape, rng, self.n_init, self.verbose)
        else:
            shape = len(X), self.n_components
            groupings = [check_responsibilities(self.init_params, shape)] * self.n_init
        return [partial(self._make_start, X, side, r) for r in groupings]

    def _make_start(self, X: Any, side: SideInformation, r: FloatArray) -> MixedParameters:
        theta = self._family().start(X, side.counted(r))
        return theta.with_weights(lift_small_weights(theta.weights, len(X)))

    def _as_numeric_table(self, X: MixedPoints) -> Any:
        """Return numeric columns and coordinates of categories as one table for the starts."""
        columns = [np.asarray(X.parts[0])] if not self.is_categorical_.all() else []
        if self.is_categorical_.any():
            columns.append(coordinates(X.parts[-1], self._columns.sizes, self.n_components))
        return with_gaps(np.asfortranarray(np.concatenate(columns, axis=1)), rows_may_be_empty=True)

    def _has_collapsed(self, theta: Any) -> bool:
        return len(self._find_thin_covariances(theta)) > 0

    def _find_thin_covariances(self, theta: MixedParameters) -> list[str]:
        if self.is_categorical_.all():
            return []
        return check_covariances(theta.parts[0].covariances, self.reg_covar)

    def _find_doubts(self, theta: Any, X: Any, known: dict[str, Any]) -> list[str]:
        return [*self._find_thin_covariances(theta), *super()._find_doubts(theta, X, known)]

    def _store_theta(self, parameters: MixedParameters) -> None:
        super()._store_theta(parameters)
        if not self.is_categorical_.all():
            self.means_, covariances = parameters.parts[0][1:]
            self.covariances_ = np.array(POOLINGS[self.covariance_type].reduce(covariances))
        if self.is_categorical_.any():
            self.probabilities_ = self._split_by_column(parameters.parts[-1].probabilities)

    def _split_by_column(self, probabilities: FloatArray) -> list[FloatArray]:
        """Split (N, Σ_d C_d) probabilities into one (N, C_d) array per categorical column."""
        return np.split(probabilities, np.cumsum(self._columns.sizes)[:-1], axis=1)

    def _draw_points(self, n_samples: int, rng: Rng) -> tuple[Any, IntArray]:
        z = np.repeat(np.arange(len(self.weights_)), rng.multinomial(n_samples, self.weights_))
        numbers = np.full((n_samples, int((~self.is_categorical_).sum())), np.nan)
        codes = np.full((n_samples, len(self._columns.sizes)), -1)
        filled = self._fill_missing(numbers, codes, np.eye(len(self.weights_))[z], rng)
        return self._columns.join(None, *filled), z

    def _impute(self, X: ArrayLike, r: FloatArray, rng: Rng | None) -> Any:
        table = check_table(X)
        numbers, codes = self._columns.read(table, self.handle_unknown == "missing")
        if rng is not None:  # numbers and categories of a row must come from one component
            r = np.eye(r.shape[1])[draw_categories(r, Categories((r.shape[1],)), rng)[:, 0]]
        return self._columns.join(table, *self._fill_missing(numbers, codes, r, rng))

    def _fill_missing(
        self, numbers: FloatArray, codes: IntArray, r: FloatArray, rng: Rng | None
    ) -> tuple[FloatArray, IntArray]:
        """Fill in missing numbers and codes, given (N, K) responsibilities."""
        parts = self._get_theta().parts
        if np.isnan(numbers).any():
            numbers = PointsWithGaps(numbers).fill_in(parts[0], r, rng)
        if (codes < 0).any():
            probabilities = r @ parts[-1].probabilities
            if rng is None:
                columns = self._split_by_column(probabilities)
                found = np.column_stack([column.argmax(axis=1) for column in columns])
            else:
                found = draw_categories(probabilities, Categories(self._columns.sizes), rng)
            codes = np.where(codes < 0, found, codes)
        return numbers, codes
