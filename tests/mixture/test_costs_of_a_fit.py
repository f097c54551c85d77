"""Bound the cost of a default fit in table entries, and test its warnings."""

import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from answers import truthful

from cgmm import ConstrainedGaussianMixture
from cgmm.inference import ENGINES
from cgmm.inference.auto import auto
from cgmm.mixture.assignments import OPERATIONS_OF_A_FIT
from cgmm.network import ApproximationWarning


@pytest.fixture
def visited(monkeypatch):
    """Record the table entries of every exact part that "auto" computes."""
    counts = []

    def counting(graph, **settings):
        infer = auto(graph, **settings)

        def counted(unary):
            counts.append(sum(a.n_operations for a in infer.results(unary) if a.exact))
            return infer(unary)

        return replace(infer, marginals=counted)

    monkeypatch.setitem(ENGINES, "auto", counting)
    return counts


# Exact at 2e8 to 4e5 entries a call, with an induced width of 16 or more.
@pytest.mark.parametrize(("seed", "n_pairs"), [(0, 1000), (1, 2000)])
def test_random_pairs_in_any_number_cost_a_few_seconds_at_most(seed, n_pairs, visited):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=900)
    known = truthful(rng, y, n_pairs)
    X = 2.0 * np.eye(3)[y] + rng.normal(size=(900, 3))
    with warnings.catch_warnings(action="ignore", category=ApproximationWarning):
        model = ConstrainedGaussianMixture(3, random_state=seed).fit(X, **known)
    assert sum(visited) <= 3 * OPERATIONS_OF_A_FIT
    assert model.weights_update_ in ("exact", "cautious")


def test_expensive_prior_counts_alone_are_avoided(visited):
    """A clique of ten preferences with K = 3 takes 3^10 entries a call, the prior twice that."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 4])
    pairs = [[i, j, 0.1] for i in range(13) for j in range(i)]
    model = ConstrainedGaussianMixture(3, random_state=0, max_iter=2, tol=1.0)
    model.fit(X, preferences=pairs)
    assert 2e6 < max(visited) < 2e7
    assert [answer.engine for answer in model.inference_ if answer.n_edges] == ["junction_tree"]
    assert model.weights_update_ == "cautious"
    fitted = model.set_params(weights="exact").fit(X, preferences=pairs)
    assert fitted.weights_update_ == "exact"
    assert len(visited) > 10


def test_the_budget_grows_with_the_points(monkeypatch):
    """Many small components cost no more than the rest of an iteration, so all are exact."""
    monkeypatch.setattr("cgmm.mixture.assignments.OPERATIONS_OF_A_FIT", 0)
    X = np.random.default_rng(0).normal(size=(600, 2))
    four = np.array([*combinations(range(4), 2)])
    tied = (four + 4 * np.arange(150)[:, None, None]).reshape(-1, 2)
    model = ConstrainedGaussianMixture(3, init_params="random", tol=1e3, random_state=0)
    known = {"preferences": np.column_stack([tied, np.full(len(tied), -2.0)])}
    model.fit(X, **known)
    assert {answer.engine for answer in model.inference_} == {"junction_tree"}
    assert model.weights_update_ == "exact"
    monkeypatch.setattr("cgmm.mixture.assignments.OPERATIONS_OF_A_NODE", 0)
    with pytest.warns(ApproximationWarning):
        assert model.fit(X, **known).weights_update_ == "cautious"
