"""Shared tools: array types, blocks of rows, logarithms, comparison of scores, checks, warnings.

Most subpackages import this file, so it imports none of them. All chapters depend on it, but no
chapter explains it.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cgmm.given import (
    MASKED_LABELS,
    MASKED_WEIGHTS,
    advise_on_rows,
    read_rows,
    refuse_mask,
    require_samples,
    show_first_text,
)

__all__ = [
    "WarnedOnce", "best_first", "blocks", "check_integer", "check_labels", "check_pairs",
    "check_ranges", "check_sample_weight", "in_floats", "is_better", "log_normalise",
    "most_probable", "warn_caller",
]  # fmt: skip

if TYPE_CHECKING:
    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.integer[Any]]
    BoolArray = NDArray[np.bool_]
else:
    # API pages show `ndarray` for these types; docstrings describe the contents more precisely.
    FloatArray = IntArray = BoolArray = np.ndarray

# This type variable marks functions that return an array of the same type as their argument.
AnyArray = TypeVar("AnyArray", bound=NDArray[Any])

Seed = int | np.random.RandomState | np.random.Generator | None
"""Accepted types of ``random_state``."""

# Number of floats per block (one mebibyte of float64), so that a block fits into a core's cache.
BLOCK_CELLS = 131_072
# Number of floats per block of points, which may slightly exceed the cache, and the lowest and
# highest number of rows. With fewer rows, the overhead of NumPy calls would exceed the gain of
# caching; with more rows, products of narrow matrices become slow.
POINT_CELLS, FEWEST_ROWS, MOST_ROWS = 550_000, 2000, 12_000
# Frames of these packages can be between a warning and the user's line: scikit-learn wraps `fit`,
# and its parameter searches call `fit` through joblib.
OWN_PACKAGES = {"cgmm", "sklearn", "joblib"}
# Scores within this relative tolerance count as equal: processors add numbers in different orders,
# so smaller differences are rounding errors.
AGREE = 1e-8
# Columns with a smaller range are rejected, because their squares would underflow.
SMALLEST_RANGE = 1e-150


def blocks(n_rows: int, width: int, *, at_least: int = 1) -> Iterator[slice]:
    """Divide rows into blocks that fit into the cache, and yield the slices of rows.

    Parameters
    ----------
    n_rows : int
        Number of rows to divide.
    width : int
        Number of floats per row that the computation needs in memory.
    at_least : int, default=1
        Minimum number of rows per slice; with fewer rows, the overhead of calls would dominate.

    Yields
    ------
    slice
        Consecutive, disjoint slices that together cover ``range(n_rows)``.

    Examples
    --------
    >>> [(part.start, part.stop) for part in blocks(10, 32_768)]
    [(0, 4), (4, 8), (8, 10)]
    """
    yield from cut_evenly(n_rows, max(at_least, BLOCK_CELLS // max(1, width)))


def block_height(n_components: int, n_dims: int) -> int:
    """Return the number of points per block for the statistics of K components in D columns."""
    n_numbers = 1 + n_dims * (n_dims + 3) // 2 + 2 * n_components
    return min(MOST_ROWS, max(FEWEST_ROWS, POINT_CELLS // n_numbers))


def cut_evenly(n_rows: int, height: int) -> Iterator[slice]:
    """Yield as few slices as possible of at most ``height`` rows, all of similar heights."""
    n_parts = max(1, math.ceil(n_rows / height))
    height = math.ceil(n_rows / n_parts)
    for start in range(0, n_rows, height or 1):
        yield slice(start, min(start + height, n_rows))


# The exponential of a number below this is subnormal, and takes 10 to 100 times as long.
LOWEST_EXPONENT = -707.0


def log_normalise(
    log_values: FloatArray, *, names: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Normalise rows of log-values; return the probabilities and the log-normalisers.

    Parameters
    ----------
    log_values : (N, K) array
        Natural logarithms; ``-inf`` means impossible.
    names : (N,) int array, default=None
        Numbers by which errors name the rows; None means 0, 1, ...

    Returns
    -------
    probabilities : (N, K) array
        ``exp(log_values - log_totals[:, None])``, whose rows sum to one.
    log_totals : (N,) array
        ``log Σ_k exp(log_values[i, k])``, safe against overflow and underflow.

    Raises
    ------
    ValueError
        If a row has only ``-inf``, or contains NaN or ``+inf``; the error names the row.

    Examples
    --------
    >>> p, log_total = log_normalise(np.log([[1.0, 3.0]]) - 1000)
    >>> p.round(12), (log_total + 1000).round(12)
    (array([[0.25, 0.75]]), array([1.38629436]))
    """
    n_rows, n_columns = log_values.shape
    # Store the result column-major, so that sums over all rows of a column read adjacent memory.
    probabilities = np.empty((n_columns, n_rows)).T
    log_totals = np.empty(n_rows)
    for part in blocks(n_rows, n_columns):
        top = log_values[part].max(axis=1)
        if not np.isfinite(top).all():
            raise _explain_impossible(top, part.start, names)
        p = np.subtract(log_values[part], top[:, None], out=probabilities[part])
        if p.min() < LOWEST_EXPONENT:
            in_range = p >= LOWEST_EXPONENT
            np.exp(np.maximum(p, LOWEST_EXPONENT, out=p), out=p)
            p *= in_range
        else:
            np.exp(p, out=p)
        total = p.sum(axis=1)
        # A multiplication takes a fifth of the time of a division.
        p *= np.reciprocal(total)[:, None]
        log_totals[part] = top + np.log(total)
    return probabilities, log_totals


