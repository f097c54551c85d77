"""A family written from CONTRIBUTING alone does what the package's own families do."""

import itertools
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson

from cgmm import ENGINES
from cgmm.metrics import matched_accuracy

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
RATES = np.array([[2.0, 12.0], [9.0, 3.0], [16.0, 16.0]])


@pytest.fixture(scope="module")
def Mixture():
    """The estimator that the page's code defines."""
    section = PAGE.read_text(encoding="utf8").split("## Write a family")[1].split("\n## ")[0]
    names = {"__name__": "contributing"}
    exec(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], names)
    return names["PoissonMixture"]


def table(seed=0, n_points=150):
    rng = np.random.default_rng(seed)
    z = np.arange(n_points) % 3
    return rng.poisson(RATES[z]).astype(float), z


def relations(z, n_pairs=30):
    pairs = np.random.default_rng(1).integers(len(z), size=(n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = z[pairs[:, 0]] == z[pairs[:, 1]]
    return {"must_link": pairs[together], "cannot_link": pairs[~together]}


def log_evidence_of_all_assignments(theta, X, cannot_link):
    """Return log p(X | cannot-links) as a sum over every assignment of the points."""
    joint, prior = [], []
    for states in itertools.product(range(len(theta.weights)), repeat=len(X)):
        z = np.array(states)
        if (z[cannot_link[:, 0]] == z[cannot_link[:, 1]]).any():
            continue
        prior.append(np.log(theta.weights[z]).sum())
        joint.append(prior[-1] + poisson(theta.rates[z]).logpmf(X).sum())
    return logsumexp(joint) - logsumexp(prior)


@pytest.mark.parametrize("known", ["nothing", "labels", "relations"])
def test_a_family_from_the_guide_finds_the_groups(Mixture, known):
    X, z = table()
    given = {"nothing": {}, "labels": {"labels": np.where(np.arange(150) < 9, z, -1)}}
    given = given.get(known, relations(z))
    model = Mixture(3, n_init=5, random_state=0).fit(X, **given)
    assert matched_accuracy(z, model.labels_) > 0.95
    assert (np.diff(model.history_) >= -1e-9).all()
    if known == "labels":
        assert (model.labels_[:9] == z[:9]).all()
    np.testing.assert_allclose(
        np.sort(model.parameters_.rates.ravel()), np.sort(RATES.ravel()), atol=1.5
    )


def test_evidence_of_a_family_is_the_sum_over_all_assignments(Mixture):
    X, _ = table(n_points=7)
    apart = np.array([[0, 1], [1, 2], [4, 6]])
    model = Mixture(3, random_state=0, max_iter=20).fit(X, cannot_link=apart)
    expected = log_evidence_of_all_assignments(model.parameters_, X, apart)
    assert model.log_evidence_ == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("engine", sorted(set(ENGINES) - {"independent", "clique"}))
def test_every_engine_works_with_a_family(Mixture, engine):
    X, _ = table(n_points=12)
    preferences = [[0, 3, 1.5], [1, 5, -2.0], [2, 7, -1.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Mixture(3, inference=engine, random_state=0).fit(X, preferences=preferences)
        r = model.predict_proba(X, preferences=preferences)
    np.testing.assert_allclose(r.sum(axis=1), 1, atol=1e-9)
    assert len(set(model.labels_)) > 1


def test_a_family_predicts_scores_and_takes_batches(Mixture):
    X, _ = table(n_points=600)
    model = Mixture(3, n_init=3, random_state=0).fit(X)
    theta = model.parameters_
    expected = logsumexp(
        poisson(theta.rates[None]).logpmf(X[:, None]).sum(axis=2) + np.log(theta.weights), axis=1
    )
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-10)
    assert model.score(X) == pytest.approx(expected.mean())
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.bic(X) == pytest.approx(-2 * expected.sum() + 8 * np.log(600))
    batches = Mixture(3, random_state=2)
    for _ in range(4):
        for part in np.split(X, 6):
            batches.partial_fit(part)
    assert batches.score(X) > model.score(X) - 0.1
    again = Mixture(3, warm_start=True, random_state=0).fit(X)
    before = again.log_evidence_
    assert again.fit(X).log_evidence_ > before
    with pytest.raises(ValueError, match="3 components in 2 columns"):
        again.fit(X[:, :1])
