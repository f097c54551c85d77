"""Experiments, settings and tasks: what is to be run, and from which seed. Chapter 13."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from cgmm.datasets import DATASETS, FETCHED, Dataset, fetch, load

Row = tuple[str, ...]

TAKING_TURNS = Lock()

DIGITS = 8  # of a value in a file

REASON = 120  # characters


# ---------------------------------------------------------------------------- running


def number_of(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{float(value):.{DIGITS}g}"


def text_of(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


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
        values = map(text_of, self.setting.values)
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
    names = [experiment, setting.data, *map(text_of, setting.values), str(realisation)]
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
    with TAKING_TURNS, threadpool_limits(1):
        results = list(experiment.run(data, *setting.values, np.random.default_rng(seed)))
    head = (experiment.paper, experiment.figure, setting.data, *map(text_of, setting.values))
    return [
        (*head, r.method, str(realisation), str(seed), r.quantity, number_of(r.value), r.reason)
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
    return f"{category.__name__}: {first}"[:REASON]
