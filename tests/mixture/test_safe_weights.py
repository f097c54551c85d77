"""Test that the default weights' update is safe with every engine and exact with exact ones."""

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
from cgmm import ConstrainedGaussianMixture
from cgmm.inference import ENGINES
from cgmm.inference.gibbs import gibbs
from cgmm.mixture import Prior, log_joint, node_unaries, problem
from cgmm.mixture.prior import SelectedPairs
from cgmm.network import (
    ApproximationWarning,
    Inference,
    Marginals,
    Result,
    SideInformation,
    TooCostlyError,
)
from cgmm.numerics import warn_caller
from cgmm.scenarios import preferences

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
DRAWS = 12
# Standard error of the mean of these draws, for fits that start alike and end differently.
MARGIN = 0.02


def three_clumps(seed, n_samples=150, n_pairs=120):
    """Return overlapping clumps on a triangle, and true answers about random pairs."""
    rng = np.random.default_rng(seed)
    z, angle = rng.integers(3, size=n_samples), 2 * np.pi * np.arange(3) / 3
    centres = 2 / np.sqrt(3) * np.column_stack([np.cos(angle), np.sin(angle)])
    known = true_relations(rng, z, n_pairs)
    return centres[z] + rng.normal(size=(n_samples, 2)), z, known


def soften(known, w):
    """Return the answers as preferences of ±w."""
    return {"preferences": preferences(**known, certainty=expit(w))}


# ------------------------------------------------------------------ no harm


@cache
def found_without(seed):
    """Return the accuracy on the clumps without relations."""
    X, z, _ = three_clumps(seed)
    return adjusted_rand_score(z, ConstrainedGaussianMixture(3, random_state=0).fit(X).labels_)


@pytest.mark.parametrize(
    "name",
    ["auto", "belief_propagation", "tree_reweighted", "mean_field", "gibbs", "spanning_tree"],
)
def test_the_default_is_no_worse_than_no_relations(name):
    """Test the engines that accept such a network, one for each way of computing."""
    with_relations, asked = [], {"inference": name}
    if name == "gibbs":
        # Sampling would take most of the time, so it gets a small number of sweeps and iterations.
        asked = {"inference": partial(gibbs, n_sweeps=40, burn_in=10, n_chains=2), "max_iter": 3}
    for seed in range(DRAWS):
        X, z, known = three_clumps(seed)
        known = soften(known, 3.0) if name == "mean_field" else known
        model = ConstrainedGaussianMixture(3, random_state=0, **asked).fit(X, **known)
        with_relations.append(adjusted_rand_score(z, model.labels_))
    without = [*map(found_without, range(DRAWS))]
    assert np.mean(with_relations) >= np.mean(without) - MARGIN, (with_relations, without)


# ------------------------------------------------------------------ exact where it can be


def plain(graph):
    """Return a user's engine that finds no most probable assignment."""
    infer = ENGINES["junction_tree"](graph)
    return lambda unary: infer(unary)


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    engine=st.sampled_from(["auto", "junction_tree", "spanning_tree", plain]),
    sampling=st.sampled_from(["points", "chunklets"]),
)
def test_with_an_exact_engine_the_default_is_exact_to_the_last_bit(seed, engine, sampling):
    X, _z, known = three_clumps(seed, 40, 12)
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


def test_labels_make_the_posterior_cheap_but_not_the_prior():
    """The engine refuses unless evidence decides a node, so only the posterior is exact."""

    def only_decided(graph):
        infer = ENGINES["junction_tree"](graph)

        def answer(unary):
            if not np.isneginf(unary).any():
                raise TooCostlyError("{nodes} would take too long.", np.arange(2))
            return infer(unary)

        return replace(infer, marginals=answer)

    X = three_clumps(3, 40, 0)[0]
    known = {"cannot_link": [[0, 1]], "labels": [0] + [-1] * 39}
    model = ConstrainedGaussianMixture(3, inference=only_decided, random_state=0)
    assert model.fit(X, **known).weights_update_ == "cautious"
    with pytest.raises(TooCostlyError, match="points 0 and 1 would take too long"):
        model.set_params(weights="exact").fit(X, **known)


# ------------------------------------------------------------------ the evidence


def test_em_raises_the_evidence_with_the_normaliser_of_its_update():
    X, _z, known = three_clumps(1)
    known = soften(known, 3.0)
    model = ConstrainedGaussianMixture(3, inference="mean_field", random_state=0).fit(X, **known)
    side, theta = SideInformation.build(len(X), **known), model.parameters_
    log_z = ENGINES["mean_field"](side.graph)(log_joint(X, theta)).log_z
    raised = log_z - SelectedPairs(side).log_z(theta.weights)
    # If mean field's own bound of the prior were subtracted, it would jump.
    assert (np.diff([*model.history_, raised]) > -1e-3 * len(X)).all()
    with warnings.catch_warnings(action="ignore"):
        log_z_prior = Prior(side, ENGINES["auto"]).log_z(theta.weights)
    assert model.log_evidence_ == pytest.approx(log_z - log_z_prior, abs=1.0)


