"""Write the notebooks that readers download in plain Markdown, for viewers that do not know MyST.

Roles become words or links, directives become bold titles or folds, and references, equations and
figures get the numbers that they have on the built pages. cgmm_find.py calls this module when all
pages are written, because it has collected the numbers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from cgmm_roles import WORDS, as_text

DIRECTIVE = re.compile(
    r"^(?P<fence>:{3,}|`{3,}) ?\{(?P<name>[\w:]+)\}(?P<title>[^\n]*)\n"
    r"(?P<body>.*?)^(?P=fence)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
OPTIONS = re.compile(r"\A(?::[\w-]+:.*\n)+")
ROLE = re.compile(
    r"\{(?P<kind>term|index|download|ref|numref|eq|prf:ref)\}`(?P<words>[^`<]+?)(?:\s<(?P<to>[^`]+)>)?`"
)
# Names of places, classes of blocks, and the ends of links from which JupyterLab restores roles.
NO_TEXT = re.compile(r"^\([\w-]+\)=\n|^\{\.[\w-]+\}\n|#(?:cite|role):[^\s()]+(?=\))", re.MULTILINE)
# Links to places of the built pages, which a single notebook does not have.
SITE_LINK = re.compile(
    rf"(?<![\w!)\]])(?P<words>{WORDS})\((?:[\w/-]*|[\w/-]+\.md)\)|<a [^>]*>(?P<text>.*?)</a>"
)


def write_notebooks(site: Path, entries: dict[str, tuple[str, list[tuple[str, ...]]]]) -> None:
    """Rewrite the notebooks below ``_sources``, given the search entries of each page."""
    parts = [part for _, found in entries.values() for part in found]
    names = {part[2].removeprefix("equation-"): part[1] for part in parts if len(part) > 4}
    for path in (site / f"_sources/{page}.ipynb" for page in entries):
        if path.exists():
            notebook = json.loads(path.read_text(encoding="utf8"))
            notebook["cells"] = plain_cells(notebook["cells"], names)
            shortest = json.dumps(notebook, ensure_ascii=False, separators=(",", ":"))
            path.write_text(shortest, encoding="utf8")


def plain_cells(cells: list[dict], names: dict[str, str]) -> list[dict]:
    """Return cells in plain Markdown, with the captions of figures in cells of their own."""
    found = []
    for cell in cells:
        is_text = cell["cell_type"] == "markdown"
        text = "".join(cell["source"])
        found.append(cell | {"source": plain_text(text, names)} if is_text else cell)
        if figure := cell["metadata"].get("mystnb", {}).get("figure"):
            caption = f"**{names[figure['name']]}.** {plain_text(figure['caption'], names)}"
            new = {"cell_type": "markdown", "metadata": {}, "source": caption}
            found.append(new | {"id": f"{cell['id']}-caption"[-64:]})
    return found


def plain_text(text: str, names: dict[str, str]) -> str:
    """Return MyST Markdown as plain Markdown; ``names`` has the title of each numbered label."""
    text = DIRECTIVE.sub(lambda found: _plain_directive(found, names), text)
    text = NO_TEXT.sub("", as_text(ROLE.sub(lambda found: _plain_role(found, names), text)))
    return SITE_LINK.sub(lambda found: found["text"] or found["words"][1:-1], text)


def _plain_directive(found: re.Match[str], names: dict[str, str]) -> str:
    """Return a formula with its number, or a title and the text below it."""
    name, title = found["name"].removeprefix("prf:"), found["title"].strip()
    body = OPTIONS.sub("", found["body"]).strip()
    label = re.search(r"^:label: *(\S+)", found["body"], re.MULTILINE)
    numbered = names.get(label[1], "") if label else ""
    if name == "index":
        return ""
    if name == "math":
        is_bare = r"\\" in body and not body.startswith(r"\begin")
        formula = rf"\begin{{split}}{body}\end{{split}}" if is_bare else body
        number = f"\\tag{{{numbered[10:-1]}}}" if numbered else ""
        return f"$$\n{formula}{number}\n$$"
    body = DIRECTIVE.sub(lambda inner: _plain_directive(inner, names), body)
    if name == "solution":
        title = f"Solution to {names[title].split(' (')[0]}"
    if name in {"dropdown", "solution"}:
        return f"<details>\n<summary><b>{title}</b></summary>\n\n{body}\n\n</details>"
    if name in {"figure", "proof"}:
        return body
    if name != "admonition":
        title = f"{numbered.split(' (')[0]} ({title})" if title else numbered
    return f"**{title}**\n\n{body}"


def _plain_role(found: re.Match[str], names: dict[str, str]) -> str:
    """Return the words of a role, or the kind and number of the place to which it refers."""
    words = found["words"]
    if found["to"] or found["kind"] in {"term", "index", "download"}:
        return words
    if found["kind"] == "eq":
        return names[words].removeprefix("Equation ")
    return names.get(words, words.replace("-", " ")).split(" (")[0]
