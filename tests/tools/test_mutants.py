"""Mutants are small mistakes, the same for the same seed, and tests do kill them."""

import csv
import subprocess
import sys
from collections import Counter
from itertools import islice

import pytest
from mutants.generate import generate, sample
from mutants.run import guards
from mutants.table import ROOT, modules, source


def test_every_module_has_tests():
    for module in modules():
        own, *others = guards(module)
        assert (ROOT / own).exists()
        assert others, module


@pytest.mark.parametrize("module", ["numerics", "mixture.gaussian", "inference.gibbs"])
def test_random_mutants_are_small_valid_and_each_another(module):
    """One place is changed, Greek letters before it notwithstanding, and no message is."""
    made = list(islice(generate(module), 60))
    assert len({mutant.key for mutant in made}) > 0.9 * len(made) > 20
    for mutant in made:
        before, after = source(module).splitlines(), mutant.mutated.splitlines()
        changed = [(a, b) for a, b in zip(before, after, strict=False) if a != b]
        assert changed
        assert "raise" not in mutant.diff
        # A statement of several lines may shrink to one, all else keeps its lines.
        assert len(changed) == 1 or len(after) < len(before)


def test_samples_are_the_same_for_the_same_seed():
    first, again, other = (sample(["mixture.gaussian", "numerics"], 20, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert len({mutant.key for mutant in first}) == 20


def test_a_key_outlives_changes_of_other_lines_and_of_comments(monkeypatch):
    mutant = next(generate("numerics"))
    before, after = source("numerics"), mutant.mutated
    key = mutant.key
    moved = [
        text.replace("from __future__", "# one line more\n\nfrom __future__", 1)
        for text in (before, after)
    ]
    assert moved[1] != after
    monkeypatch.setattr("mutants.table.source", lambda module: moved[0])
    assert mutant._replace(mutated=moved[1]).key == key


@pytest.mark.slow  # the tests above run the parts, without the tests that kill
def test_mutants_are_killed_and_results_are_kept(tmp_path):
    command = [
        sys.executable, "-m", "tools.mutants", "numerics", "--number", "6",
        "--results", str(tmp_path),
    ]  # fmt: skip
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    rows = [row for path in tmp_path.glob("*.csv") for row in csv.DictReader(path.open())]
    outcomes = Counter(row["outcome"] for row in rows)
    assert outcomes.total() == 6, run.stdout + run.stderr
    assert outcomes["killed"] >= 4
    assert all(row["killer"] for row in rows if row["outcome"] == "killed")
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert "6 mutants, 0 to run" in again.stdout
