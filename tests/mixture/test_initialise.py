"""Where EM starts: distributions, far seeds, what is known; and which of them by default."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from answers import truthful
from hypothesis import given
from hypothesis import strategies as st

from cgmm import ConstrainedGaussianMixture, COPKMeans
from cgmm.inference import ENGINES
from cgmm.metrics import matched_accuracy, paired_difference
from cgmm.mixture import (
    POOLINGS,
    STARTS,
    Pooling,
    em,
    from_chunklets,
    from_labels,
    from_responsibilities,
    honour,
    seeds,
)
from cgmm.mixture.assignments import prepare
from cgmm.mixture.initialise import from_kmeans, starts_to_try
from cgmm.mixture.runs import choose_start
from cgmm.mixture.weights import closed_form
from cgmm.network import Inference, SideInformation
from cgmm.numerics import log_normalise
from cgmm.replicate.choosing import sample_truth
from cgmm.scenarios import random_pairs


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@given(seed=st.integers(0, 10_000), n_components=st.integers(1, 5), n_dims=st.integers(1, 3))
def test_start_gives_distributions_and_repeats_with_its_seed(start, seed, n_components, n_dims):
    X = np.random.default_rng(seed).normal(size=(20, n_dims))
    r = start(X, n_components, np.random.RandomState(seed))
    assert r.shape == (20, n_components)
    assert (r >= 0).all()
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_array_equal(r, start(X, n_components, np.random.RandomState(seed)))


@pytest.mark.parametrize("pool", POOLINGS)
def test_component_without_points_starts_as_all_the_data(pool):
    X = np.random.default_rng(0).normal(size=(40, 2)) + 5
    r = np.column_stack([np.ones(40), np.zeros(40)])
    theta = from_responsibilities(X, r, POOLINGS[pool], reg_covar=0.0)
    np.testing.assert_allclose(theta.means[1], X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(theta.covariances[1], theta.covariances[0], rtol=1e-9)


@pytest.mark.parametrize("labels", [None, [-1, -1, -1]])
def test_a_start_from_labels_needs_a_label(labels):
    side = SideInformation.build(3, labels=labels)
    with pytest.raises(ValueError, match="needs at least one point of known class"):
        from_labels(np.zeros((3, 1)), 2, np.random.RandomState(0), side)


# ------------------------------------------------------------------ starts that know something


def test_seeds_are_drawn_by_mass_times_squared_distance():
    """From 0, with masses (1, 9, 1) at 0, 1, 3: both candidates are as likely, 9 · 1² = 1 · 3².

    Of two trials the one that leaves less is kept: 4 if the seed is 1, 9 · 1 if it is 3. So 3 is
    the seed when both trials are 3, in a quarter of all runs.
    """
    X, mass, n_runs = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 9.0, 1.0]), 4000
    rng = np.random.RandomState(0)
    last = [seeds(X, 2, rng, first=X[:1], mass=mass)[1, 0] for _ in range(n_runs)]
    assert set(last) == {1.0, 3.0}
    # Five standard errors of a binomial share.
    assert np.mean(np.equal(last, 3)) == pytest.approx(0.25, abs=5 * (3 / 16 / n_runs) ** 0.5)


@pytest.mark.parametrize("known", [(1, 2), (2, 0), (0, 1)])
def test_labels_name_the_components_whatever_classes_they_show(known):
    """Two classes are seen; the third component starts in the group that nobody has labelled."""
    groups = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 300.0]])
    rng = np.random.default_rng(0)
    z = np.repeat(range(3), 8)
    X = groups[z] + rng.normal(size=(24, 2))
    labels = np.full(24, -1)
    for k in known:
        labels[[8 * k, 8 * k + 3]] = k
    side = SideInformation.build(24, labels=labels)
    r = from_labels(X, 3, np.random.RandomState(0), side)
    np.testing.assert_array_equal(r, np.eye(3)[z])


@pytest.mark.parametrize("seed", range(5))
def test_chunklets_start_at_their_means_and_single_points_nowhere(seed):
    """Means 5 and 11, and an outlier that belongs to no chunklet."""
    X = np.array([[0.0], [10.0], [2.0], [20.0], [1000.0]])
    side = SideInformation.build(5, must_link=[[0, 1], [2, 3]])
    r = from_chunklets(X, 2, np.random.RandomState(seed), side)
    z = r.argmax(axis=1)
    assert len({z[0], z[1]}) == 2
    assert z.tolist() == [z[0], z[1], z[0], z[1], z[1]]


def test_the_first_chunklet_is_drawn_by_its_number_of_points():
    """Six points in one and two in the other: component 0 is whichever comes first."""
    X = np.array([[0.0]] * 6 + [[1.0]] * 2)
    side = SideInformation.build(8, must_link=[[0, j] for j in range(1, 6)] + [[6, 7]])
    n_runs, rng = 2000, np.random.RandomState(0)
    began = [from_chunklets(X, 2, rng, side)[0, 0] for _ in range(n_runs)]
    assert np.mean(began) == pytest.approx(6 / 8, abs=5 * (3 / 16 / n_runs) ** 0.5)


def test_points_of_a_chunklet_start_alike_at_the_mean_of_their_starts():
    r = np.array([[1.0, 0.0], [0.4, 0.6], [0.1, 0.9], [0.3, 0.7]])
    side = SideInformation.build(4, must_link=[[0, 1], [1, 3]])
    expected = np.array([[1.7, 1.3], [1.7, 1.3], [0.3, 2.7], [1.7, 1.3]]) / 3
    np.testing.assert_allclose(honour(r, side), expected, rtol=1e-15)


def test_components_take_the_names_of_the_classes_that_most_points_show():
    """A chunklet of five outweighs two points and a third one that say otherwise."""
    start = np.eye(2)[[1] * 5 + [0, 0, 1]]
    must_link = [[0, j] for j in range(1, 5)]
    side = SideInformation.build(8, labels=[0] * 7 + [1], must_link=must_link)
    np.testing.assert_array_equal(honour(start, side).argmax(axis=1), [0] * 7 + [1])
    free = SideInformation.build(9, labels=[0] * 7 + [1, -1], must_link=must_link)
    # The unlabelled point, started with the five, is renamed with them.
    assert honour(np.vstack([start, [[0.0, 1.0]]]), free)[8].tolist() == [1.0, 0.0]


def test_a_start_that_its_evidence_excludes_begins_alike_in_what_is_left():
    allowed = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    start = np.eye(3)[[0, 1, 0, 2]]
    side = SideInformation.build(4, labels=allowed)
    expected = [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]]
    np.testing.assert_array_equal(honour(start, side), expected)


# ------------------------------------------------------------------ the default


def blobs(seed, n_components=5, n_dims=4, n_points=500):
    """Elongated groups that overlap a little; EM from the truth has an ARI of .96 on average."""
    rng = np.random.default_rng(seed)
    means = 2 * rng.normal(size=(n_components, n_dims))
    shapes = rng.normal(size=(n_components, n_dims, n_dims)) / np.sqrt(n_dims) + np.eye(n_dims) / 2
    y = rng.integers(n_components, size=n_points)
    noise = rng.normal(size=(n_points, n_dims))
    return means[y] + np.einsum("nij,nj->ni", shapes[y], noise), y


@pytest.mark.parametrize("n_pairs", [20, 100])
def test_default_fits_come_as_high_as_em_from_the_truth(n_pairs):
    """One start by chunklets or k-means++ fails in one of these draws out of three or four."""
    for seed in range(4):
        X, y = blobs(seed)
        known = random_pairs(y, n_pairs, random_state=seed)._asdict()
        truth = ConstrainedGaussianMixture(5, init_params=np.eye(5)[y]).fit(X, **known)
        model = ConstrainedGaussianMixture(5, random_state=seed).fit(X, **known)
        # Other maxima are tens of nats away; runs that meet stop within half a nat of one another.
        assert model.log_evidence_ > truth.log_evidence_ - 5


@pytest.mark.parametrize(("n_points", "n_init"), [(36, 10), (37, 1)])
def test_k_means_runs_ten_times_where_points_are_few_for_their_clusters(n_points, n_init):
    """In noise, where a run seldom ends where the best of ten does."""
    X = np.random.default_rng(0).normal(size=(n_points, 2))
    known = random_pairs(np.arange(36) % 6, 12, random_state=0)._asdict()
    side = SideInformation.build(n_points, **known)
    r = from_kmeans(X, 6, np.random.RandomState(0), side)
    cop = COPKMeans(6, n_init=n_init, random_state=np.random.RandomState(0)).fit(X, **known)
    np.testing.assert_array_equal(r, np.eye(6)[cop.labels_])


@pytest.mark.slow  # of one run as of ten: above
def test_of_few_points_in_many_classes_a_default_fit_gets_as_many_right_as_k_means():
    """Begun by one run it gets 0.014 less."""
    right = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        X, y = sample_truth("different", 10, rng).sample(60, rng)
        known = truthful(rng, y, 240)
        cop = COPKMeans(10, n_init=10, random_state=seed).fit(X, **known)
        model = ConstrainedGaussianMixture(10, random_state=seed).fit(X, **known)
        right.append([matched_accuracy(y, labels) for labels in (model.labels_, cop.labels_)])
    assert paired_difference(*np.transpose(right)).mean > -0.01


# ---------------------------------------------------------------------------- what is tried


def test_what_is_known_decides_what_is_tried():
    labels = np.array([0, 1, 2, -1, -1])
    build = SideInformation.build
    assert starts_to_try(3, build(5)) == ["kmeans", *["k-means++"] * 8]
    assert starts_to_try(3, build(5, labels=labels, must_link=[[3, 4]])) == ["labels"]
    assert starts_to_try(1, build(5, must_link=[[3, 4]])) == ["kmeans"]
    assert starts_to_try(3, build(5, cannot_link=[[3, 4]])) == ["kmeans", *["k-means++"] * 8]
    assert starts_to_try(2, build(5, must_link=[[3, 4]])) == [
        "kmeans",
        *["chunklets", "k-means++"] * 3,
    ]
    some = starts_to_try(9, build(5, labels=labels, must_link=[[3, 4]]))
    assert some == ["kmeans", *["labels", "chunklets", "k-means++"] * 4]


# ---------------------------------------------------------------------------- how it is chosen


def bad_and_good():
    """Two starts, and what they are tried on.

    The bad one gives two groups one component, and a third group two: no iteration mends it.
    """
    X, y = blobs(3, n_points=200)
    side = SideInformation.build(200, **random_pairs(y, 50, random_state=3)._asdict())
    prepared = prepare(side, "auto", ENGINES["auto"], "auto", 5)
    torn = (y == 1) & (X[:, 0] > np.median(X[y == 1, 0]))
    bad, good = (
        ConstrainedGaussianMixture(5, init_params=np.eye(5)[z])._starts(X, side, None)[0]
        for z in (np.where((y == 4) | torn, 0, y), y)
    )
    data = prepared.blocks(X)
    return bad, good, (X, data, prepared, POOLINGS["full"])


def test_a_good_start_among_bad_ones_goes_on_wherever_it_stands(monkeypatch):
    monkeypatch.setattr(Pooling, "n_free", lambda *shape: 0)
    bad, good, network = bad_and_good()
    for place in (0, 5, 11):
        starts = [bad] * 11
        starts.insert(place, good)
        chosen = choose_start(starts, *network)
        np.testing.assert_allclose(chosen.means, good.means, atol=0.5)
    assert abs(choose_start([bad, bad], *network).means - good.means).max() > 0.5


def test_an_approximate_evidence_chooses_no_start():
    bad, good, (X, data, prepared, *how) = bad_and_good()
    doubtful = lambda unary: prepared.inference(unary)._replace(exact=False)  # noqa: E731
    unsure = replace(prepared, inference=Inference(doubtful))
    assert choose_start([bad, good], X, data, unsure, *how) is bad


def test_another_start_must_gain_more_than_chance(monkeypatch):
    """Half a nat is asked for each parameter, more where they are many for the points, or odds.

    The odds are of what is known beside the points, which no parameter fits.
    """
    bad, good, network = bad_and_good()
    X, _, model, pool = network
    monkeypatch.setattr("cgmm.mixture.runs.SURE", np.inf)
    ends = []
    for start in (bad, good):
        steps = em(X, start, model.side, model.inference, pool, closed_form)
        ends.append(next(islice(steps, 17, None)))
    (worse, behind), (better, ahead) = ends
    gain = ahead.log_evidence - behind.log_evidence
    # gain = P N / 2 (N - P - 1)
    n_free = 2 * gain * (len(X) - 1) / (len(X) + 2 * gain)
    monkeypatch.setattr(Pooling, "n_free", lambda *shape: n_free - 0.01)
    np.testing.assert_allclose(choose_start([bad, good], *network).means, better.means, atol=1e-6)
    for too_many in (n_free + 0.01, len(X) - 1, len(X), 2 * len(X)):
        monkeypatch.setattr(Pooling, "n_free", lambda *shape, n=too_many: n)
        assert choose_start([bad, good], *network) is bad
    of_points = [log_normalise(theta.log_joint(X))[1].sum() for theta in (worse, better)]
    of_known = gain - np.diff(of_points)[0]
    for sure, stays in ((of_known + 0.01, True), (of_known - 0.01, False)):
        monkeypatch.setattr("cgmm.mixture.runs.SURE", sure)
        assert (choose_start([bad, good], *network) is bad) == stays


def test_a_start_that_collapses_is_passed_over_and_all_of_them_leave_the_first():
    """A single point has no covariance; a run that begins there says so."""
    _, good, network = bad_and_good()
    collapsed = good._replace(covariances=np.zeros_like(good.covariances))
    for starts in ([collapsed, good, collapsed], [good, collapsed]):
        chosen = choose_start(starts, *network, reg_covar=1e-6)
        assert np.isfinite(chosen.means).all()
        assert (chosen.covariances != 0).any()
    assert choose_start([collapsed] * 2, *network, reg_covar=1e-6) is collapsed


def test_covariances_of_clusters_far_apart_lose_no_digits():
    z = np.arange(600) % 3
    X = np.random.default_rng(0).normal(size=(600, 2)) + 1e5 * z[:, None]
    theta = from_responsibilities(X, np.eye(3)[z], POOLINGS["full"])
    # About one mean for all, squares of 1e10 would leave six digits.
    truth = [np.cov(X[z == k].T, bias=True) for k in range(3)]
    np.testing.assert_allclose(theta.covariances, truth, rtol=1e-9, atol=1e-9)
