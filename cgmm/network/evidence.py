"""Labels and sets of allowed classes, as evidence on nodes. Chapter 4.

What is known of a point holds for its whole node, since must-links tie the points of a node
together: labels must agree, and of allowed classes those are left that all points allow.

=======  ==============================================================
N, K     number of points, of components
i        point; ``node_of[i]`` its node
must     (P, 2) must-links, from which an error shows the chain that clashes
=======  ==============================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cgmm.given import MASKED_LABELS, refuse_mask
from cgmm.network.relations import show_chain
from cgmm.numerics import BoolArray, IntArray, check_labels


def read_evidence(
    n_samples: int, labels: ArrayLike | None, node_of: IntArray, must: IntArray
) -> tuple[IntArray | None, BoolArray | None]:
    """Return labels (n_nodes,) or allowed classes (n_nodes, K), with None for the other."""
    if labels is None:
        return None, None
    refuse_mask("labels", labels, MASKED_LABELS.format("labels"))
    array = np.asarray(labels)
    if array.ndim not in (1, 2) or len(array) != n_samples:
        raise ValueError(
            f"labels has shape {array.shape}; it must be ({n_samples},) integers, -1 for unknown, "
            f"or ({n_samples}, K) booleans, the classes still allowed."
        )
    if array.ndim == 2:
        return None, _allowed(array, node_of, must)
    return _labels(check_labels("labels", array), node_of, must), None


def _labels(labels: IntArray, node_of: IntArray, must: IntArray) -> IntArray | None:
    """The one label of each node, or the two that clash."""
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
            f"points {i} and {j} have the labels {labels[i]} and {labels[j]}, but must-links tie "
            f"them together: {show_chain(must, i, j)}. Correct a label or break the chain."
        )
    return of_node


def _allowed(allowed: NDArray[Any], node_of: IntArray, must: IntArray) -> BoolArray:
    """Return the classes that all points of a node allow."""
    if not np.isin(allowed, (0, 1)).all():
        raise ValueError("labels of two dimensions must be booleans: the classes still allowed.")
    allowed = allowed.astype(bool)
    empty = np.flatnonzero(~allowed.any(axis=1))
    if len(empty):
        raise ValueError(f"labels[{empty[0]}] allows no class at all; allow at least one.")
    of_node = np.ones((node_of.max() + 1, allowed.shape[1]), dtype=bool)
    np.logical_and.at(of_node, node_of, allowed)
    empty = np.flatnonzero(~of_node.any(axis=1))
    if len(empty):
        raise ValueError(_explain_empty(allowed, np.flatnonzero(node_of == empty[0]), must))
    return of_node


def _explain_empty(allowed: BoolArray, members: IntArray, must: IntArray) -> str:
    """Two members of a chunklet whose classes exclude each other, or all that exclude jointly."""
    for position, i in enumerate(members):
        disjoint = ~(allowed[members[:position]] & allowed[i]).any(axis=1)
        if disjoint.any():
            j = members[:position][disjoint][0]
            return (
                f"points {j} and {i} have no allowed class in common, but must-links tie them "
                f"together: {show_chain(must, j, i)}. Allow more classes or break the chain."
            )
    return (
        f"the points {members[:10].tolist()} are tied together by must-links, and their allowed "
        "classes have none in common to all. Allow more classes or break the chain."
    )
