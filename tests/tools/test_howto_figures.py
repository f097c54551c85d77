"""Each recipe has its figure: one of what the recipe computes, with an alternative text."""

import re

import howto

PAGE = howto.PAGE.read_text(encoding="utf8")
FIGURE = re.compile(r"```\{figure\} _figures/(\S+)\.svg\n:alt: (.+)\n:name: \S+\n\n(.+)\n```")


def test_each_section_has_its_figure_with_words_and_a_caption_that_is_a_sentence():
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert len(parts) == len(howto.headings()) > 15
    for part in parts:
        ((name, alt, caption),) = FIGURE.findall(part)
        assert name == howto.slug(part.partition("\n")[0])
        assert len(alt) > 30
        assert caption.endswith(".")
        assert (howto.FIGURES / f"{name}.svg").exists(), f"run python tools/howto.py for {name}"


def test_the_overview_has_a_thumbnail_for_each_section_in_order():
    cards = re.findall(r":img-top: _figures/(\S+)\.svg\n:img-alt: .+\n:link: \"#(\S+)\"", PAGE)
    assert cards == [(name, name) for name in howto.headings()]
    assert sorted(howto.DRAWN) == sorted(howto.headings())
    there = sorted(path.stem for path in howto.FIGURES.iterdir())
    assert there == sorted(howto.headings())


def test_figures_are_of_what_the_recipes_compute(tmp_path, monkeypatch):
    """The words and numbers in the stored figures are those of figures drawn now."""
    monkeypatch.setattr(howto, "FIGURES", tmp_path)
    stored = {path.stem: words(path) for path in (howto.PAGE.parent / "_figures").iterdir()}
    howto.main()
    assert {path.stem: words(path) for path in tmp_path.iterdir()} == stored


def words(path):
    """Texts of an SVG file are drawn as letters, each text with a comment that says what it is."""
    return re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf8"))
