"""Does it hold on other processors? Quick tests and all notebooks under several kernels of BLAS.

    python tools/portable.py                         every kernel, with one and with two threads
    python tools/portable.py --other tests/mixture   one kernel, not the machine's own; these tests
    env $(python tools/portable.py --settings) ...   a command under that other kernel

OpenBLAS takes its kernel from a variable, NumPy leaves out by another what newer processors have.
Kernels round sums in other orders: what is green under all of them does not hang on a last digit.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys

import numpy as np
from pages import ROOT

# What NumPy may do beyond its baseline: by whatever names, which change from version to version.
SIMD = np.show_config(mode="dicts")["SIMD Extensions"]
WIDE = ",".join(name for kind, names in SIMD.items() if kind != "baseline" for name in names)
KERNELS: dict[str, dict[str, str]] = {
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    # NumPy without AVX2 and FMA, too.
    "Sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge", "NPY_DISABLE_CPU_FEATURES": WIDE},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": WIDE},
}
# The package and the chapters; not the pages, the tools, the course.
TESTS = [
    "tests", "cgmm", "book", "--ignore=tests/book", "--ignore=tests/tools",
    "--ignore=tests/assignments", "--ignore=tests/test_typing.py",
]  # fmt: skip
ASK = (
    "import numpy as np; np.ones((9, 9)) @ np.ones((9, 9)); from threadpoolctl import "
    "threadpool_info; print(*{i.get('architecture') for i in threadpool_info()})"
)


def kernel_of(environment: dict[str, str]) -> str:
    """The kernel that OpenBLAS takes in such an environment; empty if the processor lacks it."""
    run = subprocess.run(
        [sys.executable, "-c", ASK], env=os.environ | environment, capture_output=True, text=True
    )
    return run.stdout.strip() if run.returncode == 0 else ""


def outcome(environment: dict[str, str], n_threads: int, tests: list[str]) -> tuple[str, str, str]:
    """Passed, failed (errors included), and the lines that name what failed."""
    threads = dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"], str(n_threads))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "@tests/all.args", "-q", "-m", "not slow", *tests],
        cwd=ROOT, env=os.environ | environment | threads, capture_output=True, text=True,
    )  # fmt: skip
    lines = run.stdout.splitlines()
    count = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", lines[-1])}
    if run.returncode and not count.keys() & {"failed", "error"}:
        raise SystemExit(run.stdout + run.stderr)
    named = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    failed = count.get("failed", 0) + count.get("error", 0)
    return str(count.get("passed", 0)), str(failed), "\n".join(named)


def main() -> int:
    """Print a line for each kernel; return 1 if anything failed under any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", default=TESTS, help="what pytest takes")
    parser.add_argument("--other", action="store_true", help="one kernel, not the machine's own")
    parser.add_argument("--settings", action="store_true", help="print that other kernel's")
    options, more = parser.parse_known_args()
    own, any_failed = kernel_of({}), False
    runs = [(name, n) for name in KERNELS for n in (1, 2)]
    if options.other or options.settings:
        runs = [next((name, 1) for name in KERNELS if name != own and kernel_of(KERNELS[name]))]
    if options.settings:
        print(*(f"{name}={value}" for name, value in KERNELS[runs[0][0]].items()))
        return 0
    print(f"the machine's own kernel: {own}\n{'kernel':10s} threads  passed  failed", flush=True)
    for name, n_threads in runs:
        if not kernel_of(KERNELS[name]):
            print(f"{name:10s} {n_threads:7d}  not on this processor")
            continue
        passed, failed, named = outcome(KERNELS[name], n_threads, [*options.tests, *more])
        print(f"{name:10s} {n_threads:7d} {passed:>7s} {failed:>7s}", flush=True)
        print(named, end="\n" if named else "")
        any_failed |= failed != "0"
    return int(any_failed)


if __name__ == "__main__":
    sys.exit(main())
