"""``python -m cgmm ask table.csv``: an interview about a table, in the browser.

Reads the table, standardises its numbers, opens the page and keeps the answers in a file. Texts
that repeat are categories, and cells may be empty. With ``--export`` it writes the groups that the
answers give, and opens no page. The howto has an example; chapter 15 explains the questions.
"""

from __future__ import annotations

import argparse
import webbrowser
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import entr
from sklearn.decomposition import PCA

from cgmm.decide import Interview
from cgmm.explore.ask_server import serve
from cgmm.explore.interview_widget import InterviewWidget

MOST_COLUMNS = 5
"""Number of principal components that stand for more columns: few answers cannot fit many."""
MOST_CATEGORIES = 20
"""Number of different texts up to which a column may hold categories."""
FEWEST_ROWS = 3
"""Number of rows, on average, in which a category appears."""


def ask(arguments: Sequence[str] | None = None) -> None:
    """Run the command line ``python -m cgmm ask``.

    Parameters
    ----------
    arguments : sequence of str, default=None
        Arguments after "ask". None: those of the process.

    Raises
    ------
    SystemExit
        With a message, if table, columns or files cannot be used.
    """
    given = _parser().parse_args(arguments)
    try:
        table = _read_table(given.table)
        X = _points(table, given.columns, given.images)
        if given.export is not None and not given.answers.exists():
            raise ValueError(f"{given.answers} does not exist: ask first, and export then.")
        interview = Interview(
            X, given.classes, path=given.answers, annotator=given.annotator,
            error_rate=given.error_rate, random_state=0,
        )  # fmt: skip
        if given.export is not None:
            _export(table, interview, given.export)
            return
        serve(_widget(table, interview, given), given.port, partial(_announce, given))
    except (ValueError, ImportError, OSError) as error:
        raise SystemExit(f"cgmm ask: {error}") from error
    except KeyboardInterrupt:
        print(f"\n{len(interview.answers)} answers are in {given.answers}.")


def _parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="python -m cgmm ask", description="Group a table by answers."
    )
    options.add_argument("table", type=Path, help="a CSV file with a header")
    options.add_argument("--classes", type=int, required=True, help="number of groups")
    options.add_argument("--answers", type=Path, required=True, help="file that keeps the answers")
    options.add_argument("--columns", help="columns that the groups are made of, e.g. a,b,c")
    options.add_argument("--images", help="column with the paths of images")
    options.add_argument("--annotator", help="name of the person who answers")
    options.add_argument("--error-rate", type=float, default=0.05, help="share of wrong answers")
    options.add_argument("--export", type=Path, help="write the groups to this new CSV file")
    options.add_argument("--port", type=int, default=0, help="port on this machine (default: any)")
    options.add_argument("--no-browser", action="store_true", help="only print the address")
    return options


def _announce(given: argparse.Namespace, address: str) -> None:
    print(f"The interview: {address}\nAnswers go to {given.answers}. Ctrl+C ends it.", flush=True)
    if not given.no_browser:
        webbrowser.open(address)


# ---------------------------------------------------------------------------- the table


def _read_table(path: Path) -> Any:
    """Read a CSV file as a DataFrame."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "reading a table needs pandas: install it with pip install 'constrained-mixtures[ask]'"
        ) from error
    try:
        table = pd.read_csv(path)
    except (ValueError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{path} cannot be read as a table ({reason}). Save it as CSV with a header, in UTF-8."
        ) from error
    if len(table) < 2:
        raise ValueError(f"{path} has {len(table)} rows; an interview needs at least two.")
    return table


def _points(table: Any, columns: str | None, images: str | None = None) -> Any:
    """Return the table that is grouped: standardised numbers, and categories as they are.

    Many columns of numbers are replaced by their principal components if no cell is empty.
    """
    names = _names(table, columns, images)
    empty = table[names].isna().all(axis=1)
    if empty.any():
        raise ValueError(
            f"row {int(empty.argmax())} is empty in {', '.join(names)}; so are {int(empty.sum())} "
            "rows. Remove them, or name other columns by --columns."
        )
    varying = [name for name in names if table[name].nunique() > 1]
    if not varying:
        raise ValueError(f"{', '.join(names)} have the same value in all rows; name other columns.")
    numbers = table[varying].select_dtypes("number").astype(float)
    if wrong := numbers.columns[np.isinf(numbers).any()].tolist():
        raise ValueError(f"infinite values in {', '.join(wrong)}; correct them, or choose columns.")
    X = ((numbers - numbers.mean()) / numbers.std(ddof=0)).to_numpy()
    if X.shape[1] > MOST_COLUMNS and not np.isnan(X).any():
        X = PCA(MOST_COLUMNS, random_state=0).fit_transform(X)
    # Last digits depend on the machine; the answers' fingerprint must not.
    X = X.round(9)
    categories = table[varying].drop(columns=numbers.columns)
    if categories.shape[1] == 0:
        return X
    return categories.assign(**{str(d): x for d, x in enumerate(X.T)})


def _names(table: Any, columns: str | None, images: str | None) -> list[str]:
    """Return the columns that the groups are made of: those named, or numbers and categories."""
    numbers = table.select_dtypes("number").columns.tolist()
    usable = numbers + [n for n in table if n not in numbers and n != images and _repeats(table[n])]
    names = usable if columns is None else [name.strip() for name in columns.split(",")]
    _require_columns(table, names)
    if not names:
        raise ValueError("the table has no column of numbers or categories to group rows by.")
    if texts := [name for name in names if name not in usable]:
        raise ValueError(
            f"{', '.join(texts)} have neither numbers nor categories, which are at most "
            f"{MOST_CATEGORIES} texts, each in {FEWEST_ROWS} rows on average. Leave them out of "
            "--columns: they are shown to the person all the same."
        )
    return names


def _repeats(column: Any) -> bool:
    """Return whether a column's texts are categories: not many, and each in several rows."""
    return 0 < column.nunique() <= min(MOST_CATEGORIES, column.count() / FEWEST_ROWS)


def _require_columns(table: Any, names: list[str]) -> None:
    if missing := [name for name in names if name not in table.columns]:
        raise ValueError(
            f"there is no column {', '.join(missing)}; the table has {', '.join(table.columns)}."
        )


# ---------------------------------------------------------------------------- in and out


def _widget(table: Any, interview: Interview, given: argparse.Namespace) -> InterviewWidget:
    """Show all columns; paths of images are read beside the table."""
    if given.images is None:
        return InterviewWidget(interview, table)
    _require_columns(table, [given.images])
    paths = [given.table.parent / str(name) for name in table[given.images]]
    if missing := [path for path in paths if not path.is_file()]:
        raise ValueError(
            f"{len(missing)} images are missing, the first is {missing[0]}; paths in the column "
            f"{given.images} start from the folder of the table."
        )
    return InterviewWidget(interview, table.drop(columns=given.images), images=paths)


def _export(table: Any, interview: Interview, path: Path) -> None:
    """Write the table with group, probability and doubt to a new file."""
    p = interview.probabilities_
    labels = interview.labels_
    grouped = table.assign(
        group=labels + 1,
        probability=p[np.arange(len(p)), labels].round(4),
        doubt=entr(p).sum(axis=1).round(4),
    )
    try:
        grouped.to_csv(path, index=False, mode="x")
    except FileExistsError as error:
        raise ValueError(f"{path} exists, and is not overwritten; give another name.") from error
    print(f"{len(grouped)} rows in {interview.n_components} groups: {path}")
