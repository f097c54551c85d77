"""Make pages complete in themselves, and fix details that Jupyter Book leaves open."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import toctree
from sphinx.application import Sphinx

# sphinx-thebe writes a remote address into every page, whether its button is on or not.
THEBE_HANDLERS = {"init_thebe_core", "update_thebe_context"}

# Text that touches a formula: a comma or the rest of a word after it, a bracket before it.
AFTER = re.compile(r"[^\s\u2014\u2013]{1,24}(?=\s|$|[\u2014\u2013])|[^\s\w]{0,8}[\u2014\u2013]")
# Ids that sphinx-proof and sphinx-exercise give to the contents of each box.
COMMON = re.compile(r"[a-z]+-content|proof")
BEFORE = re.compile(r"[(\[\u201c\u2018]+$")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", disconnect_thebe)
    app.connect("doctree-read", drop_empty_table_heads)
    app.connect("doctree-read", list_general_index, priority=400)
    app.connect("doctree-resolved", take_common_names)
    app.connect("doctree-resolved", hold_formulas_together)
    app.connect("html-page-context", mend_markup)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def disconnect_thebe(app: Sphinx) -> None:
    """Remove the two handlers of sphinx-thebe that point the page at a remote script."""
    for listeners in app.events.listeners.values():
        listeners[:] = [one for one in listeners if not _of_thebe(one.handler)]


def _of_thebe(handler: object) -> bool:
    module = getattr(handler, "__module__", "")
    return module == "sphinx_thebe" and getattr(handler, "__name__", "") in THEBE_HANDLERS


def drop_empty_table_heads(app: Sphinx, document: nodes.document) -> None:
    """Remove the empty head of a table; Markdown requires one."""
    for head in list(document.findall(nodes.thead)):
        if not head.astext().strip():
            head.parent.remove(head)


def list_general_index(app: Sphinx, document: nodes.document) -> None:
    """Append the general index to the last part; _toc.yml takes no generated page."""
    parts = list(document.findall(toctree))
    if app.env.docname == app.config.root_doc and parts:
        parts[-1]["entries"].append(("Index", "genindex"))


def take_common_names(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Remove ids that all theorems, exercises and proofs of a page share."""
    for box in document.findall(nodes.Element):
        is_heading = isinstance(box, nodes.section) and isinstance(box.next_node(), nodes.title)
        if COMMON.fullmatch(" ".join(box.get("ids", ()))) and not is_heading:
            box["ids"] = []


def hold_formulas_together(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Keep a formula and the comma after it on one line."""
    for formula in list(document.findall(nodes.math)):
        place = formula.parent
        if isinstance(place, nodes.title | nodes.Inline):
            continue
        n = place.index(formula)
        before, after = _ends(place, n - 1, BEFORE), _ends(place, n + 1, AFTER)
        if not before and not after:
            continue
        held = nodes.inline("", classes=["cgmm-together"])
        if before:
            text = place[n - 1]
            place.replace(text, nodes.Text(text.removesuffix(before)))
        if after:
            text = place[n + 1]
            place.replace(text, nodes.Text(text.removeprefix(after)))
        place.replace(formula, held)
        held += [nodes.Text(before), formula, nodes.Text(after)]


def _ends(place: nodes.Element, n: int, pattern: re.Pattern) -> str:
    """Return the part of a neighbouring text that touches the formula."""
    text = place[n] if 0 <= n < len(place) else None
    if not isinstance(text, nodes.Text):
        return ""
    found = pattern.match(text) if pattern is AFTER else pattern.search(text)
    return found[0] if found else ""


FOLD = r'<div class="sd-summary-content[^>]*>\s*<div class="proof admonition"[^>]*>\s*'
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# The role that docutils gives to entries of a bibliography is deprecated; the link in the title of
# a solution begins with a space; a proof says on its fold that it is one; a long name may be broken
# before its capitals.
MENDED = [
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
    (re.compile(r"Solution to(<a [^>]*>) "), r"Solution to \1"),
    (re.compile(rf"({FOLD}<p>)Proof\. "), r"\1"),
    (
        re.compile(r'(?<=<h1>)\w+(?=<a class="headerlink)'),
        lambda name: CAPITAL.sub("<wbr>", name[0]),
    ),
]


def mend_markup(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Correct the HTML that other extensions write."""
    for pattern, better in MENDED if "body" in context else []:
        context["body"] = pattern.sub(better, context["body"])
