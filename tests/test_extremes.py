"""Test extreme offsets, units, covariances and log-odds, and all containers of points.

Results are compared with those of the unshifted and unscaled problem, or with arithmetic of 60
digits. If rounding or overflow makes a correct result impossible, fits must raise a ValueError.

Letters: s: factor of the data, which multiplies variances by s² and adds -D log s to
log-densities; eps = 2^-52: relative rounding error of one operation.
"""

import itertools
import warnings
from functools import cache
from tempfile import TemporaryFile

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
from fuzz import points
from sklearn.base import clone

import cgmm
from cgmm.decide import AnnotatorMixture, AnswerSearch
from cgmm.mixture import POOLINGS, ConstrainedMixture, e_step, from_responsibilities, log_density

# The coordinates are multiples of 2^-20, so that an offset of 1e8 can be added exactly.
BLOBS = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 0.6]
BLOBS += np.repeat([[0.0, 0.0], [7.0, 1.0], [2.0, 8.0]], 20, axis=0)
BLOBS = np.round(BLOBS * 2**20) / 2**20
CLASSES = np.repeat([0, 1, 2], 20)
MUST = np.array([[0, 1], [1, 2], [20, 21], [22, 23], [40, 41], [42, 43], [44, 45]])
CANNOT = np.array([[0, 20], [20, 40], [5, 47], [30, 50], [3, 30]])
ODDS = np.array([[6, 7, 2.0], [26, 8, -1.5], [9, 49, 0.3], [27, 9, -0.2]])
PARTIAL_LABELS = np.where(np.arange(60) % 3 == 0, CLASSES, -1)
KNOWN = {"must_link": MUST, "cannot_link": CANNOT, "preferences": ODDS, "labels": PARTIAL_LABELS}
LINKS = {"must_link": MUST, "cannot_link": CANNOT}
SHORT = {"tol": 0.0, "max_iter": 5, "random_state": 0}
# EM is compared after five iterations, before it converges.
pytestmark = pytest.mark.filterwarnings("ignore:EM did not converge")


# ---------------------------------------------------------------------------- offsets and units


def make_mixture(covariance_type: str):
    """Return a function that makes a mixture for data with the factor s."""
    return lambda s: cgmm.ConstrainedGaussianMixture(
        3, covariance_type=covariance_type, reg_covar=1e-6 * s * s, **SHORT
    )


# For each case: a function that makes the estimator for data with the factor s, and relations.
ESTIMATORS = {
    **{f"{name} mixture": (make_mixture(name), KNOWN) for name in sorted(POOLINGS)},
    "mixture, table with gaps": (make_mixture("full"), KNOWN),
    "mixed mixture, table with gaps": (
        lambda s: cgmm.MixedMixture(3, reg_covar=1e-6 * s * s, **SHORT),
        KNOWN,
    ),
    "classifier": (
        lambda s: cgmm.SemiSupervisedGaussianClassifier(reg_covar=1e-6 * s * s),
        {"y": PARTIAL_LABELS, "cannot_link": CANNOT},
    ),
    "COPKMeans": (lambda s: cgmm.COPKMeans(3, random_state=0), LINKS),
    "PCKMeans": (lambda s: cgmm.PCKMeans(3, w=3.0 * s * s, random_state=0), LINKS),
    "RCA": (lambda s: cgmm.RCA(), {"must_link": MUST}),
    "RCA to one dimension": (lambda s: cgmm.RCA(1), {"must_link": MUST}),
    "OnlineRCA": (lambda s: cgmm.OnlineRCA(random_state=0), {"must_link": MUST}),
    "MMC": (lambda s: cgmm.MMC(), LINKS),
    "diagonal MMC": (lambda s: cgmm.MMC(diagonal=True), LINKS),
}


