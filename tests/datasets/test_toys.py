"""Test that toy problems have the properties that barhillel2005 and breiman1984 state."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from cgmm.datasets import load


@pytest.mark.parametrize("name", ["three_classes", "shared_axis", "two_clusters"])
def test_generated_classes_have_their_stated_means_and_covariances(name):
    n = 20_000
    data = load(name, n_per_class=n)
    theta = data.parameters
    assert theta.weights.sum() == pytest.approx(1)
    for k in range(len(theta.weights)):
        # Transform class k to a standard normal distribution. Limits are five standard errors.
        whiten = np.linalg.inv(np.linalg.cholesky(theta.covariances[k]))
        Z = (data.X[data.y == k] - theta.means[k]) @ whiten.T
        assert np.abs(Z.mean(axis=0)).max() < 5 / np.sqrt(n)
        assert np.abs(np.cov(Z.T) - np.eye(Z.shape[1])).max() < 5 * np.sqrt(2 / n)


# ---------------------------------------------------------------------------- barhillel2005


@pytest.mark.parametrize("seed", range(2))
def test_pairs_of_two_models_are_disjoint_correct_and_contradict_the_rows(seed):
    """The 10 must-links and 10 cannot-links follow columns of the figure, not its two rows."""
    data = load("two_models", random_state=seed)
    assert data.must_link.shape == data.cannot_link.shape == (10, 2)
    assert data.must_link.dtype == data.cannot_link.dtype == np.int64
    pairs = np.vstack([data.must_link, data.cannot_link])
    assert len(np.unique(pairs)) == 40
    same_class = data.y[pairs[:, 0]] == data.y[pairs[:, 1]]
    assert same_class.tolist() == [True] * 10 + [False] * 10
    upper = data.X[:, 1] > 0
    same_row = upper[pairs[:, 0]] == upper[pairs[:, 1]]
    assert np.mean(same_row != same_class) > 0.9


# ---------------------------------------------------------------------------- breiman1984


WAVES = np.array([[max(6 - abs(m - peak), 0) for m in range(1, 22)] for peak in (11, 15, 7)])
COMBINATIONS = [(0, 1), (0, 2), (1, 2)]


def test_waveform_has_the_published_bayes_error_and_suits_a_linear_classifier():
    """The lowest error of any classifier is 14 % [breiman1984, sect. 2.6.2]."""
    train, test = load("waveform"), load("waveform", n_samples=10_000, random_state=1)
    # p(x | class) = ∫ N(x; u h_a + (1 - u) h_b, I) du, by the midpoint rule
    u = (np.arange(40) + 0.5)[:, None] / 40
    curves = [u * WAVES[a] + (1 - u) * WAVES[b] for a, b in COMBINATIONS]
    log_density = [logsumexp(test.X @ h.T - (h**2).sum(axis=1) / 2, axis=1) for h in curves]
    bayes_error = np.mean(np.argmax(log_density, axis=0) != test.y)
    linear = LinearDiscriminantAnalysis().fit(train.X, train.y)
    linear_error = 1 - linear.score(test.X, test.y)
    assert bayes_error == pytest.approx(0.14, abs=0.012)
    assert bayes_error - 0.003 < linear_error < 0.175
