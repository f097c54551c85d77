"""Xing's metric: closed forms, other solvers, what relations say, units, and what is refused.

The oracles solve the problem as the papers state it, in the coordinates of the data, without the
whitening and the factor that the package works with.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mmc_problems import BOTH, pairs_between, pairs_of, random_problem, sums
from scipy.optimize import minimize
from scipy.stats import special_ortho_group
from sklearn.exceptions import ConvergenceWarning

from cgmm.datasets import load
from cgmm.metric_learning import MMC, objective
from cgmm.metric_learning.mmc_pairs import sample_far_pairs

# ------------------------------------------------------------------ closed forms


@BOTH
@pytest.mark.parametrize("seed", range(2))
def test_reported_objective_is_the_papers_sum_on_the_constraints_boundary(seed, diagonal):
    X, must, cannot = random_problem(seed)
    metric = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    A = metric.get_mahalanobis_matrix()
    S, D = sums(A, X, must, cannot)
    # Plain sums of a dozen terms: only rounding separates them.
    assert pytest.approx(1, rel=1e-12) == S
    assert pytest.approx(metric.objective_, rel=1e-12) == D
    value = objective(metric.components_, X, must_link=must, cannot_link=cannot)
    assert value == pytest.approx(D, rel=1e-12)
    assert objective(7 * metric.components_, X, must_link=must, cannot_link=cannot) == (
        pytest.approx(value, rel=1e-12)
    )
    assert np.linalg.eigvalsh(A)[0] > -1e-13 * np.linalg.norm(A)
    if diagonal:
        np.testing.assert_array_equal(A, np.diag(np.diag(A)))
        # On its way the search may change the sign of a factor: the metric has only its square.
        assert (metric.components_ >= 0).all()
    assert metric.n_cannot_links_ == len(cannot)


@BOTH
def test_one_dimension(diagonal):
    X = np.array([[0.0], [2.0], [5.0], [1.0]])
    metric = MMC(diagonal).fit(X, must_link=[[0, 1], [0, 3]], cannot_link=[[0, 2], [1, 2]])
    # The constraint alone fixes A: (2² + 1²) A = 1.
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), [[1 / 5]], rtol=1e-14)
    assert metric.objective_ == pytest.approx((5 + 3) / np.sqrt(5), rel=1e-14)
    assert metric.converged_
    assert metric.n_iter_ == 1


def test_a_single_cannot_link_is_fishers_direction():
    X, must, cannot = random_problem(1)
    metric = MMC().fit(X, must_link=must, cannot_link=cannot[:1])
    C = sum(np.outer(X[i] - X[j], X[i] - X[j]) for i, j in must)
    delta = X[cannot[0, 0]] - X[cannot[0, 1]]
    direction = np.linalg.solve(C, delta)
    # Cauchy-Schwarz: δᵀ A δ ≤ tr(A C) δᵀ C⁻¹ δ, with equality for the rank-one A along C⁻¹ δ.
    best = delta @ direction
    assert metric.objective_ == pytest.approx(np.sqrt(best), rel=1e-9)
    A = np.outer(direction, direction) / best
    # The objective is flat at its maximum: to 1e-6 in it is to about 1e-3 in A.
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), A, atol=2e-3 * abs(A).max())


def test_a_single_cannot_link_with_a_diagonal_metric_takes_the_best_feature():
    X, must, cannot = random_problem(2)
    metric = MMC(diagonal=True).fit(X, must_link=must, cannot_link=cannot[:1])
    ratios = (X[cannot[0, 0]] - X[cannot[0, 1]]) ** 2
    ratios /= sum((X[i] - X[j]) ** 2 for i, j in must)
    assert metric.objective_ == pytest.approx(np.sqrt(ratios.max()), rel=1e-6)
    weights = np.diag(metric.get_mahalanobis_matrix())
    assert weights.argmax() == ratios.argmax()


@BOTH
def test_orthogonal_pairs_share_the_metric_by_the_squares_of_their_lengths(diagonal):
    lengths = np.array([1.0, 2.0, 5.0])
    X = np.vstack([np.zeros(3), np.eye(3), np.diag(lengths)])
    must = [[0, 1], [0, 2], [0, 3]]
    metric = MMC(diagonal, tol=1e-12)
    with warnings.catch_warnings():
        # Rounding may hide the last digits of the certificate.
        warnings.simplefilter("ignore", ConvergenceWarning)
        metric.fit(X, must_link=must, cannot_link=[[0, 4], [0, 5], [0, 6]])
    # max Σ a_k √m_k with Σ m_k = 1 is at m_k ∝ a_k², by Cauchy-Schwarz.
    assert metric.objective_ == pytest.approx(np.sqrt(30), rel=1e-10)
    expected = np.diag(lengths**2 / 30)
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), expected, atol=1e-5)


def test_components_are_symmetric_in_units_of_the_must_links_scatter():
    X, must, cannot = random_problem(0)
    X = X * [1.0, 100.0, 0.01]
    metric = MMC().fit(X, must_link=must, cannot_link=cannot)
    scatter = np.sqrt(sum((X[i] - X[j]) ** 2 for i, j in must))
    root = metric.components_ * scatter
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    assert np.linalg.eigvalsh(root)[0] > -1e-12


# ------------------------------------------------------------------ other solvers


def solved_by_slsqp(X, must, cannot, n_starts=4):
    """Maximise over a triangular factor of A in the data's own coordinates, from random starts."""
    n_dims = X.shape[1]
    lower = np.tril_indices(n_dims)
    near = np.array([X[i] - X[j] for i, j in must])
    far = np.array([X[i] - X[j] for i, j in cannot])

    def factor(x):
        C = np.zeros((n_dims, n_dims))
        C[lower] = x
        return C

    rng = np.random.default_rng(0)
    results = [
        minimize(
            lambda x: -np.sqrt(np.square(far @ factor(x)).sum(axis=1) + 1e-300).sum(),
            rng.normal(size=len(lower[0])),
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda x: 1 - np.square(near @ factor(x)).sum(),
            },
            options={"maxiter": 2000, "ftol": 1e-14},
        )
        for _ in range(n_starts)
    ]
    return max(-result.fun for result in results if result.success)


