"""The toy problems of the papers, the waveform generator, and real data that scikit-learn carries.

The papers print figures, not numbers. Each toy problem below is therefore built so that *what the
paper says about its figure* is true of it, and the tests hold it to that: which partition
maximises the likelihood, which classifier can succeed, where a given start ends. Positions and
sizes are ours.

Most of them share one trick. A class is made of two or three round *clumps*, so that it is not
Gaussian, and clumps of different classes lie such that a mixture of two Gaussians explains the data
better by joining the wrong ones. The likelihood then points away from the truth, however many
points there are, and side information has something to do.

Letters, as in the book: N points x_i in D dimensions; K classes; weights π_k, means μ_k,
covariances Σ_k.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import (
    fetch_openml,
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.utils import check_random_state

from cgmm.gaussian import Parameters
from cgmm.numerics import FloatArray, IntArray

__all__ = [
    "DATASETS",
    "FETCHED",
    "Dataset",
    "breast_cancer",
    "digits",
    "fetch",
    "iris",
    "load",
    "lu_set_1",
    "lu_set_2",
    "lu_set_3",
    "overlapping_classes",
    "shared_axis",
    "three_classes",
    "two_clusters",
    "two_models",
    "vertical_classes",
    "waveform",
    "wine",
]

# None, an int, or a numpy RandomState, as everywhere in scikit-learn.
Seed = int | np.random.RandomState | None


class Dataset(NamedTuple):
    """Points with their true classes, where they come from, and what is known of their making."""

    X: FloatArray
    """(N, D) float64, the points."""
    y: IntArray
    """(N,) int64, the true class of each, 0 to K - 1. For checking results, not for fitting."""
    name: str
    """The key in :data:`DATASETS`."""
    title: str
    """What it is, in a few words."""
    source: str
    """Whose problem it is, with the place in the paper."""
    licence: str
    """Under which terms the numbers may be used, and who says so."""
    feature_names: tuple[str, ...]
    """D names, with units where there are any."""
    target_names: tuple[str, ...]
    """K names of the classes."""
    parameters: Parameters | None = None
    """The θ that generated X, where each class is one Gaussian; otherwise None."""
    must_link: IntArray | None = None
    """(P, 2) int64, pairs of sample indices that share a class, where the paper supplies pairs."""
    cannot_link: IntArray | None = None
    """(P, 2) int64, pairs of sample indices of two classes."""
    start: Parameters | None = None
    """The θ to start EM from, where the paper tells of one particular start."""

    def __repr__(self) -> str:
        n, d = self.X.shape
        return f"Dataset({self.name!r}: {n} points, {d} features, {len(self.target_names)} classes)"


class _Clump(NamedTuple):
    """A part of a class: a Gaussian with independent coordinates."""

    share: float
    """Its part of the class, relative to the other clumps of the class."""
    mean: tuple[float, float]
    deviations: tuple[float, float] = (1.0, 1.0)
    """Standard deviation of each coordinate."""


def load(name: str, **kwargs: Any) -> Dataset:
    """Make or read the data set of that name.

    Parameters
    ----------
    name : str
        A key of :data:`DATASETS`.
    **kwargs
        For the function of that name: ``n_per_class`` or ``n_samples``, and ``random_state``, for
        generators; nothing for the real data.

    Returns
    -------
    Dataset
        Its first two fields are the points and their classes.

    Raises
    ------
    ValueError
        If there is no data set of that name.

    Examples
    --------
    >>> data = load("vertical_classes", n_per_class=50)
    >>> data
    Dataset('vertical_classes': 100 points, 2 features, 2 classes)
    >>> X, y, *_ = load("iris")
    >>> X.shape
    (150, 4)
    """
    if name not in DATASETS:
        raise ValueError(f"there is no data set {name!r}; known are {', '.join(sorted(DATASETS))}.")
    return DATASETS[name](**kwargs)


# ---------------------------------------------------------------------- two maxima: shental2003


def vertical_classes(n_per_class: int = 300, random_state: Seed = 0) -> Dataset:
    """Two upright classes in which the likelihood sees two level ones [shental2003, Fig. 1a].

    Each class is a column of two clumps, far apart: at (∓3, ±10), standard deviation 1. Two
    Gaussians fit best when one takes both upper clumps and the other both lower ones, since that
    leaves the narrower components. The true, upright solution is a maximum too, but a lower one.

    Parameters
    ----------
    n_per_class : int, default=300
        Points in each class; at least 2.
    random_state : int, RandomState or None, default=0
        The book's sample is 0.

    Returns
    -------
    Dataset
        N = 2 ``n_per_class`` points in the plane.

    Notes
    -----
    At the default size the log-likelihoods come to about -2800 for the level and -3500 for the
    upright solution, close to the numbers of the paper. The paper assigns them the other way round,
    though a most likely solution cannot have the lower log-likelihood.

    Examples
    --------
    >>> data = vertical_classes()
    >>> [int(x) for x in data.X[data.y == 1].mean(axis=0).round()]
    [3, 0]
    """
    classes = [
        [_Clump(1, (-3, -10)), _Clump(1, (-3, 10))],
        [_Clump(1, (3, -10)), _Clump(1, (3, 10))],
    ]
    X, y, _ = _sample_clumps(classes, n_per_class, random_state)
    return _toy(X, y, "vertical_classes", "Two upright classes", "[shental2003, Fig. 1a]")


def overlapping_classes(n_per_class: int = 300, random_state: Seed = 0) -> Dataset:
    """Overlapping classes; the likelihood prefers disjoint ones [shental2003, Fig. 1b].

    Two columns again, of two clumps each, leaning apart: they run into one another at the foot and
    less so at the head. The best fit cuts between head and foot, where nothing overlaps at all.

    Parameters
    ----------
    n_per_class : int, default=300
        Points in each class; at least 2.
    random_state : int, RandomState or None, default=0
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
    classes = [
        [_Clump(1, (-1.2, -3.5)), _Clump(1, (-2, 3.5))],
        [_Clump(1, (1.2, -3.5)), _Clump(1, (2, 3.5))],
    ]
    X, y, _ = _sample_clumps(classes, n_per_class, random_state)
    return _toy(X, y, "overlapping_classes", "Two overlapping classes", "[shental2003, Fig. 1b]")


