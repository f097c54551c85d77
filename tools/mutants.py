"""Test the tests of cgmm by mutation: introduce small mistakes and see if a test fails.

A *mutant* is the package with one small mistake, such as another operator, constant, axis or
function, or a missing statement. A test that fails *kills* the mutant. If no test kills it, a test
is missing, or the mistake has no visible effect.

    python -m tools.mutants                        run 100 mutants from all modules
    python -m tools.mutants mixture --number 50    run 50 mutants of a subpackage or module

One session of pytest imports and collects all tests once, but runs none itself. It forks a process
for each mutant, which changes the code of the loaded functions and runs the tests. The tool mutmut
3 also forks, runs only the tests that reach a function, and stores results. It can replace this
file as soon as it has rules for numerical mistakes. It lacks these: a forgotten ``log``, ``sqrt``
or ``T``, ``max`` for ``min``, ``maximum`` for ``logaddexp``, a slice without its bound, a missing
statement.
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
# Subpackages whose modules are mutated, because they contain the mathematics.
MATHEMATICS = (
    "numerics", "given", "network", "inference", "mixture", "kmeans", "metric_learning", "metrics",
    "scenarios", "diagnose", "decide", "primer",
)  # fmt: skip
# Limits for one test, in seconds of processor time and bytes. Correct code stays far below them.
MAX_SECONDS, MAX_MEMORY = 30.0, 6 * 2**30
ENVIRONMENT = {
    # One thread per process, because several mutants run at a time. With CI set, hypothesis draws
    # the same examples in each run.
    **dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1"),
    "CI": "true",
    "MPLBACKEND": "agg",
}
PYTEST = [
    "-q", "-s", "--no-header", "--tb=no", "--doctest-modules", "--ignore-glob=*/conftest.py",
    "--continue-on-collection-errors", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-p", "no:nbval", "--disable-warnings", "-m", "not slow",
]  # fmt: skip


def list_modules() -> list[str]:
    """Return the names of all modules to mutate, e.g. "mixture.em", without ``__init__`` files."""
    package = ROOT / "cgmm"
    paths = [path for subpackage in MATHEMATICS for path in (package / subpackage).glob("*.py")]
    paths += [path for subpackage in MATHEMATICS if (path := package / f"{subpackage}.py").exists()]
    names = [".".join(path.relative_to(package).with_suffix("").parts) for path in paths]
    return sorted(name for name in names if not name.endswith("__init__"))


def path_of(module: str) -> Path:
    """Return the path of a module."""
    return ROOT / "cgmm" / (module.replace(".", "/") + ".py")


def find_tests(module: str) -> list[str]:
    """Return the test files of a module, those most likely to kill its mutants first."""
    subpackage, _, stem = module.partition(".")
    tests = ROOT / "tests"
    own = sorted([*(tests / subpackage).glob("test_*.py"), *tests.glob(f"test_{subpackage}.py")])
    chosen_modules = re.compile(rf"\b{stem or subpackage}\b")
    own.sort(key=lambda path: not chosen_modules.search(path.read_text(encoding="utf-8")))
    subpackages = [
        path for name in MATHEMATICS for path in sorted((tests / name).glob("test_*.py"))
    ]
    files = [path_of(module), *own, *sorted(tests.glob("test_*.py")), *subpackages]
    return list(dict.fromkeys(path.relative_to(ROOT).as_posix() for path in files))


# ---------------------------------------------------------------------------- a mutant


class Mutant(NamedTuple):
    """A node of a module's syntax tree, and the wrong node that replaces it."""

    module: str
    statement: ast.stmt
    """Smallest statement that contains the node."""
    parent: ast.AST
    field: str
    index: int | None
    """Index of the node in the field of the parent; None if the field is no list."""
    new: ast.AST

    @contextmanager
    def applied(self) -> Iterator[ast.Module]:
        """Yield the syntax tree with the mistake, and restore the tree afterwards."""
        node = getattr(self.parent, self.field)
        content = self.new
        if self.index is not None:
            content = [*node[: self.index], self.new, *node[self.index + 1 :]]
        setattr(self.parent, self.field, content)
        yield ast.fix_missing_locations(tree_of(self.module))
        setattr(self.parent, self.field, node)

    @property
    def diff(self) -> str:
        """Lines that the mistake removes and adds, below the name of the module."""
        before = ast.unparse(self.statement).splitlines()
        content = getattr(self.parent, self.field)
        is_whole = self.statement is (content if self.index is None else content[self.index])
        with self.applied():
            after = ast.unparse(self.new if is_whole else self.statement).splitlines()
        lines = [line for line in difflib.ndiff(before, after) if line[0] in "-+"]
        return "\n".join([f"{self.module}, line {self.statement.lineno}", *lines])


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module; it is parsed only once."""
    return ast.parse(path_of(module).read_text(encoding="utf-8"))


def generate_mutants(module: str) -> Iterator[Mutant]:
    """Yield all mutants of a module, in the order of its source."""
    for definition in tree_of(module).body:
        if isinstance(definition, ast.FunctionDef | ast.ClassDef) and not _is_excluded(definition):
            yield from _mutate_below(module, definition, definition)


def sample_mutants(names: list[str], n_mutants: int, seed: int) -> list[Mutant]:
    """Return a random sample of mutants of some modules, without duplicates."""
    all_mutants = [mutant for name in names for mutant in generate_mutants(name)]
    random.Random(seed).shuffle(all_mutants)
    chosen: dict[str, Mutant] = {}
    for mutant in all_mutants:
        if len(chosen) == n_mutants:
            break
        chosen.setdefault(mutant.diff, mutant)
    return list(chosen.values())


def _mutate_below(module: str, node: ast.AST, statement: ast.stmt) -> Iterator[Mutant]:
    """Yield the mutants of all nodes below a node, except messages, checks and annotations."""
    is_definition = isinstance(node, ast.FunctionDef | ast.ClassDef)
    for field, value in ast.iter_fields(node):
        if field == "annotation" or (is_definition and field != "body"):
            continue
        is_list = isinstance(value, list)
        for index, child in enumerate(value if is_list else [value]):
            if not isinstance(child, ast.AST) or _is_excluded(child):
                continue
            enclosing = child if isinstance(child, ast.stmt) else statement
            for new in wrong_nodes(child):
                new = ast.copy_location(new, child)
                yield Mutant(module, enclosing, node, field, index if is_list else None, new)
            yield from _mutate_below(module, child, enclosing)


# Functions whose names begin like this check or report something. They are not mutated.
EXCLUDED = re.compile(r"_?(require|refuse|check|validate|explain|name|warn|said|show|report|print)")


def _is_excluded(node: ast.AST) -> bool:
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
            return bool(EXCLUDED.match(node.name))
        case ast.Expr(value=ast.Call()):
            return bool(EXCLUDED.match(_called_name(node.value)))
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


def wrong_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the wrong nodes by which a node can be replaced."""
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in ARITHMETIC:
            yield _replace_fields(node, op=ARITHMETIC[type(op)]())
            yield node.left if isinstance(node, ast.BinOp) else ast.Pass()
        case ast.Compare():
            for i, op in enumerate(node.ops):
                for new in COMPARISONS[type(op)]:
                    yield _replace_fields(node, ops=[*node.ops[:i], new(), *node.ops[i + 1 :]])
        case ast.BoolOp():
            yield _replace_fields(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant(value=bool()):
            yield _replace_fields(node, value=not node.value)
        case ast.Constant(value=int()):
            yield from (_replace_fields(node, value=node.value + step) for step in (1, -1))
        case ast.Constant(value=float()):
            yield _replace_fields(node, value=2 * node.value or 1.0)
        case ast.Call():
            yield from _mutate_call(node)
        case ast.Attribute(attr="T", ctx=ast.Load()):
            yield node.value
        case ast.Slice():
            bounds = [name for name in node._fields if getattr(node, name) is not None]
            yield from (_replace_fields(node, **{name: None}) for name in bounds)
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Subscript()]):
            yield ast.Pass()
        case ast.If() | ast.IfExp():
            yield from (_replace_fields(node, test=ast.Constant(value)) for value in (True, False))