@pytest.mark.parametrize(("seed", "n_dims"), [(0, 2), (1, 3), (2, 3), (3, 4)])
def test_full_metric_against_slsqp(seed, n_dims):
    X, must, cannot = random_problem(seed, n_dims)
    metric = MMC(tol=1e-8).fit(X, must_link=must, cannot_link=cannot)
    assert metric.converged_
    # SLSQP differentiates numerically: about seven digits.
    assert metric.objective_ == pytest.approx(solved_by_slsqp(X, must, cannot), rel=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_diagonal_metric_against_slsqp_and_against_newtons_objective_of_xing(seed):
    X, must, cannot = random_problem(seed, n_dims=4)
    near = np.array([X[i] - X[j] for i, j in must])
    far = np.array([X[i] - X[j] for i, j in cannot]) ** 2
    s = (near**2).sum(axis=0)
    metric = MMC(diagonal=True, tol=1e-8).fit(X, must_link=must, cannot_link=cannot)
    weights = np.diag(metric.get_mahalanobis_matrix())
    bounds = [(0, None)] * 4

    def solve(fun, **kwargs):
        options = {"ftol": 1e-15, "maxiter": 1000}
        return minimize(fun, 0.25 / s, bounds=bounds, method="SLSQP", options=options, **kwargs)

    # [Xing et al. 2003, the diagonal case]: g(A) = Σ_S ‖·‖²_A - log Σ_D ‖·‖_A, without constraint.
    newton = solve(lambda a: s @ a - np.log(np.sqrt(far @ a + 1e-300).sum()))
    np.testing.assert_allclose(s * newton.x, 0.5 * s * weights, atol=1e-4)
    value = np.sqrt(far @ newton.x).sum() / np.sqrt(s @ newton.x)
    assert metric.objective_ == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("seed", range(2))
def test_equation_8_of_barhillel_is_the_same_problem_at_another_scale(seed):
    X, must, cannot = random_problem(seed)
    metric = MMC(tol=1e-8).fit(X, must_link=must, cannot_link=cannot)
    B = metric.get_mahalanobis_matrix() / metric.objective_**2
    S, D = sums(B, X, must, cannot)
    assert pytest.approx(1, rel=1e-12) == D
    assert pytest.approx(metric.objective_**-2, rel=1e-12) == S
    lower = np.tril_indices(3)

    def matrix(x):
        C = np.zeros((3, 3))
        C[lower] = x
        return C @ C.T

    # [barhillel2005, eq. 8]: min Σ_S ‖·‖²_B with Σ_D ‖·‖_B ≥ 1, by a solver that sees only this.
    start = np.linalg.cholesky(np.eye(3) / sums(np.eye(3), X, must, cannot)[1] ** 2)[lower]
    other = minimize(
        lambda x: sums(matrix(x), X, must, cannot)[0],
        start + 0.01 * np.random.default_rng(seed).normal(size=6),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: sums(matrix(x), X, must, cannot)[1] - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert pytest.approx(other.fun, rel=1e-6) == S


# ------------------------------------------------------------------ relations


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
        lambda y: np.where(y < 0, np.nan, y),
        lambda y: np.array(["b", "a", "c", None])[y],
        lambda y: np.where(y < 0, -1.0, y * 10.0 - 7),
        lambda y: np.where(y < 0, -1, y + 10**15),
    ],
)
def test_classes_may_have_any_names(rename):
    X, y = np.random.default_rng(0).normal(size=(25, 3)), np.arange(25) % 4 - 1
    renamed, plain = MMC().fit(X, rename(y)), MMC().fit(X, y)
    # Groups in another order are summed in another order.
    np.testing.assert_allclose(renamed.components_, plain.components_, rtol=1e-9)


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


