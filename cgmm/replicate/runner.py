"""Designs, realisations and result files: what every experiment has in common.

An experiment is a function of a data set, a setting and a random generator, and a design: the pairs
of data set and setting. A *realisation* is one call of it, and its result is a few rows, one for
each method and quantity. A realisation has a seed of its own, made from names alone, so that it is
the same in whatever order, process or machine it is run.

While an experiment runs, ``<name>.partial`` receives one line for each finished realisation; at the
end all rows are sorted into ``<name>.csv``, which is written whole or not at all. What either file
holds is not run again.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, TextIO

from joblib import Parallel, delayed

from cgmm.replicate.design import Experiment, load_data, realise, tasks_of
from cgmm.replicate.store import Store


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
        with _deaf_to_interrupts():
            done = parallel(delayed(realise)(task, str(data_home)) for task in tasks)
        for rows in _with_bar(done, len(tasks), experiment.name, progress):
            store.add(rows)
    finally:
        store.close()
    if store.rows:
        store.finish()
    return sorted(absent.values())


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started here ignore Ctrl-C for good: it is for us to stop them.

    A terminal sends it to all of them, and one that is struck while it starts complains at length.
    """
    if current_thread() is not main_thread():  # no other may change a handler
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)


def _absent(names: Iterable[str], data_home: str) -> dict[str, str]:
    """Data sets that cannot be had, and the complaint about each."""
    complaints = {}
    for name in sorted(names):
        try:
            load_data(name, data_home)
        except OSError as error:
            complaints[name] = str(error)
    return complaints


def _with_bar(done: Iterable[Any], n: int, name: str, out: TextIO | None) -> Iterator[Any]:
    """Hand on what arrives, and draw how much has."""
    for i, item in enumerate(done, start=1):
        yield item
        if out is not None:
            filled = 30 * i // n
            end = "\n" if i == n else ""
            print(f"\r{name} [{'#' * filled:<30}] {i}/{n}", end=end, file=out, flush=True)
