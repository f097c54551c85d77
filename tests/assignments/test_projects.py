"""Test the projects: the central step of each runs, and its data show the intended finding."""

import importlib.util
import re

import numpy as np
import papers
import pytest
from markapart import sources

NAMES = sorted(path.stem for path in (sources.COURSE / "projects").glob("*.md"))
STUDENTS = ["The question", "The data", "Milestones", "Hand in", "How it is judged"]
TEACHERS = ["What can be found", "Traps"]


def load_trial(name):
    path = sources.COURSE / "projects" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
class TestProject:
    def test_the_central_step_of_a_project_runs(self, name):
        assert np.isfinite(load_trial(name).run(range(1))).all()

    @pytest.mark.slow  # This needs twelve draws; the test above makes one.
    def test_the_finding_of_a_project_holds_in_its_data(self, name):
        module = load_trial(name)
        module.finding(module.run(range(12)))

    def test_a_project_brief_has_all_parts_and_points_add_up(self, name):
        text = (sources.COURSE / "projects" / f"{name}.md").read_text(encoding="utf8")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == STUDENTS + TEACHERS
        judged = text.partition("## How it is judged")[2].partition("## ")[0]
        assert sum(map(int, re.findall(r"^\| (\d+) \|", judged, re.MULTILINE))) == 20

    def test_the_student_version_of_a_project_contains_no_teacher_files(self, name):
        page = papers.project(name, teacher=False)
        assert "Traps" not in page
        assert "What can be found" not in page
        assert "Traps" in papers.project(name, teacher=True)


def test_a_brief_fills_one_page(chromium_path, tmp_path):
    sheets = {name: papers.project(name, teacher=False) for name in NAMES}
    for path in papers.write_papers(sheets, tmp_path):
        assert path.read_bytes().count(b"/Type /Page\n") == 1, path.stem
