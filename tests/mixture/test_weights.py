"""The weights' update maximises what it says."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad

from cgmm.inference import ENGINES
from cgmm.mixture import UPDATES, Prior, closed_form
from cgmm.mixture.prior import PairwisePrior
from cgmm.network import NetworkError, SideInformation


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_closed_form_beats_every_competitor(seed, n_components):
    rng = np.random.default_rng(seed)
    counts = rng.uniform(0.01, 100, size=n_components)
    weights = closed_form(counts)
    assert weights.sum() == pytest.approx(1, rel=1e-15 * n_components)
    competitors = rng.dirichlet(np.ones(n_components), size=50)
    assert (np.log(competitors) @ counts <= counts @ np.log(weights) + 1e-12 * counts.sum()).all()


def test_component_without_counts_gets_exactly_zero():
    np.testing.assert_array_equal(closed_form(np.array([0.0, 4.0])), [0, 1])


@pytest.mark.parametrize("counts", [[0.0, 0.0], [-1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(ValueError, match="expected counts"):
        closed_form(np.array(counts))


# ------------------------------------------------------------------ the prior's normaliser


ENUMERATE = ENGINES["enumerate"]


def random_side(seed, n_samples=6):
    """Must-links, cannot-links and preferences at random, under either sampling assumption."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(n_samples), 2)))
    soft = pairs[rng.random(len(pairs)) < 0.25]
    return SideInformation.build(
        n_samples,
        must_link=[[0, 1]] if rng.random() < 0.5 else None,
        cannot_link=[[0, 2]] if rng.random() < 0.5 else None,
        preferences=np.column_stack([soft, 2 * rng.normal(size=len(soft))]),
        sampling=rng.choice(["points", "chunklets"]),
    )


def posterior_counts(side, n_components, rng):
    """Expected counts that some data give: inside what the prior can match."""
    unary = side.multiplicity[:, None] * np.log(rng.dirichlet(np.ones(n_components)))
    unary = unary + rng.normal(size=(side.n_nodes, n_components))
    return side.multiplicity @ ENUMERATE(side.graph)(unary).nodes


def objective(side, counts, weights):
    """Σ_k C_k log π_k - log Z_prior(π), the prior summed over every assignment."""
    eta = np.log(weights)
    return counts @ eta - ENUMERATE(side.graph)(side.multiplicity[:, None] * eta).log_z


@given(seed=st.integers(0, 100_000), n_components=st.integers(2, 3))
def test_prior_equals_enumeration_and_its_gradient_the_differences(seed, n_components):
    side, eta = random_side(seed), np.random.default_rng(seed).normal(size=n_components)
    prior = Prior(side, ENUMERATE)
    log_z, _ = prior.log_z_and_counts(eta)
    expected = ENUMERATE(side.graph)(side.multiplicity[:, None] * eta).log_z
    assert log_z == pytest.approx(expected, rel=1e-12, abs=1e-12)
    for function in (prior.log_z_and_counts, PairwisePrior(side).log_z_and_counts):
        error = check_grad(lambda e, f=function: f(e)[0], lambda e, f=function: f(e)[1], eta)
        assert error < 1e-5


def test_isolated_chunklets_of_several_sizes_have_the_normaliser_written_down():
    """Two chunklets of two, one of three, one point: Z = (Σ π²)² Σ π³ [shental2003, eq. 6]."""
    side = SideInformation.build(8, must_link=[[0, 1], [2, 3], [4, 5], [5, 6]])
    weights = np.array([0.5, 0.3, 0.2])
    log_z, counts = Prior(side, ENUMERATE).log_z_and_counts(np.log(weights))
    powers = {n: weights**n for n in (1, 2, 3)}
    expected = 2 * np.log(powers[2].sum()) + np.log(powers[3].sum())
    assert log_z == pytest.approx(expected, rel=1e-13)
    # n_j times the share of each component, chunklet by chunklet.
    by_hand = sum(n * powers[n] / powers[n].sum() for n in (2, 2, 3, 1))
    np.testing.assert_allclose(counts, by_hand, rtol=1e-13)
    assert not Prior(side, ENUMERATE).is_one


@settings(max_examples=30)
@given(seed=st.integers(0, 100_000), n_components=st.integers(2, 3))
def test_exact_update_is_a_numerical_optimum_of_the_enumerated_objective(seed, n_components):
    rng = np.random.default_rng(seed)
    side = random_side(seed)
    counts = posterior_counts(side, n_components, rng)
    weights = UPDATES["exact"](Prior(side, ENUMERATE))(counts)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    reached = objective(side, counts, weights)
    # Matching counts: the gradient on the simplex vanishes.
    _, matched = Prior(side, ENUMERATE).log_z_and_counts(np.log(weights))
    np.testing.assert_allclose(matched, counts, atol=1e-6)
    for competitor in rng.dirichlet(100 * weights + 1e-3, size=50):
        if competitor.min() > 0:
            assert objective(side, counts, competitor) <= reached + 1e-9


