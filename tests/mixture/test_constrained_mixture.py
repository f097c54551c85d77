"""Test fits with side information: relations of weight zero, refusals, and predictions."""

from functools import partial
from unittest import mock

import numpy as np
import pytest
from mixture_problems import draw_groups
from refusals import refused
from sklearn.base import clone

import cgmm
from cgmm import ConstrainedGaussianMixture, scenarios
from cgmm.inference import ENGINES
from cgmm.mixture import UPDATES


@pytest.mark.parametrize("weights", UPDATES)
def test_relations_of_weight_zero_change_nothing(weights):
    X, _ = draw_groups(0)
    model = ConstrainedGaussianMixture(3, weights=weights, random_state=0)
    plain = clone(model).fit(X)
    fitted = model.fit(
        X, labels=np.full(len(X), -1), must_link=[[4, 4]], cannot_link=np.empty((0, 2), dtype=int),
        preferences=[[0, 1, 0.0]],
    )  # fmt: skip
    # The grid of weights is coarse.
    atol = 0.02 if weights == "grid" else 1e-6
    np.testing.assert_allclose(fitted.means_, plain.means_, atol=atol)
    assert fitted.log_evidence_ == pytest.approx(plain.log_evidence_, abs=atol * len(X))
    np.testing.assert_array_equal(fitted.labels_, plain.labels_)


# ------------------------------------------------------------------ refusals


def fit_without_em(**known):
    """Fit, but fail if EM is called."""
    with mock.patch("cgmm.mixture.problem.em", side_effect=AssertionError("EM was called")):
        ConstrainedGaussianMixture(2).fit(draw_groups(10)[0], **known)


TRIANGLE = [[20, 30], [30, 40], [20, 12]]
test_contradictions_are_refused_before_em_starts = refused(
    fit_without_em,
    # The three chunklets are nodes 10, 11 and 12; the message must name points instead.
    (
        {"must_link": [[10, 20], [30, 11], [40, 12]], "cannot_link": TRIANGLE},
        "points 10, 11 and 12 are mutually",
    ),
    ({"cannot_link": [[i, (i + 1) % 5] for i in range(5)]}, "points 0, 1, 2, 3 and 4"),
    ({"labels": 60 * [2]}, "n_components=3 or more"),
    ({"labels": [0, -1, 1] + 57 * [-1], "cannot_link": [[0, 1], [1, 2]]}, "points 2, 0 and 1"),
)


@pytest.mark.parametrize("log_odds", [2e9, -2e9])
def test_log_odds_above_a_billion_are_refused(log_odds):
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match=r"points 1 and 4,.*log-odds of -?2e\+09"):
        ConstrainedGaussianMixture(2).fit(X, preferences=[[0, 2, 1.0], [4, 1, log_odds]])
    # Log-odds of one pair are added up and may be as large as 1e9, or infinite.
    for rows in ([[4, 1, log_odds / 4], [1, 4, log_odds / 4]], [[4, 1, np.inf * log_odds]]):
        ConstrainedGaussianMixture(2, random_state=0).fit(X, preferences=rows)


# ------------------------------------------------------------------ predictions

INFERENCES = ["auto", "spanning_tree", "gibbs", partial(ENGINES["gibbs"], n_sweeps=20)]
MUST_LINKS = {"must_link": [[0, 1], [5, 7], [7, 9]]}


@pytest.mark.parametrize("random_state", [0, None])
@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("n_cannot", [0, 4])
def test_predictions_for_the_training_points_equal_the_fit(inference, random_state, n_cannot):
    """Predictions use the settings of the fit, even if others have been set since."""
    X, z = draw_groups(1)
    cannot = scenarios.random_pairs(z, 30, random_state=0).cannot_link[:n_cannot]
    known = MUST_LINKS
    if n_cannot:
        known = known | {"cannot_link": cannot, "preferences": [[20, 21, 0.4]]}
    model = ConstrainedGaussianMixture(3, inference=inference, random_state=random_state)
    model.fit(X, **known).set_params(sampling="chunklets", inference="pairs", n_components=2)
    np.testing.assert_array_equal(model.predict_proba(X, **known), model.responsibilities_)
    np.testing.assert_array_equal(model.predict(X, **known), model.labels_)
    codes = (X > 0).astype(int)
    model = cgmm.ConstrainedCategoricalMixture(3, random_state=0).fit(codes, **known)
    np.testing.assert_array_equal(model.predict_proba(codes, **known), model.responsibilities_)


def test_classifier_with_relations_predicts_the_names_of_classes():
    X, z = draw_groups(4, spread=4.0)
    names = np.array(["c", "a", "b"])
    y = names[z].astype(object)
    y[20:] = -1
    model = cgmm.SemiSupervisedGaussianClassifier().fit(X, y)
    known = {"cannot_link": [[0, 1], [1, 2]], "preferences": [[3, 4, -5.0]]}
    predicted, mixture = model.predict(X, **known), model.mixture_
    np.testing.assert_array_equal(predicted, model.classes_[mixture.predict(X, **known)])
    r = mixture.predict_proba(X, **known)
    np.testing.assert_array_equal(model.predict_proba(X, **known), r)
    assert predicted[0] != predicted[1] != predicted[2]
    with pytest.raises(TypeError, match="labels"):
        model.predict(X, labels=y)


test_impossible_relations_of_new_points_are_refused = refused(
    lambda **known: (
        ConstrainedGaussianMixture(2, random_state=0)
        .fit(draw_groups(6, n_components=2)[0])
        .predict(draw_groups(6)[0][:5], **known)
    ),
    ({"must_link": [[0, 5]]}, r"must_link\[0\] is \[0, 5\]; it must name two points"),
    ({"cannot_link": [[0, 1], [1, 3], [3, 0]]}, "points 0, 1 and 3 are mutually"),
    ({"preferences": [[2, 4, 1e12]]}, "points 2 and 4"),
)
