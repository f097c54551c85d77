"""Test the simulations of chapter 14: true classes, answers, and the relations that methods use."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy.spatial.distance import pdist

from cgmm import ConstrainedGaussianMixture
from cgmm.kmeans import COPKMeans
from cgmm.metrics import broken_relations, matched_accuracy
from cgmm.scenarios import preferences
from reruns.choosing import MIXTURES, ask, methods, sample_truth

# ---------------------------------------------------------------------------- true classes


@pytest.mark.parametrize(
    ("shape", "gap", "deviations"),
    [
        ("spherical", 4.5, [1, 1, 1, 1]),
        ("elongated", 4.5, [1, 1, 8, 8]),
        ("different", 4.5, [0.3, 0.6, 1.5, 3]),
        ("overlapping", 2.5, [1, 1, 1, 1]),
        ("split", 4.5, [1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_true_means_and_covariances_have_the_requested_shape(shape, gap, deviations, n_classes):
    truth = sample_truth(shape, n_classes, default_rng(n_classes))
    assert pdist(truth.means).min() == pytest.approx(gap, rel=1e-10)
    # The means lie in a plane.
    assert np.linalg.matrix_rank(truth.means, tol=1e-8) <= 2
    clusters_per_class = 2 if shape == "split" else 1
    assert np.bincount(truth.class_of).tolist() == [clusters_per_class] * n_classes
    expected = np.tile(deviations, (clusters_per_class * n_classes, 1))
    np.testing.assert_allclose(np.linalg.eigvalsh(truth.covariances) ** 0.5, expected, rtol=1e-9)
    same = np.allclose(truth.covariances, truth.covariances[0])
    assert same == (shape != "different")


# ---------------------------------------------------------------------------- answers


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(2, 5), st.integers(0, 40), st.sampled_from([0.0, 0.3]))
def test_ask_returns_the_requested_answers_about_different_points(seed, n_classes, n_answers, q):
    y = default_rng(seed).permutation(np.arange(100) % n_classes)
    answers = ask(y, n_answers, q, default_rng(seed))
    pairs = np.concatenate(answers.relations)
    assert len(pairs) == n_answers == (answers.labels >= 0).sum()
    assert len(np.unique(pairs)) == 2 * n_answers
    # One point of each pair also has a label.
    assert ((answers.labels[pairs] >= 0).sum(axis=1) == 1).all()
    if q == 0:
        assert broken_relations(y, *answers.relations) == (0, 0)
        labelled = answers.labels >= 0
        assert (answers.labels[labelled] == y[labelled]).all()


@pytest.mark.parametrize("q", [0.05, 0.3])
def test_wrong_answers_have_the_requested_rate_and_wrong_labels_are_uniform(q):
    y = default_rng(0).integers(4, size=40_000)
    answers = ask(y, 20_000, q, default_rng(1))
    broken = sum(broken_relations(y, *answers.relations)) / 20_000
    labelled = answers.labels >= 0
    shift = (answers.labels[labelled] - y[labelled]) % 4
    # Tolerances are three standard errors of a proportion of 20,000.
    tolerance = 3 * np.sqrt(q * (1 - q) / 20_000)
    assert broken == pytest.approx(q, abs=tolerance)
    assert np.mean(shift > 0) == pytest.approx(q, abs=tolerance)
    np.testing.assert_allclose(np.bincount(shift)[1:] / 20_000, q / 3, atol=tolerance)


# ---------------------------------------------------------------------------- methods


def draw_samples(shape, n_classes=3, seed=0):
    """Draw true classes; return X and y for fits, X and y for predictions, and the generator."""
    generator = default_rng(seed)
    truth = sample_truth(shape, n_classes, generator)
    return *truth.sample(300, generator), *truth.sample(200, generator), generator


def test_methods_without_relations_equal_their_unconstrained_form():
    X, y, new, _, generator = draw_samples("overlapping")
    runs = methods(X, 3, ask(y, 0, 0, generator), 7)
    fitted = {name: fit().predict(new) for name, fit in runs.items()}
    for name in ("COP-KMeans", "PCKMeans", "RCA + K-means", "MMC + K-means"):
        np.testing.assert_array_equal(fitted[name], fitted["K-means"], err_msg=name)
    for name in ("must-links", "both", "preferences", "labels"):
        # The order of components is arbitrary, so labels are matched.
        assert matched_accuracy(fitted["mixture"], fitted[name]) == 1, name


def test_methods_use_the_relations_that_their_names_state(monkeypatch):
    X, y, _, _, generator = draw_samples("spherical")
    answers = ask(y, 60, 0.2, generator)
    must, cannot = answers.relations
    arguments = []
    for cls in (ConstrainedGaussianMixture, COPKMeans):
        original = cls.fit

        def record_and_fit(self, X, _fit=original, **relations):
            arguments.append(relations)
            return _fit(self, X, **relations)

        monkeypatch.setattr(cls, "fit", record_and_fit)
    expected = {
        "K-means": {},
        "COP-KMeans": {"must_link": must, "cannot_link": cannot},
        "mixture": {},
        "must-links": {"must_link": must},
        "both": {"must_link": must, "cannot_link": cannot},
        "labels": {"labels": answers.labels},
        "RCA + mixture": {},
        # The assumed certainty is 0.9, whatever the rate of wrong answers is.
        "preferences": {"preferences": preferences(must, cannot, certainty=0.9)},
    }
    for name, fit in methods(X, 3, answers, 7).items():
        arguments.clear()
        fit()
        if name in expected:
            # Later arguments are those of fits within the fit, for its start or for comparison.
            np.testing.assert_equal(arguments[0], expected[name], name)


def test_mixtures_start_at_the_given_labels_and_only_mixtures_report_log_evidence():
    """Started at the true classes of separated data, every mixture stays there."""
    X, y, _, _, generator = draw_samples("spherical")
    for name, fit in methods(X, 3, ask(y, 45, 0.0, generator), 7, start=y).items():
        fitted = fit()
        assert (fitted.log_evidence is None) == (name not in MIXTURES), name
        if name in ("mixture", "both", "labels", "names, weighed", "tied"):
            agree = np.mean(fitted.predict(X) == y)  # Components keep the numbers of the start.
            assert agree > 0.95, name
