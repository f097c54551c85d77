"""Test upper bounds on the cost of a fit.

With relations it is measured by the table entries of exact inference, without side information by
the files and functions of the package that a fit enters.
"""

import sys
import warnings
from dataclasses import replace
from itertools import combinations, groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest
from answers import true_relations

import cgmm
from cgmm import ConstrainedGaussianMixture
from cgmm.inference import ENGINES
from cgmm.inference.auto import auto
from cgmm.mixture.problem import OPERATIONS_OF_A_FIT
from cgmm.network import ApproximationWarning

# Largest numbers of files and functions that a fit without side information may enter.
MOST_FILES, MOST_FUNCTIONS = 15, 80
# Largest number of files whose functions may get the points as an argument, and largest number of
# times that the points may come back to one file from another.
MOST_FILES_OF_X, MOST_RETURNS = 10, 2
# Files whose path begins with this belong to the package; a clone may also be in a folder "cgmm".
PACKAGE = str(Path(cgmm.__file__).parent)


@pytest.fixture
def entries_of_calls(monkeypatch):
    """Return a list that gets, for each call of "auto", its number of table entries."""
    counts = []

    def counting_auto(graph, **settings):
        infer = auto(graph, **settings)

        def count_and_infer(unary):
            counts.append(sum(part.n_operations for part in infer.results(unary) if part.exact))
            return infer(unary)

        return replace(infer, marginals=count_and_infer)

    monkeypatch.setitem(ENGINES, "auto", counting_auto)
    return counts


# Exact inference takes 4e5 to 2e8 table entries for a call, with an induced width of 16 or more.
@pytest.mark.parametrize(("seed", "n_pairs"), [(0, 1000), (1, 2000)])
def test_cost_of_a_fit_with_many_random_pairs_is_bounded(seed, n_pairs, entries_of_calls):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=900)
    known = true_relations(rng, y, n_pairs)
    X = 2.0 * np.eye(3)[y] + rng.normal(size=(900, 3))
    with warnings.catch_warnings(action="ignore", category=ApproximationWarning):
        model = ConstrainedGaussianMixture(3, random_state=seed).fit(X, **known)
    assert sum(entries_of_calls) <= 3 * OPERATIONS_OF_A_FIT
    assert model.weights_update_ in ("exact", "cautious")


def test_update_of_weights_is_cautious_if_only_the_prior_is_costly(entries_of_calls):
    """Only the update of weights is approximate if a clique of 13 points makes the prior costly."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 4])
    pairs = [[i, j, 0.1] for i in range(13) for j in range(i)]
    model = ConstrainedGaussianMixture(3, random_state=0, max_iter=2, tol=1.0)
    model.fit(X, preferences=pairs)
    assert 2e6 < max(entries_of_calls) < 2e7
    assert [result.engine for result in model.inference_ if result.n_edges] == ["junction_tree"]
    assert model.weights_update_ == "cautious"
    fitted = model.set_params(weights="exact").fit(X, preferences=pairs)
    assert fitted.weights_update_ == "exact"
    assert len(entries_of_calls) > 10


def test_budget_of_exact_inference_grows_with_the_number_of_points(monkeypatch):
    """Many small connected components cost no more than an iteration does, so all are exact."""
    monkeypatch.setattr("cgmm.mixture.problem.OPERATIONS_OF_A_FIT", 0)
    X = np.random.default_rng(0).normal(size=(600, 2))
    clique = np.array([*combinations(range(4), 2)])
    pairs = (clique + 4 * np.arange(150)[:, None, None]).reshape(-1, 2)
    model = ConstrainedGaussianMixture(3, init_params="random", tol=1e3, random_state=0)
    known = {"preferences": np.column_stack([pairs, np.full(len(pairs), -2.0)])}
    model.fit(X, **known)
    assert {result.engine for result in model.inference_} == {"junction_tree"}
    assert model.weights_update_ == "exact"
    monkeypatch.setattr("cgmm.mixture.problem.OPERATIONS_OF_A_NODE", 0)
    with pytest.warns(ApproximationWarning):
        assert model.fit(X, **known).weights_update_ == "cautious"


# ------------------------------------------------------------------ without side information


@pytest.fixture(scope="module")
def calls_of_a_plain_fit():
    """Return the functions of the package that a fit calls, and those that get its points.

    Each is a (file, function) pair, in the order of first calls.
    """
    rng = np.random.default_rng(0)
    X = np.repeat([[0, 0], [5, 0], [0, 5]], 100, axis=0) + rng.normal(size=(300, 2))
    X = np.asfortranarray(X)
    model = ConstrainedGaussianMixture(3, init_params="kmeans", random_state=0).fit(X)
    # Dictionaries keep the order of first calls.
    entered, with_points = {}, {}

    def record(frame, event, _):
        code = frame.f_code
        file = code.co_filename
        if event != "call" or not file.startswith(PACKAGE):
            return
        entered[file, code.co_qualname] = True
        n_arguments = code.co_argcount + code.co_kwonlyargcount
        arguments = [frame.f_locals.get(name) for name in code.co_varnames[:n_arguments]]
        if any(isinstance(value, np.ndarray) and np.shares_memory(value, X) for value in arguments):
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


def test_points_are_passed_back_to_a_file_at_most_twice(calls_of_a_plain_fit):
    """Successive calls that stay within one file are counted as one visit of the file."""
    _, with_points = calls_of_a_plain_fit
    visits = [file for file, _ in groupby(with_points, key=itemgetter(0))]
    assert 5 < len(set(visits)) <= MOST_FILES_OF_X
    assert max(map(visits.count, visits)) <= 1 + MOST_RETURNS
