"""Mutation in place: give functions that are loaded already the code of a mutated source.

They are found wherever they are held: by their module, by classes, dictionaries and closures.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from .table import Mutant, path_of, source


def put_into(mutant: Mutant) -> int:
    """Give the loaded functions of a module their mutated code; return how many do another thing.

    Raises
    ------
    LookupError
        If nothing was replaced: the module comes from elsewhere, or has changed since it was read.
    """
    module = importlib.import_module(f"cgmm.{mutant.module}")
    path = str(module.__file__)
    if Path(path).resolve() != path_of(mutant.module).resolve():
        raise LookupError(f"cgmm.{mutant.module} was imported from {path}")
    # This file's own __future__ would make other code of a source that has none.
    codes = (
        compile(text, path, "exec", dont_inherit=True)
        for text in (source(mutant.module), mutant.mutated)
    )
    old, new = (dict(_by_name(code)) for code in codes)
    name_of = {code: name for name, code in old.items()}
    n_changed = 0
    gc.unfreeze()
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == path:
            name = name_of.get(function.__code__)
            if name in new:
                n_changed += not _do_the_same(function.__code__, new[name])
                function.__code__ = new[name]
    if not n_changed:
        raise LookupError(f"no loaded function of cgmm.{mutant.module} is the one to be mutated")
    return n_changed


def _by_name(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Code of all functions, by qualified name and number among those of the same name."""
    seen: dict[str, int] = {}
    todo = [code]
    while todo:
        parent = todo.pop(0)
        for part in parent.co_consts:
            if isinstance(part, CodeType):
                number = seen[part.co_qualname] = seen.get(part.co_qualname, -1) + 1
                yield (part.co_qualname, number), part
                todo.append(part)


def _do_the_same(a: CodeType, b: CodeType) -> bool:
    """Whether two pieces of code are equal but for the lines where they stand."""
    if (a.co_code, a.co_names, a.co_varnames) != (b.co_code, b.co_names, b.co_varnames):
        return False
    if len(a.co_consts) != len(b.co_consts):
        return False
    return all(map(_are_alike, a.co_consts, b.co_consts))


def _are_alike(a: object, b: object) -> bool:
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return _do_the_same(a, b)
    return type(a) is type(b) and repr(a) == repr(b)
