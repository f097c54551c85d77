"""Test fits with a prior on the covariances: the M-step, EM, and a sample of twelve points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_problems import draw_groups, draw_side_information
from refusals import refused
from scipy.stats import invwishart

from cgmm import ConstrainedGaussianMixture
from cgmm.mixture import POOLINGS, log_joint
from cgmm.mixture.pooling import CovariancePrior

PRIOR = CovariancePrior(4.0, np.array([[0.5, 0.1], [0.1, 0.3]]))


def compute_objective(family, X, r, theta):
    """Return the objective of the M-step: expected log-likelihood plus log-prior of covariances."""
    return (r * log_joint(X, theta)).sum() + family.log_prior(theta)


@pytest.mark.parametrize("prior", [None, PRIOR])
@pytest.mark.parametrize("covariance_type", POOLINGS)
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_m_step_maximises_the_expected_log_likelihood_plus_log_prior(covariance_type, prior, seed):
    """No parameters of the same covariance type, drawn near the result, have a higher objective."""
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(20, 2)), rng.dirichlet(np.ones(3), 20)
    family = POOLINGS[covariance_type]._replace(prior=prior)
    theta = family.start(X, r)
    highest = compute_objective(family, X, r, theta)
    for _ in range(20):
        other_r = r * np.exp(rng.normal(scale=0.03, size=r.shape))
        nearby = family.start(X, other_r / other_r.sum(axis=1, keepdims=True))
        covariances = nearby.covariances * np.exp(rng.normal(scale=0.03))
        nearby = nearby._replace(weights=theta.weights, covariances=covariances)
        assert compute_objective(family, X, r, nearby) <= highest + 1e-9


def test_log_density_of_the_prior_equals_scipy():
    covariances = np.array([[[1.0, 0.2], [0.2, 0.5]], [[0.3, 0.0], [0.0, 2.0]]])
    scipys = invwishart(df=PRIOR.degrees, scale=PRIOR.scale)
    ours = [PRIOR.log_density(S[None], shared=False) for S in covariances]
    assert np.diff(ours) == pytest.approx(np.diff([scipys.logpdf(S) for S in covariances]))
    assert PRIOR.log_density(covariances, shared=False) == pytest.approx(sum(ours))
    assert PRIOR.log_density(covariances, shared=True) == pytest.approx(ours[0])


@pytest.mark.parametrize("kind", ["nothing", "labels", "cannot"])
@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_em_never_lowers_evidence_times_prior(covariance_type, kind):
    X, z = draw_groups(3, 40)
    known = draw_side_information(np.random.default_rng(3), z, kind)
    scores = []
    for n_iter in range(1, 12):
        model = ConstrainedGaussianMixture(
            3, covariance_type=covariance_type, covariance_prior=tuple(PRIOR), reg_covar=0.0, tol=0,
            max_iter=n_iter, init_params="random_from_data", random_state=1,
        )  # fmt: skip
        with pytest.warns():
            model.fit(X, **known)
        scores.append(model.log_evidence_ + model._log_prior(model.parameters_))
    assert np.diff(scores).min() > -1e-9
    assert scores[-1] > scores[0] + 1e-3


def test_fraley_raftery_prior_keeps_covariances_of_a_small_sample_regular():
    """Without a prior the covariances of four points in three dimensions would become singular."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3)) + 6 * np.repeat(np.eye(3), 4, axis=0)
    model = ConstrainedGaussianMixture(
        3, covariance_prior="fraley-raftery", reg_covar=0.0, random_state=0
    ).fit(X)
    covariances = model.covariances_
    assert np.linalg.eigvalsh(covariances).min() > 0.05
    expected_scale = np.cov(X.T) / 3 ** (2 / 3)
    assert model._prior[0] == 5
    np.testing.assert_allclose(model._prior[1], expected_scale)
    model.set_params(covariance_prior=(5, expected_scale)).fit(X)
    np.testing.assert_allclose(model.covariances_, covariances)


test_invalid_covariance_priors_are_refused = refused(
    lambda prior: ConstrainedGaussianMixture(2, covariance_prior=prior).fit(draw_groups()[0]),
    ((3, np.eye(3)), r"\(2, 2\)"),
    ((-1, np.eye(2)), "ν ≥ 0"),
    ((3, -np.eye(2)), "positive"),
    ("wishart", "covariance_prior"),
)
