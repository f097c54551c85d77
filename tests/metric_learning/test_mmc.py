"""Test MMC, Xing's metric: its objective, relations, units, and refusals.

The tests compute the objective as the papers state it, in the coordinates of the data, without the
whitening and the factorisation that the package uses.
"""

from functools import partial

import numpy as np
import pytest
from metric_problems import BOTH_FORMS, IRIS, draw_problem, list_pairs, sum_distances

from cgmm.metric_learning import MMC, objective

# ------------------------------------------------------------------ closed forms


@BOTH_FORMS
@pytest.mark.parametrize("seed", range(2))
def test_mmc_reports_the_objective_of_the_papers_with_must_links_at_their_bound(seed, diagonal):
    X, relations = draw_problem(seed)
    X = X * [1.0, 100.0, 0.01]
    metric = MMC(diagonal).fit(X, **relations)
    L, A = metric.components_, metric.get_mahalanobis_matrix()
    S, D = sum_distances(A, X, **relations)
    # Maximising D at S = 1 and, as in [barhillel2005, eq. 8], minimising S at D ≥ 1 give the same
    # metric up to a scale. Both sums have a dozen terms, so only rounding separates the values.
    assert pytest.approx(1, rel=1e-12) == S
    assert [metric.objective_, objective(L, X, **relations), objective(7 * L, X, **relations)] == (
        pytest.approx([D, D, D], rel=1e-12)
    )
    # In units of the scatter of the must-links, the factor is symmetric and positive.
    root = L * np.sqrt(sum((X[i] - X[j]) ** 2 for i, j in relations["must_link"]))
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    assert np.linalg.eigvalsh(root)[0] > -1e-12
    assert not diagonal or np.array_equal(A, np.diag(np.diag(A)))
    assert metric.n_cannot_links_ == len(relations["cannot_link"])


# ------------------------------------------------------------------ another objective


def test_half_the_diagonal_metric_minimises_the_objective_of_xing():
    X, relations = draw_problem(0, n_dims=4)
    s = sum((X[i] - X[j]) ** 2 for i, j in relations["must_link"])
    far = np.array([(X[i] - X[j]) ** 2 for i, j in relations["cannot_link"]])
    a = np.diag(MMC(diagonal=True, tol=1e-10).fit(X, **relations).get_mahalanobis_matrix()) / 2
    # [Xing et al. 2003, the diagonal case]: g(a) = Σ_S ‖·‖²_A - log Σ_D ‖·‖_A is convex. For a ≥ 0
    # its minimum has no negative slope, and slope zero wherever a is positive.
    d = np.sqrt(far @ a)
    slope = 1 - 0.5 * (1 / d) @ far / d.sum() / s
    assert (a > 1e-3 * a.max()).sum() > 1
    assert (slope > -1e-4).all()
    np.testing.assert_allclose(s * a * slope, 0, atol=1e-4)


# ------------------------------------------------------------------ relations


