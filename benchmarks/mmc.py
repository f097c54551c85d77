"""Time and objective of the metric of Xing et al.: cgmm beside metric-learn, in turn, in one run.

Run it with ``make bench`` or ``python benchmarks/mmc.py``; ``--repeats N`` for more draws of pairs.
One thread. metric-learn 0.7.0 is no part of the book's environment. Make one for both by ::

    python -m venv peers
    peers/bin/pip install metric-learn==0.7.0 .
    peers/bin/python benchmarks/mmc.py

Without it only cgmm is measured. Its code passes an argument that scikit-learn has renamed since
(force_all_finite, now ensure_all_finite); that is put right here, and nothing else.

Each draw takes as many must-links and as many cannot-links as metric-learn draws by default, 20 K²
of each, and hands the same pairs to both: *iris* and *wine* as they are, *digits* reduced to 20
principal components. Both run with their defaults;
of metric-learn only the solver is timed, not the calibration of a threshold that follows. Times are
of the process, so that other programs do not count. The ratio of times is metric-learn / cgmm:
above one means that cgmm is faster. Objectives are those of ``cgmm.mmc.objective``, which scales
either metric to the boundary of the constraint; theirs is given as a part of ours. The diagonal
solver of metric-learn adds the logarithm of the distances where Xing et al. subtract it: it stops
early, short of the maximum, at the same place for any tolerance, or it fails with NaN.

The last lines are for all pairs of the classes at once, 1.5 million cannot-links on digits, which
metric-learn cannot hold: it keeps a D x D matrix for each pair.
"""

from __future__ import annotations

import os

# Before numpy is imported: its libraries read these once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import platform
import time
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
import sklearn
from sklearn.decomposition import PCA

from cgmm.datasets import load
from cgmm.mmc import MMC, objective

try:
    import metric_learn
    import metric_learn._util
except ImportError:
    metric_learn = None

N_FITS = 10


def problem(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and classes."""
    X, y, *_ = load(name)
    return (PCA(20, svd_solver="full").fit_transform(X) if name == "digits" else X), y


def draw_pairs(y: np.ndarray, n_pairs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Must-links and cannot-links, so many of each, none twice."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(len(y), 1)
    kinds = np.flatnonzero(y[i] == y[j]), np.flatnonzero(y[i] != y[j])
    chosen = (rng.choice(kind, n_pairs, replace=False) for kind in kinds)
    return tuple(np.column_stack([i[k], j[k]]) for k in chosen)


def seconds_of(work: Callable[[], object], n_times: int = 1) -> float:
    """Process time of one call."""
    began = time.process_time()
    for _ in range(n_times):
        work()
    return (time.process_time() - began) / n_times


def renamed(check: Callable) -> Callable:
    """The check of scikit-learn, called by the old name of its argument."""

    def call(*args, **kwargs):
        if "force_all_finite" in kwargs:
            kwargs["ensure_all_finite"] = kwargs.pop("force_all_finite")
        return check(*args, **kwargs)

    return call


def peer(diagonal: bool, X: np.ndarray, must: np.ndarray, cannot: np.ndarray):
    """Seconds and objective of metric-learn; NaN if it is missing or fails."""
    if metric_learn is None:
        return np.nan, np.nan
    pairs, kinds = X[np.vstack([must, cannot])], np.repeat([1, -1], [len(must), len(cannot)])
    model = metric_learn.MMC(diagonal=diagonal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            seconds = seconds_of(lambda: model._fit(pairs, kinds))
        except ValueError:
            return np.nan, np.nan
    return seconds, objective(model.components_, X, must_link=must, cannot_link=cannot)


def compare(name: str, diagonal: bool, n_repeats: int) -> None:
    """Print the medians over draws of pairs."""
    X, y = problem(name)
    n_pairs = 20 * (y.max() + 1) ** 2
    rows = []
    for seed in range(n_repeats):
        must, cannot = draw_pairs(y, n_pairs, seed)
        relations = {"must_link": must, "cannot_link": cannot}
        ours, again = (MMC(diagonal).fit(X, **relations) for _ in range(2))
        assert (ours.components_ == again.components_).all(), "not deterministic"
        seconds = seconds_of(lambda r=relations: MMC(diagonal).fit(X, **r), N_FITS)
        theirs, value = peer(diagonal, X, must, cannot)
        gap, part = ours.gap_ / ours.objective_, value / ours.objective_
        rows.append([seconds, ours.n_iter_, gap, theirs, part])
    report(name, diagonal, n_pairs, np.array(rows))


def report(name: str, diagonal: bool, n_pairs: int, rows: np.ndarray) -> None:
    """One line of the table."""
    seconds, n_iter, gap, theirs, part = rows.T
    failed = np.isnan(theirs)
    ratio, part = np.sort((theirs / seconds)[~failed]), part[~failed]
    line = (
        f"{name:<7}{'diagonal' if diagonal else 'full':<9}{n_pairs:5d} pairs   "
        f"{1e3 * np.median(seconds):7.2f} ms  {np.median(n_iter):3.0f} steps  gap {gap.max():.0e}"
    )
    if not failed.all():
        line += (
            f"   {1e3 * np.nanmedian(theirs):8.2f} ms   "
            f"{np.median(ratio):7.1f} ({ratio[0]:.1f} to {ratio[-1]:.1f})   "
            f"{part.min():.4f} to {part.max():.4f}"
            f"{f'   fails on {failed.sum()} of {len(failed)}' if failed.any() else ''}"
        )
    print(line, flush=True)


def all_pairs(name: str, diagonal: bool) -> None:
    """Time and memory of cgmm for all pairs that the classes imply."""
    X, y = problem(name)
    model = MMC(diagonal)
    seconds = seconds_of(lambda: model.fit(X, y))
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"{name:<7}{'diagonal' if diagonal else 'full':<9}{model.n_cannot_links_:9,d} cannot-links "
        f"{seconds:7.3f} s  {model.n_iter_:3d} steps  gap {model.gap_ / model.objective_:.0e}  "
        f"{peak / 2**20:5.1f} MiB",
        flush=True,
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="draws of pairs")
    options = parser.parse_args()
    machine = platform.processor() or platform.machine()
    print(f"{machine}, Python {platform.python_version()}", end=", ")
    print(f"numpy {np.__version__}, scikit-learn {sklearn.__version__}")
    if metric_learn is None:
        print("metric-learn is not installed here: only cgmm is measured (see the top of the file)")
    else:
        # It calls functions that scikit-learn will drop, too.
        warnings.simplefilter("ignore", FutureWarning)
        for check in ("check_array", "check_X_y"):
            setattr(metric_learn._util, check, renamed(getattr(metric_learn._util, check)))
    print(f"{'':23}{'cgmm':>14}{'':22}   metric-learn   ratio of times       objective, as a part")
    for name in ("iris", "wine", "digits"):
        for diagonal in (False, True):
            compare(name, diagonal, options.repeats)
    for name in ("iris", "wine", "digits"):
        for diagonal in (False, True):
            all_pairs(name, diagonal)


if __name__ == "__main__":
    main()
