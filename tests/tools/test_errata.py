"""The page of errata agrees with its table, and every check named there exists."""

import errata
import pytest
from equation_grammar import load_table

ENTRIES = [(source, entry) for source, entries in errata.load().items() for entry in entries]


def test_every_document_of_the_book_has_its_errata():
    assert list(errata.load()) == list(errata.HEADINGS)
    assert set(errata.HEADINGS) == set(load_table())


@pytest.mark.parametrize(("source", "entry"), ENTRIES)
def test_an_entry_is_complete_and_its_checks_exist(source, entry):
    assert set(entry) - {"copy"} == {"where", "printed", "right", "verdict", "checks"}
    assert entry["verdict"] in errata.VERDICTS
    # Claims that can be run have been run; others say that they cannot.
    if entry["verdict"] == "read":
        assert not entry["checks"]
    for check in entry["checks"]:
        errata.require_existing(check)


def test_possible_errors_of_our_copy_are_listed_separately():
    sure, doubtful = errata.page().split("(errata-copy)=")
    for _, entry in ENTRIES:
        row = errata._row(entry)[1]
        there, elsewhere = (doubtful, sure) if entry.get("copy") else (sure, doubtful)
        assert row in there
        assert row not in elsewhere
        assert ("As our copy has it" in row) == bool(entry.get("copy"))
