"""Try the package as somebody gets it: built, installed in empty environments, tested there.

    python tools/package.py [FOLDER]

The version must be the one that CHANGELOG.md opens with, and CGMM_TAG if there is one. The two
distributions stay in FOLDER (default: dist). The wheel is installed with what it needs at run time
and nothing else, in the lowest, the newest and the pinned versions that are allowed; each time all
modules are imported, the tour is taken, and README's example runs; with pandas, so do the recipes
of howto. Then come the test tools, and the tests of the unpacked source distribution, whose own
``cgmm/`` is taken away: only the installed one is left to test. Browser tests and notebooks stay
with the book.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from pages import ROOT

# Left behind by builds, tests and editors: no part of the project.
CLUTTER = shutil.ignore_patterns(
    ".git", ".venv", "env", "_build", "build", "dist", "*.egg-info", "__pycache__", ".*cache",
    ".hypothesis", ".ipynb_checkpoints",
)  # fmt: skip

# Tests that read the sources, or the built book: what is installed has neither.
ABOUT_THE_PROJECT = ("assignments", "book", "test_typing.py", "tools")

IMPORT_EVERYTHING = """
import importlib, pkgutil, cgmm
names = [m.name for m in pkgutil.walk_packages(cgmm.__path__, "cgmm.") if "__main__" not in m.name]
assert "site-packages" in cgmm.__file__, cgmm.__file__
for name in names:
    importlib.import_module(name)
print(len(names), "modules of", cgmm.__path__[0], "import with the run-time needs alone")
"""

HOWTO = """
import sys
sys.path.insert(0, "tests")
from test_howto import test_every_snippet_runs_as_printed as run
run()
"""
PINNED = ("--constraint", ROOT / "requirements-dev.lock")
VERSIONS = {
    "lowest": ("--resolution", "lowest-direct"),
    "newest": ("--resolution", "highest"),
    "pinned": PINNED,
}


def main(folder: Path) -> None:
    """Build, install, test; the first failure ends it."""
    require_release_notes(ROOT, os.environ.get("CGMM_TAG"))
    with tempfile.TemporaryDirectory(prefix="cgmm-") as scratch:
        place = Path(scratch)
        sdist, wheel = build(ROOT, place, isolated=True)
        tests = unpacked(sdist, place / "unpacked")
        shutil.rmtree(tests / "cgmm")
        for name, versions in VERSIONS.items():
            python = environment(place / name, wheel, versions)
            run(python, "-c", IMPORT_EVERYTHING, cwd=place)
            run(python, "-m", "cgmm", cwd=place)
            run(python, "-m", "doctest", "README.md", cwd=tests)
            uv("pip", "install", "--python", python, "pandas>=2.2", *versions)  # for a recipe
            run(python, "-c", HOWTO, cwd=tests)
        uv("pip", "install", "--python", python, f"{wheel}[tests]", *PINNED)
        uv("pip", "check", "--python", python)
        ignored = [f"--ignore-glob={tests}/tests/{name}" for name in ABOUT_THE_PROJECT]
        run(python, "-m", "pytest", "-q", "@tests/all.args", "tests", *ignored, cwd=tests)
        # The examples lie beside the installed package, where no conftest.py is found.
        examples = ("-p", "conftest", "--pyargs", "cgmm")
        run(python, "-m", "pytest", "-q", "@tests/all.args", *examples, cwd=tests)
        folder.mkdir(parents=True, exist_ok=True)
        for made in (sdist, wheel):
            print("kept:", shutil.copy(made, folder))


def require_release_notes(root: Path, tag: str | None) -> None:
    """Refuse a version that the change log does not open with, or a tag of another version."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf8"))["project"]
    log = (root / "CHANGELOG.md").read_text(encoding="utf8")
    newest = re.search(r"^## (\S+)", log, re.MULTILINE)[1]
    for found, where in {newest: "CHANGELOG.md opens with", tag: "the tag is"}.items():
        if found is not None and found.removeprefix("v") != project["version"]:
            raise SystemExit(f"the version is {project['version']}, but {where} {found}.")


def build(root: Path, place: Path, *, isolated: bool) -> tuple[Path, Path]:
    """Source distribution and wheel, the wheel from the source distribution, out of a clean copy.

    Built in place, setuptools would pick up whatever an earlier build has left in ``build/``.
    """
    shutil.copytree(root, place / "source", ignore=CLUTTER)
    options = [] if isolated else ["--no-isolation"]
    run(sys.executable, "-m", "build", *options, "--outdir", place / "dist", cwd=place / "source")
    (sdist,) = (place / "dist").glob("*.tar.gz")
    (wheel,) = (place / "dist").glob("*.whl")
    return sdist, wheel


def environment(place: Path, wheel: Path, versions: tuple[str | Path, ...]) -> Path:
    """The Python of a new virtual environment that holds the wheel and what it asks for."""
    uv("venv", "--python", sys.executable, place)
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    # Named by pyproject.toml as well, what the wheel needs is asked for directly.
    asked = ("-r", ROOT / "pyproject.toml", wheel)
    uv("pip", "install", "--python", python, *asked, *versions)
    return python


def uv(*command: str | Path) -> None:
    """Run uv, or raise."""
    run(sys.executable, "-m", "uv", *command, "--quiet", cwd=ROOT)


def unpacked(sdist: Path, place: Path) -> Path:
    """The one folder in a source distribution."""
    shutil.unpack_archive(sdist, place)
    (folder,) = place.iterdir()
    return folder


def run(*command: str | Path, cwd: Path) -> None:
    """Run a program apart from this one's environment variables of Python, or raise."""
    apart = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([str(part) for part in command], cwd=cwd, env=apart, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve())
