"""The experiments of barhillel2005 on chunklets, clustering and axes: Figures 1, 3, 10 and 11.

Those on faces are in :mod:`reruns.retrieval`. Chapters 12 and 13.

Letters, as in the book:

====  =====================================================================
N, D  points and dimensions
M     classes
L, T  points of one teacher, number of teachers; r = L / M = 2
K_c   connected components that must-links leave
====  =====================================================================
"""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np
from numpy.random import Generator

from cgmm.datasets import Dataset, load
from cgmm.kmeans import COPKMeans
from cgmm.metric_learning import MMC, RCA, total_covariance, within_chunklet_covariance
from cgmm.metrics import balanced_rand_index, cumulative_neighbour_purity, matched_accuracy
from cgmm.mixture import ConstrainedGaussianMixture, Parameters
from cgmm.network import SideInformation
from cgmm.numerics import FloatArray, IntArray
from cgmm.scenarios import Relations, equal_chunklets, pairs_until, teachers
from reruns.design import (
    Result,
    Results,
    Setting,
    attempt_each,
    cross,
    from_starts,
    make_experiment,
)  # fmt: skip

# These sets are our choice: shental2003 and barhillel2005 name theirs in pictures that our copies
# lack.
UCI = ("iris", "wine", "breast_cancer", "ionosphere", "pima", "balance-scale")


def standardised(X: FloatArray) -> FloatArray:
    """Return the features with mean zero and variance one, without constant ones.

    Parameters
    ----------
    X : (N, D) array
        The points.

    Returns
    -------
    (N, D') array
        D' ≤ D.
    """
    spread = X.std(axis=0)
    varies = spread > 0
    return (X[:, varies] - X[:, varies].mean(axis=0)) / spread[varies]


def principal(X: FloatArray, n_components: int) -> FloatArray:
    """Return the first principal components of the points, or all if there are fewer.

    Examples
    --------
    >>> abs(principal(np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 1)).ravel()
    array([3., 3., 0., 0.])
    """
    centred = X - X.mean(axis=0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:n_components].T


def taught(y: IntArray, share: float, rng: Generator) -> Relations:
    """Return relations from teachers of a share of the points, two for each class.

    [barhillel2005, sect. 8.1.2], r = L / M = 2.
    """
    L = 2 * len(np.unique(y))
    return teachers(y, max(1, round(share * len(y) / L)), L, minimal=True, random_state=rng)


