"""Answers enter a fit as data: the likelihood of points and answers together. Chapters 8 and 15.

Which pairs were asked may depend on the points in any way, and on the answers before: given the
points, what is said depends on the truth alone, so that how pairs were chosen is a factor without
θ. What is left is p(X, answers | θ), which has no normaliser. To take the same answers for a
condition, p(X | answers, θ), is right only for pairs that were drawn without a look at the points.

=====  ====================================================================
q_e    how often such an answer is wrong; its log-weight is ±logit(1 - q_e)
=====  ====================================================================
"""

from __future__ import annotations

from typing import Any, TypeVar

from numpy.typing import ArrayLike

from cgmm.decide.asking import probability
from cgmm.scenarios.answers import preferences_from_answers

Mixture = TypeVar("Mixture", bound=Any)
JOINT = "ignore"


def joint(model: Mixture) -> Mixture:
    """The same mixture, told to take relations for answers: data, and no condition.

    Parameters
    ----------
    model : ConstrainedGaussianMixture or another mixture
        It is left as it is. Its ``weights`` are "auto" or "ignore".

    Returns
    -------
    model
        A copy, not fitted, with ``weights="ignore"``.

    Raises
    ------
    ValueError
        If ``weights`` asks for a condition, or there are none: the estimator is no mixture.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> joint(ConstrainedGaussianMixture(2)).weights
    'ignore'
    """
    if not hasattr(model, "weights"):
        raise ValueError(
            f"{type(model).__name__} is no mixture, so that answers have no likelihood: ask "
            "cgmm.ConstrainedGaussianMixture(2), or a mixture of another family."
        )
    if model.weights not in ("auto", JOINT):
        raise ValueError(
            f"weights={model.weights!r} takes answers for a condition, as if their pairs had been "
            "drawn without a look at the points; answers to questions enter by the joint "
            "likelihood: set_params(weights='ignore')."
        )
    return type(model)(**model.get_params(deep=False) | {"weights": JOINT})


def fit_answers(
    model: Mixture, X: ArrayLike, answers: ArrayLike, *, error_rate: ArrayLike, **known: Any
) -> Mixture:
    """Fit a mixture to points and to answers, however their pairs were chosen.

    Parameters
    ----------
    model : ConstrainedGaussianMixture or another mixture
        As :func:`joint` takes it.
    X : (N, D) array_like
        The points.
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart"; none is no answer.
    error_rate : float or (P,) array_like
        q_e, how often such an answer is wrong: ½ says nothing.
    **known
        ``labels``, ``must_link``, ``cannot_link``, as ``fit`` takes them. These relations, too, are
        data then, and no condition.

    Returns
    -------
    model
        A copy, fitted.

    Raises
    ------
    ValueError
        If a rate is no probability, or as :func:`joint` and ``fit``.

    Notes
    -----
    Whoever asks of neighbours hears "together" more often than chance has it. As a condition that
    says that pairs were drawn until they were alike, and holds against a large component what it
    is: weights come out too even. As data it says nothing of the kind.

    Examples
    --------
    >>> import numpy as np
    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = np.array([[-3.0], [-2.0], [2.0], [2.5], [3.0], [3.5]])
    >>> model = ConstrainedGaussianMixture(2, random_state=0)
    >>> fitted = fit_answers(model, X, [[0, 1, 1], [1, 2, 0]], error_rate=0.05)
    >>> np.sort(fitted.weights_).round(2)
    array([0.33, 0.67])
    """
    soft = preferences_from_answers(answers, 1 - probability("error_rate", error_rate))
    return joint(model).fit(X, preferences=soft, **known)
