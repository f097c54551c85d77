"""Errors and warnings about networks: contradictions, excessive cost, approximation, doubt.

Inference engines raise the errors with node indices; estimators translate the indices to points
before users see them. Chapter 7 shows these errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm.numerics import IntArray

# Longer lists of nodes are cut after this number, to keep messages readable.
NAMED_NODES = 8


class NetworkError(ValueError):
    """Error for a network on which inference is impossible, with the nodes that cause it.

    Parameters
    ----------
    message : str
        Template: ``{nodes}`` is replaced by the list of all nodes, ``{0}``, ``{1}``, ... by one.
    nodes : (n,) array of int
        The nodes that cause the error.
    noun : str, default="node"
        Noun that the message puts before the numbers.

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
        """Return the message with the nodes filled in."""
        message = self.message.replace("{nodes}", _name_nodes(self.nodes, self.noun))
        one = lambda place: _name_nodes(self.nodes[[int(place[1])]], self.noun)  # noqa: E731
        return re.sub(r"\{(\d+)\}", one, message)

    def renamed(self, names: IntArray, noun: str | None = None) -> Self:
        """Return the same error with node j replaced by ``names[j]``, and optionally a new noun."""
        return type(self)(self.message, names[self.nodes], noun or self.noun)


class TooCostlyError(NetworkError):
    """Error for a network that is too costly for an engine; a solution may still exist.

    Examples
    --------
    >>> print(TooCostlyError("{nodes} would take 8 TiB.", np.array([0, 1, 2])))
    nodes 0, 1 and 2 would take 8 TiB.
    """


class ApproximationWarning(ConvergenceWarning):
    """Warning that exact inference was too costly for some part, so its result is approximate.

    Examples
    --------
    >>> issubclass(ApproximationWarning, ConvergenceWarning)
    True
    """


def _name_nodes(nodes: IntArray, noun: str) -> str:
    """Return the list of nodes for a message, cut after ``NAMED_NODES``."""
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
    """Warning that a converged fit has suspicious relations or near-singular covariances.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", DoubtWarning)  # if such fits are intended
    """
