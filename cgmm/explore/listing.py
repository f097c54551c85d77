"""Show the source code of functions in a notebook.

Chapters call ``source``, so their listings always agree with the code that runs.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, cast


class Source(str):
    """Python code that a notebook shows with syntax highlighting."""

    def _repr_markdown_(self) -> str:
        return f"```python\n{self}\n```"

    def __repr__(self) -> str:
        return str(self)


def source(*functions: Callable[..., Any]) -> Source:
    """Return the source code of functions, with only the first line of each docstring.

    Parameters
    ----------
    *functions : callable
        Functions written in Python.

    Returns
    -------
    Source
        Their code, one after the other; a notebook shows it with syntax highlighting.

    Examples
    --------
    >>> from cgmm.plot import marker
    >>> print(source(marker).splitlines()[-1].strip())
    return MARKERS[k % len(MARKERS)] if k >= 0 else "o"
    """
    return Source("\n\n\n".join(map(_read_listing, functions)))


def _read_listing(function: Callable[..., Any]) -> str:
    """Return the dedented source code of a function, with only the first line of its docstring."""
    text = textwrap.dedent(inspect.getsource(function))
    tree, lines = ast.parse(text), text.splitlines()
    definition = cast("ast.FunctionDef", tree.body[0])
    summary = (ast.get_docstring(definition) or "").partition("\n")[0]
    if summary:
        docstring = definition.body[0]
        quoted = f'{" " * docstring.col_offset}"""{summary}"""'
        lines[docstring.lineno - 1 : docstring.end_lineno] = [quoted]
    return "\n".join(lines).rstrip()
