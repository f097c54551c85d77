"""Markdown with formulas to pages that need nothing else, and to PDF; slides and papers use it.

MathJax sets the formulas, in Chromium and without a network, as drawings within the page; then it
is taken out again.
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
# What MathJax has put there to work, beside what is seen.
TAKE_OUT = """() => {
    document.querySelectorAll("script.once, #MJX-SVG-styles ~ script").forEach(x => x.remove());
    document.querySelectorAll("head script[src]").forEach(x => x.remove());
}"""


def markdown(text: str) -> str:
    """HTML of a text in Markdown; formulas are left to MathJax."""
    return _parser().render(text)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"typographer": True}).enable(["table", "smartquotes"])
    return parser.use(dollarmath_plugin, renderer=_formula, double_inline=True)


def _formula(content: str, options: dict) -> str:
    left, right = (r"\[", r"\]") if options["display_mode"] else (r"\(", r"\)")
    return html.escape(f"{left}{content.strip()}{right}")


def without_roles(text: str, named: dict[str, str] | None = None) -> str:
    """A text of the book in plain Markdown: what its roles point to is named instead."""

    def plain(match: re.Match) -> str:
        role, content = match[1], match[2]
        shown, _, target = content.partition(" <")
        target = target.rstrip(">") or content
        if role.startswith("cite"):
            names = [re.sub(r"^(\D+)(\d{4}).*", r"\1 \2", key.strip()) for key in target.split(",")]
            return ", ".join(name.title() for name in names)
        if role in ("doc", "eq", "prf:ref", "numref") and shown == content:
            found = re.match(r"(\d\d)_", content)
            return f"Chapter {int(found[1])}" if found else (named or {}).get(content, content)
        return shown

    return re.sub(r"\{([a-z:]+)\}`([^`]+)`", plain, text)


@contextmanager
def browser_page(width: int = 1280, height: int = 720, scale: int = 1) -> Iterator[Page]:
    """An empty page of a browser; pictures of it have ``scale`` pixels for each of its own."""
    with sync_playwright() as engine:
        browser = chromium.launch(engine)
        size = {"width": width, "height": height}
        yield browser.new_page(viewport=size, device_scale_factor=scale)
        browser.close()


def typeset(page: Page, title: str, style: str, body: str, path: Path) -> None:
    """Open a page, set its formulas, and write it to a file that needs no other."""
    head = MATHJAX_HEAD.format(source=MATHJAX.as_uri())
    raw = PAGE.format(title=html.escape(title), style=style, head=head, body=body)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(raw, encoding="utf8")
    page.goto(path.resolve().as_uri())
    page.evaluate("MathJax.startup.promise.then(() => document.fonts.ready).then(() => null)")
    wrong = page.locator("mjx-merror, [data-mjx-error]")
    if wrong.count():
        raise ValueError(f"{title}: no formula: {wrong.first.get_attribute('data-mjx-error')}")
    page.evaluate(TAKE_OUT)
    path.write_text(page.content(), encoding="utf8")


def print_pdf(page: Page, path: Path) -> None:
    """Print the open page as its style sheet says."""
    page.pdf(path=path, prefer_css_page_size=True, print_background=True)
