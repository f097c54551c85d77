"""Exchange values and calls between two processes, one of which is not trusted.

The teacher's process runs the checks, and the student's process the functions that they test.
Numbers, arrays and containers of them are sent as plain data, never as code. A function is not
sent: the other process gets a :class:`Remote`, which calls the function in its own process.
Arguments are sent as copies. Only the new states of random generators are sent back, or, if
``in_place`` is set, all arguments that the call changed.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import pickle
import signal
import struct
from itertools import islice

import numpy as np

from markapart.replies import describe_error, list_arguments, rebuild_error, update_in_place

MAX_BYTES = 64 * 2**20  # Bytes in a message.
MAX_ITEMS = 10**6  # Items in a message, and in an iterable that is sent.
KINDS_WITH_SUBCLASSES = (np.ndarray, np.generic)  # Their subclasses are sent as well.
PLAIN_KINDS = "biufcSUmM?"  # Codes of NumPy data types that are plain data.


class WireError(Exception):
    """Raised if the other process has ended or has sent something that is not allowed."""


def die_with_parent() -> None:
    """Make Linux kill this process when its parent ends; other systems do nothing."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def _exceeded_limit(text: bytes) -> str:
    """Return which limit a message exceeds, or ""; this is checked before parsing.

    A parsed list needs up to 30 times the memory of its text.
    """
    if len(text) > MAX_BYTES:
        return "more than 64 MB"
    return "more than a million items" if text.count(b",") + text.count(b"[") > MAX_ITEMS else ""


class Remote:
    """A function of the other process."""

    def __init__(self, wire: Wire, number: int):
        self._wire, self._number = wire, number

    def __call__(self, *args, **kwargs):
        """Call the function in the other process."""
        return self._wire.call(self._number, args, kwargs)


class Opaque:
    """Placeholder for an object of a package that is hidden here; it can only be sent back."""


