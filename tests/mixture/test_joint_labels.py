"""labels_ break no hard relation; runs are compared, and chains of samplers are judged."""

import warnings
from functools import partial

import numpy as np
import pytest
from answers import true_relations
from hard_graphs import planted_colouring
from mixture_problems import groups
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


def ignores_unaries(graph):
    """Return a user's engine that ignores relations and reports no log Z."""
    return lambda unary: Marginals(softmax(unary, axis=1), np.nan, exact=False)


brief = partial(gibbs, n_sweeps=20, burn_in=10, n_chains=2)
ANSWERS = {
    **ENGINES,
    "gibbs": brief,
    "spanning_tree": "spanning_tree",
    "an engine that is deaf": ignores_unaries,
}


def fit_model(engine, X, known, **settings):
    settings = {"weights": "ignore", "random_state": 0, "max_iter": 4, **settings}
    return ConstrainedGaussianMixture(3, inference=engine, **settings).fit(X, **known)


@pytest.mark.each_value
@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("n_pairs", [600, 1000, 5000])
def test_no_engine_breaks_hard_relations(name, n_pairs):
    """Other engines may refuse such a network before any work; these three may not."""
    X, z = groups(0, 900, spread=1.5)
    known = true_relations(np.random.default_rng(0), z, n_pairs)
    try:
        model = fit_model(ANSWERS[name], X, known)
    except NetworkError:
        assert name not in ("gibbs", "spanning_tree", "an engine that is deaf")
    else:
        assert broken_relations(model.labels_, **known) == (0, 0)


def test_labels_say_whether_they_are_known_to_be_the_best():
    X, z = groups(0, spread=1.5)
    chain = {"cannot_link": np.column_stack([np.arange(20), np.arange(1, 21)])}
    chain["cannot_link"] = chain["cannot_link"][z[:20] != z[1:21]]
    for engine in ("auto", brief, ignores_unaries, "spanning_tree"):
        assert fit_model(engine, X, chain).labels_exact_
    exact = fit_model("auto", X, chain)
    forest = fit_model("spanning_tree", X, chain)
    np.testing.assert_array_equal(forest.labels_, exact.labels_)
    assert fit_model("gibbs", X, {}).labels_exact_


def test_unconverged_inference_warns_with_a_working_remedy(monkeypatch):
    graph, _ = planted_colouring(300, 3, 5, 0)
    X, _ = groups(1, 300, spread=1.5)
    monkeypatch.setattr(module, "find_best", partial(module.find_best, max_search=3))
    fit = partial(
        fit_model, ignores_unaries, X, init_params="k-means++"
    )  # which searches nothing itself
    # An assignment found before the fit is used if the search after it finds none.
    labels = fit({"cannot_link": graph.edges}).labels_
    assert broken_relations(labels, None, graph.edges) == (0, 0)
    monkeypatch.setattr(module, "FIRST_SEARCH", 3)
    with pytest.raises(SearchBudgetError, match=r"not known.*preferences=np.column_stack") as info:
        fit({"cannot_link": graph.edges})
    must_link, cannot_link = None, graph.edges
    call = "dict(" + str(info.value).partition("fit(X, ")[2].partition(")); or")[0] + "))"
    known = eval(call, {"np": np, "must_link": must_link, "cannot_link": cannot_link})
    assert not fit(known).labels_exact_


# ---------------------------------------------------------------------------- runs and chains


def test_runs_without_evidence_are_rated_by_the_likelihood_of_the_best_assignment(monkeypatch):
    kept, rate = [], module.AssignmentModel.classification_likelihood

    def spy(self, points, run):
        kept.append((rate(self, points, run), run))
        return kept[-1][0]

    monkeypatch.setattr(module.AssignmentModel, "classification_likelihood", spy)
    X, _ = groups(0, 40, spread=1.5)
    plain = fit_model("gibbs", X, {}, n_init=3, tol=0, init_params="random_from_data")
    assert max(score for score, _ in kept) == pytest.approx(40 * plain.score(X), rel=1e-10)
    assert len(kept) == 3
    fit_model("independent", X, {}, n_init=3, init_params="random_from_data")
    assert len(kept) == 3  # an engine that reports an evidence is not rated
    kept.clear()
    model = fit_model(brief, X, {"cannot_link": [[0, 1]]}, n_init=2, tol=0)
    score, run = max(kept, key=lambda pair: pair[0])
    np.testing.assert_array_equal(model.means_, run.parameters.means)
    joint = log_joint(X, run.parameters)
    pair = joint[0][:, None] + joint[1]
    np.fill_diagonal(pair, -np.inf)
    rest = np.logaddexp.reduce(joint[2:], axis=1).sum()
    # [shental2003, eq. 12]
    prior = np.log(1 - np.square(run.parameters.weights).sum())
    assert score == pytest.approx(rest + pair.max() - prior, rel=1e-10)


