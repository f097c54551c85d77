"""What a refusal or a warning of an engine names as a remedy is done here, on the case it names."""

import re
import warnings
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from grids_and_chains import grid
from sklearn.exceptions import ConvergenceWarning

from cgmm.inference import ENGINES, inference_cost
from cgmm.inference.belief_propagation import belief_propagation
from cgmm.network import ApproximationWarning, Graph, edgeless

REMEDY = re.compile(r"inference=(?:'(\w+)'|partial\((\w+)((?:, \w+=[\d.e+]+)+)\))")


def remedies(message):
    """The engines that a message names, with their settings."""
    calls = list(REMEDY.finditer(message))
    assert len(calls) == message.count("inference=") > 0, message
    for name, function, settings in (call.groups() for call in calls):
        pairs = [item.split("=") for item in (settings or "").split(", ")[1:]]
        numbers = {key: float(value) if "." in value or "e" in value else int(value)
                   for key, value in pairs}  # fmt: skip
        yield name or function, partial(ENGINES[name or function], **numbers)


def tied(n_nodes, edges, weights):
    edges = np.array(list(edges), dtype=np.intp).reshape(-1, 2)
    return Graph(n_nodes, edges, np.broadcast_to(np.asarray(weights, float), len(edges)).copy())


def grid_of(n, weight):
    return tied(n * n, grid(n, n), weight)


STAR = [(0, j) for j in range(1, 5)]
REFUSALS = {
    "independent": ("independent", tied(5, STAR, -1.0), {}),
    "pairs": ("pairs", tied(5, STAR, -np.inf), {}),
    "a soft clique": ("clique", tied(2, [(0, 1)], -1.0), {}),
    "no clique": ("clique", tied(5, STAR, -np.inf), {}),
    "mean field": ("mean_field", grid_of(12, -np.inf), {}),
    "enumeration": ("enumerate", edgeless(40), {}),
    "a junction tree": ("junction_tree", grid_of(6, 1.0), {"max_bytes": 10_000}),
    "few operations": ("exact", grid_of(7, 1.0), {"max_operations": 1e4}),
    "few bytes and operations": (
        "exact", grid_of(5, 1.0), {"max_bytes": 60_000, "max_operations": 1e4},
    ),
    "out of reach": ("exact", tied(40, combinations(range(40), 2), 0.1), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_what_a_refusal_names_answers(case):
    name, graph, settings = REFUSALS[case]
    unary = np.random.default_rng(0).normal(size=(graph.n_nodes, 3))
    with pytest.raises(ValueError, match="inference=") as refusal:
        ENGINES[name](graph, **settings)(unary)
    for engine, remedy in remedies(str(refusal.value)):
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            found = remedy(graph)(unary)
        assert np.isfinite(found.nodes).all()
        assert found.exact or engine != "exact"


@pytest.mark.parametrize(
    ("graph", "settings", "named"),
    [
        (grid_of(7, 1.0), {"max_operations": 1e4}, ["exact"]),
        (tied(40, combinations(range(40), 2), 0.1), {}, ["gibbs"]),
    ],
)
def test_what_the_warning_of_auto_names_answers(graph, settings, named):
    unary = np.random.default_rng(0).normal(size=(graph.n_nodes, 3))
    with pytest.warns(ApproximationWarning) as warned:
        ENGINES["auto"](graph, **settings)(unary)
    found = list(remedies(str(warned[0].message)))
    assert [engine for engine, _ in found] == named
    for engine, remedy in found:
        assert remedy(graph)(unary).exact == (engine == "exact")


@pytest.mark.parametrize("scale", [1e3, 3e5, 1e8])
def test_exact_is_named_just_where_the_cost_is_within_its_budget(scale, monkeypatch):
    """The grid takes 8.7e4 operations; the budget of exact, or a day's, is put beside it."""
    graph, unary = grid_of(7, 1.0), np.zeros((49, 3))
    (answer,) = inference_cost(graph, 3)
    monkeypatch.setattr("cgmm.inference.costs.MAX_OPERATIONS", scale)
    with pytest.warns(ApproximationWarning) as warned:
        ENGINES["auto"](graph, max_operations=100)(unary)
    message = str(warned[0].message)
    assert ("inference='exact'" in message) == (answer.n_operations <= scale)
    assert ("partial(exact, max_operations=" in message) == (answer.n_operations > scale)


def test_what_nobody_answers_exactly_has_a_cost_all_the_same():
    wide = tied(40, combinations(range(40), 2), 0.1)
    (answer,) = inference_cost(wide, 3)
    assert answer.engine == "none"
    assert not answer.exact
    assert answer.n_operations > 1e13
    # Beyond the memory, within a day: who has the memory is told how.
    slow, unary = tied(18, combinations(range(18), 2), 0.1), np.zeros((18, 3))
    with pytest.raises(ValueError, match=r"partial\(exact, max_bytes=\d+\), with exact from"):
        ENGINES["exact"](slow)(unary)


@pytest.mark.parametrize("engine", ["belief_propagation", "tree_reweighted"])
def test_what_messages_that_do_not_settle_name_answers(engine):
    rng = np.random.default_rng(0)
    graph = tied(12, combinations(range(12), 2), rng.normal(size=66))
    unary = rng.normal(size=(12, 3))
    with pytest.warns(ConvergenceWarning, match="did not converge") as warned:
        ENGINES[engine](graph, max_sweeps=3)(unary)
    found = dict(remedies(str(warned[0].message)))
    assert set(found) == {"gibbs", engine}
    for remedy in found.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isfinite(remedy(graph)(unary).nodes).all()


def test_damping_that_is_named_settles_what_does_not():
    """Whether it does everywhere nobody knows; here the undamped messages swing for ever."""
    graph, unary = tied(9, combinations(range(9), 2), -2.0), np.zeros((9, 2))
    unary[:4, 0] = 0.1
    with pytest.warns(ConvergenceWarning) as warned:
        belief_propagation(graph, damping=0.0)(unary)
    remedy = dict(remedies(str(warned[0].message)))["belief_propagation"]
    assert remedy(graph)(unary).residual < 1e-6
