"""The file in which an interview keeps its answers: JSON Lines that only ever grow.

The first line says which table was asked about. Each later line is one event: an answer, the
withdrawal of an answer, or its revision. A line is on the disk before the interview goes on, so a
process that is killed loses nothing that it has confirmed. Each line is appended by one system call
and answers are numbered by their place in the file, so several interviews, of one process or of
several, may append at once without a lock. :class:`cgmm.decide.Interview` uses this; chapter 15
explains interviews.

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
"""End of a line whose writer was killed before it could confirm the answer."""


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
        self._path = None if path is None else Path(path)
        self._n_points, self._n_given, self._offset, self._ending = len(X), 0, 0, b""
        self._header = {
            "format": FORMAT, "rows": len(X), "columns": X.shape[1], "fingerprint": fingerprint(X)
        }  # fmt: skip
        if self._path is not None:
            self._begin(self._path)
            self._read_new(self._path)

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
        """Write one event, and read what this and other processes have written."""
        if self._path is None:
            self._apply(event)
            return
        self._read_new(self._path)
        with open(self._path, "ab") as file:
            file.write(self._ending + _as_line(event))
            file.flush()
            os.fsync(file.fileno())
        self._read_new(self._path)

    def _begin(self, path: Path) -> None:
        """Write the header, or the part of it that a killed process did not write."""
        header = _as_line(self._header)
        with open(path, "a+b") as file:
            file.seek(0)
            begun = file.read(len(header))
            if header.startswith(begun):
                file.write(header[len(begun) :])

    def _read_new(self, path: Path) -> None:
        """Apply the lines that this object has not read yet."""
        with open(path, "rb") as file:
            file.seek(self._offset)
            lines = file.readlines()
        for line in lines:
            is_ended = line.endswith(b"\n")
            try:
                self._read_line(line)
            except ValueError:
                if is_ended or self._offset == 0:
                    raise
                self._ending = TORN
                return
            self._offset += len(line)
            self._ending = b"" if is_ended else b"\n"

    def _read_line(self, line: bytes) -> None:
        if line == b"\n" or line.endswith(TORN):
            return
        try:
            event = json.loads(line)
            # Two processes that create the file at once write two headers.
            if self._offset == 0 or "format" in event:
                self._check_header(event)
            else:
                self._apply(event)
        except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(
                f"{self._path} is no file of answers: it has the line {line[:60]!r}. Choose "
                "another path for the answers, or restore the file from a copy."
            ) from error

    def _check_header(self, header: dict[str, Any]) -> None:
        if header["format"] != FORMAT:
            raise KeyError("format")
        if header["fingerprint"] != self._header["fingerprint"]:
            raise ValueError(
                f"{self._path} has answers about another table, of {header['rows']} rows and "
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


def _as_line(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False).encode() + b"\n"


def fingerprint(X: FloatArray) -> str:
    """Return 32 hexadecimal digits that depend on every value of a table."""
    # NaN has many bit patterns; np.nan is one of them.
    values = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X), dtype="<f8")
    return hashlib.sha256(repr(values.shape).encode() + values.tobytes()).hexdigest()[:32]
