"""What a fit does by default is safe with every engine, and with exact ones it is exact."""

import inspect
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from cgmm import (
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    SemiSupervisedGaussianClassifier,
)
from cgmm.inference import ENGINES
from cgmm.inference.gibbs import gibbs
from cgmm.mixture import UPDATES, Prior, assignments, auto, cautious, closed_form, node_unaries
from cgmm.mixture.prior import SelectedPairs
from cgmm.mixture.weights import MOST_QUESTIONS, resolve
from cgmm.network import (
    Answer,
    ApproximationWarning,
    Inference,
    Marginals,
    NetworkError,
    SideInformation,
    TooCostlyError,
)
from cgmm.numerics import warn_caller

ESTIMATORS = (
    ConstrainedGaussianMixture, ConstrainedCategoricalMixture, SemiSupervisedGaussianClassifier,
)  # fmt: skip
DRAWS = 12
# The mean of so few draws, of fits that start alike but do not end alike.
MARGIN = 0.02


def three_clumps(seed, n_samples=150, n_pairs=120, separation=1.0):
    """Overlapping clumps on a triangle, and pairs at random answered truthfully."""
    rng = np.random.default_rng(seed)
    z, angle = rng.integers(3, size=n_samples), 2 * np.pi * np.arange(3) / 3
    centres = 2 * separation / np.sqrt(3) * np.column_stack([np.cos(angle), np.sin(angle)])
    pairs = rng.integers(n_samples, size=(n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return centres[z] + rng.normal(size=(n_samples, 2)), z, pairs, z[pairs[:, 0]] == z[pairs[:, 1]]


def as_known(pairs, same, w):
    """The answers as hard relations, or as preferences of ±w."""
    if np.isinf(w):
        return {"must_link": pairs[same], "cannot_link": pairs[~same]}
    return {"preferences": np.column_stack([pairs, np.where(same, w, -w)])}


def quiet_fit(model, X, **known):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **known)


def weight_for(name):
    """Hard relations for engines that take them, else preferences."""
    try:
        quiet_fit(
            ConstrainedGaussianMixture(3, inference=name, max_iter=1, random_state=0),
            *three_clumps(0, 30, 0)[:1], cannot_link=[[0, 1]],
        )  # fmt: skip
    except NetworkError:
        return 3.0
    return np.inf


# ------------------------------------------------------------------ the default


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_default_chooses(estimator):
    assert inspect.signature(estimator).parameters["weights"].default == "auto"
    assert next(iter(UPDATES)) == "auto"


# Those that answer as others do here, or take longer, are slow.
RARE = {"exact", "junction_tree", "tree_reweighted"}
EACH = [pytest.param(name, marks=[pytest.mark.slow] * (name in RARE)) for name in ENGINES]


@pytest.mark.parametrize("name", [*EACH, "spanning_tree"])
def test_the_default_is_no_worse_than_no_relations(name):
    """A refusal is no worse clustering; what is answered must not be one."""
    without, told = [], []
    w = weight_for(name)
    for seed in range(DRAWS):
        X, z, pairs, same = three_clumps(seed)
        asked = {"inference": name, "random_state": 0}
        if name == "gibbs":
            # Sampling would take most of the seconds; some sweeps and iterations show the way.
            asked |= {
                "inference": partial(gibbs, n_sweeps=40, burn_in=10, n_chains=2),
                "max_iter": 3,
            }
        model = ConstrainedGaussianMixture(3, **asked)
        try:
            quiet_fit(model, X, **as_known(pairs, same, w))
        except NetworkError:
            continue
        told.append(adjusted_rand_score(z, model.labels_))
        plain = quiet_fit(ConstrainedGaussianMixture(3, random_state=0), X)
        without.append(adjusted_rand_score(z, plain.labels_))
    if not told:
        pytest.skip("refuses such a network")
    assert np.mean(told) >= np.mean(without) - MARGIN, (told, without)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(["auto", "junction_tree", "spanning_tree"]),
    sampling=st.sampled_from(["points", "chunklets"]),
)
def test_with_an_exact_engine_the_default_is_exact_to_the_last_bit(seed, name, sampling):
    X, _z, pairs, same = three_clumps(seed, 40, 12)
    known = as_known(pairs, same, np.inf) | {"preferences": [[0, 1, 0.7], [1, 2, -0.4]]}
    options = {"inference": name, "sampling": sampling, "random_state": 0, "reg_covar": 1e-2}
    default, exact = (
        quiet_fit(ConstrainedGaussianMixture(3, **options, **weights), X, **known)
        for weights in ({}, {"weights": "exact"})
    )
    assert default.weights_update_ == exact.weights_update_ == "exact"
    for name in ("weights_", "means_", "covariances_", "history_", "responsibilities_", "labels_"):
        np.testing.assert_array_equal(getattr(default, name), getattr(exact, name))
    assert default.log_evidence_ == exact.log_evidence_


