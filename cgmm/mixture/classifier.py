"""The classifier that learns from labelled and unlabelled points. Chapter 4."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.mixture.gaussian_mixture import ConstrainedGaussianMixture
from cgmm.network import Engine
from cgmm.numerics import FloatArray


class SemiSupervisedGaussianClassifier(ClassifierMixin, BaseEstimator):
    """Classifier of one Gaussian a class, learnt from labelled and unlabelled points together.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        "full" is quadratic discriminant analysis, "tied" linear discriminant analysis, "diag"
        Gaussian naive Bayes, each with biased (maximum-likelihood) covariances.
    tol : float, default=1e-3
        As in :class:`ConstrainedGaussianMixture`, as are the parameters below.
    reg_covar : float, default=1e-6
        Added to each covariance's diagonal.
    max_iter : int, default=100
        Most iterations of EM.
    inference : str or callable, default="auto"
        The engine of the E-step, where relations are given beside the labels.
    weights : {"auto", "exact", "cautious", "pseudo-likelihood", "ignore", "grid"}, default="auto"
        The update of the weights, where relations are given beside the labels.
    verbose : int, default=0
        1: a line at the end; 2: a line an iteration too.

    Attributes
    ----------
    classes_ : (K,) array
        The classes that occur in ``y``, without -1.
    mixture_ : ConstrainedGaussianMixture
        The fitted mixture; its component k is class ``classes_[k]``.
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

    Examples
    --------
    Two labelled points, four that are not:

    >>> X = np.array([[0.0], [0.4], [1.0], [7.0], [7.7], [8.0]])
    >>> y = ["early", -1, -1, -1, -1, "late"]
    >>> y = np.array(y, dtype=object)
    >>> model = SemiSupervisedGaussianClassifier().fit(X, y)
    >>> model.predict([[2.0], [6.0]])
    array(['early', 'late'], dtype=object)
    """

    _parameter_constraints = {
        name: ConstrainedGaussianMixture._parameter_constraints[name]
        for name in (
            "covariance_type", "tol", "reg_covar", "max_iter", "inference", "weights", "verbose"
        )
    }  # fmt: skip

    def __init__(
        self,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        inference: str | Engine = "auto",
        weights: str = "auto",
        verbose: int = 0,
    ):
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.inference = inference
        self.weights = weights
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None,
    ) -> Self:
        """Fit one Gaussian a class to labelled and unlabelled points.

        Parameters
        ----------
        X : (N, D) array-like
            The points.
        y : (N,) array-like
            Their classes, -1 where unknown.
        must_link, cannot_link, preferences : arrays, default=None
            Relations between points, as in :meth:`cgmm.mixture.ConstrainedMixture.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If no point has a class, if a class has too few points for its covariance, or as
            :meth:`cgmm.mixture.ConstrainedMixture.fit` does.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64, order="F", ensure_min_samples=2)
        known = np.array([label != -1 for label in y])
        if not known.any():
            raise ValueError(
                "every entry of y is -1, unknown; at least one point of each class must be "
                "labelled. Without any label use ConstrainedGaussianMixture."
            )
        check_classification_targets(y[known])
        self.classes_, codes = np.unique(y[known], return_inverse=True)
        labels = np.full(len(y), -1)
        labels[known] = codes
        self.mixture_ = self._mixture().fit(
            X, labels=labels, must_link=must_link, cannot_link=cannot_link,
            preferences=preferences,
        )  # fmt: skip
        self.transduction_ = self.classes_[self.mixture_.labels_]
        self.n_iter_ = self.mixture_.n_iter_
        return self

    def _mixture(self) -> ConstrainedGaussianMixture:
        return ConstrainedGaussianMixture(
            len(self.classes_), init_params="labels", random_state=0, **self.get_params()
        )

    def _new(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "mixture_")
        return validate_data(self, X, dtype=np.float64, reset=False)

    def predict(
        self,
        X: ArrayLike,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Most probable class of each point, by itself or with the points that it is tied to.

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
        X = self._new(X)
        components = self.mixture_.predict(
            X, must_link=must_link, cannot_link=cannot_link, preferences=preferences
        )
        return self.classes_[components]

    def predict_proba(
        self,
        X: ArrayLike,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None,
    ) -> FloatArray:
        """Probability of each class for each point, given the relations among the points.

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
        X = self._new(X)
        return self.mixture_.predict_proba(
            X, must_link=must_link, cannot_link=cannot_link, preferences=preferences
        )

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Logarithm of :meth:`predict_proba`, without underflow.

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
        """Log of the joint density of each point and each class, as GaussianNB has it.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            ``log π_k + log N(x_i | μ_k, Σ_k)``.
        """
        X = self._new(X)
        return self.mixture_._parameters().log_joint(X)
