"""The command line of the reruns; ``python -m reruns --help`` tells its options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from joblib import parallel_config

from reruns import EXPERIMENTS, replicate
from reruns.sentences import table
from reruns.verdicts import read_comparisons

BOOK = Path(__file__).resolve().parents[1]
RESULTS = BOOK / "_data" / "replication"
COMPARISONS = BOOK / "_data" / "comparisons.toml"
DATA = BOOK.parent / "data"
QUICK = BOOK.parent / "_build" / "replication"
INTERRUPTED = 130  # exit status after Ctrl-C, as of a shell


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(
        prog="python -m reruns", description="Rerun the experiments of the papers."
    )
    add = options.add_argument
    add("experiments", nargs="*", metavar="experiment", help=f"{', '.join(EXPERIMENTS)}; or all")
    add("--realisations", type=int, help="of each setting (default: as many as the paper)")
    add("--jobs", type=int, default=1, help="processes; -1: all cores (default: 1)")
    add("--results", type=Path, help=f"folder of result files (default: {RESULTS})")
    add("--data-home", type=Path, default=DATA, help="folder of fetched data")
    add("--seed", type=int, default=0, help="seed of everything (default: 0)")
    add("--quick", action="store_true", help=f"two realisations of a part, to {QUICK}")
    add("--fresh", action="store_true", help="run anew what the result files hold")
    add("--backend", default="loky", help="of joblib: loky, threading, dask (default: loky)")
    add("--scheduler", help="address of a Dask scheduler (default: a cluster of this machine)")
    add("--verdicts", action="store_true", help="run nothing: judge the result files")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        Those of the process.

    Returns
    -------
    int
        0; 1 if data were missing or a verdict does not hold; 130 if interrupted.
    """
    options = parser().parse_args(arguments)
    if options.results is None:
        options.results = QUICK if options.quick else RESULTS
    if options.verdicts:
        return _judge(options.results)
    unknown = sorted(set(options.experiments) - EXPERIMENTS.keys())
    if unknown:
        parser().error(f"unknown: {', '.join(unknown)}; known are {', '.join(EXPERIMENTS)}")
    if options.realisations is None and options.quick:
        options.realisations = 2
    with ExitStack() as stack:
        _enter_backend(options, stack)
        return _run(options)


def _enter_backend(options: argparse.Namespace, stack: ExitStack) -> None:
    """Let joblib use the workers that are asked for."""
    if options.backend == "dask":
        try:
            from distributed import Client
        except ImportError:
            parser().error('--backend dask needs Dask: pip install "dask[distributed]"')
        stack.enter_context(Client(options.scheduler, set_as_default=True))
        options.jobs = -1 if options.jobs == 1 else options.jobs
    stack.enter_context(parallel_config(backend=options.backend))


def _run(options: argparse.Namespace) -> int:
    complaints: set[str] = set()
    for name in options.experiments or EXPERIMENTS:
        try:
            complaints |= set(
                replicate(
                    EXPERIMENTS[name],
                    options.results,
                    realisations=options.realisations,
                    jobs=options.jobs,
                    data_home=options.data_home,
                    seed=options.seed,
                    quick=options.quick,
                    fresh=options.fresh,
                    progress=sys.stderr,
                )
            )
        except KeyboardInterrupt:
            kept = options.results / f"{name}.partial"
            print(f"\ninterrupted; what is finished is in {kept}.", file=sys.stderr)
            print("The same command, without --fresh, goes on from there.", file=sys.stderr)
            return INTERRUPTED
    for complaint in sorted(complaints):
        print(complaint, file=sys.stderr)
    return int(bool(complaints))


def _judge(results: Path) -> int:
    """Print what follows from the result files, beside what is written down."""
    lines, wrong = table(read_comparisons(COMPARISONS), results)
    print("\n".join(lines))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
