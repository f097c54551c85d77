"""Compare relevant component analysis in cgmm and in metric-learn: time and accuracy.

Run it with ``make bench`` or ``python benchmarks/rca.py``; ``--repeats N`` sets the number of
measurements, ``--smoke`` uses a hundredth of the points. metric-learn 0.7.0 is not part of the
book's environment (see benchmarks/requirements.txt); if it is not installed, only cgmm is measured.

*Time* is the processor time of a fit in this process, so other programs do not count; the ratio is
metric-learn / cgmm, so cgmm is faster if it is above one. *Error* is the largest absolute element
of W Ĉ Wᵗ - I, where Ĉ is computed by its definition in extended precision; it is "not finite" if W
contains NaN or infinity.

The last table is about problems of deficient rank, or with very different units. It shows the
number of columns and the error of each package, and if there was a warning (w) or an error.
"""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import common
import metric_learn_peer
import numpy as np
from metric_learn_peer import metric_learn

from cgmm.datasets import load
from cgmm.metric_learning import RCA, OnlineRCA, within_chunklet_covariance
from cgmm.scenarios import equal_chunklets

PEER = "metric-learn"


class Problem(NamedTuple):
    """Data set with chunklets of one size; the name "Gaussian" means simulated data."""

    name: str
    n_points: int
    n_dims: int
    chunk_size: int
    n_components: int | None = None

    @property
    def case(self) -> str:
        """Name of the case in the file of results."""
        columns = "" if self.n_components is None else f", to {self.n_components}"
        return f"{self.name}, D={self.n_dims}, chunklets of {self.chunk_size}{columns}"


PROBLEMS = [
    Problem(*data, n_components)
    for data in (
        ("iris", 150, 4, 2),
        ("wine", 178, 13, 2),
        ("Gaussian", 10_000, 10, 100),
        ("Gaussian", 10_000, 50, 20),
        ("Gaussian", 20_000, 10, 2),
    )
    for n_components in (None, 2)
]
MILLION = Problem("Gaussian", 1_000_000, 10, 2)
CASES = {(p.case, p.n_points) for p in [*PROBLEMS, MILLION]}


# ---------------------------------------------------------------------------- problems


