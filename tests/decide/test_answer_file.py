"""The file of an interview loses no confirmed answer and overwrites no foreign file."""

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
# Append answers for ever, and print the number of each that is safe.
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


def answer(n: int, annotator: str = "ann") -> Answer:
    return Answer(n, n + 1, "same", annotator, f"2026-01-01T00:00:{n:02}", "check", 0.25)


def test_a_killed_writer_loses_nothing_that_it_confirmed(tmp_path):
    path = tmp_path / "answers.jsonl"
    for turn in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        writer.stdout.readline()
        time.sleep(0.01 + 0.02 * turn)
        writer.send_signal(signal.SIGKILL)
        confirmed = writer.stdout.read().split()
        writer.wait()
        read = AnswerFile(path, X)
        times = [int(one.time) for one in read.answers.values()]
        assert times == list(range(len(times)))
        assert len(times) > max(map(int, confirmed), default=0)


@pytest.mark.parametrize("n_lost", [1, 2, 40, 10_000])
def test_a_torn_last_line_is_dropped(tmp_path, n_lost):
    path = tmp_path / "answers.jsonl"
    file = AnswerFile(path, X)
    file.add_answer(answer(0))
    before = path.read_bytes()
    file.add_answer(answer(1))
    added = len(path.read_bytes()) - len(before)
    path.write_bytes(path.read_bytes()[: -min(n_lost, added - 1)])
    again = AnswerFile(path, X)
    # Without its line break alone, a line is still whole.
    expected = [answer(0), answer(1)] if n_lost == 1 else [answer(0)]
    assert list(again.answers.values()) == expected
    again.add_answer(answer(2))
    assert list(AnswerFile(path, X).answers.values()) == [*expected, answer(2)]


def test_a_torn_header_is_written_again(tmp_path):
    path = tmp_path / "answers.jsonl"
    AnswerFile(path, X)
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    AnswerFile(path, X).add_answer(answer(0))
    assert path.read_bytes().startswith(whole)
    assert list(AnswerFile(path, X).answers.values()) == [answer(0)]


def test_the_file_only_grows_and_replays_all_events(tmp_path):
    path = tmp_path / "answers.jsonl"
    file, sizes = AnswerFile(path, X), []
    events = [
        (file.add_answer, answer(0)), (file.add_answer, answer(1)), (file.withdraw_answer, 0),
        (file.add_answer, answer(2)), (file.revise_answer, 2, "different"),
        (file.withdraw_answer, 7),
    ]  # fmt: skip
    for act, *given in events:
        before = path.read_bytes()
        act(*given)
        assert path.read_bytes().startswith(before)
        sizes.append(len(path.read_bytes()) - len(before))
    assert min(sizes) > 0
    expected = {1: answer(1), 2: answer(2)._replace(answer="different")}
    assert file.answers == AnswerFile(path, X).answers == expected


def test_two_interviews_share_a_file(tmp_path):
    path = tmp_path / "answers.jsonl"
    ann, bob = AnswerFile(path, X), AnswerFile(path, X)
    ann.add_answer(answer(0))
    bob.add_answer(answer(1, "bob"))
    ann.add_answer(answer(2))
    assert [one.annotator for one in ann.answers.values()] == ["ann", "bob", "ann"]
    bob.withdraw_answer(1)
    assert list(bob.answers) == [0, 2]


def test_an_answer_given_between_reading_and_writing_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "answers.jsonl"
    ann, bob = AnswerFile(path, X), AnswerFile(path, X)
    read = ann._read_new_lines

    def read_before_bob(path):
        read(path)
        if not bob.answers:
            bob.add_answer(answer(1, "bob"))

    monkeypatch.setattr(ann, "_read_new_lines", read_before_bob)
    ann.add_answer(answer(0))
    expected = [answer(1, "bob"), answer(0)]
    assert list(ann.answers.values()) == list(AnswerFile(path, X).answers.values()) == expected


def test_each_answer_is_synchronised_to_the_disk(tmp_path, monkeypatch):
    synchronised = []
    file = AnswerFile(tmp_path / "answers.jsonl", X)
    monkeypatch.setattr(os, "fsync", lambda n: synchronised.append(os.fstat(n).st_size))
    file.add_answer(answer(0))
    assert synchronised == [(tmp_path / "answers.jsonl").stat().st_size]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a,b\n1,2\n", "no file of answers"),
        (b"a,b", "no file of answers"),
        (b'{"i": 1}\n', "no file of answers"),
        (b"\xff\xfe\n", "no file of answers"),
        (b'{"format": "cgmm answers, version 9"}\n', "no file of answers"),
    ],
)
def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path, content, says):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=says):
        AnswerFile(path, X)
    assert path.read_bytes() == content


@pytest.mark.parametrize("line", [{"i": 1, "j": 2}, {"i": 0, "j": 20}, {"unknown": 1}, [1]])
def test_a_damaged_line_is_refused(tmp_path, line):
    path = tmp_path / "answers.jsonl"
    AnswerFile(path, X)
    if line == {"i": 0, "j": 20}:
        line = answer(19)._asdict()
    with open(path, "a") as file:
        file.write(json.dumps(line) + "\n")
    with pytest.raises(ValueError, match="no file of answers"):
        AnswerFile(path, X)


def test_answers_about_another_table_are_refused(tmp_path):
    path = tmp_path / "answers.jsonl"
    AnswerFile(path, X).add_answer(answer(0))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="another table, of 20 rows and 2 columns"):
        AnswerFile(path, X + 1e-9)
    with pytest.raises(ValueError, match="this one has 19 rows"):
        AnswerFile(path, X[1:])
    assert path.read_bytes() == before
