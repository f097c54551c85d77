"""Test the default initialisation: short runs in batches, portfolios of starts, and default fits.

The code is in ``cgmm.mixture.starts``. A portfolio is the set of initial responsibilities from
which short runs of EM start; a batch computes several of these runs at once.
"""

import numpy as np
import pytest
from answers import repeat_answers, true_relations
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture, COPKMeans, datasets
from cgmm.inference import ENGINES
from cgmm.metrics import matched_accuracy, paired_difference
from cgmm.mixture import Parameters, e_step, starts
from cgmm.network import SideInformation
from reruns.choosing import sample_truth

TYPES = ("full", "tied", "diag", "spherical")
STAGES = (starts.BALLS, starts.SHARED, starts.FREE)


def draw_groups(rng, n_points=40, n_dims=2, n_components=3):
    """Draw points of several groups; return them and the group of each."""
    y = rng.integers(n_components, size=n_points)
    return rng.normal(size=(n_points, n_dims)) + 2 * rng.normal(size=(n_components, n_dims))[y], y


def draw_side_information(kind, rng, y):
    """Draw true side information of one kind about points with classes y."""
    n = len(y)
    if kind == "must-links":
        return true_relations(rng, y, 20) | {"cannot_link": np.empty((0, 2), dtype=int)}
    if kind == "labels":
        return {"labels": np.where(rng.random(n) < 0.3, y, -1)}
    if kind == "forest":
        # Belief propagation is exact on this chain of cannot-links and preferences.
        pairs = np.column_stack([np.arange(5), np.arange(1, 6)])
        odds = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 2.0, -np.inf)
        return {"preferences": np.column_stack([pairs, odds])}
    return {}


# ------------------------------------------------------------------ batches of short runs


@pytest.mark.parametrize("stage", STAGES, ids=starts.COVARIANCES)
@pytest.mark.parametrize("kind", ["nothing", "must-links", "labels", "forest", "weights"])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_e_step_of_a_batch_equals_e_step(covariance_type, kind, stage, monkeypatch):
    """Compare responsibilities and evidence at the parameters of the batch."""
    # Damped messages converge slowly, so they need more sweeps than by default.
    monkeypatch.setattr(starts, "SWEEPS", 60)
    rng = np.random.default_rng(0)
    X, y = draw_groups(rng)
    side = SideInformation.build(len(X), **draw_side_information(kind, rng, y))
    if kind == "weights":
        side = side.weighted(rng.integers(1, 4, len(X)).astype(float))
    batch = starts.Batch.build(X, side, 3, covariance_type)
    r = rng.dirichlet(np.ones(3), (2, side.n_nodes)).transpose(2, 0, 1)
    components = starts.perform_m_step(batch, r, stage)
    evidence, r_batch, _ = starts.perform_e_step(batch, components, None)
    Z, _ = starts.standardise(X, covariance_type, side.sample_weight)
    flat = r.reshape(6, -1) * (1 if side.copies is None else side.copies)
    moments = starts.shared_moments if batch.shares_covariance(stage) else starts.unshared_moments
    _, means, scatter = moments(batch, flat, (3, 2))
    covariances = starts.restrict_covariances(batch, scatter, stage)
    covariances = np.broadcast_to(covariances, (3, 2, *covariances.shape[2:]))
    for s in range(2):
        theta = Parameters(
            np.exp(components.log_weights[:, s]), means.reshape(3, 2, -1)[:, s], covariances[:, s]
        )
        posterior = e_step(
            Z, theta, side, ENGINES["auto"](side.graph), log_z_prior=lambda weights: 0.0
        )
        r_points = side.spread(r_batch[:, s].T)
        np.testing.assert_allclose(r_points, posterior.responsibilities, atol=1e-7)
        # The evidence of e_step counts each point once, whatever its weight.
        if kind != "weights":
            assert evidence[s] == pytest.approx(posterior.log_evidence, rel=1e-8)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("stage", STAGES, ids=starts.COVARIANCES)
def test_evidence_of_short_runs_increases(covariance_type, stage):
    """A prior with the weight of one point shrinks covariances, so evidence may fall by 1 nat."""
    rng = np.random.default_rng(1)
    X, _ = draw_groups(rng, 300, 3)
    batch = starts.Batch.build(X, SideInformation.build(300), 3, covariance_type)
    r = rng.dirichlet(np.ones(3), (4, 300)).transpose(2, 0, 1)
    r, first, _ = starts.short_runs(batch, r, stage, 1)
    before = first
    for _ in range(20):
        r, evidence, _ = starts.short_runs(batch, r, stage, 1)
        assert (evidence > before - 1.0).all()
        before = evidence
    assert (evidence > first).all()


