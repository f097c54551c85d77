"""Measure approximate engines in the segmentation of an image, and in a large random network.

Run it with ``make bench`` or ``python benchmarks/segmentation.py``; ``--repeats N`` sets the number
of rounds, ``--smoke`` uses a small number of sweeps and a small network. All engines run on one
thread.

*Segmentation* is the problem of [lu2007, sect. 5.2.2]: an image of four textures is divided into
72 x 72 blocks of 7 x 7 pixels. Each block has five principal components, and soft links to its four
neighbours. EM with four components runs for 30 iterations, from the result of EM without relations.
The paper reports 160 minutes with Gibbs sampling and 3.1 with mean field, on a Pentium 4 of 2 GHz.
The textures of the paper are photographs; ours are noise with four combinations of brightness,
contrast and grain, so that a single block does not determine its texture.

*Large network* has 100,000 points and 1,000,000 random soft links. It measures time and peak memory
of mean field: of the work on the structure, and of a sweep.

Times are processor times of this process, so other programs do not count.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from functools import partial

import common
import numpy as np

from cgmm.inference.closed_forms import independent
from cgmm.inference.gibbs import gibbs
from cgmm.inference.mean_field import mean_field
from cgmm.metrics import matched_accuracy
from cgmm.mixture import POOLINGS, far_points, from_responsibilities, log_joint
from cgmm.network import Engine, Graph, edgeless
from cgmm.scenarios import estimate_flip_rate, grid_neighbours, weight_from_certainty
from reruns.segmentation import textured_blocks

N_BLOCKS, N_TEXTURES = 72, 4
N_ITERATIONS = 30
N_LINKS = 1_000_000
CASES = {
    ("segmentation", N_BLOCKS**2),
    ("large network, structure", N_LINKS),
    ("large network, a sweep", N_LINKS),
}


# ---------------------------------------------------------------------------- segmentation


def run_em(X: np.ndarray, start: np.ndarray, graph: Graph, engine: Engine) -> np.ndarray:
    """Return the responsibilities after 30 iterations of EM, from initial responsibilities."""
    infer, r = engine(graph), start
    for _ in range(N_ITERATIONS):
        theta = from_responsibilities(X, r, POOLINGS["full"])
        r = infer(log_joint(X, theta)).nodes
    return r


def measure_segmentation(n_blocks: int, n_gibbs: int, n_repeats: int) -> Iterable[common.Row]:
    """Measure EM without relations, with mean field and with Gibbs sampling."""
    rng = np.random.default_rng(0)
    X, texture = textured_blocks(n_blocks, rng)
    y = texture.ravel()
    pairs = grid_neighbours(texture.shape)
    # [lu2007, eq. 5.2], with w = 2 W^p.
    weight = weight_from_certainty(1 - estimate_flip_rate(y, pairs))
    grid = Graph(len(X), pairs, np.full(len(pairs), weight))
    start = far_points(X, N_TEXTURES, np.random.RandomState(0))
    no_relations = edgeless(len(X))
    start = run_em(X, start, no_relations, independent)
    engines = {
        "no relations": (no_relations, independent),
        "mean field, 20 sweeps": (grid, partial(mean_field, max_sweeps=20, tol=0.0)),
        "mean field, to 1e-8": (grid, mean_field),
        "Gibbs, 1 chain": (
            grid,
            partial(gibbs, n_chains=1, n_sweeps=n_gibbs * 9 // 10, burn_in=n_gibbs // 10),
        ),
        "Gibbs, 4 chains": (
            grid,
            partial(gibbs, n_chains=4, n_sweeps=n_gibbs * 9 // 10, burn_in=n_gibbs // 10),
        ),
        "Gibbs, growing": (
            grid,
            partial(gibbs, n_sweeps=5, burn_in=5, growth=1.2, max_sweeps=n_gibbs),
        ),
    }
    r_of: dict[str, np.ndarray] = {}

    def measure(name: str) -> float:
        return common.measure_seconds(lambda: r_of.update({name: run_em(X, start, *engines[name])}))

    times = common.measure_in_turn({name: partial(measure, name) for name in engines}, n_repeats)
    print(f"segmentation: {len(X)} blocks, {len(pairs)} links of weight {weight:.2f}")
    print(f"    Gibbs of {n_gibbs} sweeps an E-step; growing: from 5 to {n_gibbs}")
    for name, seconds in times.items():
        accuracy = matched_accuracy(y, r_of[name].argmax(axis=1))
        print(f"    {name:<22} {np.median(seconds):7.2f} s   accuracy {accuracy:.3f}", flush=True)
    return common.yield_rows("segmentation", "segmentation", len(X), times)


# ---------------------------------------------------------------------------- large network


def measure_large_network(
    n_links: int, n_states: int = 5, n_sweeps: int = 20
) -> Iterable[common.Row]:
    """Measure time and peak memory of mean field: of the structure, and of a sweep."""
    rng, n_points = np.random.default_rng(0), n_links // 10
    a = rng.integers(n_points, size=n_links)
    b = (a + rng.integers(1, n_points, size=n_links)) % n_points
    graph = Graph(n_points, np.stack([a, b], axis=1), rng.normal(size=n_links))
    unary = rng.normal(size=(n_points, n_states))
    structure = common.measure_seconds(lambda: mean_field(graph, max_sweeps=n_sweeps, tol=0.0))
    infer = mean_field(graph, max_sweeps=n_sweeps, tol=0.0)
    sweep = common.measure_seconds(lambda: infer(unary)) / n_sweeps
    tracemalloc.start()
    infer = mean_field(graph, max_sweeps=2, tol=0.0)
    kept, peak_of_structure = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    infer(unary)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    mebibytes = np.array([peak_of_structure, kept, peak - kept]) / 2**20
    print(f"large network: {n_points:,} points, {n_links:,} links, K = {n_states}, mean field")
    print(f"    structure {structure:.2f} s, then {1e3 * sweep:.1f} ms a sweep")
    print("    structure {:.0f} MiB at most, {:.0f} kept; a call {:.0f} more".format(*mebibytes))
    for part, seconds in {"structure": structure, "a sweep": sweep}.items():
        case, times = f"large network, {part}", {"cgmm": [seconds]}
        yield from common.yield_rows("segmentation", case, n_links, times)


def main() -> None:
    """Measure both problems, print the tables and write the file."""
    options = common.parse_options(__doc__, repeats=3)
    print(common.format_machine())
    size = (N_BLOCKS, 10, 10_000) if options.smoke else (N_BLOCKS, 500, N_LINKS)
    measured = [*measure_segmentation(*size[:2], options.repeats), *measure_large_network(size[2])]
    common.write_times(options.results, measured)


if __name__ == "__main__":
    main()
