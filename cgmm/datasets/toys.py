"""Toy problems: Gaussian classes, waves in noise, and clumps that the likelihood joins wrongly.

``two_clusters`` is the running example of chapters 2 to 6. ``three_classes`` and ``shared_axis``
are the problems of barhillel2005 for chapter 12, in which everything depends on the metric. The
waveform generator of chapter 13 has many features. If each class is one Gaussian, the data set
holds the θ that generated it.

In the second part a class consists of two or three round *clumps*, so it is not Gaussian. Clumps of
different classes lie such that a mixture of two Gaussians explains the data better by joining the
wrong ones. This holds however many points there are, so side information is needed. The problems of
shental2003 (chapters 1, 6 and 7) come first, then those of lu2007 (chapters 4, 9 and 11).

Letters: K classes in D dimensions; θ: weights π_k, means μ_k, covariances Σ_k; waves h_1 to h_3 at
the positions m = 1, ..., 21.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cgmm.datasets.dataset import Dataset, equal_weights, make_toy
from cgmm.mixture import Parameters
from cgmm.numerics import FloatArray, IntArray, Seed, check_integer
from cgmm.runs import random_source

# ------------------------------------------------------------ Gaussian classes, and waves in noise


def two_clusters(n_per_class: int = 100, random_state: Seed = 0) -> Dataset:
    """Draw two well separated Gaussian clusters, the running example of the slides [green].

    Parameters
    ----------
    n_per_class : int, default=100
        Points in each class.
    random_state : int, RandomState, Generator or None, default=0
        The book's sample is 0.

    Returns
    -------
    Dataset
        N = 2 ``n_per_class`` points in the plane; ``parameters`` is set.

    Examples
    --------
    >>> two_clusters().parameters.means
    array([[-2., -1.],
           [ 2.,  1.]])
    """
    covariances = [np.array([[1.0, 0.6], [0.6, 1.0]]), np.array([[1.0, -0.5], [-0.5, 0.8]])]
    parameters = equal_weights(np.array([[-2.0, -1.0], [2.0, 1.0]]), covariances)
    X, y = _sample_gaussians(parameters, n_per_class, random_state)
    return make_toy(X, y, "two_clusters", "Two Gaussian clusters", "[green]", parameters=parameters)


def three_classes(n_per_class: int = 100, random_state: Seed = 0) -> Dataset:
    """Draw three classes hidden by a variability that they share [barhillel2005, Fig. 1].

    Every class has the same covariance, with a standard deviation of 6 along the direction (1, 1)
    and of 0.5 across it. The classes lie side by side across it, six of the small standard
    deviations apart. In the given coordinates the large, irrelevant spread hides them; in
    coordinates whose within-class covariance is the identity they are three round clusters.

    Parameters
    ----------
    n_per_class : int, default=100
        Points in each class.
    random_state : int, RandomState, Generator or None, default=0
        The book's sample is 0.

    Returns
    -------
    Dataset
        N = 3 ``n_per_class`` points in the plane; ``parameters`` is set.

    Examples
    --------
    >>> three_classes().parameters.covariances[0].round(3)
    array([[18.125, 17.875],
           [17.875, 18.125]])
    """
    along, across = np.array([1.0, 1.0]) / np.sqrt(2), np.array([-1.0, 1.0]) / np.sqrt(2)
    covariance = 6.0**2 * np.outer(along, along) + 0.5**2 * np.outer(across, across)
    # Coordinates are (along, across), in units of the within-class standard deviations.
    positions = np.array([[-0.5, -6.0], [0.5, 0.0], [-0.5, 6.0]])
    means = positions * [6.0, 0.5] @ np.stack([along, across])
    parameters = equal_weights(means, [covariance] * 3)
    X, y = _sample_gaussians(parameters, n_per_class, random_state)
    title, source = "Three classes under a shared variability", "[barhillel2005, Fig. 1]"
    return make_toy(X, y, "three_classes", title, source, parameters=parameters)


def shared_axis(n_per_class: int = 1000, epsilon: float = 0.1, random_state: Seed = 0) -> Dataset:
    """Draw two thin sheets that share one axis of large spread [barhillel2005, Fig. 11].

    The standard deviations along x, y and z are (ε, 1, 2) in one class and (1, ε, 2) in the
    other. The paper lists these numbers as the diagonals of the covariances, but the eigenvalues
    that it prints, (3.947, 1.045, 0.009), are their squares. The means, which it does not give,
    are (∓1.5, 0, 0).

    Parameters
    ----------
    n_per_class : int, default=1000
        Points in each class.
    epsilon : float, default=0.1
        Standard deviation across each sheet; positive.
    random_state : int, RandomState, Generator or None, default=0
        The book's sample is 0.

    Returns
    -------
    Dataset
        N = 2 ``n_per_class`` points in space; ``parameters`` is set.

    Raises
    ------
    ValueError
        If ``epsilon`` is not positive.

    Examples
    --------
    >>> shared_axis().parameters.covariances.diagonal(axis1=1, axis2=2).round(3)
    array([[0.01, 1.  , 4.  ],
           [1.  , 0.01, 4.  ]])
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon is {epsilon}; a standard deviation must be positive.")
    deviations = np.array([[epsilon, 1.0, 2.0], [1.0, epsilon, 2.0]])
    covariances = [np.diag(row**2) for row in deviations]
    parameters = equal_weights(np.array([[-1.5, 0, 0], [1.5, 0, 0]]), covariances)
    X, y = _sample_gaussians(parameters, n_per_class, random_state)
    title, source = "Two thin sheets with a shared axis", "[barhillel2005, Fig. 11]"
    return make_toy(X, y, "shared_axis", title, source, parameters=parameters)


