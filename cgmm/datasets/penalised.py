"""The toy sets of lu2007. Chapter 9."""

from __future__ import annotations

from cgmm.datasets.dataset import Dataset, Seed, make_toy
from cgmm.datasets.toys import Clump, sample_clumps


def lu_set_1(n_per_class: int = 200, random_state: Seed = 0) -> Dataset:
    """Two long stripes, each broken in the middle [lu2007, Fig. 5, data set 1].

    Easy for two Gaussians once relations say what belongs together: one flat component a stripe.
    Out of reach for K-means: the gap is wider than the stripes are apart. Without relations both
    take the left and the right half, which gets 57.5 % of the points right.

    Parameters
    ----------
    n_per_class : int, default=200
        Points in each class; at least 2.
    random_state : int, RandomState or None, default=0
        The book's sample is 0.

    Returns
    -------
    Dataset
        N = 2 ``n_per_class`` points in the plane.

    Examples
    --------
    >>> data = lu_set_1()
    >>> left_is_first = (data.X[:, 0] < 0) == (data.y == 0)
    >>> float(left_is_first.mean())
    0.575
    """
    flat = (1.2, 0.45)
    classes = [
        [Clump(23, (-5, -1.2), flat), Clump(17, (5, -1.2), flat)],
        [Clump(17, (-5, 1.2), flat), Clump(23, (5, 1.2), flat)],
    ]
    X, y, _ = sample_clumps(classes, n_per_class, random_state)
    return make_toy(X, y, "lu_set_1", "Two broken stripes", "[lu2007, Fig. 5, data set 1]")


def lu_set_2(n_per_class: int = 200, random_state: Seed = 0) -> Dataset:
    """A round class leaning on a class of two clumps [lu2007, Fig. 5, data set 2].

    The classes overlap: two Gaussians classify about 95 % at best. Without relations they do worse,
    about 75 %, by giving one component to the clump that stands alone.

    Parameters
    ----------
    n_per_class : int, default=200
        Points in each class; at least 2.
    random_state : int, RandomState or None, default=0
        The book's sample is 0.

    Returns
    -------
    Dataset
        N = 2 ``n_per_class`` points in the plane.

    Examples
    --------
    >>> lu_set_2().y.mean().item()
    0.5
    """
    classes = [[Clump(1, (-1.5, 2.2))], [Clump(1, (1.5, 0)), Clump(1, (1.5, 6))]]
    X, y, _ = sample_clumps(classes, n_per_class, random_state)
    return make_toy(X, y, "lu_set_2", "A class beside two clumps", "[lu2007, Fig. 5, data set 2]")


def lu_set_3(n_per_class: int = 200, random_state: Seed = 0) -> Dataset:
    """Two crossing classes, nearly empty where they cross [lu2007, Fig. 5, data set 3].

    The hardest of the three: each class is a dumb-bell, and the two lie across one another. Two
    Gaussians can represent them, about 95 % right, but prefer the left and the right half, which is
    no better than tossing a coin. So does K-means.

    Parameters
    ----------
    n_per_class : int, default=200
        Points in each class; at least 3.
    random_state : int, RandomState or None, default=0
        The book's sample is 0.

    Returns
    -------
    Dataset
        N = 2 ``n_per_class`` points in the plane.

    Examples
    --------
    >>> lu_set_3().X.shape
    (400, 2)
    """
    classes = [
        [Clump(37, (-5, -2.5)), Clump(6, (0, 0)), Clump(37, (5, 2.5))],
        [Clump(37, (-5, 2.5)), Clump(6, (0, 0)), Clump(37, (5, -2.5))],
    ]
    X, y, _ = sample_clumps(classes, n_per_class, random_state)
    return make_toy(X, y, "lu_set_3", "Two crossing classes", "[lu2007, Fig. 5, data set 3]")
