"""Build the package, install it into empty environments, and test the installed package.

    python tools/package.py [FOLDER]

The version must be the first one in CHANGELOG.md, and must match the environment variable CGMM_TAG
if that is set. The source distribution and the wheel are written to FOLDER (default: dist). The
wheel is installed with its run-time requirements only, in their lowest, newest and pinned versions.
In each environment all modules are imported, ``python -m cgmm`` and README's example run, and so do
the recipes of howto once pandas is installed. Then the test requirements are installed, and the
tests of the unpacked source distribution run without its own ``cgmm/``, so that they test the
installed package. Browser tests and notebooks are not run here.
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

# Files that builds, tests and editors create, and that do not belong to the project.
CLUTTER = shutil.ignore_patterns(
    ".git", ".venv", "env", "_build", "build", "dist", "*.egg-info", "__pycache__", ".*cache",
    ".hypothesis", ".ipynb_checkpoints",
)  # fmt: skip

# Tests that need the sources or the built book, which an installed package does not have.
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
    """Build, install and test the package; stop at the first failure."""
    require_release_notes(ROOT, os.environ.get("CGMM_TAG"))
    with tempfile.TemporaryDirectory(prefix="cgmm-") as name:
        scratch = Path(name)
        sdist, wheel = build(ROOT, scratch, isolated=True)
        tests = unpack_sdist(sdist, scratch / "unpacked")
        shutil.rmtree(tests / "cgmm")
        for label, versions in VERSIONS.items():
            python = create_environment(scratch / label, wheel, versions)
            run(python, "-c", IMPORT_EVERYTHING, cwd=scratch)
            run(python, "-m", "cgmm", cwd=scratch)
            run(python, "-m", "doctest", "README.md", cwd=tests)
            # One recipe of howto needs pandas.
            uv("pip", "install", "--python", python, "pandas>=2.2", *versions)
            run(python, "-c", HOWTO, cwd=tests)
        uv("pip", "install", "--python", python, f"{wheel}[tests]", *PINNED)
        uv("pip", "check", "--python", python)
        ignored = [f"--ignore-glob={tests}/tests/{name}" for name in ABOUT_THE_PROJECT]
        run(python, "-m", "pytest", "-q", "@tests/all.args", "tests", *ignored, cwd=tests)
        # pytest does not find conftest.py beside the installed package, so load it explicitly.
        examples = ("-p", "conftest", "--pyargs", "cgmm")
        run(python, "-m", "pytest", "-q", "@tests/all.args", *examples, cwd=tests)
        folder.mkdir(parents=True, exist_ok=True)
        for path in (sdist, wheel):
            print("kept:", shutil.copy(path, folder))


def require_release_notes(root: Path, tag: str | None) -> None:
    """Raise SystemExit if the first version in CHANGELOG.md, or the tag, is another version."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf8"))["project"]
    log = (root / "CHANGELOG.md").read_text(encoding="utf8")
    newest = re.search(r"^## (\S+)", log, re.MULTILINE)[1]
    for found, where in {newest: "CHANGELOG.md begins with", tag: "the tag is"}.items():
        if found is not None and found.removeprefix("v") != project["version"]:
            raise SystemExit(f"the version is {project['version']}, but {where} {found}.")


def build(root: Path, scratch: Path, *, isolated: bool) -> tuple[Path, Path]:
    """Build the source distribution, and the wheel from it; return the paths of both.

    The build runs in a copy of the project, because setuptools would otherwise include files that
    an earlier build has left in ``build/``.
    """
    source, dist = scratch / "source", scratch / "dist"
    shutil.copytree(root, source, ignore=CLUTTER)
    options = [] if isolated else ["--no-isolation"]
    run(sys.executable, "-m", "build", *options, "--outdir", dist, cwd=source)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    return sdist, wheel


def create_environment(folder: Path, wheel: Path, versions: tuple[str | Path, ...]) -> Path:
    """Create a virtual environment with the wheel and its requirements; return its Python."""
    uv("venv", "--python", sys.executable, folder)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    # Requirements from pyproject.toml count as direct ones, as --resolution lowest-direct needs.
    requirements = ("-r", ROOT / "pyproject.toml", wheel)
    uv("pip", "install", "--python", python, *requirements, *versions)
    return python


def uv(*command: str | Path) -> None:
    """Run uv, and raise an error if it fails."""
    run(sys.executable, "-m", "uv", *command, "--quiet", cwd=ROOT)


def unpack_sdist(sdist: Path, target: Path) -> Path:
    """Unpack a source distribution, and return the folder in it."""
    shutil.unpack_archive(sdist, target)
    (folder,) = target.iterdir()
    return folder


def run(*command: str | Path, cwd: Path) -> None:
    """Run a program without Python's environment variables, and raise an error if it fails."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([str(part) for part in command], cwd=cwd, env=variables, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve())
