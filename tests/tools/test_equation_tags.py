"""Every tag names something real, and every numbered equation has code or a reason to have none."""

from __future__ import annotations

from equation_grammar import TagError, load_table, parse
from equation_tags import TAGGED, equations, faults, sites, tagged
from pages import ROOT

TABLE = load_table()


def test_every_tag_names_something_real():
    wrong = []
    for site in sites(*TAGGED):
        try:
            parse(site.tag.text, TABLE)
        except TagError as error:
            wrong.append(f"{site.path}:{site.tag.line}: {error}")
    assert not wrong, "\n".join(wrong)


def test_every_equation_has_code_and_a_test_or_a_reason_to_have_none():
    found = faults(TABLE, tagged(sites("cgmm"), TABLE), tagged(sites("tests"), TABLE))
    assert not found, "\n".join(found)


def test_a_tag_in_a_comment_stands_right_above_a_statement():
    lonely = []
    for site in sites("cgmm"):
        lines = (ROOT / site.path).read_text(encoding="utf8").splitlines()
        if not lines[site.tag.line - 1].lstrip().startswith("#"):
            continue
        below = next(one for one in lines[site.tag.line :] if not one.lstrip().startswith("#"))
        if not below.strip():
            lonely.append(f"{site.path}:{site.tag.line}: nothing stands below {site.tag.text}")
    assert not lonely, "\n".join(lonely)


def test_the_table_has_every_number_that_the_documents_print():
    last = {"2": 15, "3": 5, "4": 4, "5": 3, "A": 3, "B": 3, "C": 25}
    printed = {
        "shental2003": [str(n) for n in range(1, 13)],
        "schmidt2016": ["*", "**", "***"],
        "barhillel2005": [str(n) for n in range(1, 16)],
        "lu2007": [f"{part}.{n}" for part, end in last.items() for n in range(1, end + 1)],
    }
    listed: dict[str, list[str]] = {}
    for (source, _, number), _ in equations(TABLE):
        listed.setdefault(source, []).append(number)
    assert listed == printed


# ------------------------------------------------------------------ the check of the table