@cache
def fit_transformed(name: str, s: float = 1.0, offset: float = 0.0) -> dict[str, np.ndarray]:
    """Fit an estimator to s X + offset, and return its results in the units of X."""
    (make, known), X = ESTIMATORS[name], make_points(name)
    model = make(s).fit(s * X + offset, **known)
    if hasattr(model, "components_"):
        return {"images": s * (X - X[0]) @ model.components_.T}
    if hasattr(model, "cluster_centers_"):
        return {
            "labels": model.labels_,
            "centres": (model.cluster_centers_ - offset) / s,
            "history": model.history_ / s / s,
        }
    model = getattr(model, "mixture_", model)
    return {
        "labels": model.labels_,
        "responsibilities": model.responsibilities_,
        "means": (model.means_ - offset) / s,
        "covariances": model.covariances_ / s / s,
        "history": model.history_ + np.isfinite(X).sum() * np.log(s),
    }


@pytest.mark.parametrize(
    ("s", "offset"), [(1.0, 1e8), (2.0**490, 0.0), (2.0**-490, 0.0), (1e140, 0.0), (1e-140, 0.0)]
)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_fit_does_not_depend_on_offset_and_units(name, s, offset):
    original, transformed = fit_transformed(name), fit_transformed(name, s, offset)
    for key, value in original.items():
        # An offset of 1e8 rounds the means by 2e-8, which changes the evidence near its maximum by
        # the square of that.
        rtol = 1e-8 if key == "history" else 1e-6
        np.testing.assert_allclose(transformed[key], value, rtol=rtol, atol=1e-7, err_msg=key)


def test_an_offset_that_leaves_too_few_digits_is_refused():
    X = BLOBS.copy()
    X[:, 1] = np.round(X[:, 1]) - 1e16
    with pytest.raises(ValueError, match=r"column 1 spans .* near -1e\+16.* 2 apart.*Subtract"):
        make_mixture("full")(1.0).fit(X)


def test_evidence_rises_if_an_offset_leaves_just_enough_digits():
    """Rounding by half a step changes a mean by 1 / 200 of a standard deviation of 100 steps.

    So the evidence of a point may fall by ½ (1 / 200)².
    """
    # Numbers near 1e14 are multiples of 2^-6; the second column spans 1100 of these steps.
    wide = np.round(BLOBS[:, 1] / np.ptp(BLOBS[:, 1]) * 1100) / 64
    X = np.column_stack([BLOBS[:, 0], wide + 1e14])
    model = make_mixture("full")(0.0).set_params(max_iter=30).fit(X, **KNOWN)
    assert np.diff(model.history_).min() > -60 * 0.5 / 200**2
    # A large reg_covar makes rounding negligible, even if it is not small relative to the data.
    wide = np.column_stack([1e4 * BLOBS[:, 0], np.round(BLOBS[:, 1]) + 1e16])
    model.set_params(reg_covar=1e7).fit(wide, **KNOWN)
    with pytest.raises(ValueError, match="too few digits"):
        model.set_params(reg_covar=1e6).fit(wide)


@pytest.mark.parametrize(("s", "cause"), [(1e200, "overflow"), (1e-200, "vanish")])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_values_whose_squares_overflow_or_vanish_are_refused(name, s, cause):
    make, known = ESTIMATORS[name]
    with pytest.raises(ValueError, match=rf"column . spans .*({cause})"):
        make(1.0 if "Means" in name else 0.0).fit(make_points(name) * s, **known)


def test_large_codes_of_categories_are_refused():
    X = np.array([[0, 1], [1, 1], [0, 0], [1, 0]]) * [1, 10**12]
    with pytest.raises(ValueError, match=r"feature 1 has the code 1000000000000.*OrdinalEncoder"):
        cgmm.ConstrainedCategoricalMixture(2).fit(X)
    X[:, 1] //= 10**7
    assert cgmm.ConstrainedCategoricalMixture(2, random_state=0).fit(X).n_categories_[1] == 100_001


# ---------------------------------------------------------------------------- arbitrary precision


