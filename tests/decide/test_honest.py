"""Test answers as data: their optimal weights, and their likelihood."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from cgmm import ConstrainedGaussianMixture
from cgmm.decide import fit_answers, joint
from cgmm.mixture import log_joint


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_a_fit_to_answers_is_that_of_the_joint_likelihood(seed):
    """log p(X, answers | θ) never falls, and exceeds that of a fit conditional on the answers."""
    X, y = draw(seed, 60)
    pairs = np.random.default_rng(seed).permutation(60)[:40].reshape(-1, 2)
    answers = np.column_stack([pairs, y[pairs[:, 0]] == y[pairs[:, 1]]])
    model = ConstrainedGaussianMixture(2, means_init=[[-1.2], [1.2]], tol=1e-9, max_iter=5000)
    found = fit_answers(model, X, answers, error_rate=0.05).parameters_

    def likelihood(theta):
        p = np.exp(log_joint(X, theta))
        a, b = p[pairs[:, 0]], p[pairs[:, 1]]
        same = (a * b).sum(axis=1)
        says_same = np.where(answers[:, 2] == 1, 0.95, 0.05)
        tied = says_same * same + (1 - says_same) * (a.sum(axis=1) * b.sum(axis=1) - same)
        alone = np.setdiff1d(np.arange(60), pairs)
        return np.log(tied).sum() + np.log(p[alone].sum(axis=1)).sum()

    assert joint(ConstrainedGaussianMixture(2)).weights == "ignore"
    for shift in (-1e-2, 1e-2):
        weights = found.weights + np.array([shift, -shift])
        moved = found.means + np.array([[shift], [0.0]])
        for other in (found._replace(weights=weights), found._replace(means=moved)):
            # EM's last step gains 1e-9 a point; slow convergence may leave a thousand such gains.
            assert likelihood(other) < likelihood(found) + 1e-4


def draw(seed, N=300):
    """Return two overlapping classes in the ratio 3 : 1."""
    rng = np.random.default_rng(seed)
    y = (rng.random(N) < 0.25).astype(int)
    return rng.normal(size=(N, 1)) + np.where(y, 1.2, -1.2)[:, None], y


def test_without_answers_the_fit_is_plain():
    X, _ = draw(0, 50)
    plain = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    none = fit_answers(ConstrainedGaussianMixture(2, random_state=0), X, [], error_rate=0.1)
    np.testing.assert_array_equal(none.means_, plain.means_)


test_a_condition_and_what_is_no_rate_are_refused = refused(
    lambda weights, rate: fit_answers(
        ConstrainedGaussianMixture(2, weights=weights), draw(0, 50)[0], [[0, 1, 1]], error_rate=rate
    ),
    ("exact", 0.1, "joint likelihood"),
    ("auto", 1.2, "error_rate has 1.2"),
    ("auto", [np.nan], "error_rate has nan"),
)
