"""Compare the time of exact inference in cgmm and in pyAgrum.

Run it with ``python benchmarks/inference.py``; ``--repeats N`` sets the number of measurements,
``--smoke`` uses small problems. If pyAgrum is not installed, only cgmm is measured. Both packages
run on one thread, take turns on the same Markov random field, and compute the posterior of every
node. pyAgrum uses Shafer-Shenoy propagation, its exact inference for such fields. The construction
of a field from arrays is not counted.

*First*: all work on the structure, and one E-step. *E-step*: another E-step in the same structure
with other unaries, which pyAgrum takes as evidence. EM does the former once, and the latter in
every iteration. Times are processor times; the ratio is pyAgrum / cgmm, so cgmm is faster if it is
above one. The second table is about problems that are too large for tables over cliques.
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
    """Network with soft edges, and its number of states."""

    name: str
    graph: Graph
    n_states: int
    is_large: bool = False
    scale: float = 1.0

    @property
    def case(self) -> str:
        """Name of the case in the file of results."""
        return f"{self.name}, K={self.n_states}"

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.graph.n_nodes

    def draw_unary(self, seed: int) -> np.ndarray:
        """Draw normal log-potentials for all nodes."""
        rng = np.random.default_rng(seed)
        return self.scale * rng.normal(size=(self.graph.n_nodes, self.n_states))


def build_soft_graph(n_nodes: int, edges: np.ndarray, seed: int = 0) -> Graph:
    """Return a graph whose edges have standard normal log-weights."""
    weights = np.random.default_rng(seed).normal(size=len(edges))
    return simplify(Graph(n_nodes, edges, weights))


def build_chain(n_nodes: int) -> Graph:
    """Return a chain of nodes."""
    edges = np.column_stack([np.arange(n_nodes - 1), np.arange(1, n_nodes)])
    return build_soft_graph(n_nodes, edges)


def build_sparse_graph(n_nodes: int, n_edges: int) -> Graph:
    """Return a graph with edges between random pairs of nodes."""
    pairs = np.array(list(itertools.combinations(range(n_nodes), 2)))
    rng = np.random.default_rng(2)
    return build_soft_graph(n_nodes, pairs[rng.choice(len(pairs), n_edges, replace=False)])


def build_grid(n_rows: int, n_columns: int) -> Graph:
    """Return a rectangular grid of nodes."""
    nodes = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    horizontal = np.column_stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()])
    vertical = np.column_stack([nodes[:-1].ravel(), nodes[1:].ravel()])
    return build_soft_graph(nodes.size, np.concatenate([horizontal, vertical]))


def build_cliques(n_cliques: int, n: int) -> Graph:
    """Return cliques of n mutually cannot-linked nodes."""
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    edges = np.concatenate([pairs + n * b for b in range(n_cliques)])
    return Graph(n * n_cliques, edges, np.full(len(edges), -np.inf))


PROBLEMS = [
    Problem("chain of 1,000", build_chain(1000), 3),
    *(Problem("sparse, N=200", build_sparse_graph(200, 200), k, k == 5) for k in (3, 5)),
    *(Problem("grid 5 x 5", build_grid(5, 5), k) for k in (3, 4, 5)),
    *(Problem("grid 8 x 8", build_grid(8, 8), k, k == 5) for k in (3, 4, 5)),
    Problem("grid 12 x 12", build_grid(12, 12), 3, True),
]
# These problems are measured without pyAgrum.
CGMM_ONLY = [
    *(
        Problem(f"500 cliques of {n}, unaries x {scale}", build_cliques(500, n), n, scale=scale)
        for n in (10, 12)
        for scale in (1, 300)
    ),
    Problem("chain of 100,000", build_chain(100_000), 3, True),
]
CASES = {(p.case, p.size) for p in PROBLEMS + CGMM_ONLY}
OURS = "cgmm, first", "cgmm, E-step"
THEIRS = "pyAgrum, first", "pyAgrum, E-step"


# ---------------------------------------------------------------------------- pyAgrum


def build_field(problem: Problem) -> pyagrum.MarkovRandomField:
    """Return a field of pyAgrum with a factor per edge; its unaries are set later, as evidence."""
    field = pyagrum.MarkovRandomField()
    for j in range(problem.graph.n_nodes):
        field.add(pyagrum.RangeVariable(str(j), str(j), 0, problem.n_states - 1))
        field.addFactor({str(j)}).fillWith(1)
    equal = np.eye(problem.n_states)
    for (a, b), w in zip(problem.graph.edges.tolist(), problem.graph.weights, strict=True):
        table = np.exp(w * equal).ravel().tolist()
        field.addFactor({str(a), str(b)}).fillWith(table)
    return field


def draw_evidence(problem: Problem, seed: int) -> dict[str, list[float]]:
    """Draw unaries, and return them as evidence for pyAgrum."""
    unary = problem.draw_unary(seed)
    likelihood = np.exp(unary - unary.max(axis=1, keepdims=True))
    return {str(j): row for j, row in enumerate(likelihood.tolist())}


def compute_posteriors(inference: pyagrum.ShaferShenoyMRFInference, n_nodes: int) -> np.ndarray:
    """Return the (n_nodes, K) posteriors by pyAgrum."""
    inference.makeInference()
    return np.array([inference.posterior(str(j)).toarray() for j in range(n_nodes)])


def time_pyagrum(problem: Problem, field: pyagrum.MarkovRandomField) -> tuple[float, float]:
    """Return seconds of the first posteriors, and of the posteriors given other evidence."""
    n_nodes, evidence = problem.graph.n_nodes, [draw_evidence(problem, i) for i in (1, 2)]

    def infer_first() -> None:
        inference.setEvidence(evidence[0])
        compute_posteriors(inference, n_nodes)

    def infer_again() -> None:
        inference.updateEvidence(evidence[1])
        compute_posteriors(inference, n_nodes)

    inference = pyagrum.ShaferShenoyMRFInference(field)
    return common.measure_seconds(infer_first), common.measure_seconds(infer_again)


# ------------------------------------------------------------------------------- cgmm


def time_engine(problem: Problem, engine: Engine) -> tuple[float, float]:
    """Return seconds of the first E-step with the work on the structure, and of another E-step."""
    first, second = (problem.draw_unary(i) for i in (1, 2))
    infer = None

    def infer_first() -> None:
        nonlocal infer
        infer = engine(problem.graph)
        infer(first)

    return common.measure_seconds(infer_first), common.measure_seconds(lambda: infer(second))


def check_agreement(problem: Problem, field: pyagrum.MarkovRandomField) -> None:
    """Raise an error unless both packages give the same marginals."""
    inference = pyagrum.ShaferShenoyMRFInference(field)
    inference.setEvidence(draw_evidence(problem, 1))
    theirs = compute_posteriors(inference, problem.graph.n_nodes)
    ours = junction_tree(problem.graph)(problem.draw_unary(1)).nodes
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)


def measure_peak_memory(problem: Problem) -> float:
    """Return the peak memory of an E-step in MiB, including the work on the structure."""
    tracemalloc.start()
    junction_tree(problem.graph)(problem.draw_unary(1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def measure_times(problem: Problem, n_repeats: int) -> dict[str, list[float]]:
    """Measure the first and another E-step of both packages, in turn."""
    field = None if pyagrum is None else build_field(problem)
    if field is not None:
        check_agreement(problem, field)
    times: dict[str, list[float]] = {}
    for _ in range(min(n_repeats, 3) if problem.is_large else n_repeats):
        seconds_of = dict(zip(OURS, time_engine(problem, junction_tree), strict=True))
        if field is not None:
            seconds_of |= dict(zip(THEIRS, time_pyagrum(problem, field), strict=True))
        for name, seconds in seconds_of.items():
            times.setdefault(name, []).append(seconds)
    return times


def compare(problem: Problem, n_repeats: int) -> Iterable[common.Row]:
    """Measure both packages in turn, print a line, and return the rows."""
    times = measure_times(problem, n_repeats)
    line = f"{problem.case:<20}"
    for ours, theirs in zip(OURS, THEIRS, strict=True):
        line += f"{1e3 * np.median(times[ours]):9.2f} "
        if theirs in times:
            ratio = common.format_quartiles(common.compute_ratios(times[theirs], of=times[ours]))
            line += f"{1e3 * np.median(times[theirs]):8.2f} ms {ratio:<22}"
    print(f"{line}{measure_peak_memory(problem):8.1f} MiB", flush=True)
    return common.yield_rows("inference", problem.case, problem.size, times)


def measure_cgmm_only(problem: Problem, n_repeats: int) -> Iterable[common.Row]:
    """Measure a problem without pyAgrum, print a line, and return the rows."""
    engine = clique if "cliques" in problem.name else junction_tree
    infer, unary = engine(problem.graph), problem.draw_unary(1)
    infer(unary)
    n_repeats = min(n_repeats, 3) if problem.is_large else n_repeats
    times = common.measure_in_turn(
        {OURS[1]: lambda: common.measure_seconds(lambda: infer(unary))}, n_repeats
    )
    print(f"{problem.case:<42} {1e3 * np.median(times[OURS[1]]):8.1f} ms an E-step", flush=True)
    return common.yield_rows("inference", problem.case, problem.size, times)


def report_mean_ratios(measured: list[common.Row]) -> None:
    """Print the geometric mean and the minimum of the median ratios of all problems."""
    for ours, theirs in zip(OURS, THEIRS, strict=True):
        medians = []
        for problem in PROBLEMS:
            rows = [r for r in measured if (r.case, r.size) == (problem.case, problem.size)]
            times = ([r.seconds for r in rows if r.method == name] for name in (theirs, ours))
            medians.append(np.median(common.compute_ratios(*times)))
        mean = np.exp(np.log(medians).mean())
        print(f"{ours}: geometric mean of the ratios {mean:.2f}, smallest {min(medians):.2f}")


def main() -> None:
    """Measure all problems, print both tables and write the file."""
    options = common.parse_options(__doc__, repeats=7)
    print(common.format_machine())
    if pyagrum is None:
        common.report_missing_package("pyAgrum")
    else:
        pyagrum.setNumberOfThreads(1)
    print(f"{'':<22}first: cgmm  pyAgrum, ratio             E-step: cgmm  pyAgrum, ratio    peak")
    measured: list[common.Row] = []
    for problem in PROBLEMS:
        if not (options.smoke and problem.is_large):
            measured += compare(problem, options.repeats)
    if pyagrum is not None and not options.smoke:
        report_mean_ratios(measured)
    for problem in CGMM_ONLY:
        if not (options.smoke and problem.size > 5000):
            measured += measure_cgmm_only(problem, options.repeats)
    common.write_times(options.results, measured)


if __name__ == "__main__":
    main()
