"""Relations that an assignment breaks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cgmm.metrics.checks import check_integers
from cgmm.numerics import check_pairs


class BrokenRelations(NamedTuple):
    """How many relations a clustering breaks."""

    must_link: int
    """Must-links whose two points are in different clusters."""
    cannot_link: int
    """Cannot-links whose two points share a cluster."""


# ---------------------------------------------------------------------------- relations


def broken_relations(
    y_pred: ArrayLike, must_link: ArrayLike = (), cannot_link: ArrayLike = ()
) -> BrokenRelations:
    """Count the relations that a clustering breaks.

    Parameters
    ----------
    y_pred : (N,) int array_like
        Predicted cluster of each point.
    must_link, cannot_link : (P, 2), (P', 2) int array_like
        Pairs of sample indices; either may be empty. A pair that stands there twice counts twice.

    Returns
    -------
    BrokenRelations
        ``must_link`` and ``cannot_link``, both zero for a clustering that honours every relation.

    Raises
    ------
    ValueError
        If the labels are no vector of integers, or a pair refers to no point.

    Examples
    --------
    >>> broken_relations([0, 0, 1, 1], must_link=[[0, 1], [1, 2]], cannot_link=[[0, 3], [2, 3]])
    BrokenRelations(must_link=1, cannot_link=1)
    """
    clusters = check_integers(y_pred, "y_pred")
    must_a, must_b = clusters[check_pairs("must_link", must_link, len(clusters))].T
    cannot_a, cannot_b = clusters[check_pairs("cannot_link", cannot_link, len(clusters))].T
    return BrokenRelations(int(np.sum(must_a != must_b)), int(np.sum(cannot_a == cannot_b)))
