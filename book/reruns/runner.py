"""The runner: what is missing of an experiment is run, on one process or many. Chapter 13.

:func:`~reruns.realise` is one realisation, on whatever worker;
:func:`~reruns.replicate` hands out those that the result file lacks, and is the only one to
write. What is finished is not run again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, TextIO

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cgmm.datasets import DATASETS, FETCHED, Dataset, fetch, load
from reruns.design import DIGITS, Experiment, Row, Task, format_setting, tasks_of
from reruns.store import Store
from reruns.workers import deaf_to_interrupts

TAKING_TURNS = Lock()


def replicate(
    experiment: Experiment,
    results: str | os.PathLike[str],
    *,
    realisations: int | None = None,
    jobs: int = 1,
    data_home: str | os.PathLike[str] = "data",
    seed: int = 0,
    quick: bool = False,
    fresh: bool = False,
    progress: TextIO | None = None,
) -> list[str]:
    """Run what is missing of one experiment, and write its result file.

    Workers are joblib's: inside ``joblib.parallel_config(backend="dask")`` they are those of a Dask
    cluster. Only this process writes files.

    Parameters
    ----------
    experiment : Experiment
        Which.
    results : path
        Folder of the result files.
    realisations : int, default=None
        Of each setting; None: as many as the paper.
    jobs : int, default=1
        Processes; -1 for all cores.
    data_home : path, default="data"
        Where :func:`cgmm.datasets.fetch` finds data, on every worker.
    seed : int, default=0
        Seed of everything.
    quick : bool, default=False
        The small part of the design.
    fresh : bool, default=False
        Run all of it anew, and drop what the result file holds.
    progress : text stream, default=None
        Where a progress bar is drawn.

    Returns
    -------
    list of str
        What could not be run, since its data are not at hand: one complaint a data set.

    Raises
    ------
    KeyboardInterrupt
        If interrupted; finished realisations are kept in ``<name>.partial``.
    """
    store = Store(experiment, Path(results), seed, fresh=fresh)
    tasks = [
        task
        for task in tasks_of(experiment, realisations, seed, quick=quick)
        if task.key not in store.rows
    ]
    absent = _absent({task.setting.data for task in tasks}, str(data_home))
    tasks = [task for task in tasks if task.setting.data not in absent]
    try:
        parallel = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
        with deaf_to_interrupts():
            done = parallel(delayed(realise)(task, str(data_home)) for task in tasks)
        for rows in _with_bar(done, len(tasks), experiment.name, progress):
            store.add(rows)
    finally:
        store.close()
    if store.rows:
        store.finish()
    return sorted(absent.values())


def _with_bar(done: Iterable[Any], n: int, name: str, out: TextIO | None) -> Iterator[Any]:
    """Hand on what arrives, and draw how much has."""
    for i, item in enumerate(done, start=1):
        yield item
        if out is not None:
            filled = 30 * i // n
            end = "\n" if i == n else ""
            print(f"\r{name} [{'#' * filled:<30}] {i}/{n}", end=end, file=out, flush=True)


def _absent(names: Iterable[str], data_home: str) -> dict[str, str]:
    """Data sets that cannot be had, and the complaint about each."""
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
        Which.
    data_home : path, default="data"
        Where :func:`cgmm.datasets.fetch` finds data.

    Returns
    -------
    list of tuple of str
        As they stand in the result file.
    """
    experiment, setting, realisation, seed = task
    data = load_data(setting.data, str(data_home))
    # One thread adds in one order, so that the last digits do not depend on the number of cores.
    # That limit, and which warnings are recorded, is settled for a whole process: its threads
    # take turns.
    with TAKING_TURNS, threadpool_limits(1):
        results = list(experiment.run(data, *setting.values, np.random.default_rng(seed)))
    head = (experiment.paper, experiment.figure, *format_setting(setting))
    return [
        (*head, r.method, str(realisation), str(seed), r.quantity, _digits(r.value), r.reason)
        for r in results
    ]


def _digits(value: float | None) -> str:
    """A result's value as it stands in a file: nothing, where there is none."""
    return "" if value is None or not np.isfinite(value) else f"{float(value):.{DIGITS}g}"


@lru_cache(maxsize=8)
def load_data(name: str, data_home: str = "data") -> Dataset:
    """A data set by name: the package's own, a fetched one, or "none" for an empty one.

    ``"pendigits-0689"`` are 750 points of each of four classes of "pendigits", as lu2007 has it.

    Parameters
    ----------
    name : str
        A key of ``DATASETS`` or ``FETCHED``, or such a part of one.
    data_home : str, default="data"
        Where fetched data are.

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
    """The first points of some classes, whose labels are single letters."""
    number = [data.target_names.index(name) for name in names]
    rows = [np.flatnonzero(data.y == k)[:n_each] for k in number]
    y = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    rows = np.concatenate(rows)
    return data._replace(X=data.X[rows], y=y, target_names=tuple(names))
