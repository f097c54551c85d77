"""Starts that know something: labels name the components, chunklets count by their points."""

import numpy as np
import pytest

from cgmm.mixture import from_chunklets, from_labels, honour, seeds
from cgmm.network import SideInformation


def one_hot(z, n_components):
    return np.eye(n_components)[z]


def test_seeds_are_drawn_by_mass_times_squared_distance():
    """From 0, with masses (1, 9, 1) at 0, 1, 3: both candidates are as likely, 9 · 1² = 1 · 3².

    Of two trials the one that leaves less is kept: 4 if the seed is 1, 9 · 1 if it is 3. So 3 is
    the seed when both trials are 3, in a quarter of all runs.
    """
    X, mass, n_runs = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 9.0, 1.0]), 4000
    rng = np.random.RandomState(0)
    last = [seeds(X, 2, rng, first=X[:1], mass=mass)[1, 0] for _ in range(n_runs)]
    assert set(last) == {1.0, 3.0}
    # Five standard errors of a binomial share.
    assert np.mean(np.equal(last, 3)) == pytest.approx(0.25, abs=5 * (3 / 16 / n_runs) ** 0.5)


@pytest.mark.parametrize("known", [(1, 2), (2, 0), (0, 1)])
def test_labels_name_the_components_whatever_classes_they_show(known):
    """Two classes are seen; the third component starts in the group that nobody has labelled."""
    groups = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 300.0]])
    rng = np.random.default_rng(0)
    z = np.repeat(range(3), 8)
    X = groups[z] + rng.normal(size=(24, 2))
    labels = np.full(24, -1)
    for k in known:
        labels[[8 * k, 8 * k + 3]] = k
    side = SideInformation.build(24, labels=labels)
    r = from_labels(X, 3, np.random.RandomState(0), side)
    np.testing.assert_array_equal(r, one_hot(z, 3))


def test_labelled_classes_start_at_the_means_of_their_points():
    X = np.array([[0.0], [10.0], [6.0], [2.0], [20.0], [8.1], [7.9]])
    side = SideInformation.build(7, labels=[0, 0, -1, 1, 1, -1, -1])
    r = from_labels(X, 2, np.random.RandomState(0), side)
    # Means 5 and 11: the border is 8.
    np.testing.assert_array_equal(r.argmax(axis=1), (X[:, 0] > 8).astype(int))


@pytest.mark.parametrize("seed", range(5))
def test_chunklets_start_at_their_means_and_single_points_nowhere(seed):
    """Means 5 and 11, and an outlier that belongs to no chunklet."""
    X = np.array([[0.0], [10.0], [2.0], [20.0], [1000.0]])
    side = SideInformation.build(5, must_link=[[0, 1], [2, 3]])
    r = from_chunklets(X, 2, np.random.RandomState(seed), side)
    z = r.argmax(axis=1)
    assert len({z[0], z[1]}) == 2
    assert z.tolist() == [z[0], z[1], z[0], z[1], z[1]]


@pytest.mark.parametrize("seed", range(5))
def test_with_too_few_chunklets_single_points_are_seeds_as_well(seed):
    X = np.array([[0.0], [1.0], [50.0], [1000.0]])
    side = SideInformation.build(4, must_link=[[0, 1]])
    z = from_chunklets(X, 3, np.random.RandomState(seed), side).argmax(axis=1)
    assert len(set(z)) == 3
    assert z[0] == z[1]


def test_the_first_chunklet_is_drawn_by_its_number_of_points():
    """Six points in one and two in the other: component 0 is whichever comes first."""
    X = np.array([[0.0]] * 6 + [[1.0]] * 2)
    side = SideInformation.build(8, must_link=[[0, j] for j in range(1, 6)] + [[6, 7]])
    n_runs, rng = 2000, np.random.RandomState(0)
    began = [from_chunklets(X, 2, rng, side)[0, 0] for _ in range(n_runs)]
    assert np.mean(began) == pytest.approx(6 / 8, abs=5 * (3 / 16 / n_runs) ** 0.5)


def test_points_of_a_chunklet_start_alike_at_the_mean_of_their_starts():
    r = np.array([[1.0, 0.0], [0.4, 0.6], [0.1, 0.9], [0.3, 0.7]])
    side = SideInformation.build(4, must_link=[[0, 1], [1, 3]])
    expected = np.array([[1.7, 1.3], [1.7, 1.3], [0.3, 2.7], [1.7, 1.3]]) / 3
    np.testing.assert_allclose(honour(r, side), expected, rtol=1e-15)


def test_components_take_the_names_of_the_classes_that_most_points_show():
    """A chunklet of five outweighs two points and a third one that say otherwise."""
    start = one_hot([1] * 5 + [0, 0, 1], 2)
    must_link = [[0, j] for j in range(1, 5)]
    side = SideInformation.build(8, labels=[0] * 7 + [1], must_link=must_link)
    np.testing.assert_array_equal(honour(start, side).argmax(axis=1), [0] * 7 + [1])
    free = SideInformation.build(9, labels=[0] * 7 + [1, -1], must_link=must_link)
    # The unlabelled point, started with the five, is renamed with them.
    assert honour(np.vstack([start, [[0.0, 1.0]]]), free)[8].tolist() == [1.0, 0.0]


def test_a_start_that_its_evidence_excludes_begins_alike_in_what_is_left():
    allowed = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    start = one_hot([0, 1, 0, 2], 3)
    side = SideInformation.build(4, labels=allowed)
    expected = [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]]
    np.testing.assert_array_equal(honour(start, side), expected)


def test_what_evidence_leaves_of_a_start_is_normalised():
    allowed = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], dtype=bool)
    start = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.3, 0.5]])
    side = SideInformation.build(4, labels=allowed)
    np.testing.assert_allclose(honour(start, side)[3], [0.4, 0.6, 0], rtol=1e-15)
