"""A Gaussian classifier that learns from labelled and unlabelled points. Chapter 4."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.given import explain_missing
from cgmm.mixture.class_mixture import ClassMixture
from cgmm.mixture.gaussian_mixture import ConstrainedGaussianMixture
from cgmm.network import Engine, number_classes
from cgmm.network.labels import read_classes
from cgmm.network.misreadings import check_rows
from cgmm.numerics import AnyArray, FloatArray, IntArray, Seed, check_sample_weight, warn_caller
from cgmm.runs import Versioned


class SemiSupervisedGaussianClassifier(Versioned, ClassifierMixin, BaseEstimator):
    """Gaussian classifier that learns from labelled and unlabelled points.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        "full" is quadratic discriminant analysis, "tied" linear discriminant analysis, "diag"
        Gaussian naive Bayes, each with biased (maximum-likelihood) covariances.
    components_per_class : int or dict, default=1
        Number of Gaussians per class: one number for all classes, or a dict from classes to
        numbers, where missing classes have one Gaussian. With more than one Gaussian this is
        mixture discriminant analysis (Hastie and Tibshirani, 1996, who use "tied"); the class then
        needs at least as many distinct labelled points. Relations refer to classes: two must-linked
        points share a class, but may come from different Gaussians of it.
    tol : float, default=1e-3
        As in :class:`ConstrainedGaussianMixture`, as are the parameters below.
    reg_covar : float, default=1e-6
        Added to the diagonal of each covariance.
    max_iter : int, default=100
        Maximum number of iterations of EM.
    n_init : int, default=1
        Number of runs from different starts, of which the one with the highest log-evidence is
        kept. It matters only if a class has several Gaussians.
    inference : str or callable, default="auto"
        The engine of the E-step if relations are given in addition to the labels.
    weights : {"auto", "exact", "cautious", "pseudo-likelihood", "ignore", "grid"}, default="auto"
        The update of the weights if relations are given in addition to the labels.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the initialisation of classes with several Gaussians, and of "gibbs".
    verbose : int, default=0
        1: print a line at the end; 2: also print a line per iteration.
    n_jobs : int, default=None
        Number of threads that work on blocks of points; None means 1, -1 means all cores.

    Attributes
    ----------
    classes_ : (K,) array
        The classes that occur in ``y``, without -1.
    mixture_ : ConstrainedGaussianMixture
        The fitted mixture, in which component k is class ``classes_[k]``. If classes have several
        Gaussians, ``weights_`` and predictions refer to classes, while ``means_``,
        ``covariances_`` and ``shares_`` (the weights within classes) refer to the Gaussians,
        ordered by class.
    transduction_ : (N,) array
        The class of each training point: its label if it has one, otherwise the prediction.
    n_iter_ : int
        Number of iterations of EM.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    ConstrainedGaussianMixture : for components without names, or sets of allowed components.

    Notes
    -----
    The objective is the log-likelihood of the labelled points with their classes plus that of the
    unlabelled points without classes [green, "Semi-supervised"], [schmidt2016, sect. 2]. If every
    point is labelled, the maximum has a closed form. With ``reg_covar=0`` the predictions are then
    those of scikit-learn's
    ``GaussianNB(var_smoothing=0)``, ``QuadraticDiscriminantAnalysis(solver="eigen")`` and
    ``LinearDiscriminantAnalysis(solver="lsqr")``.

    Points may have missing values (NaN) if these are missing at random: whether a value is missing
    may depend on the observed values of the row, but not on the missing value itself.

    Given the class of a point, its component within the class is independent of all other points.
    A class of several Gaussians is therefore one state of the network, whose density is a mixture:
    relations cost an engine no more than with one Gaussian per class, and an exact engine stays
    exact. Each iteration computes the densities of all Gaussians twice. Without relations the fit
    equals that of a :class:`ConstrainedGaussianMixture` of all Gaussians whose boolean ``labels``
    allow each labelled point the Gaussians of its class; but relations passed to that estimator
    would refer to single Gaussians.

    Examples
    --------
    Two labelled points and four unlabelled ones:

    >>> X = np.array([[0.0], [0.4], [1.0], [7.0], [7.7], [8.0]])
    >>> y = ["early", -1, -1, None, None, "late"]
    >>> model = SemiSupervisedGaussianClassifier().fit(X, y)
    >>> model.predict([[2.0], [6.0]])
    array(['early', 'late'], dtype=object)

    A class of two Gaussians, one on each side of the other class:

    >>> X = np.array([[0.0], [0.3], [4.0], [4.4], [8.0], [8.3], [0.1], [3.9], [8.1]])
    >>> y = np.array([1, 1, 0, 0, 1, 1, -1, -1, -1])
    >>> model = SemiSupervisedGaussianClassifier(components_per_class={1: 2}, random_state=0)
    >>> model = model.fit(X, y)
    >>> model.predict([[0.5], [4.2], [7.5]]), model.mixture_.means_.ravel().round(1)
    (array([1, 0, 1]), array([4.1, 8.1, 0.1]))
    """

    _parameter_constraints = {
        name: ConstrainedGaussianMixture._parameter_constraints[name]
        for name in (
            "covariance_type", "tol", "reg_covar", "max_iter", "n_init", "inference", "weights",
            "random_state", "verbose", "n_jobs",
        )
    } | {"components_per_class": [Interval(Integral, 1, None, closed="left"), dict]}  # fmt: skip

    def __init__(
        self,
        *,
        covariance_type: str = "full",
        components_per_class: int | dict[Any, int] = 1,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        inference: str | Engine = "auto",
        weights: str = "auto",
        random_state: Seed = 0,
        verbose: int = 0,
        n_jobs: int | None = None,
    ):
        self.covariance_type = covariance_type
        self.components_per_class = components_per_class
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.inference = inference
        self.weights = weights
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None, preferences: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Fit the Gaussians of the classes to labelled and unlabelled points.

        Parameters
        ----------
        X : (N, D) array-like
            The points, with NaN for missing values, as in :class:`ConstrainedGaussianMixture`.
        y : (N,) array-like
            Their classes; -1, None or NaN if unknown. A list may mix strings and -1. The strings
            "-1", "nan" and "" raise an error, because they are probably unknown classes that were
            converted to strings.
        must_link, cannot_link, preferences, sample_weight : arrays, default=None
            Relations between points, and sample weights, as in
            :meth:`cgmm.mixture.ConstrainedMixture.fit`.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If ``y`` consists of -1 and 1 only, because -1 means unknown.

        Raises
        ------
        ValueError
            If no point is labelled; if a class has too few points for its covariance, or fewer
            distinct labelled points than components; if ``components_per_class`` names an unknown
            class or is not a positive integer; or in the cases in which
            :meth:`cgmm.mixture.ConstrainedMixture.fit` raises it.
        """
        self._validate_params()
        relations = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        check_rows(X, **relations)
        y = None if y is None else read_classes(y)
        with explain_missing(X):
            X, y = validate_data(
                self, X, y, dtype=np.float64, order="F", ensure_min_samples=2,
                ensure_all_finite="allow-nan",
            )  # fmt: skip
        classes, labels = number_classes(y)
        if len(classes) == 0:
            raise ValueError(
                "every entry of y is -1, None or NaN: unknown. At least one point of each class "
                "must be labelled. Without any label use ConstrainedGaussianMixture."
            )
        if classes.tolist() == [1] and (labels < 0).any():
            warn_caller(
                "y holds -1 and 1 alone: -1 means unknown, so there is only one class. If -1 is a "
                "class, give it another name, np.where(y == -1, 0, y).",
                UserWarning,
            )
        check_classification_targets(y[labels >= 0])
        self.classes_ = classes
        weights = check_sample_weight(sample_weight, len(X))
        counted = labels if weights is None else np.where(weights > 0, labels, -1)
        mixture = self._build_mixture(X, counted)
        self.mixture_ = mixture.fit(X, labels=labels, sample_weight=sample_weight, **relations)
        self.transduction_ = self.classes_[self.mixture_.labels_]
        self.n_iter_ = self.mixture_.n_iter_
        return self

    def _build_mixture(self, X: FloatArray, labels: IntArray) -> ConstrainedGaussianMixture:
        options = self.get_params()
        sizes = count_components(options.pop("components_per_class"), self.classes_)
        if max(sizes) == 1:
            return ConstrainedGaussianMixture(len(sizes), init_params="labels", **options)
        for c, (label, size) in enumerate(zip(self.classes_.tolist(), sizes, strict=True)):
            n_distinct = len(np.unique(X[labels == c], axis=0))
            if n_distinct < size:
                raise ValueError(
                    f"class {label!r} has {n_distinct} distinct labelled points, too few to start "
                    f"{size} components from. Label more of it, or ask for fewer: "
                    f"set_params(components_per_class={{{label!r}: {n_distinct}}})."
                )
        return ClassMixture(sizes, **options)

    def _check_new_points(self, X: ArrayLike, **relations: ArrayLike | None) -> FloatArray:
        check_is_fitted(self, "mixture_")
        check_rows(X, **relations)
        with explain_missing(X):
            allow_nan = {"ensure_all_finite": "allow-nan"}
            return validate_data(self, X, dtype=np.float64, reset=False, **allow_nan)

    def predict(
        self, X: ArrayLike, *, must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None, preferences: ArrayLike | None = None,
    ) -> NDArray[Any]:  # fmt: skip
        """Return the most probable class of each point, given the relations among the points.

        Parameters
        ----------
        X : (N, D) array-like
            Points.
        must_link, cannot_link, preferences : arrays, default=None
            Relations among these points, as in :meth:`cgmm.mixture.ConstrainedMixture.predict`.

        Returns
        -------
        (N,) array
            Entries of ``classes_``.
        """
        relations = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        X = self._check_new_points(X, **relations)
        return self.classes_[self.mixture_.predict(X, **relations)]

    def predict_proba(
        self, X: ArrayLike, *, must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None, preferences: ArrayLike | None = None,
    ) -> FloatArray:  # fmt: skip
        """Return the probability of each class for each point, given the relations among them.

        Parameters
        ----------
        X : (N, D) array-like
            Points.
        must_link, cannot_link, preferences : arrays, default=None
            As in ``predict``.

        Returns
        -------
        (N, K) array
            Columns in the order of ``classes_``.
        """
        relations = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        X = self._check_new_points(X, **relations)
        return self.mixture_.predict_proba(X, **relations)

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Return the logarithm of :meth:`predict_proba`, without underflow.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            In nats.
        """
        log_joint = self.predict_joint_log_proba(X)
        return log_joint - logsumexp(log_joint, axis=1, keepdims=True)

    def predict_joint_log_proba(self, X: ArrayLike) -> FloatArray:
        """Return log p(x_i, class k), the joint log-density of each point and each class.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            ``log π_k + log N(x_i | μ_k, Σ_k)``. If the class has several Gaussians, the density is
            that of their mixture.
        """
        X = self._check_new_points(X)
        return self.mixture_._log_joint(X)


def count_components(components_per_class: int | dict[Any, int], classes: AnyArray) -> list[int]:
    """Return the number of components of each class, or raise an error for invalid numbers."""
    if not isinstance(components_per_class, dict):
        return [int(components_per_class)] * len(classes)
    known = classes.tolist()
    for label, size in components_per_class.items():
        if label not in known:
            raise ValueError(
                f"components_per_class names {label!r}, but the classes in y are {known}. Leave "
                "it out; a class that is not named has one component."
            )
        if not isinstance(size, Integral) or size < 1:
            raise ValueError(
                f"components_per_class asks for {size!r} components of class {label!r}; give a "
                f"positive integer: components_per_class={{{label!r}: 1}}."
            )
    return [int(components_per_class.get(label, 1)) for label in known]
