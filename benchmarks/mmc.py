"""Compare the metric of Xing et al. in cgmm and in metric-learn: time and objective.

Run it with ``make bench`` or ``python benchmarks/mmc.py``; ``--repeats N`` sets the number of draws
of pairs, ``--smoke`` measures one draw of the small data sets. metric-learn 0.7.0 is not part of
the book's environment (see benchmarks/requirements.txt); if it is not installed, only cgmm is
measured.

Each draw has 20 K² must-links and 20 K² cannot-links, as many as metric-learn draws by default.
Both packages get the same pairs, of the data sets *iris*, *wine*, and *digits* reduced to 20
principal components. Both run with their defaults; for metric-learn only the solver is timed, not
the calibration of a threshold that follows. Times are processor times of this process, so other
programs do not count. The ratio is metric-learn / cgmm, so cgmm is faster if it is above one.

Objectives are computed by ``cgmm.metric_learning.objective``, which scales both metrics so that the
constraint is an equality; the objective of metric-learn is given as a share of that of cgmm. The
diagonal solver of metric-learn adds the logarithm of the distances where Xing et al. subtract it.
Therefore it stops before the maximum, at the same metric for any tolerance, or fails with NaN.

The last lines are for all pairs that the classes imply, for example 1.5 million cannot-links on
digits. metric-learn has too little memory for them, because it stores a D x D matrix for each pair.
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
# There are 20 K² pairs of each kind, as many as metric-learn draws by default.
N_POINTS = {"iris": 150, "wine": 178, "digits": 1797}
N_PAIRS = {"iris": 180, "wine": 180, "digits": 2000}
PROBLEMS = [(name, diagonal) for name in N_POINTS for diagonal in (False, True)]
CASES = {(f"{name}, {KINDS[d]}", N_PAIRS[name]) for name, d in PROBLEMS} | {
    (f"{name}, {KINDS[d]}, all pairs", N_POINTS[name]) for name, d in PROBLEMS
}


def load_data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the points and classes of a data set."""
    X, y, *_ = load(name)
    return (PCA(20, svd_solver="full").fit_transform(X) if name == "digits" else X), y


def draw_pairs(y: np.ndarray, n_pairs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw ``n_pairs`` different must-links and ``n_pairs`` different cannot-links."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(len(y), 1)
    candidates = np.flatnonzero(y[i] == y[j]), np.flatnonzero(y[i] != y[j])
    drawn = (rng.choice(indices, n_pairs, replace=False) for indices in candidates)
    return tuple(np.column_stack([i[k], j[k]]) for k in drawn)


def measure_metric_learn(diagonal: bool, X: np.ndarray, must: np.ndarray, cannot: np.ndarray):
    """Return seconds and objective of metric-learn; NaN if it is not installed or fails."""
    if metric_learn is None:
        return np.nan, np.nan
    pairs, kinds = X[np.vstack([must, cannot])], np.repeat([1, -1], [len(must), len(cannot)])
    model = metric_learn.MMC(diagonal=diagonal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            seconds = common.measure_seconds(lambda: model._fit(pairs, kinds))
        except ValueError:
            return np.nan, np.nan
    return seconds, objective(model.components_, X, must_link=must, cannot_link=cannot)


def compare(name: str, diagonal: bool, n_repeats: int) -> Iterable[common.Row]:
    """Measure both packages on the same pairs, print a line, and return the rows."""
    X, y = load_data(name)
    n_pairs = N_PAIRS[name]
    rows = []
    for seed in range(n_repeats):
        must, cannot = draw_pairs(y, n_pairs, seed)
        relations = {"must_link": must, "cannot_link": cannot}
        ours, repeated = (MMC(diagonal).fit(X, **relations) for _ in range(2))
        assert (ours.components_ == repeated.components_).all(), "not deterministic"
        seconds = common.measure_seconds(
            lambda r=relations: MMC(diagonal).fit(X, **r), at_least=0.05
        )
        seconds_of_peer, value = measure_metric_learn(diagonal, X, must, cannot)
        gap, share = ours.gap_ / ours.objective_, value / ours.objective_
        rows.append([seconds, ours.n_iter_, gap, seconds_of_peer, share])
    report(name, diagonal, n_pairs, np.array(rows))
    times = {"cgmm": [row[0] for row in rows], PEER: [row[3] for row in rows]}
    if metric_learn is None:
        del times[PEER]
    return common.yield_rows("mmc", f"{name}, {KINDS[diagonal]}", n_pairs, times)


def report(name: str, diagonal: bool, n_pairs: int, rows: np.ndarray) -> None:
    """Print the medians over draws as a line of the table."""
    seconds, n_iter, gap, seconds_of_peer, share = rows.T
    failed = np.isnan(seconds_of_peer)
    ratios, share = common.compute_ratios(seconds_of_peer, of=seconds), share[~failed]
    line = (
        f"{name:<7}{KINDS[diagonal]:<9}{n_pairs:5d} pairs   "
        f"{1e3 * np.median(seconds):7.2f} ms  {np.median(n_iter):3.0f} steps  gap {gap.max():.0e}"
    )
    if not failed.all():
        line += (
            f"   {1e3 * np.nanmedian(seconds_of_peer):8.2f} ms   "
            f"{common.format_quartiles(ratios, 1):<24}"
            f"{share.min():.4f} to {share.max():.4f}"
            f"{f'   fails on {failed.sum()} of {len(failed)}' if failed.any() else ''}"
        )
    print(line, flush=True)


def measure_all_pairs(name: str, diagonal: bool, n_repeats: int) -> Iterable[common.Row]:
    """Measure time and memory of cgmm for all pairs that the classes imply."""
    X, y = load_data(name)
    model = MMC(diagonal)
    fit = {"cgmm": lambda: common.measure_seconds(lambda: model.fit(X, y))}
    times = common.measure_in_turn(fit, min(n_repeats, 3))
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
    return common.yield_rows("mmc", f"{name}, {KINDS[diagonal]}, all pairs", len(X), times)


def main() -> None:
    """Measure all problems, print the tables and write the file."""
    options = common.parse_options(__doc__, repeats=5)
    print(common.format_machine())
    metric_learn_peer.adapt_metric_learn()
    print(f"{'':23}{'cgmm':>14}{'':22}   metric-learn   ratio (quartiles)    share of objective")
    problems = [p for p in PROBLEMS if not (options.smoke and p[0] == "digits")]
    measured: list[common.Row] = []
    for measure in (compare, measure_all_pairs):
        for problem in problems:
            n_repeats = min(options.repeats, 3) if problem[0] == "digits" else options.repeats
            measured += measure(*problem, n_repeats)
    common.write_times(options.results, measured)


if __name__ == "__main__":
    main()
