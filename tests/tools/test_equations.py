"""The page of equations has them all, and says of none that it is computed where it is not."""

from __future__ import annotations

import equations
from equation_grammar import load_table

TABLE = load_table()


def test_every_equation_has_a_row():
    text = equations.page()
    for source, entry in TABLE.items():
        part = text.split(f"(equations-{source})=")[1].split("\n(equations-")[0]
        first = [row.split(" | ")[0] for row in part.splitlines()]
        numbers = [cell[3:-1].replace("\\", "") for cell in first if cell.startswith("| (")]
        assert numbers == list(entry.get("eq", {}))


def test_an_equation_without_code_or_reason_is_named(monkeypatch, capsys):
    table = load_table()
    del table["lu2007"]["eq"]["C.13"]["no_code"]
    monkeypatch.setattr(equations, "load_table", lambda: table)
    assert equations.main() == 1
    assert "lu2007 eq C.13: no tag in cgmm names it" in capsys.readouterr().out
