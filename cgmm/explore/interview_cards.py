"""Compare two rows of a table, for the two cards that an interview shows side by side.

A comparison is plain data for the script of the page. The script inserts every cell as text. HTML
is inserted only if the user gives a function that returns HTML, and asks for it explicitly.
Chapter 15 explains interviews.

=========  ====================================================================
line       comparison of one column: its name, two texts, two shares, and a flag: do they differ
share      position of a number within the range of its column, from 0 to 1
=========  ====================================================================
"""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from html import escape
from io import BytesIO
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.image import imsave
from numpy.typing import NDArray

DIFFERS = 0.25
"""Share of a column's range above which the difference of two numbers is marked."""


class Cards:
    """Rows of a table, and their images, as the interview shows them.

    Parameters
    ----------
    rows : DataFrame, (N, D) array, or sequence of str or mappings
        The rows.
    images : sequence of paths or arrays, default=None
        One image per row.
    card : callable, default=None
        Function that converts a row to text or HTML, which is shown instead of the columns.
    trust_html : bool, default=False
        True: insert the result of ``card`` as HTML. False: show it as text.
    """

    def __init__(
        self,
        rows: Any,
        *,
        images: Sequence[Any] | None = None,
        card: Callable[[Any], str] | None = None,
        trust_html: bool = False,
    ) -> None:
        self._columns = _split_into_columns(rows)
        self._rows = rows.iloc if hasattr(rows, "iloc") else rows
        self._images, self._card, self._trust_html = images, card, trust_html
        self._ranges = {name: _compute_range(values) for name, values in self._columns.items()}
        self.n_rows = len(rows)
        if images is not None and len(images) != self.n_rows:
            raise ValueError(
                f"there are {len(images)} images for {self.n_rows} rows; give one for each row."
            )

    def compare(self, i: int, j: int) -> dict[str, Any]:
        """Return the comparison of rows i and j, as plain data for the page."""
        comparison: dict[str, Any] = {"rows": [i, j], "lines": [], "html": None, "images": None}
        if self._images is not None:
            comparison["images"] = [encode_image(self._images[row]) for row in (i, j)]
        if self._card is None:
            comparison["lines"] = [self._compare_column(name, i, j) for name in self._columns]
        else:
            texts = [str(self._card(self._rows[row])) for row in (i, j)]
            comparison["html"] = texts if self._trust_html else [escape(text) for text in texts]
        return comparison

    def _compare_column(self, name: str, i: int, j: int) -> dict[str, Any]:
        """Return the comparison of rows i and j in one column."""
        values = [self._columns[name][row] for row in (i, j)]
        texts, (low, width) = [_format_cell(value) for value in values], self._ranges[name]
        shares, differs = None, texts[0] != texts[1]
        if width:
            x, y = ((float(value) - low) / width for value in values)
            shares = [share if np.isfinite(share) else None for share in (x, y)]
            # An empty cell differs from any number, but two empty cells do not differ.
            differs = shares != [None, None] and not abs(x - y) <= DIFFERS
        return {"name": name, "texts": texts, "shares": shares, "differs": differs}


def encode_image(image: Any) -> str:
    """Return an image, given as a path or as an array of grey or RGB values, as a data URL.

    Raises
    ------
    ValueError
        If the file does not exist, or is no image.
    """
    if not isinstance(image, str | Path):
        png = BytesIO()
        imsave(png, np.asarray(image), format="png", cmap="gray")
        return _encode_data_url("image/png", png.getvalue())
    kind = mimetypes.guess_type(image)[0] or ""
    if not kind.startswith("image/"):
        raise ValueError(f"{image} is no image by its name; give files like face.png or face.jpg.")
    try:
        return _encode_data_url(kind, Path(image).read_bytes())
    except OSError as error:
        raise ValueError(f"the image {image} cannot be read ({error.strerror}).") from error


def _encode_data_url(kind: str, content: bytes) -> str:
    """Return the content of a file of this MIME type as a data URL."""
    return f"data:{kind};base64,{b64encode(content).decode()}"


def _split_into_columns(rows: Any) -> dict[str, Any]:
    """Return the columns of the rows by name; the columns of an array are numbered."""
    if hasattr(rows, "columns"):
        return {str(name): rows[name].to_numpy() for name in rows.columns}
    if len(rows) and isinstance(rows[0], Mapping):
        return {str(name): [row.get(name, "") for row in rows] for name in rows[0]}
    if len(rows) and isinstance(rows[0], str):
        return {"text": rows}
    table = np.asarray(rows)
    if table.ndim != 2:
        raise ValueError(
            f"rows have the shape {table.shape}; give a DataFrame, a table of shape (N, D), texts "
            "or dictionaries, one for each row."
        )
    return {f"column {d}": table[:, d] for d in range(table.shape[1])}


def _compute_range(values: Any) -> tuple[float, float]:
    """Return the minimum and the width of the range of a column, or zeros if it has no numbers."""
    if not all(_is_number(value) for value in values):
        return 0.0, 0.0
    numbers: NDArray[Any] = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    return (float(numbers.min()), float(np.ptp(numbers))) if len(numbers) else (0.0, 0.0)


def _is_number(value: Any) -> bool:
    """Return True for a number, but not for a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _format_cell(value: Any) -> str:
    """Return a cell as text: a float with four digits, an empty cell as a dash."""
    if value is None or value != value:
        return "–"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
