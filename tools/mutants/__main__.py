"""The command: ``python -m tools.mutants --help``."""

from __future__ import annotations

import argparse
import csv
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .generate import sample
from .run import run_all
from .table import ROOT, Mutant, Verdict, modules

RESULTS = ROOT / "_build" / "mutants"
FIELDS = ["key", "module", "name", "outcome", "seconds", "killer", "diff"]


def main(arguments: list[str] | None = None) -> int:
    """Run mutants and report; return how many survive or were not run."""
    options = _parse(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    wanted = sample(options.modules, options.number, options.seed)
    results = {} if options.again == "all" else _read(options.results, options.again)
    todo = [mutant for mutant in wanted if mutant.key not in results]
    print(f"{len(wanted)} mutants, {len(todo)} to run", flush=True)
    seen: list[Verdict] = []

    def notice(verdict: Verdict) -> None:
        seen.append(verdict)
        if verdict.outcome != "unknown":
            results[verdict.mutant.key] = verdict.outcome
            _write(options.results, verdict)
        _show(len(seen), len(todo), verdict)

    if todo:
        run_all(todo, notice, jobs=options.jobs)
    if len(seen) < len(todo):
        print("not all were run; the same command goes on from here")
    return _report(wanted, results)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument(
        "modules", nargs="*", metavar="module", help="below cgmm, as mixture.loop; or a whole room"
    )
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default: 2)")
    parser.add_argument("--number", type=int, default=100, help="of mutants (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of their choice (default: 0)")
    parser.add_argument(
        "--again", choices=["nothing", "survivors", "all"], default="nothing",
        help="what to run although its result is known (default: nothing)",
    )  # fmt: skip
    parser.add_argument("--results", type=Path, default=RESULTS, help="directory of the tables")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.modules if not _below(name)]
    if unknown:
        parser.error(f"unknown modules: {', '.join(unknown)}; there are {', '.join(modules())}")
    if options.jobs < 1:
        parser.error("--jobs: at least 1")
    named = {module for name in options.modules for module in _below(name)}
    options.modules = [module for module in modules() if module in named or not named]
    return options


def _below(name: str) -> list[str]:
    """The module of that name, or the modules of the room of that name."""
    return [module for module in modules() if f"{module}.".startswith(f"{name}.")]


# ---------------------------------------------------------------------------- results


def _read(directory: Path, again: str) -> dict[str, str]:
    """Outcomes known from before, the last one of each mutant."""
    known = {
        row["key"]: row["outcome"]
        for path in directory.glob("*.csv")
        for row in csv.DictReader(path.open(encoding="utf-8", newline=""))
    }
    if again == "survivors":
        return {key: outcome for key, outcome in known.items() if outcome != "survived"}
    return known


def _write(directory: Path, verdict: Verdict) -> None:
    """Append a verdict to the table of its module."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{verdict.mutant.module}.csv"
    is_new = not path.exists()
    mutant = verdict.mutant
    with path.open("a", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        if is_new:
            table.writerow(FIELDS)
        table.writerow(
            [mutant.key, mutant.module, mutant.name, verdict.outcome,
             f"{verdict.seconds:.1f}", verdict.killer, mutant.diff]
        )  # fmt: skip


def _show(number: int, n_all: int, verdict: Verdict) -> None:
    mutant = verdict.mutant
    print(
        f"{number:4d}/{n_all} {verdict.outcome:8s} {verdict.seconds:5.1f} s  {mutant.module}: "
        f"{mutant.name}  {verdict.killer}",
        flush=True,
    )
    if verdict.outcome == "survived":
        print(mutant.diff, flush=True)


def _report(wanted: list[Mutant], results: dict[str, str]) -> int:
    """Print a line for each module and for all; return how many survive or were not run."""
    print(f"\n{'module':24s} {'made':>5s} {'killed':>7s} {'survive':>8s} not run")
    total: Counter[str] = Counter()
    for module, count in _counted(wanted, results):
        total += count
        _line(module, count)
    _line("all", total)
    for mutant in wanted:
        if results.get(mutant.key) == "survived":
            print(f"\nsurvives: {mutant.module}, {mutant.name}\n{mutant.diff}")
    return total["survived"] + total["not run"]


def _counted(wanted: list[Mutant], results: dict[str, str]) -> Iterator[tuple[str, Counter[str]]]:
    for module in modules():
        outcomes = Counter(
            results.get(mutant.key, "not run") for mutant in wanted if mutant.module == module
        )
        if outcomes:
            yield module, outcomes


def _line(name: str, count: Counter[str]) -> None:
    killed = count["killed"] + count["timeout"]
    print(f"{name:24s} {count.total():5d} {killed:7d} {count['survived']:8d} {count['not run']:7d}")


if __name__ == "__main__":
    sys.exit(min(main(), 1))
