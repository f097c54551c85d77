"""Make the course of assignments/, its grader and the grader's test helpers importable."""

import os
import sys
from pathlib import Path

COURSE = Path(__file__).resolve().parents[2] / "assignments"
os.environ["MARKAPART_COURSE"] = str(COURSE)
GRADER = COURSE / "grader"
sys.path[:0] = [str(COURSE), str(GRADER), str(GRADER / "tests")]

from boxes import boxes  # noqa: E402, F401 (the fixture; the lines above say where it is)

# A source distribution has no solutions: nothing can be graded there.
if not (COURSE / "source").is_dir():
    collect_ignore_glob = ["test_*.py"]
