"""Errors with the nodes to blame, and the warning that a result is an approximation.

Chapter 7 meets these refusals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm.numerics import IntArray

NAMED_NODES = 8


class NetworkError(ValueError):
    """A network that an engine must refuse, and the nodes to blame.

    Parameters
    ----------
    message : str
        With ``{nodes}`` where the nodes are to be named, and ``{0}``, ``{1}``, ... where one is.
    nodes : (n,) array of int
        The offenders.
    noun : str, default="node"
        What they are called.

    Examples
    --------
    >>> print(NetworkError("{nodes} contradict each other.", np.array([3, 5])))
    nodes 3 and 5 contradict each other.
    >>> print(NetworkError("{0} leaves {1} no state.", np.array([3, 5]), "point"))
    point 3 leaves point 5 no state.
    """

    def __init__(self, message: str, nodes: IntArray, noun: str = "node"):
        super().__init__(message, nodes, noun)
        self.message, self.nodes, self.noun = message, np.asarray(nodes), noun

    def __str__(self) -> str:
        """Put the names into the message."""
        message = self.message.replace("{nodes}", _name_nodes(self.nodes, self.noun))
        one = lambda place: _name_nodes(self.nodes[[int(place[1])]], self.noun)  # noqa: E731
        return re.sub(r"\{(\d+)\}", one, message)

    def renamed(self, names: IntArray, noun: str | None = None) -> Self:
        """Return the same error where node j is called ``names[j]``, and nodes perhaps points."""
        return type(self)(self.message, names[self.nodes], noun or self.noun)


class TooCostlyError(NetworkError):
    """A network on which an engine gives up because of the cost; whether an answer exists is open.

    Examples
    --------
    >>> print(TooCostlyError("{nodes} would take 8 TiB.", np.array([0, 1, 2])))
    nodes 0, 1 and 2 would take 8 TiB.
    """


class ApproximationWarning(ConvergenceWarning):
    """Exact inference costs too much somewhere: what was answered there is an approximation.

    Examples
    --------
    >>> issubclass(ApproximationWarning, ConvergenceWarning)
    True
    """


def _name_nodes(nodes: IntArray, noun: str) -> str:
    """Name a few of them, and say how many there are."""
    if len(nodes) == 1:
        return f"{noun} {nodes[0]}"
    if len(nodes) > NAMED_NODES:
        shown = ", ".join(map(str, nodes[:NAMED_NODES]))
        return f"{noun}s {shown}, ... ({len(nodes)} in all)"
    return f"{noun}s {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}"


@contextmanager
def naming(names: IntArray, noun: str) -> Iterator[None]:
    """Re-raise a ``NetworkError`` with node indices translated to these names."""
    try:
        yield
    except NetworkError as error:
        raise (error if error.noun == noun else error.renamed(names, noun)) from None


class DoubtWarning(UserWarning):
    """A fit ended well, but what it was told, or its covariances, give reason for doubt.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", DoubtWarning)  # who makes such fits on purpose
    """
