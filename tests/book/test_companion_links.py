"""Test that links in sentences set the figure of 32 points to the state that they describe."""

import re
from html import unescape

import pytest
from cells import CHAPTERS, read_cells, read_prose
from playwright.sync_api import expect

# Status of the figure after a click on each link, in the order of the text. tests/explore compares
# such numbers with those that cgmm.primer computes.
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


PATHS = {path.stem: path for path in CHAPTERS}


def find_cell(name: str, cell_id: str) -> dict:
    """Return the cell of a chapter with this id."""
    return next(cell for cell in read_cells(PATHS[name]) if cell["id"] == cell_id)


@pytest.mark.parametrize("name", SHOWN)
def test_links_in_sentences_set_the_figure(browser, tmp_path, name):
    links = [unescape(one) for one in LINK.findall(read_prose(PATHS[name]))]
    anchors = "".join(f'<a href="{one}">{n}</a> ' for n, one in enumerate(links))
    figure = "".join(find_cell(name, "companion")["outputs"][0]["data"]["text/html"])
    (tmp_path / "page.html").write_text(PAGE.format(figure=figure, links=anchors), "utf8")
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


# The introductions of these chapters name no number of the status.
WITHOUT_NATS = {"08_the_normaliser", "12_rca", "14_choosing_a_method"}


@pytest.mark.parametrize("name", sorted(SHOWN.keys() - WITHOUT_NATS))
def test_text_gives_the_numbers_of_nats_that_the_figure_reports(name):
    text = "".join(find_cell(name, "companion-intro")["source"])
    assert set(re.findall(r"by (\d+\.\d)", " ".join(SHOWN[name]))) <= set(
        re.findall(r"\d+\.\d", text)
    )
    # Chapters 1 and 2 give the difference of the two maxima, −137.3 and −161.3.
    if name in ("01_mixtures", "02_em"):
        assert re.findall(r"(\d+\.\d) nats", text) == ["24.0"]
