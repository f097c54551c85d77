"""A second family of components: independent categorical features, of which binary ones are a case.

Any class-conditional density runs through the same loop [schmidt2016, sect. 2.2]. This file is a
whole family as :mod:`cgmm.mixture.family` describes it: parameters with a log-density, and a family
with a start, statistics, an M-step and the number of its parameters. ``X`` may be whatever they
agree on; here it is a sparse one-hot matrix. Chapter 4.

======  =======================================================================
N, D    points x_i and features d; C_d categories of feature d, C = Σ_d C_d
x_ic    one-hot: 1 where point i shows category c, one c a feature
p_kc    probability of category c in component k; sums to one over a feature
a       pseudo-count, added to each category's expected count
======  =======================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from cgmm.mixture.family import Statistics
from cgmm.numerics import FloatArray, IntArray


class CategoricalParameters(NamedTuple):
    """θ, the parameters of a mixture of independent categorical features."""

    weights: FloatArray
    """(K,) π_k ≥ 0, summing to one."""
    probabilities: FloatArray
    """(K, C) p_kc, the categories of all features side by side."""

    def log_density(self, X: csr_array) -> FloatArray:
        """Return the log-probability of each point under each component, without the weights.

        Parameters
        ----------
        X : (N, C) sparse array
            One-hot rows.

        Returns
        -------
        (N, K) array
            ``Σ_c x_ic log p_kc``; ``-inf`` where a category has probability zero.
        """
        with np.errstate(divide="ignore"):
            # [schmidt2016, sect. 2.2], naive Bayes: features are independent given the class
            return np.asfortranarray(X @ np.log(self.probabilities).T)

    def with_weights(self, weights: FloatArray) -> CategoricalParameters:
        """Return the same components with other weights."""
        return self._replace(weights=weights)


class Categories(NamedTuple):
    """The family: how many categories each feature has, and the pseudo-count."""

    sizes: tuple[int, ...]
    """(D,) C_d."""
    pseudo_count: float = 0.0
    """a ≥ 0. With a > 0 it is the bound plus ``a Σ_kc log p_kc`` that no M-step lowers."""

    @property
    def starts(self) -> IntArray:
        """(D,) the column at which each feature's categories begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    def start(self, X: csr_array, responsibilities: FloatArray) -> CategoricalParameters:
        """Return the parameters that one M-step makes of given responsibilities.

        Parameters
        ----------
        X : (N, C) sparse array
            One-hot rows.
        responsibilities : (N, K) array
            r_ik.

        Returns
        -------
        CategoricalParameters
            Without a pseudo-count of the family it is made with 1: what a start has not seen would
            otherwise stay impossible for ever. Each weight counts one point more, which keeps
            components without points alive.
        """
        counts = responsibilities.sum(axis=0) + 1
        uniform = np.repeat(1 / np.array(self.sizes), self.sizes)
        flat = CategoricalParameters(counts / counts.sum(), np.tile(uniform, (len(counts), 1)))
        family = self._replace(pseudo_count=self.pseudo_count or 1.0)
        return family.maximise(self.statistics(X, responsibilities, flat), flat)

    def statistics(
        self, X: csr_array, responsibilities: FloatArray, parameters: CategoricalParameters
    ) -> Statistics:
        """Return the expected counts of the categories, which add over blocks of points.

        Parameters
        ----------
        X : (N, C) sparse array
            One-hot rows.
        responsibilities : (N, K) array
            r_ik.
        parameters : CategoricalParameters
            θ so far, which counts do not need.

        Returns
        -------
        tuple of one (K, C) array
            Σ_i r_ik x_ic.
        """
        return ((X.T @ responsibilities).T,)

    def maximise(
        self, statistics: Statistics, parameters: CategoricalParameters
    ) -> CategoricalParameters:
        """Return θ with the category probabilities that maximise the bound.

        Parameters
        ----------
        statistics : tuple of one (K, C) array
            From :meth:`statistics`.
        parameters : CategoricalParameters
            θ so far. Its weights stay; a component without responsibility keeps everything.

        Returns
        -------
        CategoricalParameters
            The new θ, with the old weights.

        Notes
        -----
        Expected counts, ``(Σ_i r_ik x_ic + a) / (N_k + a C_d)``: the weighted version of naive
        Bayes' closed form.
        """
        # [schmidt2016, sect. 3.1]: each closed form, with responsibilities for indicators
        counts = statistics[0] + self.pseudo_count
        totals = np.repeat(np.add.reduceat(counts, self.starts, axis=1), self.sizes, axis=1)
        alive = totals > 0
        shares = counts / np.where(alive, totals, 1)
        return parameters._replace(probabilities=np.where(alive, shares, parameters.probabilities))

    def n_free(self, parameters: CategoricalParameters) -> int:
        """Return the number of free parameters.

        Parameters
        ----------
        parameters : CategoricalParameters
            θ.

        Returns
        -------
        int
            K - 1 + K Σ_d (C_d - 1).
        """
        n_components = len(parameters.weights)
        return n_components - 1 + n_components * (sum(self.sizes) - len(self.sizes))


