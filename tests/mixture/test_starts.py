"""Test the default start: its batch of short runs against EM, and the maximum it leads to."""

import numpy as np
import pytest
from answers import repeat_answers, true_relations
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from cgmm import ConstrainedGaussianMixture, COPKMeans, datasets
from cgmm.inference import ENGINES
from cgmm.metrics import matched_accuracy, paired_difference
from cgmm.mixture import Parameters, e_step, starts
from cgmm.mixture.starts import (
    BALLS,
    COVARIANCES,
    FREE,
    SHARED,
    Batch,
    Messages,
    compute_messages,
    expected_overfit,
    portfolio,
    sample_for_portfolio,
    select_distinct,
    short_runs,
    split_and_merge,
    standardise,
)
from cgmm.network import SideInformation
from reruns.choosing import sample_truth

TYPES = ("full", "tied", "diag", "spherical")
STAGES = (BALLS, SHARED, FREE)


def groups(rng, n_points=40, n_dims=2, n_components=3):
    """Return points of a small number of groups, and the group of each."""
    y = rng.integers(n_components, size=n_points)
    return rng.normal(size=(n_points, n_dims)) + 2 * rng.normal(size=(n_components, n_dims))[y], y


def known_of(kind, rng, y):
    """Return true side information of one kind about the points."""
    n = len(y)
    if kind == "must-links":
        return true_relations(rng, y, 20) | {"cannot_link": np.empty((0, 2), dtype=int)}
    if kind == "labels":
        return {"labels": np.where(rng.random(n) < 0.3, y, -1)}
    if kind == "forest":
        # A chain of cannot-links and preferences: belief propagation is exact on it.
        ends = np.column_stack([np.arange(5), np.arange(1, 6)])
        odds = np.where(y[ends[:, 0]] == y[ends[:, 1]], 2.0, -np.inf)
        return {"preferences": np.column_stack([ends, odds])}
    return {}


# ---------------------------------------------------------------------------- the batch


@pytest.mark.parametrize("stage", STAGES, ids=COVARIANCES)
@pytest.mark.parametrize("kind", ["nothing", "must-links", "labels", "forest", "weights"])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_a_batch_takes_the_e_step_of_the_package(covariance_type, kind, stage, monkeypatch):
    """Responsibilities and evidence equal those of e_step at the parameters of the batch."""
    monkeypatch.setattr(starts, "SWEEPS", 60)  # damped messages converge slowly
    rng = np.random.default_rng(0)
    X, y = groups(rng)
    side = SideInformation.build(len(X), **known_of(kind, rng, y))
    if kind == "weights":
        side = side.weighted(rng.integers(1, 4, len(X)).astype(float))
    batch = Batch.of(X, side, 3, covariance_type)
    r = rng.dirichlet(np.ones(3), (2, side.n_nodes)).transpose(2, 0, 1)
    components = starts.maximise(batch, r, stage)
    evidence, found, _ = starts.perform_e_step(batch, components, None)
    Z, _ = standardise(X, covariance_type, side.sample_weight)
    flat = r.reshape(6, -1) * (1 if side.copies is None else side.copies)
    find = starts.shared_moments if batch.shares(stage) else starts.unshared_moments
    _, means, scatter = find(batch, flat, (3, 2))
    covariances = starts.restrict_covariances(batch, scatter, stage)
    covariances = np.broadcast_to(covariances, (3, 2, *covariances.shape[2:]))
    for s in range(2):
        theta = Parameters(
            np.exp(components.log_weights[:, s]), means.reshape(3, 2, -1)[:, s], covariances[:, s]
        )
        posterior = e_step(
            Z, theta, side, ENGINES["auto"](side.graph), log_z_prior=lambda weights: 0.0
        )
        r_ik = side.spread(found[:, s].T)
        np.testing.assert_allclose(r_ik, posterior.responsibilities, atol=1e-7)
        if kind != "weights":  # e_step counts each point once
            assert evidence[s] == pytest.approx(posterior.log_evidence, rel=1e-8)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("stage", STAGES, ids=COVARIANCES)
def test_the_evidence_of_short_runs_rises(covariance_type, stage):
    """The pull towards all data, with the weight of one point, may cost less than that point."""
    rng = np.random.default_rng(1)
    X, _ = groups(rng, 300, 3)
    batch = Batch.of(X, SideInformation.build(300), 3, covariance_type)
    r = rng.dirichlet(np.ones(3), (4, 300)).transpose(2, 0, 1)
    r, first, _ = short_runs(batch, r, stage, 1)
    before = first
    for _ in range(20):
        r, evidence, _ = short_runs(batch, r, stage, 1)
        assert (evidence > before - 1.0).all()
        before = evidence
    assert (evidence > first).all()