def test_chains_that_had_not_mixed_are_warned_about_once_a_fit():
    """Five points between two clumps are linked by 3 nats each, and no cluster move helps."""
    X = np.concatenate([np.zeros((5, 1)), np.linspace(-6, -5, 9)[:, None]])
    X = np.concatenate([X, -X[5:]])
    pairs = np.column_stack(np.triu_indices(5, 1))
    odds = {"preferences": np.column_stack([pairs, np.full(10, 3.0)])}
    frozen = partial(gibbs, cluster_moves=False, n_chains=8, random_state=0)
    model = ConstrainedGaussianMixture(
        2, covariance_type="tied", inference=frozen, weights="ignore", tol=1.0, max_iter=9,
        means_init=[[-5.5], [5.5]],
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="R-hat is .* worth .*n_sweeps=1000") as caught:
        model.fit(X, **odds)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings(action="error"):
        model.set_params(inference=partial(gibbs, n_sweeps=1000)).fit(X, **odds)


def test_one_number_that_has_not_mixed_is_enough_and_too_few_sweeps_are_not_judged():
    mixed = np.random.default_rng(0).normal(size=(4, 100))
    apart = mixed + np.arange(4)[:, None]
    nodes, best = np.zeros((1, 2)), np.zeros(1, dtype=int)
    for log_weights, counts in ((mixed, [mixed, apart]), (apart, [mixed, mixed])):
        with pytest.warns(ConvergenceWarning, match="R-hat is 1"):
            warn_about_chains(Chains(nodes, log_weights, np.stack(counts), best))
    with warnings.catch_warnings(action="error"):
        warn_about_chains(Chains(nodes, mixed, np.stack([mixed, mixed]), best))
        warn_about_chains(Chains(nodes, apart[:, :3], np.stack([apart, mixed])[..., :3], best))


def without_evidence(path):
    """Return a sampler's posteriors along a path of the responsibility of one component in two."""
    for share in path:
        r = np.column_stack([share, 1 - share])
        yield None, Posterior(r, r.sum(axis=0), np.nan)


@pytest.mark.parametrize("noise", [1e-3, 2e-2])
def test_a_run_ends_at_noise_and_not_at_a_trend(noise):
    rng = np.random.default_rng(0)
    at = 0.5 + noise * rng.normal(size=(60, 400))
    moving = at + np.linspace(-0.4, 0.4, 60)[:, None]
    creeping = 0.5 + 0.3 * 0.97 ** np.arange(60)[:, None] * np.ones(400)
    # Large steps that return are not noise.
    swing = 0.5 + 0.3 * (-1.0) ** np.arange(60)[:, None] * np.ones(400)
    runs = [
        follow(lambda _, path=path: without_evidence(path), tol=1e-6, max_iter=50)
        for path in (at, moving, creeping, swing)
    ]
    assert [run.converged for run in runs] == [True, False, False, False]
    assert runs[0].n_iter < 12


def test_an_interrupted_e_step_is_discarded():
    r = np.eye(2)

    def steps(number):
        for evidence in (-9.0, -5.0):
            yield None, Posterior(r, r.sum(axis=0), evidence)
        warn_caller("not settled", ConvergenceWarning)
        raise KeyboardInterrupt

    with warnings.catch_warnings(action="error"):
        run = follow(steps, tol=1e-3, max_iter=9)
    assert (run.interrupted, run.warnings) == (True, ())


@pytest.mark.parametrize("is_stateful", [True, False])
def test_each_run_applies_an_engine_anew_if_it_remembers_its_calls(is_stateful):
    """Three runs of four E-steps each: no engine that remembers serves two of them."""
    n_calls = []

    def engine(graph):
        place = len(n_calls)
        n_calls.append(0)

        def infer(unary):
            n_calls[place] += 1
            return Marginals(softmax(unary, axis=1), np.nan, exact=False)

        return Inference(infer, is_stateful=is_stateful)

    settings = {"n_init": 3, "max_iter": 3, "tol": 0.0, "init_params": "random"}
    fit_model(engine, groups(0, 60)[0], {"cannot_link": [[0, 1]]}, **settings)
    assert sum(n_calls) >= 12
    assert max(n_calls) < 8 if is_stateful else max(n_calls) >= 12
