"""Test the contents of the wheel and the source distribution, and the notes of a release."""

import os
import shutil
from pathlib import Path

import pytest
from package import CLUTTER, ROOT, build, require_release_notes, unpack_sdist

if not (ROOT / "cgmm").is_dir():
    pytest.skip(
        "only an installed package is tested, so it cannot be built", allow_module_level=True
    )


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> tuple[set[str], set[str]]:
    """Build both distributions as `make package` does, and return the paths in each."""
    place = tmp_path_factory.mktemp("package")
    sdist, wheel = build(ROOT, place, isolated=False)
    shutil.unpack_archive(wheel, place / "wheel", "zip")
    return list_unpacked(unpack_sdist(sdist, place / "sdist")), list_unpacked(place / "wheel")


def list_unpacked(folder: Path) -> set[str]:
    """Return the paths of all files of an unpacked distribution."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def list_files(folder: str) -> set[str]:
    """Return the paths of a folder's files in the repository, without caches and checkpoints."""
    paths = set()
    for place, folders, names in os.walk(ROOT / folder):
        clutter = CLUTTER(place, [*folders, *names])
        folders[:] = set(folders) - clutter
        kept = (Path(place, name).relative_to(ROOT) for name in set(names) - clutter)
        paths |= {path.as_posix() for path in kept if path.suffix not in {".pyc", ".pyo"}}
    return paths


def test_the_wheel_contains_the_package_and_nothing_else(distributions):
    _, names = distributions
    code = {name for name in names if ".dist-info/" not in name}
    assert code == list_files("cgmm")
    assert "cgmm/py.typed" in code
    assert {name.rpartition("/")[2] for name in names - code} >= {"METADATA", "LICENSE", "RECORD"}


def test_the_source_distribution_contains_all_that_tests_and_the_book_need(distributions):
    names, _ = distributions
    for folder in ("cgmm", "tests", "tools", "book", "benchmarks", "slides"):
        assert list_files(folder) <= names, folder
    top = {"pyproject.toml", "requirements.txt", "requirements-dev.lock", "Makefile", "README.md"}
    assert top | {"_toc.yml", "_config.yml"} <= names
    unwanted = {"_build", ".git", ".venv", "__pycache__", ".ipynb_checkpoints"}
    assert not {name for name in names if unwanted & set(name.split("/"))}
    assert not {name for name in names if name.startswith(("build/", "dist/", "env/"))}


def test_solutions_and_rubrics_are_not_distributed(distributions):
    names = ("source/", "mistakes/", "variants/", "exam/", "projects/", "rubrics/")
    secret = tuple(f"assignments/{name}" for name in names)
    sdist, _ = distributions
    assert not {path for path in sdist if path.startswith(secret)}
    assert {path for path in list_files("assignments") if not path.startswith(secret)} <= sdist


def test_a_release_requires_notes_and_a_tag_with_its_version(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    log = tmp_path / "CHANGELOG.md"
    log.write_text("# Changes\n\n## 1.2.3\n\n## 1.2.2\n")
    require_release_notes(tmp_path, None)
    require_release_notes(tmp_path, "v1.2.3")
    with pytest.raises(SystemExit, match=r"the tag is v1\.2\.4"):
        require_release_notes(tmp_path, "v1.2.4")
    log.write_text("# Changes\n\n## 1.2.2\n")
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md begins with 1\.2\.2"):
        require_release_notes(tmp_path, None)
