"""Kernels that have already imported what every notebook imports, so that they start sooner.

A helper process, ``python tools/warm_kernels.py``, imports the packages once and then forks for
each kernel that is asked for, so that notebooks remain as separate as in kernels started from
nothing; and no kernel reads or writes the IPython settings of the person at the keyboard. The tests
of the chapters use it; with CGMM_DRAFT explorers are drawn in draft. On Linux only; elsewhere
kernels start as they always do.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import EntryPoint

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

PACKAGES = ["ipykernel.kernelapp", "ipykernel.ipkernel", "cgmm", "cgmm.datasets", "scipy.stats"]


@contextlib.contextmanager
def warm_kernels() -> Iterator[None]:
    """Start kernels from a warm helper within this block, where the system can fork."""
    if sys.platform != "linux":
        yield
        return
    factory = KernelProvisionerFactory.instance()
    before = factory.default_provisioner_name
    if before == "warm":  # a block within another
        yield
        return
    factory.provisioners["warm"] = EntryPoint("warm", f"{__name__}:WarmProvisioner", "")
    command = [sys.executable, os.path.abspath(__file__)]
    with (
        tempfile.TemporaryDirectory() as WarmProvisioner.settings,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as WarmProvisioner.helper,
    ):
        # Its first imports may take a minute on a busy disk; a kernel's own time has not begun yet.
        if not WarmProvisioner.helper.stdout.readline():
            # What it imports is broken: that is for the notebooks' own kernels to tell.
            yield
            return
        factory.default_provisioner_name = "warm"
        try:
            yield
        finally:
            factory.default_provisioner_name = before
            WarmProvisioner.helper.stdin.close()


class WarmProvisioner(LocalProvisioner):
    """Asks the helper for a kernel; everything else is as for a local kernel."""

    helper: subprocess.Popen
    settings: str
    """Folder in which kernels find, and first make, IPython's profile."""

    async def launch_kernel(self, cmd: list[str], **kwargs) -> dict:
        """Send the order, and follow the process that the helper names."""
        env = kwargs["env"] | {"IPYTHONDIR": self.settings}
        order = {"argv": cmd[cmd.index("-m") + 2 :], "cwd": kwargs.get("cwd", "."), "env": env}
        print(json.dumps(order), file=self.helper.stdin, flush=True)
        self.process = Follower(int(self.helper.stdout.readline()))
        # The kernel leads a process group of its own, so that a signal reaches what it started.
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class Follower:
    """What LocalProvisioner needs of a Popen, for a process that is not our own child."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self.pid = pid

    def poll(self) -> int | None:
        """None while it lives; its exit status is known to the helper only."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    wait = poll

    def send_signal(self, number: int) -> None:
        """Send a signal to the process alone."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


def serve() -> None:
    """Import the packages, then fork a kernel for each order that comes in."""
    # A kernel ends by itself when this process does; ipykernel reads the number on being imported.
    os.environ["JPY_PARENT_PID"] = str(os.getpid())
    for package in PACKAGES:
        importlib.import_module(package)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system removes kernels that have ended
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            become_kernel(**json.loads(line))
        print(pid, flush=True)


def become_kernel(argv: list[str], cwd: str, env: dict[str, str]) -> None:
    """Turn this process into a kernel; never return."""
    from ipykernel.kernelapp import launch_new_instance

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):  # the helper's orders and answers are not the kernel's
        os.dup2(nothing, descriptor)
    os.chdir(cwd)
    os.environ.update(env | {"JPY_PARENT_PID": os.environ["JPY_PARENT_PID"]})
    sys.argv[1:] = argv
    if os.environ.get("CGMM_DRAFT"):
        # Not sooner: pyplot asks on being imported where its figures go.
        line = "__import__('drafts').draw_in_draft()"
        sys.argv.append(f"--IPKernelApp.exec_lines={line}")
    try:
        launch_new_instance()
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve()
