"""Test the categorical family: naive Bayes with all labels, samples, unknown categories."""

import numpy as np
import pytest
from refusals import refused
from sklearn.naive_bayes import BernoulliNB, CategoricalNB

from cgmm import ConstrainedCategoricalMixture
from cgmm.mixture import CategoricalParameters, Categories, one_hot
from cgmm.mixture.categorical import sample


def survey(seed, n_samples=120, n_components=3, sizes=(2, 3, 4, 2, 3), sharp=0.3):
    """Return answers to questions by groups of people with different habits."""
    rng = np.random.default_rng(seed)
    blocks = [rng.dirichlet(np.full(size, sharp), size=n_components) for size in sizes]
    theta = CategoricalParameters(np.full(n_components, 1 / n_components), np.hstack(blocks))
    return *sample(theta, Categories(sizes), n_samples, rng), theta


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_with_all_labels_it_is_naive_bayes(alpha):
    X, z, _ = survey(1)
    model = ConstrainedCategoricalMixture(3, pseudo_count=alpha).fit(X, labels=z)
    theirs = CategoricalNB(alpha=alpha).fit(X, z)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)
    binary = (X > 0).astype(int)
    model = ConstrainedCategoricalMixture(3, pseudo_count=alpha, n_categories=5 * [2])
    theirs = BernoulliNB(alpha=alpha).fit(binary, z)
    np.testing.assert_allclose(
        model.fit(binary, labels=z).predict_proba(binary), theirs.predict_proba(binary), rtol=1e-9
    )


def test_sampling_follows_the_parameters():
    X, z, theta = survey(6, n_samples=20_000)
    shares = one_hot(X, (2, 3, 4, 2, 3))[z == 1].mean(axis=0)
    # Five standard errors of a share of 6,600 draws.
    np.testing.assert_allclose(shares, theta.probabilities[1], atol=0.03)


test_what_is_no_category_is_refused = refused(
    ConstrainedCategoricalMixture(2).fit,
    ([[0, 1], [1, -1], [0, 0]], r"Negative values in data: X\[1, 1\] is -1"),
    ([[0, 1], [1, 0.5], [0, 0]], r"X\[1, 1\] is 0.5"),
)


def test_unknown_categories_are_refused_unless_announced():
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]])
    model = ConstrainedCategoricalMixture(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="n_categories"):
        model.predict([[2, 0]])
    model.set_params(n_categories=[3, 2]).fit(X)
    assert np.isfinite(model.score_samples([[2, 0]])).all()
    with pytest.raises(ValueError, match="2 positive integers"):
        model.set_params(n_categories=[3]).fit(X)