def test_an_engine_of_the_user_is_exact_if_it_says_so():
    """It need not tell a most probable assignment for that."""

    def plain(graph):
        infer = ENGINES["junction_tree"](graph)
        return lambda unary: infer(unary)

    def modest(graph):
        infer = ENGINES["junction_tree"](graph)
        return lambda unary: infer(unary)._replace(exact=False)

    X, _z, pairs, same = three_clumps(0, 40, 12)
    known = as_known(pairs, same, np.inf)
    exact, other, closed = (
        quiet_fit(ConstrainedGaussianMixture(3, inference=engine, random_state=0), X, **known)
        for engine in (ENGINES["junction_tree"], plain, modest)
    )
    np.testing.assert_array_equal(exact.weights_, other.weights_)
    assert (other.weights_update_, closed.weights_update_) == ("exact", "cautious")
    assert np.abs(closed.weights_ - exact.weights_).max() > 1e-4


def test_what_em_raises_has_the_normaliser_that_the_update_assumes():
    X, _z, pairs, same = three_clumps(1)
    known = as_known(pairs, same, 3.0)
    model = ConstrainedGaussianMixture(3, inference="mean_field", random_state=0)
    quiet_fit(model, X, **known)
    side, theta = SideInformation.build(len(X), **known), model.parameters_
    log_z = ENGINES["mean_field"](side.graph)(theta.log_joint(X)).log_z
    raised = log_z - SelectedPairs(side).log_z(theta.weights)
    # With mean field's own bound of the prior subtracted it would jump.
    assert (np.diff([*model.history_, raised]) > -1e-3 * len(X)).all()
    with warnings.catch_warnings(action="ignore"):
        log_z_prior = Prior(side, ENGINES["auto"]).log_z(theta.weights)
    assert model.log_evidence_ == pytest.approx(log_z - log_z_prior, abs=1.0)


EVIDENCE = {weights: ["auto"] for weights in ("auto", "cautious", "ignore", "pseudo-likelihood")}
EVIDENCE["auto"] += [*sorted(RARE), "belief_propagation"]


@pytest.mark.parametrize(("weights", "name"), [(w, e) for w in EVIDENCE for e in EVIDENCE[w]])
@pytest.mark.parametrize("n_pairs", [20, 90])
def test_the_evidence_means_one_thing(weights, name, n_pairs, monkeypatch):
    """With the network's normaliser, whatever update was made; and marked where it is not exact."""
    X, _z, pairs, same = three_clumps(4, 40, n_pairs)
    known = as_known(pairs, same, np.inf)
    if weights == "auto":
        monkeypatch.setattr(assignments, "QUESTIONS", 1e8)  # dear: no exact update by default
    options = {"covariance_type": "spherical", "random_state": 0}
    model = ConstrainedGaussianMixture(3, inference=name, weights=weights, **options)
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, **known)
    side, theta = SideInformation.build(len(X), **known), model.parameters_
    log_z = ENGINES["exact"](side.graph)(node_unaries(X, theta, side)).log_z
    exact = log_z - Prior(side, ENGINES["exact"]).log_z(theta.weights)
    assert model.log_evidence_ == pytest.approx(exact, abs=1e-6 if model.evidence_exact_ else 5)
    assert model.evidence_exact_ or name in ("belief_propagation", "tree_reweighted")
    said = nullcontext()
    if not model.evidence_exact_:
        said = pytest.warns(ApproximationWarning, match="is an approximation")
    with said:
        assert model.bic() == pytest.approx(-2 * model.log_evidence_ + 11 * np.log(40))


