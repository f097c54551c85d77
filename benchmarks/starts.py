"""Compare default fits with the same fits started at the true classes.

Of each family of problems the data are drawn anew in every repetition. A fit *reaches* the maximum
if its log-evidence is at most one nat below that of the fit that starts at the true classes and has
the same side information. Beside the two: one start of K-means, scikit-learn's GaussianMixture with
ten starts, which knows no relations, and COP-KMeans with ten, where relations are hard; the latter
two refuse empty cells. Accuracies are shares of points whose component is that of their class,
components matched to classes in the best way. Where classes overlap the evidence at the truth is
seldom the highest: there only the evidence can be asked of a start.

    python benchmarks/starts.py

``--repeats N`` for more draws, ``--smoke`` for one draw of the first families.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import common
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.mixture import GaussianMixture

from cgmm import ConstrainedGaussianMixture, COPKMeans, scenarios
from cgmm.datasets import load, vertical_classes
from cgmm.metrics import matched_accuracy

TRUTH, DEFAULT, KMEANS = "from the truth", "default", "one K-means"
PEER, COP = "GaussianMixture, ten starts", "COP-KMeans, ten starts"
REACHED = 1.0  # nats

Drawn = tuple[np.ndarray, np.ndarray, dict[str, Any]]


class Family(NamedTuple):
    """A kind of problem: points (N, D), classes (N,) and side information for each draw."""

    case: str
    n_points: int
    draw: Callable[[int], Drawn]
    covariance_type: str = "full"


# ---------------------------------------------------------------------------- points


def turned(rng: np.random.Generator, n_dims: int) -> np.ndarray:
    """Return a random rotation."""
    return np.linalg.qr(rng.normal(size=(n_dims, n_dims)))[0]


def clumps(
    seed: int, n_points: int, n_classes: int, kind: str, gap: float = 4.5, turn: bool = True
) -> Drawn:
    """Draw clumps in four dimensions, the nearest means ``gap`` apart in a random plane.

    "round"; "elongated": a deviation of 8 in the two other dimensions, the same for all; or
    "different": deviations .3, .6, 1.5 and 3 in an order of each clump's own.
    """
    rng = np.random.default_rng(seed)
    means = np.zeros((n_classes, 4))
    while (nearest := pdist(means).min()) < 1 / 4:
        means[:, :2] = rng.uniform(size=(n_classes, 2))
    means *= gap / nearest
    spread = np.ones((n_classes, 4))
    if kind == "elongated":
        spread[:, 2:] = 8.0
    if kind == "different":
        spread = rng.permuted(np.tile([0.3, 0.6, 1.5, 3.0], (n_classes, 1)), axis=1)
    y = rng.permutation(np.arange(n_points) % n_classes)
    X = means[y] + spread[y] * rng.normal(size=(n_points, 4))
    return X @ turned(rng, 4) if turn else X, y, {}


def free(
    seed: int, n_points: int, n_classes: int, n_dims: int, shares: tuple[float, ...] = ()
) -> Drawn:
    """Draw classes with random covariances of their own."""
    rng = np.random.default_rng(seed)
    means = 4 * rng.normal(size=(n_classes, n_dims)) / np.sqrt(n_dims)
    shapes = rng.normal(size=(n_classes, n_dims, n_dims)) / np.sqrt(n_dims) + np.eye(n_dims) / 2
    y = rng.choice(n_classes, n_points, p=shares or None)
    return means[y] + np.einsum("nij,nj->ni", shapes[y], rng.normal(size=(n_points, n_dims))), y, {}


def crossing(seed: int, n_points: int) -> Drawn:
    """Draw three thin bars that cross near their middles."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_points)
    angle = np.pi * y / 3 + rng.uniform(0, 0.3)
    along, across = 4 * rng.normal(size=n_points), 0.35 * rng.normal(size=n_points)
    bars = np.column_stack([
        along * np.cos(angle) - across * np.sin(angle),
        along * np.sin(angle) + across * np.cos(angle),
    ])  # fmt: skip
    return bars + rng.normal(size=(3, 2))[y], y, {}


