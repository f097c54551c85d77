"""What every learnt map promises: scikit-learn's conventions, and the distances of its metric."""

import numpy as np
import pytest
from metric_problems import IRIS
from refusals import refused
from sklearn.base import clone

from cgmm.metric_learning import MMC, RCA, OnlineRCA


@pytest.mark.parametrize("model", [RCA(), OnlineRCA(random_state=0), MMC()])
def test_transformed_points_are_as_far_apart_as_the_metric_says(model):
    X, y = IRIS
    model = clone(model).fit(X, y)
    Z, A = model.transform(X), model.get_mahalanobis_matrix()
    between = X[:50] - X[100:]
    np.testing.assert_allclose(
        np.square(Z[:50] - Z[100:]).sum(axis=1), np.sum(between @ A * between, axis=1), rtol=1e-9
    )


test_impossible_parameters_are_named = refused(
    lambda model: model.fit(np.eye(4), [0, 0, 1, 1]),
    (MMC(diagonal=2), "diagonal"),
    (MMC(tol=-1), "tol"),
    (MMC(max_iter=0), "max_iter"),
    (MMC(max_cannot_links=0), "max_cannot_links"),
    (RCA(alpha=0), "alpha"),
    (RCA(shrinkage=2), "shrinkage"),
    (OnlineRCA(eta=0), "eta"),
)


@pytest.mark.parametrize("fit", [RCA().fit, OnlineRCA().fit, OnlineRCA().partial_fit])
def test_without_side_information_there_is_nothing_to_learn(fit):
    X = np.random.default_rng(0).normal(size=(5, 2))
    for kwargs in ({}, {"y": np.arange(5)}, {"must_link": np.empty((0, 2))}):
        with pytest.raises(ValueError, match=r"no two of the 5 points.*Give must_link.*PCA"):
            fit(X, **kwargs)
    with pytest.raises(ValueError, match="points of every chunklet coincide"):
        fit(np.repeat(X, 2, axis=0), np.repeat(np.arange(5), 2))
    with pytest.raises(ValueError, match=r"must_link\[0\] is \[0, 9\]"):
        fit(X, must_link=[[0, 9]])
    with pytest.raises(ValueError, match=r"y\[4\] is -2; it must be an integer"):
        fit(X, [0, 0, 1, 1, -2])


@pytest.mark.parametrize("fit", [RCA().fit, RCA(2).fit, OnlineRCA().fit])
def test_chunklets_that_vary_by_rounding_alone(fit):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 3)), 2, axis=0) * (1 + rng.integers(-1, 2, (60, 1)) * 2e-16)
    with pytest.raises(ValueError, match="by no more than rounding"):
        fit(X, np.repeat(np.arange(30), 2))