def test_gibbs_needs_no_other_weights():
    X, _z, pairs, same = three_clumps(2, 60, 40)
    model = ConstrainedGaussianMixture(3, inference="gibbs", random_state=0, max_iter=5)
    quiet_fit(model, X, **as_known(pairs, same, np.inf))
    assert model.weights_update_ == "cautious"
    assert np.isnan(model.log_evidence_)


def test_evidence_makes_the_posterior_cheap_and_not_the_prior():
    """An engine that gives up unless a node is decided: the posterior is answered, exactly."""

    def only_decided(graph):
        infer = ENGINES["junction_tree"](graph)

        def answer(unary):
            if not np.isneginf(unary).any():
                raise TooCostlyError("{nodes} would take too long.", np.arange(2))
            return infer(unary)

        return replace(infer, marginals=answer)

    X, _, _, _ = three_clumps(3, 40, 0)
    known = {"cannot_link": [[0, 1]], "labels": [0] + [-1] * 39}
    model = ConstrainedGaussianMixture(3, inference=only_decided, random_state=0)
    assert quiet_fit(model, X, **known).weights_update_ == "cautious"
    with pytest.raises(TooCostlyError, match="points 0 and 1 would take too long"):
        quiet_fit(model.set_params(weights="exact"), X, **known)


# ------------------------------------------------------------------ the choice itself


def test_the_choice_by_engine():
    side = SideInformation.build(3, preferences=[[0, 1, -9.0]])
    chosen = {name: resolve("auto", Prior(side, ENGINES[name]), 2) for name in ENGINES_OF_PAIRS}
    assert chosen["mean_field"] == chosen["gibbs"] == "cautious"
    assert chosen["auto"] == chosen["pairs"] == chosen["enumerate"] == "exact"
    for name in UPDATES:
        assert name == "auto" or resolve(name, Prior(side, ENGINES["gibbs"]), 2) == name
    # Without an edge every engine is exact: the prior has no tied node to ask about.
    chunklets = SideInformation.build(3, must_link=[[0, 1]])
    assert resolve("auto", Prior(chunklets, ENGINES["gibbs"]), 2) == "exact"


ENGINES_OF_PAIRS = [name for name in ENGINES if name not in ("independent", "clique")]


@given(seed=st.integers(0, 10**6))
def test_the_update_auto_is_the_one_that_it_stands_for(seed):
    rng = np.random.default_rng(seed)
    side = SideInformation.build(4, preferences=[[0, 1, rng.normal()], [1, 2, rng.normal()]])
    counts = 4 * rng.dirichlet(np.ones(3))
    for engine in ("junction_tree", "mean_field"):
        prior = Prior(side, ENGINES[engine])
        stands_for = UPDATES[resolve("auto", prior, 3)](prior)
        assert UPDATES["auto"] is auto
        np.testing.assert_array_equal(auto(prior)(counts), stands_for(counts))


def settles_late(graph):
    """An engine whose messages settle only after four answers."""
    exact, calls = ENGINES["junction_tree"](graph), []

    def infer(unary):
        calls.append(1)
        if len(calls) < settles_late.after:
            warn_caller(f"still moving after {len(calls)}", ConvergenceWarning)
        return exact(unary)

    return infer


@pytest.mark.parametrize(("after", "n_warnings"), [(4, 0), (10**6, 1)])
@pytest.mark.parametrize("n_init", [1, 3])
def test_only_the_last_answer_of_a_run_need_be_settled(after, n_warnings, n_init):
    X, _, pairs, same = three_clumps(5, 40, 12)
    settles_late.after = after
    model = ConstrainedGaussianMixture(
        2, inference=settles_late, weights="ignore", random_state=0, n_init=n_init, tol=1e-2,
        init_params="k-means++",
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, **as_known(pairs, same, 1.0))
    assert len(model.history_) >= 4
    assert [w.category for w in told] == [ConvergenceWarning] * n_warnings
    assert all("still moving" in str(w.message) for w in told)


# ------------------------------------------------------------------ caution


