"""Time of exact inference: cgmm's engines beside pyAgrum, in turn, in one process.

Run it with ``python benchmarks/inference.py``; ``--repeats N`` for more pairs of measurements,
``--quick`` without the largest problems. Needs ``pip install pyagrum``. Both run on one thread, in
the same Markov random field, and tell the posterior of every node; pyAgrum by Shafer-Shenoy
propagation, its exact inference for such fields. Building a field from numbers is not counted.

*First*: everything that depends on the structure, and one E-step. *E-step*: another one in the same
structure with other unaries, which pyAgrum takes as evidence. EM makes the first once and the
second at every iteration. Times are of the processor; the ratio is pyAgrum / cgmm: above one means
that cgmm is faster. The second table has what no table over a clique can hold.
"""

from __future__ import annotations

import os

# Before numpy is imported: its libraries read these once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import itertools
import platform
import time
import tracemalloc
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyagrum

from cgmm.inference.clique import clique
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Engine, Graph, simplify


class Problem(NamedTuple):
    """A soft network and its number of states."""

    name: str
    graph: Graph
    n_states: int
    is_large: bool = False

    def unary(self, seed: int) -> np.ndarray:
        """Standard normal log-potentials."""
        return np.random.default_rng(seed).normal(size=(self.graph.n_nodes, self.n_states))


def soft(n_nodes: int, edges: np.ndarray, seed: int = 0) -> Graph:
    """Standard normal log-weights."""
    weights = np.random.default_rng(seed).normal(size=len(edges))
    return simplify(Graph(n_nodes, edges, weights))


def chain(n_nodes: int) -> Graph:
    return soft(n_nodes, np.column_stack([np.arange(n_nodes - 1), np.arange(1, n_nodes)]))


def sparse(n_nodes: int, n_edges: int) -> Graph:
    """Random pairs: mean degree 2 n_edges / n_nodes."""
    pairs = np.array(list(itertools.combinations(range(n_nodes), 2)))
    rng = np.random.default_rng(2)
    return soft(n_nodes, pairs[rng.choice(len(pairs), n_edges, replace=False)])


def grid(side: int) -> Graph:
    names = np.arange(side**2).reshape(side, side)
    across = np.column_stack([names[:, :-1].ravel(), names[:, 1:].ravel()])
    down = np.column_stack([names[:-1].ravel(), names[1:].ravel()])
    return soft(side**2, np.concatenate([across, down]))


def cliques(n_cliques: int, n: int) -> Graph:
    """Cliques of n mutually cannot-linked nodes."""
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    edges = np.concatenate([pairs + n * b for b in range(n_cliques)])
    return Graph(n * n_cliques, edges, np.full(len(edges), -np.inf))


PROBLEMS = [
    Problem("chain of 1,000", chain(1000), 3),
    *(Problem("sparse, N=200", sparse(200, 200), k) for k in (3, 5)),
    *(Problem("grid 5 x 5", grid(5), k) for k in (3, 4, 5)),
    *(Problem("grid 8 x 8", grid(8), k, k == 5) for k in (3, 4, 5)),
    Problem("grid 12 x 12", grid(12), 3, True),
]


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


# ---------------------------------------------------------------------------- pyAgrum


def field_of(problem: Problem) -> pyagrum.MarkovRandomField:
    """The edges as factors; unaries come as evidence."""
    field = pyagrum.MarkovRandomField()
    for j in range(problem.graph.n_nodes):
        field.add(pyagrum.RangeVariable(str(j), str(j), 0, problem.n_states - 1))
        field.addFactor({str(j)}).fillWith(1)
    equal = np.eye(problem.n_states)
    for (a, b), w in zip(problem.graph.edges.tolist(), problem.graph.weights, strict=True):
        table = np.exp(w * equal).ravel().tolist()
        field.addFactor({str(a), str(b)}).fillWith(table)
    return field


def evidence_of(problem: Problem, seed: int) -> dict[str, list[float]]:
    unary = problem.unary(seed)
    likelihood = np.exp(unary - unary.max(axis=1, keepdims=True))
    return {str(j): row for j, row in enumerate(likelihood.tolist())}


def ask(inference: pyagrum.ShaferShenoyMRFInference, n_nodes: int) -> np.ndarray:
    inference.makeInference()
    return np.array([inference.posterior(str(j)).toarray() for j in range(n_nodes)])


