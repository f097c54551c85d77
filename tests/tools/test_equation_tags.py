"""Every tag names something real, and every numbered equation has code or a reason to have none."""

from __future__ import annotations

import copy
import re

import equation_tags
import pytest
from equation_grammar import Tag, TagError, load_table, parse
from equation_tags import TAGGED, Site, equations, faults, scopes, sites, tagged
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


def test_the_script_lists_what_has_no_code(capsys, monkeypatch):
    assert equation_tags.main() == 0
    printed = capsys.readouterr().out
    without = [name for name, entry in equations(TABLE) if "no_code" in entry]
    assert len(printed.splitlines()) == len(without) + 1
    assert re.search(r"^lu2007 +\(C\.13\) +a step of the proof", printed, re.MULTILINE)
    broken = copy.deepcopy(TABLE)
    del broken["lu2007"]["eq"]["C.13"]["no_code"]
    monkeypatch.setattr(equation_tags, "load_table", lambda: broken)
    assert equation_tags.main() == 1
    assert re.search(r"\(C\.13\) +NEITHER", capsys.readouterr().out)


def test_scopes_are_the_names_around_a_line():
    source = "import a\nclass C:\n    x = 1\n    def f(self):\n        def g():\n            pass\n"
    scope_at = scopes(source + "y = 1\n")
    around = [scope_at(line) for line in range(1, 8)]
    assert around == [(), ("C",), ("C",), ("C", "f"), ("C", "f", "g"), ("C", "f", "g"), ()]


def test_sites_of_a_tree(tmp_path):
    (tmp_path / "cgmm").mkdir()
    (tmp_path / "cgmm/a.py").write_text(
        "def f():\n    # [lu2007, eq. 2.1] and [breiman1984, sect. 2]\n    # [lu2007, eq. 9.9]\n"
        "    return 1\n",
        encoding="utf8",
    )
    found = list(sites("cgmm", root=tmp_path))
    assert [(site.path, site.tag.text, site.scope) for site in found] == [
        ("cgmm/a.py", "[lu2007, eq. 2.1]", ("f",)),
        ("cgmm/a.py", "[lu2007, eq. 9.9]", ("f",)),
    ]
    assert tagged(found, TABLE) == {("lu2007", "eq", "2.1"): [found[0]]}


# ------------------------------------------------------------------ the check of the table

HERE = "test_equation_tags.py::test_faults_of_a_table_are_found"


@pytest.mark.parametrize(
    ("entry", "is_computed", "is_tested", "complaint"),
    [
        ({"no_code": "none needed"}, False, False, ""),
        ({"held_by": [HERE]}, True, False, ""),
        ({}, True, True, ""),
        ({}, False, True, "gives no reason"),
        ({"no_code": "none needed"}, True, True, "no_code is stale, cgmm/a.py:7 is tagged"),
        ({}, True, False, "held_by names none"),
        ({"held_by": [HERE + "_not"]}, True, False, "does not exist"),
        ({"held_by": ["nowhere.py::test_a"]}, True, False, "does not exist"),
        ({"held_by": [HERE]}, True, True, "carries the tag itself"),
        ({"no_code": "none needed", "where": "7"}, False, False, "no section or appendix '7'"),
    ],
)
def test_faults_of_a_table_are_found(entry, is_computed, is_tested, complaint):
    table = {"lu2007": {"sect": {"1": "x"}, "eq": {"2.1": {"where": "1", "says": "x"} | entry}}}
    tag = Tag("[lu2007, eq. 2.1]", 7)
    name = ("lu2007", "eq", "2.1")
    computed = {name: [Site("cgmm/a.py", tag, ("f",))]} if is_computed else {}
    holder = Site("tests/tools/test_equation_tags.py", tag, ("test_faults_of_a_table_are_found",))
    found = faults(table, computed, {name: [holder]} if is_tested else {})
    assert len(found) == bool(complaint), found
    assert complaint in "".join(found)
