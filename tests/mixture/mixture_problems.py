"""Draw problems for the tests of mixtures: points, side information and families of components.

All tests of this folder that run over every family or every kind of side information use it.
"""

import numpy as np
import pytest

from cgmm import mixture
from cgmm.mixture.class_mixture import ClassParameters, ClassPooling
from cgmm.mixture.mixed import MixedFamily, MixedParameters, MixedPoints

# The points of these families have empty cells.
GAPS = ["full with gaps", "tied with gaps", "diag with gaps", "mixed with gaps"]
# "full to diag" starts a diagonal family from full matrices, so that the first E-step and the
# M-step after it use different statistics.
FAMILIES = [*mixture.POOLINGS, "full to diag", "classes", "categorical", *GAPS]
SIDE_INFORMATION = ["nothing", "labels", "allowed", "chunklets", "cannot", "preferences", "all"]


def draw_groups(seed=0, n_points=60, n_dims=2, n_components=3, spread=3.0):
    """Draw points (n_points, n_dims) around random centres; return them and their group numbers."""
    rng = np.random.default_rng(seed)
    z = np.concatenate([np.arange(n_components), rng.integers(n_components, size=n_points)])
    centres = spread * rng.normal(size=(n_components, n_dims))
    return centres[z[:n_points]] + rng.normal(size=(n_points, n_dims)), z[:n_points]


def draw_parameters(rng, n_components, n_dims, *, scale=1.0):
    """Draw parameters whose covariances are not nearly singular."""
    factors = rng.normal(size=(n_components, n_dims, n_dims)) * scale
    covariances = factors @ factors.transpose(0, 2, 1) + 0.3 * scale**2 * np.eye(n_dims)
    weights = rng.dirichlet(np.ones(n_components))
    return mixture.Parameters(
        weights, rng.normal(size=(n_components, n_dims)) * 3 * scale, covariances
    )


def draw_side_information(rng, z, kind):
    """Draw one kind of side information, small enough for exact inference.

    It agrees with the group numbers z, except for preferences, whose signs are random.
    """
    n, n_components = len(z), z.max() + 1
    shuffled, by_group = rng.permutation(n), np.argsort(z, kind="stable")
    same = by_group[: n // 3 * 2].reshape(-1, 2)[rng.permutation(n // 3)]
    same = same[z[same[:, 0]] == z[same[:, 1]]]
    apart = shuffled[: n // 2 * 2].reshape(-1, 2)
    apart = apart[z[apart[:, 0]] != z[apart[:, 1]]]
    odds = np.column_stack([shuffled[: n // 4 * 2].reshape(-1, 2), rng.normal(size=n // 4)])
    labels = np.where(rng.uniform(size=n) < 0.2, z, -1)
    true_class = np.eye(n_components, dtype=bool)[z]
    return {
        "nothing": {},
        "labels": {"labels": labels},
        "allowed": {"labels": (rng.uniform(size=(n, n_components)) < 0.5) | true_class},
        "chunklets": {"must_link": same},
        "cannot": {"cannot_link": apart, "must_link": same[:1]},
        "preferences": {"preferences": odds},
        "all": {
            "must_link": same[:9],
            "cannot_link": apart[:3],
            "labels": labels,
            "preferences": odds[:5],
        },
    }[kind]


def set_reg_covar(family, reg_covar):
    """Return a copy of the family with this ``reg_covar``; without covariances it is unchanged."""
    if isinstance(family, ClassPooling):
        return family._replace(pool=set_reg_covar(family.pool, reg_covar))
    if isinstance(family, MixedFamily):
        return MixedFamily(tuple(set_reg_covar(part, reg_covar) for part in family.families))
    return (
        family if isinstance(family, mixture.Categories) else family._replace(reg_covar=reg_covar)
    )


def draw_points_and_start(rng, family, n_points=60, n_components=3):
    """Draw points and initial parameters for a family given by name; return them and the family."""
    N, K = n_points, n_components
    if family == "mixed with gaps":
        pairs = [
            draw_points_and_start(rng, name, N, K) for name in ("full with gaps", "categorical")
        ]
        points, thetas, families = zip(*pairs, strict=True)
        theta = MixedParameters(thetas[0].weights, thetas)
        return MixedPoints(points, 4), theta, MixedFamily(families)
    if family in GAPS:
        X, theta, pool = draw_points_and_start(rng, family.split()[0], N, K)
        is_empty = np.arange(2) == rng.integers(5, size=(N, 1))
        return mixture.with_gaps(np.where(is_empty, np.nan, X)), theta, pool
    if family == "categorical":
        sizes = np.array([2, 4])
        X = mixture.one_hot(np.column_stack([rng.integers(size, size=N) for size in sizes]), sizes)
        p = np.concatenate([rng.dirichlet(np.ones(size), K).T for size in sizes]).T
        return (
            X,
            mixture.CategoricalParameters(rng.dirichlet(np.ones(K)), p),
            mixture.Categories(tuple(sizes)),
        )
    # Distances are computed by one of two formulas, depending on the distance of the points from
    # zero and on the width of the components; these draws use both.
    scale = 10.0 ** rng.integers(-4, 1, size=K)[rng.integers(K, size=N), None]
    X = scale * rng.normal(size=(N, 2)) + rng.normal(size=2) * rng.integers(0, 2) * 100
    start, end = {"classes": ("full", "full"), "full to diag": ("full", "diag")}.get(
        family, (family, family)
    )
    n_parts = K + 2 if family == "classes" else K
    r = rng.dirichlet(np.ones(n_parts), N)
    theta = mixture.from_responsibilities(X, r, mixture.POOLINGS[start], reg_covar=1e-3)
    if family != "classes":
        return X, theta, mixture.POOLINGS[end]
    sizes = (1, 3, *[1] * (K - 2))
    shares = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    theta = ClassParameters(np.full(K, 1 / K), theta.with_weights(shares), sizes)
    return X, theta, ClassPooling(mixture.POOLINGS[end], sizes)


def assert_same_parameters(actual, expected, **tolerance):
    """Check that two (nested) tuples of parameter arrays are equal up to a tolerance."""
    for ours, theirs in zip(actual, expected, strict=True):
        if isinstance(ours, tuple):
            assert_same_parameters(ours, theirs, **tolerance)
        else:
            np.testing.assert_allclose(ours, theirs, **tolerance)


def assert_same_fit(model, repeated, times=1):
    """Check that two fits are equal, where ``repeated`` has ``times[i]`` copies of point i."""
    assert_same_parameters(model.parameters_, repeated.parameters_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.history_, repeated.history_, rtol=1e-10)
    assert model.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-10)
    assert model.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-10)
    assert model.bic() == pytest.approx(repeated.bic(), rel=1e-10)
    r = np.repeat(model.responsibilities_, times, axis=0)
    np.testing.assert_allclose(r, repeated.responsibilities_, atol=1e-8)
    np.testing.assert_array_equal(np.repeat(model.labels_, times), repeated.labels_)
