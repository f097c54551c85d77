"""Set JupyterLab for readers, as `make lab` starts it.

Citations in chapters are shown as text, files that only the build needs are hidden, and Lab asks
neither for news nor for newer versions. labconfig/page_config.json turns off buttons for teachers.
"""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[2] / name) for name in ("tools", "book/_ext")]
from lab_citations import Chapters

c = get_config()  # noqa: F821
c.ServerApp.contents_manager_class = Chapters
c.ContentsManager.hide_globs = [
    "__pycache__", "*.pyc", "conftest.py", "_ext", "_static", "_templates", "reruns", "*.bib",
]  # fmt: skip
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
