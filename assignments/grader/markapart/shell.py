"""Run cells inside a box as a notebook does, and call the functions that they define.

    python -m markapart.shell MODULE ...

The program imports these modules once and forks a child process, which answers requests. After the
request ``next`` the child ends, and a new child without its variables takes over.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import resource
import sys

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from markapart.replies import describe_error, imports_of
from markapart.wire import Wire, die_with_parent

MAX_PER_CELL, MAX_IN_ALL = 20_000, 200_000  # Characters of output.
INSTALLS = re.compile(r"\b(pip|conda|mamba|uv)\b")
EXIT_WITH_SUCCESSOR = 7  # Exit status of a child that a new child shall replace.
LIMITS = {
    "RLIMIT_AS": 3 * 2**30, "RLIMIT_CPU": 900, "RLIMIT_CORE": 0, "RLIMIT_FSIZE": 64 * 2**20,
    "RLIMIT_NOFILE": 256,
}  # fmt: skip


class Shell:
    """A notebook's shell that answers requests: run a cell, return values, call functions."""

    def __init__(self, wire: Wire):
        settings = Config()
        settings.HistoryManager.enabled = False
        settings.InteractiveShell.colors = "NoColor"
        self.shell = InteractiveShell.instance(config=settings)
        self.shell.showtraceback = self.shell.showsyntaxerror = lambda *args, **kwargs: None
        self.shell.enable_gui = lambda gui=None: None  # The magic %matplotlib calls this.
        self.shell.user_ns.update(quit=sys.exit, exit=sys.exit)
        self.shell.system = self.shell.system_raw = self.run_program
        for magic in ("pip", "conda", "mamba", "uv"):
            self.shell.register_magic_function(lambda line: self.run_program("pip"), "line", magic)
        self.wire = wire
        self.wire.answers |= {"run": self.run, "imports": self.imports, "get": self.get}
        self.wire.answers |= {
            "ready": lambda request: {},
            "next": lambda request: os._exit(EXIT_WITH_SUCCESSOR),
        }
        self.left = MAX_IN_ALL

    def run_program(self, command: str) -> None:
        """Run a command of the operating system, unless it installs packages."""
        if INSTALLS.search(command):
            print("(nothing is installed where notebooks are graded)")
        else:
            type(self.shell).system_piped(self.shell, command)

    def run(self, request: dict) -> dict:
        """Run a cell; return what it printed and the error that it raised."""
        sys.stdout = sys.stderr = output = Output(min(MAX_PER_CELL, self.left))
        result = self.shell.run_cell(request["source"], store_history=False)
        sys.stdout = sys.stderr = Output(0)
        self.left -= output.tell()
        error = result.error_before_exec or result.error_in_exec
        return {"printed": output.getvalue(), **(describe_error(error) if error else {})}

    def imports(self, request: dict) -> dict:
        """Run the imports of a visible check, because later cells may use them.

        The import of a package that is hidden in the box fails; the others still run.
        """
        for line in imports_of(request["source"]).splitlines():
            self.run({"source": line})
        return {}

    def get(self, request: dict) -> dict:
        """Return the encoded values of variables, and an error for each that cannot be sent."""
        found, wrong = {}, {}
        for name in request["names"]:
            if name in self.shell.user_ns:
                try:
                    found[name] = self.wire.encode(self.shell.user_ns[name])
                except Exception as error:
                    wrong[name] = str(error)
        return {"found": found, "wrong": wrong}


class Output(io.StringIO):
    """A stream that stores at most ``most`` characters and drops the rest."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def write(self, text: str) -> int:
        """Write as many characters as the limit allows."""
        room = self.most - self.tell()
        if room > 0:
            super().write(text if len(text) <= room else text[:room] + "\n[...] too long")
            if len(text) > room:
                self.most = 0
        return len(text)


def main() -> None:
    """Import modules, set limits, and fork one child after the other to answer requests."""
    wire = Wire(os.dup(0), os.dup(1), trusts=True)
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1):
        os.dup2(nothing, file)
    for package in sys.argv[1:]:
        importlib.import_module(package)
    for name, most in LIMITS.items():
        with contextlib.suppress(ValueError, OSError, AttributeError):
            resource.setrlimit(getattr(resource, name), (most, most))
    os.dup2(nothing, 2)  # Errors until here say why a box does not start.
    while True:
        child = os.fork()
        if not child:
            die_with_parent()
            Shell(wire).wire.serve()
            os._exit(0)
        ended, status = os.wait()
        while ended != child:  # As process 1 of a box, this one also inherits orphans.
            ended, status = os.wait()
        if os.waitstatus_to_exitcode(status) != EXIT_WITH_SUCCESSOR:
            return


if __name__ == "__main__":
    main()
