"""The loop: theorems, reductions, and what reg_covar does to monotonicity."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_problems import FAMILIES, KINDS, points_and_start, what_is_known

from cgmm.inference import ENGINES
from cgmm.mixture import (
    POOLINGS,
    UPDATES,
    Parameters,
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


def plain(X, theta, *, pool="full", reg_covar=0.0, engine="independent"):
    side = SideInformation.build(len(X))
    return em(
        X, theta, side, ENGINES[engine](side.graph), POOLINGS[pool], closed_form,
        reg_covar=reg_covar,
    )  # fmt: skip


def problem(seed, *, n_samples=60, n_dims=2, n_components=3, pool="full"):
    """Random data and a random, not too poor start of the given covariance type."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_components, n_dims)) * rng.uniform(0, 4)
    X = centres[rng.integers(n_components, size=n_samples)] + rng.normal(size=(n_samples, n_dims))
    r = rng.dirichlet(np.ones(n_components), size=n_samples)
    return X, from_responsibilities(X, r, POOLINGS[pool], reg_covar=1e-3)


# ------------------------------------------------------------------ theorems


@pytest.mark.each_value
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(seed=st.integers(0, 100_000), sampling=st.sampled_from(["points", "chunklets"]))
def test_evidence_never_falls(family, kind, seed, sampling):
    """Of any family, whatever is known, where nothing is added and the weights' update is exact."""
    rng = np.random.default_rng(seed)
    X, start, pool = points_and_start(rng, family)
    known = what_is_known(rng, rng.permutation(np.arange(60) % 3), kind)
    side, auto = SideInformation.build(60, **known, sampling=sampling), ENGINES["auto"]
    steps = em(X, start, side, auto(side.graph), pool, UPDATES["exact"](Prior(side, auto)))
    evidences = []
    try:
        for theta, posterior in itertools.islice(steps, 12):
            # Beyond this, distances in the thinnest direction keep no digits of the evidence.
            if family in POOLINGS and np.linalg.cond(theta.full_covariances).max() > 1e10:
                break
            evidences.append(posterior.log_evidence)
    except ValueError as error:
        # A component may shrink onto a few points; then it is named, and until then nothing fell.
        assert "not positive definite" in str(error)  # noqa: PT017
    # "full to diag" takes its first step from matrices, which no diagonals need reach.
    falls = np.diff(evidences[family == "full to diag" :])
    # Counts are matched to 1e-8 of all; a genuine fall is orders of magnitude larger.
    assert (falls >= -1e-7 * (60 + np.abs(evidences[-1]))).all()


@pytest.mark.parametrize("pool", POOLINGS)
@given(seed=st.integers(0, 100_000), log_reg=st.floats(-6, 1))
def test_what_does_not_fall_with_regularisation(pool, seed, log_reg):
    """No M-step lowers F(q, θ) - penalty(θ, N): evidence falls by the penalty's fall at most."""
    reg_covar = 10**log_reg
    X, start = problem(seed, pool=pool)
    pairs = list(itertools.islice(plain(X, start, pool=pool, reg_covar=reg_covar), 10))
    for (old, posterior), (new, after) in itertools.pairwise(pairs):
        q, counts = posterior.responsibilities, posterior.responsibilities.sum(axis=0)
        slack = 1e-9 * (1 + abs(posterior.log_evidence))
        before = posterior.log_evidence - penalty(old, counts, reg_covar)
        assert lower_bound(X, new, q) - penalty(new, counts, reg_covar) >= before - slack
        assert after.log_evidence - penalty(new, counts, reg_covar) >= before - slack


def test_with_regularisation_the_evidence_can_fall():
    """The reason why the statement above is not about the evidence itself."""
    X = np.array([[-1.0], [1.0]] * 20)
    start = Parameters(np.full(2, 0.5), np.array([[-1.0], [1.0]]), np.full((2, 1, 1), 0.3))
    _, old = next(plain(X, start))
    _, (_, new) = itertools.islice(plain(X, start, reg_covar=5.0), 2)
    assert new.log_evidence < old.log_evidence - 1


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


def test_fixed_point_has_zero_gradient():
    """At convergence the evidence is stationary in the means, by central differences."""
    X, start = problem(6, n_samples=200)
    theta, _ = next(itertools.islice(plain(X, start), 3000, None))
    step = 1e-4
    for shift in step * np.eye(6).reshape(6, 3, 2):
        up, down = (
            next(plain(X, theta._replace(means=theta.means + s * shift)))[1].log_evidence
            for s in (1, -1)
        )
        assert abs(up - down) / (2 * step) < 1e-3


# ------------------------------------------------------------------ dead components


@pytest.mark.parametrize("pool", POOLINGS)
def test_dead_component_keeps_its_parameters(pool):
    X, theta = problem(7, pool=pool)
    r = np.column_stack([np.full(len(X), 0.5), np.full(len(X), 0.5), np.zeros(len(X))])
    posterior = Posterior(r, r.sum(axis=0), 0.0)
    for reg_covar in (0.0, 1e-3):
        new = m_step(X, theta, posterior, POOLINGS[pool], closed_form, reg_covar=reg_covar)
        assert new.weights[2] == 0
        np.testing.assert_array_equal(new.means[2], theta.means[2])
        kept = new.covariances[0] if pool == "tied" else theta.covariances[2]
        np.testing.assert_allclose(new.covariances[2], kept, rtol=1e-9)