@pytest.mark.parametrize("kind", ["nothing", "must-links"])
def test_short_runs_with_weighted_points_equal_those_with_repeated_points(kind):
    rng = np.random.default_rng(2)
    X, y = draw_groups(rng)
    known, times = draw_side_information(kind, rng, y), rng.integers(1, 4, len(X))
    copies = np.repeat(np.arange(len(X)), times)
    weighted = SideInformation.build(len(X), **known).weighted(times.astype(float))
    repeated = SideInformation.build(len(copies), **repeat_answers(known, times))
    # All points of a chunklet start with the responsibilities of its first point.
    r_points = rng.dirichlet(np.ones(3), (2, len(X)))[:, weighted.first_points[weighted.node_of]]
    for stage in STAGES:
        scores = []
        for rows, side in ((np.arange(len(X)), weighted), (copies, repeated)):
            r = r_points[:, rows[side.first_points]].transpose(2, 0, 1)
            batch = starts.Batch.build(X[rows], side, 3, "full")
            scores.append(starts.short_runs(batch, r, stage, 3).scores)
        np.testing.assert_allclose(*scores, rtol=1e-9)


def test_messages_of_nearly_certain_beliefs_are_precise():
    """If p rounds to one, 1 - p must be the sum of the probabilities of the other components."""
    log_p = np.array([[-1e-300], [-50.0], [-300.0]])[:, None]
    p = np.exp(log_p)
    message = starts.compute_messages(p, np.array([-np.inf]))[:, 0, 0]
    others = [np.logaddexp(-50, -300), np.logaddexp(0, -300), np.logaddexp(0, -50)]
    np.testing.assert_allclose(message, others - np.log(p.sum()), rtol=1e-12, atol=1e-15)
    weak = starts.compute_messages(p, np.array([1.5]))[:, 0, 0]
    expected = np.log(p.sum() + np.expm1(1.5) * p[:, 0, 0]) - np.log(p.sum())
    np.testing.assert_allclose(weak, expected, rtol=1e-12)


def test_message_for_an_excluded_component_is_finite():
    """exp(message) must not underflow, but must be smaller than any ratio of densities in data."""
    lowest = starts.compute_messages(np.array([1.0, 0.0])[:, None, None], np.array([-np.inf]))[
        0, 0, 0
    ]
    assert np.finfo(float).tiny < np.exp(lowest) < 1e-300


def test_a_cannot_link_separates_points_whatever_it_costs():
    """Two points at one place must be separated, although this costs more than 40 nats."""
    X = np.repeat([[0.0], [40.0]], 20, axis=0) + np.linspace(-1, 1, 40)[:, None]
    side = SideInformation.build(40, cannot_link=[[0, 1]])
    batch = starts.Batch.build(X, side, 2, "spherical")
    r = np.repeat(np.eye(2), 20, axis=0).T[:, None]
    linked = starts.short_runs(batch, r, starts.FREE, 1)
    batch = starts.Batch.build(X, SideInformation.build(40), 2, "spherical")
    plain = starts.short_runs(batch, r, starts.FREE, 1)
    assert linked.evidence[0] < plain.evidence[0] - 40
    assert linked.r[:, 0, :2].argmax(axis=0).tolist() in ([0, 1], [1, 0])


def test_standardised_distances_do_not_depend_on_linear_maps():
    rng = np.random.default_rng(3)
    X, _ = draw_groups(rng, 50, 3)
    A = rng.normal(size=(3, 3))
    Z, V = (starts.standardise(points, "full")[0] for points in (X, X @ A))
    # The map changes the variances of columns, to each of which VARIANCE_ADDED is added.
    np.testing.assert_allclose(Z @ Z.T, V @ V.T, atol=1e-3)
    Z, V = (starts.standardise(points, "diag")[0] for points in (X, X * [1e3, 1, 1e-3]))
    np.testing.assert_allclose(Z, V, rtol=1e-9)


