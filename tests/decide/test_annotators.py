"""Compare error rates of annotators with enumeration, for a given and for a fitted mixture."""

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
RATES_OF_ANN = AnnotatorRates(*np.full((2, 1), 0.1), None, None, np.array(["ann"]), None, False)
MIXTURE = ConstrainedGaussianMixture(2, random_state=0)
# The two components have the same density, so points do not distinguish them.
EQUAL_COMPONENTS = Parameters(np.full(2, 0.5), np.zeros((2, 1)), np.ones((2, 1, 1)))


def draw_problem(seed, *, K=2, N=6, P=8, G=2):
    """Draw N points, θ of K components, and P answers of G annotators; pairs may occur twice."""
    rng = np.random.default_rng(seed)
    theta = Parameters(
        rng.dirichlet(5 * np.ones(K)), 2 * rng.normal(size=(K, 1)), np.ones((K, 1, 1))
    )
    pairs = rng.permuted(np.tile(np.arange(N), (P, 1)), axis=1)[:, :2]
    answers = np.column_stack([pairs, rng.random(P) < 0.5])
    return rng.normal(size=(N, 1)) * 2, theta, answers, np.arange(P) % G


def enumerate_answers(X, theta, answers, annotator, alpha, beta, must_link=()):
    """Return log p(X, answers) and p(answer is wrong) by sums over all assignments."""
    z, logs = every_assignment(X, theta, [[i, j, np.inf] for i, j in must_link])
    i, j, says_same = answers.astype(int).T
    together = z[:, i] == z[:, j]
    p_together = np.where(together, 1 - alpha[annotator], beta[annotator])
    logs += np.log(np.where(says_same == 1, p_together, 1 - p_together)).sum(axis=1)
    return logsumexp(logs), softmax(logs) @ (together != says_same)


@settings(max_examples=15)
@given(SEEDS, st.integers(2, 3), st.booleans(), st.booleans())
def test_error_rates_are_a_fixed_point_and_log_evidence_equals_enumeration(
    seed, K, kinds, with_must_link
):
    X, theta, answers, annotator = draw_problem(seed, K=K)
    must = [[0, 1]] if with_must_link else []
    side, prior = SideInformation.build(len(X), must_link=must), (1.5, 3.0)
    rates = error_rates(
        X, theta, side, answers, AUTO, annotator=annotator, kinds=kinds, prior=prior, max_iter=3000,
        tol=1e-9,
    )  # fmt: skip
    alpha, beta = rates.false_apart, rates.false_together
    log_evidence, wrong = enumerate_answers(X, theta, answers, annotator, alpha, beta, must)
    np.testing.assert_allclose(rates.wrong, wrong, atol=1e-10)
    # EM never decreases the log-posterior. A rate at a flat maximum may move by up to tol.
    assert (np.diff(rates.history) >= -1e-9).all()
    free = np.array([alpha, beta] if kinds else [alpha])
    log_posterior = log_evidence + (0.5 * np.log(free) + 2.0 * np.log1p(-free)).sum()
    assert log_posterior == pytest.approx(rates.history[-1], abs=1e-6)
    says_same = answers[:, 2] == 1
    p_same = np.where(says_same, 1 - wrong, wrong)
    # A wrong answer about a pair that is together says "apart", and the reverse.
    counts = ((alpha, wrong * ~says_same, p_same), (beta, wrong * says_same, 1 - p_same))
    for rate, errors, cases in counts if kinds else [(alpha, wrong, np.ones(len(wrong)))]:
        expected = (np.bincount(annotator, errors) + 0.5) / (np.bincount(annotator, cases) + 2.5)
        np.testing.assert_allclose(rate, expected, atol=1e-8)
    assert kinds or (alpha == beta).all()
    if not must:
        weighted = SideInformation.build(len(X), preferences=rates.preferences)
        p = pair_probabilities(X, theta, weighted, answers[:, :2], AUTO(weighted.graph))
        np.testing.assert_allclose(np.where(says_same, 1 - p, p), rates.wrong, atol=1e-10)


# ---------------------------------------------------------------------------- refusals


test_error_rates_refuses_invalid_answers_and_settings = refused(
    partial(error_rates, np.zeros((3, 1)), EQUAL_COMPONENTS, SideInformation.build(3), engine=AUTO),
    ([[0, 1]], {}, r"\(1, 2\)"),
    (np.empty((0, 3)), {}, "no answer"),
    ([[0, 9, 1]], {}, r"answers\[0\] is \[0.0, 9"),
    ([[0, 1, 1], [0, 1, -1]], {}, r"answers\[1\] says -1"),
    ([[0, 1, 1]], {"prior": (1, 1)}, "above 1"),
    ([[0, 1, 1]], {"start": RATES_OF_ANN}, r"rates of \['ann'\], but \[0\]"),
    ([[0, 1, 1]], {"annotator": ["ann", "bob"]}, r"\(2,\) for 1 answers"),
)


# ---------------------------------------------------------------------------- with the mixture