def _sample_gaussians(
    parameters: Parameters, n_per_class: int, random_state: Seed
) -> tuple[FloatArray, IntArray]:
    """Draw points and classes in random order, n_per_class from each component."""
    check_integer("n_per_class", n_per_class, 1)
    rng = random_source(random_state)
    K, D = parameters.means.shape
    y = rng.permutation(np.repeat(np.arange(K), n_per_class))
    factors = np.linalg.cholesky(parameters.covariances)
    noise = np.einsum("nij,nj->ni", factors[y], rng.standard_normal((len(y), D)))
    return parameters.means[y] + noise, y


def waveform(n_samples: int = 5000, random_state: Seed = 0) -> Dataset:
    """Draw noisy mixtures of two of three triangular waves [breiman1984, sect. 2.6.2].

    With the base waves, for m = 1, ..., 21::

        h_1(m) = max(6 - |m - 11|, 0),    h_2(m) = h_1(m - 4),    h_3(m) = h_1(m + 4)

    a point is u h_a(m) + (1 - u) h_b(m) + noise, with (a, b) = (1, 2), (1, 3) or (2, 3) according
    to its class, u uniform on [0, 1] and standard normal noise in each of the 21 features. The
    classes are drawn with equal chance. The best possible classifier errs on 14 % of the points.

    Parameters
    ----------
    n_samples : int, default=5000
        N, over all classes. lu2007 uses 5000.
    random_state : int, RandomState, Generator or None, default=0
        The book's sample is 0.

    Returns
    -------
    Dataset
        N points in 21 dimensions, of 3 classes numbered from 0.

    Examples
    --------
    >>> data = waveform(n_samples=6)
    >>> data.X.shape, data.feature_names[0], data.target_names
    ((6, 21), 'm = 1', ('waves 1 and 2', 'waves 1 and 3', 'waves 2 and 3'))
    """
    check_integer("n_samples", n_samples, 1)
    rng = random_source(random_state)
    waves, combinations = _compute_base_waves(), np.array([[0, 1], [0, 2], [1, 2]])
    y = rng.randint(3, size=n_samples).astype(np.int64)
    u = rng.uniform(size=(n_samples, 1))
    first, second = waves[combinations[y]].transpose(1, 0, 2)
    # [breiman1984, sect. 2.6.2]  x_m = u h_a(m) + (1 - u) h_b(m) + ε_m
    X = u * first + (1 - u) * second + rng.standard_normal((n_samples, 21))
    title, source = "Waveform generator", "[breiman1984, sect. 2.6.2]"
    features = tuple(f"m = {m}" for m in range(1, 22))
    targets = tuple(f"waves {a + 1} and {b + 1}" for a, b in combinations)
    return make_toy(X, y, "waveform", title, source, feature_names=features, target_names=targets)


