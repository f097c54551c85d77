"""Classes by any name, some of them unknown, as numbers. Chapter 4.

=======  ==============================================================
N, K     number of points, of classes that are known for some point
y        names of classes; -1, None and NaN where none is known
=======  ==============================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cgmm.given import MASKED_LABELS, is_missing, refuse_mask
from cgmm.numerics import IntArray

# What arrays of text make of -1, of NaN, and files of nothing.
TEXTS = ("-1", "-1.0", "nan", "")


def number_classes(y: ArrayLike) -> tuple[NDArray[Any], IntArray]:
    """Number classes that have names, and mark unknown classes by -1.

    Parameters
    ----------
    y : (N,) array-like
        The class of each point: numbers or texts; -1, None and NaN where it is unknown.

    Returns
    -------
    classes : (K,) array
        The classes that occur, sorted.
    numbers : (N,) int array
        For each point the place of its class in ``classes``, -1 where it is unknown: what ``fit``
        takes as ``labels``.

    Raises
    ------
    ValueError
        If an entry is the text "-1", "nan" or "", of which nobody can tell whether it is a class;
        if classes are of types that have no order.

    Examples
    --------
    >>> number_classes(["bb", -1, "aa", None])
    (array(['aa', 'bb'], dtype=object), array([ 1, -1,  0, -1]))
    >>> number_classes([3.0, float("nan"), 1.0])
    (array([1., 3.]), array([ 1, -1,  0]))
    """
    array = read_classes(y)
    known = np.asarray(array != -1, dtype=bool)
    try:
        classes, places = np.unique(array[known], return_inverse=True)
    except TypeError:
        kinds = sorted({type(name).__name__ for name in array[known].tolist()})
        raise ValueError(
            f"y names classes by values of the types {' and '.join(kinds)}, which have no order. "
            "Use one type for all, say text; None means unknown."
        ) from None
    numbers = np.full(array.shape, -1)
    numbers[known] = places
    return classes, numbers


def read_classes(y: ArrayLike, name: str = "y") -> NDArray[Any]:
    """Return the entries as an array in which unknown classes are -1."""
    refuse_mask(name, y, MASKED_LABELS.format(name))
    array = np.asarray(y)
    if array.dtype.kind in "US" and not hasattr(y, "dtype"):
        # Of a list of texts and numbers numpy makes texts alone.
        objects = np.asarray(y, dtype=object)
        array = array if all(isinstance(label, str) for label in objects.flat) else objects
    if array.dtype.kind == "f":
        return np.where(np.isnan(array), -1, array)
    if array.dtype == object:
        array = array.copy()
        array[np.array([is_missing(label) for label in array.flat], bool).reshape(array.shape)] = -1
        if all(isinstance(label, int | float | np.number) for label in array.flat):
            array = np.array(array.tolist())
    _refuse_texts(name, array)
    return array


def _refuse_texts(name: str, array: NDArray[Any]) -> None:
    """Refuse the texts that may be classes, or what became of an unknown one."""
    if array.dtype.kind not in "USO":
        return
    found = [row for row, label in enumerate(array.flat) if str(label) in TEXTS and label != -1]
    if found:
        raise ValueError(
            f"{name}[{found[0]}] is the text {str(array.flat[found[0]])!r}: a class, or unknown? "
            f"Say None where unknown, {name}=np.where(np.isin({name}, {list(TEXTS)}), None, {name})"
            ", or give the class another name."
        )
