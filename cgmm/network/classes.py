"""Map class labels of any type to integers 0, 1, ...; some labels may be unknown.

Users call ``number_classes`` before ``fit``; classifiers and the check for misread labels call it
too. Chapter 4 explains partial labels.

=======  ==============================================================
N, K     number of points and of classes that occur, e.g. 150 and 3
y        class names, e.g. ["setosa", None]; -1, None and NaN are unknown
=======  ==============================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cgmm.given import MASKED_LABELS, is_missing, refuse_mask
from cgmm.numerics import IntArray

# An array of text turns -1 and NaN into these; an empty cell of a file is read as "".
TEXTS = ("-1", "-1.0", "nan", "")


def number_classes(y: ArrayLike) -> tuple[NDArray[Any], IntArray]:
    """Number the classes in sorted order, and mark unknown classes by -1.

    Parameters
    ----------
    y : (N,) array-like
        The class of each point: numbers or texts; -1, None and NaN where it is unknown.

    Returns
    -------
    classes : (K,) array
        The classes that occur, sorted.
    numbers : (N,) int array
        For each point the index of its class in ``classes``, -1 where it is unknown. ``fit`` takes
        this array as ``labels``.

    Raises
    ------
    ValueError
        If an entry is the text "-1", "nan" or "", which may be a class or an unknown class; if
        classes are of types that have no order.

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
        # numpy turns a mixed list of texts and numbers into texts only.
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
    """Raise ``ValueError`` for texts that may be a class or a converted unknown entry."""
    if array.dtype.kind not in "USO":
        return
    found = [row for row, label in enumerate(array.flat) if str(label) in TEXTS and label != -1]
    if found:
        raise ValueError(
            f"{name}[{found[0]}] is the text {str(array.flat[found[0]])!r}: a class, or unknown? "
            f"Say None where unknown, {name}=np.where(np.isin({name}, {list(TEXTS)}), None, {name})"
            ", or give the class another name."
        )
