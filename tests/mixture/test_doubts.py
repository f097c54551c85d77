"""A fit warns of faults that raise no error: wrong relations and thin covariances."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgmm
from cgmm import ConstrainedGaussianMixture, datasets, scenarios
from cgmm.mixture import Parameters
from cgmm.mixture.doubts import describe_doubted_relations, log_ratios_of_must_links
from cgmm.network import PairsAmong
from cgmm.scenarios import random_pairs


def words(model, X, **known):
    """Return the warnings of a fit."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, **known)
    return [str(warning.message) for warning in caught]


def fit_and_doubt(seed, sep=2.5, q=0.0):
    """Return whether a fit doubts relations of 90 points in three classes, true or flipped."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=90)
    corners = sep * np.array([[0, 0], [1, 0], [0, 1]])
    X = rng.normal(size=(90, 2)) + corners[y]
    drawn = scenarios.flip(scenarios.random_pairs(y, 30, random_state=rng), q, random_state=rng)
    model = ConstrainedGaussianMixture(
        3, covariance_type="spherical", means_init=corners, init_params="k-means++"
    )
    return any("speak against" in text for text in words(model, X, **drawn._asdict()))


def test_true_relations_are_doubted_as_rarely_as_stated_and_wrong_ones_mostly():
    # A count of 60 at a rate of 0.01 at most is above 4 in one of 2,000 tests.
    assert sum(fit_and_doubt(seed) for seed in range(60)) <= 4
    assert sum(fit_and_doubt(seed, sep=6, q=0.1) for seed in range(20)) >= 15


@pytest.mark.parametrize(("ratio", "is_doubted"), [(60, False), (150, True)])
def test_a_relation_is_doubted_from_a_likelihood_ratio_of_100_on(ratio, is_doubted):
    """Markov's inequality bounds the rate of false alarms by one in 100 fits."""
    theta = Parameters(np.full(2, 0.5), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    # With odds t and 1 / t of the first component the ratio of a must-link is (t + 1 / t) / 2.
    x = np.arccosh(ratio) / 2
    X, pair = np.array([[x], [-x]]), np.array([[0, 1]])
    assert np.exp(log_ratios_of_must_links(theta, X, pair)) == pytest.approx(ratio)
    assert (len(describe_doubted_relations(theta, X, pair, None)) == 1) == is_doubted


def test_the_ratio_of_a_right_relation_has_expectation_one():
    """This holds at the true θ, and bounds the rate of false alarms."""
    rng = np.random.default_rng(0)
    means, covariances = np.array([[-1.0], [1.0]]), np.ones((2, 1, 1))
    theta = Parameters(np.array([0.3, 0.7]), means, covariances)
    z = rng.choice(2, size=100_000, p=theta.weights)
    X = rng.normal(size=(100_000, 1)) + theta.means[z]
    pairs = np.arange(100_000).reshape(-1, 2)
    together = z[pairs[:, 0]] == z[pairs[:, 1]]
    for sign, kind in ((1, together), (-1, ~together)):
        ratios = np.exp(sign * log_ratios_of_must_links(theta, X, pairs[kind]))
        error = ratios.std() / np.sqrt(len(ratios))
        assert abs(ratios.mean() - 1) < 4 * error


def test_the_worst_relation_is_named_by_the_row_of_its_points():
    X = np.random.default_rng(0).normal(size=(40, 1)) + np.repeat([[-4.0], [4.0]], 20, axis=0)
    model = ConstrainedGaussianMixture(2, random_state=0)
    (message,) = words(model, X, must_link=PairsAmong([[0, 1], [2, 3], [5, 25]], 40))
    assert "(p = 0.0004), most against 5 and 25 together" in message
    (message,) = words(model, X, must_link=[[0, 1]], cannot_link=[[2, 30], [7, 8]])
    assert "most against 7 and 8 apart" in message
    # With a single component relations cannot disagree with the points.
    assert not words(ConstrainedGaussianMixture(1), X, must_link=[[5, 25]])


def test_the_call_that_the_message_names_answers_the_doubt():
    X = np.random.default_rng(0).normal(size=(40, 1)) + np.repeat([[-4.0], [4.0]], 20, axis=0)
    must_link, cannot_link = [[0, 1], [2, 3], [5, 25]], [[1, 30]]
    model = ConstrainedGaussianMixture(2, random_state=0)
    (message,) = words(model, X, must_link=must_link, cannot_link=cannot_link)
    call = message.split("Soften them, ")[1].split(", or check")[0]
    names = {"X": X, "must_link": must_link, "cannot_link": cannot_link, "cgmm": cgmm}
    with warnings.catch_warnings(action="error"):
        soft = eval(f"model.{call}", names | {"model": model})
    assert soft.labels_[5] != soft.labels_[25]


def test_a_poor_maximum_is_distinguished_from_wrong_relations():
    """True relations look wrong from K-means, and right from the start that the message names."""
    X, person = datasets.vertical_classes()[:2]
    known = random_pairs(person, 60, random_state=0)._asdict()
    poor = ConstrainedGaussianMixture(2, init_params="kmeans", random_state=0)
    (message,) = words(poor, X, **known)
    assert "ended at a poor maximum" in message
    call = message.split("Fit again, ")[1].replace("fit(...).", "fit(X, **known)")
    better = eval(f"poor.{call}", {"poor": poor, "X": X, "known": known})
    gain = float(message.split("log-evidence is ")[1].split(" nats")[0])
    assert gain > 5
    with warnings.catch_warnings(action="error"):
        again = ConstrainedGaussianMixture(2, random_state=0).fit(X, **known)
    assert again.log_evidence_ == pytest.approx(better.log_evidence_, abs=0.5)
    flipped = scenarios.flip(random_pairs(person, 60, random_state=0), 0.1, random_state=0)
    (message,) = words(poor.set_params(init_params="kmeans", n_init=1), X, **flipped._asdict())
    assert "speak against the relations (p" in message


@pytest.mark.parametrize("n_points", [5, 6])
def test_components_of_single_points_are_noticed(n_points):
    """With one component for each point, every variance is reg_covar."""
    X = np.random.default_rng(0).normal(size=(n_points, 2))
    (message, *_) = words(ConstrainedGaussianMixture(5, random_state=0), X)
    assert "covariances are near to singular" in message


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 8), st.integers(-3, 3))
def test_covariances_of_full_rank_are_never_doubted_and_thin_ones_always(seed, D, exponent):
    rng = np.random.default_rng(seed)
    X = 10.0**exponent * rng.normal(size=(5 * D, D))
    model = ConstrainedGaussianMixture(1, reg_covar=1e-6 * 100.0**exponent)
    assert not words(model, X)
    X[:, -1] = X[:, :-1].sum(axis=1)
    assert "1 of 1 covariances are near to singular" in words(model, X)[0]


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_thin_covariances_of_every_type_are_noticed(covariance_type):
    X = np.random.default_rng(0).normal(size=(50, 4))
    X[:, 3] = X[:, 2] if covariance_type in ("full", "tied") else 7.0
    model = ConstrainedGaussianMixture(covariance_type=covariance_type)
    message = words(model, X)
    # A ball in four columns has the average of the variances.
    assert len(message) == (covariance_type != "spherical")
    assert not words(model.set_params(reg_covar=0.1), X)
    X[:25] = 0.0
    alone = ConstrainedGaussianMixture(2, covariance_type=covariance_type, means_init=X[[0, -1]])
    assert len(words(alone, X)) == 1


def test_a_fit_of_a_dask_array_is_compared_with_a_second_fit_in_memory():
    """A must-link between two far clumps is doubted, which starts the second fit."""
    da = pytest.importorskip("dask.array")
    X = np.repeat([[0.0], [9.0]], 50, axis=0) + np.random.default_rng(0).normal(size=(100, 1))
    model = ConstrainedGaussianMixture(2, random_state=0, init_params="kmeans")
    texts = words(model, da.from_array(X, chunks=(40, 1)), must_link=[[0, 99]])
    assert [text for text in texts if "most against 0 and 99 together" in text]
