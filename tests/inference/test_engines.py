"""Test every engine in the registry; a new engine is tested automatically."""

import inspect
import itertools
import re
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from sklearn.exceptions import ConvergenceWarning
from small_networks import (
    all_edges,
    assert_equals_enumeration,
    chain_edges,
    enumerate_all,
    get_query_functions,
    grid_edges,
    make_graph,
    networks,
    subgraph,
)

from cgmm import ConstrainedGaussianMixture
from cgmm.inference import ENGINES, inference_cost, named_engine, needs_seed
from cgmm.inference.closed_forms import pairs
from cgmm.network import ApproximationWarning, NetworkError, TooCostlyError, edgeless

pytestmark = pytest.mark.filterwarnings("ignore:the engine .* did not converge")
EVERY_ENGINE = pytest.mark.parametrize("name", ENGINES)
GENERAL = {"junction_tree", "auto", "exact", "enumerate"}
SIMPLE = GENERAL | {"pairs", "clique", "independent"}
HARD = -np.inf
TRIANGLE = [(0, 1), (0, 4), (1, 4)]
# Each problem is a network with the engines that must be exact for it; others may refuse it or
# approximate.
PROBLEMS = {
    "no edges": (edgeless(5), SIMPLE),
    "edges of weight zero": (make_graph(5, chain_edges(3), 0.0), SIMPLE),
    "one node": (edgeless(1), SIMPLE),
    "soft pairs": (make_graph(5, [(0, 3), (4, 1)], [1.2, -0.7]), GENERAL | {"pairs"}),
    "hard pairs": (make_graph(5, [(0, 3), (4, 1)], HARD), GENERAL | {"pairs", "clique"}),
    "mixed pairs": (make_graph(5, [(0, 3), (4, 1)], [HARD, 2.0]), GENERAL | {"pairs"}),
    "pair given twice": (
        make_graph(5, [(0, 3), (3, 0)], [HARD, 2.0]),
        GENERAL | {"pairs", "clique"},
    ),
    "hard triangle": (make_graph(5, TRIANGLE, HARD), GENERAL | {"clique"}),
    "hard triangle and pair": (make_graph(5, [*TRIANGLE, (2, 3)], HARD), GENERAL | {"clique"}),
    "mixed triangle": (make_graph(5, TRIANGLE, [1.0, -1.0, HARD]), GENERAL),
    "path": (make_graph(5, chain_edges(4), [0.5, HARD, -2.0]), GENERAL),
    "star": (make_graph(5, [(4, j) for j in range(4)], [HARD, 1.0, HARD, 0.3]), GENERAL),
    "hard cycle": (make_graph(5, [*chain_edges(5), (0, 4)], HARD), GENERAL),
    "all soft": (make_graph(5, all_edges(5), np.linspace(-1, 1, 10)), GENERAL),
}


# ---------------------------------------------------------------------------- exactness


def draw_unary(graph, strong):
    """Draw log-potentials of three states; if ``strong``, they are large and forbid some states."""
    scale = 900.0 if strong else 1.0
    unary = np.random.default_rng(0).uniform(-scale, scale, size=(graph.n_nodes, 3))
    if strong:
        unary[0, 1:] = unary[-1, 2] = -np.inf
    return unary


@EVERY_ENGINE
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("strong", [False, True])
def test_an_engine_is_exact_or_reports_an_approximation_or_refuses(name, problem, strong):
    graph, exact_engines = PROBLEMS[problem]
    unary = draw_unary(graph, strong)
    try:
        infer = ENGINES[name](graph)
    except NetworkError as refusal:
        assert name not in exact_engines
        for _, remedy in parse_remedies(str(refusal)):
            check_claimed_exactness(remedy(graph), graph, unary)
        return
    assert check_claimed_exactness(infer, graph, unary).exact or name not in exact_engines


def check_claimed_exactness(infer, graph, unary):
    """Check a result that claims to be exact, and that all reports of exactness agree."""
    result, expected = infer(unary), enumerate_all(graph, unary)
    assert infer.exact in (None, result.exact)
    assert infer.is_exact(unary) == result.exact
    assert all(part.exact for part in infer.results(unary)) or not result.exact
    if result.exact:
        assert_equals_enumeration(infer, graph, unary)
    np.testing.assert_allclose(result.nodes.sum(axis=1), 1, rtol=1e-10)
    assert (result.nodes[np.isneginf(unary)] == 0).all()
    if not graph.weights.any():
        # Without edges, approximate engines are exact, too.
        np.testing.assert_allclose(result.nodes, expected.nodes, rtol=1e-12, atol=1e-300)
        assert np.isnan(result.log_z) or result.log_z == pytest.approx(expected.log_z, rel=1e-12)
    return result


