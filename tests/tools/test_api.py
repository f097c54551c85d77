"""The page of the package names what the doors offer, and is written anew when they change."""

from __future__ import annotations

import api
import pytest

import cgmm.mixture


def test_the_page_is_up_to_date(capsys):
    assert api.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("door", api.ROOMS)
def test_every_room_has_its_place(door):
    assert f".. automodule:: {door}\n" in api.page()


def test_constants_are_those_with_a_docstring():
    assert "UPDATES" in api._constants(cgmm.mixture.weights)
    assert "UNMATCHED" not in api._constants(cgmm.mixture.weights)


def test_a_page_that_misses_something_is_stale(monkeypatch, capsys, tmp_path):
    stale = tmp_path / "api.md"
    stale.write_text(api.page().replace("cgmm.mixture.loop", "cgmm.mixture.lop"), encoding="utf8")
    monkeypatch.setattr(api, "PAGE", stale)
    assert api.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().out
