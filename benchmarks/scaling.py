"""Measure how the time of an iteration, a fit or an E-step grows with one size at a time.

    python benchmarks/scaling.py                all cases, a minute or two
    python benchmarks/scaling.py --smoke        the smallest size of each case, once

``--repeats N`` sets the number of rounds. Times are processor times on one thread; all sizes of a
case are measured in turn. According to the theory in cgmm/inference and in the book:

==================  ======================================  ============================
case                measurement                             grows like
==================  ======================================  ============================
points              EM iteration; COP-KMeans; RCA           N
components          EM iteration                            K
dimensions          EM iteration, diag; full                D; D² (products), then D³
dimensions, others  COP-KMeans iteration; RCA               D; D² (products), then D³
must-links          EM iteration with the same points       constant
cannot-links apart  E-step in the network of the pairs      number of pairs
width               E-step in a grid w x 40, K = 3          w Kʷ⁺¹
clique              E-step in cliques of n nodes, K = n     n 2ⁿ
==================  ======================================  ============================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple

import common
import numpy as np
from inference import build_cliques, build_grid
from sklearn.exceptions import ConvergenceWarning

from cgmm.inference import ENGINES
from cgmm.kmeans import COPKMeans
from cgmm.metric_learning import RCA
from cgmm.mixture import POOLINGS, Parameters, em, ignore
from cgmm.network import Engine, Graph, SideInformation

Measurement = Callable[[], float]
"""Function that repeats a computation and returns its mean time in seconds."""
# Each time is the mean over all calls within this number of seconds.
AT_LEAST = 0.02
LENGTH = 40


# ------------------------------------------------------------------------- measurements


def draw_clusters(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw points of overlapping round classes; return points, classes and initial means."""
    rng = np.random.default_rng(0)
    centres, z = 2 * rng.normal(size=(k, d)), rng.integers(k, size=n)
    return centres[z] + rng.normal(size=(n, d)), z, centres + 0.3 * rng.normal(size=(k, d))


