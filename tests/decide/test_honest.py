"""Answers as data: the weights they deserve, their likelihood, and what a condition does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from cgmm import ConstrainedGaussianMixture
from cgmm.decide import choose_pairs, fit_answers, joint
from cgmm.metrics import paired_difference
from cgmm.scenarios import preferences_from_answers


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_a_fit_to_answers_is_that_of_the_joint_likelihood(seed):
    """log p(X, answers | θ) never falls, and is higher than where answers are a condition."""
    X, y = draw(seed, 60)
    pairs = np.random.default_rng(seed).permutation(60)[:40].reshape(-1, 2)
    answers = np.column_stack([pairs, y[pairs[:, 0]] == y[pairs[:, 1]]])
    model = ConstrainedGaussianMixture(2, means_init=[[-1.2], [1.2]], tol=1e-9, max_iter=5000)
    found = fit_answers(model, X, answers, error_rate=0.05).parameters_

    def likelihood(theta):
        p = np.exp(theta.log_joint(X))
        a, b = p[pairs[:, 0]], p[pairs[:, 1]]
        same = (a * b).sum(axis=1)
        said = np.where(answers[:, 2] == 1, 0.95, 0.05)
        tied = said * same + (1 - said) * (a.sum(axis=1) * b.sum(axis=1) - same)
        alone = np.setdiff1d(np.arange(60), pairs)
        return np.log(tied).sum() + np.log(p[alone].sum(axis=1)).sum()

    assert joint(ConstrainedGaussianMixture(2)).weights == "ignore"
    for shift in (-1e-2, 1e-2):
        weights = found.weights + np.array([shift, -shift])
        moved = found.means + np.array([[shift], [0.0]])
        for other in (found._replace(weights=weights), found._replace(means=moved)):
            # EM's last step gains 1e-9 a point; where it creeps, what is left is a thousand such.
            assert likelihood(other) < likelihood(found) + 1e-4


def draw(seed, N=300):
    """Two classes of 3 : 1 that overlap."""
    rng = np.random.default_rng(seed)
    y = (rng.random(N) < 0.25).astype(int)
    return rng.normal(size=(N, 1)) + np.where(y, 1.2, -1.2)[:, None], y


def test_answers_on_neighbours_make_weights_even_as_a_condition_and_not_as_data():
    """Who looks at the points before he asks has pairs that are alike more often than chance."""
    shares = {"data": [], "condition": []}
    truth = []
    for seed in range(12):
        X, y = draw(seed)
        pairs = np.column_stack(np.triu_indices(300, 1))
        nearest = choose_pairs(pairs, 100 - pdist(X), 100, np.arange(300))
        i, j = pairs[nearest].T
        answers = np.column_stack([i, j, y[i] == y[j]])
        start = {"means_init": [[-1.2], [1.2]]}
        as_data = fit_answers(ConstrainedGaussianMixture(2, **start), X, answers, error_rate=0.01)
        as_condition = ConstrainedGaussianMixture(2, weights="exact", **start)
        as_condition.fit(X, preferences=preferences_from_answers(answers, 0.99))
        shares["data"].append(as_data.weights_[as_data.means_[:, 0].argmax()])
        shares["condition"].append(as_condition.weights_[as_condition.means_[:, 0].argmax()])
        truth.append(y.mean())
    assert paired_difference(shares["condition"], truth).ahead
    assert np.mean(shares["condition"]) - np.mean(truth) > 0.05
    gap = paired_difference(shares["data"], truth)
    assert not gap.ahead
    assert not gap.behind


def test_no_answer_is_a_plain_fit():
    X, _ = draw(0, 50)
    plain = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    none = fit_answers(ConstrainedGaussianMixture(2, random_state=0), X, [], error_rate=0.1)
    np.testing.assert_array_equal(none.means_, plain.means_)


def test_a_mixture_that_takes_answers_for_a_condition_is_refused():
    with pytest.raises(ValueError, match="joint likelihood"):
        joint(ConstrainedGaussianMixture(2, weights="exact"))
