"""The page of equations is what the table, the tags and the chapters say now."""

from __future__ import annotations

import importlib
import pydoc
import re

import equations
import pytest
from equation_grammar import Tag, load_table
from equation_tags import Site

TABLE = load_table()


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


# ---------------------------------------------------------------------- links into the package

ROOM = {
    "cgmm/room/__init__.py": """
from cgmm.room.loop import State, _inner, step
from cgmm.room.other import helper

__all__ = ["State", "helper", "step"]
""",
    "cgmm/room/loop.py": """
class State:
    def log_z(self):
        \"\"\"Is documented.\"\"\"

    @property
    def size(self):
        \"\"\"Is a property.\"\"\"

    def __init__(self):
        pass

def step():
    pass

def helper():
    pass

def _inner():
    pass
""",
    "cgmm/room/engine.py": "__all__ = ['engine']\n\ndef engine():\n    pass\n",
}


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A small package: a door, a file whose names it lists, and one that lists its own."""
    for path, text in ROOM.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf8")
    monkeypatch.setattr(equations, "ROOT", tmp_path)
    equations._body.cache_clear()
    yield
    equations._body.cache_clear()


def site(file, *scope):
    return Site(f"cgmm/room/{file}.py", Tag("[lu2007, eq. 2.1]", 1), scope)


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        (site("loop", "step"), "{py:func}`~cgmm.room.step`"),
        (site("loop", "step", "inside"), "{py:func}`~cgmm.room.step`"),
        (site("loop", "State"), "{py:class}`~cgmm.room.State`"),
        (site("loop", "State", "log_z"), "{py:meth}`~cgmm.room.State.log_z`"),
        (site("loop", "State", "size"), "{py:class}`~cgmm.room.State`"),
        (site("loop", "State", "__init__"), "{py:class}`~cgmm.room.State`"),
        (site("loop"), "{py:mod}`~cgmm.room.loop`"),
        (site("loop", "_inner"), "{py:mod}`~cgmm.room.loop`"),
        # The door has a name like it, but from another file.
        (site("loop", "helper"), "{py:mod}`~cgmm.room.loop`"),
        # The door lacks it, and its file lists it.
        (site("engine", "engine", "infer"), "{py:func}`~cgmm.room.engine.engine`"),
        (site("__init__"), "{py:mod}`~cgmm.room`"),
    ],
)
def test_links_go_to_what_is_documented(room, site, expected):
    assert equations.links([site, site]) == expected


def test_a_public_function_stands_for_its_file(room):
    found = [site("loop", "_inner"), site("loop", "step"), site("engine")]
    expected = "{py:func}`~cgmm.room.step`, {py:mod}`~cgmm.room.engine`"
    assert equations.links(found) == expected


def test_every_link_of_the_page_leads_somewhere():
    names = set(re.findall(r"\{py:\w+\}`~([\w.]+)`", equations.page()))
    assert len(names) > 20
    assert [name for name in sorted(names) if not leads_somewhere(name)] == []


def leads_somewhere(name):
    """A module that bears its function's name is hidden behind it, but can be imported."""
    if pydoc.locate(name) is not None:
        return True
    module, _, function = name.rpartition(".")
    return hasattr(importlib.import_module(module), function)
