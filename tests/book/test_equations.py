"""The page of equations is what the table, the tags and the chapters say now."""

from __future__ import annotations

import json

import equations
import pytest
from equation_tags import Site, Tag, TagError, load_table

TABLE = load_table()
CHAPTERS = sorted(equations.BOOK.glob("[0-9][0-9]_*.ipynb"))


def test_the_page_is_up_to_date(capsys):
    assert equations.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_page_is_found_and_written_anew(tmp_path, monkeypatch, capsys):
    page = tmp_path / "equations.md"
    monkeypatch.setattr(equations, "PAGE", page)
    monkeypatch.setattr(equations, "page", lambda: "# Equations\n")
    assert equations.main(["--check"]) == 1
    assert not page.exists()
    assert "is stale" in capsys.readouterr().out
    assert equations.main([]) == 0
    assert equations.main(["--check"]) == 0
    page.write_text("# Equations\n\n", encoding="utf8")
    assert equations.main(["--check"]) == 1


def test_an_equation_without_code_or_reason_is_named(monkeypatch, capsys):
    table = load_table()
    del table["lu2007"]["eq"]["C.13"]["no_code"]
    monkeypatch.setattr(equations, "load_table", lambda: table)
    assert equations.main(["--check"]) == 1
    assert "lu2007 eq C.13: no tag in cgmm names it" in capsys.readouterr().out


def test_every_equation_has_a_row():
    text = equations.page()
    for source, entry in TABLE.items():
        part = text.split(f"(equations-{source})=")[1].split("\n(equations-")[0]
        first = [row.split(" | ")[0] for row in part.splitlines()]
        numbers = [cell[3:-1].replace("\\", "") for cell in first if cell.startswith("| (")]
        assert numbers == list(entry.get("eq", {}))
    rows = [row for row in text.splitlines() if row.startswith("| ")]
    assert all(row.count(" | ") == 1 for row in rows)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_what_a_chapter_cites_exists(path):
    equations.covered(path, TABLE)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_line_covers_names_something(path):
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    line = "".join(cells[0]["source"])
    assert "**Covers**" in line
    assert equations.covers(line, TABLE)


def numbers(found, source, kind="eq"):
    order = [*TABLE[source].get(kind, {}), *TABLE[source].get("app", {})]
    return sorted((n for s, k, n in found if (s, k) == (source, kind)), key=order.index)


@pytest.mark.parametrize(
    ("line", "source", "expected"),
    [
        ("{cite:t}`shental2003`, §2.1 (eqs. 1 to 5)", "shental2003", "1 2 3 4 5"),
        ("{cite:t}`shental2003`, §2.1", "shental2003", "1 2 3 4 5 6 7"),
        ("{cite:t}`shental2003`, §2.1 and §2.1.2", "shental2003", "6 7"),
        ("{cite:t}`shental2003`, §§2.1.2 and 2.2", "shental2003", "6 7 8 9 10 11 12"),
        ("{cite:t}`shental2003`, §2.2 up to eq. (9), §2.3", "shental2003", "8 9"),
        (
            "{cite:t}`shental2003`, §2.1.2 and the update of §2.2 (eqs. 6, 7\nand 10 to 12, "
            "footnote 3)",
            "shental2003",
            "6 7 10 11 12",
        ),
        ("the opening of {cite:t}`shental2003`, §2.", "shental2003", ""),
        ("{cite:t}`shental2003`, §1 and the opening of §2", "shental2003", ""),
        ("{cite:t}`shental2003`, §2's remarks", "shental2003", ""),
        ("{cite:t}`schmidt2016`, eq. (\\*\\*\\*) and §3", "schmidt2016", "***"),
        ("{cite:t}`schmidt2016`, §2", "schmidt2016", "* ** ***"),
        ("{cite:t}`lu2007`, §4, eqs. 4.2 to 4.4.", "lu2007", "4.2 4.3 4.4"),
        ("{cite:t}`lu2007`, §2.2; {cite:t}`shental2003`, eq. 9", "lu2007", "2.7 2.8 2.9 2.10 2.11"),
        (
            "{cite:t}`lu2007`, Appendix B and equations (3.1) and (3.2)",
            "lu2007",
            "3.1 3.2 B.1 B.2 B.3",
        ),
        ("{cite:t}`lu2007`, §5.2.2; eqs. 3.1 to 3.3", "lu2007", "3.1 3.2 3.3 5.2 5.3"),
        ("{cite:t}`barhillel2005`, Algorithms 1 to 4, §5", "barhillel2005", "11 12"),
    ],
)
def test_what_a_line_covers(line, source, expected):
    found = equations.covers(f"**Time**: an hour.\n\n**Covers** {line}\n\n§3, eq. 2.1\n", TABLE)
    assert numbers(found, source) == expected.split()


