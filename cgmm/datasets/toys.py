"""Toy problems with Gaussian classes, and with waves in noise.

``two_clusters`` is the running example of chapters 2 to 6. ``three_classes`` and ``shared_axis``
are the problems of barhillel2005 for chapter 12, in which everything depends on the metric. The
waveform generator of chapter 13 has many features. If each class is one Gaussian, the data set
holds the θ that generated it.

Letters: K classes in D dimensions; θ: weights π_k, means μ_k, covariances Σ_k; waves h_1 to h_3 at
the positions m = 1, ..., 21.
"""

from __future__ import annotations

import numpy as np

from cgmm.datasets.dataset import Dataset, equal_weights, make_toy
from cgmm.mixture import Parameters
from cgmm.numerics import FloatArray, IntArray, Seed, check_integer
from cgmm.runs import random_source


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
    waves, combinations = _base_waves(), np.array([[0, 1], [0, 2], [1, 2]])
    y = rng.randint(3, size=n_samples).astype(np.int64)
    u = rng.uniform(size=(n_samples, 1))
    first, second = waves[combinations[y]].transpose(1, 0, 2)
    # [breiman1984, sect. 2.6.2]  x_m = u h_a(m) + (1 - u) h_b(m) + ε_m
    X = u * first + (1 - u) * second + rng.standard_normal((n_samples, 21))
    title, source = "Waveform generator", "[breiman1984, sect. 2.6.2]"
    features = tuple(f"m = {m}" for m in range(1, 22))
    targets = tuple(f"waves {a + 1} and {b + 1}" for a, b in combinations)
    return make_toy(X, y, "waveform", title, source, feature_names=features, target_names=targets)


def _base_waves() -> FloatArray:
    """Return (3, 21) triangular waves h_1, h_2, h_3, with their peaks at m = 11, 15 and 7."""
    m = np.arange(1, 22)
    return np.stack([np.maximum(6 - np.abs(m - peak), 0) for peak in (11, 15, 7)]).astype(float)