def draw_answers_of_two_annotators(seed, N=40, P=24):
    """Draw points of two classes, and answers of two annotators who err in 5 and 40 %."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], N // 2))
    pairs = np.array([rng.choice(N, 2, replace=False) for _ in range(P)])
    annotator = np.arange(P) % 2
    wrong = rng.random(P) < np.array([0.05, 0.4])[annotator]
    answers = np.column_stack([pairs, (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ wrong])
    return rng.normal(size=(N, 1)) + 3 * y[:, None], answers, annotator


@settings(max_examples=4)
@given(st.integers(0, 1000), st.booleans())
def test_the_fit_converges_to_a_fixed_point_of_mixture_and_error_rates(seed, kinds):
    """The joint log-likelihood of points and answers must not decrease from round to round."""
    X, answers, annotator = draw_answers_of_two_annotators(seed)
    side = SideInformation.build(len(X))
    mixture = ConstrainedGaussianMixture(
        2, warm_start=True, random_state=0, reg_covar=1e-6, tol=1e-9, max_iter=2000
    )
    model = AnnotatorMixture(mixture, kinds=kinds, tol=1e-4, max_rounds=200)
    model.fit(X, answers, annotator=annotator)
    assert model.converged_
    # reg_covar adds 1e-6 to covariances, which may lower the log-likelihood of each point by 1e-6.
    assert (np.diff(model.history_) >= -1e-4).all()
    rates = AnnotatorRates(*model.rates_.T, model.wrong_, None, model.annotators_, None, True)
    again = error_rates(
        X, model.estimator_.parameters_, side, answers, AUTO, annotator=annotator,
        kinds=kinds, start=rates,
    )  # fmt: skip
    np.testing.assert_allclose([again.false_apart, again.false_together], model.rates_.T, atol=1e-4)
    # Near the maximum the log-likelihood depends on the rates only at second order.
    assert again.history[-1] == pytest.approx(model.history_[-1], abs=1e-4)


def test_fit_and_predict_use_the_labels_and_links_that_they_are_given():
    X, answers, annotator = draw_answers_of_two_annotators(3)
    labels = np.where(np.arange(len(X)) < 4, X[:, 0] > 1.5, -1)
    model = AnnotatorMixture(MIXTURE).fit(X, answers, annotator=annotator, labels=labels)
    side = SideInformation.build(len(X), labels=labels)
    theta = model.estimator_.parameters_
    expected = error_rates(X, theta, side, answers, AUTO, annotator=annotator)
    np.testing.assert_allclose(model.rates_.T, expected[:2], atol=1e-4)
    assert (model.labels_[:4] == labels[:4]).all()
    assert model.predict([[0.0], [3.0]], must_link=[[0, 1]]).std() == 0
    assert model.predict([[0.0], [3.0]]).tolist() == [0, 1]
    with pytest.warns(ConvergenceWarning, match="max_rounds=200"):
        AnnotatorMixture(MIXTURE, max_rounds=1).fit(X, answers)


def test_only_the_warning_of_the_last_round_is_shown():
    X, answers, _ = draw_answers_of_two_annotators(3)
    one_iteration = clone(MIXTURE).set_params(max_iter=1, tol=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model = AnnotatorMixture(one_iteration, tol=0.05).fit(X, answers)
    assert len(model.history_) > 1
    assert len(caught) == 1


test_annotator_mixture_refuses_parameters_out_of_range = refused(
    lambda **options: AnnotatorMixture(MIXTURE, **options).fit(np.zeros((3, 1)), [[0, 1, 1]]),
    ({"max_rounds": 0}, "max_rounds"),
    ({"n_init": 0}, "n_init"),
    ({"prior": (1, 2)}, "above"),
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_round_with_the_highest_log_evidence_is_kept(monkeypatch):
    """Replace fits by a function that sets prescribed parameters, in the order of the rounds.

    The first start trusts both annotators equally, the second start only one of them.
    """
    X, answers, annotator = draw_answers_of_two_annotators(0)
    good = ConstrainedGaussianMixture(2, random_state=0).fit(X).parameters_
    poor = good._replace(means=good.means * 0 + np.array([[-9.0], [9.0]]))

    def fit_with_prescribed_parameters(parameters, **options):
        remaining, strengths = iter(parameters), []

        def fit(self, X, preferences):
            self.weights_, self.means_, self.covariances_ = next(remaining)
            self.labels_, self._type = None, "full"
            strengths.append(np.abs(preferences[:, 2]))

        monkeypatch.setattr(ConstrainedGaussianMixture, "fit", fit)
        model = AnnotatorMixture(MIXTURE, max_rounds=2, tol=0, **options)
        return model.fit(X, answers, annotator=annotator), strengths

    for parameters in ([good, poor], [poor, poor, good, poor]):
        n_init = len(parameters) // 2
        model, strengths = fit_with_prescribed_parameters(parameters, n_init=n_init)
        assert model.estimator_.means_ is good.means
    # In the first start all answers have the error rate 1/5, the mode of the prior.
    np.testing.assert_allclose(strengths[0], np.log(4))
    weights_by_annotator = [set(strengths[2][annotator == g]) for g in (0, 1)]
    assert sorted(map(max, weights_by_annotator)) == pytest.approx([0, np.log(4)])
    assert all(len(weights) == 1 for weights in weights_by_annotator)
    first, _ = fit_with_prescribed_parameters([good, good])
    both, _ = fit_with_prescribed_parameters([good, good, poor, poor], n_init=2)
    np.testing.assert_array_equal(both.history_, first.history_)