# ------------------------------------------------------------------ units, axes and ranks


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    diagonal=st.booleans(),
    exponents=st.lists(st.integers(-60, 60), min_size=3, max_size=3),
)
def test_units_and_origin_of_the_features_do_not_matter(seed, diagonal, exponents):
    X, must, cannot = random_problem(seed)
    # Powers of two round nothing.
    units = 2.0 ** np.array(exponents)
    relations = {"must_link": must, "cannot_link": cannot}
    here = MMC(diagonal).fit(X, **relations)
    there = MMC(diagonal).fit((X - X[0]) * units, **relations)
    assert there.objective_ == pytest.approx(here.objective_, rel=3e-6)
    exact = MMC(diagonal).fit(X * units, **relations)
    np.testing.assert_allclose(exact.transform(X * units), here.transform(X), atol=1e-9)
    assert exact.objective_ == pytest.approx(here.objective_, rel=1e-12)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_axes_of_the_data_do_not_matter_to_the_full_metric(seed):
    X, must, cannot = random_problem(seed)
    relations = {"must_link": must, "cannot_link": cannot}
    Q = special_ortho_group.rvs(3, random_state=np.random.default_rng(seed))
    mix = Q @ np.diag([1.0, 20.0, 0.05]) @ Q.T + 0.01
    here = MMC(tol=1e-7).fit(X, **relations)
    for transformation in (Q, mix):
        there = MMC(tol=1e-7).fit(X @ transformation, **relations)
        # Both are within tol of one maximum; how the whitening rounds may change the path.
        assert there.objective_ == pytest.approx(here.objective_, rel=2e-7)
        back = objective(there.components_ @ transformation.T, X, **relations)
        assert back == pytest.approx(here.objective_, rel=2e-7)


def test_objective_of_offset_points_is_exact():
    # Multiples of 2^-20, which an offset of 2^32 leaves exact.
    X, must, cannot = random_problem(0)
    X = np.round(X * 2**20) / 2**20
    relations = {"must_link": must, "cannot_link": cannot}
    L = np.random.default_rng(0).normal(size=(3, 3))
    here, there = (objective(L, points, **relations) for points in (X, X + 2**32))
    assert there == pytest.approx(here, rel=1e-12)


@BOTH
def test_a_direction_without_must_linked_differences_has_no_maximum(diagonal):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3))
    y = np.arange(10) % 2
    X[:, 1] = y
    message = r"points \d and \d differ in a direction, mostly that of feature 1, .*span 2 of 3"
    with pytest.raises(ValueError, match=message):
        MMC(diagonal).fit(X, y)
    with pytest.raises(ValueError, match=message):
        MMC(diagonal).fit(X, must_link=pairs_of(y, True), cannot_link=[[0, 3]])
    with pytest.raises(ValueError, match=message):
        MMC(diagonal, max_cannot_links=3, random_state=0).fit(X, y)


def test_fewer_must_links_than_dimensions_have_no_maximum_for_the_full_metric():
    X, must, cannot = random_problem(0, n_dims=5)
    with pytest.raises(ValueError, match=r"span 3 of 5 dimensions.*reduce the data to 3"):
        MMC().fit(X, must_link=must[:3], cannot_link=cannot)
    # Each feature by itself has must-linked differences: a diagonal metric is fine.
    assert MMC(diagonal=True).fit(X, must_link=must[:3], cannot_link=cannot).converged_


def test_the_points_named_are_apart_along_that_direction():
    X = np.random.default_rng(0).normal(size=(8, 2))
    X[:, 1] = [0, 0, 0, 0, 0, 0, 0, 4]
    relations = {"must_link": [[0, 1], [2, 3]], "cannot_link": [[0, 2], [7, 4], [1, 3]]}
    with pytest.raises(ValueError, match=r"points 4 and 7 .* feature 1"):
        MMC().fit(X, **relations)


LAST_BIT = np.random.default_rng(0).integers(0, 2, size=14) * np.spacing(1e6)


