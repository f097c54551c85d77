"""Test error rates of annotators against enumeration, alone and together with a mixture."""

import itertools
from functools import partial

import numpy as np
import pytest
from every_assignment import every_assignment
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture
from cgmm.decide import AnnotatorMixture, AnnotatorRates, error_rates
from cgmm.diagnose import pair_probabilities
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters
from cgmm.network import SideInformation

AUTO = ENGINES["auto"]
SEEDS = st.integers(0, 10_000)
ANN = AnnotatorRates(*np.full((2, 1), 0.1), None, None, np.array(["ann"]), None, False)
MIXTURE = ConstrainedGaussianMixture(2, random_state=0)
# Two components with equal densities, so points do not distinguish them.
BLIND = Parameters(np.full(2, 0.5), np.zeros((2, 1)), np.ones((2, 1, 1)))


def problem(seed, *, K=2, N=6, P=8, G=2):
    """Return points, θ, answers and annotators; some pairs are answered twice."""
    rng = np.random.default_rng(seed)
    theta = Parameters(
        rng.dirichlet(5 * np.ones(K)), 2 * rng.normal(size=(K, 1)), np.ones((K, 1, 1))
    )
    pairs = np.array(list(itertools.combinations(range(N), 2)))
    chosen = pairs[rng.integers(len(pairs), size=P)]
    rows = np.column_stack([chosen, rng.random(P) < 0.5])
    return rng.normal(size=(N, 1)) * 2, theta, rows, np.arange(P) % G


def by_hand(X, theta, answers, annotator, alpha, beta, must_link=()):
    """Return log p(X, answers) and p(wrong) by summing over all assignments."""
    z, logs = every_assignment(X, theta, [[i, j, np.inf] for i, j in must_link])
    i, j, says_same = answers.astype(int).T
    together = z[:, i] == z[:, j]
    p_together = np.where(together, 1 - alpha[annotator], beta[annotator])
    logs += np.log(np.where(says_same == 1, p_together, 1 - p_together)).sum(axis=1)
    return logsumexp(logs), softmax(logs) @ (together != says_same)


@settings(max_examples=15)
@given(SEEDS, st.integers(2, 3), st.booleans(), st.booleans())
def test_rates_are_a_fixed_point_and_the_evidence_is_that_of_all_assignments(
    seed, K, kinds, with_must_link
):
    X, theta, answers, annotator = problem(seed, K=K)
    must = [[0, 1]] if with_must_link else []
    side, prior = SideInformation.build(len(X), must_link=must), (1.5, 3.0)
    found = error_rates(
        X, theta, side, answers, AUTO, annotator=annotator, kinds=kinds, prior=prior, max_iter=3000,
        tol=1e-9,
    )  # fmt: skip
    alpha, beta = found.false_apart, found.false_together
    evidence, wrong = by_hand(X, theta, answers, annotator, alpha, beta, must)
    np.testing.assert_allclose(found.wrong, wrong, atol=1e-10)
    # EM never falls; a rate at a flat maximum still moves by up to tol in each iteration.
    assert (np.diff(found.history) >= -1e-9).all()
    rates = np.array([alpha, beta] if kinds else [alpha])
    last = evidence + (0.5 * np.log(rates) + 2.0 * np.log1p(-rates)).sum()
    assert last == pytest.approx(found.history[-1], abs=1e-6)
    says_same = answers[:, 2] == 1
    together = np.where(says_same, 1 - wrong, wrong)
    # A wrong answer about a pair that is together is "apart", and the reverse.
    counted = ((alpha, wrong * ~says_same, together), (beta, wrong * says_same, 1 - together))
    for rate, errors, cases in counted if kinds else [(alpha, wrong, np.ones(len(wrong)))]:
        share = (np.bincount(annotator, errors) + 0.5) / (np.bincount(annotator, cases) + 2.5)
        np.testing.assert_allclose(rate, share, atol=1e-8)
    assert kinds or (alpha == beta).all()
    if not must:
        kept = SideInformation.build(len(X), preferences=found.preferences)
        p = pair_probabilities(X, theta, kept, answers[:, :2], AUTO(kept.graph))
        np.testing.assert_allclose(np.where(says_same, 1 - p, p), found.wrong, atol=1e-10)


# ---------------------------------------------------------------------------- bad input


test_what_is_no_answer_is_refused = refused(
    partial(error_rates, np.zeros((3, 1)), BLIND, SideInformation.build(3), engine=AUTO),
    ([[0, 1]], {}, r"\(1, 2\)"),
    (np.empty((0, 3)), {}, "no answer"),
    ([[0, 9, 1]], {}, r"answers\[0\] is \[0.0, 9"),
    ([[0, 1, 1], [0, 1, -1]], {}, r"answers\[1\] says -1"),
    ([[0, 1, 1]], {"prior": (1, 1)}, "above 1"),
    ([[0, 1, 1]], {"start": ANN}, r"rates of \['ann'\], but \[0\]"),
    ([[0, 1, 1]], {"annotator": ["ann", "bob"]}, r"\(2,\) for 1 answers"),
)


