"""Check relations between points, contract must-links into nodes, and select relations with rows.

``SideInformation.build`` calls the functions that check and contract relations, and so do tools
that need only the closure of must-links. Users call the public functions before ``fit``. A relation
consists of row numbers, which refer to the wrong points once rows are left out. A
:class:`PairsAmong` therefore stores the number of rows, so scikit-learn can select relations
together with the rows in cross-validation, searches and ``train_test_split``. Chapter 5 explains
relations and their selection.

=======  ==================================================================
N        number of points or rows, e.g. 150; i, j two of them, e.g. 0 and 7
P, E     number of must-links and of edges (all other relations), e.g. 20, 30
must     (P, 2) must-links, e.g. [[0, 7]]
node_of  (N,) chunklet of each point: points linked by must-links, e.g. [0, 1, 0]
rows     selected points, by number, mask or slice, e.g. [4, 3, 0]
=======  ==================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from cgmm.given import read_rows, require_samples
from cgmm.network.graph import Graph, simplify
from cgmm.numerics import FloatArray, IntArray, check_integer, check_pairs

# ------------------------------------------------------------ checks and contraction


def read_relations(
    n_samples: int,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | None,
    preferences: ArrayLike | None,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return must-links (P, 2), and the pairs (E, 2) and log-weights (E,) of other relations."""
    must = check_pairs("must_link", must_link, n_samples)
    cannot = check_pairs("cannot_link", cannot_link, n_samples)
    itself = np.flatnonzero(cannot[:, 0] == cannot[:, 1])
    if len(itself):
        raise ValueError(
            f"cannot_link[{itself[0]}] links point {cannot[itself[0], 0]} to itself: no point can "
            "differ from itself. Remove the row."
        )
    soft, odds = _read_preferences(preferences, n_samples)
    hard = odds == np.inf
    edges = np.concatenate([cannot, soft[~hard]])
    # [lu2007, eq. A.2]: a cannot-link has log-weight -inf. Log-odds of +inf are must-links.
    weights = np.concatenate([np.full(len(cannot), -np.inf), odds[~hard]])
    return np.concatenate([must, soft[hard]]), edges, weights


def _read_preferences(value: ArrayLike | None, n_samples: int) -> tuple[IntArray, FloatArray]:
    """Check preferences; return their pairs (P, 2) and log-odds (P,)."""
    require_samples("preferences", value, n_samples)
    array = read_rows("preferences", value, 3).astype(float)
    pairs, odds = check_pairs("preferences", array[:, :2], n_samples), array[:, 2]
    wrong = np.flatnonzero(np.isnan(odds) | ((pairs[:, 0] == pairs[:, 1]) & (odds == -np.inf)))
    if len(wrong):
        i, j = pairs[wrong[0]]
        raise ValueError(
            f"preferences[{wrong[0]}] gives points {i} and {j} the log-odds {odds[wrong[0]]}; "
            "log-odds must be numbers, and a point cannot differ from itself. Remove the row."
        )
    return pairs, odds


# ------------------------------------------------------------ closure


def closure(n_samples: int, must: IntArray) -> IntArray:
    """Return the (N,) chunklet of each point; chunklets are numbered in order of first points."""
    if len(must) == 0:
        return np.arange(n_samples)
    return connected_components(_to_matrix(n_samples, must), directed=False)[1].astype(np.intp)


def first_of_nodes(node_of: IntArray) -> IntArray:
    """Return the (n_nodes,) first point of each node."""
    # Nodes are numbered in the order of their first points, so the running maximum of `node_of`
    # increases exactly at these points.
    return np.flatnonzero(np.diff(np.maximum.accumulate(node_of), prepend=-1))


def _to_matrix(n_samples: int, pairs: IntArray) -> csr_array:
    """Return the sparse (N, N) matrix with a one for each pair."""
    ones = np.ones(len(pairs))
    return csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(n_samples, n_samples))


def must_link_chain(must_link: IntArray, start: int, end: int) -> list[int]:
    """Return a shortest chain of must-links between two points.

    Parameters
    ----------
    must_link : (P, 2) int array
        The must-links.
    start, end : int
        Two points of one chunklet.

    Returns
    -------
    list of int
        The points from ``start`` to ``end``; consecutive points are must-linked.

    Raises
    ------
    ValueError
        If no chain links the two points.

    Examples
    --------
    >>> must_link_chain(np.array([[0, 1], [2, 1], [2, 3]]), 0, 3)
    [0, 1, 2, 3]
    """
    n_samples = int(max(start, end, must_link.max(initial=0))) + 1
    before = breadth_first_order(_to_matrix(n_samples, must_link), start, directed=False)[1]
    chain = [end]
    while chain[-1] != start:
        if before[chain[-1]] < 0:
            raise ValueError(f"no chain of must-links connects points {start} and {end}.")
        chain.append(int(before[chain[-1]]))
    return chain[::-1]


