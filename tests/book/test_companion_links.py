"""Test that links to the figure of 32 points set the states that their sentences describe."""

import re
from html import unescape

import pytest
from cells import CHAPTERS, cells, prose
from playwright.sync_api import expect

# What the figure reports after each link, in the order of the text. tests/explore compares such
# numbers with the primer.
SHOWN = {
    "01_mixtures": ["51.0 nats below", "25.1 nats below", "3 links"],
    "02_em": ["After E5: log-evidence −137.3", "After E5: log-evidence −161.3"],
    "04_some_labels": ["level by 2.6", "upright by 13.3"],
    "06_chunklet_em": ["level by 0.1", "upright by 3.5"],
    "07_cannot_links": ["level by 2.6", "upright by 12.9", "level by 37.0"],
    "08_the_normaliser": ["Shares 1.00 and 0.00", "Shares 0.67 and 0.33"],
    "09_soft_preferences": ["level by 16.0", "upright and level, equally likely", "upright by 7.3"],
    "12_rca": ["level, from every", "upright, from every", "level by 24.0"],
    "14_choosing_a_method": [
        "upright by 13.3", "upright by 3.5", "upright by 12.9", "upright, from every",
        "level by 24.0",
    ],
}  # fmt: skip
LINK = re.compile(r'<a href="(#figure=[^"]+)">')
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Chapter</title></head>
<body><h1>Chapter</h1>{figure}{links}</body></html>"""


def stored_figure(path) -> str:
    """Return the stored output of the cell that shows the figure."""
    (cell,) = [one for one in cells(path) if one["id"] == "companion"]
    return "".join(cell["outputs"][0]["data"]["text/html"])


@pytest.mark.parametrize("name", SHOWN)
def test_links_in_sentences_set_the_figure(browser, tmp_path, name):
    (path,) = [one for one in CHAPTERS if one.stem == name]
    links = [unescape(one) for one in LINK.findall(prose(path))]
    anchors = "".join(f'<a href="{one}">{n}</a> ' for n, one in enumerate(links))
    html = PAGE.format(figure=stored_figure(path), links=anchors)
    (tmp_path / "page.html").write_text(html, "utf8")
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto((tmp_path / "page.html").as_uri())
    assert len(links) == len(SHOWN[name])
    for n, words in enumerate(SHOWN[name]):
        page.get_by_role("link", name=str(n), exact=True).click()
        expect(page.locator(".cgmm-live-status")).to_contain_text(words)
    page.close()
    assert errors == []


@pytest.mark.parametrize("name", ["01_mixtures", "02_em"])
def test_nats_in_the_text_equal_differences_in_the_figure(name):
    """For example, 24.0 nats are the difference of the two maxima, −161.3 and −137.3."""
    (path,) = [one for one in CHAPTERS if one.stem == name]
    (text,) = ["".join(c["source"]) for c in cells(path) if c["id"] == "companion-intro"]
    assert re.findall(r"(\d+\.\d) nats", text) == [f"{161.3 - 137.3:.1f}"]


def test_nats_in_linked_sentences_equal_those_of_the_figure():
    """A number of nats in a sentence is the one that the figure reports after its link."""
    for path in CHAPTERS:
        numbers = set(re.findall(r"by (\d+\.\d)", " ".join(SHOWN.get(path.stem, []))))
        text = " ".join("".join(c["source"]) for c in cells(path) if c["id"] == "companion-intro")
        if path.stem not in ("12_rca", "14_choosing_a_method"):
            assert numbers <= set(re.findall(r"\d+\.\d", text)), path.stem
