"""Store the answers of an interview in an append-only file of JSON Lines.

The first line identifies the table by a fingerprint. Each later line is one event: an answer, the
withdrawal of an answer, or its revision. An event is on the disk before the method that adds it
returns, so no confirmed answer is lost if the process is killed. Each line is appended by one
system call, and answers are numbered by their position in the file, so several interviews may
append to one file at the same time without a lock, even from different processes.
:class:`cgmm.decide.Interview` uses this file; chapter 15 explains interviews.

=========  ====================================================================
event      one line after the first, e.g. ``{"i": 3, "j": 17, "answer": "same", ...}``
number     position of an answer among all answers of the file, e.g. 0
=========  ====================================================================
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cgmm.numerics import FloatArray

REPLIES = ("same", "different", "unsure")
FORMAT = "cgmm answers, version 1"
TORN = b" (incomplete)\n"
"""Mark appended to an incomplete line, whose writer was killed before it confirmed the answer."""


class Answer(NamedTuple):
    """Reply of a person to the question whether two rows belong to the same group."""

    i: int
    """Row number of the first point."""
    j: int
    """Row number of the second point."""
    answer: str
    """"same", "different" or "unsure"."""
    annotator: str | None
    """Name of the person who answered, or None if the name is unknown."""
    time: str
    """Date and time of the answer in UTC, as ISO 8601."""
    kind: str
    """Kind of the question: "explore", "doubt", "check" or "place"."""
    p_same: float
    """Probability of "same" that the model predicted before it knew the answer."""


class AnswerFile:
    """Keep the answers of an interview by number, and append each event to a file.

    Parameters
    ----------
    path : path-like or None
        The file, which is created if it does not exist. None keeps answers in memory only.
    X : (N, D) array
        The table whose rows the answers are about.

    Attributes
    ----------
    answers : dict of int to Answer
        Answers by number, in the order of asking, without withdrawn answers.

    Raises
    ------
    ValueError
        If the file does not contain answers, or belongs to another table.
    """

    def __init__(self, path: str | os.PathLike[str] | None, X: FloatArray) -> None:
        self.answers: dict[int, Answer] = {}
        self._path = None if path is None else Path(path)
        self._n_rows, self._n_answers, self._offset, self._separator = len(X), 0, 0, b""
        self._header = {
            "format": FORMAT, "rows": len(X), "columns": X.shape[1], "fingerprint": fingerprint(X)
        }  # fmt: skip
        if self._path is not None:
            self._complete_header(self._path)
            self._read_new_lines(self._path)

    def add_answer(self, answer: Answer) -> None:
        """Append an answer to the file, and return once it is on the disk."""
        self._append_event(answer._asdict())

    def withdraw_answer(self, number: int) -> None:
        """Append the withdrawal of the answer with this number."""
        self._append_event({"withdraw": number})

    def revise_answer(self, number: int, reply: str) -> None:
        """Append a new reply for the answer with this number."""
        self._append_event({"revise": number, "answer": reply})

    def _append_event(self, event: dict[str, Any]) -> None:
        """Write one event, and apply all events that any process has appended."""
        if self._path is None:
            self._apply_event(event)
            return
        self._read_new_lines(self._path)
        with open(self._path, "ab") as file:
            file.write(self._separator + _encode_line(event))
            file.flush()
            os.fsync(file.fileno())
        self._read_new_lines(self._path)

    def _complete_header(self, path: Path) -> None:
        """Write the header, or the rest of a header that a killed process left incomplete."""
        header = _encode_line(self._header)
        with open(path, "a+b") as file:
            file.seek(0)
            existing = file.read(len(header))
            if header.startswith(existing):
                file.write(header[len(existing) :])

    def _read_new_lines(self, path: Path) -> None:
        """Apply the lines of the file that this object has not read yet."""
        with open(path, "rb") as file:
            file.seek(self._offset)
            lines = file.readlines()
        for line in lines:
            is_complete = line.endswith(b"\n")
            try:
                self._read_line(line)
            except ValueError:
                if is_complete or self._offset == 0:
                    raise
                self._separator = TORN
                return
            self._offset += len(line)
            self._separator = b"" if is_complete else b"\n"

    def _read_line(self, line: bytes) -> None:
        """Check the header or apply the event in a line of the file."""
        if line == b"\n" or line.endswith(TORN):
            return
        try:
            event = json.loads(line)
            # If two processes create the file at the same time, it has two headers.
            if self._offset == 0 or "format" in event:
                self._check_header(event)
            else:
                self._apply_event(event)
        except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(
                f"{self._path} is no file of answers: it has the line {line[:60]!r}. Choose "
                "another path for the answers, or restore the file from a copy."
            ) from error

    def _check_header(self, header: dict[str, Any]) -> None:
        """Raise an error if the file has another format or belongs to another table."""
        if header["format"] != FORMAT:
            raise KeyError("format")
        if header["fingerprint"] != self._header["fingerprint"]:
            raise ValueError(
                f"{self._path} has answers about another table, of {header['rows']} rows and "
                f"{header['columns']} columns; this one has {self._header['rows']} rows and "
                f"{self._header['columns']} columns, or other values. Give the table and the "
                "columns that the answers belong to, or another path."
            )

    def _apply_event(self, event: dict[str, Any]) -> None:
        """Add, withdraw or revise an answer in ``answers``."""
        if "withdraw" in event:
            self.answers.pop(event["withdraw"], None)
        elif "revise" in event:
            if (answer := self.answers.get(event["revise"])) is not None:
                self.answers[event["revise"]] = answer._replace(answer=event["answer"])
        else:
            answer = Answer(**event)
            if not (min(answer[:2]) >= 0 and max(answer[:2]) < self._n_rows):
                raise KeyError("row number")
            self.answers[self._n_answers] = answer
            self._n_answers += 1


def _encode_line(event: dict[str, Any]) -> bytes:
    """Return an event as one line of JSON."""
    return json.dumps(event, ensure_ascii=False).encode() + b"\n"


def fingerprint(X: FloatArray) -> str:
    """Return a hash of a table, as 32 hexadecimal digits."""
    # NaN has many bit patterns, so replace each of them by the same one.
    values = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X), dtype="<f8")
    return hashlib.sha256(repr(values.shape).encode() + values.tobytes()).hexdigest()[:32]
