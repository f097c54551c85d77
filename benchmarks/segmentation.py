"""Measure soft clustering of an image, and a large random network, by approximate engines.

Run it with ``make bench`` or ``python benchmarks/segmentation.py``; ``--repeats N`` for more rounds
of all engines, ``--smoke`` for few sweeps and a small network. One thread.

*Segmentation*, the workload of [lu2007, sect. 5.2.2]: an image of four textures, cut into 72 x 72
blocks of 7 x 7 pixels, five principal components a block, soft links between each block and its
four neighbours, four components, 30 iterations of EM from what EM without relations found. The
paper reports 160 minutes with Gibbs sampling and 3.1 with mean field, on a Pentium 4 of 2 GHz. Its
textures are photographs; ours are noise of four brightnesses, contrasts and grains, so that a block
says something about its texture but not enough.

*Large network*: 100,000 points, 1,000,000 random soft links; the time of a sweep of mean field, of
the work on the structure before it, and the most memory that each holds.

Times are of the process, so that other programs do not count.
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


def fit(X: np.ndarray, start: np.ndarray, graph: Graph, engine: Engine) -> np.ndarray:
    """Return the responsibilities after 30 iterations of EM with an engine."""
    infer, r = engine(graph), start
    for _ in range(N_ITERATIONS):
        theta = from_responsibilities(X, r, POOLINGS["full"])
        r = infer(log_joint(X, theta)).nodes
    return r


def segmentation(n_blocks: int, n_gibbs: int, n_repeats: int) -> Iterable[common.Row]:
    """Measure EM without relations, with mean field and with Gibbs sampling."""
    rng = np.random.default_rng(0)
    X, texture = textured_blocks(n_blocks, rng)
    y = texture.ravel()
    pairs = grid_neighbours(texture.shape)
    # [lu2007, eq. 5.2], with w = 2 W^p
    weight = weight_from_certainty(1 - estimate_flip_rate(y, pairs))
    grid = Graph(len(X), pairs, np.full(len(pairs), weight))
    start = far_points(X, N_TEXTURES, np.random.RandomState(0))
    plain = edgeless(len(X))
    start = fit(X, start, plain, independent)
    engines = {
        "no relations": (plain, independent),
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
    found: dict[str, np.ndarray] = {}

    def measure(name: str) -> float:
        return common.seconds(lambda: found.update({name: fit(X, start, *engines[name])}))

    times = common.in_turn({name: partial(measure, name) for name in engines}, n_repeats)
    print(f"segmentation: {len(X)} blocks, {len(pairs)} links of weight {weight:.2f}")
    print(f"    Gibbs of {n_gibbs} sweeps an E-step; growing: from 5 to {n_gibbs}")
    for name, took in times.items():
        accuracy = matched_accuracy(y, found[name].argmax(axis=1))
        print(f"    {name:<22} {np.median(took):7.2f} s   accuracy {accuracy:.3f}", flush=True)
    return common.rows("segmentation", "segmentation", len(X), times)


# ---------------------------------------------------------------------------- large network


def large_network(n_links: int, n_states: int = 5, n_sweeps: int = 20) -> Iterable[common.Row]:
    """Measure time of a sweep of mean field, and memory."""
    rng, n_points = np.random.default_rng(0), n_links // 10
    a = rng.integers(n_points, size=n_links)
    b = (a + rng.integers(1, n_points, size=n_links)) % n_points
    graph = Graph(n_points, np.stack([a, b], axis=1), rng.normal(size=n_links))
    unary = rng.normal(size=(n_points, n_states))
    structure = common.seconds(lambda: mean_field(graph, max_sweeps=n_sweeps, tol=0.0))
    infer = mean_field(graph, max_sweeps=n_sweeps, tol=0.0)
    sweep = common.seconds(lambda: infer(unary)) / n_sweeps
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
    for case, took in {"structure": structure, "a sweep": sweep}.items():
        yield from common.rows("segmentation", f"large network, {case}", n_links, {"cgmm": [took]})


def main() -> None:
    """Print the tables and write the file."""
    options = common.options(__doc__, repeats=3)
    print(common.head())
    size = (N_BLOCKS, 10, 10_000) if options.smoke else (N_BLOCKS, 500, N_LINKS)
    measured = [*segmentation(*size[:2], options.repeats), *large_network(size[2])]
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