@given(
    seed=st.integers(0, 10**6),
    w=st.sampled_from([-np.inf, -2.0, 0.5, 3.0, 800.0]),
    n_components=st.integers(1, 4),
)
def test_cautious_weights_lie_between_the_closed_form_and_equal_ones(seed, w, n_components):
    rng = np.random.default_rng(seed)
    ends = rng.permutation(40).reshape(20, 2)
    signs = np.where(rng.random(20) < rng.random(), 1.0, -1.0)
    side = SideInformation.build(40, preferences=np.column_stack([ends, abs(w) * signs]))
    counts = side.multiplicity.sum() * rng.dirichlet(np.ones(n_components))
    weights, closed = cautious(Prior(side, ENGINES["gibbs"]))(counts), closed_form(counts)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    share = np.linalg.norm(weights - closed) / (np.linalg.norm(closed - 1 / n_components) or 1)
    assert 0 <= share <= 1 + 1e-12
    np.testing.assert_allclose(weights, closed + share * (1 / n_components - closed), atol=1e-9)
    # No other weights on the way are better.
    pull = max(SelectedPairs(side).slope((closed**2).sum()), 0)
    tried = closed + np.linspace(0, 1, 500)[:, None] * (1 / n_components - closed)
    objective = lambda pi: np.log(pi) @ counts - pull * (pi**2).sum(axis=-1)  # noqa: E731
    assert objective(weights) >= objective(tried).max() - 1e-9 * counts.sum()


def test_a_component_without_counts_stays_without():
    side = SideInformation.build(6, preferences=[[0, 1, 3.0], [2, 3, 3.0]])
    weights = cautious(Prior(side, ENGINES["gibbs"]))(np.array([5.0, 1.0, 0.0]))
    assert weights[2] == 0
    assert 1 / 6 < weights[1] < 0.5


def test_what_only_says_apart_or_is_balanced_leaves_the_closed_form():
    counts = np.array([4.5, 1.5])
    for signs, is_closed in (([-1, -1, -1], True), ([1, -1, 1], True), ([1, 1, 1], False)):
        known = np.column_stack([[0, 2, 4], [1, 3, 5], 50.0 * np.array(signs)])
        prior = Prior(SideInformation.build(6, preferences=known), ENGINES["gibbs"])
        # Two of three together: s is 0.625 by the counts and 0.667 by the answers.
        agrees = np.allclose(cautious(prior)(counts), counts / 6, atol=0.02)
        assert agrees == is_closed


@given(st.floats(0.05, 0.95), st.floats(0.5, 30.0))
def test_the_balance_of_answers_is_the_chance_of_the_same_class(s, w):
    """An answer errs with the probability 1 / (1 + e^w) that belongs to its w."""
    n, p = 4000, 1 / (1 + np.exp(-w))
    signs = np.where(np.arange(n) < n * (p * s + (1 - p) * (1 - s)), 1.0, -1.0)
    ends = np.arange(2 * n).reshape(n, 2)
    side = SideInformation.build(2 * n, preferences=np.column_stack([ends, w * signs]))
    # The share of answers is a multiple of 1 / n, and 2p - 1 ≥ 0.24.
    pairs = SelectedPairs(side)
    assert pairs.balance == pytest.approx(s, abs=2 / n / (2 * p - 1))
    # What is held against weights rises up to there, and no further.
    first = (1 + np.sqrt(np.linspace(0, 1, 20))) / 2
    log_z = pairs.log_z(np.column_stack([first, 1 - first]))
    assert (np.diff(log_z) >= 0).all()
    beyond = first**2 + (1 - first) ** 2 >= pairs.balance
    np.testing.assert_array_equal(log_z[beyond], log_z[-1])


