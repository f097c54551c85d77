"""Test the updates of the weights π: each maximises its objective with few calls of an engine.

Letters: C_k: expected count of component k; Z_prior(π): normaliser of the prior of assignments.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad

from cgmm.inference import ENGINES
from cgmm.mixture import UPDATES, Prior, cautious, closed_form
from cgmm.mixture.prior import PairwisePrior, SelectedPairs
from cgmm.mixture.weights import MOST_APPROXIMATE_CALLS, lift_small_weights
from cgmm.network import NetworkError, SideInformation


@pytest.mark.parametrize("counts", [[0.0, 0.0], [-1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(ValueError, match="expected counts"):
        closed_form(np.array(counts))


def test_an_empty_component_gets_the_weight_of_one_point():
    weights = lift_small_weights(np.array([0.0, 0.25, 0.75]), n_points=20)
    np.testing.assert_allclose(weights, np.array([1 / 20, 0.25, 0.75]) / 1.05)


# ------------------------------------------------------------------ the prior's normaliser


ENUMERATE = ENGINES["enumerate"]


def draw_relations(seed, n_samples=6):
    """Draw must-links, cannot-links, preferences and one of the two sampling assumptions."""
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


def draw_expected_counts(side, n_components, rng):
    """Return the expected counts of a random posterior, which the prior can match."""
    unary = side.multiplicity[:, None] * np.log(rng.dirichlet(np.ones(n_components)))
    unary = unary + rng.normal(size=(side.n_nodes, n_components))
    return side.multiplicity @ ENUMERATE(side.graph)(unary).nodes


def compute_objective(side, counts, weights):
    """Return Σ_k C_k log π_k - log Z_prior(π), with Z_prior summed over all assignments."""
    eta = np.log(weights)
    return counts @ eta - ENUMERATE(side.graph)(side.multiplicity[:, None] * eta).log_z


@given(seed=st.integers(0, 100_000), n_components=st.integers(2, 3))
def test_normaliser_equals_enumeration_and_its_gradient_equals_finite_differences(
    seed, n_components
):
    side, eta = draw_relations(seed), np.random.default_rng(seed).normal(size=n_components)
    prior = Prior(side, ENUMERATE)
    log_z, _ = prior.log_z_and_counts(eta)
    expected = ENUMERATE(side.graph)(side.multiplicity[:, None] * eta).log_z
    assert log_z == pytest.approx(expected, rel=1e-12, abs=1e-12)
    for function in (prior.log_z_and_counts, PairwisePrior(side).log_z_and_counts):
        error = check_grad(lambda e, f=function: f(e)[0], lambda e, f=function: f(e)[1], eta)
        assert error < 1e-5


@settings(max_examples=30)
@given(seed=st.integers(0, 100_000), n_components=st.integers(2, 3))
def test_exact_update_maximises_the_enumerated_objective(seed, n_components):
    rng = np.random.default_rng(seed)
    side = draw_relations(seed)
    counts = draw_expected_counts(side, n_components, rng)
    weights = UPDATES["exact"](Prior(side, ENUMERATE))(counts)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    reached = compute_objective(side, counts, weights)
    # At the maximum the expected counts of the prior equal those of the posterior.
    _, matched = Prior(side, ENUMERATE).log_z_and_counts(np.log(weights))
    np.testing.assert_allclose(matched, counts, atol=1e-6)
    for competitor in rng.dirichlet(100 * weights + 1e-3, size=50):
        if competitor.min() > 0:
            assert compute_objective(side, counts, competitor) <= reached + 1e-9


@settings(max_examples=15)
@given(seed=st.integers(0, 100_000))
def test_grid_finds_the_optimum_to_its_resolution(seed):
    side = draw_relations(seed)
    counts = draw_expected_counts(side, 2, np.random.default_rng(seed))
    exact, on_grid = (UPDATES[name](Prior(side, ENUMERATE))(counts) for name in ("exact", "grid"))
    highest = compute_objective(side, counts, exact)
    assert compute_objective(side, counts, on_grid) <= highest + 1e-9
    # The objective is concave in one variable, so the best grid point is next to the optimum.
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


def test_exact_update_of_sampled_chunklets_has_a_closed_form():
    side = SideInformation.build(5, must_link=[[0, 1], [1, 2]], sampling="chunklets")
    counts = np.array([1.2, 1.8])
    np.testing.assert_array_equal(UPDATES["exact"](Prior(side, ENUMERATE))(counts), counts / 3)


def test_exact_update_gives_a_component_forced_by_relations_a_positive_weight():
    # Of two cannot-linked points one is in component 1, so its count cannot be less than one.
    side = SideInformation.build(3, cannot_link=[[0, 1]])
    weights = UPDATES["exact"](Prior(side, ENUMERATE))(np.array([2.0, 1.0]))
    assert 0 < weights[1] < 1e-6
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", ["exact", "pseudo-likelihood", "ignore", "cautious", "auto"])
def test_a_component_without_counts_keeps_weight_zero(name):
    side = SideInformation.build(6, preferences=[[0, 1, 3.0], [2, 3, 3.0]])
    weights = UPDATES[name](Prior(side, ENUMERATE))(np.array([5.0, 1.0, 0.0]))
    assert weights[2] == 0
    assert 0 < weights[1] < 0.5


# ------------------------------------------------------------------ numbers of calls

RING = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])


def make_recording_engine(name, results):
    """Return an engine that appends each of its results to a list."""

    def engine(graph):
        infer = ENGINES[name](graph)
        return lambda unary: results.append(infer(unary)) or results[-1]

    return engine


@pytest.mark.parametrize("log_weight", [-8.0, -1.0, 3.0, 8.0, 15.0])
@pytest.mark.parametrize("n_edges", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "weights", [(0.25, 0.75), (0.02267, 0.97733), (1e-6, 1 - 1e-6), (1e-4, 0.1, 0.4, 0.4999)]
)
def test_weights_for_given_counts_need_at_most_sixty_calls(weights, n_edges, log_weight):
    """With strong relations full Newton steps would overshoot or diverge."""
    preferences = np.column_stack([RING[:n_edges], np.full(n_edges, log_weight)])
    side, results = SideInformation.build(4, preferences=preferences), []
    prior = Prior(side, make_recording_engine("enumerate", results))
    _, counts = prior.log_z_and_counts(np.log(weights))
    solution = UPDATES["exact"](prior)(counts)
    assert len(results) <= 60
    # The search ends when the counts of the four points agree up to 1e-8 of their sum.
    _, matched = prior.log_z_and_counts(np.log(solution))
    np.testing.assert_allclose(matched, counts, rtol=0, atol=1e-7)


def test_an_inconsistent_engine_is_called_a_bounded_number_of_times():
    side = SideInformation.build(60, preferences=[[i, i + 1, 5.0 * (-1) ** i] for i in range(59)])
    results, expected = [], np.array([40.0, 15.0, 5.0])

    def inconsistent_engine(graph):
        infer = make_recording_engine("mean_field", results)(graph)
        # log Z falls with every call, so the search for its maximum never converges.
        return lambda unary: infer(unary)._replace(log_z=-float(len(results)))

    prior = Prior(side, inconsistent_engine)
    with pytest.warns(RuntimeWarning, match="found no maximum"):
        weights = UPDATES["exact"](prior)(expected)
    assert len(results) <= MOST_APPROXIMATE_CALLS + 1
    errors = [np.abs(result.nodes.sum(axis=0) - expected).max() for result in results]
    _, counts = prior.log_z_and_counts(np.log(weights))
    assert np.abs(counts - expected).max() == pytest.approx(min(errors), rel=1e-9)


# ------------------------------------------------------------------ cautious updates


def test_automatic_update_is_exact_if_its_engine_is_exact():
    side, counts = SideInformation.build(3, preferences=[[0, 1, -9.0]]), np.array([1.9, 1.1])
    chosen = {"mean_field": "cautious", "gibbs": "cautious", "auto": "exact", "pairs": "exact"}
    for engine, name in chosen.items():
        prior = Prior(side, ENGINES[engine])
        np.testing.assert_array_equal(UPDATES["auto"](prior)(counts), UPDATES[name](prior)(counts))
    # Without an edge the prior needs no engine, so the update is exact with every engine.
    chunklets = SideInformation.build(3, must_link=[[0, 1]])
    by_gibbs, exact = (
        UPDATES[name](Prior(chunklets, ENGINES["gibbs"]))(counts) for name in ("auto", "exact")
    )
    np.testing.assert_array_equal(by_gibbs, exact)


@given(
    seed=st.integers(0, 10**6),
    w=st.sampled_from([-np.inf, -2.0, 0.5, 3.0, 800.0]),
    n_components=st.integers(1, 4),
)
def test_cautious_weights_lie_between_closed_form_and_equal_weights(seed, w, n_components):
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(40).reshape(20, 2)
    signs = np.where(rng.random(20) < rng.random(), 1.0, -1.0)
    side = SideInformation.build(40, preferences=np.column_stack([pairs, abs(w) * signs]))
    counts = side.multiplicity.sum() * rng.dirichlet(np.ones(n_components))
    weights, closed = cautious(Prior(side, ENGINES["gibbs"]))(counts), closed_form(counts)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    share = np.linalg.norm(weights - closed) / (np.linalg.norm(closed - 1 / n_components) or 1)
    assert 0 <= share <= 1 + 1e-12
    np.testing.assert_allclose(weights, closed + share * (1 / n_components - closed), atol=1e-9)
    # No other weights between closed form and equal weights have a higher objective.
    pull = max(SelectedPairs(side).slope((closed**2).sum()), 0)
    others = closed + np.linspace(0, 1, 500)[:, None] * (1 / n_components - closed)
    objective = lambda pi: np.log(pi) @ counts - pull * (pi**2).sum(axis=-1)  # noqa: E731
    assert objective(weights) >= objective(others).max() - 1e-9 * counts.sum()


@given(st.floats(0.05, 0.95), st.floats(0.5, 30.0))
def test_share_of_pairs_in_one_class_is_estimated_from_noisy_answers(s, w):
    """Estimate the share s if answers are wrong with probability 1 / (1 + e^w)."""
    n, p = 4000, 1 / (1 + np.exp(-w))
    signs = np.where(np.arange(n) < n * (p * s + (1 - p) * (1 - s)), 1.0, -1.0)
    rows = np.arange(2 * n).reshape(n, 2)
    side = SideInformation.build(2 * n, preferences=np.column_stack([rows, w * signs]))
    # The number of positive answers is rounded, which changes the estimate by up to 1 / n (2p - 1).
    pairs = SelectedPairs(side)
    assert pairs.balance == pytest.approx(s, abs=2 / n / (2 * p - 1))
    # log Z_prior increases with Σ_k π_k² up to this share, and is constant above it.
    first = (1 + np.sqrt(np.linspace(0, 1, 20))) / 2
    log_z = pairs.log_z(np.column_stack([first, 1 - first]))
    assert (np.diff(log_z) >= 0).all()
    beyond = first**2 + (1 - first) ** 2 >= pairs.balance
    np.testing.assert_array_equal(log_z[beyond], log_z[-1])


def test_error_of_an_engine_in_the_prior_names_nodes_of_the_whole_network():
    # The engine gets only nodes 2, 3 and 4, which have edges, and numbers them from 0.
    side = SideInformation.build(5, cannot_link=[[2, 3], [3, 4]])
    with pytest.raises(NetworkError, match="but node 3 has 2 relations"):
        Prior(side, ENGINES["pairs"])
