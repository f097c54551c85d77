"""Run tests and notebooks with the BLAS kernels of other processors.

    python tools/portable.py                         run all tests with every kernel
    python tools/portable.py --other tests/mixture   run some tests with the kernel of another CPU
    env $(python tools/portable.py --settings) ...   run a command with the kernel of another CPU

One environment variable selects the kernel of OpenBLAS, another one disables features of newer
processors in NumPy. Kernels add numbers in different orders, so results differ in the last digits.
Tests that pass with all kernels do not depend on these digits.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys

import numpy as np
from pages import ROOT

# Processor features that NumPy uses beyond its baseline. Their names change between versions.
SIMD = np.show_config(mode="dicts")["SIMD Extensions"]
FEATURES = ",".join(name for kind, names in SIMD.items() if kind != "baseline" for name in names)
KERNELS: dict[str, dict[str, str]] = {
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    # These processors have neither AVX2 nor FMA, so NumPy must not use them either.
    "Sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge", "NPY_DISABLE_CPU_FEATURES": FEATURES},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": FEATURES},
}
# Tests of the package and the chapters, without those of pages, tools and course.
TESTS = [
    "tests", "cgmm", "book", "--ignore=tests/book", "--ignore=tests/tools",
    "--ignore=tests/assignments", "--ignore=tests/test_typing.py",
]  # fmt: skip
# Prints the name of the kernel that OpenBLAS uses.
SCRIPT = (
    "import numpy as np; np.ones((9, 9)) @ np.ones((9, 9)); from threadpoolctl import "
    "threadpool_info; print(*{i.get('architecture') for i in threadpool_info()})"
)


def kernel_of(environment: dict[str, str]) -> str:
    """Return the kernel that OpenBLAS selects with these variables; "" if it is unavailable."""
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | environment, capture_output=True, text=True
    )
    return run.stdout.strip() if run.returncode == 0 else ""


def run_tests(
    environment: dict[str, str], n_threads: int, tests: list[str]
) -> tuple[str, str, str]:
    """Run tests; return the numbers of passed and failed ones, and the lines naming failed ones."""
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
    """Print a line for each kernel; return 1 if a test failed with any of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", default=TESTS, help="arguments of pytest")
    parser.add_argument("--other", action="store_true", help="one kernel, not this machine's own")
    parser.add_argument("--settings", action="store_true", help="only print how to select it")
    options, pytest_options = parser.parse_known_args()
    default, any_failed, tests = kernel_of({}), False, [*options.tests, *pytest_options]
    runs = [(name, n) for name in KERNELS for n in (1, 2)]
    if options.other or options.settings:
        runs = [next((name, 1) for name in KERNELS if name != default and kernel_of(KERNELS[name]))]
    if options.settings:
        print(*(f"{name}={value}" for name, value in KERNELS[runs[0][0]].items()))
        return 0
    print(
        f"this machine's own kernel: {default}\n{'kernel':10s} threads  passed  failed", flush=True
    )
    for name, n_threads in runs:
        if not kernel_of(KERNELS[name]):
            print(f"{name:10s} {n_threads:7d}  not on this processor")
            continue
        passed, failed, named = run_tests(KERNELS[name], n_threads, tests)
        print(f"{name:10s} {n_threads:7d} {passed:>7s} {failed:>7s}", flush=True)
        print(named, end="\n" if named else "")
        any_failed |= failed != "0"
    return int(any_failed)


if __name__ == "__main__":
    sys.exit(main())
