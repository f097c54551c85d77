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

import csv
import hashlib
import json
import os
import re
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import Any, NamedTuple, TextIO

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cgmm.datasets import DATASETS, FETCHED, Dataset, fetch, load

__all__ = [
    "Experiment",
    "Result",
    "Setting",
    "Task",
    "attempt",
    "load_data",
    "read_rows",
    "realise",
    "replicate",
    "seed_of",
    "tasks_of",
]

Row = tuple[str, ...]

_TAKING_TURNS = Lock()
_DIGITS = 8  # of a value in a file
_REASON = 120  # characters


class Setting(NamedTuple):
    """One cell of a design."""

    data: str
    """Name of the data set; see :func:`load_data`."""
    values: tuple[float | int | str, ...] = ()
    """One for each of the experiment's columns."""


class Result(NamedTuple):
    """What one method got in one realisation."""

    method: str
    quantity: str
    value: float | None
    """None where the method failed."""
    reason: str = ""
    """Why it failed, or what it warned of."""


class Experiment(NamedTuple):
    """A figure of a paper, as something that can be run."""

    name: str
    """Of its result file, and on the command line."""
    paper: str
    """Key in the book's bibliography."""
    figure: str
    columns: tuple[str, ...]
    """Names of what a setting's values are."""
    design: tuple[Setting, ...]
    quick: tuple[Setting, ...]
    """The part of the design that shows in seconds whether all is well."""
    realisations: int
    """How many the paper averages over; one where nothing is random."""
    run: Callable[..., Iterable[Result]]
    """``run(data, *values, rng)``."""

    @property
    def header(self) -> Row:
        """Names of the columns of the result file."""
        tail = ("method", "realisation", "seed", "quantity", "value", "reason")
        return ("paper", "figure", "data", *self.columns, *tail)


class Task(NamedTuple):
    """One realisation, by names alone."""

    experiment: Experiment
    setting: Setting
    realisation: int
    seed: int

    @property
    def key(self) -> Row:
        """What identifies it in a file; the seed is part of it."""
        values = map(_text, self.setting.values)
        return (self.setting.data, *values, str(self.realisation), str(self.seed))


# ---------------------------------------------------------------------------- the design


def seed_of(experiment: str, setting: Setting, realisation: int | str, seed: int = 0) -> int:
    """Seed of one realisation, from names alone.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    setting : Setting
        Data set and setting.
    realisation : int
        From 0.
    seed : int, default=0
        The seed of everything, as given on the command line.

    Returns
    -------
    int
        Below 2³². Alone it determines the realisation.

    Examples
    --------
    >>> seed_of("a", Setting("iris", (0.15,)), 0) == seed_of("a", Setting("iris", (0.15,)), 0)
    True
    >>> seed_of("a", Setting("iris", (0.15,)), 0) == seed_of("a", Setting("iris", (0.15,)), 1)
    False
    """
    names = [experiment, setting.data, *map(_text, setting.values), str(realisation)]
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    entropy = [seed, *np.frombuffer(digest, dtype="<u4").tolist()]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def tasks_of(
    experiment: Experiment, realisations: int | None = None, seed: int = 0, *, quick: bool = False
) -> list[Task]:
    """Every realisation that a command asks for, in the order in which they are run.

    Parameters
    ----------
    experiment : Experiment
        Which.
    realisations : int, default=None
        Of each setting; None: as many as the paper. Where nothing is random it is one.
    seed : int, default=0
        Seed of everything.
    quick : bool, default=False
        The small part of the design.

    Returns
    -------
    list of Task
        All settings before the next realisation, so that a run that is stopped has some of each.
    """
    n = experiment.realisations if realisations is None else realisations
    n = min(n, 1) if experiment.realisations == 1 else n
    return [
        Task(experiment, setting, r, seed_of(experiment.name, setting, r, seed))
        for r in range(n)
        for setting in (experiment.quick if quick else experiment.design)
    ]


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
    # Sums in one order, so that the last digits do not depend on the number of cores. That, and
    # which warnings are recorded, is settled for a whole process: its threads take turns.
    with _TAKING_TURNS, threadpool_limits(1):
        results = list(experiment.run(data, *setting.values, np.random.default_rng(seed)))
    head = (experiment.paper, experiment.figure, setting.data, *map(_text, setting.values))
    return [
        (*head, r.method, str(realisation), str(seed), r.quantity, _number(r.value), r.reason)
        for r in results
    ]


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


