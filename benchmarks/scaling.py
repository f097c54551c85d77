"""Measure how the time of an iteration or an E-step grows with one size at a time.

    python benchmarks/scaling.py                all of it, a minute or two
    python benchmarks/scaling.py --smoke        the smallest size of each case, once

``--repeats N`` for more rounds. One thread, times of the process; all sizes of a case take turns.
Theory, as cgmm/inference and the book have it:

==================  ======================================  ============================
case                what is measured                        grows as
==================  ======================================  ============================
points              EM iteration; COP-KMeans; RCA           N
components          EM iteration                            K
dimensions          EM iteration, diag; full                D; D² of the products, then D³
dimensions, others  COP-KMeans iteration; RCA               D; D² of the products, then D³
must-links          EM iteration of as many points          not at all
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
from inference import cliques, soft
from sklearn.exceptions import ConvergenceWarning

from cgmm.inference import ENGINES
from cgmm.kmeans import COPKMeans
from cgmm.metric_learning import RCA
from cgmm.mixture import POOLINGS, Parameters, em, ignore
from cgmm.network import Engine, Graph, SideInformation

Work = Callable[[], float]
AT_LEAST = 0.02  # seconds of calls behind a time
LENGTH = 40


# ------------------------------------------------------------------------- what is timed


def blobs(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points of overlapping round classes, the classes, and starting means."""
    rng = np.random.default_rng(0)
    centres, z = 2 * rng.normal(size=(k, d)), rng.integers(k, size=n)
    return centres[z] + rng.normal(size=(n, d)), z, centres + 0.3 * rng.normal(size=(k, d))


