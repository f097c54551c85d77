"""Test what RCA, OnlineRCA and MMC have in common: maps, refusals, and warnings about y."""

import warnings

import numpy as np
import pytest
from metric_problems import IRIS, WINE
from refusals import refused
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgmm.metric_learning import MMC, RCA, OnlineRCA
from cgmm.scenarios import random_pairs


@pytest.mark.parametrize("model", [RCA(), OnlineRCA(random_state=0), MMC()])
def test_distances_after_transform_equal_those_of_the_mahalanobis_matrix(model):
    X, y = IRIS
    model = clone(model).fit(X, y)
    Z, A = model.transform(X), model.get_mahalanobis_matrix()
    delta = X[:50] - X[100:]
    np.testing.assert_allclose(
        np.square(Z[:50] - Z[100:]).sum(axis=1), np.sum(delta @ A * delta, axis=1), rtol=1e-9
    )


test_metrics_refuse_parameters_out_of_range = refused(
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
def test_rca_refuses_missing_and_invalid_chunklets(fit):
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
def test_rca_refuses_chunklets_that_vary_only_by_rounding(fit):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 3)), 2, axis=0) * (1 + rng.integers(-1, 2, (60, 1)) * 2e-16)
    with pytest.raises(ValueError, match="by no more than rounding"):
        fit(X, np.repeat(np.arange(30), 2))


X_WINE, Y_WINE = WINE
SAME, DIFFERENT = random_pairs(Y_WINE, 40, random_state=0)


@pytest.mark.parametrize(
    ("model", "relations"),
    [
        (RCA(), {"must_link": SAME}),
        (OnlineRCA(random_state=0), {"must_link": SAME}),
        (MMC(max_iter=2), {"must_link": SAME, "cannot_link": DIFFERENT}),
    ],
    ids=["RCA", "OnlineRCA", "MMC"],
)
@pytest.mark.filterwarnings("ignore:MMC did not converge", "ignore:.*chunklets")
def test_metrics_in_a_pipeline_warn_if_they_learn_from_y_and_from_relations(model, relations):
    """A pipeline passes y to all steps, although the user may need it only for scores."""
    name = type(model).__name__
    match = f"{name} learns from y as well as from .*puts 178 of 178 points into 3 groups"
    arguments = {f"{name.lower()}__{key}": pairs for key, pairs in relations.items()}
    pipeline = make_pipeline(StandardScaler(), model, KMeans(3, n_init=1, random_state=0))
    with pytest.warns(UserWarning, match=match) as caught:
        pipeline.fit(X_WINE, Y_WINE, **arguments)
    assert __file__ in {warning.filename for warning in caught}


@pytest.mark.parametrize(
    ("y", "must_link"),
    [(None, SAME), (Y_WINE, None), (Y_WINE, ()), (np.full(178, -1), SAME)],
    ids=["pairs", "y", "y, no pairs", "y unknown"],
)
def test_rca_does_not_warn_if_only_y_or_only_relations_are_given(y, must_link):
    with warnings.catch_warnings(action="error", category=UserWarning):
        RCA(shrinkage=0.2).fit(X_WINE, y, must_link=must_link)
