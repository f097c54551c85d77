"""Result files: written as realisations finish, sorted at the end, and read again. Chapter 13.

While an experiment runs, ``<name>.partial`` receives one line for each finished realisation. At the
end all rows are sorted into ``<name>.csv``, which is written whole or not at all.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from reruns.design import Experiment, Row, Setting, format_setting, seed_of


def read_rows(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Rows of a result file by column.

    Parameters
    ----------
    path : path
        A file that :func:`~reruns.replicate` wrote.

    Returns
    -------
    list of dict
        Everything as text; an empty ``value`` is a failure.
    """
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Store:
    """The rows of one experiment, by task: a sorted file, and what has been finished since."""

    def __init__(self, experiment: Experiment, results: Path, seed: int, *, fresh: bool):
        self.experiment = experiment
        self.seed = seed
        self.path = results / f"{experiment.name}.csv"
        self.partial = results / f"{experiment.name}.partial"
        results.mkdir(parents=True, exist_ok=True)
        if fresh:
            self.partial.unlink(missing_ok=True)
        self.rows: dict[Row, list[Row]] = {} if fresh else self._read()
        self._log: TextIO | None = None

    def _read(self) -> dict[Row, list[Row]]:
        rows: dict[Row, list[Row]] = {}
        for row in self._sorted():
            rows.setdefault(self._key(row), []).append(row)
        for finished in self._finished():
            rows[self._key(finished[0])] = finished
        for key in rows:
            self._require_same_seed(key)
        return rows

    def _sorted(self) -> list[Row]:
        """Rows of the result file, if there is one."""
        if not self.path.exists():
            return []
        with open(self.path, newline="", encoding="utf-8") as file:
            header, *rows = [tuple(row) for row in csv.reader(file)] or [()]
        if header != self.experiment.header:
            raise ValueError(
                f"{self.path} has other columns than {self.experiment.name} writes; "
                "use --fresh to replace it, or another --results."
            )
        return rows

    def _finished(self) -> Iterator[list[Row]]:
        """Realisations in the partial file; a line that was cut off in writing does not count."""
        if not self.partial.exists():
            return
        for line in self.partial.read_text(encoding="utf-8").split("\n"):
            try:
                yield [tuple(row) for row in json.loads(line)]
            except json.JSONDecodeError:
                continue

    def _key(self, row: Row) -> Row:
        """The key of the task that wrote a row."""
        n = 3 + len(self.experiment.columns)
        return (*row[2:n], *row[n + 1 : n + 3])

    def _require_same_seed(self, key: Row) -> None:
        """One file holds one seed: else some realisations would count twice."""
        data, *values, realisation, seed = key
        made = seed_of(self.experiment.name, Setting(data, tuple(values)), realisation, self.seed)
        if seed != str(made):
            raise ValueError(
                f"{self.path} holds realisations of another seed than {self.seed}; use --fresh to "
                "replace them, or another --results."
            )

    def add(self, rows: list[Row]) -> None:
        """Keep one finished realisation, in memory and on disk."""
        self.rows[self._key(rows[0])] = rows
        if self._log is None:
            self._log = open(self.partial, "a", encoding="utf-8")  # noqa: SIM115
            # The file may end in a line that was cut off: this one ends it.
            self._log.write("\n")
        self._log.write(json.dumps(rows) + "\n")
        self._log.flush()
        os.fsync(self._log.fileno())

    def close(self) -> None:
        """Stop writing; what is there stays."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def finish(self) -> None:
        """Sort everything into the result file, which replaces the old one in one step."""
        self.close()
        new = self.path.with_suffix(".new")
        with open(new, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(self.experiment.header)
            for key in sorted(self.rows, key=self._place):
                out.writerows(self.rows[key])
        os.replace(new, self.path)
        self.partial.unlink(missing_ok=True)

    def _place(self, key: Row) -> tuple[int, Row, int, int]:
        """Settings in the order of the design, then realisations by number."""
        *setting, realisation, seed = key
        settings = [*map(format_setting, self.experiment.design), tuple(setting)]
        return (settings.index(tuple(setting)), key[:-2], int(realisation), int(seed))
