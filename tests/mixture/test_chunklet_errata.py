"""Compare formulas that [shental2003] prints about chunklets with sums over all assignments.

The page of errata (book/_data/errata.toml) names these tests.
"""

import numpy as np
import pytest
from every_assignment import every_assignment
from scipy.special import logsumexp

from cgmm import primer
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters, Prior, e_step, match_counts
from cgmm.network import SideInformation
from cgmm.scenarios import random_pairs

X = np.random.default_rng(3).normal(0, 1, (6, 2))
MUST_LINKS = [[0, 3], [3, 5], [1, 2]]
CHUNKLETS = [[0, 3, 5], [1, 2], [4]]
THETA = Parameters(
    np.array([0.7, 0.2, 0.1]),
    np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]),
    np.array([np.eye(2), np.diag([1.0, 4.0]), np.eye(2)]),
)


def run_e_step(sampling):
    """Return the posterior of the six points under a sampling assumption."""
    side = SideInformation.build(6, must_link=MUST_LINKS, sampling=sampling)
    return e_step(X, THETA, side, ENGINES["independent"](side.graph))


@pytest.mark.parametrize(("sampling", "is_equal"), [("points", True), ("chunklets", False)])
def test_likelihood_of_section_2_3_assumes_sampled_points(sampling, is_equal):
    """Footnote 4 assumes sampled chunklets, but the likelihood has a weight for each point."""
    # Only assignments that keep every chunklet together are possible.
    z, logs = every_assignment(X, THETA, [(i, j, np.inf) for i, j in MUST_LINKS])
    printed = logsumexp(logs) - np.log(THETA.weights[z].prod(axis=1).sum())
    assert np.isclose(run_e_step(sampling).log_evidence, printed, rtol=1e-12) == is_equal


def test_a_chunklet_does_not_act_as_one_point_weighted_by_its_size():
    """Replacing chunklets by weighted means changes no means, but makes covariances too small."""
    r = run_e_step("chunklets").responsibilities
    centres = np.array([X[chunklet].mean(axis=0) for chunklet in CHUNKLETS])
    r_chunklets = r[[chunklet[0] for chunklet in CHUNKLETS]]
    _, means_of_centres, between = primer.moments(centres, r_chunklets * [[3], [2], [1]])
    _, means, scatter = primer.moments(X, r)
    assert np.allclose(means_of_centres, means, rtol=1e-12)
    lost = np.trace(scatter - between, axis1=1, axis2=2)
    assert lost.min() > 0
    assert lost.sum() > 0.5 * np.trace(scatter, axis1=1, axis2=2).sum()


def test_sampled_chunklets_have_no_closed_form_with_a_cannot_link():
    side = SideInformation.build(6, must_link=[[0, 3]], cannot_link=[[0, 1]], sampling="chunklets")
    prior, counts = Prior(side, ENGINES["pairs"]), np.array([3.0, 2.0])
    assert not prior.is_one
    # Without the cannot-link the weight would be 3 / 5.
    assert match_counts(prior)(counts)[0] == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.parametrize(("with_cannot_links", "is_right"), [(True, True), (False, False)])
def test_weights_are_biased_without_the_cannot_links_of_random_pairs(with_cannot_links, is_right):
    """Weights are biased if only the must-links among the answers about random pairs are used.

    [shental2003, sect. 2.1] justifies sampled points by distributed learning, whose answers are of
    both kinds.
    """
    pi = np.array([0.7, 0.2, 0.1])
    z = np.random.default_rng(0).choice(3, 6000, p=pi)
    must, cannot = random_pairs(z, 3000, random_state=0)
    side = SideInformation.build(
        6000, must_link=must, cannot_link=cannot if with_cannot_links else []
    )
    # The counts are those of the true classes, so that only the update of weights can be wrong.
    first = np.unique(side.node_of, return_index=True)[1]
    counts = np.bincount(z[first], side.multiplicity)
    weights = match_counts(Prior(side, ENGINES["auto"]))(counts)
    assert (abs(weights - pi).max() < 0.025) == is_right
    # With must-links alone the weight of the most common class is too small.
    assert is_right or weights[0] < 0.62
