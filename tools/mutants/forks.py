"""A plugin of pytest that forks a process for each mutant, where tests would be run.

The child puts the mutated code into the loaded functions and runs the tests that guard the module
until one fails. A test that fails without any mutant as well is found out and put aside.
"""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from .inject import put_into
from .table import Mutant, Verdict

# What a test may take, in seconds of the processor and bytes: no test comes near it.
MAX_SECONDS, MAX_MEMORY = 30.0, 6 * 2**30
# Exit code of a child whose module is not what its source says.
NOT_MUTATED = 3


class _Child(NamedTuple):
    mutant: Mutant | None
    """None where a test is tried without any mutant."""
    pipe: int
    began: float


class Forks:
    """The plugin; ``guards`` names the tests that guard the module of a mutant."""

    def __init__(
        self,
        mutants: list[Mutant],
        guards: Callable[[str], list[str]],
        notice: Callable[[Verdict], None],
        jobs: int,
    ):
        self.waiting, self.guards = list(reversed(mutants)), guards
        self.notice, self.jobs = notice, jobs
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
        tests = self.guards(mutant.module)
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
