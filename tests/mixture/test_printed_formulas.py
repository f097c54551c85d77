"""Compare printed formulas of `schmidt2016` and `green` with what they must mean."""

from itertools import islice

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cgmm import datasets
from cgmm.primer import Theta, em, full, log_joint, m_step, moments, responsibilities

X = datasets.two_clusters().X
START = Theta(np.full(2, 0.5), np.array([[-1.0, 2.0], [1.0, -2.0]]), 4 * np.array([np.eye(2)] * 2))


@pytest.fixture(scope="module")
def fit_model() -> tuple[Theta, np.ndarray]:
    """Return parameters after a long run, and their responsibilities."""
    theta = list(em(X, START, full, 60))[-1][0]
    return theta, responsibilities(log_joint(X, theta))[0]


def test_q_has_no_minimum(fit_model):
    theta, r = fit_model
    for shift in (1, 10, 100):
        away = theta._replace(means=theta.means + shift)
        assert np.sum(r * (log_joint(X, away) - log_joint(X, theta))) < -100 * shift


def test_the_printed_sign_is_that_of_minus_the_log_density(fit_model):
    mu, S = fit_model[0].means[0], fit_model[0].covariances[0]
    printed = 0.5 * np.sum((X - mu) @ np.linalg.inv(S) * (X - mu), axis=1)
    true = multivariate_normal(mu, S).logpdf(X)
    # Up to terms that do not depend on the point, one is the other's negative.
    assert np.ptp(true + printed) < 1e-9 < 1 < np.ptp(true - printed)


def test_a_constant_responsibility_does_not_give_the_covariance(fit_model):
    _, r = fit_model
    N_k, mu, S = moments(X, r)
    h = X - mu[0]
    np.testing.assert_allclose((r[:, 0] * h.T) @ h / N_k[0], S[0] / N_k[0], atol=1e-12)
    for one in r[:, 0]:
        assert not np.allclose(one * h.T @ h / N_k[0], S[0] / N_k[0], rtol=0.1)


def test_the_posterior_with_one_index_throughout_is_no_distribution(fit_model):
    _, r = fit_model
    assert np.sum(r ** len(X), axis=1).min() < 1e-6


def test_an_expectation_summed_over_components_is_one(fit_model):
    _, r = fit_model
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-12)
    # With 1 for every point and component the shares would sum to K.
    assert m_step(X, np.ones_like(r), full).weights.sum() == pytest.approx(2)


def test_a_vanishing_trace_does_not_imply_the_update(fit_model):
    N_k, _, S = moments(X, fit_model[1])
    update = S[0] / N_k[0]
    ball = np.trace(update) / 2 * np.eye(2)
    for solution in (update, ball):
        inverse = np.linalg.inv(solution)
        assert np.trace(inverse @ update @ inverse - inverse) == pytest.approx(0, abs=1e-9)
    assert not np.allclose(update, ball, atol=0.1)


def test_at_a_stationary_point_em_stays():
    twins = START._replace(means=np.zeros((2, 2)))
    history = [log_evidence for _, log_evidence in islice(em(X, twins, full, 40), 1, None)]
    assert np.ptp(history) < 1e-9
