"""The retrieval experiments of barhillel2005, Figs. 4 to 7. Chapters 12 and 13."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from cgmm.datasets import Dataset
from cgmm.metric_learning import MMC, RCA, cfld, total_covariance, within_chunklet_covariance
from cgmm.metrics import cumulative_neighbour_purity
from cgmm.network import SideInformation
from cgmm.numerics import FloatArray, IntArray
from cgmm.replicate.design import Result, attempt
from cgmm.scenarios import Relations, teachers

LIGHT = ("within_over_between", "remaining")

# A curve of purity, as far as there are neighbours of one's own class.
NEIGHBOURS = (1, 2, 4, 8, 16, 32, 63)

PURITY = tuple(f"purity_{k}" for k in NEIGHBOURS)

N_REDUCED = 30  # dimensions after Fisher's discriminant


def taught(y: IntArray, share: float, rng: np.random.Generator) -> Relations:
    """Relations of teachers who are given a share of the points, two for each class at a time.

    [barhillel2005, sect. 8.1.2], r = L / M = 2.
    """
    L = 2 * len(np.unique(y))
    return teachers(y, max(1, round(share * len(y) / L)), L, minimal=True, random_state=rng)


def within_over_between(X: FloatArray, y: IntArray) -> float:
    """Variance within classes over variance between them, both summed over dimensions.

    Parameters
    ----------
    X : (N, D) array
        The points.
    y : (N,) int array
        Their classes; at least two, with different means.

    Returns
    -------
    float
        tr S_w / tr (S_t - S_w). Turning the axes does not change it, a change of metric does.

    Examples
    --------
    >>> within_over_between(np.array([[-3.0], [-1.0], [1.0], [3.0]]), np.array([0, 0, 1, 1]))
    0.25
    """
    within = np.trace(within_chunklet_covariance(X, y))
    return float(within / (np.trace(total_covariance(X)) - within))


def purity(X: FloatArray, y: IntArray) -> dict[str, float]:
    """Cumulative neighbour purity at a few lengths.

    Examples
    --------
    >>> y = np.repeat([0, 1], 40)
    >>> purity(y[:, None] + np.linspace(0, 0.1, 80)[:, None], y)["purity_1"]
    1.0
    """
    curve = cumulative_neighbour_purity(X, y, max(NEIGHBOURS))
    return dict(zip(PURITY, curve[np.array(NEIGHBOURS) - 1].tolist(), strict=True))


# ---------------------------------------------------------------------------- purity


def _fld(X: FloatArray, y: IntArray) -> FloatArray:
    """Fisher's discriminant of all labels, as it is used without whitening: unit-length rows."""
    return _unwhitened(X, y, len(np.unique(y)) - 1)


def _unwhitened(X: FloatArray, chunklets: IntArray, n_components: int) -> FloatArray:
    within = within_chunklet_covariance(X, chunklets)
    rows = cfld(within, total_covariance(X), n_components).rows
    # The same subspace with an orthonormal basis: what is projected keeps its scale.
    return X @ np.linalg.qr(rows.T)[0]


def _chunklets_of(must_link: IntArray, n: int) -> IntArray:
    """(n,) chunklet of each point, -1 for none."""
    node = SideInformation.build(n, must_link=must_link).node_of
    return np.where(np.bincount(node)[node] > 1, node, -1)


def _purity_of(transformed: Callable[[], FloatArray], y: IntArray) -> dict[str, float]:
    return purity(transformed(), y)


def _purities(methods: dict[str, Callable[[], FloatArray]], y: IntArray) -> Iterator[Result]:
    for name, transformed in methods.items():
        yield from attempt(name, PURITY, partial(_purity_of, transformed, y))


def figure_4(data: Dataset, share: float, rng: np.random.Generator) -> Iterator[Result]:
    """Neighbour purity of RCA between PCA and the supervised discriminant.

    The discriminant of M classes has M - 1 dimensions; RCA reduces to thirty, as the paper does.
    With share 1 all labels are known, and RCA is the whitened discriminant.
    """
    X, y = data.X, data.y
    if share == 1:
        n = len(np.unique(y)) - 1
        methods = {
            "PCA": lambda: X,
            "FLD": lambda: _fld(X, y),
            "FLD + RCA": lambda: RCA(n).fit(X, y).transform(X),
        }
    else:
        must_link = taught(y, share, rng).must_link
        methods = {"RCA": lambda: RCA(N_REDUCED).fit(X, must_link=must_link).transform(X)}
    yield from _purities(methods, y)


def figure_5(
    data: Dataset, share: float, n_dims: int, rng: np.random.Generator
) -> Iterator[Result]:
    """How much the lights still tell images of a person apart, beside how far persons are apart.

    Eigenfaces are orthonormal: the distance between two remade images is that between their
    coefficients, and no image is needed to measure it. "remaining" is the ratio after RCA over the
    ratio in as many principal components.
    """
    X, y = data.X, data.y
    must_link = taught(y, share, rng).must_link
    reduced = RCA(None if n_dims == X.shape[1] else n_dims)
    before = within_over_between(X[:, :n_dims], y)
    yield Result("PCA", LIGHT[0], before)

    def fit() -> dict[str, float]:
        after = within_over_between(reduced.fit(X, must_link=must_link).transform(X), y)
        return dict(zip(LIGHT, (after, after / before), strict=True))

    yield from attempt("RCA", LIGHT, fit)


def figure_6(data: Dataset, share: float, rng: np.random.Generator) -> Iterator[Result]:
    """The two steps of RCA apart: reduction by cFLD, and whitening."""
    X, y = data.X, data.y
    must_link = taught(y, share, rng).must_link
    chunklets = _chunklets_of(must_link, len(y))
    methods = {
        "original": lambda: X,
        "RCA": lambda: RCA().fit(X, must_link=must_link).transform(X),
        "cFLD": lambda: _unwhitened(X, chunklets, N_REDUCED),
        "cFLD + RCA": lambda: RCA(N_REDUCED).fit(X, must_link=must_link).transform(X),
    }
    yield from _purities(methods, y)


def figure_7(data: Dataset, n_dims: int, rng: np.random.Generator) -> Iterator[Result]:
    """RCA and the metric of Xing et al., in all 60 dimensions or in 30 from cFLD; 30 % taught."""
    X, y = data.X, data.y
    relations = taught(y, 0.3, rng)
    if n_dims < X.shape[1]:
        X = _unwhitened(X, _chunklets_of(relations.must_link, len(y)), n_dims)
    must_link = relations.must_link
    methods = {
        "original": lambda: X,
        "RCA": lambda: RCA().fit(X, must_link=must_link).transform(X),
        "Xing": lambda: MMC(tol=1e-3).fit(X, **relations._asdict()).transform(X),
    }
    yield from _purities(methods, y)
