"""Xing's metric: closed forms, other solvers, warnings, and scikit-learn's habits.

The oracles solve the problem as the papers state it, in the coordinates of the data, without the
whitening and the factor that the package works with.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from mmc_problems import BOTH, pairs_of, random_problem, sums
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cgmm.datasets import load
from cgmm.metric_learning import MMC, objective


@parametrize_with_checks([MMC(), MMC(diagonal=True), MMC(max_cannot_links=10, random_state=0)])
def test_scikit_learn_estimator_checks(estimator, check):
    # Their data sets include constant columns; warnings are theirs to cause.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# ------------------------------------------------------------------ closed forms


@BOTH
@pytest.mark.parametrize("seed", range(3))
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


@pytest.mark.parametrize("seed", range(3))
def test_two_dimensions_by_a_dense_grid(seed):
    X, must, cannot = random_problem(seed, n_dims=2)
    near = np.array([X[i] - X[j] for i, j in must])
    far = np.array([X[i] - X[j] for i, j in cannot])

    def best_of(A):
        squares = np.einsum("pi,gij,pj->gp", far, A, far)
        scale = np.einsum("pi,gij,pj->g", near, A, near)
        return (np.sqrt(np.maximum(squares, 0)).sum(axis=1) / np.sqrt(scale)).max()

    # All symmetric positive semi-definite matrices up to scale: a disc of (cos, sin) and roundness.
    angle, excess = np.meshgrid(np.linspace(0, 2 * np.pi, 721), np.linspace(0, 1, 401))
    a, b = (excess * f(angle) for f in (np.cos, np.sin))
    full = np.moveaxis(np.array([[1 + a, b], [b, 1 - a]]), [0, 1], [-2, -1]).reshape(-1, 2, 2)
    t = np.linspace(0, 1, 20001)
    flat = np.moveaxis(np.array([[t, 0 * t], [0 * t, 1 - t]]), -1, 0)
    for diagonal, grid in ((False, full), (True, flat)):
        found = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot).objective_
        # No grid point is better than the certificate allows, and the best is as good as its step.
        assert best_of(grid) <= found * (1 + 1e-6)
        assert best_of(grid) == pytest.approx(found, rel=1e-4)


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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_dims", [2, 3, 4])
def test_full_metric_against_slsqp(seed, n_dims):
    X, must, cannot = random_problem(seed, n_dims)
    metric = MMC(tol=1e-8).fit(X, must_link=must, cannot_link=cannot)
    assert metric.converged_
    # SLSQP differentiates numerically: about seven digits.
    assert metric.objective_ == pytest.approx(solved_by_slsqp(X, must, cannot), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
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


@pytest.mark.parametrize("seed", range(3))
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


# ------------------------------------------------------------------ the answer


@pytest.mark.parametrize("seed", range(5))
def test_diagonal_components_are_not_negative(seed):
    # On its way the search may change the sign of a factor: the metric has only its square.
    rng = np.random.default_rng(seed)
    y = np.arange(20) % 2
    metric = MMC(diagonal=True).fit(rng.normal(size=(20, 6)) + 0.5 * y[:, None], y)
    assert (metric.components_ >= 0).all()


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_the_best_metric_of_iris_and_wine_is_a_line(name):
    X, y, *_ = load(name)
    s = np.linalg.svd(MMC(tol=1e-8).fit(X, y).components_ * X.std(axis=0))[1]
    assert s[1] < 1e-2 * s[0]


def test_two_fits_agree_to_the_last_bit():
    X, y, *_ = load("wine")
    first, second = (MMC(max_cannot_links=500, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)
    np.testing.assert_array_equal(first.history_, second.history_)


def test_components_are_symmetric_in_units_of_the_must_links_scatter():
    X, must, cannot = random_problem(0)
    X = X * [1.0, 100.0, 0.01]
    metric = MMC().fit(X, must_link=must, cannot_link=cannot)
    scatter = np.sqrt(sum((X[i] - X[j]) ** 2 for i, j in must))
    root = metric.components_ * scatter
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    assert np.linalg.eigvalsh(root)[0] > -1e-12


@BOTH
def test_transformed_points_are_as_far_apart_as_the_metric_says(diagonal):
    X, must, cannot = random_problem(0)
    metric = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    Z, A = metric.transform(X), metric.get_mahalanobis_matrix()
    delta = X[2] - X[9]
    assert ((Z[2] - Z[9]) ** 2).sum() == pytest.approx(delta @ A @ delta, rel=1e-10)
    again = MMC(diagonal).fit_transform(X, must_link=must, cannot_link=cannot)
    np.testing.assert_array_equal(again, Z)


def test_objective_of_a_metric_that_sees_no_must_link():
    X = np.array([[0.0, 0], [0, 1], [1, 0]])
    relations = {"must_link": [[0, 1]], "cannot_link": [[0, 2]]}
    with pytest.raises(ValueError, match="coincide under this metric"):
        objective([[1.0, 0.0]], X, **relations)
    with pytest.raises(ValueError, match="components has 3 columns"):
        objective(np.eye(3), X, **relations)
    assert objective([[0.0, 1.0]], X, **relations) == 0


def test_objective_of_offset_points_is_exact():
    # Multiples of 2^-20, which an offset of 2^32 leaves exact.
    X, must, cannot = random_problem(0)
    X = np.round(X * 2**20) / 2**20
    relations = {"must_link": must, "cannot_link": cannot}
    L = np.random.default_rng(0).normal(size=(3, 3))
    here, there = (objective(L, points, **relations) for points in (X, X + 2**32))
    assert there == pytest.approx(here, rel=1e-12)


# ------------------------------------------------------------------ scikit-learn's habits


@pytest.mark.parametrize(
    "params", [{"diagonal": 2}, {"tol": -1}, {"max_iter": 0}, {"max_cannot_links": 0}]
)
def test_impossible_parameters(params):
    (name,) = params
    with pytest.raises(ValueError, match=name):
        MMC(**params).fit(np.eye(4), [0, 0, 1, 1])


def test_pipeline_output_names_clone_and_pickle():
    X, y, *_ = load("wine")
    frame = pd.DataFrame(X).add_prefix("f")
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), MMC(diagonal=True))
    model.set_output(transform="pandas")
    named = model.fit(frame, mmc__must_link=pairs_of(y, True)[:90], mmc__cannot_link=[[0, 70]])
    assert list(named.transform(frame).columns) == [f"mmc{k}" for k in range(13)]
    assert list(model[-1].feature_names_in_) == list(frame.columns)
    again = pickle.loads(pickle.dumps(model[-1]))
    np.testing.assert_array_equal(again.components_, model[-1].components_)
    assert not hasattr(clone(model[-1]), "components_")
    with pytest.raises(NotFittedError):
        MMC().transform(X)
    with pytest.raises(NotFittedError):
        MMC().get_mahalanobis_matrix()
