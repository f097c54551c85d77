"""Test that the primer's code is short and plain enough for readers to learn it by heart."""

import ast
import re
from pathlib import Path

import pytest

from cgmm import primer

PRIMER = Path(primer.__file__).parent
FILES = {path.stem: path for path in sorted(PRIMER.glob("*.py")) if path.stem != "__init__"}
LONGEST_FUNCTION, LONGEST_LINE, MOST_CODE = 15, 78, 550
# The only modules that the primer may import.
PERMITTED = re.compile(
    r"numpy(\.typing)?|typing|collections|itertools|scipy\.special|cgmm\.primer\..*"
)


@pytest.mark.parametrize("stem", FILES)
def test_functions_of_the_primer_are_short_and_plain(stem):
    """Functions have no defaults and no checks, and Theta is the only class."""
    source = FILES[stem].read_text(encoding="utf8")
    for node in ast.walk(ast.parse(source)):
        assert not isinstance(node, ast.Raise | ast.Assert | ast.Try)
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno <= LONGEST_FUNCTION, node.name
            assert not node.args.defaults + node.args.kw_defaults, node.name
        if isinstance(node, ast.ClassDef):
            assert node.name == "Theta"
        if isinstance(node, ast.ImportFrom):
            assert PERMITTED.fullmatch(node.module), node.module
        if isinstance(node, ast.Import):
            assert all(PERMITTED.fullmatch(alias.name) for alias in node.names)
    assert max(map(len, source.splitlines())) <= LONGEST_LINE


def test_the_primer_has_few_lines_of_code():
    """Count lines that are neither blank nor comments nor docstrings."""
    source = "\n".join(path.read_text("utf8") for path in FILES.values())
    lines = map(str.strip, re.sub(r'"""(?s:.*?)"""', "", source).splitlines())
    assert sum(bool(line) and not line.startswith("#") for line in lines) <= MOST_CODE
