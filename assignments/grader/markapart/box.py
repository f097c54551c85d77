"""Run submissions in boxes, which cannot reach keys, marks, the network or other submissions.

A box is shell.py in bubblewrap, in a container of podman or docker, or (for root only) as a user of
its own. Before anything is graded, a test box runs a cell that imports what notebooks import and
looks for the keys. If no kind of box passes this test, nothing is graded.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from markapart.settings import COURSE, PROGRAM, load
from markapart.wire import Gone, Wire

INSIDE = ["__init__.py", "shell.py", "wire.py", "replies.py"]
COURSE_SAYS = load()
MEMORY = 3 * 2**30  # bytes that all processes of a box may take together
PROCESSES = 64
START = 120  # seconds that a box may take to start, on a busy machine
HOME = "/home/student"
PYTHON = os.path.realpath(sys.executable)  # the link of a virtual environment leads out of it
SETTINGS = {
    "PATH": os.defpath, "LANG": "C.UTF-8", "MPLBACKEND": "agg", "LOKY_MAX_CPU_COUNT": "2",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip
ADVICE = """no box for other people's code could be made, and without one it could read the keys:
{tried}
Nothing has been graded. Install one of these and grade again:
    Ubuntu 24.04 or newer    sudo apt install podman
    Debian, other Linux      sudo apt install bubblewrap (or dnf, pacman, zypper)
    macOS                    brew install podman && podman machine init --now
    Windows                  wsl --install, then in Ubuntu as above"""
LOOK = """
import os
import {imports}
seen = [path for path in {paths!r} if os.access(path, os.R_OK)]
"""


class BoxError(Exception):
    """A box does not work; this is not the fault of the submission."""


class Boxes:
    """A factory of boxes of one ``kind``, inside which the folders in ``hide`` cannot be read."""

    def __init__(self, kind: str, hide: Iterable[Path | str] = ()):
        self.kind, self.hide = kind, [str(COURSE), *map(str, hide)]

    def new(self) -> Box:
        """Start a box."""
        return Box(self.kind, self.hide)

    def attempt(self) -> str:
        """Try a box; return what is wrong with it, or an empty text."""
        if self.kind != "user" and not shutil.which(self.kind):
            return "is not installed"
        try:
            box = self.new()
        except (BoxError, OSError, subprocess.SubprocessError) as error:
            return f"does not work: {error}"
        try:
            imports = ", ".join(COURSE_SAYS.imports or ["sys"])
            look = LOOK.format(imports=imports, paths=self._out_of_reach())
            reply = box.wire.ask(do="run", source=look)
            leaked = box.wire.decode(box.wire.ask(do="get", names=["seen"])["found"].get("seen"))
        except (Gone, KeyError) as error:
            return f"does not work: {error}"
        finally:
            box.end()
        if leaked is None:
            return f"does not work: {reply.get('says')}"
        return f"does not keep apart: {leaked[0]} can be read" if leaked else ""

    def _out_of_reach(self) -> list[str]:
        """Return the keys and some submissions, which a box must not be able to read."""
        handed_in = (itertools.islice(Path(one).rglob("*.ipynb"), 9) for one in self.hide)
        files = itertools.chain(COURSE.glob("source/*/*.ipynb"), *handed_in)
        return [str(path) for path in files]


def find_boxes(hide: Iterable[Path | str] = (), kinds: Iterable[str] | None = None) -> Boxes:
    """Return the first kind of box that works and isolates here, or raise ValueError."""
    failures = []
    for kind in kinds or COMMANDS:
        boxes = Boxes(kind, hide)
        wrong = boxes.attempt()
        if not wrong:
            return boxes
        failures.append(f"    {kind} {wrong}")
    raise ValueError(ADVICE.format(tried="\n".join(failures)))


class Box:
    """A running box, and the ``wire`` to it."""

    def __init__(self, kind: str, hide: list[str]):
        self.kind, self.place = kind, tempfile.TemporaryDirectory(prefix="box-")
        command, options = COMMANDS[kind](self.place.name, hide)
        self.name = options.pop("name", None)
        self.user = options.get("user")
        with tempfile.TemporaryFile() as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output,
                start_new_session=True, bufsize=0, **options,
            )  # fmt: skip
            self.wire = Wire(self.process.stdout.fileno(), self.process.stdin.fileno(),
                             trusts=False)  # fmt: skip
            self.ended = threading.Event()
            timer = threading.Timer(START, self._kill)
            timer.start()
            try:
                self.wire.ask(do="ready")
            except Gone:
                self.end()
                output.seek(0)
                last = output.read().decode(errors="replace").strip().rpartition("\n")[2]
                raise BoxError(f"a box of {kind} does not start: {last[-300:]}") from None
            finally:
                timer.cancel()
        if self.name is None:  # podman and docker limit their containers themselves
            threading.Thread(target=self._watch, daemon=True).start()

    def end(self) -> None:
        """End the box and all processes that it has started, and wait until they have ended."""
        self.ended.set()
        self._kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.place.cleanup()

    def _family(self) -> Iterator[psutil.Process]:
        """Yield the processes inside the box."""
        if self.user is not None:
            yield from (one for one in psutil.process_iter() if _owner(one) == self.user)
        else:
            with contextlib.suppress(psutil.Error):
                yield from psutil.Process(self.process.pid).children(recursive=True)

    def _kill(self) -> None:
        if self.name:
            subprocess.run([self.kind, "kill", self.name], capture_output=True, check=False)
        with contextlib.suppress(OSError):
            self.process.kill()
        if self.user is not None:
            while left := list(self._family()):
                for one in left:
                    with contextlib.suppress(psutil.Error):
                        one.kill()

    def _watch(self) -> None:
        """Kill all processes of the box if there are too many or if they take too much memory."""
        while not self.ended.wait(0.2):
            family = list(self._family())
            if len(family) > PROCESSES or sum(map(_memory, family)) > MEMORY:
                return self._kill()


def _owner(process: psutil.Process) -> int | None:
    with contextlib.suppress(psutil.Error):
        if process.status() != psutil.STATUS_ZOMBIE:  # a zombie has ended
            return process.uids().real
    return None


def _memory(process: psutil.Process) -> int:
    """Return the memory of a process: its own, and its part of what it shares."""
    with contextlib.suppress(psutil.Error, OSError):
        return process.memory_full_info().pss
    return 0


# ------------------------------------------------------------------------------ commands


def bubblewrap(place: str, hide: list[str]) -> tuple[list[str], dict]:
    """Build a command that shows Python and its packages, an empty folder and nothing else.

    The shell is the first process of the box; the processes below it cannot kill it.
    """
    bwrap = shutil.which("bwrap") or "bwrap"  # the PATH in the box may not have it
    command = [bwrap, "--unshare-all", "--as-pid-1", "--die-with-parent", "--new-session",
               "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]  # fmt: skip
    for path in ("/dev/shm", "/tmp", HOME):
        command += ["--size", str(2**28), "--tmpfs", path]
    for path in needed():
        command += ["--ro-bind", path, path]
    for path in hide:
        if any(Path(path).is_relative_to(shown) for shown in needed()):
            command += ["--tmpfs", path]
    command += _masked_package()
    for file in INSIDE:
        command += ["--ro-bind", str(PROGRAM / file), f"/box/markapart/{file}"]
    inside = _environment(HOME) | {"PYTHONPATH": os.pathsep.join(["/box", *_python_path()])}
    return [*command, "--chdir", HOME, "--", *_shell()], {"env": inside}


def _package() -> Path:
    """Return the folder of the package that judges, wherever it is installed."""
    (folder,) = importlib.util.find_spec(COURSE_SAYS.package).submodule_search_locations
    return Path(folder)


def _shell() -> list[str]:
    """Return the command of the student's side."""
    return [PYTHON, "-m", "markapart.shell", *COURSE_SAYS.imports]


