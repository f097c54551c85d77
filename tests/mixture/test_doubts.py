"""Test the warnings of a fit about wrong relations and nearly singular covariances.

They are computed in ``cgmm.mixture.doubts`` after EM has ended.
"""

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


def collect_warnings(model, X, **known):
    """Fit, and return the messages of all warnings."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, **known)
    return [str(warning.message) for warning in caught]


def warns_about_relations(seed, separation=2.5, error_rate=0.0):
    """Return True if a fit warns that points speak against 30 relations with some wrong answers."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=90)
    centres = separation * np.array([[0, 0], [1, 0], [0, 1]])
    X = rng.normal(size=(90, 2)) + centres[y]
    known = scenarios.flip(random_pairs(y, 30, random_state=rng), error_rate, random_state=rng)
    model = ConstrainedGaussianMixture(
        3, covariance_type="spherical", means_init=centres, init_params="k-means++"
    )
    messages = collect_warnings(model, X, **known._asdict())
    return any("speak against" in message for message in messages)


def test_fits_rarely_doubt_true_relations_and_mostly_doubt_wrong_ones():
    # At the stated rate of false alarms, 0.01, more than 4 of 60 fits warn in 1 of 2000 cases.
    assert sum(map(warns_about_relations, range(60))) <= 4
    assert sum(warns_about_relations(seed, 6, 0.1) for seed in range(20)) >= 15