def pair_within_classes(z: np.ndarray, n_pairs: int) -> np.ndarray:
    """Return pairs of points of the same class, such that no point is in two pairs."""
    order = np.argsort(z, kind="stable")
    pairs = order[: len(order) // 2 * 2].reshape(-1, 2)
    return pairs[z[pairs[:, 0]] == z[pairs[:, 1]]][:n_pairs]


def build_mixture(n: int, d: int, k: int, kind: str = "full", n_must_links: int = 0) -> Measurement:
    """Return a function that measures one iteration of EM."""
    X, z, means = draw_clusters(n, d, k)
    side = SideInformation.build(n, must_link=pair_within_classes(z, n_must_links))
    start = Parameters(np.full(k, 1 / k), means, np.stack([np.eye(d)] * k))
    infer = ENGINES["independent"](side.graph)
    steps = em(X, start, side, infer, POOLINGS[kind], ignore(), reg_covar=1e-3)
    next(steps)
    return lambda: common.measure_seconds(lambda: next(steps), AT_LEAST)


def build_e_step(graph: Graph, n_states: int, engine: Engine) -> Measurement:
    """Return a function that measures one E-step, without the work on the structure."""
    infer = engine(graph)
    unary = np.random.default_rng(1).normal(size=(graph.n_nodes, n_states))
    return lambda: common.measure_seconds(lambda: infer(unary), AT_LEAST)


def build_separate_pairs(n_pairs: int) -> Graph:
    """Return a network of cannot-links without a common node."""
    edges = np.arange(2 * n_pairs).reshape(-1, 2)
    return Graph(2 * n_pairs, edges, np.full(n_pairs, -np.inf))


def build_cop_kmeans(n: int, d: int) -> Measurement:
    """Return a function that measures a fit of COP-KMeans, divided by its number of iterations."""
    X, z, means = draw_clusters(n, d, 5)
    order = np.random.default_rng(2).permutation(n)[: n // 5].reshape(-1, 2)
    cannot_link = order[z[order[:, 0]] != z[order[:, 1]]]
    model = COPKMeans(5, init=means, max_iter=20, tol=0)
    known = {"must_link": pair_within_classes(z, n // 10), "cannot_link": cannot_link}

    def measure() -> float:
        seconds = common.measure_seconds(lambda: model.fit(X, **known), AT_LEAST)
        return seconds / len(model.history_)

    return measure


def build_rca(n: int, d: int) -> Measurement:
    """Return a function that measures a fit of RCA to pairs."""
    X, z, _ = draw_clusters(n, d, 5)
    pairs = pair_within_classes(z, n)
    chunklets = np.full(n, -1)
    chunklets[pairs] = np.arange(len(pairs))[:, None]
    return lambda: common.measure_seconds(lambda: RCA().fit(X, chunklets), AT_LEAST)


# ---------------------------------------------------------------------------- problems


class Problem(NamedTuple):
    """Size of a case, and a function that builds its measurement."""

    case: str
    method: str
    size: int
    build: Callable[[], Measurement]


def list_sizes(
    case: str, method: str, sizes: Iterable[int], build: Callable[[int], Measurement]
) -> list[Problem]:
    """Return a problem for each size of a case."""
    return [Problem(case, method, size, lambda s=size: build(s)) for size in sizes]


POINTS = (1_000, 3_000, 10_000, 30_000, 100_000)
COMPONENTS = (2, 4, 8, 16, 32, 64, 128)
DIMENSIONS = (2, 4, 8, 16, 32, 64, 128, 256)
PROBLEMS = [
    *list_sizes("points", "EM, full", POINTS, lambda n: build_mixture(n, 8, 5)),
    *list_sizes("points", "COP-KMeans", POINTS, lambda n: build_cop_kmeans(n, 8)),
    *list_sizes("points", "RCA", POINTS, lambda n: build_rca(n, 8)),
    *list_sizes("components", "EM, full", COMPONENTS, lambda k: build_mixture(5_000, 8, k)),
    *list_sizes("dimensions", "EM, full", DIMENSIONS, lambda d: build_mixture(3_000, d, 3)),
    *list_sizes("dimensions", "EM, diag", DIMENSIONS, lambda d: build_mixture(3_000, d, 3, "diag")),
    *list_sizes("dimensions", "COP-KMeans", DIMENSIONS, lambda d: build_cop_kmeans(3_000, d)),
    *list_sizes("dimensions", "RCA", DIMENSIONS, lambda d: build_rca(10_000, d)),
    *list_sizes(
        "must-links",
        "EM, full",
        (100, 300, 1_000, 3_000, 10_000),
        lambda p: build_mixture(30_000, 8, 5, n_must_links=p),
    ),
    *list_sizes(
        "cannot-links apart",
        "pairs",
        (300, 1_000, 3_000, 10_000, 30_000, 100_000),
        lambda p: build_e_step(build_separate_pairs(p), 5, ENGINES["pairs"]),
    ),
    *list_sizes(
        "width",
        "junction tree",
        range(1, 9),
        # Junction trees of this grid have cliques of w + 1 nodes.
        lambda w: build_e_step(build_grid(w, LENGTH), 3, ENGINES["junction_tree"]),
    ),
    *list_sizes(
        "clique",
        "clique",
        (2, 4, 6, 8, 10, 12, 14),
        lambda n: build_e_step(build_cliques(50, n), n, ENGINES["clique"]),
    ),
]
CASES = {(p.case, p.size) for p in PROBLEMS}


# ------------------------------------------------------------------------------- tables


def compare(problems: list[Problem], n_repeats: int) -> Iterable[common.Row]:
    """Measure all sizes of a case and method in turn, print a line, and yield the rows."""
    times = common.measure_in_turn({p.size: p.build() for p in problems}, n_repeats)
    case, method, *_ = problems[0]
    medians = "  ".join(f"{size}: {1e3 * np.median(of):.3g}" for size, of in times.items())
    print(f"{case}, {method} (ms)  {medians}", flush=True)
    for size, of in times.items():
        yield from common.yield_rows("scaling", case, size, {method: of})


def main() -> None:
    """Measure all cases, print the times and write the file."""
    options = common.parse_options(__doc__, repeats=5)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.format_machine())
    curves: dict[tuple[str, str], list[Problem]] = {}
    for problem in PROBLEMS:
        curves.setdefault((problem.case, problem.method), []).append(problem)
    measured: list[common.Row] = []
    for problems in curves.values():
        measured += compare(problems[:1] if options.smoke else problems, options.repeats)
    common.write_times(options.results, measured)


if __name__ == "__main__":
    main()