def _compute_base_waves() -> FloatArray:
    """Return (3, 21) triangular waves h_1, h_2, h_3, with their peaks at m = 11, 15 and 7."""
    m = np.arange(1, 22)
    return np.stack([np.maximum(6 - np.abs(m - peak), 0) for peak in (11, 15, 7)]).astype(float)


# ------------------------------------------------------------ clumps


class Clump(NamedTuple):
    """A part of a class: a Gaussian with independent coordinates."""

    mean: tuple[float, float]
    share: float = 1.0
    """Relative share of the clump in the points of its class."""
    deviations: tuple[float, float] = (1.0, 1.0)
    """Standard deviation of each coordinate."""


# ---------------------------------------------------------------------- shental2003


def vertical_classes(n_per_class: int = 300, random_state: Seed = 0) -> Dataset:
    """Draw two vertical classes; the likelihood prefers horizontal ones [shental2003, Fig. 1a].

    Each class is a column of two clumps, far apart: at (∓3, ±10), standard deviation 1. Two
    Gaussians fit best when one takes both upper clumps and the other both lower ones, since that
    leaves the narrower components. The true, vertical solution is a maximum too, but a lower one.

    Parameters
    ----------
    n_per_class : int, default=300
        Points in each class; at least 2.
    random_state : int, RandomState, Generator or None, default=0
        The book's sample is 0.

    Returns
    -------
    Dataset
        N = 2 ``n_per_class`` points in the plane.

    Notes
    -----
    At the default size the log-likelihoods are about -2800 for the horizontal and -3500 for the
    vertical solution, close to the numbers of the paper. The paper assigns them the other way
    round, although the most likely solution cannot have the lower log-likelihood.

    Examples
    --------
    >>> data = vertical_classes()
    >>> [int(x) for x in data.X[data.y == 1].mean(axis=0).round()]
    [3, 0]
    """
    classes = [[Clump((-3, -10)), Clump((-3, 10))], [Clump((3, -10)), Clump((3, 10))]]
    X, y, _ = _sample_clumps(classes, n_per_class, random_state)
    return make_toy(X, y, "vertical_classes", "Two upright classes", "[shental2003, Fig. 1a]")


def overlapping_classes(n_per_class: int = 300, random_state: Seed = 0) -> Dataset:
    """Draw overlapping classes; the likelihood prefers disjoint ones [shental2003, Fig. 1b].

    The classes are two columns of two clumps each, and lean apart: their lower clumps overlap more
    than their upper ones. The best fit separates upper from lower clumps, which do not overlap.

    Parameters
    ----------
    n_per_class : int, default=300
        Points in each class; at least 2.
    random_state : int, RandomState, Generator or None, default=0
        The book's sample is 0.

    Returns
    -------
    Dataset
        N = 2 ``n_per_class`` points in the plane.

    Examples
    --------
    >>> overlapping_classes(n_per_class=10).X.shape
    (20, 2)
    """
    classes = [[Clump((-1.2, -3.5)), Clump((-2, 3.5))], [Clump((1.2, -3.5)), Clump((2, 3.5))]]
    X, y, _ = _sample_clumps(classes, n_per_class, random_state)
    title, source = "Two overlapping classes", "[shental2003, Fig. 1b]"
    return make_toy(X, y, "overlapping_classes", title, source)


# ---------------------------------------------------------------------- lu2007