def show_chain(must: IntArray, start: int, end: int) -> str:
    """Return the chain of must-links between two points as text, for a message."""
    return " - ".join(map(str, must_link_chain(must, int(start), int(end))))


# ------------------------------------------------------------ edges


def contract_edges(
    n_nodes: int, node_of: IntArray, edges: IntArray, weights: FloatArray, must: IntArray
) -> Graph:
    """Translate edges between points into a graph of nodes; add log-weights of equal pairs."""
    ends = node_of[edges]
    inside = ends[:, 0] == ends[:, 1]
    clash = np.flatnonzero(inside & (weights == -np.inf))
    if len(clash):
        i, j = edges[clash[0]]
        raise ValueError(
            f"points {i} and {j} are cannot-linked, but must-links connect them: "
            f"{show_chain(must, i, j)}. Remove the cannot-link or break the chain."
        )
    # Drop preferences inside a chunklet: each adds the same constant to every assignment.
    return simplify(Graph(n_nodes, ends[~inside], weights[~inside]))


# ------------------------------------------------------------ selected rows


class PairsAmong:
    """Relations that store the number of rows, so that they can be selected with the rows.

    scikit-learn treats such an object as an array with one entry per row, like ``sample_weight``.
    ``GridSearchCV.fit``, ``cross_validate``, ``train_test_split`` and pipelines therefore accept
    it. A selection of rows keeps the relations among the selected rows, renumbered. Estimators
    accept it in place of the plain array, and raise an error if the number of rows differs.

    Parameters
    ----------
    pairs : (P, 2) int array or (P, 3) array
        ``must_link``, ``cannot_link`` or ``preferences``.
    n_samples : int
        N.

    Attributes
    ----------
    pairs : (P, 2) int array or (P, 3) array
        The relations, checked.
    n_samples : int
        N.
    shape : tuple
        (N,), for scikit-learn.

    Raises
    ------
    ValueError
        If a relation does not refer to two of the rows; on selection, if a row is selected twice.

    See Also
    --------
    related_groups : Groups for splitting the data without cutting any relation.
    positions : Translate names of points to row numbers.

    Notes
    -----
    A relation is dropped if one of its points is left out, and with it all relations implied by
    chains through that point; :meth:`cgmm.network.SideInformation.restrict` keeps implied ones.

    Examples
    --------
    >>> must_link = PairsAmong([[0, 4], [1, 2]], 5)
    >>> len(must_link), must_link[[4, 3, 0]]
    (5, PairsAmong([[2, 0]], 3))
    >>> np.asarray(must_link[1:])
    array([[0, 1]])
    """

    def __init__(self, pairs: ArrayLike, n_samples: int):
        check_integer("n_samples", n_samples, 1)
        self.n_samples, self.shape = int(n_samples), (int(n_samples),)
        self.pairs = _read_relations(pairs, self.n_samples)

    def __len__(self) -> int:
        """Return N."""
        return self.n_samples

    def __getitem__(self, rows: Any) -> PairsAmong:
        """Return the relations among the selected rows (numbers, mask or slice), renumbered."""
        # scikit-learn indexes with array[rows, ...], which passes a tuple.
        rows = read_selection(rows[0] if isinstance(rows, tuple) else rows, self.n_samples)
        new_row = np.full(self.n_samples, -1)
        new_row[rows] = np.arange(len(rows))
        ends = new_row[self.pairs[:, :2].astype(np.intp)]
        within = (ends >= 0).all(axis=1)
        kept = self.pairs[within]
        kept[:, :2] = ends[within]
        return PairsAmong(kept, len(rows))

    def __iter__(self) -> Iterator[Any]:
        """Raise ``TypeError``: each relation belongs to two rows, so there is no item per row."""
        raise TypeError("PairsAmong has no items; its relations are in the attribute pairs.")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the plain array of relations."""
        return np.array(self.pairs, dtype=dtype)

    def __repr__(self) -> str:
        """Return the relations and N as text."""
        return f"PairsAmong({self.pairs.tolist()}, {self.n_samples})"


def _read_relations(pairs: ArrayLike, n_samples: int) -> NDArray[Any]:
    """Return a checked copy of the relations: (P, 2) row numbers, or (P, 3) with log-odds."""
    require_samples("pairs", pairs, n_samples)
    pairs = getattr(pairs, "pairs", pairs)
    if np.ndim(pairs) == 2 and np.shape(pairs)[1] == 3:
        rows = read_rows("pairs", pairs, 3).astype(float)
        check_pairs("pairs", rows[:, :2], n_samples)
        return rows
    return check_pairs("pairs", pairs, n_samples).copy()


def read_selection(rows: Any, n_samples: int) -> IntArray:
    """Return the (n,) numbers of the selected rows, or raise an error if a row is repeated."""
    if not isinstance(rows, slice):
        rows = np.asarray(rows) if np.size(rows) else slice(0)
    numbers = np.arange(n_samples)[rows]
    if numbers.ndim != 1 or len(numbers) == 0:
        raise ValueError("no rows are selected; give a list of row numbers, a mask or a slice.")
    count = np.bincount(numbers)
    if count.max() > 1:
        raise ValueError(
            f"row {count.argmax()} is selected {count.max()} times, but relations between "
            "copies of a point are not defined. Select each row once: np.unique(rows)."
        )
    return numbers


# ------------------------------------------------------------ names of points


def positions(pairs: ArrayLike, names: ArrayLike) -> PairsAmong:
    """Translate relations between names of points into relations between row numbers.

    Parameters
    ----------
    pairs : (P, 2) or (P, 3) array-like
        The names of two points per row, and optionally the log-odds that they belong together: a
        list of tuples, or columns of a table.
    names : (N,) array-like
        The name of each row, in order, such as the ``X.index`` of pandas or a column.

    Returns
    -------
    PairsAmong
        The relations by row number, for ``fit``; ``.pairs`` is the plain array.

    Raises
    ------
    ValueError
        If a name is unknown, or if two rows have the same name; the error shows the name.

    Examples
    --------
    >>> positions([("ann", "eve"), ("bob", "ann")], ["ann", "bob", "eve"])
    PairsAmong([[0, 2], [1, 0]], 3)
    >>> positions([("ann", "eve", -1.5)], ["ann", "bob", "eve"])
    PairsAmong([[0.0, 2.0, -1.5]], 3)
    >>> positions([("ann", "Eve")], ["ann", "bob", "eve"])
    Traceback (most recent call last):
        ...
    ValueError: pairs[0] names 'Eve', which is the name of no row; names begin 'ann', 'bob', 'eve'.
    """
    table = np.array(np.asarray(pairs, dtype=object).tolist(), dtype=object)
    if table.size == 0:
        return PairsAmong((), np.size(names))
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        raise ValueError(
            f"pairs has shape {table.shape}; it must be (P, 2), two names a row, or (P, 3), two "
            "names and their log-odds."
        )
    row_of_name = _map_names_to_rows(np.asarray(names).tolist())
    _require_known_names(table, row_of_name)
    # Names may have any hashable type, so look them up in a dict instead of a NumPy array.
    found = np.array([[row_of_name[i], row_of_name[j]] for i, j in table[:, :2]], dtype=np.intp)
    if table.shape[1] == 3:
        return PairsAmong(np.column_stack([found, table[:, 2].astype(float)]), len(row_of_name))
    return PairsAmong(found, len(row_of_name))


def _map_names_to_rows(names: list[Any]) -> dict[Any, int]:
    """Return a dict from names to rows, or raise ``ValueError`` for a duplicate name."""
    row_of_name = dict[Any, int]()
    for row, name in enumerate(names):
        if row_of_name.setdefault(name, row) != row:
            raise ValueError(
                f"rows {row_of_name[name]} and {row} are both named {name!r}, but names must be "
                "distinct. Drop the copies, or number the rows: names=range(len(X))."
            )
    return row_of_name


def _require_known_names(table: NDArray[Any], row_of_name: dict[Any, int]) -> None:
    """Raise ``ValueError`` for the first name that no row has."""
    for row, pair in enumerate(table[:, :2]):
        for name in pair:
            if name not in row_of_name:
                examples = ", ".join(map(repr, list(row_of_name)[:3]))
                raise ValueError(
                    f"pairs[{row}] names {name!r}, which is the name of no row; names begin "
                    f"{examples}."
                )


# ------------------------------------------------------------ splitting


def related_groups(
    n_samples: int,
    *,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
    preferences: ArrayLike | None = None,
) -> IntArray:
    """Return groups of related points, for splitting the data without cutting relations.

    Parameters
    ----------
    n_samples : int
        N.
    must_link, cannot_link : (P, 2) int array, default=None
        Pairs of points.
    preferences : (P, 3) array, default=None
        Rows ``i, j, log-odds``; log-odds of zero do not relate their points.

    Returns
    -------
    (N,) int array
        The group of each point, numbered from 0 in the order of first points. Pass it as ``groups``
        to scikit-learn's ``GroupKFold``, ``GroupShuffleSplit`` or ``cross_validate``.

    Raises
    ------
    ValueError
        If a relation does not refer to two existing points.

    Examples
    --------
    >>> related_groups(6, must_link=[[0, 4]], cannot_link=[[4, 2]])
    array([0, 1, 0, 2, 0, 3])
    """
    must, edges, weights = read_relations(n_samples, must_link, cannot_link, preferences)
    return closure(n_samples, np.concatenate([must, edges[weights != 0]]))
