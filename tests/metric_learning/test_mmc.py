"""Test Xing's metric: both forms of its objective, relations, units, and refusals.

The oracles solve the problem as the papers state it, in the coordinates of the data, without the
whitening and the factor that the package works with.
"""

import numpy as np
import pytest
from metric_problems import BOTH, IRIS, pairs_of, random_problem, sums

from cgmm.metric_learning import MMC, objective

# ------------------------------------------------------------------ closed forms


@BOTH
@pytest.mark.parametrize("seed", range(2))
def test_reported_objective_is_the_papers_sum_on_the_constraints_boundary(seed, diagonal):
    X, known = random_problem(seed)
    X = X * [1.0, 100.0, 0.01]
    metric = MMC(diagonal).fit(X, **known)
    L, A = metric.components_, metric.get_mahalanobis_matrix()
    S, D = sums(A, X, **known)
    # [barhillel2005, eq. 8] asks for the least S at D ≥ 1: the same, at another scale. Plain sums
    # of a dozen terms: only rounding separates them.
    assert pytest.approx(1, rel=1e-12) == S
    assert [metric.objective_, objective(L, X, **known), objective(7 * L, X, **known)] == (
        pytest.approx([D, D, D], rel=1e-12)
    )
    # The factor is symmetric and positive in units of the must-links' scatter.
    root = L * np.sqrt(sum((X[i] - X[j]) ** 2 for i, j in known["must_link"]))
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    assert np.linalg.eigvalsh(root)[0] > -1e-12
    assert not diagonal or np.array_equal(A, np.diag(np.diag(A)))
    assert metric.n_cannot_links_ == len(known["cannot_link"])


# ------------------------------------------------------------------ another objective


def test_half_the_diagonal_metric_is_at_the_minimum_of_newtons_objective_of_xing():
    X, known = random_problem(0, n_dims=4)
    s = sum((X[i] - X[j]) ** 2 for i, j in known["must_link"])
    far = np.array([(X[i] - X[j]) ** 2 for i, j in known["cannot_link"]])
    a = np.diag(MMC(diagonal=True, tol=1e-10).fit(X, **known).get_mahalanobis_matrix()) / 2
    # [Xing et al. 2003, the diagonal case]: g(a) = Σ_S ‖·‖²_A - log Σ_D ‖·‖_A is convex, so that
    # a ≥ 0 is its minimum if no slope falls into the orthant and none is left where a is not 0.
    d = np.sqrt(far @ a)
    slope = 1 - 0.5 * (1 / d) @ far / d.sum() / s
    assert (a > 1e-3 * a.max()).sum() > 1
    assert (slope > -1e-4).all()
    np.testing.assert_allclose(s * a * slope, 0, atol=1e-4)


# ------------------------------------------------------------------ relations


