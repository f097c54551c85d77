"""Test that the file of an interview keeps every confirmed answer and no other file is changed."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cgmm.decide.answer_file import Answer, AnswerFile

X = np.arange(40.0).reshape(20, 2)
# A program that appends answers without end, and prints the number of each after writing it.
WRITER = """
import sys, itertools
import numpy as np
from cgmm.decide.answer_file import Answer, AnswerFile
X = np.arange(40.0).reshape(20, 2)
file = AnswerFile(sys.argv[1], X)
for n in itertools.count(len(file.answers)):
    file.add_answer(Answer(n % 19, 19, "same", "n" * 300, str(n), "check", 0.5))
    print(n, flush=True)
"""


@pytest.fixture
def path(tmp_path):
    """Return the path of a file of answers that does not exist yet."""
    return tmp_path / "answers.jsonl"


def make_answer(n: int, annotator: str = "ann") -> Answer:
    """Return the answer of an annotator about points n and n + 1."""
    return Answer(n, n + 1, "same", annotator, f"2026-01-01T00:00:{n:02}", "check", 0.25)


def read_answers(path) -> list[Answer]:
    """Return the answers that a new interview reads from a file."""
    return list(AnswerFile(path, X).answers.values())


def test_a_killed_writer_loses_no_confirmed_answer(path):
    for attempt in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        writer.stdout.readline()
        time.sleep(0.01 + 0.02 * attempt)
        writer.send_signal(signal.SIGKILL)
        confirmed = writer.stdout.read().split()
        writer.wait()
        times = [int(one.time) for one in read_answers(path)]
        assert times == list(range(len(times)))
        assert len(times) > max(map(int, confirmed), default=0)


@pytest.mark.parametrize("n_lost", [1, 2, 40, 10_000])
def test_an_incomplete_last_line_is_dropped(path, n_lost):
    file = AnswerFile(path, X)
    file.add_answer(make_answer(0))
    before = path.read_bytes()
    file.add_answer(make_answer(1))
    added = len(path.read_bytes()) - len(before)
    path.write_bytes(path.read_bytes()[: -min(n_lost, added - 1)])
    again = AnswerFile(path, X)
    # If only the line break is missing, the line is still complete.
    expected = [make_answer(0), make_answer(1)] if n_lost == 1 else [make_answer(0)]
    assert list(again.answers.values()) == expected
    again.add_answer(make_answer(2))
    assert read_answers(path) == [*expected, make_answer(2)]


def test_an_incomplete_header_is_written_again(path):
    AnswerFile(path, X)
    header = path.read_bytes()
    path.write_bytes(header[:20])
    AnswerFile(path, X).add_answer(make_answer(0))
    assert path.read_bytes().startswith(header)
    assert read_answers(path) == [make_answer(0)]


def test_the_file_only_grows_and_reading_it_replays_all_events(path):
    file, sizes = AnswerFile(path, X), []
    events = [
        (file.add_answer, make_answer(0)), (file.add_answer, make_answer(1)),
        (file.withdraw_answer, 0), (file.add_answer, make_answer(2)),
        (file.revise_answer, 2, "different"), (file.withdraw_answer, 7),
    ]  # fmt: skip
    for method, *arguments in events:
        before = path.read_bytes()
        method(*arguments)
        assert path.read_bytes().startswith(before)
        sizes.append(len(path.read_bytes()) - len(before))
    assert min(sizes) > 0
    expected = {1: make_answer(1), 2: make_answer(2)._replace(answer="different")}
    assert file.answers == AnswerFile(path, X).answers == expected


def test_two_interviews_can_share_a_file(path):
    ann, bob = AnswerFile(path, X), AnswerFile(path, X)
    ann.add_answer(make_answer(0))
    bob.add_answer(make_answer(1, "bob"))
    ann.add_answer(make_answer(2))
    assert [one.annotator for one in ann.answers.values()] == ["ann", "bob", "ann"]
    bob.withdraw_answer(1)
    assert list(bob.answers) == [0, 2]


def test_an_answer_of_another_interview_just_before_writing_is_kept(path, monkeypatch):
    ann, bob = AnswerFile(path, X), AnswerFile(path, X)
    read = ann._read_new_lines

    def read_and_let_bob_answer(path):
        read(path)
        if not bob.answers:
            bob.add_answer(make_answer(1, "bob"))

    monkeypatch.setattr(ann, "_read_new_lines", read_and_let_bob_answer)
    ann.add_answer(make_answer(0))
    expected = [make_answer(1, "bob"), make_answer(0)]
    assert list(ann.answers.values()) == read_answers(path) == expected


def test_each_answer_is_written_to_the_disk_at_once(path, monkeypatch):
    sizes = []
    file = AnswerFile(path, X)
    monkeypatch.setattr(os, "fsync", lambda n: sizes.append(os.fstat(n).st_size))
    file.add_answer(make_answer(0))
    assert sizes == [path.stat().st_size]


OTHER_FORMATS = [b"a,b\n1,2\n", b"a,b", b'{"i": 1}\n', b"\xff\xfe\n", b'{"format": "version 9"}\n']
# The last answer is about a point that the table does not have.
DAMAGED_LINES = [{"i": 1, "j": 2}, {"unknown": 1}, [1], make_answer(19)._asdict()]


@pytest.mark.parametrize("content", [*OTHER_FORMATS, *DAMAGED_LINES])
def test_a_damaged_file_or_one_in_another_format_is_refused_and_left_unchanged(path, content):
    if content in DAMAGED_LINES:
        AnswerFile(path, X)
        content = path.read_bytes() + json.dumps(content).encode() + b"\n"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="no file of answers"):
        AnswerFile(path, X)
    assert path.read_bytes() == content


def test_a_file_about_another_table_is_refused_and_left_unchanged(path):
    AnswerFile(path, X).add_answer(make_answer(0))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="another table, of 20 rows and 2 columns"):
        AnswerFile(path, X + 1e-9)
    with pytest.raises(ValueError, match="this one has 19 rows"):
        AnswerFile(path, X[1:])
    assert path.read_bytes() == before