@pytest.mark.parametrize(("ratio", "is_doubted"), [(60, False), (150, True)])
def test_a_relation_is_doubted_if_its_likelihood_ratio_exceeds_100(ratio, is_doubted):
    """Markov's inequality then bounds the rate of false alarms by one in 100 fits."""
    theta = Parameters(np.full(2, 0.5), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    # If the points have odds t and 1 / t of component 0, the ratio is (t + 1 / t) / 2.
    x = np.arccosh(ratio) / 2
    X, pair = np.array([[x], [-x]]), np.array([[0, 1]])
    assert np.exp(log_ratios_of_must_links(theta, X, pair)) == pytest.approx(ratio)
    assert (len(describe_doubted_relations(theta, X, pair, None)) == 1) == is_doubted


def test_likelihood_ratios_of_true_relations_have_expectation_one():
    """Markov's inequality needs this expectation, which holds at the true parameters."""
    rng = np.random.default_rng(0)
    means, covariances = np.array([[-1.0], [1.0]]), np.ones((2, 1, 1))
    theta = Parameters(np.array([0.3, 0.7]), means, covariances)
    z = rng.choice(2, size=100_000, p=theta.weights)
    X = rng.normal(size=(100_000, 1)) + theta.means[z]
    pairs = np.arange(100_000).reshape(-1, 2)
    together = z[pairs[:, 0]] == z[pairs[:, 1]]
    for sign, is_true in ((1, together), (-1, ~together)):
        ratios = np.exp(sign * log_ratios_of_must_links(theta, X, pairs[is_true]))
        error = ratios.std() / np.sqrt(len(ratios))
        assert abs(ratios.mean() - 1) < 4 * error


@pytest.fixture
def two_clumps():
    """Return 20 points near -4 and 20 near 4, as an array (40, 1)."""
    return np.random.default_rng(0).normal(size=(40, 1)) + np.repeat([[-4.0], [4.0]], 20, axis=0)


def test_warning_names_the_points_of_the_most_doubtful_relation(two_clumps):
    X = two_clumps
    model = ConstrainedGaussianMixture(2, random_state=0)
    (message,) = collect_warnings(model, X, must_link=PairsAmong([[0, 1], [2, 3], [5, 25]], 40))
    assert "(p = 0.0004), most against 5 and 25 together" in message
    (message,) = collect_warnings(model, X, must_link=[[0, 1]], cannot_link=[[2, 30], [7, 8]])
    assert "most against 7 and 8 apart" in message
    # With a single component relations cannot disagree with the points.
    assert not collect_warnings(ConstrainedGaussianMixture(1), X, must_link=[[5, 25]])


def test_fit_with_softened_relations_as_advised_gives_no_warning(two_clumps):
    X = two_clumps
    must_link, cannot_link = [[0, 1], [2, 3], [5, 25]], [[1, 30]]
    model = ConstrainedGaussianMixture(2, random_state=0)
    (message,) = collect_warnings(model, X, must_link=must_link, cannot_link=cannot_link)
    call = message.split("Soften them, ")[1].split(", or check")[0]
    names = {"X": X, "must_link": must_link, "cannot_link": cannot_link, "cgmm": cgmm}
    with warnings.catch_warnings(action="error"):
        soft = eval(f"model.{call}", names | {"model": model})
    assert soft.labels_[5] != soft.labels_[25]


def test_warning_distinguishes_a_poor_maximum_from_wrong_relations():
    """True relations disagree with the K-means start, but not with the start in the message."""
    X, person = datasets.vertical_classes()[:2]
    known = random_pairs(person, 60, random_state=0)._asdict()
    poor = ConstrainedGaussianMixture(2, init_params="kmeans", random_state=0)
    (message,) = collect_warnings(poor, X, **known)
    assert "ended at a poor maximum" in message
    call = message.split("Fit again, ")[1].replace("fit(...).", "fit(X, **known)")
    better = eval(f"poor.{call}", {"poor": poor, "X": X, "known": known})
    gain = float(message.split("log-evidence is ")[1].split(" nats")[0])
    assert gain > 5
    with warnings.catch_warnings(action="error"):
        refitted = ConstrainedGaussianMixture(2, random_state=0).fit(X, **known)
    assert refitted.log_evidence_ == pytest.approx(better.log_evidence_, abs=0.5)
    flipped = scenarios.flip(random_pairs(person, 60, random_state=0), 0.1, random_state=0)
    (message,) = collect_warnings(
        poor.set_params(init_params="kmeans", n_init=1), X, **flipped._asdict()
    )
    assert "speak against the relations (p" in message


@pytest.mark.parametrize("n_points", [5, 6])
def test_components_of_single_points_give_a_warning(n_points):
    """A component of a single point has the variance reg_covar, which is nearly zero."""
    X = np.random.default_rng(0).normal(size=(n_points, 2))
    (message, *_) = collect_warnings(ConstrainedGaussianMixture(5, random_state=0), X)
    assert "covariances are near to singular" in message


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 8), st.integers(-3, 3))
def test_only_singular_covariances_give_a_warning(seed, D, exponent):
    rng = np.random.default_rng(seed)
    X = 10.0**exponent * rng.normal(size=(5 * D, D))
    model = ConstrainedGaussianMixture(1, reg_covar=1e-6 * 100.0**exponent)
    assert not collect_warnings(model, X)
    X[:, -1] = X[:, :-1].sum(axis=1)
    assert "1 of 1 covariances are near to singular" in collect_warnings(model, X)[0]


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_singular_covariances_of_every_type_give_a_warning(covariance_type):
    X = np.random.default_rng(0).normal(size=(50, 4))
    X[:, 3] = X[:, 2] if covariance_type in ("full", "tied") else 7.0
    model = ConstrainedGaussianMixture(covariance_type=covariance_type)
    # A spherical covariance averages the variances of all columns, so it is not singular.
    assert len(collect_warnings(model, X)) == (covariance_type != "spherical")
    assert not collect_warnings(model.set_params(reg_covar=0.1), X)
    X[:25] = 0.0
    two = ConstrainedGaussianMixture(2, covariance_type=covariance_type, means_init=X[[0, -1]])
    assert len(collect_warnings(two, X)) == 1


def test_doubts_about_a_fit_of_a_dask_array_name_the_points():
    """The warning about a wrong must-link needs a second fit, which is made in memory."""
    da = pytest.importorskip("dask.array")
    X = np.repeat([[0.0], [9.0]], 50, axis=0) + np.random.default_rng(0).normal(size=(100, 1))
    model = ConstrainedGaussianMixture(2, random_state=0, init_params="kmeans")
    messages = collect_warnings(model, da.from_array(X, chunks=(40, 1)), must_link=[[0, 99]])
    assert any("most against 0 and 99 together" in message for message in messages)