@pytest.mark.parametrize("w", [1.0, 2.0, 3.0])
def test_an_image_does_not_lose_its_classes(w):
    """The closed form does: neighbours only ever say "together", and the largest takes all."""
    n, rng = 24, np.random.default_rng(0)
    rows, columns = np.divmod(np.arange(n * n), n)
    z = 2 * (rows < n // 2) + (columns < n // 2)
    X = 1.6 * np.column_stack([z // 2, z % 2]) + rng.normal(size=(n * n, 2))
    places = np.arange(n * n).reshape(n, n)
    across = np.column_stack([places[:, :-1].ravel(), places[:, 1:].ravel()])
    down = np.column_stack([places[:-1].ravel(), places[1:].ravel()])
    edges = np.concatenate([across, down])
    told = {"preferences": np.column_stack([edges, np.full(len(edges), w)])}
    plain = quiet_fit(ConstrainedGaussianMixture(4, random_state=0), X)
    model = ConstrainedGaussianMixture(4, inference="mean_field", random_state=0)
    score = adjusted_rand_score(z, quiet_fit(model, X, **told).labels_)
    assert model.weights_update_ == "cautious"
    assert score > adjusted_rand_score(z, plain.labels_)
    assert model.weights_.min() > 0.02


# ------------------------------------------------------------------ why, and what it costs


def test_the_bound_of_the_prior_jumps_at_equal_weights():
    """Why "exact" with mean field fails: its maximum is where the bound of Z_prior is worst."""
    _, _, pairs, same = three_clumps(0, 1000, 2000)
    side = SideInformation.build(1000, **as_known(pairs, same, 5.0))
    prior = Prior(side, ENGINES["mean_field"])
    even = np.full(3, -np.log(3))
    aside = even + 1e-6 * np.array([1, 0, -1])
    low, counts = prior.log_z_and_counts(even)
    high, counts_aside = prior.log_z_and_counts(aside)
    # Symmetric and stationary: equal counts, and no step leads away.
    np.testing.assert_allclose(counts, 1000 / 3, rtol=1e-9)
    assert high - low > 1000
    # The gradient knows nothing of the jump: 1e-6 times the counts.
    assert abs(counts_aside @ (aside - even)) < 1


def test_an_approximate_engine_is_asked_so_often_and_no_more():
    side = SideInformation.build(60, preferences=[[i, i + 1, 5.0 * (-1) ** i] for i in range(59)])
    asked = []

    def engine(graph):
        infer = ENGINES["mean_field"](graph)

        def jumps(unary):
            asked.append(1)
            marginals = infer(unary)
            # No function of the weights: it never settles.
            return marginals._replace(log_z=marginals.log_z - len(asked))

        return jumps

    prior = Prior(side, engine)
    update = UPDATES["exact"](prior)
    with pytest.warns(RuntimeWarning, match="found no maximum"):
        weights = update(np.array([40.0, 15.0, 5.0]))
    assert len(asked) <= MOST_QUESTIONS + 1
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    # Of the weights that were tried those are kept whose counts are nearest.
    _, counts = prior.log_z_and_counts(np.log(weights))
    _, at_start = prior.log_z_and_counts(np.log([40 / 60, 15 / 60, 5 / 60]))
    wanted = np.array([40.0, 15.0, 5.0])
    assert np.abs(counts - wanted).max() <= np.abs(at_start - wanted).max() + 1e-9


# ------------------------------------------------------------------ what is reported


def test_who_answered_what():
    X, _z, pairs, same = three_clumps(4, 30, 4)
    known = as_known(pairs, same, 2.0)
    n_edges = len(SideInformation.build(30, **known).graph.edges)
    (answer,) = quiet_fit(
        ConstrainedGaussianMixture(2, inference="mean_field", random_state=0), X, **known
    ).inference_
    assert answer == ("mean_field", 30 - n_edges, 30, n_edges, None, 0, 0)


def approximating(graph):
    """An engine that reports, and warns in other words with every answer."""
    exact, calls = ENGINES["junction_tree"](graph), []

    def infer(unary):
        calls.append(1)
        warn_caller(f"answer {len(calls)} approximates", ApproximationWarning)
        return Marginals(*exact(unary)[:2], exact=False)

    answer = Answer("belief_propagation", 1, 40, 2, 3, 800, 99)
    return Inference(infer, answered=lambda unary: [answer])


@pytest.mark.parametrize("n_init", [1, 3])
def test_one_warning_a_fit_however_often_the_engine_warns(n_init):
    X, _z, pairs, same = three_clumps(5, 40, 12)
    model = ConstrainedGaussianMixture(2, inference=approximating, random_state=0, n_init=n_init)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, **as_known(pairs, same, 1.0))
    assert [w.category for w in told] == [ApproximationWarning]
    assert told[0].filename == __file__
    assert model.inference_ == (("belief_propagation", 1, 40, 2, 3, 800, 99),)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.predict(X, cannot_link=[[0, 1]])
    assert [w.category for w in told] == [ApproximationWarning]
