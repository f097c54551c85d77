"""Test that the commands in the guides for instructors exist and make the exam papers."""

import re
import shlex

import course
import papers
import pytest
from markapart import sources

COMMAND = re.compile(r"^ *python (?:assignments/)?course\.py (\w+.*?)\s*(?:#|$)", re.MULTILINE)


@pytest.mark.parametrize("guide", ["book/instructors.md", "assignments/README.md"])
def test_commands_of_the_guides_are_valid(guide):
    typed = COMMAND.findall((sources.COURSE.parent / guide).read_text(encoding="utf8"))
    assert typed
    for line in typed:
        assert callable(course._parser().parse_args(shlex.split(line)).run), line


def test_commands_of_the_guide_write_exams_keys_and_projects(monkeypatch):
    made = {}
    monkeypatch.setattr(papers, "write_papers", lambda sheets, out: made.update(sheets) or [])
    for command in (["exam", "06"], ["key", "12_rca"], ["projects"]):
        assert course.main(command) == 0
    briefs = {name + who for name in papers.projects() for who in ("", "_teacher")}
    assert made.keys() == {"exam", "exam_key", "key_12_rca"} | briefs
