"""Mutants are small mistakes, the same for the same seed, and tests do kill them."""

import ast
import subprocess
import sys

import pytest
from mutants import ROOT, generate, sample, tree_of


@pytest.mark.parametrize("module", ["numerics", "mixture.gaussian", "inference.gibbs"])
def test_mutants_are_small_and_valid_and_leave_the_source_as_it_is(module):
    before, made = ast.dump(tree_of(module)), list(generate(module))
    assert len({mutant.diff for mutant in made}) > 0.9 * len(made) > 20
    for mutant in made[::5]:
        assert "raise" not in mutant.diff
        with mutant.made() as tree:
            assert ast.dump(tree) != before
            compile(tree, "mutated", "exec")
    assert ast.dump(tree_of(module)) == before


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
