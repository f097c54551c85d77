"""Compare the sizes of values that functions return with those of the right solution.

A check that compares values would pass for an empty array, which equals everything, and for a
single number, which NumPy broadcasts. So a function must also return as many numbers as the right
solution returns for the same arguments.
"""

from __future__ import annotations

import hashlib

import numpy as np


class ValueSizes:
    """Sizes of the values in a check, which are stored in ``known`` or compared with it."""

    def __init__(self, known: dict, *, learns: bool = False):
        self.known, self.learns, self.wrong = known, learns, ""

    def watch(self, name: str, value):
        """Record the size of a value; wrap a function so that the sizes of results are recorded."""
        if not callable(value):
            self._record(name, "", value)
            return value

        def watched_function(*args, **kwargs):
            call = _digest([args, kwargs])  # Computed first, because the call may change them.
            result = value(*args, **kwargs)
            self._record(name, call, result)
            return result

        return watched_function

    def _record(self, name: str, call: str, value) -> None:
        found = count_numbers(value)
        if self.learns:
            # If the right solution returns several sizes for equal arguments, allow any size.
            self.known[name, call] = found if self.known.get((name, call), found) == found else None
        want = self.known.get((name, call))
        if not self.wrong and is_too_small(found, want):
            verb = "returns" if call else "holds"
            self.wrong = f"TypeError: {name} {verb} {found} numbers where {want} belong"


def count_numbers(value) -> int | tuple | None:
    """Return how many numbers a value contains (per item of a tuple), or None if undefined."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return value.size
    if isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        return 1
    if isinstance(value, str):
        return 0
    if isinstance(value, tuple):
        return tuple(map(count_numbers, value))
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (np.ndarray, list, set, frozenset, range)):
        return _total(map(count_numbers, value))
    return None


def _total(held) -> int | None:
    parts = [_total(part) if isinstance(part, tuple) else part for part in held]
    return None if None in parts else sum(parts)


def is_too_small(found, want, *, part: bool = False) -> bool:
    """Return whether a count of numbers is too small, or 0 for an item of a tuple (``part``)."""
    if isinstance(found, tuple) and isinstance(want, tuple) and len(found) == len(want):
        return any(is_too_small(*pair, part=True) for pair in zip(found, want, strict=True))
    found, want = (_total([one]) for one in (found, want))
    if found is None or want is None:
        return False
    return found < (min(want, 1) if part else want)


def _digest(value) -> str:
    return hashlib.sha256(repr(_comparable(value)).encode()).hexdigest()


def _comparable(value):
    """Return an object whose ``repr`` is the same for equal arguments of a call."""
    if isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype.kind != "O":
        return np.shape(value), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    if isinstance(value, np.random.Generator):
        return str(value.bit_generator.state)
    if isinstance(value, dict):
        return [(_comparable(key), _comparable(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [_comparable(one) for one in value]
    if isinstance(value, (bool, int, float, str, type(None), set, frozenset, range)):
        return repr(value)
    return type(value).__name__
