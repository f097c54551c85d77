"""Read labels and allowed classes: number them, and convert them into evidence on nodes.

``number_classes`` maps class labels of any type to integers 0, 1, ...; some labels may be unknown.
Users call it before ``fit``; classifiers and the check for misread labels call it too.
``SideInformation.build`` calls ``read_evidence``. The points of a node are must-linked, so the
evidence on each of them applies to the whole node: their labels must agree, and a class is allowed
for a node only if it is allowed for all its points. Chapter 4 explains partial labels.

=======  ======================================================================
N, K     number of points and of classes or components, e.g. 150 and 3
y        class names, e.g. ["setosa", None]; -1, None and NaN are unknown
i        point, e.g. 7; ``node_of[i]`` its node, e.g. 5
must     (P, 2) must-links, e.g. [[0, 7]]; errors show a chain of them
=======  ======================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cgmm.given import MASKED_LABELS, is_missing, refuse_mask
from cgmm.network.relations import show_chain
from cgmm.numerics import BoolArray, IntArray, check_labels

# ------------------------------------------------------------ class names and numbers


# These texts are ambiguous: NumPy turns -1 and NaN into them if a list also contains texts, and an
# empty cell of a file is read as "".
AMBIGUOUS_TEXTS = ("-1", "-1.0", "nan", "")


def number_classes(y: ArrayLike) -> tuple[NDArray[Any], IntArray]:
    """Number the classes in sorted order, and mark unknown classes by -1.

    Parameters
    ----------
    y : (N,) array-like
        The class of each point, a number or a text; -1, None or NaN if it is unknown.

    Returns
    -------
    classes : (K,) array
        The classes that occur, sorted.
    numbers : (N,) int array
        For each point the index of its class in ``classes``, or -1 if it is unknown. ``fit``
        accepts this array as ``labels``.

    Raises
    ------
    ValueError
        If an entry is the text "-1", "nan" or "", which may be a class or mean that the class is
        unknown, or if the classes have types that cannot be sorted.

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
            "Use one type for all, such as text; None means unknown."
        ) from None
    numbers = np.full(array.shape, -1)
    numbers[known] = places
    return classes, numbers


def read_classes(y: ArrayLike, name: str = "y") -> NDArray[Any]:
    """Return the classes as an array in which unknown classes are -1."""
    refuse_mask(name, y, MASKED_LABELS.format(name))
    array = np.asarray(y)
    if array.dtype.kind in "US" and not hasattr(y, "dtype"):
        # NumPy would convert a list of texts and numbers to texts, so keep the original objects.
        objects = np.asarray(y, dtype=object)
        array = array if all(isinstance(label, str) for label in objects.flat) else objects
    if array.dtype.kind == "f":
        return np.where(np.isnan(array), -1, array)
    if array.dtype == object:
        array = array.copy()
        array[np.array([is_missing(label) for label in array.flat], bool).reshape(array.shape)] = -1
        if all(isinstance(label, int | float | np.number) for label in array.flat):
            array = np.array(array.tolist())
    _reject_ambiguous_texts(name, array)
    return array


def _reject_ambiguous_texts(name: str, array: NDArray[Any]) -> None:
    """Raise ``ValueError`` for a text such as "-1", which may be a class or an unknown entry."""
    if array.dtype.kind not in "USO":
        return
    is_ambiguous = [str(label) in AMBIGUOUS_TEXTS and label != -1 for label in array.flat]
    if any(is_ambiguous):
        row = is_ambiguous.index(True)
        texts = list(AMBIGUOUS_TEXTS)
        raise ValueError(
            f"{name}[{row}] is the text {str(array.flat[row])!r}, which may be a class or mean "
            f"that the class is unknown. Mark unknown classes by None, {name}=np.where(np.isin("
            f"{name}, {texts}), None, {name}), or give the class another name."
        )


# ------------------------------------------------------------ evidence on nodes


def read_evidence(
    n_samples: int, labels: ArrayLike | None, node_of: IntArray, must: IntArray
) -> tuple[IntArray | None, BoolArray | None]:
    """Return labels (n_nodes,) and None, or None and the allowed classes (n_nodes, K)."""
    if labels is None:
        return None, None
    refuse_mask("labels", labels, MASKED_LABELS.format("labels"))
    array = np.asarray(labels)
    if array.ndim not in (1, 2) or len(array) != n_samples:
        raise ValueError(
            f"labels has shape {array.shape}; it must be ({n_samples},) integers, -1 for unknown, "
            f"or ({n_samples}, K) booleans, the allowed classes."
        )
    if array.ndim == 2:
        return None, _merge_allowed(array, node_of, must)
    return _merge_labels(check_labels("labels", array), node_of, must), None


def _merge_labels(labels: IntArray, node_of: IntArray, must: IntArray) -> IntArray | None:
    """Return the (n_nodes,) labels of nodes, or raise an error if two points of a node disagree."""
    known = np.flatnonzero(labels >= 0)
    if len(known) == 0:
        return None
    of_node = np.full(node_of.max() + 1, -1)
    of_node[node_of[known]] = labels[known]
    clash = known[of_node[node_of[known]] != labels[known]]
    if len(clash):
        i = clash[0]
        j = known[(node_of[known] == node_of[i]) & (labels[known] != labels[i])][0]
        raise ValueError(
            f"points {i} and {j} have the labels {labels[i]} and {labels[j]}, but must-links "
            f"connect them: {show_chain(must, i, j)}. Correct a label or break the chain."
        )
    return of_node


def _merge_allowed(allowed: NDArray[Any], node_of: IntArray, must: IntArray) -> BoolArray:
    """Return (n_nodes, K) booleans: the classes that are allowed for all points of a node."""
    if not np.isin(allowed, (0, 1)).all():
        raise ValueError("labels of two dimensions must be booleans: the allowed classes.")
    allowed = allowed.astype(bool)
    empty = np.flatnonzero(~allowed.any(axis=1))
    if len(empty):
        raise ValueError(f"labels[{empty[0]}] allows no class at all; allow at least one.")
    of_node = np.ones((node_of.max() + 1, allowed.shape[1]), dtype=bool)
    np.logical_and.at(of_node, node_of, allowed)
    empty = np.flatnonzero(~of_node.any(axis=1))
    if len(empty):
        raise ValueError(_explain_no_class(allowed, np.flatnonzero(node_of == empty[0]), must))
    return of_node


def _explain_no_class(allowed: BoolArray, members: IntArray, must: IntArray) -> str:
    """Return the error message for a chunklet whose points have no allowed class in common.

    The message names two points with disjoint sets of allowed classes if such a pair exists,
    otherwise all points.
    """
    for position, i in enumerate(members):
        disjoint = ~(allowed[members[:position]] & allowed[i]).any(axis=1)
        if disjoint.any():
            j = members[:position][disjoint][0]
            return (
                f"points {j} and {i} have no allowed class in common, but must-links connect "
                f"them: {show_chain(must, j, i)}. Allow more classes or break the chain."
            )
    return (
        f"the points {members[:10].tolist()} are linked by must-links, but no class is allowed "
        "for all of them. Allow more classes or break the chain."
    )
