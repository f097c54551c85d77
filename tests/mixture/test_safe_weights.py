"""Test the default update of weights: it equals "exact" with exact engines, and does no harm."""

import re
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from answers import true_relations
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import cgmm
from cgmm import ConstrainedGaussianMixture, network
from cgmm.inference import ENGINES
from cgmm.inference.gibbs import gibbs
from cgmm.mixture import Prior, log_joint, node_unaries, problem
from cgmm.mixture.prior import SelectedPairs
from cgmm.numerics import warn_caller
from cgmm.scenarios import preferences

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N_DRAWS = 12
# The mean score may be lower by its standard error over N_DRAWS draws.
MARGIN = 0.02


def draw_three_clumps(seed, n_samples=150, n_pairs=120):
    """Draw three overlapping clumps; return points, clumps, and true relations of random pairs."""
    rng = np.random.default_rng(seed)
    z, angle = rng.integers(3, size=n_samples), 2 * np.pi * np.arange(3) / 3
    centres = 2 / np.sqrt(3) * np.column_stack([np.cos(angle), np.sin(angle)])
    known = true_relations(rng, z, n_pairs)
    return centres[z] + rng.normal(size=(n_samples, 2)), z, known


def soften(known, w):
    """Return hard relations as preferences with log-odds of ±w."""
    return {"preferences": preferences(**known, certainty=expit(w))}


# ------------------------------------------------------------------ accuracy


@cache
def score_without_relations(seed):
    """Return the adjusted Rand index of a fit without relations."""
    X, z, _ = draw_three_clumps(seed)
    return adjusted_rand_score(z, ConstrainedGaussianMixture(3, random_state=0).fit(X).labels_)


@pytest.mark.parametrize(
    "name",
    ["auto", "belief_propagation", "tree_reweighted", "mean_field", "gibbs", "spanning_tree"],
)
def test_default_update_with_relations_is_no_worse_than_no_relations(name):
    """Compare the mean adjusted Rand index of fits with true relations and without any."""
    scores, settings = [], {"inference": name}
    if name == "gibbs":
        # Sampling is slow, so it gets a small number of sweeps and iterations.
        settings = {"inference": partial(gibbs, n_sweeps=40, burn_in=10, n_chains=2), "max_iter": 3}
    for seed in range(N_DRAWS):
        X, z, known = draw_three_clumps(seed)
        known = soften(known, 3.0) if name == "mean_field" else known
        model = ConstrainedGaussianMixture(3, random_state=0, **settings).fit(X, **known)
        scores.append(adjusted_rand_score(z, model.labels_))
    scores_without = [*map(score_without_relations, range(N_DRAWS))]
    assert np.mean(scores) >= np.mean(scores_without) - MARGIN, (scores, scores_without)


# ------------------------------------------------------------------ exact updates


def infer_marginals_only(graph):
    """Return a user's engine without a method for the most probable assignment."""
    infer = ENGINES["junction_tree"](graph)
    return lambda unary: infer(unary)


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    engine=st.sampled_from(["auto", "junction_tree", "spanning_tree", infer_marginals_only]),
    sampling=st.sampled_from(["points", "chunklets"]),
)
def test_default_update_with_an_exact_engine_equals_the_exact_one(seed, engine, sampling):
    X, _z, known = draw_three_clumps(seed, 40, 12)
    known |= {"preferences": [[0, 1, 0.7], [1, 2, -0.4]]}
    options = {"inference": engine, "sampling": sampling, "random_state": 0, "reg_covar": 1e-2}
    default, exact = (
        ConstrainedGaussianMixture(3, **options, **weights).fit(X, **known)
        for weights in ({}, {"weights": "exact"})
    )
    assert default.weights_update_ == exact.weights_update_ == "exact"
    for name in ("weights_", "means_", "covariances_", "history_", "responsibilities_", "labels_"):
        np.testing.assert_array_equal(getattr(default, name), getattr(exact, name))
    assert default.log_evidence_ == exact.log_evidence_