def draw_gaussian_chunklets(
    n: int, d: int, size: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw points about the distant means of their chunklets, in random order."""
    rng = np.random.default_rng(seed)
    chunklets = rng.permutation(np.repeat(np.arange(n // size), size))
    means = 5 * rng.normal(size=(n // size, d))
    return means[chunklets] + rng.normal(size=(len(chunklets), d)), chunklets


def load_data(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of a problem, and the chunklet of each point."""
    if problem.name == "Gaussian":
        return draw_gaussian_chunklets(problem.n_points, problem.n_dims, problem.chunk_size)
    X, y, *_ = load(problem.name)
    return X, equal_chunklets(y, problem.chunk_size, len(y), random_state=0)


def yield_difficult_problems() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, points and chunklets of problems with deficient rank or very different units."""
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


# ---------------------------------------------------------------------------- both packages


def fit_cgmm(X: np.ndarray, chunklets: np.ndarray, **kwargs) -> np.ndarray:
    """Return the map W learnt by cgmm."""
    return RCA(**kwargs).fit(X, chunklets).components_


def fit_metric_learn(X: np.ndarray, chunklets: np.ndarray, **kwargs) -> np.ndarray:
    """Return the map W learnt by metric-learn."""
    return metric_learn.RCA(**kwargs).fit(X, chunklets).components_


def compute_error(W: np.ndarray, X: np.ndarray, chunklets: np.ndarray) -> str:
    """Return the largest absolute element of W Ĉ Wᵗ - I as text."""
    if not np.isfinite(W).all():
        return "not finite"
    W = W.astype(np.longdouble)
    X = X.astype(np.longdouble)
    scatter, n_points = np.zeros((len(W), len(W)), dtype=np.longdouble), 0
    for j in np.unique(chunklets[chunklets >= 0]):
        rows = X[chunklets == j]
        if len(rows) > 1:
            mapped = (rows - rows.mean(axis=0)) @ W.T
            scatter, n_points = scatter + mapped.T @ mapped, n_points + len(rows)
    return f"{float(abs(scatter / n_points - np.eye(len(W))).max()):.0e}"


# ---------------------------------------------------------------------------- tables


def compare(problem: Problem, n_repeats: int) -> Iterable[common.Row]:
    """Measure both packages in turn, print a line with times, ratio and errors; return the rows."""
    X, chunklets = load_data(problem)
    functions = {"cgmm": fit_cgmm}
    if metric_learn is not None:
        functions[PEER] = fit_metric_learn
    fits = {
        name: partial(function, X, chunklets, n_components=problem.n_components)
        for name, function in functions.items()
    }
    times = common.measure_in_turn(
        {name: partial(common.measure_seconds, fit, at_least=0.05) for name, fit in fits.items()},
        n_repeats,
    )
    line = f"{len(X):>7,} {problem.case:<37}"
    line += "".join(f"{1e3 * np.median(of_method):10.3f} ms" for of_method in times.values())
    if metric_learn is not None:
        ratios = common.compute_ratios(times[PEER], of=times["cgmm"])
        line += f"   {common.format_quartiles(ratios, 1):<22}"
    # Compute errors only for small problems, because extended precision is slow.
    if len(X) <= 2_000 or len(np.unique(chunklets)) <= 500:
        line += "   " + "  ".join(compute_error(fit(), X, chunklets) for fit in fits.values())
    print(line, flush=True)
    return common.yield_rows("rca", problem.case, len(X), times)


def describe_outcome(fit: Callable, X: np.ndarray, chunklets: np.ndarray) -> str:
    """Return the number of columns and the error of a fit, or the message of its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            W = fit(X, chunklets)
        except (ValueError, np.linalg.LinAlgError) as error:
            return f"{type(error).__name__}: {str(error)[:28]}..."
        warned = " w" if any(issubclass(c.category, UserWarning) for c in caught) else ""
        return f"{len(W)} columns, error {compute_error(W, X, chunklets)}{warned}"


def measure_many_points(n: int, n_repeats: int) -> Iterator[common.Row]:
    """Measure time and memory of cgmm for many pairs.

    metric-learn would need a mask of all points for each chunklet.
    """
    X, chunklets = draw_gaussian_chunklets(n, 10, 2)
    for name, compute in (
        ("cgmm, Ĉ alone", partial(within_chunklet_covariance, X, chunklets)),
        ("cgmm", partial(RCA().fit, X, chunklets)),
    ):
        functions = {name: partial(common.measure_seconds, compute)}
        times = common.measure_in_turn(functions, min(n_repeats, 3))
        tracemalloc.start()
        compute()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(
            f"{n:,} x 10 in pairs, {name:<14}{np.median(times[name]):6.3f} s, "
            f"{peak / 2**20:6.1f} MiB beyond {X.nbytes / 2**20:.0f} of data",
            flush=True,
        )
        yield from common.yield_rows("rca", MILLION.case, n, times)


def report_online_step(n: int) -> None:
    """Measure and print the time of a step of online RCA."""
    X, chunklets = draw_gaussian_chunklets(n, 10, 2)
    model = OnlineRCA(random_state=0)
    seconds = common.measure_seconds(lambda: model.partial_fit(X, chunklets), 0.05) / (n // 2)
    print(f"online, pairs in 10 dimensions: {1e6 * seconds:.1f} µs a step", flush=True)


def main() -> None:
    """Measure all problems, print the tables and write the file."""
    options = common.parse_options(__doc__, repeats=5)
    divisor = 100 if options.smoke else 1
    print(common.format_machine())
    metric_learn_peer.adapt_metric_learn()
    print(f"{'':47}{'cgmm':>11}  metric-learn   ratio (quartiles)         errors")
    measured: list[common.Row] = []
    for problem in PROBLEMS:
        if problem.name == "Gaussian":
            problem = problem._replace(n_points=problem.n_points // divisor)
        measured += compare(problem, options.repeats)
    print()
    fits = [fit_cgmm] if metric_learn is None else [fit_cgmm, fit_metric_learn]
    for name, X, chunklets in yield_difficult_problems():
        outcomes = (f"{describe_outcome(fit, X, chunklets):<46}" for fit in fits)
        print(f"{name:<24}" + "  |  ".join(outcomes))
    print()
    measured += measure_many_points(1_000_000 // divisor, options.repeats)
    report_online_step(20_000 // divisor)
    common.write_times(options.results, measured)


if __name__ == "__main__":
    main()