def _explain_impossible(top: FloatArray, offset: int, names: IntArray | None) -> ValueError:
    """Return the error for the first row whose largest log-value is not finite."""
    first = int(np.flatnonzero(~np.isfinite(top))[0])
    row = offset + first if names is None else names[offset + first]
    if top[first] == -np.inf:
        return ValueError(
            f"row {row} has no possible value: every log-weight is -inf. "
            "A point may lie too far from every component for its density to be represented, "
            "or its evidence excludes every class; rescale the data or revise the evidence."
        )
    return ValueError(
        f"row {row} has a log-weight of {top[first]}; log-weights must be below +inf."
    )


def log_powers(log_p: FloatArray, exponents: FloatArray) -> FloatArray:
    """Return the products n_j log p_k (n, K), which are zero for n_j = 0 even if p_k is zero."""
    powers = np.zeros((len(exponents), len(log_p)))
    np.multiply(exponents[:, None], log_p, out=powers, where=(exponents > 0)[:, None])
    return powers


def is_better(score: float, than: float) -> bool:
    """Return True if a score exceeds another by more than rounding.

    Every choice among alternatives (initialisations, restarts, searches) uses this rule: scores
    that agree to eight digits count as equal, and the first one is kept. Otherwise the last digit
    would decide, which differs between processors, so one seed would give different results.

    Parameters
    ----------
    score, than : float
        Scores; higher is better.

    Returns
    -------
    bool
        True if ``score`` is better.

    Examples
    --------
    >>> is_better(-7.5, -math.inf), is_better(2.0, 1.0), is_better(2.0 + 1e-12, 2.0)
    (True, True, False)
    """
    return score > than and not math.isclose(score, than, rel_tol=AGREE)


def best_first(scores: Sequence[float]) -> list[int]:
    """Sort indices by decreasing score; those of scores equal up to rounding keep their order.

    Parameters
    ----------
    scores : sequence of float
        Scores without NaN; higher is better.

    Returns
    -------
    list of int
        The indices, best first.

    Examples
    --------
    >>> best_first([-7.0 - 1e-12, -7.0, -5.0])
    [2, 0, 1]
    """
    remaining, order = list(range(len(scores))), []
    while remaining:
        top = max(scores[i] for i in remaining)
        order.append(next(i for i in remaining if not is_better(top, scores[i])))
        remaining.remove(order[-1])
    return order


