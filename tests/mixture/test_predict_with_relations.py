"""New points that relations tie: a sum over all assignments; the fit on its own data."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from cgmm import (
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    SemiSupervisedGaussianClassifier,
    scenarios,
)
from cgmm.inference import ENGINES
from cgmm.network import SideInformation

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def clumps(seed, n_samples=60, n_components=3, spread=2.0):
    rng = np.random.default_rng(seed)
    z = rng.integers(n_components, size=n_samples)
    centres = spread * rng.normal(size=(n_components, 2))
    return centres[z] + rng.normal(size=(n_samples, 2)), z


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
    model.fit(X, must_link=[[0, 1], [1, 2]])
    new, known = clumps(seed + 1, 6)[0], relations(seed, 6)
    z, logs = joint_of_every_assignment(model, new, known, sampling)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    expected = np.array([[p[z[:, i] == k].sum() for k in range(n_components)] for i in range(6)])
    # Sums of at most 729 terms, in another order.
    np.testing.assert_allclose(model.predict_proba(new, **known), expected, atol=1e-10)
    chosen = (z == model.predict(new, **known)).all(axis=1)
    assert logs[chosen] == pytest.approx(logs.max(), abs=1e-9)


ENGINES_OF_A_FIT = ["auto", "spanning_tree", "gibbs", partial(ENGINES["gibbs"], n_sweeps=20)]
CHAIN = {"must_link": [[0, 1], [5, 7], [7, 9]]}


@pytest.mark.parametrize("random_state", [0, None])
@pytest.mark.parametrize("inference", ENGINES_OF_A_FIT)
@pytest.mark.parametrize("n_cannot", [0, 4])
def test_the_fit_on_its_own_points_is_the_fit(inference, random_state, n_cannot):
    """Also with settings that were changed since."""
    X, z = clumps(1)
    cannot = scenarios.random_pairs(z, 30, random_state=0).cannot_link[:n_cannot]
    known = CHAIN | {"cannot_link": cannot, "preferences": [[20, 21, 0.4]]} if n_cannot else CHAIN
    model = ConstrainedGaussianMixture(3, inference=inference, random_state=random_state)
    model.fit(X, **known).set_params(sampling="chunklets", inference="pairs", n_components=2)
    np.testing.assert_array_equal(model.predict_proba(X, **known), model.responsibilities_)
    np.testing.assert_array_equal(model.predict(X, **known), model.labels_)
    codes = (X > 0).astype(int)
    model = ConstrainedCategoricalMixture(3, random_state=0).fit(codes, **known)
    np.testing.assert_array_equal(model.predict_proba(codes, **known), model.responsibilities_)


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


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"must_link": [[0, 5]]}, r"must_link\[0\] is \[0, 5\]; it must name two points"),
        ({"cannot_link": [[0, 1], [1, 3], [3, 0]]}, "points 0, 1 and 3 are mutually"),
        ({"preferences": [[2, 4, 1e12]]}, "points 2 and 4"),
    ],
)
def test_what_cannot_be_is_refused_by_the_names_of_points(known, message):
    X, _ = clumps(6, n_components=2)
    model = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    for method in (model.predict, model.predict_proba):
        with pytest.raises(ValueError, match=message):
            method(X[:5], **known)


def test_labels_are_not_for_prediction_and_an_unfitted_model_says_so():
    X, _ = clumps(7)
    model = ConstrainedGaussianMixture(3, random_state=0)
    with pytest.raises(NotFittedError):
        model.predict(X, cannot_link=[[0, 1]])
    model.fit(X)
    with pytest.raises(TypeError, match="labels"):
        model.predict(X, labels=np.full(len(X), -1))
