"""Two rows of a table side by side, as the interview shows them to a person.

A comparison is plain data for the script of the page, which writes every cell as text; only a
reader's own HTML function, and only on request, is inserted as HTML. Chapter 15.

=========  ====================================================================
line       one column of the table: its name, two cells, and whether they differ
cell       text, and for a number the place within the column's range, 0 to 1
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
"""Two numbers differ visibly from this share of the column's range on."""


class Cards:
    """Rows as a person sees them.

    Parameters
    ----------
    rows : DataFrame, (N, D) array, or sequence of str or mappings
        The rows.
    images : sequence of paths or arrays, default=None
        A picture of each row.
    card : callable, default=None
        From a row to its HTML; it replaces the lines.
    trust_html : bool, default=False
        Whether the result of ``card`` is inserted as HTML; otherwise it is shown as text.
    """

    def __init__(
        self,
        rows: Any,
        *,
        images: Sequence[Any] | None = None,
        card: Callable[[Any], str] | None = None,
        trust_html: bool = False,
    ) -> None:
        self._columns = _columns_of(rows)
        self._rows = rows.iloc if hasattr(rows, "iloc") else rows
        self._images, self._card, self._trust_html = images, card, trust_html
        self._ranges = {name: _range_of(values) for name, values in self._columns.items()}
        self.n_rows = len(rows)
        if images is not None and len(images) != self.n_rows:
            raise ValueError(
                f"there are {len(images)} images for {self.n_rows} rows; give one for each row."
            )

    def compare(self, i: int, j: int) -> dict[str, Any]:
        """Return what the page shows of two rows."""
        shown: dict[str, Any] = {"rows": [i, j], "lines": [], "html": None, "images": None}
        if self._images is not None:
            shown["images"] = [image_url(self._images[row]) for row in (i, j)]
        if self._card is None:
            shown["lines"] = [self._line(name, i, j) for name in self._columns]
        else:
            texts = [str(self._card(self._rows[row])) for row in (i, j)]
            shown["html"] = texts if self._trust_html else [escape(text) for text in texts]
        return shown

    def _line(self, name: str, i: int, j: int) -> dict[str, Any]:
        values = [self._columns[name][row] for row in (i, j)]
        texts, (low, width) = [_text(value) for value in values], self._ranges[name]
        shares, differs = None, texts[0] != texts[1]
        if width:
            places = [(float(value) - low) / width for value in values]
            shares = [place if np.isfinite(place) else None for place in places]
            # The distance to a gap is NaN; two gaps do not differ.
            differs = shares != [None, None] and not abs(places[0] - places[1]) <= DIFFERS
        return {"name": name, "texts": texts, "shares": shares, "differs": differs}


def image_url(image: Any) -> str:
    """Return an image, a path or an array of grey or RGB values, as a data URL.

    Raises
    ------
    ValueError
        If there is no such file, or it is no image.
    """
    if not isinstance(image, str | Path):
        png = BytesIO()
        imsave(png, np.asarray(image), format="png", cmap="gray")
        return _data_url("image/png", png.getvalue())
    kind = mimetypes.guess_type(image)[0] or ""
    if not kind.startswith("image/"):
        raise ValueError(f"{image} is no image by its name; give files like face.png or face.jpg.")
    try:
        return _data_url(kind, Path(image).read_bytes())
    except OSError as error:
        raise ValueError(f"the image {image} cannot be read ({error.strerror}).") from error


def _data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"


def _columns_of(rows: Any) -> dict[str, Any]:
    """Columns by name. Texts have one column, arrays have numbered ones."""
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


def _range_of(values: Any) -> tuple[float, float]:
    """Least value and width of a column of numbers; width 0 for all other columns."""
    if not all(_is_number(value) for value in values):
        return 0.0, 0.0
    numbers: NDArray[Any] = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    return (float(numbers.min()), float(np.ptp(numbers))) if len(numbers) else (0.0, 0.0)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _text(value: Any) -> str:
    """Return a cell as text: numbers in four digits, gaps as a dash."""
    if value is None or value != value:
        return "–"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
