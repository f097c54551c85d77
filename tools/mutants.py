"""Mutation testing: is there a test that notices when the mathematics of cgmm is made wrong?

A *mutant* is the package with one small mistake in it, made by a rule from the source: operators,
constants, axes, functions, statements. A test that fails kills it; one that no test kills is a
missing test, or changes nothing that anybody could see.

    python -m tools.mutants                            a hundred, from all modules
    python -m tools.mutants mixture --number 50        of a subpackage or module

One session of pytest imports and collects once, and never runs a test itself: it forks for each
mutant, and the child puts the mistake into the functions that are loaded already. mutmut 3 forks
too, runs only the tests that reach a function, and remembers results; it replaces this file as soon
as it has rules for numerical mistakes. Those here that it lacks: a forgotten ``log``, ``sqrt`` or
``T``, ``max`` in place of ``min``, ``maximum`` in place of ``logaddexp``, a slice without its
bound, a statement left out.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import gc
import importlib
import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# The subpackages whose files compute something.
MATHEMATICS = (
    "numerics", "given", "network", "inference", "mixture", "kmeans", "metric_learning", "metrics",
    "scenarios", "diagnose", "decide", "primer",
)  # fmt: skip
# What a test may take, in seconds of the processor and bytes: no test comes near it.
MAX_SECONDS, MAX_MEMORY = 30.0, 6 * 2**30
ENVIRONMENT = {
    # The same examples in each run, and threads that do not fight for cores.
    **dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1"),
    "CI": "true",
    "MPLBACKEND": "agg",
}
PYTEST = [
    "-q", "-s", "--no-header", "--tb=no", "--doctest-modules", "--ignore-glob=*/conftest.py",
    "--continue-on-collection-errors", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-p", "no:nbval", "--disable-warnings", "-m", "not slow",
]  # fmt: skip


def modules() -> list[str]:
    """Every file of the mathematics: "numerics", "mixture.em"; doors compute nothing."""
    package = ROOT / "cgmm"
    paths = [path for subpackage in MATHEMATICS for path in (package / subpackage).glob("*.py")]
    paths += [path for subpackage in MATHEMATICS if (path := package / f"{subpackage}.py").exists()]
    names = [".".join(path.relative_to(package).with_suffix("").parts) for path in paths]
    return sorted(name for name in names if not name.endswith("__init__"))


def path_of(module: str) -> Path:
    """The file of a module."""
    return ROOT / "cgmm" / (module.replace(".", "/") + ".py")


def guards(module: str) -> list[str]:
    """Return the tests of a module: its doctests, those that name it, and those of its users."""
    subpackage, _, stem = module.partition(".")
    tests = ROOT / "tests"
    own = sorted([*(tests / subpackage).glob("test_*.py"), *tests.glob(f"test_{subpackage}.py")])
    named = re.compile(rf"\b{stem or subpackage}\b")
    own.sort(key=lambda path: not named.search(path.read_text(encoding="utf-8")))
    subpackages = [
        path for name in MATHEMATICS for path in sorted((tests / name).glob("test_*.py"))
    ]
    files = [path_of(module), *own, *sorted(tests.glob("test_*.py")), *subpackages]
    return list(dict.fromkeys(path.relative_to(ROOT).as_posix() for path in files))


# ---------------------------------------------------------------------------- a mutant


class Mutant(NamedTuple):
    """A node of a module's syntax tree, and what stands there by mistake."""

    module: str
    statement: ast.stmt
    """The smallest one around the node."""
    parent: ast.AST
    field: str
    at: int | None
    """Where the node stands in the parent's field, if that is a list."""
    new: ast.AST

    @contextmanager
    def made(self) -> Iterator[ast.Module]:
        """The tree with the mistake, within this block."""
        node = getattr(self.parent, self.field)
        there = self.new if self.at is None else [*node[: self.at], self.new, *node[self.at + 1 :]]
        setattr(self.parent, self.field, there)
        yield ast.fix_missing_locations(tree_of(self.module))
        setattr(self.parent, self.field, node)

    @property
    def diff(self) -> str:
        """Lines that are lost, and lines that are new."""
        before = ast.unparse(self.statement).splitlines()
        there = getattr(self.parent, self.field)
        is_whole = self.statement is (there if self.at is None else there[self.at])
        with self.made():
            after = ast.unparse(self.new if is_whole else self.statement).splitlines()
        lines = [line for line in difflib.ndiff(before, after) if line[0] in "-+"]
        return "\n".join([f"{self.module}, line {self.statement.lineno}", *lines])


