"""The ways to give relations to Xing's metric, samples of pairs, and what is refused."""

import numpy as np
import pytest
from mmc_problems import BOTH, pairs_between, pairs_of, random_problem

from cgmm.datasets import load
from cgmm.metric_learning import MMC, objective
from cgmm.metric_learning.mmc_pairs import sample_far_pairs


@BOTH
def test_order_direction_and_repetition_of_pairs_do_not_matter(diagonal):
    X, must, cannot = random_problem(3)
    here = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    there = MMC(diagonal).fit(
        X,
        must_link=np.vstack([must[::-1, ::-1], must[:4], [[5, 5]]]),
        cannot_link=np.vstack([cannot[:5], cannot[::-1, ::-1]]),
    )
    np.testing.assert_array_equal(there.components_, here.components_)
    assert there.n_cannot_links_ == len(cannot)


@BOTH
def test_classes_say_the_same_as_all_their_pairs(diagonal):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 3)), rng.integers(-1, 3, size=25)
    by_class = MMC(diagonal, tol=1e-8).fit(X, y)
    relations = {"must_link": pairs_of(y, True), "cannot_link": pairs_of(y, False)}
    by_pair = MMC(diagonal, tol=1e-8).fit(X, **relations)
    assert by_class.n_cannot_links_ == by_pair.n_cannot_links_ == len(relations["cannot_link"])
    assert by_class.objective_ == pytest.approx(by_pair.objective_, rel=1e-8)
    assert objective(np.eye(3), X, y) == pytest.approx(objective(np.eye(3), X, **relations))
    # Pairs that the classes imply are the same pairs.
    both = MMC(diagonal, tol=1e-8).fit(X, y, **relations)
    np.testing.assert_array_equal(both.components_, by_class.components_)


@pytest.mark.parametrize(
    "rename",
    [
        lambda y: np.array(["none", "a", "b", "c"])[y + 1],
        lambda y: y * 10.0 - 7,
        lambda y: np.where(y == 0, -5, y),
        lambda y: y.astype(np.float64),
        lambda y: y + 10**15,
    ],
)
def test_classes_may_have_any_names(rename):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 3)), np.arange(25) % 3
    np.testing.assert_array_equal(MMC().fit(X, rename(y)).components_, MMC().fit(X, y).components_)


def test_minus_one_is_no_class_in_any_numbers():
    X, y = np.random.default_rng(0).normal(size=(25, 3)), np.arange(25) % 4 - 1
    rest = MMC().fit(X, np.where(y == -1, -1.0, y * 3.0 - 9)).components_
    np.testing.assert_allclose(rest, MMC().fit(X[y >= 0], y[y >= 0]).components_, atol=1e-5)


def test_classes_and_pairs_together():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 3))
    y = np.where(np.arange(25) < 15, np.arange(25) % 3, -1)
    extra_must, extra_cannot = [[15, 16], [0, 17], [20, 20]], [[18, 0], [19, 21], [21, 19]]
    mixed = MMC(tol=1e-8).fit(X, y, must_link=extra_must, cannot_link=extra_cannot)
    listed = MMC(tol=1e-8).fit(
        X,
        must_link=pairs_of(y, True) + extra_must[:2],
        cannot_link=pairs_of(y, False) + extra_cannot[:2],
    )
    assert mixed.n_cannot_links_ == 75 + 2
    assert mixed.objective_ == pytest.approx(listed.objective_, rel=1e-8)


def test_must_links_are_not_closed_unless_given_as_chunklets():
    X = np.random.default_rng(0).normal(size=(8, 1))
    chain, cannot = [[0, 1], [1, 2]], [[0, 5]]
    expected = sum(((X[i] - X[j]) ** 2).item() for i, j in chain)
    A = MMC().fit(X, must_link=chain, cannot_link=cannot).get_mahalanobis_matrix()
    assert A.item() == pytest.approx(1 / expected, rel=1e-12)
    chunklets = np.array([0, 0, 0, -1, -1, -1, -1, -1])
    A = MMC().fit(X, chunklets, cannot_link=cannot).get_mahalanobis_matrix()
    expected += ((X[0] - X[2]) ** 2).item()
    assert A.item() == pytest.approx(1 / expected, rel=1e-12)


def test_the_rest_is_every_pair_that_no_chain_ties():
    X = np.random.default_rng(0).normal(size=(12, 2))
    must = [[0, 1], [1, 2], [5, 6], [8, 9]]
    chunklet = np.array([0, 0, 0, 3, 4, 5, 5, 7, 8, 8, 10, 11])
    cannot = pairs_of(chunklet, False)
    rest = MMC(tol=1e-8).fit(X, must_link=must, cannot_link="rest")
    listed = MMC(tol=1e-8).fit(X, must_link=must, cannot_link=cannot)
    assert rest.n_cannot_links_ == len(cannot) == 66 - 3 - 1 - 1
    assert rest.objective_ == pytest.approx(listed.objective_, rel=1e-8)
    # With classes as well: the class ties its members, the unlabelled points are apart.
    joined = np.where(np.isin(chunklet, [3, 4]), 5, chunklet)
    for name in (7, 0):
        y = np.array([-1, -1, -1, name, name, name, -1, -1, -1, -1, -1, -1])
        both = MMC().fit(X, y, must_link=must, cannot_link="rest")
        assert both.n_cannot_links_ == len(pairs_of(joined, False))


