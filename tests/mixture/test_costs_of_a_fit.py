"""Bound the cost of a fit: table entries with relations, files and functions without."""

import sys
import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from answers import true_relations

from cgmm import ConstrainedGaussianMixture
from cgmm.inference import ENGINES
from cgmm.inference.auto import auto
from cgmm.mixture.problem import OPERATIONS_OF_A_FIT
from cgmm.network import ApproximationWarning

# Bounds for a fit to 300 points of which nothing is known, from one K-means start.
MOST_FILES, MOST_FUNCTIONS = 15, 80
# Bounds on the files to which the points are handed, and on returns to one of them.
MOST_FILES_OF_X, MOST_RETURNS = 10, 2


@pytest.fixture
def count_visits(monkeypatch):
    """Record the table entries of every exact part that "auto" computes."""
    counts = []

    def counting(graph, **settings):
        infer = auto(graph, **settings)

        def count_calls(unary):
            counts.append(sum(a.n_operations for a in infer.results(unary) if a.exact))
            return infer(unary)

        return replace(infer, marginals=count_calls)

    monkeypatch.setitem(ENGINES, "auto", counting)
    return counts


# Exact at 2e8 to 4e5 entries a call, with an induced width of 16 or more.
@pytest.mark.parametrize(("seed", "n_pairs"), [(0, 1000), (1, 2000)])
def test_random_pairs_in_any_number_cost_a_few_seconds_at_most(seed, n_pairs, count_visits):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=900)
    known = true_relations(rng, y, n_pairs)
    X = 2.0 * np.eye(3)[y] + rng.normal(size=(900, 3))
    with warnings.catch_warnings(action="ignore", category=ApproximationWarning):
        model = ConstrainedGaussianMixture(3, random_state=seed).fit(X, **known)
    assert sum(count_visits) <= 3 * OPERATIONS_OF_A_FIT
    assert model.weights_update_ in ("exact", "cautious")


def test_expensive_prior_counts_alone_are_avoided(count_visits):
    """A clique of ten preferences with K = 3 takes 3^10 entries a call, the prior twice that."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 4])
    pairs = [[i, j, 0.1] for i in range(13) for j in range(i)]
    model = ConstrainedGaussianMixture(3, random_state=0, max_iter=2, tol=1.0)
    model.fit(X, preferences=pairs)
    assert 2e6 < max(count_visits) < 2e7
    assert [answer.engine for answer in model.inference_ if answer.n_edges] == ["junction_tree"]
    assert model.weights_update_ == "cautious"
    fitted = model.set_params(weights="exact").fit(X, preferences=pairs)
    assert fitted.weights_update_ == "exact"
    assert len(count_visits) > 10


def test_the_budget_grows_with_the_points(monkeypatch):
    """Many small components cost no more than the rest of an iteration, so all are exact."""
    monkeypatch.setattr("cgmm.mixture.problem.OPERATIONS_OF_A_FIT", 0)
    X = np.random.default_rng(0).normal(size=(600, 2))
    four = np.array([*combinations(range(4), 2)])
    tied = (four + 4 * np.arange(150)[:, None, None]).reshape(-1, 2)
    model = ConstrainedGaussianMixture(3, init_params="random", tol=1e3, random_state=0)
    known = {"preferences": np.column_stack([tied, np.full(len(tied), -2.0)])}
    model.fit(X, **known)
    assert {answer.engine for answer in model.inference_} == {"junction_tree"}
    assert model.weights_update_ == "exact"
    monkeypatch.setattr("cgmm.mixture.problem.OPERATIONS_OF_A_NODE", 0)
    with pytest.warns(ApproximationWarning):
        assert model.fit(X, **known).weights_update_ == "cautious"


# ------------------------------------------------------------------ a fit where nothing is known


@pytest.fixture(scope="module")
def calls_of_a_plain_fit():
    """Return the functions of the package that a fit enters, and those that get the points."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(
        np.repeat([[0, 0], [5, 0], [0, 5]], 100, axis=0) + rng.normal(size=(300, 2))
    )
    model = ConstrainedGaussianMixture(3, init_params="kmeans", random_state=0).fit(X)
    entered, with_points = {}, {}

    def record(frame, event, _):
        code = frame.f_code
        file = code.co_filename.rpartition("/cgmm/")[2]
        if event != "call" or file == code.co_filename:
            return
        entered[file, code.co_qualname] = True
        n_arguments = code.co_argcount + code.co_kwonlyargcount
        arguments = [frame.f_locals.get(name) for name in code.co_varnames[:n_arguments]]
        if any(isinstance(one, np.ndarray) and np.shares_memory(one, X) for one in arguments):
            with_points[file, code.co_qualname] = True

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        model.fit(X)
    finally:
        sys.setprofile(before)
    return list(entered), list(with_points)


def test_a_fit_without_side_information_enters_few_files_and_functions(calls_of_a_plain_fit):
    entered, _ = calls_of_a_plain_fit
    assert len({file for file, _ in entered}) <= MOST_FILES
    assert 40 < len(entered) <= MOST_FUNCTIONS


def test_the_points_return_to_no_file_more_than_twice(calls_of_a_plain_fit):
    """A stay in a file is a sequence of calls within it; a function counts at its first call."""
    _, with_points = calls_of_a_plain_fit
    files = [file for file, _ in with_points]
    stays = [file for file, before in zip(files, [None, *files], strict=False) if file != before]
    assert 5 < len(set(stays)) <= MOST_FILES_OF_X
    assert max(map(stays.count, stays)) <= 1 + MOST_RETURNS
