"""The experiments of barhillel2005 on faces: whose pictures lie nearest? Figures 4 to 8.

Chapters 12 and 13. Letters, as in the book:

====  =====================================================================
N, D  images, and their dimensions: the principal components that are kept
M     classes: persons
k     points of a chunklet; neighbours that are looked at
====  =====================================================================

The paper's faces are 1920 images of thirty persons, centred by optical flow; ours are 640 of ten
persons, not centred. What needs no image, Figure 3, is run with thirty. The pictures of Figure 5
cannot be drawn, since our faces are principal components without the eigenfaces that belong to
them; what the pictures are printed to show is measured instead.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from cgmm import metric_learning
from cgmm.datasets import Dataset
from cgmm.metric_learning import MMC, RCA, variance_ratio
from cgmm.metrics import cumulative_neighbour_purity
from cgmm.network import SideInformation
from cgmm.numerics import FloatArray, IntArray
from reruns.barhillel2005 import taught, within_over_between
from reruns.design import Result, Results, Setting, attempt, attempt_each, cross, make_experiment

# Weights of the lights, and the share of them that remains.
LIGHT = ("within_over_between", "remaining")

# Lengths of a curve of purity, up to the number of neighbours of the same class.
NEIGHBOURS = (1, 2, 4, 8, 16, 32, 63)

PURITY = tuple(f"purity_{k}" for k in NEIGHBOURS)

# Dimensions after Fisher's discriminant: the number of persons in the paper, as its captions say,
# and the number in which our ten persons can differ.
REDUCED = (30, 9)


def purity(X: FloatArray, y: IntArray) -> dict[str, float]:
    """Return the cumulative neighbour purity at some lengths.

    Examples
    --------
    >>> y = np.repeat([0, 1], 40)
    >>> purity(y[:, None] + np.linspace(0, 0.1, 80)[:, None], y)["purity_1"]
    1.0
    """
    curve = cumulative_neighbour_purity(X, y, max(NEIGHBOURS))
    return dict(zip(PURITY, curve[np.array(NEIGHBOURS) - 1].tolist(), strict=True))


def figure_4(data: Dataset, share: float, n_dims: int, rng: Generator) -> Results:
    """Compare neighbour purity of PCA, RCA and the supervised discriminant.

    With share 1 all labels are known, and RCA is the whitened discriminant. "way" is how far RCA
    has come from PCA (0) to the discriminant of all labels (1), by 63 neighbours.
    """
    X, y = data.X, data.y
    if share == 1:
        methods = {
            "PCA": lambda: X,
            "FLD": lambda: _unwhitened(X, y, n_dims),
            "FLD + RCA": lambda: RCA(n_dims).fit(X, y).transform(X),
        }
        yield from attempt_each(methods, PURITY, lambda Z: purity(Z, y))
        return
    must_link = taught(y, share, rng).must_link
    start, end = (purity(Z, y)[PURITY[-1]] for Z in (X, _unwhitened(X, y, n_dims)))

    def fit() -> dict[str, float]:
        found = purity(RCA(n_dims).fit(X, must_link=must_link).transform(X), y)
        return found | {"way": (found[PURITY[-1]] - start) / (end - start)}

    yield from attempt("RCA", (*PURITY, "way"), fit)


def _unwhitened(X: FloatArray, chunklets: IntArray, n_components: int) -> FloatArray:
    """Return Fisher's discriminant without whitening: its rows have length one.

    [barhillel2005, sect. 6]: eigenvectors of S_w⁻¹ S_t. With all labels of M classes only M - 1 of
    them are told apart from the rest, whose eigenvalue is 1.
    """
    within = metric_learning.within_chunklet_covariance(X, chunklets)
    total = metric_learning.total_covariance(X)
    rows = metric_learning.cfld(within, total, n_components).rows
    return X @ (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T


def figure_5(data: Dataset, share: float, n_dims: int, rng: Generator) -> Results:
    """Compare the spread of a person's images over lights with the distance between persons.

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


def figure_6(data: Dataset, share: float, n_dims: int, rng: Generator) -> Results:
    """Separate the two steps of RCA: reduction by cFLD, and whitening."""
    X, y = data.X, data.y
    must_link = taught(y, share, rng).must_link
    chunklets = _nodes(must_link, len(y))
    methods = {
        "original": lambda: X,
        "RCA": lambda: RCA().fit(X, must_link=must_link).transform(X),
        "cFLD": lambda: _unwhitened(X, chunklets, n_dims),
        "cFLD + RCA": lambda: RCA(n_dims).fit(X, must_link=must_link).transform(X),
    }
    yield from attempt_each(methods, PURITY, lambda Z: purity(Z, y))


