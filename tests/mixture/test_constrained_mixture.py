"""The estimator with side information: reductions, contracts that hold always, and refusals."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture, scenarios
from cgmm.datasets import load
from cgmm.inference import ENGINES
from cgmm.metrics import broken_relations, matched_accuracy
from cgmm.mixture import POOLINGS, UPDATES, e_step
from cgmm.network import SideInformation, TooCostlyError

APPROXIMATE = ("mean_field", "gibbs", "spanning_tree")


def blobs(seed, n_samples=60, n_components=3, n_dims=2, spread=3.0):
    rng = np.random.default_rng(seed)
    z = np.concatenate([np.arange(n_components), rng.integers(n_components, size=n_samples)])
    z = z[:n_samples]
    centres = spread * rng.normal(size=(n_components, n_dims))
    return centres[z] + rng.normal(size=(n_samples, n_dims)), z


def quiet_fit(model, X, **known):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **known)


# ------------------------------------------------------------------ reductions


@pytest.mark.each_value
@pytest.mark.parametrize("covariance_type", POOLINGS)
@pytest.mark.parametrize("weights", UPDATES)
def test_relations_that_say_nothing_change_nothing(covariance_type, weights):
    X, _ = blobs(0)
    model = ConstrainedGaussianMixture(
        3, covariance_type=covariance_type, weights=weights, random_state=0
    )
    plain = model.fit(X)
    expected = plain.means_, plain.log_evidence_, plain.labels_
    empty = np.empty((0, 2), dtype=int)
    known = {
        "labels": np.full(len(X), -1), "must_link": [[4, 4]], "cannot_link": empty,
        "preferences": [[0, 1, 0.0]],
    }  # fmt: skip
    fitted = model.fit(X, **known)
    # "grid" is asked for only where the normaliser depends on the weights; here it is not.
    atol = 0.02 if weights == "grid" else 1e-6
    np.testing.assert_allclose(fitted.means_, expected[0], atol=atol)
    assert fitted.log_evidence_ == pytest.approx(expected[1], abs=atol * len(X))
    np.testing.assert_array_equal(fitted.labels_, expected[2])


@pytest.mark.parametrize("sampling", ["points", "chunklets"])
def test_fit_is_the_loop_with_the_engine_on_the_graph(sampling):
    X, z = blobs(1)
    links = scenarios.random_pairs(z, 15, random_state=0)
    model = ConstrainedGaussianMixture(3, sampling=sampling, random_state=0, tol=1e-6, max_iter=500)
    model.fit(X, must_link=links.must_link, cannot_link=links.cannot_link)
    side = SideInformation.build(
        len(X), must_link=links.must_link, cannot_link=links.cannot_link, sampling=sampling
    )
    theta = model.parameters_
    posterior = e_step(X, theta, side, ENGINES["junction_tree"](side.graph))
    assert model.log_evidence_ == pytest.approx(posterior.log_evidence, rel=1e-10)
    np.testing.assert_allclose(model.responsibilities_, posterior.responsibilities, atol=1e-9)
    assert model.converged_


def test_must_links_that_join_everything_are_one_component():
    X, _ = blobs(2)
    chain = np.column_stack([np.arange(len(X) - 1), np.arange(1, len(X))])
    model = quiet_fit(ConstrainedGaussianMixture(2, random_state=0), X, must_link=chain)
    k = model.labels_[0]
    assert (model.labels_ == k).all()
    np.testing.assert_allclose(model.means_[k], X.mean(axis=0), atol=1e-6)


def test_strong_preferences_are_hard_relations():
    X, z = blobs(3)
    links = scenarios.random_pairs(z, 20, random_state=1)
    weak, strong = 0.0, 600.0
    signs = [(links.must_link, 1), (links.cannot_link, -1)]
    hard = ConstrainedGaussianMixture(3, random_state=0, reg_covar=1e-3)
    hard.fit(X, must_link=links.must_link, cannot_link=links.cannot_link)
    fits = {}
    for strength in (weak, strong, np.inf):
        rows = [np.column_stack([p, np.full(len(p), s * strength)]) for p, s in signs if len(p)]
        preferences = np.concatenate(rows) if strength else None
        # The same start: contraction would otherwise change it.
        model = ConstrainedGaussianMixture(3, reg_covar=1e-3, means_init=hard.means_)
        fits[strength] = model.fit(X, preferences=preferences)
    np.testing.assert_allclose(fits[strong].means_, fits[np.inf].means_, atol=1e-5)
    np.testing.assert_array_equal(fits[strong].labels_, fits[np.inf].labels_)
    assert np.abs(fits[weak].means_ - fits[np.inf].means_).max() > 1e-3


# ------------------------------------------------------------------ contracts


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    covariance_type=st.sampled_from(list(POOLINGS)),
    sampling=st.sampled_from(["points", "chunklets"]),
)
def test_no_hard_relation_is_ever_broken_and_the_evidence_never_falls(
    seed, covariance_type, sampling
):
    X, z = blobs(seed, n_samples=40)
    # Overlapping piles: chunklets that are tied by cannot-links in cliques and across cliques.
    links = scenarios.teachers(z, 5, 5, random_state=seed)
    labels = scenarios.partial_labels(z, 4, random_state=seed)
    rng = np.random.default_rng(seed)
    soft = rng.permutation(len(X))[:10].reshape(5, 2)
    known = {
        "labels": labels, "must_link": links.must_link, "cannot_link": links.cannot_link,
        "preferences": np.column_stack([soft, rng.normal(size=len(soft))]),
    }  # fmt: skip
    model = ConstrainedGaussianMixture(
        3, covariance_type=covariance_type, sampling=sampling, reg_covar=0, random_state=seed
    )
    try:
        quiet_fit(model, X, **known)
    except ValueError as error:
        # With reg_covar=0 a component may shrink onto a few points: said, not hidden.
        if "not positive definite" not in str(error):
            raise
        return
    history = [*model.history_, model.log_evidence_]
    assert (np.diff(history) >= -1e-7 * len(X)).all()
    broken = broken_relations(model.labels_, links.must_link, links.cannot_link)
    assert sum(broken) == 0
    given_labels = labels >= 0
    np.testing.assert_array_equal(model.labels_[given_labels], labels[given_labels])
    np.testing.assert_allclose(model.responsibilities_.sum(axis=1), 1, atol=1e-12)


def test_joint_labels_honour_what_single_argmaxima_break():
    # Three mutually cannot-linked points that all lie nearest to the same centre.
    X = np.array([[0.0, 0], [0.1, 0], [0.2, 0], *np.random.default_rng(0).normal(size=(60, 2))])
    means = np.array([[0.0, 0], [6, 0], [0, 6.0]])
    X[23:43] += means[1]
    X[43:] += means[2]
    known = {"cannot_link": [[0, 1], [1, 2], [0, 2]]}
    model = ConstrainedGaussianMixture(3, means_init=means).fit(X, **known)
    assert len(set(model.labels_[:3])) == 3
    assert (model.predict(X)[:3] == model.predict(X)[0]).all()


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximate_engines_end_near_the_exact_one_where_relations_are_sparse(name):
    X, z = blobs(5, n_samples=200, spread=5.0)
    links = scenarios.random_pairs(z, 60, random_state=0)
    known = {"must_link": links.must_link, "cannot_link": links.cannot_link}
    exact = ConstrainedGaussianMixture(3, random_state=0).fit(X, **known)
    model = ConstrainedGaussianMixture(
        3, inference=name, weights="pseudo-likelihood", means_init=exact.means_
    )
    if name == "mean_field":
        # A variational bound cannot hold forbidden pairs: strong preferences take their place.
        cannot = links.cannot_link
        known["cannot_link"] = None
        known["preferences"] = np.column_stack([cannot, np.full(len(cannot), -10.0)])
    quiet_fit(model, X, **known)
    np.testing.assert_allclose(model.means_, exact.means_, atol=0.05)


# ------------------------------------------------------------------ what it is for


def test_relations_turn_the_cut_of_the_two_tall_classes():
    """[shental2003, Fig. 1]: the points alone prefer the wrong cut; a few relations do not."""
    data = load("vertical_classes")
    links = scenarios.random_pairs(data.y, 60, random_state=0)
    model = ConstrainedGaussianMixture(2, n_init=20, init_params="random_from_data", random_state=0)
    plain, told = (
        clone(model).fit(data.X),
        model.fit(data.X, must_link=links.must_link, cannot_link=links.cannot_link),
    )
    assert matched_accuracy(data.y, plain.labels_) < 0.75
    assert matched_accuracy(data.y, told.labels_) > 0.95


def test_labels_name_the_components():
    X, z = blobs(7, spread=6.0)
    for wanted in itertools.permutations(range(3)):
        named = np.array(wanted)[z]
        labels = np.full(len(X), -1)
        labels[:3] = named[:3]  # the first three points are of three classes
        for init_params in ("auto", "k-means++", "labels"):
            model = ConstrainedGaussianMixture(3, init_params=init_params, random_state=1)
            # One point of another class lies among strangers; all others are named right.
            assert np.sum(model.fit(X, labels=labels).labels_ != named) <= 1


def test_masks_of_allowed_classes_are_honoured():
    X, z = blobs(8, n_samples=90, spread=6.0)
    allowed = np.ones((len(X), 3), dtype=bool)
    allowed[np.arange(len(X)), (z + 1) % 3] = False
    model = ConstrainedGaussianMixture(3, random_state=0).fit(X, labels=allowed)
    assert allowed[np.arange(len(X)), model.labels_].all()
    assert (model.responsibilities_[~allowed] == 0).all()
    assert np.mean(model.labels_ == z) > 0.9


def test_chunklets_start_from_chunklets():
    X, z = blobs(9, n_samples=300, n_components=5, spread=5.0)
    must = np.concatenate([np.flatnonzero(z == k)[:8].reshape(-1, 2) for k in range(5)])
    model = ConstrainedGaussianMixture(5, init_params="chunklets", random_state=0)
    assert matched_accuracy(z, model.fit(X, must_link=must).labels_) > 0.9


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"must_link": [[0, 1], [1, 2]], "cannot_link": [[0, 2]]}, "0 - 1 - 2"),
        ({"labels": [0, 1] + 58 * [-1], "must_link": [[0, 1]]}, "labels 0 and 1"),
        ({"cannot_link": [[5, 7], [7, 9], [9, 5]]}, "points 5, 7 and 9 are mutually"),
        ({"cannot_link": [[i, (i + 1) % 5] for i in range(5)]}, "points 0, 1, 2, 3 and 4"),
        ({"labels": 60 * [2]}, "n_components=3 or more"),
        ({"labels": np.ones((60, 3), dtype=bool)}, "3 columns"),
        ({"labels": [0, -1, 1] + 57 * [-1], "cannot_link": [[0, 1], [1, 2]]}, "points 0, 1 and 2"),
        ({"must_link": [[0, 60]]}, r"must_link\[0\]"),
        ({"cannot_link": [[3, 3]]}, "itself"),
    ],
)
def test_contradictions_are_found_before_any_iteration(known, message, monkeypatch):
    X, _ = blobs(10)

    def fail(*args, **kwargs):
        raise AssertionError("an iteration was made")

    monkeypatch.setattr("cgmm.mixture.base.em", fail)
    with pytest.raises(ValueError, match=message):
        ConstrainedGaussianMixture(2).fit(X, **known)


def test_chunklets_are_named_by_their_points():
    X, _ = blobs(11)
    # Nodes are numbered by first points: the three chunklets below are nodes 10, 11 and 12.
    must = [[10, 20], [30, 11], [40, 12]]
    cannot = [[20, 30], [30, 40], [20, 12]]
    with pytest.raises(ValueError, match="points 10, 11 and 12 are mutually"):
        ConstrainedGaussianMixture(2).fit(X, must_link=must, cannot_link=cannot)


@pytest.mark.parametrize("weights", ["exact", "grid"])
def test_an_engine_without_normaliser_is_refused_where_it_is_needed(weights):
    X, _ = blobs(12)
    model = ConstrainedGaussianMixture(2, inference="gibbs", weights=weights)
    with pytest.raises(ValueError, match="needs the prior's normaliser"):
        model.fit(X, cannot_link=[[0, 1]])


def test_what_is_too_wide_is_refused_with_the_alternatives():
    rng = np.random.default_rng(0)
    X, _ = blobs(13, n_samples=400)
    pairs = np.array([p for p in itertools.combinations(range(400), 2) if rng.random() < 0.05])
    preferences = np.column_stack([pairs, np.ones(len(pairs))])
    with pytest.raises(TooCostlyError, match="inference='auto', which approximates"):
        ConstrainedGaussianMixture(3, inference="exact").fit(X, preferences=preferences)


def test_points_keep_their_places_although_em_works_on_chunklets_together():
    X, z = blobs(15, n_samples=80, spread=5.0)
    must = np.array([np.flatnonzero(z == k)[[-1, 2]] for k in range(3)])
    labels = scenarios.partial_labels(z, 10, random_state=0)
    model = ConstrainedGaussianMixture(3, random_state=0, tol=1e-9, max_iter=500)
    model.fit(X, must_link=must, labels=labels)
    side = SideInformation.build(len(X), must_link=must, labels=labels)
    theta = model.parameters_
    posterior = e_step(X, theta, side, ENGINES["auto"](side.graph))
    np.testing.assert_allclose(model.responsibilities_, posterior.responsibilities, atol=1e-12)
    np.testing.assert_array_equal(model.labels_, posterior.responsibilities.argmax(axis=1))


@pytest.mark.parametrize("odds", [2e9, -2e9])
def test_log_odds_beyond_the_digits_of_the_points_are_refused(odds):
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match=r"points 1 and 4,.*log-odds of -?2e\+09"):
        ConstrainedGaussianMixture(2).fit(X, preferences=[[0, 2, 1.0], [4, 1, odds]])
    # A billion is the most, and two halves of it add up.
    ConstrainedGaussianMixture(2, random_state=0).fit(
        X, preferences=[[4, 1, odds / 4], [1, 4, odds / 4]]
    )
