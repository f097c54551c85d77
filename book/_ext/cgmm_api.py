"""Sphinx extension that adapts docstrings and HTML of the API pages, and redirects their old page.

The API pages themselves are written by tools/api.py.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import cache
from html import escape
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.inspect import getdoc

# Make book/reruns importable as the package ``reruns`` for autodoc, as it is for chapters.
sys.path.append(str(Path(__file__).parents[1]))
# Packages whose source code is shown.
OURS = {"cgmm", "reruns"}
INDEX = "book/api/index"
REDIRECT_ADDRESS = "book/api.html"
# Documentation of the methods that every estimator has.
BASE_URL = "https://scikit-learn.org/stable/modules/generated/sklearn.base.BaseEstimator.html"
INHERITED_METHODS = """\
For ``get_params``, ``set_params``, ``get_metadata_routing`` and metadata requests such as
``set_fit_request``, which every estimator has, see scikit-learn's BaseEstimator__.
"""
REQUEST = re.compile(r"set_\w+_request")
# Descriptions that docutils would read as an item of a numbered list, because they are "K." or
# begin like "K. One is enough".
ENUMERATOR = re.compile(r"^(\s+)(?=[A-Za-z]\.\s|\(?(?:\w+|#)[.)]$)")
# The first paragraph of a page of the package, which repeats the first one of the docstring.
OPENING = re.compile(r"</h1>\s*(?:<!--.*?-->\s*)?(?P<sentence><p>.*?</p>)", re.DOTALL)
LONG_SIGNATURE = re.compile(
    r'(?P<before><span class="sig-paren">\(</span>\s*)<dl>(?P<lines>.*?)</dl>', re.DOTALL
)
DOCS_LINK = re.compile(
    r'(?P<before><a class="viewcode-back" href=")(?P<page>[^"#]*)#(?P<name>[\w.]+)'
    r'(?P<after>">.*?</a>)'
)
ROLE = re.compile(r":[a-z:]+:`[~!]?([^`<]+?)(?:\s*<[^`]*>)?`")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx; handlers of priority 400 run before napoleon (500), 600 after it."""
    app.add_transform(KeepQuotesOfTypes)
    app.connect("autodoc-skip-member", skip_requests)
    app.connect("autodoc-process-docstring", unlink_foreign_references, priority=400)
    app.connect("autodoc-process-docstring", escape_enumerators, priority=400)
    app.connect("autodoc-process-docstring", keep_colons_of_attributes, priority=400)
    app.connect("autodoc-process-docstring", list_methods, priority=600)
    app.connect("doctree-read", attach_nodes_to_page)
    app.connect("viewcode-follow-imported", select_own_source)
    app.connect("html-page-context", fold_long_signatures)
    app.connect("html-page-context", say_summary_once)
    app.connect("html-page-context", mend_links_from_source)
    app.connect("build-finished", write_redirects)
    app.connect("build-finished", drop_dead_links_from_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# ---------------------------------------------------------------------------- docstrings


def skip_requests(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leave out the ``set_..._request`` methods that scikit-learn adds to every estimator."""
    return True if REQUEST.fullmatch(name) else None


def unlink_foreign_references(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Replace references in docstrings inherited from scikit-learn by plain words."""
    if _is_foreign(obj):
        lines[:] = [ROLE.sub(r"\1", line) for line in lines]


def escape_enumerators(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Escape descriptions such as "K.", which docutils would read as item 11 of a list."""
    for n, (before, line) in enumerate(pairwise(lines), start=1):
        is_first = before.strip() and _indent(before) < _indent(line)
        if is_first and not before.endswith("::"):
            lines[n] = ENUMERATOR.sub(r"\1\\", line)


def _indent(line: str) -> int:
    """Return the number of spaces at the beginning of a line."""
    return len(line) - len(line.lstrip())


def keep_colons_of_attributes(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Keep napoleon from reading the words before the first colon as the type of an attribute."""
    if what in {"attribute", "property", "data"} and lines:
        lines.insert(0, "\\ ")


class KeepQuotesOfTypes(SphinxTransform):
    """Keep the straight quotes in types such as ``{"full", "tied"}``."""

    # Run before docutils converts straight quotes, which has priority 750.
    default_priority = 700

    def apply(self, **options: object) -> None:
        """Mark the types of parameters and results, which are the emphasised words of fields."""
        for fields in self.document.findall(nodes.field_list):
            for one in fields.findall(nodes.emphasis):
                one["support_smartquotes"] = False


def list_methods(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Append a table of the public methods to the docstring of a class."""
    found = public_methods(obj) if what in {"class", "exception"} else []
    if not found:
        return
    lines += ["", ".. rubric:: Methods", "", ".. list-table::", "   :class: cgmm-names", ""]
    for method in found:
        lines += [f"   * - :py:meth:`~{name}.{method}`", f"     - {_summary(obj, method)}"]
    if hasattr(obj, "get_params"):
        lines += ["", *INHERITED_METHODS.splitlines(), "", f"__ {BASE_URL}", ""]


def public_methods(cls: type) -> list[str]:
    """Return the public methods of a class in the order of the source, its own methods first.

    Methods inherited from Python's classes and from scikit-learn's BaseEstimator are left out.
    """
    found: dict[str, None] = {}
    for one in cls.__mro__:
        if one.__module__.partition(".")[0] not in {*OURS, "sklearn"}:
            break
        if one.__name__ == "BaseEstimator":
            break
        found |= dict.fromkeys(
            name
            for name in vars(one)
            if not name.startswith("_") and not REQUEST.fullmatch(name)
            if inspect.isroutine(getattr(cls, name))
        )
    return list(found)


def _summary(cls: type, method: str) -> str:
    """Return the first paragraph of a method's docstring as plain words."""
    text = getdoc(getattr(cls, method), allow_inherited=True, cls=cls, name=method) or ""
    paragraph = " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())
    return ROLE.sub(r"\1", paragraph) if _is_foreign(getattr(cls, method)) else paragraph


def _is_foreign(obj: object) -> bool:
    """Return whether an object belongs to scikit-learn."""
    return str(getattr(obj, "__module__", "")).startswith("sklearn.")


# -------------------------------------------------------------------------------------- pages


def attach_nodes_to_page(app: Sphinx, document: nodes.document) -> None:
    """Attach all nodes of a page to the document of the page, to keep the stored pages small.

    myst-parser attaches the nodes of an ``eval-rst`` block to a document of their own. It refers to
    the whole environment of Sphinx, so that 30 MB would be stored with each page.
    """
    for node in document.findall():
        node.document = document


def select_own_source(app: Sphinx, module: str, name: str) -> str | None:
    """Return the module if the source of a name is to be shown: only names of our packages."""
    try:
        home = inspect.unwrap(_get_member(module, name)).__module__
    except AttributeError:
        return None
    return None if str(home).partition(".")[0] in OURS else module


def _get_member(module: str, name: str) -> object:
    """Return the object of a dotted name in a module."""
    thing = import_module(module)
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def fold_long_signatures(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Fold long parameter lists, which Sphinx writes as definition lists without definitions."""
    if "body" in context:
        context["body"] = LONG_SIGNATURE.sub(_fold_signature, context["body"])


def say_summary_once(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Remove the first sentence of a description that the page opens with, if more follows."""
    if opening := OPENING.search(context.get("body", "")):
        repeated = rf"<dd>{re.escape(opening['sentence'])}(?!\s*</dd>)"
        context["body"] = re.sub(repeated, "<dd>", context["body"], count=1)


def _fold_signature(found: re.Match) -> str:
    """Return a folded parameter list with a line for each parameter."""
    lines = found["lines"].replace("<dd>", "<div>").replace("</dd>", "</div>")
    n_parameters = lines.count("<div>")
    return (
        f'{found["before"]}<details class="cgmm-signature"><summary>{n_parameters} parameters'
        f'</summary><div class="cgmm-parameters">{lines}</div></details>'
    )


def mend_links_from_source(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Make the "[docs]" links of source listings lead to the page that documents the name."""
    if not pagename.startswith("_modules/") or "body" not in context:
        return
    documented = app.env.domaindata["py"]["objects"]
    home = pagename.removeprefix("_modules/").replace("/", ".")

    def rewrite_link(found: re.Match) -> str:
        name = found["name"]
        short = name.removeprefix(f"{home}.")
        aliases = [one for one in documented if one.endswith(f".{short}") and _is_same(one, name)]
        known = [name] if name in documented else aliases
        if not known:
            return ""
        entry = documented[known[0]]
        target = app.builder.get_relative_uri(pagename, entry.docname)
        return f"{found['before']}{target}#{entry.node_id}{found['after']}"

    context["body"] = DOCS_LINK.sub(rewrite_link, context["body"])


def drop_dead_links_from_source(app: Sphinx, exception: Exception | None) -> None:
    """Remove the "[docs]" links that lead nowhere, e.g. if a module and a function share a name."""
    if exception is None and app.builder.format == "html":
        drop_dead_links(Path(app.outdir))


def drop_dead_links(site: Path) -> None:
    """Remove the "[docs]" links of source listings to anchors that do not exist."""
    read = cache(lambda path: path.read_text(encoding="utf8") if path.exists() else "")
    for path in (site / "_modules").rglob("*.html"):

        def keep_working_link(found: re.Match, folder: Path = path.parent) -> str:
            page = read((folder / found["page"]).resolve())
            return found[0] if f'id="{found["name"]}"' in page else ""

        text = path.read_text(encoding="utf8")
        path.write_text(DOCS_LINK.sub(keep_working_link, text), encoding="utf8")


def _is_same(one: str, other: str) -> bool:
    """Return whether two dotted names refer to the same object."""
    try:
        return _resolve(one) is _resolve(other)
    except (ImportError, AttributeError):
        return False


def _resolve(name: str) -> object:
    """Return the object of a dotted name, which begins with the name of a module."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            return _get_member(".".join(parts[:end]), ".".join(parts[end:]))
        except ModuleNotFoundError:
            continue
    raise ImportError(name)


def write_redirects(app: Sphinx, exception: Exception | None) -> None:
    """Write the page that documented the whole package until 0.3; it redirects each entry."""
    if exception is not None or app.builder.format != "html" or INDEX not in app.env.found_docs:
        return
    items = []
    # Several names of one object share an anchor, and a page may contain an anchor only once.
    objects = app.env.domaindata["py"]["objects"]
    entries = {one.node_id: (name, one) for name, one in sorted(objects.items())}
    for name, one in entries.values():
        target = app.builder.get_relative_uri("book/api", one.docname)
        link = f'<a href="{escape(target)}#{one.node_id}">{escape(name)}</a>'
        items.append(f'<li id="{one.node_id}">{link}</li>')
    text = REDIRECT_PAGE.format(
        index=app.builder.get_relative_uri("book/api", INDEX), items="\n".join(items)
    )
    Path(app.outdir, REDIRECT_ADDRESS).write_text(text, encoding="utf8")


REDIRECT_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>The package</title>
<script>
addEventListener("DOMContentLoaded", () => {{
  const entry = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  location.replace(entry?.querySelector("a").href ?? "{index}");
}});
</script>
<style>:root {{ color-scheme: light dark; }} li {{ overflow-wrap: anywhere; }}</style>
</head>
<body>
<main>
<h1>The package</h1>
<p>This page has been split into <a href="{index}">several pages</a>. Its entries are now here:</p>
<ul>
{items}
</ul>
</main>
</body>
</html>
"""
