"""Convert changed arguments and errors of a call between the two processes of wire.py."""

from __future__ import annotations

import ast
import builtins
import types

import numpy as np


def list_arguments(given: list) -> list:
    """Return all arguments of a call in one list, positional arguments first."""
    args, kwargs = given
    return [*args, *kwargs.values()]


def update_in_place(old, new) -> None:
    """Give an argument the content of its copy, which the other process may have changed."""
    if type(old) is not type(new) or old is new:
        return
    if isinstance(old, np.ndarray) and old.shape == new.shape and old.flags.writeable:
        old[...] = new
    elif isinstance(old, tuple):
        for before, after in zip(old, new, strict=False):
            update_in_place(before, after)
    elif isinstance(old, list):
        old[:] = new
    elif isinstance(old, dict):
        old.clear()
        old.update(new)
    elif isinstance(old, np.random.Generator):
        old.bit_generator.state = new.bit_generator.state


def describe_error(error: BaseException) -> dict:
    """Describe an error by a dictionary, which is sent to the other process."""
    kinds = [kind.__name__ for kind in type(error).__mro__]
    return {"error": kinds, "says": str(error)[:2000], "line": _line_in_cell(error.__traceback__)}


def _line_in_cell(trace: types.TracebackType | None) -> int | None:
    """Return the number of the last line of a notebook cell in a traceback, or None."""
    line = None
    while trace:
        if trace.tb_frame.f_globals.get("__name__") == "__main__":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def rebuild_error(reply: dict) -> Exception:
    """Build the exception that the other process described, with the nearest built-in type."""
    kinds = [str(kind) for kind in reply["error"]]
    for kind in kinds:
        known = getattr(builtins, kind, None) or getattr(np.linalg, kind, None)
        if isinstance(known, type) and issubclass(known, Exception):
            break
    else:
        known = RuntimeError
    try:
        error = type(kinds[0], (known,), {})(str(reply.get("says")))
    except TypeError:  # Some exceptions need more arguments than a message.
        error = RuntimeError(f"{kinds[0]}: {reply.get('says')}")
    error.line = reply.get("line")
    return error


def imports_of(text: str) -> str:
    """Return the import statements of a cell as text."""
    lines = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(map(ast.unparse, lines))
