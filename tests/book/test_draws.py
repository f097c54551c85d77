"""Test that chapters compare methods with at least twelve draws and paired standard errors.

`cgmm.metrics.paired_difference` refuses fewer than twelve draws when a cell runs. These tests
read the source: no cell loops over fewer seeds, and none computes a standard error by hand.
"""

import ast
from collections.abc import Iterator

import pytest
from cells import CHAPTERS, read_code_cells

from cgmm.metrics.uncertainty import FEWEST_DRAWS

SEEDS = {"s", "seed", "draw"}

# Cells that loop over few seeds but compare no methods, and the reason.
NO_COMPARISON = {
    ("10_gibbs_and_mean_field", "frozen"): "three chains from one network, shown one by one",
}


def list_loops(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield target and iterable of each loop; a loop over itertools.product counts as several."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            match node.target, node.iter:
                case ast.Tuple(elts=targets), ast.Call(args=parts) if len(targets) == len(parts):
                    yield from zip(targets, parts, strict=True)
                case whole:
                    yield whole


def list_variables(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def find_short_ranges(tree: ast.AST) -> Iterator[int]:
    """Yield n of each range(n) that has too few seeds to compare methods."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("range"), [ast.Constant(int(n))]) if n < FEWEST_DRAWS:
                yield n


def list_complaints(source: str) -> list[str]:
    """Return messages about loops over few seeds and standard errors computed by hand."""
    tree = ast.parse(source)
    faults = [
        f"{n} draws instead of at least {FEWEST_DRAWS}"
        for target, over in list_loops(tree)
        if list_variables(target) & SEEDS
        for n in find_short_ranges(over)
    ]
    by_hand = [n for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg == "ddof"]
    return faults + ["a standard error without cgmm.metrics.paired_difference"] * len(by_hand)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_comparisons_use_twelve_draws_and_paired_errors(path):
    complaints = {key: list_complaints(source) for key, source in read_code_cells(path)}
    found = {key: faults for key, faults in complaints.items() if faults}
    exempt = {key for chapter, key in NO_COMPARISON if chapter == path.stem}
    assert found.keys() == exempt, f"{found}; see CONTRIBUTING, Compare methods"
