"""Test Gaussian mixtures of tables with empty cells: densities, moments, fits and imputation."""

import numpy as np
import pytest
from mixture_problems import draw_groups, draw_parameters
from refusals import refused
from scipy.stats import multivariate_normal

from cgmm import ConstrainedGaussianMixture, SemiSupervisedGaussianClassifier
from cgmm.metrics import matched_accuracy
from cgmm.mixture import POOLINGS, Parameters, missing, with_gaps
from cgmm.mixture.missing import PointsWithGaps

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def empty_cells(rng, X, share):
    """Return a copy of the points in which a share of the cells is NaN, but never a whole row."""
    is_empty = rng.uniform(size=X.shape) < share
    is_empty[is_empty.all(axis=1), 0] = False
    return np.where(is_empty, np.nan, X)


def condition_on_observed(x, mean, covariance):
    """Return log p(x_o) of the observed cells o, and mean and covariance of x given x_o."""
    o = ~np.isnan(x)
    observed = covariance[np.ix_(o, o)]
    regression = covariance[:, o] @ np.linalg.inv(observed)
    log_density = multivariate_normal(mean[o], observed).logpdf(x[o])
    remaining = covariance - regression @ covariance[o]
    return log_density, mean + regression @ (x[o] - mean[o]), remaining


# ------------------------------------------------------------------ densities and moments


@pytest.mark.parametrize("distance", [0.0, 1e3])
@pytest.mark.parametrize("kind", POOLINGS)
def test_densities_and_moments_are_those_of_conditional_gaussians(kind, distance):
    """Compare with sums over points; points far from the means need a more precise formula."""
    rng = np.random.default_rng(3)
    pool, theta = POOLINGS[kind], draw_parameters(rng, 3, 4)
    pooled = pool.reduce(pool.combine(np.ones(3), theta.covariances))
    theta = Parameters(theta.weights, theta.means + distance, pool.expand(pooled, 3, 4))
    X, r = empty_cells(rng, rng.normal(size=(50, 4)), 0.3), rng.dirichlet(np.ones(3), size=50)
    densities, first, second = np.empty((50, 3)), np.zeros((3, 4)), np.zeros((3, 4, 4))
    for i, k in np.ndindex(50, 3):
        mean, covariance = theta.means[k], theta.full_covariances[k]
        densities[i, k], filled, remaining = condition_on_observed(X[i], mean, covariance)
        first[k] += r[i, k] * (filled - mean)
        second[k] += r[i, k] * (np.outer(filled - mean, filled - mean) + remaining)
    second = np.einsum("kdd->kd", second) if pool.diagonal else second
    second = second.sum(axis=0, keepdims=True) if pool.shared else second
    np.testing.assert_allclose(theta.log_density(with_gaps(X)), densities, rtol=1e-10)
    expected = r.sum(axis=0), first, second
    for ours, theirs in zip(pool.statistics(with_gaps(X), r, theta), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * abs(theirs).max())