@pytest.mark.parametrize(
    ("weights", "name"),
    [("auto", "auto"), ("cautious", "auto"), ("ignore", "auto"), ("pseudo-likelihood", "auto"),
     ("auto", "tree_reweighted"), ("auto", "belief_propagation")],
)  # fmt: skip
def test_the_evidence_is_comparable_between_weight_updates(weights, name, monkeypatch):
    """The evidence has the network's normaliser after every update, and says if it is not exact."""
    X, _z, known = three_clumps(4, 40, 90)
    if weights == "auto":
        monkeypatch.setattr(
            problem, "PRIOR_CALLS_OF_A_FIT", 1e8
        )  # too expensive for an exact update by default
    options = {"covariance_type": "spherical", "random_state": 0}
    model = ConstrainedGaussianMixture(3, inference=name, weights=weights, **options)
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, **known)
    side, theta = SideInformation.build(len(X), **known), model.parameters_
    log_z = ENGINES["exact"](side.graph)(node_unaries(X, theta, side)).log_z
    exact = log_z - Prior(side, ENGINES["exact"]).log_z(theta.weights)
    assert model.log_evidence_ == pytest.approx(exact, abs=1e-6 if model.evidence_exact_ else 5)
    assert model.evidence_exact_ or name in ("belief_propagation", "tree_reweighted")
    expectation = nullcontext()
    if not model.evidence_exact_:
        expectation = pytest.warns(ApproximationWarning, match="is an approximation")
    with expectation:
        assert model.bic() == pytest.approx(-2 * model.log_evidence_ + 11 * np.log(40))
        assert model.aic() == pytest.approx(-2 * model.log_evidence_ + 11 * 2)


# ------------------------------------------------------------------ what is said


def converges_late(graph):
    """Return an engine that warns that it has not converged until its call number ``after``."""
    exact, calls = ENGINES["junction_tree"](graph), []

    def infer(unary):
        calls.append(1)
        if len(calls) < converges_late.after:
            warn_caller(f"still moving after {len(calls)}", ConvergenceWarning)
        return exact(unary)

    return infer


@pytest.mark.parametrize(("after", "n_warnings"), [(4, 0), (10**6, 1)])
@pytest.mark.parametrize("n_init", [1, 3])
def test_only_the_last_e_step_must_converge(after, n_warnings, n_init):
    X, _, known = three_clumps(5, 40, 12)
    converges_late.after = after
    model = ConstrainedGaussianMixture(
        2, inference=converges_late, weights="ignore", random_state=0, n_init=n_init, tol=1e-2,
        init_params="k-means++",
    )  # fmt: skip
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, **soften(known, 1.0))
    assert len(model.history_) >= 4
    assert [w.category for w in caught] == [ConvergenceWarning] * n_warnings
    assert all("still moving" in str(w.message) for w in caught)


def approximating(graph):
    """Return an engine that reports its results as approximate, with a new warning each time."""
    exact, calls = ENGINES["junction_tree"](graph), []

    def infer(unary):
        calls.append(1)
        warn_caller(f"answer {len(calls)} approximates", ApproximationWarning)
        return Marginals(*exact(unary)[:2], exact=False)

    result = Result(
        "belief_propagation", 1, 40, 2, exact=False, width=3, n_bytes=800, n_operations=99
    )
    return Inference(infer, results=lambda unary: [result], exact=False)


@pytest.mark.parametrize("n_init", [1, 3])
def test_a_fit_warns_once_of_an_approximate_engine(n_init):
    X, _z, hard = three_clumps(5, 40, 12)
    model = ConstrainedGaussianMixture(2, inference=approximating, random_state=0, n_init=n_init)
    for method, known in ((model.fit, soften(hard, 1.0)), (model.predict, {})):
        with warnings.catch_warnings(record=True, action="always") as caught:
            method(X, **known | {"cannot_link": [[0, 1]]})
        assert [(w.category, w.filename) for w in caught] == [(ApproximationWarning, __file__)]
    assert model.inference_ == (("belief_propagation", 1, 40, 2, False, 3, 800, 99),)


# ------------------------------------------------------------------ remedies

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
    """Every call that a message names is complete, and works on the refused input."""
    n_components, options, n_samples, cannot_link = CASES[case]
    rng = np.random.default_rng(0)
    centres = 5 * rng.normal(size=(n_components, 2))
    X = centres[np.arange(n_samples) % n_components] + rng.normal(size=(n_samples, 2))
    brief = {"random_state": 0, "max_iter": 5, "reg_covar": 0.1}
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        with pytest.raises((ValueError, RuntimeWarning)) as refusal:
            ConstrainedGaussianMixture(n_components, **brief, **options).fit(
                X, cannot_link=cannot_link
            )
        calls = list(CALL.finditer(str(refusal.value)))
        assert calls
        for call in calls:
            named = dict(re.findall(r"(\w+)='([\w-]+)'", call[3]))
            remedy = getattr(cgmm, call[1])(int(call[2]), **brief, **named)
            assert len(remedy.fit(X, cannot_link=cannot_link).labels_) == n_samples