# ------------------------------------------------------------------ samples of pairs


def test_drawn_cannot_links_are_distinct_pairs_of_two_classes_all_equally_likely():
    y = np.array([0, 0, 1, -1, 2, 1, 2, 2])
    X = np.arange(8.0)[:, None] ** 2
    far = pairs_between([], y)
    allowed = set(pairs_of(y, False))
    rng = np.random.RandomState(0)
    counts = dict.fromkeys(allowed, 0)
    for _ in range(2000):
        pairs = sample_far_pairs(far, 4, rng).listed
        drawn = [tuple(sorted(pair)) for pair in pairs.tolist()]
        assert len(set(drawn)) == 4
        for pair in drawn:
            counts[pair] += 1
    # Each of the 16 pairs is drawn with probability 1/4; five standard deviations are 97.
    np.testing.assert_allclose(list(counts.values()), 500, atol=97)
    assert MMC(max_cannot_links=4, random_state=0).fit(X, y).n_cannot_links_ == 4


def test_a_large_enough_sample_is_everything():
    X, y, *_ = load("iris")
    whole = MMC().fit(X, y)
    for limit in (7500, 10**9):
        sample = MMC(max_cannot_links=limit).fit(X, y)
        np.testing.assert_array_equal(sample.components_, whole.components_)
    fewer = MMC(max_cannot_links=7499, random_state=0).fit(X, y)
    assert fewer.n_cannot_links_ == 7499
    assert fewer.objective_ == pytest.approx(whole.objective_, rel=1e-3)


def test_listed_cannot_links_stay_beside_a_sample():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where(np.arange(30) < 24, np.arange(30) % 2, -1)
    limited = MMC(max_cannot_links=10, random_state=0)
    assert limited.fit(X, y, cannot_link=[[25, 26], [0, 29]]).n_cannot_links_ == 12


def test_many_points_by_a_sample_of_their_pairs():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=20_000)
    X = rng.normal(size=(20_000, 4)) + np.eye(4)[y]
    metric = MMC(max_cannot_links=50_000, random_state=0).fit(X, y)
    # 150 million pairs: a sample of them sees the same best metric, to the noise of the sample.
    again = MMC(max_cannot_links=50_000, random_state=1).fit(X, y)
    assert metric.n_cannot_links_ == 50_000
    assert again.objective_ == pytest.approx(metric.objective_, rel=0.01)


# ------------------------------------------------------------------ refusals


def test_unknown_word_for_cannot_links():
    with pytest.raises(ValueError, match="cannot_link is 'all'"):
        MMC().fit(np.eye(4), must_link=[[0, 1]], cannot_link="all")


def test_contradictions_show_the_chain():
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match="0 - 1 - 2"):
        MMC().fit(X, must_link=[[0, 1], [1, 2]], cannot_link=[[0, 2]])
    with pytest.raises(ValueError, match="0 - 5 - 1"):
        MMC().fit(X, [0, 1, -1, -1, -1, -1], must_link=[[0, 5], [5, 1]], cannot_link="rest")
    with pytest.raises(ValueError, match="must both have class 3"):
        MMC().fit(X, [3, 3, 1, 1, 1, 1], cannot_link=[[0, 1]])
    with pytest.raises(ValueError, match="ties point 2 to itself"):
        MMC().fit(X, must_link=[[0, 1]], cannot_link=[[2, 2]])
    with pytest.raises(ValueError, match=r"must_link\[0\] is \[0, 6\]"):
        MMC().fit(X, must_link=[[0, 6]], cannot_link=[[0, 1]])


def test_a_class_that_is_not_a_number_is_unknown():
    X = np.random.default_rng(0).normal(size=(6, 1))
    known = [0, 1, 0, 1, -1, 0]
    nan = MMC().fit(X, [0, 1, 0, 1, np.nan, 0])
    assert np.array_equal(nan.components_, MMC().fit(X, known).components_)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no must-link"),
        ({"cannot_link": [[0, 1]]}, "no must-link"),
        ({"must_link": [[1, 1]], "cannot_link": [[0, 1]]}, "no must-link"),
        ({"y": [0, 1, 2, 3, -1, -1]}, "no must-link"),
        ({"must_link": [[0, 1]]}, "no cannot-link"),
        ({"must_link": [[0, 1]], "cannot_link": np.empty((0, 2))}, "no cannot-link"),
        ({"y": [2, 2, 2, 2, 2, -1]}, "no cannot-link"),
        ({"y": [0, 1, 0]}, "inconsistent numbers of samples"),
        ({"must_link": [[0, 1, 2]], "cannot_link": [[0, 1]]}, "must be \\(P, 2\\)"),
    ],
)
def test_missing_or_malformed_relations(arguments, message):
    X = np.random.default_rng(0).normal(size=(6, 1))
    with pytest.raises(ValueError, match=message):
        MMC().fit(X, **arguments)
    with pytest.raises(ValueError, match=message):
        objective([[1.0]], X, **arguments)
