"""Test the simulations of chapter 14: truths, answers, laws, and stored rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgmm import ConstrainedGaussianMixture
from cgmm.kmeans import COPKMeans
from cgmm.metrics import broken_relations, matched_accuracy
from cgmm.scenarios import preferences
from reruns.choosing import MIXTURES, ask, methods, sample_truth


def rng(seed=0):
    return np.random.default_rng(seed)


def nearest(points):
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    return distances[~np.eye(len(points), dtype=bool)].min()


# ---------------------------------------------------------------------------- the truth


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
def test_means_and_covariances_are_as_the_shape_says(shape, gap, deviations, n_classes):
    truth = sample_truth(shape, n_classes, rng(n_classes))
    assert nearest(truth.means) == pytest.approx(gap, rel=1e-10)
    # two directions separate the classes
    assert np.linalg.matrix_rank(truth.means, tol=1e-8) <= 2
    clumps_each = 2 if shape == "split" else 1
    assert np.bincount(truth.class_of).tolist() == [clumps_each] * n_classes
    found = np.sqrt(np.linalg.eigvalsh(truth.covariances))
    expected = np.tile(deviations, (clumps_each * n_classes, 1))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    same = np.allclose(truth.covariances, truth.covariances[0])
    assert same == (shape != "different")


# ---------------------------------------------------------------------------- answers


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(2, 5), st.integers(0, 40), st.sampled_from([0.0, 0.3]))
def test_answers_are_as_many_and_about_different_points(seed, n_classes, n_answers, q):
    y = rng(seed).permutation(np.arange(100) % n_classes)
    known = ask(y, n_answers, q, rng(seed))
    pairs = np.concatenate(known.relations)
    assert len(pairs) == n_answers == (known.labels >= 0).sum()
    assert len(np.unique(pairs)) == 2 * n_answers
    # one label for each pair
    labelled = known.labels[pairs] >= 0
    assert (labelled.sum(axis=1) == 1).all()
    if q == 0:
        assert broken_relations(y, *known.relations) == (0, 0)
        shown = known.labels >= 0
        assert (known.labels[shown] == y[shown]).all()


@pytest.mark.parametrize("q", [0.05, 0.3])
def test_errors_have_their_rate_and_wrong_labels_are_of_all_other_classes(q):
    y = rng(0).integers(4, size=40_000)
    known = ask(y, 20_000, q, rng(1))
    broken = sum(broken_relations(y, *known.relations)) / 20_000
    shown = known.labels >= 0
    shift = (known.labels[shown] - y[shown]) % 4
    # three standard errors of a share of 20,000
    tolerance = 3 * np.sqrt(q * (1 - q) / 20_000)
    assert broken == pytest.approx(q, abs=tolerance)
    assert np.mean(shift > 0) == pytest.approx(q, abs=tolerance)
    np.testing.assert_allclose(np.bincount(shift)[1:] / 20_000, q / 3, atol=tolerance)


# ---------------------------------------------------------------------------- laws


def sample(shape, n_classes=3, seed=0):
    r = rng(seed)
    truth = sample_truth(shape, n_classes, r)
    return *truth.sample(300, r), *truth.sample(200, r), r


def test_without_relations_every_method_is_its_plain_self():
    X, y, new, _, r = sample("overlapping")
    runs = methods(X, 3, ask(y, 0, 0, r), 7)
    fitted = {name: fit().predict(new) for name, fit in runs.items()}
    for name in ("COP-KMeans", "PCKMeans", "RCA + K-means", "MMC + K-means"):
        np.testing.assert_array_equal(fitted[name], fitted["K-means"], err_msg=name)
    for name in ("must-links", "both", "preferences", "labels"):
        # Components may come out in another order, but empty relations keep those of the start.
        assert matched_accuracy(fitted["mixture"], fitted[name]) == 1, name


def test_methods_get_the_relations_that_their_names_say(monkeypatch):
    X, y, _, _, r = sample("spherical")
    known = ask(y, 60, 0.2, r)
    must, cannot = known.relations
    arguments, running = [], []
    for cls in (ConstrainedGaussianMixture, COPKMeans):
        original = cls.fit

        def spy(self, X, _fit=original, **known):
            # Fits inside a fit are its start, or a fit that it is compared with.
            if not running:
                arguments.append(known)
            running.append(1)
            try:
                return _fit(self, X, **known)
            finally:
                running.pop()

        monkeypatch.setattr(cls, "fit", spy)
    expected = {
        "K-means": {},
        "COP-KMeans": {"must_link": must, "cannot_link": cannot},
        "mixture": {},
        "must-links": {"must_link": must},
        "both": {"must_link": must, "cannot_link": cannot},
        "labels": {"labels": known.labels},
        "RCA + mixture": {},
        # γ = 0.9, whatever q is
        "preferences": {"preferences": preferences(must, cannot, certainty=0.9)},
    }
    for name, fit in methods(X, 3, known, 7).items():
        arguments.clear()
        fit()
        if name in expected:
            np.testing.assert_equal(arguments, [expected[name]], name)


def test_mixtures_begin_where_they_are_asked_to():
    """From the truth of round, distant classes every mixture stays; only mixtures have evidence."""
    X, y, _, _, r = sample("spherical")
    for name, fit in methods(X, 3, ask(y, 45, 0.0, r), 7, start=y).items():
        fitted = fit()
        assert (fitted.log_evidence is None) == (name not in MIXTURES), name
        if name in ("mixture", "both", "labels", "names, weighed", "tied"):
            agree = np.mean(fitted.predict(X) == y)  # without matching: components keep their names
            assert agree > 0.95, name
