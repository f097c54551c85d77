"""Imports run strictly downward through the subpackages, each of which lists what it may import.

The rules are read off the source with ``ast``, so they hold for imports inside functions as well.
"""

import ast
import importlib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import cgmm

ROOT = Path(cgmm.__file__).parent

# What each subpackage may import beside its own files, from the bottom up: input checks, numerics,
# the network, the engines; each later one names its foundations.
BASE = {"given", "numerics", "network"}
CORE = BASE | {"inference", "kmeans", "mixture"}
MAY_IMPORT: dict[str, set[str]] = {
    # The primer computes everything a second time, so it shares nothing with the package.
    "primer": set(),
    "given": set(),
    "numerics": {"given"},
    "network": {"given", "numerics"},
    "inference": BASE,
    "runs": BASE,
    "summary": BASE,
    "kmeans": BASE | {"inference", "runs"},
    "large": BASE | {"inference"},
    "mixture": BASE | {"inference", "kmeans", "large", "runs", "summary"},
    "metric_learning": BASE | {"mixture", "runs"},
    "scenarios": {"given", "numerics"},
    "metrics": {"numerics"},
    "datasets": BASE | {"mixture", "runs"},
    "diagnose": BASE | {"inference", "mixture", "scenarios"},
    "decide": BASE | {"inference", "mixture", "diagnose", "scenarios"},
    "plot": BASE | {"mixture", "metrics", "diagnose", "summary"},
    # A live figure starts from parameters and refits what the reader has moved; a page runs an
    # interview.
    "explore": {"numerics", "network", "mixture", "plot", "decide"},
    "": CORE | {"metric_learning"},
    # The tour uses what a user would.
    "__main__": {"", "datasets", "metrics", "scenarios", "plot", "explore"},
}


def module_name(path: Path) -> str:
    """Return the module's name: "inference.gibbs" for that file, "" for the package itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(source: str) -> Iterator[str]:
    """Return full names of imports; ``from cgmm import em`` gives "cgmm.mixture.loop"."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports inside the package are written in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names if is_package(node.module) else [node.module]


def is_package(name: str) -> bool:
    return name == "cgmm" or (name.startswith("cgmm.") and (ROOT / name[5:]).is_dir())


def subpackage(name: str) -> str:
    """Return the subpackage of a module: "mixture" for "mixture.loop", "" for the package."""
    return name.partition(".")[0]


def module_of(name: str) -> str:
    """Return the module of a full name, its longest known prefix."""
    name = name.removeprefix("cgmm").removeprefix(".")
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def breaches(module: str, source: str) -> list[str]:
    """Return every import of ``module`` that its subpackage does not permit."""
    subpackages = MAY_IMPORT.get(subpackage(module), set()) | {subpackage(module)}
    names = [name for name in imported(source) if name.partition(".")[0] == "cgmm"]
    return [name for name in names if subpackage(module_of(name)) not in subpackages]


def inside(module: str) -> set[str]:
    """Return the modules that a module imports from its own subpackage."""
    names = imported(MODULES[module].read_text(encoding="utf8"))
    found = {module_of(name) for name in names if name.startswith("cgmm.")}
    return {other for other in found if subpackage(other) == subpackage(module) and other != module}


def test_imports_run_downward():
    unknown = {subpackage(module) for module in MODULES} - MAY_IMPORT.keys()
    assert not unknown, f"give {unknown} a line in MAY_IMPORT"
    found = {module: breaches(module, path.read_text("utf8")) for module, path in MODULES.items()}
    assert not {module: names for module, names in found.items() if names}


def test_the_rules_have_no_cycle():
    TopologicalSorter(MAY_IMPORT).prepare()


def test_the_package_does_not_import_the_book():
    """Chapters import the papers' experiments, book/reruns/; the package must not."""
    source = {module: path.read_text(encoding="utf8") for module, path in MODULES.items()}
    found = {module: [n for n in imported(text) if n.startswith("reruns")]
             for module, text in source.items()}  # fmt: skip
    assert not {module: names for module, names in found.items() if names}


def test_no_subpackage_has_an_import_cycle():
    """The files of a subpackage, too, can be read in an order without forward references."""
    TopologicalSorter({module: inside(module) for module in MODULES}).prepare()


def test_every_module_imports_under_its_own_name():
    """``import cgmm.a.b as b`` binds the file, since no public name hides a file."""
    for module in filter(None, MODULES):
        found = importlib.import_module(f"cgmm.{module}")
        assert isinstance(found, ModuleType)
        assert attrgetter(module)(cgmm) is found
