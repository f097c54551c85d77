"""The classifier that learns from labelled and unlabelled points. Chapter 4."""

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
    """Classifier of Gaussian classes, learnt from labelled and unlabelled points together.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        "full" is quadratic discriminant analysis, "tied" linear discriminant analysis, "diag"
        Gaussian naive Bayes, each with biased (maximum-likelihood) covariances.
    components_per_class : int or dict, default=1
        How many Gaussians each class is a mixture of: one number for all, or from a class to its
        number, those left out having one. With more than one this is mixture discriminant analysis
        (Hastie and Tibshirani, 1996; theirs is "tied"), which needs as many distinct labelled
        points of the class. Relations speak of classes: a must-link of two points leaves each its
        own component.
    tol : float, default=1e-3
        As in :class:`ConstrainedGaussianMixture`, as are the parameters below.
    reg_covar : float, default=1e-6
        Added to each covariance's diagonal.
    max_iter : int, default=100
        Most iterations of EM.
    n_init : int, default=1
        Runs from different starts, which differ if a class has several Gaussians; the one of
        highest log-evidence is kept.
    inference : str or callable, default="auto"
        The engine of the E-step, where relations are given beside the labels.
    weights : {"auto", "exact", "cautious", "pseudo-likelihood", "ignore", "grid"}, default="auto"
        The update of the weights, where relations are given beside the labels.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the starts of classes with several Gaussians, and of "gibbs".
    verbose : int, default=0
        1: a line at the end; 2: a line an iteration too.
    n_jobs : int, default=None
        Threads that work on blocks of points; None is 1, -1 all.

    Attributes
    ----------
    classes_ : (K,) array
        The classes that occur in ``y``, without -1.
    mixture_ : ConstrainedGaussianMixture
        The fitted mixture; its component k is class ``classes_[k]``. With several Gaussians a
        class a mixture of classes: ``weights_`` and answers speak of classes, ``means_``,
        ``covariances_`` and ``shares_``, the weights within classes, of the components class by
        class.
    transduction_ : (N,) array
        The class of each training point: the label where it is known.
    n_iter_ : int
        Iterations of EM.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    ConstrainedGaussianMixture : where classes have no names, or only some are excluded.

    Notes
    -----
    [green, "Semi-supervised"], [schmidt2016, sect. 2]: the log-likelihood of labelled points with
    their classes plus that of unlabelled points without. With every point labelled it has its
    maximum in closed form, and with ``reg_covar=0`` predictions are those of scikit-learn's
    ``GaussianNB(var_smoothing=0)``, ``QuadraticDiscriminantAnalysis(solver="eigen")`` and
    ``LinearDiscriminantAnalysis(solver="lsqr")``.

    Cells of the points may be empty, NaN, if they are missing at random: whether a cell is empty
    may depend on the cells that are present, but not on its own value.

    Given its class a point's component depends on nothing else. So a class of several Gaussians is
    one state of the network, with a mixture for its density: relations cost an engine what they
    cost with one Gaussian a class, and an exact engine stays exact. Each iteration computes the
    densities of all components twice. Without relations the fit is that of a
    :class:`ConstrainedGaussianMixture` of all components whose boolean ``labels`` confine each
    labelled point to those of its class; relations given there would speak of components.

    Examples
    --------
    Two labelled points, four that are not:

    >>> X = np.array([[0.0], [0.4], [1.0], [7.0], [7.7], [8.0]])
    >>> y = ["early", -1, -1, None, None, "late"]
    >>> model = SemiSupervisedGaussianClassifier().fit(X, y)
    >>> model.predict([[2.0], [6.0]])
    array(['early', 'late'], dtype=object)

    A class on both sides of the other, as two Gaussians:

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
            The points, NaN where a cell is empty, as in :class:`ConstrainedGaussianMixture`.
        y : (N,) array-like
            Their classes; -1, None or NaN where unknown. A list may hold texts and -1. The texts
            "-1", "nan" and "" are refused, since they may be what became of an unknown class.
        must_link, cannot_link, preferences, sample_weight : arrays, default=None
            Relations between points, and how many points each stands for, as in
            :meth:`cgmm.mixture.ConstrainedMixture.fit`.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If ``y`` holds -1 and 1 alone: -1 means unknown.

        Raises
        ------
        ValueError
            If no point has a class, if a class has too few points for its covariance, or fewer
            distinct labelled ones than components; if ``components_per_class`` is no number for
            each of the classes; or as
            :meth:`cgmm.mixture.ConstrainedMixture.fit` does.
        """
        self._validate_params()
        ties = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        check_rows(X, **ties)
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
                "y holds -1 and 1 alone: -1 means unknown, so that there is one class. If -1 is a "
                "class, give it another name, np.where(y == -1, 0, y).",
                UserWarning,
            )
        check_classification_targets(y[labels >= 0])
        self.classes_ = classes
        weights = check_sample_weight(sample_weight, len(X))
        counted = labels if weights is None else np.where(weights > 0, labels, -1)
        mixture = self._mixture(X, counted)
        self.mixture_ = mixture.fit(X, labels=labels, sample_weight=sample_weight, **ties)
        self.transduction_ = self.classes_[self.mixture_.labels_]
        self.n_iter_ = self.mixture_.n_iter_
        return self

    def _mixture(self, X: FloatArray, labels: IntArray) -> ConstrainedGaussianMixture:
        options = self.get_params()
        sizes = sizes_of_classes(options.pop("components_per_class"), self.classes_)
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

    def _new(self, X: ArrayLike, **ties: ArrayLike | None) -> FloatArray:
        check_is_fitted(self, "mixture_")
        check_rows(X, **ties)
        with explain_missing(X):
            allow_nan = {"ensure_all_finite": "allow-nan"}
            return validate_data(self, X, dtype=np.float64, reset=False, **allow_nan)

    def predict(
        self, X: ArrayLike, *, must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None, preferences: ArrayLike | None = None,
    ) -> NDArray[Any]:  # fmt: skip
        """Return the most probable class of each point, alone or jointly with related points.

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
        ties = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        X = self._new(X, **ties)
        return self.classes_[self.mixture_.predict(X, **ties)]

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
        ties = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        X = self._new(X, **ties)
        return self.mixture_.predict_proba(X, **ties)

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
        """Return the log of the joint density of each point and each class.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            ``log π_k + log N(x_i | μ_k, Σ_k)``; with several Gaussians a class, of their mixture.
        """
        X = self._new(X)
        return self.mixture_._log_joint(X)


def sizes_of_classes(components_per_class: int | dict[Any, int], classes: AnyArray) -> list[int]:
    """Return the number of components of each class; refuse what is no such number."""
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
