"""Runs the tests of a module against mutants of it, each in a forked process of its own.

Importing the package and collecting its tests takes longer than most mutants live. So it is done
once, in one session of pytest that never runs a test itself. For each mutant it forks, and the
child puts the mutated code into the functions that are loaded already: those of the module, of its
classes, and those that dictionaries and closures hold. That something was replaced is verified; a
test that fails without any mutant as well is found out and put aside.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from .table import ROOT, Mutant, path_of, source

ENVIRONMENT = {
    # The same examples in each run, and threads that do not fight for cores.
    **dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1"),
    "CI": "true",
    "MPLBACKEND": "agg",
}
PYTEST = [
    "-q", "-s", "--no-header", "--tb=no", "--doctest-modules", "--ignore-glob=*/conftest.py",
    "--continue-on-collection-errors", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-p", "no:nbval",
]  # fmt: skip
# What a test may take, in seconds of the processor and bytes: no test comes near it.
MAX_SECONDS, MAX_MEMORY = 30.0, 6 * 2**30
# Exit code of a child whose module is not what its source says.
NOT_MUTATED = 3

# Which tests guard a module, those that are likely to notice first; its doctests come before them.
# A module that others use is guarded by theirs, too, but only the quick ones are named.
TESTS: dict[str, list[str]] = {
    "numerics": ["numerics", "network", "gaussian", "side_information", "metrics"],
    "network.engine": ["network", "pairs", "clique", "inference", "auto", "junction_tree"],
    "network.errors": ["network", "pairs", "clique", "inference", "auto", "junction_tree"],
    "network.evidence": ["side_information", "bad_input", "em_side_information", "weights"],
    "network.graph": ["network", "pairs", "clique", "inference", "auto", "junction_tree"],
    "network.messages": ["network", "pairs", "clique", "inference", "auto", "junction_tree"],
    "network.relations": ["side_information", "bad_input", "em_side_information", "weights"],
    "network.side_information": ["side_information", "bad_input", "em_side_information", "weights"],
    "inference.auto": ["auto", "inference"],
    "inference.clique": ["clique", "inference", "auto"],
    "inference.clique_tree": ["inference", "junction_tree"],
    "inference.colouring": ["mean_field", "inference", "gibbs", "kmeans"],
    "inference.contraction": ["inference", "junction_tree"],
    "inference.elimination": ["inference", "junction_tree"],
    "inference.enumerate": ["inference", "pairs", "clique", "auto"],
    "inference.feasible": ["mean_field", "kmeans", "network", "side_information"],
    "inference.gibbs": ["inference", "gibbs"],
    "inference.independent": ["inference", "auto", "em"],
    "inference.junction_tree": ["inference", "junction_tree"],
    "inference.mean_field": ["mean_field", "inference"],
    "inference.pairs": ["pairs", "inference", "auto"],
    "inference.tree_logs": ["inference", "junction_tree"],
    "inference.tree_products": ["inference", "junction_tree"],
    "mixture.base": ["categorical", "estimators", "bad_input", "classifier", "constrained_mixture"],
    "mixture.bound": ["em_side_information", "em"],
    "mixture.categorical": ["categorical"],
    "mixture.categorical_mixture": [
        "bad_input",
        "estimators",
        "categorical",
        "classifier",
        "constrained_mixture",
        "guided_starts",
    ],
    "mixture.classifier": [
        "bad_input",
        "estimators",
        "categorical",
        "classifier",
        "constrained_mixture",
        "guided_starts",
    ],
    "mixture.gaussian": ["gaussian", "em", "bad_input"],
    "mixture.gaussian_mixture": [
        "bad_input",
        "estimators",
        "categorical",
        "classifier",
        "constrained_mixture",
        "guided_starts",
    ],
    "mixture.initialise": ["initialise", "guided_starts", "rca_start", "em"],
    "mixture.loop": ["em_side_information", "em"],
    "mixture.moments": ["gaussian", "em", "bad_input"],
    "mixture.pooling": ["gaussian", "em", "bad_input"],
    "mixture.prior": ["weights", "em_side_information"],
    "mixture.runs": ["kmeans", "estimators", "categorical", "constrained_mixture"],
    "mixture.seeding": ["initialise", "guided_starts", "rca_start", "em"],
    "mixture.weights": ["weights", "em_side_information"],
    "kmeans.base": ["kmeans"],
    "kmeans.branch_and_bound": ["kmeans"],
    "kmeans.cop_kmeans": ["kmeans"],
    "kmeans.cop_assignment": ["kmeans"],
    "kmeans.engine_assignment": ["kmeans"],
    "kmeans.exchange": ["kmeans"],
    "kmeans.loop": ["kmeans"],
    "kmeans.pck_kmeans": ["kmeans"],
    "kmeans.pck_assignment": ["kmeans"],
    "kmeans.search": ["kmeans"],
    "kmeans.seeds": ["kmeans"],
    "metric_learning.chunklets": ["rca", "rca_theory", "rca_online", "rca_start"],
    "metric_learning.criteria": ["rca", "rca_theory", "rca_online", "rca_start"],
    "metric_learning.discriminant": ["rca", "rca_theory", "rca_online", "rca_start"],
    "metric_learning.linear_map": ["rca", "rca_theory", "rca_online", "rca_start"],
    "metric_learning.mmc": ["mmc"],
    "metric_learning.mmc_ascent": ["mmc"],
    "metric_learning.mmc_distances": ["mmc"],
    "metric_learning.mmc_pairs": ["mmc"],
    "metric_learning.mmc_space": ["mmc"],
    "metric_learning.online": ["rca", "rca_theory", "rca_online", "rca_start"],
    "metric_learning.online_steps": ["rca", "rca_theory", "rca_online", "rca_start"],
    "metric_learning.rca": ["rca", "rca_theory", "rca_online", "rca_start"],
    "metric_learning.start": ["rca", "rca_theory", "rca_online", "rca_start"],
    "metric_learning.whiten": ["rca", "rca_theory", "rca_online", "rca_start"],
    "metrics.checks": ["metrics"],
    "metrics.matching": ["metrics"],
    "metrics.neighbours": ["metrics"],
    "metrics.pairwise": ["metrics"],
    "metrics.relations": ["metrics"],
    "scenarios.answers": ["scenarios"],
    "scenarios.checks": ["scenarios"],
    "scenarios.labels": ["scenarios"],
    "scenarios.relations": ["scenarios"],
    "scenarios.teaching": ["scenarios"],
}


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    """killed, survived, timeout (a hang is noticed as well), or unknown."""
    seconds: float
    killer: str
    """The first test that failed, or why nothing is known."""


def tests_of(mutant: Mutant) -> list[str]:
    """Files of the tests that guard the mutated module; one test where it is known to suffice."""
    if mutant.quick:
        return [mutant.quick]
    doctests = path_of(mutant.module).relative_to(ROOT).as_posix()
    return [doctests, *(test_path(name) for name in TESTS[mutant.module])]


def test_path(name: str) -> str:
    """Where the test module of that name lies, below the project."""
    (path,) = (ROOT / "tests").rglob(f"test_{name}.py")
    return path.relative_to(ROOT).as_posix()


def run_all(mutants: list[Mutant], notice: Callable[[Verdict], None], *, jobs: int = 1) -> None:
    """Call ``notice`` with a verdict on each mutant, as they come; interrupting it is harmless."""
    if not hasattr(os, "fork"):
        raise SystemExit("mutants are run by os.fork, which this system does not have.")
    os.environ.update(ENVIRONMENT)
    import pytest

    os.chdir(ROOT)
    wanted = dict.fromkeys(t.partition("::")[0] for mutant in mutants for t in tests_of(mutant))
    for mutant in mutants:
        source(mutant.module)
    pytest.main([*PYTEST, *wanted], plugins=[_Mutants(mutants, notice, jobs)])


# ---------------------------------------------------------------------------- the parent


class _Child(NamedTuple):
    mutant: Mutant | None
    """None where a test is tried without any mutant."""
    pipe: int
    began: float


class _Mutants:
    """A plugin of pytest that runs mutants where tests would be run."""

    def __init__(self, mutants: list[Mutant], notice: Callable[[Verdict], None], jobs: int):
        self.waiting, self.notice, self.jobs = list(reversed(mutants)), notice, jobs
        self.children: dict[int, _Child] = {}
        self.innocent: set[str] = set()
        """Tests that pass without any mutant."""
        self.broken: set[str] = set()
        """Tests that fail without any."""
        self.failed = ""
        self.stopped = False

    def pytest_collection(self) -> None:
        """Before tests are imported: an example that fails is enough, no smaller one is wanted."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutants", settings.default, phases=phases, report_multiple_bugs=False
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """In a child: remember the test that failed."""
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run all mutants, some at a time."""
        self.items = session.items
        gc.freeze()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        try:
            while not self.stopped and (self.waiting or self.children):
                while self.waiting and len(self.children) < self.jobs:
                    mutant = self.waiting.pop()
                    self._begin(mutant, self._items_of(mutant))
                self._wait()
        finally:
            for pid in self.children:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        return True

    def _stop(self, *_: object) -> None:
        """Note the wish to end: an exception would be lost where it falls into a fork."""
        self.stopped = True
        for pid in self.children:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def _items_of(self, mutant: Mutant) -> list[Any]:
        """Its tests in the order of likely notice; scikit-learn's many checks come last."""
        tests = tests_of(mutant)
        items = [
            (("estimator_checks" in item.nodeid), number, place, item)
            for place, item in enumerate(self.items)
            for number, test in enumerate(tests)
            if item.nodeid == test or item.nodeid.startswith(f"{test}::")
        ]
        return [item for *_, item in sorted(items, key=lambda row: row[:3])]

    def _begin(self, mutant: Mutant | None, items: list[Any]) -> None:
        """Fork a child that runs tests against a mutant."""
        hears, tells = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(hears)
            self._be_child(mutant, [i for i in items if i.nodeid not in self.broken], tells)
        os.close(tells)
        self.children[pid] = _Child(mutant, hears, time.monotonic())

    def _wait(self) -> None:
        """Hear what the next child to end has to say."""
        pid, status = os.waitpid(-1, 0)
        child = self.children.pop(pid, None)
        if child is None:
            return
        with os.fdopen(child.pipe) as pipe:
            killer = pipe.read()
        if child.mutant is not None and not self.stopped:
            self._judge(child.mutant, status, killer, time.monotonic() - child.began)

    def _judge(self, mutant: Mutant, status: int, killer: str, seconds: float) -> None:
        """Turn an exit into a verdict; a killer is itself tried first, if it is a new one."""
        code = os.waitstatus_to_exitcode(status)
        if code == NOT_MUTATED:
            self.notice(Verdict(mutant, "unknown", seconds, killer))
        elif code == -signal.SIGPROF:
            self.notice(Verdict(mutant, "timeout", seconds, f"more than {MAX_SECONDS:.0f} s"))
        elif code == 0:
            self.notice(Verdict(mutant, "survived", seconds, ""))
        elif not killer or self._passes_otherwise(killer):
            self.notice(Verdict(mutant, "killed", seconds, killer or "the process died"))
        else:
            print(f"fails without any mutant, and is put aside: {killer}", flush=True)
            self.waiting.append(mutant)

    def _passes_otherwise(self, killer: str) -> bool:
        """Whether a test passes when there is no mutant."""
        if killer not in self.innocent | self.broken:
            self._begin(None, [item for item in self.items if item.nodeid == killer])
            pid = next(reversed(self.children))
            passes = os.waitpid(pid, 0)[1] == 0
            os.close(self.children.pop(pid).pipe)
            (self.innocent if passes else self.broken).add(killer)
        return killer in self.innocent

    # ------------------------------------------------------------------------ the child

    def _be_child(self, mutant: Mutant | None, items: list[Any], tells: int) -> None:
        """Mutate, run tests until one fails, tell its name, and end."""
        code = 1
        try:
            _settle()
            try:
                if mutant is not None:
                    put_into(mutant)
            except LookupError as error:
                code = NOT_MUTATED
                os.write(tells, str(error).encode())
                return
            if not items:
                code = NOT_MUTATED
                os.write(tells, b"no test was collected")
                return
            for item, after in zip(items, [*items[1:], None], strict=True):
                signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if self.failed:
                    break
            os.write(tells, self.failed.encode())
            code = 1 if self.failed else 0
        finally:
            os._exit(code)


def _settle() -> None:
    """In a child: a group of its own, quiet, and with limits."""
    import resource

    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    # The default ends the process.
    for number in (signal.SIGPROF, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


# ---------------------------------------------------------------------------- mutation in place


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
    codes = (compile(text, path, "exec") for text in (source(mutant.module), mutant.mutated))
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
