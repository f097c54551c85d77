"""The tables of mutants cannot rot, and the tests do kill the classics among them."""

import ast
import csv
import subprocess
import sys
from collections import Counter
from itertools import islice

import pytest
from mutants.__main__ import _parse
from mutants.generate import generate, sample
from mutants.run import TESTS
from mutants.table import ROOT, entries, modules, source, survivors, without

QUICK = [entry for entry in entries() if entry.quick]


def test_there_are_many_and_no_two_of_one_name():
    assert len(entries()) >= 120
    names = Counter((entry.module, entry.name) for entry in entries())
    assert names.most_common(1)[0][1] == 1


def test_every_file_of_the_mathematics_has_some_or_a_reason_to_have_none():
    """A new file needs a mutant in a table, and a row in tools/mutants/run.py."""
    by_hand, reasons = {entry.module for entry in entries()}, without()
    assert by_hand | reasons.keys() == set(modules())
    assert not by_hand & reasons.keys()
    assert all(len(reason) > 20 for reason in reasons.values())
    assert TESTS.keys() == set(modules())


@pytest.mark.parametrize("module", TESTS)
def test_every_mutant_still_has_its_place_and_means_something_else(module):
    original = ast.dump(ast.parse(source(module)))
    for entry in [*entries(), *survivors()]:
        if entry.module == module:
            assert ast.dump(ast.parse(entry.mutated)) != original, entry.name


def test_every_survivor_is_explained_and_every_classic_stands_for_an_error():
    for entry in survivors():
        assert len(entry.equivalent) > 20, entry
    for entry in entries():
        assert entry.error or entry.equivalent, entry.name


def test_the_tests_that_guard_a_module_exist():
    for names in TESTS.values():
        assert len(set(names)) == len(names)
        for name in names:
            assert len([*(ROOT / "tests").rglob(f"test_{name}.py")]) == 1, name


def test_a_text_that_is_gone_or_stands_twice_is_named():
    entry = QUICK[0]
    for wrong in ("no such text", "="):
        with pytest.raises(ValueError, match="Correct the table"):
            _ = entry._replace(find=wrong).mutated
    with pytest.raises(ValueError, match="no function or class 'gone'"):
        _ = entry._replace(within="gone").mutated


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
    mutant = QUICK[0].mutant()
    text = source(mutant.module)
    moved = text.replace("from __future__", "# one line more\n\nfrom __future__", 1)
    monkeypatch.setattr("mutants.table.source", lambda module: moved)
    elsewhere = mutant._replace(mutated=QUICK[0].mutated)
    assert elsewhere.mutated != mutant.mutated
    assert elsewhere.key == mutant.key


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        (["numerics"], {"numerics"}),
        (["mixture.loop", "metrics"], {"mixture.loop"} | {m for m in TESTS if "metrics." in m}),
        ([], set(TESTS)),
    ],
)
def test_modules_are_asked_for_by_file_or_by_room(asked, chosen):
    assert set(_parse(asked).modules) == chosen


def test_a_module_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit):
        _parse(["numeric"])
    assert "unknown modules: numeric;" in capsys.readouterr().err


@pytest.mark.slow  # the tests above run the parts, without the tests that kill
def test_the_classics_are_killed_and_results_are_kept(tmp_path):
    """As ``python -m tools.mutants`` does it, each against one test that is known to notice."""
    command = [
        sys.executable, "-m", "tools.mutants", "--quick", "--jobs", "2", "--results", str(tmp_path),
    ]  # fmt: skip
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    rows = [row for path in tmp_path.glob("*.csv") for row in csv.DictReader(path.open())]
    assert Counter(row["outcome"] for row in rows) == {"killed": len(QUICK)}
    assert all(row["killer"] and row["diff"] for row in rows)
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert f"{len(QUICK)} mutants, 0 to run" in again.stdout
    assert again.returncode == 0
