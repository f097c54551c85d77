"""Compare the metric of Xing et al. with metric-learn: time and objective, in turn.

Run it with ``make bench`` or ``python benchmarks/mmc.py``; ``--repeats N`` for more draws of pairs,
``--smoke`` for one of the small data. metric-learn 0.7.0 is no part of the book's environment, see
benchmarks/requirements.txt; without it only cgmm is measured.

Each draw takes as many must-links and as many cannot-links as metric-learn draws by default, 20 K²
of each, and hands the same pairs to both: *iris* and *wine* as they are, *digits* reduced to 20
principal components. Both run with their defaults; of metric-learn only the solver is timed, not
the calibration of a threshold that follows. Times are of the process, so that other programs do not
count. The ratio of times is metric-learn / cgmm: above one means that cgmm is faster.

Objectives are those of ``cgmm.metric_learning.objective``, which scales either metric to the
boundary of the constraint; theirs is given as a part of ours. The diagonal solver of metric-learn
adds the logarithm of the distances where Xing et al. subtract it: it stops early, short of the
maximum, at the same place for any tolerance, or it fails with NaN.

The last lines are for all pairs of the classes at once, 1.5 million cannot-links on digits, which
metric-learn cannot hold: it keeps a D x D matrix for each pair.
"""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Iterable

import common
import metric_learn_peer
import numpy as np
from metric_learn_peer import metric_learn
from sklearn.decomposition import PCA

from cgmm.datasets import load
from cgmm.metric_learning import MMC, objective

PEER = "metric-learn"
KINDS = {True: "diagonal", False: "full"}
# Points, and as many pairs of each kind as metric-learn draws: 20 K².
N_POINTS = {"iris": 150, "wine": 178, "digits": 1797}
N_PAIRS = {"iris": 180, "wine": 180, "digits": 2000}
PROBLEMS = [(name, diagonal) for name in N_POINTS for diagonal in (False, True)]
CASES = {(f"{name}, {KINDS[d]}", N_PAIRS[name]) for name, d in PROBLEMS} | {
    (f"{name}, {KINDS[d]}, all pairs", N_POINTS[name]) for name, d in PROBLEMS
}


def problem(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return points and classes."""
    X, y, *_ = load(name)
    return (PCA(20, svd_solver="full").fit_transform(X) if name == "digits" else X), y


def draw_pairs(y: np.ndarray, n_pairs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw this number of must-links and of cannot-links without repetition."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(len(y), 1)
    kinds = np.flatnonzero(y[i] == y[j]), np.flatnonzero(y[i] != y[j])
    chosen = (rng.choice(kind, n_pairs, replace=False) for kind in kinds)
    return tuple(np.column_stack([i[k], j[k]]) for k in chosen)


def peer(diagonal: bool, X: np.ndarray, must: np.ndarray, cannot: np.ndarray):
    """Return seconds and objective of metric-learn; NaN if it is missing or fails."""
    if metric_learn is None:
        return np.nan, np.nan
    pairs, kinds = X[np.vstack([must, cannot])], np.repeat([1, -1], [len(must), len(cannot)])
    model = metric_learn.MMC(diagonal=diagonal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            seconds = common.seconds(lambda: model._fit(pairs, kinds))
        except ValueError:
            return np.nan, np.nan
    return seconds, objective(model.components_, X, must_link=must, cannot_link=cannot)


def compare(name: str, diagonal: bool, n_repeats: int) -> Iterable[common.Row]:
    """Print the medians over draws of pairs."""
    X, y = problem(name)
    n_pairs = N_PAIRS[name]
    rows = []
    for seed in range(n_repeats):
        must, cannot = draw_pairs(y, n_pairs, seed)
        relations = {"must_link": must, "cannot_link": cannot}
        ours, again = (MMC(diagonal).fit(X, **relations) for _ in range(2))
        assert (ours.components_ == again.components_).all(), "not deterministic"
        seconds = common.seconds(lambda r=relations: MMC(diagonal).fit(X, **r), at_least=0.05)
        theirs, value = peer(diagonal, X, must, cannot)
        gap, part = ours.gap_ / ours.objective_, value / ours.objective_
        rows.append([seconds, ours.n_iter_, gap, theirs, part])
    report(name, diagonal, n_pairs, np.array(rows))
    times = {"cgmm": [row[0] for row in rows], PEER: [row[3] for row in rows]}
    if metric_learn is None:
        del times[PEER]
    return common.rows("mmc", f"{name}, {KINDS[diagonal]}", n_pairs, times)


def report(name: str, diagonal: bool, n_pairs: int, rows: np.ndarray) -> None:
    """One line of the table."""
    seconds, n_iter, gap, theirs, part = rows.T
    failed = np.isnan(theirs)
    ratio, part = common.ratios(theirs, of=seconds), part[~failed]
    line = (
        f"{name:<7}{KINDS[diagonal]:<9}{n_pairs:5d} pairs   "
        f"{1e3 * np.median(seconds):7.2f} ms  {np.median(n_iter):3.0f} steps  gap {gap.max():.0e}"
    )
    if not failed.all():
        line += (
            f"   {1e3 * np.nanmedian(theirs):8.2f} ms   "
            f"{common.spread(ratio, 1):<24}"
            f"{part.min():.4f} to {part.max():.4f}"
            f"{f'   fails on {failed.sum()} of {len(failed)}' if failed.any() else ''}"
        )
    print(line, flush=True)


def all_pairs(name: str, diagonal: bool, n_repeats: int) -> Iterable[common.Row]:
    """Measure time and memory of cgmm for all pairs that the classes imply."""
    X, y = problem(name)
    model = MMC(diagonal)
    fit = {"cgmm": lambda: common.seconds(lambda: model.fit(X, y))}
    times = common.in_turn(fit, min(n_repeats, 3))
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"{name:<7}{KINDS[diagonal]:<9}{model.n_cannot_links_:9,d} cannot-links "
        f"{np.median(times['cgmm']):7.3f} s  {model.n_iter_:3d} steps  "
        f"gap {model.gap_ / model.objective_:.0e}  "
        f"{peak / 2**20:5.1f} MiB",
        flush=True,
    )
    return common.rows("mmc", f"{name}, {KINDS[diagonal]}, all pairs", len(X), times)


def main() -> None:
    """Print the tables and write the file."""
    options = common.options(__doc__, repeats=5)
    print(common.head())
    metric_learn_peer.prepare()
    print(f"{'':23}{'cgmm':>14}{'':22}   metric-learn   ratio (quartiles)    objective, as a part")
    problems = [p for p in PROBLEMS if not (options.smoke and p[0] == "digits")]
    measured: list[common.Row] = []
    for measure in (compare, all_pairs):
        for problem in problems:
            n_repeats = min(options.repeats, 3) if problem[0] == "digits" else options.repeats
            measured += measure(*problem, n_repeats)
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
