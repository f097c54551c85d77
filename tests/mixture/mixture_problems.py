"""Problems for the tests of mixtures: grouped points, side information, families of components."""

import numpy as np
import pytest

from cgmm.mixture import (
    POOLINGS,
    CategoricalParameters,
    Categories,
    Parameters,
    from_responsibilities,
    one_hot,
    with_gaps,
)
from cgmm.mixture.class_mixture import ClassParameters, ClassPooling
from cgmm.mixture.mixed import MixedFamily, MixedParameters, MixedPoints

# "full to diag" begins with matrices: densities and sums of squares share no statistics there.
# In the last four some cells are empty.
GAPS = ["full with gaps", "tied with gaps", "diag with gaps", "mixed with gaps"]
FAMILIES = [*POOLINGS, "full to diag", "classes", "categorical", *GAPS]
KINDS = ["nothing", "labels", "allowed", "chunklets", "cannot", "preferences", "all"]


def groups(seed=0, n_points=60, n_dims=2, n_components=3, spread=3.0):
    """Return points about random centres and the group of each; no group is empty."""
    rng = np.random.default_rng(seed)
    z = np.concatenate([np.arange(n_components), rng.integers(n_components, size=n_points)])
    centres = spread * rng.normal(size=(n_components, n_dims))
    return centres[z[:n_points]] + rng.normal(size=(n_points, n_dims)), z[:n_points]


def random_mixture(rng, n_components, n_dims, *, scale=1.0):
    """Return random parameters without nearly singular covariances."""
    factors = rng.normal(size=(n_components, n_dims, n_dims)) * scale
    covariances = factors @ factors.transpose(0, 2, 1) + 0.3 * scale**2 * np.eye(n_dims)
    weights = rng.dirichlet(np.ones(n_components))
    return Parameters(weights, rng.normal(size=(n_components, n_dims)) * 3 * scale, covariances)


def what_is_known(rng, z, kind):
    """Return side information, true but for preferences, small enough for exact inference."""
    n, n_components = len(z), z.max() + 1
    some, by_group = rng.permutation(n), np.argsort(z, kind="stable")
    same = by_group[: n // 3 * 2].reshape(-1, 2)[rng.permutation(n // 3)]
    same = same[z[same[:, 0]] == z[same[:, 1]]]
    apart = some[: n // 2 * 2].reshape(-1, 2)
    apart = apart[z[apart[:, 0]] != z[apart[:, 1]]]
    odds = np.column_stack([some[: n // 4 * 2].reshape(-1, 2), rng.normal(size=n // 4)])
    labels = np.where(rng.uniform(size=n) < 0.2, z, -1)
    own = np.eye(n_components, dtype=bool)[z]
    return {
        "nothing": {},
        "labels": {"labels": labels},
        "allowed": {"labels": (rng.uniform(size=(n, n_components)) < 0.5) | own},
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


def regularise(family, reg_covar):
    """Return the family with this reg_covar, or unchanged if it has no covariances."""
    if isinstance(family, ClassPooling):
        return family._replace(pool=regularise(family.pool, reg_covar))
    if isinstance(family, MixedFamily):
        return MixedFamily(tuple(regularise(part, reg_covar) for part in family.families))
    return family if isinstance(family, Categories) else family._replace(reg_covar=reg_covar)


def points_and_start(rng, family, n_points=60, n_components=3):
    """Return points, parameters to start from, and the family."""
    N, K = n_points, n_components
    if family == "mixed with gaps":
        pairs = [points_and_start(rng, of, N, K) for of in ("full with gaps", "categorical")]
        points, thetas, families = zip(*pairs, strict=True)
        theta = MixedParameters(thetas[0].weights, thetas)
        return MixedPoints(points, 4), theta, MixedFamily(families)
    if family in GAPS:
        X, theta, pool = points_and_start(rng, family.split()[0], N, K)
        is_empty = np.arange(2) == rng.integers(5, size=(N, 1))
        return with_gaps(np.where(is_empty, np.nan, X)), theta, pool
    if family == "categorical":
        sizes = np.array([2, 4])
        X = one_hot(np.column_stack([rng.integers(size, size=N) for size in sizes]), sizes)
        p = np.concatenate([rng.dirichlet(np.ones(size), K).T for size in sizes]).T
        return X, CategoricalParameters(rng.dirichlet(np.ones(K)), p), Categories(tuple(sizes))
    # Points near zero or far from it, components wide or tiny: both formulas are used.
    scale = 10.0 ** rng.integers(-4, 1, size=K)[rng.integers(K, size=N), None]
    X = scale * rng.normal(size=(N, 2)) + rng.normal(size=2) * rng.integers(0, 2) * 100
    start, end = {"classes": ("full", "full"), "full to diag": ("full", "diag")}.get(
        family, (family, family)
    )
    n_parts = K + 2 if family == "classes" else K
    r = rng.dirichlet(np.ones(n_parts), N)
    theta = from_responsibilities(X, r, POOLINGS[start], reg_covar=1e-3)
    if family != "classes":
        return X, theta, POOLINGS[end]
    sizes = (1, 3, *[1] * (K - 2))
    shares = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    theta = ClassParameters(np.full(K, 1 / K), theta.with_weights(shares), sizes)
    return X, theta, ClassPooling(POOLINGS[end], sizes)


def assert_same_theta(one, other, **tolerance):
    """Compare two sets of parameters number by number."""
    for here, there in zip(one, other, strict=True):
        if isinstance(here, tuple):
            assert_same_theta(here, there, **tolerance)
        else:
            np.testing.assert_allclose(here, there, **tolerance)


def assert_same_fit(one, copied, times=1):
    """Compare parameters, evidence and responsibilities, where the other fit repeats points."""
    assert_same_theta(one.parameters_, copied.parameters_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.history_, copied.history_, rtol=1e-10)
    assert one.log_evidence_ == pytest.approx(copied.log_evidence_, rel=1e-10)
    assert one.lower_bound_ == pytest.approx(copied.lower_bound_, rel=1e-10)
    assert one.bic() == pytest.approx(copied.bic(), rel=1e-10)
    r = np.repeat(one.responsibilities_, times, axis=0)
    np.testing.assert_allclose(r, copied.responsibilities_, atol=1e-8)
    np.testing.assert_array_equal(np.repeat(one.labels_, times), copied.labels_)
