"""The command line of the reruns; ``python -m reruns --help`` in ``book/`` lists its options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

from joblib import parallel_config

from reruns import EXPERIMENTS, replicate
from reruns.verdicts import judge_all, read_comparisons, statement

BOOK = Path(__file__).resolve().parents[1]
RESULTS = BOOK / "_data" / "replication"
COMPARISONS = BOOK / "_data" / "comparisons.toml"
DATA = BOOK.parent / "data"
QUICK = BOOK.parent / "_build" / "replication"
INTERRUPTED = 130  # exit status after Ctrl-C, as in a shell


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    options = argparse.ArgumentParser(
        prog="python -m reruns", description="Rerun the experiments of the papers."
    )
    add = options.add_argument
    known = ", ".join(EXPERIMENTS)
    add("experiments", nargs="*", metavar="experiment", help=f"{known} (default: all)")
    add("--realisations", type=int, help="of each setting (default: as many as the paper)")
    add("--jobs", type=int, help="processes; -1: all cores (default: 1)")
    add("--results", type=Path, help="folder of result files (default: book/_data/replication)")
    add("--data-home", type=Path, default=DATA, help="folder of fetched data (default: data)")
    add("--seed", type=int, default=0, help="from which all seeds are derived (default: 0)")
    add("--quick", action="store_true", help="two realisations of a part, to _build/replication")
    add("--fresh", action="store_true", help="run again what the result files hold")
    add("--scheduler", help="address of a Dask scheduler, whose workers are used")
    add("--verdicts", action="store_true", help="run nothing: judge the result files")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        Arguments; None: those of the process.

    Returns
    -------
    int
        0; 1 if data were missing or a verdict does not hold; 130 if interrupted.
    """
    options = parser().parse_args(arguments)
    results = options.results or (QUICK if options.quick else RESULTS)
    if options.verdicts:
        return _judge(results)
    unknown = sorted(set(options.experiments) - EXPERIMENTS.keys())
    if unknown:
        parser().error(f"unknown: {', '.join(unknown)}; --help lists the experiments")
    with _cluster(options.scheduler) if options.scheduler else nullcontext():
        return _run(options, results)


@contextmanager
def _cluster(scheduler: str) -> Iterator[None]:
    """Let joblib use the workers of a Dask cluster."""
    try:
        from distributed import Client
    except ImportError:
        parser().error('--scheduler needs Dask: pip install "dask[distributed]"')
    with Client(scheduler, set_as_default=True), parallel_config(backend="dask", n_jobs=-1):
        yield


def _run(options: argparse.Namespace, results: Path) -> int:
    """Run the experiments that are asked for, and print the complaints about missing data."""
    asked = {
        name: getattr(options, name) for name in ("jobs", "data_home", "seed", "quick", "fresh")
    }
    n = 2 if options.quick and options.realisations is None else options.realisations
    complaints: set[str] = set()
    for name in options.experiments or EXPERIMENTS:
        run = partial(replicate, EXPERIMENTS[name], results, realisations=n, progress=sys.stderr)
        try:
            complaints |= set(run(**asked))
        except KeyboardInterrupt:
            kept = results / f"{name}.partial"
            print(f"\ninterrupted; what is finished is in {kept}.", file=sys.stderr)
            print("The same command, without --fresh, continues from there.", file=sys.stderr)
            return INTERRUPTED
    print(*sorted(complaints), sep="\n", end="\n" * bool(complaints), file=sys.stderr)
    return int(bool(complaints))


def _judge(results: Path) -> int:
    """Print what follows from the result files; then the verdicts that differ from the table's."""
    judged = judge_all(read_comparisons(COMPARISONS), results)
    wrong = [one for one in judged if one[0].verdict != one[1].verdict]
    print(*(statement(*one) for one in judged), sep="\n\n")
    print(f"\n{len(wrong)} of {len(judged)} verdicts are not as written down.")
    print(*(statement(*one) for one in wrong), sep="\n\n", end="\n" * bool(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
