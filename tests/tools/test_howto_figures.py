"""Each recipe has a figure of its result, with an alternative text."""

import re

import howto

PAGE = howto.PAGE.read_text(encoding="utf8")
FIGURE = re.compile(r"```\{figure\} (\S+)\n:alt: (.+)\n(?::\w+: \S+\n)+\n(.+)\n```")


def file_of(name):
    return howto.SHOWN.get(name, f"_figures/{name}.svg")


def test_each_section_has_its_figure_with_words_and_a_caption_of_sentences():
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert len(parts) == len(howto.headings()) > 15
    for part in parts:
        ((file, alt, caption),) = FIGURE.findall(part)
        assert file == file_of(howto.slug(part.partition("\n")[0]))
        assert len(alt) > 30
        assert caption.endswith(".")
        assert (howto.PAGE.parent / file).exists(), "run python tools/howto.py"


def test_the_overview_has_a_thumbnail_for_each_section_in_order():
    cards = re.findall(r":img-top: (\S+)\n:img-alt: .+\n:link: \"#(\S+)\"", PAGE)
    assert cards == [(file_of(name), name) for name in howto.headings()]
    drawn = sorted(set(howto.headings()) - set(howto.SHOWN))
    assert sorted(howto.DRAWN) == drawn
    assert sorted(path.stem for path in howto.FIGURES.iterdir()) == drawn


def test_figures_show_the_results_of_their_recipes(tmp_path, monkeypatch):
    """The words and numbers in the stored figures are those of figures drawn now."""
    monkeypatch.setattr(howto, "FIGURES", tmp_path)
    stored = {path.stem: words(path) for path in (howto.PAGE.parent / "_figures").iterdir()}
    howto.main()
    assert {path.stem: words(path) for path in tmp_path.iterdir()} == stored


def words(path):
    """Return the texts of an SVG file, read from the comments beside its drawn letters."""
    return re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf8"))
