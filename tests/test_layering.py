"""Test that each subpackage imports only the subpackages that it may import, without cycles.

Imports are found in the source with ``ast``, so that those inside functions are checked, too.
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

# For each subpackage, from the lowest to the highest, the others that it may import.
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
    # Live figures fit mixtures to points that the reader moves, and a page runs an interview.
    "explore": {"numerics", "network", "mixture", "plot", "decide"},
    "": CORE | {"metric_learning"},
    # ``python -m cgmm`` runs a tour, which uses the public interface.
    "__main__": {"", "datasets", "metrics", "scenarios", "plot", "explore"},
}


def module_name(path: Path) -> str:
    """Return a module's name without "cgmm.", such as "inference.gibbs"; "" is the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def find_imports(source: str) -> Iterator[str]:
    """Yield the full name of each imported module, or of each name imported from a package."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports inside the package are written in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names if is_package(node.module) else [node.module]


def is_package(name: str) -> bool:
    """Return True if the name is that of the package or of a subpackage."""
    return name == "cgmm" or (name.startswith("cgmm.") and (ROOT / name[5:]).is_dir())


def subpackage_of(name: str) -> str:
    """Return the subpackage of a module, such as "mixture" for "mixture.loop"."""
    return name.partition(".")[0]


def module_of(name: str) -> str:
    """Return the module of an imported name: its longest prefix that is a module."""
    name = name.removeprefix("cgmm").removeprefix(".")
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
IMPORTED_NAMES = {
    module: set(find_imports(path.read_text(encoding="utf8"))) for module, path in MODULES.items()
}
# The modules of this package that each module imports.
IMPORTED_MODULES = {
    module: {module_of(name) for name in names if name.partition(".")[0] == "cgmm"} - {module}
    for module, names in IMPORTED_NAMES.items()
}


def test_subpackages_import_only_what_they_may():
    unknown = {subpackage_of(module) for module in MODULES} - MAY_IMPORT.keys()
    assert not unknown, f"give {unknown} a line in MAY_IMPORT"
    for module, imported in IMPORTED_MODULES.items():
        allowed = MAY_IMPORT[subpackage_of(module)] | {subpackage_of(module)}
        assert {subpackage_of(other) for other in imported} <= allowed, module


def test_permitted_imports_have_no_cycle():
    TopologicalSorter(MAY_IMPORT).prepare()


def test_the_package_does_not_import_the_book():
    """Chapters import the papers' experiments, book/reruns/; the package must not."""
    for module, names in IMPORTED_NAMES.items():
        assert not [name for name in names if name.startswith("reruns")], module


def test_no_subpackage_has_an_import_cycle():
    """Files of a subpackage must have an order in which each imports only earlier ones."""
    inside = {
        module: {other for other in imported if subpackage_of(other) == subpackage_of(module)}
        for module, imported in IMPORTED_MODULES.items()
    }
    TopologicalSorter(inside).prepare()


def test_no_public_name_hides_a_module():
    """No public name may hide a module, so that ``import cgmm.a.b as b`` binds the module."""
    for module in filter(None, MODULES):
        imported = importlib.import_module(f"cgmm.{module}")
        assert isinstance(imported, ModuleType)
        assert attrgetter(module)(cgmm) is imported
