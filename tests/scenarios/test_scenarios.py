"""Test that simulated side information agrees with the classes and has the requested size."""

import itertools
from operator import call

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy.stats import binom

from cgmm import scenarios
from cgmm.scenarios import Relations

CLASSES = st.lists(st.integers(-1, 3), min_size=2, max_size=40).map(np.array)
SEEDS = st.integers(0, 10**6)


def count_components(n_points, pairs):
    """Return the number of connected components of points joined by pairs."""
    alone = zip(range(n_points), range(n_points), strict=True)
    return nx.number_connected_components(nx.Graph([*alone, *pairs.tolist()]))


def assert_relations_agree(y, must_link, cannot_link):
    """Check that relations have the right form, join different points, and agree with classes y."""
    for pairs in (must_link, cannot_link):
        assert pairs.shape == (len(pairs), 2)
        assert pairs.dtype == np.int64
        assert (pairs[:, 0] != pairs[:, 1]).all()
        assert pairs.size == 0 or (pairs.min() >= 0 and pairs.max() < len(y))
    assert (y[must_link[:, 0]] == y[must_link[:, 1]]).all()
    assert (y[cannot_link[:, 0]] != y[cannot_link[:, 1]]).all()


# ---------------------------------------------------------------------------- teachers, chunklets


@given(CLASSES, st.integers(1, 4), st.data(), SEEDS)
def test_teachers_relate_all_pairs_or_as_few_as_imply_them(y, n_teachers, data, seed):
    n_points = data.draw(st.integers(2, len(y)))
    relations = scenarios.teachers(y, n_teachers, n_points, random_state=seed)
    assert_relations_agree(y, *relations)
    assert sum(map(len, relations)) == n_teachers * n_points * (n_points - 1) // 2
    full = scenarios.teachers(y, 1, n_points, random_state=seed)
    fewest = scenarios.teachers(y, 1, n_points, minimal=True, random_state=seed)
    assert_relations_agree(y, *fewest)
    n_classes = len(np.unique(y[np.concatenate([*full])]))
    assert len(fewest.must_link) == n_points - n_classes
    assert len(fewest.cannot_link) == n_classes * (n_classes - 1) // 2
    assert count_components(len(y), fewest.must_link) == count_components(len(y), full.must_link)
    class_pairs = {frozenset(y[pair].tolist()) for pair in fewest.cannot_link}
    assert class_pairs == {frozenset(y[pair].tolist()) for pair in full.cannot_link}


def test_teachers_draws_points_and_pairs_until_draws_pairs_uniformly():
    relations = scenarios.teachers(np.zeros(10, dtype=int), 5000, 2, random_state=0)
    counts = np.bincount(relations.must_link.ravel(), minlength=10)
    # Each count is binomial(5000, 0.2) with standard deviation 28.
    assert np.abs(counts - 1000).max() < 6 * 28
    # Classes of 2, 3 and 4 points have 1 + 3 + 6 = 10 pairs.
    y = np.repeat([5, 6, 7], [2, 3, 4])
    rng = np.random.default_rng(0)
    first = [tuple(scenarios.pairs_until(y, 8, random_state=rng)[0]) for _ in range(1000)]
    counts = [first.count(p) for p in itertools.combinations(range(9), 2) if y[p[0]] == y[p[1]]]
    # Each count is binomial(1000, 0.1) with standard deviation 9.5.
    assert len(counts) == 10
    assert np.abs(np.array(counts) - 100).max() < 6 * 9.5


def test_expected_chunklet_size_equals_that_of_the_paper_and_of_a_binomial():
    """[barhillel2005, App. D] gives about 2.9 at r = 2, and 2 in the limit of few points."""
    r = np.array([0.5, 1.0, 2.0, 4.0])
    printed = r * (1 - np.exp(-r)) / (1 - (r + 1) * np.exp(-r))
    ours = [scenarios.expected_chunklet_size(x) for x in r]
    np.testing.assert_allclose(ours, printed, rtol=1e-12)
    assert round(ours[2], 1) == 2.9
    assert scenarios.expected_chunklet_size(1e-9) == pytest.approx(2.0, rel=1e-9)
    # With a given number of classes the size is binomial, given that it is at least two.
    p = binom(6, 1 / 3).pmf(np.arange(7))
    expected = np.arange(2, 7) @ p[2:] / p[2:].sum()
    assert scenarios.expected_chunklet_size(2, 3) == pytest.approx(expected, rel=1e-12)