# ---------------------------------------------------------------------- one metric: barhillel2005


def three_classes(n_per_class: int = 100, random_state: Seed = 0) -> Dataset:
    """Three classes behind a variability that they share [barhillel2005, Fig. 1].

    Every class has the same covariance: a standard deviation of 6 along the direction (1, 1), of
    0.5 across it. The classes lie side by side across it, six of the small standard deviations
    apart. In the given coordinates the large, irrelevant spread hides them; in coordinates in
    which the within-class covariance is the identity they are three round clusters.

    Parameters
    ----------
    n_per_class : int, default=100
        Points in each class.
    random_state : int, RandomState or None, default=0
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
    # Places in whitened coordinates: (along, across), in within-class standard deviations.
    places = np.array([[-0.5, -6.0], [0.5, 0.0], [-0.5, 6.0]])
    means = places * [6.0, 0.5] @ np.stack([along, across])
    parameters = _equal_weights(means, [covariance] * 3)
    X, y = _sample_gaussians(parameters, n_per_class, random_state)
    title, source = "Three classes under a shared variability", "[barhillel2005, Fig. 1]"
    return _toy(X, y, "three_classes", title, source, parameters=parameters)


def shared_axis(n_per_class: int = 1000, epsilon: float = 0.1, random_state: Seed = 0) -> Dataset:
    """Two thin sheets that share one axis of large spread [barhillel2005, Fig. 11].

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
    random_state : int, RandomState or None, default=0
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
    parameters = _equal_weights(np.array([[-1.5, 0, 0], [1.5, 0, 0]]), covariances)
    X, y = _sample_gaussians(parameters, n_per_class, random_state)
    title, source = "Two thin sheets with a shared axis", "[barhillel2005, Fig. 11]"
    return _toy(X, y, "shared_axis", title, source, parameters=parameters)


# ---------------------------------------------------------------------- soft relations: lu2007


