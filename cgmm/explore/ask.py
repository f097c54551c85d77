"""Implement the command ``python -m cgmm ask table.csv``: an interview in the browser.

The command reads a table, standardises its columns of numbers, opens a page that asks the
questions, and keeps the answers in a file. Columns of strings are categories if the strings repeat;
cells may be empty. With ``--export`` it writes the groups to a file instead of opening a page. The
how-to page has an example; chapter 15 explains the questions.
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
from cgmm.explore.controls import explain_missing_package
from cgmm.explore.interview_widget import InterviewWidget

MOST_COLUMNS = 5
"""Largest number of numeric columns; more are replaced by this many principal components."""
MOST_CATEGORIES = 20
"""Largest number of different strings in a column of categories."""
FEWEST_ROWS = 3
"""Smallest average number of rows per category."""


def ask(arguments: Sequence[str] | None = None) -> None:
    """Run the command ``python -m cgmm ask``.

    Parameters
    ----------
    arguments : sequence of str, default=None
        Arguments after "ask". None: the arguments of the process.

    Raises
    ------
    SystemExit
        With a message, if the table, a column or a file cannot be used.
    """
    options = _build_parser().parse_args(arguments)
    try:
        table = _read_table(options.table)
        X = _select_features(table, options.columns, options.images)
        if options.export is not None and not options.answers.exists():
            raise ValueError(f"{options.answers} does not exist: ask first, then export.")
        interview = Interview(
            X, options.classes, path=options.answers, annotator=options.annotator,
            error_rate=options.error_rate, random_state=0,
        )  # fmt: skip
        if options.export is not None:
            _export_groups(table, interview, options.export)
            return
        widget = _build_widget(table, interview, options)
        serve(widget, options.port, partial(_announce_address, options))
    except (ValueError, ImportError, OSError) as error:
        raise SystemExit(f"cgmm ask: {error}") from error
    except KeyboardInterrupt:
        print(f"\n{len(interview.answers)} answers are in {options.answers}.")


def _build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    options = argparse.ArgumentParser(
        prog="python -m cgmm ask", description="Group a table by answers."
    )
    options.add_argument("table", type=Path, help="a CSV file with a header")
    options.add_argument("--classes", type=int, required=True, help="number of groups")
    options.add_argument("--answers", type=Path, required=True, help="file that keeps the answers")
    options.add_argument("--columns", help="columns to group the rows by, e.g. a,b,c")
    options.add_argument("--images", help="column with the paths of images")
    options.add_argument("--annotator", help="name of the person who answers")
    options.add_argument("--error-rate", type=float, default=0.05, help="share of wrong answers")
    options.add_argument("--export", type=Path, help="write the groups to this new CSV file")
    options.add_argument("--port", type=int, default=0, help="port on this machine (default: any)")
    options.add_argument("--no-browser", action="store_true", help="only print the address")
    return options


def _announce_address(options: argparse.Namespace, address: str) -> None:
    """Print the address of the page, and open it in the browser unless --no-browser is given."""
    print(f"The interview: {address}\nAnswers go to {options.answers}. Ctrl+C ends it.", flush=True)
    if not options.no_browser:
        webbrowser.open(address)


# ---------------------------------------------------------------------------- the table


def _read_table(path: Path) -> Any:
    """Read a CSV file as a DataFrame."""
    with explain_missing_package("pandas", "reading a table", "ask"):
        import pandas as pd
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


def _select_features(table: Any, columns: str | None, images: str | None = None) -> Any:
    """Return the features to group rows by: standardised numbers, and unchanged categories.

    More than five columns of numbers are replaced by their principal components if no cell is
    empty, because a small number of answers cannot determine a metric on many columns.
    """
    names = _select_columns(table, columns, images)
    is_empty = table[names].isna().all(axis=1)
    if is_empty.any():
        raise ValueError(
            f"row {int(is_empty.argmax())} is empty in {', '.join(names)}; so are "
            f"{int(is_empty.sum())} rows. Remove them, or name other columns by --columns."
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
    # The last digits depend on the machine, so round them: the file of answers stores a fingerprint
    # of these numbers, which must be equal on all machines.
    X = X.round(9)
    categories = table[varying].drop(columns=numbers.columns)
    if categories.shape[1] == 0:
        return X
    return categories.assign(**{str(d): x for d, x in enumerate(X.T)})


def _select_columns(table: Any, columns: str | None, images: str | None) -> list[str]:
    """Return the columns that the user names, or all columns of numbers and of categories."""
    numbers = table.select_dtypes("number").columns.tolist()
    others = [name for name in table if name not in (*numbers, images)]
    usable = numbers + [name for name in others if _has_categories(table[name])]
    names = usable if columns is None else [name.strip() for name in columns.split(",")]
    _check_columns(table, names)
    if not names:
        raise ValueError("the table has no column of numbers or categories to group rows by.")
    if unusable := [name for name in names if name not in usable]:
        raise ValueError(
            f"{', '.join(unusable)} have neither numbers nor categories, which are at most "
            f"{MOST_CATEGORIES} texts, each in {FEWEST_ROWS} rows on average. Leave them out of "
            "--columns: they are shown to the person all the same."
        )
    return names


def _has_categories(column: Any) -> bool:
    """Return True if a column has a small number of different strings, each in several rows."""
    return 0 < column.nunique() <= min(MOST_CATEGORIES, column.count() / FEWEST_ROWS)


def _check_columns(table: Any, names: list[str]) -> None:
    """Raise an error if a column does not exist."""
    if missing := [name for name in names if name not in table.columns]:
        raise ValueError(
            f"there is no column {', '.join(missing)}; the table has {', '.join(table.columns)}."
        )


# ---------------------------------------------------------------------------- input and output


def _build_widget(table: Any, interview: Interview, options: argparse.Namespace) -> InterviewWidget:
    """Return a widget for the interview, which shows all columns and any image of each row."""
    if options.images is None:
        return InterviewWidget(interview, table)
    _check_columns(table, [options.images])
    paths = [options.table.parent / str(name) for name in table[options.images]]
    if missing := [path for path in paths if not path.is_file()]:
        raise ValueError(
            f"{len(missing)} images are missing, the first is {missing[0]}; paths in the column "
            f"{options.images} start from the folder of the table."
        )
    return InterviewWidget(interview, table.drop(columns=options.images), images=paths)


def _export_groups(table: Any, interview: Interview, path: Path) -> None:
    """Write the table with columns for group, probability and doubt to a new file."""
    p, labels = interview.probabilities_, interview.labels_
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
