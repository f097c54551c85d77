"""Put captions and cited works into the margin of pages that have one.

The theme keeps its contents away while something of its class ``margin`` or ``margin-caption`` is
seen; the style sheet says how wide a page must be, and puts all of it below on others.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

# Nodes whose text is about as wide as the column; boxes, tables and captions have no margin.
BLOCKS = (nodes.paragraph, nodes.bullet_list, nodes.enumerated_list)
# The note has no links: the citation in the text leads to the entry.
DOI = re.compile(r" doi:\S+$")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", put_captions_beside)
    app.connect("doctree-resolved", put_works_beside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def put_captions_beside(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Give figures of the running text the theme's class for captions in the margin."""
    for figure in document.findall(nodes.figure):
        if not any(isinstance(one, nodes.Admonition) for one in _above(figure)[:3]):
            figure["classes"].append("margin-caption")


def put_works_beside(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Name each work beside the first paragraph or list that cites it."""
    named: set[str] = set()
    for block in list(document.findall(_stands_in_the_column)):
        cited = {link["refuri"]: link["reftitle"] for link in block.findall(_leads_to_a_work)}
        notes = [
            nodes.container("", nodes.Text(DOI.sub("", work)), classes=["margin", "cgmm-work"])
            for address, work in cited.items()
            if address not in named
        ]
        named |= cited.keys()
        if notes:
            block.replace_self(held := nodes.container(classes=["cgmm-cites"]))
            held += [*notes, block]
    # The preview of a link shows the entry, so the link needs no tooltip.
    for link in document.findall(_leads_to_a_work):
        del link["reftitle"]


def _stands_in_the_column(one: nodes.Node) -> bool:
    # A theorem contains a section of its own, so all ancestors are looked at.
    return isinstance(one, BLOCKS) and all(isinstance(up, nodes.section) for up in _above(one)[:-1])


def _leads_to_a_work(one: nodes.Node) -> bool:
    address = one.get("refuri", "") if isinstance(one, nodes.reference) else ""
    return "bibliography.html#" in address and "reftitle" in one


def _above(one: nodes.Node) -> list[nodes.Node]:
    """Yield the ancestors of a node from the innermost out to the document."""
    return [] if one.parent is None else [one.parent, *_above(one.parent)]
