"""Test that the table of contents lists all pages, and that all files state the same versions."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires

from built_book import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sphinx_external_toc.parsing import parse_toc_yaml

import cgmm

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
RANGES = [
    Requirement(line)
    for lines in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for line in lines
    if not line.startswith(PROJECT["name"])
]


def read_pinned_versions() -> dict[str, str]:
    """Return the versions that requirements-dev.lock pins for this Python and system."""
    lines = (ROOT / "requirements-dev.lock").read_text(encoding="utf8").splitlines()
    pinned = [Requirement(pin) for line in lines if (pin := line.partition("#")[0].strip())]
    assert all(re.fullmatch(r"==[\w.]+", str(one.specifier)) for one in pinned)
    here = [one for one in pinned if one.marker is None or one.marker.evaluate()]
    return {canonicalize_name(one.name): str(one.specifier)[2:] for one in here}


def list_required_packages(wanted: list[Requirement]) -> Iterator[Requirement]:
    """Yield these requirements and, recursively, those of the installed packages they name."""
    waiting, visited = list(wanted), set()
    while waiting:
        one = waiting.pop()
        yield one
        for extra in {"", *one.extras}:
            if (key := (canonicalize_name(one.name), extra)) not in visited:
                visited.add(key)
                further = map(Requirement, requires(one.name) or [])
                waiting += [
                    need for need in further
                    if need.marker is None or need.marker.evaluate({"extra": extra})
                ]  # fmt: skip


def test_pinned_versions_are_those_that_the_ranges_need():
    """Check, without a network, that `make lock` would pin the same packages."""
    pinned, reached = read_pinned_versions(), set()
    for need in list_required_packages(RANGES):
        name = canonicalize_name(need.name)
        assert need.specifier.contains(pinned[name]), need
        reached.add(name)
    assert reached == set(pinned)


def test_the_table_of_contents_lists_exactly_the_existing_pages():
    folders = [ROOT / "book", *(ROOT / "book/api").glob("**")]
    files = [path for folder in folders for path in folder.iterdir()]
    sources = [path for path in files if path.suffix in {".md", ".ipynb"}]
    there = [path.relative_to(ROOT).with_suffix("").as_posix() for path in sources]
    assert sorted(there) == sorted(parse_toc_yaml(ROOT / "_toc.yml"))


def test_all_files_name_the_same_version_of_the_package():
    version = PROJECT["version"]
    assert cgmm.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf8")
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
    assert re.search(r"^## (?!Unreleased$)(.+)$", log, re.MULTILINE)[1] == version