def test_update_is_cautious_if_only_the_posterior_is_exact():
    """An engine may be exact for the posterior only, because labels simplify it."""

    def refuse_without_labels(graph):
        infer = ENGINES["junction_tree"](graph)

        def infer_or_refuse(unary):
            if not np.isneginf(unary).any():
                raise network.TooCostlyError("{nodes} would take too long.", np.arange(2))
            return infer(unary)

        return replace(infer, marginals=infer_or_refuse)

    X = draw_three_clumps(3, 40, 0)[0]
    known = {"cannot_link": [[0, 1]], "labels": [0] + [-1] * 39}
    model = ConstrainedGaussianMixture(3, inference=refuse_without_labels, random_state=0)
    assert model.fit(X, **known).weights_update_ == "cautious"
    with pytest.raises(network.TooCostlyError, match="points 0 and 1 would take too long"):
        model.set_params(weights="exact").fit(X, **known)


# ------------------------------------------------------------------ evidence


def test_em_raises_the_evidence_with_the_cautious_normaliser():
    X, _z, known = draw_three_clumps(1)
    known = soften(known, 3.0)
    model = ConstrainedGaussianMixture(3, inference="mean_field", random_state=0).fit(X, **known)
    side, theta = network.SideInformation.build(len(X), **known), model.parameters_
    log_z = ENGINES["mean_field"](side.graph)(log_joint(X, theta)).log_z
    final = log_z - SelectedPairs(side).log_z(theta.weights)
    # With the normaliser of mean field, which is only a bound, the evidence would jump.
    assert (np.diff([*model.history_, final]) > -1e-3 * len(X)).all()
    with warnings.catch_warnings(action="ignore"):
        log_z_prior = Prior(side, ENGINES["auto"]).log_z(theta.weights)
    assert model.log_evidence_ == pytest.approx(log_z - log_z_prior, abs=1.0)


@pytest.mark.parametrize(
    ("weights", "name"),
    [("auto", "auto"), ("cautious", "auto"), ("ignore", "auto"), ("pseudo-likelihood", "auto"),
     ("auto", "tree_reweighted"), ("auto", "belief_propagation")],
)  # fmt: skip
def test_evidence_is_comparable_between_updates_of_weights(weights, name, monkeypatch):
    """After every update the evidence uses the normaliser of the network, or warns if it cannot."""
    X, _z, known = draw_three_clumps(4, 40, 90)
    if weights == "auto":
        # At these costs the default is not the exact update.
        monkeypatch.setattr(problem, "PRIOR_CALLS_OF_A_FIT", 1e8)
    options = {"covariance_type": "spherical", "random_state": 0}
    model = ConstrainedGaussianMixture(3, inference=name, weights=weights, **options)
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, **known)
    side, theta = network.SideInformation.build(len(X), **known), model.parameters_
    log_z = ENGINES["exact"](side.graph)(node_unaries(X, theta, side)).log_z
    exact = log_z - Prior(side, ENGINES["exact"]).log_z(theta.weights)
    assert model.log_evidence_ == pytest.approx(exact, abs=1e-6 if model.evidence_exact_ else 5)
    assert model.evidence_exact_ or name in ("belief_propagation", "tree_reweighted")
    expectation = nullcontext()
    if not model.evidence_exact_:
        expectation = pytest.warns(network.ApproximationWarning, match="is an approximation")
    with expectation:
        assert model.bic() == pytest.approx(-2 * model.log_evidence_ + 11 * np.log(40))
        assert model.aic() == pytest.approx(-2 * model.log_evidence_ + 11 * 2)


# ------------------------------------------------------------------ warnings


def make_late_engine(graph, n_unconverged):
    """Return an engine that warns in its first calls that it has not converged."""
    exact, calls = ENGINES["junction_tree"](graph), []

    def infer(unary):
        calls.append(1)
        if len(calls) <= n_unconverged:
            warn_caller(f"not converged in call {len(calls)}", ConvergenceWarning)
        return exact(unary)

    return infer


