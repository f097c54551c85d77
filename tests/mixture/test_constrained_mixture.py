"""Test the estimator with side information: reductions, contracts, and refusals."""

from functools import partial
from unittest import mock

import numpy as np
import pytest
from mixture_problems import groups
from refusals import refused

from cgmm import (
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    SemiSupervisedGaussianClassifier,
    scenarios,
)
from cgmm.inference import ENGINES
from cgmm.mixture import UPDATES

# ------------------------------------------------------------------ reductions


@pytest.mark.parametrize("weights", UPDATES)
def test_relations_of_weight_zero_change_nothing(weights):
    X, _ = groups(0)
    model = ConstrainedGaussianMixture(3, weights=weights, random_state=0)
    plain = model.fit(X)
    expected = plain.means_, plain.log_evidence_, plain.labels_
    empty = np.empty((0, 2), dtype=int)
    known = {
        "labels": np.full(len(X), -1), "must_link": [[4, 4]], "cannot_link": empty,
        "preferences": [[0, 1, 0.0]],
    }  # fmt: skip
    fitted = model.fit(X, **known)
    # "grid" is asked for only where the normaliser depends on the weights; here it is not.
    atol = 0.02 if weights == "grid" else 1e-6
    np.testing.assert_allclose(fitted.means_, expected[0], atol=atol)
    assert fitted.log_evidence_ == pytest.approx(expected[1], abs=atol * len(X))
    np.testing.assert_array_equal(fitted.labels_, expected[2])


# ------------------------------------------------------------------ refusals


def before_any_iteration(**known):
    with mock.patch("cgmm.mixture.problem.em", side_effect=AssertionError("an iteration was made")):
        ConstrainedGaussianMixture(2).fit(groups(10)[0], **known)


TRIANGLE = [[20, 30], [30, 40], [20, 12]]
test_contradictions_are_found_before_any_iteration = refused(
    before_any_iteration,
    # Nodes are numbered by first points: the three chunklets are nodes 10, 11 and 12.
    (
        {"must_link": [[10, 20], [30, 11], [40, 12]], "cannot_link": TRIANGLE},
        "points 10, 11 and 12 are mutually",
    ),
    ({"cannot_link": [[i, (i + 1) % 5] for i in range(5)]}, "points 0, 1, 2, 3 and 4"),
    ({"labels": 60 * [2]}, "n_components=3 or more"),
    ({"labels": [0, -1, 1] + 57 * [-1], "cannot_link": [[0, 1], [1, 2]]}, "points 2, 0 and 1"),
)


@pytest.mark.parametrize("odds", [2e9, -2e9])
def test_log_odds_beyond_the_digits_of_the_points_are_refused(odds):
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match=r"points 1 and 4,.*log-odds of -?2e\+09"):
        ConstrainedGaussianMixture(2).fit(X, preferences=[[0, 2, 1.0], [4, 1, odds]])
    # A billion is the most, and two halves of it add up; the other remedy is a hard relation.
    for rows in ([[4, 1, odds / 4], [1, 4, odds / 4]], [[4, 1, np.inf * odds]]):
        ConstrainedGaussianMixture(2, random_state=0).fit(X, preferences=rows)


# ------------------------------------------------------------------ new points

ENGINES_OF_A_FIT = ["auto", "spanning_tree", "gibbs", partial(ENGINES["gibbs"], n_sweeps=20)]
CHAIN = {"must_link": [[0, 1], [5, 7], [7, 9]]}


@pytest.mark.parametrize("random_state", [0, None])
@pytest.mark.parametrize("inference", ENGINES_OF_A_FIT)
@pytest.mark.parametrize("n_cannot", [0, 4])
def test_predictions_for_the_training_points_equal_the_fit(inference, random_state, n_cannot):
    """This also holds after settings have been changed."""
    X, z = groups(1)
    cannot = scenarios.random_pairs(z, 30, random_state=0).cannot_link[:n_cannot]
    known = CHAIN | {"cannot_link": cannot, "preferences": [[20, 21, 0.4]]} if n_cannot else CHAIN
    model = ConstrainedGaussianMixture(3, inference=inference, random_state=random_state)
    model.fit(X, **known).set_params(sampling="chunklets", inference="pairs", n_components=2)
    np.testing.assert_array_equal(model.predict_proba(X, **known), model.responsibilities_)
    np.testing.assert_array_equal(model.predict(X, **known), model.labels_)
    codes = (X > 0).astype(int)
    model = ConstrainedCategoricalMixture(3, random_state=0).fit(codes, **known)
    np.testing.assert_array_equal(model.predict_proba(codes, **known), model.responsibilities_)


def test_the_classifier_predicts_class_names():
    X, z = groups(4, spread=4.0)
    names = np.array(["c", "a", "b"])
    y = names[z].astype(object)
    y[20:] = -1
    model = SemiSupervisedGaussianClassifier().fit(X, y)
    known = {"cannot_link": [[0, 1], [1, 2]], "preferences": [[3, 4, -5.0]]}
    inner = model.mixture_
    np.testing.assert_array_equal(
        model.predict(X, **known), model.classes_[inner.predict(X, **known)]
    )
    np.testing.assert_array_equal(model.predict_proba(X, **known), inner.predict_proba(X, **known))
    z = model.predict(X, **known)
    assert z[0] != z[1] != z[2]
    with pytest.raises(TypeError, match="labels"):
        model.predict(X, labels=y)


test_what_cannot_be_is_refused_by_the_names_of_points = refused(
    lambda **known: (
        ConstrainedGaussianMixture(2, random_state=0)
        .fit(groups(6, n_components=2)[0])
        .predict(groups(6)[0][:5], **known)
    ),
    ({"must_link": [[0, 5]]}, r"must_link\[0\] is \[0, 5\]; it must name two points"),
    ({"cannot_link": [[0, 1], [1, 3], [3, 0]]}, "points 0, 1 and 3 are mutually"),
    ({"preferences": [[2, 4, 1e12]]}, "points 2 and 4"),
)
