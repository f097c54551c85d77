"""Measure memory and time per iteration of large fits: in blocks, on workers, from a disk.

Memory: the most that a fit takes beside its points, by ``tracemalloc``, with responsibilities and
without, of points in memory and on a disk. Time: iterations on points that are generated on the
workers of a ``distributed.LocalCluster``, one thread each: the processor's time of all workers, and
that of the process that adds and maximises; a clock would count other programs, too. The start is
given, so that the difference between fits of few and of more iterations is iterations alone. How
long larger problems on more workers would take is for the page to say, which extrapolates.

    python benchmarks/cluster.py

``--repeats N`` for more rounds, ``--smoke`` for small problems. Without Dask only memory.
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


def points(n_points: int, seed: int) -> np.ndarray:
    """Draw round clumps about the centres."""
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(K, size=n_points)] + rng.normal(size=(n_points, D))


def model(max_iter: int, centres: np.ndarray = CENTRES) -> ConstrainedGaussianMixture:
    """Return an estimator with a given start."""
    k = len(centres)
    return ConstrainedGaussianMixture(
        k, weights_init=np.full(k, 1 / k), means_init=centres + 0.5, max_iter=max_iter, tol=0,
        covariances_init=np.tile(np.eye(D), (k, 1, 1)), store_responsibilities=False,
    )  # fmt: skip


# ---------------------------------------------------------------------------- memory


def peak(fit: Callable[[], object]) -> common.Measured:
    """Return seconds and peak MiB of a fit."""
    tracemalloc.start()
    began = time.perf_counter()
    fit()
    took = time.perf_counter() - began
    most = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return took, {"MiB": most}


def memory(n_points: int, folder: Path) -> dict[str, list[common.Measured]]:
    """Measure the memory of fits to points in memory and on a disk, beside the full table's."""
    X = np.asfortranarray(points(n_points, 0))
    stored = np.memmap(folder / "points", dtype=np.float32, mode="w+", shape=X.shape)
    stored[:] = X
    without = model(2, MANY_CENTRES)
    whole = model(2, MANY_CENTRES).set_params(store_responsibilities=True)
    return {
        "points themselves": [(None, {"MiB": X.nbytes / 2**20})],
        "with responsibilities": [peak(partial(whole.fit, X))],
        "without": [peak(partial(without.fit, X))],
        "on a disk": [peak(partial(without.fit, stored))],
    }


# ---------------------------------------------------------------------------- workers


def generated(n_points: int, block_info: Any = None) -> np.ndarray:
    """Generate a chunk on the worker that needs it, from a seed of its own."""
    return points(n_points, 1 + (block_info[None]["chunk-location"][0] if block_info else 0))


def on_workers(n_points: int, chunk: int) -> Any:
    """Return a dask.array whose chunks are all on workers."""
    import dask.array as da

    shape = ((chunk,) * (n_points // chunk), (D,))
    make, meta = partial(generated, chunk), np.empty((0, 0))
    return da.map_blocks(make, chunks=shape, dtype=float, meta=meta)


def clocks(client: Any) -> np.ndarray:
    """Return the processor time of all workers together, and of this process."""
    of_workers = sum(client.run(time.process_time).values())
    return np.array([of_workers, time.process_time()])


def per_iteration(X: Any, client: Any) -> np.ndarray:
    """Return seconds of an iteration by each of the clocks."""
    took = []
    for n_iterations in (SHORT, LONG):
        began = clocks(client)
        model(n_iterations).fit(X)
        took.append(clocks(client) - began)
    return (took[1] - took[0]) / (LONG - SHORT)


def workers(sizes: tuple[int, ...], chunk: int, repeats: int) -> list[common.Row]:
    """Return times of an iteration by the number of workers and of points."""
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
                X = on_workers(n, chunk).persist()
                per_iteration(X, client)  # libraries are loaded, points exist
                found = np.array([per_iteration(X, client) for _ in range(repeats)]).T
                took = dict(zip(CLOCKS, found.tolist(), strict=True))
                rows += common.rows("cluster", f"{n_workers} workers", n, took)
                middle = "  ".join(f"{name} {np.median(t):.3f} s" for name, t in took.items())
                print(f"{n:>11,}  {n_workers} workers  {middle}", flush=True)
    return rows


def main() -> None:
    """Print both tables, and write the files."""
    options = common.options(__doc__, repeats=3)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.head())
    n_points = N_IN_MEMORY // (20 if options.smoke else 1)
    with TemporaryDirectory() as folder:
        found = memory(n_points, Path(folder))
    for method, ((_, values),) in found.items():
        print(f"{n_points:>11,}  {method:24} {values['MiB']:8.1f} MiB")
    measured, quality = common.tabulate("cluster", MEMORY, n_points, found)
    try:
        sizes = tuple(n // 20 for n in SIZES) if options.smoke else SIZES
        measured += workers(sizes, CHUNK // (20 if options.smoke else 1), options.repeats)
    except ImportError:
        common.without("distributed")
    common.write(options.results, measured)
    common.write_quality(options.results, quality)


if __name__ == "__main__":
    main()