def most_probable(probabilities: FloatArray) -> IntArray:
    """Return the most probable state of each row; if several are equal, the first of them.

    Parameters
    ----------
    probabilities : (N, K) array
        Probabilities, normalised or not.

    Returns
    -------
    (N,) int array
        The states; probabilities count as equal if they agree up to rounding.

    Examples
    --------
    >>> most_probable(np.array([[0.5 - 1e-12, 0.5 + 1e-12], [0.4, 0.6]]))
    array([0, 1])
    """
    top = probabilities.max(axis=1, keepdims=True)
    return (probabilities >= (1 - AGREE) * top).argmax(axis=1)


def check_sample_weight(
    sample_weight: ArrayLike | None, n_points: int, n_least: int = 1
) -> FloatArray | None:
    """Check sample weights and return them as floats; at least ``n_least`` must be positive."""
    if sample_weight is None:
        return None
    refuse_mask("sample_weight", sample_weight, MASKED_WEIGHTS.format("sample_weight"))
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_points,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; it must be ({n_points},), one per point."
        )
    wrong = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(wrong):
        raise ValueError(
            f"sample_weight[{wrong[0]}] is {weights[wrong[0]]}; weights must be finite and none "
            "negative. Leave a point out by a weight of zero."
        )
    if not weights.any():
        raise ValueError("every entry of sample_weight is zero; give some points a weight.")
    n_positive = np.count_nonzero(weights)
    if n_positive < n_least:
        raise ValueError(
            f"sample_weight is positive for {n_positive} of the points, too few for {n_least} "
            f"components or clusters; give more points a weight, or ask for {n_positive}."
        )
    return weights


def check_pairs(name: str, pairs: ArrayLike | None, n_points: int | None = None) -> IntArray:
    """Check pairs of points and return them as indices, or raise an error for the first bad row.

    Parameters
    ----------
    name : str
        Name of the caller's argument, for messages.
    pairs : (P, 2) array-like or None
        Indices of points; None and empty input mean no pairs.
    n_points : int, default=None
        Number of points; None means that any index from 0 is valid.

    Returns
    -------
    (P, 2) int array
        The indices.

    Raises
    ------
    ValueError
        If the shape is wrong, or if a row does not refer to two points that exist.

    Examples
    --------
    >>> check_pairs("must_link", [[0, 2], [1, 5]], 5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: must_link[1] is [1, 5]; it must name two points by index, 0 to 4. If points were ...
    """
    require_samples(name, pairs, n_points)
    array = read_rows(name, pairs, 2)
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.intp)
    limit = np.inf if n_points is None else n_points
    wrong = np.flatnonzero(((whole != array) | (whole < 0) | (whole >= limit)).any(axis=1))
    if len(wrong):
        existing = "from 0 on" if n_points is None else f"0 to {n_points - 1}"
        raise ValueError(
            f"{name}[{wrong[0]}] is {array[wrong[0]].tolist()}; it must name two points by index, "
            f"{existing}." + (advise_on_rows(name) if (whole[wrong[0]] >= limit).any() else "")
        )
    return whole