def same_class(z: np.ndarray, n_pairs: int) -> np.ndarray:
    """Return pairs of neighbours in the order of their classes, each point in one pair."""
    order = np.argsort(z, kind="stable")
    pairs = order[: len(order) // 2 * 2].reshape(-1, 2)
    return pairs[z[pairs[:, 0]] == z[pairs[:, 1]]][:n_pairs]


def mixture(n: int, d: int, k: int, kind: str = "full", n_must_links: int = 0) -> Work:
    """Return a function that makes one iteration: M-step and E-step."""
    X, z, means = blobs(n, d, k)
    side = SideInformation.build(n, must_link=same_class(z, n_must_links))
    start = Parameters(np.full(k, 1 / k), means, np.stack([np.eye(d)] * k))
    infer = ENGINES["independent"](side.graph)
    steps = em(X, start, side, infer, POOLINGS[kind], ignore(), reg_covar=1e-3)
    next(steps)
    return lambda: common.seconds(lambda: next(steps), AT_LEAST)


def e_step(graph: Graph, n_states: int, engine: Engine) -> Work:
    """Return a function that makes one E-step in a network prepared before."""
    infer = engine(graph)
    unary = np.random.default_rng(1).normal(size=(graph.n_nodes, n_states))
    return lambda: common.seconds(lambda: infer(unary), AT_LEAST)


def apart(n_pairs: int) -> Graph:
    """Return cannot-links without a common node."""
    edges = np.arange(2 * n_pairs).reshape(-1, 2)
    return Graph(2 * n_pairs, edges, np.full(n_pairs, -np.inf))


def strip(width: int) -> Graph:
    """Return a grid of width x LENGTH, whose junction trees have cliques of width + 1 nodes."""
    names = np.arange(width * LENGTH).reshape(width, LENGTH)
    across = np.column_stack([names[:, :-1].ravel(), names[:, 1:].ravel()])
    down = np.column_stack([names[:-1].ravel(), names[1:].ravel()])
    return soft(names.size, np.concatenate([across, down]))


def cop_kmeans(n: int, d: int) -> Work:
    """Return a function that makes one iteration, with a share of validation and start."""
    X, z, means = blobs(n, d, 5)
    order = np.random.default_rng(2).permutation(n)[: n // 5].reshape(-1, 2)
    cannot_link = order[z[order[:, 0]] != z[order[:, 1]]]
    model = COPKMeans(5, init=means, max_iter=20, tol=0)
    known = {"must_link": same_class(z, n // 10), "cannot_link": cannot_link}

    def measure() -> float:
        seconds = common.seconds(lambda: model.fit(X, **known), AT_LEAST)
        return seconds / len(model.history_)

    return measure


def rca(n: int, d: int) -> Work:
    """Return a function that fits RCA to pairs."""
    X, z, _ = blobs(n, d, 5)
    pairs = same_class(z, n)
    chunklets = np.full(n, -1)
    chunklets[pairs] = np.arange(len(pairs))[:, None]
    return lambda: common.seconds(lambda: RCA().fit(X, chunklets), AT_LEAST)


# ---------------------------------------------------------------------------- problems


class Problem(NamedTuple):
    """One size of one case, and the function that makes what is timed."""

    case: str
    method: str
    size: int
    make: Callable[[], Work]


def grow(
    case: str, method: str, sizes: Iterable[int], make: Callable[[int], Work]
) -> list[Problem]:
    return [Problem(case, method, size, lambda s=size: make(s)) for size in sizes]


POINTS = (1_000, 3_000, 10_000, 30_000, 100_000)
DIMENSIONS = (2, 4, 8, 16, 32, 64, 128, 256)
PROBLEMS = [
    *grow("points", "EM, full", POINTS, lambda n: mixture(n, 8, 5)),
    *grow("points", "COP-KMeans", POINTS, lambda n: cop_kmeans(n, 8)),
    *grow("points", "RCA", POINTS, lambda n: rca(n, 8)),
    *grow("components", "EM, full", (2, 4, 8, 16, 32, 64, 128), lambda k: mixture(5_000, 8, k)),
    *grow("dimensions", "EM, full", DIMENSIONS, lambda d: mixture(3_000, d, 3)),
    *grow("dimensions", "EM, diag", DIMENSIONS, lambda d: mixture(3_000, d, 3, "diag")),
    *grow("dimensions", "COP-KMeans", DIMENSIONS, lambda d: cop_kmeans(3_000, d)),
    *grow("dimensions", "RCA", DIMENSIONS, lambda d: rca(10_000, d)),
    *grow(
        "must-links",
        "EM, full",
        (100, 300, 1_000, 3_000, 10_000),
        lambda p: mixture(30_000, 8, 5, n_must_links=p),
    ),
    *grow(
        "cannot-links apart",
        "pairs",
        (300, 1_000, 3_000, 10_000, 30_000, 100_000),
        lambda p: e_step(apart(p), 5, ENGINES["pairs"]),
    ),
    *grow(
        "width",
        "junction tree",
        range(1, 9),
        lambda w: e_step(strip(w), 3, ENGINES["junction_tree"]),
    ),
    *grow(
        "clique",
        "clique",
        (2, 4, 6, 8, 10, 12, 14),
        lambda n: e_step(cliques(50, n), n, ENGINES["clique"]),
    ),
]
CASES = {(p.case, p.size) for p in PROBLEMS}


# ------------------------------------------------------------------------------- tables


def compare(problems: list[Problem], n_repeats: int) -> Iterable[common.Row]:
    """Measure all sizes of a case and method in turn, and print a line."""
    times = common.in_turn({p.size: p.make() for p in problems}, n_repeats)
    case, method, *_ = problems[0]
    shown = "  ".join(f"{size}: {1e3 * np.median(took):.3g}" for size, took in times.items())
    print(f"{case}, {method} (ms)  {shown}", flush=True)
    for size, took in times.items():
        yield from common.rows("scaling", case, size, {method: took})


def main() -> None:
    """Print the times and write the file."""
    options = common.options(__doc__, repeats=5)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.head())
    curves: dict[tuple[str, str], list[Problem]] = {}
    for problem in PROBLEMS:
        curves.setdefault((problem.case, problem.method), []).append(problem)
    measured: list[common.Row] = []
    for problems in curves.values():
        measured += compare(problems[:1] if options.smoke else problems, options.repeats)
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