@given(CLASSES, st.integers(2, 5), st.data(), SEEDS)
def test_equal_chunklets_have_one_class_and_one_size_each(y, size, data, seed):
    n_points = data.draw(st.integers(0, len(y)))
    chunklets = scenarios.equal_chunklets(y, size, n_points, random_state=seed)
    numbers, counts = np.unique(chunklets[chunklets >= 0], return_counts=True)
    assert numbers.tolist() == list(range(len(numbers)))
    assert (counts == size).all()
    assert all(len(np.unique(y[chunklets == number])) == 1 for number in numbers)
    unused = n_points - counts.sum()
    assert 0 <= unused <= (size - 1) * len(np.unique(y))
    must_link = scenarios.links_of_chunklets(chunklets)
    assert_relations_agree(y, must_link, np.empty((0, 2), dtype=np.int64))
    assert len(must_link) == len(numbers) * (size - 1)
    assert count_components(len(y), must_link) == len(y) - len(must_link)


# ---------------------------------------------------------------------------- pairs


@given(CLASSES, st.data(), SEEDS)
def test_random_pairs_do_not_overlap(y, data, seed):
    n_pairs = data.draw(st.integers(0, len(y) // 2))
    relations = scenarios.random_pairs(y, n_pairs, random_state=seed)
    assert_relations_agree(y, *relations)
    pairs = np.concatenate(relations)
    assert len(pairs) == n_pairs
    assert len(np.unique(pairs)) == 2 * n_pairs


@given(CLASSES, st.data(), SEEDS)
def test_pairs_until_stops_at_the_first_pair_that_suffices(y, data, seed):
    wanted = data.draw(st.integers(len(np.unique(y)), len(y)))
    must_link = scenarios.pairs_until(y, wanted, random_state=seed)
    assert_relations_agree(y, must_link, np.empty((0, 2), dtype=np.int64))
    assert len(np.unique(np.sort(must_link, axis=1), axis=0)) == len(must_link)
    assert count_components(len(y), must_link) == wanted
    if len(must_link):
        assert count_components(len(y), must_link[:-1]) == wanted + 1


# ---------------------------------------------------------------------------- labels, class sets


@given(CLASSES.map(abs), st.data(), SEEDS)
def test_partial_labels_are_true_and_of_the_requested_number(y, data, seed):
    n_labelled = data.draw(st.integers(0, len(y)))
    labels = scenarios.partial_labels(y, n_labelled, random_state=seed)
    assert (labels >= 0).sum() == n_labelled
    assert (labels[labels >= 0] == y[labels >= 0]).all()


def test_allowed_classes_contain_the_true_class_and_all_classes_if_unknown():
    class_sets = [[0, 1, 2], [3, 4], [5]]
    y = np.random.default_rng(0).integers(6, size=60)
    set_of = np.array([0, 0, 0, 1, 1, 2])[y]
    set_of[::7] = -1
    mask = scenarios.allowed_classes(set_of, class_sets, 6)
    assert mask.dtype == bool
    assert mask[np.arange(60), y].all()
    assert mask[::7].all()


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 5), SEEDS)
def test_class_set_stars_give_each_centre_its_own_partners(n_centres, n_partners, n_spare, seed):
    set_of = np.repeat([3, 0, 1, -1], [n_centres, n_centres * n_partners, n_spare, 2])
    set_of = np.random.default_rng(seed).permutation(set_of)
    stars = scenarios.class_set_stars(set_of, 3, n_partners, random_state=seed)
    assert (set_of[stars[:, 0]] == 3).all()
    assert np.isin(set_of[stars[:, 1]], [0, 1]).all()
    assert len(np.unique(stars[:, 1])) == len(stars) == n_centres * n_partners
    assert count_components(len(set_of), stars) == len(set_of) - len(stars)


# ---------------------------------------------------------------------------- grids


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_grid_neighbours_are_the_cells_at_distance_one(shape):
    pairs = scenarios.grid_neighbours(shape)
    cells = np.array(list(itertools.product(*map(range, shape))))
    distances = np.abs(cells[:, None] - cells[None]).sum(axis=2)
    assert sorted(pairs.tolist()) == np.argwhere(np.triu(distances == 1)).tolist()


# ---------------------------------------------------------------------------- noise and certainty


