"""Test the prior of covariances: its M-step is a maximum, EM ascends, small samples gain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_problems import groups, what_is_known
from refusals import refused
from scipy.stats import invwishart

from cgmm import ConstrainedGaussianMixture
from cgmm.mixture import POOLINGS, Parameters, log_joint
from cgmm.mixture.pooling import CovariancePrior

PRIOR = CovariancePrior(4.0, np.array([[0.5, 0.1], [0.1, 0.3]]))


def penalised_bound(family, X, r, theta):
    """Return the bound's part that depends on means and covariances, plus the prior."""
    return (r * log_joint(X, theta)).sum() + family.log_prior(theta)


def perturb(theta, covariance_type, rng):
    """Return parameters nearby, with covariances of the same type."""
    means = theta.means + rng.normal(scale=0.02, size=theta.means.shape)
    factor = np.exp(rng.normal(scale=0.03, size=len(means)))
    if covariance_type == "tied":
        factor[:] = factor[0]
    shape = (-1, *[1] * (theta.covariances.ndim - 1))
    covariances = theta.covariances * factor.reshape(shape)
    if covariance_type == "diag":
        covariances = covariances * np.exp(rng.normal(scale=0.03, size=covariances.shape))
    return Parameters(theta.weights, means, covariances)


@pytest.mark.parametrize("covariance_type", POOLINGS)
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_the_m_step_is_a_maximum(covariance_type, seed):
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(20, 2)), rng.dirichlet(np.ones(3), 20)
    family = POOLINGS[covariance_type]._replace(prior=PRIOR)
    theta = family.start(X, r)
    highest = penalised_bound(family, X, r, theta)
    for _ in range(10):
        assert penalised_bound(family, X, r, perturb(theta, covariance_type, rng)) <= highest + 1e-9


def test_the_density_is_that_of_scipy():
    covariances = np.array([[[1.0, 0.2], [0.2, 0.5]], [[0.3, 0.0], [0.0, 2.0]]])
    scipys = invwishart(df=PRIOR.degrees, scale=PRIOR.scale)
    ours = [PRIOR.log_density(S[None], shared=False) for S in covariances]
    assert np.diff(ours) == pytest.approx(np.diff([scipys.logpdf(S) for S in covariances]))
    assert PRIOR.log_density(covariances, shared=False) == pytest.approx(sum(ours))
    assert PRIOR.log_density(covariances, shared=True) == pytest.approx(ours[0])


@pytest.mark.parametrize("kind", ["nothing", "labels", "cannot"])
@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_evidence_and_prior_never_fall(covariance_type, kind):
    X, z = groups(3, 40)
    known = what_is_known(np.random.default_rng(3), z, kind)
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


def test_the_fraley_raftery_prior_helps_with_few_points():
    """Four points a class in three columns: without a prior, covariances collapse."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3)) + 6 * np.repeat(np.eye(3), 4, axis=0)
    model = ConstrainedGaussianMixture(
        3, covariance_prior="fraley-raftery", reg_covar=0.0, random_state=0
    ).fit(X)
    smallest = np.linalg.eigvalsh(model.covariances_).min()
    assert smallest > 0.05
    whole = np.cov(X.T) / 3 ** (2 / 3)
    nu, scale = model._prior
    assert nu == 5
    np.testing.assert_allclose(scale, whole)
    same = model.set_params(covariance_prior=(5, whole)).fit(X)
    np.testing.assert_allclose(same.covariances_, model.covariances_)


test_what_is_no_prior_is_refused = refused(
    lambda given: ConstrainedGaussianMixture(2, covariance_prior=given).fit(groups()[0]),
    ((3, np.eye(3)), r"\(2, 2\)"),
    ((-1, np.eye(2)), "ν ≥ 0"),
    ((3, -np.eye(2)), "positive"),
    ("wishart", "covariance_prior"),
)
