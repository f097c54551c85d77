"""What is to be run: experiments, settings, realisations, and the seed of each. Chapter 13.

An experiment is a function of a data set, a setting and a random generator, and a *design*: the
settings in which it is run. A *realisation* is one call of that function. Its result is a few rows,
one for each method and quantity. Its seed is made from names alone, so that a realisation is the
same in whatever order, process or machine it is run.

What all experiments do stands here as well: they attempt a method, measure what comes out, and
write down why one failed.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import signature
from itertools import product
from typing import NamedTuple, TypeVar

import numpy as np

DIGITS = 8  # significant ones, of a value in a result file
REASON_LENGTH = 120  # characters of a reason in a result file

Row = tuple[str, ...]
Outcome = TypeVar("Outcome")


class Setting(NamedTuple):
    """One cell of a design."""

    data: str
    """Name of the data set; see :func:`~reruns.load_data`."""
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


def paper_experiment(
    name: str,
    run: Callable[..., Iterable[Result]],
    *,
    design: tuple[Setting, ...],
    quick: tuple[Setting, ...],
    realisations: int,
    figure: str = "",
) -> Experiment:
    """An experiment after a paper, whose name says which: "lu2007-fig5".

    Its columns are the arguments of ``run`` between the data and the generator. ``figure`` is named
    where the same experiment makes several.

    Examples
    --------
    >>> def run(data, share, rng):
    ...     yield Result("EM", "score", share)
    >>> paper_experiment("lu2007-fig5", run, design=(), quick=(), realisations=20)[1:4]
    ('lu2007', '5', ('share',))
    """
    paper, _, number = name.partition("-fig")
    _, *columns, _ = signature(run).parameters
    return Experiment(
        name, paper, figure or number, tuple(columns), design, quick, realisations, run
    )


class Task(NamedTuple):
    """One realisation, by names alone."""

    experiment: Experiment
    setting: Setting
    realisation: int
    seed: int

    @property
    def key(self) -> Row:
        """What identifies it in a file; the seed is part of it."""
        return (*format_setting(self.setting), str(self.realisation), str(self.seed))


def cross(names: Iterable[str], *values: Iterable[float | str]) -> tuple[Setting, ...]:
    """A setting for every data set and combination of values, of which the last vary fastest.

    Examples
    --------
    >>> cross(["iris"], (0.15, 0.3))
    (Setting(data='iris', values=(0.15,)), Setting(data='iris', values=(0.3,)))
    """
    return tuple(Setting(name, chosen) for name in names for chosen in product(*values))


def format_setting(setting: Setting) -> Row:
    """Data set and values as they stand in a file."""
    return (setting.data, *map(format_value, setting.values))


def format_value(value: object) -> str:
    """A setting's value as it stands in a file: 0.30 is "0.3", 1.0 is "1", text is itself."""
    return value if isinstance(value, str) else f"{value:g}"


# ---------------------------------------------------------------------------- realisations


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
    names = [experiment, *format_setting(setting), str(realisation)]
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


# ---------------------------------------------------------------------------- attempts


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


def attempt_each(
    methods: Mapping[str, Callable[[], Outcome]],
    quantities: tuple[str, ...],
    measure: Callable[[Outcome], Mapping[str, float]],
) -> Iterator[Result]:
    """Attempt methods one after the other: call each, and measure what it returns.

    Examples
    --------
    >>> methods = {"kept": lambda: [1, 2], "lost": lambda: []}
    >>> for result in attempt_each(methods, ("length",), lambda found: {"length": len(found)}):
    ...     print(result.method, result.value)
    kept 2
    lost 0
    """
    for name, method in methods.items():
        # The attempt is over before the loop goes on, and the name means another method.
        yield from attempt(name, quantities, lambda: measure(method()))  # noqa: B023


def _in_short(category: type, message: object) -> str:
    """Kind and first sentence, on one line."""
    first = re.split(r"[.;] ", " ".join(str(message).split()))[0]
    return f"{category.__name__}: {first}"[:REASON_LENGTH]
