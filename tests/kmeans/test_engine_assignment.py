"""Assignments by an engine of inference."""

import itertools
import warnings
from functools import partial

import numpy as np
import pytest
from hard_graphs import hard_graph
from kmeans_problems import never_rises, overlapping_pairs

from cgmm.inference import ENGINES
from cgmm.inference.auto import auto
from cgmm.kmeans import COPKMeans, PCKMeans, engine_rule
from cgmm.network import ApproximationWarning, Inference


@pytest.mark.parametrize("make", [COPKMeans, PCKMeans])
def test_an_engine_makes_every_assignment_the_best(make):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    must, cannot = overlapping_pairs(y, 25, 3)
    start = X[:3]
    exact = make(3, init=start, inference=auto).fit(X, must_link=must, cannot_link=cannot)
    search = make(3, init=start).fit(X, must_link=must, cannot_link=cannot)
    assert exact.assignment_optimal_
    assert never_rises(exact.history_)
    assert exact.history_[0] <= search.history_[0] + 1e-12
    if make is COPKMeans:
        assert search.assignment_optimal_
        np.testing.assert_array_equal(exact.labels_, search.labels_)
        assert exact.n_iter_ == search.n_iter_


def test_engines_that_cannot_or_will_not_answer():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match=r"'mean_field' cannot tell the most probable"):
        PCKMeans(2, inference=ENGINES["mean_field"]).fit(X, preferences=[[0, 1, 1.0]])
    triangle = [[0, 1], [1, 2], [0, 2]]
    with pytest.raises(ValueError, match=r"of points 0, 1 and 2 is.*point 0 - point 1"):
        COPKMeans(2, inference=auto).fit(X, must_link=[[0, 5]], cannot_link=triangle)


@pytest.mark.parametrize("Estimator", [COPKMeans, PCKMeans])
def test_what_a_refusal_names_is_accepted(Estimator):
    """Forty points of which every two should differ are out of the reach of exact inference."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    pairs = np.array(list(itertools.combinations(range(14), 2)))
    exact = partial(ENGINES["exact"], max_bytes=1000, max_operations=1e3)
    known = {"cannot_link": pairs[pairs[:, 1] - pairs[:, 0] < 9]}
    with pytest.raises(ValueError, match="Use inference='auto'"):
        Estimator(10, inference=exact, w=np.inf).fit(X, **known) if Estimator is PCKMeans else (
            Estimator(10, inference=exact).fit(X, **known)
        )
    for inference in ("auto", ENGINES["auto"]):
        with warnings.catch_warnings(action="ignore"):
            model = Estimator(10, inference=inference, random_state=0).fit(X, **known)
        assert model.converged_
    with pytest.raises(ValueError, match="inference"):
        Estimator(10, inference="no such engine").fit(X, **known)


def test_equally_good_assignments_do_not_keep_the_loop_going():
    answers = iter(np.array([[0, 1], [1, 0], [1, 0]]))

    def engine(graph):
        def infer(unary):
            raise NotImplementedError

        return Inference(infer, lambda unary: next(answers))

    rule = engine_rule(hard_graph(2, [[0, 1]]), engine)
    first, _ = rule(np.ones((2, 2)), None)
    second, _ = rule(np.ones((2, 2)), first)
    np.testing.assert_array_equal(first, second)
    third, _ = rule(np.array([[2.0, 1.0], [1.0, 2.0]]), first)
    np.testing.assert_array_equal(third, [1, 0])


def test_an_engine_that_approximates_a_part_does_not_call_the_assignment_optimal():
    ring = [[0, 1], [1, 2], [2, 3], [0, 3]]
    costs = np.random.default_rng(0).normal(size=(6, 3))
    z, optimal = engine_rule(hard_graph(6, ring), auto)(costs, None)
    assert optimal
    stingy = partial(auto, max_operations=10.0)
    with pytest.warns(ApproximationWarning):
        found, optimal = engine_rule(hard_graph(6, ring), stingy)(costs, None)
    assert not optimal
    assert all(found[a] != found[b] for a, b in ring)
    np.testing.assert_array_equal(found[4:], z[4:])
