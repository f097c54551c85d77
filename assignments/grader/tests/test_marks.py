"""Test that entered marks are never lost, whichever program saves the sheet."""

import csv
import io
import json
import shutil

import pytest
from handed_in import as_kept
from markapart import examine, grading, marks

NAMES = ["ada", "ben", "007", "Zoë O'Neill, jr."]
ANSWERS = [
    "- 1 yes\n- 2 no; it climbs\n- 3 perhaps, at 0,5",
    '=HYPERLINK("http://example.org";"me")',
    "+1\r\nsecond line\t\twith tabs",
    '@home I\'d say "no", since Σ ≠ Σ⁻¹',
]


def rows(assignment="02_em", answers=ANSWERS):
    return [
        examine.Row(who, assignment, task, 0.0 if task == "task-5" else 1.0, 4.0,
                    "awaits manual grading" if task == "task-5" else "graded",
                    "", answer if task == "task-5" else "")
        for who, answer in zip(NAMES, answers, strict=True)
        for task in ("check-1", "task-5")
    ]  # fmt: skip


def keep(out, found):
    """Write rows as stored results, as grading does."""
    for row in found:
        own = [other._asdict() for other in found if other[:2] == row[:2]]
        when = {"handed_in": "2026-11-05T10:00+00:00"}
        text = json.dumps(as_kept(*row[:2], own, **when))
        marks.write_whole(out / "results" / row.student / f"{row.assignment}.json", text)


@pytest.fixture
def out(tmp_path):
    keep(tmp_path, rows())
    grading.write_reports(tmp_path)
    return tmp_path


def lines_of(path):
    return [row for _, row in marks.read_sheet(path)]


def fill(out, given, sheet="open_questions.csv"):
    """Write points and comments, keyed by student, into a sheet."""
    lines = lines_of(out / sheet)
    for line in lines:
        if line["student"] in given:
            line["points"], line["comment"] = given[line["student"]]
    marks.write_table(out / sheet, marks.COLUMNS, lines)


def points(out):
    found = grading.write_reports(out)
    return {row.student: row.points for row in found if row.answer and row.state == "graded"}


ALL = {"ada": ("4", "=good"), "ben": ("2,5", "- why?"), "007": ("0", ""), NAMES[3]: ("3.5", "ü")}
WANT = {"ada": 4, "ben": 2.5, "007": 0, NAMES[3]: 3.5}


def enter(out, *sheets):
    return grading.enter_marks(out, sheets or [out / "open_questions.csv"])


def _excel(text, delimiter=";", encoding="utf-8-sig", end="\r\n"):
    """Return a sheet as Excel saves it, with another delimiter and other line ends."""
    table = list(csv.reader(text.splitlines(keepends=True)))
    table = [[cell.replace("\n", end) for cell in row] for row in table]
    sheet = io.StringIO()
    csv.writer(sheet, delimiter=delimiter, lineterminator=end).writerows(table)
    return sheet.getvalue().encode(encoding, errors="replace")


@pytest.mark.parametrize(
    "save",
    [
        lambda text: _excel(text),
        lambda text: _excel(text, ";", "cp1252"),
        lambda text: _excel(text, "\t", "utf-16"),
        lambda text: b"sep=;\r\n" + _excel(text, ";", "utf8"),
        lambda text: _excel(text, ",", "utf8", "\r\n"),
        lambda text: text.replace("02_em", "#NAME?").replace("yes", "#NAME?").encode(),
        lambda text: text.replace("\n007", "\n7").replace("task-5", "05. Mai").encode(),
        lambda text: ("\ufeff" + text).encode(),
    ],
    ids=["excel", "ansi", "unicode", "sep", "crlf", "name", "numbers", "as written"],
)
def test_points_survive_spreadsheet_formats(out, save):
    fill(out, ALL)
    path = out / "open_questions.csv"
    text = path.read_text(encoding="utf-8-sig")
    path.write_bytes(save(text))
    changes, problems = enter(out)
    assert (len(changes), problems) == (4, [])
    assert points(out) == WANT
    assert enter(out) == ([], [])
    comments = {row["student"]: row["comment"] for row in lines_of(path)}
    assert comments == {who: comment for who, (_, comment) in ALL.items()}


def test_no_cell_is_a_formula(out):
    for path in out.glob("*.csv"):
        with path.open(newline="", encoding="utf-8-sig") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert [cell for cell in cells if cell.startswith(marks.FORMULA)] == []


def test_two_sheets_are_merged_and_empty_cells_ignored(out, tmp_path):
    other = out / "other.csv"
    shutil.copy(out / "open_questions.csv", other)
    fill(out, {"ada": ("4", "")})
    fill(out, {"ben": ("1", "")}, "other.csv")
    enter(out, out / "open_questions.csv", other)
    assert points(out) == {"ada": 4, "ben": 1}
    fill(out, {"ada": ("", "")})
    enter(out)
    assert points(out) == {"ada": 4, "ben": 1}


