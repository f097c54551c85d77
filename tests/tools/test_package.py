"""Test the contents and metadata of the two distributions."""

import os
import shutil
from pathlib import Path

import pytest
from package import CLUTTER, ROOT, build, require_release_notes, unpacked

if not (ROOT / "cgmm").is_dir():
    pytest.skip("an installed package is tested: no source to build", allow_module_level=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[set[str], set[str]]:
    """Return the contents of both distributions, built as `make package` does."""
    place = tmp_path_factory.mktemp("package")
    sdist, wheel = build(ROOT, place, isolated=False)
    shutil.unpack_archive(wheel, place / "wheel", "zip")
    folders = unpacked(sdist, place / "sdist"), place / "wheel"
    sdist, wheel = ({path.relative_to(folder).as_posix() for path in folder.rglob("*")
                     if path.is_file()} for folder in folders)  # fmt: skip
    return sdist, wheel


def files(folder: str) -> set[str]:
    """Return paths below a folder of the project, without files that running it creates."""
    found = set()
    for place, folders, names in os.walk(ROOT / folder):
        left = CLUTTER(place, [*folders, *names])
        folders[:] = set(folders) - left
        kept = (Path(place, name).relative_to(ROOT) for name in set(names) - left)
        found |= {path.as_posix() for path in kept if path.suffix not in {".pyc", ".pyo"}}
    return found


def test_the_wheel_holds_the_package_and_nothing_else(built):
    _, names = built
    code = {name for name in names if ".dist-info/" not in name}
    assert code == files("cgmm")
    assert "cgmm/py.typed" in code
    assert {name.rpartition("/")[2] for name in names - code} >= {"METADATA", "LICENSE", "RECORD"}


def test_the_source_distribution_holds_what_its_tests_and_the_book_need(built):
    names, _ = built
    for folder in ("cgmm", "tests", "tools", "book", "benchmarks", "slides"):
        assert files(folder) <= names, folder
    top = {"pyproject.toml", "requirements.txt", "requirements-dev.lock", "Makefile", "README.md"}
    assert top | {"_toc.yml", "_config.yml"} <= names
    built_ones = ("_build", "build", "dist", ".git", ".venv", "env")
    assert not {name for name in names if name.partition("/")[0] in built_ones}
    assert not {name for name in names if "__pycache__" in name or ".ipynb_checkpoints" in name}


def test_solutions_and_rubrics_are_not_distributed(built):
    kept = tuple(
        f"assignments/{name}"
        for name in ("source/", "mistakes/", "variants/", "exam/", "projects/", "rubrics/")
    )
    names, _ = built
    assert not {name for name in names if name.startswith(kept)}
    programs = {name for name in files("assignments") if not name.startswith(kept)}
    assert programs <= names


def test_a_release_needs_its_notes_and_its_own_tag(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    log = tmp_path / "CHANGELOG.md"
    log.write_text("# Changes\n\n## 1.2.3\n\n## 1.2.2\n")
    require_release_notes(tmp_path, None)
    require_release_notes(tmp_path, "v1.2.3")
    with pytest.raises(SystemExit, match=r"the tag is v1\.2\.4"):
        require_release_notes(tmp_path, "v1.2.4")
    log.write_text("# Changes\n\n## 1.2.2\n")
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md opens with 1\.2\.2"):
        require_release_notes(tmp_path, None)