def two_models(n_per_class: int = 70, random_state: Seed = 0) -> Dataset:
    """Two fits of nearly equal likelihood, and pairs that tell them apart [lu2007, Figs. 1 and 2].

    Four clumps on the corners of a square: a class is a left or a right column, but two level
    rows explain the data as well. ``must_link`` joins the two ends of a column, ten times,
    ``cannot_link`` two neighbouring ends of different columns, ten times. Every pair is correct,
    every one contradicts the rows, and no point is in two of them.

    ``start`` is the paper's "poor initial condition": two round components which all but sit on
    the rows. From there EM ends in the rows without relations and with weak ones, and in the
    columns with strong ones. The paper's weights W = 0, 1.3 and 3 do just that; the change comes
    near W = 2. Twenty iterations settle it for the book's sample and for 98 of 100 others.

    Parameters
    ----------
    n_per_class : int, default=70
        Points in each class; at least 20, since forty points are needed for the pairs. With many
        more, the pairs become too few to matter: what counts is their share.
    random_state : int, RandomState or None, default=0
        The book's sample is 0. It settles the points and the pairs.

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
    if n_per_class < 20:
        raise ValueError(
            f"n_per_class is {n_per_class}; the twenty pairs need at least 20 a class."
        )
    rng = check_random_state(random_state)
    classes = [
        [_Clump(1, (-3, -3)), _Clump(1, (-3, 3))],
        [_Clump(1, (3, -3)), _Clump(1, (3, 3))],
    ]
    X, y, clump = _sample_clumps(classes, n_per_class, rng)
    must_link, cannot_link = _pairs_against_rows(clump, rng)
    return _toy(
        X,
        y,
        "two_models",
        "Two fits of nearly equal likelihood",
        "[lu2007, Figs. 1 and 2]",
        must_link=must_link,
        cannot_link=cannot_link,
        start=_equal_weights(np.array([[-0.5, -3.0], [0.5, 3.0]]), [4 * np.eye(2)] * 2),
    )


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
        [_Clump(23, (-5, -1.2), flat), _Clump(17, (5, -1.2), flat)],
        [_Clump(17, (-5, 1.2), flat), _Clump(23, (5, 1.2), flat)],
    ]
    X, y, _ = _sample_clumps(classes, n_per_class, random_state)
    return _toy(X, y, "lu_set_1", "Two broken stripes", "[lu2007, Fig. 5, data set 1]")


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
    classes = [[_Clump(1, (-1.5, 2.2))], [_Clump(1, (1.5, 0)), _Clump(1, (1.5, 6))]]
    X, y, _ = _sample_clumps(classes, n_per_class, random_state)
    return _toy(X, y, "lu_set_2", "A class beside two clumps", "[lu2007, Fig. 5, data set 2]")


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
        [_Clump(37, (-5, -2.5)), _Clump(6, (0, 0)), _Clump(37, (5, 2.5))],
        [_Clump(37, (-5, 2.5)), _Clump(6, (0, 0)), _Clump(37, (5, -2.5))],
    ]
    X, y, _ = _sample_clumps(classes, n_per_class, random_state)
    return _toy(X, y, "lu_set_3", "Two crossing classes", "[lu2007, Fig. 5, data set 3]")


# ---------------------------------------------------------------------- easy, or many-sided


def two_clusters(n_per_class: int = 100, random_state: Seed = 0) -> Dataset:
    """Two Gaussian clusters, well apart: the running example of the slides [green].

    Parameters
    ----------
    n_per_class : int, default=100
        Points in each class.
    random_state : int, RandomState or None, default=0
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
    parameters = _equal_weights(np.array([[-2.0, -1.0], [2.0, 1.0]]), covariances)
    X, y = _sample_gaussians(parameters, n_per_class, random_state)
    return _toy(X, y, "two_clusters", "Two Gaussian clusters", "[green]", parameters=parameters)


