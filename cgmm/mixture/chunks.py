"""Points in a dask.array: read where they lie, and refused in words. Behind the page on large data.

A dask.array says what it will be, chunk by chunk, and who makes a chunk may break the word. So each
is looked at once, on its worker, and kept there; only its extent comes here.

=====  ====================================================================
N, D   points and their dimensions
P      number of chunks, of some rows each
=====  ====================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cgmm.given import ON_MISSING
from cgmm.numerics import FloatArray, IntArray


class Chunks(NamedTuple):
    """The chunks of a dask.array, kept by those who work on them."""

    parts: tuple[Any, ...]
    """(P,) promises of arrays (rows, D)."""
    starts: IntArray
    """(P + 1,) the first row of each chunk, and N."""
    corners: FloatArray
    """(2, D) the smallest and the largest value of each column."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return int(self.starts[-1]), self.corners.shape[1]

    def few(self, n_rows: int) -> FloatArray:
        """Some rows that reach as far as all, and are no more than all are."""
        return np.resize(self.corners, (min(n_rows, self.shape[0]), self.shape[1]))

    def take(self, rows: IntArray) -> FloatArray:
        """(n, D) these rows, which rise, fetched from the workers."""
        from dask.base import compute
        from dask.delayed import delayed

        chunks = chunk_of(rows, self.starts)
        chosen, first = np.unique(chunks, return_index=True)
        of_chunk = np.split(rows - self.starts[chunks], first[1:])
        take = delayed(rows_of, pure=False)
        found = compute(
            *[take(self.parts[p], own) for p, own in zip(chosen, of_chunk, strict=True)]
        )
        return np.asfortranarray(np.concatenate(found), dtype=float)


def chunk_of(rows: IntArray, starts: IntArray) -> IntArray:
    """The chunk in which each row lies."""
    chunks: IntArray = np.searchsorted(starts, rows, side="right") - 1
    return chunks


def is_dask(X: Any) -> bool:
    """Whether it is one of Dask's collections; Dask itself need not be there to ask."""
    return type(X).__module__.partition(".")[0] == "dask"


def read_chunks(X: Any) -> Chunks:
    """The chunks, each looked at where it lies; or an error that names one."""
    from dask.base import compute, persist
    from dask.delayed import delayed

    _require_array(X)
    X = X.rechunk({1: -1})
    starts = np.concatenate([[0], np.cumsum(X.chunks[0])]).astype(np.intp)
    turn = delayed(by_columns, pure=False)
    parts = persist(*map(turn, X.to_delayed(optimize_graph=True).ravel()))
    told = compute(*[delayed(told_of, pure=False)(part) for part in parts])
    for number, about in enumerate(told):
        _require_kept_word(X, about, number, starts)
    wrong = [number for number, about in enumerate(told) if about.wrong is not None]
    if wrong:
        raise ValueError(_not_finite(told, wrong, starts))
    # A chunk without rows says nothing of them.
    low, high = zip(*[(about.low, about.high) for about in told if about.shape[0]], strict=True)
    return Chunks(parts, starts, np.array([np.min(low, axis=0), np.max(high, axis=0)], dtype=float))


class Told(NamedTuple):
    """What a chunk tells about itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: FloatArray = np.empty(0)
    high: FloatArray = np.empty(0)
    wrong: tuple[int, int] | None = None
    """Row and column of the first value that is not finite."""
    n_wrong: int = 0
    """In how many rows there are such values."""
    value: float = 0.0
    """The first of them."""


def told_of(chunk: Any) -> Told:
    """Shape, type and extent of a chunk; and what is not finite in it."""
    if not isinstance(chunk, np.ndarray):
        return Told((), np.dtype(object))
    if chunk.ndim != 2 or chunk.dtype.kind not in "fiub" or len(chunk) == 0:
        return Told(chunk.shape, chunk.dtype)
    told = Told(chunk.shape, chunk.dtype, chunk.min(axis=0), chunk.max(axis=0))
    if np.isfinite(told.low).all() and np.isfinite(told.high).all():
        return told
    rows = ~np.isfinite(chunk).all(axis=1)
    row = int(rows.argmax())
    column = int((~np.isfinite(chunk[row])).argmax())
    value = float(chunk[row, column])
    return told._replace(wrong=(row, column), n_wrong=int(rows.sum()), value=value)


def by_columns(chunk: Any) -> Any:
    """Coordinates of all points together, as blocks of work read them."""
    return np.asfortranarray(chunk) if isinstance(chunk, np.ndarray) and chunk.ndim == 2 else chunk


def rows_of(chunk: FloatArray, rows: IntArray) -> FloatArray:
    """Some rows of a chunk."""
    return chunk[rows]


# ---------------------------------------------------------------------------- refusals


def _require_array(X: Any) -> None:
    """Refuse what is no table of known size."""
    from dask.array import Array

    if not isinstance(X, Array):
        raise ValueError(
            f"X is a {type(X).__name__} of Dask; a fit takes a dask.array. Of a table: "
            "X.to_dask_array(lengths=True)."
        )
    if X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}; it must be (N, D), a point a row. Reshape your data: "
            "X.reshape(-1, 1) if there is one column."
        )
    if np.isnan(X.shape).any():
        raise ValueError(
            "nobody knows yet how many rows the chunks of X have. Ask them before the fit: "
            "X = X.persist().compute_chunk_sizes()."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X is of type {X.dtype}; it must hold real numbers: X.astype(float).")
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}; there must be a point and a column.")


def _require_kept_word(X: Any, told: Told, number: int, starts: IntArray) -> None:
    """Refuse a chunk that is not what the array says."""
    wanted = (int(starts[number + 1] - starts[number]), X.shape[1])
    if (told.shape, told.dtype) == (wanted, X.dtype):
        return
    where = f"chunk {number} of X (rows {starts[number]} to {starts[number + 1] - 1})"
    if told.shape == wanted:
        raise ValueError(
            f"{where} holds numbers of type {told.dtype}, but X says {X.dtype}. Make them alike: "
            f"X.map_blocks(lambda chunk: chunk.astype({str(X.dtype)!r}), dtype={str(X.dtype)!r})."
        )
    raise ValueError(
        f"{where} has shape {told.shape}, but X says {wanted}. Mend what makes the chunk, or, if "
        "only the number of its rows differs, ask the chunks: X.compute_chunk_sizes()."
    )


def _not_finite(told: tuple[Told, ...], wrong: list[int], starts: IntArray) -> str:
    """Where the first value is that is not finite, and how many rows have some."""
    first = told[wrong[0]]
    row, column = first.wrong or (0, 0)
    count = sum(told[number].n_wrong for number in wrong)
    what = "NaN" if np.isnan(first.value) else "infinity"
    remedy = "Leave such rows out, or mend what makes them."
    if what == "NaN":
        remedy = ON_MISSING.replace(".any(axis=1),", ".any(axis=1).compute(),")
    return (
        f"Input X contains {what}: first in row {starts[wrong[0]] + row}, column {column}, in "
        f"chunk {wrong[0]}, and in {count} of {starts[-1]} rows. {remedy}"
    )