def test_second_moments_with_gaps_are_exactly_symmetric():
    """The computed inverse of an ill-conditioned matrix is asymmetric, which must not show."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(3, 6, 6)) * np.logspace(0, -6, 6)
    theta = Parameters(np.ones(3) / 3, np.zeros((3, 6)), factors @ factors.mT)
    X, r = empty_cells(rng, rng.normal(size=(80, 6)), 0.5), rng.dirichlet(np.ones(3), size=80)
    second = POOLINGS["full"].statistics(with_gaps(X), r, theta)[2]
    np.testing.assert_array_equal(second, second.mT)


def test_fit_with_one_incomplete_column_equals_the_closed_form():
    """If only column 1 has empty cells, regress it on column 0 in the complete rows.

    Anderson (1957)
    """
    rng = np.random.default_rng(0)
    x, y = rng.multivariate_normal([1.0, 2.0], [[2.0, 1.2], [1.2, 1.0]], size=80).T
    y[rng.permutation(80)[:50]] = np.nan
    both = ~np.isnan(y)
    slope = np.cov(x[both], y[both], bias=True)[0, 1] / x[both].var()
    residual = (y[both] - slope * x[both]).var()
    mean_y = y[both].mean() + slope * (x.mean() - x[both].mean())
    model = ConstrainedGaussianMixture(reg_covar=0, tol=1e-13, max_iter=3000)
    model.fit(np.column_stack([x, y]))
    np.testing.assert_allclose(model.means_[0], [x.mean(), mean_y], rtol=1e-5)
    off, var_y = slope * x.var(), residual + slope**2 * x.var()
    np.testing.assert_allclose(model.covariances_[0], [[x.var(), off], [off, var_y]], rtol=1e-5)


def test_densities_of_a_complete_table_do_not_change():
    X = draw_groups()[0]
    assert with_gaps(X) is X
    theta = draw_parameters(np.random.default_rng(0), 2, 2)
    expected = theta.log_density(X)
    np.testing.assert_allclose(theta.log_density(PointsWithGaps(X)), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_sums_over_pieces_of_a_table_equal_those_of_the_table(kind, monkeypatch):
    rng = np.random.default_rng(4)
    theta, r = draw_parameters(rng, 3, 4), rng.dirichlet(np.ones(3), size=200)
    if kind == "diag":
        theta = theta._replace(covariances=theta.variances)
    X = with_gaps(empty_cells(rng, rng.normal(size=(200, 4)), 0.4))
    expected = [theta.log_density(X), *POOLINGS[kind].statistics(X, r, theta)]
    monkeypatch.setattr(missing, "BLOCK_CELLS", 1)
    assert len(list(X.pieces(3))) == X.n_patterns > 5
    pieces = [theta.log_density(X), *POOLINGS[kind].statistics(X, r, theta)]
    for ours, theirs in zip(pieces, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------ fits


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_default_fit_with_gaps_reaches_the_maximum_at_the_truth(share):
    rng, K = np.random.default_rng(0), 4
    X, z = draw_groups(4, 300, 4, K, spread=4.0)
    X = empty_cells(rng, X, share)
    truth = ConstrainedGaussianMixture(K, init_params=np.eye(K)[z]).fit(X)
    model = ConstrainedGaussianMixture(K, random_state=0).fit(X)
    assert model.log_evidence_ > truth.log_evidence_ - 1


def test_fit_with_gaps_does_not_depend_on_units():
    X = empty_cells(np.random.default_rng(0), draw_groups(1, 200, 3)[0], 0.2)
    original, scaled = (
        ConstrainedGaussianMixture(3, reg_covar=0, random_state=0, tol=1e-8).fit(X * scale)
        for scale in (1.0, [1e-4, 1e3, 1.0])
    )
    assert matched_accuracy(original.labels_, scaled.labels_) == 1


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random_from_data", "chunklets", "labels"])
def test_every_initialisation_accepts_gaps(init):
    X, z = draw_groups(2, 120, 3)
    known = {"labels": np.where(np.arange(120) < 12, z, -1), "must_link": [[20, 21]]}
    z[[20, 21]] = z[20]
    X = empty_cells(np.random.default_rng(0), X, 0.2)
    model = ConstrainedGaussianMixture(3, init_params=init, random_state=0).fit(X, **known)
    assert np.isfinite(model.log_evidence_)
    assert (model.labels_[:12] == z[:12]).all()


def test_classifier_accepts_gaps():
    X, z = draw_groups(3, 200, 3, spread=5.0)
    X = empty_cells(np.random.default_rng(1), X, 0.3)
    y = np.where(np.arange(200) < 40, z, -1)
    for sizes in (1, 2):
        model = SemiSupervisedGaussianClassifier(components_per_class=sizes).fit(X, y)
        assert (model.predict(X) == z).mean() > 0.9
    # Columns may be empty in new points, though not in the points of a fit.
    np.testing.assert_allclose(model.predict_proba([[0.0, np.nan, np.nan]]).sum(), 1)


# ------------------------------------------------------------------ imputation


def test_impute_gives_conditional_expectations_and_draws():
    rng = np.random.default_rng(0)
    mixing = [[1.0, 2.0, 0.5], [0.0, 1.0, -1.5], [0.0, 0.0, 1.0]]
    X = empty_cells(rng, draw_groups(5, 60, 3, 2)[0] @ mixing, 0.3)
    model = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    theta, r = model.parameters_, model.predict_proba(X)
    components = list(zip(theta.means, theta.covariances, strict=True))
    filled = [[condition_on_observed(x, *moments)[1] for moments in components] for x in X]
    np.testing.assert_allclose(
        model.impute(X), np.einsum("nk,nkd->nd", r, filled), rtol=1e-7, atol=1e-9
    )
    # Draws for a row with two empty cells have the mean and covariance of the mixture.
    x = X[[np.flatnonzero(np.isnan(X).sum(axis=1) == 2)[0]]]
    draws = model.impute(np.repeat(x, 40_000, axis=0), draw=True, random_state=1)
    mean, r = model.impute(x)[0], model.predict_proba(x)[0]
    conditionals = [condition_on_observed(x[0], *moments)[1:] for moments in components]
    filled, remaining = map(np.array, zip(*conditionals, strict=True))
    apart = filled - mean
    covariance = np.einsum("k,kde->de", r, remaining + apart[:, :, None] * apart[:, None])
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.05 * max(1, covariance.max()))
    complete = draw_groups()[0][:5, [0, 1, 1]]
    np.testing.assert_array_equal(model.impute(complete), complete)


# ------------------------------------------------------------------ refused tables

COMPLETE = draw_groups()[0]
ONE_CELL = np.arange(60)[:, None] == [3, 70]
test_empty_rows_and_columns_and_infinity_are_refused = refused(
    ConstrainedGaussianMixture(2).fit,
    (np.where(np.arange(60)[:, None] == 7, np.nan, COMPLETE), "row 7 of X is empty"),
    (np.where([True, False], np.nan, COMPLETE), "column 0 of X is empty"),
    (np.where(ONE_CELL, np.inf, COMPLETE), "infinity"),
)
test_partial_fit_refuses_gaps = refused(
    ConstrainedGaussianMixture(2).partial_fit,
    (np.where(ONE_CELL, np.nan, COMPLETE), "which partial_fit cannot use"),
)