@cache
def tree_of(module: str) -> ast.Module:
    """The syntax tree of a module, as it stood when first asked for."""
    return ast.parse(path_of(module).read_text(encoding="utf-8"))


def generate(module: str) -> Iterator[Mutant]:
    """Every mutant that the rules make of a module, in the order of its text."""
    for definition in tree_of(module).body:
        if isinstance(definition, ast.FunctionDef | ast.ClassDef) and not _reports(definition):
            yield from _below(module, definition, definition)


def sample(names: list[str], n_mutants: int, seed: int) -> list[Mutant]:
    """Return a random sample of the mutants of some modules, without repeats."""
    every = [mutant for name in names for mutant in generate(name)]
    random.Random(seed).shuffle(every)
    chosen: dict[str, Mutant] = {}
    for mutant in every:
        if len(chosen) == n_mutants:
            break
        chosen.setdefault(mutant.diff, mutant)
    return list(chosen.values())


def _below(module: str, node: ast.AST, statement: ast.stmt) -> Iterator[Mutant]:
    """Mutants of what stands below a node and computes."""
    is_definition = isinstance(node, ast.FunctionDef | ast.ClassDef)
    for field, value in ast.iter_fields(node):
        if field == "annotation" or (is_definition and field != "body"):
            continue
        several = isinstance(value, list)
        for at, child in enumerate(value if several else [value]):
            if not isinstance(child, ast.AST) or _reports(child):
                continue
            around = child if isinstance(child, ast.stmt) else statement
            for new in mistakes(child):
                new = ast.copy_location(new, child)
                yield Mutant(module, around, node, field, at if several else None, new)
            yield from _below(module, child, around)


# What checks, explains and reports, by its name: messages are not mathematics.
REPORTS = re.compile(r"_?(require|refuse|check|validate|explain|name|warn|said|show|report|print)")


def _reports(node: ast.AST) -> bool:
    """Return whether a node is a message or docstring, belongs to a check, or stores arguments."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Assert() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(name="__init__"):
            stores = (
                isinstance(s, ast.Assign) and isinstance(s.value, ast.Name) for s in node.body
            )
            return all(stores)
        case ast.FunctionDef():
            return bool(REPORTS.match(node.name))
        case ast.Expr(value=ast.Call()):
            return bool(REPORTS.match(_name(node.value)))
        case ast.If():
            return "verbose" in ast.unparse(node.test)
    return False


# ---------------------------------------------------------------------------- the rules

ARITHMETIC: dict[type, type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}  # fmt: skip
COMPARISONS: dict[type, tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
# Functions that are mistaken for each other, and those that are forgotten.
SWAPPED = {
    "max": "min", "min": "max", "argmax": "argmin", "argmin": "argmax", "maximum": "minimum",
    "minimum": "maximum", "any": "all", "all": "any", "sum": "max", "mean": "sum",
    "zeros": "ones", "ones": "zeros", "cumsum": "cumprod", "logaddexp": "maximum",
    "log": "log1p", "expm1": "exp",
}  # fmt: skip
FORGOTTEN = {"log", "exp", "sqrt", "abs", "square", "diag", "sort", "unique", "expm1"}
OPTIONS = {"minlength", "initial", "kind", "where", "side", "prepend", "append", "largest"}
AXES = {0: 1, 1: 0, 2: 1, 3: 2}


def mistakes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the mutations of a node."""
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in ARITHMETIC:
            yield _other(node, op=ARITHMETIC[type(op)]())
            yield node.left if isinstance(node, ast.BinOp) else ast.Pass()
        case ast.Compare():
            for i, op in enumerate(node.ops):
                for new in COMPARISONS[type(op)]:
                    yield _other(node, ops=[*node.ops[:i], new(), *node.ops[i + 1 :]])
        case ast.BoolOp():
            yield _other(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant(value=bool()):
            yield _other(node, value=not node.value)
        case ast.Constant(value=int()):
            yield from (_other(node, value=node.value + by) for by in (1, -1))
        case ast.Constant(value=float()):
            yield _other(node, value=2 * node.value or 1.0)
        case ast.Call():
            yield from _other_calls(node)
        case ast.Attribute(attr="T", ctx=ast.Load()):
            yield node.value
        case ast.Slice():
            bounds = [name for name in node._fields if getattr(node, name) is not None]
            yield from (_other(node, **{name: None}) for name in bounds)
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Subscript()]):
            yield ast.Pass()
        case ast.If() | ast.IfExp():
            yield from (_other(node, test=ast.Constant(value)) for value in (True, False))


