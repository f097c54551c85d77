"""Test the estimators COPKMeans and PCKMeans: relations, restarts, predictions and refusals."""

import warnings

import numpy as np
import pytest
from answers import true_relations
from hypothesis import given
from hypothesis import strategies as st
from kmeans_problems import NONE_BROKEN
from refusals import refused
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import scale

from cgmm.kmeans import COPKMeans, PCKMeans
from cgmm.metrics import broken_relations


@given(
    seed=st.integers(0, 10**6),
    n_clusters=st.integers(2, 5),
    n_pairs=st.integers(1, 120),
    init=st.sampled_from(["chunklets", "k-means++", "random"]),
    w=st.sampled_from([None, 0.0, 0.5, 5.0, np.inf]),
)
def test_fits_satisfy_true_relations(seed, n_clusters, n_pairs, init, w):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_clusters, size=50)
    X = rng.normal(size=(50, 2)) + 2 * rng.normal(size=(n_clusters, 2))[y]
    known = true_relations(rng, y, n_pairs)
    params = {"init": init, "random_state": seed}
    model = COPKMeans(n_clusters, **params) if w is None else PCKMeans(n_clusters, w=w, **params)
    # Must-links may leave fewer chunklets than clusters, which gives a warning.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X, **known)
    if w is None or w == np.inf:
        assert broken_relations(model.labels_, **known) == NONE_BROKEN
    broken = sum(broken_relations(model.labels_, **known))
    factor, weight = (1, 0) if w is None else (0.5, w)
    expected = factor * model.inertia_ + (weight * broken if broken else 0)
    # The penalties of a repeated pair are added, and broken_relations counts it twice as well.
    assert model.objective_ == pytest.approx(expected, rel=1e-9)


def load_wine_with_relations():
    """Return the raw wine data, and 150 true relations."""
    X, y = load_wine(return_X_y=True)
    return X, true_relations(np.random.default_rng(0), y, 150)


@pytest.mark.parametrize("make", [COPKMeans, PCKMeans])
def test_best_of_several_restarts_is_kept(make):
    X, relations = load_wine_with_relations()
    X = scale(X)
    single = make(4, random_state=2, init="random").fit(X, **relations)
    several = clone(single).set_params(n_init=5).fit(X, **relations)
    model = make(4, random_state=np.random.RandomState(2), init="random")
    objectives = [model.fit(X, **relations).objective_ for _ in range(5)]
    assert several.objective_ == min(objectives) < max(objectives)
    assert objectives[0] == single.objective_
    np.testing.assert_array_equal(single.fit_predict(X, **relations), single.labels_)


def test_labels_of_the_fit_satisfy_relations_and_predictions_ignore_them():
    X = np.array([[0.0], [0.1], [10.0], [10.1]])
    model = COPKMeans(2, init=[[0.0], [10.0]]).fit(X, cannot_link=[[0, 1]], must_link=[[2, 3]])
    assert model.labels_[0] != model.labels_[1]
    assert model.predict([[0.0], [0.1]])[0] == model.predict([[0.0], [0.1]])[1]
    assert model.transform(X).shape == (4, 2)
    assert list(model.get_feature_names_out()) == ["copkmeans0", "copkmeans1"]
    with pytest.raises(NotFittedError):
        COPKMeans(2).predict(X)


test_bad_input_is_refused = refused(
    lambda fit: fit(np.arange(10.0).reshape(5, 2)),
    (lambda X: COPKMeans(2, init=np.zeros((3, 2))).fit(X), r"init has shape \(3, 2\)"),
    (lambda X: COPKMeans(2, init=np.full((2, 2), np.nan)).fit(X), "finite"),
    (lambda X: COPKMeans(2, init="nowhere").fit(X), "init"),
    (lambda X: PCKMeans(2, w=-1.0).fit(X), "w"),
    (lambda X: COPKMeans(9).fit(X), "minimum of 9"),
    (lambda X: PCKMeans(2).fit(X, sample_weight=[1.0]), r"shape \(1,\)"),
    (lambda X: PCKMeans(2).fit(X, sample_weight=[-1.0] * 5), r"sample_weight\[0\] is -1"),
    (lambda X: PCKMeans(2).fit(X, preferences=[[0, 1, np.nan]]), r"preferences\[0\]"),
    (
        lambda X: COPKMeans(1).fit(X, must_link=[[0, 1]], cannot_link=[[1, 3]]),
        "points 0 and 3 are mutually",
    ),
)


def test_penalties_that_are_too_small_for_the_data_give_a_warning():
    """Columns of the raw wine data reach thousands, so that w = 1 has no effect."""
    X, relations = load_wine_with_relations()
    with pytest.warns(UserWarning, match=r"relations are broken: .* small beside"):
        PCKMeans(3, random_state=0).fit(X, **relations)
    with warnings.catch_warnings(action="error", category=UserWarning):
        PCKMeans(3, random_state=0).fit(scale(X), **relations)
        PCKMeans(3, w=0.0, random_state=0).fit(X, **relations)
