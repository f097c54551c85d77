"""Source code as a cell shows it: listings are the package's own lines. All chapters."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, cast


class Source(str):
    """Python code that a notebook shows as code."""

    def _repr_markdown_(self) -> str:
        return f"```python\n{self}\n```"

    def __repr__(self) -> str:
        return str(self)


def source(*functions: Callable[..., Any]) -> Source:
    """The code of functions as it stands in the package, without their docstrings.

    Parameters
    ----------
    *functions : callable
        Functions written in Python.

    Returns
    -------
    Source
        Their code, one after the other; a notebook shows it as code.

    Examples
    --------
    >>> from cgmm.plot import marker
    >>> source(marker)
    def marker(k: int) -> str:
        return MARKERS[k % len(MARKERS)] if k >= 0 else "o"
    """
    return Source("\n\n\n".join(map(_without_docstring, functions)))


def _without_docstring(function: Callable[..., Any]) -> str:
    """The function's lines at the margin, without those of its docstring."""
    text = textwrap.dedent(inspect.getsource(function))
    tree, lines = ast.parse(text), text.splitlines()
    definition = cast("ast.FunctionDef", tree.body[0])
    if ast.get_docstring(definition) is not None:
        docstring = definition.body[0]
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    return "\n".join(lines).rstrip()