@pytest.mark.parametrize("stage", [starts.SHARED, starts.FREE])
def test_penalty_of_scores_equals_the_mean_optimism_in_pure_noise(stage):
    """The penalty is the expected difference in log-likelihood between fitted and new points."""
    n_each, n_dims, rng = 15, 3, np.random.default_rng(0)
    batch = starts.Batch.build(
        rng.normal(size=(2 * n_each, n_dims)), SideInformation.build(2 * n_each), 2, "full"
    )
    gains = []
    for _ in range(3000):
        X, new = rng.normal(size=(2, 2, n_each, n_dims))
        deviations = [points - X.mean(axis=1, keepdims=True) for points in (X, new)]
        scatter = np.einsum("knd,kne->kde", deviations[0], deviations[0]) / n_each
        scatter = scatter.mean(axis=0)[None] if stage == starts.SHARED else scatter
        inverse = np.linalg.inv(scatter)
        fitted, held_out = (np.einsum("knd,kde,kne->", d, inverse, d) for d in deviations)
        gains.append((held_out - fitted) / 2)
    p = 2 * n_dims + (1 if stage == starts.SHARED else 2) * n_dims * (n_dims + 1) / 2
    expected = (
        p + starts.compute_overfitting_correction(batch, np.full((2, 1), float(n_each)), stage)[0]
    )
    error = np.std(gains) / np.sqrt(len(gains))
    assert np.mean(gains) == pytest.approx(expected, abs=5 * error)


# ------------------------------------------------------------------ portfolio of starts


def test_split_and_merge_changes_three_components():
    rng = np.random.RandomState(0)
    X, y = draw_groups(np.random.default_rng(0), 60, 2, 4)
    batch = starts.Batch.build(X, SideInformation.build(60), 4, "full")
    r = np.eye(4)[y].T
    moves = starts.split_and_merge(batch, r, 12, rng)
    assert moves.shape == (4, 12, 60)
    np.testing.assert_allclose(moves.sum(axis=0), 1)
    for s in range(12):
        # Count the points of each old component in each new one.
        counts = moves[:, s] @ r.T
        assert (np.sort((counts > 0).sum(axis=0)) == [1, 1, 1, 2]).all()


def test_runs_with_nearly_equal_scores_count_once():
    scores = np.array([1.0, 5.0, 4.95, 3.0, 1.05])
    assert starts.select_distinct(scores, 0.1) == [1, 3, 4]


def test_portfolio_uses_a_sample_of_many_points():
    X = np.zeros((5000, 3))
    side = SideInformation.build(5000, must_link=[[0, 1], [2, 3]])
    rng = np.random.RandomState(0)
    sample, side_of_sample = starts.sample_for_portfolio(X, side, 2, rng)
    assert 850 < len(sample) <= 1000
    assert len(side_of_sample.node_of) == len(sample)
    assert not side_of_sample.nodes_are_points
    sample, _ = starts.sample_for_portfolio(X[:1000], SideInformation.build(1000), 2, None)
    assert sample.shape == (1000, 3)
    # More columns and components need a larger sample.
    X = np.zeros((5000, 49))
    side, rng = SideInformation.build(5000), np.random.RandomState(0)
    sample, _ = starts.sample_for_portfolio(X, side, 3, rng)
    assert 2200 < len(sample) <= 3000


def test_a_second_run_uses_other_kinds_of_starts(capsys):
    X, _ = draw_groups(np.random.default_rng(0), 100)
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
    X, y = draw_groups(np.random.default_rng(4), 200)
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
        starts.portfolio(X, side, 3, "full", np.random.RandomState(0))
    calls.clear()
    # By the third call the runs with spherical covariances have ended.
    last = 3
    with pytest.warns(ConvergenceWarning, match="choice of a start was interrupted"):
        r = starts.portfolio(X, side, 3, "full", np.random.RandomState(0))[0]
    assert matched_accuracy(y, r.argmax(axis=1)) > 0.6
    assert len(calls) < 6


@pytest.mark.parametrize("n_components", [1, 4])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_default_fit_with_one_component_or_one_for_each_point(covariance_type, n_components):
    X = np.random.default_rng(0).normal(size=(4, 2))
    model = ConstrainedGaussianMixture(
        n_components, covariance_type=covariance_type, reg_covar=0.1, random_state=0
    ).fit(X)
    assert np.isfinite(model.log_evidence_)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_portfolio_accepts_constant_and_repeated_columns(covariance_type):
    X, y = draw_groups(np.random.default_rng(5), 90)
    X = np.column_stack([X, X[:, 0], np.full(90, 3.0)])
    side, rng = SideInformation.build(90), np.random.RandomState(0)
    r = starts.portfolio(X, side, 3, covariance_type, rng)[0]
    assert np.isfinite(r).all()
    assert matched_accuracy(y, r.argmax(axis=1)) > 0.7


