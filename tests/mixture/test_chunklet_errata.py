"""Compare printed formulas about chunklets and weights with sums over all assignments."""

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
BONDS = [[0, 3], [3, 5], [1, 2]]
GROUPS = [[0, 3, 5], [1, 2], [4]]
THETA = Parameters(
    np.array([0.7, 0.2, 0.1]),
    np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]),
    np.array([np.eye(2), np.diag([1.0, 4.0]), np.eye(2)]),
)


def posterior(sampling):
    side = SideInformation.build(6, must_link=BONDS, sampling=sampling)
    return e_step(X, THETA, side, ENGINES["independent"](side.graph))


@pytest.mark.parametrize(("sampling", "same"), [("points", True), ("chunklets", False)])
def test_the_likelihood_of_section_2_3_is_that_of_sampled_points(sampling, same):
    """Footnote 4 names the first assumption, but a factor for each point is the second."""
    # The assignments that keep every chunklet together.
    z, logs = every_assignment(X, THETA, [(i, j, np.inf) for i, j in BONDS])
    printed = logsumexp(logs) - np.log(THETA.weights[z].prod(axis=1).sum())
    assert np.isclose(posterior(sampling).log_evidence, printed, rtol=1e-12) == same


def test_a_chunklet_is_not_one_point_weighted_by_its_size():
    """This holds for means; covariances keep the scatter within, and weights count one."""
    r = posterior("chunklets").responsibilities
    middles = np.array([X[group].mean(axis=0) for group in GROUPS])
    of_groups = r[[group[0] for group in GROUPS]]
    _, lumped, between = primer.moments(middles, of_groups * [[3], [2], [1]])
    _, whole, scatter = primer.moments(X, r)
    assert np.allclose(lumped, whole, rtol=1e-12)
    lost = np.trace(scatter - between, axis1=1, axis2=2)
    assert lost.min() > 0
    assert lost.sum() > 0.5 * np.trace(scatter, axis1=1, axis2=2).sum()


def test_a_cannot_link_costs_sampled_chunklets_their_closed_form():
    side = SideInformation.build(6, must_link=[[0, 3]], cannot_link=[[0, 1]], sampling="chunklets")
    prior, counts = Prior(side, ENGINES["pairs"]), np.array([3.0, 2.0])
    assert not prior.is_one
    # Without the cannot-link it would be 3 of 5.
    assert match_counts(prior)(counts)[0] == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.parametrize(("with_cannot_links", "right"), [(True, True), (False, False)])
def test_random_pairs_need_their_cannot_links_where_points_are_sampled(with_cannot_links, right):
    """§2.1 justifies assumption 2 by distributed learning, but uses only one kind of answers."""
    pi = np.array([0.7, 0.2, 0.1])
    z = np.random.default_rng(0).choice(3, 6000, p=pi)
    must, cannot = random_pairs(z, 3000, random_state=0)
    side = SideInformation.build(
        6000, must_link=must, cannot_link=cannot if with_cannot_links else []
    )
    # The classes are known, so only the weights can be wrong.
    first = np.unique(side.node_of, return_index=True)[1]
    counts = np.bincount(z[first], side.multiplicity)
    weights = match_counts(Prior(side, ENGINES["auto"]))(counts)
    assert (abs(weights - pi).max() < 0.025) == right
    # With must-links alone the common class gets too little.
    assert right or weights[0] < 0.62
