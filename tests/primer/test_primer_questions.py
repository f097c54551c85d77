"""Chapter 15 by hand: against tables of truths and answers, all batches, and the package."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primer_problems import FEW, SEEDS, enumerate_all, network
from scipy.special import xlogy

from cgmm import decide, primer


def mutual_information(joint):
    """Of a table p(row, column), by the definition, in nats."""
    alone = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return (xlogy(joint, joint) - xlogy(joint, alone)).sum()


@FEW
@given(seed=SEEDS, alpha=st.floats(0, 0.9), beta=st.floats(0, 0.9))
def test_information_is_that_of_the_answer_and_every_assignment(seed, alpha, beta):
    problem = network(np.random.default_rng(seed), 4, 2)
    every = enumerate_all(*problem)
    together = every.z[:, 0] == every.z[:, 1]
    says = np.where(together, 1 - alpha, beta)
    expected = mutual_information(np.column_stack([every.p * says, every.p * (1 - says)]))
    p = every.mean(together)
    assert primer.answer_information(p, alpha, beta) == pytest.approx(expected, abs=1e-12)
    found = decide.answer_information(p, false_apart=alpha, false_together=beta)
    assert found == pytest.approx(expected, abs=1e-12)


@FEW
@given(p=st.floats(1e-9, 1) | st.just(0.0))
def test_the_entropy_of_a_coin_is_what_a_right_answer_tells(p):
    joint = np.diag([p, 1 - p])
    assert primer.coin_entropy(p) == pytest.approx(mutual_information(joint), abs=1e-12)
    assert decide.answer_information(p) == pytest.approx(primer.coin_entropy(p), abs=1e-12)


@FEW
@given(seed=SEEDS, n=st.integers(1, 4))
def test_a_batch_takes_the_best_that_touch_no_group_twice(seed, n):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(6), 2)))
    values, group = rng.random(len(pairs)) + 0.01, rng.integers(4, size=6)
    chosen = primer.choose_pairs(values, pairs, group, n)
    np.testing.assert_array_equal(chosen, decide.choose_pairs(pairs, values, n, group))
    touched = [frozenset(group[pairs[e]]) for e in chosen]
    assert all(not a & b for a, b in combinations(touched, 2))
    # What was left out is worth less than all chosen, or touches one of them.
    for e in set(range(len(pairs))) - set(chosen):
        blocked = [f for f in chosen if frozenset(group[pairs[e]]) & frozenset(group[pairs[f]])]
        assert any(values[f] > values[e] for f in blocked) or (
            len(chosen) == n and values[e] < values[chosen].min()
        )


@FEW
@given(seed=SEEDS)
def test_the_farthest_point_is_the_one_of_which_the_package_asks_first(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 2))
    asked = []

    def ask(i, j):
        asked.append((i, j))
        return False

    known = decide.farthest_first(X, ask, 1, 3, random_state=seed).neighbourhoods
    first = asked[0][1]
    far = primer.farthest(X, np.array([first]))
    assert asked[0][0] == far
    distances = [np.linalg.norm(X[i] - X[first]) for i in range(8)]
    assert far == np.argmax(distances)
    two = np.flatnonzero(known >= 0)
    nearest = [min(np.linalg.norm(X[i] - X[j]) for j in two) for i in range(8)]
    assert primer.farthest(X, two) == np.argmax(nearest)