CLASSES = [0, 0, 1, 1, -1, -1, -1, -1]
# Each case has relations as given, and the must-links and cannot-links that they imply.
GIVEN = {
    "classes": ({"y": CLASSES}, list_pairs(CLASSES, True), list_pairs(CLASSES, False)),
    # Some pairs follow from the classes, one occurs twice, and one links a point with itself.
    "both": (
        {"y": CLASSES, "must_link": [[4, 5], [0, 6], [0, 1], [7, 7]],
         "cannot_link": [[7, 1], [4, 6], [6, 4], [0, 2]]},
        [*list_pairs(CLASSES, True), (4, 5), (0, 6)],
        [*list_pairs(CLASSES, False), (7, 1), (4, 6)],
    ),
    # Without cannot_link="rest", must-links are not closed transitively.
    "pairs": (
        {"must_link": [[0, 1], [1, 2]], "cannot_link": [[0, 5]]}, [(0, 1), (1, 2)], [(0, 5)]
    ),
    "all other pairs": (
        {"must_link": [[0, 1], [1, 2], [4, 5]], "cannot_link": "rest"},
        [(0, 1), (1, 2), (4, 5)],
        list_pairs([0, 0, 0, 1, 2, 2, 3, 4], False),
    ),
    # Point 4 is must-linked to a class; the other points without a class form their own groups.
    "all other pairs, with classes": (
        {"y": CLASSES, "must_link": [[1, 4]], "cannot_link": "rest"},
        [*list_pairs(CLASSES, True), (1, 4)],
        list_pairs([0, 0, 1, 1, 0, 2, 3, 4], False),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GIVEN)
def test_mmc_gives_the_same_metric_for_relations_and_for_the_pairs_they_imply(case):
    relations, must, cannot = GIVEN[case]
    X = np.random.default_rng(1).normal(size=(8, 2))
    S, D = sum_distances(np.eye(2), X, must, cannot)
    assert objective(np.eye(2), X, **relations) == pytest.approx(D / np.sqrt(S), rel=1e-12)
    pairs = {"must_link": must[::-1], "cannot_link": np.array(cannot)[::-1, ::-1]}
    metric, expected = (MMC(tol=1e-8).fit(X, **arguments) for arguments in (relations, pairs))
    assert metric.n_cannot_links_ == expected.n_cannot_links_ == len(cannot)
    assert metric.objective_ == pytest.approx(expected.objective_, rel=1e-8)


def test_max_cannot_links_limits_the_sample_of_implied_pairs_but_not_listed_ones():
    X, y = IRIS
    whole, sample = MMC().fit(X, y), MMC(max_cannot_links=7500).fit(X, y)
    np.testing.assert_array_equal(sample.components_, whole.components_)
    y = np.where(np.arange(150) % 15, y, -1)
    limited = MMC(max_cannot_links=10, random_state=0).fit(X, y, cannot_link=[[0, 30], [0, 1]])
    assert limited.n_cannot_links_ == 12


# ------------------------------------------------------------------ degenerate data


@BOTH_FORMS
def test_mmc_refuses_data_with_a_direction_in_which_no_must_linked_points_differ(diagonal):
    X = np.random.default_rng(0).normal(size=(10, 3))
    y = X[:, 1] = np.arange(10) % 2
    message = r"points \d and \d differ in a direction, mostly that of feature 1, .*span 2 of 3"
    for limit in (None, 3):
        with pytest.raises(ValueError, match=message):
            MMC(diagonal, max_cannot_links=limit, random_state=0).fit(X, y)
    # The message names two points that differ in that direction.
    X[:8, 1] = [0, 0, 0, 0, 0, 0, 0, 4]
    relations = {"must_link": [[0, 1], [2, 3], [4, 5]], "cannot_link": [[0, 2], [7, 4], [1, 3]]}
    with pytest.raises(ValueError, match=r"points 4 and 7 .* feature 1"):
        MMC(diagonal).fit(X, **relations)


LAST_BIT = np.random.default_rng(0).integers(0, 2, size=14) * np.spacing(1e6)


@BOTH_FORMS
@pytest.mark.parametrize("constant", [1e6, 1e6 + LAST_BIT], ids=["constant", "up to rounding"])
def test_a_constant_feature_gets_weight_zero_and_a_warning(diagonal, constant):
    """A feature that depends linearly on the others changes nothing but the rank."""
    X, relations = draw_problem(0)
    plain = MMC(diagonal).fit(X, **relations)
    with pytest.warns(UserWarning, match="differ in 3 of 4 dimensions"):
        metric = MMC(diagonal).fit(np.insert(X, 1, constant, axis=1), **relations)
    assert metric.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    assert not metric.components_[1].any()
    assert not metric.components_[:, 1].any()
    if not diagonal:
        with pytest.warns(UserWarning, match="differ in 3 of 4 dimensions"):
            metric = MMC().fit(np.column_stack([X, X @ [1.0, 2.0, -1.0] + 5]), **relations)
        assert metric.objective_ == pytest.approx(plain.objective_, rel=3e-6)


@BOTH_FORMS
def test_mmc_changes_little_if_related_points_nearly_coincide(diagonal):
    X, relations = draw_problem(4)
    plain = MMC(diagonal).fit(X, **relations)
    for distance in (0, 1e-13, 1e-3):
        Z = np.vstack([X, X[0], X[1] + distance * np.array([1.0, -1.0, 0.5])])
        metric = MMC(diagonal).fit(
            Z,
            must_link=np.vstack([relations["must_link"], [[0, 14]]]),
            cannot_link=np.vstack([relations["cannot_link"], [[1, 15]]]),
        )
        # Under any metric, neither sum changes by more than the distance of the added points.
        assert metric.objective_ == pytest.approx(plain.objective_, rel=2e-6 + distance)
        assert metric.converged_
        assert metric.n_cannot_links_ <= plain.n_cannot_links_ + (distance > 0)
    with pytest.raises(ValueError, match="no must-linked points differ"):
        MMC(diagonal).fit(Z, must_link=[[0, 14]], cannot_link=relations["cannot_link"])
    # Now points 1 and 15 differ by rounding only.
    Z[[1, 15], 0], Z[15, 1:] = [0.1 + 0.2, 0.3], Z[1, 1:]
    with pytest.raises(ValueError, match="identical points"):
        MMC(diagonal).fit(Z, must_link=relations["must_link"], cannot_link=[[1, 15]])


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"must_link": [[1, 1]], "cannot_link": [[0, 1]]}, "no must-link"),
        ({"y": [0, 1, 2, 3, -1, -1]}, "no must-link"),
        ({"must_link": [[0, 1]]}, "no cannot-link"),
        ({"y": [2, 2, 2, 2, 2, -1]}, "no cannot-link"),
        ({"y": [0, 1, 0]}, "inconsistent numbers of samples"),
        ({"must_link": [[0, 1]], "cannot_link": "all"}, "cannot_link is 'all'"),
        # Messages about contradictions show the chain of must-links.
        ({"y": [0, 1, -1, -1, -1, -1], "must_link": [[0, 5], [5, 1]], "cannot_link": "rest"},
         "0 - 5 - 1"),
        ({"y": [3, 3, 1, 1, 1, 1], "cannot_link": [[0, 1]]}, "must both have class 3"),
    ],
)  # fmt: skip
def test_mmc_and_objective_refuse_missing_and_contradictory_relations(arguments, message):
    X = np.random.default_rng(0).normal(size=(6, 1))
    for function in (MMC().fit, partial(objective, [[1.0]])):
        with pytest.raises(ValueError, match=message):
            function(X, **arguments)


def test_objective_refuses_metrics_under_which_must_linked_points_coincide():
    X = np.array([[0.0, 0], [0, 1], [1, 0]])
    relations = {"must_link": [[0, 1]], "cannot_link": [[0, 2]]}
    with pytest.raises(ValueError, match="coincide under this metric"):
        objective([[1.0, 0.0]], X, **relations)
    with pytest.raises(ValueError, match="components has 3 columns"):
        objective(np.eye(3), X, **relations)
    assert objective([[0.0, 1.0]], X, **relations) == 0
