"""How much what a function returns must hold: as much as the right one returns to the same call.

A comparison of values says nothing about an empty array, which agrees with everything, nor about
one number that NumPy spreads over an array. So sizes are compared beside the values of a check.
"""

from __future__ import annotations

import hashlib

import numpy as np


class Forms:
    """Watches what a check is given: notes sizes in ``known``, or compares them with it."""

    def __init__(self, known: dict, *, learns: bool = False):
        self.known, self.learns, self.wrong = known, learns, ""

    def see(self, name: str, value):
        """Look at a value now, at what a function returns whenever it is called."""
        if not callable(value):
            self._note(name, "", value)
            return value

        def watched(*args, **kwargs):
            call = _digest([args, kwargs])  # before the call, which may change them
            result = value(*args, **kwargs)
            self._note(name, call, result)
            return result

        return watched

    def _note(self, name: str, call: str, value) -> None:
        found = held(value)
        if self.learns:
            # Twice the same call and two sizes: there is nothing to hold anybody to.
            self.known[name, call] = found if self.known.get((name, call), found) == found else None
        want = self.known.get((name, call))
        if not self.wrong and too_little(found, want):
            verb = "returns" if call else "holds"
            self.wrong = f"TypeError: {name} {verb} {found} numbers where {want} belong"


def held(value) -> int | tuple | None:
    """How many numbers a value holds, a tuple's parts one by one; None where this says nothing."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return value.size
    if isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        return 1
    if isinstance(value, str):
        return 0
    if isinstance(value, tuple):
        return tuple(map(held, value))
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (np.ndarray, list, set, frozenset, range)):
        return _all(map(held, value))
    return None


def _all(held) -> int | None:
    parts = [_all(part) if isinstance(part, tuple) else part for part in held]
    return None if None in parts else sum(parts)


def too_little(found, want, *, part: bool = False) -> bool:
    """Whether there are fewer numbers than belong, or none in a part of which a check may look."""
    if isinstance(found, tuple) and isinstance(want, tuple) and len(found) == len(want):
        return any(too_little(*pair, part=True) for pair in zip(found, want, strict=True))
    found, want = (_all([one]) for one in (found, want))
    if found is None or want is None:
        return False
    return found < (min(want, 1) if part else want)


def _digest(value) -> str:
    return hashlib.sha256(repr(_plain(value)).encode()).hexdigest()


def _plain(value):
    """A value as text that is the same for the same call, whoever makes it."""
    if isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype.kind != "O":
        return np.shape(value), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    if isinstance(value, np.random.Generator):
        return str(value.bit_generator.state)
    if isinstance(value, dict):
        return [(_plain(key), _plain(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (bool, int, float, str, type(None), set, frozenset, range)):
        return repr(value)
    return type(value).__name__
