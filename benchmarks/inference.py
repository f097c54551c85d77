"""Measure exact inference: cgmm's engines beside pyAgrum, in turn, in one process.

Run it with ``python benchmarks/inference.py``; ``--repeats N`` for more pairs of measurements,
``--smoke`` for small ones. Without ``pip install pyagrum`` only cgmm is measured. Both run on one
thread, in the same Markov random field, and tell the posterior of every node; pyAgrum by
Shafer-Shenoy propagation, its exact inference for such fields. Building a field from numbers is not
counted.

*First*: everything that depends on the structure, and one E-step. *E-step*: another one in the same
structure with other unaries, which pyAgrum takes as evidence. EM makes the first once and the
second at every iteration. Times are of the processor; the ratio is pyAgrum / cgmm: above one means
that cgmm is faster. The second table has what no table over a clique can hold.
"""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterable
from typing import NamedTuple

import common
import numpy as np

from cgmm.inference.clique import clique
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Engine, Graph, simplify

try:
    import pyagrum
except ImportError:
    pyagrum = None


class Problem(NamedTuple):
    """A soft network and its number of states."""

    name: str
    graph: Graph
    n_states: int
    is_large: bool = False
    scale: float = 1.0

    @property
    def case(self) -> str:
        return f"{self.name}, K={self.n_states}"

    @property
    def size(self) -> int:
        return self.graph.n_nodes

    def unary(self, seed: int) -> np.ndarray:
        """Draw normal log-potentials."""
        rng = np.random.default_rng(seed)
        return self.scale * rng.normal(size=(self.graph.n_nodes, self.n_states))


def soft(n_nodes: int, edges: np.ndarray, seed: int = 0) -> Graph:
    """Return the graph with standard normal log-weights."""
    weights = np.random.default_rng(seed).normal(size=len(edges))
    return simplify(Graph(n_nodes, edges, weights))


def chain(n_nodes: int) -> Graph:
    return soft(n_nodes, np.column_stack([np.arange(n_nodes - 1), np.arange(1, n_nodes)]))


def sparse(n_nodes: int, n_edges: int) -> Graph:
    """Draw random pairs with mean degree 2 n_edges / n_nodes."""
    pairs = np.array(list(itertools.combinations(range(n_nodes), 2)))
    rng = np.random.default_rng(2)
    return soft(n_nodes, pairs[rng.choice(len(pairs), n_edges, replace=False)])


def grid(side: int) -> Graph:
    names = np.arange(side**2).reshape(side, side)
    across = np.column_stack([names[:, :-1].ravel(), names[:, 1:].ravel()])
    down = np.column_stack([names[:-1].ravel(), names[1:].ravel()])
    return soft(side**2, np.concatenate([across, down]))


def cliques(n_cliques: int, n: int) -> Graph:
    """Return cliques of n mutually cannot-linked nodes."""
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    edges = np.concatenate([pairs + n * b for b in range(n_cliques)])
    return Graph(n * n_cliques, edges, np.full(len(edges), -np.inf))


PROBLEMS = [
    Problem("chain of 1,000", chain(1000), 3),
    *(Problem("sparse, N=200", sparse(200, 200), k, k == 5) for k in (3, 5)),
    *(Problem("grid 5 x 5", grid(5), k) for k in (3, 4, 5)),
    *(Problem("grid 8 x 8", grid(8), k, k == 5) for k in (3, 4, 5)),
    Problem("grid 12 x 12", grid(12), 3, True),
]
# These problems are measured without pyAgrum.
ALONE = [
    *(
        Problem(f"500 cliques of {n}, unaries x {scale}", cliques(500, n), n, scale=scale)
        for n in (10, 12)
        for scale in (1, 300)
    ),
    Problem("chain of 100,000", chain(100_000), 3, True),
]
CASES = {(p.case, p.size) for p in PROBLEMS + ALONE}
OURS = "cgmm, first", "cgmm, E-step"
THEIRS = "pyAgrum, first", "pyAgrum, E-step"


# ---------------------------------------------------------------------------- pyAgrum


def field_of(problem: Problem) -> pyagrum.MarkovRandomField:
    """Return the edges as factors of pyAgrum; unaries come as evidence."""
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
    """Return seconds of the first posterior, and of another one with other evidence."""
    n_nodes, (one, other) = problem.graph.n_nodes, (evidence_of(problem, i) for i in (1, 2))

    def first() -> None:
        inference.setEvidence(one)
        ask(inference, n_nodes)

    def again() -> None:
        inference.updateEvidence(other)
        ask(inference, n_nodes)

    inference = pyagrum.ShaferShenoyMRFInference(field)
    return common.seconds(first), common.seconds(again)


