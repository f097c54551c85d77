"""Test the mixture of categorical distributions: naive Bayes, samples and unknown categories."""

import numpy as np
import pytest
from refusals import refused
from sklearn.naive_bayes import BernoulliNB, CategoricalNB

from cgmm import ConstrainedCategoricalMixture
from cgmm.mixture import CategoricalParameters, Categories, one_hot
from cgmm.mixture.categorical import sample


def draw_survey(seed, n_samples=120, n_components=3, sizes=(2, 3, 4, 2, 3), sharp=0.3):
    """Draw answers to categorical questions by groups of people with different habits.

    Return the answers, the group of each person and the true parameters.
    """
    rng = np.random.default_rng(seed)
    blocks = [rng.dirichlet(np.full(size, sharp), size=n_components) for size in sizes]
    theta = CategoricalParameters(np.full(n_components, 1 / n_components), np.hstack(blocks))
    return *sample(theta, Categories(sizes), n_samples, rng), theta


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize("naive_bayes", [CategoricalNB, BernoulliNB])
def test_fully_labelled_fit_equals_naive_bayes(naive_bayes, alpha):
    X, z, _ = draw_survey(1)
    X = X if naive_bayes is CategoricalNB else (X > 0).astype(int)
    ours = ConstrainedCategoricalMixture(3, pseudo_count=alpha).fit(X, labels=z)
    theirs = naive_bayes(alpha=alpha).fit(X, z)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)


def test_shares_of_sampled_categories_equal_their_probabilities():
    X, z, theta = draw_survey(6, n_samples=20_000)
    shares = one_hot(X, (2, 3, 4, 2, 3))[z == 1].mean(axis=0)
    # The tolerance is five standard errors of a share of 6,600 draws.
    np.testing.assert_allclose(shares, theta.probabilities[1], atol=0.03)


test_negative_and_fractional_categories_are_refused = refused(
    ConstrainedCategoricalMixture(2).fit,
    ([[0, 1], [1, -1], [0, 0]], r"Negative values in data: X\[1, 1\] is -1"),
    ([[0, 1], [1, 0.5], [0, 0]], r"X\[1, 1\] is 0.5"),
)


def test_unknown_categories_are_refused_unless_counted_in_n_categories():
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]])
    model = ConstrainedCategoricalMixture(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="n_categories"):
        model.predict([[2, 0]])
    model.set_params(n_categories=[3, 2]).fit(X)
    assert np.isfinite(model.score_samples([[2, 0]])).all()
    with pytest.raises(ValueError, match="2 positive integers"):
        model.set_params(n_categories=[3]).fit(X)
