"""Test tables with empty cells: exact marginals, conditional moments, starts, imputation."""

import numpy as np
import pytest
from mixture_problems import groups, random_mixture
from refusals import refused
from scipy.stats import multivariate_normal

from cgmm import ConstrainedGaussianMixture, SemiSupervisedGaussianClassifier
from cgmm.metrics import matched_accuracy
from cgmm.mixture import POOLINGS, Parameters, missing, with_gaps
from cgmm.mixture.missing import PointsWithGaps

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MEANS = np.array([[0.0, 0.0, 0.0], [4.0, 3.0, 0.0]])
COVARIANCES = np.array([
    [[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [[1.0, -0.5, 0.0], [-0.5, 1.0, 0.3], [0.0, 0.3, 1.0]],
])  # fmt: skip
TRUTH = Parameters(np.full(2, 0.5), MEANS, COVARIANCES)


def delete(rng, X, share):
    """Return the points without a share of their cells; each keeps one."""
    is_empty = rng.uniform(size=X.shape) < share
    is_empty[is_empty.all(axis=1), 0] = False
    return np.where(is_empty, np.nan, X)


def conditional(x, mean, covariance):
    """Return the log-density of the present cells, and mean and covariance of all given these."""
    o = ~np.isnan(x)
    inside = covariance[np.ix_(o, o)]
    regression = covariance[:, o] @ np.linalg.inv(inside)
    log_density = multivariate_normal(mean[o], inside).logpdf(x[o])
    spread = covariance - regression @ covariance[o]
    return log_density, mean + regression @ (x[o] - mean[o]), spread


# ------------------------------------------------------------------ oracles


@pytest.mark.parametrize("far", [0.0, 1e3])
@pytest.mark.parametrize("kind", POOLINGS)
def test_densities_and_moments_are_those_of_conditional_gaussians(kind, far):
    """Far from the means the quick formula has too few digits, and a direct one replaces it."""
    rng = np.random.default_rng(3)
    pool, theta = POOLINGS[kind], random_mixture(rng, 3, 4)
    shape = 3, 4
    own = pool.combine(np.ones(3), theta.covariances)
    theta = theta._replace(
        means=theta.means + far, covariances=pool.expand(pool.reduce(own), *shape)
    )
    X, r = delete(rng, rng.normal(size=(50, 4)), 0.3), rng.dirichlet(np.ones(3), size=50)
    densities, first, second = np.empty((50, 3)), np.zeros(shape), np.zeros((3, 4, 4))
    for i, k in np.ndindex(50, 3):
        found = conditional(X[i], theta.means[k], theta.full_covariances[k])
        densities[i, k], shift = found[0], found[1] - theta.means[k]
        first[k] += r[i, k] * shift
        second[k] += r[i, k] * (np.outer(shift, shift) + found[2])
    second = np.einsum("kdd->kd", second) if pool.diagonal else second
    second = second.sum(axis=0, keepdims=True) if pool.shared else second
    np.testing.assert_allclose(theta.log_density(with_gaps(X)), densities, rtol=1e-10)
    expected = r.sum(axis=0), first, second
    for ours, theirs in zip(pool.statistics(with_gaps(X), r, theta), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * abs(theirs).max())


def test_the_maximum_of_a_monotone_pattern_has_a_closed_form():
    """Anderson (1957): the second column regressed on the first, in the rows that have both."""
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


def test_a_complete_table_is_left_as_it_is():
    X = groups()[0]
    assert with_gaps(X) is X
    plain, other = TRUTH.means[:, :2], PointsWithGaps(X)
    theta = Parameters(np.full(2, 0.5), plain, COVARIANCES[:, :2, :2])
    np.testing.assert_allclose(theta.log_density(other), theta.log_density(X), rtol=1e-12)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_pieces_of_one_pattern_give_the_sums_of_the_whole_table(kind, monkeypatch):
    rng = np.random.default_rng(4)
    theta, r = random_mixture(rng, 3, 4), rng.dirichlet(np.ones(3), size=200)
    if kind == "diag":
        theta = theta._replace(covariances=theta.variances)
    X = with_gaps(delete(rng, rng.normal(size=(200, 4)), 0.4))
    found = [theta.log_density(X), *POOLINGS[kind].statistics(X, r, theta)]
    monkeypatch.setattr(missing, "BLOCK_CELLS", 1)
    assert len(list(X.pieces(3))) == X.n_patterns > 5
    pieces = [theta.log_density(X), *POOLINGS[kind].statistics(X, r, theta)]
    for whole, summed in zip(found, pieces, strict=True):
        np.testing.assert_allclose(summed, whole, rtol=1e-12, atol=1e-12)


def test_cells_missing_at_random_leave_estimates_unbiased():
    """Dropping rows, and filling in means, bias the mean and variance of the second column."""
    errors = {"gaps": [], "dropped": [], "filled": []}
    start = {"means_init": MEANS, "covariances_init": COVARIANCES, "weights_init": np.full(2, 0.5)}
    for seed in range(24):
        rng = np.random.default_rng(seed)
        z = rng.integers(2, size=400)
        X = MEANS[z] + np.einsum(
            "nij,nj->ni", np.linalg.cholesky(COVARIANCES)[z], rng.normal(size=(400, 3))
        )
        # A cell of the second column is empty where the first is large: missing at random. Given
        # the first column it must not depend on the component, which is not observed.
        X[(X[:, 0] % 4 < 2) & (rng.uniform(size=400) < 0.9), 1] = np.nan
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        tables = {"gaps": X, "dropped": X[~np.isnan(X).any(axis=1)], "filled": filled}
        for name, table in tables.items():
            theta = ConstrainedGaussianMixture(2, **start).fit(table).parameters_
            shift = (
                theta.means[0, 1],
                theta.covariances[0, 1, 1] - 1,
                theta.covariances[0, 0, 1] - 0.8,
            )
            errors[name].append(shift)
    bias = {name: np.mean(of, axis=0) for name, of in errors.items()}
    noise = np.std(errors["gaps"], axis=0) / np.sqrt(24)
    assert (abs(bias["gaps"]) < 3.5 * noise).all()
    assert abs(bias["dropped"][0]) > 0.3
    assert abs(bias["filled"]).max() > 0.3


# ------------------------------------------------------------------ fits


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_a_default_start_is_as_good_as_the_truth(share):
    rng, K = np.random.default_rng(0), 4
    X, z = groups(4, 300, 4, K, spread=4.0)
    X = delete(rng, X, share)
    truth = ConstrainedGaussianMixture(K, init_params=np.eye(K)[z]).fit(X)
    model = ConstrainedGaussianMixture(K, random_state=0).fit(X)
    assert model.log_evidence_ > truth.log_evidence_ - 1


def test_starts_do_not_depend_on_units():
    X = delete(np.random.default_rng(0), groups(1, 200, 3)[0], 0.2)
    one, other = (
        ConstrainedGaussianMixture(3, reg_covar=0, random_state=0, tol=1e-8).fit(X * scale)
        for scale in (1.0, [1e-4, 1e3, 1.0])
    )
    assert matched_accuracy(one.labels_, other.labels_) == 1


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random_from_data", "chunklets", "labels"])
def test_every_start_takes_gaps(init):
    X, z = groups(2, 120, 3)
    known = {"labels": np.where(np.arange(120) < 12, z, -1), "must_link": [[20, 21]]}
    z[[20, 21]] = z[20]
    X = delete(np.random.default_rng(0), X, 0.2)
    model = ConstrainedGaussianMixture(3, init_params=init, random_state=0).fit(X, **known)
    assert np.isfinite(model.log_evidence_)
    assert (model.labels_[:12] == z[:12]).all()


def test_classifier_and_predictions_take_gaps():
    X, z = groups(3, 200, 3, spread=5.0)
    X = delete(np.random.default_rng(1), X, 0.3)
    y = np.where(np.arange(200) < 40, z, -1)
    for sizes in (1, 2):
        model = SemiSupervisedGaussianClassifier(components_per_class=sizes).fit(X, y)
        assert (model.predict(X) == z).mean() > 0.9
    # One row: a column that is empty in it is no empty column of the fit.
    row = np.array([[X[0, 0] if X[0, 0] == X[0, 0] else 0.0, np.nan, np.nan]])
    np.testing.assert_allclose(model.predict_proba(row).sum(), 1)


# ------------------------------------------------------------------ imputation


def test_impute_gives_conditional_expectations_and_draws():
    rng = np.random.default_rng(0)
    correlate = [[1.0, 2.0, 0.5], [0.0, 1.0, -1.5], [0.0, 0.0, 1.0]]
    X = delete(rng, groups(5, 60, 3, 2)[0] @ correlate, 0.3)
    model = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    theta, r = model.parameters_, model.predict_proba(X)
    components = list(zip(theta.means, theta.covariances, strict=True))
    found = [[conditional(x, *of)[1] for of in components] for x in X]
    expected = np.einsum("nk,nkd->nd", r, found)
    np.testing.assert_allclose(model.impute(X), expected, rtol=1e-7, atol=1e-9)
    x = X[[np.flatnonzero(np.isnan(X).sum(axis=1) == 2)[0]]]
    draws = model.impute(np.repeat(x, 40_000, axis=0), draw=True, random_state=1)
    mean, spread = model.impute(x)[0], [conditional(x[0], *of)[2] for of in components]
    apart = np.array([conditional(x[0], *of)[1] for of in components]) - mean
    r = model.predict_proba(x)[0]
    total = np.einsum("k,kde->de", r, spread + apart[:, :, None] * apart[:, None])
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), total, atol=0.05 * max(1, total.max()))
    complete = groups()[0][:5, [0, 1, 1]]
    np.testing.assert_array_equal(model.impute(complete), complete)


# ------------------------------------------------------------------ what is refused

COMPLETE = groups()[0]
EMPTY = np.where(np.arange(60)[:, None] == 7, np.nan, COMPLETE)
test_tables_that_say_nothing_are_refused = refused(
    ConstrainedGaussianMixture(2).fit,
    (EMPTY, "row 7 of X is empty"),
    (np.where([True, False], np.nan, COMPLETE), "column 0 of X is empty"),
    (np.where(np.arange(60)[:, None] == [3, 70], np.inf, COMPLETE), "infinity"),
)
test_batches_with_gaps_are_refused = refused(
    ConstrainedGaussianMixture(2).partial_fit,
    (np.where(np.arange(60)[:, None] == [3, 70], np.nan, COMPLETE), "which partial_fit cannot use"),
)
