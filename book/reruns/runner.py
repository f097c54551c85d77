"""Run the realisations that a result file lacks, in one process or many. Chapter 13.

:func:`~reruns.replicate` distributes them over joblib's workers, collects their rows, and is the
only one to write. :func:`~reruns.realise` is one realisation, in whatever process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import TextIO

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cgmm.datasets import DATASETS, FETCHED, Dataset, fetch, load
from reruns.design import DIGITS, Experiment, Row, Task, format_setting, tasks_of
from reruns.store import Store

TAKING_TURNS = Lock()


def replicate(
    experiment: Experiment,
    results: str | os.PathLike[str],
    *,
    realisations: int | None = None,
    jobs: int | None = None,
    data_home: str | os.PathLike[str] = "data",
    seed: int = 0,
    quick: bool = False,
    fresh: bool = False,
    progress: TextIO | None = None,
) -> list[str]:
    """Run the realisations of one experiment that its result file lacks, and add them to it.

    Workers are joblib's: inside ``joblib.parallel_config(backend="dask")`` they are those of a Dask
    cluster. Only this process writes files.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    results : path
        Folder of the result files.
    realisations : int, default=None
        Number of realisations of each setting; None: as many as the paper.
    jobs : int, default=None
        Processes; -1 for all cores. None: one, or the number that ``joblib.parallel_config`` sets.
    data_home : path, default="data"
        Folder in which :func:`cgmm.datasets.fetch` finds data, on every worker.
    seed : int, default=0
        The seed from which the seeds of all realisations are derived.
    quick : bool, default=False
        Whether to run only the small part of the design.
    fresh : bool, default=False
        Whether to run everything again, and to drop what the result file holds.
    progress : text stream, default=None
        Stream on which a progress bar is drawn.

    Returns
    -------
    list of str
        One complaint for each data set that is not available, and whose settings were not run.

    Raises
    ------
    KeyboardInterrupt
        If interrupted; finished realisations are kept in ``<name>.partial``.
    """
    store = Store(experiment, Path(results), seed, fresh=fresh)
    asked = tasks_of(experiment, realisations, seed, quick=quick)
    tasks = [task for task in asked if task.key not in store.rows]
    absent = _absent({task.setting.data for task in tasks}, str(data_home))
    tasks = [task for task in tasks if task.setting.data not in absent]
    parallel = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    with deaf_to_interrupts():
        done = parallel(delayed(realise)(task, str(data_home)) for task in tasks)
    for i, rows in enumerate(done, start=1):
        store.add(rows)
        if progress is not None:
            bar, end = "#" * (30 * i // len(tasks)), "\n" if i == len(tasks) else ""
            line = f"\r{experiment.name} [{bar:<30}] {i}/{len(tasks)}"
            print(line, end=end, file=progress, flush=True)
    if store.rows:
        store.finish()
    return sorted(absent.values())


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Let processes that start within this block ignore Ctrl-C for good.

    A terminal sends Ctrl-C to all of them, and a worker that is interrupted while it starts prints
    a long traceback. This process stops its workers itself.
    """
    if current_thread() is not main_thread():  # only the main thread may change a handler
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)


def _absent(names: Iterable[str], data_home: str) -> dict[str, str]:
    """Return the data sets that cannot be loaded, each with the complaint about it."""
    complaints = {}
    for name in sorted(names):
        try:
            load_data(name, data_home)
        except OSError as error:
            complaints[name] = str(error)
    return complaints


# ---------------------------------------------------------------------------- one realisation


def realise(task: Task, data_home: str | os.PathLike[str] = "data") -> list[Row]:
    """Run one realisation on one thread, and return its rows.

    Parameters
    ----------
    task : Task
        The realisation.
    data_home : path, default="data"
        Folder in which :func:`cgmm.datasets.fetch` finds data.

    Returns
    -------
    list of tuple of str
        Rows as they stand in the result file.
    """
    experiment, setting, realisation, seed = task
    data = load_data(setting.data, str(data_home))
    # With one thread the last digits of a sum do not depend on the number of cores. The limit, and
    # the recording of warnings, hold for a whole process, so its threads take turns.
    with TAKING_TURNS, threadpool_limits(1):
        results = list(experiment.run(data, *setting.values, np.random.default_rng(seed)))
    head = (experiment.paper, experiment.figure, *format_setting(setting))
    return [
        (*head, r.method, str(realisation), str(seed), r.quantity, _digits(r.value), r.reason)
        for r in results
    ]


def _digits(value: float | None) -> str:
    """Return a value as it stands in a file: an empty text if there is none."""
    return "" if value is None or not np.isfinite(value) else f"{float(value):.{DIGITS}g}"


@lru_cache(maxsize=8)
def load_data(name: str, data_home: str = "data") -> Dataset:
    """Return a data set by name: the package's own, a fetched one, or "none" for an empty one.

    ``"pendigits-0689"`` is 750 points of each of four classes of "pendigits", as in lu2007.

    Parameters
    ----------
    name : str
        A key of ``DATASETS`` or ``FETCHED``, or such a part of one.
    data_home : str, default="data"
        Folder of fetched data.

    Returns
    -------
    Dataset
        The points and their classes.
    """
    if name in DATASETS:
        return load(name)
    if name == "none":
        empty = np.empty((0, 1)), np.empty(0, dtype=np.int64)
        return Dataset(*empty, name, "No data", "generated within the experiment", "", (), ())
    base, _, classes = name.rpartition("-")
    if name in FETCHED or base not in FETCHED:
        return fetch(name, data_home)
    return _some_classes(fetch(base, data_home), classes, 750)


def _some_classes(data: Dataset, names: str, n_each: int) -> Dataset:
    """Return the first points of some classes, whose labels are single letters."""
    number = [data.target_names.index(name) for name in names]
    rows = [np.flatnonzero(data.y == k)[:n_each] for k in number]
    y = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    rows = np.concatenate(rows)
    return data._replace(X=data.X[rows], y=y, target_names=tuple(names))