def check_labels(
    name: str, labels: ArrayLike, n_points: int | None = None, *, least: int | None = -1
) -> IntArray:
    """Check labels and return them as integers, or raise an error for the first bad entry.

    Parameters
    ----------
    name : str
        Name of the caller's argument, for messages.
    labels : (N,) array-like
        Integers from 0, or -1 for unknown labels. Whole numbers of any real type are valid.
    n_points : int, default=None
        Number of labels N; None means any positive number.
    least : int or None, default=-1
        The smallest valid label: 0 if all labels must be known, None if any integer is valid.

    Returns
    -------
    (N,) int array
        The labels.

    Raises
    ------
    ValueError
        If the shape is wrong, or if an entry is not a valid integer.

    Examples
    --------
    >>> check_labels("y", [0.0, -1.0, 2.0])
    array([ 0, -1,  2])
    >>> check_labels("y", [0, 0.5])
    Traceback (most recent call last):
        ...
    ValueError: y[1] is 0.5; it must be an integer from 0, or -1 for unknown.
    """
    refuse_mask(name, labels, MASKED_LABELS.format(name))
    array = np.asarray(labels)
    if array.ndim != 1 or array.size == 0 or (n_points is not None and len(array) != n_points):
        wanted = "one-dimensional and not empty" if n_points is None else f"({n_points},)"
        raise ValueError(f"{name} has shape {array.shape}; it must be {wanted}, a label a point.")
    allowed = {None: "", -1: " from 0, or -1 for unknown"}.get(least, f" from {least}")
    if array.dtype.kind not in "iubf":
        raise ValueError(
            f"{name} is of type {array.dtype}{show_first_text(array)}; labels must be "
            f"integers{allowed}. cgmm.network.number_classes({name})[1] numbers labels of any "
            "type, and gives -1 to None and NaN."
        )
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.intp)
    wrong = np.flatnonzero((whole != array) | (least is not None and whole < least))
    if len(wrong):
        raise ValueError(
            f"{name}[{wrong[0]}] is {array[wrong[0]]}; it must be an integer{allowed}."
        )
    return whole


def generator(random_state: Seed) -> np.random.Generator:
    """Return a Generator for ``random_state``; it shares the bit stream of a RandomState."""
    # `default_rng` of NumPy 2.0 does not accept a RandomState.
    return np.random.default_rng(getattr(random_state, "_bit_generator", random_state))


