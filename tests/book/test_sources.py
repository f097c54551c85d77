"""The lists of the project agree with each other: table of contents, package page, versions."""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from built_book import ROOT
from packaging.requirements import Requirement
from sphinx_external_toc.parsing import parse_toc_yaml

import cgmm

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
RANGES = [
    Requirement(line)
    for lines in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for line in lines
    if not line.startswith("cgmm")
]


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf8").splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"==[\w.]+", str(one.specifier)) for one in pinned)
    return {one.name.lower(): str(one.specifier)[2:] for one in pinned}


@pytest.mark.parametrize("wanted", RANGES, ids=str)
def test_every_range_holds_a_pinned_version(wanted):
    assert wanted.specifier.contains(pins()[wanted.name.lower()])


def test_every_chapter_is_in_the_table_of_contents():
    listed = {Path(name).with_suffix("").name for name in parse_toc_yaml(ROOT / "_toc.yml")}
    there = {path.stem for path in (ROOT / "book").iterdir() if path.suffix in {".md", ".ipynb"}}
    assert there == listed


def test_the_package_page_lists_every_module():
    page = (ROOT / "book/api.md").read_text(encoding="utf8")
    listed = re.findall(r"automodule:: ([\w.]+)", page)
    package = Path(find_spec("cgmm").origin).parent
    there = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in package.rglob("*.py")
    }
    assert sorted(listed) == sorted(there)


def test_one_version_is_named_everywhere():
    version = PROJECT["version"]
    assert cgmm.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf8")
    newest = re.search(
        r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf8"), re.MULTILINE
    )
    assert newest[1] == version
