"""New points that relations tie: a sum over all assignments; the fit on its own data."""

import itertools
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from cgmm import (
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    SemiSupervisedGaussianClassifier,
    scenarios,
)
from cgmm.inference import ENGINES
from cgmm.metrics import broken_relations
from cgmm.network import SideInformation


def clumps(seed, n_samples=60, n_components=3, spread=2.0):
    rng = np.random.default_rng(seed)
    z = rng.integers(n_components, size=n_samples)
    centres = spread * rng.normal(size=(n_components, 2))
    return centres[z] + rng.normal(size=(n_samples, 2)), z


def quiet(method, *args, **known):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return method(*args, **known)


def relations(seed, n):
    """A must-link, a cannot-link and preferences among n points."""
    rng = np.random.default_rng(seed)
    i = rng.permutation(n)
    soft = rng.integers(n, size=(4, 2))
    soft = soft[soft[:, 0] != soft[:, 1]]
    return {
        "must_link": [[i[0], i[1]]], "cannot_link": [[i[1], i[2]], [i[3], i[2]]],
        "preferences": np.column_stack([soft, 2 * rng.normal(size=len(soft))]),
    }  # fmt: skip


def joint_of_every_assignment(model, X, known, sampling):
    """(A, n) all assignments of the points, and the logarithms (A,) of their joint weights."""
    n_components = len(model.weights_)
    z = np.array(list(itertools.product(range(n_components), repeat=len(X))))
    densities = model._parameters().log_density(X)
    logs = densities[np.arange(len(X)), z].sum(axis=1)
    counted = np.arange(len(X))
    if sampling == "chunklets":  # one weight a chunklet: that of its first point
        counted = np.unique(SideInformation.build(len(X), **known).node_of, return_index=True)[1]
    logs += np.log(model.weights_)[z[:, counted]].sum(axis=1)
    for i, j in known["must_link"]:
        logs[z[:, i] != z[:, j]] = -np.inf
    for i, j in known["cannot_link"]:
        logs[z[:, i] == z[:, j]] = -np.inf
    for i, j, w in known["preferences"]:
        logs += w * (z[:, int(i)] == z[:, int(j)])
    return z, logs


# ------------------------------------------------------------------ oracles


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    n_components=st.integers(2, 3),
    sampling=st.sampled_from(["points", "chunklets"]),
)
def test_predictions_are_those_of_the_sum_over_all_assignments(seed, n_components, sampling):
    X, _ = clumps(seed, n_components=n_components)
    model = ConstrainedGaussianMixture(
        n_components, sampling=sampling, random_state=0, reg_covar=1e-2
    )
    quiet(model.fit, X, must_link=[[0, 1], [1, 2]])
    new, known = clumps(seed + 1, 6)[0], relations(seed, 6)
    z, logs = joint_of_every_assignment(model, new, known, sampling)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    expected = np.array([[p[z[:, i] == k].sum() for k in range(n_components)] for i in range(6)])
    # Sums of at most 729 terms, in another order.
    np.testing.assert_allclose(model.predict_proba(new, **known), expected, atol=1e-10)
    chosen = (z == model.predict(new, **known)).all(axis=1)
    assert logs[chosen] == pytest.approx(logs.max(), abs=1e-9)


ASKED = ["auto", "junction_tree", "spanning_tree", "gibbs", "mean_field"]


@pytest.mark.each_value
@pytest.mark.parametrize("inference", [*ASKED, partial(ENGINES["gibbs"], n_sweeps=20)])
@pytest.mark.parametrize("random_state", [0, None])
def test_the_fit_on_its_own_points_is_the_fit(inference, random_state):
    X, z = clumps(1)
    links = scenarios.random_pairs(z, 30, random_state=0)
    known = {"must_link": links.must_link, "cannot_link": links.cannot_link}
    if inference == "mean_field":
        known = {"must_link": links.must_link, "preferences": [[0, 1, 2.0], [1, 2, -3.0]]}
    model = ConstrainedGaussianMixture(3, inference=inference, random_state=random_state)
    quiet(model.fit, X, **known)
    proba = quiet(model.predict_proba, X, **known)
    np.testing.assert_array_equal(proba, model.responsibilities_)
    np.testing.assert_array_equal(quiet(model.predict, X, **known), model.labels_)


@pytest.mark.parametrize("known", [{"must_link": [[0, 1], [5, 7], [7, 9]]}, {"must_link": []}])
def test_chunklets_alone_come_back_in_the_order_given(known):
    X, _ = clumps(2)
    model = ConstrainedGaussianMixture(3, random_state=0)
    quiet(model.fit, X, **known)
    np.testing.assert_array_equal(model.predict_proba(X, **known), model.responsibilities_)
    np.testing.assert_array_equal(model.predict(X, **known), model.labels_)