def _nodes(must_link: IntArray, n_points: int) -> IntArray:
    """Return (N,) chunklets of the points; those of one point contain no scatter."""
    return SideInformation.build(n_points, must_link=must_link).node_of


def figure_7(data: Dataset, n_dims: int, rng: Generator) -> Results:
    """Compare RCA and the metric of Xing et al., in 60 dimensions or in 30 from cFLD."""
    X, y = data.X, data.y
    relations = taught(y, 0.3, rng)
    if n_dims < X.shape[1]:
        X = _unwhitened(X, _nodes(relations.must_link, len(y)), n_dims)
    must_link = relations.must_link
    methods = {
        "original": lambda: X,
        "RCA": lambda: RCA().fit(X, must_link=must_link).transform(X),
        "Xing": lambda: MMC(tol=1e-3).fit(X, **relations._asdict()).transform(X),
    }
    yield from attempt_each(methods, PURITY, lambda Z: purity(Z, y))


def figure_8(data: Dataset, size: int, rng: Generator) -> Results:
    """Compare chunklet sizes for 30 % of the points: mean error over 63 neighbours, and bound.

    [barhillel2005, eq. 12]. "step" is what the error loses from chunklets of size - 1, cut from
    the same points, to these.
    """
    X, y = data.X, data.y
    drawn = rng.choice(len(y), round(0.3 * len(y)), replace=False)

    def error(size: int) -> float:
        Y = RCA().fit(X, cut(y, drawn, size)).transform(X)
        return 1 - float(cumulative_neighbour_purity(Y, y, max(NEIGHBOURS))[-1])

    def fit() -> dict[str, float]:
        found = error(size)
        return {"error": found} | ({"step": error(size - 1) - found} if size > 2 else {})

    yield from attempt("RCA", ("error", "step")[: size - 1], fit)
    yield Result("bound", "variance_ratio", size / (size - 1))
    n_chunklets = len(np.unique(cut(y, drawn, size))) - 1
    yield Result("exact", "variance_ratio", float(variance_ratio(size, n_chunklets)))


def cut(y: IntArray, drawn: IntArray, size: int) -> IntArray:
    """Return (N,) chunklets of the drawn points, each of one class; -1 for none.

    What remains of a class makes one more, smaller chunklet [barhillel2005, footnote 7].

    Examples
    --------
    >>> cut(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 3, 4]), 2)
    array([ 0,  0, -1,  1,  1, -1])
    """
    chunklets, n_chunklets = np.full(len(y), -1), 0
    for k in np.unique(y):
        ours = drawn[y[drawn] == k]
        for begin in range(0, len(ours) - 1, size):
            chunklets[ours[begin : begin + size]] = n_chunklets
            n_chunklets += 1
    return chunklets


FACES = ["faces"]
STEPS = cross(FACES, (0.1, 0.2, 0.3, 0.5, 0.75), REDUCED)
# All shares in one dimension come before the next dimension.
LIGHTS = tuple(Setting("faces", (q, D)) for D in (60, 30, 9) for q in (0.1, 0.3, 0.75))
SHARES = cross(FACES, (0.1, 0.3, 0.75, 1), REDUCED)
SOME, SIZES = cross(FACES, [0.3], [30]), cross(FACES, range(2, 11))
DIMENSIONS = cross(FACES, (60, 30))

# Name, function, realisations in the paper, design, and a part of it that runs in seconds.
EXPERIMENTS = (
    make_experiment("barhillel2005-fig4", figure_4, 50, SHARES, cross(FACES, (0.3, 1), [30])),
    make_experiment("barhillel2005-fig5", figure_5, 50, LIGHTS, SOME),
    make_experiment("barhillel2005-fig6", figure_6, 50, STEPS, SOME),
    make_experiment("barhillel2005-fig7", figure_7, 50, DIMENSIONS, DIMENSIONS[1:]),
    make_experiment("barhillel2005-fig8", figure_8, 50, SIZES, cross(FACES, (2, 6))),
)
