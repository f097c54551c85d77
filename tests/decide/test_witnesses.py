"""Error rates: against enumeration; what is not told."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgmm.decide import Witnesses, error_rates
from cgmm.diagnose import pair_probabilities
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters
from cgmm.network import SideInformation

AUTO = ENGINES["auto"]
SEEDS = st.integers(0, 10_000)
ANN = Witnesses(*np.full((2, 1), 0.1), None, None, np.array(["ann"]), None, False)
# Two components of which points say nothing.
BLIND = Parameters(np.full(2, 0.5), np.zeros((2, 1)), np.ones((2, 1, 1)))


def problem(seed, *, K=2, N=6, P=8, G=2):
    """Points, θ, answers and who gave them; some pairs twice."""
    rng = np.random.default_rng(seed)
    theta = Parameters(
        rng.dirichlet(5 * np.ones(K)), 2 * rng.normal(size=(K, 1)), np.ones((K, 1, 1))
    )
    pairs = np.array(list(itertools.combinations(range(N), 2)))
    chosen = pairs[rng.integers(len(pairs), size=P)]
    rows = np.column_stack([chosen, rng.random(P) < 0.5])
    return rng.normal(size=(N, 1)) * 2, theta, rows, np.arange(P) % G


def by_hand(X, theta, answers, witness, alpha, beta, must_link=()):
    """log p(X, answers) and p(wrong), from every assignment of points."""
    K, logs, wrongs = len(theta.weights), [], []
    log_joint = theta.log_joint(X)
    for z in itertools.product(range(K), repeat=len(X)):
        if any(z[i] != z[j] for i, j in must_link):
            continue
        total, wrong = sum(log_joint[i, z[i]] for i in range(len(X))), []
        for (i, j, said), g in zip(answers.astype(int), witness, strict=True):
            together = z[i] == z[j]
            p_together = 1 - alpha[g] if together else beta[g]
            total += np.log(p_together if said else 1 - p_together)
            wrong.append(together != bool(said))
        logs.append(total)
        wrongs.append(wrong)
    top = np.max(logs)
    p = np.exp(np.array(logs) - top)
    return top + np.log(p.sum()), p @ np.array(wrongs, dtype=float) / p.sum()


@settings(max_examples=15)
@given(SEEDS, st.integers(2, 3), st.booleans(), st.booleans())
def test_rates_are_a_fixed_point_and_the_evidence_is_that_of_all_assignments(
    seed, K, kinds, with_must_link
):
    X, theta, answers, witness = problem(seed, K=K)
    must = [[0, 1]] if with_must_link else []
    side, prior = SideInformation.build(len(X), must_link=must), (1.5, 3.0)
    found = error_rates(
        X, theta, side, answers, AUTO, witness=witness, kinds=kinds, prior=prior, max_iter=3000,
        tol=1e-9,
    )  # fmt: skip
    alpha, beta = found.false_apart, found.false_together
    evidence, wrong = by_hand(X, theta, answers, witness, alpha, beta, must)
    np.testing.assert_allclose(found.wrong, wrong, atol=1e-10)
    # EM never falls; a rate at a flat maximum still moves by up to tol in each iteration.
    assert (np.diff(found.history) >= -1e-9).all()
    rates = np.array([alpha, beta] if kinds else [alpha])
    last = evidence + (0.5 * np.log(rates) + 2.0 * np.log1p(-rates)).sum()
    assert last == pytest.approx(found.history[-1], abs=1e-6)
    said = answers[:, 2] == 1
    for g in range(2):
        p = np.where(said, 1 - wrong, wrong)[witness == g]
        said_g = said[witness == g]
        counted = [
            (p[~said_g].sum() + 0.5, p.sum() + 2.5),
            ((1 - p)[said_g].sum() + 0.5, (1 - p).sum() + 2.5),
        ]
        if kinds:
            assert alpha[g] == pytest.approx(counted[0][0] / counted[0][1], abs=1e-8)
            assert beta[g] == pytest.approx(counted[1][0] / counted[1][1], abs=1e-8)
        else:
            share = (wrong[witness == g].sum() + 0.5) / (len(p) + 2.5)
            assert alpha[g] == beta[g] == pytest.approx(share, abs=1e-8)
    if not must:
        kept = SideInformation.build(len(X), preferences=found.preferences)
        p = pair_probabilities(X, theta, kept, answers[:, :2], AUTO(kept.graph))
        np.testing.assert_allclose(np.where(said, 1 - p, p), found.wrong, atol=1e-10)


# ---------------------------------------------------------------------------- what is not told


@pytest.mark.parametrize("said", list(itertools.product([0, 1], repeat=3)))
def test_without_cycles_and_points_two_components_tell_no_rate(said):
    answers = np.column_stack([[[0, 1], [1, 2], [2, 3]], said])
    # The prior decides, and nothing moves it: its mode is 1/5.
    found = error_rates(np.zeros((4, 1)), BLIND, SideInformation.build(4), answers, AUTO, tol=1e-11)
    assert found.false_apart[0] == pytest.approx(0.2, abs=1e-9)


# ---------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("answers", "options", "says"),
    [
        ([[0, 1]], {}, r"\(1, 2\)"),
        (np.empty((0, 3)), {}, "no answer"),
        ([[0, 9, 1]], {}, r"answers\[0\] is \[0.0, 9"),
        ([[0, 1, 1], [0, 1, -1]], {}, r"answers\[1\] says -1"),
        ([[0, 1, 1]], {"prior": (1, 1)}, "above 1"),
        ([[0, 1, 1]], {"start": ANN}, r"rates of \['ann'\], but \[0\]"),
        ([[0, 1, 1]], {"witness": ["ann", "bob"]}, r"\(2,\) for 1 answers"),
    ],
)
def test_what_is_no_answer_is_refused(answers, options, says):
    with pytest.raises(ValueError, match=says):
        error_rates(np.zeros((3, 1)), BLIND, SideInformation.build(3), answers, AUTO, **options)
