"""Kernels of the chapters compute on one thread, as in `make notebooks`, and know no settings.

The person at the keyboard may have some of IPython; and quick tests draw explorers in draft.
"""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

import notebooks

os.environ.update(notebooks.SINGLE_THREAD)
DRAFT = "import sys; sys.path.append({!r}); import drafts; drafts.draw_in_draft(); del sys, drafts"


@functools.cache
def settings() -> tempfile.TemporaryDirectory:
    """The folder in which kernels look for a profile of IPython."""
    folder = tempfile.TemporaryDirectory()
    os.environ["IPYTHONDIR"] = folder.name
    if os.environ.get("CGMM_DRAFT"):
        line = DRAFT.format(str(Path(notebooks.__file__).parent))
        profile = Path(folder.name) / "profile_default"
        profile.mkdir()
        config = profile / "ipython_kernel_config.py"
        config.write_text(f"c.InteractiveShellApp.exec_lines = [{line!r}]", encoding="utf8")
    return folder


def pytest_runtest_setup(item):
    """Before the first cell; cells of notebooks ask for no fixtures."""
    settings()