def precise_log_density(x, mean, covariance) -> mpmath.mpf:
    """Compute log N(x | mean, covariance) in the precision of mpmath's context."""
    S = mpmath.matrix(covariance.tolist())
    apart = mpmath.matrix(x.tolist()) - mpmath.matrix(mean.tolist())
    square = (apart.T * mpmath.lu_solve(S, apart))[0]
    return -(len(x) * mpmath.log(2 * mpmath.pi) + mpmath.log(mpmath.det(S)) + square) / 2


to_mpf = np.vectorize(mpmath.mpf, otypes=[object])


def enumerate_posterior(unaries, prior, edges, weights):
    """Compute marginals and log-evidence from all assignments in mpmath's precision."""
    n, K = np.shape(unaries)
    z = np.array(list(itertools.product(range(K), repeat=n)))
    edge_sums = np.where(z[:, edges[:, 0]] == z[:, edges[:, 1]], weights, 0.0).sum(axis=1)
    z, edge_sums = z[edge_sums > -np.inf], edge_sums[edge_sums > -np.inf]
    exp = np.vectorize(mpmath.exp, otypes=[object])
    p, p_prior = (
        exp(np.array(logs)[np.arange(n), z].sum(axis=1) + edge_sums) for logs in (unaries, prior)
    )
    marginals = [[float(p[z[:, j] == k].sum() / p.sum()) for k in range(K)] for j in range(n)]
    return marginals, float(mpmath.log(p.sum()) - mpmath.log(p_prior.sum()))


# The edges of a network for each exact engine.
EDGES = {
    "independent": np.empty((0, 2), dtype=int),
    "pairs": np.array([[0, 1], [2, 3]]),
    "clique": np.array([[0, 1], [0, 2], [1, 2]]),
    "junction_tree": np.array([[0, 1], [1, 2], [0, 2], [2, 3]]),
}


@pytest.mark.each_value
@pytest.mark.parametrize("odds", [700.0, -700.0, 36.0, -np.inf])
@pytest.mark.parametrize("smallest", [1.0, 1e-8, 1e-12])
@pytest.mark.parametrize("name", EDGES)
def test_e_step_equals_arbitrary_precision(name, smallest, odds):
    """Vary the smallest eigenvalue of two covariances, and the log-odds of all relations."""
    edges = EDGES[name]
    odds = -np.inf if name == "clique" else odds
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    S = rotation @ np.diag([1.0, smallest]) @ rotation.T
    S = (S + S.T) / 2
    theta = cgmm.Parameters(
        np.array([0.6, 0.4 - 1e-9, 1e-9]), rng.normal(size=(3, 2)), np.stack([S, 4 * S, np.eye(2)])
    )
    # Points away from the thin Gaussians would have densities of zero.
    X = theta.means[[0, 1, 0, 1, 2]] + rotation[:, 0] * rng.normal(size=(5, 1))
    weights = np.full(len(edges), odds)
    side = cgmm.SideInformation.build(5, preferences=np.column_stack([edges, weights]))
    posterior = e_step(X, theta, side, cgmm.ENGINES[name](side.graph))
    with mpmath.workdps(60):
        prior = [mpmath.log(mpmath.mpf(p)) for p in theta.weights.tolist()]
        components = list(zip(prior, theta.means, theta.covariances, strict=True))
        unaries = [[p + precise_log_density(x, *moments) for p, *moments in components] for x in X]
        expected = enumerate_posterior(unaries, 5 * [prior], edges, weights)
    marginals, log_evidence = expected
    # Rounding x by eps changes (x - μ)ᵀ Σ⁻¹ (x - μ) by eps |x|² / smallest; log-odds of 700 are
    # rounded by 700 eps.
    slack = 1e-12 + 3e-15 / smallest
    np.testing.assert_allclose(posterior.responsibilities, marginals, rtol=0, atol=slack * 10)
    assert posterior.log_evidence == pytest.approx(log_evidence, rel=1e-12, abs=100 * slack)


