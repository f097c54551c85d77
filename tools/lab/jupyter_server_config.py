"""What `make lab` adds to the settings of JupyterLab: citations in chapters are shown as text."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from lab_citations import Chapters

c = get_config()  # noqa: F821
c.ServerApp.contents_manager_class = Chapters
