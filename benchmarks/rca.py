"""Time and accuracy of relevant component analysis: cgmm beside metric-learn, in turn, in one run.

Run it with ``make bench`` or ``python benchmarks/rca.py``; ``--repeats N`` for more pairs of
measurements, ``--quick`` for tenfold fewer points. One thread. metric-learn 0.7.0 is no part of the
book's environment. Make one for both by ::

    python -m venv peers
    peers/bin/pip install metric-learn==0.7.0 .
    peers/bin/python benchmarks/rca.py

Without it only cgmm is measured. Its code passes an argument that scikit-learn has renamed since
(force_all_finite, now ensure_all_finite); that is put right here, and nothing else.

*Time* is of a fit, of the process, so that other programs do not count; the ratio is metric-learn /
cgmm: above one means that cgmm is faster. *Error* is how far W Ĉ Wᵗ is from the identity, Ĉ by its
definition in extended precision, at worst over all elements; "not finite" where W holds NaN or
infinity. *Whitened* is what the error refers to: the columns that transform gives.

The last table is of problems that no full rank answers, and of units far apart: what each makes of
them, and whether it says so by a warning (w) or an error.
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
from collections.abc import Callable, Iterator

import numpy as np
import sklearn

from cgmm.datasets import load
from cgmm.rca import RCA, OnlineRCA, within_chunklet_covariance
from cgmm.scenarios import equal_chunklets

try:
    import metric_learn
    import metric_learn._util
except ImportError:
    metric_learn = None

Problem = tuple[str, np.ndarray, np.ndarray]


# ---------------------------------------------------------------------------- problems


def gaussian(n: int, d: int, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Chunklets of one size about far means, points in random order."""
    rng = np.random.default_rng(seed)
    chunklets = rng.permutation(np.repeat(np.arange(n // size), size))
    means = 5 * rng.normal(size=(n // size, d))
    return means[chunklets] + rng.normal(size=(len(chunklets), d)), chunklets


def full_rank(shrink: int) -> Iterator[Problem]:
    """Problems that both can solve."""
    for name in ("iris", "wine"):
        X, y, *_ = load(name)
        yield f"{name}, pairs", X, equal_chunklets(y, 2, len(y), random_state=0)
    for n, d, size in [(10_000, 10, 100), (10_000, 50, 20), (20_000, 10, 2)]:
        X, chunklets = gaussian(n // shrink, d, size)
        yield f"{n // shrink:,} x {d}, size {size}", X, chunklets


def difficult() -> Iterator[Problem]:
    """Problems of deficient rank, or of units far apart."""
    X, y, *_ = load("digits")
    yield "digits, all labels", X, y
    yield "digits, 30 pairs", X, equal_chunklets(y, 2, 70, random_state=0)
    X, y, *_ = load("iris")
    yield "iris, a column doubled", np.column_stack([X, X[:, 0]]), y
    yield "iris, and the class", np.column_stack([X, y]), y
    yield "iris, one pair", X, np.where(np.isin(np.arange(150), [0, 60]), 0, -1)
    yield "iris, no pair", X, np.full(150, -1)
    yield "iris, units 1e±9", X * [1e-9, 1.0, 1e9, 1.0], y
    yield "iris, offset 1e9", X + 1e9, y


# ---------------------------------------------------------------------------- the two


def ours(X: np.ndarray, chunklets: np.ndarray, **kwargs) -> np.ndarray:
    return RCA(**kwargs).fit(X, chunklets).components_


def theirs(X: np.ndarray, chunklets: np.ndarray, **kwargs) -> np.ndarray:
    return metric_learn.RCA(**kwargs).fit(X, chunklets).components_


def renamed(check: Callable) -> Callable:
    """The check of scikit-learn, called by the old name of its argument."""

    def call(*args, **kwargs):
        if "force_all_finite" in kwargs:
            kwargs["ensure_all_finite"] = kwargs.pop("force_all_finite")
        return check(*args, **kwargs)

    return call


def error_of(W: np.ndarray, X: np.ndarray, chunklets: np.ndarray) -> str:
    """Deviation of W Ĉ Wᵗ from the identity."""
    if not np.isfinite(W).all():
        return "not finite"
    W = W.astype(np.longdouble)
    X = X.astype(np.longdouble)
    scatter, n_points = np.zeros((len(W), len(W)), dtype=np.longdouble), 0
    for j in np.unique(chunklets[chunklets >= 0]):
        rows = X[chunklets == j]
        if len(rows) > 1:
            seen = (rows - rows.mean(axis=0)) @ W.T
            scatter, n_points = scatter + seen.T @ seen, n_points + len(rows)
    return f"{float(abs(scatter / n_points - np.eye(len(W))).max()):.0e}"


def seconds_of(work: Callable[[], object]) -> float:
    """Process time of one call, of as many as take a twentieth of a second."""
    n_times, began = 0, time.process_time()
    while n_times == 0 or time.process_time() - began < 0.05:
        work()
        n_times += 1
    return (time.process_time() - began) / n_times


# ---------------------------------------------------------------------------- tables


def compare(problem: Problem, n_components: int | None, n_repeats: int) -> None:
    """One line: times, ratio, errors."""
    name, X, chunklets = problem
    fits = [ours] if metric_learn is None else [ours, theirs]
    options = {"n_components": n_components}
    pairs = np.array(
        [[seconds_of(lambda f=fit: f(X, chunklets, **options)) for fit in fits]
         for _ in range(n_repeats)]
    )  # fmt: skip
    columns = "" if n_components is None else f" to {n_components}"
    line = f"{name + columns:<30}" + "".join(
        f"{1e3 * t:10.3f} ms" for t in np.median(pairs, axis=0)
    )
    if metric_learn is not None:
        ratio = np.sort(pairs[:, 1] / pairs[:, 0])
        line += f"   {np.median(ratio):7.1f} ({ratio[0]:.1f} to {ratio[-1]:.1f})"
    # Errors of both, on the smaller problems: extended precision has its price.
    if len(X) <= 2_000 or len(np.unique(chunklets)) <= 500:
        line += "   " + "  ".join(error_of(f(X, chunklets, **options), X, chunklets) for f in fits)
    print(line, flush=True)


def verdict(fit: Callable, X: np.ndarray, chunklets: np.ndarray) -> str:
    """What comes of a difficult problem."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            W = fit(X, chunklets)
        except (ValueError, np.linalg.LinAlgError) as error:
            return f"{type(error).__name__}: {str(error)[:28]}..."
        said = " w" if any(issubclass(c.category, UserWarning) for c in caught) else ""
        return f"{len(W)} columns, error {error_of(W, X, chunklets)}{said}"


def million(n: int) -> None:
    """Time and memory of cgmm alone: the peer loops over chunklets, each a mask of all points."""
    X, chunklets = gaussian(n, 10, 2)
    for name, work in (
        ("Ĉ alone", lambda: within_chunklet_covariance(X, chunklets)),
        ("RCA", lambda: RCA().fit(X, chunklets)),
    ):
        seconds = min(seconds_of(work) for _ in range(3))
        tracemalloc.start()
        work()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(
            f"{n:,} x 10 in pairs, {name:<8} {seconds:6.3f} s, {peak / 2**20:6.1f} MiB beyond "
            f"{X.nbytes / 2**20:.0f} of data",
            flush=True,
        )


def stream(n: int) -> None:
    """Time of a step of the online algorithm."""
    X, chunklets = gaussian(n, 10, 2)
    model = OnlineRCA(random_state=0)
    seconds = seconds_of(lambda: model.partial_fit(X, chunklets)) / (n // 2)
    print(f"online, pairs in 10 dimensions: {1e6 * seconds:.1f} µs a step", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="pairs of measurements")
    parser.add_argument("--quick", action="store_true", help="a tenth of the points")
    options = parser.parse_args()
    shrink = 10 if options.quick else 1
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
    print(f"{'':30}{'cgmm':>13}   metric-learn   ratio of times        errors")
    for problem in full_rank(shrink):
        compare(problem, None, options.repeats)
        compare(problem, 2, options.repeats)
    print()
    for name, X, chunklets in difficult():
        fits = [ours] if metric_learn is None else [ours, theirs]
        print(f"{name:<24}" + "  |  ".join(f"{verdict(fit, X, chunklets):<46}" for fit in fits))
    print()
    million(1_000_000 // shrink)
    stream(20_000 // shrink)


if __name__ == "__main__":
    main()
