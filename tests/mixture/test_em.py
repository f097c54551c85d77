"""Test the theorems about EM: the evidence never falls, and the bound is tight at the posterior."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_problems import (
    FAMILIES,
    SIDE_INFORMATION,
    draw_groups,
    draw_points_and_start,
    draw_side_information,
    set_reg_covar,
)

from cgmm import mixture
from cgmm.inference import ENGINES
from cgmm.network import SideInformation
from cgmm.numerics import log_normalise


def draw_problem(seed, covariance_type="full"):
    """Draw points (60, 2), and initial parameters of the given covariance type."""
    rng = np.random.default_rng(seed)
    (X, _), r = draw_groups(seed, spread=rng.uniform(0, 4)), rng.dirichlet(np.ones(3), size=60)
    return X, mixture.from_responsibilities(X, r, mixture.POOLINGS[covariance_type], reg_covar=1e-3)


# ------------------------------------------------------------------ theorems


@pytest.mark.each_value
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", SIDE_INFORMATION)
@settings(max_examples=12)
@given(seed=st.integers(0, 100_000), sampling=st.sampled_from(["points", "chunklets"]))
def test_evidence_never_falls(family, kind, seed, sampling):
    """With exact updates and without ``reg_covar`` no iteration lowers the evidence."""
    rng = np.random.default_rng(seed)
    X, start, pool = draw_points_and_start(rng, family)
    known = draw_side_information(rng, rng.permutation(np.arange(60) % 3), kind)
    side, auto = SideInformation.build(60, **known, sampling=sampling), ENGINES["auto"]
    update = mixture.UPDATES["exact"](mixture.Prior(side, auto))
    steps = mixture.em(X, start, side, auto(side.graph), pool, update)
    evidences = []
    try:
        for theta, posterior in itertools.islice(steps, 12):
            # Beyond this condition number rounding errors exceed the tolerance.
            covariances = getattr(theta, "full_covariances", np.eye(1))
            if np.linalg.cond(covariances).max() > 1e10:
                break
            evidences.append(posterior.log_evidence)
    except ValueError as error:
        # A component may shrink to a small number of points and become singular.
        assert "not positive definite" in str(error)  # noqa: PT017
    # The full matrices from which "full to diag" starts may have a higher evidence than any
    # diagonal ones.
    falls = np.diff(evidences[family == "full to diag" :])
    # Exact updates match the counts up to 1e-8; a genuine fall is orders of magnitude larger.
    assert (falls >= -1e-7 * (60 + np.abs(evidences[-1]))).all()


@pytest.mark.parametrize("covariance_type", mixture.POOLINGS)
@given(seed=st.integers(0, 100_000), log_reg=st.floats(-6, 1))
def test_the_penalised_evidence_never_falls_with_regularisation(covariance_type, seed, log_reg):
    """No iteration lowers the lower bound minus the penalty, or the evidence minus the penalty."""
    reg_covar = 10**log_reg
    X, start = draw_problem(seed, covariance_type)
    side, kind = SideInformation.build(len(X)), mixture.POOLINGS[covariance_type]
    infer = ENGINES["independent"](side.graph)
    steps = mixture.em(X, start, side, infer, kind, mixture.closed_form, reg_covar=reg_covar)
    pairs = list(itertools.islice(steps, 10))
    for (old, posterior), (new, after) in itertools.pairwise(pairs):
        q, counts = posterior.responsibilities, posterior.responsibilities.sum(axis=0)
        before = posterior.log_evidence - mixture.penalty(old, counts, reg_covar)
        before -= 1e-9 * (1 + abs(posterior.log_evidence))
        for value in (mixture.lower_bound(X, new, q), after.log_evidence):
            assert value - mixture.penalty(new, counts, reg_covar) >= before


@given(seed=st.integers(0, 100_000))
def test_lower_bound_is_evidence_minus_divergence(seed):
    rng = np.random.default_rng(seed)
    X, theta = draw_problem(seed)
    q = rng.dirichlet(np.ones(3), size=len(X))
    p, totals = log_normalise(mixture.log_joint(X, theta))
    divergence = (q * (np.log(q) - np.log(p))).sum()
    assert mixture.lower_bound(X, theta, q) == pytest.approx(totals.sum() - divergence, rel=1e-10)
    assert mixture.lower_bound(X, theta, p) == pytest.approx(totals.sum(), rel=1e-12)
    # The entropy takes 0 · log 0 as zero.
    hard, expected = np.eye(3)[np.zeros(len(X), dtype=int)], mixture.log_joint(X, theta)[:, 0].sum()
    assert mixture.lower_bound(X, theta, hard) == pytest.approx(expected)


# ------------------------------------------------------------------ empty components


@pytest.mark.parametrize("family", [*mixture.POOLINGS, "categorical"])
def test_a_component_without_points_keeps_its_parameters(family):
    X, theta, pool = draw_points_and_start(np.random.default_rng(7), family)
    r = np.tile([0.5, 0.5, 0.0], (60, 1))
    posterior = mixture.Posterior(r, r.sum(axis=0), 0.0)
    for reg_covar in (0.0, 1e-3):
        regularised = set_reg_covar(pool, reg_covar)
        new = mixture.m_step(X, theta, posterior, regularised, mixture.closed_form)
        assert new.weights[2] == 0
        for before, after in zip(theta[1:], new[1:], strict=True):
            # The empty component shares a tied covariance with the others.
            kept = after[0] if family == "tied" and after.ndim > 2 else before[2]
            np.testing.assert_allclose(after[2], kept, rtol=1e-9)