def waveform(n_samples: int = 5000, random_state: Seed = 0) -> Dataset:
    """Random mixtures of two out of three triangular waves, in noise [breiman1984, sect. 2.6.2].

    With the base waves, for m = 1, ..., 21::

        h_1(m) = max(6 - |m - 11|, 0),    h_2(m) = h_1(m - 4),    h_3(m) = h_1(m + 4)

    a point is u h_a(m) + (1 - u) h_b(m) + noise, with (a, b) = (1, 2), (1, 3) or (2, 3) according
    to its class, u uniform on [0, 1] and standard normal noise in each of the 21 features. The
    classes are drawn with equal chance. The best possible classifier errs on 14 % of the points.

    Parameters
    ----------
    n_samples : int, default=5000
        N, over all classes. lu2007 uses 5000.
    random_state : int, RandomState or None, default=0
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
    _require_count(n_samples, "n_samples", 1)
    rng = check_random_state(random_state)
    waves, combinations = _base_waves(), np.array([[0, 1], [0, 2], [1, 2]])
    y = rng.randint(3, size=n_samples).astype(np.int64)
    u = rng.uniform(size=(n_samples, 1))
    first, second = waves[combinations[y]].transpose(1, 0, 2)
    # [breiman1984, sect. 2.6.2]  x_m = u h_a(m) + (1 - u) h_b(m) + ε_m
    X = u * first + (1 - u) * second + rng.standard_normal((n_samples, 21))
    title, source = "Waveform generator", "[breiman1984, sect. 2.6.2]"
    features = tuple(f"m = {m}" for m in range(1, 22))
    targets = tuple(f"waves {a + 1} and {b + 1}" for a, b in combinations)
    return _toy(X, y, "waveform", title, source, feature_names=features, target_names=targets)


def _base_waves() -> FloatArray:
    """(3, 21): the triangles h_1, h_2, h_3, with their peaks at m = 11, 15 and 7."""
    m = np.arange(1, 22)
    return np.stack([np.maximum(6 - np.abs(m - peak), 0) for peak in (11, 15, 7)]).astype(float)


# ---------------------------------------------------------------------------- real data


def iris() -> Dataset:
    """Fisher's irises: 150 flowers of three species, four lengths in cm.

    Returns
    -------
    Dataset
        50 flowers a species. The values are those of Fisher's paper; UCI's copy differs in two.

    Examples
    --------
    >>> iris()
    Dataset('iris': 150 points, 4 features, 3 classes)
    """
    return _bundled(
        load_iris(),
        "iris",
        "Irises",
        "R. A. Fisher (1936), The use of multiple measurements in taxonomic problems; "
        "UCI Machine Learning Repository, doi:10.24432/C56C76; the copy of scikit-learn",
    )


def wine() -> Dataset:
    """Chemical analyses of 178 wines from three cultivars, in 13 features of very different scales.

    Returns
    -------
    Dataset
        59, 71 and 48 wines.

    Examples
    --------
    >>> wine()
    Dataset('wine': 178 points, 13 features, 3 classes)
    """
    return _bundled(
        load_wine(),
        "wine",
        "Wines",
        "S. Aeberhard and M. Forina (1992), Wine; "
        "UCI Machine Learning Repository, doi:10.24432/C5PC7J; the copy of scikit-learn",
    )


def breast_cancer() -> Dataset:
    """Cell nuclei in 569 breast tissue samples, malignant (0) or benign (1), in 30 features.

    Returns
    -------
    Dataset
        212 malignant and 357 benign samples.

    Examples
    --------
    >>> breast_cancer()
    Dataset('breast_cancer': 569 points, 30 features, 2 classes)
    """
    return _bundled(
        load_breast_cancer(),
        "breast_cancer",
        "Breast cancer, Wisconsin (diagnostic)",
        "W. Wolberg, O. Mangasarian, N. Street and W. Street (1993), "
        "Breast Cancer Wisconsin (Diagnostic); "
        "UCI Machine Learning Repository, doi:10.24432/C5DW2B; the copy of scikit-learn",
    )


def digits() -> Dataset:
    """Handwritten digits: 1797 images of 8 x 8 pixels, grey levels 0 to 16.

    Returns
    -------
    Dataset
        The test part of the original collection. Some border pixels are blank in every image, so a
        full covariance of the 64 features is singular.

    Examples
    --------
    >>> digits()
    Dataset('digits': 1797 points, 64 features, 10 classes)
    """
    return _bundled(
        load_digits(),
        "digits",
        "Handwritten digits",
        "E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits; "
        "UCI Machine Learning Repository, doi:10.24432/C50P49; the copy of scikit-learn",
    )


DATASETS: dict[str, Callable[..., Dataset]] = {
    make.__name__: make
    for make in (
        vertical_classes,
        overlapping_classes,
        three_classes,
        shared_axis,
        two_models,
        lu_set_1,
        lu_set_2,
        lu_set_3,
        two_clusters,
        waveform,
        iris,
        wine,
        breast_cancer,
        digits,
    )
}
"""Every data set by name; :func:`load` looks here."""


# ---------------------------------------------------------------------------- real data, fetched


class Remote(NamedTuple):
    """A data set that this package does not carry: what it is, and where it can be had."""

    title: str
    source: str
    openml: str | None
    """Its name at OpenML, where version 1 is taken; None if it is not to be had there."""


_UCI = "UCI Machine Learning Repository, doi:10.24432/"

FETCHED: dict[str, Remote] = {
    "ionosphere": Remote("Radar echoes of the ionosphere", f"{_UCI}C5W01B", "ionosphere"),
    "pima": Remote(
        "Diabetes among the Pima",
        "J. W. Smith et al. (1988), Using the ADAP learning algorithm to forecast the onset of "
        "diabetes mellitus",
        "diabetes",
    ),
    "balance-scale": Remote("Balance scale", f"{_UCI}C5488X", "balance-scale"),
    "pendigits": Remote("Digits written with a pen", f"{_UCI}C5MG6K", "pendigits"),
    "faces": Remote(
        "Faces under 64 lights",
        "Extended Yale Face Database B (A. Georghiades, P. Belhumeur and D. Kriegman, 2001), the "
        "frontal images of ten subjects under 64 lights; the features are the first 60 principal "
        "components of these 640 images, the label is the subject",
        None,
    ),
}
"""What :func:`fetch` knows, by name."""


def fetch(name: str, data_home: str | os.PathLike[str] = "data") -> Dataset:
    """Read a data set from a file of one's own, or download it from OpenML and write that file.

    Parameters
    ----------
    name : str
        A key of :data:`FETCHED`.
    data_home : path, default="data"
        The folder of ``<name>.csv``: a header row, then one row a point, features first and its
        label last. Made if need be.

    Returns
    -------
    Dataset
        Classes are numbered in the order of their labels: as numbers if all are, else as text.

    Raises
    ------
    ValueError
        If there is no data set of that name, or the file is not such a table.
    OSError
        If there is no file and it cannot be had from the network; it says where to put the file.

    Examples
    --------
    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> _ = (home / "pima.csv").write_text("age,class\\n50,1\\n31,0\\n")
    >>> data = fetch("pima", home)
    >>> data.X.tolist(), data.y.tolist()
    ([[50.0], [31.0]], [1, 0])
    """
    if name not in FETCHED:
        known = ", ".join(sorted(FETCHED))
        raise ValueError(f"there is no data set {name!r} to fetch; known are {known}.")
    path = Path(data_home) / f"{name}.csv"
    if not path.exists():
        _download(name, path)
    return _read_table(name, path)


def _download(name: str, path: Path) -> None:
    """Write the file from OpenML's table; not a trace of it if that fails."""
    remote = FETCHED[name]
    try:
        if remote.openml is None:
            raise OSError("it is not to be had from OpenML")
        bunch = fetch_openml(
            remote.openml, version=1, as_frame=False, parser="liac-arff", cache=False
        )
    # scikit-learn's word for what OpenML refuses, or delivers damaged, is ValueError.
    except (OSError, ValueError) as error:
        raise OSError(
            f"{name} is not at {path}, and could not be downloaded ({error}). Put the file there "
            "yourself: a header row, then one row a point, features first and the label last. "
            f"The source: {remote.source}."
        ) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with open(partial, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*bunch.feature_names, "label"])
        rows.writerows([*x, label] for x, label in zip(bunch.data, bunch.target, strict=True))
    os.replace(partial, path)


