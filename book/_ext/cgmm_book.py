"""Sphinx extension that removes remote scripts from pages and corrects details of their HTML."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import toctree
from sphinx.application import Sphinx

# Handlers of sphinx-thebe that add a remote script to every page, even if its button is off.
THEBE_HANDLERS = {"init_thebe_core", "update_thebe_context"}

# Text directly after a formula, such as a comma or the rest of a word.
AFTER = re.compile(r"[^\s\u2014\u2013]{1,24}(?=\s|$|[\u2014\u2013])|[^\s\w]{0,8}[\u2014\u2013]")
# Text directly before a formula: opening brackets and quotes.
BEFORE = re.compile(r"[(\[\u201c\u2018]+$")
# Ids that sphinx-proof and sphinx-exercise give to the content of each box.
COMMON_IDS = re.compile(r"[a-z]+-content|proof")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", disconnect_thebe)
    app.connect("doctree-read", drop_empty_table_heads)
    app.connect("doctree-read", list_general_index, priority=400)
    app.connect("doctree-resolved", remove_common_ids)
    app.connect("doctree-resolved", keep_formulas_with_punctuation)
    app.connect("html-page-context", correct_html)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def disconnect_thebe(app: Sphinx) -> None:
    """Disconnect the two handlers of sphinx-thebe that add a remote script to pages."""
    for listeners in app.events.listeners.values():
        listeners[:] = [one for one in listeners if not _is_thebe_handler(one.handler)]


def _is_thebe_handler(handler: object) -> bool:
    """Return whether a handler is one of those of sphinx-thebe."""
    module = getattr(handler, "__module__", "")
    return module == "sphinx_thebe" and getattr(handler, "__name__", "") in THEBE_HANDLERS


def drop_empty_table_heads(app: Sphinx, document: nodes.document) -> None:
    """Remove empty heads of tables, which Markdown requires."""
    for head in list(document.findall(nodes.thead)):
        if not head.astext().strip():
            head.parent.remove(head)


def list_general_index(app: Sphinx, document: nodes.document) -> None:
    """Append the general index to the last part, because _toc.yml cannot list generated pages."""
    parts = list(document.findall(toctree))
    if app.env.docname == app.config.root_doc and parts:
        parts[-1]["entries"].append(("Index", "genindex"))


def remove_common_ids(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Remove ids that occur in all theorems, exercises and proofs, because ids must be unique."""
    for box in document.findall(nodes.Element):
        is_heading = isinstance(box, nodes.section) and isinstance(box.next_node(), nodes.title)
        if COMMON_IDS.fullmatch(" ".join(box.get("ids", ()))) and not is_heading:
            box["ids"] = []


def keep_formulas_with_punctuation(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Prevent line breaks between a formula and the brackets, commas or letters that touch it."""
    for formula in list(document.findall(nodes.math)):
        parent = formula.parent
        if isinstance(parent, nodes.title | nodes.Inline):
            continue
        n = parent.index(formula)
        before, after = _touching_text(parent, n - 1, BEFORE), _touching_text(parent, n + 1, AFTER)
        if not before and not after:
            continue
        group = nodes.inline("", classes=["cgmm-together"])
        if before:
            text = parent[n - 1]
            parent.replace(text, nodes.Text(text.removesuffix(before)))
        if after:
            text = parent[n + 1]
            parent.replace(text, nodes.Text(text.removeprefix(after)))
        parent.replace(formula, group)
        group += [nodes.Text(before), formula, nodes.Text(after)]


def _touching_text(parent: nodes.Element, n: int, pattern: re.Pattern) -> str:
    """Return the part of child ``n`` of a node that touches the formula, or "" if it is no text."""
    text = parent[n] if 0 <= n < len(parent) else None
    if not isinstance(text, nodes.Text):
        return ""
    found = pattern.match(text) if pattern is AFTER else pattern.search(text)
    return found[0] if found else ""


FOLDED_PROOF = r'<div class="sd-summary-content[^>]*>\s*<div class="proof admonition"[^>]*>\s*'
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Patterns and their replacements: the role of bibliography entries is deprecated; the link in the
# title of a solution must not begin with a space; a folded proof is already titled "Proof"; long
# names may be broken before capitals.
REPLACEMENTS = [
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
    (re.compile(r"Solution to(<a [^>]*>) "), r"Solution to \1"),
    (re.compile(rf"({FOLDED_PROOF}<p>)Proof\. "), r"\1"),
    (
        re.compile(r'(?<=<h1>)\w+(?=<a class="headerlink)'),
        lambda name: CAPITAL.sub("<wbr>", name[0]),
    ),
]


def correct_html(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Correct the HTML that other extensions write."""
    for pattern, replacement in REPLACEMENTS if "body" in context else []:
        context["body"] = pattern.sub(replacement, context["body"])
