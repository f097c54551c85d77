"""Test the promises of every engine in the registry; a new engine is tested automatically."""

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
    assert_as_enumerated,
    chain,
    complete,
    enumerate_all,
    grid,
    make_graph,
    networks,
)

from cgmm import ConstrainedGaussianMixture
from cgmm.inference import ENGINES, inference_cost, named_engine, needs_seed
from cgmm.inference.closed_forms import pairs
from cgmm.network import ApproximationWarning, NetworkError, TooCostlyError, edgeless

pytestmark = pytest.mark.filterwarnings("ignore:the engine .* did not converge")
EVERY = pytest.mark.parametrize("name", ENGINES)
ANY = {"junction_tree", "auto", "exact", "enumerate"}
SIMPLE = ANY | {"pairs", "clique", "independent"}
HARD = -np.inf
TRIANGLE = [(0, 1), (0, 4), (1, 4)]
# Networks, and the engines that must be exact there; others may refuse or approximate.
PROBLEMS = {
    "no edges": (edgeless(5), SIMPLE),
    "idle edges": (make_graph(5, chain(3), 0.0), SIMPLE),
    "one node": (edgeless(1), SIMPLE),
    "soft pairs": (make_graph(5, [(0, 3), (4, 1)], [1.2, -0.7]), ANY | {"pairs"}),
    "hard pairs": (make_graph(5, [(0, 3), (4, 1)], HARD), ANY | {"pairs", "clique"}),
    "mixed pairs": (make_graph(5, [(0, 3), (4, 1)], [HARD, 2.0]), ANY | {"pairs"}),
    "pair named twice": (
        make_graph(5, [(0, 3), (3, 0)], [HARD, 2.0]),
        ANY | {"pairs", "clique"},
    ),
    "hard triangle": (make_graph(5, TRIANGLE, HARD), ANY | {"clique"}),
    "hard triangle and pair": (make_graph(5, [*TRIANGLE, (2, 3)], HARD), ANY | {"clique"}),
    "mixed triangle": (make_graph(5, TRIANGLE, [1.0, -1.0, HARD]), ANY),
    "path": (make_graph(5, chain(4), [0.5, HARD, -2.0]), ANY),
    "star": (make_graph(5, [(4, j) for j in range(4)], [HARD, 1.0, HARD, 0.3]), ANY),
    "hard cycle": (make_graph(5, [*chain(5), (0, 4)], HARD), ANY),
    "all soft": (make_graph(5, complete(5), np.linspace(-1, 1, 10)), ANY),
}


# ---------------------------------------------------------------------------- the answer


def evidence(graph, strong):
    """Draw log-potentials of three states; strong ones make some states impossible."""
    scale = 900.0 if strong else 1.0
    unary = np.random.default_rng(0).uniform(-scale, scale, size=(graph.n_nodes, 3))
    if strong:
        unary[0, 1:] = unary[-1, 2] = -np.inf
    return unary


@EVERY
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("strong", [False, True])
def test_an_engine_is_exact_or_says_that_it_is_not_or_refuses(name, problem, strong):
    graph, exact_ones = PROBLEMS[problem]
    unary = evidence(graph, strong)
    try:
        infer = ENGINES[name](graph)
    except NetworkError as refusal:
        assert name not in exact_ones
        for _, remedy in remedies(str(refusal)):
            assert_honest(remedy(graph), graph, unary)
        return
    assert assert_honest(infer, graph, unary).exact or name not in exact_ones


def assert_honest(infer, graph, unary):
    found, expected = infer(unary), enumerate_all(graph, unary)
    if found.exact:
        assert_as_enumerated(infer, graph, unary)
    np.testing.assert_allclose(found.nodes.sum(axis=1), 1, rtol=1e-10)
    assert (found.nodes[np.isneginf(unary)] == 0).all()
    if not graph.weights.any():
        # Without edges, approximate engines are exact as well.
        np.testing.assert_allclose(found.nodes, expected.nodes, rtol=1e-12, atol=1e-300)
        assert np.isnan(found.log_z) or found.log_z == pytest.approx(expected.log_z, rel=1e-12)
    return found


@EVERY
def test_what_an_engine_reports_of_its_exactness_its_marginals_report(name):
    for graph, infer in accepted_networks(name):
        for strong in (False, True):
            unary = evidence(graph, strong)
            found, results = infer(unary), infer.results(unary)
            assert infer.exact in (None, found.exact)
            assert infer.is_exact(unary) == found.exact
            assert all(result.exact for result in results) or not found.exact


