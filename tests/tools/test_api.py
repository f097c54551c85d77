"""The pages of the package name what the doors offer, and are written anew when they change."""

from __future__ import annotations

import ast

import api
import api_names
import imported
import pytest

ROOMS = {room.itself.short: room for room in api_names.rooms()}


def test_the_pages_are_up_to_date(capsys):
    assert api.main(["--check"]) == 0, capsys.readouterr().out


def test_every_room_has_its_page():
    written = api.pages()
    for short, room in ROOMS.items():
        assert f".. automodule:: cgmm.{short}\n" in written[api.FOLDER / f"{short}.md"]
        assert room.title
    assert [*ROOMS][: len(api_names.TITLES)] == [*api_names.TITLES]


def test_every_public_name_has_one_entry():
    text = "\n".join(api.pages().values())
    for room in ROOMS.values():
        for one in [*room.classes, *room.others]:
            assert sum(line.endswith(f":: {one.name}") for line in text.splitlines()) == 1, one


def test_no_two_pages_have_one_name():
    """Nor where letters of both cases are the same."""
    names = [str(path).casefold() for path in api.pages()]
    assert len(set(names)) == len(names)


def test_constants_are_those_with_a_docstring():
    (weights,) = (file for file in ROOMS["mixture"].files if file.short == "weights")
    shorts = {one.short for one in api_names.constants(weights)}
    assert "UPDATES" in shorts
    assert "UNMATCHED" not in shorts


def test_estimators_come_first():
    names = [line.rpartition("/")[2] for line in api._contents().partition(api.ENTRY)[2].split()]
    first = [one.short for room in ROOMS.values() for one in room.classes
             if api_names.is_estimator(one)]  # fmt: skip
    assert "ConstrainedGaussianMixture" in first
    assert "ConstrainedMixture" not in first
    assert [name for name in names if name in {*first, *ROOMS}][: len(first)] == first


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The pages in a folder of their own."""
    monkeypatch.setattr(api, "FOLDER", tmp_path / "api")
    (tmp_path / "_toc.yml").write_text(api.CONTENTS.read_text(encoding="utf8"), encoding="utf8")
    monkeypatch.setattr(api, "CONTENTS", tmp_path / "_toc.yml")
    assert api.main([]) == 0
    assert api.main(["--check"]) == 0
    return tmp_path


def test_a_page_that_misses_something_is_stale(copy, capsys):
    page = copy / "api/mixture.md"
    page.write_text(page.read_text(encoding="utf8").replace("loop", "lop"), encoding="utf8")
    assert api.main(["--check"]) == 1
    assert "mixture.md is stale" in capsys.readouterr().out


def test_a_page_of_what_is_gone_goes_too(copy, capsys):
    page = copy / "api/mixture/Gone.md"
    page.write_text("# Gone\n", encoding="utf8")
    assert api.main(["--check"]) == 1
    assert "Gone.md shows what is gone" in capsys.readouterr().out
    assert page.exists()
    assert api.main([]) == 0
    assert not page.exists()


def test_the_contents_keep_what_others_wrote(copy):
    contents = copy / "_toc.yml"
    text = contents.read_text(encoding="utf8")
    contents.write_text(text.replace("book/using", "book/other") + "  rubbish\n", encoding="utf8")
    assert api.main([]) == 0
    assert contents.read_text(encoding="utf8") == text.replace("book/using", "book/other")
    contents.write_text("format: jb-book\n", encoding="utf8")
    with pytest.raises(ValueError, match="book/api/index"):
        api.main([])


# --------------------------------------------------------------------------- what chapters import


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("from cgmm.mixture import em as loop, e_step", {"mixture.em", "mixture.e_step"}),
        ("from cgmm import datasets as d\nd.load(X); X.shape", {"datasets.load"}),
        ("import cgmm\ncgmm.mixture.em; cgmm.RCA().fit", {"mixture.em", "RCA"}),
        ("import cgmm.mixture\ncgmm.kmeans.lloyd", {"kmeans.lloyd"}),
        ("import cgmm.mixture as m\nm.em", {"mixture.em"}),
        ("import numpy as np\nnp.exp(0)", set()),
    ],
)
def test_names_that_code_takes_from_the_package(code, names):
    assert imported.names_from_package(ast.parse(code)) == {f"cgmm.{name}" for name in names}


@pytest.mark.parametrize(
    ("name", "chapter"),
    [
        ("cgmm.mixture.ConstrainedGaussianMixture", "03_practice"),
        ("cgmm.network.SideInformation", "01_mixtures"),
        ("cgmm.inference.ENGINES", "02_em"),
        ("cgmm.inference.mirror.contract_mirrored", "07_cannot_links"),
    ],
)
def test_chapters_are_found_from_whichever_door_they_import(name, chapter):
    assert chapter in api_names.chapters_of(api_names.Name(name, "func", ""))


@pytest.mark.parametrize(
    ("name", "role", "sentence"),
    [
        ("cgmm.network.Graph", "class",
         "Nodes and weighted edges; the states of the nodes are given by the unaries later."),
        ("cgmm.mixture.FamilyPooling", "class",
         "A family of components, such as :class:`~cgmm.mixture.Pooling`, beside its densities."),
        ("cgmm.inference.gibbs", "mod",
         "Gibbs sampling: visit assignments as often as they are probable, and average."),
    ],
)  # fmt: skip
def test_a_sentence_stands_alone(name, role, sentence):
    assert api_names.first_sentence(api_names.Name(name, role, "")) == sentence