def scenes(seed: int) -> Drawn:
    """Draw two tall classes, and scenes by day or night in which both are seen (chapter 7)."""
    X, person = vertical_classes(random_state=seed)[:2]
    rng, day, must_link, cannot_link = np.random.default_rng(seed), X[:, 1] > 0, [], []
    for _ in range(12):
        light = day == rng.integers(2)
        a, b = (rng.choice(np.flatnonzero(light & (person == k)), 3, replace=False) for k in (0, 1))
        must_link += [a[:2], a[1:], b[:2], b[1:]]
        cannot_link += list(zip(a, b, strict=True))
    return X, person, {"must_link": np.array(must_link), "cannot_link": np.array(cannot_link)}


def table(seed: int, name: str) -> Drawn:
    """Draw nine tenths of a real table, standardised; of many columns five components."""
    X, y = load(name)[:2]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if X.shape[1] > 20:
        X = X @ np.linalg.svd(X, full_matrices=False)[2][:5].T
    rows = np.random.default_rng(seed).permutation(len(X))[: 9 * len(X) // 10]
    return X[rows], np.unique(np.asarray(y)[rows], return_inverse=True)[1], {}


# ---------------------------------------------------------------------------- what is known


def pairs(seed: int, draw: Callable[[int], Drawn], n_pairs: int) -> Drawn:
    """Return the same points with true answers about random pairs."""
    X, y, _ = draw(seed)
    return X, y, scenarios.random_pairs(y, n_pairs, random_state=seed)._asdict()


def labels(seed: int, draw: Callable[[int], Drawn], n_labels: int) -> Drawn:
    """Return the same points, some of them with their class."""
    X, y, _ = draw(seed)
    known = np.full(len(y), -1)
    rows = np.random.default_rng(seed).choice(len(y), n_labels, replace=False)
    known[rows] = y[rows]
    return X, y, {"labels": known}


def doubtful(seed: int, draw: Callable[[int], Drawn], n_pairs: int) -> Drawn:
    """Return the same points with answers, 5 % of them wrong, as preferences."""
    X, y, _ = draw(seed)
    relations = scenarios.random_pairs(y, n_pairs, random_state=seed)
    relations = scenarios.flip(relations, 0.05, random_state=seed)
    return X, y, {"preferences": scenarios.preferences(*relations, certainty=0.95)}


def gaps(seed: int, draw: Callable[[int], Drawn], share: float) -> Drawn:
    """Return the same points with a share of cells empty at random; each row keeps one cell."""
    X, y, known = draw(seed)
    is_empty = np.random.default_rng(1000 + seed).random(X.shape) < share
    is_empty[is_empty.all(axis=1), 0] = False
    return np.where(is_empty, np.nan, X), y, known


FIVE = partial(clumps, n_points=300, n_classes=5)
TEN = partial(clumps, n_points=600, n_classes=10)
LONG, TEN_LONG = partial(FIVE, kind="elongated"), partial(TEN, kind="elongated")
NEAR = partial(FIVE, kind="round", gap=2.5)
BARS = partial(crossing, n_points=300)
SIX = partial(free, n_points=500, n_classes=6, n_dims=4)
UNEQUAL = partial(free, n_points=500, n_classes=5, n_dims=4, shares=(0.6, 0.2, 0.1, 0.06, 0.04))
SIXTY = partial(clumps, n_points=60, n_classes=5, kind="elongated")
ROUND = partial(TEN, kind="round")
WITH_GAPS = (
    ("elongated, 45 pairs", 300, partial(pairs, draw=LONG, n_pairs=45)),
    ("free, D = 4", 500, SIX),
    ("overlapping, 45 pairs", 300, partial(pairs, draw=NEAR, n_pairs=45)),
)
TABLES = (("iris", 135, 20), ("wine", 160, 20), ("breast_cancer", 512, 30))
FAMILIES = [
    Family("scenes", 600, scenes),
    Family("elongated", 300, LONG),
    Family("elongated, 45 pairs", 300, partial(pairs, draw=LONG, n_pairs=45)),
    Family("ten elongated", 600, TEN_LONG),
    Family("ten elongated, 90 pairs", 600, partial(pairs, draw=TEN_LONG, n_pairs=90)),
    Family("ten round, doubtful answers", 600, partial(doubtful, draw=ROUND, n_pairs=100)),
    Family("different shapes", 300, partial(FIVE, kind="different")),
    Family("diagonal", 300, partial(FIVE, kind="different", turn=False), "diag"),
    Family("crossing", 300, BARS),
    Family("crossing, 20 pairs", 300, partial(pairs, draw=BARS, n_pairs=20)),
    Family("free, D = 4", 500, SIX),
    Family("free, D = 4, 200 pairs", 500, partial(pairs, draw=SIX, n_pairs=200)),
    Family("free, D = 20", 1500, partial(free, n_points=1500, n_classes=4, n_dims=20)),
    Family("unequal sizes, 50 pairs", 500, partial(pairs, draw=UNEQUAL, n_pairs=50)),
    Family("ten in a plane", 1000, partial(free, n_points=1000, n_classes=10, n_dims=2)),
    Family("overlapping, 45 pairs", 300, partial(pairs, draw=NEAR, n_pairs=45)),
    Family("overlapping, 20 labels", 300, partial(labels, draw=NEAR, n_labels=20)),
    Family("few points, 30 pairs", 60, partial(pairs, draw=SIXTY, n_pairs=30), "tied"),
    *(
        Family(
            f"{name}, {n} pairs", size, partial(pairs, draw=partial(table, name=name), n_pairs=n)
        )
        for name, size, n in TABLES
    ),
    *(
        Family(f"{name}, {share} % empty", size, partial(gaps, draw=draw, share=share / 100))
        for name, size, draw in WITH_GAPS
        for share in (5, 20, 40)
    ),
]
CASES = {(family.case, family.n_points) for family in FAMILIES}


# ---------------------------------------------------------------------------- fits


def fits(family: Family, seed: int) -> dict[str, common.Measured]:
    """Return seconds, accuracy and distance from the truth's evidence for each method."""
    X, y, known = family.draw(seed)
    K, kind = len(np.unique(y)), {"covariance_type": family.covariance_type}
    models = {
        TRUTH: ConstrainedGaussianMixture(K, init_params=np.eye(K)[y], **kind),
        DEFAULT: ConstrainedGaussianMixture(K, random_state=seed, **kind),
        KMEANS: ConstrainedGaussianMixture(K, init_params="kmeans", random_state=seed, **kind),
    }
    is_complete = not np.isnan(X).any()
    if is_complete:
        models[PEER] = GaussianMixture(K, n_init=10, random_state=seed, **kind)
    if is_complete and known.keys() <= {"must_link", "cannot_link"} and known:
        models[COP] = COPKMeans(K, n_init=10, random_state=seed)
    measured: dict[str, common.Measured] = {}
    highest = np.nan
    for name, model in models.items():
        relations = {} if name == PEER else known
        try:
            seconds = common.seconds(lambda m=model, t=relations: m.fit(X, **t))
        except ValueError:
            measured[name] = None, {}
            continue
        z = model.predict(X) if name == PEER else model.labels_
        found = {"accuracy": matched_accuracy(y, z)}
        if hasattr(model, "log_evidence_"):
            highest = model.log_evidence_ if name == TRUTH else highest
            found["behind"] = highest - model.log_evidence_
        measured[name] = seconds, found
    return measured


def report(family: Family, draws: list[dict[str, common.Measured]]) -> None:
    """Print for each method the share that reaches the truth's evidence, accuracy, seconds."""
    print(family.case)
    for method in draws[0]:
        found = [draw[method] for draw in draws if method in draw]
        behind = [quality.get("behind", np.nan) for _, quality in found]
        reached = np.mean(np.array(behind) <= REACHED) if np.isfinite(behind).any() else np.nan
        right = np.nanmean([quality.get("accuracy", np.nan) for _, quality in found])
        took = np.median([seconds or np.nan for seconds, _ in found])
        print(
            f"    {method:28} reached {reached:4.2f}  accuracy {right:.3f}  {took:.3f} s",
            flush=True,
        )


def main() -> None:
    """Measure, print the results, and write both files."""
    options = common.options(__doc__, repeats=24)
    warnings.simplefilter("ignore")
    print(common.head())
    times: list[common.Row] = []
    quality: list[common.Quality] = []
    for family in FAMILIES[:3] if options.smoke else FAMILIES:
        draws = [fits(family, seed) for seed in range(options.repeats)]
        report(family, draws)
        measured = {method: [draw[method] for draw in draws] for method in draws[0]}
        rows, found = common.tabulate("starts", family.case, family.n_points, measured)
        times, quality = times + rows, quality + found
    common.write(options.results, times)
    common.write_quality(options.results, quality)


if __name__ == "__main__":
    main()
