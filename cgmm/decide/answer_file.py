"""The file in which an interview keeps its answers: JSON Lines that only ever grow.

The first line says which table was asked about. Each later line is one event: an answer, the
withdrawal of an answer, or its revision. A line is on the disk before the interview goes on, so a
process that is killed loses nothing that it has confirmed. Several interviews, of one process or of
several, may append to the same file at once. :class:`cgmm.decide.Interview` uses this; chapter 15
explains interviews.

=========  ====================================================================
event      one line after the first, e.g. ``{"number": 0, "i": 3, "j": 17, "answer": "same", ...}``
number     position of an answer among all answers of the file, e.g. 0
=========  ====================================================================
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from cgmm.numerics import FloatArray

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]  # Windows has no such locks.

REPLIES = ("same", "different", "unsure")
FORMAT = "cgmm answers, version 1"


class Answer(NamedTuple):
    """One reply of a person about one pair of rows."""

    i: int
    """Row number of the first point."""
    j: int
    """Row number of the second point."""
    answer: str
    """"same", "different" or "unsure"."""
    annotator: str | None
    """Name of the person, if one was given."""
    time: str
    """Moment of the answer, UTC, in ISO 8601."""
    kind: str
    """Reason for the question: "explore", "doubt", "check" or "place"."""
    p_same: float
    """Probability of "same" that the model gave before it knew the answer."""


class AnswerFile:
    """Answers by number, and the file that they are appended to, if there is one.

    Parameters
    ----------
    path : path-like or None
        The file; it is created with the first line if it does not exist. None keeps answers in
        memory only.
    X : (N, D) array
        The table that is asked about.

    Attributes
    ----------
    answers : dict of int to Answer
        Answers that are valid now, without those that were withdrawn, in the order of asking.

    Raises
    ------
    ValueError
        If the file is no file of answers, or belongs to another table.
    """

    def __init__(self, path: str | os.PathLike[str] | None, X: FloatArray) -> None:
        self.answers: dict[int, Answer] = {}
        self.path = None if path is None else Path(path)
        self._n_points, self._n_given, self._offset = len(X), 0, 0
        self._header = {
            "format": FORMAT, "rows": len(X), "columns": X.shape[1], "fingerprint": fingerprint(X)
        }  # fmt: skip
        if self.path is not None:
            with self._lock() as file:
                self._read_new(file)

    def give(self, answer: Answer) -> None:
        """Append an answer and return once it is on the disk."""
        self._append(answer._asdict())

    def withdraw(self, number: int) -> None:
        """Append the withdrawal of the answer with this number."""
        self._append({"withdraw": number})

    def revise(self, number: int, reply: str) -> None:
        """Append another reply for the answer with this number."""
        self._append({"revise": number, "answer": reply})

    def _append(self, event: dict[str, Any]) -> None:
        """Write one event, after reading the events that other processes have appended."""
        if self.path is None:
            self._apply(event)
            return
        with self._lock() as file:
            self._read_new(file)
            self._write(file, event)
            self._read_new(file)

    @contextmanager
    def _lock(self) -> Iterator[BinaryIO]:
        """Open the file for reading and appending, and keep other processes from it meanwhile."""
        assert self.path is not None
        with open(self.path, "a+b") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    def _write(self, file: BinaryIO, event: dict[str, Any]) -> None:
        file.write(json.dumps(event, ensure_ascii=False).encode("utf8") + b"\n")
        file.flush()
        os.fsync(file.fileno())

    def _read_new(self, file: BinaryIO) -> None:
        """Apply the lines that this object has not read yet."""
        file.seek(self._offset)
        lines = file.read().splitlines(keepends=True)
        for line in lines:
            if not line.endswith(b"\n") and self._mend(file, line):
                return
            self._read_line(line)
            self._offset += len(line)
        if self._offset == 0:
            self._begin(file)

    def _begin(self, file: BinaryIO) -> None:
        self._write(file, self._header)
        self._offset = file.tell()

    def _mend(self, file: BinaryIO, last: bytes) -> bool:
        """End a last line that has no line break; True if it was incomplete and is removed.

        The process that wrote an incomplete line was killed before it could confirm the answer.
        """
        begins = b'{"' if self._offset else b'{"format": "cgmm'
        length = min(len(begins), len(last))
        if last[:length] != begins[:length]:
            raise ValueError(self._explain(last))
        try:
            json.loads(last)
        except ValueError:
            file.truncate(self._offset)
            if self._offset == 0:
                self._begin(file)
            return True
        file.write(b"\n")
        self._offset += 1
        return False

    def _read_line(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            if self._offset == 0:
                self._check_header(event)
            else:
                self._apply(event)
        except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(self._explain(line)) from error

    def _explain(self, line: bytes) -> str:
        return (
            f"{self.path} is no file of answers: it has the line {line[:60]!r}. Choose another "
            "path for the answers, or restore the file from a copy."
        )

    def _check_header(self, header: dict[str, Any]) -> None:
        if header["format"] != FORMAT:
            raise KeyError("format")
        if header["fingerprint"] != self._header["fingerprint"]:
            raise ValueError(
                f"{self.path} has answers about another table, of {header['rows']} rows and "
                f"{header['columns']} columns; this one has {self._header['rows']} rows and "
                f"{self._header['columns']} columns, or other values. Give the table and the "
                "columns that the answers belong to, or another path."
            )

    def _apply(self, event: dict[str, Any]) -> None:
        """Change ``answers`` by one event."""
        if "withdraw" in event:
            self.answers.pop(event["withdraw"], None)
        elif "revise" in event:
            if (before := self.answers.get(event["revise"])) is not None:
                self.answers[event["revise"]] = before._replace(answer=event["answer"])
        else:
            answer = Answer(**event)
            if not (min(answer[:2]) >= 0 and max(answer[:2]) < self._n_points):
                raise KeyError("row number")
            self.answers[self._n_given] = answer
            self._n_given += 1


def fingerprint(X: FloatArray) -> str:
    """Return 32 hexadecimal digits that depend on every value of a table."""
    # NaN has many bit patterns; np.nan is one of them.
    values = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X), dtype="<f8")
    return hashlib.sha256(repr(values.shape).encode() + values.tobytes()).hexdigest()[:32]