def test_relations_that_say_nothing_change_nothing():
    X, _ = clumps(3)
    model = quiet(ConstrainedGaussianMixture(3, random_state=0).fit, X)
    nothing = {"must_link": [[4, 4]], "cannot_link": np.empty((0, 2)), "preferences": [[0, 1, 0.0]]}
    np.testing.assert_array_equal(model.predict(X, **nothing), model.predict(X))
    np.testing.assert_allclose(
        model.predict_proba(X, **nothing), model.predict_proba(X), rtol=1e-12
    )


def test_a_sure_point_pulls_its_friend_and_pushes_its_foe():
    X = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]])
    model = ConstrainedGaussianMixture(2, means_init=[[1.0], [9.0]]).fit(X)
    new = [[1.0], [5.2]]
    alone = model.predict_proba(new)[1, 0]
    for sign, w in itertools.product((1, -1), (0.5, 1.0, 2.0)):
        told = model.predict_proba(new, preferences=[[0, 1, sign * w]])[1, 0]
        # The first is sure: the log-odds of the second move by w.
        log_odds = np.log(told / (1 - told)) - np.log(alone / (1 - alone))
        assert log_odds == pytest.approx(sign * w, abs=1e-3)
    assert model.predict(new, must_link=[[0, 1]]).tolist() == [0, 0]
    assert model.predict(new, cannot_link=[[0, 1]]).tolist() == [0, 1]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_no_hard_relation_is_broken_in_prediction(seed):
    X, z = clumps(seed)
    model = quiet(ConstrainedGaussianMixture(3, random_state=0, reg_covar=1e-2).fit, X)
    links = scenarios.random_pairs(z, 25, random_state=seed)
    known = {"must_link": links.must_link, "cannot_link": links.cannot_link}
    labels = model.predict(X, **known)
    assert sum(broken_relations(labels, links.must_link, links.cannot_link)) == 0
    assert (model.predict_proba(X, **known)[np.arange(len(X)), labels] > 0).all()


# ------------------------------------------------------------------ the other estimators


def test_the_classifier_answers_in_its_names():
    X, z = clumps(4, spread=4.0)
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


def test_the_classifier_of_relations_alone_repeats_its_training():
    X, z = clumps(5, spread=4.0)
    links = scenarios.random_pairs(z, 30, random_state=0)
    known = {"must_link": links.must_link, "cannot_link": links.cannot_link}
    y = np.where(np.arange(len(X)) < 9, z, -1)
    model = SemiSupervisedGaussianClassifier().fit(X, y, **known)
    told = model.predict(X, **known)
    # The labels of training points are not repeated: those that they decide may differ.
    assert np.mean(told == model.transduction_) > 0.9
    assert sum(broken_relations(told, links.must_link, links.cannot_link)) == 0


def test_categories_have_it_too():
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=40)
    X = np.where(rng.random((40, 5)) < 0.8, z[:, None], 1 - z[:, None])
    known = {"must_link": [[0, 1]], "cannot_link": [[1, 2], [2, 3]]}
    model = ConstrainedCategoricalMixture(2, random_state=0)
    quiet(model.fit, X, **known)
    np.testing.assert_array_equal(model.predict(X, **known), model.labels_)
    np.testing.assert_array_equal(model.predict_proba(X, **known), model.responsibilities_)


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"must_link": [[0, 5]]}, r"must_link\[0\] is \[0, 5\]; it must name two points"),
        ({"must_link": [[0, 1]], "cannot_link": [[0, 1]]}, "point"),
        ({"cannot_link": [[0, 1], [1, 3], [3, 0]]}, "points 0, 1 and 3 are mutually"),
        ({"cannot_link": [[i, (i + 1) % 5] for i in range(5)]}, "points? "),
        ({"preferences": [[2, 4, 1e12]]}, "points 2 and 4"),
    ],
)
def test_what_cannot_be_is_refused_by_the_names_of_points(method, known, message):
    X, _ = clumps(6, n_components=2)
    model = quiet(ConstrainedGaussianMixture(2, random_state=0).fit, X)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X[:5], **known)


def test_labels_are_not_for_prediction_and_an_unfitted_model_says_so():
    X, _ = clumps(7)
    model = ConstrainedGaussianMixture(3, random_state=0)
    with pytest.raises(NotFittedError):
        model.predict(X, cannot_link=[[0, 1]])
    quiet(model.fit, X)
    with pytest.raises(TypeError, match="labels"):
        model.predict(X, labels=np.full(len(X), -1))


def test_settings_changed_after_the_fit_do_not_change_it():
    X, _ = clumps(8)
    known = {"must_link": [[0, 1], [1, 2]], "cannot_link": [[2, 3]]}
    model = ConstrainedGaussianMixture(3, random_state=0)
    quiet(model.fit, X, **known)
    model.set_params(sampling="chunklets", inference="pairs", n_components=2)
    np.testing.assert_array_equal(model.predict_proba(X, **known), model.responsibilities_)
