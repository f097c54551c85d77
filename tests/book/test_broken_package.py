"""A broken package breaks the build: each break is made in a copy, and what the README runs fails.

The names are taken from the copy's failure, so that it is known to fail for its own reason. That
everything passes where nothing is broken is what the other tests are for.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from built_book import ROOT

CHAPTER = "book/02_em.ipynb"
JUNK = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.csv")


@pytest.fixture
def project(tmp_path) -> Path:
    """A copy of what the commands read, all of it there to be broken."""
    for folder in ("cgmm", "book/_ext", "book/_static", "book/_templates", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=JUNK)
    files = ["pyproject.toml", "_config.yml", "_toc.yml", "book/conftest.py", "book/references.bib"]
    for file in files:
        shutil.copy(ROOT / file, tmp_path / file)
    shutil.copy(ROOT / CHAPTER, tmp_path / CHAPTER)
    (tmp_path / "tests").mkdir()
    for name in ("all.args", "nbval_sanitise.cfg"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    (tmp_path / "book/_data").mkdir()
    for name in ("equations.toml", "errata.toml"):
        shutil.copy(ROOT / "book/_data" / name, tmp_path / "book/_data" / name)
    return tmp_path


def run(project: Path, *command: str) -> tuple[int, str]:
    """Exit status and output of a command of Python, in a copy whose package comes first."""
    environment = os.environ | {"PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=project, env=environment, check=False,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def replace(path: Path, old: str, new: str) -> None:
    """Break one line."""
    text = path.read_text(encoding="utf8")
    assert text.count(old) == 1, f"{old!r} is not in {path.name} once; choose another break"
    path.write_text(text.replace(old, new), encoding="utf8")


def delete(path: Path, name: str) -> None:
    """Take a function out of a file, and its name out of the room's door."""
    door = path.with_name("__init__.py")
    text, n_found = re.subn(rf'\b{name}, *|"{name}",', "", door.read_text(encoding="utf8"))
    assert n_found == 2, f"{name} is not once imported and once listed in {door}"
    door.write_text(text, encoding="utf8")
    lines = path.read_text(encoding="utf8").splitlines(keepends=True)
    (function,) = (
        node
        for node in ast.parse("".join(lines)).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    del lines[function.lineno - 1 : function.end_lineno]
    path.write_text("".join(lines), encoding="utf8")


# ---------------------------------------------------------------------------- a chapter's cells


def cells(project: Path) -> tuple[int, str]:
    """`pytest @tests/all.args book/02_em.ipynb`, up to the first cell that fails."""
    options = ["@tests/all.args", "-n0", "-x", "-p", "no:cacheprovider"]
    return run(project, "-m", "pytest", *options, CHAPTER)


@pytest.mark.slow
def test_a_renamed_function_fails_in_the_cell_that_imports_it(project):
    replace(project / "cgmm/mixture/pooling.py", "def lower_bound(", "def lower_limit(")
    status, said = cells(project)
    assert status == 1, said
    assert "cannot import name 'lower_bound' from 'cgmm.mixture.pooling'" in said
    assert str(project / "cgmm/mixture/pooling.py") in re.sub(r"\x1b\[[\d;]*m", "", said)


@pytest.mark.slow  # the tests beside it break other things in the same way
def test_a_changed_sign_fails_in_a_cell_that_computes(project):
    old, new = "log_totals[part] = top + np.log(total)", "log_totals[part] = top - np.log(total)"
    replace(project / "cgmm/numerics.py", old, new)
    status, said = cells(project)
    assert status == 1, said
    assert "cannot import" not in said
    assert re.search("Cell execution caused an exception|Cell outputs differ", said), said


# ---------------------------------------------------------------------------- equations


def test_a_deleted_function_fails_in_the_page_of_equations(project):
    shutil.copytree(ROOT / "tests", project / "tests", ignore=JUNK, dirs_exist_ok=True)
    for page in [*(ROOT / "book").glob("*.ipynb"), *(ROOT / "book").glob("*.md")]:
        shutil.copy(page, project / "book" / page.name)
    # What a test of the suite calls. The copy itself is in order, once it is written.
    tool = "tools/equations.py"
    status, said = run(project, tool)
    assert status == 0, said
    status, said = run(project, tool, "--check")
    assert status == 0, said
    delete(project / "cgmm/metric_learning/criteria.py", "weight_ratio")
    status, said = run(project, tool, "--check")
    assert status == 1, said
    # Stale if other code computes it as well; else it is named, since nothing explains that.
    assert re.search(r"equations\.md is stale|eq \d+: no tag in cgmm names it", said), said


def test_a_deleted_function_fails_in_the_pages_of_the_package(project):
    """`make book`, of one module and of the one row in the table of equations that names it."""
    table = (ROOT / "book/equations.md").read_text(encoding="utf8").splitlines()
    (row,) = (line for line in table if "`~cgmm.metric_learning.weight_ratio`" in line)
    code = "{py:func}`~cgmm.metric_learning.weight_ratio`"
    assert code in row
    module = "```{eval-rst}\n.. automodule:: cgmm.metric_learning\n   :members: whitening\n```\n"
    page = f"# The package\n\n{code} computes it.\n\n{module}"
    (project / "book/api.md").write_text(page, encoding="utf8")
    (project / "_toc.yml").write_text("format: jb-book\nroot: book/api\n", encoding="utf8")
    delete(project / "cgmm/metric_learning/criteria.py", "weight_ratio")
    builder = shutil.which("jupyter-book", path=str(Path(sys.executable).parent))
    status, said = run(project, builder, "build", ".", "--all", "-W", "-n", "--keep-going")
    assert status == 1
    assert "py:func reference target not found: cgmm.metric_learning.weight_ratio" in said
