"""Convert Markdown with formulas to self-contained HTML pages and to PDF, for slides and papers.

Chromium opens the page without a network, and MathJax turns the formulas into SVG drawings inside
it. Then the scripts of MathJax are removed, so that the page needs no other file.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import chromium
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from playwright.sync_api import Page, sync_playwright

MATHJAX = Path(__file__).parents[1] / "book/_static/vendor/mathjax/startup.js"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
{head}
</head>
<body>
{body}
</body>
</html>
"""
MATHJAX_HEAD = """<script class="once">
MathJax = {{
  loader: {{load: ["input/tex", "output/svg"]}},
  svg: {{fontCache: "global"}},
}};
</script>
<script class="once" src="{source}"></script>"""
# Remove the scripts by which MathJax works, but not the formulas that it has drawn.
REMOVE_MATHJAX = """() => {
    document.querySelectorAll("script.once, #MJX-SVG-styles ~ script").forEach(x => x.remove());
    document.querySelectorAll("head script[src]").forEach(x => x.remove());
}"""


def markdown(text: str) -> str:
    """Convert Markdown to HTML, in which formulas are still TeX."""
    return _make_parser().render(text)


def _make_parser() -> MarkdownIt:
    """Return a Markdown parser that knows tables, typographic quotes and formulas."""
    parser = MarkdownIt("commonmark", {"typographer": True}).enable(["table", "smartquotes"])
    return parser.use(dollarmath_plugin, renderer=_format_formula, double_inline=True)


def _format_formula(content: str, options: dict) -> str:
    """Return a formula between the delimiters that MathJax expects."""
    left, right = (r"\[", r"\]") if options["display_mode"] else (r"\(", r"\)")
    return html.escape(f"{left}{content.strip()}{right}")


def without_roles(text: str, labels: dict[str, str] | None = None) -> str:
    """Replace the roles in a text of the book by the words that a reader would see."""

    def shown_text(match: re.Match) -> str:
        role, content = match[1], match[2]
        shown, _, target = content.partition(" <")
        target = target.rstrip(">") or content
        if role.startswith("cite"):
            names = [re.sub(r"^(\D+)(\d{4}).*", r"\1 \2", key.strip()) for key in target.split(",")]
            return ", ".join(name.title() for name in names)
        if role in ("doc", "eq", "prf:ref", "numref") and shown == content:
            found = re.match(r"(\d\d)_", content)
            return f"Chapter {int(found[1])}" if found else (labels or {}).get(content, content)
        return shown

    return re.sub(r"\{([a-z:]+)\}`([^`]+)`", shown_text, text)


@contextmanager
def browser_page(width: int = 1280, height: int = 720, scale: int = 1) -> Iterator[Page]:
    """Yield an empty browser page whose screenshots are enlarged by the factor ``scale``."""
    with sync_playwright() as engine:
        browser = chromium.launch(engine)
        size = {"width": width, "height": height}
        yield browser.new_page(viewport=size, device_scale_factor=scale)
        browser.close()


def typeset(page: Page, title: str, style: str, body: str, path: Path) -> None:
    """Write a self-contained HTML page with its formulas typeset, and leave it open."""
    head = MATHJAX_HEAD.format(source=MATHJAX.as_uri())
    raw = PAGE.format(title=html.escape(title), style=style, head=head, body=body)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(raw, encoding="utf8")
    page.goto(path.resolve().as_uri())
    page.evaluate("MathJax.startup.promise.then(() => document.fonts.ready).then(() => null)")
    wrong = page.locator("mjx-merror, [data-mjx-error]")
    if wrong.count():
        message = wrong.first.get_attribute("data-mjx-error")
        raise ValueError(f"{title}: MathJax cannot read a formula: {message}")
    page.evaluate(REMOVE_MATHJAX)
    path.write_text(page.content(), encoding="utf8")


def print_pdf(page: Page, path: Path) -> None:
    """Print the open page to PDF, in the page size that its style sheet sets."""
    page.pdf(path=path, prefer_css_page_size=True, print_background=True)
