"""The student's side of a box: runs cells as a notebook does, and calls what they define."""

from __future__ import annotations

import io
import socket
import sys

from IPython.core.interactiveshell import InteractiveShell
from replies import failure, imports_of
from traitlets.config import Config
from wire import Wire

PER_CELL, IN_ALL = 20_000, 200_000  # characters of output


class Shell:
    """Cells are run, names are asked for, functions are called."""

    def __init__(self, line: socket.socket):
        settings = Config()
        settings.HistoryManager.enabled = False
        settings.InteractiveShell.colors = "NoColor"
        self.shell = InteractiveShell.instance(config=settings)
        self.shell.showtraceback = self.shell.showsyntaxerror = lambda *args, **kwargs: None
        self.shell.enable_gui = lambda gui=None: None  # asked for by %matplotlib
        self.shell.user_ns.update(quit=sys.exit, exit=sys.exit)
        self.wire = Wire(line, trusts=True)
        self.wire.answers |= {"run": self.run, "imports": self.imports, "get": self.get}
        self.left = IN_ALL

    def serve(self) -> None:
        """Answer until the teacher hangs up."""
        self.wire.serve()

    def run(self, request: dict) -> dict:
        """Run a cell; tell what it printed and what it raised."""
        sys.stdout = sys.stderr = output = Output(min(PER_CELL, self.left))
        result = self.shell.run_cell(request["source"], store_history=False)
        sys.stdout = sys.stderr = Output(0)
        self.left -= output.tell()
        error = result.error_before_exec or result.error_in_exec
        return {"printed": output.getvalue(), **(failure(error) if error else {})}

    def imports(self, request: dict) -> dict:
        """Run only the imports of a visible check, which cells after it may rely on."""
        return self.run({"source": imports_of(request["source"])})

    def get(self, request: dict) -> dict:
        """Send the values that names have."""
        found, wrong = {}, {}
        for name in request["names"]:
            if name in self.shell.user_ns:
                try:
                    found[name] = self.wire.encode(self.shell.user_ns[name])
                except Exception as error:
                    wrong[name] = str(error)
        return {"found": found, "wrong": wrong}


class Output(io.StringIO):
    """Keeps so many characters, and drops the rest."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def write(self, text: str) -> int:
        """Write what there is room for."""
        room = self.most - self.tell()
        if room > 0:
            super().write(text if len(text) <= room else text[:room] + "\n[...] too long")
            if len(text) > room:
                self.most = 0
        return len(text)