class Wire:
    """One end of the connection. Only an end that ``trusts`` the other unpickles its data."""

    def __init__(self, read: int, write: int, *, trusts: bool):
        self.read, self.write, self.trusts = read, write, trusts
        self.in_place = False  # Whether a call may change its arguments.
        self.asked = 0
        self.own: list = []  # Functions and objects that the other end knows by number.
        self.theirs: dict[int, tuple] = {}  # Objects of the other end and their numbers, by id.
        self.answers = {"call": self._answer_call}

    # ------------------------------------------------------------------------- messages

    def ask(self, **message) -> dict:
        """Send a request and return its answer; meanwhile, answer requests of the other end."""
        self.tell(**message)
        number = self.asked
        while True:
            reply = self._receive()
            if "do" in reply:
                self._send(self._answer(reply))
            elif reply.get("re") == number:  # Not a late answer to a request that was given up.
                return reply

    def tell(self, **message) -> None:
        """Send a request that has no answer."""
        self.asked += 1
        self._send(message | {"id": self.asked})

    def serve(self) -> None:
        """Answer requests until the other end closes the connection."""
        while True:
            try:
                request = self._receive()
            except WireError:
                return
            self._send(self._answer(request))

    def _answer(self, request: dict) -> dict:
        try:
            return self.answers[request["do"]](request) | {"re": request["id"]}
        except (KeyError, TypeError):
            raise WireError(f"unknown request {str(request)[:80]}") from None

    def _send(self, message: dict) -> None:
        text = json.dumps(message).encode()
        if wrong := _exceeded_limit(text):
            reply = describe_error(ValueError(f"{wrong} are returned"))
            text = json.dumps(reply | {"re": message.get("re")}).encode()
        left = memoryview(struct.pack(">Q", len(text)) + text)
        try:
            while left:
                left = left[os.write(self.write, left) :]
        except OSError as error:
            raise WireError(str(error)) from None

    def _receive(self) -> dict:
        (length,) = struct.unpack(">Q", self._read_bytes(8))
        if length > MAX_BYTES:
            raise WireError("a message is too long")
        text = self._read_bytes(length)
        if wrong := _exceeded_limit(text):
            raise WireError(f"{wrong} are in a message")
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            raise WireError("a message is no message") from None
        if not isinstance(message, dict):
            raise WireError("a message is no message")
        return message

    def _read_bytes(self, length: int) -> bytes:
        parts = []
        while length:
            try:
                part = os.read(self.read, min(length, 2**20))
            except OSError as error:
                raise WireError(str(error)) from None
            if not part:
                raise WireError("hung up")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    # ---------------------------------------------------------------------------- calls

    def call(self, number: int, args: tuple, kwargs: dict):
        """Call a function of the other process, given by its number."""
        given = [list(args), kwargs]
        reply = self.ask(do="call", number=number, given=self.encode(given), back=self.in_place)
        if "error" in reply:
            raise rebuild_error(reply)
        try:
            changed, value = self.decode(reply["changed"]), self.decode(reply["value"])
            for old, new in zip(list_arguments(given), changed, strict=True):
                update_in_place(old, new)
        except (KeyError, TypeError, ValueError) as error:
            raise WireError(f"an answer is none: {error}") from None
        return value

    def _answer_call(self, request: dict) -> dict:
        given = self.decode(request["given"])
        try:
            args, kwargs = given
            value = self.encode(self.own[request["number"]](*args, **kwargs))
        except WireError:
            raise
        except BaseException as error:  # The caller learns of exit() and interrupts, too.
            return describe_error(error)
        going_on = object if request.get("back") is True else np.random.Generator
        changed = [one if isinstance(one, going_on) else None for one in list_arguments(given)]
        return {"value": value, "changed": self.encode(changed)}

    # ----------------------------------------------------------------------- plain data

    def encode(self, value):
        """Convert a value to types that JSON has; the first item of a list is a tag."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if id(value) in self.theirs:
            return ["theirs", self.theirs[id(value)][1]]
        if isinstance(value, Remote):
            return ["theirs", value._number]
        for kind, (tag, write) in WRITERS.items():
            loose = kind in KINDS_WITH_SUBCLASSES or self.trusts
            if type(value) is kind or (loose and isinstance(value, kind)):
                return [tag, *write(self, value)]
        return self._encode_other(value)

    def _encode_other(self, value):
        if callable(value) and not hasattr(value, "__array__"):
            return ["own", self._lend(value)]
        if not self.trusts:  # The other end trusts us, so it may unpickle this.
            packed = base64.b64encode(pickle.dumps(value)).decode()
            return ["pickle", packed, self._lend(value)]
        if hasattr(value, "toarray"):  # Sparse matrices.
            value = value.toarray()
        if hasattr(value, "__array__"):  # For example, tables of pandas and polars.
            return self.encode(np.array(value))
        if hasattr(value, "__float__"):  # Fractions and decimals.
            return float(value)
        if hasattr(value, "__iter__"):
            return ["list", *(self.encode(item) for item in islice(iter(value), MAX_ITEMS))]
        raise TypeError(f"a {type(value).__name__} is no number, list or array")

    def _lend(self, value) -> int:
        for number, known in enumerate(self.own):
            if known is value:
                return number
        self.own.append(value)
        return len(self.own) - 1

    def decode(self, written):
        """Convert what ``encode`` returned at the other end back to a value."""
        if not isinstance(written, list):
            return written
        tag, *rest = written
        try:
            return READERS[tag](self, *rest)
        except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise WireError(f"a value is none: {error}") from None

    def _read_pickle(self, packed: str, number: int):
        if not self.trusts:
            raise WireError("code instead of data")
        try:
            value = pickle.loads(base64.b64decode(packed))
        except ImportError:
            value = Opaque()
        self.theirs[id(value)] = (value, number)
        return value

    def _read_generator(self, kind: str, state):
        if kind not in ("PCG64", "MT19937", "Philox", "SFC64", "PCG64DXSM"):
            raise WireError("no generator")
        bits = getattr(np.random, kind)()
        bits.state = self.decode(state)
        return np.random.Generator(bits)


def _write_array(wire: Wire, value: np.ndarray) -> list:
    value = np.asarray(value)
    if value.dtype.kind not in PLAIN_KINDS:
        items = [wire.encode(item) for item in value.ravel().tolist()]
        if not items or not wire.trusts or any(type(item) is not float for item in items):
            return [None, list(value.shape), items]
        value = np.array(items).reshape(value.shape)  # Fractions or decimals.
    if value.nbytes > MAX_BYTES:
        raise ValueError("more than 64 MB are returned")
    flat = np.ascontiguousarray(value)
    return [value.dtype.str, list(value.shape), base64.b64encode(flat.tobytes()).decode()]


def _read_array(wire: Wire, kind: str | None, shape: list, content):
    if kind is None:
        found = np.empty(len(content), dtype=object)
        for place, item in enumerate(content):
            found[place] = wire.decode(item)
        return found.reshape(shape)
    kind = np.dtype(kind)
    if kind.kind not in PLAIN_KINDS:
        raise WireError("no plain array")
    try:
        return np.frombuffer(base64.b64decode(content), kind).reshape(shape).copy()
    except ValueError as error:
        raise WireError(f"no plain array: {error}") from None


def _write_generator(wire: Wire, value: np.random.Generator) -> list:
    bits = value.bit_generator
    return [type(bits).__name__, wire.encode(bits.state)]


def _require_short(numbers: range) -> range:
    """Return a range, or raise ValueError if it has more than a million numbers."""
    if len(numbers) > MAX_ITEMS:
        raise ValueError("a range has more than a million numbers")
    return numbers


def _encode_items(wire: Wire, value) -> list:
    return [wire.encode(item) for item in value]


WRITERS = {
    np.ndarray: ("array", _write_array),
    np.generic: ("scalar", _write_array),
    list: ("list", _encode_items),
    tuple: ("tuple", _encode_items),
    set: ("set", _encode_items),
    frozenset: ("frozenset", _encode_items),
    dict: ("dict", lambda wire, value: [_encode_items(wire, pair) for pair in value.items()]),
    complex: ("complex", lambda wire, value: [value.real, value.imag]),
    bool: ("bool", lambda wire, value: [bool(value)]),
    int: ("int", lambda wire, value: [int(value)]),
    float: ("float", lambda wire, value: [float(value)]),
    str: ("str", lambda wire, value: ["".join(value)]),
    bytes: ("bytes", lambda wire, value: [base64.b64encode(value).decode()]),
    range: ("range", lambda wire, value: [value.start, _require_short(value).stop, value.step]),
    slice: (
        "slice",
        lambda wire, value: _encode_items(wire, (value.start, value.stop, value.step)),
    ),
    np.random.Generator: ("generator", _write_generator),
}

READERS = {
    "array": _read_array,
    "scalar": lambda wire, *parts: _read_array(wire, *parts)[()],
    "list": lambda wire, *items: [wire.decode(item) for item in items],
    "tuple": lambda wire, *items: tuple(wire.decode(item) for item in items),
    "set": lambda wire, *items: {wire.decode(item) for item in items},
    "frozenset": lambda wire, *items: frozenset(wire.decode(item) for item in items),
    "dict": lambda wire, *pairs: {wire.decode(k): wire.decode(v) for k, v in pairs},
    "complex": lambda wire, *parts: complex(*parts),
    "bool": lambda wire, value: bool(value),
    "int": lambda wire, value: int(value),
    "float": lambda wire, value: float(value),
    "str": lambda wire, value: str(value),
    "bytes": lambda wire, text: base64.b64decode(text),
    "range": lambda wire, *parts: _require_short(range(*parts)),
    "slice": lambda wire, *parts: slice(*(wire.decode(part) for part in parts)),
    "generator": Wire._read_generator,
    "own": lambda wire, number: Remote(wire, int(number)),
    "theirs": lambda wire, number: wire.own[number],
    "pickle": Wire._read_pickle,
}
