"""Where a submission runs: a process of its own, with nothing in reach, that is sure to end.

:class:`Boxes` starts a helper that imports what notebooks import, once, and forks for each box. It
never sees a check, a solution or another submission. A box is two processes. The student's code
runs in the inner one: in namespaces of its own, where Linux lets us make them, without network,
without other processes, and with no files but those of Python; everywhere with limits of memory,
processor, processes and file sizes, in an empty folder and without environment. The outer one
waits for it, or for the line to be cut, and ends everything that the code has started.

    python box.py SOCKET    what :class:`Boxes` runs
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable
from pathlib import Path

from namespaces import (
    HERE,
    PARENT_DIES,
    SUBREAPER,
    can_be_kept_apart,
    give_up_rights,
    libc,
    own_files,
    own_namespaces,
)  # fmt: skip

PACKAGES = ["cgmm", "cgmm.datasets", "cgmm.plot", "scipy.stats", "matplotlib.pyplot", "shell"]
MEMORY = 3 * 2**30
PROCESSES = 64
NAMESPACES = "own files, processes and network"
LIMITS = "limits only: it could read files here, use the network and end processes"

# ------------------------------------------------------------------------------- teacher


class Boxes:
    """The helper; use it in a ``with`` statement, and :meth:`new` for each box."""

    def __init__(self, hide: Iterable[Path] = (), *, namespaces: bool = True):
        self.order = {"hide": [str(path) for path in (HERE, *hide)], "namespaces": namespaces}

    def __enter__(self) -> Boxes:
        self.line, other = socket.socketpair()
        environment = {"PATH": os.defpath, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self.helper = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), str(other.fileno())],
            pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, env=environment, cwd="/",
            start_new_session=True,
        )  # fmt: skip
        other.close()
        if not self.line.recv(1):
            raise RuntimeError("the helper that starts boxes has ended; its error stands above.")
        return self

    def __exit__(self, *problem) -> None:
        self.line.close()
        self.helper.wait()

    def new(self) -> Box:
        """Start a box."""
        (line, inner), (life, outer) = socket.socketpair(), socket.socketpair()
        text = json.dumps(self.order).encode()
        socket.send_fds(self.line, [text], [inner.fileno(), outer.fileno()])
        inner.close()
        outer.close()
        return Box(line, life)


class Box:
    """A running box: the ``line`` to the student's process, and what it is kept apart by."""

    def __init__(self, line: socket.socket, life: socket.socket):
        self.line, self.life = line, life
        self.kept_apart = life.recv(200).decode() or LIMITS

    def lives(self) -> bool:
        """Whether the outer process still watches."""
        try:
            self.life.send(b"?")
            return self.life.recv(1) == b"!"
        except OSError:
            return False

    def end(self) -> None:
        """End it, with everything that it has started, and wait until this is done."""
        self.line.close()
        with contextlib.suppress(OSError):
            self.life.shutdown(socket.SHUT_WR)
            self.life.settimeout(20)
            while self.life.recv(1):
                pass
        self.life.close()


# -------------------------------------------------------------------------------- helper


def serve(control: socket.socket) -> None:
    """Import the packages, then fork for each order that comes in."""
    apart = can_be_kept_apart()
    for package in PACKAGES:
        importlib.import_module(package)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control.send(b"r")
    while True:
        order, files, _, _ = socket.recv_fds(control, 2**16, 2)
        if not order:
            return
        if not os.fork():
            control.close()
            line, life = (socket.socket(fileno=file) for file in files)
            wanted = json.loads(order)
            try:
                outer(line, life, wanted["hide"], apart and wanted["namespaces"])
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        for file in files:
            os.close(file)


def outer(line: socket.socket, life: socket.socket, hide: list[str], apart: bool) -> None:
    """Start the inner process, wait for its end or for that of the teacher, and clean up."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    place = tempfile.mkdtemp(prefix="box-")
    life.send((NAMESPACES if apart else LIMITS).encode())
    if apart:
        own_namespaces()
    elif sys.platform == "linux":
        libc().prctl(SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if not child:
        life.close()
        try:
            inner(line, place, hide, apart)
        except BaseException:  # no student's doing: those are answered
            traceback.print_exc()
        finally:
            os._exit(1)
    line.close()
    try:
        while not os.waitpid(child, os.WNOHANG)[0]:
            if select.select([life], [], [], 0.05)[0]:
                if not life.recv(1):
                    break
                life.send(b"!")
    finally:
        end_all(child)
        shutil.rmtree(place, ignore_errors=True)


def end_all(child: int) -> None:
    """Kill the inner process, its group, and whatever of its descendants is left to us."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:  # orphans become our children one generation at a time
            for orphan in _children():
                with contextlib.suppress(OSError):
                    os.kill(orphan, signal.SIGKILL)
            os.waitpid(-1, 0)


def _children() -> list[int]:
    with contextlib.suppress(OSError):
        here = os.getpid()
        return [int(n) for n in Path(f"/proc/{here}/task/{here}/children").read_text().split()]
    return []


def inner(line: socket.socket, place: str, hide: list[str], apart: bool) -> None:
    """Shut the box, then do what the line asks for."""
    die_with_parent()
    home = place
    if apart:
        own_files(place, hide)
        home = "/home/student"
    os.setsid()
    os.chdir(home)
    kept = os.dup2(line.detach(), 3)
    os.closerange(4, 4096)
    os.environ.clear()
    os.environ.update(
        PATH=os.defpath, HOME=home, TMPDIR=home, IPYTHONDIR=home, MPLCONFIGDIR=home,
        OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MPLBACKEND="agg", LANG="C.UTF-8",
    )  # fmt: skip
    tempfile.tempdir = None
    limit()
    if apart:
        give_up_rights()
    from shell import Shell

    shell = Shell(socket.socket(fileno=kept))
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1, 2):
        os.dup2(nothing, file)
    shell.serve()


def die_with_parent() -> None:
    """Let the system end this process when the one that started it ends."""
    if sys.platform == "linux":
        libc().prctl(PARENT_DIES, signal.SIGKILL, 0, 0, 0)


def limit() -> None:
    """Set limits that hold for the process and whatever it starts."""
    limits = {
        "RLIMIT_AS": MEMORY, "RLIMIT_CPU": 600, "RLIMIT_CORE": 0, "RLIMIT_FSIZE": 64 * 2**20,
        "RLIMIT_NOFILE": 256, "RLIMIT_NPROC": _tasks() + PROCESSES,
    }  # fmt: skip
    for name, most in limits.items():
        with contextlib.suppress(ValueError, OSError, AttributeError):
            resource.setrlimit(getattr(resource, name), (most, most))


def _tasks() -> int:
    """How many threads this user runs already, whom the limit counts too."""
    found = 0
    with contextlib.suppress(OSError):
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if folder.stat().st_uid == os.getuid():
                    found += len(os.listdir(folder / "task"))
    return found


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