def test_a_changed_answer_waits_and_its_old_points_are_shown(out):
    fill(out, ALL)
    enter(out)
    keep(out, rows(answers=["another answer", *ANSWERS[1:]]))
    assert "ada" not in points(out)
    (line,) = [row for row in lines_of(out / "open_questions.csv") if row["student"] == "ada"]
    assert line["before"] == "4 =good"
    keep(out, rows())
    assert points(out) == WANT


def test_invalid_marks_are_reported_and_valid_ones_entered(out):
    fill(out, {"ada": ("99", "typo"), "ben": ("2", "")})
    lines = lines_of(out / "open_questions.csv")
    lines.append(dict.fromkeys(marks.COLUMNS, "") | {"student": "nobody", "points": "3"})
    marks.write_table(out / "open_questions.csv", marks.COLUMNS, lines)
    _, problems = enter(out)
    assert [problem.why[:20] for problem in problems] == [
        "99 points, but there",
        "no answer has this k",
    ]
    grading.write_reports(out, problems)
    assert points(out) == {"ben": 2}
    kept = lines_of(out / "unmatched.csv")
    assert [(row["student"], row["points"]) for row in kept] == [("ada", "99"), ("nobody", "3")]
    enter(out)
    assert len(lines_of(out / "unmatched.csv")) == 2


def test_a_backup_is_there_before_a_change(out):
    fill(out, ALL)
    enter(out)
    before = (out / "marks.json").read_bytes()
    fill(out, {"ada": ("1", "less")})
    changes, _ = enter(out)
    assert changes == ["ada, 02_em, task-5: 1 of 4 (before: 4)"]
    saved = [path.read_bytes() for path in (out / "backups").glob("*marks.json")]
    assert saved == [before]


def test_a_sheet_without_its_first_line_is_refused(out):
    path = out / "open_questions.csv"
    path.write_text("some,thing\n1,2\n")
    with pytest.raises(ValueError, match="no column comment or points"):
        enter(out)


def test_a_check_is_overridden_with_a_reason_and_this_outlasts_another_grading(out):
    fill(out, {"ada": ("0.5", ""), "ben": ("4", "right, in another form")}, "overrides.csv")
    changes, (problem,) = enter(out, out / "overrides.csv")
    assert changes == ["ben, 02_em, check-1: 4 of 4"]
    assert problem.why == "points of a check are given with a reason, in the column comment"
    keep(out, rows(answers=["another answer", *ANSWERS[1:]]))
    for _ in range(2):
        found = {row.student: row for row in grading.write_reports(out) if row.task == "check-1"}
        assert found["ben"].points == 4
        assert found["ben"].message == "points given by your teacher: right, in another form"
        assert found["ada"].points == 1
        enter(out, out / "overrides.csv")
    page = (out / "feedback" / "ben" / "02_em" / "02_em.html").read_text(encoding="utf8")
    assert "<strong>4 of" in page
    (line,) = [row for row in lines_of(out / "overrides.csv") if row["student"] == "ben"]
    assert line["before"] == "1 graded"


def test_an_override_waits_where_the_code_changed_and_this_is_reported(out):
    def rows_with(code):
        return [row._replace(code=code) if row.task == "check-1" else row for row in rows()]

    keep(out, rows_with("first"))
    grading.write_reports(out)
    fill(out, {"ben": ("2.5", "half is right")}, "overrides.csv")
    enter(out, out / "overrides.csv")
    keep(out, rows_with("second"))
    found = {row.student: row.points for row in grading.write_reports(out) if not row.answer}
    assert found["ben"] == 1
    (line,) = [row for row in lines_of(out / "overrides.csv") if row["student"] == "ben"]
    assert line["before"] == "1 graded (for other code: 2.5 half is right)"
    notes = {row["student"]: row["notes"] for row in marks.read_table(out / "submissions.csv")}
    assert "check-1: 2.5 points were given for other code" in notes["ben"]
    assert notes["ada"] == ""
    fill(out, {"ben": ("2.5", "half is still right")}, "overrides.csv")
    enter(out, out / "overrides.csv")
    found = {row.student: row.points for row in grading.write_reports(out) if not row.answer}
    assert found["ben"] == 2.5


def test_a_submission_that_cannot_be_read_can_be_given_points_too(out):
    row = examine.Row("eve", "02_em", "check-1", 0.0, 4.0, "not graded: the file is no notebook")
    keep(out, [row])
    grading.write_reports(out)
    fill(out, {"eve": ("3", "read on paper")}, "overrides.csv")
    assert len(enter(out, out / "overrides.csv")[0]) == 1
    (found,) = [row for row in grading.write_reports(out) if row.student == "eve"]
    assert (found.points, found.state) == (3, "graded")
