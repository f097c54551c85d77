"""Combine kinds of side information on one real table: what each costs and gains.

The table is of handwritten digits, 1,797 images in their ten leading directions. Somebody has named
thirty images; forty pairs are certain to show one digit (must-links), and eighty to show two
(cannot-links); and two hundred answers were bought, of which one in ten is wrong (preferences,
weighed so). A fit gets nothing, one of the four, or all: the same points, the same ten starts.
Gains are paired over draws of the knowledge.

    python benchmarks/kinds.py

``--repeats N`` for more draws, ``--smoke`` for one.
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


def knowledge(y: np.ndarray, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Draw the keyword arguments of ``fit`` for each kind of side information."""
    rng = np.random.default_rng(seed)
    links = scenarios.random_pairs(y, len(y) // 2, random_state=rng)
    asked = scenarios.flip(
        scenarios.random_pairs(y, 200, random_state=rng), ERROR_RATE, random_state=rng
    )
    answers = scenarios.preferences(*asked, certainty=1 - ERROR_RATE)
    single = {
        "labels": {"labels": scenarios.partial_labels(y, 30, random_state=rng)},
        "must-links": {"must_link": links.must_link[:40]},
        "cannot-links": {"cannot_link": links.cannot_link[:80]},
        "answers": {"preferences": answers},
    }
    every = {name: relations for kind in single.values() for name, relations in kind.items()}
    return {NOTHING: {}, **single, ALL: every}


def fits(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, common.Measured]:
    """Return seconds, iterations and adjusted Rand index of the fit with each kind."""
    measured: dict[str, common.Measured] = {}
    for name, known in knowledge(y, seed).items():
        model = ConstrainedGaussianMixture(
            10, reg_covar=1.0, max_iter=300, init_params="k-means++", n_init=10, random_state=seed
        )
        seconds = common.seconds(lambda m=model, k=known: m.fit(X, **k))
        ari = adjusted_rand_score(y, model.labels_)
        measured[name] = seconds, {"ARI": ari, "iterations": model.n_iter_}
    return measured


def report(draws: list[dict[str, common.Measured]]) -> None:
    """Print a line for each kind: time relative to a plain fit, mean ARI, and its gain."""
    plain = np.array([draw[NOTHING][0] for draw in draws])
    for name in draws[0]:
        took = np.array([draw[name][0] for draw in draws])
        ari = [draw[name][1]["ARI"] for draw in draws]
        line = f"{name:14}{np.median(took):7.2f} s  {common.spread(common.ratios(took, of=plain))}"
        line += f"  ARI {np.mean(ari):.3f}"
        if len(draws) >= FEWEST_DRAWS:
            for other in (NOTHING, ALL):
                theirs = [draw[other][1]["ARI"] for draw in draws]
                line += f"  beyond {other} {paired_difference(ari, theirs)}"
        print(line)


def main() -> None:
    """Measure, print the results, and write both files."""
    options = common.options(__doc__, repeats=12)
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y, *_ = load(CASE)
    X = PCA(N_DIMS, random_state=0).fit_transform(X)
    draws = [fits(X, y, seed) for seed in range(options.repeats)]
    print(common.head())
    report(draws)
    measured = {name: [draw[name] for draw in draws] for name in draws[0]}
    times, quality = common.tabulate("kinds", CASE, len(X), measured)
    common.write(options.results, times)
    common.write_quality(options.results, quality)


if __name__ == "__main__":
    main()
