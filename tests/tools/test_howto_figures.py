"""Test that each recipe has an up-to-date figure with a caption and alternative text."""

import re

import howto

PAGE = howto.PAGE.read_text(encoding="utf8")
FIGURE = re.compile(r"```\{figure\} (\S+)\n:alt: (.+)\n(?::\w+: \S+\n)+\n(.+)\n```")


def figure_path(recipe):
    """Return the path of a recipe's figure, relative to the page."""
    return howto.EXISTING_PICTURES.get(recipe, f"_figures/{recipe}.svg")


def test_each_recipe_has_its_figure_with_alternative_text_and_a_caption():
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert len(parts) == len(howto.headings()) > 15
    for part in parts:
        ((file, alt, caption),) = FIGURE.findall(part)
        assert file == figure_path(howto.slug(part.partition("\n")[0]))
        assert len(alt) > 30
        assert caption.endswith(".")
        assert (howto.PAGE.parent / file).exists(), "run python tools/howto.py"


def test_the_overview_links_to_all_recipes_in_order_with_their_figures():
    cards = re.findall(r":img-top: (\S+)\n:img-alt: .+\n:link: \"#(\S+)\"", PAGE)
    assert cards == [(figure_path(name), name) for name in howto.headings()]
    drawn = sorted(set(howto.headings()) - set(howto.EXISTING_PICTURES))
    assert sorted(howto.DRAWING_FUNCTIONS) == drawn
    assert sorted(path.stem for path in howto.FIGURES.iterdir()) == drawn


def test_stored_figures_have_the_same_texts_as_newly_drawn_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(howto, "FIGURES", tmp_path)
    stored = {path.stem: read_texts(path) for path in (howto.PAGE.parent / "_figures").iterdir()}
    howto.main()
    assert {path.stem: read_texts(path) for path in tmp_path.iterdir()} == stored


def read_texts(path):
    """Return the texts of an SVG file from its comments, because its letters are drawn as paths."""
    return re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf8"))
