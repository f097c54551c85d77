"""Test that the family of components written in CONTRIBUTING.md works like the package's own.

The page defines a mixture of Poisson distributions; these tests execute its code.
"""

import itertools
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from answers import true_relations
from scipy.special import logsumexp
from scipy.stats import poisson

from cgmm import ENGINES
from cgmm.metrics import matched_accuracy

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
RATES = np.array([[2.0, 12.0], [9.0, 3.0], [16.0, 16.0]])


@pytest.fixture(scope="module")
def Mixture():
    """Return the estimator class that the code in CONTRIBUTING.md defines."""
    section = PAGE.read_text(encoding="utf8").split("## Write a family")[1].split("\n## ")[0]
    names = {"__name__": "contributing"}
    exec(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], names)
    return names["PoissonMixture"]


def draw_counts(seed=0, n_points=150):
    """Draw Poisson counts (n_points, 2) of three groups; return them and the group of each row."""
    rng = np.random.default_rng(seed)
    z = np.arange(n_points) % 3
    return rng.poisson(RATES[z]).astype(float), z


def compute_log_joint(X, theta):
    """Return log p(x_i, z_i = k), shape (N, K), with SciPy's Poisson distribution."""
    return np.log(theta.weights) + poisson(theta.rates).logpmf(X[:, None]).sum(axis=2)


def enumerate_log_evidence(X, theta, cannot_link):
    """Return log p(X | cannot-links) as a sum over all assignments of the points."""
    z = np.array([*itertools.product(range(len(theta.weights)), repeat=len(X))])
    z = z[(z[:, cannot_link[:, 0]] != z[:, cannot_link[:, 1]]).all(axis=1)]
    joint = compute_log_joint(X, theta)[np.arange(len(X)), z].sum(axis=1)
    return logsumexp(joint) - logsumexp(np.log(theta.weights)[z].sum(axis=1))


@pytest.mark.parametrize("known", ["nothing", "labels", "relations"])
def test_poisson_mixture_finds_the_groups(Mixture, known):
    X, z = draw_counts()
    side_information = {
        "nothing": {},
        "labels": {"labels": np.where(np.arange(150) < 9, z, -1)},
        "relations": true_relations(np.random.default_rng(1), z, 30),
    }[known]
    model = Mixture(3, n_init=5, random_state=0).fit(X, **side_information)
    assert matched_accuracy(z, model.labels_) > 0.95
    assert (np.diff(model.history_) >= -1e-9).all()
    if known == "labels":
        assert (model.labels_[:9] == z[:9]).all()
    np.testing.assert_allclose(
        np.sort(model.parameters_.rates.ravel()), np.sort(RATES.ravel()), atol=1.5
    )


def test_evidence_of_poisson_mixture_equals_enumeration(Mixture):
    X, _ = draw_counts(n_points=7)
    cannot_link = np.array([[0, 1], [1, 2], [4, 6]])
    model = Mixture(3, random_state=0, max_iter=20).fit(X, cannot_link=cannot_link)
    expected = enumerate_log_evidence(X, model.parameters_, cannot_link)
    assert model.log_evidence_ == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("engine", sorted(set(ENGINES) - {"independent", "clique"}))
def test_every_engine_fits_a_poisson_mixture(Mixture, engine):
    X, _ = draw_counts(n_points=12)
    preferences = [[0, 3, 1.5], [1, 5, -2.0], [2, 7, -1.0]]
    with warnings.catch_warnings(action="ignore"):
        model = Mixture(3, inference=engine, random_state=0).fit(X, preferences=preferences)
        r = model.predict_proba(X, preferences=preferences)
    np.testing.assert_allclose(r.sum(axis=1), 1, atol=1e-9)
    assert len(set(model.labels_)) > 1


def test_poisson_mixture_predicts_scores_and_continues(Mixture):
    X, _ = draw_counts(n_points=600)
    model = Mixture(3, n_init=3, random_state=0).fit(X)
    expected = logsumexp(compute_log_joint(X, model.parameters_), axis=1)
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-10)
    assert model.score(X) == pytest.approx(expected.mean())
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.bic(X) == pytest.approx(-2 * expected.sum() + 8 * np.log(600))
    batches = Mixture(3, random_state=2)
    for _ in range(4):
        for part in np.split(X, 6):
            batches.partial_fit(part)
    assert batches.score(X) > model.score(X) - 0.1
    warm = Mixture(3, warm_start=True, random_state=0).fit(X)
    before = warm.log_evidence_
    assert warm.fit(X).log_evidence_ > before
    with pytest.raises(ValueError, match="3 components in 2 columns"):
        warm.fit(X[:, :1])