def time_pyagrum(problem: Problem, field: pyagrum.MarkovRandomField) -> tuple[float, float]:
    """Seconds of the first posterior and of one with other evidence."""
    n_nodes, (one, other) = problem.graph.n_nodes, (evidence_of(problem, i) for i in (1, 2))

    def first() -> None:
        inference.setEvidence(one)
        ask(inference, n_nodes)

    def again() -> None:
        inference.updateEvidence(other)
        ask(inference, n_nodes)

    inference = pyagrum.ShaferShenoyMRFInference(field)
    return seconds(first), seconds(again)


# ------------------------------------------------------------------------------- cgmm


def time_engine(problem: Problem, engine: Engine) -> tuple[float, float]:
    """Seconds of the structure and one E-step, and of another."""
    one, other = (problem.unary(i) for i in (1, 2))
    infer = None

    def first() -> None:
        nonlocal infer
        infer = engine(problem.graph)
        infer(one)

    return seconds(first), seconds(lambda: infer(other))


def require_agreement(problem: Problem, field: pyagrum.MarkovRandomField) -> None:
    """The two must say the same before it is worth a comparison."""
    inference = pyagrum.ShaferShenoyMRFInference(field)
    inference.setEvidence(evidence_of(problem, 1))
    theirs = ask(inference, problem.graph.n_nodes)
    ours = junction_tree(problem.graph)(problem.unary(1)).nodes
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)


def peak_mebibytes(problem: Problem) -> float:
    """Most memory that the engine holds, its structure included."""
    tracemalloc.start()
    junction_tree(problem.graph)(problem.unary(1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def compare(problem: Problem, n_repeats: int) -> np.ndarray:
    """Measure in turn, print a line, return the median ratios of first and of E-step."""
    field = field_of(problem)
    require_agreement(problem, field)
    n_repeats = min(n_repeats, 3) if problem.is_large else n_repeats
    times = np.array(
        [
            [time_engine(problem, junction_tree), time_pyagrum(problem, field)]
            for _ in range(n_repeats)
        ]
    )
    ratios = np.median(times[:, 1] / times[:, 0], axis=0)
    (ours, ours_again), (theirs, theirs_again) = 1e3 * np.median(times, axis=0)
    print(
        f"{problem.name:<15} K={problem.n_states}  {ours:8.2f} {theirs:8.2f} ms {ratios[0]:6.2f}  "
        f"{ours_again:8.2f} {theirs_again:8.2f} ms {ratios[1]:6.2f}   "
        f"{peak_mebibytes(problem):7.1f} MiB",
        flush=True,
    )
    return ratios


def measure_alone(name: str, problem: Problem, engine: Engine, scale: float, n: int) -> None:
    """One line for a problem without a rival."""
    infer, unary = engine(problem.graph), scale * problem.unary(1)
    infer(unary)
    times = [seconds(lambda: infer(unary)) for _ in range(n)]
    print(f"{name:<58} {1e3 * np.median(times):8.1f} ms an E-step", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9, help="pairs of measurements")
    parser.add_argument("--quick", action="store_true", help="without the largest problems")
    options = parser.parse_args()
    pyagrum.setNumberOfThreads(1)
    print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, pyAgrum {pyagrum.__version__}"
    )
    print(f"{'':<22}first: cgmm  pyAgrum     ratio    E-step: cgmm  pyAgrum  ratio      peak")
    problems = [p for p in PROBLEMS if not (options.quick and p.is_large)]
    ratios = np.array([compare(problem, options.repeats) for problem in problems])
    mean = np.exp(np.log(ratios).mean(axis=0))
    print(f"geometric mean of the ratios: first {mean[0]:.2f}, E-step {mean[1]:.2f}; ", end="")
    print(f"smallest: {ratios[:, 0].min():.2f}, {ratios[:, 1].min():.2f}\n")
    for n, scale in ((10, 1), (10, 300), (12, 1), (12, 300)):
        name = f"500 cliques of {n} cannot-linked nodes, K={n}, unaries x {scale}"
        measure_alone(name, Problem("", cliques(500, n), n), clique, scale, options.repeats)
    long = Problem("", chain(100_000), 3)
    measure_alone("chain of 100,000, K=3", long, junction_tree, 1, 3)


if __name__ == "__main__":
    main()
