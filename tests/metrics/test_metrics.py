"""Compare scores of labellings with all matchings, all pairs, and scikit-learn."""

from itertools import permutations
from operator import call

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from sklearn.metrics.cluster import pair_confusion_matrix

from cgmm import metrics


@st.composite
def labellings(draw, max_size=12, max_labels=4):
    """Draw two random labellings of the same points; labels are integers of at least -1."""
    n = draw(st.integers(2, max_size))
    label = st.integers(-1, max_labels - 2)
    return tuple(np.array(draw(st.lists(label, min_size=n, max_size=n))) for _ in range(2))


def best_accuracy(y_true, y_pred):
    """Return the highest accuracy over all one-to-one maps from clusters to classes or None."""
    clusters, classes = sorted(set(y_pred.tolist())), sorted(set(y_true.tolist()))
    names = classes + [None] * max(0, len(clusters) - len(classes))
    maps = [dict(zip(clusters, p, strict=True)) for p in permutations(names, len(clusters))]
    return max(np.mean([name_of[k] for k in y_pred.tolist()] == y_true) for name_of in maps)


# ---------------------------------------------------------------------------- matched labels


@given(labellings(max_size=9))
def test_matched_accuracy_is_the_maximum_over_matchings_and_match_labels_attains_it(labels):
    y_true, y_pred = labels
    names = metrics.match_labels(y_true, y_pred)
    assert list(names) == sorted(set(y_pred.tolist()))
    assert len(set(names.values())) == len(names), "two clusters share a name"
    renamed = np.array([names[k] for k in y_pred.tolist()])
    assert np.mean(renamed == y_true) == metrics.matched_accuracy(y_true, y_pred)
    assert np.mean(renamed == y_true) == pytest.approx(best_accuracy(*labels), abs=1e-14)
    unmatched = set(names.values()) - set(y_true.tolist())
    assert all(name > y_true.max() for name in unmatched)


# ---------------------------------------------------------------------------- scores of pairs


@given(labellings(max_size=40, max_labels=8))
def test_scores_of_pairs_follow_from_the_pair_confusion_matrix_of_scikit_learn(labels):
    (apart, joined), (split, together) = pair_confusion_matrix(*labels) // 2
    if together + split and together + joined:
        p, r = together / (together + joined), together / (together + split)
        f_half = 2 * p * r / (p + r) if together else 0.0
        assert metrics.pairwise_scores(*labels) == pytest.approx((p, r, f_half), abs=1e-14)
    if together + split and apart + joined:
        expected = (together / (together + split) + apart / (apart + joined)) / 2
        assert metrics.balanced_rand_index(*labels) == pytest.approx(expected, abs=1e-14)


def test_scores_of_pairs_need_little_memory_for_many_clusters():
    """A table of half a million clusters against each other would not fit into memory."""
    y = np.arange(10**6) // 2
    assert metrics.balanced_rand_index(y, y[::-1]) == 1.0


# ---------------------------------------------------------------------------- refusals


SCORES = [metrics.pairwise_scores, metrics.balanced_rand_index]
SCORES += [metrics.matched_accuracy, metrics.match_labels]
BAD_LABELS = [
    ([0, 1, 1], [0, 1], r"y_pred has shape \(2,\); it must be \(3,\), a label a point"),
    ([0.0, 0.5], [0, 1], r"y_true\[1\] is 0.5; it must be an integer\.$"),
]
test_scores_refuse_invalid_labels = refused(
    lambda score, *labels: score(*labels),
    *((score, *labels) for score in SCORES for labels in BAD_LABELS),
)


# ---------------------------------------------------------------------------- relations, neighbours


@given(labellings(), st.integers(0, 10**6), st.sampled_from([0, 7]))
def test_broken_relations_equal_counts_pair_by_pair(labels, seed, n):
    y_pred = labels[1]
    pairs = np.random.default_rng(seed).integers(len(y_pred), size=(2, n, 2))
    broken = metrics.broken_relations(y_pred, *pairs)
    assert broken.must_link == sum(y_pred[i] != y_pred[j] for i, j in pairs[0])
    assert broken.cannot_link == sum(y_pred[i] == y_pred[j] for i, j in pairs[1])


test_undefined_scores_and_invalid_arguments_are_refused = refused(
    call,
    (lambda: metrics.pairwise_scores([0, 1], [0, 0]), "recall is undefined"),
    (lambda: metrics.pairwise_scores([0, 0], [0, 1]), "precision is undefined"),
    (lambda: metrics.balanced_rand_index([0, 1], [0, 0]), "nothing to keep together"),
    (lambda: metrics.balanced_rand_index([0, 0], [0, 1]), "nothing to keep apart"),
    (lambda: metrics.broken_relations([0, 1], [[0, 1, 2]], []), r"must_link has .*\(1, 3\)"),
    (lambda: metrics.broken_relations([0, 1], [], [[-1, 0]]), r"cannot_link\[0\] is \[-1, 0\]"),
    (lambda: metrics.cumulative_neighbour_purity([[0.0]] * 2, [0, 1, 1], 1), r"shape \(2, 1\)"),
    (lambda: metrics.cumulative_neighbour_purity([[0], [np.nan]], [0, 1], 1), "finite numbers"),
    (lambda: metrics.cumulative_neighbour_purity([[0], [1]], [0, 1], 2), "n_neighbours is 2"),
)


@given(st.integers(0, 10**6), st.sampled_from([1.0, 2.0]))
def test_neighbour_purity_equals_counts_in_a_matrix_of_all_distances(seed, p):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(15, 3)), rng.integers(3, size=15)
    distances = np.linalg.norm(X[:, None] - X[None], ord=p, axis=2)
    np.fill_diagonal(distances, np.inf)
    order = distances.argsort(axis=1)
    expected = [(y[order[:, :k]] == y[:, None]).mean() for k in range(1, 15)]
    curve = metrics.cumulative_neighbour_purity(X, y, 14, p=p)
    np.testing.assert_allclose(curve, expected, atol=1e-12)


def test_neighbour_purity_never_counts_a_point_as_its_own_neighbour():
    """Coinciding points are at distance zero, like the point itself."""
    X, y = np.zeros((20, 2)), np.arange(20)
    np.testing.assert_array_equal(metrics.cumulative_neighbour_purity(X, y, 19), 0.0)
    y = np.zeros(20, dtype=int)
    np.testing.assert_array_equal(metrics.cumulative_neighbour_purity(X, y, 3), 1.0)