def _masked_package() -> list[str]:
    """Return options that cover the package by an empty folder with a stub and its shown parts."""
    if not COURSE_SAYS.package:
        return []
    folder, options = _package(), ["--tmpfs", str(_package())]
    for name in COURSE_SAYS.shown:
        options += ["--ro-bind", str(folder / name), str(folder / name)]
    return [*options, "--ro-bind", str(COURSE / COURSE_SAYS.stub), str(folder / "__init__.py")]


def _copy_package(place: Path) -> None:
    """Copy the stub and the shown parts of the package to a folder."""
    if COURSE_SAYS.package:
        for name in COURSE_SAYS.shown:
            shutil.copytree(_package() / name, place / COURSE_SAYS.package / name)
        shutil.copy(COURSE / COURSE_SAYS.stub, place / COURSE_SAYS.package / "__init__.py")


def needed() -> list[str]:
    """Return the paths that Python and its packages need, without anything of this project."""
    paths = ["/usr", "/bin", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/etc/fonts",
             "/etc/alternatives"]  # fmt: skip
    python = [sys.prefix, sys.base_prefix, *_python_path()]
    paths += [path for one in python for path in (str(one), os.path.realpath(one))]
    found = [path for path in dict.fromkeys(paths) if os.path.exists(path)]
    return [path for path in found
            if not (COURSE.is_relative_to(path) or Path(path).is_relative_to(COURSE))]  # fmt: skip


