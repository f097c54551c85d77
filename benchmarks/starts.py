"""Compare default fits with fits that are initialised with the true classes.

For each family of problems, every repetition draws new data. A fit *reaches* the maximum if its
log-evidence is at most one nat below that of the fit that is initialised with the true classes,
with the same side information. Three other methods are measured: a fit from one K-means;
scikit-learn's GaussianMixture with ten restarts, without relations; and COP-KMeans with ten
restarts, if all relations are hard. The last two cannot take empty cells. The accuracy is the share
of points whose component is matched to their class, by the best matching. If classes overlap, the
maximum is seldom near the truth; then only the evidence says how good an initialisation is.

    python benchmarks/starts.py

``--repeats N`` sets the number of draws; ``--smoke`` measures one draw of the first families.
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
# A fit reaches the maximum if its log-evidence is at most this many nats below it.
REACHED = 1.0

Drawn = tuple[np.ndarray, np.ndarray, dict[str, Any]]


class Family(NamedTuple):
    """Kind of problem; ``draw`` returns points (N, D), classes (N,) and side information."""

    case: str
    n_points: int
    draw: Callable[[int], Drawn]
    covariance_type: str = "full"


# ---------------------------------------------------------------------------- points


def draw_rotation(rng: np.random.Generator, n_dims: int) -> np.ndarray:
    """Return a random rotation matrix."""
    return np.linalg.qr(rng.normal(size=(n_dims, n_dims)))[0]


def draw_clusters(
    seed: int, n_points: int, n_classes: int, kind: str, gap: float = 4.5, rotate: bool = True
) -> Drawn:
    """Draw Gaussian clusters in four dimensions, with means in a random plane.

    The nearest means have the distance ``gap``. The kind of clusters is "round" (all standard
    deviations are one), "elongated" (they are 8 in the other two dimensions) or "different" (they
    are .3, .6, 1.5 and 3, in a random order for each cluster).
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
    return X @ draw_rotation(rng, 4) if rotate else X, y, {}


def draw_random_covariances(
    seed: int, n_points: int, n_classes: int, n_dims: int, shares: tuple[float, ...] = ()
) -> Drawn:
    """Draw Gaussian classes with random means and random covariances."""
    rng = np.random.default_rng(seed)
    means = 4 * rng.normal(size=(n_classes, n_dims)) / np.sqrt(n_dims)
    shapes = rng.normal(size=(n_classes, n_dims, n_dims)) / np.sqrt(n_dims) + np.eye(n_dims) / 2
    y = rng.choice(n_classes, n_points, p=shares or None)
    return means[y] + np.einsum("nij,nj->ni", shapes[y], rng.normal(size=(n_points, n_dims))), y, {}


def draw_crossing_bars(seed: int, n_points: int) -> Drawn:
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


def draw_scenes(seed: int) -> Drawn:
    """Draw pictures of two persons by day or night, and relations within scenes (chapter 7)."""
    X, person = vertical_classes(random_state=seed)[:2]
    rng, is_day, must_link, cannot_link = np.random.default_rng(seed), X[:, 1] > 0, [], []
    for _ in range(12):
        is_lit = is_day == rng.integers(2)
        a, b = (
            rng.choice(np.flatnonzero(is_lit & (person == k)), 3, replace=False) for k in (0, 1)
        )
        must_link += [a[:2], a[1:], b[:2], b[1:]]
        cannot_link += list(zip(a, b, strict=True))
    return X, person, {"must_link": np.array(must_link), "cannot_link": np.array(cannot_link)}


