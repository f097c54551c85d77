"""Test extreme offsets, units, components and log-odds, and every way to store X.

What comes out is compared with the unshifted, unscaled problem by an exact law, with arbitrary
precision, or with a closed form. Where no floating-point answer exists the answer is a ValueError.

=====  ==================================================================
s      factor of the data: variances get s², log-densities -D log s
eps    2**-52, the relative rounding of one operation
=====  ==================================================================
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
from cgmm import (
    ENGINES,
    MMC,
    RCA,
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    COPKMeans,
    MixedMixture,
    OnlineRCA,
    Parameters,
    PCKMeans,
    SemiSupervisedGaussianClassifier,
    SideInformation,
)
from cgmm.decide import AnnotatorMixture, AnswerSearch
from cgmm.mixture import POOLINGS, ConstrainedMixture, e_step, from_responsibilities, log_density

# Sixty points in three groups; multiples of 2^-20, so that an offset of 1e8 is exact.
BLOBS = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 0.6]
BLOBS += np.repeat([[0.0, 0.0], [7.0, 1.0], [2.0, 8.0]], 20, axis=0)
BLOBS = np.round(BLOBS * 2**20) / 2**20
CLASSES = np.repeat([0, 1, 2], 20)
MUST = np.array([[0, 1], [1, 2], [20, 21], [22, 23], [40, 41], [42, 43], [44, 45]])
CANNOT = np.array([[0, 20], [20, 40], [5, 47], [30, 50], [3, 30]])
ODDS = np.array([[6, 7, 2.0], [26, 8, -1.5], [9, 49, 0.3], [27, 9, -0.2]])
PARTLY = np.where(np.arange(60) % 3 == 0, CLASSES, -1)
KNOWN = {"must_link": MUST, "cannot_link": CANNOT, "preferences": ODDS, "labels": PARTLY}
LINKS = {"must_link": MUST, "cannot_link": CANNOT}
SHORT = {"tol": 0.0, "max_iter": 5, "random_state": 0}
# EM is compared step by step before it converges.
pytestmark = pytest.mark.filterwarnings("ignore:EM did not converge")


# ---------------------------------------------------------------------------- offsets and units


def mixture(covariance_type: str):
    return lambda s: ConstrainedGaussianMixture(
        3, covariance_type=covariance_type, reg_covar=1e-6 * s * s, **SHORT
    )


# Every estimator, with settings for points in units 1/s as large, and its side information.
ESTIMATORS = {
    **{f"{name} mixture": (mixture(name), KNOWN) for name in sorted(POOLINGS)},
    "mixture, table with gaps": (mixture("full"), KNOWN),
    "mixed mixture, table with gaps": (
        lambda s: MixedMixture(3, reg_covar=1e-6 * s * s, **SHORT),
        KNOWN,
    ),
    "classifier": (
        lambda s: SemiSupervisedGaussianClassifier(reg_covar=1e-6 * s * s),
        {"y": PARTLY, "cannot_link": CANNOT},
    ),
    "COPKMeans": (lambda s: COPKMeans(3, random_state=0), LINKS),
    "PCKMeans": (lambda s: PCKMeans(3, w=3.0 * s * s, random_state=0), LINKS),
    "RCA": (lambda s: RCA(), {"must_link": MUST}),
    "RCA to one dimension": (lambda s: RCA(1), {"must_link": MUST}),
    "OnlineRCA": (lambda s: OnlineRCA(random_state=0), {"must_link": MUST}),
    "MMC": (lambda s: MMC(), LINKS),
    "diagonal MMC": (lambda s: MMC(diagonal=True), LINKS),
}


@cache
def found_in(name: str, s: float = 1.0, offset: float = 0.0) -> dict[str, np.ndarray]:
    """Return what an estimator finds in s X + offset, converted to the units of X."""
    (make, known), X = ESTIMATORS[name], points_for(name)
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
def test_offsets_and_units_change_nothing(name, s, offset):
    here, there = found_in(name), found_in(name, s, offset)
    for key, value in here.items():
        # The centre of the data is subtracted exactly; what is left of the offset is rounding of
        # means, eps * 1e8 = 2e-8, of which a maximum feels the square.
        rtol = 1e-8 if key == "history" else 1e-6
        np.testing.assert_allclose(there[key], value, rtol=rtol, atol=1e-7, err_msg=key)


def test_an_offset_that_leaves_no_digits_is_refused():
    X = BLOBS.copy()
    X[:, 1] = np.round(X[:, 1]) - 1e16
    with pytest.raises(ValueError, match=r"column 1 spans .* near -1e\+16.* 2 apart.*Subtract"):
        mixture("full")(1.0).fit(X)


def test_digits_that_just_suffice_let_the_evidence_rise():
    # The second column spans 1100 of the steps of 2^-6 in which numbers near 1e14 go.
    wide = np.round(BLOBS[:, 1] / np.ptp(BLOBS[:, 1]) * 1100) / 64
    X = np.column_stack([BLOBS[:, 0], wide + 1e14])
    model = mixture("full")(0.0).set_params(max_iter=30).fit(X, **KNOWN)
    # A mean is rounded by half a step, of some 100 in a deviation: ½ (1/200)² a point, at most.
    assert np.diff(model.history_).min() > -60 * 0.5 / 200**2
    # Beside a variance that is added, rounding need not be small beside that of the data.
    wide = np.column_stack([1e4 * BLOBS[:, 0], np.round(BLOBS[:, 1]) + 1e16])
    model.set_params(reg_covar=1e7).fit(wide, **KNOWN)
    with pytest.raises(ValueError, match="too few digits"):
        model.set_params(reg_covar=1e6).fit(wide)


@pytest.mark.parametrize(("s", "cause"), [(1e200, "overflow"), (1e-200, "vanish")])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_values_whose_squares_overflow_are_refused(name, s, cause):
    make, known = ESTIMATORS[name]
    with pytest.raises(ValueError, match=rf"column . spans .*({cause})"):
        make(1.0 if "Means" in name else 0.0).fit(points_for(name) * s, **known)


def test_categories_have_no_units_but_codes_too_large_are_refused():
    X = np.array([[0, 1], [1, 1], [0, 0], [1, 0]]) * [1, 10**12]
    with pytest.raises(ValueError, match=r"feature 1 has the code 1000000000000.*OrdinalEncoder"):
        ConstrainedCategoricalMixture(2).fit(X)
    X[:, 1] //= 10**7
    assert ConstrainedCategoricalMixture(2, random_state=0).fit(X).n_categories_[1] == 100_001


# ---------------------------------------------------------------------------- arbitrary precision


def exact_log_density(x, mean, covariance) -> mpmath.mpf:
    """Return log N(x | mean, covariance) with 60 digits."""
    S = mpmath.matrix(covariance.tolist())
    apart = mpmath.matrix(x.tolist()) - mpmath.matrix(mean.tolist())
    square = (apart.T * mpmath.lu_solve(S, apart))[0]
    return -(len(x) * mpmath.log(2 * mpmath.pi) + mpmath.log(mpmath.det(S)) + square) / 2


def exact_posterior(unaries, prior, edges, weights):
    """Return marginals and log-evidence by summing over all assignments with 60 digits."""
    n, K = len(unaries), len(unaries[0])
    shares, total, total_prior = [[mpmath.mpf(0)] * K for _ in range(n)], 0, 0
    for z in itertools.product(range(K), repeat=n):
        tie = sum(w for (a, b), w in zip(edges, weights, strict=True) if z[a] == z[b])
        if tie == -np.inf:
            continue
        weight = mpmath.exp(sum(unaries[j][z[j]] for j in range(n)) + tie)
        total_prior += mpmath.exp(sum(prior[j][z[j]] for j in range(n)) + tie)
        total += weight
        for j in range(n):
            shares[j][z[j]] += weight
    marginals = np.array([[float(p / total) for p in row] for row in shares])
    return marginals, float(mpmath.log(total) - mpmath.log(total_prior))


STRUCTURES = {
    "independent": np.empty((0, 2), dtype=int),
    "pairs": np.array([[0, 1], [2, 3]]),
    "clique": np.array([[0, 1], [0, 2], [1, 2]]),
    "junction_tree": np.array([[0, 1], [1, 2], [0, 2], [2, 3]]),
}


@pytest.mark.each_value
@pytest.mark.parametrize("odds", [700.0, -700.0, 36.0, -np.inf])
@pytest.mark.parametrize("smallest", [1.0, 1e-8, 1e-12])
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_e_step_equals_arbitrary_precision(name, smallest, odds):
    edges = STRUCTURES[name]
    odds = -np.inf if name == "clique" else odds
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    S = turn @ np.diag([1.0, smallest]) @ turn.T
    S = (S + S.T) / 2
    theta = Parameters(
        np.array([0.6, 0.4 - 1e-9, 1e-9]), rng.normal(size=(3, 2)), np.stack([S, 4 * S, np.eye(2)])
    )
    # Points near the thin sheets: elsewhere each density is a number with nothing to compare.
    X = theta.means[[0, 1, 0, 1, 2]] + turn[:, 0] * rng.normal(size=(5, 1))
    weights = np.full(len(edges), odds)
    side = SideInformation.build(5, preferences=np.column_stack([edges, weights]))
    found = e_step(X, theta, side, ENGINES[name](side.graph))
    with mpmath.workdps(60):
        prior = [[mpmath.log(mpmath.mpf(p)) for p in theta.weights.tolist()] for _ in X]
        unaries = [
            [
                prior[i][k] + exact_log_density(X[i], theta.means[k], theta.covariances[k])
                for k in range(3)
            ]
            for i in range(5)
        ]
        marginals, log_evidence = exact_posterior(unaries, prior, edges.tolist(), weights.tolist())
    # A rounding of x by eps moves (x - μ)ᵀ Σ⁻¹ (x - μ) by eps * |x|² / smallest; log-odds of 700
    # leave 700 eps.
    slack = 1e-12 + 3e-15 / smallest
    np.testing.assert_allclose(found.responsibilities, marginals, rtol=0, atol=slack * 10)
    assert found.log_evidence == pytest.approx(log_evidence, rel=1e-12, abs=100 * slack)


# ---------------------------------------------------------------------------- near-singular


@pytest.mark.parametrize("reach", [1e3, 1e5, 1e7])
def test_a_tiny_component_in_wide_data_keeps_its_digits(reach):
    # (reach / 1e-2)² is how much larger x xᵀ is than what is left of it near the tiny component.
    theta = Parameters(
        np.array([0.5, 0.5]), np.array([[reach, -reach], [0.0, reach]]),
        np.array([[[1e-4, 3e-5], [3e-5, 2e-4]], np.eye(2) * reach**2]),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    X = np.concatenate([theta.means[0] + 0.02 * rng.normal(size=(20, 2)), reach * np.eye(2)])
    with mpmath.workdps(60):
        truth = [
            [float(exact_log_density(x, m, S)) for m, S in zip(*theta[1:], strict=True)] for x in X
        ]
    # The data themselves have eps * reach of rounding, which Σ⁻¹ x multiplies; here they are exact.
    np.testing.assert_allclose(log_density(X, theta), truth, rtol=1e-11)


@pytest.mark.parametrize("thin", [1e-4, 1e-6, 1e-7])
def test_moments_of_a_thin_plane_equal_arbitrary_precision(thin):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ np.array([[1.0, 1.0], [-thin, thin]]) + 3
    r = rng.dirichlet([1, 1], 40)
    found = from_responsibilities(X, r, POOLINGS["full"])
    with mpmath.workdps(60):
        for k in range(2):
            w = [mpmath.mpf(v) for v in r[:, k].tolist()]
            rows = [[mpmath.mpf(v) for v in row] for row in X.tolist()]
            mean = [sum(a * x[d] for a, x in zip(w, rows, strict=True)) / sum(w) for d in (0, 1)]
            apart = [x[0] - mean[0] - x[1] + mean[1] for x in rows]
            truth = float(sum(a * v * v for a, v in zip(w, apart, strict=True)))
            S = found.covariances[k] * r[:, k].sum()
            across = S[0, 0] - S[0, 1] - S[1, 0] + S[1, 1]
            # The scatter's entries carry eps each; across the sheet little is left of them.
            assert across == pytest.approx(truth, rel=1e-9, abs=40 * 40 * 2**-52)


@pytest.mark.parametrize(("seed", "n_points"), [(0, 40), (1, 40), (0, 4000)])
def test_a_plane_too_thin_for_its_covariance_is_refused(seed, n_points):
    # Its variance across is 1e-20, of which nothing is left in a covariance with entries of one:
    # what Cholesky finds there is rounding, negative as often as not.
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n_points, 1)), 2, axis=1) + 1e-10 * rng.normal(
        size=(n_points, 2)
    )
    with pytest.raises(ValueError, match=r"component . is not positive definite.*reg_covar"):
        ConstrainedGaussianMixture(1, reg_covar=0.0).fit(X)
    assert np.isfinite(ConstrainedGaussianMixture(1).fit(X).log_evidence_)


# ---------------------------------------------------------------------------- how X is held


def memory_mapped(X: np.ndarray) -> np.ndarray:
    mapped = np.memmap(TemporaryFile(), dtype=float, mode="w+", shape=X.shape)  # noqa: SIM115
    mapped[:] = X
    return mapped


LAYOUTS = points.LAYOUTS | {"memory-mapped": memory_mapped}
MODELS = {
    **{name: (make(1.0), known) for name, (make, known) in ESTIMATORS.items()},
    "categorical": (ConstrainedCategoricalMixture(3, random_state=0), KNOWN),
    "mixed, table with gaps": (
        MixedMixture(3, categorical_features=[1], **SHORT).set_params(tol=1e-3),
        KNOWN,
    ),
}


def results(model, X) -> dict[str, np.ndarray]:
    """Return every fitted attribute that is numeric, and the results of methods on X."""
    found = {
        name: value for name, value in vars(model).items()
        if name.endswith("_") and np.asarray(value).dtype.kind in "biuf"
    }  # fmt: skip
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of X without names
        for method in ("predict", "predict_proba", "transform", "score_samples"):
            if hasattr(model, method):
                found[method] = getattr(model, method)(X)
    return found


def points_for(name: str) -> np.ndarray:
    codes = np.round(np.clip(BLOBS / 3, 0, 3))
    X = {
        "categorical": codes,
        "mixed, table with gaps": np.column_stack([BLOBS[:, 0], codes[:, 1]]),
    }
    X = X.get(name, BLOBS).copy()
    if "gaps" in name:
        X[::6, 0], X[1::6, 1] = np.nan, np.nan
    return X


@cache
def results_of(name: str, layout: str | None = None) -> dict[str, np.ndarray]:
    """Return results of a model on points that are stored in a certain way."""
    (model, known), X = MODELS[name], points_for(name)
    held = LAYOUTS[layout](X.copy()) if layout else X
    found = results(clone(model).fit(held, **known), X)
    np.testing.assert_array_equal(np.array(held, dtype=float), X)
    return found


@pytest.mark.each_value
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MODELS)
def test_the_container_of_x_does_not_matter(name, layout):
    truth, found = results_of(name), results_of(name, layout)
    assert truth.keys() == found.keys()
    for key, value in truth.items():
        assert np.asarray(found[key]).dtype == np.asarray(value).dtype
        # Sums along memory of another order round differently, once.
        np.testing.assert_allclose(found[key], value, rtol=1e-9, atol=1e-9, err_msg=key)


def test_side_information_in_frames_is_read_by_column():
    model = ConstrainedGaussianMixture(3, random_state=0)
    plain = clone(model).fit(BLOBS, must_link=MUST, cannot_link=CANNOT, preferences=ODDS)
    for frame in (pd.DataFrame, pl.DataFrame):
        other = clone(model).fit(
            BLOBS, must_link=frame(MUST), cannot_link=frame(CANNOT), preferences=frame(ODDS)
        )
        np.testing.assert_array_equal(other.responsibilities_, plain.responsibilities_)


ANSWERS = [[0, 1, 1], [20, 21, 1], [0, 20, 0], [40, 5, 0], [41, 42, 1], [22, 44, 0]]
GAUSSIAN = ConstrainedGaussianMixture(3, reg_covar=0.1, random_state=0)
UNREAD = ConstrainedMixture, COPKMeans, PCKMeans
DECIDING = {
    "AnswerSearch": (AnswerSearch(GAUSSIAN, {"n_components": [2, 3]}, n_folds=2), ANSWERS),
    "AnnotatorMixture": (AnnotatorMixture(GAUSSIAN, n_init=2), ANSWERS),
}


@pytest.mark.parametrize("name", [*MODELS, *DECIDING])
def test_y_and_random_state_mean_the_same_everywhere(name):
    """y is side information or not read, and any source of random numbers serves as a seed."""
    model, known = (MODELS | DECIDING)[name]
    known, X = known if isinstance(known, dict) else {"answers": known}, points_for(name)
    if name in MODELS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clone(model).fit(X, y=PARTLY)
        unread = isinstance(model, UNREAD)
        assert any("y is not read" in str(warning.message) for warning in caught) == unread
    if "random_state" in model.get_params(deep=False):
        names = set()
        for source in (int, np.random.RandomState, np.random.default_rng):
            one, again = (
                results(clone(model).set_params(random_state=source(5)).fit(X, **known), X)
                for _ in range(2)
            )
            np.testing.assert_equal(one, again)
            names.add(frozenset(one))
        assert len(names) == 1


def test_every_estimator_is_in_the_registry():
    estimators = {name for name in cgmm.__all__ if hasattr(getattr(cgmm, name), "fit")}
    assert {type(model).__name__ for model, _ in MODELS.values()} == estimators
