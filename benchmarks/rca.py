"""Compare relevant component analysis with metric-learn: time and accuracy, in turn.

Run it with ``make bench`` or ``python benchmarks/rca.py``; ``--repeats N`` for more pairs of
measurements, ``--smoke`` for a hundredth of the points. metric-learn 0.7.0 is no part of the book's
environment, see benchmarks/requirements.txt; without it only cgmm is measured.

*Time* is of a fit, of the process, so that other programs do not count; the ratio is metric-learn /
cgmm: above one means that cgmm is faster. *Error* is how far W Ĉ Wᵗ is from the identity, Ĉ by its
definition in extended precision, at worst over all elements; "not finite" where W holds NaN or
infinity. *Whitened* is what the error refers to: the columns that transform gives.

The last table is of problems that no full rank answers, and of units far apart: what each makes of
them, and whether it says so by a warning (w) or an error.
"""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable, Iterable, Iterator
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
    """Points of a data set in chunklets, or of Gaussians."""

    name: str
    n_points: int
    n_dims: int
    chunk_size: int
    n_components: int | None = None

    @property
    def case(self) -> str:
        columns = "" if self.n_components is None else f", to {self.n_components}"
        return f"{self.name}, D={self.n_dims}, chunklets of {self.chunk_size}{columns}"


PROBLEMS = [
    Problem(*which, n_components)
    for which in (
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


def gaussian(n: int, d: int, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw chunklets of one size about distant means, points in random order."""
    rng = np.random.default_rng(seed)
    chunklets = rng.permutation(np.repeat(np.arange(n // size), size))
    means = 5 * rng.normal(size=(n // size, d))
    return means[chunklets] + rng.normal(size=(len(chunklets), d)), chunklets


def sample(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return points and chunklets that both packages can solve."""
    if problem.name == "Gaussian":
        return gaussian(problem.n_points, problem.n_dims, problem.chunk_size)
    X, y, *_ = load(problem.name)
    return X, equal_chunklets(y, problem.chunk_size, len(y), random_state=0)


def difficult() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Return problems of deficient rank, or with very different units."""
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


def error_of(W: np.ndarray, X: np.ndarray, chunklets: np.ndarray) -> str:
    """Return the deviation of W Ĉ Wᵗ from the identity."""
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
    """Print one line: times, ratio, errors."""
    X, chunklets = sample(problem)
    fits = {"cgmm": ours} if metric_learn is None else {"cgmm": ours, PEER: theirs}
    works = {
        name: lambda f=fit: f(X, chunklets, n_components=problem.n_components)
        for name, fit in fits.items()
    }
    # As many calls as take a twentieth of a second.
    times = common.in_turn(
        {name: lambda w=work: common.seconds(w, at_least=0.05) for name, work in works.items()},
        n_repeats,
    )
    line = f"{len(X):>7,} {problem.case:<37}"
    line += "".join(f"{1e3 * np.median(took):10.3f} ms" for took in times.values())
    if metric_learn is not None:
        line += f"   {common.spread(common.ratios(times[PEER], of=times['cgmm']), 1):<22}"
    # Errors of both, on the smaller problems: extended precision has its price.
    if len(X) <= 2_000 or len(np.unique(chunklets)) <= 500:
        line += "   " + "  ".join(error_of(work(), X, chunklets) for work in works.values())
    print(line, flush=True)
    return common.rows("rca", problem.case, len(X), times)


def verdict(fit: Callable, X: np.ndarray, chunklets: np.ndarray) -> str:
    """Return the outcome of a difficult problem."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            W = fit(X, chunklets)
        except (ValueError, np.linalg.LinAlgError) as error:
            return f"{type(error).__name__}: {str(error)[:28]}..."
        warned = " w" if any(issubclass(c.category, UserWarning) for c in caught) else ""
        return f"{len(W)} columns, error {error_of(W, X, chunklets)}{warned}"


def million(n: int, n_repeats: int) -> Iterator[common.Row]:
    """Measure cgmm alone, because the peer needs a mask of all points for each chunklet."""
    X, chunklets = gaussian(n, 10, 2)
    for name, work in (
        ("cgmm, Ĉ alone", lambda: within_chunklet_covariance(X, chunklets)),
        ("cgmm", lambda: RCA().fit(X, chunklets)),
    ):
        times = common.in_turn({name: lambda w=work: common.seconds(w)}, min(n_repeats, 3))
        tracemalloc.start()
        work()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(
            f"{n:,} x 10 in pairs, {name:<14}{np.median(times[name]):6.3f} s, "
            f"{peak / 2**20:6.1f} MiB beyond {X.nbytes / 2**20:.0f} of data",
            flush=True,
        )
        yield from common.rows("rca", MILLION.case, n, times)


def stream(n: int) -> None:
    """Measure a step of the online algorithm."""
    X, chunklets = gaussian(n, 10, 2)
    model = OnlineRCA(random_state=0)
    seconds = common.seconds(lambda: model.partial_fit(X, chunklets), 0.05) / (n // 2)
    print(f"online, pairs in 10 dimensions: {1e6 * seconds:.1f} µs a step", flush=True)


def main() -> None:
    """Print the tables and write the file."""
    options = common.options(__doc__, repeats=5)
    shrink = 100 if options.smoke else 1
    print(common.head())
    metric_learn_peer.prepare()
    print(f"{'':47}{'cgmm':>11}  metric-learn   ratio (quartiles)         errors")
    measured: list[common.Row] = []
    for problem in PROBLEMS:
        if problem.name == "Gaussian":
            problem = problem._replace(n_points=problem.n_points // shrink)
        measured += compare(problem, options.repeats)
    print()
    for name, X, chunklets in difficult():
        fits = [ours] if metric_learn is None else [ours, theirs]
        print(f"{name:<24}" + "  |  ".join(f"{verdict(fit, X, chunklets):<46}" for fit in fits))
    print()
    measured += million(1_000_000 // shrink, options.repeats)
    stream(20_000 // shrink)
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
