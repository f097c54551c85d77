"""Partial labels, sets of allowed classes, and the cannot-links that these sets imply.

The functions draw such side information from known classes. Chapters 4, 7 and 10 call them.

Letters: N points, y_i the class of point i; P pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cgmm.numerics import BoolArray, IntArray, Seed, check_integer, check_labels, generator


def partial_labels(y: ArrayLike, n_labelled: int, *, random_state: Seed = None) -> IntArray:
    """Keep the labels of some points, drawn at random, and hide the others.

    Parameters
    ----------
    y : (N,) int array_like
        True classes, from 0 on.
    n_labelled : int
        Number of labels that are kept.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the choice of points.

    Returns
    -------
    (N,) int array
        labels: y where it is known, -1 elsewhere.

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    The labelled and unlabelled parts of [schmidt2016, sect. 1] and green.

    Examples
    --------
    >>> labels = partial_labels([0, 1, 2, 0, 1, 2], 2, random_state=0)
    >>> int((labels >= 0).sum())
    2
    """
    y = check_labels("y", y, least=0)
    check_integer("n_labelled", n_labelled, 0, len(y))
    shown = generator(random_state).choice(len(y), n_labelled, replace=False)
    labels = np.full(len(y), -1, dtype=np.int64)
    labels[shown] = y[shown]
    return labels


def allowed_classes(
    set_of: ArrayLike, class_sets: Sequence[Iterable[int]], n_classes: int
) -> BoolArray:
    """Return a mask of the classes that each point may have, given a set of classes per point.

    Parameters
    ----------
    set_of : (N,) int array_like
        The class set of each point, an index into ``class_sets``; -1 where nothing is known.
    class_sets : sequence of iterables of int
        The classes in each set, e.g. ``[[0, 1, 2], [3, 4], [5]]``.
    n_classes : int
        Number of classes.

    Returns
    -------
    (N, n_classes) bool array
        labels, as a mask.

    Raises
    ------
    ValueError
        If a set is empty, or an index or a class does not exist.

    Notes
    -----
    [lu2007, sect. 5.2.1]. The mask contains more information than cannot-links between the sets,
    because it names the classes.

    Examples
    --------
    >>> allowed_classes([0, 1, -1], [[0, 1], [2]], 3).astype(int)
    array([[1, 1, 0],
           [0, 0, 1],
           [1, 1, 1]])
    """
    set_of = check_labels("set_of", set_of)
    masks = np.zeros((len(class_sets) + 1, n_classes), dtype=bool)
    # Points without a class set have the index -1, which selects the last row: all classes allowed.
    masks[-1] = True
    for index, members in enumerate(class_sets):
        members = np.asarray(list(members), dtype=int)
        if len(members) == 0 or members.min() < 0 or members.max() >= n_classes:
            raise ValueError(
                f"class set {index} is {members.tolist()}; it must have at least one class, "
                f"from 0 to {n_classes - 1}."
            )
        masks[index, members] = True
    wrong = np.flatnonzero(set_of >= len(class_sets))
    if len(wrong):
        raise ValueError(
            f"set_of[{wrong[0]}] is {set_of[wrong[0]]}; the class sets are numbered 0 to "
            f"{len(class_sets) - 1}, and -1 stands for none."
        )
    return masks[set_of]


def class_set_stars(
    set_of: ArrayLike, centre: int, n_partners: int = 6, *, random_state: Seed = None
) -> IntArray:
    """Draw cannot-links from each point of one class set to several points of other sets.

    The network consists of stars of 1 + ``n_partners`` points, for which exact inference is cheap.

    Parameters
    ----------
    set_of : (N,) int array_like
        The class set of each point; -1 where nothing is known.
    centre : int
        Index of the set whose points become centres.
    n_partners : int, default=6
        Cannot-links of each centre, to points of other sets drawn without replacement.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the choice of partners.

    Returns
    -------
    (P, 2) int array
        cannot_link, with the centre first; P is the number of centres times ``n_partners``.

    Raises
    ------
    ValueError
        If there is no centre, or there are too few partners.

    Notes
    -----
    [lu2007, sect. 5.2.1]: six snow blocks for each block without snow.

    Examples
    --------
    >>> cannot_link = class_set_stars([0, 0, 1, 1, 1, 1], centre=0, n_partners=2, random_state=0)
    >>> cannot_link[:, 0].tolist(), sorted(cannot_link[:, 1].tolist())
    ([0, 0, 1, 1], [2, 3, 4, 5])
    """
    set_of = check_labels("set_of", set_of)
    check_integer("n_partners", n_partners, 1)
    if centre < 0 or not (set_of == centre).any():
        raise ValueError(f"no point is of class set {centre}, so nothing can be a centre.")
    centres = np.repeat(np.flatnonzero(set_of == centre), n_partners)
    others = np.flatnonzero((set_of >= 0) & (set_of != centre))
    if len(others) < len(centres):
        raise ValueError(
            f"{len(centres)} partners are needed, {n_partners} for each centre, but only "
            f"{len(others)} points are known to be of other sets; lower n_partners, or take "
            "another set for the centres."
        )
    partners = generator(random_state).choice(others, len(centres), replace=False)
    return np.stack([centres, partners], axis=1)
