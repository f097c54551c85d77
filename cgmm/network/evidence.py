"""Convert labels and allowed classes of points into evidence on nodes.

The points of a node are must-linked, so the evidence on each of them holds for the whole node:
their labels must agree, and a node may have only the classes that all its points allow.
``SideInformation.build`` calls this file. Chapter 4 explains it.

=======  ======================================================================
N, K     number of points and of components, e.g. 150 and 3
i        point, e.g. 7; ``node_of[i]`` its node, e.g. 5
must     (P, 2) must-links, e.g. [[0, 7]]; errors show the chain that contradicts
=======  ======================================================================
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
        return None, _merge_allowed(array, node_of, must)
    return _merge_labels(check_labels("labels", array), node_of, must), None


def _merge_labels(labels: IntArray, node_of: IntArray, must: IntArray) -> IntArray | None:
    """Return (n_nodes,) labels, or raise an error that shows two contradicting labels."""
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


def _merge_allowed(allowed: NDArray[Any], node_of: IntArray, must: IntArray) -> BoolArray:
    """Return (n_nodes, K) booleans: the classes that all points of a node allow."""
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
    """Return the error message for a chunklet whose points have no allowed class in common.

    It names two points with disjoint classes if there are such, else all points of the chunklet.
    """
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