# ---------------------------------------------------------------------------- with the mixture


def two_annotators(seed, N=40, P=24):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], N // 2))
    pairs = np.array([rng.choice(N, 2, replace=False) for _ in range(P)])
    annotator = np.arange(P) % 2
    wrong = rng.random(P) < np.array([0.05, 0.4])[annotator]
    answers = np.column_stack([pairs, (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ wrong])
    return rng.normal(size=(N, 1)) + 3 * y[:, None], answers, annotator


@settings(max_examples=4)
@given(st.integers(0, 1000), st.booleans())
def test_the_common_likelihood_never_falls_and_ends_where_each_agrees_with_the_other(seed, kinds):
    X, answers, annotator = two_annotators(seed)
    side = SideInformation.build(len(X))
    mixture = ConstrainedGaussianMixture(
        2, warm_start=True, random_state=0, reg_covar=1e-6, tol=1e-9, max_iter=2000
    )
    model = AnnotatorMixture(mixture, kinds=kinds, tol=1e-4, max_rounds=200)
    model.fit(X, answers, annotator=annotator)
    assert model.converged_
    # reg_covar adds to covariances 1e-6, which may take as much from the likelihood of a point.
    assert (np.diff(model.history_) >= -1e-4).all()
    found = AnnotatorRates(*model.rates_.T, model.wrong_, None, model.annotators_, None, True)
    again = error_rates(
        X, model.estimator_.parameters_, side, answers, AUTO, annotator=annotator,
        kinds=kinds, start=found,
    )  # fmt: skip
    np.testing.assert_allclose([again.false_apart, again.false_together], model.rates_.T, atol=1e-4)
    # Rates move the likelihood only at second order about their maximum.
    assert again.history[-1] == pytest.approx(model.history_[-1], abs=1e-4)


def test_certain_relations_reach_fits_and_rates_and_new_points_are_predicted():
    X, answers, annotator = two_annotators(3)
    labels = np.where(np.arange(len(X)) < 4, X[:, 0] > 1.5, -1)
    model = AnnotatorMixture(MIXTURE).fit(X, answers, annotator=annotator, labels=labels)
    side = SideInformation.build(len(X), labels=labels)
    theta = model.estimator_.parameters_
    at_rest = error_rates(X, theta, side, answers, AUTO, annotator=annotator)
    np.testing.assert_allclose(model.rates_.T, at_rest[:2], atol=1e-4)
    assert (model.labels_[:4] == labels[:4]).all()
    assert model.predict([[0.0], [3.0]], must_link=[[0, 1]]).std() == 0
    assert model.predict([[0.0], [3.0]]).tolist() == [0, 1]
    with pytest.warns(ConvergenceWarning, match="max_rounds=200"):
        AnnotatorMixture(MIXTURE, max_rounds=1).fit(X, answers)


def test_rejected_rounds_print_no_warning():
    X, answers, _ = two_annotators(3)
    cut_short = clone(MIXTURE).set_params(max_iter=1, tol=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model = AnnotatorMixture(cut_short, tol=0.05).fit(X, answers)
    assert len(model.history_) > 1
    assert len(caught) == 1


test_what_cannot_be_learnt_from_is_refused = refused(
    lambda **options: AnnotatorMixture(MIXTURE, **options).fit(np.zeros((3, 1)), [[0, 1, 1]]),
    ({"max_rounds": 0}, "max_rounds"),
    ({"n_init": 0}, "n_init"),
    ({"prior": (1, 2)}, "above"),
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_round_with_the_highest_evidence_is_kept(monkeypatch):
    """The second start believes one annotator alone; each fit ends at a prescribed score."""
    X, answers, annotator = two_annotators(0)
    good = ConstrainedGaussianMixture(2, random_state=0).fit(X).parameters_
    poor = good._replace(means=good.means * 0 + np.array([[-9.0], [9.0]]))

    def learn(thetas, **options):
        ends, strengths = iter(thetas), []

        def send_answers(self, X, preferences):
            self.weights_, self.means_, self.covariances_ = next(ends)
            self.labels_, self._type = None, "full"
            strengths.append(np.abs(preferences[:, 2]))

        monkeypatch.setattr(ConstrainedGaussianMixture, "fit", send_answers)
        model = AnnotatorMixture(MIXTURE, max_rounds=2, tol=0, **options)
        return model.fit(X, answers, annotator=annotator), strengths

    for thetas in ([good, poor], [poor, poor, good, poor]):
        model, strengths = learn(thetas, n_init=len(thetas) // 2)
        assert model.estimator_.means_ is good.means
    # At first all are weighted alike, by the prior's mode of 1/5; then one alone.
    np.testing.assert_allclose(strengths[0], np.log(4))
    believed = [set(strengths[2][annotator == g]) for g in (0, 1)]
    assert sorted(map(max, believed)) == pytest.approx([0, np.log(4)])
    assert all(len(weights) == 1 for weights in believed)
    first, both = learn([good, good])[0], learn([good, good, poor, poor], n_init=2)[0]
    np.testing.assert_array_equal(both.history_, first.history_)