def two_models(n_per_class: int = 70, random_state: Seed = 0) -> Dataset:
    """Draw data with two nearly equal fits, and pairs that select one [lu2007, Figs. 1 and 2].

    Four clumps lie at the corners of a square. The classes are the left and the right column, but
    two horizontal rows explain the data as well. The ten pairs in ``must_link`` join the two ends
    of a column, the ten in ``cannot_link`` neighbouring ends of different columns. Every pair is
    correct and contradicts the rows, and no point is in two pairs.

    ``start`` is the paper's "poor initial condition": two round components close to the rows. From
    there EM converges to the rows without relations and with weak ones, and to the columns with
    strong ones. This holds for the paper's weights W = 0, 1.3 and 3; the change is near W = 2.
    Twenty iterations suffice for the book's sample and for 98 of 100 others.

    Parameters
    ----------
    n_per_class : int, default=70
        Points in each class; at least 20, since the pairs need forty points. With many more, the
        pairs lose their effect, which depends on their share.
    random_state : int, RandomState, Generator or None, default=0
        The book's sample is 0. It determines the points and the pairs.

    Returns
    -------
    Dataset
        N = 2 ``n_per_class`` points in the plane, ``must_link`` (10, 2), ``cannot_link`` (10, 2),
        ``start``.

    Raises
    ------
    ValueError
        If ``n_per_class`` is below 20.

    Notes
    -----
    A weight W of lu2007 counts twice for each unordered pair, since the product in eq. 2.7 runs
    over i ≠ j: two points linked with W = 3 gain the log-weight 6 when they share a component.

    Examples
    --------
    >>> data = two_models()
    >>> i, j = data.must_link.T
    >>> bool((data.y[i] == data.y[j]).all())
    True
    """
    check_integer("n_per_class", n_per_class, 20)
    rng = random_source(random_state)
    classes = [[Clump((-3, -3)), Clump((-3, 3))], [Clump((3, -3)), Clump((3, 3))]]
    X, y, clump = _sample_clumps(classes, n_per_class, rng)
    must_link, cannot_link = _draw_pairs(clump, rng)
    start = equal_weights(np.array([[-0.5, -3.0], [0.5, 3.0]]), [4 * np.eye(2)] * 2)
    known = {"must_link": must_link, "cannot_link": cannot_link, "start": start}
    title, source = "Two fits of nearly equal likelihood", "[lu2007, Figs. 1 and 2]"
    return make_toy(X, y, "two_models", title, source, **known)


def _draw_pairs(clump: IntArray, rng: np.random.RandomState) -> tuple[IntArray, IntArray]:
    """Draw ten must-links within columns and ten cannot-links within rows, all disjoint."""
    lower_left, upper_left, lower_right, upper_right = (
        rng.choice(np.flatnonzero(clump == c), size=10, replace=False) for c in range(4)
    )
    first, last = slice(5), slice(5, 10)
    left, right = (lower_left[first], upper_left[first]), (lower_right[first], upper_right[first])
    lower, upper = (lower_left[last], lower_right[last]), (upper_left[last], upper_right[last])
    return np.hstack([left, right]).T, np.hstack([lower, upper]).T


