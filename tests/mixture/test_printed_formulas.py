"""Check errata about the formulas of EM in the lecture notes [schmidt2016] and [green]."""

from itertools import islice

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cgmm import datasets
from cgmm.primer import Theta, em, full, log_joint, m_step, moments, responsibilities

X = datasets.two_clusters().X
START = Theta(np.full(2, 0.5), np.array([[-1.0, 2.0], [1.0, -2.0]]), 4 * np.array([np.eye(2)] * 2))


@pytest.fixture(scope="module")
def converged_fit():
    """Return the parameters after 60 iterations of EM, and their responsibilities."""
    theta = list(em(X, START, full, 60))[-1][0]
    return theta, responsibilities(log_joint(X, theta))[0]


def test_expected_log_likelihood_has_no_minimum(converged_fit):
    theta, r = converged_fit
    for shift in (1, 10, 100):
        moved = theta._replace(means=theta.means + shift)
        assert np.sum(r * (log_joint(X, moved) - log_joint(X, theta))) < -100 * shift


def test_the_printed_sign_is_that_of_minus_the_log_density(converged_fit):
    mu, S = converged_fit[0].means[0], converged_fit[0].covariances[0]
    printed = 0.5 * np.sum((X - mu) @ np.linalg.inv(S) * (X - mu), axis=1)
    true = multivariate_normal(mu, S).logpdf(X)
    # Up to a constant the printed term is the negative of the log-density.
    assert np.ptp(true + printed) < 1e-9 < 1 < np.ptp(true - printed)


def test_covariance_needs_the_responsibilities_of_each_point(converged_fit):
    _, r = converged_fit
    N_k, mu, S = moments(X, r)
    h = X - mu[0]
    np.testing.assert_allclose((r[:, 0] * h.T) @ h / N_k[0], S[0] / N_k[0], atol=1e-12)
    for r_i in r[:, 0]:
        assert not np.allclose(r_i * h.T @ h / N_k[0], S[0] / N_k[0], rtol=0.1)


def test_posterior_with_a_wrong_index_is_no_distribution(converged_fit):
    _, r = converged_fit
    assert np.sum(r ** len(X), axis=1).min() < 1e-6


def test_responsibilities_of_a_point_sum_to_one(converged_fit):
    _, r = converged_fit
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-12)
    # With the expectation 1 for every point and component the weights would sum to K = 2.
    assert m_step(X, np.ones_like(r), full).weights.sum() == pytest.approx(2)


def test_zero_trace_does_not_imply_the_update_of_the_covariance(converged_fit):
    N_k, _, S = moments(X, converged_fit[1])
    update = S[0] / N_k[0]
    spherical = np.trace(update) / 2 * np.eye(2)
    for solution in (update, spherical):
        inverse = np.linalg.inv(solution)
        assert np.trace(inverse @ update @ inverse - inverse) == pytest.approx(0, abs=1e-9)
    assert not np.allclose(update, spherical, atol=0.1)


def test_em_does_not_leave_a_stationary_point():
    equal_means = START._replace(means=np.zeros((2, 2)))
    history = [log_evidence for _, log_evidence in islice(em(X, equal_means, full, 40), 1, None)]
    assert np.ptp(history) < 1e-9