@pytest.mark.parametrize(("n_unconverged", "n_warnings"), [(3, 0), (10**6, 1)])
@pytest.mark.parametrize("n_init", [1, 3])
def test_only_the_last_e_step_gives_a_convergence_warning(n_unconverged, n_warnings, n_init):
    X, _, known = draw_three_clumps(5, 40, 12)
    engine = partial(make_late_engine, n_unconverged=n_unconverged)
    model = ConstrainedGaussianMixture(
        2, inference=engine, weights="ignore", random_state=0, n_init=n_init, tol=1e-2,
        init_params="k-means++",
    )  # fmt: skip
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, **soften(known, 1.0))
    assert len(model.history_) >= 4
    assert [w.category for w in caught] == [ConvergenceWarning] * n_warnings
    assert all("not converged" in str(w.message) for w in caught)


def make_approximate_engine(graph):
    """Return an engine that gives a new warning in each call, because its result is approximate."""
    exact, calls = ENGINES["junction_tree"](graph), []

    def infer(unary):
        calls.append(1)
        warn_caller(f"result {len(calls)} is approximate", network.ApproximationWarning)
        return network.Marginals(*exact(unary)[:2], exact=False)

    result = network.Result("belief_propagation", 1, 40, 2, False, 3, 800, 99)
    return network.Inference(infer, results=lambda unary: [result], exact=False)


@pytest.mark.parametrize("n_init", [1, 3])
def test_a_fit_gives_one_warning_about_an_approximate_engine(n_init):
    X, _z, hard = draw_three_clumps(5, 40, 12)
    model = ConstrainedGaussianMixture(
        2, inference=make_approximate_engine, random_state=0, n_init=n_init
    )
    for method, known in ((model.fit, soften(hard, 1.0)), (model.predict, {})):
        with warnings.catch_warnings(record=True, action="always") as caught:
            method(X, **known | {"cannot_link": [[0, 1]]})
        assert [(w.category, w.filename) for w in caught] == [
            (network.ApproximationWarning, __file__)
        ]
    assert model.inference_ == (("belief_propagation", 1, 40, 2, False, 3, 800, 99),)


# ------------------------------------------------------------------ remedies in messages

STAR = [[0, j] for j in range(1, 30)]
CALL = re.compile(r"(Constrained\w+)\((\d+)((?:, \w+='[\w-]+')*)\)")
CASES = {
    "exact without a normaliser": (3, {"inference": "gibbs", "weights": "exact"}, 60, STAR[:1]),
    "a grid without a normaliser": (3, {"inference": "gibbs", "weights": "grid"}, 60, STAR[:1]),
    "a grid too fine": (6, {"weights": "grid"}, 60, STAR[:1]),
    "a grid too coarse": (101, {"weights": "grid"}, 120, STAR[:1]),
    "no maximum": (2, {"weights": "pseudo-likelihood"}, 31, STAR),
}


@pytest.mark.parametrize("case", CASES)
def test_remedies_named_in_warnings_work(case):
    """Every call that a message proposes is complete, and fits the points that were refused."""
    n_components, options, n_samples, cannot_link = CASES[case]
    rng = np.random.default_rng(0)
    centres = 5 * rng.normal(size=(n_components, 2))
    X = centres[np.arange(n_samples) % n_components] + rng.normal(size=(n_samples, 2))
    settings = {"random_state": 0, "max_iter": 5, "reg_covar": 0.1}
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        with pytest.raises((ValueError, RuntimeWarning)) as refusal:
            ConstrainedGaussianMixture(n_components, **settings, **options).fit(
                X, cannot_link=cannot_link
            )
        calls = list(CALL.finditer(str(refusal.value)))
        assert calls
        for call in calls:
            named = dict(re.findall(r"(\w+)='([\w-]+)'", call[3]))
            remedy = getattr(cgmm, call[1])(int(call[2]), **settings, **named)
            assert len(remedy.fit(X, cannot_link=cannot_link).labels_) == n_samples
