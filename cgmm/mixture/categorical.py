"""The family of independent categorical features, including binary features. Chapter 4.

The EM loop works with any class-conditional density [schmidt2016, sect. 2.2]. This file is a
complete example of the interface in :mod:`cgmm.mixture.family`: parameters with a log-density, and
a family with an initialisation, sufficient statistics, an M-step and a number of parameters. Each
family chooses its own format of ``X``; here it is a sparse one-hot matrix.

======  =======================================================================
N, D    points x_i and features d; C_d categories of feature d, C = Σ_d C_d
x_ic    one-hot code: 1 if point i has category c, so one 1 per feature
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
        """Return the same components with new mixing weights."""
        return self._replace(weights=weights)


class Categories(NamedTuple):
    """The family of categorical features: number of categories per feature, and pseudo-count."""

    sizes: tuple[int, ...]
    """(D,) number of categories C_d of each feature."""
    pseudo_count: float = 0.0
    """a ≥ 0. An M-step never lowers the bound plus ``a Σ_kc log p_kc``."""

    @property
    def starts(self) -> IntArray:
        """(D,) first one-hot column of each feature."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    def start(self, X: csr_array, responsibilities: FloatArray) -> CategoricalParameters:
        """Compute initial parameters from responsibilities by one M-step.

        Parameters
        ----------
        X : (N, C) sparse array
            One-hot rows.
        responsibilities : (N, K) array
            r_ik.

        Returns
        -------
        CategoricalParameters
            If the pseudo-count of the family is zero, the start uses 1, because a category of
            probability zero would keep that probability in all later iterations. One point is
            added to the count of each component, so that no component starts with weight zero.
        """
        counts = responsibilities.sum(axis=0) + 1
        uniform = np.repeat(1 / np.array(self.sizes), self.sizes)
        flat = CategoricalParameters(counts / counts.sum(), np.tile(uniform, (len(counts), 1)))
        family = self._replace(pseudo_count=self.pseudo_count or 1.0)
        return family.maximise(self.statistics(X, responsibilities, flat), flat)

    def statistics(
        self, X: csr_array, responsibilities: FloatArray, parameters: CategoricalParameters
    ) -> Statistics:
        """Return the expected counts of the categories, which can be summed over blocks of points.

        Parameters
        ----------
        X : (N, C) sparse array
            One-hot rows.
        responsibilities : (N, K) array
            r_ik.
        parameters : CategoricalParameters
            The current θ; not used, because counts do not depend on it.

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
            The current θ. Its weights are returned unchanged, and so are the probabilities of a
            component without responsibility.

        Returns
        -------
        CategoricalParameters
            The new θ, with the old weights.

        Notes
        -----
        The probabilities are ``(Σ_i r_ik x_ic + a) / (N_k + a C_d)``, the closed form of naive
        Bayes with responsibilities as weights.
        """
        # [schmidt2016, sect. 3.1]: the closed form, with responsibilities in place of indicators
        counts = statistics[0] + self.pseudo_count
        totals = np.repeat(np.add.reduceat(counts, self.starts, axis=1), self.sizes, axis=1)
        used = totals > 0
        shares = counts / np.where(used, totals, 1)
        return parameters._replace(probabilities=np.where(used, shares, parameters.probabilities))

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
    """Convert integer categories to a sparse one-hot matrix.

    Parameters
    ----------
    X : (N, D) int array
        Categories, 0 to C_d - 1 in column d.
    sizes : sequence of int
        C_d.

    Returns
    -------
    (N, C) sparse array
        Each row has D ones.

    Raises
    ------
    ValueError
        If an entry is not a category of its feature; the message names the entry.

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
    """Convert categories to a sparse one-hot matrix; a missing category becomes zeros.

    Parameters
    ----------
    codes : (N, D_c) int array
        Categories, 0 to C_d - 1 in column d, or -1 for a missing value.
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
        The number of categories of each feature.
    n_samples : int
        Number of points to draw.
    rng : numpy Generator or RandomState
        Source of randomness.

    Returns
    -------
    X : (n_samples, D) int array
        Categories; points are grouped by component.
    z : (n_samples,) int array
        The component of each point.

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
    """Draw (n, D) categories, one per feature, from the (n, C) probabilities of each row."""
    columns = []
    for start, size in zip(categories.starts, categories.sizes, strict=True):
        cumulative = np.cumsum(probabilities[:, start : start + size], axis=1)
        # The last cumulative probability may differ from 1 by rounding, so draws are scaled to it.
        draws = rng.uniform(size=(len(probabilities), 1)) * cumulative[:, -1:]
        columns.append((draws >= cumulative).sum(axis=1))
    return np.column_stack(columns)
