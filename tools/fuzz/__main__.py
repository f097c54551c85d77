"""Run many random problems, and print the seed of each that breaks the contract.

python -m tools.fuzz                      ten thousand problems, two at a time
python -m tools.fuzz --seed 4711 --problems 1
python -m tools.fuzz --seed 6000          go on where an earlier run was stopped
"""

from __future__ import annotations

import os

# Before numpy: small matrices gain nothing from threads, and several processes run already.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import faulthandler
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from .claims import BrokenContractError
from .contract import examine
from .problems import make

SECONDS = 60.0
# Every so many seeds one is fitted twice.
TWICE = 5


class Outcome(NamedTuple):
    seed: int
    kind: str
    what: str
    story: str


def run(seed: int) -> Outcome:
    """What comes of one problem; the process is killed, with a trace, if even an alarm fails."""
    faulthandler.dump_traceback_later(10 * SECONDS, exit=True, file=sys.__stderr__)
    kind, story = "no problem", ""
    try:
        problem = make(seed)
        kind, story = type(problem.estimator).__name__, problem.story
        what = examine(problem, seconds=SECONDS, again=seed % TWICE == 0)
    except Exception as error:
        # Whatever else goes wrong is wrong with the problem, and no reason to lose the others.
        named = "" if isinstance(error, BrokenContractError) else f"{type(error).__name__}: "
        what = f"BROKEN: {named}{error}"
    finally:
        faulthandler.cancel_dump_traceback_later()
    return Outcome(seed, kind, what, story)


def outcomes(seeds: range, jobs: int):
    """One outcome a seed, in their order."""
    if jobs == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, seeds, chunksize=8)


def main(arguments: list[str] | None = None) -> int:
    """Run, report, and return 1 if any contract was broken."""
    options = _parse(arguments)
    seeds = range(options.seed, options.seed + options.problems)
    counts, broken, begin, seed = Counter(), [], time.monotonic(), options.seed
    try:
        for outcome in outcomes(seeds, options.jobs):
            seed = outcome.seed + 1
            counts[outcome.kind, outcome.what.split(":")[0]] += 1
            if outcome.what.startswith("BROKEN"):
                broken.append(outcome.seed)
                print(_explain(outcome), flush=True)
            done = seed - options.seed
            if done % 200 == 0:
                rate = done / (time.monotonic() - begin)
                print(f"{done:6d} of {len(seeds)}   {rate:.0f} a second   broken {len(broken)}")
    except KeyboardInterrupt:
        print(f"stopped; go on with --seed {seed}")
    except Exception as error:
        print(f"a worker died near seed {seed}: {error}. Run the seeds from there with --jobs 1.")
        broken.append(seed)
    print(_summary(counts, broken))
    return 1 if broken else 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--problems", type=int, default=10_000, help="how many")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    return parser.parse_args(arguments)


def _explain(outcome: Outcome) -> str:
    return (
        f"seed {outcome.seed}: {outcome.what}\n    {outcome.story}\n"
        f"    alone: python -m tools.fuzz --problems 1 --jobs 1 --seed {outcome.seed}"
    )


def _summary(counts: Counter, broken: list[int]) -> str:
    kinds = sorted({kind for kind, _ in counts})
    lines = [f"{'':34}{'answers':>10}{'refusals':>10}{'broken':>10}"]
    for kind in kinds:
        cells = [counts[kind, what] for what in ("answer", "refusal", "BROKEN")]
        lines.append(f"{kind:34}" + "".join(f"{cell:10d}" for cell in cells))
    return "\n".join([*lines, f"broken seeds: {broken or 'none'}"])


if __name__ == "__main__":
    sys.exit(main())
