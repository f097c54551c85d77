"""Collect the search entries and the previews of links from the built pages.

Browsers let no page opened from a plain file fetch another. So both are scripts that a page can
load: ``_static/search_entries.js`` has, page by page, everything with a name or a number, and each
section with its words; ``_static/previews/`` has a file a page, of what its links lead to.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import cgmm_download
from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx

ARTICLE = re.compile(r'<article class="bd-article".*?</article>', re.DOTALL)
# Embedded pictures and listings, most of the bytes of a page, are neither searched nor shown.
EMBEDDED = re.compile(
    r"data:image/[^\"']+|<script\b.*?</script>|<svg\b.*?</svg>|<pre>.*?</pre>", re.DOTALL
)
# Parts without prose: code, its output, and the buttons of live figures.
CODE = (
    "div.highlight, div.cell_input, details.hide > summary, div.cell_output > :not(figure), "
    ".cgmm-explorer, .cgmm-work, style"
)
HEADINGS = ["h1", "h2", "h3", "h4"]
# Parts that are entries of their own; their words do not count for the section once more.
FRAMED = "div.proof, div.exercise, figure, dl.glossary > dt, dl.glossary > dd, dl.py, div.citation"
NUMBER = re.compile(r"\d+(?:\.\d+)*")
LETTERS = (
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi "
    "psi omega Gamma Delta Theta Lambda Sigma Phi Psi Omega"
)
GREEK = dict(zip(LETTERS.split(), "αβγδεζηθκλμνξπρστφχψωΓΔΘΛΣΦΨΩ", strict=True))
GREEK |= {f"var{name}": letter for name, letter in GREEK.items()}
SIGNS = {"le": "≤", "ge": "≥", "ne": "≠", "sum": "∑", "prod": "∏", "infty": "∞", "approx": "≈",
         "to": "→", "propto": "∝", "partial": "∂", "mid": "|", "in": "∈",
         "cdot": "·", "times": "×", "pm": "±", "top": "ᵀ", "ell": "ℓ", "dots": "…", "ldots": "…",
         "cdots": "…", "lvert": "|", "rvert": "|", "lVert": "‖", "rVert": "‖", "Vert": "‖",
         "longrightarrow": "→", "quad": " "}  # fmt: skip

# Innermost fractions, and commands that only change the letters of what is in their braces.
FRACTION = re.compile(r"\\[td]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
FACE = re.compile(
    r"\\(?:math(?:cal|bf|sf|rm|bb)|boldsymbol|operatorname|text(?:rm|bf|it)?)\s*\{([^{}]*)\}"
)
# Commands that leave no sign in plain text.
LAYOUT = re.compile(
    r"\b(?:math(?:cal|bf|sf|rm|bb)|boldsymbol|operatorname|text(?:style)?|displaystyle|left|right|"
    r"[bB]igg?[lr]?|q?quad|hat|bar|tilde|[td]?frac|split|aligned?|middle|limits|label)\b"
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx; last of all, when the pages are written."""
    app.connect("build-finished", write_all, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_all(app: Sphinx, exception: Exception | None) -> None:
    """Read every page of the book once, and write both kinds of scripts."""
    if exception is not None or app.builder.format != "html":
        return
    site, wanted = Path(app.outdir), set()
    articles: dict[str, BeautifulSoup] = {}
    for page in sorted(app.env.found_docs):
        found = ARTICLE.search((site / f"{page}.html").read_text(encoding="utf8"))
        if not found:
            continue
        articles[page] = BeautifulSoup(EMBEDDED.sub("", found[0]), "html.parser")
        wanted |= targets(page, articles[page])
    previews = {page: previews_of(page, article, wanted) for page, article in articles.items()}
    # The browser loads this list first; it names the other files.
    previews = {page: shown for page, shown in previews.items() if shown}
    for page, shown in ({"pages": dict.fromkeys(previews, "")} | previews).items():
        path = site / "_static/previews" / f"{page}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"cgmmPreviews({script(page)}, {script(shown)});\n", encoding="utf8")
    for article in articles.values():
        simplify(article)
    asked = tomllib.loads((Path(app.srcdir) / "book/_data/asked.toml").read_text(encoding="utf8"))
    alike = asked.pop("alike").strip().split("\n")
    entries = {page: entries_of(page, article) for page, article in articles.items()}
    cgmm_download.write_notebooks(site, entries)
    pages = {f"{page}.html": with_questions(page, one, asked) for page, one in entries.items()}
    text = ENTRIES % (script(alike), script(pages))
    (site / "_static/search_entries.js").write_text(text, encoding="utf8")
    # Sphinx's own index is not used.
    (site / "searchindex.js").unlink(missing_ok=True)


def script(thing: object) -> str:
    """Return a value as a script literal that is safe inside a page."""
    return json.dumps(thing, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")


# ---------------------------------------------------------------------------- what is searched


# Address and title of a page are written once: repeated, they would be a tenth of the file.
ENTRIES = """const ALIKE = %s;
const ENTRIES = Object.entries(%s).flatMap(([address, [page, entries]]) =>
  entries.map(([kind, title, anchor, text, number, asked]) =>
    ({kind, title, url: anchor ? `${address}#${anchor}` : address, page, text, number, asked})));
"""


def with_questions(
    page: str, entries: tuple[str, list[tuple[str, ...]]], asked: dict[str, str]
) -> tuple[str, list[tuple[str, ...]]]:
    """Return title and entries of a page, with the questions that readers ask about each place."""
    title, parts = entries
    address = page.removeprefix("book/")
    found = []
    for kind, name, anchor, text, *number in parts:
        questions = asked.get(f"{address}#{anchor}" if anchor else address, "").strip()
        tail = (number[0] if number else "", questions) if questions else number
        found.append((kind, name, anchor, text, *tail))
    return title, found


def entries_of(page: str, article: BeautifulSoup) -> tuple[str, list[tuple[str, ...]]]:
    """Return the title of a page and its entries: the page, named or numbered parts, and sections.

    An entry is kind, title, anchor, words and, if there is one, number.
    """
    first = article.find("h1")
    title = words(first) if first else page
    number, _, name = title.partition(". ") if re.match(r"\d+\. ", title) else ("", "", title)
    entries = list(named(article))
    for one in article.select(CODE) + article.select(FRAMED):
        one.extract()
    for heading in article.find_all(HEADINGS):
        below = heading.parent.find_all(recursive=False)
        own = " ".join(words(one) for one in below if one.name not in {"section", *HEADINGS})
        if heading is first:
            entries.append(("page", name, "", own, *([number] if number else [])))
        else:
            title = re.sub(r"^[\d.]+ ", "", words(heading))
            entries.append(("section", title, heading.parent["id"], own))
    return f"{number} {name}".strip(), entries


def named(article: BeautifulSoup) -> Iterator[tuple[str, ...]]:
    """Yield kind, name, anchor, words and number of each named or numbered part."""
    for one in article.select("div.proof[id], div.exercise[id]"):
        head = one.find("p", class_="admonition-title", recursive=False)
        if not head or not (number := NUMBER.search(title := words(head))):
            continue
        text = " ".join(words(p) for p in one.find_all(recursive=False)[1:])
        kind = "exercise" if "exercise" in one["class"] else "theorem"
        yield kind, title, one["id"], text, number[0]
    for one in article.select("figure[id]"):
        if number := one.select_one(".caption-number"):
            text = words(one.select_one(".caption-text"))
            yield "figure", words(number), one["id"], text, NUMBER.search(words(number))[0]
    for one in article.select("div.math[id][data-number]"):
        number, before = one["data-number"], one.find_previous("p")
        text = f"{words(before) if before else ''} {words(one)}"
        yield "equation", f"Equation ({number})", one["id"], text, number
    for one in article.select("dl.glossary > dt[id]"):
        yield "term", words(one), one["id"], words(one.find_next_sibling("dd"))
    for one in article.select("dl.py > dt[id]"):
        text = one.find_next_sibling("dd").find("p")
        yield "name", one["id"], one["id"], words(text) if text else ""
    for one in article.select("div.citation[id]"):
        text = words(one.find("p"))
        yield "work", re.split(r"(?<=\w\w)\. ", text)[0], one["id"], text


def words(one: Tag) -> str:
    """Return the text of an element in one line."""
    return " ".join(one.get_text().split())


def simplify(article: BeautifulSoup) -> None:
    """Remove the signs of links, and write formulas in plain letters, with their number as data."""
    for sign in article.select("a.headerlink, .viewcode-link"):
        sign.decompose()
    for formula in article.select(".math"):
        if number := formula.select_one(".eqno"):
            formula["data-number"] = NUMBER.search(number.extract().get_text())[0]
        formula.string = plain(formula.get_text())


def plain(formula: str) -> str:
    """Return TeX as somebody would type it in a mail."""
    before = ""
    while formula != before:
        # From the innermost braces outwards, so that a fraction keeps its bar.
        before = formula
        formula = FACE.sub(r"\1", formula)
        formula = re.sub(r"([_^])\{([^{}]*)\}", r"\1\2", formula)
        formula = FRACTION.sub(lambda m: f"{_bracketed(m[1])}/{_bracketed(m[2])}", formula)
    formula = re.sub(r"\\[()\[\]{}|,;:!]|\\(?:begin|end)\{\w+\*?\}|[&{}~]|\\\\", " ", formula)
    known = GREEK | SIGNS
    formula = re.sub(r"\\([A-Za-z]+)", lambda m: known.get(m[1], f" {m[1]} "), formula)
    return LAYOUT.sub("", formula)


def _bracketed(part: str) -> str:
    """Return one side of a fraction, in brackets unless it is a single sign or name."""
    return part.strip() if re.fullmatch(r"\s*\\?\w+\s*", part) else f"({part.strip()})"


# ---------------------------------------------------------------------------- what a link shows


SHOWN = "div.proof, div.exercise, figure, div.math, dl.glossary > dt, div.citation"


def targets(page: str, article: BeautifulSoup) -> set[tuple[str, str]]:
    """Return page and anchor of every link within the book."""
    found = set()
    for link in article.select("a.reference.internal[href*='#'], .bibtex a, a[href*='#id']"):
        where, _, anchor = link["href"].partition("#")
        if "://" not in where:
            found.add((_resolve(page, where), anchor))
    return found


def _resolve(page: str, where: str) -> str:
    """Return the page that a relative address names."""
    if not where:
        return page
    parts = page.split("/")[:-1]
    for part in where.removesuffix(".html").split("/"):
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def previews_of(page: str, article: BeautifulSoup, wanted: set[tuple[str, str]]) -> dict[str, str]:
    """Return the previews of link targets on a page, by anchor."""
    places = {one["id"]: one for one in article.find_all(id=True)}
    leads = sorted(anchor for where, anchor in wanted if where == page and anchor in places)
    return {one: html for one in leads if (html := preview(page, places[one]))}


def preview(page: str, target: Tag) -> str:
    """Return the theorem, equation, figure, term or reference around a target, without links."""
    one = target if _is_shown(target) else target.find_parent(_is_shown)
    if one is None:
        return ""
    if one.name == "dt":
        text = f'<div class="cgmm-term"><strong>{one.find(string=True)}</strong> '
        copy = BeautifulSoup(f"{text}{one.find_next_sibling('dd').decode_contents()}</div>", PARSER)
    else:
        copy = BeautifulSoup(str(one), PARSER)
    return mend(page, copy)


PARSER = "html.parser"


def _is_shown(one: Tag) -> bool:
    if one.name == "dt":
        return "glossary" in one.parent.get("class", ())
    kinds = {"proof", "exercise", "math", "citation"}
    return one.name == "figure" or (one.name == "div" and bool(kinds & set(one.get("class", ()))))


def mend(page: str, copy: BeautifulSoup) -> str:
    """Return the HTML without links, buttons and ids; paths of pictures begin at the top folder."""
    for sign in copy.select("a.headerlink, details, button, span.label, span.backrefs, source"):
        sign.decompose()
    for link in copy.find_all(["a", "picture"]):
        link.unwrap()
    for one in copy.find_all(True):
        for name in ("id", "role", "tabindex"):
            one.attrs.pop(name, None)
        if one.name == "img":
            one["data-from-top"] = _resolve(page, one.attrs.pop("src", ""))
    return str(copy).strip()