def lu_set_1(n_per_class: int = 200, random_state: Seed = 0, *, near: bool = False) -> Dataset:
    """Draw two long stripes, each broken in the middle [lu2007, Fig. 5, data set 1].

    With relations, two Gaussians solve the problem easily, by one flat component per stripe.
    K-means cannot: the gap within a stripe is wider than the distance of the stripes. Without
    relations both methods find the left and the right half, which gets 57.5 % of the points right.

    Parameters
    ----------
    n_per_class : int, default=200
        Points in each class; at least 2.
    random_state : int, RandomState, Generator or None, default=0
        The book's sample is 0.
    near : bool, default=False
        True: the gap is so narrow that the halves fit better by only a few nats, as Figure 10 of
        the paper implies for its data. False: they fit better by 184 nats, which no soft relation
        outweighs.

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
    flat, x = (1.2, 0.45), 3 if near else 5
    classes = [
        [Clump((-x, -1.2), 23, flat), Clump((x, -1.2), 17, flat)],
        [Clump((-x, 1.2), 17, flat), Clump((x, 1.2), 23, flat)],
    ]
    X, y, _ = _sample_clumps(classes, n_per_class, random_state)
    name = "lu_set_1" + "_near" * near
    return make_toy(X, y, name, "Two broken stripes", "[lu2007, Fig. 5, data set 1]")


def lu_set_2(n_per_class: int = 200, random_state: Seed = 0, *, near: bool = False) -> Dataset:
    """Draw a round class that overlaps a class of two clumps [lu2007, Fig. 5, data set 2].

    The classes overlap: two Gaussians get at most about 95 % of the points right. Without relations
    they get about 75 %, since one component takes the separate clump.

    Parameters
    ----------
    n_per_class : int, default=200
        Points in each class; at least 2.
    random_state : int, RandomState, Generator or None, default=0
        The book's sample is 0.
    near : bool, default=False
        True: the separate clump is so near that the wrong fit is better by six nats instead of 38,
        and the classes overlap slightly more, as Figures 6 and 10 of the paper imply for its data.

    Returns
    -------
    Dataset
        N = 2 ``n_per_class`` points in the plane.

    Examples
    --------
    >>> lu_set_2().y.mean().item()
    0.5
    """
    x, top = (1.3, 4.6) if near else (1.5, 6)
    classes = [[Clump((-x, 2.2))], [Clump((x, 0)), Clump((x, top))]]
    X, y, _ = _sample_clumps(classes, n_per_class, random_state)
    name = "lu_set_2" + "_near" * near
    return make_toy(X, y, name, "A class beside two clumps", "[lu2007, Fig. 5, data set 2]")


def lu_set_3(n_per_class: int = 200, random_state: Seed = 0) -> Dataset:
    """Draw two crossing classes, nearly empty where they cross [lu2007, Fig. 5, data set 3].

    This is the hardest of the three sets: each class is a dumb-bell, and the two cross. Two
    Gaussians can represent them with about 95 % of the points right, but prefer the left and the
    right half, which is no better than tossing a coin. K-means prefers these, too.

    Parameters
    ----------
    n_per_class : int, default=200
        Points in each class; at least 3.
    random_state : int, RandomState, Generator or None, default=0
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
        [Clump((-5, -2.5), 37), Clump((0, 0), 6), Clump((5, 2.5), 37)],
        [Clump((-5, 2.5), 37), Clump((0, 0), 6), Clump((5, -2.5), 37)],
    ]
    X, y, _ = _sample_clumps(classes, n_per_class, random_state)
    return make_toy(X, y, "lu_set_3", "Two crossing classes", "[lu2007, Fig. 5, data set 3]")


# ---------------------------------------------------------------------- how clumps are drawn


def _sample_clumps(
    classes: Sequence[Sequence[Clump]], n_per_class: int, random_state: Seed
) -> tuple[FloatArray, IntArray, IntArray]:
    """Draw points in random order, with their classes and clumps (numbered across classes).

    The sizes of classes and clumps are fixed, so only positions vary from seed to seed.
    """
    check_integer("n_per_class", n_per_class, max(map(len, classes)))
    rng = random_source(random_state)
    sizes = np.concatenate(
        [_split_points(n_per_class, [c.share for c in clumps]) for clumps in classes]
    )
    clump = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    class_of_clump = np.repeat(np.arange(len(classes)), [len(clumps) for clumps in classes])
    means = np.array([c.mean for clumps in classes for c in clumps], dtype=float)
    deviations = np.array([c.deviations for clumps in classes for c in clumps])
    X = means[clump] + deviations[clump] * rng.standard_normal((len(clump), 2))
    return X, class_of_clump[clump], clump


def _split_points(n: int, shares: Sequence[float]) -> IntArray:
    """Return numbers of points that sum to n, in proportion to the shares, rounded."""
    ends = np.round(np.cumsum(shares) / np.sum(shares) * n).astype(int)
    return np.diff(ends, prepend=0)
