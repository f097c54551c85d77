"""Runs the tests of a module against mutants of it, each in a forked process of its own.

Importing the package and collecting its tests takes longer than most mutants live. So it is done
once, in one session of pytest that never runs a test itself: for each mutant it forks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from .forks import Forks
from .table import ROOT, Mutant, Verdict, path_of, source

ENVIRONMENT = {
    # The same examples in each run, and threads that do not fight for cores.
    **dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1"),
    "CI": "true",
    "MPLBACKEND": "agg",
}
PYTEST = [
    "-q", "-s", "--no-header", "--tb=no", "--doctest-modules", "--ignore-glob=*/conftest.py",
    "--continue-on-collection-errors", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-p", "no:nbval", "--disable-warnings",
]  # fmt: skip


def guards(module: str) -> list[str]:
    """The module with its doctests, then the tests of its room: first those that name it."""
    room, _, stem = module.partition(".")
    tests = ROOT / "tests"
    files = sorted([*(tests / room).glob("test_*.py"), *tests.glob(f"test_{room}.py")])
    named = re.compile(rf"\b{stem or room}\b")
    files.sort(key=lambda path: not named.search(path.read_text(encoding="utf-8")))
    return [path.relative_to(ROOT).as_posix() for path in [path_of(module), *files]]


def run_all(mutants: list[Mutant], notice: Callable[[Verdict], None], *, jobs: int = 1) -> None:
    """Call ``notice`` with a verdict on each mutant, as they come; interrupting it is harmless."""
    if not hasattr(os, "fork"):
        raise SystemExit("mutants are run by os.fork, which this system does not have.")
    os.environ.update(ENVIRONMENT)
    import pytest

    os.chdir(ROOT)
    wanted = dict.fromkeys(path for mutant in mutants for path in guards(mutant.module))
    for mutant in mutants:
        source(mutant.module)
    pytest.main([*PYTEST, *wanted], plugins=[Forks(mutants, guards, notice, jobs)])
