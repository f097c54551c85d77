"""Measure how much time each kind of side information takes, and how much accuracy it gains.

The table contains 1,797 images of handwritten digits, as ten principal components. There are labels
of thirty images, forty must-links, eighty cannot-links, and 200 answers of which one in ten is
wrong, as preferences with the corresponding certainty. Fits to the same points, with the same ten
restarts, get no side information, one of these four kinds, or all kinds at once. Gains are paired
over draws of the side information.

    python benchmarks/kinds.py

``--repeats N`` sets the number of draws; ``--smoke`` means one.
"""

from __future__ import annotations

import warnings

import common
import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from cgmm import ConstrainedGaussianMixture, scenarios
from cgmm.datasets import load
from cgmm.metrics import paired_difference
from cgmm.metrics.uncertainty import FEWEST_DRAWS

CASE, N_POINTS, N_DIMS, ERROR_RATE = "digits", 1797, 10, 0.1
CASES = {(CASE, N_POINTS)}
NOTHING, ALL = "nothing", "all at once"


def draw_side_information(y: np.ndarray, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Draw each kind of side information, as keyword arguments of ``fit``."""
    rng = np.random.default_rng(seed)
    links = scenarios.random_pairs(y, len(y) // 2, random_state=rng)
    relations = scenarios.flip(
        scenarios.random_pairs(y, 200, random_state=rng), ERROR_RATE, random_state=rng
    )
    answers = scenarios.preferences(*relations, certainty=1 - ERROR_RATE)
    single = {
        "labels": {"labels": scenarios.partial_labels(y, 30, random_state=rng)},
        "must-links": {"must_link": links.must_link[:40]},
        "cannot-links": {"cannot_link": links.cannot_link[:80]},
        "answers": {"preferences": answers},
    }
    every_kind = {name: rows for kind in single.values() for name, rows in kind.items()}
    return {NOTHING: {}, **single, ALL: every_kind}


def measure_fits(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, common.Measured]:
    """Return seconds, adjusted Rand index and iterations of a fit with each kind."""
    measured: dict[str, common.Measured] = {}
    for name, known in draw_side_information(y, seed).items():
        model = ConstrainedGaussianMixture(
            10, reg_covar=1.0, max_iter=300, init_params="k-means++", n_init=10, random_state=seed
        )
        seconds = common.measure_seconds(lambda m=model, k=known: m.fit(X, **k))
        ari = adjusted_rand_score(y, model.labels_)
        measured[name] = seconds, {"ARI": ari, "iterations": model.n_iter_}
    return measured


def report(draws: list[dict[str, common.Measured]]) -> None:
    """Print a line for each kind: time relative to a fit without relations, mean ARI, and gain."""
    plain = np.array([draw[NOTHING][0] for draw in draws])
    for name in draws[0]:
        times = np.array([draw[name][0] for draw in draws])
        ari = [draw[name][1]["ARI"] for draw in draws]
        ratios = common.format_quartiles(common.compute_ratios(times, of=plain))
        line = f"{name:14}{np.median(times):7.2f} s  {ratios}  ARI {np.mean(ari):.3f}"
        if len(draws) >= FEWEST_DRAWS:
            for other in (NOTHING, ALL):
                theirs = [draw[other][1]["ARI"] for draw in draws]
                line += f"  beyond {other} {paired_difference(ari, theirs)}"
        print(line)


def main() -> None:
    """Measure, print the results, and write both files."""
    options = common.parse_options(__doc__, repeats=12)
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y, *_ = load(CASE)
    X = PCA(N_DIMS, random_state=0).fit_transform(X)
    draws = [measure_fits(X, y, seed) for seed in range(options.repeats)]
    print(common.format_machine())
    report(draws)
    measured = {name: [draw[name] for draw in draws] for name in draws[0]}
    times, quality = common.tabulate("kinds", CASE, len(X), measured)
    common.write_times(options.results, times)
    common.write_quality(options.results, quality)


if __name__ == "__main__":
    main()