@settings(max_examples=15)
@given(seed=st.integers(0, 100_000))
def test_grid_finds_the_optimum_to_its_resolution(seed):
    side = random_side(seed)
    counts = posterior_counts(side, 2, np.random.default_rng(seed))
    exact, on_grid = (UPDATES[name](Prior(side, ENUMERATE))(counts) for name in ("exact", "grid"))
    assert objective(side, counts, on_grid) <= objective(side, counts, exact) + 1e-9
    # Concave in one variable: the best grid point is a neighbour of the optimum.
    if 0.01 < exact[0] < 0.99:
        assert abs(on_grid[0] - exact[0]) <= 0.01 + 1e-6


def test_pseudo_likelihood_is_exact_for_disjoint_edges_and_only_for_them():
    counts = np.array([2.6, 1.9, 1.5])
    disjoint = SideInformation.build(
        7, must_link=[[0, 1]], cannot_link=[[1, 2]], preferences=[[3, 4, 1.5]], sampling="chunklets"
    )
    path = SideInformation.build(6, cannot_link=[[0, 1], [1, 2], [2, 3]])
    for side, agree in ((disjoint, True), (path, False)):
        exact, pseudo = (
            UPDATES[name](Prior(side, ENUMERATE))(counts) for name in ("exact", "pseudo-likelihood")
        )
        assert np.allclose(exact, pseudo, atol=1e-6) == agree


@pytest.mark.parametrize("w", [-np.inf, -30.0, -0.5, 0.5, 30.0])
@pytest.mark.parametrize("must_link", [None, [[0, 2]], [[0, 2], [1, 3], [3, 4]]])
def test_the_pairwise_prior_of_one_edge_is_the_sum_over_its_assignments(w, must_link):
    """1 + (e^w - 1) Σ p_a p_b, whatever the sign of w and the sizes of both ends."""
    side = SideInformation.build(6, must_link=must_link, preferences=[[0, 1, w]])
    eta = np.log([0.6, 0.3, 0.1])
    expected = ENUMERATE(side.graph)(side.multiplicity[:, None] * eta)
    log_z, counts = PairwisePrior(side).log_z_and_counts(eta)
    assert log_z == pytest.approx(expected.log_z, rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(counts, side.multiplicity @ expected.nodes, rtol=1e-11)


def test_all_updates_agree_without_relations():
    side, counts = SideInformation.build(10), np.array([7.0, 3.0])
    for name, update in UPDATES.items():
        np.testing.assert_allclose(
            update(Prior(side, ENUMERATE))(counts), [0.7, 0.3], atol=1e-9, err_msg=name
        )


def test_chunklets_sampled_as_chunklets_have_the_closed_form():
    side = SideInformation.build(5, must_link=[[0, 1], [1, 2]], sampling="chunklets")
    counts = np.array([1.2, 1.8])
    np.testing.assert_array_equal(UPDATES["exact"](Prior(side, ENUMERATE))(counts), counts / 3)
    points = SideInformation.build(5, must_link=[[0, 1], [1, 2]])
    counts = np.array([2.2, 2.8])
    assert not np.allclose(
        UPDATES["exact"](Prior(points, ENUMERATE))(counts), counts / 5, atol=1e-3
    )


def test_component_without_counts_leaves_also_where_edges_tie():
    side = SideInformation.build(5, preferences=[[0, 1, 1.0]])
    weights = UPDATES["exact"](Prior(side, ENUMERATE))(np.array([3.0, 2.0, 0.0]))
    assert weights[2] == 0
    assert np.isfinite(weights).all()


@pytest.mark.parametrize(("n_components", "n_points"), [(6, "71,523,144"), (101, "0")])
def test_a_grid_too_fine_or_without_a_point_is_refused(n_components, n_points):
    side = SideInformation.build(3, cannot_link=[[0, 1]])
    with pytest.raises(ValueError, match=f"K={n_components} .* has {n_points} points"):
        UPDATES["grid"](Prior(side, ENUMERATE))(np.ones(n_components))


def test_a_count_that_relations_force_never_makes_a_weight_zero():
    # Three points, one of a cannot-linked pair in component 1: no prior gives it a lower count.
    side = SideInformation.build(3, cannot_link=[[0, 1]])
    weights = UPDATES["exact"](Prior(side, ENUMERATE))(np.array([2.0, 1.0]))
    assert 0 < weights[1] < 1e-6
    assert weights.sum() == pytest.approx(1)


def test_a_pseudo_likelihood_without_a_maximum_says_so():
    # A star of five cannot-links: more of them than the small class has points.
    side = SideInformation.build(6, cannot_link=[[0, j] for j in range(1, 6)])
    update = UPDATES["pseudo-likelihood"](Prior(side, ENUMERATE))
    with pytest.warns(RuntimeWarning, match="found no maximum"):
        update(np.array([5.0, 1.0]))
    assert UPDATES["exact"](Prior(side, ENUMERATE))(np.array([4.5, 1.5])).min() > 0


def test_a_prior_whose_engine_refuses_names_nodes_of_the_whole_network():
    # Only the tied nodes 2, 3 and 4 reach the engine, which calls them 0, 1 and 2.
    side = SideInformation.build(5, cannot_link=[[2, 3], [3, 4]])
    with pytest.raises(NetworkError, match="but node 3 has 2 of them"):
        Prior(side, ENGINES["pairs"])