def _mutate_call(node: ast.Call) -> Iterator[ast.AST]:
    """Yield wrong calls: another function, no function, another axis, or an option missing."""
    name = _called_name(node)
    if name in SWAPPED:
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        yield _replace_fields(node, func=_replace_fields(node.func, **{field: SWAPPED[name]}))
    if name in FORGOTTEN and node.args:
        yield node.args[0]
    for i, one in enumerate(node.keywords):
        others = [*node.keywords[:i], *node.keywords[i + 1 :]]
        if one.arg == "axis" and isinstance(one.value, ast.Constant):
            axis = ast.keyword("axis", ast.Constant(AXES.get(one.value.value, 0)))
            yield _replace_fields(node, keywords=[*others, axis])
        elif one.arg in OPTIONS:
            yield _replace_fields(node, keywords=others)


def _replace_fields(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of a node in which some fields are replaced."""
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _called_name(node: ast.Call) -> str:
    """Return the name of a called function, without its prefix."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


# ---------------------------------------------------------------------------- in place


def install_mutant(mutant: Mutant) -> None:
    """Replace the code of all loaded functions of the mutated module."""
    path = str(importlib.import_module(f"cgmm.{mutant.module}").__file__)
    source = path_of(mutant.module).read_text("utf-8")
    correct_code = compile(source, path, "exec", dont_inherit=True)
    with mutant.applied() as tree:
        mutated_code = dict(_functions_by_name(compile(tree, path, "exec", dont_inherit=True)))
    name_of = {code: name for name, code in _functions_by_name(correct_code)}
    gc.unfreeze()
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__ in name_of:
            function.__code__ = mutated_code[name_of[function.__code__]]


def _functions_by_name(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Yield ((qualified name, number among equal names), code) of all functions in some code."""
    count: Counter[str] = Counter()
    todo = [code]
    while todo:
        for part in todo.pop(0).co_consts:
            if isinstance(part, CodeType):
                count[part.co_qualname] += 1
                yield (part.co_qualname, count[part.co_qualname]), part
                todo.append(part)


# ---------------------------------------------------------------------------- running


class MutantRunner:
    """Plugin of pytest that runs the tests once for each mutant, in a process of its own."""

    def __init__(self, mutants: list[Mutant], jobs: int):
        self.mutants, self.jobs = mutants, jobs
        self.outcomes: list[tuple[Mutant, str]] = []
        """(mutant, name of the test that killed it) for each finished mutant; "" if it survived."""
        self.failed: list[str] = []

    def pytest_collection(self) -> None:
        """Keep hypothesis from shrinking failing examples, because any failure kills a mutant."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.default, phases=phases)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report) -> None:
        """Store the name of a failed test; this runs in the forked process."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session) -> bool:
        """Run all mutants, ``jobs`` at a time; after Ctrl-C, report the finished ones."""
        gc.freeze()
        running: dict[int, tuple[Mutant, int]] = {}
        with suppress(KeyboardInterrupt):
            for mutant in [*self.mutants, *[None] * self.jobs]:
                if len(running) == self.jobs or (mutant is None and running):
                    self._collect_result(running)
                if mutant is not None:
                    pid, pipe = self._fork(mutant, _order_tests(session, mutant))
                    running[pid] = mutant, pipe
        killers = {killer for _, killer in self.outcomes}
        # A test that fails without any mutant kills none, so run the killers on the correct
        # package.
        _, pipe = self._fork(None, [item for item in session.items if item.nodeid in killers])
        unreliable = os.fdopen(pipe).read().splitlines()
        if unreliable:
            print("\nFAILS WITHOUT ANY MUTANT, so its results are ignored:", *unreliable, sep="\n")
        self.outcomes = [one for one in self.outcomes if one[1] not in unreliable]
        return True

    def _collect_result(self, running: dict[int, tuple[Mutant, int]]) -> None:
        """Wait until a process ends, and store which test killed its mutant."""
        pid, status = os.waitpid(-1, 0)
        mutant, pipe = running.pop(pid)
        killer = os.fdopen(pipe).read().strip()
        if not killer and status:
            killer = f"the process ended, or took {MAX_SECONDS:.0f} seconds: {status}"
        self.outcomes.append((mutant, killer))
        print(f"{len(self.outcomes):4d} {killer or 'SURVIVES'}  {mutant.diff}", flush=True)

    def _fork(self, mutant: Mutant | None, items: list) -> tuple[int, int]:
        """Fork a process that runs tests until one fails, or all of them if there is no mutant.

        Returns its process id, and the end of a pipe from which the names of failed tests are read.
        """
        read_end, write_end = os.pipe()
        if pid := os.fork():
            os.close(write_end)
            return pid, read_end
        code = 1
        try:
            _silence_and_limit()
            if mutant is not None:
                install_mutant(mutant)
            for item, after in zip(items, [*items[1:], None], strict=True):
                signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if mutant is not None and self.failed:
                    break
            os.write(write_end, "\n".join(dict.fromkeys(self.failed)).encode())
            code = 0
        finally:
            os._exit(code)


def _order_tests(session, mutant: Mutant) -> list:
    """Return the tests of a mutant, the most likely killers first, scikit-learn's checks last."""
    order = {test: n for n, test in enumerate(find_tests(mutant.module))}
    items = [item for item in session.items if item.nodeid.partition("::")[0] in order]
    return sorted(items, key=lambda item: ("estimator_checks" in item.nodeid,
                                           order[item.nodeid.partition("::")[0]]))  # fmt: skip


def _silence_and_limit() -> None:
    """Silence this process and limit its memory; signals end it again by default."""
    import resource

    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    for number in (signal.SIGPROF, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def main(arguments: list[str] | None = None) -> int:
    """Run mutants and print the results by subpackage; return 1 if a mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="subpackages or modules below cgmm (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument("--number", type=int, default=100, help="number of mutants (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    options = parser.parse_args(arguments)
    chosen_modules = [m for m in list_modules() if not options.names
             or any(f"{m}.".startswith(f"{name}.") for name in options.names)]  # fmt: skip
    os.environ.update(ENVIRONMENT)
    os.chdir(ROOT)
    import pytest

    runner = MutantRunner(
        sample_mutants(chosen_modules, options.number, options.seed), options.jobs
    )
    paths = dict.fromkeys(path for mutant in runner.mutants for path in find_tests(mutant.module))
    pytest.main([*PYTEST, *paths], plugins=[runner])
    n_run: Counter[str] = Counter()
    n_killed: Counter[str] = Counter()
    for mutant, killer in runner.outcomes:
        subpackage = mutant.module.partition(".")[0]
        n_run[subpackage] += 1
        n_killed[subpackage] += bool(killer)
    for subpackage, n in n_run.items():
        print(f"{subpackage:16s} {n_killed[subpackage]:4d} of {n:4d} killed")
    survivors = [mutant.diff for mutant, killer in runner.outcomes if not killer]
    print(f"{n_killed.total()} of {n_run.total()} killed; these survive:", *survivors, sep="\n")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