def _read_table(name: str, path: Path) -> Dataset:
    """The Dataset in a file: features first, label last."""
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    if len(header) < 2 or not rows:
        raise ValueError(f"{path} must have a header row, and rows of features and a label.")
    X = np.array([_numbers(row, header, path, i) for i, row in enumerate(rows, start=2)])
    classes, y = _numbered([row[-1] for row in rows])
    return Dataset(
        X=X,
        y=y,
        name=name,
        title=FETCHED[name].title,
        source=FETCHED[name].source,
        licence="as its source states it; this package does not contain the data",
        feature_names=tuple(header[:-1]),
        target_names=classes,
    )


def _numbers(row: list[str], header: list[str], path: Path, line: int) -> list[float]:
    """The features of one row, or an error that names its line."""
    try:
        if len(row) != len(header):
            raise ValueError(f"{len(row)} entries under a header of {len(header)}")
        features = [float(entry) for entry in row[:-1]]
        if not np.isfinite(features).all():
            raise ValueError("a missing or infinite value")
    except ValueError as error:
        raise ValueError(
            f"{path}, line {line}: {error}; features must be finite numbers."
        ) from None
    return features


def _numbered(labels: list[str]) -> tuple[tuple[str, ...], IntArray]:
    """Names of the classes, and the number of each point's class."""
    try:
        names = sorted(set(labels), key=float)
    except ValueError:
        names = sorted(set(labels))
    number = {name: k for k, name in enumerate(names)}
    return tuple(names), np.array([number[label] for label in labels], dtype=np.int64)