@BOTH
@pytest.mark.parametrize("constant", [1e6, 1e6 + LAST_BIT], ids=["constant", "up to rounding"])
def test_a_constant_feature_gets_a_warning_and_no_weight(diagonal, constant):
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    plain = MMC(diagonal).fit(X, **relations)
    with pytest.warns(UserWarning, match="differ in 3 of 4 dimensions"):
        metric = MMC(diagonal).fit(np.insert(X, 1, constant, axis=1), **relations)
    assert metric.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    assert (metric.components_[1] == 0).all()
    assert (metric.components_[:, 1] == 0).all()


def test_a_dependent_feature_gets_a_warning_and_changes_nothing():
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    with pytest.warns(UserWarning, match="differ in 3 of 4 dimensions"):
        metric = MMC().fit(np.column_stack([X, X @ [1.0, 2.0, -1.0] + 5]), **relations)
    assert metric.objective_ == pytest.approx(MMC().fit(X, **relations).objective_, rel=3e-6)


@BOTH
def test_pairs_of_identical_points(diagonal):
    X, must, cannot = random_problem(4)
    plain = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    X = np.vstack([X, X[0], X[1]])
    with_twins = MMC(diagonal).fit(
        X,
        must_link=np.vstack([must, [[0, 14]]]),
        cannot_link=np.vstack([cannot, [[1, 15]]]),
    )
    # Neither sum has anything from them, under any metric.
    assert with_twins.objective_ == pytest.approx(plain.objective_, rel=1e-12)
    assert with_twins.n_cannot_links_ == plain.n_cannot_links_
    with pytest.raises(ValueError, match="identical points"):
        MMC(diagonal).fit(X, must_link=must, cannot_link=[[1, 15]])
    with pytest.raises(ValueError, match="no must-linked points differ"):
        MMC(diagonal).fit(X, must_link=[[1, 15]], cannot_link=cannot)
    with pytest.raises(ValueError, match="identical points"):
        MMC(diagonal).fit(np.ones((4, 2)), [0, 0, 1, 1])


@BOTH
@pytest.mark.parametrize("distance", [1e-3, 1e-13])
def test_a_cannot_link_between_almost_identical_points(diagonal, distance):
    X, must, cannot = random_problem(5)
    plain = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    X = np.vstack([X, X[0] + distance * np.array([1.0, -1.0, 0.5])])
    metric = MMC(diagonal).fit(X, must_link=must, cannot_link=np.vstack([cannot, [[0, 14]]]))
    assert metric.converged_
    assert metric.objective_ == pytest.approx(plain.objective_, rel=2e-6 + distance)


# ------------------------------------------------------------------ refusals


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
        ({"must_link": [[0, 1, 2]], "cannot_link": [[0, 1]]}, r"must be \(P, 2\)"),
        ({"must_link": [[0, 6]], "cannot_link": [[0, 1]]}, r"must_link\[0\] is \[0, 6\]"),
        ({"must_link": [[0, 1]], "cannot_link": "all"}, "cannot_link is 'all'"),
        # Contradictions show the chain.
        ({"must_link": [[0, 1], [1, 2]], "cannot_link": [[0, 2]]}, "0 - 1 - 2"),
        ({"y": [0, 1, -1, -1, -1, -1], "must_link": [[0, 5], [5, 1]], "cannot_link": "rest"},
         "0 - 5 - 1"),
        ({"y": [3, 3, 1, 1, 1, 1], "cannot_link": [[0, 1]]}, "must both have class 3"),
        ({"must_link": [[0, 1]], "cannot_link": [[2, 2]]}, "ties point 2 to itself"),
    ],
)  # fmt: skip
def test_missing_malformed_and_contradictory_relations(arguments, message):
    X = np.random.default_rng(0).normal(size=(6, 1))
    with pytest.raises(ValueError, match=message):
        MMC().fit(X, **arguments)
    with pytest.raises(ValueError, match=message):
        objective([[1.0]], X, **arguments)


def test_cannot_linked_points_that_differ_by_rounding_alone():
    X = np.array([[0.1 + 0.2, 0.0], [0.3, 0.0], [1.0, 1.0], [2.0, 5.0], [0.0, 2.0]])
    assert X[0, 0] != X[1, 0]
    must = [[2, 3], [3, 4]]
    with pytest.raises(ValueError, match="identical points"):
        MMC().fit(X, must_link=must, cannot_link=[[0, 1]])


def test_objective_of_a_metric_that_sees_no_must_link():
    X = np.array([[0.0, 0], [0, 1], [1, 0]])
    relations = {"must_link": [[0, 1]], "cannot_link": [[0, 2]]}
    with pytest.raises(ValueError, match="coincide under this metric"):
        objective([[1.0, 0.0]], X, **relations)
    with pytest.raises(ValueError, match="components has 3 columns"):
        objective(np.eye(3), X, **relations)
    assert objective([[0.0, 1.0]], X, **relations) == 0
