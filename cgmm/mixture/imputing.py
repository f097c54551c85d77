"""Fill in empty cells from a fitted mixture. Chapter 3."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import ArrayLike

from cgmm.mixture.base import ConstrainedMixture
from cgmm.numerics import FloatArray, Seed
from cgmm.runs import Rng, random_source


class ImputingMixture(ConstrainedMixture):
    """Base of the mixtures that take empty cells."""

    def impute(
        self, X: ArrayLike, *, draw: bool = False, random_state: Seed = None,
        must_link: ArrayLike | None = None, cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """Return the table with its empty cells filled in.

        Parameters
        ----------
        X : (N, D) array-like
            Points, with NaN in empty cells.
        draw : bool, default=False
            False: each cell gets its expectation given the present cells of its row, and a category
            the most probable one. Variances and correlations of such a table are too small or too
            large; it is for looking at, and for methods that need complete rows. True: each row is
            drawn from the mixture given its present cells, so that several draws show how uncertain
            the cells are (multiple imputation).
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws; None: that of the estimator.
        must_link, cannot_link, preferences : arrays, default=None
            Relations among these points, as in ``predict``; they tell which components a point
            may have.

        Returns
        -------
        (N, D) array, or a table like X
            Present cells are unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from cgmm import ConstrainedGaussianMixture
        >>> X = np.array([[0.0, 0.1], [1.0, 0.9], [2.0, 2.1], [3.0, np.nan]])
        >>> ConstrainedGaussianMixture().fit(X).impute(X)[3].round(1)
        array([3., 3.])
        """
        ties = {"must_link": must_link, "cannot_link": cannot_link, "preferences": preferences}
        r = self.predict_proba(X, **ties)
        if not draw:
            return self._impute(X, r, None)
        seed = self.random_state if random_state is None else random_state
        return self._impute(X, r, random_source(seed))

    @abstractmethod
    def _impute(self, X: ArrayLike, r: FloatArray, rng: Rng | None) -> Any:
        """Return the table with cells filled in, given (N, K) responsibilities of its points."""
