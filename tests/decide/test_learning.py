"""Points and witnesses at once: one likelihood that never falls, and where both are at rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture
from cgmm.decide import WitnessMixture, error_rates, learn_from_witnesses
from cgmm.inference import ENGINES
from cgmm.network import SideInformation

AUTO = ENGINES["auto"]


def problem(seed, N=40, P=24):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], N // 2))
    pairs = np.array([rng.choice(N, 2, replace=False) for _ in range(P)])
    witness = np.arange(P) % 2
    wrong = rng.random(P) < np.array([0.05, 0.4])[witness]
    answers = np.column_stack([pairs, (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ wrong])
    return rng.normal(size=(N, 1)) + 3 * y[:, None], answers, witness


@settings(max_examples=4)
@given(st.integers(0, 1000), st.booleans())
def test_the_common_likelihood_never_falls_and_ends_where_each_agrees_with_the_other(seed, kinds):
    X, answers, witness = problem(seed)
    side, told = SideInformation.build(len(X)), []
    model = ConstrainedGaussianMixture(
        2, weights="ignore", warm_start=True, random_state=0, reg_covar=1e-6, tol=1e-9,
        max_iter=2000,
    )  # fmt: skip

    def fit(rows):
        told.append(rows)
        return model.fit(X, preferences=rows).parameters_

    found = learn_from_witnesses(
        X, fit, side, answers, AUTO, witness=witness, kinds=kinds, tol=1e-4, max_rounds=200
    )
    assert found.converged
    # reg_covar adds to covariances 1e-6, which may take as much from the likelihood of a point.
    assert (np.diff(found.history) >= -1e-4).all()
    # At first all are weighted alike, by the prior's mode of 1/5.
    np.testing.assert_allclose(told[0][:, 2], np.where(answers[:, 2] == 1, 1, -1) * np.log(4))
    again = error_rates(
        X, found.parameters, side, answers, AUTO, witness=witness, kinds=kinds,
        start=found.witnesses,
    )  # fmt: skip
    np.testing.assert_allclose(again.false_apart, found.witnesses.false_apart, atol=1e-4)
    # Rates move the likelihood only at second order about their maximum.
    assert again.history[-1] == pytest.approx(found.history[-1], abs=1e-4)


def test_the_estimator_keeps_the_mixture_of_the_best_round():
    X, answers, witness = problem(3)
    labels = np.where(np.arange(len(X)) < 4, X[:, 0] > 1.5, -1)
    mixture = ConstrainedGaussianMixture(2, weights="ignore", random_state=0)
    found = learn_from_witnesses(
        X, lambda rows: clone(mixture).fit(X, preferences=rows, labels=labels).parameters_,
        SideInformation.build(len(X), labels=labels), answers, AUTO, witness=witness, kinds=True,
    )  # fmt: skip
    model = WitnessMixture(mixture, kinds=True).fit(X, answers, witness=witness, labels=labels)
    np.testing.assert_array_equal(model.rates_.T, found.witnesses[:2])
    np.testing.assert_array_equal(model.estimator_.means_, found.parameters.means)
    assert (model.labels_[:4] == labels[:4]).all()
    assert model.predict([[0.0], [3.0]], must_link=[[0, 1]]).std() == 0
    assert model.predict([[0.0], [3.0]]).tolist() == [0, 1]
    with pytest.warns(ConvergenceWarning, match="max_rounds"):
        WitnessMixture(mixture, max_rounds=1).fit(X, answers)


@pytest.mark.parametrize(
    ("answers", "options", "says"),
    [
        ([[0, 1]], {}, r"\(1, 2\)"),
        ([[0, 1, 1]], {"max_rounds": 0}, "max_rounds=50"),
        ([[0, 1, 1]], {"prior": (1, 2)}, "above 1"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused_before_a_fit(answers, options, says):
    with pytest.raises(ValueError, match=says):
        learn_from_witnesses(
            np.zeros((3, 1)), None, SideInformation.build(3), answers, AUTO, **options
        )


def test_of_several_beginnings_and_rounds_the_highest_end_is_kept():
    """The second beginning believes one witness alone; each fit ends where it is sent."""
    X, answers, witness = problem(0)
    model = ConstrainedGaussianMixture(2, weights="ignore", random_state=0)
    good = model.fit(X).parameters_
    poor = good._replace(means=good.means * 0 + np.array([[-9.0], [9.0]]))

    def learn(thetas, **options):
        ends = iter(thetas)
        return learn_from_witnesses(
            X, lambda rows: next(ends), SideInformation.build(len(X)), answers, AUTO,
            witness=witness, max_rounds=2, tol=0, **options,
        )  # fmt: skip

    assert learn([good, poor]).parameters is good
    assert learn([poor, poor, good, poor], n_init=2).parameters is good
    assert learn([good, good, poor, poor], n_init=2).history.max() == pytest.approx(
        learn([good, good]).history.max(), rel=1e-12
    )
    with pytest.raises(ValueError, match="n_init"):
        learn([good], n_init=0)
