"""Imports run strictly downward: the rooms of the package, and what each may import.

The rules are read off the source with ``ast``, so they hold for imports inside functions as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cgmm

ROOT = Path(cgmm.__file__).parent
BASE = {"numerics", "network"}
CORE = BASE | {"gaussian", "weights", "side_information", "em", "initialise"}
ENGINES = {
    f"inference.{name}"
    for name in (
        "independent",
        "pairs",
        "clique",
        "junction_tree",
        "mean_field",
        "gibbs",
        "enumerate",
    )
}
# What several engines share: the order in which nodes are visited or eliminated.
ENGINE_TOOLS = {"inference.colouring", "inference.contraction", "inference.elimination"}

SHELLS = {"estimators", "kmeans", "rca", "mmc"}

EXPERIMENTS = {
    "replicate.shental2003",
    "replicate.barhillel2005",
    "replicate.lu2007",
    "replicate.choosing",
}
EVERYTHING = CORE | SHELLS | ENGINES | {"", "inference", "datasets", "scenarios", "metrics"}

# Which modules of cgmm each module may import.
MAY_IMPORT: dict[str, set[str]] = {
    "numerics": set(),
    "network": {"numerics"},
    **dict.fromkeys(ENGINE_TOOLS, BASE),
    **dict.fromkeys(ENGINES, BASE | ENGINE_TOOLS),
    "inference.auto": BASE | ENGINES,
    "inference": BASE | ENGINES | {"inference.auto"},
    "side_information": BASE,
    "gaussian": {"numerics"},
    # em and weights are handed an engine, they import none.
    "weights": BASE | {"side_information"},
    "em": BASE | {"gaussian", "weights", "side_information"},
    "initialise": CORE - {"initialise"},
    "runs": {"network", "gaussian", "em"},
    # A family of components knows nothing of the side information.
    "categorical": set(),
    "mixture": CORE | {"inference", "runs"},
    "estimators": CORE | {"inference", "runs", "mixture", "categorical"},
    "kmeans": BASE | {"side_information", "initialise", "inference.colouring", "runs"},
    "rca": {"numerics", "side_information", "initialise"},
    "mmc": {"numerics", "side_information"},
    # Leaves: nothing below imports them.
    "metrics": {"numerics"},
    "datasets": CORE | {"scenarios"},
    "scenarios": CORE,
    "diagnose": CORE,
    "plot": CORE,
    "explore": CORE | {"plot"},
    "": CORE | SHELLS | {"inference", "runs", "mixture", "categorical"},
    # The experiments use everything, as a reader's script would.
    "replicate.runner": EVERYTHING,
    **dict.fromkeys(EXPERIMENTS | {"replicate.verdicts"}, EVERYTHING | {"replicate.runner"}),
    "replicate.reading": {"numerics", "plot", "replicate.verdicts"},
    "replicate": EVERYTHING | EXPERIMENTS | {"replicate.runner"},
    "replicate.__main__": EVERYTHING | {"replicate", "replicate.runner", "replicate.verdicts"},
}

# Which libraries outside the standard one each module may import beside numpy and scipy.
LIBRARIES: dict[str, set[str]] = {
    **{name: {"sklearn"} for name in SHELLS | {"mixture", "runs", "datasets"}},
    **{name: {"sklearn"} for name in EXPERIMENTS},
    "replicate.runner": {"sklearn", "joblib", "threadpoolctl"},
    "replicate.__main__": {"joblib", "distributed"},
    "replicate.reading": {"matplotlib"},
    "plot": {"matplotlib", "cycler", "matplotlib_inline"},
    "explore": {"matplotlib", "ipywidgets", "IPython", "PIL"},
}


def module_name(path: Path) -> str:
    """``cgmm/inference/pairs.py`` is "inference.pairs"; the package itself is ""."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(source: str) -> Iterator[str]:
    """Full names of what a module imports; ``from cgmm import em`` is "cgmm.em"."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports inside the package are written in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names if is_package(node.module) else [node.module]


def is_package(name: str) -> bool:
    return name == "cgmm" or (name.startswith("cgmm.") and (ROOT / name[5:]).is_dir())


def room(name: str) -> str:
    """The module that a full name stands in: the longest known prefix."""
    name = name.removeprefix("cgmm").removeprefix(".")
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def breaches(module: str, source: str) -> list[str]:
    """Every import of ``module`` that its room does not permit."""
    allowed_libraries = {"numpy", "scipy"} | LIBRARIES.get(module, set())
    found = []
    for name in imported(source):
        top = name.partition(".")[0]
        if top == "cgmm":
            if room(name) not in MAY_IMPORT.get(module, set()) | {module}:
                found.append(name)
        elif top not in sys.stdlib_module_names | allowed_libraries:
            found.append(name)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_a_room(module):
    assert module in MAY_IMPORT, f"give {module} a line in MAY_IMPORT"


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_downward(module):
    assert not breaches(module, MODULES[module].read_text(encoding="utf8"))


def test_the_rules_have_no_cycle():
    seen: set[str] = set()
    while remaining := MAY_IMPORT.keys() - seen:
        free = {module for module in remaining if MAY_IMPORT[module] <= seen}
        assert free, f"these rooms may import each other: {sorted(remaining)}"
        seen |= free


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("em", "from cgmm.inference.independent import independent"),
        ("weights", "from cgmm import inference"),
        ("gaussian", "import sklearn.mixture"),
        ("network", "def f():\n    import cgmm.gaussian"),
        ("estimators", "from cgmm.plot import ellipses"),
        ("em", "from matplotlib import pyplot"),
        ("gaussian", "import cgmm"),
    ],
)
def test_a_breach_is_found(module, source):
    assert breaches(module, source)