@settings(max_examples=40)
@given(networks(max_nodes=7, p_forbidden=0.2), st.sampled_from([1, 30, 1e8]))
def test_auto_reports_the_exactness_of_each_part_of_a_network(network, max_operations):
    graph, unary = network
    infer = ENGINES["auto"](graph, max_operations=max_operations)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        if enumerate_all(graph, unary) is None:
            return
        result = check_claimed_exactness(infer, graph, unary)
        assert result.exact == (not infer.approximates(unary))
        for part in infer.results(unary):
            assert part.exact == (part.engine != "belief_propagation")


def make_custom_engine(graph):
    """Return a user-defined engine: a function that marks its results as approximate."""
    infer = ENGINES["enumerate"](graph)
    return lambda unary: infer(unary)._replace(exact=False)


@pytest.mark.parametrize(
    "engine", [*(name for name in ENGINES if name != "clique"), make_custom_engine]
)
def test_a_fit_reports_the_exactness_of_its_engine(engine):
    """The clique engine is skipped, because it accepts cannot-links only."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    relations = {} if engine == "independent" else {"preferences": [[0, 5, -3.0]]}
    model = ConstrainedGaussianMixture(2, inference=engine, random_state=0, reg_covar=0.1)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X, **relations)
    graph = make_graph(10, [(0, 5)] if relations else [], -3.0)
    applied = named_engine(engine)(graph)
    assert len(model.inference_) == 1
    assert model.inference_[0].exact == applied(np.zeros((10, 2))).exact
    assert model.inference_[0].exact or not model.evidence_exact_


def test_an_engine_is_stateful_if_an_earlier_call_changes_its_marginals():
    graph, unary = make_graph(4, chain_edges(4), 1.0), np.zeros((4, 2))
    unary[0, 0] = 1.0
    engines = {name: configure_engine(name) for name in ENGINES if name not in ("pairs", "clique")}
    del engines["independent"]
    engines["growing"] = partial(ENGINES["gibbs"], n_sweeps=20, growth=1.5)
    for name, engine in engines.items():
        infer = named_engine(engine)(graph)
        first, again = infer(unary).nodes, infer(unary).nodes
        assert infer.is_stateful == (first != again).any(), name
    # A plain function may have a state, so it counts as stateful.
    assert named_engine(make_custom_engine)(graph).is_stateful


@EVERY_ENGINE
def test_an_engine_needs_a_seed_if_seeds_change_its_marginals(name):
    weight = {"independent": 0.0, "clique": HARD}.get(name, 1.0)
    graph, unary = make_graph(4, [(0, 1), (2, 3)], weight), np.eye(4)
    engine = configure_engine(name)
    if needs_seed(engine):
        one, other = (partial(engine, random_state=seed)(graph)(unary).nodes for seed in (1, 2))
        assert (one != other).any()
    else:
        one, other = (engine(graph)(unary).nodes for _ in range(2))
        np.testing.assert_array_equal(one, other)


def configure_engine(name):
    """Return an engine by its name; the sampler runs 20 sweeps only, to save time."""
    return partial(ENGINES[name], **{"n_sweeps": 20} if name == "gibbs" else {})


def iterate_accepted_networks(name):
    """Yield the networks that an engine accepts, and the engine prepared for each."""
    for graph, _ in PROBLEMS.values():
        try:
            yield graph, configure_engine(name)(graph)
        except NetworkError:
            continue


@EVERY_ENGINE
def test_engines_keep_no_state_and_do_not_share_memory(name):
    """Calls leave their argument unchanged, and overwriting a result does not affect later ones."""
    for graph, infer in iterate_accepted_networks(name):
        unary, other = draw_unary(graph, strong=False), draw_unary(graph, strong=True)
        before, first = unary.copy(), infer(unary)
        kept = first.nodes.copy()
        first.nodes[:] = np.nan
        infer(other)
        again = infer(unary)
        np.testing.assert_array_equal(again.nodes, kept)
        np.testing.assert_equal((again.log_z, again.residual), (first.log_z, first.residual))
        np.testing.assert_array_equal(unary, before)


@EVERY_ENGINE
def test_duplicate_edges_add_up_and_edges_of_weight_zero_do_not_count(name):
    for graph, infer in iterate_accepted_networks(name):
        unary, zero_edges = draw_unary(graph, strong=False), chain_edges(graph.n_nodes)
        edges = np.concatenate([graph.edges, graph.edges[:, ::-1], zero_edges])
        halves = graph.weights / 2
        weights = np.concatenate([halves, halves, np.zeros(len(zero_edges))])
        doubled = configure_engine(name)(make_graph(graph.n_nodes, edges, weights))
        once, twice = infer(unary), doubled(unary)
        np.testing.assert_allclose(twice.nodes, once.nodes, rtol=1e-12)
        assert twice.log_z == pytest.approx(once.log_z, rel=1e-12, nan_ok=True)


# ---------------------------------------------------------------------------- refusals


@EVERY_ENGINE
def test_infeasible_networks_are_refused_or_not_called_exact(name):
    """Either there are too few states, or both ends of a cannot-link have the same only state."""
    for (graph, infer), n_states in itertools.product(iterate_accepted_networks(name), (2, 3)):
        unary = np.zeros((graph.n_nodes, n_states))
        unary[graph.edges[-1:], 4 - n_states :] = -np.inf
        if enumerate_all(graph, unary) is not None:
            continue
        for query in get_query_functions(infer):
            try:
                assert not query(unary).exact
            except NetworkError as error:
                named = subgraph(graph, error.nodes)
                assert enumerate_all(named, unary) is None
                assert all(str(j) in str(error) for j in error.nodes)  # noqa: PT017


@EVERY_ENGINE
@pytest.mark.parametrize(
    ("value", "message"), [(-np.inf, "only log-p.* -inf"), (np.nan, "nan"), (np.inf, "inf")]
)
def test_engines_refuse_unaries_of_wrong_shape_or_without_a_possible_state(name, value, message):
    infer, unary = ENGINES[name](edgeless(3)), np.zeros((3, 2))
    unary[1] = value
    for query in get_query_functions(infer):
        with pytest.raises(NetworkError, match=f"node 1 has .*{message}"):
            query(unary)
        for shape in ((3,), (2, 2), (3, 0)):
            with pytest.raises(ValueError, match=r"unary has shape .* \(3, K\)"):
                query(np.zeros(shape))


test_engines_refuse_networks_that_they_do_not_support = refused(
    lambda name, graph: ENGINES[name](graph),
    ("independent", make_graph(3, chain_edges(3), [0.0, HARD]), "nodes 1 and 2 are connected"),
    ("pairs", make_graph(4, [(0, 3), (3, 1)], 1.0), "node 3 has 2 relations"),
    ("mean_field", make_graph(4, [(0, 1), (3, 2)], [1, HARD]), r"nodes 3 and 2 may.*\(edge 1 "),
    ("clique", make_graph(2, [(0, 1)], 2.0), "nodes 0 and 1 are joined by an edge of log-weight 2"),
    ("clique", make_graph(4, chain_edges(3), HARD), "component of nodes 0, 1 and 2 some are not"),
    error=NetworkError,
)


INVALID_SETTINGS = {
    "max_sweeps": [0], "tol": [-1, np.nan], "damping": [1.0, -0.1], "n_sweeps": [0],
    "burn_in": [-1], "n_chains": [0], "growth": [0.5],
}  # fmt: skip
SETTINGS_WITHOUT_RANGE = {"max_bytes", "max_operations", "verbose", "cluster_moves", "random_state"}


@EVERY_ENGINE
def test_engines_refuse_settings_out_of_range(name):
    _, *settings = inspect.signature(ENGINES[name]).parameters
    for setting in set(settings) - SETTINGS_WITHOUT_RANGE:
        for value in INVALID_SETTINGS[setting]:
            with pytest.raises(ValueError, match=f"{setting} is {value}"):
                ENGINES[name](make_graph(2, [(0, 1)], 1.0), **{setting: value})


# ---------------------------------------------------------------------------- remedies in messages

REMEDY = re.compile(r"inference=(?:'(\w+)'|partial\((\w+)((?:, \w+=[\d.e+]+)+)\))")


def parse_remedies(message):
    """Yield name and configured engine for each remedy `inference=...` in a message."""
    calls = list(REMEDY.finditer(message))
    assert len(calls) == message.count("inference=") > 0, message
    for name, function, options in (call.groups() for call in calls):
        items = [item.split("=") for item in (options or "").split(", ")[1:]]
        numbers = {key: float(value) if "." in value or "e" in value else int(value)
                   for key, value in items}  # fmt: skip
        yield name or function, partial(ENGINES[name or function], **numbers)


GRIDS = {n: make_graph(n * n, grid_edges(n, n), 1.0) for n in (5, 6, 7)}
WIDE = make_graph(40, all_edges(40), 0.1)
TOO_COSTLY = {
    "enumeration": ("enumerate", edgeless(40), {}),
    "a clique": ("clique", make_graph(30, all_edges(30), HARD), {}),
    "a junction tree": ("junction_tree", GRIDS[6], {"max_bytes": 10_000}),
    "little time": ("exact", GRIDS[7], {"max_operations": 1e4}),
    "little time and memory": ("exact", GRIDS[5], {"max_bytes": 60_000, "max_operations": 1e4}),
    "no exact engine": ("exact", WIDE, {}),
}


@pytest.mark.parametrize("case", TOO_COSTLY)
def test_engines_named_in_a_cost_error_work(case):
    name, graph, settings = TOO_COSTLY[case]
    n_states = 30 if name == "clique" else 3
    unary = np.random.default_rng(0).normal(size=(graph.n_nodes, n_states))
    with pytest.raises(TooCostlyError, match="inference=") as refusal:
        ENGINES[name](graph, **settings)(unary)
    for engine, remedy in parse_remedies(str(refusal.value)):
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            result = remedy(graph)(unary)
        assert np.isfinite(result.nodes).all()
        assert result.exact or engine != "exact"


@pytest.mark.parametrize("engine", ["belief_propagation", "tree_reweighted"])
def test_damping_named_in_a_convergence_warning_works(engine):
    rng = np.random.default_rng(0)
    graph, unary = make_graph(12, all_edges(12), rng.normal(size=66)), rng.normal(size=(12, 3))
    with pytest.warns(ConvergenceWarning, match="did not converge") as warned:
        residual = ENGINES[engine](graph, max_sweeps=3)(unary).residual
    message = str(warned[0].message)
    assert warned[0].filename == __file__
    for part in ("12 nodes", "66 relations", "3 sweeps", f"{residual:.1g}", "1e-07"):
        assert part in message
    result = dict(parse_remedies(message))
    assert set(result) == {"gibbs", engine}
    for remedy in result.values():
        with warnings.catch_warnings(action="error"):
            assert np.isfinite(remedy(graph)(unary).nodes).all()


@pytest.mark.parametrize("max_operations", [1e3, 3e5, 1e8])
def test_the_exact_engine_is_suggested_only_within_its_budget(max_operations, monkeypatch):
    """The grid costs 8.7e4 operations; default budgets are set below and above that."""
    graph, unary = GRIDS[7], np.zeros((49, 3))
    (result,) = inference_cost(graph, 3)
    monkeypatch.setattr("cgmm.inference.costs.MAX_OPERATIONS", max_operations)
    with pytest.warns(ApproximationWarning) as warned:
        ENGINES["auto"](graph, max_operations=100)(unary)
    message = str(warned[0].message)
    assert ("inference='exact'" in message) == (result.n_operations <= max_operations)
    assert ("partial(exact, max_operations=" in message) == (result.n_operations > max_operations)
    for _, remedy in parse_remedies(message):
        assert remedy(graph)(unary).exact


def test_networks_too_wide_for_exact_engines_are_sampled():
    (result,) = inference_cost(WIDE, 3)
    assert (result.engine, result.exact) == ("none", False)
    assert result.n_operations > 1e13
    with pytest.warns(ApproximationWarning) as warned:
        ENGINES["auto"](WIDE)(np.zeros((40, 3)))
    assert [engine for engine, _ in parse_remedies(str(warned[0].message))] == ["gibbs"]
    # If only the memory exceeds its limit, the message says how to raise the limit.
    with pytest.raises(TooCostlyError, match=r"partial\(exact, max_bytes=\d+\), with exact from"):
        ENGINES["exact"](make_graph(18, all_edges(18), 0.1))(np.zeros((18, 3)))


# ---------------------------------------------------------------------------- enumeration


def sum_over_assignments(graph, unary):
    """Return Z p(z_j = k) and Z as sums of the weights of all assignments, by the definition."""
    z = np.array(list(itertools.product(range(unary.shape[1]), repeat=len(unary))))
    a, b = graph.edges.T
    edge_sums = np.where(z[:, a] == z[:, b], graph.weights, 0.0).sum(axis=1)
    weights = np.exp(unary[np.arange(len(unary)), z].sum(axis=1) + edge_sums)
    nodes = np.einsum("s,sjk->jk", weights, np.eye(unary.shape[1])[z])
    return nodes, weights.sum()


@given(networks(max_nodes=5, p_forbidden=0.3))
def test_enumeration_equals_sums_over_all_assignments(network):
    nodes, z_total = sum_over_assignments(*network)
    result = enumerate_all(*network)
    if result is None:
        assert z_total == 0
        return
    assert result.exact
    np.testing.assert_allclose(result.nodes, nodes / z_total, rtol=1e-10, atol=1e-14)
    assert result.log_z == pytest.approx(np.log(z_total), rel=1e-10, abs=1e-12)


def test_equally_probable_assignments_are_resolved_to_the_lowest_labels():
    infer = pairs(make_graph(2, [(0, 1)], HARD))
    np.testing.assert_array_equal(infer.most_probable(np.zeros((2, 3))), [0, 1])