def attempt(
    method: str, quantities: tuple[str, ...], measure: Callable[[], Mapping[str, float]]
) -> list[Result]:
    """Measure one method, and let failures and warnings be part of what is found.

    Parameters
    ----------
    method : str
        Its name in the result file.
    quantities : tuple of str
        What ``measure`` finds: a method that fails has a row without value for each.
    measure : callable
        Fits, and returns a value for each quantity.

    Returns
    -------
    list of Result
        One for each quantity.

    Examples
    --------
    >>> attempt("wise", ("score",), lambda: {"score": 0.75})
    [Result(method='wise', quantity='score', value=0.75, reason='')]
    >>> def fail():
    ...     raise ValueError("the matrix is singular.")
    >>> attempt("rash", ("score",), fail)[0].reason
    'ValueError: the matrix is singular.'
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            values = measure()
        # What the package refuses, what a search gives up, what linear algebra cannot do.
        except (ValueError, RuntimeError, ArithmeticError) as error:
            reason = _in_short(type(error), error)
            return [Result(method, quantity, None, reason) for quantity in quantities]
    reason = "; ".join(sorted({_in_short(w.category, w.message) for w in caught}))
    return [Result(method, quantity, values[quantity], reason) for quantity in quantities]


def _in_short(category: type, message: object) -> str:
    """Kind and first sentence, on one line."""
    first = re.split(r"[.;] ", " ".join(str(message).split()))[0]
    return f"{category.__name__}: {first}"[:_REASON]


def _number(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{float(value):.{_DIGITS}g}"


def _text(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


# ---------------------------------------------------------------------------- files


def read_rows(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Rows of a result file by column.

    Parameters
    ----------
    path : path
        A file that :func:`replicate` wrote.

    Returns
    -------
    list of dict
        Everything as text; an empty ``value`` is a failure.
    """
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class _Store:
    """The rows of one experiment: a sorted file, and what has been finished since."""

    def __init__(self, experiment: Experiment, results: Path, seed: int, *, fresh: bool):
        self.experiment = experiment
        self.seed = seed
        self.path = results / f"{experiment.name}.csv"
        self.partial = results / f"{experiment.name}.partial"
        results.mkdir(parents=True, exist_ok=True)
        if fresh:
            self.partial.unlink(missing_ok=True)
        self.rows: dict[Row, list[Row]] = {} if fresh else self._read()
        self._log: TextIO | None = None

    def _read(self) -> dict[Row, list[Row]]:
        rows: dict[Row, list[Row]] = {}
        if self.path.exists():
            with open(self.path, newline="", encoding="utf-8") as file:
                header, *stored = [tuple(row) for row in csv.reader(file)] or [()]
            if header != self.experiment.header:
                raise ValueError(
                    f"{self.path} has other columns than {self.experiment.name} writes; "
                    "use --fresh to replace it, or another --results."
                )
            for row in stored:
                rows.setdefault(self._key(row), []).append(row)
        for stored in self._finished():
            rows[self._key(stored[0])] = stored
        for key in rows:
            self._require_same_seed(key)
        return rows

    def _require_same_seed(self, key: Row) -> None:
        """One file, one seed: else some realisations would count twice."""
        data, *values, realisation, seed = key
        made = seed_of(self.experiment.name, Setting(data, tuple(values)), realisation, self.seed)
        if seed != str(made):
            raise ValueError(
                f"{self.path} holds realisations of another seed than {self.seed}; use --fresh to "
                "replace them, or another --results."
            )

    def _finished(self) -> Iterator[list[Row]]:
        """Realisations in the partial file; a line that was cut off in writing does not count."""
        if not self.partial.exists():
            return
        for line in self.partial.read_text(encoding="utf-8").split("\n"):
            try:
                yield [tuple(row) for row in json.loads(line)]
            except json.JSONDecodeError:
                continue

    def _key(self, row: Row) -> Row:
        """The key of the task that wrote a row."""
        n = 3 + len(self.experiment.columns)
        return (*row[2:n], *row[n + 1 : n + 3])

    def add(self, rows: list[Row]) -> None:
        """Keep one finished realisation, in memory and on disk."""
        self.rows[self._key(rows[0])] = rows
        if self._log is None:
            self._log = open(self.partial, "a", encoding="utf-8")  # noqa: SIM115
            # After a line that was cut off, begin a new one.
            self._log.write("\n")
        self._log.write(json.dumps(rows) + "\n")
        self._log.flush()
        os.fsync(self._log.fileno())

    def close(self) -> None:
        """Stop writing; what is there stays."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def finish(self) -> None:
        """Sort everything into the result file, which replaces the old one in one step."""
        self.close()
        new = self.path.with_suffix(".new")
        with open(new, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(self.experiment.header)
            for key in sorted(self.rows, key=self._place):
                out.writerows(self.rows[key])
        os.replace(new, self.path)
        self.partial.unlink(missing_ok=True)

    def _place(self, key: Row) -> tuple[int, Row, int, int]:
        """Settings in the order of the design, then realisations by number."""
        settings = [(s.data, *map(_text, s.values)) for s in self.experiment.design]
        place = settings.index(key[:-2]) if key[:-2] in settings else len(settings)
        return (place, key[:-2], int(key[-2]), int(key[-1]))


# ---------------------------------------------------------------------------- running


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
    store = _Store(experiment, Path(results), seed, fresh=fresh)
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
