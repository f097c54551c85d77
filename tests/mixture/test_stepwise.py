"""Test stepwise EM: a step of size one is an iteration of EM, and batches add up.

That many small steps lead where EM leads is asserted in the book, behind large data.
"""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixture_problems import assert_same_theta

from cgmm import ConstrainedCategoricalMixture, ConstrainedGaussianMixture
from cgmm.mixture import POOLINGS, from_responsibilities

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N, K, D = 3000, 3, 2


def clumps(seed=0, n_points=N):
    rng = np.random.default_rng(seed)
    z = rng.choice(K, p=[0.5, 0.3, 0.2], size=n_points)
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    return rng, rng.normal(size=(n_points, D)) + centres[z], z


def gaussians(X, covariance_type="full", offset=0.0, **options):
    """Return an estimator with a start that does not depend on the batch."""
    pool = POOLINGS[covariance_type]
    means = np.array([[-1.0, 0.0], [3.0, 1.0], [1.0, 3.0]]) + offset
    start = from_responsibilities(X, np.eye(K)[np.arange(len(X)) % K], pool)
    return ConstrainedGaussianMixture(
        K, covariance_type=covariance_type, weights_init=np.full(K, 1 / K), means_init=means,
        covariances_init=pool.reduce(start.covariances), **options,
    )  # fmt: skip


# ------------------------------------------------------------------ a step


@pytest.mark.parametrize("known", ["nothing", "labels", "weights"])
@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_the_first_step_is_an_iteration_of_em(covariance_type, known):
    rng, X, z = clumps()
    known = {
        "nothing": {},
        "labels": {"labels": np.where(rng.uniform(size=N) < 0.1, z, -1)},
        "weights": {"sample_weight": rng.integers(0, 3, size=N)},
    }[known]
    one = gaussians(X, covariance_type, max_iter=1)
    two = gaussians(X, covariance_type).partial_fit(X, **known)
    assert_same_theta(two.parameters_, one.fit(X, **known).parameters_, rtol=1e-11, atol=1e-12)
    assert (two.n_steps_, two.n_samples_seen_) == (1, known.get("sample_weight", np.ones(N)).sum())


@pytest.mark.parametrize("family", [*POOLINGS, "categorical"])
@given(seed=st.integers(0, 10**6), offset=st.sampled_from([0.0, 1e5]))
def test_with_every_label_known_batches_add_up_to_the_whole(family, seed, offset):
    """Steps 1/t of equal batches are a running mean, which does not depend on their order.

    Pseudo-counts fade as they would were all points there, not once for each batch.
    """
    _, X, _ = clumps(seed, n_points=120)
    z, X = np.arange(120) % K, X + offset
    make = partial(gaussians, X, family, offset)
    if family == "categorical":
        X, counts = (2 + offset < X).astype(int), {"n_categories": [2, 2], "pseudo_count": 5.0}
        make = partial(ConstrainedCategoricalMixture, K, random_state=0, **counts)
    whole, parts = make().partial_fit(X, labels=z), make(step_exponent=1)
    for batch in np.split(np.arange(120), 5):
        parts.partial_fit(X[batch], labels=z[batch])
    assert_same_theta(
        parts.parameters_, whole.parameters_, rtol=1e-9, atol=1e-9 * (1 + offset / 1e4)
    )
    assert (parts.n_steps_, parts.n_samples_seen_) == (5, 120)


# ------------------------------------------------------------------ conventions


def test_fit_begins_anew_and_a_step_goes_on_from_a_fit():
    _, X, _ = clumps()
    fresh, used = (gaussians(X, max_iter=3, tol=0) for _ in range(2))
    used.partial_fit(X[:100]).partial_fit(X[100:300])
    np.testing.assert_equal(used.fit(X).parameters_, fresh.fit(X).parameters_)
    assert not {"n_steps_", "n_samples_seen_"} & set(vars(used))
    # From the parameters of the fit, all the way to what the batch says.
    on = gaussians(X, max_iter=4, tol=0).fit(X)
    assert_same_theta(used.partial_fit(X).parameters_, on.parameters_, rtol=1e-10)
    assert used.n_steps_ == 1
    assert not {"history_", "log_evidence_", "responsibilities_", "inference_"} & set(vars(used))


def test_a_stepwise_model_can_predict_be_copied_and_continue():
    _, X, z = clumps()
    model = gaussians(X).partial_fit(X[:300]).partial_fit(X[300:600])
    assert (model.labels_ == z[300:600]).mean() > 0.9
    assert model.predict([[0.0, 0.0], [4.0, 0.0]], cannot_link=[[0, 1]]).tolist() == [0, 1]
    copy = pickle.loads(pickle.dumps(model))
    copy.partial_fit(X[600:])
    np.testing.assert_equal(copy.parameters_, model.partial_fit(X[600:]).parameters_)


def test_partial_fit_starts_from_its_first_batch():
    _, X, _ = clumps()
    model = ConstrainedGaussianMixture(K, random_state=0)
    for batch in np.split(np.arange(N), 10):
        model.partial_fit(X[batch])
    np.testing.assert_allclose(np.sort(model.weights_), [0.2, 0.3, 0.5], atol=0.05)


def test_a_later_batch_that_does_not_fit_is_refused():
    _, X, _ = clumps()
    model = gaussians(X).partial_fit(X)
    before = model.parameters_
    with pytest.raises(ValueError, match="row 7 of X is empty"):
        model.partial_fit(np.where(np.arange(N)[:, None] == 7, np.nan, X))
    np.testing.assert_equal(model.parameters_, before)
