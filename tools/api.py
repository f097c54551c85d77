"""Write the page book/api.md: what each room of the package offers, then the files behind it.

    python tools/api.py          write the page
    python tools/api.py --check  change nothing; fail if the page is stale

A room's public names are those in the ``__all__`` of its door. A file has a place of its own for
its docstring, which says what it is for, and for public names that the door does not have.
"""

from __future__ import annotations

import ast
import inspect
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from pages import BOOK, is_check, publish

PAGE = BOOK / "api.md"
ROOMS = {
    "cgmm.primer": "The primer: every algorithm by hand",
    "cgmm.mixture": "Mixtures",
    "cgmm.kmeans": "K-means with relations",
    "cgmm.metric_learning": "Metrics from relations",
    "cgmm.network": "Networks over assignments, and side information",
    "cgmm.inference": "Inference",
    "cgmm.datasets": "Data",
    "cgmm.scenarios": "Where relations come from",
    "cgmm.metrics": "Measures of agreement",
    "cgmm.diagnose": "Are the relations right?",
    "cgmm.plot": "Figures",
    "cgmm.explore": "Explorers",
    "cgmm.replicate": "The papers, rerun",
    "cgmm.numerics": "Numerics",
    "cgmm.given": "What is given",
}
# What scikit-learn adds to every estimator, and documents itself.
ROUTING = (
    "set_fit_request, set_partial_fit_request, set_predict_request, set_predict_proba_request, "
    "set_score_request"
)
INTRODUCTION = """\
# The package

<!-- Written by tools/api.py from the package: change that, and run it. -->

What the chapters import, room by room. N points have D dimensions, a mixture has K components; the
shape of every array is given. Below each room stand its files, each with its letters and the
chapter that it belongs to.

```{eval-rst}
.. automodule:: cgmm
```
"""


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return the exit status."""
    return publish(page(), PAGE, "tools/api.py", check=is_check(__doc__, arguments))


def page() -> str:
    """The page's text, from the package as it is now."""
    return "\n".join([INTRODUCTION, *(_room(name, title) for name, title in ROOMS.items())])


def _room(name: str, title: str) -> str:
    """A room: what its door offers, then its files."""
    door = import_module(name)
    parts = [f"## {title}\n", _directives(door)]
    for module in _files(door):
        parts += [f"### {module.__name__.removeprefix('cgmm.')}\n", _directives(module)]
    return "\n".join(parts)


def _files(door: ModuleType) -> list[ModuleType]:
    """The modules of a room, in the order of their names."""
    if not hasattr(door, "__path__"):
        return []
    paths = sorted(Path(door.__path__[0]).glob("*.py"))
    return [import_module(f"{door.__name__}.{p.stem}") for p in paths if p.stem != "__init__"]


def _directives(module: ModuleType) -> str:
    """The module's docstring, its public functions and classes, and its documented constants."""
    lines, public = [f".. automodule:: {module.__name__}"], getattr(module, "__all__", ())
    with_members = any(_is_code(getattr(module, name)) for name in public)
    if with_members:
        lines += ["   :members:", f"   :exclude-members: {ROUTING}"]
    for name in _constants(module):
        if with_members and name in public:
            continue
        lines += ["", f".. autodata:: {module.__name__}.{name}", "   :no-value:"]
    return "\n".join(["```{eval-rst}", *lines, "```\n"])


def _is_code(thing: object) -> bool:
    return inspect.isfunction(thing) or inspect.isclass(thing)


def _constants(module: ModuleType) -> list[str]:
    """Names that a docstring follows where they are assigned, at the top level of the file."""
    body = ast.parse(inspect.getsource(module)).body
    found = []
    for statement, after in pairwise(body):
        documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if documented and isinstance(statement, ast.Assign | ast.AnnAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            found.append(ast.unparse(target))
    return [name for name in found if not name.startswith("_")]


if __name__ == "__main__":
    sys.exit(main())
