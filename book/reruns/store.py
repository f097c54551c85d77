"""The result file of an experiment: what is stored, and how new realisations are added. Chapter 13.

While an experiment runs, ``<name>.partial`` receives one line for each finished realisation. At the
end all rows are sorted into ``<name>.csv``, which is replaced in one step. Only the runner writes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from csv import writer
from pathlib import Path

from reruns.design import Experiment, Row, Setting, format_setting, seed_of
from reruns.reading import read_rows


class Store:
    """Rows of one experiment by task: those of the result file, and those finished since."""

    def __init__(self, experiment: Experiment, results: Path, seed: int, *, fresh: bool):
        self.experiment = experiment
        self.path = results / f"{experiment.name}.csv"
        self.partial = results / f"{experiment.name}.partial"
        self.rows: dict[Row, list[Row]] = {}
        results.mkdir(parents=True, exist_ok=True)
        if fresh:
            self.partial.unlink(missing_ok=True)
            return
        for row in self._sorted():
            self.rows.setdefault(self._key(row), []).append(row)
        self.rows |= {self._key(rows[0]): rows for rows in self._finished()}
        for key in self.rows:
            self._require_seed(key, seed)

    def _sorted(self) -> list[Row]:
        """Return the rows of the result file, if there is one."""
        rows = read_rows(self.path) if self.path.exists() else []
        if rows and tuple(rows[0]) != self.experiment.header:
            raise ValueError(
                f"{self.path} has other columns than {self.experiment.name} writes; "
                "use --fresh to replace it, or another --results."
            )
        return [tuple(row.values()) for row in rows]

    def _finished(self) -> Iterator[list[Row]]:
        """Yield the realisations of the partial file, without a line that was cut off."""
        lines = self.partial.read_text(encoding="utf-8") if self.partial.exists() else ""
        for line in lines.split("\n"):
            try:
                yield [tuple(row) for row in json.loads(line)]
            except json.JSONDecodeError:
                continue

    def _key(self, row: Row) -> Row:
        """Return the key of the task that wrote a row."""
        n = 3 + len(self.experiment.columns)
        return (*row[2:n], *row[n + 1 : n + 3])

    def _require_seed(self, key: Row, seed: int) -> None:
        """Raise if a realisation has another seed: with two seeds it would count twice."""
        data, *values, realisation, stored = key
        setting = Setting(data, tuple(values))
        if stored != str(seed_of(self.experiment.name, setting, realisation, seed)):
            raise ValueError(
                f"{self.path} holds realisations of another seed than {seed}; use --fresh to "
                "replace them, or another --results."
            )

    def add(self, rows: list[Row]) -> None:
        """Keep one finished realisation, in memory and on disk."""
        self.rows[self._key(rows[0])] = rows
        with open(self.partial, "a", encoding="utf-8") as file:
            # The file may end in a line that was cut off; the break separates it from this one.
            file.write(f"\n{json.dumps(rows)}\n")
            file.flush()
            os.fsync(file.fileno())

    def finish(self) -> None:
        """Sort all rows into the result file, which replaces the old one in one step."""
        new = self.path.with_suffix(".new")
        with open(new, "w", newline="", encoding="utf-8") as file:
            out = writer(file, lineterminator="\n")
            out.writerow(self.experiment.header)
            for key in sorted(self.rows, key=self._place):
                out.writerows(self.rows[key])
        os.replace(new, self.path)
        self.partial.unlink(missing_ok=True)

    def _place(self, key: Row) -> tuple[int, Row, int, int]:
        """Sort settings in the order of the design, then realisations by number."""
        *setting, realisation, seed = key
        settings = [*map(format_setting, self.experiment.design), tuple(setting)]
        return settings.index(tuple(setting)), key[:-2], int(realisation), int(seed)