def test_section_1_is_not_the_beginning_of_section_10():
    found = equations.covers("**Covers** {cite:t}`barhillel2005`, §1 and §8.1", TABLE)
    inside = [f"8.1.{n}" for n in range(1, 7)]
    assert numbers(found, "barhillel2005", "sect") == ["1", "8.1", *inside]


def test_slides_are_covered_by_title():
    def slides(line):
        return numbers(equations.covers(f"**Covers** {line}", TABLE), "green", "slide")

    assert slides("{cite:t}`green`, the semi-supervised slides") == ["Semi-supervised"]
    assert slides('the "initial guess" of {cite:t}`green`.') == ["Initial guess"]
    up_to = ["Introduction", "Supervised", "Unsupervised", "Likelihood"]
    assert slides("{cite:t}`green`, up to the likelihood") == up_to
    last = slides("{cite:t}`green`, the unsupervised slides and the appendix")
    assert last[0] == "Unsupervised"
    assert {"The EM algorithm", "Maximisation step"} < set(last)
    assert "Semi-supervised" not in last


@pytest.mark.parametrize(
    "words",
    [
        "as in [{cite:p}`lu2007`, eqs. 3.1 and 3.2]",
        "by eqs. (3.1) and (3.2) of {cite:t}`lu2007`, which",
        "eq. 3.1 of\n{cite:t}`lu2007` and {cite:t}`lu2007`, eq. 3.2",
        ":::{admonition} Erratum: lu2007, eqs. 3.1 to 3.2",
    ],
)
def test_equations_cited_in_the_text(words):
    assert numbers(equations.cited(words, TABLE), "lu2007") == ["3.1", "3.2"]


def test_a_chapter_that_cites_what_is_not_there_is_named(tmp_path):
    path = tmp_path / "05_wrong.ipynb"
    cells = [{"cell_type": "markdown", "source": ["by {cite:t}`lu2007`, eq. 3.6"]}]
    path.write_text(json.dumps({"cells": cells}), encoding="utf8")
    with pytest.raises(TagError, match=r"05_wrong\.ipynb: .*has no eq '3\.6'"):
        equations.covered(path, TABLE)


@pytest.mark.parametrize(
    ("path", "scope", "expected"),
    [
        ("cgmm/mixture/loop.py", ("e_step",), "{py:func}`~cgmm.mixture.e_step`"),
        ("cgmm/mixture/loop.py", (), "{py:mod}`~cgmm.mixture.loop`"),
        ("cgmm/mixture/loop.py", ("_log_z_without_data",), "{py:mod}`~cgmm.mixture.loop`"),
        ("cgmm/mixture/weights.py", ("Prior",), "{py:class}`~cgmm.mixture.Prior`"),
        (
            "cgmm/mixture/weights.py",
            ("Prior", "log_z"),
            "{py:meth}`~cgmm.mixture.Prior.log_z`",
        ),
        ("cgmm/mixture/weights.py", ("Prior", "__init__"), "{py:class}`~cgmm.mixture.Prior`"),
        ("cgmm/mixture/weights.py", ("Prior", "is_one"), "{py:class}`~cgmm.mixture.Prior`"),
        (
            "cgmm/inference/pairs.py",
            ("pairs", "infer"),
            "{py:func}`~cgmm.inference.pairs.pairs`",
        ),
        ("cgmm/inference/__init__.py", (), "{py:mod}`~cgmm.inference`"),
    ],
)
def test_links_go_to_what_is_documented(path, scope, expected):
    site = Site(path, Tag("[lu2007, eq. 2.1]", 1), scope)
    assert equations.links([site, site]) == expected


def test_a_function_stands_for_its_module():
    def site(*scope):
        return Site("cgmm/mixture/weights.py", Tag("[lu2007, eq. 2.1]", 1), scope)

    both = [site("_maximise"), site("exact"), site("Prior", "log_z")]
    expected = "{py:func}`~cgmm.mixture.exact`, {py:meth}`~cgmm.mixture.Prior.log_z`"
    assert equations.links(both) == expected
