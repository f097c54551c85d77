"""Test fits with approximate engines: feasible labels, restarts, convergence and warnings."""

import warnings
from functools import partial

import numpy as np
import pytest
from answers import true_relations
from hard_graphs import planted_colouring
from mixture_problems import draw_groups
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture
from cgmm.inference import ENGINES
from cgmm.inference.feasible import SearchBudgetError
from cgmm.inference.gibbs import Chains, gibbs
from cgmm.metrics import broken_relations
from cgmm.mixture import follow, log_joint
from cgmm.mixture import problem as module
from cgmm.mixture.loop import Posterior
from cgmm.mixture.problem import warn_about_chains
from cgmm.network import Inference, Marginals, NetworkError
from cgmm.numerics import warn_caller

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def ignore_relations(graph):
    """Return a user's engine that ignores relations and reports no log Z."""
    return lambda unary: Marginals(softmax(unary, axis=1), np.nan, exact=False)


brief_gibbs = partial(gibbs, n_sweeps=20, burn_in=10, n_chains=2)
INFERENCES = {
    **ENGINES,
    "gibbs": brief_gibbs,
    "spanning_tree": "spanning_tree",
    "no relations": ignore_relations,
}


def fit_model(engine, X, known, **settings):
    """Fit with weights that ignore relations, and a small number of iterations."""
    settings = {"weights": "ignore", "random_state": 0, "max_iter": 4, **settings}
    return ConstrainedGaussianMixture(3, inference=engine, **settings).fit(X, **known)


@pytest.mark.each_value
@pytest.mark.parametrize("name", INFERENCES)
@pytest.mark.parametrize("n_pairs", [600, 1000, 5000])
def test_no_engine_breaks_hard_relations(name, n_pairs):
    """Sampling, spanning trees and a user's engine may not refuse the network as too costly."""
    X, z = draw_groups(0, 900, spread=1.5)
    known = true_relations(np.random.default_rng(0), z, n_pairs)
    try:
        model = fit_model(INFERENCES[name], X, known)
    except NetworkError:
        assert name not in ("gibbs", "spanning_tree", "no relations")
    else:
        assert broken_relations(model.labels_, **known) == (0, 0)


def test_labels_are_exact_if_the_search_proves_it():
    X, z = draw_groups(0, spread=1.5)
    pairs = np.column_stack([np.arange(20), np.arange(1, 21)])
    chain = {"cannot_link": pairs[z[:20] != z[1:21]]}
    for engine in (brief_gibbs, ignore_relations):
        assert fit_model(engine, X, chain).labels_exact_
    exact, forest = (fit_model(engine, X, chain) for engine in ("auto", "spanning_tree"))
    assert exact.labels_exact_
    assert forest.labels_exact_
    np.testing.assert_array_equal(forest.labels_, exact.labels_)
    assert fit_model("gibbs", X, {}).labels_exact_


def test_unconverged_inference_warns_with_a_working_remedy(monkeypatch):
    graph, _ = planted_colouring(300, 3, 5, 0)
    X, _ = draw_groups(1, 300, spread=1.5)
    monkeypatch.setattr(module, "find_best", partial(module.find_best, max_search=3))
    # The initialisation by k-means++ does not search for an assignment itself.
    fit = partial(fit_model, ignore_relations, X, init_params="k-means++")
    # If the search after the fit finds no assignment, the one found before the fit is used.
    labels = fit({"cannot_link": graph.edges}).labels_
    assert broken_relations(labels, None, graph.edges) == (0, 0)
    monkeypatch.setattr(module, "FIRST_SEARCH", 3)
    with pytest.raises(SearchBudgetError, match=r"not known.*preferences=np.column_stack") as info:
        fit({"cannot_link": graph.edges})
    must_link, cannot_link = None, graph.edges
    call = "dict(" + str(info.value).partition("fit(X, ")[2].partition(")); or")[0] + "))"
    known = eval(call, {"np": np, "must_link": must_link, "cannot_link": cannot_link})
    assert not fit(known).labels_exact_


# ------------------------------------------------------------------ restarts and convergence


def test_restarts_without_evidence_are_compared_by_the_best_assignment(monkeypatch):
    rated, rate = [], module.AssignmentModel.classification_likelihood

    def record(self, points, run):
        rated.append((rate(self, points, run), run))
        return rated[-1][0]

    monkeypatch.setattr(module.AssignmentModel, "classification_likelihood", record)
    X, _ = draw_groups(0, 40, spread=1.5)
    plain = fit_model("gibbs", X, {}, n_init=3, tol=0, init_params="random_from_data")
    assert max(score for score, _ in rated) == pytest.approx(40 * plain.score(X), rel=1e-10)
    assert len(rated) == 3
    # Runs of an engine that reports evidence are compared by it, so none is rated.
    fit_model("independent", X, {}, n_init=3, init_params="random_from_data")
    assert len(rated) == 3
    rated.clear()
    model = fit_model(brief_gibbs, X, {"cannot_link": [[0, 1]]}, n_init=2, tol=0)
    score, run = max(rated, key=lambda pair: pair[0])
    np.testing.assert_array_equal(model.means_, run.parameters.means)
    joint = log_joint(X, run.parameters)
    of_pair = joint[0][:, None] + joint[1]
    np.fill_diagonal(of_pair, -np.inf)
    of_others = np.logaddexp.reduce(joint[2:], axis=1).sum()
    # [shental2003, eq. 12]
    prior = np.log(1 - np.square(run.parameters.weights).sum())
    assert score == pytest.approx(of_others + of_pair.max() - prior, rel=1e-10)


