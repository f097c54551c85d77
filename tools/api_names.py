"""List the subpackages of the package, their files and public names, and the chapters using them.

``tools/api.py`` turns these lists into the API pages. A ``Name`` is anything with an entry on such
a page: a module, a class, a function or a constant.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pkgutil import iter_modules
from typing import NamedTuple

from covered import chapter_paths
from imported import resolve, used_names

# Titles of the subpackages, in the order of the API pages. Others follow, titled by their names.
TITLES = {
    "primer": "The primer: every algorithm by hand",
    "mixture": "Mixtures",
    "large": "Large tables",
    "kmeans": "K-means with relations",
    "metric_learning": "Metrics from relations",
    "network": "Networks over assignments, and side information",
    "inference": "Inference",
    "datasets": "Data",
    "scenarios": "Where relations come from",
    "metrics": "Measures of agreement",
    "diagnose": "Are the relations right?",
    "decide": "From answers to decisions",
    "summary": "Tables and summaries",
    "plot": "Figures",
    "explore": "Explorers",
    "numerics": "Numerics",
    "given": "What is given",
}


class Name(NamedTuple):
    """A module, class, function or constant that has an entry on an API page."""

    name: str
    """Full name, e.g. ``cgmm.mixture.em``."""
    role: str
    """Sphinx role that links to it: class, exc, func, data or mod."""
    home: str
    """Name of the module that defines it."""

    @property
    def short(self) -> str:
        """Last part of the full name, e.g. ``em``."""
        return self.name.rpartition(".")[2]

    @property
    def link(self) -> str:
        """Role that shows the short name and links to the entry."""
        return f":py:{self.role}:`~{self.name}`"


class Subpackage(NamedTuple):
    """A module or a subpackage directly below ``cgmm``."""

    itself: Name
    files: tuple[Name, ...]
    classes: tuple[Name, ...]
    """Public classes of the subpackage."""
    others: tuple[Name, ...]
    """Public functions of the subpackage, and all documented constants of its files."""

    @property
    def title(self) -> str:
        """Title of the subpackage's page."""
        return TITLES.get(self.itself.short, self.itself.short.replace("_", " ").capitalize())

    @property
    def with_pages(self) -> list[Name]:
        """Files that have a page, because they have public names of their own."""
        return [file for file in self.files if names_of_file(file)]

    @property
    def without_pages(self) -> list[Name]:
        """Files without a page of their own."""
        return [file for file in self.files if not names_of_file(file)]


@cache
def subpackages() -> list[Subpackage]:
    """Return all subpackages of the package, those of ``TITLES`` first."""
    names = {module.name for module in iter_modules(resolve("cgmm").__path__)} - {"__main__"}
    return [_load_subpackage(name) for name in sorted(names, key=[*TITLES, *sorted(names)].index)]


def _load_subpackage(short: str) -> Subpackage:
    """Return the subpackage of this short name with its files and public names."""
    name = f"cgmm.{short}"
    modules = iter_modules(getattr(resolve(name), "__path__", ()))
    files = tuple(Name(f"{name}.{file.name}", "mod", name) for file in modules)
    public = _public_names(name)
    subpackage = Subpackage(
        Name(name, "mod", "cgmm"),
        files,
        tuple(one for one in public if one.role in {"class", "exc"}),
        tuple(one for one in public if one.role == "func"),
    )
    documented = [
        one for file in [subpackage.itself, *subpackage.without_pages] for one in constants(file)
    ]
    return subpackage._replace(others=(*subpackage.others, *documented))


@cache
def reruns() -> list[Name]:
    """Return the names of the papers' experiments: the package ``reruns``, then its modules."""
    modules = sorted(module.name for module in iter_modules(resolve("reruns").__path__))
    files = [f"reruns.{name}" for name in modules if name != "__main__"]
    return [Name(name, "mod", name) for name in ["reruns", *files]]


@cache
def names_of_file(file: Name) -> tuple[Name, ...]:
    """Return the public names and documented constants of a file; () without ``__all__``."""
    public = _public_names(file.name)
    return (*public, *constants(file)) if public else ()


def _public_names(module: str) -> list[Name]:
    """Return the classes and functions that the ``__all__`` of a module lists."""
    found = []
    for short in getattr(resolve(module), "__all__", ()):
        thing = getattr(resolve(module), short)
        if inspect.isclass(thing):
            role = "exc" if issubclass(thing, BaseException) else "class"
        elif inspect.isfunction(inspect.unwrap(thing)):
            role = "func"
        else:
            continue
        found.append(Name(f"{module}.{short}", role, thing.__module__))
    return found


def constants(module: Name) -> list[Name]:
    """Return the constants of a module that have a docstring below their assignment."""
    return [Name(f"{module.name}.{one}", "data", module.name) for one in _docstrings(module.name)]


@cache
def _docstrings(module: str) -> dict[str, str]:
    """Return {name: docstring} of the documented public constants of a module."""
    found = {}
    for statement, after in pairwise(ast.parse(inspect.getsource(resolve(module))).body):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if is_text and isinstance(statement, ast.Assign | ast.AnnAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            found[ast.unparse(target)] = inspect.cleandoc(after.value.value)
    return {name: text for name, text in found.items() if not name.startswith("_")}


# ------------------------------------------------------------------------------ facts about a name


def first_sentence(one: Name) -> str:
    """Return the first sentence of a name's docstring."""
    if one.role == "data":
        text = _docstrings(one.home)[one.short]
    else:
        text = inspect.getdoc(resolve(one.name)) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split()).removesuffix("::").rstrip(":")
    # Sphinx cannot resolve short references outside the module, so show these as literals.
    paragraph = re.sub(r":\w+:`(?!~?cgmm\.)([\w.]+)`", r"``\1``", paragraph)
    return re.split(r"(?<=\w{2}\.)\s+(?=[A-Z])", paragraph, maxsplit=1)[0]


def is_estimator(one: Name) -> bool:
    """Return whether a name is an estimator that can be imported from ``cgmm`` itself."""
    return one.short in resolve("cgmm").__all__ and hasattr(resolve(one.name), "fit")


def chapters_of(one: Name) -> list[str]:
    """Return the file names, without suffix, of the chapters that import a name."""
    return _chapters_by_name()[one.short, id(resolve(one.name))]


@cache
def _chapters_by_name() -> dict[tuple[str, int], list[str]]:
    """Return {(short name, id of the object): file names of the chapters that import it}."""
    found = defaultdict(list)
    for path in chapter_paths():
        for key in {(name.rpartition(".")[2], id(resolve(name))) for name in used_names(path)}:
            found[key].append(path.stem)
    return found
