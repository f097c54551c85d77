"""Run submissions in sandboxes without access to keys, marks, the network or other submissions.

A sandbox is called a box. It runs shell.py in bubblewrap, in a container of podman or docker, or
(only if the teacher is root) as a separate user. Before anything is graded, a test box runs a cell
that imports the modules that notebooks import, and tries to read the keys. If no kind of box passes
this test, nothing is graded.
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

from markapart.settings import COURSE, PROGRAM, load_settings
from markapart.wire import Wire, WireError

FILES_IN_BOX = ["__init__.py", "shell.py", "wire.py", "replies.py"]
COURSE_SETTINGS = load_settings()
MAX_MEMORY = 3 * 2**30  # Bytes that all processes of one box may use together.
MAX_PROCESSES = 64
START_SECONDS = 120  # Seconds that a box may take to start; a busy machine needs many.
HOME = "/home/student"
PYTHON = os.path.realpath(sys.executable)  # A virtual environment only has a link to Python.
ENVIRONMENT = {
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
LEAK_TEST = """
import os
import {imports}
seen = [path for path in {paths!r} if os.access(path, os.R_OK)]
"""


class BoxError(Exception):
    """Raised if a box does not work, which is not the fault of the submission."""


class Boxes:
    """Factory of boxes of one ``kind``. Code in a box cannot read the folders in ``hide``."""

    def __init__(self, kind: str, hide: Iterable[Path | str] = ()):
        self.kind, self.hide = kind, [str(COURSE), *map(str, hide)]

    def new(self) -> Box:
        """Start a box."""
        return Box(self.kind, self.hide)

    def find_fault(self) -> str:
        """Start a test box; return what is wrong with it, or an empty string."""
        if self.kind != "user" and not shutil.which(self.kind):
            return "is not installed"
        try:
            box = self.new()
        except (BoxError, OSError, subprocess.SubprocessError) as error:
            return f"does not work: {error}"
        try:
            imports = ", ".join(COURSE_SETTINGS.imports or ["sys"])
            look = LEAK_TEST.format(imports=imports, paths=self._list_secret_files())
            reply = box.wire.ask(do="run", source=look)
            leaked = box.wire.decode(box.wire.ask(do="get", names=["seen"])["found"].get("seen"))
        except (WireError, KeyError) as error:
            return f"does not work: {error}"
        finally:
            box.end()
        if leaked is None:
            return f"does not work: {reply.get('says')}"
        return f"does not keep apart: {leaked[0]} can be read" if leaked else ""

    def _list_secret_files(self) -> list[str]:
        """Return paths of all keys and of some submissions, which no box may be able to read."""
        handed_in = (itertools.islice(Path(one).rglob("*.ipynb"), 9) for one in self.hide)
        files = itertools.chain(COURSE.glob("source/*/*.ipynb"), *handed_in)
        return [str(path) for path in files]


def find_boxes(hide: Iterable[Path | str] = (), kinds: Iterable[str] | None = None) -> Boxes:
    """Return the first kind of box that works and hides the keys, or raise ValueError."""
    failures = []
    for kind in kinds or COMMANDS:
        boxes = Boxes(kind, hide)
        wrong = boxes.find_fault()
        if not wrong:
            return boxes
        failures.append(f"    {kind} {wrong}")
    raise ValueError(ADVICE.format(tried="\n".join(failures)))


class Box:
    """A running box, with the connection ``wire`` to the code inside it."""

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
            timer = threading.Timer(START_SECONDS, self._kill)
            timer.start()
            try:
                self.wire.ask(do="ready")
            except WireError:
                self.end()
                output.seek(0)
                last = output.read().decode(errors="replace").strip().rpartition("\n")[2]
                raise BoxError(f"a box of {kind} does not start: {last[-300:]}") from None
            finally:
                timer.cancel()
        if self.name is None:  # Podman and Docker enforce the limits themselves.
            threading.Thread(target=self._enforce_limits, daemon=True).start()

    def end(self) -> None:
        """Kill all processes of the box, and wait until they have ended."""
        self.ended.set()
        self._kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.place.cleanup()

    def _list_processes(self) -> Iterator[psutil.Process]:
        """Yield the processes inside the box."""
        if self.user is not None:
            yield from (one for one in psutil.process_iter() if _user_of(one) == self.user)
        else:
            with contextlib.suppress(psutil.Error):
                yield from psutil.Process(self.process.pid).children(recursive=True)

    def _kill(self) -> None:
        if self.name:
            subprocess.run([self.kind, "kill", self.name], capture_output=True, check=False)
        with contextlib.suppress(OSError):
            self.process.kill()
        if self.user is not None:
            while left := list(self._list_processes()):
                for one in left:
                    with contextlib.suppress(psutil.Error):
                        one.kill()

    def _enforce_limits(self) -> None:
        """Kill all processes of the box if they are too many or use too much memory."""
        while not self.ended.wait(0.2):
            family = list(self._list_processes())
            if len(family) > MAX_PROCESSES or sum(map(_memory_of, family)) > MAX_MEMORY:
                return self._kill()


def _user_of(process: psutil.Process) -> int | None:
    with contextlib.suppress(psutil.Error):
        if process.status() != psutil.STATUS_ZOMBIE:  # A zombie has already ended.
            return process.uids().real
    return None


def _memory_of(process: psutil.Process) -> int:
    """Return the memory in bytes that a process uses, with its part of shared memory."""
    with contextlib.suppress(psutil.Error, OSError):
        return process.memory_full_info().pss
    return 0


# ------------------------------------------------------------------------------ commands


def bubblewrap_command(place: str, hide: list[str]) -> tuple[list[str], dict]:
    """Return a bubblewrap command for a box that contains only Python, its packages and a home.

    The home folder is empty. The shell is process 1 of the box, so its children cannot kill it.
    """
    bwrap = shutil.which("bwrap") or "bwrap"  # The PATH inside the box may not contain it.
    command = [bwrap, "--unshare-all", "--as-pid-1", "--die-with-parent", "--new-session",
               "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]  # fmt: skip
    for path in ("/dev/shm", "/tmp", HOME):
        command += ["--size", str(2**28), "--tmpfs", path]
    for path in list_readable_paths():
        command += ["--ro-bind", path, path]
    for path in hide:
        if any(Path(path).is_relative_to(shown) for shown in list_readable_paths()):
            command += ["--tmpfs", path]
    command += _package_mask_options()
    for file in FILES_IN_BOX:
        command += ["--ro-bind", str(PROGRAM / file), f"/box/markapart/{file}"]
    inside = _environment(HOME) | {"PYTHONPATH": os.pathsep.join(["/box", *_python_path()])}
    return [*command, "--chdir", HOME, "--", *_shell_command()], {"env": inside}


def _package_folder() -> Path:
    """Return the folder of the installed package whose functions are hidden from solutions."""
    (folder,) = importlib.util.find_spec(COURSE_SETTINGS.package).submodule_search_locations
    return Path(folder)


def _shell_command() -> list[str]:
    """Return the command that starts shell.py inside the box."""
    return [PYTHON, "-m", "markapart.shell", *COURSE_SETTINGS.imports]


def _package_mask_options() -> list[str]:
    """Return options of bubblewrap that hide the package, except its stub and its shown parts."""
    if not COURSE_SETTINGS.package:
        return []
    folder, options = _package_folder(), ["--tmpfs", str(_package_folder())]
    for name in COURSE_SETTINGS.shown:
        options += ["--ro-bind", str(folder / name), str(folder / name)]
    return [*options, "--ro-bind", str(COURSE / COURSE_SETTINGS.stub), str(folder / "__init__.py")]


def _copy_package(place: Path) -> None:
    """Copy the stub and the shown parts of the package into a folder."""
    if COURSE_SETTINGS.package:
        for name in COURSE_SETTINGS.shown:
            shutil.copytree(_package_folder() / name, place / COURSE_SETTINGS.package / name)
        shutil.copy(COURSE / COURSE_SETTINGS.stub, place / COURSE_SETTINGS.package / "__init__.py")


def list_readable_paths() -> list[str]:
    """Return the paths that Python and its packages need, without paths of this project."""
    paths = ["/usr", "/bin", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/etc/fonts",
             "/etc/alternatives"]  # fmt: skip
    python = [sys.prefix, sys.base_prefix, *_python_path()]
    paths += [path for one in python for path in (str(one), os.path.realpath(one))]
    found = [path for path in dict.fromkeys(paths) if os.path.exists(path)]
    return [path for path in found
            if not (COURSE.is_relative_to(path) or Path(path).is_relative_to(COURSE))]  # fmt: skip


def _python_path() -> list[str]:
    """Return the folders with packages, including that of a package installed as editable."""
    own = [str(_package_folder().parent)] if COURSE_SETTINGS.package else []
    paths = dict.fromkeys([*sys.path, *own])
    return [path for path in paths if path and not Path(path).is_relative_to(COURSE)]


def _environment(home: str) -> dict[str, str]:
    return ENVIRONMENT | {"HOME": home, "TMPDIR": home, "IPYTHONDIR": home, "MPLCONFIGDIR": home}


user_numbers = itertools.count(os.getpid() % 10_000 * 1000)


def other_user_command(place: str, hide: list[str]) -> tuple[list[str], dict]:
    """Return a command that runs the shell as a new user; needs root, and is the last resort."""
    if sys.platform != "linux" or os.getuid() != 0:
        raise BoxError("only root can start processes of another user")
    if not _is_open_to_all(Path(PYTHON)):
        raise BoxError(f"no other user may read Python, which is {PYTHON}")
    user = 100_000 + next(user_numbers)
    _copy_package(Path(place, "packages"))
    Path(place, "packages", "markapart").mkdir(parents=True)
    for file in FILES_IN_BOX:
        shutil.copy(PROGRAM / file, Path(place, "packages", "markapart"))
    home = Path(place, "home")
    home.mkdir()
    os.chmod(place, 0o755)
    os.chown(home, user, user)
    path = [f"{place}/packages", *_python_path()]
    inside = _environment(str(home)) | {"PYTHONPATH": os.pathsep.join(path)}
    return _shell_command(), {
        "env": inside, "cwd": home, "user": user, "group": user, "extra_groups": [],
    }  # fmt: skip


def _is_open_to_all(path: Path) -> bool:
    """Return whether every user may enter all folders that contain a file."""
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)


def container_command(engine: str, place: str, hide: list[str]) -> tuple[list[str], dict]:
    """Return a command that starts a container with Python and packages, but without network."""
    name = Path(place).name
    command = [
        engine, "run", "--rm", "--interactive", "--name", name, "--network", "none",
        "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
        "--memory", str(MAX_MEMORY), "--memory-swap", str(MAX_MEMORY),
        "--pids-limit", str(MAX_PROCESSES),
        "--tmpfs", "/tmp:size=256m,mode=1777", "--tmpfs", f"{HOME}:size=256m,mode=1777",
        "--user", "1000:1000", "--workdir", HOME,
    ]  # fmt: skip
    inside = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": "/box"}
    for key, value in (_environment(HOME) | inside).items():
        command += ["--env", f"{key}={value}"]
    return [*command, build_image(engine), "python", *_shell_command()[1:]], {"name": name}


def list_installed_files() -> dict[str, Path]:
    """Return the files from which the package is installed, keyed by their paths in the project."""
    project = (COURSE / COURSE_SETTINGS.project).resolve()
    paths = [path for name in COURSE_SETTINGS.project_files
             for path in ([project / name] if (project / name).is_file()
                          else sorted((project / name).rglob("*")))
             if path.is_file() and "__pycache__" not in path.parts]  # fmt: skip
    return {path.relative_to(project).as_posix(): path for path in paths}


@functools.cache
def build_image(engine: str) -> str:
    """Return the name of the container image, and build the image if it does not exist yet."""
    files = list_installed_files() | {
        f"box/markapart/{name}": PROGRAM / name for name in FILES_IN_BOX
    }
    if COURSE_SETTINGS.stub:
        files |= {COURSE_SETTINGS.stub: COURSE / COURSE_SETTINGS.stub}
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
    "bwrap": bubblewrap_command,
    "podman": functools.partial(container_command, "podman"),
    "docker": functools.partial(container_command, "docker"),
    "user": other_user_command,
}
