"""Build the pages about the package from its docstrings, and a page at their old address.

tools/api.py says which pages there are, and what stands on each.
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

# Chapters import the package reruns from the folder in which they stand; so does autodoc.
sys.path.append(str(Path(__file__).parents[1]))
# The packages whose source the pages show.
OURS = {"cgmm", "reruns"}
INDEX = "book/api/index"
OLD_ADDRESS = "book/api.html"
# Methods that every estimator has; scikit-learn documents them.
BASE = "https://scikit-learn.org/stable/modules/generated/sklearn.base.BaseEstimator.html"
OF_BASE = """\
``get_params``, ``set_params``, ``get_metadata_routing`` and the requests of metadata,
``set_fit_request`` and the like, are those of every estimator: see scikit-learn's BaseEstimator__.
"""
REQUEST = re.compile(r"set_\w+_request")
# Descriptions that docutils would take for an item of a list: the whole text is "K.", or it begins
# with such a letter, as in "K. One is enough".
ENUMERATOR = re.compile(r"^(\s+)(?=[A-Za-z]\.\s|\(?(?:\w+|#)[.)]$)")
LONG_SIGNATURE = re.compile(
    r'(?P<before><span class="sig-paren">\(</span>\s*)<dl>(?P<lines>.*?)</dl>', re.DOTALL
)
BACK = re.compile(
    r'(?P<before><a class="viewcode-back" href=")(?P<page>[^"#]*)#(?P<name>[\w.]+)'
    r'(?P<after>">.*?</a>)'
)
ROLE = re.compile(r":[a-z:]+:`[~!]?([^`<]+?)(?:\s*<[^`]*>)?`")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx. Napoleon, which turns sections into fields, comes at 500."""
    app.add_transform(KeepQuotesOfTypes)
    app.connect("autodoc-skip-member", skip_requests)
    app.connect("autodoc-process-docstring", unlink_elsewhere, priority=400)
    app.connect("autodoc-process-docstring", keep_letters, priority=400)
    app.connect("autodoc-process-docstring", keep_colons_of_attributes, priority=400)
    app.connect("autodoc-process-docstring", list_methods, priority=600)
    app.connect("doctree-read", forget_inner_documents)
    app.connect("viewcode-follow-imported", list_no_other_source)
    app.connect("html-page-context", mend_long_signatures)
    app.connect("html-page-context", mend_links_from_source)
    app.connect("build-finished", keep_old_address)
    app.connect("build-finished", drop_dead_links_from_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# ---------------------------------------------------------------------------- what docstrings say


def skip_requests(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leave out the methods that scikit-learn makes for every argument of every method."""
    return True if REQUEST.fullmatch(name) else None


def unlink_elsewhere(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Replace references to pages of scikit-learn's documentation by plain words."""
    if _is_foreign(obj):
        lines[:] = [ROLE.sub(r"\1", line) for line in lines]


def keep_letters(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Mark a description such as "K." as a sentence: it is not the eleventh item of a list."""
    for n, (before, line) in enumerate(pairwise(lines), start=1):
        is_first = before.strip() and _indent(before) < _indent(line)
        if is_first and not before.endswith("::"):
            lines[n] = ENUMERATOR.sub(r"\1\\", line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def keep_colons_of_attributes(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Keep napoleon from taking the words before the first colon for the attribute's type."""
    if what in {"attribute", "property", "data"} and lines:
        lines.insert(0, "\\ ")


class KeepQuotesOfTypes(SphinxTransform):
    """Leave the quotes of ``{"full", "tied"}`` as they are typed."""

    # Before docutils makes quotes smart, at 750.
    default_priority = 700

    def apply(self, **options: object) -> None:
        """Mark the types of parameters and results: they are the emphasised words of fields."""
        for fields in self.document.findall(nodes.field_list):
            for one in fields.findall(nodes.emphasis):
                one["support_smartquotes"] = False


def list_methods(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Close the docstring of a class with a table of its methods."""
    found = public_methods(obj) if what in {"class", "exception"} else []
    if not found:
        return
    lines += ["", ".. rubric:: Methods", "", ".. list-table::", "   :class: cgmm-names", ""]
    for method in found:
        lines += [f"   * - :py:meth:`~{name}.{method}`", f"     - {_summary(obj, method)}"]
    if hasattr(obj, "get_params"):
        lines += ["", *OF_BASE.splitlines(), "", f"__ {BASE}", ""]


def public_methods(cls: type) -> list[str]:
    """Return the methods of a class in the order of their source, its own first.

    Methods of ``object``, other classes of Python and scikit-learn's BaseEstimator are left out.
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
    return str(getattr(obj, "__module__", "")).startswith("sklearn.")


# -------------------------------------------------------------------------------------- pages


def forget_inner_documents(app: Sphinx, document: nodes.document) -> None:
    """Let nodes belong to their page: myst-parser gives those of an ``eval-rst`` another document.

    That one holds all of Sphinx's environment, which is then stored with every page: 30 MB each.
    """
    for node in document.findall():
        node.document = document


def list_no_other_source(app: Sphinx, module: str, name: str) -> str | None:
    """Show the source of our packages only, not that of a method inherited from elsewhere."""
    try:
        home = inspect.unwrap(_find(module, name)).__module__
    except AttributeError:
        return None
    return None if str(home).partition(".")[0] in OURS else module


def _find(module: str, name: str) -> object:
    thing = import_module(module)
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def mend_long_signatures(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Fold long lists of parameters; Sphinx makes a list of definitions that define nothing."""
    if "body" in context:
        context["body"] = LONG_SIGNATURE.sub(_in_lines, context["body"])


def _in_lines(found: re.Match) -> str:
    lines = found["lines"].replace("<dd>", "<div>").replace("</dd>", "</div>")
    n_parameters = lines.count("<div>")
    return (
        f'{found["before"]}<details class="cgmm-signature"><summary>{n_parameters} parameters'
        f'</summary><div class="cgmm-parameters">{lines}</div></details>'
    )


def mend_links_from_source(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Lead "[docs]" of a listing to where the name is documented, which may be another module."""
    if not pagename.startswith("_modules/") or "body" not in context:
        return
    documented = app.env.domaindata["py"]["objects"]
    home = pagename.removeprefix("_modules/").replace("/", ".")

    def mended(found: re.Match) -> str:
        name = found["name"]
        short = name.removeprefix(f"{home}.")
        same = [one for one in documented if one.endswith(f".{short}") and _is_same(one, name)]
        known = [name] if name in documented else same
        if not known:
            return ""
        entry = documented[known[0]]
        target = app.builder.get_relative_uri(pagename, entry.docname)
        return f"{found['before']}{target}#{entry.node_id}{found['after']}"

    context["body"] = BACK.sub(mended, context["body"])


def drop_dead_links_from_source(app: Sphinx, exception: Exception | None) -> None:
    """Remove a "[docs]" that still leads nowhere: a module and a function may share a name."""
    if exception is None and app.builder.format == "html":
        drop_dead_links(Path(app.outdir))


def drop_dead_links(site: Path) -> None:
    """Remove the links of listings whose page has no such anchor."""
    read = cache(lambda path: path.read_text(encoding="utf8") if path.exists() else "")
    for path in (site / "_modules").rglob("*.html"):

        def kept(found: re.Match, folder: Path = path.parent) -> str:
            page = read((folder / found["page"]).resolve())
            return found[0] if f'id="{found["name"]}"' in page else ""

        text = path.read_text(encoding="utf8")
        path.write_text(BACK.sub(kept, text), encoding="utf8")


def _is_same(one: str, other: str) -> bool:
    try:
        return _resolve(one) is _resolve(other)
    except (ImportError, AttributeError):
        return False


def _resolve(name: str) -> object:
    """Return the object of a dotted name: the longest importable prefix, then its attributes."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            return _find(".".join(parts[:end]), ".".join(parts[end:]))
        except ModuleNotFoundError:
            continue
    raise ImportError(name)


def keep_old_address(app: Sphinx, exception: Exception | None) -> None:
    """Write the page where everything stood until 0.3: it leads on, entry by entry."""
    if exception is not None or app.builder.format != "html" or INDEX not in app.env.found_docs:
        return
    items = []
    # Several names of one object share an anchor, which a page may have only once.
    objects = app.env.domaindata["py"]["objects"]
    entries = {one.node_id: (name, one) for name, one in sorted(objects.items())}
    for name, one in entries.values():
        target = app.builder.get_relative_uri("book/api", one.docname)
        link = f'<a href="{escape(target)}#{one.node_id}">{escape(name)}</a>'
        items.append(f'<li id="{one.node_id}">{link}</li>')
    text = OLD_PAGE.format(
        index=app.builder.get_relative_uri("book/api", INDEX), items="\n".join(items)
    )
    Path(app.outdir, OLD_ADDRESS).write_text(text, encoding="utf8")


OLD_PAGE = """\
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
<p>This page has become <a href="{index}">many</a>. What stood here is now there:</p>
<ul>
{items}
</ul>
</main>
</body>
</html>
"""
