"""Mutants are small mistakes, the same for the same seed, and tests do kill them."""

import subprocess
import sys

import pytest
from mutants import ROOT, sample


def test_samples_are_the_same_for_the_same_seed():
    first, again, other = (
        [mutant.diff for mutant in sample(["mixture.gaussian", "numerics"], 20, seed)]
        for seed in (0, 0, 1)
    )
    assert first == again != other
    assert len(set(first)) == 20


@pytest.mark.slow  # the tests above make mutants, without the tests that kill them
def test_mutants_are_killed():
    command = [sys.executable, "-m", "tools.mutants", "numerics", "--number", "6"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    killed, _, made = run.stdout.partition(" of 6 killed; these survive:")[0].rpartition("\n")
    assert int(made or killed) >= 4, run.stdout + run.stderr
