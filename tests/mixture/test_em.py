"""Test the loop: theorems, reductions, and the effect of reg_covar on monotonicity."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_problems import (
    FAMILIES,
    KINDS,
    groups,
    points_and_start,
    regularise,
    what_is_known,
)

from cgmm.inference import ENGINES
from cgmm.mixture import (
    POOLINGS,
    UPDATES,
    Posterior,
    Prior,
    closed_form,
    em,
    from_responsibilities,
    log_joint,
    lower_bound,
    m_step,
    penalty,
)
from cgmm.network import SideInformation
from cgmm.numerics import log_normalise


def problem(seed, pool="full"):
    """Return random data and a random, reasonable start of the given covariance type."""
    rng = np.random.default_rng(seed)
    (X, _), r = groups(seed, spread=rng.uniform(0, 4)), rng.dirichlet(np.ones(3), size=60)
    return X, from_responsibilities(X, r, POOLINGS[pool], reg_covar=1e-3)


# ------------------------------------------------------------------ theorems


@pytest.mark.each_value
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(seed=st.integers(0, 100_000), sampling=st.sampled_from(["points", "chunklets"]))
def test_evidence_never_falls(family, kind, seed, sampling):
    """Test every family and kind of side information, without reg_covar and with exact updates."""
    rng = np.random.default_rng(seed)
    X, start, pool = points_and_start(rng, family)
    known = what_is_known(rng, rng.permutation(np.arange(60) % 3), kind)
    side, auto = SideInformation.build(60, **known, sampling=sampling), ENGINES["auto"]
    steps = em(X, start, side, auto(side.graph), pool, UPDATES["exact"](Prior(side, auto)))
    evidences = []
    try:
        for theta, posterior in itertools.islice(steps, 12):
            # Beyond this, distances in the thinnest direction keep no digits of the evidence.
            if (
                hasattr(theta, "full_covariances")
                and np.linalg.cond(theta.full_covariances).max() > 1e10
            ):
                break
            evidences.append(posterior.log_evidence)
    except ValueError as error:
        # A component may shrink onto a few points; then it is named, and until then nothing fell.
        assert "not positive definite" in str(error)  # noqa: PT017
    # "full to diag" starts from full matrices, which no diagonal family need reach.
    falls = np.diff(evidences[family == "full to diag" :])
    # Counts are matched to 1e-8 of all; a genuine fall is orders of magnitude larger.
    assert (falls >= -1e-7 * (60 + np.abs(evidences[-1]))).all()


@pytest.mark.parametrize("pool", POOLINGS)
@given(seed=st.integers(0, 100_000), log_reg=st.floats(-6, 1))
def test_the_penalised_evidence_never_falls_with_regularisation(pool, seed, log_reg):
    """No M-step lowers F(q, θ) - penalty(θ, N): evidence falls at most as the penalty does."""
    reg_covar = 10**log_reg
    X, start = problem(seed, pool)
    side, kind = SideInformation.build(len(X)), POOLINGS[pool]
    infer = ENGINES["independent"](side.graph)
    steps = em(X, start, side, infer, kind, closed_form, reg_covar=reg_covar)
    pairs = list(itertools.islice(steps, 10))
    for (old, posterior), (new, after) in itertools.pairwise(pairs):
        q, counts = posterior.responsibilities, posterior.responsibilities.sum(axis=0)
        slack = 1e-9 * (1 + abs(posterior.log_evidence))
        before = posterior.log_evidence - penalty(old, counts, reg_covar)
        assert lower_bound(X, new, q) - penalty(new, counts, reg_covar) >= before - slack
        assert after.log_evidence - penalty(new, counts, reg_covar) >= before - slack


@given(seed=st.integers(0, 100_000))
def test_bound_is_evidence_minus_divergence(seed):
    rng = np.random.default_rng(seed)
    X, theta = problem(seed)
    q = rng.dirichlet(np.ones(3), size=len(X))
    p, totals = log_normalise(log_joint(X, theta))
    divergence = (q * (np.log(q) - np.log(p))).sum()
    assert lower_bound(X, theta, q) == pytest.approx(totals.sum() - divergence, rel=1e-10)
    assert lower_bound(X, theta, p) == pytest.approx(totals.sum(), rel=1e-12)
    # Zero times log zero counts as zero.
    hard = np.eye(3)[np.zeros(len(X), dtype=int)]
    assert lower_bound(X, theta, hard) == pytest.approx(log_joint(X, theta)[:, 0].sum())


# ------------------------------------------------------------------ dead components


@pytest.mark.parametrize("family", [*POOLINGS, "categorical"])
def test_a_component_without_points_keeps_its_parameters(family):
    X, theta, pool = points_and_start(np.random.default_rng(7), family)
    r = np.tile([0.5, 0.5, 0.0], (60, 1))
    posterior = Posterior(r, r.sum(axis=0), 0.0)
    for reg_covar in (0.0, 1e-3):
        new = m_step(X, theta, posterior, regularise(pool, reg_covar), closed_form)
        assert new.weights[2] == 0
        for before, after in zip(theta[1:], new[1:], strict=True):
            # A shared covariance belongs to the other components, too.
            kept = after[0] if family == "tied" and after.ndim > 2 else before[2]
            np.testing.assert_allclose(after[2], kept, rtol=1e-9)