def _other_calls(node: ast.Call) -> Iterator[ast.AST]:
    """Another function, none, another axis, an option less."""
    name = _name(node)
    if name in SWAPPED:
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        yield _other(node, func=_other(node.func, **{field: SWAPPED[name]}))
    if name in FORGOTTEN and node.args:
        yield node.args[0]
    for i, one in enumerate(node.keywords):
        others = [*node.keywords[:i], *node.keywords[i + 1 :]]
        if one.arg == "axis" and isinstance(one.value, ast.Constant):
            axis = ast.keyword("axis", ast.Constant(AXES.get(one.value.value, 0)))
            yield _other(node, keywords=[*others, axis])
        elif one.arg in OPTIONS:
            yield _other(node, keywords=others)


def _other(node: ast.AST, **fields: object) -> ast.AST:
    """A copy with other fields."""
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _name(node: ast.Call) -> str:
    """Return the name of a called function, without its prefix."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


# ---------------------------------------------------------------------------- in place


def put_into(mutant: Mutant) -> None:
    """Give the loaded functions of a module, wherever they are held, their mutated code."""
    path = str(importlib.import_module(f"cgmm.{mutant.module}").__file__)
    right = compile(path_of(mutant.module).read_text("utf-8"), path, "exec", dont_inherit=True)
    with mutant.made() as tree:
        wrong = dict(_by_name(compile(tree, path, "exec", dont_inherit=True)))
    name_of = {code: name for name, code in _by_name(right)}
    gc.unfreeze()
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__ in name_of:
            function.__code__ = wrong[name_of[function.__code__]]


def _by_name(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Code of all functions, by qualified name and number among those of the same name."""
    count: Counter[str] = Counter()
    todo = [code]
    while todo:
        for part in todo.pop(0).co_consts:
            if isinstance(part, CodeType):
                count[part.co_qualname] += 1
                yield (part.co_qualname, count[part.co_qualname]), part
                todo.append(part)


# ---------------------------------------------------------------------------- running


