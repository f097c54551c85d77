"""Kernels of the chapters compute on one thread, as in `make notebooks`, and know no settings.

The person at the keyboard may have some of IPython; and quick tests draw explorers in draft.
"""

from __future__ import annotations

import os
from pathlib import Path

import drafts
import pytest
from notebooks import SINGLE_THREAD

os.environ.update(SINGLE_THREAD)
DRAFT = "import sys; sys.path.append({!r}); import drafts; drafts.draw_in_draft(); del sys, drafts"


@pytest.fixture(scope="session", autouse=True)
def settings(tmp_path_factory):
    """The folder in which kernels look for a profile of IPython."""
    folder = tmp_path_factory.mktemp("ipython")
    os.environ["IPYTHONDIR"] = str(folder)
    if os.environ.get("CGMM_DRAFT"):
        line = DRAFT.format(str(Path(drafts.__file__).parent))
        (folder / "profile_default").mkdir()
        config = folder / "profile_default" / "ipython_kernel_config.py"
        config.write_text(f"c.InteractiveShellApp.exec_lines = [{line!r}]", encoding="utf8")