@pytest.mark.parametrize("kind", ["nothing", "must-links"])
def test_points_of_weight_two_are_two_points(kind):
    rng = np.random.default_rng(2)
    X, y = groups(rng)
    known, times = known_of(kind, rng, y), rng.integers(1, 4, len(X))
    copies = np.repeat(np.arange(len(X)), times)
    one = SideInformation.build(len(X), **known).weighted(times.astype(float))
    many = SideInformation.build(len(copies), **repeat_answers(known, times))
    of_points = rng.dirichlet(np.ones(3), (2, len(X)))[:, one.first_points[one.node_of]]
    a, b = Batch.of(X, one, 3, "full"), Batch.of(X[copies], many, 3, "full")
    r = of_points[:, one.first_points].transpose(2, 0, 1)
    spread = of_points[:, copies[many.first_points]].transpose(2, 0, 1)
    for stage in STAGES:
        ends = short_runs(a, r, stage, 3), short_runs(b, spread, stage, 3)
        np.testing.assert_allclose(ends[0].scores, ends[1].scores, rtol=1e-9)


def test_messages_of_certain_beliefs_lose_no_digits():
    """If p rounds to one, 1 - p is summed from the other components."""
    log_p = np.array([[-1e-300], [-50.0], [-300.0]])[:, None]
    p = np.exp(log_p)
    got = compute_messages(p, np.array([-np.inf]))[:, 0, 0]
    others = [np.logaddexp(-50, -300), np.logaddexp(0, -300), np.logaddexp(0, -50)]
    np.testing.assert_allclose(got, others - np.log(p.sum()), rtol=1e-12, atol=1e-15)
    weak = compute_messages(p, np.array([1.5]))[:, 0, 0]
    expected = np.log(p.sum() + np.expm1(1.5) * p[:, 0, 0]) - np.log(p.sum())
    np.testing.assert_allclose(weak, expected, rtol=1e-12)


def test_the_message_for_an_excluded_component_is_finite():
    """Its exponential is a normal number, and smaller than any ratio that occurs in data."""
    lowest = compute_messages(np.array([1.0, 0.0])[:, None, None], np.array([-np.inf]))[0, 0, 0]
    assert np.finfo(float).tiny < np.exp(lowest) < 1e-300


def test_a_cannot_link_between_distant_pairs_has_its_exact_cost():
    """Four points at two places, all apart: both pairs share, at a price beyond exp(-50)."""
    X = np.repeat([[0.0], [40.0]], 20, axis=0) + np.linspace(-1, 1, 40)[:, None]
    side = SideInformation.build(40, cannot_link=[[0, 1]])
    batch = Batch.of(X, side, 2, "spherical")
    r = np.repeat(np.eye(2), 20, axis=0).T[:, None]
    runs = short_runs(batch, r, FREE, 1)
    plain = short_runs(Batch.of(X, SideInformation.build(40), 2, "spherical"), r, FREE, 1)
    assert runs.evidence[0] < plain.evidence[0] - 40
    assert runs.r[:, 0, :2].argmax(axis=0).tolist() in ([0, 1], [1, 0])


@given(seed=st.integers(0, 1000))
def test_each_edge_has_its_reverse(seed):
    rng = np.random.default_rng(seed)
    known = true_relations(rng, np.arange(30) % 3, 25)
    edges = starts.messages_of(SideInformation.build(30, **known))
    assert isinstance(edges, Messages)
    np.testing.assert_array_equal(edges.reverse[edges.reverse], np.arange(len(edges.reverse)))
    np.testing.assert_array_equal(edges.log_weights[edges.reverse], edges.log_weights)
    assert (edges.receiver[edges.reverse] != edges.receiver).all()
    assert (np.diff(edges.receiver) >= 0).all()


def test_a_linear_map_of_the_points_changes_no_distance_of_the_batch():
    rng = np.random.default_rng(3)
    X, _ = groups(rng, 50, 3)
    A = rng.normal(size=(3, 3))
    Z, V = (standardise(points, "full")[0] for points in (X, X @ A))
    # VARIANCE_ADDED is added to each column's variance, which a linear map changes.
    np.testing.assert_allclose(Z @ Z.T, V @ V.T, atol=1e-3)
    Z, V = (standardise(points, "diag")[0] for points in (X, X * [1e3, 1, 1e-3]))
    np.testing.assert_allclose(Z, V, rtol=1e-9)