def _python_path() -> list[str]:
    """Return the folders of packages; an editable installation keeps its package elsewhere."""
    own = [str(_package().parent)] if COURSE_SAYS.package else []
    paths = dict.fromkeys([*sys.path, *own])
    return [path for path in paths if path and not Path(path).is_relative_to(COURSE)]


def _environment(home: str) -> dict[str, str]:
    return SETTINGS | {"HOME": home, "TMPDIR": home, "IPYTHONDIR": home, "MPLCONFIGDIR": home}


numbers = itertools.count(os.getpid() % 10_000 * 1000)


def other_user(place: str, hide: list[str]) -> tuple[list[str], dict]:
    """Start the shell as a user who owns nothing else: for root, where nothing else works."""
    if sys.platform != "linux" or os.getuid() != 0:
        raise BoxError("only root can start processes of another user")
    if not _is_open_to_all(Path(PYTHON)):
        raise BoxError(f"no other user may read Python, which is {PYTHON}")
    user = 100_000 + next(numbers)
    _copy_package(Path(place, "packages"))
    Path(place, "packages", "markapart").mkdir(parents=True)
    for file in INSIDE:
        shutil.copy(PROGRAM / file, Path(place, "packages", "markapart"))
    home = Path(place, "home")
    home.mkdir()
    os.chmod(place, 0o755)
    os.chown(home, user, user)
    path = [f"{place}/packages", *_python_path()]
    inside = _environment(str(home)) | {"PYTHONPATH": os.pathsep.join(path)}
    return _shell(), {
        "env": inside, "cwd": home, "user": user, "group": user, "extra_groups": [],
    }  # fmt: skip


def _is_open_to_all(path: Path) -> bool:
    """Return whether every user may enter the folders of a file."""
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)


def container(engine: str, place: str, hide: list[str]) -> tuple[list[str], dict]:
    """Build a command that starts a container without network, with Python and pinned packages."""
    name = Path(place).name
    command = [
        engine, "run", "--rm", "--interactive", "--name", name, "--network", "none",
        "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
        "--memory", str(MEMORY), "--memory-swap", str(MEMORY), "--pids-limit", str(PROCESSES),
        "--tmpfs", "/tmp:size=256m,mode=1777", "--tmpfs", f"{HOME}:size=256m,mode=1777",
        "--user", "1000:1000", "--workdir", HOME,
    ]  # fmt: skip
    inside = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": "/box"}
    for key, value in (_environment(HOME) | inside).items():
        command += ["--env", f"{key}={value}"]
    return [*command, image(engine), "python", *_shell()[1:]], {"name": name}


def installed_from() -> dict[str, Path]:
    """Return the files that the package is installed from, by their paths in the project."""
    project = (COURSE / COURSE_SAYS.project).resolve()
    paths = [path for name in COURSE_SAYS.project_files
             for path in ([project / name] if (project / name).is_file()
                          else sorted((project / name).rglob("*")))
             if path.is_file() and "__pycache__" not in path.parts]  # fmt: skip
    return {path.relative_to(project).as_posix(): path for path in paths}


@functools.cache
def image(engine: str) -> str:
    """Return the name of the container image, which is built if it does not exist yet."""
    files = installed_from() | {f"box/markapart/{name}": PROGRAM / name for name in INSIDE}
    if COURSE_SAYS.stub:
        files |= {COURSE_SAYS.stub: COURSE / COURSE_SAYS.stub}
    dockerfile = (COURSE / "Dockerfile").read_bytes()
    contents = repr([(inside, path.read_bytes()) for inside, path in files.items()]).encode()
    name = f"localhost/markapart-box:{hashlib.sha256(dockerfile + contents).hexdigest()[:16]}"
    known = subprocess.run([engine, "image", "inspect", name], capture_output=True, check=False)
    if known.returncode:
        print(f"{engine} builds the image of the boxes; this is done once", file=sys.stderr)
        with tempfile.TemporaryDirectory() as scratch:
            for inside, path in files.items():
                Path(scratch, inside).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, Path(scratch, inside))
            subprocess.run([engine, "build", "--tag", name, "--file", "-", scratch], check=True,
                           input=dockerfile, stdout=sys.stderr)  # fmt: skip
    return name


COMMANDS = {
    "bwrap": bubblewrap,
    "podman": functools.partial(container, "podman"),
    "docker": functools.partial(container, "docker"),
    "user": other_user,
}