@settings(max_examples=40)
@given(networks(max_nodes=7, p_forbidden=0.2), st.sampled_from([1, 30, 1e8]))
def test_the_parts_that_auto_reports_as_exact_are_those_whose_marginals_are(network, affordable):
    graph, unary = network
    infer = ENGINES["auto"](graph, max_operations=affordable)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        try:
            found, results = infer(unary), infer.results(unary)
        except NetworkError:
            return
    assert found.exact == infer.is_exact(unary) == (not infer.approximates(unary))
    for result in results:
        assert result.exact == (result.engine != "belief_propagation")
    if found.exact:
        assert_as_enumerated(infer, graph, unary)


def brief_engine(graph):
    """Return an exact engine, as a user may write it, that reports its results as approximate."""
    infer = ENGINES["enumerate"](graph)
    return lambda unary: infer(unary)._replace(exact=False)


@pytest.mark.parametrize("engine", [*(name for name in ENGINES if name != "clique"), brief_engine])
def test_a_fit_reports_what_the_marginals_of_its_engine_do(engine):
    """Independent nodes refuse relations, and the clique engine takes cannot-links only."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    known = {} if engine == "independent" else {"preferences": [[0, 5, -3.0]]}
    model = ConstrainedGaussianMixture(2, inference=engine, random_state=0, reg_covar=0.1)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X, **known)
    graph = make_graph(10, [(0, 5)] if known else [], -3.0)
    applied = named_engine(engine)(graph)
    assert len(model.inference_) == 1
    assert model.inference_[0].exact == applied(np.zeros((10, 2))).exact
    assert model.inference_[0].exact or not model.evidence_exact_


def test_an_engine_is_stateful_where_an_earlier_call_changes_its_marginals():
    graph, unary = make_graph(4, chain(4), 1.0), np.zeros((4, 2))
    unary[0, 0] = 1.0
    engines = {name: quick(name) for name in ENGINES if name not in ("pairs", "clique")}
    del engines["independent"]
    engines["growing"] = partial(ENGINES["gibbs"], n_sweeps=20, growth=1.5)
    for name, engine in engines.items():
        infer = named_engine(engine)(graph)
        first, again = infer(unary).nodes, infer(unary).nodes
        assert infer.is_stateful == (first != again).any(), name
    # A plain function may remember whatever it likes.
    assert named_engine(brief_engine)(graph).is_stateful


@EVERY
def test_an_engine_needs_a_seed_where_seeds_change_its_marginals(name):
    graph, unary = (
        make_graph(4, [(0, 1), (2, 3)], -np.inf if name == "clique" else 1.0),
        np.eye(4),
    )
    if name == "independent":
        graph = edgeless(4)
    engine = quick(name)
    if needs_seed(engine):
        one, other = (partial(engine, random_state=seed)(graph)(unary).nodes for seed in (1, 2))
        assert (one != other).any()
    else:
        one, other = (engine(graph)(unary).nodes for _ in range(2))
        np.testing.assert_array_equal(one, other)


def quick(name):
    """Return an engine; a sampler with a small number of sweeps."""
    return partial(ENGINES[name], **{"n_sweeps": 20} if name == "gibbs" else {})


def accepted_networks(name):
    """Return the networks that an engine accepts, and the engine prepared for each."""
    for graph, _ in PROBLEMS.values():
        try:
            yield graph, quick(name)(graph)
        except NetworkError:
            continue


@EVERY
def test_engines_keep_no_state_and_copy_nothing(name):
    """Calls leave their argument unchanged, and do not share memory with later results."""
    for graph, infer in accepted_networks(name):
        unary, other = evidence(graph, strong=False), evidence(graph, strong=True)
        before, first = unary.copy(), infer(unary)
        kept = first.nodes.copy()
        first.nodes[:] = np.nan
        infer(other)
        again = infer(unary)
        np.testing.assert_array_equal(again.nodes, kept)
        np.testing.assert_equal((again.log_z, again.residual), (first.log_z, first.residual))
        np.testing.assert_array_equal(unary, before)


@EVERY
def test_edges_given_twice_add_up_and_zeros_do_not_count(name):
    for graph, infer in accepted_networks(name):
        unary, idle = evidence(graph, strong=False), chain(graph.n_nodes)
        edges = np.concatenate([graph.edges, graph.edges[:, ::-1], idle])
        weights = np.concatenate([graph.weights / 2, graph.weights / 2, np.zeros(len(idle))])
        once, twice = (
            infer(unary),
            quick(name)(make_graph(graph.n_nodes, edges, weights))(unary),
        )
        np.testing.assert_allclose(twice.nodes, once.nodes, rtol=1e-12)
        assert twice.log_z == pytest.approx(once.log_z, rel=1e-12, nan_ok=True)


# ---------------------------------------------------------------------------- refusals


@EVERY
def test_impossible_networks_are_refused_or_not_called_exact(name):
    """There are too few states, or the evidence gives both ends of a cannot-link the same one."""
    for (graph, infer), n_states in itertools.product(accepted_networks(name), (2, 3)):
        unary = np.zeros((graph.n_nodes, n_states))
        unary[graph.edges[-1:], 4 - n_states :] = -np.inf
        if enumerate_all(graph, unary) is not None:
            continue
        for question in [infer, infer.most_probable][: 1 + infer.finds_best]:
            try:
                assert not question(unary).exact
            except NetworkError as error:
                blamed = np.isin(graph.edges, error.nodes).all(axis=1)
                alone = make_graph(graph.n_nodes, graph.edges[blamed], graph.weights[blamed])
                assert enumerate_all(alone, unary) is None
                assert all(str(j) in str(error) for j in error.nodes)  # noqa: PT017


@EVERY
@pytest.mark.parametrize(
    ("wrong", "message"), [(-np.inf, "only log-p.* -inf"), (np.nan, "nan"), (np.inf, "inf")]
)
def test_unaries_that_do_not_fit_or_leave_a_node_no_state_are_refused(name, wrong, message):
    infer, unary = ENGINES[name](edgeless(3)), np.zeros((3, 2))
    unary[1] = wrong
    for question in [infer, infer.most_probable][: 1 + infer.finds_best]:
        with pytest.raises(NetworkError, match=f"node 1 has .*{message}"):
            question(unary)
        for shape in ((3,), (2, 2), (3, 0)):
            with pytest.raises(ValueError, match=r"unary has shape .* \(3, K\)"):
                question(np.zeros(shape))


test_structures_that_an_engine_cannot_honour_are_named = refused(
    lambda name, graph: ENGINES[name](graph),
    ("independent", make_graph(3, chain(3), [0.0, HARD]), "nodes 1 and 2 are connected"),
    ("pairs", make_graph(4, [(0, 3), (3, 1)], 1.0), "node 3 has 2 relations"),
    (
        "mean_field",
        make_graph(4, [(0, 1), (3, 2)], [1.0, HARD]),
        r"nodes 3 and 2 may not .*\(edge 1 ",
    ),
    ("clique", make_graph(2, [(0, 1)], 2.0), "nodes 0 and 1 are tied with log-weight 2"),
    ("clique", make_graph(4, chain(3), HARD), "component of nodes 0, 1 and 2 some are not"),
    error=NetworkError,
)


OUT_OF_RANGE = {
    "max_sweeps": [0], "tol": [-1, np.nan], "damping": [1.0, -0.1], "n_sweeps": [0],
    "burn_in": [-1], "n_chains": [0], "growth": [0.5],
}  # fmt: skip
NO_RANGE = {"max_bytes", "max_operations", "verbose", "cluster_moves", "random_state"}


@EVERY
def test_settings_out_of_range_are_named(name):
    _, *settings = inspect.signature(ENGINES[name]).parameters
    for setting in set(settings) - NO_RANGE:
        for value in OUT_OF_RANGE[setting]:
            with pytest.raises(ValueError, match=f"{setting} is {value}"):
                ENGINES[name](make_graph(2, [(0, 1)], 1.0), **{setting: value})


# ---------------------------------------------------------------------------- remedies

REMEDY = re.compile(r"inference=(?:'(\w+)'|partial\((\w+)((?:, \w+=[\d.e+]+)+)\))")


def remedies(message):
    """Return the engines that a message names, with their settings."""
    calls = list(REMEDY.finditer(message))
    assert len(calls) == message.count("inference=") > 0, message
    for name, function, options in (call.groups() for call in calls):
        items = [item.split("=") for item in (options or "").split(", ")[1:]]
        numbers = {key: float(value) if "." in value or "e" in value else int(value)
                   for key, value in items}  # fmt: skip
        yield name or function, partial(ENGINES[name or function], **numbers)


GRIDS = {n: make_graph(n * n, grid(n, n), 1.0) for n in (5, 6, 7)}
WIDE = make_graph(40, complete(40), 0.1)
TOO_COSTLY = {
    "enumeration": ("enumerate", edgeless(40), {}),
    "a clique": ("clique", make_graph(30, complete(30), HARD), {}),
    "a junction tree": ("junction_tree", GRIDS[6], {"max_bytes": 10_000}),
    "few operations": ("exact", GRIDS[7], {"max_operations": 1e4}),
    "few bytes": ("exact", GRIDS[5], {"max_bytes": 60_000, "max_operations": 1e4}),
    "out of reach": ("exact", WIDE, {}),
}


@pytest.mark.parametrize("case", TOO_COSTLY)
def test_engines_named_in_a_cost_error_work(case):
    name, graph, settings = TOO_COSTLY[case]
    n_states = 30 if name == "clique" else 3
    unary = np.random.default_rng(0).normal(size=(graph.n_nodes, n_states))
    with pytest.raises(TooCostlyError, match="inference=") as refusal:
        ENGINES[name](graph, **settings)(unary)
    for engine, remedy in remedies(str(refusal.value)):
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            found = remedy(graph)(unary)
        assert np.isfinite(found.nodes).all()
        assert found.exact or engine != "exact"


@pytest.mark.parametrize("engine", ["belief_propagation", "tree_reweighted"])
def test_damping_named_in_a_convergence_warning_works(engine):
    rng = np.random.default_rng(0)
    graph, unary = make_graph(12, complete(12), rng.normal(size=66)), rng.normal(size=(12, 3))
    with pytest.warns(ConvergenceWarning, match="did not converge") as warned:
        residual = ENGINES[engine](graph, max_sweeps=3)(unary).residual
    message = str(warned[0].message)
    assert warned[0].filename == __file__
    for part in ("12 nodes", "66 relations", "3 sweeps", f"{residual:.1g}", "1e-07"):
        assert part in message
    found = dict(remedies(message))
    assert set(found) == {"gibbs", engine}
    for remedy in found.values():
        with warnings.catch_warnings(action="error"):
            assert np.isfinite(remedy(graph)(unary).nodes).all()


@pytest.mark.parametrize("affordable", [1e3, 3e5, 1e8])
def test_the_exact_engine_is_suggested_only_within_its_budget(affordable, monkeypatch):
    """The grid takes 8.7e4 operations; the budgets of exact and of a day are set around that."""
    graph, unary = GRIDS[7], np.zeros((49, 3))
    (result,) = inference_cost(graph, 3)
    monkeypatch.setattr("cgmm.inference.costs.MAX_OPERATIONS", affordable)
    with pytest.warns(ApproximationWarning) as warned:
        ENGINES["auto"](graph, max_operations=100)(unary)
    message = str(warned[0].message)
    assert ("inference='exact'" in message) == (result.n_operations <= affordable)
    assert ("partial(exact, max_operations=" in message) == (result.n_operations > affordable)
    for _, remedy in remedies(message):
        assert remedy(graph)(unary).exact


def test_networks_beyond_every_exact_engine_report_a_cost_and_are_sampled():
    (result,) = inference_cost(WIDE, 3)
    assert (result.engine, result.exact) == ("none", False)
    assert result.n_operations > 1e13
    with pytest.warns(ApproximationWarning) as warned:
        ENGINES["auto"](WIDE)(np.zeros((40, 3)))
    assert [engine for engine, _ in remedies(str(warned[0].message))] == ["gibbs"]
    # A cost beyond the memory but within a day: the message says how to allow it.
    with pytest.raises(TooCostlyError, match=r"partial\(exact, max_bytes=\d+\), with exact from"):
        ENGINES["exact"](make_graph(18, complete(18), 0.1))(np.zeros((18, 3)))


# ---------------------------------------------------------------------------- the simplest of them


def brute_force(graph, unary):
    """Return marginals and Z by loops that follow the definition literally."""
    nodes = np.zeros_like(unary)
    for z in itertools.product(range(unary.shape[1]), repeat=len(unary)):
        weight = np.prod([np.exp(u[k]) for u, k in zip(unary, z, strict=True)])
        for (a, b), w in zip(graph.edges, graph.weights, strict=True):
            weight *= np.exp(w) if z[a] == z[b] else 1.0
        nodes[range(len(z)), z] += weight
    return nodes, nodes[0].sum()


@given(networks(max_nodes=5, p_forbidden=0.3))
def test_enumeration_equals_brute_force(network):
    nodes, z_total = brute_force(*network)
    found = enumerate_all(*network)
    if found is None:
        assert z_total == 0
        return
    assert found.exact
    np.testing.assert_allclose(found.nodes, nodes / z_total, rtol=1e-10, atol=1e-14)
    assert found.log_z == pytest.approx(np.log(z_total), rel=1e-10, abs=1e-12)


def test_ties_between_assignments_go_to_the_lowest_labels():
    infer = pairs(make_graph(2, [(0, 1)], HARD))
    np.testing.assert_array_equal(infer.most_probable(np.zeros((2, 3))), [0, 1])
