"""Random mutants: every small mistake that a rule can make in a module, and a sample of them.

Rules look at one node of the syntax tree and propose edits of its text. Messages, docstrings,
annotations, checks of input and constructors' assignments are left alone: they are not mathematics.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .table import Mutant, source


class Edit(NamedTuple):
    """Replace bytes start .. stop of the source."""

    start: int
    stop: int
    text: str
    rule: str


ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*", "&": "|"}
ARITHMETIC |= {"|": "&"}
COMPARISONS = {
    "<": ["<=", ">"],
    "<=": ["<", ">="],
    ">": [">=", "<"],
    ">=": [">", "<="],
    "==": ["!="],
    "!=": ["=="],
    "is not": ["is"],
    "is": ["is not"],
    "not in": ["in"],
    "in": ["not in"],
}
SYMBOLS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in", ast.And: "and", ast.Or: "or",
}  # fmt: skip
# Functions that are mistaken for each other, and those that are forgotten.
SWAPPED = {
    "max": "min", "min": "max", "argmax": "argmin", "argmin": "argmax", "maximum": "minimum",
    "minimum": "maximum", "any": "all", "all": "any", "sum": "max", "mean": "sum",
    "zeros": "ones", "ones": "zeros", "cumsum": "cumprod", "logaddexp": "maximum",
    "log": "log1p", "expm1": "exp",
}  # fmt: skip
FORGOTTEN = {"log", "exp", "sqrt", "abs", "square", "diag", "sort", "unique", "expm1"}
# What checks, explains and reports, by its name.
REPORTS = re.compile(r"_?(require|refuse|check|validate|explain|name|warn|said|show|report|print)")
OPTIONS = {"minlength", "initial", "kind", "where", "side", "prepend", "append", "largest"}


def generate(module: str) -> Iterator[Mutant]:
    """Every mutant that the rules make of a module, in the order of its text."""
    for edit in _Rules(source(module)).edits():
        if mutant := _apply(module, edit):
            yield mutant


def sample(modules: list[str], n_mutants: int, seed: int) -> list[Mutant]:
    """Of all mutants of some modules a random few, none of them twice."""
    every = [(module, edit) for module in modules for edit in _Rules(source(module)).edits()]
    random.Random(seed).shuffle(every)
    chosen: dict[str, Mutant] = {}
    for module, edit in every:
        if len(chosen) == n_mutants:
            break
        if mutant := _apply(module, edit):
            chosen.setdefault(mutant.key, mutant)
    return list(chosen.values())


def _apply(module: str, edit: Edit) -> Mutant | None:
    """The mutant that an edit makes; None if the text does not compile or means the same."""
    raw = source(module).encode()
    mutated = (raw[: edit.start] + edit.text.encode() + raw[edit.stop :]).decode()
    try:
        if ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(source(module))):
            return None
    except SyntaxError:
        return None
    line = raw[: edit.start].count(b"\n") + 1
    return Mutant(module, f"line {line}, {edit.rule}", mutated)


class _Rules:
    """Walks over the mathematics of one source and proposes edits."""

    def __init__(self, text: str):
        self.raw, self.tree = text.encode(), ast.parse(text)
        lines = self.raw.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))

    def edits(self) -> Iterator[Edit]:
        """All edits, in the order of the text."""
        for statement in self.tree.body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                yield from self._walk(statement)

    def _walk(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert) or _reports(node):
            return
        if isinstance(node, ast.FunctionDef):
            if node.name == "__init__" and all(_stores_argument(s) for s in node.body):
                return
            children: list[ast.AST] = list(node.body)
        elif isinstance(node, ast.ClassDef):
            children = [s for s in node.body if isinstance(s, ast.FunctionDef)]
        elif isinstance(node, ast.AnnAssign):
            children = [node.value] if node.value else []
        else:
            children = list(ast.iter_child_nodes(node))
        for rule in RULES.get(type(node), ()):
            yield from rule(self, node)
        for child in children:
            if not _is_docstring(child):
                yield from self._walk(child)

    def place(self, line: int, column: int) -> int:
        """Of a node's line and column, which count bytes."""
        return self.starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node stands."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self.place(node.lineno, node.col_offset),
            self.place(node.end_lineno, node.end_col_offset),
        )

    def text(self, node: ast.expr | ast.stmt) -> str:
        """What stands there."""
        start, stop = self.span(node)
        return self.raw[start:stop].decode()

    def instead(self, node: ast.expr | ast.stmt, text: str, rule: str) -> Edit:
        """Another text for a node."""
        return Edit(*self.span(node), text, rule)

    def between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Edit]:
        """Another operator between two operands."""
        start, stop = self.span(left)[1], self.span(right)[0]
        word = r"\s+".join(map(re.escape, old.split()))
        found = re.search(rf"(?<![*/<>=!]){word}(?![*/=])", self.raw[start:stop].decode())
        if found:
            begin = start + len(self.raw[start:stop].decode()[: found.start()].encode())
            yield Edit(begin, begin + len(found.group()), new, f"{old} -> {new}")


def _stores_argument(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)


