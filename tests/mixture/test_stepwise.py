"""Test stepwise EM, ``partial_fit``: its first step, sums over batches, and refused batches.

The book's pages on large data assert that many small steps reach the optimum of EM.
"""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixture_problems import assert_same_parameters

from cgmm import ConstrainedCategoricalMixture, ConstrainedGaussianMixture
from cgmm.mixture import POOLINGS, from_responsibilities

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N, K, D = 3000, 3, 2


def draw_clumps(seed=0, n_points=N):
    """Return a generator, points of three clumps, and the clump of each point."""
    rng = np.random.default_rng(seed)
    z = rng.choice(K, p=[0.5, 0.3, 0.2], size=n_points)
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    return rng, rng.normal(size=(n_points, D)) + centres[z], z


def make_mixture(X, covariance_type="full", offset=0.0, **options):
    """Return an estimator with fixed initial weights and means, and covariances from X."""
    pool = POOLINGS[covariance_type]
    means = np.array([[-1.0, 0.0], [3.0, 1.0], [1.0, 3.0]]) + offset
    start = from_responsibilities(X, np.eye(K)[np.arange(len(X)) % K], pool)
    return ConstrainedGaussianMixture(
        K, covariance_type=covariance_type, weights_init=np.full(K, 1 / K), means_init=means,
        covariances_init=pool.reduce(start.covariances), **options,
    )  # fmt: skip


# ------------------------------------------------------------------ steps


@pytest.mark.parametrize("known", ["nothing", "labels", "weights"])
@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_first_step_equals_an_iteration_of_em(covariance_type, known):
    rng, X, z = draw_clumps()
    known = {
        "nothing": {},
        "labels": {"labels": np.where(rng.uniform(size=N) < 0.1, z, -1)},
        "weights": {"sample_weight": rng.integers(0, 3, size=N)},
    }[known]
    expected = make_mixture(X, covariance_type, max_iter=1).fit(X, **known).parameters_
    model = make_mixture(X, covariance_type).partial_fit(X, **known)
    assert_same_parameters(model.parameters_, expected, rtol=1e-11, atol=1e-12)
    assert model.n_steps_ == 1
    assert model.n_samples_seen_ == known.get("sample_weight", np.ones(N)).sum()


@pytest.mark.parametrize("family", [*POOLINGS, "categorical"])
@given(seed=st.integers(0, 10**6), offset=st.sampled_from([0.0, 1e5]))
def test_fully_labelled_batches_add_up_to_one_step_over_all_points(family, seed, offset):
    """Steps of size 1 / t over equal batches are a running mean, equal to one step over all points.

    Pseudo-counts must be added once, and not once for each batch.
    """
    _, X, _ = draw_clumps(seed, n_points=120)
    z, X = np.arange(120) % K, X + offset
    make = partial(make_mixture, X, family, offset)
    if family == "categorical":
        X, settings = (2 + offset < X).astype(int), {"n_categories": [2, 2], "pseudo_count": 5.0}
        make = partial(ConstrainedCategoricalMixture, K, random_state=0, **settings)
    whole, batches = make().partial_fit(X, labels=z), make(step_exponent=1)
    for batch in np.split(np.arange(120), 5):
        batches.partial_fit(X[batch], labels=z[batch])
    assert_same_parameters(
        batches.parameters_, whole.parameters_, rtol=1e-9, atol=1e-9 * (1 + offset / 1e4)
    )
    assert (batches.n_steps_, batches.n_samples_seen_) == (5, 120)


# ------------------------------------------------------------------ conventions


def test_fit_forgets_previous_steps_and_a_step_continues_a_fit():
    _, X, _ = draw_clumps()
    fresh, used = (make_mixture(X, max_iter=3, tol=0) for _ in range(2))
    used.partial_fit(X[:100]).partial_fit(X[100:300])
    np.testing.assert_equal(used.fit(X).parameters_, fresh.fit(X).parameters_)
    assert not {"n_steps_", "n_samples_seen_"} & set(vars(used))
    # The first step after a fit has size one, so it equals another iteration of EM.
    continued = make_mixture(X, max_iter=4, tol=0).fit(X)
    assert_same_parameters(used.partial_fit(X).parameters_, continued.parameters_, rtol=1e-10)
    assert used.n_steps_ == 1
    assert not {"history_", "log_evidence_", "responsibilities_", "inference_"} & set(vars(used))


def test_model_after_steps_predicts_and_continues_after_pickling():
    _, X, z = draw_clumps()
    model = make_mixture(X).partial_fit(X[:300]).partial_fit(X[300:600])
    assert (model.labels_ == z[300:600]).mean() > 0.9
    assert model.predict([[0.0, 0.0], [4.0, 0.0]], cannot_link=[[0, 1]]).tolist() == [0, 1]
    copy = pickle.loads(pickle.dumps(model))
    copy.partial_fit(X[600:])
    np.testing.assert_equal(copy.parameters_, model.partial_fit(X[600:]).parameters_)


def test_partial_fit_without_a_start_initialises_from_the_first_batch():
    _, X, _ = draw_clumps()
    model = ConstrainedGaussianMixture(K, random_state=0)
    for batch in np.split(np.arange(N), 10):
        model.partial_fit(X[batch])
    np.testing.assert_allclose(np.sort(model.weights_), [0.2, 0.3, 0.5], atol=0.05)


def test_a_refused_batch_leaves_the_parameters_unchanged():
    _, X, _ = draw_clumps()
    model = make_mixture(X).partial_fit(X)
    before = model.parameters_
    with pytest.raises(ValueError, match="row 7 of X is empty"):
        model.partial_fit(np.where(np.arange(N)[:, None] == 7, np.nan, X))
    np.testing.assert_equal(model.parameters_, before)
