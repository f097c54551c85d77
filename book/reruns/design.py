"""The design of experiments: settings, realisations, and the seed of each. Chapter 13.

An experiment is a function of a data set, a setting and a random generator, and a *design*: the
settings in which it is run. A *realisation* is one call of that function. Its result is a few rows,
one for each method and quantity. Its seed is derived from names alone, so a realisation is the same
in any order, in any process and on any machine.

The experiments of all papers share ``attempt_each``: it runs each method, measures the result,
and records why a method failed. ``from_starts`` runs one model from the starts that are compared.
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
from sklearn.base import clone

from cgmm.mixture import ConstrainedGaussianMixture
from cgmm.numerics import FloatArray, IntArray

DIGITS = 8  # significant digits of a value in a result file
REASON_LENGTH = 120  # characters of a reason in a result file

Row = tuple[str, ...]
Outcome = TypeVar("Outcome")


class Setting(NamedTuple):
    """One cell of a design."""

    data: str
    """Name of the data set; see :func:`~reruns.load_data`."""
    values: tuple[float | int | str, ...] = ()
    """One value for each of the experiment's columns."""


class Result(NamedTuple):
    """The value of one quantity for one method in one realisation."""

    method: str
    quantity: str
    value: float | None
    """None if the method failed."""
    reason: str = ""
    """The error with which it failed, or its warnings."""


Results = Iterator[Result]


class Experiment(NamedTuple):
    """A figure of a paper: the function that runs it, and its design."""

    name: str
    """Name of its result file, and its name on the command line."""
    paper: str
    """Key in the book's bibliography."""
    figure: str
    columns: tuple[str, ...]
    """Names of a setting's values."""
    design: tuple[Setting, ...]
    quick: tuple[Setting, ...]
    """A part of the design that runs in seconds."""
    realisations: int
    """Number over which the paper averages; one if nothing is random."""
    run: Callable[..., Iterable[Result]]
    """``run(data, *values, rng)``."""

    @property
    def header(self) -> Row:
        """Names of the columns of the result file."""
        tail = ("method", "realisation", "seed", "quantity", "value", "reason")
        return ("paper", "figure", "data", *self.columns, *tail)


def make_experiment(
    name: str,
    run: Callable[..., Iterable[Result]],
    realisations: int,
    design: tuple[Setting, ...],
    quick: tuple[Setting, ...],
    figure: str = "",
    paper: str = "",
) -> Experiment:
    """Build an experiment whose name says of which paper and figure: "lu2007-fig10-near".

    Its columns are the arguments of ``run`` between the data and the generator. ``paper`` and
    ``figure`` are given if they are not those in the name.

    Examples
    --------
    >>> def run(data, share, rng):
    ...     yield Result("EM", "score", share)
    >>> make_experiment("lu2007-fig10-near", run, 20, design=(), quick=())[1:4]
    ('lu2007', '10', ('share',))
    """
    before, after = name.split("-")[:2]
    paper, figure = paper or before, figure or after.removeprefix("fig")
    columns = tuple(signature(run).parameters)[1:-1]
    return Experiment(name, paper, figure, columns, design, quick, realisations, run)


class Task(NamedTuple):
    """One realisation that is to be run."""

    experiment: Experiment
    setting: Setting
    realisation: int
    seed: int

    @property
    def key(self) -> Row:
        """The columns that identify it in a file, the seed included."""
        return (*format_setting(self.setting), str(self.realisation), str(self.seed))


def cross(names: Iterable[str], *values: Iterable[float | str]) -> tuple[Setting, ...]:
    """Return a setting for each data set and combination of values; the last value varies fastest.

    Examples
    --------
    >>> cross(["iris"], (0.15, 0.3))
    (Setting(data='iris', values=(0.15,)), Setting(data='iris', values=(0.3,)))
    """
    return tuple(Setting(name, chosen) for name in names for chosen in product(*values))


def format_setting(setting: Setting) -> Row:
    """Return data set and values as they stand in a file."""
    return (setting.data, *map(format_value, setting.values))


def format_value(value: object) -> str:
    """Return a value as it stands in a file: 0.30 as "0.3", 1.0 as "1", text unchanged."""
    return value if isinstance(value, str) else f"{value:g}"


# ---------------------------------------------------------------------------- realisations


def seed_of(experiment: str, setting: Setting, realisation: int | str, seed: int = 0) -> int:
    """Return the seed of one realisation, derived from names alone.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    setting : Setting
        Data set and values.
    realisation : int
        Number of the realisation, from 0.
    seed : int, default=0
        The seed given on the command line.

    Returns
    -------
    int
        A number below 2³², which determines the realisation.

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
    """Return the realisations of an experiment in the order in which they are run.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    realisations : int, default=None
        Number of realisations of each setting; None: as many as the paper. It is at most one if
        nothing is random.
    seed : int, default=0
        The seed given on the command line.
    quick : bool, default=False
        Whether to take only the small part of the design.

    Returns
    -------
    list of Task
        One realisation of all settings before the next, so that a stopped run has some of each.
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
    """Measure one method; a failure or a warning becomes part of the result.

    Parameters
    ----------
    method : str
        Its name in the result file.
    quantities : tuple of str
        The keys of what ``measure`` returns. A method that fails has a row without value for each.
    measure : callable
        Function without arguments that fits and returns a value for each quantity.

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
        # Bad input, a search that gives up, and linear algebra that fails. Other errors are bugs.
        except (ValueError, RuntimeError, ArithmeticError) as error:
            reason = _in_short(type(error), error)
            return [Result(method, quantity, None, reason) for quantity in quantities]
    reason = "; ".join(sorted({_in_short(w.category, w.message) for w in caught}))
    return [Result(method, quantity, values[quantity], reason) for quantity in quantities]


def attempt_each(
    methods: Mapping[str, Callable[[], Outcome]],
    quantities: tuple[str, ...],
    measure: Callable[[Outcome], Mapping[str, float]],
) -> Results:
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
        # The attempt ends before `method` is bound again, so the lambda sees the right one.
        yield from attempt(name, quantities, lambda: measure(method()))  # noqa: B023


# Names of the starts behind the name of a method.
DEFAULT, TRUTH = ", default start", ", started at the truth"


def from_starts(
    name: str, model: ConstrainedGaussianMixture, y: IntArray, *, own: bool = True
) -> dict[str, ConstrainedGaussianMixture]:
    """Return a model with its own starts, with the package's default, and started at the truth.

    The runs share data and relations, so their log-evidences say whether a difference is that of
    the search or that of the maximum itself.

    Examples
    --------
    >>> model = ConstrainedGaussianMixture(2, init_params="random", n_init=10)
    >>> for name, other in from_starts("EM", model, np.array([3, 3, 5])).items():
    ...     print(name, other.n_init, np.shape(other.init_params))
    EM 10 ()
    EM, default start 1 ()
    EM, started at the truth 1 (3, 2)
    """
    classes = np.unique(y, return_inverse=True)[1]
    starts: dict[str, str | FloatArray] = {
        DEFAULT: "auto",
        TRUTH: np.eye(classes.max() + 1)[classes],
    }
    others = {
        name + suffix: clone(model).set_params(init_params=start, n_init=1)
        for suffix, start in starts.items()
    }
    return ({name: model} if own else {}) | others


def _in_short(category: type, message: object) -> str:
    """Return kind and first sentence of an error or a warning, on one line."""
    first = re.split(r"[.;] ", " ".join(str(message).split()))[0]
    return f"{category.__name__}: {first}"[:REASON_LENGTH]
