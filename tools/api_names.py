"""List the package's subpackages, their files, public names, and the chapters that import them."""

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
from imported import find, imported

# In the order in which they are read; what is not named here comes after them, by its own name.
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
    """Something with an entry."""

    name: str
    """In full, as its entry is called: ``cgmm.mixture.em``."""
    role: str
    """How Sphinx calls its kind: class, exc, func, data, mod."""
    home: str
    """The module that defines it."""

    @property
    def short(self) -> str:
        """The name without what holds it."""
        return self.name.rpartition(".")[2]

    @property
    def link(self) -> str:
        """The short name, leading to the entry."""
        return f":py:{self.role}:`~{self.name}`"


class Subpackage(NamedTuple):
    """A module or a subpackage directly below ``cgmm``."""

    itself: Name
    files: tuple[Name, ...]
    classes: tuple[Name, ...]
    """Those that the subpackage offers."""
    others: tuple[Name, ...]
    """Functions that the subpackage offers, and constants that are documented wherever they are."""

    @property
    def title(self) -> str:
        """For people."""
        return TITLES.get(self.itself.short, self.itself.short.replace("_", " ").capitalize())

    @property
    def with_pages(self) -> list[Name]:
        """Files with public names of their own."""
        return [file for file in self.files if names_of_file(file)]

    @property
    def without_pages(self) -> list[Name]:
        """All other files."""
        return [file for file in self.files if not names_of_file(file)]


@cache
def subpackages() -> list[Subpackage]:
    """Every subpackage of the package, those of ``TITLES`` first."""
    there = {module.name for module in iter_modules(find("cgmm").__path__)} - {"__main__"}
    return [_subpackage(name) for name in sorted(there, key=[*TITLES, *sorted(there)].index)]


def _subpackage(short: str) -> Subpackage:
    name = f"cgmm.{short}"
    inside = iter_modules(getattr(find(name), "__path__", ()))
    files = tuple(Name(f"{name}.{file.name}", "mod", name) for file in inside)
    public = _public(name)
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
    """Return the package of the papers' experiments, then its modules."""
    inside = sorted(module.name for module in iter_modules(find("reruns").__path__))
    files = [f"reruns.{name}" for name in inside if name != "__main__"]
    return [Name(name, "mod", name) for name in ["reruns", *files]]


@cache
def names_of_file(file: Name) -> tuple[Name, ...]:
    """The public names of a file that has some of its own, its documented constants included."""
    public = _public(file.name)
    return (*public, *constants(file)) if public else ()


def _public(module: str) -> list[Name]:
    """Classes and functions in the ``__all__`` of a module."""
    found = []
    for short in getattr(find(module), "__all__", ()):
        thing = getattr(find(module), short)
        if inspect.isclass(thing):
            role = "exc" if issubclass(thing, BaseException) else "class"
        elif inspect.isfunction(inspect.unwrap(thing)):
            role = "func"
        else:
            continue
        found.append(Name(f"{module}.{short}", role, thing.__module__))
    return found


def constants(module: Name) -> list[Name]:
    """Constants that a docstring follows where they are assigned."""
    return [Name(f"{module.name}.{one}", "data", module.name) for one in _documented(module.name)]


@cache
def _documented(module: str) -> dict[str, str]:
    """Names at the top level of a file that a docstring follows, with that docstring."""
    found = {}
    for statement, after in pairwise(ast.parse(inspect.getsource(find(module))).body):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if is_text and isinstance(statement, ast.Assign | ast.AnnAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            found[ast.unparse(target)] = inspect.cleandoc(after.value.value)
    return {name: text for name, text in found.items() if not name.startswith("_")}


# ------------------------------------------------------------------------------ what is said of it


def first_sentence(one: Name) -> str:
    """Return the docstring's first sentence."""
    if one.role == "data":
        text = _documented(one.home)[one.short]
    else:
        text = inspect.getdoc(find(one.name)) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split()).removesuffix("::").rstrip(":")
    # Elsewhere a reference is found by its full name alone.
    paragraph = re.sub(r":\w+:`(?!~?cgmm\.)([\w.]+)`", r"``\1``", paragraph)
    return re.split(r"(?<=\w{2}\.)\s+(?=[A-Z])", paragraph, maxsplit=1)[0]


def is_estimator(one: Name) -> bool:
    """True for an estimator that most users need."""
    return one.short in find("cgmm").__all__ and hasattr(find(one.name), "fit")


def chapters_of(one: Name) -> list[str]:
    """The stems of the chapters that import it, from wherever."""
    return _chapters()[one.short, id(find(one.name))]


@cache
def _chapters() -> dict[tuple[str, int], list[str]]:
    """Return the chapters that import a thing of this short name."""
    found = defaultdict(list)
    for path in chapter_paths():
        for short, thing in {(name.rpartition(".")[2], id(find(name))) for name in imported(path)}:
            found[short, thing].append(path.stem)
    return found