# ------------------------------------------------------------------ maxima of default fits


def compare_with_truth(X, y, known, seed):
    """Fit from the true classes and by default; return the gap in nats and both accuracies."""
    K = len(np.unique(y))
    truth = ConstrainedGaussianMixture(K, init_params=np.eye(K)[y]).fit(X, **known)
    model = ConstrainedGaussianMixture(K, random_state=seed).fit(X, **known)
    accuracies = [matched_accuracy(y, m.labels_) for m in (truth, model)]
    return truth.log_evidence_ - model.log_evidence_, *accuracies


def draw_persons(seed):
    """Draw two persons in two kinds of light, with relations between pictures in equal light.

    The light, day or night, changes the points more than the person does; chapter 7 uses them.
    """
    X, person = datasets.vertical_classes(random_state=seed)[:2]
    day, rng, must_link, cannot_link = X[:, 1] > 0, np.random.default_rng(seed), [], []
    for _ in range(12):
        light = day == rng.integers(2)
        a, b = (rng.choice(np.flatnonzero(light & (person == k)), 3, replace=False) for k in (0, 1))
        must_link += [a[:2], a[1:], b[:2], b[1:]]
        cannot_link += list(zip(a, b, strict=True))
    return X, person, {"must_link": must_link, "cannot_link": cannot_link}


def draw_elongated(seed, n_pairs=0, n_classes=5, n_points=300):
    """Draw classes that are stretched by eight in two directions that do not separate them."""
    rng = np.random.default_rng(seed)
    X, y = sample_truth("elongated", n_classes, rng).sample(n_points, rng)
    return X, y, true_relations(rng, y, n_pairs) if n_pairs else {}


@pytest.mark.parametrize(
    ("draw", "n_draws"),
    [
        (draw_persons, 6), (draw_elongated, 6), (lambda seed: draw_elongated(seed, 45), 6),
        (lambda seed: draw_elongated(seed, 0, 10, 600), 3),
    ],
    ids=["persons", "elongated", "elongated with answers", "ten elongated"],
)  # fmt: skip
def test_default_fits_reach_the_maximum_at_the_truth(draw, n_draws):
    """Fits that start from K-means end tens of nats below this maximum in all of these draws."""
    results = [compare_with_truth(*draw(seed), seed) for seed in range(n_draws)]
    gaps, accuracies_of_truth, accuracies = np.transpose(results)
    assert (gaps < 1).mean() > 0.6
    assert gaps.max() < 6
    assert (accuracies_of_truth - accuracies).max() < 0.02


def draw_waves(seed, n_points=3000):
    """Draw points of the three waveform classes of Breiman and others (1984), and their classes."""
    rng = np.random.default_rng(seed)
    triangles = np.maximum(6 - abs(np.arange(21) - np.array([[6], [14], [10]])), 0)
    y, share = rng.integers(3, size=n_points), rng.random((n_points, 1))
    waves = share * triangles[y] + (1 - share) * triangles[(y + 1) % 3]
    return waves + rng.normal(size=(n_points, 21)), y


@pytest.mark.parametrize("seed", [100, 101, 110])
def test_default_fit_leaves_the_plateau_near_the_groups_of_a_simpler_stage(seed, monkeypatch):
    """The simpler stages have the best scores, and EM stops near their groups, far below.

    The grouping of the last stage leads to the maximum. A tolerance of 1e-3 per point leaves some
    ten nats between fits that end at the same maximum.
    """
    X, y = draw_waves(seed)
    at_truth = ConstrainedGaussianMixture(3, init_params=np.eye(3)[y]).fit(X).log_evidence_
    model = ConstrainedGaussianMixture(3, random_state=0).fit(X)
    assert model.log_evidence_ > at_truth - 30
    monkeypatch.setattr(starts, "CLEAR_LEAD", np.inf)
    assert model.fit(X).log_evidence_ < at_truth - 300


@pytest.mark.slow
def test_default_fit_is_as_accurate_as_cop_k_means_with_small_classes():
    accuracies = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        X, y = sample_truth("different", 10, rng).sample(60, rng)
        known = true_relations(rng, y, 240)
        cop = COPKMeans(10, n_init=10, random_state=seed).fit(X, **known)
        model = ConstrainedGaussianMixture(10, random_state=seed).fit(X, **known)
        accuracies.append([matched_accuracy(y, labels) for labels in (model.labels_, cop.labels_)])
    assert not paired_difference(*np.transpose(accuracies)).behind