def draw_table_rows(seed: int, name: str) -> Drawn:
    """Draw nine tenths of the rows of a real table, with at most five principal components."""
    X, y = load(name)[:2]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if X.shape[1] > 20:
        X = X @ np.linalg.svd(X, full_matrices=False)[2][:5].T
    rows = np.random.default_rng(seed).permutation(len(X))[: 9 * len(X) // 10]
    return X[rows], np.unique(np.asarray(y)[rows], return_inverse=True)[1], {}


# ---------------------------------------------------------------------------- side information


def add_pairs(seed: int, draw: Callable[[int], Drawn], n_pairs: int) -> Drawn:
    """Draw points and true relations of random pairs."""
    X, y, _ = draw(seed)
    return X, y, scenarios.random_pairs(y, n_pairs, random_state=seed)._asdict()


def add_labels(seed: int, draw: Callable[[int], Drawn], n_labels: int) -> Drawn:
    """Draw points and the labels of some of them."""
    X, y, _ = draw(seed)
    known = np.full(len(y), -1)
    rows = np.random.default_rng(seed).choice(len(y), n_labels, replace=False)
    known[rows] = y[rows]
    return X, y, {"labels": known}


def add_preferences(seed: int, draw: Callable[[int], Drawn], n_pairs: int) -> Drawn:
    """Draw points, and preferences about random pairs of which 5 % are wrong."""
    X, y, _ = draw(seed)
    relations = scenarios.random_pairs(y, n_pairs, random_state=seed)
    relations = scenarios.flip(relations, 0.05, random_state=seed)
    return X, y, {"preferences": scenarios.preferences(*relations, certainty=0.95)}


def add_empty_cells(seed: int, draw: Callable[[int], Drawn], share: float) -> Drawn:
    """Draw points, and empty a random share of the cells; each row keeps at least one cell."""
    X, y, known = draw(seed)
    is_empty = np.random.default_rng(1000 + seed).random(X.shape) < share
    is_empty[is_empty.all(axis=1), 0] = False
    return np.where(is_empty, np.nan, X), y, known


FIVE = partial(draw_clusters, n_points=300, n_classes=5)
TEN = partial(draw_clusters, n_points=600, n_classes=10)
LONG, TEN_LONG = partial(FIVE, kind="elongated"), partial(TEN, kind="elongated")
NEAR = partial(FIVE, kind="round", gap=2.5)
BARS = partial(draw_crossing_bars, n_points=300)
FREE = partial(draw_random_covariances, n_dims=4)
SIX = partial(FREE, n_points=500, n_classes=6)
UNEQUAL = partial(FREE, n_points=500, n_classes=5, shares=(0.6, 0.2, 0.1, 0.06, 0.04))
SIXTY = partial(draw_clusters, n_points=60, n_classes=5, kind="elongated")
ROUND = partial(TEN, kind="round")
WITH_EMPTY_CELLS = (
    ("elongated, 45 pairs", 300, partial(add_pairs, draw=LONG, n_pairs=45)),
    ("free, D = 4", 500, SIX),
    ("overlapping, 45 pairs", 300, partial(add_pairs, draw=NEAR, n_pairs=45)),
)
TABLES = (("iris", 135, 20), ("wine", 160, 20), ("breast_cancer", 512, 30))
FAMILIES = [
    Family("scenes", 600, draw_scenes),
    Family("elongated", 300, LONG),
    Family("elongated, 45 pairs", 300, partial(add_pairs, draw=LONG, n_pairs=45)),
    Family("ten elongated", 600, TEN_LONG),
    Family("ten elongated, 90 pairs", 600, partial(add_pairs, draw=TEN_LONG, n_pairs=90)),
    Family("ten round, doubtful answers", 600, partial(add_preferences, draw=ROUND, n_pairs=100)),
    Family("different shapes", 300, partial(FIVE, kind="different")),
    Family("diagonal", 300, partial(FIVE, kind="different", rotate=False), "diag"),
    Family("crossing", 300, BARS),
    Family("crossing, 20 pairs", 300, partial(add_pairs, draw=BARS, n_pairs=20)),
    Family("free, D = 4", 500, SIX),
    Family("free, D = 4, 200 pairs", 500, partial(add_pairs, draw=SIX, n_pairs=200)),
    Family("free, D = 20", 1500, partial(FREE, n_points=1500, n_classes=4, n_dims=20)),
    Family("unequal sizes, 50 pairs", 500, partial(add_pairs, draw=UNEQUAL, n_pairs=50)),
    Family("ten in a plane", 1000, partial(FREE, n_points=1000, n_classes=10, n_dims=2)),
    Family("overlapping, 45 pairs", 300, partial(add_pairs, draw=NEAR, n_pairs=45)),
    Family("overlapping, 20 labels", 300, partial(add_labels, draw=NEAR, n_labels=20)),
    Family("few points, 30 pairs", 60, partial(add_pairs, draw=SIXTY, n_pairs=30), "tied"),
    *(
        Family(
            f"{name}, {n} pairs", size,
            partial(add_pairs, draw=partial(draw_table_rows, name=name), n_pairs=n),
        )
        for name, size, n in TABLES
    ),
    *(
        Family(
            f"{name}, {share} % empty", size,
            partial(add_empty_cells, draw=draw, share=share / 100),
        )
        for name, size, draw in WITH_EMPTY_CELLS
        for share in (5, 20, 40)
    ),
]  # fmt: skip
CASES = {(family.case, family.n_points) for family in FAMILIES}


# ---------------------------------------------------------------------------- fits


def measure_fits(family: Family, seed: int) -> dict[str, common.Measured]:
    """Return seconds, accuracy and log-evidence below that of the truth, for each method."""
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
            seconds = common.measure_seconds(lambda m=model, r=relations: m.fit(X, **r))
        except ValueError:
            measured[name] = None, {}
            continue
        z = model.predict(X) if name == PEER else model.labels_
        quality = {"accuracy": matched_accuracy(y, z)}
        if hasattr(model, "log_evidence_"):
            highest = model.log_evidence_ if name == TRUTH else highest
            quality["behind"] = highest - model.log_evidence_
        measured[name] = seconds, quality
    return measured


def report(family: Family, draws: list[dict[str, common.Measured]]) -> None:
    """Print the share of draws that reach the maximum, accuracy and seconds of each method."""
    print(family.case)
    for method in draws[0]:
        results = [draw[method] for draw in draws if method in draw]
        behind = [quality.get("behind", np.nan) for _, quality in results]
        reached = np.mean(np.array(behind) <= REACHED) if np.isfinite(behind).any() else np.nan
        accuracy = np.nanmean([quality.get("accuracy", np.nan) for _, quality in results])
        median = np.median([seconds or np.nan for seconds, _ in results])
        print(
            f"    {method:28} reached {reached:4.2f}  accuracy {accuracy:.3f}  {median:.3f} s",
            flush=True,
        )


def main() -> None:
    """Measure, print the results, and write both files."""
    options = common.parse_options(__doc__, repeats=24)
    warnings.simplefilter("ignore")
    print(common.format_machine())
    times: list[common.Row] = []
    quality: list[common.Quality] = []
    for family in FAMILIES[:3] if options.smoke else FAMILIES:
        draws = [measure_fits(family, seed) for seed in range(options.repeats)]
        report(family, draws)
        measured = {method: [draw[method] for draw in draws] for method in draws[0]}
        new = common.tabulate("starts", family.case, family.n_points, measured)
        times, quality = times + new[0], quality + new[1]
    common.write_times(options.results, times)
    common.write_quality(options.results, quality)


if __name__ == "__main__":
    main()
