"""Measure memory and time per iteration of large fits: in blocks, on workers, and from a disk.

*Memory* is the peak memory of a fit beyond its points, by ``tracemalloc``: with and without stored
responsibilities, for points in memory and on a disk. *Time* is the processor time of an iteration
on points that are generated on the workers of a ``distributed.LocalCluster``, with one thread each:
the time of all workers together, and the time of the process that adds their results and runs the
M-step. (The wall time would also count other programs.) The initial parameters are given, so the
difference between a long and a short fit consists of iterations only. The page "How fast is it?"
extrapolates to larger problems and more workers.

    python benchmarks/cluster.py

``--repeats N`` sets the number of rounds, ``--smoke`` uses small problems. If Dask is not
installed, only memory is measured.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture

D, K = 8, 5
N_IN_MEMORY = 400_000
SIZES, WORKERS, CHUNK = (50_000, 100_000, 200_000), (1, 2), 12_500
SHORT, LONG = 1, 4
CLOCKS = ("workers, processor", "driver, processor")
MEMORY, MANY_CENTRES = "memory", 3 * np.random.default_rng(0).normal(size=(40, D))
CENTRES = MANY_CENTRES[:K]
CASES = {(f"{w} workers", n) for w in WORKERS for n in SIZES} | {(MEMORY, N_IN_MEMORY)}


def draw_points(n_points: int, seed: int) -> np.ndarray:
    """Draw points of round Gaussian clusters."""
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(K, size=n_points)] + rng.normal(size=(n_points, D))


def build_model(max_iter: int, centres: np.ndarray = CENTRES) -> ConstrainedGaussianMixture:
    """Return a mixture with given initial parameters."""
    k = len(centres)
    return ConstrainedGaussianMixture(
        k, weights_init=np.full(k, 1 / k), means_init=centres + 0.5, max_iter=max_iter, tol=0,
        covariances_init=np.tile(np.eye(D), (k, 1, 1)), store_responsibilities=False,
    )  # fmt: skip


# ---------------------------------------------------------------------------- memory


def measure_peak_memory(fit: Callable[[], object]) -> common.Measured:
    """Return seconds and peak memory (MiB) of a fit."""
    tracemalloc.start()
    start = time.perf_counter()
    fit()
    seconds = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return seconds, {"MiB": peak}


def measure_memory(n_points: int, folder: Path) -> dict[str, list[common.Measured]]:
    """Measure the memory of fits to points in memory and on a disk, and of the points."""
    X = np.asfortranarray(draw_points(n_points, 0))
    on_disk = np.memmap(folder / "points", dtype=np.float32, mode="w+", shape=X.shape)
    on_disk[:] = X
    model = build_model(2, MANY_CENTRES)
    storing = build_model(2, MANY_CENTRES).set_params(store_responsibilities=True)
    return {
        "points themselves": [(None, {"MiB": X.nbytes / 2**20})],
        "with responsibilities": [measure_peak_memory(partial(storing.fit, X))],
        "without": [measure_peak_memory(partial(model.fit, X))],
        "on a disk": [measure_peak_memory(partial(model.fit, on_disk))],
    }


# ---------------------------------------------------------------------------- workers


def draw_chunk(n_points: int, block_info: Any = None) -> np.ndarray:
    """Draw the points of a chunk of a dask.array, with a seed that depends on its position."""
    return draw_points(n_points, 1 + (block_info[None]["chunk-location"][0] if block_info else 0))


def draw_on_workers(n_points: int, chunk: int) -> Any:
    """Return a dask.array whose chunks are drawn on workers."""
    import dask.array as da

    shape = ((chunk,) * (n_points // chunk), (D,))
    draw, meta = partial(draw_chunk, chunk), np.empty((0, 0))
    return da.map_blocks(draw, chunks=shape, dtype=float, meta=meta)


def read_clocks(client: Any) -> np.ndarray:
    """Return the processor time of all workers together, and of this process."""
    of_workers = sum(client.run(time.process_time).values())
    return np.array([of_workers, time.process_time()])


def measure_iteration(X: Any, client: Any) -> np.ndarray:
    """Return the processor times of an iteration: of all workers, and of this process."""
    times = []
    for n_iterations in (SHORT, LONG):
        start = read_clocks(client)
        build_model(n_iterations).fit(X)
        times.append(read_clocks(client) - start)
    return (times[1] - times[0]) / (LONG - SHORT)


def measure_workers(sizes: tuple[int, ...], chunk: int, repeats: int) -> list[common.Row]:
    """Measure the times of an iteration for each number of workers and of points."""
    from distributed import Client, LocalCluster

    rows: list[common.Row] = []
    for n_workers in WORKERS:
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            for n in sizes:
                X = draw_on_workers(n, chunk).persist()
                # The first call loads libraries and draws the points, so it does not count.
                measure_iteration(X, client)
                times = np.array([measure_iteration(X, client) for _ in range(repeats)]).T
                by_clock = dict(zip(CLOCKS, times.tolist(), strict=True))
                rows += common.yield_rows("cluster", f"{n_workers} workers", n, by_clock)
                medians = "  ".join(f"{name} {np.median(t):.3f} s" for name, t in by_clock.items())
                print(f"{n:>11,}  {n_workers} workers  {medians}", flush=True)
    return rows


def main() -> None:
    """Measure memory and times, print both tables and write the files."""
    options = common.parse_options(__doc__, repeats=3)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.format_machine())
    n_points = N_IN_MEMORY // (20 if options.smoke else 1)
    with TemporaryDirectory() as folder:
        memory = measure_memory(n_points, Path(folder))
    for method, ((_, values),) in memory.items():
        print(f"{n_points:>11,}  {method:24} {values['MiB']:8.1f} MiB")
    measured, quality = common.tabulate("cluster", MEMORY, n_points, memory)
    try:
        sizes = tuple(n // 20 for n in SIZES) if options.smoke else SIZES
        measured += measure_workers(sizes, CHUNK // (20 if options.smoke else 1), options.repeats)
    except ImportError:
        common.report_missing_package("distributed")
    common.write_times(options.results, measured)
    common.write_quality(options.results, quality)


if __name__ == "__main__":
    main()
