"""Configure Sphinx from ``_config.yml``, without jupyter-book 1, which ends at Sphinx 7.

``make book SPHINX=9`` uses this file. It translates the settings that the book has; what the book
leaves at jupyter-book's default is written here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
BOOK = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
SPHINX = BOOK["sphinx"]

sys.path.insert(0, str(ROOT / "book/_ext"))
extensions = [
    "sphinx_togglebutton", "sphinx_copybutton", "myst_nb", "sphinx_external_toc", "sphinx_design",
    "sphinx_book_theme", *SPHINX["extra_extensions"], *SPHINX["local_extensions"],
    "sphinxcontrib.bibtex", "sphinx_multitoc_numbering",
]  # fmt: skip

project = html_title = BOOK["title"]
author, copyright = BOOK["author"], BOOK["copyright"]
exclude_patterns = [*BOOK["exclude_patterns"], "**.ipynb_checkpoints"]
external_toc_path = str(ROOT / "_toc.yml")
external_toc_exclude_missing = BOOK["only_build_toc_files"]
nb_execution_mode = BOOK["execute"]["execute_notebooks"]
myst_enable_extensions = BOOK["parse"]["myst_enable_extensions"]
myst_url_schemes = ["mailto", "http", "https"]
bibtex_bibfiles = [str(ROOT / path) for path in BOOK["bibtex_bibfiles"]]
numfig = True
use_multitoc_numbering = BOOK["html"]["use_multitoc_numbering"]

html_theme = "sphinx_book_theme"
html_logo, html_favicon = str(ROOT / BOOK["logo"]), str(ROOT / BOOK["html"]["favicon"])
html_sourcelink_suffix = ""
pygments_style = "sphinx"
suppress_warnings = ["myst.domains"]

# The rewritten autodoc of Sphinx 9.0 refuses `:no-value:` for a whole module.
autodoc_use_legacy_class_based = True

# The settings below `config` have Sphinx's own names. Paths in them start at the top level.
globals().update(SPHINX["config"])
templates_path = [str(ROOT / path) for path in SPHINX["config"]["templates_path"]]
html_static_path = [str(ROOT / path) for path in SPHINX["config"]["html_static_path"]]
html_theme_options = {
    "search_bar_text": "Search this book...",
    "home_page_in_toc": BOOK["html"]["home_page_in_navbar"],
    "launch_buttons": BOOK["launch_buttons"],
    "repository_url": BOOK["repository"]["url"],
    "use_repository_button": BOOK["html"]["use_repository_button"],
    "use_edit_page_button": BOOK["html"]["use_edit_page_button"],
    "use_issues_button": BOOK["html"]["use_issues_button"],
} | SPHINX["config"]["html_theme_options"]
