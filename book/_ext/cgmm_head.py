"""Sphinx extension that adds a description to each page's head, and BibTeX and version to its foot.

If _config.yml contains their addresses, it also adds a link for error reports and the buttons that
run a chapter on Binder or Colab.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import escape
from os import environ
from time import time
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from cgmm import __version__

LONGEST = 200
# sphinx-book-theme has this tag already, so remove the one that docutils adds.
VIEWPORT = re.compile(r"<meta[^>]*name=.viewport.[^>]*>")
RUN_BUTTONS = {
    "binderhub_url": "https://mybinder.org",
    "colab_url": "https://colab.research.google.com",
}
FOOT = """
<div class="cgmm-foot">
<p>Version {version}, built on {date}.{report}</p>
<details><summary>Cite this page</summary>
<div class="highlight-bibtex notranslate"><div class="highlight"><pre>{bibtex}</pre></div></div>
</details>
</div>
"""
BIBTEX = """@incollection{{cgmm-{key},
  author    = {{{{{author}}}}},
  title     = {{{title}}},
  booktitle = {{{book}}},
  year      = {{{year}}},
  note      = {{Version {version}}}
}}"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_config_value("cgmm_report_url", "", "html")
    app.connect("config-inited", show_run_buttons)
    app.connect("html-page-context", add_description)
    app.connect("html-page-context", add_foot)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def show_run_buttons(app: Sphinx, config: Config) -> None:
    """Show the buttons of Binder and Colab if a repository is configured that they can open."""
    options = config.html_theme_options
    if options.get("repository_url"):
        options["launch_buttons"] = RUN_BUTTONS | {
            key: value for key, value in options.get("launch_buttons", {}).items() if value
        }


def add_description(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Add a description to the head of a page, for search engines and previews of links."""
    text = description(doctree) if doctree else ""
    values = {"og:type": "article", "og:title": strip_html(context.get("title", "")),
            "og:site_name": app.config.html_title, "og:description": text}  # fmt: skip
    tags = [
        f'<meta property="{name}" content="{escape(one)}">' for name, one in values.items() if one
    ]
    if text:
        tags.insert(0, f'<meta name="description" content="{escape(text)}">')
    context["metatags"] = VIEWPORT.sub("", context.get("metatags", "")) + "\n".join(tags)


def description(doctree: nodes.document) -> str:
    """Return the first paragraph of a page, shortened to 200 letters between two words."""
    first = next((one for one in doctree.findall(nodes.paragraph) if one.astext().strip()), None)
    text = " ".join(first.astext().split()) if first else ""
    text = text.removeprefix("The question. ")
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"


def add_foot(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Add version, date, citation and the link for error reports to the foot of a page."""
    if doctree is None or app.builder.name != "html":
        return
    about = {"version": __version__, "author": app.config.author, "book": app.config.html_title}
    day = datetime.fromtimestamp(float(environ.get("SOURCE_DATE_EPOCH", time())), UTC)
    bibtex = BIBTEX.format(
        key=pagename.rsplit("/", 1)[-1], title=strip_html(context["title"]), year=day.year, **about
    )
    context["body"] += FOOT.format(
        version=about["version"], date=f"{day.day} {day:%B %Y}", bibtex=escape(bibtex),
        report=report_link(app.config.cgmm_report_url, pagename),
    )  # fmt: skip


def report_link(address: str, pagename: str) -> str:
    """Return the link for error reports, or "" if no address is configured."""
    if not address:
        return ""
    href = escape(address.replace("{page}", quote(pagename)))
    return f' <a class="cgmm-report" href="{href}">Report an error on this page</a>.'


def strip_html(title: str) -> str:
    """Return a title without HTML tags and formula delimiters."""
    return " ".join(re.sub(r"<[^>]+>|\\[()]", "", title).split())
