"""Test that equation tags are valid, and that each equation is computed and tested, or exempt."""

import re

import equations
import pytest
from equation_grammar import Reference, TagError, load_table, parse_tag
from equation_tags import COMPUTED, TAGGED, find_faults, find_sites, group_by_equation

TABLE = load_table()


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("[shental2003, eq. 9]", [("eq", "9")]),
        ("[schmidt2016, eq. ***]", [("eq", "***")]),
        ("[lu2007, eqs. 5.2 to A.2]", [("eq", "5.2", "5.3", "A.1", "A.2")]),
        ("[barhillel2005, Alg. 2, step 3 and eq. 14]", [("alg", "2, step 3"), ("eq", "14")]),
        ("[lu2007, Fig. 5, data sets 1 and 2]", [("fig", "5, data set 1", "5, data set 2")]),
        ('[green, "Supervised" and "Recap"]', [("slide", "Supervised", "Recap")]),
    ],
)
def test_parse_tag_returns_references(tag, expected):
    source = re.match(r"\[(\w+)", tag)[1]
    assert parse_tag(tag, TABLE) == [Reference(source, kind, tuple(ids)) for kind, *ids in expected]


def test_parse_tag_raises_on_an_unknown_equation_and_suggests_others():
    tag = "[shental2003, eq. 13]"
    with pytest.raises(TagError, match=f"{re.escape(tag)}.*has no eq '13'; nearest: 3, 1, 12"):
        parse_tag(tag, TABLE)


def test_every_tag_in_the_repository_is_valid():
    wrong = []
    for site in find_sites(*TAGGED):
        try:
            parse_tag(site.tag.text, TABLE)
        except TagError as error:
            wrong.append(f"{site.path}:{site.tag.line}: {error}")
    assert not wrong, "\n".join(wrong)


def test_every_equation_has_code_and_a_test_or_a_stated_reason():
    found = find_faults(
        TABLE,
        group_by_equation(find_sites(*COMPUTED), TABLE),
        group_by_equation(find_sites("tests"), TABLE),
    )
    assert not found, "\n".join(found)


def test_the_page_of_equations_has_a_row_for_each_equation():
    text = equations.build_page()
    for source, entry in TABLE.items():
        part = text.split(f"(equations-{source})=")[1].split("\n(equations-")[0]
        cells = [row.split(" | ")[0] for row in part.splitlines()]
        numbers = [cell[3:-1].replace("\\", "") for cell in cells if cell.startswith("| (")]
        assert numbers == list(entry.get("eq", {}))
