"""Test `fit_answers`, which fits a mixture to points and answers by their joint likelihood."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from cgmm import ConstrainedGaussianMixture
from cgmm.decide import fit_answers, joint
from cgmm.mixture import log_joint


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_fit_answers_maximises_the_joint_likelihood_of_points_and_answers(seed):
    """Small changes of weights or means must not increase log p(X, answers | θ)."""
    X, y = draw_classes(seed, 60)
    pairs = np.random.default_rng(seed).permutation(60)[:40].reshape(-1, 2)
    answers = np.column_stack([pairs, y[pairs[:, 0]] == y[pairs[:, 1]]])
    model = ConstrainedGaussianMixture(2, means_init=[[-1.2], [1.2]], tol=1e-9, max_iter=5000)
    fitted = fit_answers(model, X, answers, error_rate=0.05).parameters_

    def log_likelihood(theta):
        p = np.exp(log_joint(X, theta))
        a, b = p[pairs[:, 0]], p[pairs[:, 1]]
        same = (a * b).sum(axis=1)
        says_same = np.where(answers[:, 2] == 1, 0.95, 0.05)
        in_pairs = says_same * same + (1 - says_same) * (a.sum(axis=1) * b.sum(axis=1) - same)
        without_answer = np.setdiff1d(np.arange(60), pairs)
        return np.log(in_pairs).sum() + np.log(p[without_answer].sum(axis=1)).sum()

    assert joint(ConstrainedGaussianMixture(2)).weights == "ignore"
    for shift in (-1e-2, 1e-2):
        weights = fitted.weights + np.array([shift, -shift])
        means = fitted.means + np.array([[shift], [0.0]])
        for other in (fitted._replace(weights=weights), fitted._replace(means=means)):
            # EM stops at gains of 1e-9 per point; the maximum may be 1000 such gains away.
            assert log_likelihood(other) < log_likelihood(fitted) + 1e-4


def draw_classes(seed, N=300):
    """Draw points of two overlapping classes in the ratio 3 : 1, and their classes."""
    rng = np.random.default_rng(seed)
    y = (rng.random(N) < 0.25).astype(int)
    return rng.normal(size=(N, 1)) + np.where(y, 1.2, -1.2)[:, None], y


def test_fit_answers_without_answers_is_an_ordinary_fit():
    X, _ = draw_classes(0, 50)
    expected = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    fitted = fit_answers(ConstrainedGaussianMixture(2, random_state=0), X, [], error_rate=0.1)
    np.testing.assert_array_equal(fitted.means_, expected.means_)


test_fit_answers_refuses_conditional_weights_and_invalid_error_rates = refused(
    lambda weights, rate: fit_answers(
        ConstrainedGaussianMixture(2, weights=weights), np.eye(9), [[0, 1, 1]], error_rate=rate
    ),
    ("exact", 0.1, "joint likelihood"),
    ("auto", 1.2, "error_rate has 1.2"),
    ("auto", [np.nan], "error_rate has nan"),
)
