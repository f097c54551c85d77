"""Templates for cover, contents and footers of the PDF; ``tools/epub.py`` uses the cover."""

from __future__ import annotations

import re
import tomllib

from editions import ROOT

TITLE = "Gaussian Mixtures with Side Information"
AUTHOR = "the cgmm authors"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Gaussian Mixtures with Side Information</title>
<style>
@page {{ size: A4; margin: 0; }}
body {{ margin: 0; color: #111; font: 10.5pt/1.45 "Source Sans 3 static", sans-serif; }}
a {{ color: inherit; text-decoration: none; }}
.cover {{ box-sizing: border-box; height: 297mm; break-after: page; }}
.cover {{ padding: 70mm 25mm 0; }}
.cover svg {{ width: 60mm; height: auto; }}
.cover h1 {{ margin: 15mm 0 4mm; font-size: 34pt; line-height: 1.15; text-wrap: balance; }}
.cover p {{ margin: 0; font-size: 13pt; }}
.cover .terms {{ margin-top: 60mm; font-size: 9pt; }}
.contents {{ page: contents; }}
@page contents {{ size: A4; margin: 20mm 22mm; }}
.contents h1 {{ font-size: 20pt; }}
.contents h2 {{ margin: 6mm 0 1mm; font-size: 12pt; color: #0f58bd; break-after: avoid; }}
.line {{ display: flex; gap: 3mm; break-inside: avoid; }}
.line span {{ flex: 1; }}
.line.chapter {{ margin-top: 1.5mm; font-weight: 600; break-after: avoid; }}
.line.section {{ padding-left: 7mm; font-size: 9.5pt; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""
COVER = """<div class="cover">
{logo}
<h1>Gaussian Mixtures with Side Information</h1>
<p>A textbook and the package it is about</p>
<p>the cgmm authors, version {version}</p>
<p class="terms">Text under CC BY 4.0, code under the BSD 3-Clause licence. Figures and numbers are
the output of the code that stands above them; explorers show their first position.</p>
</div>
"""
CONTENTS = """<div class="contents">
<h1>Contents</h1>
{lines}
</div>
"""
LINE = '<a class="line {kind}" href="{href}"><span>{title}</span>{number}</a>'
FOOT = """@page {
  @bottom-left { content: %s; font: 8.5pt "Source Sans 3 static"; color: #444; }
  @bottom-right { content: counter(page); font: 8.5pt "Source Sans 3 static"; color: #444; }
}
@page :first { counter-set: page %d; }
"""


def cover() -> str:
    """Return HTML of the cover, with logo and version."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    logo = (ROOT / "book/_static/logo.svg").read_text(encoding="utf8")
    return COVER.format(logo=re.sub(r"<\?xml.*?\?>", "", logo), version=about["version"])
