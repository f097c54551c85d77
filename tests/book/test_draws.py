"""Comparisons of methods in the chapters: at least twelve draws, and errors of paired differences.

`cgmm.metrics.paired_difference` refuses fewer than twelve draws when a cell runs. What can be read
off the source is held here: no cell goes over a handful of seeds, none reckons a standard error by
hand, and a caption or summary with a number that was found, not set, says of what draws it is.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

import pytest
from built_book import ROOT

from cgmm.metrics.paired import FEWEST_DRAWS

CHAPTERS = sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))
SEEDS = {"s", "seed", "draw"}

NO_COMPARISON = {
    ("10_gibbs_and_mean_field", "frozen"): "three chains from one network, shown one by one",
}


def loops(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Target and iterable of every loop; a loop over a product is several."""
    for node in ast.walk(tree):
        match node:
            case ast.For() | ast.comprehension():
                pass
            case _:
                continue
        match node.target, node.iter:
            case ast.Tuple(elts=targets), ast.Call(args=parts) if len(targets) == len(parts):
                yield from zip(targets, parts, strict=True)
            case whole:
                yield whole


def names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def short_ranges(tree: ast.AST) -> Iterator[int]:
    """The n of every range(n) with too few draws to compare by."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("range"), args=[ast.Constant(int(n))]):
                if n < FEWEST_DRAWS:
                    yield n


def complaints(source: str) -> list[str]:
    """What a cell does that a comparison must not do."""
    tree = ast.parse(source)
    few = [
        f"{n} draws, of {FEWEST_DRAWS} at least"
        for target, over in loops(tree)
        if names(target) & SEEDS
        for n in short_ranges(over)
    ]
    by_hand = [n for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg == "ddof"]
    return few + ["an error reckoned by hand: cgmm.metrics.paired_difference has it"] * len(by_hand)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_comparisons_have_twelve_draws_and_paired_errors(path):
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    sources = {c["id"]: "".join(c["source"]) for c in cells if c["cell_type"] == "code"}
    found = {key: found for key, source in sources.items() if (found := complaints(source))}
    known = {key for chapter, key in NO_COMPARISON if chapter == path.stem}
    new = {key: found[key] for key in found.keys() - known}
    assert not new, f"{path.stem}: {new}; see CONTRIBUTING, Compare methods"
    mended = known - found.keys()
    assert not mended, f"{path.stem}: delete the lines of {sorted(mended)} from this file"


NUMBER = re.compile(r"\d+\.\d+|\d+(?=\s?%)")
NOT_PROSE = re.compile(r"\$[^$]*\$|\{[^}]*\}`[^`]*`")
DRAWS = re.compile(r"draw|realisation|seed|sample|standard error|cell of the map")
SENTENCE = re.compile(r"^\d+\. .*(?:\n(?!\d+\. |\n).*)*", re.MULTILINE)


def settings(tree: ast.AST) -> set[float]:
    """Every number that code states, as itself and in per cent."""
    constants = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    numbers = [float(value) for value in constants if isinstance(value, int | float)]
    return {round(number * unit, 9) for number in numbers for unit in (1, 100)}


def set_for(tree: ast.AST, chapter: list[ast.AST]) -> set[float]:
    """What a cell states, and the cells that make the names that it uses."""
    feeding = [cell for cell in chapter if made(cell) & names(tree)]
    return set().union(*map(settings, [tree, *feeding]))


def made(tree: ast.AST) -> set[str]:
    stored = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return stored | {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def captions_and_summary(cells: list[dict]) -> Iterator[tuple[str, set[float]]]:
    """Each caption and each sentence of the summary, with the numbers that code has set for it."""
    trees = {c["id"]: ast.parse("".join(c["source"])) for c in cells if c["cell_type"] == "code"}
    for cell in cells:
        caption = cell["metadata"].get("mystnb", {}).get("figure", {}).get("caption")
        if caption:
            yield caption, set_for(trees[cell["id"]], list(trees.values()))
        summary = "".join(cell["source"]).partition("## Summary")[2].partition("\n## ")[0]
        yield from ((sentence, set()) for sentence in SENTENCE.findall(summary))


def silent(cells: list[dict]) -> list[str]:
    """Texts with a number that was found, and no word of draws."""
    texts = [(NOT_PROSE.sub("", text), known) for text, known in captions_and_summary(cells)]
    return [
        text
        for text, known in texts
        if {float(n) for n in NUMBER.findall(text)} - known and not DRAWS.search(text)
    ]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_number_that_was_found_says_of_what_draws(path):
    assert silent(json.loads(path.read_text(encoding="utf8"))["cells"]) == []


def test_found_and_set_are_told_apart():
    figure = {"figure": {"caption": "With a floor of 0.1 it errs by 0.27"}}
    cells = [
        {"id": "a", "cell_type": "code", "source": "rate = 0.1", "metadata": {}},
        {"id": "b", "cell_type": "code", "source": "run(rate)", "metadata": {"mystnb": figure}},
    ]
    assert silent(cells) == ["With a floor of 0.1 it errs by 0.27"]
    figure["figure"]["caption"] += ", the mean of twelve draws"
    assert silent(cells) == []
    figure["figure"]["caption"] = "With a floor of 0.1 it errs more"
    assert silent(cells) == []