def in_floats(*functions: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Wrap functions so that fractions and decimals in their results become floats.

    Parameters
    ----------
    *functions : callable
        Functions that return numbers, arrays, or lists and tuples of these.

    Returns
    -------
    list of callable
        The wrapped functions.

    Examples
    --------
    >>> from fractions import Fraction
    >>> (half,) = in_floats(lambda n: [Fraction(n, 2), n])
    >>> half(3)
    [1.5, 3]
    """

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: _to_floats(function(*args, **kwargs))

    return [wrap(function) for function in functions]


def _to_floats(value: Any) -> Any:
    """Return a value with its fractions and decimals replaced by floats, at any nesting depth."""
    if isinstance(value, Fraction | Decimal):
        return float(value)
    if isinstance(value, list | tuple):
        parts = [_to_floats(part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array(_to_floats(value.tolist()))
    return value


def check_integer(name: str, value: int, least: int, most: int | None = None) -> None:
    """Raise ``ValueError`` if a number is not an integer or is out of range.

    Parameters
    ----------
    name : str
        Name of the caller's argument, for messages.
    value : int
        Value of the argument.
    least, most : int
        The smallest and the largest valid value; ``most=None`` means no upper limit.

    Raises
    ------
    ValueError
        If the value is invalid; the message shows the argument, its value and the range.

    Examples
    --------
    >>> check_integer("n_pairs", 3, 0, 2)
    Traceback (most recent call last):
        ...
    ValueError: n_pairs is 3; it must be an integer from 0 to 2.
    """
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_integer or value < least or (most is not None and value > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} is {value}; it must be an integer {limits}.")


def check_ranges(X: FloatArray, *, some_may_vanish: bool = False) -> FloatArray:
    """Return the range of each column, or raise an error if its square overflows or underflows.

    Parameters
    ----------
    X : (N, D) array
        The points, finite numbers in at least one row.
    some_may_vanish : bool, default=False
        If True, squares may underflow in some columns, but not in all columns that vary.

    Returns
    -------
    (D,) array
        Largest minus smallest value of each column.

    Raises
    ------
    ValueError
        If squares overflow or underflow; the message names the column.

    Examples
    --------
    >>> check_ranges(np.array([[0.0, 5.0], [2.0, 5.0]]))
    array([2., 0.])
    >>> check_ranges(np.array([[0.0], [1e200]]))
    Traceback (most recent call last):
        ...
    ValueError: column 0 spans 0 to 1e+200: its squares overflow. Divide the data by a constant.
    """
    return check_extent(X.min(axis=0), X.max(axis=0), len(X), some_may_vanish)


def check_extent(
    low: FloatArray, high: FloatArray, n_points: int, some_may_vanish: bool
) -> FloatArray:
    """Return the range of each column like ``check_ranges``, from its lowest and highest value."""
    # Convert to floats, because unsigned integers cannot be negated and integers may overflow.
    low, high = low.astype(float), high.astype(float)
    with np.errstate(over="ignore", invalid="ignore"):
        ranges = high - low
        # To detect overflow, bound the sum of squares about the mean and the sum of the points.
        sums = (np.square(ranges) + np.maximum(high, -low)) * n_points
        total = sums.sum()
    if not np.isfinite(total):
        d = int(sums.argmax())
        raise ValueError(
            f"column {d} spans {low[d]:.3g} to {high[d]:.3g}: its squares overflow. Divide the "
            "data by a constant."
        )
    vanish = (ranges > 0) & (ranges < SMALLEST_RANGE)
    if vanish.any() and not (some_may_vanish and ranges.max() >= SMALLEST_RANGE):
        d = int(vanish.argmax())
        raise ValueError(
            f"column {d} spans {ranges[d]:.3g}: its squares vanish. Multiply the data by a "
            "constant, or drop the column."
        )
    return ranges


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning that refers to the user's line, outside the package and scikit-learn.

    Parameters
    ----------
    message : str
        Text of the warning.
    category : type of Warning
        Class of the warning, usually scikit-learn's ConvergenceWarning.

    Warns
    -----
    category
        The warning, which refers to the user's line however deep in the package it is issued.
        Within :class:`WarnedOnce` it is delayed.
    """
    delayed = _DELAYED.get()
    if delayed is not None:
        delayed.append((message, category))
        return
    level, frame = 1, sys._getframe()
    while frame is not None and is_internal(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class WarnedOnce:
    """Context manager that delays warnings of :func:`warn_caller` and removes duplicates.

    Use it around loops whose steps may repeat a warning. It does not affect other threads.

    Parameters
    ----------
    *kinds : types of Warning
        Of each of these classes, only the last warning is issued, whatever its text.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     with WarnedOnce(RuntimeWarning):
    ...         for step in range(3):
    ...             warn_caller("again", UserWarning)
    ...             warn_caller(f"step {step}", RuntimeWarning)
    >>> [str(warning.message) for warning in caught]
    ['again', 'step 2']
    """

    def __init__(self, *kinds: type[Warning]):
        self.kinds = kinds

    def __enter__(self) -> Self:
        """Begin to delay warnings."""
        self.held: list[tuple[str, type[Warning]]] = []
        self.token = _DELAYED.set(self.held)
        return self

    def __exit__(self, *error: object) -> None:
        """Issue the delayed warnings, even after an error, because they may explain it."""
        _DELAYED.reset(self.token)
        if not self.held:
            return
        distinct = {
            kind if kind in self.kinds else (text, kind): (text, kind) for text, kind in self.held
        }
        for text, kind in distinct.values():
            warn_caller(text, kind)


# The delayed warnings of the innermost `WarnedOnce` context; None outside of such contexts.
_DELAYED: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("delayed", default=None)


def is_internal(frame: FrameType) -> bool:
    """Return True if a stack frame belongs to the package, to scikit-learn or to joblib."""
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    # Code of a doctest has the name of its module, but counts as the user's code.
    return package in OWN_PACKAGES and not frame.f_code.co_filename.startswith("<doctest")
