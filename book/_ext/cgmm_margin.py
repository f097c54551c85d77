"""Sphinx extension that puts captions and cited works into the margin of wide pages.

The theme hides its table of contents while an element of class ``margin`` or ``margin-caption`` is
visible. On narrow pages the style sheet puts these elements below the text instead.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

# Nodes beside which works are listed. Boxes, tables and captions are not as wide as the column.
BLOCKS = (nodes.paragraph, nodes.bullet_list, nodes.enumerated_list)
# The DOI is removed from notes in the margin, because the citation in the text links to the entry.
DOI = re.compile(r" doi:\S+$")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", put_captions_into_margin)
    app.connect("doctree-resolved", put_works_into_margin)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def put_captions_into_margin(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Put the captions of figures that are not inside boxes into the margin."""
    for figure in document.findall(nodes.figure):
        if not any(isinstance(one, nodes.Admonition) for one in _ancestors(figure)[:3]):
            figure["classes"].append("margin-caption")


def put_works_into_margin(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Add a note with each work beside the first paragraph or list that cites it."""
    listed: set[str] = set()
    for block in list(document.findall(_is_running_text)):
        cited = {link["refuri"]: link["reftitle"] for link in block.findall(_is_citation_link)}
        notes = [
            nodes.container("", nodes.Text(DOI.sub("", work)), classes=["margin", "cgmm-work"])
            for address, work in cited.items()
            if address not in listed
        ]
        listed |= cited.keys()
        if notes:
            block.replace_self(group := nodes.container(classes=["cgmm-cites"]))
            group += [*notes, block]
    # A preview shows the entry when the mouse is over the link, so remove the tooltip.
    for link in document.findall(_is_citation_link):
        del link["reftitle"]


def _is_running_text(one: nodes.Node) -> bool:
    """Return whether a node is a paragraph or list of the running text, outside of boxes."""
    # Check all ancestors, because a theorem contains a section of its own.
    return isinstance(one, BLOCKS) and all(
        isinstance(ancestor, nodes.section) for ancestor in _ancestors(one)[:-1]
    )


def _is_citation_link(one: nodes.Node) -> bool:
    """Return whether a node is a link to the bibliography."""
    address = one.get("refuri", "") if isinstance(one, nodes.reference) else ""
    return "bibliography.html#" in address and "reftitle" in one


def _ancestors(one: nodes.Node) -> list[nodes.Node]:
    """Return the ancestors of a node from its parent to the document."""
    return [] if one.parent is None else [one.parent, *_ancestors(one.parent)]
