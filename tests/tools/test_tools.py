"""Every tool stands on its own feet: it imports nothing of the tests, and says how it is run."""

from __future__ import annotations

import ast

import pytest
from pages import ROOT

TOOLS = sorted((ROOT / "tools").rglob("*.py"))
# Names that an import in tools/ must not mean: the test modules and what they share.
OF_THE_TESTS = {path.stem for path in (ROOT / "tests").rglob("*.py")} - {"__init__"} | {"tests"}


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_tool_imports_nothing_of_the_tests(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf8"))))
    plain = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    full = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0}
    assert {name.partition(".")[0] for name in plain | full}.isdisjoint(OF_THE_TESTS)


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_command_says_how_it_is_run(path):
    text = path.read_text(encoding="utf8")
    said = ast.get_docstring(ast.parse(text)) or ""
    assert said.partition("\n")[0].endswith((".", ":", "?", "``."))
    if 'if __name__ == "__main__"' in text and path.stem != "__main__":
        assert f"python {path.relative_to(ROOT).as_posix()}" in said