def test_chains_that_have_not_mixed_give_one_warning_for_a_fit():
    """Single-site moves rarely move five strongly related points between two clumps."""
    X = np.concatenate([np.zeros((5, 1)), np.linspace(-6, -5, 9)[:, None]])
    X = np.concatenate([X, -X[5:]])
    pairs = np.column_stack(np.triu_indices(5, 1))
    known = {"preferences": np.column_stack([pairs, np.full(10, 3.0)])}
    without_moves = partial(gibbs, cluster_moves=False, n_chains=8, random_state=0)
    model = ConstrainedGaussianMixture(
        2, covariance_type="tied", inference=without_moves, weights="ignore", tol=1.0, max_iter=9,
        means_init=[[-5.5], [5.5]],
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="R-hat is .* worth .*n_sweeps=1000") as caught:
        model.fit(X, **known)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings(action="error"):
        model.set_params(inference=partial(gibbs, n_sweeps=1000)).fit(X, **known)


def test_chains_give_a_warning_if_any_quantity_has_not_mixed():
    """A warning needs one quantity whose chains disagree, and enough sweeps to measure it."""
    mixed = np.random.default_rng(0).normal(size=(4, 100))
    apart = mixed + np.arange(4)[:, None]

    def warn(log_weights, *counts):
        nodes, best = np.zeros((1, 2)), np.zeros(1, dtype=int)
        warn_about_chains(Chains(nodes, log_weights, np.stack(counts), best))

    for quantities in ((mixed, mixed, apart), (apart, mixed, mixed)):
        with pytest.warns(ConvergenceWarning, match="R-hat is 1"):
            warn(*quantities)
    with warnings.catch_warnings(action="error"):
        warn(mixed, mixed, mixed)
        warn(apart[:, :3], apart[:, :3], mixed[:, :3])


def iterate_posteriors(path):
    """Yield posteriors without evidence, given responsibilities (N,) of one of two components."""
    for first in path:
        r = np.column_stack([first, 1 - first])
        yield None, Posterior(r, r.sum(axis=0), np.nan)


@pytest.mark.parametrize("noise", [1e-3, 2e-2])
def test_em_with_a_sampler_ends_if_only_noise_remains(noise):
    rng = np.random.default_rng(0)
    stationary = 0.5 + noise * rng.normal(size=(60, 400))
    moving = stationary + np.linspace(-0.4, 0.4, 60)[:, None]
    converging = 0.5 + 0.3 * 0.97 ** np.arange(60)[:, None] * np.ones(400)
    # Steps back and forth that are this large are not sampling noise.
    oscillating = 0.5 + 0.3 * (-1.0) ** np.arange(60)[:, None] * np.ones(400)
    runs = [
        follow(lambda _, path=path: iterate_posteriors(path), tol=1e-6, max_iter=50)
        for path in (stationary, moving, converging, oscillating)
    ]
    assert [run.converged for run in runs] == [True, False, False, False]
    assert runs[0].n_iter < 12


def test_an_interrupted_e_step_is_discarded():
    def steps(number):
        for evidence in (-9.0, -5.0):
            yield None, Posterior(np.eye(2), np.ones(2), evidence)
        warn_caller("not settled", ConvergenceWarning)
        raise KeyboardInterrupt

    with warnings.catch_warnings(action="error"):
        run = follow(steps, tol=1e-3, max_iter=9)
    assert (run.interrupted, run.warnings) == (True, ())


@pytest.mark.parametrize("is_stateful", [True, False])
def test_restarts_share_an_engine_only_if_it_is_stateless(is_stateful):
    """Three restarts of four E-steps each share an engine only if it keeps no state."""
    n_calls = []

    def engine(graph):
        number = len(n_calls)
        n_calls.append(0)

        def infer(unary):
            n_calls[number] += 1
            return Marginals(softmax(unary, axis=1), np.nan, exact=False)

        return Inference(infer, is_stateful=is_stateful)

    settings = {"n_init": 3, "max_iter": 3, "tol": 0.0, "init_params": "random"}
    fit_model(engine, draw_groups(0, 60)[0], {"cannot_link": [[0, 1]]}, **settings)
    assert sum(n_calls) >= 12
    assert max(n_calls) < 8 if is_stateful else max(n_calls) >= 12