def _reports(node: ast.AST) -> bool:
    """Whether a node defines a check or a message, calls one, or asks whether to print."""
    if isinstance(node, ast.FunctionDef):
        return bool(REPORTS.match(node.name))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return bool(REPORTS.match(_name(node.value)))
    return isinstance(node, ast.If) and "verbose" in ast.unparse(node.test)


def _name(node: ast.Call) -> str:
    """What a call calls, without what it is an attribute of."""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


# ---------------------------------------------------------------------------- the rules


def _arithmetic(rules: _Rules, node: ast.BinOp) -> Iterator[Edit]:
    old = SYMBOLS.get(type(node.op), "")
    if old in ARITHMETIC:
        yield from rules.between(node.left, node.right, old, ARITHMETIC[old])
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        yield rules.instead(node, f"({rules.text(node.left)})", f"right side of {old} forgotten")


def _in_place(rules: _Rules, node: ast.AugAssign) -> Iterator[Edit]:
    old = SYMBOLS.get(type(node.op), "")
    if old in ARITHMETIC:
        new = ARITHMETIC[old]
        yield from rules.between(_as_expression(node.target), node.value, f"{old}=", f"{new}=")
    yield rules.instead(node, "pass", "statement removed")


def _as_expression(node: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr:
    return node


def _comparison(rules: _Rules, node: ast.Compare) -> Iterator[Edit]:
    operands = [node.left, *node.comparators]
    for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
        old = SYMBOLS[type(op)]
        for new in COMPARISONS[old]:
            yield from rules.between(left, right, old, new)


def _logic(rules: _Rules, node: ast.BoolOp) -> Iterator[Edit]:
    old = SYMBOLS[type(node.op)]
    for left, right in zip(node.values, node.values[1:], strict=False):
        yield from rules.between(left, right, old, "or" if old == "and" else "and")


def _sign(rules: _Rules, node: ast.UnaryOp) -> Iterator[Edit]:
    word = {ast.Not: "not", ast.Invert: "~", ast.USub: "-"}.get(type(node.op))
    if word:
        yield rules.instead(node, f"({rules.text(node.operand)})", f"{word} dropped")


def _constant(rules: _Rules, node: ast.Constant) -> Iterator[Edit]:
    value = node.value
    if isinstance(value, bool):
        yield rules.instead(node, str(not value), f"{value} -> {not value}")
    elif isinstance(value, int):
        for other in (value + 1, value - 1):
            yield rules.instead(node, f"({other})", f"{value} -> {other}")
    elif isinstance(value, float) and value == value and abs(value) < 1e300:
        other_value = 2 * value if value else 1.0
        yield rules.instead(node, repr(other_value), f"{value} -> {other_value}")


def _call(rules: _Rules, node: ast.Call) -> Iterator[Edit]:
    name = _name(node)
    if name in SWAPPED:
        stop = rules.span(node.func)[1]
        yield Edit(stop - len(name), stop, SWAPPED[name], f"{name} -> {SWAPPED[name]}")
    if name in FORGOTTEN and node.args:
        yield rules.instead(node, f"({rules.text(node.args[0])})", f"{name} forgotten")
    for keyword in node.keywords:
        if keyword.arg == "axis" and isinstance(keyword.value, ast.Constant):
            axis = rules.text(keyword.value)
            other = {"0": "1", "1": "0", "2": "1", "3": "2"}.get(axis, "0")
            yield rules.instead(keyword.value, other, f"axis {axis} -> {other}")
        elif keyword.arg in OPTIONS:
            start, stop = rules.place(keyword.lineno, keyword.col_offset), rules.span(keyword.value)
            yield Edit(start, stop[1], "", f"{keyword.arg} forgotten")


def _attribute(rules: _Rules, node: ast.Attribute) -> Iterator[Edit]:
    if node.attr == "T" and isinstance(node.ctx, ast.Load):
        yield rules.instead(node, f"({rules.text(node.value)})", "transpose forgotten")


def _slice(rules: _Rules, node: ast.Slice) -> Iterator[Edit]:
    for bound in (node.lower, node.upper, node.step):
        if bound is not None:
            yield rules.instead(bound, "", "bound of a slice forgotten")


def _statement(rules: _Rules, node: ast.Expr) -> Iterator[Edit]:
    if isinstance(node.value, ast.Call):
        yield rules.instead(node, "pass", "statement removed")


def _assignment(rules: _Rules, node: ast.Assign) -> Iterator[Edit]:
    if isinstance(node.targets[0], ast.Subscript):
        yield rules.instead(node, "pass", "statement removed")


def _condition(rules: _Rules, node: ast.If | ast.IfExp) -> Iterator[Edit]:
    for value in ("True", "False"):
        yield rules.instead(node.test, value, f"condition -> {value}")


RULES: dict[type, tuple[Callable[..., Iterator[Edit]], ...]] = {
    ast.BinOp: (_arithmetic,),
    ast.AugAssign: (_in_place,),
    ast.Compare: (_comparison,),
    ast.BoolOp: (_logic,),
    ast.UnaryOp: (_sign,),
    ast.Constant: (_constant,),
    ast.Call: (_call,),
    ast.Attribute: (_attribute,),
    ast.Slice: (_slice,),
    ast.Expr: (_statement,),
    ast.Assign: (_assignment,),
    ast.If: (_condition,),
    ast.IfExp: (_condition,),
}
