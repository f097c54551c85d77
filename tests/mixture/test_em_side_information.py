"""Compare the E-step with labels and relations with sums over all assignments of the points."""

import itertools

import numpy as np
import pytest
from answers import true_relations
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_problems import draw_parameters

from cgmm import primer
from cgmm.inference import ENGINES
from cgmm.mixture import Prior, e_step
from cgmm.network import SideInformation

AUTO = ENGINES["auto"]


def draw_side_information(rng, n_samples, n_components):
    """Draw side information of every kind that agrees with a hidden assignment.

    Return arguments of ``SideInformation.build``.
    """
    truth = rng.integers(n_components, size=n_samples)
    pairs = np.array(list(itertools.combinations(range(n_samples), 2)))
    soft = pairs[rng.random(len(pairs)) < 0.2]
    labels = np.where(rng.random(n_samples) < 0.2, truth, -1)
    if rng.random() < 0.5:
        labels = (rng.random((n_samples, n_components)) < 0.7) | (np.eye(n_components)[truth] == 1)
    return {
        "labels": labels if rng.random() < 0.6 else None,
        **true_relations(rng, truth, n_samples // 2),
        "preferences": np.column_stack([soft, 2 * rng.normal(size=len(soft))]),
        "sampling": str(rng.choice(["points", "chunklets"])),
    }


def enumerate_posterior(X, theta, relations):
    """Compute responsibilities and log-evidence from all K^N assignments of the points."""
    n, K = len(X), len(theta.weights)
    z = np.array(list(itertools.product(range(K), repeat=n)))
    sampled = np.arange(n)
    if relations["sampling"] == "chunklets":
        sampled = np.unique(primer.closure(n, relations["must_link"]), return_index=True)[1]
    # Products of all factors would overflow or underflow in double precision.
    prior = theta.weights[z[:, sampled]].astype(np.longdouble).prod(axis=1)
    for name, together in (("must_link", True), ("cannot_link", False)):
        i, j = relations[name].T
        prior *= ((z[:, i] == z[:, j]) == together).all(axis=1)
    i, j = relations["preferences"][:, :2].astype(int).T
    prior *= np.exp((z[:, i] == z[:, j]) @ relations["preferences"][:, 2])
    p = np.exp(primer.log_densities(X, theta).astype(np.longdouble))
    if (labels := relations["labels"]) is not None:
        p *= labels if labels.ndim == 2 else (labels[:, None] == -1) | (labels[:, None] == range(K))
    joint = prior * p[range(n), z].prod(axis=1)
    r = np.tensordot(joint / joint.sum(), z[:, :, None] == range(K), axes=1)
    return r.astype(float), float(np.log(joint.sum() / prior.sum()))


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n_components=st.integers(2, 3))
def test_e_step_equals_the_sum_over_all_assignments_of_points(seed, n_components):
    rng = np.random.default_rng(seed)
    X, theta = 2 * rng.normal(size=(6, 2)), draw_parameters(rng, n_components, 2)
    relations = draw_side_information(rng, 6, n_components)
    side = SideInformation.build(6, **relations)
    expected, evidence = enumerate_posterior(X, theta, relations)
    # By default the E-step computes only those parts of log Z_prior that do not cancel.
    normalisers = (None, Prior(side, AUTO).log_z)
    for name, log_z in itertools.product(("auto", "junction_tree", "enumerate"), normalisers):
        infer = ENGINES[name](side.graph)
        posterior = e_step(X, theta, side, infer, log_z_prior=log_z)
        # The sums have up to 729 products of a dozen factors, so rounding errors add up.
        np.testing.assert_allclose(posterior.responsibilities, expected, rtol=1e-9, atol=1e-13)
        assert posterior.log_evidence == pytest.approx(evidence, rel=1e-10, abs=1e-10)
        nodes = np.array([expected[side.node_of == j][0] for j in range(side.n_nodes)])
        np.testing.assert_allclose(posterior.expected_counts, side.multiplicity @ nodes, rtol=1e-9)


@pytest.mark.parametrize("sign", ["must_link", "cannot_link"])
def test_a_soft_relation_becomes_the_hard_one_as_its_weight_grows(sign):
    rng = np.random.default_rng(5)
    X, theta = rng.normal(size=(8, 2)), draw_parameters(rng, 2, 2)
    pairs = np.array([[0, 1], [2, 3], [3, 4]])
    hard = SideInformation.build(8, **{sign: pairs})
    exact = e_step(X, theta, hard, AUTO(hard.graph))
    distances = []
    for w in np.array([2.0, 8.0, 700.0]) * (1 if sign == "must_link" else -1):
        soft = SideInformation.build(8, preferences=np.column_stack([pairs, np.full(3, w)]))
        posterior = e_step(X, theta, soft, AUTO(soft.graph))
        distances.append(np.abs(posterior.responsibilities - exact.responsibilities).max())
    assert distances[0] > distances[1] > 1e-12 > distances[2]
    # Both normalisers grow with the weight, but their difference, the evidence, converges.
    assert posterior.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