# ---------------------------------------------------------------------- how the samples are made


def _sample_clumps(
    classes: Sequence[Sequence[_Clump]], n_per_class: int, random_state: Seed
) -> tuple[FloatArray, IntArray, IntArray]:
    """Points, classes and clumps (numbered through all classes), in random order.

    The sizes of classes and clumps are fixed, so that only positions vary from seed to seed.
    """
    _require_count(n_per_class, "n_per_class", max(map(len, classes)))
    rng = check_random_state(random_state)
    sizes = np.concatenate([_split(n_per_class, [c.share for c in clumps]) for clumps in classes])
    clump = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    class_of_clump = np.repeat(np.arange(len(classes)), [len(clumps) for clumps in classes])
    means = np.array([c.mean for clumps in classes for c in clumps], dtype=float)
    deviations = np.array([c.deviations for clumps in classes for c in clumps])
    X = means[clump] + deviations[clump] * rng.standard_normal((len(clump), 2))
    return X, class_of_clump[clump], clump


def _split(n: int, shares: Sequence[float]) -> IntArray:
    """Integers in proportion to the shares that add up to n."""
    ends = np.round(np.cumsum(shares) / np.sum(shares) * n).astype(int)
    return np.diff(ends, prepend=0)


def _sample_gaussians(
    parameters: Parameters, n_per_class: int, random_state: Seed
) -> tuple[FloatArray, IntArray]:
    """Points and classes in random order, n_per_class from each component."""
    _require_count(n_per_class, "n_per_class", 1)
    rng = check_random_state(random_state)
    K, D = parameters.means.shape
    y = rng.permutation(np.repeat(np.arange(K), n_per_class))
    factors = np.linalg.cholesky(parameters.covariances)
    noise = np.einsum("nij,nj->ni", factors[y], rng.standard_normal((len(y), D)))
    return parameters.means[y] + noise, y


def _pairs_against_rows(clump: IntArray, rng: np.random.RandomState) -> tuple[IntArray, IntArray]:
    """Ten links within columns and ten do-not-links within rows; no point is drawn twice."""
    lower_left, upper_left, lower_right, upper_right = (
        rng.choice(np.flatnonzero(clump == c), size=10, replace=False) for c in range(4)
    )
    first, last = slice(5), slice(5, 10)
    left, right = (lower_left[first], upper_left[first]), (lower_right[first], upper_right[first])
    lower, upper = (lower_left[last], lower_right[last]), (upper_left[last], upper_right[last])
    return np.hstack([left, right]).T, np.hstack([lower, upper]).T


def _equal_weights(means: FloatArray, covariances: Sequence[FloatArray]) -> Parameters:
    K = len(means)
    return Parameters(np.full(K, 1 / K), means, np.stack(covariances))


def _toy(X: FloatArray, y: IntArray, name: str, title: str, source: str, **known: Any) -> Dataset:
    """A generated Dataset with the fields that all of them share."""
    defaults: dict[str, Any] = {
        "licence": "generated by this package: BSD-3-Clause, as its code",
        "feature_names": ("x", "y", "z")[: X.shape[1]],
        "target_names": tuple(f"class {k + 1}" for k in range(y.max() + 1)),
    }
    return Dataset(X, y, name, title, source, **(defaults | known))


def _bundled(bunch: Any, name: str, title: str, source: str) -> Dataset:
    """A Dataset from what one of scikit-learn's loaders returns."""
    return Dataset(
        X=bunch.data.astype(np.float64),
        y=bunch.target.astype(np.int64),
        name=name,
        title=title,
        source=source,
        # The copies in scikit-learn carry no licence of their own; UCI states one for each.
        licence="CC BY 4.0, as the UCI Machine Learning Repository lists it",
        feature_names=tuple(map(str, bunch.feature_names)),
        target_names=tuple(map(str, bunch.target_names)),
    )


def _require_count(n: int, name: str, least: int) -> None:
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < least:
        raise ValueError(f"{name} is {n!r}; it must be an integer of at least {least}.")
