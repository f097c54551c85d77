"""The type hints of the package hold, and a user's checker sees them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import typing_example

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
MISTAKES = TESTS / "typing_mistakes.py"


@pytest.fixture(scope="module")
def findings() -> tuple[str, Counter[tuple[str, int, str]]]:
    """What mypy says of the package, the example and the mistakes: (file, line, code)."""
    targets = ["cgmm", "tests/typing_example.py", str(MISTAKES.relative_to(ROOT))]
    command = [sys.executable, "-m", "mypy", "--no-pretty", "--no-error-summary", *targets]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    found = re.findall(r"^(.+?):(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE)
    assert len(found) == done.stdout.count(": error: ")
    return done.stdout, Counter((Path(path).name, int(line), code) for path, line, code in found)


@pytest.mark.slow  # `make lint` says it, too
def test_the_package_and_the_example_have_the_types_that_they_claim(findings):
    text, found = findings
    assert {place for place in found if place[0] != MISTAKES.name} == set(), text


@pytest.mark.slow  # as the one above
def test_every_mistake_is_found_and_nothing_else_in_its_file(findings):
    text, found = findings
    lines = MISTAKES.read_text(encoding="utf8").splitlines()
    wanted = Counter(
        (MISTAKES.name, number, code)
        for number, line in enumerate(lines, start=1)
        for code in line.partition("# wrong: ")[2].split()
    )
    assert wanted.total() > 20
    assert Counter({k: n for k, n in found.items() if k[0] == MISTAKES.name}) == wanted, text


def test_the_example_runs():
    assert typing_example.run() == ["estimators", "core", "engines"]


def test_every_exemption_names_its_error_and_its_reason():
    for path in sorted((ROOT / "cgmm").rglob("*.py")):
        lines = path.read_text(encoding="utf8").splitlines()
        for before, line in zip(["", *lines], lines, strict=False):
            if "type: ignore" in line:
                assert re.search(r"# type: ignore\[[a-z-]+\]", line), (path, line)
                reason = before.strip().startswith("#") or re.search(r"\]\s+# \w", line)
                assert reason, f"{path}: say above it why: {line}"
