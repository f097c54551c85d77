"""Handle what a call returns beside its value: changed arguments, and errors."""

from __future__ import annotations

import ast
import builtins
import types

import numpy as np


def arguments(given: list) -> list:
    """Return the arguments of a call, positional ones first."""
    args, kwargs = given
    return [*args, *kwargs.values()]


def update(old, new) -> None:
    """Change an argument in place, as the function at the other end has changed its copy."""
    if type(old) is not type(new) or old is new:
        return
    if isinstance(old, np.ndarray) and old.shape == new.shape and old.flags.writeable:
        old[...] = new
    elif isinstance(old, tuple):
        for before, after in zip(old, new, strict=False):
            update(before, after)
    elif isinstance(old, list):
        old[:] = new
    elif isinstance(old, dict):
        old.clear()
        old.update(new)
    elif isinstance(old, np.random.Generator):
        old.bit_generator.state = new.bit_generator.state


def failure(error: BaseException) -> dict:
    """Write an error as the other side can read it."""
    kinds = [kind.__name__ for kind in type(error).__mro__]
    return {"error": kinds, "says": str(error)[:2000], "line": _line(error.__traceback__)}


def _line(trace: types.TracebackType | None) -> int | None:
    """Return the last line of a cell that an error passed through."""
    line = None
    while trace:
        if trace.tb_frame.f_globals.get("__name__") == "__main__":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def raised(reply: dict) -> Exception:
    """Return the exception that the other side met, as the nearest type of Python or NumPy."""
    kinds = [str(kind) for kind in reply["error"]]
    for kind in kinds:
        known = getattr(builtins, kind, None) or getattr(np.linalg, kind, None)
        if isinstance(known, type) and issubclass(known, Exception):
            break
    else:
        known = RuntimeError
    try:
        error = type(kinds[0], (known,), {})(str(reply.get("says")))
    except TypeError:  # of those that ask for more than a text
        error = RuntimeError(f"{kinds[0]}: {reply.get('says')}")
    error.line = reply.get("line")
    return error


def imports_of(text: str) -> str:
    """Return the import statements of a cell."""
    lines = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(map(ast.unparse, lines))