def one_hot(X: IntArray, sizes: Sequence[int] | IntArray) -> csr_array:
    """Write integer categories as rows of zeros and ones.

    Parameters
    ----------
    X : (N, D) int array
        Categories, 0 to C_d - 1 in column d.
    sizes : sequence of int
        C_d.

    Returns
    -------
    (N, C) sparse array
        With D ones a row.

    Raises
    ------
    ValueError
        If an entry is no category of its feature; it is named.

    Examples
    --------
    >>> one_hot(np.array([[0, 2], [1, 0]]), (2, 3)).toarray()
    array([[1., 0., 0., 0., 1.],
           [0., 1., 1., 0., 0.]])
    """
    X = np.asarray(X)
    wrong = np.argwhere((X < 0) | (np.asarray(sizes) <= X) | (np.floor(X) != X))
    if len(wrong):
        i, d = wrong[0]
        kind = "Negative values in data" if X[i, d] < 0 else "Unknown category"
        raise ValueError(
            f"{kind}: X[{i}, {d}] is {X[i, d]}, but feature {d} has the categories 0 to "
            f"{sizes[d] - 1}; encode categories as integers (OrdinalEncoder does), or pass "
            "n_categories."
        )
    return one_hot_with_gaps(X.astype(np.intp), tuple(sizes))


def one_hot_with_gaps(codes: IntArray, sizes: tuple[int, ...]) -> csr_array:
    """Write categories as rows of zeros and ones, without a one for an empty cell.

    Parameters
    ----------
    codes : (N, D_c) int array
        Categories, 0 to C_d - 1 in column d, or -1 where a cell is empty.
    sizes : tuple of int
        C_d.

    Returns
    -------
    (N, Σ_d C_d) sparse array

    Examples
    --------
    >>> one_hot_with_gaps(np.array([[0, -1], [1, 2]]), (2, 3)).toarray()
    array([[1., 0., 0., 0., 0.],
           [0., 1., 0., 0., 1.]])
    """
    rows, columns = np.nonzero(codes >= 0)
    places = codes[rows, columns] + Categories(sizes).starts[columns]
    return csr_array((np.ones(len(rows)), (rows, places)), shape=(len(codes), sum(sizes)))


def sample(
    parameters: CategoricalParameters, categories: Categories, n_samples: int,
    rng: np.random.Generator | np.random.RandomState,
) -> tuple[IntArray, IntArray]:  # fmt: skip
    """Draw points and their components from the mixture.

    Parameters
    ----------
    parameters : CategoricalParameters
        θ.
    categories : Categories
        Which columns belong to which feature.
    n_samples : int
        How many points to draw.
    rng : numpy Generator or RandomState
        Source of randomness.

    Returns
    -------
    X : (n_samples, D) int array
        Categories, points grouped by component.
    z : (n_samples,) int array
        The component of each.

    Examples
    --------
    >>> theta = CategoricalParameters(np.array([0.5, 0.5]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> X, z = sample(theta, Categories((2,)), 100, np.random.default_rng(0))
    >>> bool((X[:, 0] == z).all())
    True
    """
    weights = parameters.weights / parameters.weights.sum()
    z = np.repeat(np.arange(len(weights)), rng.multinomial(n_samples, weights))
    return draw_categories(parameters.probabilities[z], categories, rng), z


def draw_categories(
    probabilities: FloatArray, categories: Categories,
    rng: np.random.Generator | np.random.RandomState,
) -> IntArray:  # fmt: skip
    """Return an (n, D) category of each feature, from (n, C) probabilities of a row each."""
    columns = []
    for start, size in zip(categories.starts, categories.sizes, strict=True):
        reached = np.cumsum(probabilities[:, start : start + size], axis=1)
        # The last entry is 1 only up to rounding, so draws are scaled to it.
        draws = rng.uniform(size=(len(probabilities), 1)) * reached[:, -1:]
        columns.append((draws >= reached).sum(axis=1))
    return np.column_stack(columns)