@given(CLASSES, st.data(), SEEDS)
def test_flip_keeps_the_pairs_and_changes_nothing_at_rate_zero(y, data, seed):
    true = scenarios.random_pairs(y, len(y) // 2, random_state=seed)
    q = data.draw(st.sampled_from([0.0, 0.15, 0.5]))
    noisy = scenarios.flip(true, q, random_state=seed)
    before, after = (
        np.unique(np.sort(np.concatenate(relations), axis=1), axis=0) for relations in (true, noisy)
    )
    np.testing.assert_array_equal(before, after)
    if q == 0:
        assert_relations_agree(y, *noisy)


def test_estimated_flip_rate_is_near_the_true_one():
    """[lu2007, sect. 2.4.2] estimates the rate of [lu2007, sect. 5.1.4].

    The standard error is √(q (1 - q) / P).
    """
    y = np.random.default_rng(0).integers(3, size=40_000)
    true = scenarios.random_pairs(y, 20_000, random_state=1)
    assert scenarios.estimate_flip_rate(y, *true) == 0.0
    for q in (0.15, 0.3):
        noisy = scenarios.flip(true, q, random_state=2)
        error = scenarios.estimate_flip_rate(y, *noisy) - q
        assert abs(error) < 5 * np.sqrt(q * (1 - q) / 20_000)


@given(st.floats(1e-9, 1 - 1e-9))
def test_weight_is_the_log_odds_of_the_certainty(gamma):
    weight = scenarios.weight_from_certainty(gamma)
    assert weight == pytest.approx(np.log(gamma / (1 - gamma)), rel=1e-6, abs=1e-12)
    assert scenarios.certainty_from_weight(weight) == pytest.approx(gamma, rel=1e-9)
    # An isolated pair of two equally likely states is in the same state with probability γ.
    assert np.exp(weight) / (np.exp(weight) + 1) == pytest.approx(gamma, rel=1e-9)


ANSWERS = st.lists(st.tuples(st.integers(0, 9), st.integers(10, 19), st.integers(0, 1)))


@given(ANSWERS, st.data())
def test_answers_from_preferences_inverts_preferences_from_answers(answers, data):
    n = len(answers)
    gamma = data.draw(st.lists(st.floats(0.501, 1.0), min_size=n, max_size=n))
    rows = scenarios.preferences_from_answers(answers, gamma)
    back, certainty = scenarios.answers_from_preferences(rows)
    assert back.tolist() == [list(row) for row in answers]
    np.testing.assert_allclose(certainty, gamma, rtol=1e-12)
    # With equal prior odds, γ is the posterior probability that the answer is right.
    same = np.array([says_same for *_, says_same in answers], dtype=bool)
    expected = np.where(same, gamma, 1 - np.array(gamma))
    np.testing.assert_allclose(scenarios.certainty_from_weight(rows[:, 2]), expected, atol=1e-12)


# ---------------------------------------------------------------------------- refusals

Y = [0, 0, 1, 1]


test_scenarios_refuse_invalid_arguments = refused(
    call,
    (lambda: scenarios.teachers(Y, 1, 5), "n_points is 5; it must be an integer from 1 to 4"),
    (lambda: scenarios.expected_chunklet_size(0.3, 5), "ratio \\* n_classes is 1.5"),
    (lambda: scenarios.equal_chunklets(Y, 1, 2), "size is 1"),
    (lambda: scenarios.random_pairs(Y, 3), "from 0 to 2, since no two pairs share"),
    (lambda: scenarios.pairs_until(Y, 1), "n_components is 1"),
    (lambda: scenarios.partial_labels([-1, 0], 1), r"y\[0\] is -1"),
    (lambda: scenarios.allowed_classes([0], [[2]], 2), r"class set 0 is \[2\]"),
    (lambda: scenarios.allowed_classes([1], [[0]], 2), r"set_of\[0\] is 1; the class sets are"),
    (lambda: scenarios.class_set_stars(Y, 0, 2), "4 partners are needed"),
    (lambda: scenarios.grid_neighbours((3, 0)), r"shape is \(3, 0\)"),
    (lambda: scenarios.flip(Relations([[0, 1]], []), 0.6), "q is 0.6"),
    (lambda: scenarios.weight_from_certainty([0.5, np.nan]), "a certainty of nan"),
    (lambda: scenarios.preferences([[0, 1]], certainty=[0.6, 0.7]), "certainty has shape"),
    (lambda: scenarios.pairs_from_answers([[0, 1, 2]]), r"answers\[0\] says 2"),
    (lambda: scenarios.estimate_flip_rate(Y), "there is no relation"),
)
