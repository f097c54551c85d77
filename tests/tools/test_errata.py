"""Test that each erratum is complete, its checks exist, and the page shows it in its section."""

import errata
import pytest
from equation_grammar import load_table

ENTRIES = [(source, entry) for source, entries in errata.load_errata().items() for entry in entries]


def test_every_document_has_a_section_of_errata():
    assert list(errata.load_errata()) == list(errata.HEADINGS)
    assert set(errata.HEADINGS) == set(load_table())


@pytest.mark.parametrize(("source", "entry"), ENTRIES)
def test_each_erratum_is_complete_and_its_checks_exist(source, entry):
    assert set(entry) - {"copy"} == {"where", "printed", "right", "verdict", "checks"}
    assert entry["verdict"] in errata.VERDICTS
    # The verdict "read" means that no program can check the erratum.
    assert entry["verdict"] != "read" or not entry["checks"]
    for check in entry["checks"]:
        errata.require_existing(check)


def test_errata_that_may_be_only_in_our_copy_of_a_paper_have_their_own_section():
    errors, errors_of_copy = errata.build_page().split("(errata-copy)=")
    for _, entry in ENTRIES:
        row, is_of_copy = errata.format_row(entry)[1], bool(entry.get("copy"))
        assert (row in errors, row in errors_of_copy) == (not is_of_copy, is_of_copy)
        assert ("In our copy" in row) == is_of_copy