@pytest.mark.parametrize("stage", [SHARED, FREE])
def test_the_penalty_equals_the_gain_of_pure_noise(stage):
    """Compare with the log-likelihood of the points less that of new ones, over many draws."""
    n_each, n_dims, rng = 15, 3, np.random.default_rng(0)
    batch = Batch.of(
        rng.normal(size=(2 * n_each, n_dims)), SideInformation.build(2 * n_each), 2, "full"
    )
    gains = []
    for _ in range(3000):
        X, new = rng.normal(size=(2, 2, n_each, n_dims))
        apart = X - X.mean(axis=1, keepdims=True)
        scatter = np.einsum("knd,kne->kde", apart, apart) / n_each
        scatter = scatter.mean(axis=0)[None] if stage == SHARED else scatter
        inverse = np.linalg.inv(scatter)
        gain = 0.0
        for k in range(2):
            P = inverse[0 if stage == SHARED else k]
            away = new[k] - X[k].mean(axis=0)
            gain += 0.5 * np.einsum("nd,de,ne->", away, P, away)
            gain -= 0.5 * np.einsum("nd,de,ne->", apart[k], P, apart[k])
        gains.append(gain)
    p = 2 * n_dims + (1 if stage == SHARED else 2) * n_dims * (n_dims + 1) / 2
    expected = p + expected_overfit(batch, np.full((2, 1), float(n_each)), stage)[0]
    error = np.std(gains) / np.sqrt(len(gains))
    assert np.mean(gains) == pytest.approx(expected, abs=5 * error)


# ---------------------------------------------------------------------------- the portfolio


def test_a_move_merges_two_components_and_splits_a_third():
    rng = np.random.RandomState(0)
    X, y = groups(np.random.default_rng(0), 60, 2, 4)
    batch = Batch.of(X, SideInformation.build(60), 4, "full")
    r = np.eye(4)[y].T
    moves = split_and_merge(batch, r, 12, rng)
    assert moves.shape == (4, 12, 60)
    np.testing.assert_allclose(moves.sum(axis=0), 1)
    for s in range(12):
        together = moves[:, s] @ r.T  # number of points of each old component in each new one
        assert (np.sort((together > 0).sum(axis=0)) == [1, 1, 1, 2]).all()


def test_runs_that_agree_count_once():
    scores = np.array([1.0, 5.0, 4.95, 3.0, 1.05])
    assert select_distinct(scores, 0.1) == [1, 3, 4]


def test_of_many_points_a_sample_is_used():
    X = np.zeros((5000, 3))
    side = SideInformation.build(5000, must_link=[[0, 1], [2, 3]])
    sample, known = sample_for_portfolio(X, side, 2, np.random.RandomState(0))
    assert 850 < len(sample) <= 1000
    assert len(known.node_of) == len(sample)
    assert not known.nodes_are_points  # the side information of the sample
    assert sample_for_portfolio(X[:1000], SideInformation.build(1000), 2, None)[0].shape == (
        1000,
        3,
    )
    wide = np.zeros((5000, 49))
    sample, _ = sample_for_portfolio(wide, SideInformation.build(5000), 3, np.random.RandomState(0))
    assert 2200 < len(sample) <= 3000


def test_further_runs_try_new_kinds(capsys):
    X, _ = groups(np.random.default_rng(0), 100)
    known = {"labels": [0, *[-1] * 99], "must_link": [[1, 2]]}
    kinds = []
    for n_init in (1, 2):
        ConstrainedGaussianMixture(3, n_init=n_init, random_state=0, verbose=1).fit(X, **known)
        lines = [line for line in capsys.readouterr().out.splitlines() if "start from" in line]
        assert all("score" in line and line.endswith(" s") for line in lines)
        kinds.append({line.removeprefix("start from ").split(",")[0] for line in lines})
    assert kinds[0] >= {"K-means", "random points", "distant points", "labels", "chunklets"}
    assert kinds[1] - kinds[0] == {"Ward's tree"}


def test_an_interrupt_keeps_the_best_start_so_far(monkeypatch):
    X, y = groups(np.random.default_rng(4), 200)
    side = SideInformation.build(200)
    calls, run = [], starts.short_runs

    def interrupt(*args):
        calls.append(args)
        if len(calls) == last:
            raise KeyboardInterrupt
        return run(*args)

    monkeypatch.setattr(starts, "short_runs", interrupt)
    last = 1
    with pytest.raises(KeyboardInterrupt):
        portfolio(X, side, 3, "full", np.random.RandomState(0))
    calls.clear()
    last = 3  # the runs with balls have ended
    with pytest.warns(ConvergenceWarning, match="choice of a start was interrupted"):
        r = portfolio(X, side, 3, "full", np.random.RandomState(0))[0]
    assert matched_accuracy(y, r.argmax(axis=1)) > 0.6
    assert len(calls) < 6