class Forks:
    """A plugin of pytest: a process for each mutant, where tests would be run."""

    def __init__(self, mutants: list[Mutant], jobs: int):
        self.mutants, self.jobs = mutants, jobs
        self.outcomes: list[tuple[Mutant, str]] = []
        """Of each mutant that was run, the test that killed it; "" where none did."""
        self.failed: list[str] = []

    def pytest_collection(self) -> None:
        """Before tests are imported: an example that fails is enough, no smaller one is wanted."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.default, phases=phases)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report) -> None:
        """In a child: remember the test that failed."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session) -> bool:
        """Run all mutants, some at a time; interrupted, it judges those that are done."""
        gc.freeze()
        running: dict[int, tuple[Mutant, int]] = {}
        with suppress(KeyboardInterrupt):
            for mutant in [*self.mutants, *[None] * self.jobs]:
                if len(running) == self.jobs or (mutant is None and running):
                    self._judge(running)
                if mutant is not None:
                    pid, pipe = self._fork(mutant, _items(session, mutant))
                    running[pid] = mutant, pipe
        killers = {killer for _, killer in self.outcomes}
        # With no mutant, no killer may fail.
        _, pipe = self._fork(None, [item for item in session.items if item.nodeid in killers])
        guilty = os.fdopen(pipe).read().splitlines()
        if guilty:
            print("\nFAILS WITHOUT ANY MUTANT, so that it kills none:", *guilty, sep="\n")
        self.outcomes = [(mutant, by) for mutant, by in self.outcomes if by not in guilty]
        return True

    def _judge(self, running: dict[int, tuple[Mutant, int]]) -> None:
        """Hear what the next child to end has to say."""
        pid, status = os.waitpid(-1, 0)
        mutant, pipe = running.pop(pid)
        killer = os.fdopen(pipe).read().strip()
        if not killer and status:
            killer = f"the process ended, or took {MAX_SECONDS:.0f} seconds: {status}"
        self.outcomes.append((mutant, killer))
        print(f"{len(self.outcomes):4d} {killer or 'SURVIVES'}  {mutant.diff}", flush=True)

    def _fork(self, mutant: Mutant | None, items: list) -> tuple[int, int]:
        """A child that runs tests until one fails; all, where there is no mutant."""
        hears, tells = os.pipe()
        if pid := os.fork():
            os.close(tells)
            return pid, hears
        code = 1
        try:
            _settle()
            if mutant is not None:
                put_into(mutant)
            for item, after in zip(items, [*items[1:], None], strict=True):
                signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if mutant is not None and self.failed:
                    break
            os.write(tells, "\n".join(dict.fromkeys(self.failed)).encode())
            code = 0
        finally:
            os._exit(code)


def _items(session, mutant: Mutant) -> list:
    """Its tests in the order of likely notice; scikit-learn's many checks come last."""
    order = {test: n for n, test in enumerate(guards(mutant.module))}
    items = [item for item in session.items if item.nodeid.partition("::")[0] in order]
    return sorted(items, key=lambda item: ("estimator_checks" in item.nodeid,
                                           order[item.nodeid.partition("::")[0]]))  # fmt: skip


def _settle() -> None:
    """In a child: quiet, and with limits that end it."""
    import resource

    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    for number in (signal.SIGPROF, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def main(arguments: list[str] | None = None) -> int:
    """Run mutants, and report by subpackage; 1 if one survives."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="subpackages or modules below cgmm (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default: 2)")
    parser.add_argument("--number", type=int, default=100, help="of mutants (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of their choice (default: 0)")
    options = parser.parse_args(arguments)
    named = [m for m in modules() if not options.names
             or any(f"{m}.".startswith(f"{name}.") for name in options.names)]  # fmt: skip
    os.environ.update(ENVIRONMENT)
    os.chdir(ROOT)
    import pytest

    forks = Forks(sample(named, options.number, options.seed), options.jobs)
    wanted = dict.fromkeys(path for mutant in forks.mutants for path in guards(mutant.module))
    pytest.main([*PYTEST, *wanted], plugins=[forks])
    made, killed = (
        Counter(mutant.module.partition(".")[0] for mutant, by in forks.outcomes if by or every)
        for every in (True, False)
    )
    print(
        *(
            f"{subpackage:16s} {killed[subpackage]:4d} of {n:4d} killed"
            for subpackage, n in made.items()
        ),
        sep="\n",
    )
    survivors = [mutant.diff for mutant, by in forks.outcomes if not by]
    print(f"{killed.total()} of {made.total()} killed; these survive:", *survivors, sep="\n")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