def within_over_between(X: FloatArray, y: IntArray) -> float:
    """Return the variance within classes over that between them, summed over dimensions.

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


STEP = (
    "within_over_between",
    "purity_63",
    "accuracy",
    "chunklet_variance_1",
    "chunklet_variance_2",
)


def figure_1(data: Dataset, share: float, rng: Generator) -> Results:
    """Follow the steps of RCA on the toy problem, with chunklets of four points.

    Of the data before and after: the eigenvalues of the covariance within chunklets (d and e), and
    how evident the classes are (b and f): variance within over between, purity of 63 neighbours,
    accuracy of K-means. "weight_ratio" is the weight of the direction in which the classes vary
    most over that of the one in which they vary least. The sample is new in each realisation.
    """
    X, y, *_ = data = load(data.name, random_state=int(rng.integers(2**31)))
    chunklets = equal_chunklets(y, 4, round(share * len(y)), random_state=rng)
    kmeans = COPKMeans(3, n_init=10, init="k-means++", random_state=int(rng.integers(2**31)))
    rca = RCA().fit(X, chunklets)

    def look(Z: FloatArray) -> dict[str, float]:
        variances = np.linalg.eigvalsh(within_chunklet_covariance(Z, chunklets))[::-1]
        return {
            "within_over_between": within_over_between(Z, y),
            "purity_63": float(cumulative_neighbour_purity(Z, y, 63)[-1]),
            "accuracy": matched_accuracy(y, kmeans.fit(Z).labels_),
            "chunklet_variance_1": variances[0],
            "chunklet_variance_2": variances[1],
        }

    yield from attempt_each({"before": lambda: X, "after": lambda: rca.transform(X)}, STEP, look)
    axes = np.linalg.eigh(cast("Parameters", data.parameters).covariances[0])[1]
    weights = np.linalg.norm(rca.components_ @ axes, axis=0)
    yield Result("after", "weight_ratio", float(weights[-1] / weights[0]))


def figure_3(data: Dataset, n_classes: int, rng: Generator) -> Results:
    """Return sizes of chunklets from teachers: 64 points a class, 30 % of the points, r = 2.

    As each teacher sees them, and after chunklets that share a point have been joined.
    """
    y = np.repeat(np.arange(n_classes), 64)
    must_link = taught(y, 0.3, rng).must_link
    # A chain of n points has n - 1 pairs, written in a row.
    begins = np.r_[True, must_link[1:, 0] != must_link[:-1, 1]]
    as_listed = np.diff(np.append(np.flatnonzero(begins), len(must_link))) + 1
    joined = np.bincount(SideInformation.build(len(y), must_link=must_link).node_of)
    joined = joined[joined > 1]
    for method, sizes in {"as seen": as_listed, "joined": joined}.items():
        yield Result(method, "mean_size", float(sizes.mean()))
        for size in range(2, 8):
            yield Result(method, f"share_of_size_{size}", float(np.mean(sizes == size)))


def figure_10(data: Dataset, ratio: float, rng: Generator) -> Results:
    """Compare six uses of must-links on raw features; K_c = ratio times N.

    [barhillel2005, sect. 8.3]: a to f. The metric of Xing et al. comes full and diagonal, since the
    full one has no maximum where must-links are fewer than dimensions. Cannot-links that it infers
    from silence are a random 20,000 of all. Ten starts each.
    """
    X, y = data.X[:, np.ptp(data.X, axis=0) > 0], data.y
    K = len(np.unique(y))
    must_link = pairs_until(y, round(ratio * len(y)), random_state=rng)
    seed = int(rng.integers(2**31))
    kmeans = COPKMeans(K, n_init=10, init="k-means++", random_state=seed)
    gmm = ConstrainedGaussianMixture(
        K, n_init=10, init_params="k-means++", max_iter=300, random_state=seed
    )

    def xing(diagonal: bool) -> IntArray:
        metric = MMC(diagonal, tol=1e-3, max_cannot_links=20_000, random_state=seed)
        Y = metric.fit(X, must_link=must_link, cannot_link="rest").transform(X)
        return kmeans.fit(Y, must_link=must_link).labels_

    def rca() -> FloatArray:
        return RCA().fit(X, must_link=must_link).transform(X)

    methods = {
        "a K-means": lambda: kmeans.fit(X).labels_,
        "b constrained K-means": lambda: kmeans.fit(X, must_link=must_link).labels_,
        "c constrained K-means + Xing": lambda: xing(False),
        "c constrained K-means + diagonal Xing": lambda: xing(True),
        "d constrained K-means + RCA": lambda: kmeans.fit(rca(), must_link=must_link).labels_,
        "e EM": lambda: gmm.fit(_unit_scale(X)).labels_,
        "f constrained EM + RCA": lambda: gmm.fit(rca(), must_link=must_link).labels_,
    }

    def score(labels: IntArray) -> dict[str, float]:
        return {"balanced_rand_index": balanced_rand_index(y, labels)}

    yield from attempt_each(methods, ("balanced_rand_index",), score)


def figure_10_reduced(data: Dataset, ratio: float, rng: Generator) -> Results:
    """Compare the same on five principal components of standardised features.

    [barhillel2005, sect. 6]: in high dimension the reduction before RCA is mandatory, and where the
    chunklets are few it is PCA. Five, and the one scale, are our choice.
    """
    yield from figure_10(_reduced(data), ratio, rng)


def figure_10_starts(data: Dataset, ratio: float, rng: Generator) -> Results:
    """Compare ways b, d, e and f of Figure 10, mixtures from the default start and the truth."""
    X, y = data.X[:, np.ptp(data.X, axis=0) > 0], data.y
    K = len(np.unique(y))
    must_link = pairs_until(y, round(ratio * len(y)), random_state=rng)
    seed = int(rng.integers(2**31))
    Y = RCA().fit(X, must_link=must_link).transform(X)
    gmm = ConstrainedGaussianMixture(K, max_iter=300, random_state=seed)
    fits = {
        name: partial(model.fit, _unit_scale(X))
        for name, model in from_starts("e EM", gmm, y, own=False).items()
    }
    fits |= {
        name: partial(model.fit, Y, must_link=must_link)
        for name, model in from_starts("f constrained EM + RCA", gmm, y, own=False).items()
    }

    def score(labels: IntArray) -> dict[str, float]:
        return {"balanced_rand_index": balanced_rand_index(y, labels)}

    def measure(model: ConstrainedGaussianMixture) -> dict[str, float]:
        return score(model.labels_) | {"log_evidence": model.log_evidence_}

    yield from attempt_each(fits, ("balanced_rand_index", "log_evidence"), measure)
    kmeans = COPKMeans(K, n_init=10, init="k-means++", random_state=seed)
    methods = {
        "b constrained K-means": lambda: kmeans.fit(X, must_link=must_link).labels_,
        "d constrained K-means + RCA": lambda: kmeans.fit(Y, must_link=must_link).labels_,
    }
    yield from attempt_each(methods, ("balanced_rand_index",), score)


def figure_10_reduced_starts(data: Dataset, ratio: float, rng: Generator) -> Results:
    """Compare the same on five principal components of standardised features."""
    yield from figure_10_starts(_reduced(data), ratio, rng)


def _reduced(data: Dataset) -> Dataset:
    """Replace the features by five principal components of standardised features."""
    return data._replace(X=principal(standardised(data.X), 5))


def _unit_scale(X: FloatArray) -> FloatArray:
    """Divide all features by one number, so that a regulariser of 1e-6 is small.

    Breaks nothing: clusters of a mixture with full covariances, and its starts, stay the same.
    """
    return X / np.sqrt(X.var(axis=0).mean())


def figure_11(data: Dataset, eps: float, rng: Generator) -> Results:
    """Return variances before and after RCA of two classes that share their widest axis.

    [barhillel2005, sect. 9.2]. diag(ε, 1, 2) and diag(1, ε, 2) are standard deviations, as the
    printed eigenvalues show. Each class is one chunklet of 1000 points.
    """
    y = np.repeat([0, 1], 1000)
    deviations = np.array([[eps, 1.0, 2.0], [1.0, eps, 2.0]])
    X = rng.standard_normal((len(y), 3)) * deviations[y]
    Y = RCA().fit(X, y).transform(X)
    eigenvalues = np.array(
        [[np.linalg.eigvalsh(np.cov(Z[y == k].T))[::-1] for k in (0, 1)] for Z in (X, Y)]
    )
    for (stage, k, i), value in np.ndenumerate(eigenvalues):
        name = f"eigenvalue_{i + 1}_class_{k + 1}"
        yield Result(("before", "after")[stage], name, float(value))
    conditions = eigenvalues[..., 0] / eigenvalues[..., -1]
    for k, factor in enumerate(conditions[0] / conditions[1], start=1):
        yield Result("after", f"condition_factor_class_{k}", float(factor))


RATIOS = cross(UCI, (0.9, 0.7))
QUICK = (Setting("iris", (0.9,)), Setting("wine", (0.7,)))
SHARES = cross(["three_classes"], (0.1, 0.3))
SIZES = cross(["none"], (30, 10))
WIDTHS = cross(["none"], [0.1])

# Name, function, realisations in the paper, design, and a part of it that runs in seconds.
EXPERIMENTS = (
    make_experiment("barhillel2005-fig10", figure_10, 20, RATIOS, QUICK),
    make_experiment("barhillel2005-fig10-reduced", figure_10_reduced, 20, RATIOS, QUICK),
    make_experiment("barhillel2005-fig10-starts", figure_10_starts, 24, RATIOS, QUICK),
    make_experiment(
        "barhillel2005-fig10-reduced-starts", figure_10_reduced_starts, 24, RATIOS, QUICK
    ),
    make_experiment("barhillel2005-fig1", figure_1, 50, SHARES, SHARES[1:]),
    make_experiment("barhillel2005-fig3", figure_3, 50, SIZES, SIZES[:1]),
    make_experiment("barhillel2005-fig11", figure_11, 20, WIDTHS, WIDTHS),
)
