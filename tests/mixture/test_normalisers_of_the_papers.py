"""Check the errata in book/_data/errata.toml that are about normalisers of the prior.

Letters: α_l: weight of class l; Z or Ω: normaliser of the prior of assignments, e.g. Σ_l α_l².
"""

from itertools import product

import numpy as np
from scipy.special import logit

from cgmm import ENGINES, SideInformation
from cgmm.mixture import Prior
from cgmm.primer import derivative

AUTO = ENGINES["auto"]
ALPHA = np.array([0.6, 0.3, 0.1])
PATH = SideInformation.build(4, cannot_link=[[0, 1], [1, 2]])


def test_derivatives_of_the_normaliser_differ_between_classes():
    """Each derivative must count points of one class; the printed one sums over all classes.

    [shental2003, sect. 2.2]
    """
    z = np.array(list(product(range(3), repeat=4)))
    satisfies = (z[:, 0] != z[:, 1]) & (z[:, 1] != z[:, 2])
    without_j = satisfies[:, None] * ALPHA[z].prod(axis=1)[:, None] / ALPHA[z]
    as_printed = without_j.sum()
    corrected = (without_j[:, :, None] * (z[:, :, None] == np.arange(3))).sum(axis=(0, 1))
    log_z, counts = Prior(PATH, AUTO).log_z_and_counts(np.log(ALPHA))
    np.testing.assert_allclose(corrected, np.exp(log_z) * counts / ALPHA, rtol=1e-12)
    assert np.isclose(as_printed, corrected.sum(), rtol=1e-12)
    assert as_printed > 2 * corrected.max()


def test_one_call_of_an_engine_gives_the_normaliser_and_its_derivatives():
    """[shental2003, sect. 2.2] asks for M + 1 eliminations, but one yields all counts."""
    calls = []

    def counting(graph):
        infer = AUTO(graph)
        return lambda unary: calls.append(unary) or infer(unary)

    prior = Prior(PATH, counting)
    log_z, counts = prior.log_z_and_counts(np.log(ALPHA))
    assert len(calls) == 1
    np.testing.assert_allclose(derivative(prior.log_z, ALPHA), counts / ALPHA, rtol=1e-6)
    assert np.isclose(log_z, prior.log_z(ALPHA), rtol=1e-12)


def test_exponents_of_must_links_and_cannot_links_are_swapped():
    """Compute Ω of two must-links and a cannot-link that share no point.

    [lu2007, sect. 3.1] swaps the exponents.
    """
    known = {"must_link": [[0, 1], [2, 3]], "cannot_link": [[4, 5]]}
    omega = np.exp(Prior(SideInformation.build(6, **known), AUTO).log_z(ALPHA))
    same = ALPHA @ ALPHA
    assert np.isclose(omega, same**2 * (1 - same), rtol=1e-12)
    assert not np.isclose(omega, (1 - same) ** 2 * same, rtol=0.1)


def test_factor_of_a_soft_pair_in_the_normaliser():
    """[lu2007, sect. 3.1] gives the factors of hard relations only.

    Their weight W = 0.7 is our log-odds 1.4.
    """
    side = SideInformation.build(6, preferences=[[0, 1, 1.4]])
    omega = np.exp(Prior(side, AUTO).log_z(ALPHA))
    assert np.isclose(omega, 1 + np.expm1(1.4) * (ALPHA @ ALPHA), rtol=1e-12)


def test_ratio_of_appendix_b_is_one_over_gamma_for_a_cannot_link():
    """[lu2007, App. B] prints one ratio for both kinds of relations; it is right for must-links."""
    # Sign 1 is a must-link, sign -1 a cannot-link; γ is the probability of a right answer.
    gamma, sign = 0.8, np.array([1, -1])
    for same in (True, False):
        penalty = np.exp(sign * logit(gamma) * same)
        noise = np.where((sign > 0) == same, gamma, 1 - gamma)
        np.testing.assert_allclose(penalty / noise, [1 / (1 - gamma), 1 / gamma], rtol=1e-12)
    as_printed = gamma ** (sign - 1) * (1 - gamma) ** -sign.astype(float)
    np.testing.assert_allclose(as_printed, [1 / (1 - gamma), 0.3125], rtol=1e-12)


def test_designed_prior_of_appendix_b_is_exact():
    """[lu2007, App. B] neglects that Ω depends on the assignment; by Bayes' rule it cancels."""
    gamma, z = 0.8, np.array(list(product(range(3), repeat=3)))
    true = np.column_stack([z[:, 0] == z[:, 1], z[:, 1] == z[:, 2]])
    answers, prior = np.array([True, False]), ALPHA[z].prod(axis=1)
    noise = np.where(answers == true, gamma, 1 - gamma).prod(axis=1)
    omega = np.array([prior[(row == true).all(axis=1)].sum() for row in true])
    penalised = prior * np.exp(true @ (np.where(answers, 1, -1) * logit(gamma)))
    penalised /= penalised.sum()
    # P(Z | true relations) P(true relations | answers)
    by_bayes = (prior / omega) * (omega * noise)
    # [lu2007, eq. B.2]
    as_printed = prior / omega * noise
    np.testing.assert_allclose(by_bayes / by_bayes.sum(), penalised, rtol=1e-12)
    assert np.abs(as_printed / as_printed.sum() - penalised).max() > 0.01