@pytest.mark.parametrize("n_components", [1, 4])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_as_many_components_as_points_and_a_single_one(covariance_type, n_components):
    X = np.random.default_rng(0).normal(size=(4, 2))
    model = ConstrainedGaussianMixture(
        n_components, covariance_type=covariance_type, reg_covar=0.1, random_state=0
    ).fit(X)
    assert np.isfinite(model.log_evidence_)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_columns_that_are_constant_or_copies_start_as_any_others(covariance_type):
    X, y = groups(np.random.default_rng(5), 90)
    X = np.column_stack([X, X[:, 0], np.full(90, 3.0)])
    r = portfolio(X, SideInformation.build(90), 3, covariance_type, np.random.RandomState(0))[0]
    assert np.isfinite(r).all()
    assert matched_accuracy(y, r.argmax(axis=1)) > 0.7


# ---------------------------------------------------------------------------- what a fit reaches


def truth_and_default(X, y, known, seed, **options):
    """Fit from the true classes and by default; return the gap in nats and both accuracies."""
    K = len(np.unique(y))
    truth = ConstrainedGaussianMixture(K, init_params=np.eye(K)[y], **options).fit(X, **known)
    model = ConstrainedGaussianMixture(K, random_state=seed, **options).fit(X, **known)
    right = [matched_accuracy(y, m.labels_) for m in (truth, model)]
    return truth.log_evidence_ - model.log_evidence_, *right


def scene(seed):
    """Return the data of chapter 7, where light differs more than persons do."""
    X, person = datasets.vertical_classes(random_state=seed)[:2]
    day, rng, must_link, cannot_link = X[:, 1] > 0, np.random.default_rng(seed), [], []
    for _ in range(12):
        light = day == rng.integers(2)
        a, b = (rng.choice(np.flatnonzero(light & (person == k)), 3, replace=False) for k in (0, 1))
        must_link += [a[:2], a[1:], b[:2], b[1:]]
        cannot_link += list(zip(a, b, strict=True))
    return X, person, {"must_link": must_link, "cannot_link": cannot_link}


def elongated(seed, n_pairs=0, n_classes=5, n_points=300):
    """Return classes stretched by eight in two directions without information."""
    rng = np.random.default_rng(seed)
    X, y = sample_truth("elongated", n_classes, rng).sample(n_points, rng)
    return X, y, true_relations(rng, y, n_pairs) if n_pairs else {}


@pytest.mark.parametrize(
    ("draw", "n_draws"),
    [
        (scene, 6), (elongated, 6), (lambda s: elongated(s, 45), 6),
        (lambda s: elongated(s, 0, 10, 600), 3),
    ],
    ids=["scenes", "elongated", "elongated with answers", "ten elongated"],
)  # fmt: skip
def test_default_fits_reach_the_maximum_at_the_truth(draw, n_draws):
    """K-means starts end tens of nats below it, in all of these draws."""
    found = np.array([truth_and_default(*draw(seed), seed) for seed in range(n_draws)])
    assert (found[:, 0] < 1).mean() > 0.6
    assert found[:, 0].max() < 6
    assert (found[:, 1] - found[:, 2]).max() < 0.02


@pytest.mark.slow  # as the quick one, and with few points in many classes
def test_a_default_fit_is_not_behind_k_means_with_few_points_in_many_classes():
    right = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        X, y = sample_truth("different", 10, rng).sample(60, rng)
        known = true_relations(rng, y, 240)
        cop = COPKMeans(10, n_init=10, random_state=seed).fit(X, **known)
        model = ConstrainedGaussianMixture(10, random_state=seed).fit(X, **known)
        right.append([matched_accuracy(y, labels) for labels in (model.labels_, cop.labels_)])
    assert not paired_difference(*np.transpose(right)).behind


@pytest.mark.parametrize("covariance_type", TYPES)
def test_the_start_depends_on_the_seed_only(covariance_type):
    X, y = groups(np.random.default_rng(6), 120)
    known = true_relations(np.random.default_rng(6), y, 20)
    fits = [
        ConstrainedGaussianMixture(3, covariance_type=covariance_type, random_state=3).fit(
            X, **known
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(fits[0].means_, fits[1].means_)
    theirs = GaussianMixture(3, covariance_type=covariance_type).fit(X)
    assert fits[0]._count_free_parameters() == theirs._n_parameters()
