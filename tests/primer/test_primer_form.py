"""The form of the primer: short, plain, and all of it behind one door."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cgmm import primer

PRIMER = Path(primer.__file__).parent
FILES = {path.stem: path for path in sorted(PRIMER.glob("*.py")) if path.stem != "__init__"}
LONGEST_FUNCTION, LONGEST_LINE, MOST_CODE = 15, 78, 550


def functions(stem: str) -> list[ast.FunctionDef]:
    tree = ast.parse(FILES[stem].read_text(encoding="utf8"))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def lines_of_code(node: ast.AST, source: str) -> int:
    """Lines that are neither blank nor comments nor docstrings."""
    documented = (ast.Module, ast.FunctionDef, ast.ClassDef)
    left_out = {
        line
        for inner in ast.walk(node)
        if isinstance(inner, documented) and ast.get_docstring(inner)
        for line in range(inner.body[0].lineno, inner.body[0].end_lineno + 1)
    }
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", len(source.splitlines()))
    told = enumerate(source.splitlines()[first - 1 : last], start=first)
    code = (n for n, line in told if line.strip() and not line.strip().startswith("#"))
    return len(set(code) - left_out)


@pytest.mark.parametrize("stem", FILES)
def test_functions_are_short_enough_to_be_known_by_heart(stem):
    source = FILES[stem].read_text(encoding="utf8")
    for node in functions(stem):
        assert lines_of_code(node, source) <= LONGEST_FUNCTION, node.name
        assert "\n" not in ast.get_docstring(node), f"{node.name}: one line says it"
    assert max(map(len, source.splitlines())) <= LONGEST_LINE
    # A legend of its letters.
    assert source.count("=====") >= 4


def test_the_whole_of_it_is_short():
    sources = [path.read_text(encoding="utf8") for path in FILES.values()]
    assert sum(lines_of_code(ast.parse(source), source) for source in sources) <= MOST_CODE


@pytest.mark.parametrize("stem", FILES)
def test_plain_numpy_and_nothing_hidden(stem):
    """No options, no checks, no classes but θ; of scipy only functions of numbers."""
    tree = ast.parse(FILES[stem].read_text(encoding="utf8"))
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Raise | ast.Assert | ast.Try)
        if isinstance(node, ast.FunctionDef):
            assert not node.args.defaults + node.args.kw_defaults, node.name
        if isinstance(node, ast.ClassDef):
            assert node.name == "Theta"
        if isinstance(node, ast.ImportFrom):
            plain = {"typing", "collections", "itertools", "numpy.typing", "scipy.special"}
            assert node.module in plain or node.module.startswith("cgmm.primer."), node.module
        if isinstance(node, ast.Import):
            assert [one.name for one in node.names] == ["numpy"]