# ---------------------------------------------------------------------------- near-singular


@pytest.mark.parametrize("reach", [1e3, 1e5, 1e7])
def test_log_density_of_a_tiny_component_in_wide_data_is_precise(reach):
    """Entries of x xᵀ are up to (reach / 1e-2)² times the squared distance from the tiny mean."""
    theta = cgmm.Parameters(
        np.array([0.5, 0.5]), np.array([[reach, -reach], [0.0, reach]]),
        np.array([[[1e-4, 3e-5], [3e-5, 2e-4]], np.eye(2) * reach**2]),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    X = np.concatenate([theta.means[0] + 0.02 * rng.normal(size=(20, 2)), reach * np.eye(2)])
    with mpmath.workdps(60):
        components = list(zip(*theta[1:], strict=True))
        expected = [[float(precise_log_density(x, *moments)) for moments in components] for x in X]
    np.testing.assert_allclose(log_density(X, theta), expected, rtol=1e-11)


@pytest.mark.parametrize("thin", [1e-4, 1e-6, 1e-7])
def test_moments_of_a_thin_plane_equal_arbitrary_precision(thin):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ np.array([[1.0, 1.0], [-thin, thin]]) + 3
    r = rng.dirichlet([1, 1], 40)
    theta = from_responsibilities(X, r, POOLINGS["full"])
    with mpmath.workdps(60):
        for k in range(2):
            w, rows = to_mpf(r[:, k]), to_mpf(X)
            centred = rows - w @ rows / w.sum()
            expected = float(w @ (centred[:, 0] - centred[:, 1]) ** 2)
            S = theta.covariances[k] * r[:, k].sum()
            across = S[0, 0] - S[0, 1] - S[1, 0] + S[1, 1]
            # The entries are rounded by eps, which is not small relative to their difference.
            assert across == pytest.approx(expected, rel=1e-9, abs=40 * 40 * 2**-52)


@pytest.mark.parametrize(("seed", "n_points"), [(0, 40), (1, 40), (0, 4000)])
def test_a_plane_too_thin_for_its_covariance_is_refused(seed, n_points):
    """A variance of 1e-20 across the plane is lost in a covariance matrix with entries of one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_points, 1)) + 1e-10 * rng.normal(size=(n_points, 2))
    with pytest.raises(ValueError, match=r"component . is not positive definite.*reg_covar"):
        cgmm.ConstrainedGaussianMixture(1, reg_covar=0.0).fit(X)
    assert np.isfinite(cgmm.ConstrainedGaussianMixture(1).fit(X).log_evidence_)


# ---------------------------------------------------------------------------- containers of X


def map_to_file(X: np.ndarray) -> np.ndarray:
    """Return a copy of the points that is mapped to a temporary file."""
    mapped = np.memmap(TemporaryFile(), dtype=float, mode="w+", shape=X.shape)  # noqa: SIM115
    mapped[:] = X
    return mapped


LAYOUTS = points.LAYOUTS | {"memory-mapped": map_to_file}
MODELS = {
    **{name: (make(1.0), known) for name, (make, known) in ESTIMATORS.items()},
    "categorical": (cgmm.ConstrainedCategoricalMixture(3, random_state=0), KNOWN),
    "mixed, table with gaps": (
        cgmm.MixedMixture(3, categorical_features=[1], **SHORT).set_params(tol=1e-3),
        KNOWN,
    ),
}


def collect_results(model, X) -> dict[str, np.ndarray]:
    """Return all numeric attributes of a fitted model, and the results of its methods for X."""
    results = {
        name: value for name, value in vars(model).items()
        if name.endswith("_") and np.asarray(value).dtype.kind in "biuf"
    }  # fmt: skip
    # scikit-learn warns if a model was fitted to a table with names, and X has none.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        for method in ("predict", "predict_proba", "transform", "score_samples"):
            if hasattr(model, method):
                results[method] = getattr(model, method)(X)
    return results


def make_points(name: str) -> np.ndarray:
    """Return the points for a model, with categories or empty cells if it needs them."""
    codes = np.round(np.clip(BLOBS / 3, 0, 3))
    mixed = np.column_stack([BLOBS[:, 0], codes[:, 1]])
    X = {"categorical": codes, "mixed, table with gaps": mixed}.get(name, BLOBS).copy()
    if "gaps" in name:
        X[::6, 0], X[1::6, 1] = np.nan, np.nan
    return X


@cache
def fit_in_layout(name: str, layout: str | None = None) -> dict[str, np.ndarray]:
    """Fit a model to points in a container, and return its results."""
    (model, known), X = MODELS[name], make_points(name)
    container = LAYOUTS[layout](X.copy()) if layout else X
    results = collect_results(clone(model).fit(container, **known), X)
    # The fit must not change the points that it is given.
    np.testing.assert_array_equal(np.array(container, dtype=float), X)
    return results


@pytest.mark.each_value
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MODELS)
def test_fit_does_not_depend_on_the_container_of_points(name, layout):
    expected, results = fit_in_layout(name), fit_in_layout(name, layout)
    assert expected.keys() == results.keys()
    for key, value in expected.items():
        assert np.asarray(results[key]).dtype == np.asarray(value).dtype
        # Sums in another order of memory are rounded differently.
        np.testing.assert_allclose(results[key], value, rtol=1e-9, atol=1e-9, err_msg=key)


def test_side_information_in_data_frames_equals_arrays():
    model = cgmm.ConstrainedGaussianMixture(3, random_state=0)
    relations = LINKS | {"preferences": ODDS}
    expected = clone(model).fit(BLOBS, **relations).responsibilities_
    for frame in (pd.DataFrame, pl.DataFrame):
        tables = {name: frame(rows) for name, rows in relations.items()}
        result = clone(model).fit(BLOBS, **tables).responsibilities_
        np.testing.assert_array_equal(result, expected)


ANSWERS = [[0, 1, 1], [20, 21, 1], [0, 20, 0], [40, 5, 0], [41, 42, 1], [22, 44, 0]]
GAUSSIAN = cgmm.ConstrainedGaussianMixture(3, reg_covar=0.1, random_state=0)
IGNORE_Y = ConstrainedMixture, cgmm.COPKMeans, cgmm.PCKMeans
DECIDING = {
    "AnswerSearch": (AnswerSearch(GAUSSIAN, {"n_components": [2, 3]}, n_folds=2), ANSWERS),
    "AnnotatorMixture": (AnnotatorMixture(GAUSSIAN, n_init=2), ANSWERS),
}


@pytest.mark.parametrize("name", [*MODELS, *DECIDING])
def test_all_estimators_treat_y_and_random_state_in_the_same_way(name):
    """Estimators use y or warn that they ignore it, and accept all kinds of ``random_state``."""
    model, known = (MODELS | DECIDING)[name]
    known, X = known if isinstance(known, dict) else {"answers": known}, make_points(name)
    if name in MODELS:
        with warnings.catch_warnings(record=True, action="always") as caught:
            clone(model).fit(X, y=PARTIAL_LABELS)
        warned = any("y is not read" in str(warning.message) for warning in caught)
        assert warned == isinstance(model, IGNORE_Y)
    if "random_state" in model.get_params(deep=False):
        names = set()
        for source in (int, np.random.RandomState, np.random.default_rng):
            first, second = (
                collect_results(clone(model).set_params(random_state=source(5)).fit(X, **known), X)
                for _ in range(2)
            )
            np.testing.assert_equal(first, second)
            names.add(frozenset(first))
        assert len(names) == 1


def test_every_public_estimator_is_tested_here():
    estimators = {name for name in cgmm.__all__ if hasattr(getattr(cgmm, name), "fit")}
    assert {type(model).__name__ for model, _ in MODELS.values()} == estimators