# ------------------------------------------------------------------------------- cgmm


def time_engine(problem: Problem, engine: Engine) -> tuple[float, float]:
    """Return seconds of the structure with one E-step, and of another E-step."""
    one, other = (problem.unary(i) for i in (1, 2))
    infer = None

    def first() -> None:
        nonlocal infer
        infer = engine(problem.graph)
        infer(one)

    return common.seconds(first), common.seconds(lambda: infer(other))


def require_agreement(problem: Problem, field: pyagrum.MarkovRandomField) -> None:
    """Raise unless both packages give the same marginals."""
    inference = pyagrum.ShaferShenoyMRFInference(field)
    inference.setEvidence(evidence_of(problem, 1))
    theirs = ask(inference, problem.graph.n_nodes)
    ours = junction_tree(problem.graph)(problem.unary(1)).nodes
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)


def peak_mebibytes(problem: Problem) -> float:
    """Return the peak memory of the engine, including its structure."""
    tracemalloc.start()
    junction_tree(problem.graph)(problem.unary(1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def times_of(problem: Problem, n_repeats: int) -> dict[str, list[float]]:
    """Return times of the first posterior and of an E-step of each package, in turn."""
    field = None if pyagrum is None else field_of(problem)
    if field is not None:
        require_agreement(problem, field)
    times: dict[str, list[float]] = {}
    for _ in range(min(n_repeats, 3) if problem.is_large else n_repeats):
        took = dict(zip(OURS, time_engine(problem, junction_tree), strict=True))
        if field is not None:
            took |= dict(zip(THEIRS, time_pyagrum(problem, field), strict=True))
        for name, seconds in took.items():
            times.setdefault(name, []).append(seconds)
    return times


def compare(problem: Problem, n_repeats: int) -> Iterable[common.Row]:
    """Measure in turn and print a line."""
    times = times_of(problem, n_repeats)
    line = f"{problem.case:<20}"
    for ours, theirs in zip(OURS, THEIRS, strict=True):
        line += f"{1e3 * np.median(times[ours]):9.2f} "
        if theirs in times:
            ratio = common.spread(common.ratios(times[theirs], of=times[ours]))
            line += f"{1e3 * np.median(times[theirs]):8.2f} ms {ratio:<22}"
    print(f"{line}{peak_mebibytes(problem):8.1f} MiB", flush=True)
    return common.rows("inference", problem.case, problem.size, times)


def measure_alone(problem: Problem, n_repeats: int) -> Iterable[common.Row]:
    """Measure a problem without pyAgrum and print a line."""
    engine = clique if "cliques" in problem.name else junction_tree
    infer, unary = engine(problem.graph), problem.unary(1)
    infer(unary)
    n_repeats = min(n_repeats, 3) if problem.is_large else n_repeats
    times = common.in_turn({OURS[1]: lambda: common.seconds(lambda: infer(unary))}, n_repeats)
    print(f"{problem.case:<42} {1e3 * np.median(times[OURS[1]]):8.1f} ms an E-step", flush=True)
    return common.rows("inference", problem.case, problem.size, times)


def means(measured: list[common.Row]) -> None:
    """Return the geometric mean of the ratios of all problems, and the smallest."""
    for ours, theirs in zip(OURS, THEIRS, strict=True):
        middle = []
        for problem in PROBLEMS:
            of = [r for r in measured if (r.case, r.size) == (problem.case, problem.size)]
            took = ([r.seconds for r in of if r.method == name] for name in (theirs, ours))
            middle.append(np.median(common.ratios(*took)))
        mean = np.exp(np.log(middle).mean())
        print(f"{ours}: geometric mean of the ratios {mean:.2f}, smallest {min(middle):.2f}")


def main() -> None:
    """Print both tables and write the file."""
    options = common.options(__doc__, repeats=7)
    print(common.head())
    if pyagrum is None:
        common.without("pyAgrum")
    else:
        pyagrum.setNumberOfThreads(1)
    print(f"{'':<22}first: cgmm  pyAgrum, ratio             E-step: cgmm  pyAgrum, ratio    peak")
    measured: list[common.Row] = []
    for problem in PROBLEMS:
        if not (options.smoke and problem.is_large):
            measured += compare(problem, options.repeats)
    if pyagrum is not None and not options.smoke:
        means(measured)
    for problem in ALONE:
        if not (options.smoke and problem.size > 5000):
            measured += measure_alone(problem, options.repeats)
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