CLASSES = [0, 0, 1, 1, -1, -1, -1, -1]
# Relations as given, and the pairs that they mean.
GIVEN = {
    "classes": ({"y": CLASSES}, pairs_of(CLASSES, True), pairs_of(CLASSES, False)),
    # The classes imply some, one occurs twice, and one links a point with itself.
    "both": (
        {"y": CLASSES, "must_link": [[4, 5], [0, 6], [0, 1], [7, 7]],
         "cannot_link": [[7, 1], [4, 6], [6, 4], [0, 2]]},
        [*pairs_of(CLASSES, True), (4, 5), (0, 6)],
        [*pairs_of(CLASSES, False), (7, 1), (4, 6)],
    ),
    # A chain is closed transitively only as a chunklet.
    "pairs": (
        {"must_link": [[0, 1], [1, 2]], "cannot_link": [[0, 5]]}, [(0, 1), (1, 2)], [(0, 5)]
    ),
    "the rest": (
        {"must_link": [[0, 1], [1, 2], [4, 5]], "cannot_link": "rest"},
        [(0, 1), (1, 2), (4, 5)],
        pairs_of([0, 0, 0, 1, 2, 2, 3, 4], False),
    ),
    # The class links its members; points without a class are apart.
    "the rest of both": (
        {"y": CLASSES, "must_link": [[1, 4]], "cannot_link": "rest"},
        [*pairs_of(CLASSES, True), (1, 4)],
        pairs_of([0, 0, 1, 1, 0, 2, 3, 4], False),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GIVEN)
def test_mmc_does_not_depend_on_the_order_of_pairs(case):
    known, must, cannot = GIVEN[case]
    X = np.random.default_rng(1).normal(size=(8, 2))
    S, D = sums(np.eye(2), X, must, cannot)
    assert objective(np.eye(2), X, **known) == pytest.approx(D / np.sqrt(S), rel=1e-12)
    listed = {"must_link": must[::-1], "cannot_link": np.array(cannot)[::-1, ::-1]}
    here, there = (MMC(tol=1e-8).fit(X, **given) for given in (known, listed))
    assert here.n_cannot_links_ == there.n_cannot_links_ == len(cannot)
    assert here.objective_ == pytest.approx(there.objective_, rel=1e-8)


def test_a_sample_has_the_given_size_and_listed_cannot_links_stay_beside_it():
    X, y = IRIS
    whole, sample = MMC().fit(X, y), MMC(max_cannot_links=7500).fit(X, y)
    np.testing.assert_array_equal(sample.components_, whole.components_)
    y = np.where(np.arange(150) % 15, y, -1)
    limited = MMC(max_cannot_links=10, random_state=0).fit(X, y, cannot_link=[[0, 30], [0, 1]])
    assert limited.n_cannot_links_ == 12


# ------------------------------------------------------------------ units, axes and ranks


@BOTH
def test_a_direction_without_must_linked_differences_has_no_maximum(diagonal):
    X = np.random.default_rng(0).normal(size=(10, 3))
    y = X[:, 1] = np.arange(10) % 2
    message = r"points \d and \d differ in a direction, mostly that of feature 1, .*span 2 of 3"
    for limit in (None, 3):
        with pytest.raises(ValueError, match=message):
            MMC(diagonal, max_cannot_links=limit, random_state=0).fit(X, y)
    # The named points differ along that direction.
    X[:8, 1] = [0, 0, 0, 0, 0, 0, 0, 4]
    known = {"must_link": [[0, 1], [2, 3], [4, 5]], "cannot_link": [[0, 2], [7, 4], [1, 3]]}
    with pytest.raises(ValueError, match=r"points 4 and 7 .* feature 1"):
        MMC(diagonal).fit(X, **known)


LAST_BIT = np.random.default_rng(0).integers(0, 2, size=14) * np.spacing(1e6)


@BOTH
@pytest.mark.parametrize("constant", [1e6, 1e6 + LAST_BIT], ids=["constant", "up to rounding"])
def test_a_constant_feature_gets_a_warning_and_no_weight(diagonal, constant):
    X, known = random_problem(0)
    plain = MMC(diagonal).fit(X, **known)
    with pytest.warns(UserWarning, match="differ in 3 of 4 dimensions"):
        metric = MMC(diagonal).fit(np.insert(X, 1, constant, axis=1), **known)
    assert metric.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    assert not metric.components_[1].any()
    assert not metric.components_[:, 1].any()
    if not diagonal:
        with pytest.warns(UserWarning, match="differ in 3 of 4 dimensions"):
            metric = MMC().fit(np.column_stack([X, X @ [1.0, 2.0, -1.0] + 5]), **known)
        assert metric.objective_ == pytest.approx(plain.objective_, rel=3e-6)


@BOTH
def test_must_linked_points_that_nearly_coincide_change_little(diagonal):
    X, known = random_problem(4)
    plain = MMC(diagonal).fit(X, **known)
    for apart in (0, 1e-13, 1e-3):
        Z = np.vstack([X, X[0], X[1] + apart * np.array([1.0, -1.0, 0.5])])
        twins = MMC(diagonal).fit(
            Z,
            must_link=np.vstack([known["must_link"], [[0, 14]]]),
            cannot_link=np.vstack([known["cannot_link"], [[1, 15]]]),
        )
        # Under any metric, neither sum exceeds that of their distances.
        assert twins.objective_ == pytest.approx(plain.objective_, rel=2e-6 + apart)
        assert twins.converged_
        assert twins.n_cannot_links_ <= plain.n_cannot_links_ + (apart > 0)
    with pytest.raises(ValueError, match="no must-linked points differ"):
        MMC(diagonal).fit(Z, must_link=[[0, 14]], cannot_link=known["cannot_link"])
    # Apart by rounding alone.
    Z[[1, 15], 0], Z[15, 1:] = [0.1 + 0.2, 0.3], Z[1, 1:]
    with pytest.raises(ValueError, match="identical points"):
        MMC(diagonal).fit(Z, must_link=known["must_link"], cannot_link=[[1, 15]])


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"must_link": [[1, 1]], "cannot_link": [[0, 1]]}, "no must-link"),
        ({"y": [0, 1, 2, 3, -1, -1]}, "no must-link"),
        ({"must_link": [[0, 1]]}, "no cannot-link"),
        ({"y": [2, 2, 2, 2, 2, -1]}, "no cannot-link"),
        ({"y": [0, 1, 0]}, "inconsistent numbers of samples"),
        ({"must_link": [[0, 1]], "cannot_link": "all"}, "cannot_link is 'all'"),
        # Contradictions show the chain.
        ({"y": [0, 1, -1, -1, -1, -1], "must_link": [[0, 5], [5, 1]], "cannot_link": "rest"},
         "0 - 5 - 1"),
        ({"y": [3, 3, 1, 1, 1, 1], "cannot_link": [[0, 1]]}, "must both have class 3"),
    ],
)  # fmt: skip
def test_missing_and_contradictory_relations(arguments, message):
    X = np.random.default_rng(0).normal(size=(6, 1))
    for use in (MMC().fit, lambda X, **known: objective([[1.0]], X, **known)):
        with pytest.raises(ValueError, match=message):
            use(X, **arguments)


def test_objective_of_a_metric_that_sees_no_must_link():
    X = np.array([[0.0, 0], [0, 1], [1, 0]])
    relations = {"must_link": [[0, 1]], "cannot_link": [[0, 2]]}
    with pytest.raises(ValueError, match="coincide under this metric"):
        objective([[1.0, 0.0]], X, **relations)
    with pytest.raises(ValueError, match="components has 3 columns"):
        objective(np.eye(3), X, **relations)
    assert objective([[0.0, 1.0]], X, **relations) == 0
