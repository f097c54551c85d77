"""Points and witnesses at once: one likelihood that never falls, and where both are at rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture
from cgmm.decide import Witnesses, WitnessMixture, error_rates
from cgmm.inference import ENGINES
from cgmm.network import SideInformation

MIXTURE = ConstrainedGaussianMixture(2, random_state=0)


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
    side = SideInformation.build(len(X))
    mixture = ConstrainedGaussianMixture(
        2, warm_start=True, random_state=0, reg_covar=1e-6, tol=1e-9, max_iter=2000
    )
    model = WitnessMixture(mixture, kinds=kinds, tol=1e-4, max_rounds=200)
    model.fit(X, answers, witness=witness)
    assert model.converged_
    # reg_covar adds to covariances 1e-6, which may take as much from the likelihood of a point.
    assert (np.diff(model.history_) >= -1e-4).all()
    found = Witnesses(*model.rates_.T, model.wrong_, None, model.witnesses_, None, True)
    again = error_rates(
        X, model.estimator_.parameters_, side, answers, ENGINES["auto"], witness=witness,
        kinds=kinds, start=found,
    )  # fmt: skip
    np.testing.assert_allclose([again.false_apart, again.false_together], model.rates_.T, atol=1e-4)
    # Rates move the likelihood only at second order about their maximum.
    assert again.history[-1] == pytest.approx(model.history_[-1], abs=1e-4)


def test_what_is_certain_is_told_to_fits_and_rates_and_new_points_are_predicted():
    X, answers, witness = problem(3)
    labels = np.where(np.arange(len(X)) < 4, X[:, 0] > 1.5, -1)
    model = WitnessMixture(MIXTURE).fit(X, answers, witness=witness, labels=labels)
    side = SideInformation.build(len(X), labels=labels)
    theta = model.estimator_.parameters_
    at_rest = error_rates(X, theta, side, answers, ENGINES["auto"], witness=witness)
    np.testing.assert_allclose(model.rates_.T, at_rest[:2], atol=1e-4)
    assert (model.labels_[:4] == labels[:4]).all()
    assert model.predict([[0.0], [3.0]], must_link=[[0, 1]]).std() == 0
    assert model.predict([[0.0], [3.0]]).tolist() == [0, 1]
    with pytest.warns(ConvergenceWarning, match="max_rounds=200"):
        WitnessMixture(MIXTURE, max_rounds=1).fit(X, answers)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"max_rounds": 0}, "max_rounds"), ({"n_init": 0}, "n_init"), ({"prior": (1, 2)}, "above")],
)
def test_what_cannot_be_learnt_from_is_refused(options, says):
    with pytest.raises(ValueError, match=says):
        WitnessMixture(MIXTURE, **options).fit(np.zeros((3, 1)), [[0, 1, 1]])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_of_several_beginnings_and_rounds_the_highest_end_is_kept(monkeypatch):
    """The second beginning believes one witness alone; each fit ends where it is sent."""
    X, answers, witness = problem(0)
    good = ConstrainedGaussianMixture(2, random_state=0).fit(X).parameters_
    poor = good._replace(means=good.means * 0 + np.array([[-9.0], [9.0]]))

    def learn(thetas, **options):
        ends, told = iter(thetas), []

        def sent(self, X, preferences):
            self.weights_, self.means_, self.covariances_ = next(ends)
            self.labels_, self._type = None, "full"
            told.append(np.abs(preferences[:, 2]))

        monkeypatch.setattr(ConstrainedGaussianMixture, "fit", sent)
        model = WitnessMixture(MIXTURE, max_rounds=2, tol=0, **options)
        return model.fit(X, answers, witness=witness), told

    for thetas in ([good, poor], [poor, poor, good, poor]):
        model, told = learn(thetas, n_init=len(thetas) // 2)
        assert model.estimator_.means_ is good.means
    # At first all are weighted alike, by the prior's mode of 1/5; then one alone.
    np.testing.assert_allclose(told[0], np.log(4))
    believed = [set(told[2][witness == g]) for g in (0, 1)]
    assert sorted(map(max, believed)) == pytest.approx([0, np.log(4)])
    assert all(len(weights) == 1 for weights in believed)
    first, both = learn([good, good])[0], learn([good, good, poor, poor], n_init=2)[0]
    np.testing.assert_array_equal(both.history_, first.history_)
