"""Add a description to each page's head, and version, date and BibTeX to its foot.

A link for reports of errors, and the buttons that run a chapter elsewhere, appear once _config.yml
names the addresses.
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
# sphinx-book-theme has its own, docutils adds another.
VIEWPORT = re.compile(r"<meta[^>]*name=.viewport.[^>]*>")
RUNNERS = {
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
    app.connect("config-inited", offer_runners)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", add_foot)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def offer_runners(app: Sphinx, config: Config) -> None:
    """Show the buttons of Binder and Colab where there is a repository that they can open."""
    options = config.html_theme_options
    if options.get("repository_url"):
        options["launch_buttons"] = RUNNERS | {
            key: value for key, value in options.get("launch_buttons", {}).items() if value
        }


def describe(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Put a description into the head, for search engines and for previews of shared links."""
    text = description(doctree) if doctree else ""
    properties = {"og:type": "article", "og:title": plain(context.get("title", "")),
            "og:site_name": app.config.html_title, "og:description": text}  # fmt: skip
    tags = [
        f'<meta property="{name}" content="{escape(of)}">' for name, of in properties.items() if of
    ]
    if text:
        tags.insert(0, f'<meta name="description" content="{escape(text)}">')
    context["metatags"] = VIEWPORT.sub("", context.get("metatags", "")) + "\n".join(tags)


def description(doctree: nodes.document) -> str:
    """Return the first paragraph, cut between two words."""
    first = next((one for one in doctree.findall(nodes.paragraph) if one.astext().strip()), None)
    text = " ".join(first.astext().split()) if first else ""
    text = text.removeprefix("The question. ")
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"


def add_foot(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Add version, citation and the address for error reports to the foot of a page."""
    if doctree is None or app.builder.name != "html":
        return
    about = {"version": __version__, "author": app.config.author, "book": app.config.html_title}
    day = datetime.fromtimestamp(float(environ.get("SOURCE_DATE_EPOCH", time())), UTC)
    bibtex = BIBTEX.format(
        key=pagename.rsplit("/", 1)[-1], title=plain(context["title"]), year=day.year, **about
    )
    context["body"] += FOOT.format(
        version=about["version"], date=f"{day.day} {day:%B %Y}", bibtex=escape(bibtex),
        report=report(app.config.cgmm_report_url, pagename),
    )  # fmt: skip


def report(address: str, pagename: str) -> str:
    """Return the link for error reports, or nothing if no address is set."""
    if not address:
        return ""
    href = escape(address.replace("{page}", quote(pagename)))
    return f' <a class="cgmm-report" href="{href}">Report an error on this page</a>.'


def plain(title: str) -> str:
    """Return a title without HTML."""
    return " ".join(re.sub(r"<[^>]+>|\\[()]", "", title).split())
